"""Relational nodes of the logical plan: frozen, matched with `match`, their output columns derived.

Limit(Sort(Project(Filter(Aggregate(Filter(Join(Scan, Scan)))))))
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import field, replace
from itertools import chain
from typing import Any, ClassVar, cast

from squallpy.base.errors import Span
from squallpy.base.records import dataclass
from squallpy.base.types import BIGINT, BOOLEAN
from squallpy.catalog.relation import Relation
from squallpy.catalog.sink_spec import SinkSpec
from squallpy.catalog.window_spec import WindowSpec
from squallpy.functions.registry import WINDOWS
from squallpy.logical.aggregate_calls import Agg, SortKeys, WindowFunction
from squallpy.logical.cached_properties import CachedProperty
from squallpy.logical.expressions import TRUE, Column, Expr, as_nullable, columns


class Node:
    """A relational operator; `output` is its columns in order."""

    __slots__ = ("_borrows", "_ids", "_inputs", "_output", "_size")
    _borrows: bool
    _inputs: tuple["Node", ...]
    _size: int
    input_fields: ClassVar[tuple[str, ...]] = ()
    lends: ClassVar[bool] = False  # True if its columns may be read anywhere above it, up to an Apply

    @property
    def borrows(self) -> bool:
        """True if it, or an operator below it, lends columns, which may yet become more while a query is bound."""
        try:
            return self._borrows
        except AttributeError:
            object.__setattr__(self, "_borrows", self.lends or any(child.borrows for child in self.open_inputs))
            return self._borrows

    @property
    def open_inputs(self) -> tuple["Node", ...]:
        """The inputs whose lent columns may be read here."""
        return self.inputs

    @CachedProperty
    def output(self) -> tuple[Column, ...]:
        raise NotImplementedError

    @CachedProperty
    def ids(self) -> frozenset[int]:
        """Collect the ids of its columns."""
        return frozenset(column.id for column in self.output)

    @property
    def size(self) -> int:
        """Number of operators in its tree; one that is read twice counts twice."""
        try:
            return self._size
        except AttributeError:
            object.__setattr__(self, "_size", 1 + sum(child.size for child in self.inputs))
            return self._size

    @property
    def inputs(self) -> tuple["Node", ...]:
        try:
            return self._inputs
        except AttributeError:
            object.__setattr__(self, "_inputs", tuple(getattr(self, name) for name in self.input_fields))
            return self._inputs


def check(expr: Expr, *inputs: Node) -> None:
    check_all((expr,), *inputs)


def check_all(exprs: Iterable[Expr], *inputs: Node) -> None:
    known = [node.ids for node in inputs]
    for expr in exprs:
        if isinstance(expr, Column) and expr.id in known[0]:
            continue
        missing = [c for c in columns(expr) if not any(c.id in ids for ids in known)]
        missing = [c for c in missing if not any(_is_lent(c, node) for node in inputs)]
        assert not missing, f"{expr} reads {missing}, which no input has"


def _is_lent(column: Column, node: Node) -> bool:
    return node.borrows and (
        (node.lends and column in node.output) or any(_is_lent(column, c) for c in node.open_inputs)
    )


@dataclass(frozen=True, slots=True)
class Scan(Node):
    """A stream or table under an alias; `columns` are its fields in order, with fresh ids for each scan."""

    relation: Relation
    alias: str
    columns: tuple[Column, ...]

    @CachedProperty
    def output(self) -> tuple[Column, ...]:
        return self.columns


@dataclass(frozen=True, slots=True)
class Window(Node):
    """The rows of a stream that are in a window; `time` is its time column, None for row numbers."""

    input_fields = ("child",)
    child: Node
    spec: WindowSpec
    time: Column | None

    def __post_init__(self) -> None:
        assert self.time is None or self.time in self.child.output

    @CachedProperty
    def output(self) -> tuple[Column, ...]:
        return self.child.output


@dataclass(frozen=True, slots=True)
class Filter(Node):
    """Rows for which the predicate is TRUE."""

    input_fields = ("child",)
    child: Node
    predicate: Expr

    def __post_init__(self) -> None:
        assert self.predicate.type == BOOLEAN
        check(self.predicate, self.child)

    @CachedProperty
    def output(self) -> tuple[Column, ...]:
        return self.child.output


@dataclass(frozen=True, slots=True)
class Project(Node):
    """Computed columns, each with the column that names it."""

    input_fields = ("child",)
    child: Node
    items: tuple[tuple[Column, Expr], ...]

    def __post_init__(self) -> None:
        check_all((expr for _, expr in self.items), self.child)

    @CachedProperty
    def output(self) -> tuple[Column, ...]:
        return tuple(column for column, _ in self.items)


@dataclass(frozen=True, slots=True)
class Join(Node):
    """Inner join; `on` None is the cross product."""

    input_fields = ("left", "right")
    left: Node
    right: Node
    on: Expr | None = None

    def __post_init__(self) -> None:
        if self.on is not None:
            assert self.on.type == BOOLEAN
            check(self.on, self.left, self.right)

    @CachedProperty
    def output(self) -> tuple[Column, ...]:
        return (*self.left.output, *self.right.output)


def inner_join(left: Node, right: Node, on: Expr) -> Join:
    """Join two plans; `on` TRUE is the cross product."""
    return Join(left, right, on if on != TRUE else None)


@dataclass(frozen=True, slots=True)
class ConditionalJoin(Node):
    """A join that is no mirror image: what becomes of a row of `left` depends on whether `right` has a match."""

    input_fields = ("left", "right")
    left: Node
    right: Node
    on: Expr

    def __post_init__(self) -> None:
        assert self.on.type == BOOLEAN
        check(self.on, self.left, self.right)

    @CachedProperty
    def output(self) -> tuple[Column, ...]:
        return self.left.output


class LeftJoin(ConditionalJoin):
    """Left outer join: a row of `left` for which no row of `right` makes `on` TRUE comes once, with NULLs beside it."""

    __slots__ = ()

    @CachedProperty
    def output(self) -> tuple[Column, ...]:
        return (*self.left.output, *map(as_nullable, self.right.output))


class SemiJoin(ConditionalJoin):
    """The rows of `left` for which a row of `right` makes `on` TRUE."""

    __slots__ = ()


class AntiJoin(ConditionalJoin):
    """The rows of `left` for which no row of `right` makes `on` TRUE."""

    __slots__ = ()


class NodeByPosition(Node):
    """An operator over any number of `children`, whose columns are paired with its own position by position."""

    __slots__ = ()
    children: tuple[Node, ...]

    @property
    def inputs(self) -> tuple[Node, ...]:
        return self.children


@dataclass(frozen=True, slots=True)
class Union(NodeByPosition):
    """UNION ALL: the rows of all inputs under new `columns`, position by position, of the inputs' types."""

    children: tuple[Node, ...]
    columns: tuple[Column, ...]

    def __post_init__(self) -> None:
        for child in self.children:
            assert [c.type for c in child.output] == [c.type for c in self.columns], "UNION of unlike columns"

    @CachedProperty
    def output(self) -> tuple[Column, ...]:
        return self.columns


