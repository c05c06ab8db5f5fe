"""Location tags and transformers (`dbtoaster-batch-ivm` §4.2).

    M₁(a, b) at [a] ⋈ Move_[a](M₂(a, b) at [b])        meets at [a]

The paper's transformers are one here: a Move of hashed data is its Repart, one from the driver its Scatter, one to the
driver its Gather. EVERYWHERE is the partitioning function that maps a tuple to every node. A grid is the join-matrix
model (`adaptive-online-joins` §3.1): ROWS meet COLUMNS, each pair at one node, whatever the predicate. A hypercube is
that in n dimensions: cells meet whatever their dimensions, and each combination of tuples at one node.
"""

from collections.abc import Iterator
from dataclasses import field
from enum import Enum
from typing import cast

from squallpy.base.records import dataclass
from squallpy.logical.expressions import Column
from squallpy.program.views import Ref


class Mark(Enum):
    """Locations that need no keys."""

    LOCAL = "driver"
    SOURCE = "readers"  # where a batch is read: each tuple at one worker; views are never there
    RANDOM = "anywhere"  # each tuple at some worker, or a part of its payload at several
    EVERYWHERE = "everywhere"  # a copy at each worker
    ROWS = "by rows of the grid"  # a copy at each worker of one row
    COLUMNS = "by columns of the grid"


LOCAL, SOURCE, RANDOM, EVERYWHERE = Mark.LOCAL, Mark.SOURCE, Mark.RANDOM, Mark.EVERYWHERE
ROWS, COLUMNS = Mark.ROWS, Mark.COLUMNS


class PlacementError(Exception):
    """A placement under which a program would be wrong."""


@dataclass(frozen=True, slots=True)
class Dist:
    """A partitioning over the workers by the hash of some variables; by none, all tuples are at one worker.

    Over the first `workers` only, or None: all.
    """

    keys: tuple[Column, ...]
    workers: int | None = None


@dataclass(frozen=True, slots=True)
class Line:
    """A copy of each tuple at all workers of one row or column of the grid, by the hash of some variables."""

    side: Mark
    keys: tuple[Column, ...]
    key: tuple[Column, ...] = ()

    @property
    def across(self) -> Mark:
        """The side that it joins with."""
        return COLUMNS if self.side is ROWS else ROWS


@dataclass(frozen=True, slots=True)
class HypercubeCells:
    """A copy at all joiners of a hypercube with the same coordinates along some of its dimensions.

    An expression there is evaluated over the tuples of each joiner, as a part of the whole that is to be added up.

    Args:
        of: The number of the hypercube's dimensions.
        hashed: For each dimension, the variables whose hash is the coordinate, where something is moved there.
    """

    dimensions: tuple[int, ...]
    of: int
    hashed: tuple[tuple[Column, ...], ...] = ()

    @property
    def is_whole(self) -> bool:
        """True if each tuple is at one joiner."""
        return len(self.dimensions) == self.of

    @property
    def keys(self) -> tuple[Column, ...]:
        """All hashed variables."""
        return tuple(dict.fromkeys(v for variables in self.hashed for v in variables))


Location = Dist | Line | HypercubeCells | Mark


def join_location(a: Location, b: Location) -> Location | None:
    """Find where a join of inputs at `a` and `b` can be evaluated without a move; None if nowhere."""
    if isinstance(a, Line) and isinstance(b, Line) and a.side is b.across and a.key == b.key:
        return RANDOM
    if isinstance(a, HypercubeCells) and isinstance(b, HypercubeCells):
        return HypercubeCells(tuple(sorted({*a.dimensions, *b.dimensions})), a.of)
    if a is EVERYWHERE:
        return b if b not in (LOCAL, SOURCE) else None
    if b is EVERYWHERE:
        return a if a not in (LOCAL, SOURCE) else None
    return a if a == b and a not in (RANDOM, SOURCE) else None


Cost = tuple[int, int, int, int, int]
"""Whole views moved, rounds, copies of views and deltas, moves, and moves to the driver, in order of weight.

The paper counts rounds, then prefers to move what comes from a batch; but a view that is moved with every batch makes
the batch cost what the view holds.
"""
NOTHING: Cost = (0, 0, 0, 0, 0)


