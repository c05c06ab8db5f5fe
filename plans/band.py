"""A band join on a grid that adapts (BNCI of `adaptive-online-joins` §5): items by truck beside some of near orders.

lineitem is read as two streams, so that one can be at the rows of the grid and the other at its columns.
"""

from squallpy.plans import DataSource, Project, Select, Sink, ThetaJoin

LINEITEM = {
    "l_orderkey": "BIGINT NOT NULL",
    "l_linenumber": "INT NOT NULL",
    "l_quantity": "DECIMAL(15,2) NOT NULL",
    "l_shipinstruct": "VARCHAR NOT NULL",
    "l_shipmode": "VARCHAR NOT NULL",
}
l1, l2 = (DataSource(name, "../examples/tpch/data/lineitem.parquet", LINEITEM) for name in ("l1", "l2"))
by_truck = Select(l1, "l_shipmode = 'TRUCK' AND l_quantity > 48")
anyhow = Select(l2, "l_shipinstruct = 'NONE'")
near = ThetaJoin(by_truck, anyhow, "ABS(l1.l_orderkey - l2.l_orderkey) <= 1", operator="Dynamic", parallelism=2)
plan = Sink(
    Project(near, "l1.l_orderkey", "l1.l_linenumber", other_order="l2.l_orderkey", other_line="l2.l_linenumber")
)