@dataclass(frozen=True, slots=True)
class SetOperation(NodeByPosition):
    """UNION, INTERSECT or EXCEPT, each row once unless it is ALL; UNION ALL is a Union."""

    kind: str
    all: bool
    children: tuple[Node, ...]
    columns: tuple[Column, ...]

    def __post_init__(self) -> None:
        assert self.kind in ("INTERSECT", "EXCEPT") or (self.kind, self.all) == ("UNION", False)
        for child in self.children:
            assert [c.type for c in child.output] == [c.type for c in self.columns], f"{self.kind} of unlike columns"

    @CachedProperty
    def output(self) -> tuple[Column, ...]:
        return self.columns


@dataclass(frozen=True, slots=True)
class Aggregate(Node):
    """GROUP BY `keys` with `aggs`; no keys: exactly one row, also over nothing. No aggs: DISTINCT."""

    input_fields = ("child",)
    child: Node
    keys: tuple[tuple[Column, Expr], ...]
    aggs: tuple[tuple[Column, Agg], ...]

    def __post_init__(self) -> None:
        for expr in chain((e for _, e in self.keys), *(agg.args for _, agg in self.aggs)):
            check(expr, self.child)

    @CachedProperty
    def output(self) -> tuple[Column, ...]:
        return tuple(column for column, _ in (*self.keys, *self.aggs))


@dataclass(frozen=True, slots=True)
class GroupingSets(Node):
    """Aggregates by several sets of keys, with NULL for the keys that a set lacks: ROLLUP, CUBE, GROUPING SETS.

    Args:
        sets: Columns of the keys that each set has.
        groupings: Columns that are 1 in the rows of the sets that lack a key, and 0 in others: GROUPING(key).
    """

    input_fields = ("child",)
    child: Node
    keys: tuple[tuple[Column, Expr], ...]
    sets: tuple[tuple[Column, ...], ...]
    aggs: tuple[tuple[Column, Agg], ...]
    groupings: tuple[tuple[Column, Column], ...] = ()

    def __post_init__(self) -> None:
        check_all((*(e for _, e in self.keys), *(arg for _, agg in self.aggs for arg in agg.args)), self.child)

    @CachedProperty
    def output(self) -> tuple[Column, ...]:
        return tuple(column for column, _ in (*self.keys, *self.aggs, *self.groupings))


