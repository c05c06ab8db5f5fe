"""Texts of programs, in the notation of `dbtoaster-batch-ivm`.

ON UPDATE R BY ΔR
  ΔR(b)      := Sum_[b](R(a, b))
  Q(b)       += Sum_[b](ΔR(b) ⋈ M_ST(b))
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from textwrap import indent
from types import MappingProxyType

from squallpy.catalog.relation import Relation
from squallpy.logical.expressions import Call, Column, Expr, Literal
from squallpy.program.auxiliary.relation import AuxiliaryRelation
from squallpy.program.calculus import Assign, Cmp, Factor, Lane, Rel, Values, variables
from squallpy.program.output_spec import Measure, OutputSpec
from squallpy.program.trigger_program import Lowered, Statement, Trigger, TriggerProgram
from squallpy.program.variable_names import WIDTH, Names
from squallpy.program.views import Ref, View

NOBODY: Mapping[str, Sequence[str]] = MappingProxyType({})


def lane_text(lane: Lane, names: Names) -> str:
    return "·".join(_factor(f, names) for f in lane) or "1"


def _factor(factor: Expr, names: Names) -> str:
    match factor:
        case Call("not", (Call("is_null", (arg,)),)):
            return f"[{names.expr(arg)} IS NOT NULL]"
        case _ if factor.type.kind.value == "BOOLEAN":
            return f"[{names.expr(factor)}]"
        case Column() | Literal():
            return names.expr(factor)
    return f"({names.expr(factor)})"


def definition(view: View) -> str:
    """Write Sum_[keys](body ⋈ ⟨lanes⟩) + …."""
    sums = []
    for term in view.terms:
        names = Names(_scope(view.keys, term.body))
        sums.append(_sum(view.keys, [*(_term(f, names) for f in term.body), *_values(term.lanes, names)], names))
    return " + ".join(sums)


def head(view: View) -> str:
    """Name and keys."""
    return f"{view.name}({Names(_scope(view.keys, view.terms[0].body)).list(view.keys)})"


def _scope(keys: Iterable[Column], body: Iterable[Factor]) -> list[Column]:
    return [*keys, *(v for f in body for v in sorted(variables(f), key=lambda v: v.id))]


def _values(lanes: Sequence[Lane | None], names: Names) -> list[str]:
    if all(lane == () for lane in lanes):
        return []
    return [f"⟨{', '.join('0' if lane is None else lane_text(lane, names) for lane in lanes)}⟩"]


def _term(factor: Factor, names: Names) -> str:
    match factor:
        case Rel(relation, fields, delta):
            shown = ", ".join(_field(relation, name, names(v)) for name, v in fields)
            return f"{'Δ' if delta else ''}{relation.name.upper()}({shown})"
        case Cmp(predicate):
            return f"({names.expr(predicate)})"
        case Assign(variable, value):
            return f"({names(variable)} := {names.expr(value)})"
    raise AssertionError(factor)


def _field(relation: Relation, field: str, variable: str) -> str:
    """Write the variable of a field, with the field's name if the variable has the name of another field."""
    mistaken = variable.lower() != field.lower() and relation.field(variable) is not None
    return f"{field}: {variable}" if mistaken else variable


def _sum(keys: Sequence[Column], terms: list[str], names: Names) -> str:
    return f"Sum_[{names.list(keys)}]({' ⋈ '.join(terms)})"


def _ref(ref: Ref, names: Names, wide: bool) -> str:
    if ref.row:
        return f"{ref.row.relation.upper()}[{ref.name}]({names.list(ref.bound_variables)})"
    picks = f"⟨{', '.join(f'{ref.name}.{p}' for p in ref.picks)}⟩" if wide and len(set(ref.picks)) > 1 else ""
    return f"{'NEW ' if ref.is_after else ''}{ref.name}({names.list(ref.variables)}){picks}"


def statement_text(statement: Statement) -> str:
    """Write target(keys) += Sum_[keys](…), or := for a partial product."""
    scope = [*statement.keys, *(v for ref in statement.refs for v in ref.bound_variables)]
    names = Names([*scope, *(v for f in statement.filters for v in variables(f)), *variables(Values(statement.lanes))])
    terms = [_ref(ref, names, wide=False) for ref in statement.refs]
    terms += [_term(f, names) for f in statement.filters] + _values(statement.lanes, names)
    sign = ":=" if statement.partial else "+="
    return f"{statement.target}({names.list(statement.keys)}) {sign} {_sum(statement.keys, terms, names)}"


def trigger_text(trigger: Trigger, aux: AuxiliaryRelation | None = None, costs: Sequence[str] = ()) -> str:
    """Write ON UPDATE R BY ΔR and the statements.

    For an auxiliary relation its change comes first. `costs` are those of that and of each statement.
    """
    name = trigger.relation.name.upper()
    verb = "ON UPDATE" if trigger.relation.stream else "ON LOAD"
    lines = [f"{head(d)} := {definition(d)}" for d in trigger.deltas]
    lines += [statement_text(s) for s in trigger.statements]
    lines = ([] if aux is None else [aux.delta_text]) + _align(lines)
    priced = [*range(aux is not None), *range(len(lines) - len(trigger.statements), len(lines))]
    for at, cost in zip(priced, costs, strict=bool(costs)):
        lines[at] += f"    [{cost}]"
    return f"{verb} {name} BY Δ{name}\n" + indent("\n".join(lines), "  ")