@dataclass(frozen=True, slots=True)
class _Properties:
    """Properties of an expression, derived once from its parts, as rules read them again and again."""

    is_delta: bool = field(init=False, repr=False, compare=False)
    """True if it holds no more than a batch brings."""
    stays: bool = field(init=False, repr=False, compare=False)
    """True if nothing is moved."""
    is_simple: bool = field(init=False, repr=False, compare=False)
    """True if no move is to where its child is, nor of a move, nor of a sum that adds nothing up."""
    splits_copy: bool = field(init=False, repr=False, compare=False)
    """True if each node keeps its part of a copy, which all of them have."""
    cost: Cost = field(init=False, repr=False, compare=False)
    hashed: int = field(init=False, repr=False, compare=False)
    _variables: frozenset[Column] = field(init=False, repr=False, compare=False)  # set when they are first read

    def _set_properties(
        self, at: Location, is_delta: bool, stays: bool, is_simple: bool, splits_copy: bool, cost: Cost, *parts: object
    ) -> None:
        set_property = object.__setattr__
        set_property(self, "at", at)
        set_property(self, "is_delta", is_delta)
        set_property(self, "stays", stays)
        set_property(self, "is_simple", is_simple)
        set_property(self, "splits_copy", splits_copy)
        set_property(self, "cost", cost)
        set_property(self, "hashed", hash(parts))

    @property
    def variables(self) -> frozenset[Column]:
        """The variables that its rows have."""
        try:
            return self._variables
        except AttributeError:
            object.__setattr__(self, "_variables", _find_variables(cast(LocatedExpression, self)))
            return self._variables

    @property
    def reads(self) -> Iterator["Read"]:
        """Its views and deltas, from left to right."""
        waiting = [cast(LocatedExpression, self)]
        while waiting:
            match waiting.pop():
                case Read() as read:
                    yield read
                case Join(left, right):
                    waiting += (right, left)
                case Sum(_, child) | Move(_, child):
                    waiting.append(child)


def _find_variables(expression: "LocatedExpression") -> frozenset[Column]:
    """Collect the variables of an expression's rows from those of its parts."""
    match expression:
        case Read(ref):
            return frozenset(ref.bound_variables)
        case Join(left, right):
            return left.variables | right.variables
        case Sum(keys):
            return frozenset(keys)
        case Move(_, child):
            return child.variables


@dataclass(frozen=True, slots=True)
class Read(_Properties):
    """A view or a delta at its location."""

    ref: Ref
    at: Location
    delta: bool = False

    def __post_init__(self) -> None:
        self._set_properties(self.at, self.delta, True, True, False, NOTHING, self.ref, self.at, self.delta)

    def __hash__(self) -> int:
        return self.hashed


@dataclass(frozen=True, slots=True)
class Join(_Properties):
    """A natural join, evaluated at every node alone: its inputs have met."""

    left: "LocatedExpression"
    right: "LocatedExpression"
    at: Location = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        at = join_location(self.left.at, self.right.at)
        assert at is not None, f"{self.left.at} and {self.right.at} do not meet"
        left, right = self.left, self.right
        self._set_properties(
            at,
            left.is_delta or right.is_delta,
            left.stays and right.stays,
            left.is_simple and right.is_simple,
            left.splits_copy or right.splits_copy,
            _add(left.cost, right.cost),
            Join,
            left.hashed,
            right.hashed,
        )

    def __hash__(self) -> int:
        return self.hashed


def _add(one: Cost, other: Cost) -> Cost:
    """Add up the costs of two inputs, which are moved in the same rounds."""
    if other is NOTHING:
        return one
    views, rounds, copies, moves, gathers = one
    more_views, more_rounds, more_copies, more_moves, more_gathers = other
    rounds = max(rounds, more_rounds)
    return views + more_views, rounds, copies + more_copies, moves + more_moves, gathers + more_gathers


