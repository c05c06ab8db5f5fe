"""A maintained matrix program: its views, and a trigger for each input that changes.

    program = MaintainedProgram(maintain(program, ["A"], guess), {"A": values})     or its cells, in a SparseView
    program.update("A", u, v)        every kept view is as if A had been u·v + A from the beginning
    program.read("D")                its values

`maintenance_choice` says whether triggers apply an update or the program is evaluated anew. It is also
evaluated where Woodbury's formula meets a matrix that is almost singular, and where rounding has added up: every CHECK
updates each view is compared with its definition, on a random vector.
"""

from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace

import numpy as np

from squallpy.base.errors import SquallError
from squallpy.base.records import dataclass
from squallpy.base.semirings import ARITHMETIC, BOOLEAN, COUNTING, MAX_PLUS, MIN_PLUS
from squallpy.maintain.matrix.dimensions import Sizes
from squallpy.maintain.matrix.drift_probe import write_probe
from squallpy.maintain.matrix.materialise import IncrementalProgram, MatrixTrigger
from squallpy.maintain.matrix.meta_information import NOTHING
from squallpy.runtime.kernels.matrix.factored_updates import compress
from squallpy.runtime.matrix.affected_cells import Touched
from squallpy.runtime.matrix.algebra import depends_on, factor_growth
from squallpy.runtime.matrix.cells import Cells
from squallpy.runtime.matrix.drift import CHECK, DRIFT, measure_drift
from squallpy.runtime.matrix.errors import NamingOverflow
from squallpy.runtime.matrix.iterations import UndefinedError
from squallpy.runtime.matrix.maintenance_choice import Prices, factor_for, rank_of, reason_to_evaluate
from squallpy.runtime.matrix.program_views import ProgramViews
from squallpy.runtime.matrix.reevaluation import Evaluation
from squallpy.runtime.matrix.sparse_view import SparseView
from squallpy.runtime.matrix.stored_views import Array
from squallpy.runtime.matrix.trigger_execution import Triggers

_LOOK = 0.05  # of an update's cost: what looking for a lower rank may take
_FACTORED = 40.0  # cost of a cell of two factors for each of their columns, to make these orthogonal


@dataclass
class UpdateCounts:
    """Numbers of updates, by the way in which they were applied."""

    updates: int = 0
    reevaluated: int = 0
    """Updates after which the program was evaluated anew, because that was decided."""
    refreshed: int = 0
    """Updates after which it was, because rounding had added up or a matrix was almost singular."""
    drift: float = 0.0
    """The largest relative difference seen."""


