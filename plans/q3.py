"""TPC-H Q3: the ten orders not yet shipped that are worth most, as of the rows seen so far."""

from squallpy.plans import Aggregate, DataSource, EquiJoin, Project, Select, Sink

customer = DataSource(
    "customer",
    "../examples/tpch/data/customer.parquet",
    {"c_custkey": "BIGINT NOT NULL", "c_mktsegment": "VARCHAR NOT NULL"},
    primary_key="c_custkey",
)
orders = DataSource(
    "orders",
    "../examples/tpch/data/orders.parquet",
    {
        "o_orderkey": "BIGINT NOT NULL",
        "o_custkey": "BIGINT NOT NULL",
        "o_orderdate": "DATE NOT NULL",
        "o_shippriority": "INT NOT NULL",
    },
    primary_key="o_orderkey",
)
lineitem = DataSource(
    "lineitem",
    "../examples/tpch/data/lineitem.parquet",
    {
        "l_orderkey": "BIGINT NOT NULL",
        "l_extendedprice": "DECIMAL(15,2) NOT NULL",
        "l_discount": "DECIMAL(15,2) NOT NULL",
        "l_shipdate": "DATE NOT NULL",
    },
    parallelism=2,
)

building = Select(customer, "c_mktsegment = 'BUILDING'")
earlier = Select(orders, "o_orderdate < DATE '1995-03-15'")
later = Project(
    Select(lineitem, "l_shipdate > DATE '1995-03-15'"), "l_orderkey", volume="l_extendedprice * (1 - l_discount)"
)
of_customers = EquiJoin(building, "c_custkey", earlier, "o_custkey", partitioning="broadcast(customer)")
items = EquiJoin(of_customers, "o_orderkey", later, "l_orderkey", partitioning="hash", parallelism=3)
revenue = Aggregate(items, by=("l_orderkey", "o_orderdate", "o_shippriority"), revenue="SUM(volume)")
plan = Sink(
    Project(revenue, "l_orderkey", "revenue", "o_orderdate", "o_shippriority"),
    order_by=("revenue DESC", "o_orderdate"),
    limit=10,
)
