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
class Cells:
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


Location = Dist | Line | Cells | Mark


def join_location(a: Location, b: Location) -> Location | None:
    """Find where a join of inputs at `a` and `b` can be evaluated without a move; None if nowhere."""
    if isinstance(a, Line) and isinstance(b, Line) and a.side is b.across and a.key == b.key:
        return RANDOM
    if isinstance(a, Cells) and isinstance(b, Cells):
        return Cells(tuple(sorted({*a.dimensions, *b.dimensions})), a.of)
    if a is EVERYWHERE:
        return b if b not in (LOCAL, SOURCE) else None
    if b is EVERYWHERE:
        return a if a not in (LOCAL, SOURCE) else None
    return a if a == b and a not in (RANDOM, SOURCE) else None


@dataclass(frozen=True, slots=True)
class _Properties:
    """Properties of an expression, derived once from its parts, as rules read them again and again."""

    variables: frozenset[Column] = field(init=False, repr=False, compare=False)
    is_delta: bool = field(init=False, repr=False, compare=False)
    """True if it holds no more than a batch brings."""
    stays: bool = field(init=False, repr=False, compare=False)
    """True if nothing is moved."""
    hashed: int = field(init=False, repr=False, compare=False)

    def _set_properties(
        self, at: Location, variables: frozenset[Column], is_delta: bool, stays: bool, *parts: object
    ) -> None:
        set_property = object.__setattr__
        set_property(self, "at", at)
        set_property(self, "variables", variables)
        set_property(self, "is_delta", is_delta)
        set_property(self, "stays", stays)
        set_property(self, "hashed", hash(parts))

    @property
    def reads(self) -> Iterator["Read"]:
        """Its views and deltas, from left to right."""
        waiting = [cast(Expression, self)]
        while waiting:
            match waiting.pop():
                case Read() as read:
                    yield read
                case Join(left, right):
                    waiting += (right, left)
                case Sum(_, child) | Move(_, child):
                    waiting.append(child)


@dataclass(frozen=True, slots=True)
class Read(_Properties):
    """A view or a delta at its location."""

    ref: Ref
    at: Location
    delta: bool = False

    def __post_init__(self) -> None:
        bound = frozenset(self.ref.bound_variables)
        self._set_properties(self.at, bound, self.delta, True, self.ref, self.at, self.delta)

    def __hash__(self) -> int:
        return self.hashed


@dataclass(frozen=True, slots=True)
class Join(_Properties):
    """A natural join, evaluated at every node alone: its inputs have met."""

    left: "Expression"
    right: "Expression"
    at: Location = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        at = join_location(self.left.at, self.right.at)
        assert at is not None, f"{self.left.at} and {self.right.at} do not meet"
        left, right = self.left, self.right
        is_delta, stays = left.is_delta or right.is_delta, left.stays and right.stays
        self._set_properties(at, left.variables | right.variables, is_delta, stays, Join, left.hashed, right.hashed)

    def __hash__(self) -> int:
        return self.hashed


@dataclass(frozen=True, slots=True)
class Sum(_Properties):
    """Partial sums by keys; complete ones if each node has whole groups."""

    keys: tuple[Column, ...]
    child: "Expression"
    at: Location = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if not has_whole_groups(self.keys, self.child):
            raise PlacementError("copies at several nodes would be summed several times")
        at = self.child.at
        is_split = isinstance(at, Dist) and not set(at.keys) <= set(self.keys)
        child = self.child
        at = RANDOM if is_split else at
        self._set_properties(at, frozenset(self.keys), child.is_delta, child.stays, self.keys, child.hashed)

    def __hash__(self) -> int:
        return self.hashed


@dataclass(frozen=True, slots=True)
class Move(_Properties):
    """A child at another location, the only way by which data leave a node; free where each node keeps a part of a
    copy."""

    to: Location
    child: "Expression"
    at: Location = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        assert self.to not in (RANDOM, SOURCE), "nothing is moved to just anywhere"
        assert isinstance(self.to, Mark) or set(self.to.keys) <= self.child.variables, (
            f"{self.to} of a child without these variables"
        )
        if has_copies(self.child.at) or (self.child.at is EVERYWHERE and isinstance(self.to, Line | Cells)):
            raise PlacementError("copies at several nodes would arrive several times")
        child = self.child
        self._set_properties(self.to, child.variables, child.is_delta, False, self.to, child.hashed)

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


Expression = Read | Join | Sum | Move


def has_copies(at: Location) -> bool:
    """True if the same tuples are at several nodes, though not at all."""
    return isinstance(at, Line) or (isinstance(at, Cells) and not at.is_whole)


def has_whole_groups(keys: tuple[Column, ...], child: "Expression") -> bool:
    """True if a sum by these keys is right at the child's location: each node of a row has whole groups."""
    return not isinstance(child.at, Line) or set(child.at.keys) <= set(keys)


def show_expression(expression: Expression) -> str:
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
        case Cells(dimensions):
            return f"[{_list(location.keys)} along {', '.join(map(str, dimensions))}]"
    return f"[{location.value}]"


def _list(variables: tuple[Column, ...]) -> str:
    return ", ".join(v.name for v in variables)
