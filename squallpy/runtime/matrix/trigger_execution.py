"""Triggers at work over stored views: visits in the order of `view_passes`, and what is computed between them.

    pass A: t0 := A * uA, t2 := A' * vA', A += uA * vA      views.visit("A", uA, vA, [uA], [vA'])
    UB := [uA, t0]                                          a value
    pass B: …

A Boolean trigger is one kernel, if it can be one.
"""

from squallpy.base.semirings import BOOLEAN
from squallpy.maintain.matrix.decompositions import FactorUpdate
from squallpy.maintain.matrix.dimensions import Sizes
from squallpy.maintain.matrix.materialise import MatrixTrigger
from squallpy.physical.matrix.view_passes import ViewPass, Work, schedule_passes
from squallpy.runtime.matrix.affected_cells import occupied, touch
from squallpy.runtime.matrix.errors import NamingOverflow
from squallpy.runtime.matrix.fused_boolean import FusedTrigger, fuse
from squallpy.runtime.matrix.iterations import UndefinedError
from squallpy.runtime.matrix.packed_boolean import PackedMatrix
from squallpy.runtime.matrix.program_views import ProgramViews
from squallpy.runtime.matrix.stored_views import Array, Factor


class Triggers:
    """The triggers of a program over its views; each is scheduled when it is first fired, for many never are."""

    def __init__(self, views: ProgramViews) -> None:
        self._views, self._ring = views, views.ring
        self._work: dict[str, tuple[Work, ...]] = {}
        self._fused: dict[tuple[str, int], FusedTrigger | None] = {}

    def fire(self, trigger: MatrixTrigger, u: Array, v: Array) -> str:
        """Apply a change u·v of the trigger's input to all views.

        Returns why it could not, "" if it could: then the input has changed, and other views are to be evaluated.
        """
        pair = (PackedMatrix.of(u), PackedMatrix.of(v)) if self._ring is BOOLEAN else (u, v)
        if self._ring is BOOLEAN and (kernel := self._kernel(trigger, u.shape[1])):
            lines = kernel.fire(self._views.by_name, *pair)
            if self._views.touched is not None:
                for change in kernel.changes(self._views.by_name, lines):
                    touch(self._views.touched, *change, self._ring)
            return ""
        values: dict[str, Factor] = dict(zip((trigger.u.name, trigger.v.name), pair, strict=True))
        sizes = {**self._views.sizes, trigger.u.cols.symbols[0][0]: u.shape[1]}
        has_changed = False
        try:
            for item in self._passes(trigger):
                if isinstance(item, ViewPass):
                    self._pass(item, values, sizes)
                    if item.view == trigger.input and item.update:
                        has_changed = True
                        if item.update.left and not occupied(values[item.update.left[0].name], self._ring).any():
                            return ""  # all else follows from what is left of the update
                else:
                    with NamingOverflow(self._views.maintained, trigger.updates[-1].view.name):
                        values[item.name.name] = self._views.value(item.value, values, sizes)
        except UndefinedError as error:
            if not has_changed and self._views.maintained.program.input(trigger.input.name):
                self._views.visit(trigger.input.name, u, v)
            return error.reason
        return ""

    def _passes(self, trigger: MatrixTrigger) -> tuple[Work, ...]:
        name = trigger.input.name
        if name not in self._work:
            self._work[name] = schedule_passes(trigger, self._views.maintained.matrices)
        return self._work[name]

    def _kernel(self, trigger: MatrixTrigger, rank: int) -> FusedTrigger | None:
        case = (trigger.input.name, rank)
        if case not in self._fused:
            self._fused[case] = fuse(trigger, self._passes(trigger), rank)
        return self._fused[case]

    def _pass(self, item: ViewPass, values: dict[str, Factor], sizes: Sizes) -> None:
        """Visit a view: all products, then the update."""
        views, update, u, v, rotation = self._views, item.update, None, None, None
        xs, ys = ([views.value(r.factor, values, sizes) for r in reads] for reads in (item.straight, item.across))
        if update and isinstance(update.v, FactorUpdate):
            rotation = (update.v, views.value(update.v.u, values, sizes), views.value(update.v.v, values, sizes))
        elif update:
            u, v = views.value(update.u, values, sizes), views.value(update.v, values, sizes)
        *found, left, right = views.visit(item.view.name, u, v, xs, ys, prune=bool(update and update.left))
        if rotation:
            views.rotate(item.view.name, *rotation)
        if update and update.left:
            values[update.left[0].name], values[update.left[1].name] = left, right
        for reads, arrays in zip((item.straight, item.across), found, strict=True):
            for r, array in zip(reads, arrays, strict=True):
                values[r.name.name] = array.T if r.turned else array
