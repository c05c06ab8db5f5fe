"""A join of three streams without any equality: customers whose balance is above a supplier's, below a price."""

from squallpy.plans import Aggregate, DataSource, Sink, ThetaJoin

customer = DataSource(
    "customer",
    "../examples/tpch/data/customer.parquet",
    {"c_acctbal": "DECIMAL(15,2) NOT NULL", "c_mktsegment": "VARCHAR NOT NULL"},
)
supplier = DataSource("supplier", "../examples/tpch/data/supplier.parquet", {"s_acctbal": "DECIMAL(15,2) NOT NULL"})
part = DataSource("part", "../examples/tpch/data/part.parquet", {"p_retailprice": "DECIMAL(15,2) NOT NULL"})

richer = ThetaJoin(customer, supplier, "c_acctbal > s_acctbal", operator="Dynamic")
triples = ThetaJoin(richer, part, "c_acctbal < p_retailprice", partitioning="broadcast(part)")
plan = Sink(Aggregate(triples, by="c_mktsegment", n="COUNT(*)"))