@dataclass(frozen=True, slots=True)
class WindowFunctions(Node):
    """The rows of the child, each with the value of every window function, under the column that names it."""

    input_fields = ("child",)
    child: Node
    functions: tuple[tuple[Column, WindowFunction], ...]

    def __post_init__(self) -> None:
        for _, function in self.functions:
            assert isinstance(function.function, Agg) or function.function in WINDOWS
            check_all(function.expressions, self.child)

    @CachedProperty
    def output(self) -> tuple[Column, ...]:
        return (*self.child.output, *(column for column, _ in self.functions))


@dataclass(frozen=True, slots=True)
class Repeat(Node):
    """The groups of an Aggregate, each `times` times: not at all where that is not positive. `number` tells which of
    them a row is, from 0."""

    input_fields = ("child",)
    child: Aggregate
    times: Expr
    number: Column | None = None

    def __post_init__(self) -> None:
        assert isinstance(self.child, Aggregate) and self.times.type == BIGINT
        check(self.times, self.child)

    @CachedProperty
    def output(self) -> tuple[Column, ...]:
        return self.child.output if self.number is None else (*self.child.output, self.number)


@dataclass(frozen=True, slots=True)
class Sort(Node):
    """ORDER BY of the printed result."""

    input_fields = ("child",)
    child: Node
    keys: SortKeys

    @CachedProperty
    def output(self) -> tuple[Column, ...]:
        return self.child.output


@dataclass(frozen=True, slots=True)
class TopN(Node):
    """The first rows in an order, or of each `partition` its own: LIMIT inside a query, and DISTINCT ON.

    Args:
        keys: As those of a Sort; of rows that are alike in them, any come first.
        with_ties: The rows that are alike in the keys with the last one come, too.
        span: The place of the clause, for errors.
    """

    input_fields = ("child",)
    child: Node
    keys: SortKeys
    count: int | None
    offset: int = 0
    with_ties: bool = False
    partition: tuple[Expr, ...] = ()
    clause: str = field(default="LIMIT", compare=False)
    span: Span | None = field(default=None, compare=False)

    def __post_init__(self) -> None:
        check_all((*(expr for expr, _, _ in self.keys), *self.partition), self.child)

    @CachedProperty
    def output(self) -> tuple[Column, ...]:
        return self.child.output

    @property
    def is_first_row(self) -> bool:
        """True if it has at most one row of each partition."""
        return self.count == 1 and not self.with_ties


@dataclass(frozen=True, slots=True)
class Limit(Node):
    """LIMIT and OFFSET of the printed result."""

    input_fields = ("child",)
    child: Node
    count: int | None
    offset: int = 0

    @CachedProperty
    def output(self) -> tuple[Column, ...]:
        return self.child.output


@dataclass(frozen=True, slots=True)
class Query:
    """One continuous query of a script: its plan, the column names as printed, its text, and its number from 1.

    Args:
        sink: Where CREATE SINK writes its rows; None for others.
        view: The materialized view that it keeps fresh; empty for others.
    """

    plan: Node
    names: tuple[str, ...]
    text: str
    number: int = 1
    sink: SinkSpec | None = None
    view: str = ""

    @property
    def is_printed(self) -> bool:
        """True for a SELECT of a script, whose rows the user asks for."""
        return self.sink is None and not self.view

    @property
    def name(self) -> str:
        """The name of its view or sink, else one made of its number."""
        return self.view or (self.sink.name if self.sink else f"query{self.number}")


def titles_of(queries: Sequence[Query], outputs: Sequence[int]) -> tuple[tuple[str, ...], ...]:
    """Name the queries that each output of a program is printed for; nothing where there is one query.

    Args:
        outputs: The number of each query's output.
    """
    if len(queries) == 1:
        return ()
    named = list(zip(outputs, queries, strict=True))
    return tuple(tuple(q.name for of, q in named if of == output) for output in range(1 + max(outputs)))


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
    """Replace a node's inputs; itself if they are the same objects."""
    if all(a is b for a, b in zip(node.inputs, inputs, strict=True)):
        return node
    if isinstance(node, NodeByPosition):
        return cast(Node, replace(cast(Any, node), children=inputs))
    return cast(Node, replace(cast(Any, node), **dict(zip(node.input_fields, inputs, strict=True))))
