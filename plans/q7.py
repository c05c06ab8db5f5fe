"""TPC-H Q7: the trade between two nations, by year; nation is read under two names."""

from squallpy.plans import Aggregate, DataSource, EquiJoin, Project, Select, Sink

NATION = {"n_nationkey": "INT NOT NULL", "n_name": "VARCHAR NOT NULL"}
n1, n2 = (
    Select(
        DataSource(
            "nation", "../examples/tpch/data/nation.parquet", NATION, table=True, primary_key="n_nationkey", name=name
        ),
        "n_name IN ('FRANCE', 'GERMANY')",
    )
    for name in ("n1", "n2")
)
supplier = DataSource(
    "supplier",
    "../examples/tpch/data/supplier.parquet",
    {"s_suppkey": "BIGINT NOT NULL", "s_nationkey": "INT NOT NULL"},
    primary_key="s_suppkey",
)
customer = DataSource(
    "customer",
    "../examples/tpch/data/customer.parquet",
    {"c_custkey": "BIGINT NOT NULL", "c_nationkey": "INT NOT NULL"},
    primary_key="c_custkey",
)
orders = DataSource(
    "orders",
    "../examples/tpch/data/orders.parquet",
    {"o_orderkey": "BIGINT NOT NULL", "o_custkey": "BIGINT NOT NULL"},
    primary_key="o_orderkey",
)
lineitem = DataSource(
    "lineitem",
    "../examples/tpch/data/lineitem.parquet",
    {
        "l_orderkey": "BIGINT NOT NULL",
        "l_suppkey": "BIGINT NOT NULL",
        "l_extendedprice": "DECIMAL(15,2) NOT NULL",
        "l_discount": "DECIMAL(15,2) NOT NULL",
        "l_shipdate": "DATE NOT NULL",
    },
)

sellers = EquiJoin(supplier, "s_nationkey", n1, "n_nationkey", name="sellers", partitioning="broadcast(n1)")
buyers = EquiJoin(customer, "c_nationkey", n2, "n_nationkey", name="buyers", partitioning="broadcast(n2)")
bought = EquiJoin(buyers, "c_custkey", orders, "o_custkey", name="bought")
shipped = Project(
    Select(lineitem, "l_shipdate BETWEEN DATE '1995-01-01' AND DATE '1996-12-31'"),
    "l_orderkey",
    "l_suppkey",
    l_year="EXTRACT(YEAR FROM l_shipdate)",
    volume="l_extendedprice * (1 - l_discount)",
)
sold = EquiJoin(sellers, "s_suppkey", shipped, "l_suppkey", name="sold")
traded = EquiJoin(sold, "l_orderkey", bought, "o_orderkey", name="traded", partitioning="hash(o_orderkey)")
trade = Select(traded, "n1.n_name <> n2.n_name")
by_year = Aggregate(trade, by=("n1.n_name AS supp_nation", "n2.n_name AS cust_nation", "l_year"), revenue="SUM(volume)")
plan = Sink(by_year, order_by=("supp_nation", "cust_nation", "l_year"))
