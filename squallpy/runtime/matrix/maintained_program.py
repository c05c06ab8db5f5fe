"""A matrix program kept fresh: its views, and a trigger for each input that changes.

    live = Live(maintain(program, ["A"], guess), {"A": values})     or its cells, in a SparseView
    live.update("A", u, v)          every kept view is as if A had been u·v + A from the beginning
    live.read("D")                  its values

An update whose trigger would take longer than the program itself is applied to the input alone, and the program is
evaluated anew (`reevaluated` counts it); where that is so of every update, no view is kept that only triggers would
read. So it is where Woodbury's formula meets a matrix that is almost singular, and where rounding has added up: every
CHECK updates each view is compared with what defines it, on a random vector, and evaluated anew where they differ by
more than DRIFT.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import InitVar, dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np

from squallpy.base.errors import SquallError
from squallpy.base.semirings import ARITHMETIC, BOOLEAN, COUNTING, MAX_PLUS, MIN_PLUS
from squallpy.maintain.matrix.dimensions import Sizes
from squallpy.maintain.matrix.drift_probe import probe
from squallpy.maintain.matrix.materialise import Maintained, Trigger
from squallpy.maintain.matrix.meta_information import NOTHING
from squallpy.maintain.matrix.nodes import Matrix, Name, Product, names
from squallpy.maintain.matrix.program import Statement
from squallpy.maintain.matrix.trigger_cost import evaluation_price, trigger_price
from squallpy.physical.matrix.passes import Pass, Work, passes, read_of
from squallpy.runtime.kernels.factors import compress
from squallpy.runtime.matrix.algebra import Read, SingularError, appended, depends, evaluate, padded
from squallpy.runtime.matrix.cells import Cells
from squallpy.runtime.matrix.drift import CHECK, DRIFT, drift
from squallpy.runtime.matrix.errors import beyond, overflow, singular
from squallpy.runtime.matrix.fused_boolean import Fused, fused
from squallpy.runtime.matrix.packed_boolean import Packed
from squallpy.runtime.matrix.packed_boolean import evaluate as in_bits
from squallpy.runtime.matrix.sparse import SparseView, is_sparse
from squallpy.runtime.matrix.views import Array, ArrayView, BitView, Factor, View, stored

_LOOK = 0.05  # of what an update costs: to look whether it has a lower rank
_FACTORED = 40.0  # what a cell of two factors takes for each of their columns to become orthogonal


Touched = dict[str, tuple[Array, Array]]  # views → which rows, which columns


@dataclass
class Counts:
    """What has been done so far."""

    updates: int = 0
    reevaluated: int = 0
    """Of these: by evaluating the program anew, because that was cheaper."""
    refreshed: int = 0
    """Of these: because rounding had added up, or a matrix was almost singular."""
    drift: float = 0.0
    """The largest relative difference seen."""


@dataclass
class Live:
    """The views of a program, fresh."""

    maintained: Maintained
    inputs: InitVar[Mapping[str, "Array | SparseView"]]
    strategy: str = "auto"
    """`auto` by cost; `incr` always triggers; `reeval` never."""
    counts: Counts = field(default_factory=Counts)

    def __post_init__(self, inputs: Mapping[str, Array | SparseView]) -> None:
        program = self.maintained.program
        self.ring, self.sizes = program.ring, bound(self.maintained, inputs)
        self._views: dict[str, View] = {}
        self._facts = self.maintained.anf.facts
        self._work: dict[str, tuple[Work, ...]] = {}
        self._probe = probe(self.maintained)
        self._touched: Touched | None = None
        self._done: list[Callable[[], object]] | None = None
        self._fused: dict[tuple[str, int], Fused | None] = {}
        self.singular: SingularError | None = None
        for i in program.inputs:
            self._views[i.name.name] = self._stored(i.name, inputs[i.name.name])
        self._priced()
        self._evaluate()

    def grow(self, sizes: Sizes) -> None:
        """Dimensions are now as large as `sizes` says: rows and columns of zeros are appended to the inputs."""
        with self._all_or_nothing():
            self._grow(sizes)

    def _grow(self, sizes: Sizes) -> None:
        grown = {symbol for symbol, size in sizes.items() if size > self.sizes[symbol]}
        assert all(size >= self.sizes[symbol] for symbol, size in sizes.items()), "matrices do not shrink"
        before, self.sizes = self.sizes, {**self.sizes, **sizes}
        self._touched = None
        self._priced()
        cheap = (
            self._kept == self.maintained.kept
            and not self._missing()
            and grown <= set(self.maintained.growing)
            and not self.singular
        )
        for name, view in self._views.items():
            if view.shape != self._shape(name) and (cheap or self.maintained.program.input(name)):
                if isinstance(view, SparseView) and view.sparse:
                    self._views[name] = view.grown(self._shape(name))
                    continue
                grown_values = padded(view.read(slice(None), slice(None)), self._shape(name), self.ring)
                self._views[name] = self._stored(self.maintained.named(name), grown_values)
        if not cheap:
            self.counts.reevaluated += 1
            self._evaluate()
            return
        for name, constant in self.maintained.anf.constants.items():
            if depends(constant, grown):
                change = appended(constant, before, self.sizes, self.ring)
                self._fire(self.maintained.triggers[name], *change)

    def read(self, name: str, rows: "slice | Array" = slice(None), cols: "slice | Array" = slice(None)) -> Array:
        """The values of an input or a kept view; SQ5011 where it depends on the inverse of a singular matrix."""
        if name not in self._views and self.singular:
            raise self.singular
        return self._views[name].read(rows, cols)

    def shape(self, name: str) -> tuple[int, int]:
        """The rows and columns of an input or a kept view."""
        return self._views[name].shape

    def has(self, name: str) -> bool:
        """Can it be read? Not what depends on the inverse of a singular matrix."""
        return name in self._views

    def at(self, name: str, rows: Array, cols: Array) -> Array:
        """Single entries of an input or a kept view; zero outside of it."""
        view = self._views[name]
        inside = (rows < view.shape[0]) & (cols < view.shape[1])
        out = np.full(len(rows), self.ring.zero, self.ring.dtype)
        if isinstance(view, SparseView):
            out[inside] = view.at(rows[inside], cols[inside])
            return out
        some, row_of = np.unique(rows[inside], return_inverse=True)
        out[inside] = view.read(some, slice(None))[row_of, cols[inside]]
        return out

    def cells(self, name: str) -> Cells | None:
        """Those of an input that is kept as its cells."""
        view = self._views[name]
        return view.cells() if isinstance(view, SparseView) and view.sparse else None

    @property
    def few(self) -> dict[str, int]:
        """The inputs that are kept as their cells, and how many these are."""
        views = {name: view for name, view in self._views.items() if isinstance(view, SparseView) and view.sparse}
        return {name: view.count for name, view in views.items()}

    @property
    def nbytes(self) -> int:
        """Bytes of all that is kept."""
        return sum(view.nbytes for view in self._views.values())

    def update(self, name: str, u: Array, v: Array) -> None:
        """The input `name` changes by u·v: u (n, k), v (k, m), in the numbers of the semiring."""
        trigger = self.maintained.triggers[name]
        u, v = self.checked(name, u), self.checked(name, v)
        self._fits(trigger, u, v)
        u, v = self._compressed(trigger, u, v)
        with self._all_or_nothing():
            self.counts.updates += 1
            if not u.shape[1]:
                return
            if self._few != self._sparse():
                self._priced()
            if self.singular or self._missing() or not self._worthwhile(trigger, u.shape[1]):
                self.counts.reevaluated += 1
                self._change(name, u, v)
                self._evaluate()
            elif not self._fire(trigger, u, v):
                self._refresh(name, u, v)
            elif self.counts.updates % CHECK == 0 and self.ring is ARITHMETIC:
                self._check()

    def add(self, changes: Mapping[str, Cells]) -> None:
        """Add to cells of several inputs: by their triggers, one after the other, or, where that is cheaper than all of
        these, by one evaluation."""
        with self._all_or_nothing():
            if self.singular or self._always_anew or self._dear(changes):
                self.counts.updates += len(changes)
                self.counts.reevaluated += len(changes)
                for name, cells in changes.items():
                    self._add_at(name, cells)
                self._evaluate()
                return
            for name, cells in changes.items():
                self.update(name, *self.factors(name, cells))

    def _dear(self, changes: Mapping[str, Cells]) -> bool:
        """Do triggers take longer than an evaluation?"""
        costs = (self._cost(self.maintained.triggers[name], cells.rank) for name, cells in changes.items())
        return self.strategy == "auto" and sum(costs) > self._anew

    def replace(self, changes: Mapping[str, Cells]) -> None:
        """Cells of inputs get other values, whatever they had; the program is evaluated anew."""
        with self._all_or_nothing():
            self.counts.updates += len(changes)
            self.counts.reevaluated += len(changes)
            for name, cells in changes.items():
                values = np.array(self._views[name].read(slice(None), slice(None)))
                values[cells.rows, cells.cols] = cells.values
                source = self.maintained.program.input(name)
                assert source
                self._views[name] = self._stored(source.name, values)
            self._evaluate()

    def factors(self, name: str, cells: Cells) -> tuple[Array, Array]:
        """A change of cells as u, v; SQ5001 where a count does not fit."""
        with self._all_or_nothing():
            try:
                return cells.factors(self._views[name].shape, self.ring)
            except OverflowError as error:
                raise beyond(self.maintained, name) from error

    @contextmanager
    def _all_or_nothing(self) -> Iterator[None]:
        """Where a count overflows inside, all that was done there is taken back: SQ5001."""
        if self.ring is not COUNTING or self._done is not None:
            yield
            return
        before, sizes, counts, self._done = dict(self._views), self.sizes, replace(self.counts), []
        try:
            yield
        except OverflowError as error:
            for take_back in reversed(self._done):
                take_back()
            self._views, self.sizes, self._touched = before, sizes, None
            self.counts = counts
            self._priced()
            raise overflow(error) from error
        finally:
            self._done = None

    def _change(self, view: str, u: Factor, v: Factor, xs: Sequence[Factor] = (), ys: Sequence[Factor] = ()) -> Any:
        """A pass over a view that can be taken back."""
        try:
            found = self._views[view].pass_over(u, v, xs, ys)
        except OverflowError as error:
            raise beyond(self.maintained, view) from error
        if self._done is not None and u is not None:
            self._done.append(partial(self._views[view].pass_over, -u, v, [], []))
        return found

    def _add_at(self, name: str, cells: Cells) -> None:
        try:
            self._views[name].add_at(cells.rows, cells.cols, cells.values)
        except OverflowError as error:
            raise beyond(self.maintained, name) from error
        if self._done is not None:
            self._done.append(partial(self._views[name].add_at, cells.rows, cells.cols, -cells.values))

    def _compressed(self, trigger: Trigger, u: Array, v: Array) -> tuple[Array, Array]:
        """The same change with fewer columns, if it has them, where looking costs little beside what they do."""
        rank = u.shape[1]
        looking, spent = _FACTORED * (u.shape[0] + v.shape[1]) * rank**2, min(self._cost(trigger, rank), self._anew)
        if self.ring is not ARITHMETIC or rank < 2 or looking > _LOOK * spent:
            return u, v
        left, right = compress(u, v.T)
        return (left, right.T) if left.shape[1] < rank else (u, v)

    def _refresh(self, name: str, u: Array, v: Array) -> None:
        self.counts.refreshed += 1
        self._views[name].pass_over(u, v, [], [])
        self._evaluate()

    def _worthwhile(self, trigger: Trigger, rank: int) -> bool:
        if self.strategy == "auto" and not self._always_anew:
            return self._cost(trigger, rank) <= self._anew
        return not self._always_anew

    def _cost(self, trigger: Trigger, rank: int) -> float:
        """What a trigger takes for an update of a rank."""
        case = (trigger.input.name, rank)
        if case not in self._costs:
            self._costs[case] = trigger_price(self.maintained, trigger, rank, self.sizes).total
        return self._costs[case]

    def _priced(self) -> None:
        """What things cost depends on dimensions and on which inputs are sparse, and so does what is kept: nothing for
        triggers that never pay."""
        views = {i.name.name: self._views[i.name.name] for i in self.maintained.program.inputs}
        dense = {name: view.density if isinstance(view, SparseView) else None for name, view in views.items()}
        known = {name: replace(self._facts.get(name, NOTHING), density=density) for name, density in dense.items()}
        self._few = self._sparse()
        self.maintained = replace(
            self.maintained, anf=replace(self.maintained.anf, facts={**self.maintained.anf.facts, **known})
        )
        self._costs: dict[tuple[str, int], float] = {}
        self._anew = evaluation_price(self.maintained, self.sizes).total
        of_inputs = (t for t in self.maintained.triggers.values() if self.maintained.program.input(t.input.name))
        pays = any(self._cost(trigger, 1) <= self._anew for trigger in of_inputs)
        self._always_anew = self.strategy == "reeval" or (self.strategy == "auto" and not pays)
        kept, outputs = self.maintained.kept, self.maintained.program.outputs
        self._kept = tuple(name for name in kept if name.name in outputs) if self._always_anew else kept

    def taken_touched(self) -> "Touched | None":
        """Of each view the rows and the columns in which it may have changed since the last time; None: all of all."""
        touched, self._touched = self._touched, {}
        return touched

    def _touch(self, view: str, u: Factor, v: Factor) -> None:
        if self._touched is not None:
            rows, cols = self._occupied(u), self._occupied(v.T)
            before = self._touched.get(view)
            self._touched[view] = (rows | before[0], cols | before[1]) if before else (rows, cols)

    def _fire(self, trigger: Trigger, u: Array, v: Array) -> bool:
        """Do the passes of a trigger; False, with nothing changed, where a small inverse cannot be told."""
        work = self._passes(trigger)
        pair = (Packed.of(u), Packed.of(v)) if self.ring is BOOLEAN else (u, v)
        if self.ring is BOOLEAN and (whole := self._whole(trigger, work, u.shape[1])):
            lines = whole.fire(self._views, *pair)
            if self._touched is not None:
                for change in whole.changes(self._views, lines):
                    self._touch(*change)
            return True
        values: dict[str, Factor] = dict(zip((trigger.u.name, trigger.v.name), pair, strict=True))
        sizes = {**self.sizes, trigger.u.cols.symbols[0][0]: u.shape[1]}

        def read(name: str) -> Factor:
            return values[name] if name in values else self._views[name].whole()

        updated: list[Pass] = []
        for item in work:
            if isinstance(item, Pass):
                updated.append(item)
                self._pass(item, read, values, sizes)
                if self._ends(item, trigger, values):
                    return True
                continue
            try:
                values[item.name.name] = self._value(item.value, read, sizes)
            except OverflowError as error:
                raise beyond(self.maintained, trigger.updates[-1].view.name) from error
            except SingularError:
                self._undo(updated, read, sizes)
                return False
        return True

    def _passes(self, trigger: Trigger) -> tuple[Work, ...]:
        """A trigger's visits to views, in an order that is found when it is first fired: many never are."""
        name = trigger.input.name
        if name not in self._work:
            self._work[name] = passes(trigger, self.maintained.matrices)
        return self._work[name]

    def _whole(self, trigger: Trigger, work: tuple[Work, ...], rank: int) -> Fused | None:
        """A Boolean trigger as one kernel, if it can be one."""
        case = (trigger.input.name, rank)
        if case not in self._fused:
            self._fused[case] = fused(trigger, work, rank)
        return self._fused[case]

    def _occupied(self, factor: Factor) -> Array:
        """The rows of a factor in which there is anything."""
        if isinstance(factor, Packed):
            return factor.occupied()
        occupied: Array = (factor != self.ring.zero).any(axis=1)
        return occupied

    def _ends(self, item: Pass, trigger: Trigger, values: Mapping[str, Factor]) -> bool:
        """Whether the input has not changed, where all else follows from what is left of the update."""
        if item.view != trigger.input or not item.update or not item.update.left:
            return False
        return not self._occupied(values[item.update.left[0].name]).any()

    def _value(self, matrix: Matrix, read: Callable[[str], Factor], sizes: Sizes) -> Factor:
        """What a step of a trigger computes."""
        if isinstance(matrix, Name):
            return read(matrix.name)
        return in_bits(matrix, read, sizes) if self.ring is BOOLEAN else evaluate(matrix, read, sizes, self.ring)

    def _pass(self, item: Pass, read: Callable[[str], Factor], values: dict[str, Factor], sizes: Sizes) -> None:
        """One visit: all products, then the update."""
        view, update, u, v = item.view.name, item.update, None, None
        by = [[self._value(r.by, read, sizes) for r in reads] for reads in (item.straight, item.across)]
        if update:
            u, v = self._value(update.u, read, sizes), self._value(update.v, read, sizes)
        if update and update.left:
            *found, u, v = self._views[view].pruned(u, v, *by)
            values[update.left[0].name], values[update.left[1].name] = u, v
            self._touch(view, u, v)
        else:
            if update:
                self._touch(view, u, v)
            found = self._change(view, u, v, *by)
        for reads, arrays in zip((item.straight, item.across), found, strict=True):
            for r, array in zip(reads, arrays, strict=True):
                values[r.name.name] = array.T if r.turned else array

    def _undo(self, done: list[Pass], read: Read, sizes: Sizes) -> None:
        for item in done:
            if item.update:
                u, v = (evaluate(half, read, sizes, self.ring) for half in (item.update.u, item.update.v))
                self._views[item.view.name].pass_over(-u, v, [], [])

    def _evaluate(self) -> None:
        """Evaluate the program, and keep what is to be kept."""
        anf, values = self.maintained.anf, dict[str, Factor]()
        kept = {name.name for name in self._kept}
        last = {name: at for at, d in enumerate(anf.definitions) for name in names(d.value)}

        def read(name: str) -> Factor:
            return values[name] if name in values else self._views[name].whole()

        self.singular = self._touched = None
        missing: set[str] = set()  # what depends on an inverse that there is not
        old = {name.name: self._views.pop(name.name) for name in self.maintained.kept if name.name in self._views}
        for name, constant in anf.constants.items():
            values[name] = self._value(constant, read, self.sizes)
            if name in kept:
                self._views[name] = self._stored(anf.source(name), values[name])
        for at, definition in enumerate(anf.definitions):
            try:
                if missing and names(definition.value) & missing:
                    missing.add(definition.name.name)
                elif definition.name.name in kept:
                    there = old.pop(definition.name.name, None)
                    self._views[definition.name.name] = self._viewed(definition, read, there)
                else:
                    values[definition.name.name] = self._evaluated(definition, read)
            except SingularError:
                self.singular = self.singular or singular(self.maintained, definition.value)
                missing.add(definition.name.name)
            for used in [name for name in values if last.get(name) == at]:
                del values[used]

    def _missing(self) -> bool:
        """Are there views that are only from now on worth to be kept?"""
        return any(name.name not in self._views for name in self._kept)

    def _sparse(self) -> set[str]:
        """The inputs that are kept as their cells."""
        return set(self.few)

    def _evaluated(self, definition: Statement, read: Callable[[str], Factor]) -> Factor:
        if self._few and (found := read_of(definition, self._sparse())):
            view, of = found
            by = self._value(of.by, read, self.sizes)
            straight, across = self._views[view.name].pass_over(
                None, None, *(([], [by]) if of.transposed else ([by], []))
            )
            (values,) = straight or across
            return values.T if of.turned else values
        try:
            return self._value(definition.value, read, self.sizes)
        except OverflowError as error:
            raise beyond(self.maintained, definition.name.name) from error

    def _shape(self, name: str) -> tuple[int, int]:
        named = self.maintained.named(name)
        return named.rows.at(self.sizes), named.cols.at(self.sizes)

    def _stored(self, name: Name, values: Factor) -> View:
        if isinstance(values, SparseView):
            return values
        known = self._facts.get(name.name, NOTHING)
        if self.maintained.program.input(name.name) and is_sparse(values, self.ring):
            return SparseView.of(values, self.ring)
        if isinstance(values, Packed):
            return BitView(values.rows.copy(), values.shape[1], known.symmetric)
        return stored(np.asarray(values, self.ring.dtype), self.ring, known.symmetric)

    def _viewed(self, definition: Statement, read: Callable[[str], Factor], there: View | None) -> View:
        """The view of a definition, in the memory of the one that was there if it can be."""
        value, named = definition.value, definition.name
        shape = named.rows.at(self.sizes), named.cols.at(self.sizes)
        if self.ring is not ARITHMETIC or not isinstance(there, ArrayView) or there.shape != shape:
            return self._stored(named, self._evaluated(definition, read))
        if isinstance(value, Product) and not (self._few and names(value) & self._sparse()):
            left, right = (self._value(factor, read, self.sizes) for factor in value.factors)
            np.matmul(left, right, out=there.room())
        else:
            there.assign(self._evaluated(definition, read))
        return there

    def _check(self) -> None:
        """Compare each view with what defines it, on a vector, and evaluate all anew where they differ."""
        self.counts.drift = max(self.counts.drift, seen := self.drift())
        if not seen < DRIFT:
            self.counts.refreshed += 1
            self._evaluate()

    def drift(self) -> float:
        """The largest relative difference between a view and what defines it, on a random vector."""
        if self._always_anew or self.singular:
            return 0.0
        return drift(self._probe, self._views, self.sizes, self.counts.updates)

    def checked(self, name: str, factor: Array) -> Array:
        """A factor in the numbers of the semiring; SQ5012 for what is none of them."""
        array = np.asarray(factor, self.ring.dtype)
        if array.ndim != 2:
            raise SquallError("SQ2011", f"a factor of {name} has {array.ndim} dimensions", hint="give it 2")
        if self.ring is not BOOLEAN and array.dtype.kind == "f":
            allowed = self.ring.zero if self.ring in (MIN_PLUS, MAX_PLUS) else None
            wrong = ~np.isfinite(array)
            if allowed is not None:
                wrong &= array != allowed
            if wrong.any():
                raise SquallError("SQ5012", f"{array[wrong][0]} is no entry of the matrix {name}")
        return array

    def _fits(self, trigger: Trigger, u: Array, v: Array) -> None:
        rows, cols = self._views[trigger.input.name].shape
        if u.shape != (rows, u.shape[1]) or v.shape != (u.shape[1], cols):
            told = f"{u.shape[0]} × {u.shape[1]} times {v.shape[0]} × {v.shape[1]} is no change of {trigger.input}"
            raise SquallError("SQ2011", told, hint=f"it is {rows} × {cols}")
        if u.shape[1] > max(rows, 1):
            told = f"a change of {trigger.input} of rank {u.shape[1]}, which has {rows} rows"
            raise SquallError("SQ2011", told, hint="multiply the factors and give the rows")


def bound(maintained: Maintained, inputs: Mapping[str, Array | SparseView]) -> dict[str, int]:
    """The symbols of a program's dimensions as the shapes of its inputs have them; SQ2011 where they disagree."""
    sizes: dict[str, int] = {}
    for i in maintained.program.inputs:
        if i.name.name not in inputs:
            raise SquallError("SQ2012", f"no values for the matrix {i.name}")
        for size, extent in zip((i.name.rows, i.name.cols), inputs[i.name.name].shape, strict=True):
            if len(size.symbols) == 1 and size.symbols[0][1] == 1:
                sizes.setdefault(size.symbols[0][0], extent - size.constant)
            if set(dict(size.symbols)) <= set(sizes) and size.at(sizes) != extent:
                told = (
                    f"{i.name} is {' × '.join(map(str, inputs[i.name.name].shape))}, where {size} is {size.at(sizes)}"
                )
                raise SquallError("SQ2011", told)
    return sizes
