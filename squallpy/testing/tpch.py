"""TPC-H: data by its generator, and the schemas as streams.

python -m squallpy.testing.tpch 0.1 examples/tpch/data        parquet files of all tables at scale 0.1
python -m squallpy.testing.tpch 0.1 /tmp/tpch tbl             the same as .tbl, with | after every field
"""

from squallpy.testing.tpc import Benchmark, split_columns

KEYS = {"partsupp": ("ps_partkey", "ps_suppkey"), "lineitem": ("l_orderkey", "l_linenumber")}
STATIC = ("nation", "region")  # do not change: CREATE TABLE
COLUMNS: dict[str, str] = {
    "region": "r_regionkey INT, r_name VARCHAR, r_comment VARCHAR",
    "nation": "n_nationkey INT, n_name VARCHAR, n_regionkey INT, n_comment VARCHAR",
    "supplier": "s_suppkey BIGINT, s_name VARCHAR, s_address VARCHAR, s_nationkey INT, s_phone VARCHAR, "
    "s_acctbal DECIMAL(15,2), s_comment VARCHAR",
    "customer": "c_custkey BIGINT, c_name VARCHAR, c_address VARCHAR, c_nationkey INT, c_phone VARCHAR, "
    "c_acctbal DECIMAL(15,2), c_mktsegment VARCHAR, c_comment VARCHAR",
    "part": "p_partkey BIGINT, p_name VARCHAR, p_mfgr VARCHAR, p_brand VARCHAR, p_type VARCHAR, p_size INT, "
    "p_container VARCHAR, p_retailprice DECIMAL(15,2), p_comment VARCHAR",
    "partsupp": "ps_partkey BIGINT, ps_suppkey BIGINT, ps_availqty INT, ps_supplycost DECIMAL(15,2), "
    "ps_comment VARCHAR",
    "orders": "o_orderkey BIGINT, o_custkey BIGINT, o_orderstatus VARCHAR, o_totalprice DECIMAL(15,2), "
    "o_orderdate DATE, o_orderpriority VARCHAR, o_clerk VARCHAR, o_shippriority INT, o_comment VARCHAR",
    "lineitem": "l_orderkey BIGINT, l_partkey BIGINT, l_suppkey BIGINT, l_linenumber INT, l_quantity DECIMAL(15,2), "
    "l_extendedprice DECIMAL(15,2), l_discount DECIMAL(15,2), l_tax DECIMAL(15,2), l_returnflag VARCHAR, "
    "l_linestatus VARCHAR, l_shipdate DATE, l_commitdate DATE, l_receiptdate DATE, l_shipinstruct VARCHAR, "
    "l_shipmode VARCHAR, l_comment VARCHAR",
}
NOT_NULL = {table: ", ".join(f"{c.strip()} NOT NULL" for c in split_columns(text)) for table, text in COLUMNS.items()}
TPCH = Benchmark("tpch", NOT_NULL, KEYS, STATIC, "tpchgen-cli", ())

if __name__ == "__main__":
    TPCH.main(__doc__)
