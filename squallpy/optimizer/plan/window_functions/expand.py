"""Window functions as aggregates of the rows of their frames, joined to the rows.

RANK() OVER (PARTITION BY k ORDER BY x)        →  1 + COUNT(*) of the rows of the partition before
DENSE_RANK() OVER …                            →  1 + COUNT(*) of the values of the order before
ROW_NUMBER() OVER …                            →  RANK in an order in which no rows tie
LAG(x) OVER …                                  →  x of the row with the previous number
AVG(x) OVER (PARTITION BY k)                   →  AVG(x) of the rows of the partition
"""

from dataclasses import field, replace

from squallpy.base.records import dataclass
from squallpy.base.types import BIGINT, DOUBLE, NULL
from squallpy.functions.registry import WINDOWS
from squallpy.functions.window_functions import WindowKind
from squallpy.logical.aggregate_calls import Agg, WindowFunction
from squallpy.logical.expression_builders import call, case, coalesce, not_distinct
from squallpy.logical.expressions import TRUE, Column, Expr, Literal, columns, conjunction, not_null
from squallpy.logical.nodes import Aggregate, Filter, Node, Project, WindowFunctions, nodes
from squallpy.logical.plan_properties import check_size
from squallpy.logical.shared_aggregates import Aggregates, Items
from squallpy.optimizer.pass_manager import PassContext, bottom_up, columns_read
from squallpy.optimizer.plan.window_functions.frame_aggregates import FrameRows, join
from squallpy.optimizer.plan.window_functions.frames import Extent, Frame, frame_of, without_neighbours

ONE, ZERO = Literal(1, BIGINT), Literal(0, BIGINT)


def expand_window_functions(plan: Node, context: PassContext) -> Node:
    """Replace each WindowFunctions by joins of its input with aggregates of it."""
    if not any(isinstance(node, WindowFunctions) for node in nodes(plan)):
        return plan
    read = columns_read(plan)

    def change(node: Node, after: Node) -> Node:
        if not isinstance(after, WindowFunctions):
            return after
        expanded = _Expansion(after, context).run(read[id(node)])
        check_size(expanded, after.functions[0][1].span)
        return expanded

    return bottom_up(change)(plan)


@dataclass(frozen=True, slots=True)
class _FrameAggregates:
    """The aggregates of one frame, the first function that reads them, and a column that is TRUE if it has rows."""

    aggregates: Aggregates
    function: WindowFunction
    found: Column
    shown: dict[Column, Column] = field(default_factory=dict)  # columns of aggregates behind an outer join


@dataclass(frozen=True, slots=True)
class _Lookup:
    """The value `of` of the row at a `distance` before, or of a number in the partition."""

    frame: Frame
    distance: int | Literal
    of: Expr
    value: Column
    found: Column
    function: WindowFunction


