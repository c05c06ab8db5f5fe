"""Location tags and transformers: what is evaluated where (`dbtoaster-batch-ivm` §4.2).

    M₁(a, b) at [a] ⋈ Move_[a](M₂(a, b) at [b])        meets at [a]

The paper's transformers are one here: moving what is spread is its Repart, from the driver its Scatter, to the driver
its Gather. EVERYWHERE is its partitioning function that maps a tuple to every node. A grid is that of the join-matrix
model (`adaptive-online-joins` §3.1): what is by rows meets what is by columns, each pair at one node, whatever the
predicate.
"""

from dataclasses import dataclass, field
from enum import Enum

from squallpy.logical.expressions import Column
from squallpy.program.views import Ref


class Mark(Enum):
    """Locations that need no keys."""

    LOCAL = "driver"
    SOURCE = "readers"  # where a batch is read: each tuple somewhere, and no view
    RANDOM = "anywhere"  # each tuple at some worker, or a part of its payload at several
    EVERYWHERE = "everywhere"  # a copy at each worker
    ROWS = "by rows of the grid"  # a copy at each worker of one row
    COLUMNS = "by columns of the grid"


LOCAL, SOURCE, RANDOM, EVERYWHERE = Mark.LOCAL, Mark.SOURCE, Mark.RANDOM, Mark.EVERYWHERE
ROWS, COLUMNS = Mark.ROWS, Mark.COLUMNS


class Misplaced(Exception):
    """With its views at these places a program would be wrong."""


@dataclass(frozen=True, slots=True)
class Dist:
    """Spread over the workers by the hash of some variables; by none, all at one worker."""

    by: tuple[Column, ...]


@dataclass(frozen=True, slots=True)
class Line:
    """Each tuple at all workers of one row of the grid, or of one column, by the hash of some variables. With a `key`,
    heavy keys have a grid each, and the others are at one worker."""

    side: Mark
    by: tuple[Column, ...]
    key: tuple[Column, ...] = ()

    @property
    def across(self) -> Mark:
        """The side that it meets."""
        return COLUMNS if self.side is ROWS else ROWS


Location = Dist | Line | Mark


def meeting(a: Location, b: Location) -> Location | None:
    """Where a join of what is at `a` and `b` can be evaluated as it is; None if nowhere."""
    if isinstance(a, Line) and isinstance(b, Line) and a.side is b.across and a.key == b.key:
        return RANDOM
    if a is EVERYWHERE:
        return b if b not in (LOCAL, SOURCE) else None
    if b is EVERYWHERE:
        return a if a not in (LOCAL, SOURCE) else None
    return a if a == b and a not in (RANDOM, SOURCE) else None


class _Known:
    """Of an expression, found once from what its parts know: rules ask for it again and again."""

    __slots__ = ()
    at: Location
    variables: frozenset[Column]
    reads: tuple["Read", ...]
    """All that it reads."""
    is_delta: bool
    """Does it hold no more than a batch brings?"""
    stays: bool
    """Is nothing moved?"""
    hashed: int

    def _know(
        self, at: Location, variables: frozenset[Column], reads: tuple["Read", ...], is_delta: bool, stays: bool,
        *parts: object,
    ) -> None:  # fmt: skip
        know = object.__setattr__
        know(self, "at", at)
        know(self, "variables", variables)
        know(self, "reads", reads)
        know(self, "is_delta", is_delta)
        know(self, "stays", stays)
        know(self, "hashed", hash(parts))


@dataclass(frozen=True, slots=True)
class Read(_Known):
    """A view, or a delta, where it is."""

    ref: Ref
    at: Location
    delta: bool = False
    variables: frozenset[Column] = field(init=False, repr=False, compare=False)
    reads: tuple["Read", ...] = field(init=False, repr=False, compare=False)
    is_delta: bool = field(init=False, repr=False, compare=False)
    stays: bool = field(init=False, repr=False, compare=False)
    hashed: int = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        bound = frozenset(self.ref.bound)
        self._know(self.at, bound, (self,), self.delta, True, self.ref, self.at, self.delta)

    def __hash__(self) -> int:
        return self.hashed


