"""Plans put together by hand, component by component: the imperative interface of Squall (thesis, section 3.2.1).

    customer = Project(DataSource("customer", path="customer.csv", schema=…), "c_custkey", "c_mktsegment")
    orders = Project(DataSource("orders", path="orders.csv", schema=…), "o_custkey")
    joined = EquiJoin(customer, "c_custkey", orders, "o_custkey")
    plan = Sink(Aggregate(joined, by="c_mktsegment", n="COUNT(*)"))

`squall run FILE.py` runs the sinks of a file, `squall explain physical FILE.py` shows them; docs/plans.md has the rest.
"""

from squallpy.base.errors import SquallError
from squallpy.plans.component import Component
from squallpy.plans.data_source import DataSource
from squallpy.plans.joins import EquiJoin, ThetaJoin
from squallpy.plans.operators import Aggregate, Project, Select, Window
from squallpy.plans.sink import Sink

__all__ = [
    "Aggregate",
    "Component",
    "DataSource",
    "EquiJoin",
    "Project",
    "Select",
    "Sink",
    "SquallError",
    "ThetaJoin",
    "Window",
]