class MaintainedProgram:
    """The views of a program, fresh after every update.

    Args:
        strategy: `auto` by cost; `incr` always triggers; `reeval` never.
    """

    def __init__(
        self, maintained: IncrementalProgram, inputs: Mapping[str, Array | SparseView], strategy: str = "auto"
    ) -> None:
        self.maintained, self.ring, self.counts = maintained, maintained.program.ring, UpdateCounts()
        self.singular: UndefinedError | None = None
        self._strategy, self._probe = strategy, write_probe(maintained)
        self.views = ProgramViews(maintained, inputs)
        self._triggers, self._evaluation = Triggers(self.views), Evaluation(self.views)
        self._price()
        self._evaluate()

    def read(self, name: str, rows: "slice | Array" = slice(None), cols: "slice | Array" = slice(None)) -> Array:
        """Return the values of an input or a kept view; SQ5011, SQ5016 if it depends on what has no value."""
        if name not in self.views and self.singular:
            raise self.singular
        return self.views[name].read(rows, cols)

    def take_touched(self) -> Touched | None:
        """Return the rows and columns of views that may have changed since the last call; None: any of them."""
        touched, self.views.touched = self.views.touched, {}
        return touched

    def grow(self, sizes: Sizes) -> None:
        """Append rows and columns of zeros to the inputs, up to these dimensions."""
        before, views = self.views.sizes, self.views
        grown = {symbol for symbol, size in sizes.items() if size > before[symbol]}
        assert all(size >= before[symbol] for symbol, size in sizes.items()), "matrices do not shrink"
        with self._transaction():
            views.sizes, views.touched = {**before, **sizes}, None
            self._price()
            why = self._reason({}, grown)
            for name in [i.name.name for i in self.maintained.program.inputs] if why else list(views.by_name):
                views.grow(name)
            if why:
                self.counts.reevaluated += 1
                self._evaluate()
                return
            for name, constant in self.maintained.anf.constants.items():
                if not depends_on(constant, grown):
                    continue
                trigger = self.maintained.triggers[name]
                change = factor_for(trigger, *factor_growth(constant, before, views.sizes, self.ring), self.ring)
                if trigger.by_rows and self._reason({name: change[0].shape[1]}):
                    self.counts.reevaluated += 1
                    self._evaluate()
                    return
                if self._fire(trigger, *change):
                    return  # the evaluation has made all constants

    def update(self, name: str, u: Array, v: Array) -> str:
        """Add u·v to an input: u (n, k), v (k, m), in the numbers of the semiring.

        Returns why the program was evaluated anew, "" if it was not.
        """
        trigger = self.maintained.triggers[name]
        u, v = self.checked(name, u), self.checked(name, v)
        self._check_shapes(trigger, u, v)
        if trigger.by_rows:
            u, v = factor_for(trigger, u, v, self.ring)
        else:
            u, v = self._compressed(trigger, u, v)
        with self._transaction():
            self.counts.updates += 1
            if not u.shape[1]:
                return ""
            if self._priced_sparse != self.views.sparse.keys():
                self._price()
            if why := self._reason({name: u.shape[1]}):
                self.counts.reevaluated += 1
                self.views.visit(name, u, v)
                self._evaluate()
                return why
            return self._fire(trigger, u, v) or self._refreshed_if_drifted()

    def add(self, changes: Mapping[str, Cells]) -> str:
        """Add to cells of several inputs, by their triggers one after the other or by one evaluation.

        Returns why the program was evaluated anew, "" if it was not.
        """
        with self._transaction():
            ranks = {name: rank_of(self.maintained, name, cells) for name, cells in changes.items()}
            if why := self._reason(ranks):
                self.counts.updates += len(changes)
                self.counts.reevaluated += len(changes)
                for name, cells in changes.items():
                    self.views.add_at(name, cells)
                self._evaluate()
                return why
            reasons = [self.update(name, *self.factors(name, cells)) for name, cells in changes.items()]
            return next(filter(None, reasons), "")

    def replace(self, changes: Mapping[str, Cells]) -> str:
        """Give cells of inputs other values and evaluate the program anew; returns why."""
        with self._transaction():
            self.counts.updates += len(changes)
            self.counts.reevaluated += len(changes)
            for name, cells in changes.items():
                values = np.array(self.views[name].read(slice(None), slice(None)))
                values[cells.rows, cells.cols] = cells.values
                self.views.store(self.maintained.find_matrix(name), values)
            self._evaluate()
            return reason_to_evaluate(self._prices, {}, takes_away=True)

    def factors(self, name: str, cells: Cells) -> tuple[Array, Array]:
        """Factor a change of cells into u, v; SQ5001 where a count does not fit."""
        with self._transaction(), NamingOverflow(self.maintained, name):
            return cells.factors(self.views[name].shape, self.ring)

    def drift(self) -> float:
        """Compute the largest relative difference between a view and its definition, on a random vector."""
        if not self._has_views or self.singular:
            return 0.0
        return measure_drift(self._probe, self.views.by_name, self.views.sizes, self.counts.updates)

    def checked(self, name: str, factor: Array) -> Array:
        """Convert a factor to numbers of the semiring; SQ5012 for others."""
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

    def _check_shapes(self, trigger: MatrixTrigger, u: Array, v: Array) -> None:
        rows, cols = self.views[trigger.input.name].shape
        if u.shape != (rows, u.shape[1]) or v.shape != (u.shape[1], cols):
            message = f"{u.shape[0]} × {u.shape[1]} times {v.shape[0]} × {v.shape[1]} is no change of {trigger.input}"
            raise SquallError("SQ2011", message, hint=f"it is {rows} × {cols}")
        if u.shape[1] > max(rows, 1):
            message = f"a change of {trigger.input} of rank {u.shape[1]}, which has {rows} rows"
            raise SquallError("SQ2011", message, hint="multiply the factors and give the rows")

    def _compressed(self, trigger: MatrixTrigger, u: Array, v: Array) -> tuple[Array, Array]:
        """Factor a change into fewer columns, if it has them, where looking costs little beside the update."""
        rank, prices = u.shape[1], self._prices
        looking = _FACTORED * (u.shape[0] + v.shape[1]) * rank**2
        if self.ring is not ARITHMETIC or rank < 2:
            return u, v
        if looking > _LOOK * min(prices.of_trigger(trigger.input.name, rank), prices.evaluation):
            return u, v
        left, right = compress(u, v.T)
        return (left, right.T) if left.shape[1] < rank else (u, v)

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        """Take back all that is done inside if a count overflows; SQ5001."""
        if self.ring is not COUNTING:
            yield
            return
        counts, restore_views = replace(self.counts), self.views.snapshot()

        def restore() -> None:
            restore_views()
            self.counts = counts
            self._price()

        with self.views.undo.transaction(restore):
            yield

    def _price(self) -> None:
        """Compute the costs of triggers and of evaluation at the present dimensions and densities."""
        facts, sparse = self.maintained.anf.facts, self.views.sparse
        densities = {name: view.density for name, view in sparse.items()}
        inputs = [i.name.name for i in self.maintained.program.inputs]
        known = {name: replace(facts.get(name, NOTHING), density=densities.get(name)) for name in inputs}
        priced = replace(self.maintained, anf=replace(self.maintained.anf, facts={**facts, **known}))
        self._priced_sparse = set(sparse)
        self._prices = Prices(priced, self.views.sizes, self._strategy)

    @property
    def _has_views(self) -> bool:
        """True if all views are stored that triggers read; some may be missing where triggers have never paid."""
        return self._prices.keeps_all and self.views.by_name.keys() >= self._prices.kept_names

    def _reason(self, ranks: Mapping[str, int], grown: Collection[str] = ()) -> str:
        return reason_to_evaluate(
            self._prices, ranks, grown=grown, is_singular=self.singular is not None, has_views=self._has_views
        )

    def _fire(self, trigger: MatrixTrigger, u: Array, v: Array) -> str:
        if why := self._triggers.fire(trigger, u, v):
            self.counts.refreshed += 1
            self._evaluate()
        return why

    def _refreshed_if_drifted(self) -> str:
        if self.counts.updates % CHECK or self.ring is not ARITHMETIC:
            return ""
        self.counts.drift = max(self.counts.drift, seen := self.drift())
        if seen < DRIFT:
            return ""
        self.counts.refreshed += 1
        self._evaluate()
        return "rounding had added up"

    def _evaluate(self) -> None:
        self.singular = self._evaluation.run(self._prices.kept)
