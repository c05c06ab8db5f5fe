"""The views in which a broken PRIMARY KEY shows."""

from collections.abc import Iterator

from squallpy.physical.plan import UniqueView
from squallpy.program.trigger_program import TriggerProgram
from squallpy.program.unique_keys import determined


def unique_views(program: TriggerProgram) -> Iterator[UniqueView]:
    """Find the views in which a count above 1 shows that data break a PRIMARY KEY.

    These are the views of one relation by its key, and those whose auxiliary relations rely on it.
    """
    auxiliary = {aux.relation.name for aux in program.auxiliary}
    declared = {r.name: r.primary_key for r in program.relations if r.primary_key and r.name not in auxiliary}
    relied_on = {aux.materialised.name for aux in program.auxiliary if aux.kind.relies_on_primary_key}
    for view in (v for v in program.views if len(v.terms) == 1 and v.terms[0].lanes[0] == ()):
        (term,) = view.terms
        if not term.atoms or any(atom.relation.name not in declared for atom in term.atoms):
            continue
        atom, *others = term.atoms
        fields, key = dict(atom.fields), declared[atom.relation.name]
        whole = not others and {fields.get(name) for name in key} == set(view.keys)
        read = {v for each in term.atoms for _, v in each.fields}
        if whole or (view.name in relied_on and read <= determined(term, view.keys, declared)):
            at = tuple((name, view.keys.index(v)) for name, v in fields.items() if name in key and v in view.keys)
            options = atom.relation.source.options
            yield UniqueView(view.name, options.get("path", ""), at, skips=options.get("on_error", "fail") != "fail")
