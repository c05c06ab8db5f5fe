"""Relational nodes of the logical plan: frozen, matched with `match`, their output columns derived.

Limit(Sort(Project(Filter(Aggregate(Filter(Join(Scan, Scan)))))))
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from fractions import Fraction
from itertools import chain, islice
from typing import ClassVar

from squallpy.base.errors import Span
from squallpy.base.types import BIGINT, BOOLEAN
from squallpy.catalog.relation import Relation
from squallpy.catalog.stream_window import WindowSpec
from squallpy.functions.aggregate.aggregate import Maintenance
from squallpy.functions.registry import AGGREGATE_OPERATIONS, WINDOWS
from squallpy.logical.expressions import Column, Expr, columns
from squallpy.logical.remembered import Remembered
from squallpy.logical.window_frame import DEFAULT_FRAME, WindowFrame

SortKey = tuple[Expr, bool, bool]  # expression, descending, NULLs first


class Node:
    """A relational operator; `output` is its columns in order."""

    __slots__ = ("_borrows", "_ids", "_output", "_size")
    _borrows: bool
    lends: ClassVar[bool] = False  # may its columns be read anywhere above it? Only while a query is being bound

    @property
    def borrows(self) -> bool:
        """True if it, or an operator below it, lends columns, which may yet become more."""
        try:
            return self._borrows
        except AttributeError:
            object.__setattr__(self, "_borrows", self.lends or any(child.borrows for child in self.inputs))
            return self._borrows

    @Remembered
    def output(self) -> tuple[Column, ...]:
        raise NotImplementedError

    @Remembered
    def ids(self) -> frozenset[int]:
        """The ids of its columns."""
        return frozenset(column.id for column in self.output)

    @Remembered
    def size(self) -> int:
        """The number of operators in its tree; one that is read twice counts twice."""
        return 1 + sum(child.size for child in self.inputs)

    @property
    def inputs(self) -> tuple["Node", ...]:
        return ()


def check(expr: Expr, *inputs: Node) -> None:
    check_all((expr,), *inputs)


def check_all(exprs: Iterable[Expr], *inputs: Node) -> None:
    known = [node.ids for node in inputs]
    for expr in exprs:
        missing = [c for c in columns(expr) if not any(c.id in ids for ids in known)]
        missing = [c for c in missing if not any(_lent(c, node) for node in inputs)]
        assert not missing, f"{expr} reads {missing}, which no input has"


def _lent(column: Column, node: Node) -> bool:
    return node.borrows and ((node.lends and column in node.output) or any(_lent(column, c) for c in node.inputs))


@dataclass(frozen=True, slots=True)
class Scan(Node):
    """A stream or table under an alias; `columns` are its fields in order, with fresh ids for each scan."""

    relation: Relation
    alias: str
    columns: tuple[Column, ...]

    @Remembered
    def output(self) -> tuple[Column, ...]:
        return self.columns


@dataclass(frozen=True, slots=True)
class Window(Node):
    """The rows of a stream that a window shows; `time` is the column that it goes by, None for their number."""

    child: Node
    spec: WindowSpec
    time: Column | None

    def __post_init__(self) -> None:
        assert self.time is None or self.time in self.child.output

    @Remembered
    def output(self) -> tuple[Column, ...]:
        return self.child.output

    @property
    def inputs(self) -> tuple[Node, ...]:
        return (self.child,)


@dataclass(frozen=True, slots=True)
class Filter(Node):
    """Rows for which the predicate is TRUE."""

    child: Node
    predicate: Expr

    def __post_init__(self) -> None:
        assert self.predicate.type == BOOLEAN
        check(self.predicate, self.child)

    @Remembered
    def output(self) -> tuple[Column, ...]:
        return self.child.output

    @property
    def inputs(self) -> tuple[Node, ...]:
        return (self.child,)


@dataclass(frozen=True, slots=True)
class Project(Node):
    """Computed columns, each with the column that names it."""

    child: Node
    items: tuple[tuple[Column, Expr], ...]

    def __post_init__(self) -> None:
        check_all((expr for _, expr in self.items), self.child)

    @Remembered
    def output(self) -> tuple[Column, ...]:
        return tuple(column for column, _ in self.items)

    @property
    def inputs(self) -> tuple[Node, ...]:
        return (self.child,)


@dataclass(frozen=True, slots=True)
class Join(Node):
    """Inner join; `on` None is the cross product."""

    left: Node
    right: Node
    on: Expr | None = None

    def __post_init__(self) -> None:
        if self.on is not None:
            assert self.on.type == BOOLEAN
            check(self.on, self.left, self.right)

    @Remembered
    def output(self) -> tuple[Column, ...]:
        return (*self.left.output, *self.right.output)

    @property
    def inputs(self) -> tuple[Node, ...]:
        return (self.left, self.right)


@dataclass(frozen=True, slots=True)
class ConditionalJoin(Node):
    """A join that is no mirror image: what becomes of a row of `left` depends on whether `right` has a match."""

    left: Node
    right: Node
    on: Expr

    def __post_init__(self) -> None:
        assert self.on.type == BOOLEAN
        check(self.on, self.left, self.right)

    @Remembered
    def output(self) -> tuple[Column, ...]:
        return self.left.output

    @property
    def inputs(self) -> tuple[Node, ...]:
        return (self.left, self.right)


class LeftJoin(ConditionalJoin):
    """Left outer join: a row of `left` for which no row of `right` makes `on` TRUE comes once, with NULLs beside it."""

    __slots__ = ()

    @Remembered
    def output(self) -> tuple[Column, ...]:
        return (*self.left.output, *(replace(c, nullable=True) for c in self.right.output))


class SemiJoin(ConditionalJoin):
    """The rows of `left` for which a row of `right` makes `on` TRUE."""

    __slots__ = ()


class AntiJoin(ConditionalJoin):
    """The rows of `left` for which no row of `right` makes `on` TRUE."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Union(Node):
    """UNION ALL: the rows of all inputs under new `columns`, position by position, of the inputs' types."""

    children: tuple[Node, ...]
    columns: tuple[Column, ...]

    def __post_init__(self) -> None:
        for child in self.children:
            assert [c.type for c in child.output] == [c.type for c in self.columns], "UNION of unlike columns"

    @Remembered
    def output(self) -> tuple[Column, ...]:
        return self.columns

    @property
    def inputs(self) -> tuple[Node, ...]:
        return self.children


