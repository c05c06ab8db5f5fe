"""Auxiliary relations inlined: a row is computed from its sums when it is read, instead of being materialised.

    M_N1(p, avg) := N1(p, avg),  N1(p, avg) := Exists(M_L(p)) ⋈ (avg := M_L.1 / M_L.0)

    Q += ΔL(p, q) ⋈ M_N1(p, avg) ⋈ (q < avg)   →   Q += ΔL(p, q) ⋈ N1[M_L](p, avg) ⋈ (q < avg)

It applies where a view has a record for each group, and its reader knows the group. Until the relation's own trigger
has run, its rows are the ones before the batch, as in its view.
"""

from collections.abc import Iterable
from dataclasses import replace

from squallpy.base.records import dataclass
from squallpy.program.auxiliary.relation import AuxiliaryRelation
from squallpy.program.calculus import Assign, Rel
from squallpy.program.trigger_program import Statement, Trigger, TriggerProgram
from squallpy.program.views import Ref, RowFields, View


def inline_auxiliary(program: TriggerProgram) -> TriggerProgram:
    """Drop the views that only repeat the rows of an auxiliary relation; their readers compute the rows instead."""
    kept = {aux.source.name for aux in program.auxiliary if aux.source}
    auxiliary = {aux.relation.name: aux for aux in program.auxiliary if _has_rows(aux)}
    views = program.stored
    copies = {v.name: copy for v in views if v.name not in kept and (copy := _copy(v, auxiliary))}
    while copies:
        refused = {name for t in program.triggers for s in t.statements for name in _list_needed_views(s, copies)}
        changing = {t.relation.name for t in program.triggers if any(s.target not in copies for s in t.statements)}
        # a relation of static rows, which changes nothing else when it is loaded, has no trigger without its view
        refused |= {name for name, copy in copies.items() if copy.aux.relation.name not in changing}
        if not refused:
            break
        copies = {name: copy for name, copy in copies.items() if name not in refused}
    if not copies:
        return program
    order = {trigger.relation.name: n for n, trigger in enumerate(program.triggers)}
    triggers = [_rewritten(t, copies, order) for t in program.triggers]
    views = tuple(v for v in views if v.name not in copies)
    return replace(program, views=(*program.results, *views), triggers=tuple(t for t in triggers if t.statements))


@dataclass(frozen=True, slots=True)
class _Copy:
    """A view with a record for each row of an auxiliary relation: its keys of the source, and the fields of others."""

    aux: AuxiliaryRelation
    group: tuple[int, ...]
    fields: tuple[tuple[str, int], ...]


def _has_rows(aux: AuxiliaryRelation) -> bool:
    """True if it has at most one row for each group, as the group's sums determine."""
    output = aux.output
    return aux.is_by_group and not (output.aggregated_key or output.single or output.times) and aux.source is not None


def _copy(view: View, auxiliary: dict[str, AuxiliaryRelation]) -> _Copy | None:
    match view.terms[0].body:
        case (Rel(relation, fields),) if relation.name in auxiliary and view.terms[0].lanes == ((),):
            aux = auxiliary[relation.name]
            assert aux.source is not None
            made = dict(aux.output.items)
            places = {made[title]: view.keys.index(v) for title, v in fields}
            once = len(places) == len(fields) == len(view.keys)
            if not once or not places.keys() >= set(aux.source.variables):
                return None
            rest = tuple((t, view.keys.index(v)) for t, v in fields if made[t] not in aux.source.variables)
            return _Copy(aux, tuple(places[v] for v in aux.source.variables), rest)
    return None


def _list_needed_views(statement: Statement, copies: dict[str, _Copy]) -> Iterable[str]:
    """List the views that a statement needs: its lookups do not bind the group, or it binds a value of the row
    elsewhere."""
    others = [ref for ref in statement.refs[1:] if ref.name not in copies]
    bound = set(statement.refs[0].variables)
    while near := [
        ref for ref in others if not bound.isdisjoint(ref.variables) and not bound.issuperset(ref.variables)
    ]:
        bound = bound.union(*(ref.variables for ref in near))
    taken = [v for ref in (statement.refs[0], *others) for v in ref.variables]
    taken += [f.variable for f in statement.filters if isinstance(f, Assign)]
    for ref in statement.refs[1:]:
        if copy := copies.get(ref.name):
            row = [ref.variables[i] for _, i in copy.fields]
            if not {ref.variables[i] for i in copy.group} <= bound or not set(taken).isdisjoint(row):
                yield ref.name
            taken += row


def _rewritten(trigger: Trigger, copies: dict[str, _Copy], order: dict[str, int]) -> Trigger:
    def through(ref: Ref) -> Ref:
        copy = copies.get(ref.name)
        if copy is None:
            return ref
        name, source = copy.aux.relation.name, copy.aux.materialised
        fields = tuple((title, ref.variables[i]) for title, i in copy.fields)
        row = RowFields(name, fields, is_before=order[trigger.relation.name] <= order[name] and not ref.is_after)
        return Ref(source.name, tuple(ref.variables[i] for i in copy.group), (), row)

    kept = (s for s in trigger.statements if s.target not in copies)
    return trigger.with_statements(replace(s, refs=tuple(map(through, s.refs))) for s in kept)
