"""Order of a trigger's statements, so that each reads the old or the NEW version of a view as it is written.

    Q() += Sum_[](ΔR(a) ⋈ M_R(a))          reads M_R as it was
    M_R(a) += Sum_[a](ΔR(a))
    Q() += Sum_[](ΔR(a) ⋈ NEW M_R(a))      reads M_R as it is

Where no order exists, a statement on a cycle is split in two: its join with old versions is stored first,
as a partial product that lives as long as the batch, and the new versions are joined later.

    Q() += Sum_[](ΔR(a) ⋈ NEW M_R(a) ⋈ M_R(a))   →   P1(a) := Sum_[a](ΔR(a) ⋈ M_R(a))
                                                      M_R(a) += Sum_[a](ΔR(a))
                                                      Q() += Sum_[](P1(a) ⋈ NEW M_R(a))

With all statements cut that read both versions, an order exists: partial products, then statements that read no new
version, the most complex view first, then the others, the simplest view first. So every cycle has a statement to cut.
"""

from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Iterator, Mapping
from dataclasses import replace
from heapq import heapify, heappop, heappush
from itertools import count, dropwhile, islice
from typing import TypeVar

from squallpy.base.records import dataclass
from squallpy.logical.expressions import Column, Expr, columns
from squallpy.program.calculus import Assign, Factor, rename_factor, variables
from squallpy.program.trigger_program import Statement, Trigger, TriggerProgram
from squallpy.program.views import Ref

T = TypeVar("T", bound=Hashable)


def schedule(program: TriggerProgram) -> TriggerProgram:
    """Order the statements of each trigger."""
    made = sum(statement.partial for trigger in program.triggers for statement in trigger.statements)
    numbers = count(made + 1)
    return replace(program, triggers=tuple(_schedule_trigger(trigger, numbers) for trigger in program.triggers))


def _schedule_trigger(trigger: Trigger, numbers: Iterator[int]) -> Trigger:
    if not any(ref.is_after and not ref.row for s in trigger.statements for ref in s.refs):
        return trigger  # the most complex view first, as they are
    return replace(trigger, statements=tuple(_Schedule(trigger, numbers).run()))


@dataclass(frozen=True, slots=True, eq=False)
class _Task:
    """A statement, and the views that it has to read before they change, and after."""

    statement: Statement
    reads_before: frozenset[str]
    reads_after: frozenset[str]


@dataclass(frozen=True, slots=True)
class _Halves:
    """A statement cut in two: a partial product without a name, and the refs and filters that are left.

    `key` is equal for partial products that are equal but for the names of their variables; these, by id, are `order`.
    """

    partial: Statement
    refs: tuple[Ref, ...]
    filters: tuple[Factor, ...]
    key: Hashable
    order: tuple[int, ...]


