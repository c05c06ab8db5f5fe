"""TPC-H Q5: the revenue of suppliers in the nation of their customer, for each nation of Asia."""

from squallpy.plans import Aggregate, DataSource, EquiJoin, Project, Select, Sink

region = DataSource(
    "region",
    "../examples/tpch/data/region.parquet",
    {"r_regionkey": "INT NOT NULL", "r_name": "VARCHAR NOT NULL"},
    table=True,
    primary_key="r_regionkey",
)
nation = DataSource(
    "nation",
    "../examples/tpch/data/nation.parquet",
    {"n_nationkey": "INT NOT NULL", "n_name": "VARCHAR NOT NULL", "n_regionkey": "INT NOT NULL"},
    table=True,
    primary_key="n_nationkey",
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
    {"o_orderkey": "BIGINT NOT NULL", "o_custkey": "BIGINT NOT NULL", "o_orderdate": "DATE NOT NULL"},
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
    },
)

in_asia = Select(region, "r_name = 'ASIA'")
asia = EquiJoin(nation, "n_regionkey", in_asia, "r_regionkey", name="asia", partitioning="broadcast(region)")
suppliers = EquiJoin(supplier, "s_nationkey", asia, "n_nationkey", name="suppliers", partitioning="broadcast(asia)")
in_1994 = Select(orders, "o_orderdate >= DATE '1994-01-01' AND o_orderdate < DATE '1995-01-01'")
bought = EquiJoin(customer, "c_custkey", in_1994, "o_custkey", name="bought")
volumes = Project(lineitem, "l_orderkey", "l_suppkey", volume="l_extendedprice * (1 - l_discount)")
items = EquiJoin(bought, "o_orderkey", volumes, "l_orderkey", name="items", partitioning="hash")
local = EquiJoin(items, ("l_suppkey", "c_nationkey"), suppliers, ("s_suppkey", "s_nationkey"), name="local")
plan = Sink(Aggregate(local, by="n_name", revenue="SUM(volume)"), order_by="revenue DESC")