class _Expansion:
    """One WindowFunctions while it is expanded."""

    def __init__(self, node: WindowFunctions, context: PassContext) -> None:
        self._node, self._columns = node, context
        self._rows = FrameRows(node.child, context)
        self._frames: dict[Frame, _FrameAggregates] = {}
        self._lookups: list[_Lookup] = []

    def run(self, read: frozenset[int]) -> Node:
        """Expand it; rows that need numbers to break ties keep the columns that are `read` above."""
        values = tuple((column, self._value(function)) for column, function in self._node.functions)
        if self._is_vague():
            exprs = (expr for _, function in self._node.functions for expr in function.expressions)
            self._rows = self._rows.number_rows(read.union(c.id for expr in exprs for c in columns(expr)))
        nearest = [self._nearest(lookup) for lookup in self._lookups]
        plan = self._rows.plan
        kept = tuple((c, c) for c in self._node.child.output if c.id in plan.ids)
        for frame in self._frames:
            plan = self._with_aggregates(plan, frame)
        for lookup, pair in zip(self._lookups, nearest, strict=True):
            plan = self._with_value(plan, lookup, pair)
        return Project(plan, (*kept, *values))

    def _value(self, function: WindowFunction) -> Expr:
        """Build the value of a function of the columns that joins will add."""
        over, name = function.over, function.function
        if isinstance(name, Agg):
            return self._aggregate(name, function)
        frame = Frame(over.partition, over.order, Extent.BEFORE)
        match WINDOWS[name].kind:
            case WindowKind.RANK:
                extent = Extent.VALUES_BEFORE if name == "DENSE_RANK" else Extent.BEFORE
                return self._rank(replace(frame, extent=extent, is_total=name == "ROW_NUMBER"), function)
            case WindowKind.SHARE:
                return self._distribution(name, frame, function)
            case WindowKind.NEIGHBOUR:
                return self._neighbour(replace(frame, is_total=True), function)
            case WindowKind.VALUE:
                return self._value_of_frame(replace(frame, is_total=True), function)

    def _in_frame(self, frame: Frame, function: WindowFunction) -> _FrameAggregates:
        """Return the aggregates of a frame."""
        if frame not in self._frames:
            found = self._columns.column("found", TRUE.type, True)
            self._frames[frame] = _FrameAggregates(Aggregates(self._columns, is_late=True), function, found)
        return self._frames[frame]

    def _aggregate(self, agg: Agg, function: WindowFunction) -> Expr:
        """Build an aggregate of the rows of a frame, which may be none."""
        frame = without_neighbours(frame_of(function.over))
        if frame.extent.is_numbered:
            self._rank(frame.frame_before(), function)
        framed = self._in_frame(frame, function)
        return self._show_aggregate(frame, framed, framed.aggregates.of(agg))

    def _show_aggregate(self, frame: Frame, framed: _FrameAggregates, column: Column) -> Expr:
        """Show an aggregate as it is where a frame may have no rows: a count of nothing is 0."""
        if frame.has_row:
            return column
        shown = framed.shown.setdefault(column, self._columns.column(column.name, column.type, True))
        is_count = any(c == column and agg.function == "count" for agg, c in framed.aggregates.aggs.items())
        return case([(not_null(framed.found), shown)], ZERO) if is_count else shown

    def _rank(self, frame: Frame, function: WindowFunction) -> Expr:
        """Build 1 + the number of rows before."""
        framed = self._in_frame(frame, function)
        count = framed.aggregates.column("count", None)
        shown = framed.shown.setdefault(count, self._columns.column("before", BIGINT, True))
        return call("+", case([(not_null(framed.found), shown)], ZERO), ONE)

    def _count(self, frame: Frame, function: WindowFunction) -> Expr:
        """Build the number of rows of a frame that has the row itself."""
        return self._in_frame(frame, function).aggregates.column("count", None)

    def _distribution(self, name: str, frame: Frame, function: WindowFunction) -> Expr:
        """Build a row's relative position in its partition, from 0 to 1, or the number of its bucket of NTILE."""
        every = self._count(replace(frame, order=(), extent=Extent.ALL), function)
        if name == "CUME_DIST":
            return call("/", self._count(replace(frame, extent=Extent.UP_TO), function), every)
        if name == "PERCENT_RANK":
            part = call("/", call("-", self._rank(frame, function), ONE), call("-", every, ONE))
            return case([(call("=", every, ONE), Literal(0.0, DOUBLE))], part)
        (parts,) = function.args
        before = call("-", self._rank(replace(frame, is_total=True), function), ONE)
        size, larger = call("div", every, parts), call("%", every, parts)  # the first parts have one more row
        in_larger = call("*", larger, call("+", size, ONE))
        first = call("div", before, call("+", size, ONE))
        rest = call("div", call("-", before, in_larger), call("greatest", size, ONE))
        return call("+", case([(call("<", before, in_larger), first)], call("+", larger, rest)), ONE)

    def _end(self, frame: Frame, of: Expr, function: WindowFunction, is_last: bool) -> Expr:
        """Build the value of the last row of a frame, or of the first, of those that have one if NULLs are ignored.

        It is MAX_BY or MIN_BY by the key, or by the number of the row if there are several; the least where rows tie.
        """
        (key, down, nulls_first), *more = frame.order
        if more:
            frame = frame.number_frame()
        if frame.extent.is_numbered:
            number = self._rank(frame.frame_before(), function)
            key, down = (number, False) if more else (key, down)
        framed = self._in_frame(frame, function)
        made = framed.aggregates
        wanted = not_null(of) if function.ignores_nulls and of.nullable else TRUE
        by = key if wanted == TRUE else case([(wanted, key)], Literal(None, NULL))
        value: Expr = self._show_aggregate(
            frame, framed, made.arg_extreme("max_by" if is_last != down else "min_by", of, by)
        )
        if key.nullable and not more:  # NULL keys are all at one end
            mine = conjunction((call("is_null", key), wanted) if wanted != TRUE else (call("is_null", key),))
            least = self._show_aggregate(frame, framed, made.column("min", case([(mine, of)], Literal(None, NULL))))
            first = by if nulls_first == is_last else case([(mine, ONE)], Literal(None, NULL))
            found = call(">", self._show_aggregate(frame, framed, made.column("count", first)), ZERO)
            value = case([(found, value)], least) if nulls_first == is_last else case([(found, least)], value)
        return value

    def _neighbour(self, frame: Frame, function: WindowFunction) -> Expr:
        """Build LAG or LEAD."""
        of, *more = function.args
        distance, default = more[0] if more else ONE, more[1] if len(more) > 1 else Literal(None, NULL)
        assert isinstance(distance, Literal)
        rows = distance.value if function.function == "LAG" else -distance.value
        if function.ignores_nulls:
            return coalesce(self._end(frame if rows > 0 else frame.backwards(), of, function, is_last=True), default)
        lookup = self._lookup(frame, rows, of, function)
        if default == Literal(None, default.type):
            return lookup.value
        return case([(not_null(lookup.found), lookup.value)], default)

    def _value_of_frame(self, frame: Frame, function: WindowFunction) -> Expr:
        """Build FIRST_VALUE, LAST_VALUE or NTH_VALUE."""
        of, *places = function.args
        (place,) = places or (ONE,)
        assert isinstance(place, Literal)
        which = frame_of(function.over)
        is_last, is_nth = function.function == "LAST_VALUE", function.function == "NTH_VALUE"
        is_from_here = function.over.frame.is_open and function.over.frame.start is not None
        if not is_nth and (function.ignores_nulls or not function.over.frame.is_open):
            return self._end(which, of, function, is_last != is_from_here)
        is_own = which.extent is Extent.UP_TO and is_last != is_from_here  # the row itself, or one that ties
        if is_own and not is_nth:
            if which.is_total:
                return of
            ties = Frame(frame.expressions, (), Extent.ALL)
            return self._in_frame(ties, function).aggregates.column("min", of)
        if is_nth and is_from_here:
            return of if place.value == 1 else self._lookup(frame, 1 - place.value, of, function).value
        if is_last:
            frame = frame.backwards()
        found = self._lookup(frame, place, of, function)
        if is_nth and which.extent is Extent.UP_TO:
            seen = self._rank(frame, function) if which.is_total else self._count(which, function)
            return case([(call(">=", seen, place), found.value)], Literal(None, found.value.type))
        return found.value

    def _lookup(self, frame: Frame, distance: int | Literal, of: Expr, function: WindowFunction) -> _Lookup:
        """Return the lookup of a row's value; equal ones are one."""
        for known in self._lookups:
            if (known.frame, known.distance, known.of) == (frame, distance, of):
                return known
        value, found = self._columns.column("value", of.type, True), self._columns.column("found", TRUE.type, True)
        self._lookups.append(_Lookup(frame, distance, of, value, found, function))
        return self._lookups[-1]

    def _is_vague(self) -> bool:
        """True if a function needs an order in which no rows tie, and none is known."""
        frames = [*self._frames, *(lookup.frame for lookup in self._lookups if not self._adjacent(lookup))]
        return any(f.is_total and self._rows.with_total_order(f.simplify()) is None for f in frames)

    def _nearest(self, lookup: _Lookup) -> tuple[Expr, Expr] | None:
        """Build the key of the order that the row has which is looked up; None if rows have to be numbered.

        LAG(x) OVER (… ORDER BY k)   →   the greatest k before, k
        """
        if found := self._adjacent(lookup):
            frame, key, down = found
            framed = self._in_frame(frame, lookup.function)
            best = framed.aggregates.column("min" if down else "max", key)
            return framed.shown.setdefault(best, self._columns.column("near", key.type, True)), key
        self._rank(lookup.frame, lookup.function)
        return None

    def _adjacent(self, lookup: _Lookup) -> tuple[Frame, Expr, bool] | None:
        """Find the frame before a row with the one key of its order, and whether that descends; None if it has more.

        A declared PRIMARY KEY is trusted here: row numbers would change for all rows after a new one.
        """
        if lookup.distance not in (1, -1):
            return None
        frame = replace(lookup.frame if lookup.distance == 1 else lookup.frame.backwards(), is_declared=True)
        found = self._rows.with_total_order(frame.simplify())
        if found is None or len(found.order) != 1:
            return None
        ((key, down, _),) = found.order
        return (frame, key, down) if not key.nullable and key.type.is_held_in_order else None

    def _with_aggregates(self, plan: Node, frame: Frame) -> Node:
        """Join the aggregates of a frame to the rows of `plan`."""
        framed = self._frames[frame]
        aggregates = framed.aggregates.in_terms_of(lambda expr: expr)
        if frame.extent.is_numbered:
            right, keys = self._of_numbers(frame, aggregates)
        else:
            settled = self._rows.settle_order(frame.simplify(), framed.function)
            right, keys = self._rows.aggregate_frames(settled, aggregates)
        on = [not_distinct(expr, key) for key, expr in keys]
        if frame.has_row:
            return join(plan, right, on)
        shown = tuple((shown, column) for column, shown in framed.shown.items())
        items: Items = (*((key, key) for key, _ in keys), *shown, (framed.found, TRUE))
        return join(plan, Project(right, items), on, is_outer=True)

    def _of_numbers(self, frame: Frame, aggregates: Aggregates) -> tuple[Node, Items]:
        """Build the aggregates of the rows whose numbers are near each number."""
        ranks = frame.frame_before()
        number = self._rank(ranks, self._frames[frame].function)
        rows = self._with_aggregates(self._rows.plan, ranks)
        place = self._columns.column("number", BIGINT, False)
        mine: Items = (*self._columns.copies(frame.simplify().partition), (place, number))
        near: list[Expr] = [not_distinct(expr, key) for key, expr in mine[:-1]]
        for bound, op in ((frame.low, ">="), (frame.high, "<=")):
            if bound is not None:
                near.append(call(op, number, call("+", place, Literal(bound[0] * bound[1].value, BIGINT))))
        pairs = join(Aggregate(rows, mine, ()), rows, near)
        keys = self._columns.copies(key for key, _ in mine)
        return aggregates.build_aggregate(pairs, keys), tuple(
            (key, expr) for (key, _), (_, expr) in zip(keys, mine, strict=True)
        )

    def _with_value(self, plan: Node, lookup: _Lookup, nearest: tuple[Expr, Expr] | None) -> Node:
        """Join the values of other rows to the rows of `plan`, which are numbered or know the key of the `nearest`."""
        of = lookup.of
        number = self._rank(lookup.frame, lookup.function) if nearest is None else ONE
        rows = self._rows.plan if nearest else self._with_aggregates(self._rows.plan, lookup.frame)
        keys, value = self._columns.copies(lookup.frame.simplify().partition), self._columns.like(of)
        on = [not_distinct(expr, key) for key, expr in keys]
        numbered: Items = ()
        if nearest is not None:
            near, key = nearest
            numbered = self._columns.copies((key,))
            on.append(call("=", near, numbered[0][0]))
        elif isinstance(lookup.distance, Literal):
            rows = Filter(rows, call("=", number, lookup.distance))
        else:
            place = self._columns.column("number", BIGINT, False)
            numbered = ((place, call("+", number, Literal(lookup.distance, BIGINT))),)
            on.append(call("=", number, place))
        right = Aggregate(rows, (*keys, *numbered, (value, of)), ())
        named: Items = tuple((key, key) for key, _ in (*keys, *numbered))
        items = (*named, (lookup.value, value), (lookup.found, TRUE))
        return join(plan, Project(right, items), on, is_outer=True)
