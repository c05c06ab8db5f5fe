"""Programs as people read them, in the notation of `dbtoaster-batch-ivm`.

ON UPDATE R BY ΔR
  ΔR(b)      := Sum_[b](R(a, b))
  Q(b)       += Sum_[b](ΔR(b) ⋈ M_ST(b))
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import chain, count
from textwrap import indent

from squallpy.base.types import BIGINT
from squallpy.catalog.relation import Relation
from squallpy.catalog.stream_window import WindowSpec, format_duration
from squallpy.logical.expressions import Call, Column, Expr, Literal, substitute, transform
from squallpy.program.calculus import Assign, Cmp, Factor, Lane, Rel, Values, variables
from squallpy.program.program import (
    Lowered,
    Measure,
    Nest,
    Program,
    Ref,
    Running,
    Skyline,
    Spans,
    Statement,
    Trigger,
    View,
)

WIDTH = 112  # of a printed line


class Names:
    """A readable name for each variable of a scope; a name taken by another variable gets a number."""

    def __init__(self, scope: Iterable[Column]) -> None:
        self._names: dict[int, str] = {}
        taken: set[str] = set()
        for v in scope:
            if v.id not in self._names:
                candidates = chain([v.name], (f"{v.name}_{i}" for i in count(2)))
                self._names[v.id] = next(n for n in candidates if n.lower() not in taken)
                taken.add(self._names[v.id].lower())

    def __call__(self, v: Column) -> str:
        return self._names.get(v.id, v.name)

    def expr(self, expr: Expr) -> str:
        named = transform(expr, lambda e: Column(e.id, self(e), e.type, e.nullable) if isinstance(e, Column) else None)
        return str(named)

    def list(self, many: Iterable[Column]) -> str:
        return ", ".join(map(self, many))


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
    """Sum_[keys](body ⋈ ⟨lanes⟩) + …"""
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
    """The variable that a field is bound to, with the field's name where the variable is called like another field."""
    mistaken = variable.lower() != field.lower() and relation.field(variable) is not None
    return f"{field}: {variable}" if mistaken else variable


def _sum(keys: Sequence[Column], terms: list[str], names: Names) -> str:
    return f"Sum_[{names.list(keys)}]({' ⋈ '.join(terms)})"


def _ref(ref: Ref, names: Names, wide: bool) -> str:
    if ref.row:
        return f"{ref.row.nest.upper()}[{ref.name}]({names.list(ref.bound)})"
    picks = f"⟨{', '.join(f'{ref.name}.{p}' for p in ref.picks)}⟩" if wide and len(set(ref.picks)) > 1 else ""
    return f"{'NEW ' if ref.after else ''}{ref.name}({names.list(ref.variables)}){picks}"


def statement_text(statement: Statement) -> str:
    """target(keys) += Sum_[keys](…), or := for a partial product."""
    scope = [*statement.keys, *(v for ref in statement.refs for v in ref.bound)]
    names = Names([*scope, *(v for f in statement.filters for v in variables(f)), *variables(Values(statement.lanes))])
    terms = [_ref(ref, names, wide=False) for ref in statement.refs]
    terms += [_term(f, names) for f in statement.filters] + _values(statement.lanes, names)
    sign = ":=" if statement.partial else "+="
    return f"{statement.target}({names.list(statement.keys)}) {sign} {_sum(statement.keys, terms, names)}"


def trigger_text(trigger: Trigger, nest: Nest | None = None, costs: Sequence[str] = ()) -> str:
    """ON UPDATE R BY ΔR; with `nest`, after how ΔR comes about. `costs` are of that and of each statement."""
    name = trigger.relation.name.upper()
    verb = "ON UPDATE" if trigger.relation.stream else "ON LOAD"
    lines = [f"{head(d)} := {definition(d)}" for d in trigger.deltas]
    lines += [statement_text(s) for s in trigger.statements]
    lines = ([] if nest is None else [nest_delta(nest)]) + _align(lines)
    priced = [*range(nest is not None), *range(len(lines) - len(trigger.statements), len(lines))]
    for at, cost in zip(priced, costs, strict=bool(costs)):
        lines[at] += f"    [{cost}]"
    return f"{verb} {name} BY Δ{name}\n" + indent("\n".join(lines), "  ")


def nest_delta(nest: Nest) -> str:
    """The change of a nest: old and new rows of the groups that changed, their domain (§3.2.2)."""
    assert nest.source is not None
    name, view = nest.relation.name.upper(), nest.source.name
    if nest.window:
        return f"Δ{name} := Δ{view} − what falls out of {nest.window.frame}"
    keys = Names(nest.source.variables).list(nest.running.group if nest.running else nest.source.variables)
    domain = f"Dom_[{keys}](Δ{view}) ⋈ " if keys else ""
    return f"Δ{name} := {domain}({name}[{view} + Δ{view}] − {name}[{view}])"


