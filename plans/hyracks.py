"""Orders of customers by market segment: the query of the thesis (section 3.2.1), which is that of Hyracks."""

from squallpy.plans import Aggregate, DataSource, EquiJoin, Sink

customer = DataSource(
    "customer",
    "../examples/tpch/data/customer.parquet",
    {"c_custkey": "BIGINT NOT NULL", "c_mktsegment": "VARCHAR NOT NULL"},
)
orders = DataSource(
    "orders", "../examples/tpch/data/orders.parquet", {"o_orderkey": "BIGINT NOT NULL", "o_custkey": "BIGINT NOT NULL"}
)
joined = EquiJoin(customer, "c_custkey", orders, "o_custkey", operator="SHJ", parallelism=2)
plan = Sink(Aggregate(joined, by="c_mktsegment", n="COUNT(o_orderkey)"))
