"""The output of a view: its aggregates, HAVING, the SELECT list, ORDER BY and LIMIT."""

from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction

from squallpy.base.records import dataclass
from squallpy.functions.aggregate.entries import Maintenance
from squallpy.functions.registry import AGGREGATE_OPERATIONS
from squallpy.logical.expressions import Column, Expr, substitute


@dataclass(frozen=True, slots=True)
class Measure:
    """An aggregate of the query in terms of the lanes of its view.

    value = Σ coefficient · lane; NULL where `present` (a sum of the same form, the non-NULL inputs) is 0; `function`
    is sum, count or avg, the last dividing the two. Both are empty for aggregates over the values of an output's
    `over` or made of them: min, max, percentiles (`fraction`) and lists of all values, with a `separator` and in an
    `order` of keys of the view (`logical.nodes.Agg`).
    """

    function: str
    column: Column
    value: tuple[tuple[int, int], ...]
    present: tuple[tuple[int, int], ...]
    scale: int = 0
    fraction: Fraction | None = None
    separator: str | None = None
    order: tuple[tuple[Column, bool, bool], ...] = ()

    @property
    def is_folded(self) -> bool:
        """True if it is made of all values of a group."""
        return AGGREGATE_OPERATIONS[self.function].maintenance is Maintenance.FOLD

    def text(self, view: str) -> str:
        """Return the aggregate in terms of the lanes of a view, as EXPLAIN prints it."""

        def sum_of(terms: tuple[tuple[int, int], ...]) -> str:
            return " + ".join(f"{view}.{n}" if c == 1 else f"{c}·{view}.{n}" for c, n in terms) or "0"

        value, seen = sum_of(self.value), sum_of(self.present)
        match self.function:
            case "count":
                return value
            case "avg":
                return f"({value}) / ({seen})"
            case "sum_rest":
                return f"REST({value}) IF {seen} <> 0"
        return f"{value} IF {seen} <> 0"


@dataclass(frozen=True, slots=True)
class OutputSpec:
    """The output of a view: measures, HAVING, the SELECT list, ORDER BY and LIMIT.

    `repeat`: rows are printed as often as their multiplicity says (a query without aggregates).
    `single`: exactly one row, also over nothing (aggregates without GROUP BY).
    """

    measures: tuple[Measure, ...]
    having: Expr | None
    items: tuple[tuple[str, Expr], ...]
    order: tuple[tuple[Expr, bool, bool], ...]
    limit: int | None
    offset: int
    repeat: bool
    single: bool
    count: int = 0  # the lane that counts rows
    times: Expr | None = None  # repetitions of a group's row, 1 by default
    number: Column | None = None  # the number of a repetition, from 0
    aggregated_key: Column | None = None  # the key whose non-NULL values the measures aggregate

    @property
    def beside(self) -> frozenset[Column]:
        """The keys of the view that do not belong to the group: the measures' values, and their order."""
        keys = {self.aggregated_key, *(key for m in self.measures for key, _, _ in m.order)} - {
            expr for _, expr in self.items
        }
        return frozenset(key for key in keys if key)

    @property
    def is_bag(self) -> bool:
        """True if it prints each group as often as its rows are counted, and only keys of it."""
        counts = [m.column for m in self.measures if m.value == ((1, self.count),)]
        others = {m.column for m in self.measures} - {self.times}
        printed = {expr for _, expr in self.items}
        return self.times in counts and self.number is None and self.having is None and not others & printed

    def with_lanes(self, lanes: tuple[int, ...]) -> "OutputSpec":
        """Renumber the lanes, for a view that has them in another order."""

        def moved(terms: tuple[tuple[int, int], ...]) -> tuple[tuple[int, int], ...]:
            return tuple((coefficient, lanes[lane]) for coefficient, lane in terms)

        measures = tuple(replace(m, value=moved(m.value), present=moved(m.present)) for m in self.measures)
        return replace(self, measures=measures, count=lanes[self.count])

    def with_columns(self, renamed: Mapping[int, Column]) -> "OutputSpec":
        """Replace keys of the view by id, for a view that calls them otherwise."""

        def moved(expr: Expr) -> Expr:
            return substitute(expr, {**renamed})

        key = self.aggregated_key
        orders = (tuple((renamed.get(k.id, k), down, nulls) for k, down, nulls in m.order) for m in self.measures)
        return replace(
            self,
            measures=tuple(replace(m, order=order) for m, order in zip(self.measures, orders, strict=True)),
            having=self.having and moved(self.having),
            items=tuple((name, moved(expr)) for name, expr in self.items),
            order=tuple((moved(expr), down, nulls) for expr, down, nulls in self.order),
            times=self.times and moved(self.times),
            aggregated_key=key and renamed.get(key.id, key),
        )