@dataclass(frozen=True, slots=True)
class SetOperation(Node):
    """UNION, INTERSECT or EXCEPT, each row once unless it is ALL; UNION ALL is a Union."""

    kind: str
    all: bool
    children: tuple[Node, ...]
    columns: tuple[Column, ...]

    def __post_init__(self) -> None:
        assert self.kind in ("INTERSECT", "EXCEPT") or (self.kind, self.all) == ("UNION", False)
        for child in self.children:
            assert [c.type for c in child.output] == [c.type for c in self.columns], f"{self.kind} of unlike columns"

    @Remembered
    def output(self) -> tuple[Column, ...]:
        return self.columns

    @property
    def inputs(self) -> tuple[Node, ...]:
        return self.children


@dataclass(frozen=True, slots=True)
class Agg:
    """SUM, AVG, MIN or MAX(arg), COUNT(arg) or COUNT(*) (arg None); NULL, COUNT aside, over no non-NULL value.

    MAX_BY and MIN_BY are of the row in which the one key of `order` is greatest or least.

    Of the n values in order one is at the `share` q of them: the one BELOW q · (n − 1), or ABOVE, both counted from 0;
    the one that REACHES q · n, counted from 1; or, from behind, the one that is LEFT by that. LISTAGG has the texts of
    all values with a `separator` between them, in the `order` of keys as those of a Sort, and where these are alike in
    their own.
    """

    function: str  # a key of `functions.registry.AGGREGATE_OPERATIONS`
    arg: Expr | None
    share: Fraction | None = None
    separator: str | None = None
    order: tuple[SortKey, ...] = ()

    def __post_init__(self) -> None:
        assert (self.share is not None) == (self.maintenance is Maintenance.ORDER_STATISTIC)
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
        return (*(() if self.arg is None else (self.arg,)), *(key for key, _, _ in self.order))

    def with_args(self, args: Iterable[Expr]) -> "Agg":
        """The same of others, in the order of `args`."""
        given = iter(args)
        arg = None if self.arg is None else next(given)
        return replace(self, arg=arg, order=tuple((next(given), down, nulls) for _, down, nulls in self.order))

    def __str__(self) -> str:
        told = "" if self.share is None else f", {float(self.share)}"
        told += "" if self.separator is None else f", {self.separator!r}"
        keys = ", ".join(f"{key}{' DESC' if down else ''}" for key, down, _ in self.order)
        if self.maintenance is Maintenance.ARG_EXTREME and keys:
            return f"{self.function.upper()}({self.arg}, {keys})"
        return f"{self.function.upper()}({'*' if self.arg is None else self.arg}{told}{' BY ' if keys else ''}{keys})"


@dataclass(frozen=True, slots=True)
class Aggregate(Node):
    """GROUP BY `keys` with `aggs`; no keys: exactly one row, also over nothing. No aggs: DISTINCT."""

    child: Node
    keys: tuple[tuple[Column, Expr], ...]
    aggs: tuple[tuple[Column, Agg], ...]

    def __post_init__(self) -> None:
        for expr in chain((e for _, e in self.keys), *(agg.args for _, agg in self.aggs)):
            check(expr, self.child)

    @Remembered
    def output(self) -> tuple[Column, ...]:
        return tuple(column for column, _ in (*self.keys, *self.aggs))

    @property
    def inputs(self) -> tuple[Node, ...]:
        return (self.child,)


@dataclass(frozen=True, slots=True)
class OverClause:
    """OVER (PARTITION BY partition ORDER BY order frame)."""

    partition: tuple[Expr, ...]
    order: tuple[SortKey, ...]
    frame: WindowFrame = DEFAULT_FRAME


