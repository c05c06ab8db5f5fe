"""Aggregates of all rows of a frame, as a plan with one row for each value of the keys that frames have.

    SUM(x) OVER (PARTITION BY k)              →  Aggregate by k: SUM(x) of r
    SUM(x) OVER (PARTITION BY k ORDER BY t)   →  Aggregate by k, t: SUM(x) of
                                                   (DISTINCT k, t of r) ⋈ r ON k <=> k AND r.t <= t

The rows before one in an order of several keys are a Union: those before it by the first key, those that tie in it
and are before it by the second …
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from squallpy.base.errors import SquallError
from squallpy.base.records import dataclass
from squallpy.base.types import BIGINT
from squallpy.logical.aggregate_calls import Agg, WindowFunction
from squallpy.logical.column_allocator import ColumnAllocator
from squallpy.logical.containment import narrow_plan
from squallpy.logical.expression_builders import not_distinct
from squallpy.logical.expressions import FALSE, TRUE, Expr, columns, conjunction
from squallpy.logical.frame_conditions import conditions_in_range, list_before_conditions
from squallpy.logical.nodes import Aggregate, Filter, LeftJoin, Node, Project, Repeat, Union, inner_join
from squallpy.logical.plan_properties import unique_columns
from squallpy.logical.shared_aggregates import Aggregates, Items
from squallpy.logical.total_order import MOST_KEYS, total_order
from squallpy.optimizer.plan.window_functions.frames import Extent, Frame


def join(left: Node, right: Node, on: Iterable[Expr], is_outer: bool = False) -> Node:
    """Join two plans; a LeftJoin if it `is_outer`."""
    condition = conjunction(on)
    if is_outer:
        return LeftJoin(left, right, condition)
    return inner_join(left, right, condition)


@dataclass(frozen=True, slots=True)
class FrameRows:
    """The rows of a block, which frames are of."""

    plan: Node
    columns: ColumnAllocator

    def settle_order(self, frame: Frame, function: WindowFunction) -> Frame:
        """Shorten the order of a frame, or extend it where it has to be total; SQ3001 if no key breaks all ties."""
        found = frame if frame.extent is Extent.RANGE else self.with_total_order(frame)
        if found is not None and len(found.order) > MOST_KEYS and len(found.order) > len(frame.order):
            found = None
        if found is not None or not frame.is_total:
            return found or frame
        message = f"{function.display_name} by so many keys, none of which is known to be unique, is not supported yet"
        hint = "declare a PRIMARY KEY and have it in FROM"
        hint = f"{hint}, or use RANK" if function.display_name == "ROW_NUMBER" else hint
        raise SquallError("SQ3001", message, function.span, hint)

    def with_total_order(self, frame: Frame) -> Frame | None:
        """Give a frame an order in which no rows tie; None if none is known."""
        order = total_order(
            self.plan,
            frame.partition,
            frame.order,
            declared=frame.is_declared,
            is_extended=frame.is_total,
            is_reversed=frame.is_reversed,
        )
        return None if order is None else replace(frame, order=order)

    def number_rows(self, read: frozenset[int]) -> "FrameRows":
        """Number the rows that tie in all columns that are `read`.

        The columns of a declared PRIMARY KEY come first, as they mostly suffice.
        """
        key = unique_columns(self.plan, declared=True) or ()
        every = dict.fromkeys((*key, *(c for c in self.plan.output if c.id in read)))
        kept: Items = tuple((c, c) for c in every)
        copies, number = (self.columns.column(name, BIGINT, False) for name in ("copies", "number"))
        once = Aggregate(self.plan, kept or ((self.columns.like(TRUE), TRUE),), ((copies, Agg("count", None)),))
        return replace(self, plan=Repeat(once, copies, number))

    def aggregate_frames(self, frame: Frame, aggregates: Aggregates) -> tuple[Node, Items]:
        """Build the aggregates by the keys of frames; returned with these keys as expressions over the rows."""
        if frame.extent is Extent.ALL or not frame.order:
            keys = self.columns.copies(frame.partition)
            rows = self.plan if frame.has_row else Filter(self.plan, FALSE)
            return aggregates.build_aggregate(rows, keys), keys
        exprs = frame.expressions
        mine = self.columns.copies(exprs)
        domain = Aggregate(narrow_plan(self.plan, {c.id for expr in exprs for c in columns(expr)}), mine, ())
        source, theirs = self.plan, exprs
        if frame.extent is Extent.VALUES_BEFORE:
            once = self.columns.copies(exprs)
            source, theirs = Aggregate(self.plan, once, ()), tuple(c for c, _ in once)
        count = len(frame.partition)
        same = [not_distinct(a, b) for a, (b, _) in zip(theirs[:count], mine, strict=False)]
        ends = [c for c, _ in mine[count:]]
        parts = [join(domain, source, (*same, within)) for within in _conditions(frame, theirs[count:], ends)]
        shared = self.columns.copies(c for c, _ in mine)
        rows, names = self._unite_parts(parts, (*(c for c, _ in mine), *aggregates.arguments))
        named = aggregates.in_terms_of(names.__getitem__)
        plan = named.build_aggregate(rows, tuple((key, names[c]) for key, c in shared))
        pairs = zip((key for key, _ in shared), exprs, strict=True)
        return plan, tuple(pairs)

    def _unite_parts(self, parts: Sequence[Node], exprs: Iterable[Expr]) -> tuple[Node, dict[Expr, Expr]]:
        """Unite the rows of all parts; returned with the columns of some expressions."""
        exprs_needed = tuple(dict.fromkeys(exprs))
        if len(parts) == 1:
            return parts[0], {expr: expr for expr in exprs_needed}
        every = tuple(self.columns.like(expr) for expr in exprs_needed)
        rows = tuple(Project(part, self.columns.copies(exprs_needed)) for part in parts)
        return Union(rows, every), dict(zip(exprs_needed, every, strict=True))


def _conditions(frame: Frame, theirs: Sequence[Expr], mine: Sequence[Expr]) -> Iterator[Expr]:
    """Yield when a row with the keys `theirs` is in the frame of one with `mine`; one at most is TRUE."""
    if frame.extent is Extent.RANGE:
        return conditions_in_range(theirs[0], mine[0], frame.order[0], frame.low, frame.high)
    return list_before_conditions(theirs, mine, frame.order, frame.extent is Extent.UP_TO)
