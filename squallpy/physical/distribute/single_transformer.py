"""Single transformer form: each statement either moves one named relation or computes at one location (§4.3.2).

    Q(b) += Sum_[b](Repart_[b](Repart_[a](ΔO(a, b)) ⋈ C(a)) ⋈ L(b))

    ΔO.1      := Repart_[a](ΔO(a, b))
    T1(b)     := Sum_[b](ΔO.1(a, b) ⋈ C(a))
    T1.1      := Repart_[b](T1(b))
    Q(b)      += Sum_[b](T1.1(b) ⋈ L(b))

Equal moves are one, equal subexpressions are computed once, and steps whose outcome nobody reads are removed.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import field, replace
from types import MappingProxyType

from squallpy.base.records import dataclass
from squallpy.logical.expressions import Column, Expr, columns, substitute
from squallpy.physical.distribute.location_tags import (
    EVERYWHERE,
    Dist,
    HypercubeCells,
    Join,
    Line,
    LocatedExpression,
    Location,
    Mark,
    Move,
    PlacementError,
    Read,
    Sum,
)
from squallpy.program.auxiliary.divided_rows import DividedRows
from squallpy.program.calculus import Assign, Factor, Lane, rename_factor, variables
from squallpy.program.trigger_program import Statement
from squallpy.program.views import Ref, View


@dataclass(frozen=True, slots=True)
class Transfer:
    """A move of what `source` holds of this batch, named `name`; `workers` as those of Dist.

    Args:
        cells: Dimensions of a hypercube, each with the positions of the keys that are hashed there.
    """

    name: str
    source: str
    keys: tuple[int, ...] | Mark
    side: Mark | None = None
    key: tuple[int, ...] = ()
    workers: int | None = None
    cells: tuple[tuple[int, tuple[int, ...]], ...] = ()
    reads: frozenset[str] = field(init=False, repr=False, compare=False)
    writes: frozenset[str] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        _set_accesses(self, (self.source,), (self.name,))

    @property
    def moves(self) -> bool:
        return True


@dataclass(frozen=True, slots=True)
class Compute:
    """A statement whose views and deltas meet at one location.

    Args:
        keep: Every worker computes the whole outcome and keeps its own part, by the hash of these keys.
        workers: The workers that keep parts, as those of Dist.
    """

    statement: Statement
    at: Location
    keep: tuple[int, ...] | None = None
    workers: int | None = None
    reads: frozenset[str] = field(init=False, repr=False, compare=False)
    writes: frozenset[str] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        _set_accesses(self, (ref.name for ref in self.statement.refs), (self.statement.target,))

    @property
    def moves(self) -> bool:
        return False


@dataclass(frozen=True, slots=True)
class Derivation:
    """The change of an auxiliary relation's rows, from the groups of its view that the batch touched.

    Args:
        is_alone: On one node.
        divided: Each node makes a part of the rows.
    """

    relation: str
    source: str
    deltas: tuple[str, ...]
    context: tuple[str, ...] = ()
    is_alone: bool = False
    divided: DividedRows | None = None
    reads: frozenset[str] = field(init=False, repr=False, compare=False)
    writes: frozenset[str] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        _set_accesses(self, (self.source, *self.context), self.deltas)

    @property
    def moves(self) -> bool:
        return False


DistributedStep = Transfer | Compute | Derivation
RowDeltas = Mapping[str, tuple[View, View]]
"""Deltas that travel as rows, by name: the delta, and that of its rows, whose keys begin with its own."""


def _set_accesses(step: DistributedStep, reads: Iterable[str], writes: Iterable[str]) -> None:
    """Cache the names that a step reads and writes, which fusion reads again and again."""
    object.__setattr__(step, "reads", frozenset(reads))
    object.__setattr__(step, "writes", frozenset(writes))


class SingleTransformer:
    """A sequence of statements in single transformer form.

    Args:
        written: A cache of the filters' canonical texts.
        rows: The deltas that travel as rows.
    """

    def __init__(
        self, shared: bool = True, written: "Written | None" = None, rows: RowDeltas = MappingProxyType({})
    ) -> None:
        self.steps: list[DistributedStep] = []
        self.moves = 0  # of these steps
        self._shared, self._written, self._rows = shared, {} if written is None else written, rows
        self._shared_names: dict[object, str] = {}
        self._dependencies: dict[str, frozenset[str]] = {}  # all names that a name was made from
        self._dependents: dict[str, list[object]] = {}  # the other way round, as keys of `_made`
        self._numbers: Counter[str] = Counter()

    def add(self, statement: Statement, expression: LocatedExpression) -> None:
        """Add a statement whose right-hand side is evaluated as the expression says."""
        keep, workers = None, None
        reads = tuple(expression.reads)
        outer = _Outer(statement, reads, list(statement.filters), list(statement.lanes))
        if isinstance(expression, Move) and expression.is_free and isinstance(expression.to, Dist):
            keep, workers = _positions(expression.to.keys, statement.keys), expression.to.workers
            expression = expression.child
        if expression.stays:
            refs = tuple(read.ref for read in reads)
        else:
            refs = tuple(self._refs(expression, outer))
        target, filters, lanes = statement.target, tuple(outer.pending), tuple(outer.lanes)
        rest = Statement(target, statement.keys, refs, filters, lanes)
        self.append(Compute(rest, _origin(expression), keep, workers))
        for key in self._dependents.pop(target, ()):  # NB: outdated, as the target has changed
            self._shared_names.pop(key, None)

    def append(self, step: DistributedStep) -> None:
        """Append a step unchanged."""
        behind = step.reads.union(*(self._dependencies.get(name, frozenset()) for name in step.reads))
        self._dependencies |= dict.fromkeys(step.writes, behind)
        self.steps.append(step)
        self.moves += step.moves

    def _refs(self, expression: LocatedExpression, outer: "_Outer") -> Iterator[Ref]:
        """List the references that the expression joins, all at its location."""
        waiting = [expression]
        while waiting:
            match waiting.pop():
                case Read(ref):
                    yield ref
                case Join(left, right):
                    waiting += (right, left)
                case Sum(_, child):
                    waiting.append(child)
                case Move(to, child):
                    yield self._move(to, child, outer)

    def _move(self, to: Location, child: LocatedExpression, outer: "_Outer") -> Ref:
        """Name the child at its new location. Raises PlacementError."""
        if child.at is EVERYWHERE:
            raise PlacementError("each node would send its copy")
        match child:
            case Read(Ref(row=None) as ref):
                pass
            case _:
                ref = self._compute(child, outer, to)
        by, side = _spread_by(to, ref.variables), to.side if isinstance(to, Line) else None
        grid_key, workers = _grid_key(to, ref.variables), to.workers if isinstance(to, Dist) else None
        cells = _cells(to, ref.variables)
        key = (ref.name, by, side, grid_key, workers, cells)
        if self._is_new(key):
            name = self._name(ref.name, ".")
            if side is None and not cells and ref.name in self._rows:
                self._make(key, self._move_rows(*self._rows[ref.name], name, by, to))
            else:
                self._make(key, Transfer(name, ref.name, by, side, grid_key, workers, cells))
        return replace(ref, name=self._shared_names[key])

    def _move_rows(self, delta: View, rows: View, name: str, by: tuple[int, ...] | Mark, to: Location) -> Compute:
        """Move the rows of a delta, and make the delta of them."""
        workers = to.workers if isinstance(to, Dist) else None
        ((term,), moved) = delta.terms, Transfer(self._name(rows.name, "."), rows.name, by, workers=workers)
        self.append(moved)
        ref = Ref(moved.name, rows.keys, (0,) * len(term.lanes))
        return Compute(Statement(name, delta.keys, (ref,), (), term.lanes), to)

    def _compute(self, child: LocatedExpression, outer: "_Outer", to: Location) -> Ref:
        """Name the child as a sum of its own, by the variables needed outside or by the move."""
        refs = tuple(self._refs(child, outer))
        filters = outer.take_filters({v for ref in refs for v in ref.bound_variables})
        bound = {
            *(v for ref in refs for v in ref.bound_variables),
            *(f.variable for f in filters if isinstance(f, Assign)),
        }
        needed_outside = outer.needed_outside(tuple(child.reads)) | set(() if isinstance(to, Mark) else to.keys)
        lanes = outer.take_factors(bound, needed_outside)
        needed_outside |= {v for lane in outer.lanes for factor in lane or () for v in columns(factor)}
        keys = tuple(sorted(bound & needed_outside, key=lambda v: v.id))
        statement = Statement("", keys, refs, filters, lanes)
        key = _canonical(statement, self._written)
        if self._is_new(key):
            self._make(key, Compute(replace(statement, target=self._name("T")), _origin(child)))
        return Ref(self._shared_names[key], keys, tuple(range(len(lanes))))

    def _is_new(self, key: object) -> bool:
        """True if no step with this key can be shared."""
        return not self._shared or key not in self._shared_names

    def _name(self, stem: str, separator: str = "") -> str:
        """Generate an unused name."""
        self._numbers[stem] += 1
        return f"{stem}{separator}{self._numbers[stem]}"

    def _make(self, key: object, step: Transfer | Compute) -> None:
        """Append a step and share its outcome under the key, until something it depends on changes."""
        self.append(step)
        (self._shared_names[key],) = step.writes
        for name in self._dependencies[self._shared_names[key]]:
            self._dependents.setdefault(name, []).append(key)


def _grid_key(to: Location, variables: tuple[Column, ...]) -> tuple[int, ...]:
    """List the positions of the key by which there may be grids. Raises PlacementError."""
    key = to.key if isinstance(to, Line) else ()
    if not set(key) <= set(variables):
        raise PlacementError("a move has summed away the join key")
    return tuple(variables.index(v) for v in key)


def _cells(to: Location, variables: tuple[Column, ...]) -> tuple[tuple[int, tuple[int, ...]], ...]:
    """List the dimensions of a hypercube with the positions of the variables that are hashed there."""
    if not isinstance(to, HypercubeCells):
        return ()
    return tuple((dimension, _positions(by, variables)) for dimension, by in zip(to.dimensions, to.hashed, strict=True))


def _spread_by(to: Location, variables: tuple[Column, ...]) -> tuple[int, ...] | Mark:
    """List the positions of the hashed variables that are left; earlier moves may have summed some away."""
    if isinstance(to, Mark):
        return to
    left = set(variables) if isinstance(to, Line) else set(to.keys)
    return _positions((v for v in to.keys if v in left), variables)


def _positions(some: Iterable[Column], variables: tuple[Column, ...]) -> tuple[int, ...]:
    """List the positions of some of the variables."""
    positions = {v: position for position, v in enumerate(variables)}
    return tuple(positions[v] for v in some)


@dataclass(slots=True)
class _Outer:
    """A statement being split, with the filters and the factors of lanes that are left of it."""

    statement: Statement
    reads: tuple[Read, ...]
    pending: list[Factor]
    lanes: list[Lane | None]

    def take_filters(self, bound: set[Column]) -> tuple[Factor, ...]:
        """Take the filters that can be evaluated from the bound variables."""
        out = []
        for f in list(self.pending):
            if f.reads <= bound:
                out.append(f)
                self.pending.remove(f)
                bound |= {f.variable} if isinstance(f, Assign) else set()
        return tuple(out)

    def take_factors(self, bound: set[Column], needed_outside: set[Column]) -> tuple[Lane | None, ...]:
        """Take the factors of bound variables that nothing else outside needs, so that these are summed away.

        T(a, x)⟨1⟩, x in ⟨LIFT(x, 0)⟩ outside   →   T(a)⟨LIFT(x, 0)⟩
        """
        taken = list[Lane | None]()
        for i, lane in enumerate(self.lanes):
            inner = tuple(f for f in lane or () if (read := columns(f)) <= bound and not read <= needed_outside)
            self.lanes[i] = None if lane is None else tuple(f for f in lane if f not in inner)
            taken.append(None if lane is None else inner)
        return tuple(taken)

    def needed_outside(self, inner: tuple[Read, ...]) -> set[Column]:
        """Collect the variables that keys, filters, and reads outside these inner ones have."""
        needed_outside = set(self.statement.keys)
        for f in self.pending:
            needed_outside |= variables(f)
        others = list(self.reads)
        for read in inner:  # NB: one occurrence each, as the same may be read outside
            others.remove(read)
        return needed_outside.union(*(read.ref.bound_variables for read in others))


def remove_dead_steps(steps: Iterable[DistributedStep], outputs: Iterable[str]) -> tuple[DistributedStep, ...]:
    """Remove steps whose outcome neither a view nor a live step reads."""
    needed, out = set(outputs), []
    for step in reversed(list(steps)):
        if step.writes & needed:
            out.append(step)
            needed |= step.reads
    return tuple(reversed(out))


def _origin(expression: LocatedExpression) -> Location:
    """Find the location of the rows that a sum adds up, possibly parts of groups."""
    while isinstance(expression, Sum):
        expression = expression.child
    return expression.at


Written = dict[tuple[int | None, ...], tuple[Factor, ...]]


def _canonical(statement: Statement, written: Written) -> object:
    """Build a key equal for statements that differ only in the names of variables."""
    names: dict[int, Expr] = {}
    for v in (v for ref in statement.refs for v in ref.bound_variables):
        names.setdefault(v.id, Column(len(names), "", v.type, v.nullable))
    for f in statement.filters:
        if isinstance(f, Assign):
            names.setdefault(f.variable.id, Column(len(names), "", f.variable.type, f.variable.nullable))
    rows = tuple(
        (ref.row.relation, ref.row.is_before, *(title for title, _ in ref.row.fields)) if ref.row else ()
        for ref in statement.refs
    )
    refs = tuple((ref.name, tuple(names[v.id] for v in ref.bound_variables), ref.picks) for ref in statement.refs)
    lanes = tuple(None if lane is None else tuple(substitute(f, names) for f in lane) for lane in statement.lanes)
    keys = tuple(names[v.id] for v in statement.keys)
    # NB: identified by id, as the program outlives this cache
    filters = (*map(id, statement.filters), None, *names)
    if filters not in written:
        written[filters] = tuple(rename_factor(f, names) for f in statement.filters)
    return refs, rows, keys, written[filters], lanes
