"""EXPLAIN: a query at any stage of its compilation, the list of passes, and what each of them has changed."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from math import inf
from typing import Any

from squallpy.base.errors import SquallError
from squallpy.base.records import dataclass
from squallpy.choice_schedule import FIRST_ROWS, depends_on_rows
from squallpy.codegen.program import print_plan
from squallpy.compiler import CompiledProgram, CompiledQuery, Compiler
from squallpy.logical.explain_text import show
from squallpy.logical.nodes import Node, Query
from squallpy.optimizer import pipeline
from squallpy.optimizer.pass_manager import PassObserver
from squallpy.physical.distribute.placement_search import BATCH, compare_placements
from squallpy.physical.explain_partitioning import fixpoint_lines, join_lines
from squallpy.physical.explain_text import plan_text, stages_text, triggers_text
from squallpy.program.auxiliary.model_rows import ModelRows
from squallpy.program.explain_text import lowered_text, program_text
from squallpy.program.trigger_program import Lowered, TriggerProgram
from squallpy.program.variable_names import Names
from squallpy.program.views import View

PLACED = ("physical", "stages", "code")  # stages that show where views are, or what is compiled of them
STAGES = ("logical", "optimized", "calculus", "triggers", *PLACED)
SIZED = ("triggers", "viewtree")  # stages before them that depend on the rows of relations
LISTS = ("viewtree", "passes", "trace", "why")


def program_stage_text(compiled: CompiledProgram, stage: str) -> str:
    """Show a query at a stage before its views are placed."""
    match stage:
        case "logical":
            return plans_text(compiled.queries)
        case "optimized":
            return plans_text(compiled.optimised)
        case "calculus":
            return lowered_text(compiled.lowered)
        case "triggers":
            return triggers_text(compiled.program, compiled.titles)
        case "viewtree":
            return view_trees_text(compiled.lowered, compiled.compensated)
    raise AssertionError(stage)


def stage_text(compiled: CompiledQuery, stage: str, yardstick: str = "") -> str:
    """Show a query at a stage, its matrices first.

    Args:
        yardstick: The figures to compare the stages with, from a comment of the script.
    """
    match stage:
        case "physical":
            text = plan_text(compiled.plan)
        case "stages":
            text = stages_text(compiled.plan, yardstick)
        case "code":
            return print_plan(compiled.plan).explained
        case _:
            text = program_stage_text(compiled, stage)
    if compiled.plan.matrices:
        from squallpy.physical.matrix.explain_text import matrix_stage_text  # NB: only scripts with matrices import it

        text = "\n".join(part for part in (matrix_stage_text(compiled.plan.matrices, stage), text) if part)
    return text


def why_text(
    compiler: Compiler, queries: Sequence[Query], partitions: int, sizes: Mapping[str, int], *, bounded: bool
) -> str:
    """Tell which passes changed queries and why, what each view is held for, and what other placements would cost.

    Args:
        bounded: Relations will have no more rows than these.
    """
    tracer = Tracer()
    compiled = compiler.to_program(*queries, observer=tracer, totals=compiler.totals(sizes, bounded))
    plan = compiler.place(compiled, partitions, dict(sizes)).plan
    lines = ["PASSES that changed it", *_list_reasons(tracer.names)]
    lines += ["", "VIEWS and when they are looked up"] if compiled.program.stored else []
    for view in compiled.program.stored:
        lines.append(f"  {view.name}({Names(view.keys).list(view.keys)}): {_use(compiled.program, view)}")
    lines += _list_choice(compiled, bounded)
    if partitions > 1:
        known = compiler.sizes_of(compiled.program, sizes)
        found = compare_placements(compiled.program, known, partitions, has_band=plan.band is not None)
        costs = sorted(found.items(), key=lambda each: each[1])
        lines += ["", f"PLACEMENTS, by the cost of a batch of {BATCH:,} tuples, in rows sent"]
        lines += [f"  {'impossible' if cost == inf else f'{cost:10,.0f}'}  {name}" for name, cost in costs]
        lines += join_lines(plan) + (fixpoint_lines(plan) if not plan.places else [])
    return "\n".join(lines) + "\n"


def _list_reasons(steps: Collection[str]) -> Iterator[str]:
    """Write a line for each pass that took some of the steps: its name, those of its rules, and its reason."""
    for each in (each for _, passes in pipeline.ALL for each in passes):
        rules = [rule for rule in each.rules if rule in steps]
        if rules or each.name in steps:
            done = f" by {', '.join(rules)}" if rules else ""
            yield f"  {each.name}{done}: {each.reason}"


def _list_choice(compiled: CompiledProgram, bounded: bool) -> Iterator[str]:
    """Tell by which rows of relations view trees were chosen, and when they are again."""
    if not depends_on_rows(compiled):
        return
    models = [aux for aux in compiled.lowered.auxiliary if isinstance(aux.kind, ModelRows)]
    counts = {name: f"{rows:,}" for aux in models for name, rows in aux.kind.sizes if rows}  # type: ignore[union-attr]
    relations = {atom.relation for aux in models for term in aux.view.terms for atom in term.atoms}
    counts |= {each.name: f"{each.expected_rows:,} expected" for each in relations if each.expected_rows}
    yield ""
    yield "VIEW TREES keep rows or payloads by the rows of relations"
    yield f"  {', '.join(f'{name} {counts[name]}' for name in sorted(counts)) or 'none is known yet: payloads'}"
    if not bounded:
        yield f"  chosen anew when {FIRST_ROWS:,} rows have been read, and whenever there are twice as many"


def _use(program: TriggerProgram, view: View) -> str:
    """Tell when a view is looked up, and what is derived from it."""
    changes = [
        trigger.relation.name
        for trigger in program.triggers
        if any(view.name in {ref.name for ref in statement.refs[1:]} for statement in trigger.statements)
    ]
    derived = [aux.relation.name for aux in program.auxiliary if aux.materialised.name == view.name]
    uses = [f"when {', '.join(changes)} {'change' if len(changes) > 1 else 'changes'}"] if changes else []
    uses += [f"rows of {name} are derived from it" for name in derived]
    return "; ".join(uses) or "only its own change"


def plans_text(queries: Iterable[Query]) -> str:
    """Show the logical plans of queries."""
    return "\n".join(show(query.plan) + "\n" for query in queries)


def view_trees_text(lowered: Lowered, compensated: bool) -> str:
    """Show the variable orders and view trees of a query's table functions over joins; SQ7004 if it has none."""
    models = [aux for aux in lowered.auxiliary if isinstance(aux.kind, ModelRows)]
    if not models:
        hint = "there are some for cofactor, ols, mutual_information and chow_liu of a join"
        raise SquallError("SQ7004", "the query has no view trees", hint=hint)
    from squallpy.maintain.factorised.models import model_tree  # NB: only queries that have any import it

    return "\n".join(model_tree(aux).text(compensated) for aux in models)


