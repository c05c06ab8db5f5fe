"""Calls of aggregates, and of window functions with their OVER clauses."""

from collections.abc import Iterable
from dataclasses import field, replace
from fractions import Fraction
from itertools import islice

from squallpy.base.errors import Span
from squallpy.base.records import dataclass
from squallpy.functions.aggregate.entries import Maintenance
from squallpy.functions.registry import AGGREGATE_OPERATIONS
from squallpy.logical.expressions import Expr
from squallpy.logical.window_frame import DEFAULT_FRAME, WindowFrame

SortKey = tuple[Expr, bool, bool]  # expression, descending, NULLs first
SortKeys = tuple[SortKey, ...]


@dataclass(frozen=True, slots=True)
class Agg:
    """SUM, AVG, MIN or MAX(arg), COUNT(arg) or COUNT(*) (arg None); NULL, COUNT aside, over no non-NULL value.

    MAX_BY and MIN_BY are of the row in which the one key of `order` is greatest or least; FIRST_BY is of the first row
    in the `order` of keys as those of a Sort.

    Of the n values in order one is at the `fraction` q: the one BELOW q · (n − 1), or ABOVE, both counted from 0;
    the one that REACHES q · n, counted from 1; or, from behind, the one that is LEFT by that. LISTAGG has the texts of
    all values with a `separator` between them, in the `order` of keys as those of a Sort, and where these are alike in
    their own. Of rows that are alike in `distinct` one counts.
    """

    function: str  # a key of `functions.registry.AGGREGATE_OPERATIONS`
    arg: Expr | None
    fraction: Fraction | None = None
    separator: str | None = None
    order: SortKeys = ()
    distinct: tuple[Expr, ...] = ()

    def __post_init__(self) -> None:
        assert (self.fraction is not None) == (self.maintenance is Maintenance.ORDER_STATISTIC)
        assert (self.separator is not None) == (self.function == "listagg")

    @property
    def maintenance(self) -> Maintenance:
        return AGGREGATE_OPERATIONS[self.function].maintenance

    @property
    def extreme(self) -> bool:
        """One of the values themselves, or made of all of them, which no sum can give."""
        return self.maintenance is not Maintenance.SUM

    @property
    def args(self) -> tuple[Expr, ...]:
        """All that is read."""
        return (*(() if self.arg is None else (self.arg,)), *(key for key, _, _ in self.order), *self.distinct)

    def with_args(self, args: Iterable[Expr]) -> "Agg":
        """Replace what it reads, in the order of `args`."""
        given = iter(args)
        arg = None if self.arg is None else next(given)
        order = tuple((next(given), down, nulls) for _, down, nulls in self.order)
        return replace(self, arg=arg, order=order, distinct=tuple(next(given) for _ in self.distinct))

    def __str__(self) -> str:
        if self.distinct:
            return f"{self.function.upper()}(DISTINCT {', '.join(map(str, self.distinct))})"
        message = "" if self.fraction is None else f", {float(self.fraction)}"
        message += "" if self.separator is None else f", {self.separator!r}"
        keys = ", ".join(f"{key}{' DESC' if down else ''}" for key, down, _ in self.order)
        if self.maintenance is Maintenance.ARG_EXTREME and keys:
            return f"{self.function.upper()}({self.arg}, {keys})"
        return (
            f"{self.function.upper()}({'*' if self.arg is None else self.arg}{message}{' BY ' if keys else ''}{keys})"
        )


@dataclass(frozen=True, slots=True)
class OverClause:
    """OVER (PARTITION BY partition ORDER BY order frame)."""

    partition: tuple[Expr, ...]
    order: SortKeys
    frame: WindowFrame = DEFAULT_FRAME


@dataclass(frozen=True, slots=True)
class WindowFunction:
    """An aggregate or a function of `functions/window_functions.py`, and OVER.

    Args:
        args: What a function that is no aggregate takes.
        called: The function's name as messages have it; it is at `span`.
    """

    function: Agg | str
    over: OverClause
    args: tuple[Expr, ...] = ()
    ignores_nulls: bool = False
    display_name: str = field(default="", compare=False)
    span: Span | None = field(default=None, compare=False)

    @property
    def expressions(self) -> tuple[Expr, ...]:
        """All that it reads."""
        own = self.function.args if isinstance(self.function, Agg) else self.args
        return (*own, *self.over.partition, *(key for key, _, _ in self.over.order))

    def partition_by(self, keys: Iterable[Expr]) -> "WindowFunction":
        """Partition by more keys."""
        return replace(self, over=replace(self.over, partition=(*self.over.partition, *keys)))

    def with_expressions(self, new: Iterable[Expr]) -> "WindowFunction":
        """Replace what it reads, in the order of `expressions`."""
        rest, over, agg = iter(new), self.over, self.function
        function = agg.with_args(islice(rest, len(agg.args))) if isinstance(agg, Agg) else agg
        args = tuple(islice(rest, len(self.args)))
        partition = tuple(islice(rest, len(over.partition)))
        order = tuple((next(rest), down, nulls_first) for _, down, nulls_first in over.order)
        over = replace(over, partition=partition, order=order)
        return replace(self, function=function, args=args, over=over)
