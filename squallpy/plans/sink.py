"""Sinks: where the rows of a plan go, and the plan as a query."""

from collections.abc import Mapping
from copy import copy
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from squallpy.base.errors import SquallError
from squallpy.base.pinned_component import PinnedComponent
from squallpy.base.settings import Settings
from squallpy.catalog.catalog import Catalog
from squallpy.catalog.sink_spec import SinkSpec
from squallpy.frontend.declaration_text import declaration_text
from squallpy.frontend.script import parse_script
from squallpy.frontend.statements import CreateSink
from squallpy.logical.bind.context import Context
from squallpy.logical.bind.scope import Scope
from squallpy.logical.bind.select import check_copies
from squallpy.logical.bind.sinks import bind_sink
from squallpy.logical.nodes import Query
from squallpy.plans.component import Bound, Chained, Component, Texts, as_texts, new_context, parse_items
from squallpy.plans.data_source import format_of, found_path
from squallpy.plans.operators import Aggregate

if TYPE_CHECKING:
    import pyarrow as pa


class Sink(Chained):
    """The end of a plan: its rows are kept fresh, and printed or written to files.

    Sink(revenue, order_by="revenue DESC, o_orderdate", limit=10)
    Sink(revenue, "revenue/", mode="upsert")

    Args:
        path: Where its rows are written, found from the folder of the file that says so; None: they are printed.
        using: The format, by default that of the path.
        mode: What is written: final, changes, append or upsert.
        options: Further options of CREATE SINK.
        order_by: The order of what is printed.
        limit: Rows of it.
    """

    def __init__(
        self,
        input: Component,
        path: str | Path | None = None,
        *,
        using: str | None = None,
        mode: str | None = None,
        options: Mapping[str, str] | None = None,
        order_by: Texts = (),
        limit: int | None = None,
        offset: int | None = None,
        name: str | None = None,
    ) -> None:
        super().__init__(input, name)
        given = {} if path is None else {"path": found_path(str(path), self.site.folder)}
        given |= ({} if mode is None else {"mode": mode}) | dict(options or {})
        self.target = self._declare(using or format_of(str(path)), given) if given or using else None
        clauses = ["ORDER BY", "\n,\n".join(as_texts(order_by))] if order_by else []
        clauses += [f"LIMIT {limit}"] if limit is not None else []
        clauses += [f"OFFSET {offset}"] if offset is not None else []
        self.clauses = "\n".join(clauses)
        self.query(Catalog())
        self.components()

    def _declare(self, using: str, options: Mapping[str, str]) -> SinkSpec:
        """Check the format and the options of its files as CREATE SINK does."""
        try:
            (statement,) = parse_script(f"{declaration_text(self.name, 'SINK', {}, using, options)} AS SELECT 1", "")
        except SquallError as error:
            raise self.error(error.code, error.message, error.hint) from None
        assert isinstance(statement, CreateSink)
        return replace(statement.sink, span=self.site.span(), spans={})

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
        query = Query(node, tuple(column.name for column in node.output), f"Sink {self.name}", number)
        with self.locating(self.edge()):
            return replace(query, sink=bind_sink(self.target, query)) if self.target else query

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
        """Run the plan until its input ends, and return its rows, which are not written to files."""
        from squallpy.plans.plan_session import PlanSession

        printed = copy(self)
        printed.target = None
        return PlanSession([printed], settings).answers(backend)[0]