def lowered_text(lowered: Lowered) -> str:
    """Show a lowered query: its auxiliary relations, innermost first, each with the groups that it is made of."""
    lines = []
    for aux in lowered.auxiliary:
        lanes = tuple(range(len(aux.view.terms[0].lanes)))
        lines.append(fold(f"{head(aux.view)} := {definition(aux.view)}"))
        lines.append(replace(aux, source=Ref(aux.view.name, aux.view.keys, lanes)).text)
    return "\n".join([*lines, *(fold(f"{head(view)} := {definition(view)}") for view in lowered.views)]) + "\n"


def _align(lines: list[str]) -> list[str]:
    """Align := and += where that fits the page; fold longer lines."""
    parts = [line.partition(" := Sum" if " := Sum" in line.split(" += ")[0] else " += Sum") for line in lines]
    width = max(len(left) for left, _, _ in parts)
    short = all(width + len(middle) + len(right) <= WIDTH for _, middle, right in parts)
    return [
        left.ljust(width) + middle + right if short else fold(left + middle + right) for left, middle, right in parts
    ]


def fold(line: str) -> str:
    """Fold a long formula into several lines, broken before a ⋈ or after the sign."""
    if len(line) <= WIDTH:
        return line
    sign = " := " if " := Sum" in line.split(" += ")[0] else " += "
    left, _, right = line.partition(sign)
    lines = [left + sign.rstrip()]
    for i, term in enumerate(right.split(" ⋈ ")):
        term = term if i == 0 else f"⋈ {term}"
        if i and len(lines[-1]) + 1 + len(term) <= WIDTH:
            lines[-1] += f" {term}"
        else:
            lines.append(f"{'    ' if i == 0 else '      '}{term}")
    return "\n".join(lines)


def views_text(program: TriggerProgram, users: Mapping[str, Sequence[str]]) -> str:
    """Write the views and auxiliary relations, and which `users` have a view in common."""
    lines = _align([f"{head(v)} := {definition(v)}" for v in program.views])
    for at, view in enumerate(program.views):
        if len(names := users.get(view.name, ())) > 1:
            lines[at] += f"    -- shared by {', '.join(names)}"
    text = "VIEWS\n" + indent("\n".join(lines), "  ")
    auxiliary = "\n".join(aux.text for aux in program.auxiliary)
    text += f"\n\nAUXILIARY\n{indent(auxiliary, '  ')}" if auxiliary else ""
    parts = "\n".join(f"{r.name.upper()} := {r.parts}" for r in program.relations if r.parts)
    return f"PARTS\n{indent(parts, '  ')}\n\n{text}" if parts else text


def measure_text(measure: Measure, view: View) -> str:
    return f"{measure.column.name} := {measure.text(view.name)}"


def program_text(
    program: TriggerProgram,
    costs: Sequence[Sequence[str]] = (),
    titles: Sequence[Sequence[str]] = (),
    users: Mapping[str, Sequence[str]] = NOBODY,
) -> str:
    """Write views, triggers with the costs of statements, and the result, as `squall explain triggers` prints them.

    Args:
        titles: The queries that each output is printed for; nothing where there is one query.
        users: The queries that each view is kept for, if there are several.
    """
    auxiliary = {aux.relation.name: aux for aux in program.auxiliary}
    priced = zip(program.triggers, costs or [()] * len(program.triggers), strict=True)
    triggers = [trigger_text(t, auxiliary.get(t.relation.name), each) for t, each in priced]
    heads = [f" {view.name}" if len(program.outputs) > 1 else "" for _, view in program.printed]
    heads = [f"{head} of {', '.join(names)}" for head, names in zip(heads, titles, strict=True)] if titles else heads
    texts = (_output_text(output, view) for output, view in program.printed)
    results = [f"RESULT{head}\n{indent(text, '  ')}" for head, text in zip(heads, texts, strict=True)]
    return "\n\n".join([views_text(program, users), *triggers, *results]) + "\n"


def _output_text(output: OutputSpec, result: View) -> str:
    """Write how the rows of a result are printed."""
    names = Names(_scope(result.keys, result.terms[0].body))
    lines = [measure_text(m, result) for m in output.measures]
    lines += [f"HAVING {names.expr(output.having)}"] if output.having is not None else []
    lines += ["SELECT " + ", ".join(f"{names.expr(e)} AS {name}" for name, e in output.items)]
    lines += [f"REPEAT {names.expr(output.times)} TIMES"] if output.times is not None else []
    if output.order:
        lines.append("ORDER BY " + ", ".join(names.expr(e) + (" DESC" if down else "") for e, down, _ in output.order))
    if output.limit is not None:
        lines.append(f"LIMIT {output.limit}" + (f" OFFSET {output.offset}" if output.offset else ""))
    return "\n".join(lines)