def nest_text(nest: Nest) -> str:
    """What a nest's fields are in terms of the view that it is made of."""
    assert nest.source is not None
    if nest.running:
        return _intervals_text(nest, nest.source, nest.running)
    if nest.window:
        return _window_text(nest, nest.source, nest.window)
    finish = nest.finish.picked(nest.source.picks)
    names = Names(nest.source.variables)
    measures = {
        m.column.id: _over_text(m, names(finish.over), names) if finish.over else measure_value(m, nest.source.name)
        for m in finish.measures
    }
    if nest.skyline:
        return _skyline_text(nest, nest.source, nest.skyline)
    if nest.spans:
        return _spans_text(nest, nest.source, nest.spans)
    if nest.neighbours:
        measures[nest.neighbours.other.id] = f"the {nest.neighbours.other.name} {names(nest.neighbours.value)}"
    spelled: dict[int, Expr] = {id: Column(id, text, BIGINT) for id, text in measures.items()}
    fields = []
    for title, expr in finish.items:
        text = names.expr(substitute(expr, spelled))
        fields.append(f"({title} := {text})" if text != title else "")
    head = f"{nest.relation.name.upper()}({', '.join(title for title, _ in finish.items)})"
    groups = f"Exists({nest.source.name}({names.list(nest.source.variables)}))"
    times = [f"⟨{substitute(finish.times, spelled)}⟩"] if finish.times is not None else []
    if finish.number is not None:
        times = [f"({finish.number} < {substitute(finish.times, spelled)})"] if finish.times is not None else []
    terms = [*([] if finish.single else [groups]), *filter(None, fields), *times]
    line = f"{head} := {' ⋈ '.join(terms)}"
    return line if len(line) <= WIDTH else f"{head} :=\n    " + "\n      ⋈ ".join(terms)


def lowered_text(lowered: Lowered) -> str:
    """Show a lowered query: its auxiliary relations, innermost first, each with the groups that it is made of."""
    lines = []
    for nest in lowered.nests:
        lanes = tuple(range(len(nest.view.terms[0].lanes)))
        lines.append(fold(f"{head(nest.view)} := {definition(nest.view)}"))
        lines.append(nest_text(replace(nest, source=Ref(nest.view.name, nest.view.keys, lanes))))
    return "\n".join([*lines, fold(f"{head(lowered.view)} := {definition(lowered.view)}")]) + "\n"


def _intervals_text(nest: Nest, source: Ref, running: Running) -> str:
    """N4(low, high) := Intervals_[p](Exists(F(p)) ⋈ (0.25 * N1.total > SUM(v))), F(p) := Sum(M_BIDS(x) ⋈ (x > p))"""
    group = "".join(f"{column.name}, " for column in running.group)
    x = running.x.name
    context: dict[int, Expr] = {c.id: replace(c, name=f"{of.upper()}.{title}") for c, of, title in running.context}
    terms = [
        *([] if running.total else [f"Exists(F({group}p))"]),
        *(f"({substitute(predicate, context)})" for predicate in running.where),
    ]
    head = f"{nest.relation.name.upper()}({', '.join(title for title, _ in nest.finish.items)})"
    running_sum = f"F({group}p) := Sum({source.name}({group}{x}) ⋈ ({x} {running.op} p))"
    return f"{head} := Intervals_[p]({' ⋈ '.join(terms)})\n  with {running_sum}"


def _skyline_text(nest: Nest, source: Ref, line: Skyline) -> str:
    """N3(k1, at, value) := Skyline_[k1](M_QUOTES(symbol, time, bid)), no bid as great before"""
    titles, names = ", ".join(title for title, _ in nest.finish.items), Names(source.variables)
    group = ", ".join(title for title, expr in nest.finish.items if expr not in (line.x, line.value))
    what = f"no {names(line.value)} as {'great' if line.great else 'small'} {'before' if line.rising else 'behind'}"
    head = f"{nest.relation.name.upper()}({titles})"
    return f"{head} := Skyline_[{group}]({source.name}({names.list(source.variables)}): {what} a {names(line.x)})"


def _spans_text(nest: Nest, source: Ref, spans: Spans) -> str:
    """N3(k1, at, value, before, behind) := Spans_[k1](M_QUOTES(symbol, time, bid): the greatest bid around a time)"""
    titles, names = ", ".join(title for title, _ in nest.finish.items), Names(source.variables)
    own = (spans.x, spans.value, spans.before, spans.behind)
    group = ", ".join(title for title, expr in nest.finish.items if expr not in own)
    what = f"the {'greatest' if spans.great else 'least'} {names(spans.value)} around a {names(spans.x)}"
    head = f"{nest.relation.name.upper()}({titles})"
    return f"{head} := Spans_[{group}]({source.name}({names.list(source.variables)}): {what})"