@dataclass(frozen=True, slots=True)
class Sum(_Properties):
    """Partial sums by keys; complete ones if each node has whole groups."""

    keys: tuple[Column, ...]
    child: "LocatedExpression"
    at: Location = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if not has_whole_groups(self.keys, self.child):
            raise PlacementError("copies at several nodes would be summed several times")
        child = self.child
        is_split = isinstance(child.at, Dist) and not set(child.at.keys) <= set(self.keys)
        at = RANDOM if is_split else child.at
        self._set_properties(
            at, child.is_delta, child.stays, child.is_simple, child.splits_copy, child.cost, self.keys, child.hashed
        )

    @property
    def adds_nothing(self) -> bool:
        """True if it has all variables of what it reads."""
        return isinstance(self.child, Read) and self.variables == self.child.variables

    def __hash__(self) -> int:
        return self.hashed


@dataclass(frozen=True, slots=True)
class Move(_Properties):
    """A child at another location, the only way by which data leave a node; free where each node keeps a part of a
    copy."""

    to: Location
    child: "LocatedExpression"
    at: Location = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        to, child = self.to, self.child
        assert to not in (RANDOM, SOURCE), "nothing is moved to just anywhere"
        assert isinstance(to, Mark) or child.variables.issuperset(to.keys), f"{to} of a child without these variables"
        if has_copies(child.at) or (child.at is EVERYWHERE and isinstance(to, Line | HypercubeCells)):
            raise PlacementError("copies at several nodes would arrive several times")
        is_simple = child.is_simple and child.at != to
        is_simple = is_simple and not (isinstance(child, Move) or (isinstance(child, Sum) and child.adds_nothing))
        cost = child.cost
        if not self.is_free:
            views, rounds, copies, moves, gathers = cost
            copied = to is EVERYWHERE or isinstance(to, Line)
            cost = views + (not child.is_delta), rounds + 1, copies + copied, moves + 1, gathers + (to is LOCAL)
        splits_copy = self.is_free or child.splits_copy
        self._set_properties(to, child.is_delta, False, is_simple, splits_copy, cost, to, child.hashed)

    def __hash__(self) -> int:
        return self.hashed

    @property
    def name(self) -> str:
        """The paper's name; "Keep", which it lacks, keeps each node's part of a copy."""
        if self.to is LOCAL:
            return "Gather"
        return "Keep" if self.is_free else "Scatter" if self.child.at is LOCAL else "Repart"

    @property
    def is_free(self) -> bool:
        return self.child.at is EVERYWHERE and self.to is not LOCAL


LocatedExpression = Read | Join | Sum | Move


def has_copies(at: Location) -> bool:
    """True if the same tuples are at several nodes, though not at all."""
    return isinstance(at, Line) or (isinstance(at, HypercubeCells) and not at.is_whole)


def has_whole_groups(keys: tuple[Column, ...], child: "LocatedExpression") -> bool:
    """True if a sum by these keys is right at the child's location: each node of a row has whole groups."""
    return not isinstance(child.at, Line) or set(child.at.keys) <= set(keys)


def show_expression(expression: LocatedExpression) -> str:
    """Print an expression: Sum_[a](M1(a, b) ⋈ Repart_[a](M2(a, b)))."""
    match expression:
        case Read(ref):
            return f"{ref.name}({_list(ref.variables)})"
        case Join(left, right):
            return f"{show_expression(left)} ⋈ {show_expression(right)}"
        case Sum(keys, child):
            return f"Sum_[{_list(keys)}]({show_expression(child)})"
        case Move(to, child):
            return f"{expression.name}{'' if to is LOCAL else '_' + show_location(to)}({show_expression(child)})"


def show_location(location: Location) -> str:
    """Print a location: [a, b], or a mark's name in brackets."""
    match location:
        case Dist(by, workers):
            return f"[{_list(by)}{'' if workers is None else f' over {workers}'}]"
        case Line(side, by, key):
            return f"[{_list(key)}, if heavy {_list(by)} {side.value}]" if key else f"[{_list(by)} {side.value}]"
        case HypercubeCells(dimensions):
            return f"[{_list(location.keys)} along {', '.join(map(str, dimensions))}]"
    return f"[{location.value}]"


def _list(variables: tuple[Column, ...]) -> str:
    return ", ".join(v.name for v in variables)