@dataclass(frozen=True, slots=True)
class TraceStep:
    """A step of a compilation that changed the query, which is shown as text `before` and `after` it."""

    name: str
    before: str
    after: str


@dataclass
class Tracer(PassObserver):
    """Collects the steps of a compilation that changed the query."""

    steps: list[TraceStep] = field(default_factory=list)

    def observe_step(self, name: str, before: Any, after: Any) -> None:
        if before != after:
            self.steps.append(TraceStep(name, _text(before), _text(after)))

    @property
    def names(self) -> list[str]:
        """The names of the steps, in their order."""
        return [step.name for step in self.steps]

    @property
    def text(self) -> str:
        """All steps as text; what one begins with is left out where the one before has ended with it."""
        parts, last = [], ""
        for step in self.steps:
            parts += [f"-- before {step.name}\n{step.before}"] if step.before != last else []
            parts.append(f"-- after {step.name}\n{step.after}")
            last = step.after
        return "\n".join(parts)


@dataclass
class Timer(PassObserver):
    """Adds up the seconds that each pass takes."""

    seconds: dict[str, float] = field(default_factory=dict)

    def took(self, name: str, seconds: float) -> None:
        self.seconds[name] = self.seconds.get(name, 0.0) + seconds


def _text(value: Node | Lowered | TriggerProgram) -> str:
    match value:
        case Lowered():
            return lowered_text(value)
        case TriggerProgram():
            return program_text(value)
    return show(value) + "\n"


def list_passes(seconds: dict[str, float] | None = None) -> str:
    """List all passes in their order, each with its reason and its rules, and with the milliseconds that it took."""
    lines = []
    for kind, passes in pipeline.ALL:
        lines += [f"{kind.upper()} PASSES"]
        for each in passes:
            took = f"{1000 * seconds.get(each.name, 0.0):8.1f} ms  " if seconds is not None else ""
            lines.append(f"  {took}{each.name}{' (required)' if each.is_required else ''}: {each.reason}")
            lines += [f"  {' ' * len(took)}  {rule}" for rule in each.rules]
    return "\n".join(lines) + "\n"
