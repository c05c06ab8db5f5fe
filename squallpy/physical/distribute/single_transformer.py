"""Single transformer form: a statement moves one thing that has a name, or computes where everything is (§4.3.2).

    Q(b) += Sum_[b](Repart_[b](Repart_[a](ΔO(a, b)) ⋈ C(a)) ⋈ L(b))

    ΔO.1      := Repart_[a](ΔO(a, b))
    T1(b)     := Sum_[b](ΔO.1(a, b) ⋈ C(a))
    T1.1      := Repart_[b](T1(b))
    Q(b)      += Sum_[b](T1.1(b) ⋈ L(b))

What is moved to the same place twice is moved once, what is computed twice alike is computed once; what nobody reads is
not computed at all.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace

from squallpy.logical.expressions import Column, Expr, columns
from squallpy.physical.distribute.location_tags import (
    Dist,
    Expression,
    Join,
    Line,
    Location,
    Mark,
    Misplaced,
    Move,
    Read,
    Sum,
)
from squallpy.program.calculus import Assign, Factor, renamed, variables
from squallpy.program.program import Statement
from squallpy.program.views import Ref


@dataclass(frozen=True, slots=True)
class Transfer:
    """`name` is what `source` holds of this batch, moved; `by` are key positions, or everywhere or to the driver. With
    `side`, to all nodes of a row or a column of the grid, or of that of a heavy `key`."""

    name: str
    source: str
    by: tuple[int, ...] | Mark
    side: Mark | None = None
    key: tuple[int, ...] = ()
    reads: frozenset[str] = field(init=False, repr=False, compare=False)
    writes: frozenset[str] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        _know(self, (self.source,), (self.name,))

    @property
    def moves(self) -> bool:
        return True


@dataclass(frozen=True, slots=True)
class Compute:
    """A statement whose views and deltas meet `at` a place. `keep`: of an outcome that each node has, its share by
    those key positions."""

    statement: Statement
    at: Location
    keep: tuple[int, ...] | None = None
    reads: frozenset[str] = field(init=False, repr=False, compare=False)
    writes: frozenset[str] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        _know(self, (ref.name for ref in self.statement.refs), (self.statement.target,))

    @property
    def moves(self) -> bool:
        return False


@dataclass(frozen=True, slots=True)
class Derivation:
    """The change of an auxiliary relation's rows, from the groups of its view that the batch touched. `context`: other
    views that it looks at. `alone`: all of that is at one node."""

    relation: str
    source: str
    deltas: tuple[str, ...]
    context: tuple[str, ...] = ()
    alone: bool = False
    reads: frozenset[str] = field(init=False, repr=False, compare=False)
    writes: frozenset[str] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        _know(self, (self.source, *self.context), self.deltas)

    @property
    def moves(self) -> bool:
        return False


Step = Transfer | Compute | Derivation


def _know(step: Step, reads: Iterable[str], writes: Iterable[str]) -> None:
    """What a step reads and writes, which fusion asks again and again."""
    object.__setattr__(step, "reads", frozenset(reads))
    object.__setattr__(step, "writes", frozenset(writes))


class Form:
    """Statements in single transformer form, one after the other. `written`: how their filters are written with other
    names, for all forms of a program."""

    def __init__(self, shared: bool = True, written: "Written | None" = None) -> None:
        self.steps: list[Step] = []
        self._shared, self._written = shared, {} if written is None else written
        self._made: dict[object, str] = {}
        self._behind: dict[str, frozenset[str]] = {}  # what a name was made of, and that of
        self._made_of: dict[str, list[object]] = {}  # the other way round, as keys of `_made`
        self._numbers: Counter[str] = Counter()

    def add(self, statement: Statement, expression: Expression) -> None:
        """A statement whose right hand side is evaluated as the expression says."""
        pending = list(statement.filters)
        keep = None
        if isinstance(expression, Move) and expression.is_free and isinstance(expression.to, Dist):
            keep, expression = tuple(statement.keys.index(v) for v in expression.to.by), expression.child
        if expression.stays:
            refs = tuple(read.ref for read in expression.reads)
        else:
            refs = tuple(self._refs(expression, _Outer(statement, expression.reads, pending)))
        target, keys, lanes = statement.target, statement.keys, statement.lanes
        self.append(Compute(Statement(target, keys, refs, tuple(pending), lanes), _origin(expression), keep))
        for key in self._made_of.pop(target, ()):  # it has changed since
            self._made.pop(key, None)

    def append(self, step: Step) -> None:
        """A step as it is."""
        behind = step.reads.union(*(self._behind.get(name, frozenset()) for name in step.reads))
        self._behind |= dict.fromkeys(step.writes, behind)
        self.steps.append(step)

    def _refs(self, expression: Expression, outer: "_Outer") -> Iterator[Ref]:
        """What the expression joins, all where it is evaluated."""
        match expression:
            case Read(ref):
                yield ref
            case Join(left, right):
                yield from self._refs(left, outer)
                yield from self._refs(right, outer)
            case Sum(_, child):
                yield from self._refs(child, outer)
            case Move(to, child):
                yield self._moved(to, child, outer)

    def _moved(self, to: Location, child: Expression, outer: "_Outer") -> Ref:
        """The child under a name at its new place."""
        match child:
            case Read(Ref(row=None) as ref):
                pass
            case _:
                ref = self._computed(child, outer, to)
        by, side = _spread_by(to, ref.variables), to.side if isinstance(to, Line) else None
        compared = _compared(to, ref.variables)
        key = (ref.name, by, side, compared)
        if self._is_new(key):
            self._make(key, Transfer(self._name(ref.name, "."), ref.name, by, side, compared))
        return replace(ref, name=self._made[key])

    def _computed(self, child: Expression, outer: "_Outer", to: Location) -> Ref:
        """The child as a sum of its own, by what is still asked for, or it is to be spread by."""
        refs = tuple(self._refs(child, outer))
        filters = outer.taken({v for ref in refs for v in ref.bound})
        bound = {*(v for ref in refs for v in ref.bound), *(f.variable for f in filters if isinstance(f, Assign))}
        asked = outer.asked(child.reads) | set(() if isinstance(to, Mark) else to.by)
        keys = tuple(sorted(bound & asked, key=lambda v: v.id))
        lanes = tuple(None if lane is None else () for lane in outer.statement.lanes)
        statement = Statement("", keys, refs, filters, lanes)
        key = _canonical(statement, self._written)
        if self._is_new(key):
            self._make(key, Compute(replace(statement, target=self._name("T")), _origin(child)))
        return Ref(self._made[key], keys, tuple(range(len(lanes))))

    def _is_new(self, key: object) -> bool:
        """Is nothing known by the key, or nothing to be shared?"""
        return not self._shared or key not in self._made

    def _name(self, stem: str, separator: str = "") -> str:
        """One that nothing has."""
        self._numbers[stem] += 1
        return f"{stem}{separator}{self._numbers[stem]}"

    def _make(self, key: object, step: Transfer | Compute) -> None:
        """Append a step, and know what it makes by the key, until something changes that this is made of."""
        self.append(step)
        (self._made[key],) = step.writes
        for name in self._behind[self._made[key]]:
            self._made_of.setdefault(name, []).append(key)


def _compared(to: Location, variables: tuple[Column, ...]) -> tuple[int, ...]:
    """The positions of the key by which there may be a grid. Raises Misplaced."""
    key = to.key if isinstance(to, Line) else ()
    if not set(key) <= set(variables):
        raise Misplaced("a move has summed away what is compared")
    return tuple(variables.index(v) for v in key)


def _spread_by(to: Location, variables: tuple[Column, ...]) -> tuple[int, ...] | Mark:
    """The positions of what tuples are spread by. To a row that is all they have: less what moves before it summed
    away."""
    match to:
        case Dist(by):
            return tuple(variables.index(v) for v in by)
        case Line(_, by):
            return tuple(variables.index(v) for v in by if v in variables)
    return to


@dataclass(slots=True)
class _Outer:
    """The statement that is taken apart: what of it is not done yet."""

    statement: Statement
    reads: tuple[Read, ...]
    pending: list[Factor]

    def taken(self, bound: set[Column]) -> tuple[Factor, ...]:
        """The filters that can be evaluated now; they are no longer pending."""
        out = []
        for f in list(self.pending):
            if f.reads <= bound:
                out.append(f)
                self.pending.remove(f)
                bound |= {f.variable} if isinstance(f, Assign) else set()
        return tuple(out)

    def asked(self, inner: tuple[Read, ...]) -> set[Column]:
        """The variables that something other than the inner reads asks for."""
        asked = {*self.statement.keys, *(c for lane in self.statement.lanes for f in lane or () for c in columns(f))}
        for f in self.pending:
            asked |= variables(f)
        others = list(self.reads)
        for read in inner:  # one each: the same may be read outside as well
            others.remove(read)
        return asked.union(*(read.ref.bound for read in others))


def live(steps: Iterable[Step], kept: Iterable[str]) -> tuple[Step, ...]:
    """Without what neither a view nor anything live reads."""
    wanted, out = set(kept), []
    for step in reversed(list(steps)):
        if step.writes & wanted:
            out.append(step)
            wanted |= step.reads
    return tuple(reversed(out))


def _origin(expression: Expression) -> Location:
    """Where the rows are that a sum adds up, though not all of a group."""
    while isinstance(expression, Sum):
        expression = expression.child
    return expression.at


Written = dict[tuple[int | None, ...], tuple[str, ...]]


def _canonical(statement: Statement, written: Written) -> object:
    """Equal for statements that are equal but for the names of their variables."""
    names: dict[int, Expr] = {}
    for v in (v for ref in statement.refs for v in ref.bound):
        names.setdefault(v.id, Column(len(names), "", v.type, v.nullable))
    for f in statement.filters:
        if isinstance(f, Assign):
            names.setdefault(f.variable.id, Column(len(names), "", f.variable.type, f.variable.nullable))
    rows = [
        (ref.row.relation, ref.row.before, [t for t, _ in ref.row.fields]) if ref.row else () for ref in statement.refs
    ]
    refs = tuple((ref.name, tuple(names[v.id] for v in ref.bound), ref.picks) for ref in statement.refs)
    keys = tuple(names[v.id] for v in statement.keys)
    # NB: filters are those of the program, which outlives what is known of them
    filters = (*map(id, statement.filters), None, *names)
    if filters not in written:
        written[filters] = tuple(repr(renamed(f, names)) for f in statement.filters)
    return refs, repr(rows), keys, written[filters], statement.lanes
