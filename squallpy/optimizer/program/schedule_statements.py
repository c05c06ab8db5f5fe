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

from collections import Counter
from collections.abc import Hashable, Iterator
from dataclasses import dataclass, replace
from itertools import count

from squallpy.logical.expressions import Column, Expr, columns
from squallpy.program.calculus import Assign, Factor, rename_factor, variables
from squallpy.program.trigger_program import Program, Statement, Trigger
from squallpy.program.views import Ref


def schedule(program: Program) -> Program:
    """Order the statements of each trigger."""
    numbers = count(1)
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
    """Statements of a trigger that are yet to be put in order."""

    def __init__(self, trigger: Trigger, numbers: Iterator[int]) -> None:
        self._numbers, self._partials = numbers, dict[Hashable, tuple[str, tuple[int, ...]]]()
        self._deltas = {delta.name for delta in trigger.deltas}
        self._targets = {s.target for s in trigger.statements}
        self._tasks = [self._task(s) for s in trigger.statements]
        self._halves = {
            id(task): self.cut_statement(task) for task in self._tasks if task.reads_before and task.reads_after
        }
        self._updates = Counter(task.statement.target for task in self._tasks)  # statements left, by target
        self._readers = Counter(
            view for task in self._tasks for view in task.reads_before
        )  # and by the old versions that they read

    def run(self) -> Iterator[Statement]:
        """Yield the statements in order, of those that are ready the first as given."""
        while self._tasks:
            waiting = []
            for task in self._tasks:
                if self._is_ready(task):
                    self._updates[task.statement.target] -= 1
                    self._readers.subtract(task.reads_before)
                    yield task.statement
                else:
                    waiting.append(task)
            if len(waiting) == len(self._tasks):
                halves = self._on_cycle()
                yield self._name_partial(halves)
                waiting = [self._second_half(task) if self._cuts_alike(task, halves) else task for task in waiting]
            self._tasks = waiting

    def _task(self, statement: Statement) -> _Task:
        read = [ref for ref in statement.refs if ref.name in self._targets and not ref.row]
        before, after = (frozenset(ref.name for ref in read if ref.is_after is after) for after in (False, True))
        return _Task(statement, before, after)

    def _is_ready(self, task: _Task) -> bool:
        return not self._readers[task.statement.target] and not any(self._updates[view] for view in task.reads_after)

    def _on_cycle(self) -> _Halves:
        """Find a statement on a cycle of statements that wait for each other, and return its halves."""
        path = [self._tasks[0]]
        while (found := self._predecessor(path[-1])) not in path:
            path.append(found)
        cycle = path[path.index(found) :]
        return next(halves for task in cycle if (halves := self._halves.get(id(task))) and self._is_late(task))

    def _predecessor(self, task: _Task) -> _Task:
        """Find a statement that has to come before one that is not ready."""
        late = {view for view in task.reads_after if self._updates[view]}
        return next(t for t in self._tasks if t.statement.target in late or task.statement.target in t.reads_before)

    def _is_late(self, task: _Task) -> bool:
        """True if it reads a view that will still change."""
        return any(self._updates[view] for view in task.reads_after)

    def _name_partial(self, halves: _Halves) -> Statement:
        """Name the partial product."""
        made = replace(halves.partial, target=f"P{next(self._numbers)}")
        self._partials[halves.key] = made.target, tuple(halves.order.index(v.id) for v in made.keys)
        return made

    def _cuts_alike(self, task: _Task, halves: _Halves) -> bool:
        """True if the partial product is that of a statement, too."""
        return id(task) in self._halves and self._halves[id(task)].key == halves.key

    def _second_half(self, task: _Task) -> _Task:
        """Make the second half of a statement whose partial product has a name."""
        halves = self._halves[id(task)]
        name, positions = self._partials[halves.key]
        named = {v.id: v for v in halves.partial.keys}
        ref = Ref(name, tuple(named[halves.order[i]] for i in positions), tuple(range(len(task.statement.lanes))))
        self._readers.subtract(task.reads_before)
        return self._task(replace(task.statement, refs=(ref, *halves.refs), filters=halves.filters))

    def cut_statement(self, task: _Task) -> _Halves:
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
        while found := [f for f in filters if _reads(f) <= bound.keys()]:
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


def _reads(factor: Factor) -> frozenset[Column]:
    """List the variables that have to be bound before a factor can be evaluated."""
    return variables(factor) - ({factor.variable} if isinstance(factor, Assign) else set())
