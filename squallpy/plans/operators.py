"""Operators over one input: selection, projection, window and aggregate."""

from dataclasses import replace

from sqlglot import exp

from squallpy.base.errors import nearest
from squallpy.base.pinned_component import BROADCAST, HASH, SINGLE, PinnedComponent
from squallpy.frontend.query import parse_select
from squallpy.frontend.source_text import ScriptText
from squallpy.logical.bind.context import Context
from squallpy.logical.bind.stream_windows import apply_window, with_window
from squallpy.logical.nodes import Filter, Node, Scan, with_inputs
from squallpy.logical.nodes import Window as WindowNode
from squallpy.plans.component import Bound, Chained, Component, Texts, as_texts, item_text, new_context, parse_items
from squallpy.plans.equal_fields import equal_fields


class Select(Chained):
    """The rows for which a predicate is TRUE.

    Select(orders, "o_orderdate < DATE '1995-03-15'")
    """

    def __init__(self, input: Component, predicate: str, *, name: str | None = None) -> None:
        super().__init__(input, name)
        self.predicate = predicate
        self.check()

    def bind(self, ctx: Context) -> Bound:
        below = self.input.bind(ctx)
        return Bound(Filter(below.node, self.condition(ctx, below.scope, self.predicate)), below.scope)


class Project(Chained):
    """Columns and expressions over those of the input, the latter under names.

    Project(lineitem, "l_orderkey", volume="l_extendedprice * (1 - l_discount)")
    """

    def __init__(self, input: Component, *columns: str, name: str | None = None, **expressions: str) -> None:
        super().__init__(input, name)
        self.items = (*columns, *(item_text(text, each) for each, text in expressions.items()))
        self.check()

    def bind(self, ctx: Context) -> Bound:
        below = self.input.bind(ctx)
        if not self.items:
            raise self.error("SQ1001", "it has no columns")
        with self.locating(self.edge()):
            query = parse_items(self.items)
        node, is_grouping = self.block(ctx, below, query)
        if is_grouping:
            raise self.error("SQ2009", "an aggregate is not allowed in it", "Aggregate has groups")
        return self.named(node)


class Window(Chained):
    """A window on the streams below, unless they have one: the part of each that what is above sees.

    Window(joined, "RANGE 5 MIN SLIDE 1 MIN")
    """

    def __init__(self, input: Component, clause: str, *, name: str | None = None) -> None:
        super().__init__(input, name)
        self.clause = clause
        self.check()

    def bind(self, ctx: Context) -> Bound:
        below = self.input.bind(ctx)
        with self.locating(self.edge()):
            text = f"SELECT 1 FROM `{self.name}`\n{self.clause}"
            query = parse_select(ScriptText(text, ""), 0, len(text))
            assert isinstance(query.ast, exp.Query)
            windowed = with_window(replace(ctx, query=query), query.ast)
            if windowed.window is None:
                raise self.error("SQ1001", f'"{self.clause}" is no window', "RANGE 5 MIN SLIDE 1 MIN", self.clause)
            node = _with_windows(windowed, below.node)
            if not windowed.window.streams:
                raise self.error("SQ2010", "a window of no stream", "static tables have none")
        return Bound(node, below.scope)


def _with_windows(ctx: Context, node: Node) -> Node:
    """Put the streams that a plan reads under the window of the context."""
    match node:
        case Scan():
            return apply_window(ctx, node)
        case WindowNode():
            return node
    return with_inputs(node, tuple(_with_windows(ctx, child) for child in node.inputs))


class Aggregate(Chained):
    """Groups by keys, each with aggregates under names; without keys one row.

    Aggregate(joined, by="c_mktsegment", n="COUNT(*)")

    Args:
        by: Columns, or expressions with AS and a name.
        partitioning: hash, hash(key), broadcast or single, of the groups of one that is an input of joins.
        parallelism: The partitions that hold its groups.
        aggregates: Expressions of aggregates and keys.
    """

    def __init__(
        self,
        input: Component,
        by: Texts = (),
        *,
        name: str | None = None,
        partitioning: str | None = None,
        parallelism: int | None = None,
        **aggregates: str,
    ) -> None:
        super().__init__(input, name)
        self.by, self.aggregates = as_texts(by), aggregates
        self.choices = self.read_choices(partitioning, None, parallelism, (HASH, BROADCAST, SINGLE))
        self.check()
        self.pinned()

    def pinned(self) -> PinnedComponent:
        chosen = self.choices
        keys = (chosen.arguments or self.by) if chosen.partitioning == HASH else ()
        ctx = new_context()
        below = self.input.bind(ctx)
        known = {key.lower(): key for key in self.by}
        fields = []
        for key in keys:
            if key.lower() not in known:
                raise self.error("SQ7003", f'"{key}" is none of its keys', nearest(key, self.by), f"hash({key})")
            (node,) = parse_items([known[key.lower()]]).ast.expressions
            equal = equal_fields(below.node, self.expression(ctx, below.scope, node.unalias().sql(), self.edge()))
            if not equal:
                raise self.error("SQ7003", f'the key "{key}" is computed, and cannot be hashed', text=key)
            fields.append(equal)
        return PinnedComponent(
            self.kind, self.name, (self.input.name,), (self.relations,), chosen.partitioning, keys, tuple(fields),
            parallelism=chosen.parallelism,
        )  # fmt: skip

    def bind(self, ctx: Context) -> Bound:
        below = self.input.bind(ctx)
        items = (*self.by, *(item_text(text, each) for each, text in self.aggregates.items()))
        if not items:
            raise self.error("SQ1001", "it has neither keys nor aggregates")
        with self.locating(self.edge()):
            query = parse_items(items)
            assert isinstance(query.ast, exp.Select)
            if self.by:
                keys = query.ast.expressions[: len(query.ast.expressions) - len(self.aggregates)]
                query.ast.set("group", exp.Group(expressions=[key.unalias().copy() for key in keys]))
        node, is_grouping = self.block(ctx, below, query)
        if not is_grouping:
            raise self.error("SQ2009", "none of it is an aggregate", "Project computes expressions of each row")
        return self.named(node)
