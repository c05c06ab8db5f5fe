"""Restriction of a program to some of its views, and to what these are maintained from.

restrict(program, {"Q2"})   →   the statements of Q2 and of the views that they read, with their triggers
"""

from collections.abc import Collection, Sequence
from dataclasses import replace

from squallpy.program.auxiliary.relation import AuxiliaryRelation
from squallpy.program.held_rows import HELD, covered, covering, covers, held_delta, is_empty
from squallpy.program.output_spec import OutputSpec
from squallpy.program.trigger_program import Statement, Trigger, TriggerProgram
from squallpy.program.views import Ref, View


def restrict(program: TriggerProgram, wanted: Collection[str]) -> TriggerProgram:
    """Keep the wanted views, what their statements read, and the auxiliary relations that these are joined with."""
    needed, auxiliary = _closure(program, wanted)
    return _cut(program, needed, auxiliary)


def restrict_above(program: TriggerProgram, wanted: Collection[str], held: Collection[str]) -> TriggerProgram | None:
    """Keep the wanted views, and let the rows of held views come as their deltas; None if streams are needed, too.

    Q2(g) += Sum_[g](ΔN1(g, total)), N1 of the groups of M_R, which is held   →   M_R += Δheld M_R; ΔN1; Q2 += …
    """
    known, views = covers(program.views, _complete(program, held)), {view.name: view for view in program.views}
    computed = {name: found for name in wanted if (found := covered(views[name], known))}
    empty = {name for name in wanted if is_empty(views[name])}
    needed, auxiliary = _closure(program, wanted, {*held, *computed, *empty})
    given, names = needed & {*held, *computed, *empty}, {aux.relation.name for aux in program.auxiliary}
    kept = given - computed.keys()
    if any(aux.kind.hides_rows or aux.materialised.name not in kept for aux in _windows(program, auxiliary)):
        return None
    for trigger in program.triggers:
        if trigger.relation.name not in names and any(s.target in needed - given for s in trigger.statements):
            return None
    sources, statements = set[str](), list[Statement]()
    for name in (name for name in views if name in given - empty):
        source, adding = computed[name] if name in computed else (name, _itself(views[name]))
        sources.add(source)
        statements += adding
    return _above(program, needed, sources, statements, _cut(program, needed - given, auxiliary))


def restrict_to_rows(program: TriggerProgram, wanted: Collection[str], held: Collection[str]) -> TriggerProgram | None:
    """Keep the wanted views and what they are made of, and let rows of held views come in place of those of streams.

    Q3(a) += Sum_[a](ΔR′3(a)), Q1 of the rows of R is held   →   ΔR′3(a) += Sum_[a](Δheld Q1(a, d)); Q3 += …

    None where a stream has no such view, and for windows, whose clocks only follow from the rows of streams.
    """
    needed, auxiliary = _closure(program, wanted)
    if _windows(program, auxiliary):
        return None
    known, names = covers(program.views, _complete(program, held)), {aux.relation.name for aux in program.auxiliary}
    found, given, statements = _cut(program, needed, auxiliary), set[str](), list[Statement]()
    for trigger in found.triggers:
        if trigger.relation.name not in names:
            cover = covering(trigger.deltas, known)
            if cover is None:
                return None
            given.add(cover[0])
            statements += [*cover[1], *trigger.statements]
    others = tuple(trigger for trigger in found.triggers if trigger.relation.name in names)
    return _above(program, needed, given, statements, replace(found, triggers=others))


def _complete(program: TriggerProgram, held: Collection[str]) -> set[str]:
    """Leave out the held views from which windows take rows."""
    return {*held} - {aux.materialised.name for aux in _windows(program, [a.relation.name for a in program.auxiliary])}


def _windows(program: TriggerProgram, auxiliary: Collection[str]) -> list[AuxiliaryRelation]:
    """List those of some auxiliary relations that take rows from their views as time goes."""
    return [aux for aux in program.auxiliary if aux.kind.forgets_rows and aux.relation.name in auxiliary]


def _above(
    program: TriggerProgram,
    needed: Collection[str],
    given: Collection[str],
    statements: Sequence[Statement],
    others: TriggerProgram,
) -> TriggerProgram:
    """Put statements that read the rows of held views before the triggers of what is above."""
    views = tuple(view for view in program.views if view.name in needed or view.name in given)
    deltas = tuple(View(held_delta(view.name), view.keys, view.terms) for view in views if view.name in given)
    triggers = (*([Trigger(HELD, deltas, tuple(statements))] if deltas else []), *others.triggers)
    return TriggerProgram(views, triggers, *_outputs(program, {*needed, *given}), others.auxiliary)


def _itself(view: View) -> tuple[Statement, ...]:
    lanes = range(len(view.terms[0].lanes))
    ref = Ref(held_delta(view.name), view.keys, tuple(lanes))
    return (Statement(view.name, view.keys, (ref,), (), ((),) * len(lanes)),)


def _cut(program: TriggerProgram, needed: Collection[str], auxiliary: Collection[str]) -> TriggerProgram:
    triggers = list[Trigger]()
    for trigger in program.triggers:
        statements = tuple(s for s in trigger.statements if s.target in needed)
        if statements:
            read = {ref.name for s in statements for ref in s.refs}
            deltas = tuple(delta for delta in trigger.deltas if delta.name in read)
            triggers.append(replace(trigger, deltas=deltas, statements=statements))
    views = tuple(view for view in program.views if view.name in needed)
    made = tuple(aux for aux in program.auxiliary if aux.relation.name in auxiliary)
    return TriggerProgram(views, tuple(triggers), *_outputs(program, needed), made)


def _outputs(program: TriggerProgram, needed: Collection[str]) -> tuple[tuple[OutputSpec, ...], tuple[int, ...]]:
    """Keep the outputs of some results, with the numbers that these then have."""
    names = [view.name for view in program.results if view.name in needed]
    kept = [(output, names.index(view.name)) for output, view in program.printed if view.name in names]
    return tuple(output for output, _ in kept), tuple(number for _, number in kept)


def users_of_views(program: TriggerProgram, titles: Sequence[Sequence[str]]) -> dict[str, list[str]]:
    """Name the queries that each view is kept for.

    Args:
        titles: The queries that each output is printed for; nothing where there is one query.
    """
    found = dict[str, list[str]]()
    for (_, result), title in zip(program.printed, titles, strict=False):
        for name in _closure(program, {result.name})[0]:
            found.setdefault(name, []).extend(title)
    return found


def _closure(program: TriggerProgram, wanted: Collection[str], held: Collection[str] = ()) -> tuple[set[str], set[str]]:
    """Collect the targets of statements that are needed, and the auxiliary relations; held views need nothing."""
    changing: dict[str, list[tuple[str, Statement]]] = {}
    for trigger in program.triggers:
        for statement in trigger.statements:
            changing.setdefault(statement.target, []).append((trigger.relation.name, statement))
    made = {aux.relation.name: aux for aux in program.auxiliary}
    needed, auxiliary, left = set[str](), set[str](), [*wanted]
    while left:
        name = left.pop()
        if name in made and name not in auxiliary:
            auxiliary.add(name)
            left += [made[name].materialised.name, *made[name].kind.reads]
        if name in needed or name in made:
            continue
        needed.add(name)
        if name in held:
            continue
        for relation, statement in changing.get(name, ()):
            left += [relation] if relation in made else []
            left += [ref.name for ref in statement.refs]
            left += [ref.row.relation for ref in statement.refs if ref.row]
    return needed, auxiliary
