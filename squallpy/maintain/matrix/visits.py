"""How often a trigger has to visit its views: all that it reads of one is one visit, but for what depends on what it
has read there before, and what it adds goes with the last of these.

    t0 := A * uA; t1 := A * t0; A += uA * vA; P += [uA, t1] * vP     →     A twice, P once
"""

from collections import Counter
from collections.abc import Iterable, Mapping

from squallpy.maintain.matrix.materialise import Trigger
from squallpy.maintain.matrix.nodes import Matrix, names


class Visited:
    """The visits to each view without which a name in a trigger has no value."""

    def __init__(self, trigger: Trigger, views: set[str]) -> None:
        self._told = {name.name: update for update in trigger.updates for name in update.left or ()}
        self._needed = dict[str, Counter[str]]()
        for step in trigger.steps:
            self._needed[step.name.name] = self.before(step.value) + Counter(names(step.value) & views)

    def of(self, name: str) -> Mapping[str, int]:
        """For what a step computes, or what is left of an update."""
        if name in self._told and name not in self._needed:
            update = self._told[name]
            self._needed[name] = self.before(update.u, update.v) + Counter([update.view.name])
        return self._needed.get(name, Counter())

    def before(self, *read: Matrix) -> Counter[str]:
        """For all that is read."""
        most = Counter[str]()
        for name in _names(read):
            most |= Counter(self.of(name))
        return most


def visits(trigger: Trigger, views: set[str]) -> dict[str, int]:
    """View → visits."""
    visited, found = Visited(trigger, views), Counter[str]()
    for step in trigger.steps:
        found |= Counter(visited.of(step.name.name))
    for update in trigger.updates:
        view = update.view.name
        found[view] = max(found[view], 1 + visited.before(update.u, update.v)[view])
    return found


def _names(read: Iterable[Matrix]) -> set[str]:
    return set[str]().union(*map(names, read))