@dataclass(frozen=True, slots=True)
class Join(_Known):
    """Natural join, evaluated at every node on its own: what has to meet is at the same place."""

    left: "Expression"
    right: "Expression"
    at: Location = field(init=False, repr=False, compare=False)
    variables: frozenset[Column] = field(init=False, repr=False, compare=False)
    reads: tuple[Read, ...] = field(init=False, repr=False, compare=False)
    is_delta: bool = field(init=False, repr=False, compare=False)
    stays: bool = field(init=False, repr=False, compare=False)
    hashed: int = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        at = meeting(self.left.at, self.right.at)
        assert at is not None, f"{self.left.at} and {self.right.at} do not meet"
        left, right = self.left, self.right
        is_delta, stays = left.is_delta or right.is_delta, left.stays and right.stays
        reads = (*left.reads, *right.reads)
        self._know(at, left.variables | right.variables, reads, is_delta, stays, Join, left, right)

    def __hash__(self) -> int:
        return self.hashed


@dataclass(frozen=True, slots=True)
class Sum(_Known):
    """Partial sums by keys; whole ones if what is at one node has all of a group."""

    keys: tuple[Column, ...]
    child: "Expression"
    at: Location = field(init=False, repr=False, compare=False)
    variables: frozenset[Column] = field(init=False, repr=False, compare=False)
    reads: tuple[Read, ...] = field(init=False, repr=False, compare=False)
    is_delta: bool = field(init=False, repr=False, compare=False)
    stays: bool = field(init=False, repr=False, compare=False)
    hashed: int = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if not can_add_up(self.keys, self.child):
            raise Misplaced("what is at several nodes in parts would count several times")
        at = self.child.at
        torn = isinstance(at, Dist) and not set(at.by) <= set(self.keys)
        child = self.child
        at = RANDOM if torn else at
        self._know(at, frozenset(self.keys), child.reads, child.is_delta, child.stays, self.keys, child)

    def __hash__(self) -> int:
        return self.hashed


@dataclass(frozen=True, slots=True)
class Move(_Known):
    """The same somewhere else: the only way by which data leave a node. Of what is everywhere each node only keeps its
    share, so nothing is sent."""

    to: Location
    child: "Expression"
    at: Location = field(init=False, repr=False, compare=False)
    variables: frozenset[Column] = field(init=False, repr=False, compare=False)
    reads: tuple[Read, ...] = field(init=False, repr=False, compare=False)
    is_delta: bool = field(init=False, repr=False, compare=False)
    stays: bool = field(init=False, repr=False, compare=False)
    hashed: int = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        assert self.to not in (RANDOM, SOURCE), "nothing is moved to just anywhere"
        assert isinstance(self.to, Mark) or set(self.to.by) <= self.child.variables, f"{self.to} of what has none"
        if isinstance(self.child.at, Line) or (self.child.at is EVERYWHERE and isinstance(self.to, Line)):
            raise Misplaced("what several nodes have would arrive several times")
        child = self.child
        self._know(self.to, child.variables, child.reads, child.is_delta, False, self.to, child)

    def __hash__(self) -> int:
        return self.hashed

    @property
    def name(self) -> str:
        """As the paper calls it; it has no name for keeping a share."""
        if self.to is LOCAL:
            return "Gather"
        return "Keep" if self.is_free else "Scatter" if self.child.at is LOCAL else "Repart"

    @property
    def is_free(self) -> bool:
        return self.child.at is EVERYWHERE and self.to is not LOCAL


Expression = Read | Join | Sum | Move


def can_add_up(keys: tuple[Column, ...], child: "Expression") -> bool:
    """Is a sum over keys of what is where the child is right? Each node of a row has to have all of a group."""
    return not isinstance(child.at, Line) or set(child.at.by) <= set(keys)


def text(expression: Expression) -> str:
    """Sum_[a](M1(a, b) ⋈ Repart_[a](M2(a, b)))"""
    match expression:
        case Read(ref):
            return f"{ref.name}({_list(ref.variables)})"
        case Join(left, right):
            return f"{text(left)} ⋈ {text(right)}"
        case Sum(keys, child):
            return f"Sum_[{_list(keys)}]({text(child)})"
        case Move(to, child):
            return f"{expression.name}{'' if to is LOCAL else '_' + place(to)}({text(child)})"


def place(location: Location) -> str:
    """[a, b], or the mark's name in brackets."""
    match location:
        case Dist(by):
            return f"[{_list(by)}]"
        case Line(side, by, key):
            return f"[{_list(key)}, if heavy {_list(by)} {side.value}]" if key else f"[{_list(by)} {side.value}]"
    return f"[{location.value}]"


def _list(variables: tuple[Column, ...]) -> str:
    return ", ".join(v.name for v in variables)
