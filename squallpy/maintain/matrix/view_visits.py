"""Counts of a trigger's visits to its views.

All reads of a view are one visit, unless one depends on what an earlier one has read there; updates go with the last.

    t0 := A * uA; t1 := A * t0; A += uA * vA; P += [uA, t1] * vP     →     A twice, P once

A visit to some rows or columns is as good as none: changes are of rows, so that u picks them; where addition is
idempotent they are of cells, and v picks columns, too. There an update tells what is left of it (`Update.left`), which
is little where much is there already; so with each visit comes of how many updates only what is left matters to it.
"""

import math
from collections import Counter
from collections.abc import Iterable, Mapping

from squallpy.maintain.matrix.materialise import MatrixTrigger
from squallpy.maintain.matrix.matrix_expressions import Diagonal, Matrix, names


class Visited:
    """Dependencies of the names of a trigger on visits to views."""

    def __init__(self, trigger: MatrixTrigger, views: set[str]) -> None:
        self._told = {name.name: update for update in trigger.updates for name in update.left or ()}
        self._needed = dict[str, Counter[str]]()
        self._left = dict[str, int]()
        for step in trigger.steps:
            name = step.name.name
            self._needed[name] = self.count_before_values(step.value) + Counter(names(step.value) & views)
            self._left[name] = self.count_partial_updates(step.value)

    def of(self, name: str) -> Mapping[str, int]:
        """Count the visits to each view until a step, or what is left of an update, has its value."""
        self._follow(name)
        return self._needed.get(name, Counter())

    def count_before_values(self, *read: Matrix) -> Counter[str]:
        """Count the visits to each view until all names that are read have values."""
        most = Counter[str]()
        for name in _names(read):
            most |= Counter(self.of(name))
        return most

    def count_partial_updates(self, *read: Matrix) -> int:
        """Count the successive updates of which only the part that made a difference is known by then."""
        for name in _names(read):
            self._follow(name)
        return max((self._left.get(name, 0) for name in _names(read)), default=0)

    def _follow(self, name: str) -> None:
        if name in self._told and name not in self._needed:
            update = self._told[name]
            self._needed[name] = self.count_before_values(update.u, update.v) + Counter([update.view.name])
            self._left[name] = 1 + self.count_partial_updates(update.u, update.v)


def count_visits(trigger: MatrixTrigger, views: set[str]) -> dict[str, list[float]]:
    """View → its visits, for each the fewest updates of which only what is left matters there; ∞ if it is as good as
    none."""
    visited, picks, found = Visited(trigger, views), _picking_factors(trigger), dict[str, dict[int, float]]()

    def visit(view: str, turn: int, left: float) -> None:
        turns = found.setdefault(view, {})
        turns[turn] = min(turns.get(turn, left), left)

    for step in trigger.steps:
        for view in names(step.value) & views:
            left = math.inf if names(step.value) - {view} <= picks else visited.count_partial_updates(step.value)
            visit(view, visited.of(step.name.name)[view], left)
    for update in trigger.updates:
        view, halves = update.view.name, (update.u, update.v)
        last = 0 if update.left else max(found.get(view, {0: 0}))  # NB: others wait for what is left of it
        picked = names(update.u) <= picks and not isinstance(update.u, Diagonal)
        left = math.inf if picked else visited.count_partial_updates(*halves)
        visit(view, max(last, 1 + visited.count_before_values(*halves)[view]), left)
    return {view: list(turns.values()) for view, turns in found.items()}


def _picking_factors(trigger: MatrixTrigger) -> set[str]:
    """Collect the factors of the change itself that pick rows or columns."""
    first = trigger.updates[0]
    message = {name.name for name in first.left or ()} if first.view == trigger.input else set[str]()
    return {trigger.u.name} | ({trigger.v.name} | message if message else set())


def _names(read: Iterable[Matrix]) -> set[str]:
    return set[str]().union(*map(names, read))
