"""The queries of TPC-H that are measured, in the SQL that every system understands."""

from dataclasses import dataclass

TYPES = {
    "c_custkey": "BIGINT", "c_mktsegment": "VARCHAR",
    "o_orderkey": "BIGINT", "o_custkey": "BIGINT", "o_orderdate": "DATE", "o_orderpriority": "VARCHAR",
    "o_shippriority": "INT",
    "l_orderkey": "BIGINT", "l_quantity": "DECIMAL(15,2)", "l_extendedprice": "DECIMAL(15,2)",
    "l_discount": "DECIMAL(15,2)", "l_tax": "DECIMAL(15,2)", "l_returnflag": "VARCHAR", "l_linestatus": "VARCHAR",
    "l_shipdate": "DATE", "l_commitdate": "DATE", "l_receiptdate": "DATE", "l_shipmode": "VARCHAR",
}  # fmt: skip


@dataclass(frozen=True)
class Query:
    """A query as text, its order apart: streams of changed groups cannot be sorted."""

    name: str
    tables: tuple[str, ...]
    select: str
    order: str = ""
    keys: tuple[str, ...] = ()  # of a group, among the output columns

    @property
    def text(self) -> str:
        return f"{self.select} {self.order}".strip()

    @property
    def columns(self) -> dict[str, list[str]]:
        """The columns of each table that the query reads; nobody is made to carry others."""
        return {t: [c for c in TYPES if c[0] == t[0] and c in self.select] for t in self.tables}

    def script(self, folder: str) -> str:
        """The query as a script of ours over the files in `folder`."""
        streams = []
        for table, columns in self.columns.items():
            fields = ", ".join(f"{c} {TYPES[c]} NOT NULL" for c in columns)
            streams.append(f"CREATE STREAM {table} ({fields}) USING parquet OPTIONS (path '{folder}/{table}.parquet');")
        return "\n".join([*streams, f"{self.text};"])


Q1 = Query(
    "q1",
    ("lineitem",),
    "SELECT l_returnflag, l_linestatus, SUM(l_quantity) AS sum_qty, SUM(l_extendedprice) AS sum_base_price, "
    "SUM(l_extendedprice * (1 - l_discount)) AS sum_disc_price, "
    "SUM(l_extendedprice * (1 - l_discount) * (1 + l_tax)) AS sum_charge, AVG(l_quantity) AS avg_qty, "
    "AVG(l_extendedprice) AS avg_price, AVG(l_discount) AS avg_disc, COUNT(*) AS count_order "
    "FROM lineitem WHERE l_shipdate <= DATE '1998-09-02' GROUP BY l_returnflag, l_linestatus",
    "ORDER BY l_returnflag, l_linestatus",
    ("l_returnflag", "l_linestatus"),
)
Q3 = Query(
    "q3",
    ("customer", "orders", "lineitem"),
    "SELECT l_orderkey, SUM(l_extendedprice * (1 - l_discount)) AS revenue, o_orderdate, o_shippriority "
    "FROM customer, orders, lineitem WHERE c_mktsegment = 'BUILDING' AND c_custkey = o_custkey "
    "AND l_orderkey = o_orderkey AND o_orderdate < DATE '1995-03-15' AND l_shipdate > DATE '1995-03-15' "
    "GROUP BY l_orderkey, o_orderdate, o_shippriority",
    "ORDER BY revenue DESC, o_orderdate LIMIT 10",
    ("l_orderkey", "o_orderdate", "o_shippriority"),
)
Q6 = Query(
    "q6",
    ("lineitem",),
    "SELECT SUM(l_extendedprice * l_discount) AS revenue FROM lineitem WHERE l_shipdate >= DATE '1994-01-01' "
    "AND l_shipdate < DATE '1995-01-01' AND l_discount BETWEEN 0.05 AND 0.07 AND l_quantity < 24",
)
Q12 = Query(
    "q12",
    ("orders", "lineitem"),
    "SELECT l_shipmode, "
    "SUM(CASE WHEN o_orderpriority = '1-URGENT' OR o_orderpriority = '2-HIGH' THEN 1 ELSE 0 END) AS high_line_count, "
    "SUM(CASE WHEN o_orderpriority <> '1-URGENT' AND o_orderpriority <> '2-HIGH' THEN 1 ELSE 0 END) AS low_line_count "
    "FROM orders, lineitem WHERE o_orderkey = l_orderkey AND l_shipmode IN ('MAIL', 'SHIP') "
    "AND l_commitdate < l_receiptdate AND l_shipdate < l_commitdate AND l_receiptdate >= DATE '1994-01-01' "
    "AND l_receiptdate < DATE '1995-01-01' GROUP BY l_shipmode",
    "ORDER BY l_shipmode",
    ("l_shipmode",),
)
QUERIES = {query.name: query for query in (Q1, Q3, Q6, Q12)}
