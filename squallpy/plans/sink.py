"""Sinks: where the rows of a plan go, and the plan as a query."""

from typing import TYPE_CHECKING

from squallpy.base.pinned_component import PinnedComponent
from squallpy.base.settings import Settings
from squallpy.catalog.catalog import Catalog
from squallpy.logical.bind.context import Context
from squallpy.logical.bind.scope import Scope
from squallpy.logical.bind.select import check_copies
from squallpy.logical.nodes import Query
from squallpy.plans.component import Bound, Chained, Component, Texts, as_texts, new_context, parse_items
from squallpy.plans.operators import Aggregate

if TYPE_CHECKING:
    import pyarrow as pa


class Sink(Chained):
    """The end of a plan: its rows are kept fresh.

    Sink(revenue, order_by="revenue DESC, o_orderdate", limit=10)

    Args:
        order_by: The order of what is printed.
        limit: Rows of it.
    """

    def __init__(
        self,
        input: Component,
        *,
        order_by: Texts = (),
        limit: int | None = None,
        offset: int | None = None,
        name: str | None = None,
    ) -> None:
        super().__init__(input, name)
        clauses = ["ORDER BY", "\n,\n".join(as_texts(order_by))] if order_by else []
        clauses += [f"LIMIT {limit}"] if limit is not None else []
        clauses += [f"OFFSET {offset}"] if offset is not None else []
        self.clauses = "\n".join(clauses)
        self.check()
        self.components()

    def bind(self, ctx: Context) -> Bound:
        below = self.input.bind(ctx)
        with self.locating(self.edge()):
            query = parse_items(["*"], self.clauses)
        node, _ = self.block(ctx, below, query, is_ordered=True)
        with self.locating(self.edge()):
            check_copies(ctx, query.ast, node)
        return Bound(node, Scope())

    def query(self, catalog: Catalog, number: int = 1) -> Query:
        """Bind the plan as a query of a session."""
        node = self.bind(new_context(catalog)).node
        return Query(node, tuple(column.name for column in node.output), f"Sink {self.name}", number)

    def components(self) -> tuple[PinnedComponent, ...]:
        """Collect what is pinned of its joins and aggregates; SQ7003 for an aggregate that is the result."""
        last = self.input
        while isinstance(last, Chained) and not isinstance(last, Aggregate):
            last = last.input
        if isinstance(last, Aggregate) and last.choices.partitioning:
            message = f"{last.choices.partitioning}: its groups are the result, which is on the driver"
            raise last.error("SQ7003", message, "partition the joins below")
        found = (each.pinned() for each in self.walk() if each is not last or not isinstance(last, Aggregate))
        return tuple(component for component in found if component)

    def explain(self, stage: str = "physical", settings: Settings | None = None) -> str:
        """Show the plan at a stage, as `squall explain` does."""
        from squallpy.plans.plan_session import PlanSession

        return PlanSession([self], settings).explain(stage)

    def to_arrow(self, backend: str = "local", settings: Settings | None = None) -> "pa.Table":
        """Run the plan until its input ends, and return its rows."""
        from squallpy.plans.plan_session import PlanSession

        return PlanSession([self], settings).answers(backend)[0]
