"""Sums read from views that have them in more detail, which are kept anyway.

    M_PS(p, s) := Sum_[p, s](PS(p, s, v) ⋈ ⟨v⟩)     M_PS_2(s) := Sum_[s](PS(p, s, v) ⋈ ⟨v⟩)

    Q(p) += ΔS(s) ⋈ M_PS(p, s)                       T += ΔS(s) ⋈ M_PS_2(s)    →    T += ΔS(s) ⋈ M_PS(p, s)

What M_PS_2 would save a supplier, all have to pay that change it. Readers of the finer view find one record, or those
that another statement finds by the same columns, each for one row of a relation alone, by whose PRIMARY KEY it looks.
Deltas are read in more detail likewise, where the statements that do so look up the same views:

    M_QN(p) += ΔPS(p, s) ⋈ M_SN(s)      T += ΔPS′2(s) ⋈ M_SN(s)    →    T += ΔPS(p, s) ⋈ M_SN(s)
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from squallpy.base.records import dataclass
from squallpy.logical.column_allocator import ColumnAllocator
from squallpy.logical.expressions import Column
from squallpy.optimizer.program.written_joins import Join, is_simple, relations_of
from squallpy.program.trigger_program import Statement, Trigger, TriggerProgram, without_unread_views
from squallpy.program.unique_keys import Keys, finds_one, known_keys
from squallpy.program.views import Ref, View

Places = frozenset[int]  # of keys of a view
Lookups = frozenset[tuple[str, tuple[int | None, ...]]]  # views, and where a delta has each of their keys


def read_finer_views(program: TriggerProgram, allocator: ColumnAllocator) -> TriggerProgram:
    """Let statements read sums of finer views and deltas, and drop the coarser ones that nothing reads then."""
    stored = [view for view in program.stored if is_simple(view)]
    for view in sorted(stored, key=lambda view: len(view.keys)):
        if view.name in program.required or _shows_broken_key(view):
            continue
        for finer in sorted(stored, key=lambda other: len(other.keys)):
            if finer in program.stored and _is_finer(finer, view):
                after = _Replacement(program, view, finer, allocator).program()
                if after is not None:
                    program = after
                    break
    triggers = tuple(_with_finer_deltas(trigger, allocator) for trigger in program.triggers)
    return program if triggers == program.triggers else replace(program, triggers=triggers)


def _is_finer(view: View, other: View) -> bool:
    """True if a view may have the sums of another one in more detail."""
    return len(view.keys) > len(other.keys) and relations_of(view) == relations_of(other)


def _shows_broken_key(view: View) -> bool:
    """True if it has a record for each PRIMARY KEY of a relation, so that a count tells of a second row."""
    (term,) = view.terms
    (atom, *others), fields = term.atoms, dict(term.atoms[0].fields)
    key = [fields.get(name) for name in atom.relation.primary_key]
    return not others and bool(key) and {*key} == {*view.keys}


@dataclass(frozen=True, slots=True)
class _Replacement:
    """A view that a finer one may replace in all statements."""

    before: TriggerProgram
    view: View
    finer: View
    allocator: ColumnAllocator

    def program(self) -> TriggerProgram | None:
        """Return the program without the view; None if some statement should go on reading it."""
        keys, triggers, known = known_keys(self.before), list[Trigger](), self._known_lookups()
        for trigger in self.before.triggers:
            statements = [self._rewritten(statement, trigger, keys, known) for statement in trigger.statements]
            found = [statement for statement in statements if statement]
            if len(found) < len(statements):
                return None
            triggers.append(replace(trigger, statements=tuple(found)))
        return without_unread_views(replace(self.before, triggers=tuple(triggers)))

    def _known_lookups(self) -> set[Places]:
        """List the keys by which statements look the finer view up, for each of them."""
        every = (statement for trigger in self.before.triggers for statement in trigger.statements)
        return {_bound(ref, s) for s in every for ref in s.refs[1:] if ref.name == self.finer.name and ref.row is None}

    def _rewritten(self, statement: Statement, trigger: Trigger, keys: Keys, known: set[Places]) -> Statement | None:
        """Let a statement read the finer view; None if it should not."""
        for ref in [ref for ref in statement.refs[1:] if ref.name == self.view.name]:
            if ref.row or any(s.target == self.view.name for s in trigger.statements):
                return None
            found = _read(statement, ref, {self.view.name: self.view}, self.finer, self.allocator)
            if found is None:
                return None
            statement, new = found
            bound = _bound(new, statement)
            if not finds_one(self.finer, [self.finer.keys[place] for place in bound], keys):
                own = _key_of_delta(trigger, statement)
                if bound not in known or not own or not own <= {new.variables[place] for place in bound}:
                    return None
        return statement


def _read(
    statement: Statement, ref: Ref, views: Mapping[str, View], finer: View, allocator: ColumnAllocator
) -> tuple[Statement, Ref] | None:
    """Replace the use of a view by that of a finer one; None if that does not have its sums."""
    found = Join.of(statement, [ref], views, allocator).computed_from(finer, allocator)
    if found is None:
        return None
    new = replace(found[0], is_after=ref.is_after)
    lanes = (
        None if lane is None else (*lane, *(more or ())) for lane, more in zip(statement.lanes, found[1], strict=True)
    )
    refs = tuple(new if each is ref else each for each in statement.refs)
    return replace(statement, refs=refs, lanes=tuple(lanes)), new


def _bound(ref: Ref, statement: Statement) -> Places:
    """Find the keys of a view whose variables other factors of a statement bind."""
    others = frozenset[Column]().union(*(each.bound_variables for each in statement.refs if each is not ref))
    return frozenset(place for place, v in enumerate(ref.variables) if v in others)


def _key_of_delta(trigger: Trigger, statement: Statement) -> frozenset[Column]:
    """Return the variables of a statement that are the PRIMARY KEY of the relation that changes."""
    first = statement.refs[0]
    found = (_places_of_key(trigger, delta) for delta in trigger.deltas if delta.name == first.name)
    return frozenset(first.variables[place] for places in found for place in places)


def _places_of_key(trigger: Trigger, delta: View) -> list[int]:
    """Find the keys of a delta that are the PRIMARY KEY of its relation; none if it lacks some of it."""
    (term, *others), names = delta.terms, trigger.relation.primary_key
    fields = dict(term.atoms[0].fields)
    if others or not {*names} <= fields.keys() or not {fields[name] for name in names} <= {*delta.keys}:
        return []
    return [delta.keys.index(fields[name]) for name in names]


def _with_finer_deltas(trigger: Trigger, allocator: ColumnAllocator) -> Trigger:
    """Read deltas of a trigger in more detail where what is looked up for them is looked up anyway."""
    for delta in trigger.deltas:
        for finer in trigger.deltas:
            if _is_finer(finer, delta) and is_simple(finer) and is_simple(delta):
                after = _with_finer_delta(trigger, delta, finer, allocator)
                if after is not None:
                    return _with_finer_deltas(after, allocator)
    return trigger


def _with_finer_delta(trigger: Trigger, delta: View, finer: View, allocator: ColumnAllocator) -> Trigger | None:
    """Read a delta in more detail; None if some statement should not."""
    known, statements = [*_lookups(trigger.statements, finer)], list[Statement]()
    for statement in trigger.statements:
        first, *others = statement.refs
        if first.name == delta.name:
            found = _read(statement, first, {delta.name: delta}, finer, allocator)
            if found is None or any(ref.name == delta.name for ref in others):
                return None
            statement, _ = found
            if not others or not any(_lookups_of(statement) <= some for some in known):
                return None
        elif any(ref.name == delta.name for ref in others):
            return None
        statements.append(statement)
    return trigger.with_statements(statements)


def _lookups(statements: Sequence[Statement], delta: View) -> Iterator[Lookups]:
    """Yield what each statement looks up for rows of a delta."""
    return (_lookups_of(statement) for statement in statements if statement.refs[0].name == delta.name)


def _lookups_of(statement: Statement) -> Lookups:
    """Describe what a statement looks up for the rows of its delta."""
    first, *others = statement.refs
    places = {v: place for place, v in enumerate(first.variables)}
    return frozenset((ref.name, tuple(map(places.get, ref.variables))) for ref in others)
