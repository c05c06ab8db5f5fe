"""The plan as a picture: relations, the views that their batches change, and results, with who reads what.

ON UPDATE ORDERS  Q(who) += ΔORDERS ⋈ M_ITEMS  [O(1)]   →   orders ──O(1)→ Q,   M_ITEMS ⇢ Q
"""

from collections.abc import Iterator
from typing import Any

from squallpy.logical.nodes import Query
from squallpy.physical.plan import Plan
from squallpy.physical.planner import place
from squallpy.physical.statement_cost import costs
from squallpy.program.explain_text import definition, head, statement_text
from squallpy.program.trigger_program import Statement, Trigger

Json = dict[str, Any]
ADDS, READS, MAKES = "adds", "reads", "makes"


def plan_graph(plan: Plan, queries: tuple[Query, ...]) -> Json:
    """Return the nodes and edges of a plan."""
    return {"nodes": [*_nodes(plan, queries)], "edges": [*_edges(plan)]}


def _nodes(plan: Plan, queries: tuple[Query, ...]) -> Iterator[Json]:
    program, made = plan.program, {aux.relation.name: aux for aux in plan.program.auxiliary}
    components = {view: str(component) for component, views in plan.components for view in views}
    for trigger in program.triggers:
        relation = trigger.relation
        if aux := made.get(relation.name):
            yield {"id": f"relation {relation.name}", "kind": "auxiliary", "name": relation.name, "text": aux.text}
        else:
            kind = "stream" if relation.stream else "table"
            text = f"{relation.name}({', '.join(field.name for field in relation.fields)})"
            yield {"id": f"relation {relation.name}", "kind": kind, "name": relation.name, "text": text}
    outputs = [number for number, _ in plan.printed] or [*range(len(queries))]
    printed = [program.result_of[output] for output in outputs]
    for number, view in enumerate(program.results):
        names = [query.name for of, query in zip(printed, queries, strict=False) if of == number]
        text = f"{head(view)} := {definition(view)}"
        name = ", ".join(names) or view.name
        yield {"id": view.name, "kind": "result", "name": name, "pool": view.name, "text": text}
    for view in program.stored:
        node = {"id": view.name, "kind": "view", "name": view.name, "pool": view.name}
        yield {**node, "text": f"{head(view)} := {definition(view)}", "component": components.get(view.name)}


def _edges(plan: Plan) -> Iterator[Json]:
    by_trigger = costs(place(plan.program, 1, {}))
    made = {aux.relation.name: aux for aux in plan.program.auxiliary}
    for trigger, marks in zip(plan.program.triggers, by_trigger, strict=True):
        if aux := made.get(trigger.relation.name):
            source, (cost, *marks_of_statements) = aux.materialised.name, marks
            yield {"from": source, "to": f"relation {aux.relation.name}", "kind": MAKES, "cost": cost, "text": ""}
            yield from _statements(trigger, marks_of_statements)
        else:
            yield from _statements(trigger, [*marks])


def _statements(trigger: Trigger, marks: list[str]) -> Iterator[Json]:
    """Yield the edges of a trigger; those of a partial product are those of what it is added to."""
    partial = dict[str, list[str]]()
    origin = f"relation {trigger.relation.name}"
    for statement, cost in zip(trigger.statements, marks, strict=True):
        read = [name for ref in statement.refs[1:] for name in partial.get(ref.name, [ref.name])]
        read = [*partial.get(statement.refs[0].name, []), *read]
        if statement.partial:
            partial[statement.target] = read
            continue
        yield _edge(origin, statement, ADDS, cost)
        for name in dict.fromkeys(read):
            if not name.startswith("Δ") and name not in partial:
                yield _edge(name, statement, READS, cost, trigger.relation.name)


def _edge(origin: str, statement: Statement, kind: str, cost: str, by: str = "") -> Json:
    edge = {"from": origin, "to": statement.target, "kind": kind, "cost": cost, "text": statement_text(statement)}
    return edge | ({"by": by} if by else {})