@dataclass(frozen=True, slots=True)
class WindowFunction:
    """An aggregate, of the `distinct` values of what it reads if any, or a function of `functions/window.py`, and OVER.

    Args:
        args: What a function that is no aggregate takes.
        called: The function's name as messages have it; it is at `span`.
    """

    function: Agg | str
    over: OverClause
    args: tuple[Expr, ...] = ()
    distinct: tuple[Expr, ...] | None = None
    ignores_nulls: bool = False
    called: str = field(default="", compare=False)
    span: Span | None = field(default=None, compare=False)

    @property
    def expressions(self) -> tuple[Expr, ...]:
        """All that it reads."""
        own = self.function.args if isinstance(self.function, Agg) else self.args
        return (*own, *(self.distinct or ()), *self.over.partition, *(key for key, _, _ in self.over.order))

    def partitioned(self, keys: Iterable[Expr]) -> "WindowFunction":
        """Partition by more keys."""
        return replace(self, over=replace(self.over, partition=(*self.over.partition, *keys)))

    def with_expressions(self, new: Iterable[Expr]) -> "WindowFunction":
        """Replace what it reads, in the order of `expressions`."""
        rest, over, agg = iter(new), self.over, self.function
        function = agg.with_args(islice(rest, len(agg.args))) if isinstance(agg, Agg) else agg
        args = tuple(islice(rest, len(self.args)))
        distinct = None if self.distinct is None else tuple(islice(rest, len(self.distinct)))
        partition = tuple(islice(rest, len(over.partition)))
        order = tuple((next(rest), down, nulls_first) for _, down, nulls_first in over.order)
        over = replace(over, partition=partition, order=order)
        return replace(self, function=function, args=args, distinct=distinct, over=over)


@dataclass(frozen=True, slots=True)
class WindowFunctions(Node):
    """The rows of the child, each with the value of every window function, under the column that names it."""

    child: Node
    functions: tuple[tuple[Column, WindowFunction], ...]

    def __post_init__(self) -> None:
        for _, function in self.functions:
            assert isinstance(function.function, Agg) or function.function in WINDOWS
            check_all(function.expressions, self.child)

    @Remembered
    def output(self) -> tuple[Column, ...]:
        return (*self.child.output, *(column for column, _ in self.functions))

    @property
    def inputs(self) -> tuple[Node, ...]:
        return (self.child,)


@dataclass(frozen=True, slots=True)
class Repeat(Node):
    """The groups of an Aggregate, each `times` times: not at all where that is not positive. `number` tells which of
    them a row is, from 0."""

    child: Aggregate
    times: Expr
    number: Column | None = None

    def __post_init__(self) -> None:
        assert isinstance(self.child, Aggregate) and self.times.type == BIGINT
        check(self.times, self.child)

    @Remembered
    def output(self) -> tuple[Column, ...]:
        return self.child.output if self.number is None else (*self.child.output, self.number)

    @property
    def inputs(self) -> tuple[Node, ...]:
        return (self.child,)


@dataclass(frozen=True, slots=True)
class Sort(Node):
    """ORDER BY, for what is printed."""

    child: Node
    keys: tuple[SortKey, ...]

    @Remembered
    def output(self) -> tuple[Column, ...]:
        return self.child.output

    @property
    def inputs(self) -> tuple[Node, ...]:
        return (self.child,)


@dataclass(frozen=True, slots=True)
class Limit(Node):
    """LIMIT and OFFSET, for what is printed."""

    child: Node
    count: int | None
    offset: int = 0

    @Remembered
    def output(self) -> tuple[Column, ...]:
        return self.child.output

    @property
    def inputs(self) -> tuple[Node, ...]:
        return (self.child,)


@dataclass(frozen=True, slots=True)
class Query:
    """One continuous query of a script: its plan, the column names as printed, its text, and its number from 1."""

    plan: Node
    names: tuple[str, ...]
    text: str
    number: int = 1


def nodes(plan: Node) -> Iterator[Node]:
    """Yield every operator of a plan once, inputs first."""
    seen = set[int]()
    pending = [(plan, False)]
    while pending:
        node, has_inputs = pending.pop()
        if has_inputs:
            yield node
        elif id(node) not in seen:
            seen.add(id(node))
            pending += [(node, True), *((child, False) for child in node.inputs)]


def with_inputs(node: Node, inputs: tuple[Node, ...]) -> Node:
    """The node over other inputs; itself if they are the same objects."""
    if all(a is b for a, b in zip(node.inputs, inputs, strict=True)):
        return node
    match node:
        case Join() | ConditionalJoin():
            return replace(node, left=inputs[0], right=inputs[1])
        case Union() | SetOperation():
            return replace(node, children=inputs)
        case Filter() | Project() | Aggregate() | WindowFunctions() | Sort() | Limit() | Window():
            return replace(node, child=inputs[0])
        case Repeat() if isinstance(inputs[0], Aggregate):
            return replace(node, child=inputs[0])
    raise AssertionError(f"{type(node).__name__} has no inputs")
