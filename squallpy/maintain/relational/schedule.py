"""The order of a trigger's statements: each reads views as it says, before or after the trigger has changed them.

    Q() += Sum_[](ΔR(a) ⋈ M_R(a))          reads M_R as it was
    M_R(a) += Sum_[a](ΔR(a))
    Q() += Sum_[](ΔR(a) ⋈ NEW M_R(a))      reads M_R as it is

Where no order serves all, a statement on a cycle is cut in two: what it joins of before the batch is put aside first,
as a partial product that lives no longer than the batch, and what it joins of after it is read later.

    Q() += Sum_[](ΔR(a) ⋈ NEW M_R(a) ⋈ M_R(a))   →   P1(a) := Sum_[a](ΔR(a) ⋈ M_R(a))
                                                      M_R(a) += Sum_[a](ΔR(a))
                                                      Q() += Sum_[](P1(a) ⋈ NEW M_R(a))

With all statements cut that read both, there is an order: partial products, then statements that read nothing of after
the batch, the most complex view first, then the others, the simplest view first. So every cycle has one to cut.
"""

from collections import Counter
from collections.abc import Hashable, Iterator
from dataclasses import dataclass, replace
from itertools import count

from squallpy.logical.expressions import Column, Expr, columns
from squallpy.maintain.program import Program, Ref, Statement, Trigger
from squallpy.maintain.relational.calculus import Assign, Factor, renamed, variables


def schedule(program: Program) -> Program:
    """The program with the statements of each trigger in order."""
    numbers = count(1)
    return replace(program, triggers=tuple(_scheduled(trigger, numbers) for trigger in program.triggers))


def _scheduled(trigger: Trigger, numbers: Iterator[int]) -> Trigger:
    if not any(ref.after and not ref.row for s in trigger.statements for ref in s.refs):
        return trigger  # the most complex view first, as they are
    return replace(trigger, statements=tuple(_Schedule(trigger, numbers).run()))


@dataclass(frozen=True, slots=True)
class _Task:
    """A statement, and the views that it has to read before they change, and after."""

    statement: Statement
    before: frozenset[str]
    after: frozenset[str]


class _Schedule:
    """Statements of a trigger that are yet to be put in order."""

    def __init__(self, trigger: Trigger, numbers: Iterator[int]) -> None:
        self._numbers, self._partials = numbers, dict[Hashable, tuple[str, tuple[int, ...]]]()
        self._deltas = {delta.name for delta in trigger.deltas}
        self._changed = {s.target for s in trigger.statements}
        self._left = [self._task(s) for s in trigger.statements]
        self._updates = Counter(task.statement.target for task in self._left)  # statements left, by target
        self._readers = Counter(view for task in self._left for view in task.before)  # and by what they read before

    def run(self) -> Iterator[Statement]:
        """The statements in order, the first that can be next of those as given."""
        while self._left:
            waiting = []
            for task in self._left:
                if self._is_ready(task):
                    self._updates[task.statement.target] -= 1
                    self._readers.subtract(task.before)
                    yield task.statement
                else:
                    waiting.append(task)
            if len(waiting) == len(self._left):
                at = self._left.index(self._on_cycle())
                self._readers.subtract(waiting[at].before)
                partial, rest = self._cut(waiting[at].statement)
                waiting[at] = self._task(rest)
                if partial:
                    yield partial
            self._left = waiting

    def _task(self, statement: Statement) -> _Task:
        read = [ref for ref in statement.refs if ref.name in self._changed and not ref.row]
        before, after = (frozenset(ref.name for ref in read if ref.after is after) for after in (False, True))
        return _Task(statement, before, after)

    def _is_ready(self, task: _Task) -> bool:
        return not self._readers[task.statement.target] and not any(self._updates[view] for view in task.after)

    def _on_cycle(self) -> _Task:
        """A statement that waits for others and has others wait for it, and so on in a cycle."""
        path = [self._left[0]]
        while (found := self._awaited(path[-1])) not in path:
            path.append(found)
        cycle = path[path.index(found) :]
        both = [task for task in cycle if task.before and any(self._updates[view] for view in task.after)]
        return next((t for t in both if self._key(self._first_part(t.statement)[0])[0] in self._partials), both[0])

    def _awaited(self, task: _Task) -> _Task:
        """A statement that has to come before one that is not ready."""
        late = {view for view in task.after if self._updates[view]}
        return next(t for t in self._left if t.statement.target in late or task.statement.target in t.before)

    def _cut(self, statement: Statement) -> tuple[Statement | None, Statement]:
        """The partial product, None if there is an equal one, and what is left of the statement."""
        first, others, filters = self._first_part(statement)
        key, order = self._key(first)
        made = None
        if key not in self._partials:
            made = replace(first, target=f"P{next(self._numbers)}")
            self._partials[key] = made.target, tuple(order.index(v.id) for v in first.keys)
        name, positions = self._partials[key]
        named = {v.id: v for v in first.keys}
        ref = Ref(name, tuple(named[order[i]] for i in positions), tuple(range(len(statement.lanes))))
        return made, replace(statement, refs=(ref, *others), filters=filters)

    def _first_part(self, statement: Statement) -> tuple[Statement, tuple[Ref, ...], tuple[Factor, ...]]:
        """What a statement joins of before the batch, as a partial product without a name, and what is left of it."""
        given = {v for ref in statement.refs if ref.name in self._deltas for v in ref.variables}
        olds = [ref for ref in statement.refs if ref.name in self._changed and not (ref.after or ref.row)]
        needed = {v for ref in olds for v in ref.variables} - given
        mine, others = list[Ref](), list[Ref]()
        for ref in statement.refs:
            near = ref.name in self._deltas or ref in olds or not (ref.after or needed.isdisjoint(ref.bound))
            (mine if near else others).append(ref)
        bound, filters = dict.fromkeys(v for ref in mine for v in ref.bound), list(statement.filters)
        while found := [f for f in filters if _reads(f) <= bound.keys()]:
            filters = [f for f in filters if f not in found]
            bound |= dict.fromkeys(f.variable for f in found if isinstance(f, Assign))
        wanted = {*statement.keys, *(v for ref in others for v in ref.bound)}.union(*map(variables, filters))
        wanted |= {v for lane in statement.lanes for factor in lane or () for v in columns(factor)}
        keys, lanes = tuple(v for v in bound if v in wanted), tuple(None if x is None else () for x in statement.lanes)
        inside = tuple(f for f in statement.filters if f not in filters)
        return Statement("", keys, tuple(mine), inside, lanes, partial=True), tuple(others), tuple(filters)

    @staticmethod
    def _key(partial: Statement) -> tuple[Hashable, list[int]]:
        """What is equal for partial products that are equal but for the names of their variables; these, by id, in the
        order in which it has them."""
        names: dict[int, Expr] = {}
        for v in (*(v for ref in partial.refs for v in ref.bound), *(v for f in partial.filters for v in variables(f))):
            names.setdefault(v.id, Column(len(names), "", v.type, v.nullable))
        refs = tuple((r.name, tuple(names[v.id] for v in r.bound), r.picks, r.row and r.row.nest) for r in partial.refs)
        filters = tuple(renamed(f, names) for f in partial.filters)
        return (refs, filters, frozenset(names[v.id] for v in partial.keys), partial.lanes), list(names)


def _reads(factor: Factor) -> frozenset[Column]:
    """What has to be bound before it can be evaluated."""
    return variables(factor) - ({factor.variable} if isinstance(factor, Assign) else set())
