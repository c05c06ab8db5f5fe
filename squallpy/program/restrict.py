"""Restriction of a program to some of its views, and to what these are maintained from.

restrict(program, {"Q2"})   →   the statements of Q2 and of the views that they read, with their triggers
"""

from collections.abc import Collection
from dataclasses import replace

from squallpy.program.trigger_program import Program, Statement, Trigger


def restrict(program: Program, wanted: Collection[str]) -> Program:
    """Keep the wanted views, what their statements read, and the auxiliary relations that these are joined with."""
    needed, auxiliary = _closure(program, wanted)
    triggers = list[Trigger]()
    for trigger in program.triggers:
        statements = tuple(s for s in trigger.statements if s.target in needed)
        if statements:
            read = {ref.name for s in statements for ref in s.refs}
            deltas = tuple(delta for delta in trigger.deltas if delta.name in read)
            triggers.append(replace(trigger, deltas=deltas, statements=statements))
    outputs = tuple(o for o, view in zip(program.outputs, program.results, strict=True) if view.name in needed)
    views = tuple(view for view in program.views if view.name in needed)
    made = tuple(aux for aux in program.auxiliary if aux.relation.name in auxiliary)
    return Program(views, tuple(triggers), outputs, made)


def _closure(program: Program, wanted: Collection[str]) -> tuple[set[str], set[str]]:
    """Collect the targets of statements that are needed, and the auxiliary relations."""
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
        for relation, statement in changing.get(name, ()):
            left += [relation] if relation in made else []
            left += [ref.name for ref in statement.refs]
            left += [ref.row.relation for ref in statement.refs if ref.row]
    return needed, auxiliary
