"""Joins read from views that hold them, instead of being computed for each row of a batch.

    M_OL(c, s) := Sum_[c, s](O(o, c) ⋈ L(o, s, v) ⋈ ⟨v⟩)                    which changes of customers need

    Q(n) += ΔS(s, n) ⋈ M_L(o, s) ⋈ M_O(o, c) ⋈ M_C(c, n)    →    Q(n) += ΔS(s, n) ⋈ M_OL(c, s) ⋈ M_C(c, n)

A view that other statements need may hold a join that a statement computes: it has at most as many records as the join
has rows, and what was an index of M_L by s is one of the smaller view. Nothing else may read the variables that the
view has no keys for. Views of which each row finds one record, by PRIMARY KEYs, stay: those that leave rows out are
looked up first then.
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable
from dataclasses import replace
from operator import itemgetter

from squallpy.logical.column_allocator import ColumnAllocator
from squallpy.logical.expressions import Column
from squallpy.optimizer.program.written_joins import Join, is_simple, relations_of
from squallpy.program.trigger_program import Statement, Trigger, TriggerProgram, without_unread_views
from squallpy.program.unique_keys import Keys, finds_one, known_keys
from squallpy.program.views import Ref, View


def read_kept_joins(program: TriggerProgram, allocator: ColumnAllocator) -> TriggerProgram:
    """Let statements read joins from views that hold them, and drop the views that nothing reads then."""
    held = _HeldJoins(view for view in program.stored if is_simple(view))
    keys = known_keys(program)
    triggers = tuple(_rewritten(trigger, held, keys, allocator) for trigger in program.triggers)
    return program if triggers == program.triggers else without_unread_views(replace(program, triggers=triggers))


class _HeldJoins:
    """Views that join relations, each once, and the relations of each."""

    def __init__(self, views: Iterable[View]) -> None:
        self.views = {view.name: view for view in views}
        self.relations = {name: relations_of(view) for name, view in self.views.items()}
        joins = sorted((view for view in self.views.values() if view.degree > 1), key=lambda view: -view.degree)
        self._places = defaultdict[str, list[tuple[int, View]]](list)  # of joins, by their first relation
        for place, view in enumerate(joins):
            self._places[min(self.relations[view.name])].append((place, view))

    def joins_within(self, statement: Statement) -> list[View]:
        """List the joins of relations whose views a statement reads, those of the most relations first."""
        read = frozenset[str]().union(*(self.relations.get(ref.name, ()) for ref in statement.refs[1:]))
        found = (some for name in read for some in self._places.get(name, ()))
        return [view for _, view in sorted(found, key=itemgetter(0)) if self.relations[view.name] <= read]

    def parts(self, statement: Statement, view: View) -> list[Ref]:
        """List the uses of views in a statement that together join each relation of `view` once; none if none do."""
        wanted, parts, joined = self.relations[view.name], list[Ref](), Counter[str]()
        for ref in statement.refs[1:]:
            own = self.relations.get(ref.name)
            if own and ref.picks and not wanted.isdisjoint(own):
                parts.append(ref)
                joined.update(own)
        return parts if joined == Counter(wanted) else []


def _rewritten(trigger: Trigger, held: _HeldJoins, keys: Keys, allocator: ColumnAllocator) -> Trigger:
    """Read joins from those views that the trigger does not change."""
    changed, views = {statement.target for statement in trigger.statements}, held.views
    statements = list[Statement]()
    for statement in trigger.statements:
        for view in held.joins_within(statement):
            parts = held.parts(statement, view) if view.name not in changed else []
            if len(parts) < 2:
                continue
            others = [ref for ref in statement.refs if ref not in parts]
            bound = frozenset[Column]().union(*(ref.bound_variables for ref in others))
            if all(_finds_one(views[ref.name], ref, bound, keys) for ref in parts):
                continue
            found = Join.of(statement, parts, views, allocator).held_by(view, allocator)
            statement = replace(statement, refs=(*others, found)) if found else statement
        statements.append(statement)
    return replace(trigger, statements=tuple(statements))


def _finds_one(view: View, ref: Ref, bound: Collection[Column], keys: Keys) -> bool:
    """True if variables in `bound` leave one record of a view at most."""
    return finds_one(view, [key for key, v in zip(view.keys, ref.variables, strict=True) if v in bound], keys)