def _window_text(nest: Nest, source: Ref, window: WindowSpec) -> str:
    """N1(a, ts) := W_N1(a, ts) ⋈ (ts IN RANGE 5 MIN BY s.ts − 2 SEC)"""
    titles = ", ".join(title for title, _ in nest.finish.items)
    clocks = ", ".join(
        f"{c.relation}.{c.field}{f' − {format_duration(c.delay)}' if c.delay else ''}" for c in window.clocks
    )
    name, variables = nest.relation.name.upper(), Names(source.variables).list(source.variables)
    return f"{name}({titles}) := {source.name}({variables}) ⋈ ({window.field} IN {window.frame} BY {clocks})"


def _align(lines: list[str]) -> list[str]:
    """Line up := and += where that fits the page; fold what is longer."""
    parts = [line.partition(" := Sum" if " := Sum" in line.split(" += ")[0] else " += Sum") for line in lines]
    width = max(len(left) for left, _, _ in parts)
    short = all(width + len(middle) + len(right) <= WIDTH for _, middle, right in parts)
    return [
        left.ljust(width) + middle + right if short else fold(left + middle + right) for left, middle, right in parts
    ]


def fold(line: str) -> str:
    """A long formula over several lines, broken before a ⋈ or after the sign."""
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


def views_text(program: Program) -> str:
    lines = [f"{head(v)} := {definition(v)}" for v in program.views]
    text = "VIEWS\n" + indent("\n".join(_align(lines)), "  ")
    nests = "\n".join(map(nest_text, program.nests))
    text += f"\n\nNESTED\n{indent(nests, '  ')}" if nests else ""
    parts = "\n".join(f"{r.name.upper()} := {r.parts}" for r in program.relations if r.parts)
    return f"PARTS\n{indent(parts, '  ')}\n\n{text}" if parts else text


def _over_text(measure: Measure, over: str, names: Names) -> str:
    """MIN x, BELOW 1/2 x, LISTAGG ', ' x BY y DESC"""
    told = "" if measure.share is None else f"{measure.share} "
    told += "" if measure.separator is None else f"{measure.separator!r} "
    keys = ", ".join(f"{names(key)}{' DESC' if down else ''}" for key, down, _ in measure.order)
    return f"{measure.function.upper()} {told}{over}{' BY ' if keys else ''}{keys}"


def measure_text(measure: Measure, view: View) -> str:
    return f"{measure.column.name} := {measure_value(measure, view.name)}"


def measure_value(measure: Measure, view: str) -> str:
    """An aggregate in terms of lanes."""

    def sum_of(terms: tuple[tuple[int, int], ...]) -> str:
        return " + ".join(f"{view}.{n}" if c == 1 else f"{c}·{view}.{n}" for c, n in terms) or "0"

    value, seen = sum_of(measure.value), sum_of(measure.present)
    match measure.function:
        case "count":
            return value
        case "avg":
            return f"({value}) / ({seen})"
    return f"{value} IF {seen} <> 0"


def program_text(program: Program, costs: Sequence[Sequence[str]] = ()) -> str:
    """Views, triggers, with what their statements cost, and the result, as `squall explain triggers` prints them."""
    finish, result = program.finish, program.result
    names = Names(_scope(result.keys, result.terms[0].body))
    lines = [measure_text(m, result) for m in finish.measures]
    lines += [f"HAVING {names.expr(finish.having)}"] if finish.having is not None else []
    lines += ["SELECT " + ", ".join(f"{names.expr(e)} AS {name}" for name, e in finish.items)]
    lines += [f"REPEAT {names.expr(finish.times)} TIMES"] if finish.times is not None else []
    if finish.order:
        lines.append("ORDER BY " + ", ".join(names.expr(e) + (" DESC" if down else "") for e, down, _ in finish.order))
    if finish.limit is not None:
        lines.append(f"LIMIT {finish.limit}" + (f" OFFSET {finish.offset}" if finish.offset else ""))
    nests = {nest.relation.name: nest for nest in program.nests}
    priced = zip(program.triggers, costs or [()] * len(program.triggers), strict=True)
    triggers = [trigger_text(t, nests.get(t.relation.name), each) for t, each in priced]
    parts = [views_text(program), *triggers, "RESULT\n" + indent("\n".join(lines), "  ")]
    return "\n\n".join(parts) + "\n"
