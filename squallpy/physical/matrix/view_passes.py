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
from functools import cached_property

from squallpy.base.records import dataclass
from squallpy.maintain.matrix.materialise import MatrixTrigger, MatrixUpdate
from squallpy.maintain.matrix.matrix_expressions import Matrix, Name, Product, Transpose, names, transpose
from squallpy.maintain.matrix.matrix_program import Statement
from squallpy.maintain.matrix.view_visits import Visited


@dataclass(frozen=True, slots=True)
class TransposedRead:
    """name := view · by, or view' · by; `turned` if what the step asks for is the transpose of that."""

    name: Name
    factor: Matrix
    transposed: bool
    turned: bool

    def text(self, view: Name) -> str:
        read = f"{view}{chr(39) if self.transposed else ''} * {self.factor}"
        return f"{self.name} := ({read})'" if self.turned else f"{self.name} := {read}"


@dataclass(frozen=True)
class ViewPass:
    """One visit to a view."""

    view: Name
    reads: tuple[TransposedRead, ...]
    update: MatrixUpdate | None

    @cached_property
    def straight(self) -> tuple[TransposedRead, ...]:
        """Products of the view."""
        return tuple(read for read in self.reads if not read.transposed)

    @cached_property
    def across(self) -> tuple[TransposedRead, ...]:
        """Products of its transpose."""
        return tuple(read for read in self.reads if read.transposed)

    def __str__(self) -> str:
        parts = [read.text(self.view) for read in self.reads] + ([str(self.update)] if self.update else [])
        return f"pass {self.view}: {', '.join(parts)}"


Work = Statement | ViewPass


def schedule_passes(trigger: MatrixTrigger, views: Sequence[str]) -> tuple[Work, ...]:
    """Order the steps and updates of a trigger so that there are few passes over its views."""
    return tuple(_Scheduler(trigger, set(views)).run())


class _Scheduler:
    """Steps whose operands are there go first; then a view is visited, best one that need not be visited again."""

    def __init__(self, trigger: MatrixTrigger, views: set[str]) -> None:
        self._views, self._visited, self._input = views, Visited(trigger, views), trigger.input.name
        self._done = views | {trigger.u.name, trigger.v.name}
        self._steps = [s for s in trigger.steps if match_read(s, views) is None]
        self._reads: dict[str, list[tuple[Name, TransposedRead]]] = {}
        self._updates = {update.view.name: update for update in trigger.updates}
        for step in trigger.steps:
            if found := match_read(step, views):
                view, read = found
                self._reads.setdefault(view.name, []).append((view, read))

    def run(self) -> Iterator[Work]:
        while self._steps or self._reads or self._find_early():
            if early := self._find_early():
                yield self._visit(early)
            elif ready := [step for step in self._steps if names(step.value) <= self._done]:
                self._steps = [step for step in self._steps if step not in ready]
                self._done |= {step.name.name for step in ready}
                yield from ready
            else:
                yield self._visit(min(self._reads, key=self._rank))
        while self._updates:
            update = self._updates.pop(next(filter(self._is_updatable, self._updates)))
            yield ViewPass(update.view, (), update)

    def _find_early(self) -> str | None:
        """Find a view to be updated at once, the input's first, for products with it are of its new value."""
        return next((name for name, update in self._updates.items() if update.left and self._is_updatable(name)), None)

    def _rank(self, view: str) -> tuple[bool, bool, int, bool]:
        """Rank a view by how much of its work is not ready.

        No read ready is the worst, then one visit more than necessary.
        """
        reads = [read for _, read in self._reads[view]]
        ready = [names(read.factor) <= self._done for read in reads]
        return not any(ready), self._is_wasted(view, reads, ready), ready.count(False), not self._is_updatable(view)

    def _is_wasted(self, view: str, reads: Sequence[TransposedRead], ready: Sequence[bool]) -> bool:
        """True if some read waits that does not depend on this visit to a view."""
        turns = [self._visited.of(read.name.name)[view] for read in reads]
        update, now = self._updates.get(view), min(turns)
        if any(turn == now and not there for turn, there in zip(turns, ready, strict=True)):
            return True
        return (
            max(turns) == now
            and update is not None
            and not self._is_updatable(view)
            and self._visited.count_before_values(update.u, update.v)[view] < now
        )

    def _is_updatable(self, view: str) -> bool:
        """True if the update of a view is known, and nothing but its own reads needs it as it was.

        What is left of an update may be waited for: that one need not wait, as all may read what it makes.
        """
        update = self._updates.get(view)
        if update is None or not names(update.u) | names(update.v) <= self._done:
            return False
        return update.left is not None or not any(view in names(matrix) for matrix in self._waiting(view))

    def _waiting(self, view: str) -> Iterator[Matrix]:
        """Yield the expressions still to be computed, except products of a view."""
        yield from (step.value for step in self._steps)
        yield from (read.factor for reads in self._reads.values() for _, read in reads)
        for other, update in self._updates.items():
            yield from (update.u, update.v) if other != view else ()

    def _visit(self, view: str) -> ViewPass:
        reads, update = self._reads.pop(view, []), self._updates.get(view)
        first = update and update.left and view == self._input
        ready = [(name, read) for name, read in reads if names(read.factor) <= self._done and not first]
        if left := [pair for pair in reads if pair not in ready]:
            self._reads[view] = left
        if update and (not self._is_updatable(view) or (left and not update.left)):
            update = None
        assert ready or update, f"{view} waits for itself"
        self._done |= {read.name.name for _, read in ready}
        if update:
            self._updates.pop(view)
            self._done |= {name.name for name in update.left or ()}
        return ViewPass(update.view if update else ready[0][0], tuple(read for _, read in ready), update)


def match_read(step: Statement, views: set[str]) -> tuple[Name, TransposedRead] | None:
    """Match a step that multiplies a view by something small; returns the view and the read."""
    match step.value:
        case Product((left, right)):
            if (view := _view(left, views)) and not names(right) & views:
                return view, TransposedRead(step.name, right, isinstance(left, Transpose), False)
            if (view := _view(right, views)) and not names(left) & views:
                return view, TransposedRead(step.name, transpose(left), not isinstance(right, Transpose), True)
    return None


def _view(leaf: Matrix, views: set[str]) -> Name | None:
    inner = leaf.of if isinstance(leaf, Transpose) else leaf
    return inner if isinstance(inner, Name) and inner.name in views else None
