"""A trigger of a matrix program → visits to its views: what it reads of a view and what it adds to it, in one pass.

    t0 := A * uA                      pass A: t0 := A * uA, t2 := A' * vA', A += uA * vA
    t2 := A' * vA'              →     UB := [uA, t0]; …
    UB := [uA, t0] …                  pass B: t7 := B * UB, t9 := B' * VB', B += UB * VB
    A += uA * vA; B += UB * VB

Views are as large as memory is slow: each cell that is visited costs more than what is done there with a few columns.
Everything reads views as they were, so a view is updated in the last pass that reads it, or after it. In an idempotent
semiring it may as well read them as they are: there a view is updated at once, and what that did not change is left out
of all that follows.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from squallpy.maintain.matrix.materialise import Trigger, Update
from squallpy.maintain.matrix.nodes import Matrix, Name, Product, Transpose, names, transpose
from squallpy.maintain.matrix.program import Statement


@dataclass(frozen=True, slots=True)
class Read:
    """name := view · by, or view' · by; `turned` if what the step asks for is the transpose of that."""

    name: Name
    by: Matrix
    transposed: bool
    turned: bool

    def text(self, view: Name) -> str:
        read = f"{view}{chr(39) if self.transposed else ''} * {self.by}"
        return f"{self.name} := ({read})'" if self.turned else f"{self.name} := {read}"


@dataclass(frozen=True, slots=True)
class Pass:
    """One visit to a view."""

    view: Name
    reads: tuple[Read, ...]
    update: Update | None

    def __str__(self) -> str:
        parts = [read.text(self.view) for read in self.reads] + ([str(self.update)] if self.update else [])
        return f"pass {self.view}: {', '.join(parts)}"


Work = Statement | Pass


def passes(trigger: Trigger, views: Sequence[str]) -> tuple[Work, ...]:
    """The steps and updates of a trigger in an order with few passes over its views."""
    return tuple(_Scheduler(trigger, set(views)).run())


class _Scheduler:
    """Steps whose operands are there go first; then a view is visited, best one that need not be visited again."""

    def __init__(self, trigger: Trigger, views: set[str]) -> None:
        self._views = views
        self._done = views | {trigger.u.name, trigger.v.name}
        self._steps = [s for s in trigger.steps if read_of(s, views) is None]
        self._reads: dict[str, list[tuple[Name, Read]]] = {}
        self._updates = {update.view.name: update for update in trigger.updates}
        for step in trigger.steps:
            if found := read_of(step, views):
                view, read = found
                self._reads.setdefault(view.name, []).append((view, read))

    def run(self) -> Iterator[Work]:
        while True:
            yield from self._ready_steps()
            if early := [name for name, update in self._updates.items() if update.left and self._updatable(name)]:
                update = self._updates.pop(early[0])
                self._done |= {name.name for name in update.left or ()}
                yield Pass(update.view, (), update)
            elif self._reads:
                yield self._visit(min(self._reads, key=self._again))
            else:
                break
        assert not self._steps, self._steps
        for update in self._updates.values():
            yield Pass(update.view, (), update)

    def _ready_steps(self) -> Iterator[Statement]:
        waiting = True
        while waiting:
            ready = [step for step in self._steps if names(step.value) <= self._done]
            self._steps = [step for step in self._steps if step not in ready]
            self._done |= {step.name.name for step in ready}
            yield from ready
            waiting = bool(ready)

    def _again(self, view: str) -> tuple[int, int, int]:
        """How much of what is to be done to a view is not ready; none of its reads must be the worst."""
        ready = [names(read.by) <= self._done for _, read in self._reads[view]]
        return int(not any(ready)), ready.count(False), int(not self._updatable(view))

    def _updatable(self, view: str) -> bool:
        update = self._updates.get(view)
        return update is not None and names(update.u) | names(update.v) <= self._done

    def _visit(self, view: str) -> Pass:
        ready = [(name, read) for name, read in self._reads[view] if names(read.by) <= self._done]
        left = [pair for pair in self._reads[view] if pair not in ready]
        assert ready, f"{view} waits for itself"
        self._reads.pop(view)
        if left:
            self._reads[view] = left
        self._done |= {read.name.name for _, read in ready}
        update = self._updates.pop(view) if not left and self._updatable(view) else None
        return Pass(ready[0][0], tuple(read for _, read in ready), update)


def read_of(step: Statement, views: set[str]) -> tuple[Name, Read] | None:
    """The view that a step multiplies something small by, and how."""
    match step.value:
        case Product((left, right)):
            if (view := _view(left, views)) and not names(right) & views:
                return view, Read(step.name, right, isinstance(left, Transpose), False)
            if (view := _view(right, views)) and not names(left) & views:
                return view, Read(step.name, transpose(left), not isinstance(right, Transpose), True)
    return None


def _view(leaf: Matrix, views: set[str]) -> Name | None:
    inner = leaf.of if isinstance(leaf, Transpose) else leaf
    return inner if isinstance(inner, Name) and inner.name in views else None