class _Schedule:
    """Statements of a trigger that are yet to be put in order, by number."""

    def __init__(self, trigger: Trigger, numbers: Iterator[int]) -> None:
        self._numbers, self._partials = numbers, dict[Hashable, tuple[str, tuple[int, ...]]]()
        self._partial_targets = {s.target for s in trigger.statements if s.partial}
        self._deltas = {*(delta.name for delta in trigger.deltas), *self._partial_targets}
        self._targets = {s.target for s in trigger.statements}
        self._tasks = {i: self._task(s) for i, s in enumerate(trigger.statements)}
        self._halves = {
            i: self._cut_statement(task) for i, task in self._tasks.items() if task.reads_before and task.reads_after
        }
        self._alike = _numbers_by_key((halves.key, i) for i, halves in self._halves.items())
        self._updaters = _numbers_by_key((task.statement.target, i) for i, task in self._tasks.items())
        self._old_readers = _numbers_by_key((view, i) for i, task in self._tasks.items() for view in task.reads_before)
        self._new_readers = _numbers_by_key((view, i) for i, task in self._tasks.items() for view in task.reads_after)
        self._updates = Counter({view: len(some) for view, some in self._updaters.items()})  # that are left, by target
        self._readers = Counter({view: len(some) for view, some in self._old_readers.items()})
        self._wait_counts = {  # for how many views, to be read or changed
            i: len(task.reads_after & self._updates.keys()) + bool(self._readers[task.statement.target])
            for i, task in self._tasks.items()
        }

    def run(self) -> Iterator[Statement]:
        """Yield the statements in order: turn by turn those that are ready, as given."""
        ready = [(0, i) for i in self._tasks if not self._wait_counts[i]]  # a heap of turns and numbers
        while self._tasks:
            turn = 0
            while ready:
                turn, i = heappop(ready)
                task = self._tasks.pop(i)
                yield task.statement
                for j in (*self._count_update(task.statement.target), *self._stop_reading(task)):
                    heappush(ready, (turn + (j < i), j))
            if self._tasks:
                halves = self._on_cycle()
                yield self._name_partial(halves)
                ready = [(0, j) for i in self._alike[halves.key] if i in self._tasks for j in self._halve(i)]
                heapify(ready)

    def _task(self, statement: Statement) -> _Task:
        read = [ref for ref in statement.refs if ref.name in self._targets and not ref.row]
        before, after = set[str](), set[str]()
        for ref in read:
            (after if ref.is_after or ref.name in self._partial_targets else before).add(ref.name)
        return _Task(statement, frozenset(before), frozenset(after))

    def _count_update(self, view: str) -> Iterator[int]:
        """Count an update of a view as done, and yield the statements that are ready by that."""
        self._updates[view] -= 1
        if not self._updates[view]:
            yield from self._release(self._new_readers[view])

    def _stop_reading(self, task: _Task) -> Iterator[int]:
        """Count the old versions that a statement reads as read, and yield the statements that are ready by that."""
        for view in task.reads_before:
            self._readers[view] -= 1
            if not self._readers[view]:
                yield from self._release(self._updaters[view])

    def _release(self, waiting: Iterable[int]) -> Iterator[int]:
        for i in waiting:
            if i in self._tasks:
                self._wait_counts[i] -= 1
                if not self._wait_counts[i]:
                    yield i

    def _on_cycle(self) -> _Halves:
        """Find a statement on a cycle of statements that wait for each other, and return its halves."""
        path = dict.fromkeys([next(iter(self._tasks))])
        while (found := self._predecessor(next(reversed(path)))) not in path:
            path[found] = None
        cycle = dropwhile(lambda i: i != found, path)
        return next(self._halves[i] for i in cycle if i in self._halves and self._late_views(i))

    def _predecessor(self, number: int) -> int:
        """Find the first statement that has to come before one that is not ready."""
        updating = (next(i for i in self._updaters[view] if i in self._tasks) for view in self._late_views(number))
        target = self._tasks[number].statement.target
        reading = (i for i in self._old_readers[target] if i in self._tasks and target in self._tasks[i].reads_before)
        return min((*updating, *islice(reading, 1)))

    def _late_views(self, number: int) -> list[str]:
        """List the views that a statement reads and that will still change."""
        return [view for view in self._tasks[number].reads_after if self._updates[view]]

    def _name_partial(self, halves: _Halves) -> Statement:
        """Name the partial product."""
        made = replace(halves.partial, target=f"P{next(self._numbers)}")
        self._partials[halves.key] = made.target, tuple(halves.order.index(v.id) for v in made.keys)
        return made

    def _halve(self, number: int) -> Iterator[int]:
        """Keep the second half of a statement whose partial product has a name; yield those that are ready by that."""
        task, halves = self._tasks[number], self._halves.pop(number)
        name, positions = self._partials[halves.key]
        named = {v.id: v for v in halves.partial.keys}
        ref = Ref(name, tuple(named[halves.order[i]] for i in positions), tuple(range(len(task.statement.lanes))))
        rest = replace(task.statement, refs=(ref, *halves.refs), filters=halves.filters)
        self._tasks[number] = _Task(rest, frozenset(), task.reads_after)
        yield from self._stop_reading(task)

    def _cut_statement(self, task: _Task) -> _Halves:
        """Cut a statement into a partial product of the views read before the batch, and the rest."""
        statement = task.statement
        given = {v for ref in statement.refs if ref.name in self._deltas for v in ref.variables}
        olds = [ref for ref in statement.refs if ref.name in task.reads_before and not (ref.is_after or ref.row)]
        needed = {v for ref in olds for v in ref.variables} - given
        mine, others = list[Ref](), list[Ref]()
        for ref in statement.refs:
            near = (
                ref.name in self._deltas or ref in olds or not (ref.is_after or needed.isdisjoint(ref.bound_variables))
            )
            (mine if near else others).append(ref)
        bound, filters = dict.fromkeys(v for ref in mine for v in ref.bound_variables), list(statement.filters)
        while found := [f for f in filters if f.reads <= bound.keys()]:
            filters = [f for f in filters if f not in found]
            bound |= dict.fromkeys(f.variable for f in found if isinstance(f, Assign))
        wanted = {*statement.keys, *(v for ref in others for v in ref.bound_variables)}.union(*map(variables, filters))
        wanted |= {v for lane in statement.lanes for factor in lane or () for v in columns(factor)}
        keys, lanes = tuple(v for v in bound if v in wanted), tuple(None if x is None else () for x in statement.lanes)
        inside = tuple(f for f in statement.filters if f not in filters)
        partial = Statement("", keys, tuple(mine), inside, lanes, partial=True)
        names: dict[int, Expr] = {}
        for v in (*(v for ref in mine for v in ref.bound_variables), *(v for f in inside for v in variables(f))):
            names.setdefault(v.id, Column(len(names), "", v.type, v.nullable))
        refs = tuple(
            (ref.name, tuple(names[v.id] for v in ref.bound_variables), ref.picks, ref.row is None) for ref in mine
        )
        key = refs, tuple(rename_factor(f, names) for f in inside), frozenset(names[v.id] for v in keys), lanes
        return _Halves(partial, tuple(others), tuple(filters), key, tuple(names))


def _numbers_by_key(items: Iterable[tuple[T, int]]) -> Mapping[T, list[int]]:
    """Group numbers by keys."""
    found = defaultdict[T, list[int]](list)
    for key, number in items:
        found[key].append(number)
    return found
