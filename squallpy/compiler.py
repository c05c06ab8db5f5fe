"""Compilation of queries, from their text to the physical plan; `squall explain passes` prints its passes.

Queries that run together are compiled together, so that they share what they have in common.

text → bind → plan passes → lower → calculus passes → materialise → program passes → place
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import field, replace
from types import MappingProxyType
from typing import TYPE_CHECKING

from squallpy.base.records import dataclass
from squallpy.base.recursion import run_deep
from squallpy.base.settings import JoinOperator, Settings
from squallpy.catalog.relation import Relation
from squallpy.logical.bind import Script
from squallpy.logical.nodes import Query, titles_of
from squallpy.logical.plan_interning import PlanInterner
from squallpy.maintain.lowering.lower_query import lower
from squallpy.maintain.relational.materialise import materialise
from squallpy.optimizer.pass_manager import PassContext, PassObserver, fresh_ids, run_passes
from squallpy.optimizer.pipeline import CALCULUS_PASSES, PLAN_PASSES, PROGRAM_PASSES, disabled_passes
from squallpy.physical.distribute.distributed_program import DistributionOptions
from squallpy.physical.plan import Plan
from squallpy.physical.planner import place, set_join_parameters
from squallpy.program.auxiliary.model_rows import ModelRows
from squallpy.program.auxiliary.relation import AuxiliaryRelation
from squallpy.program.trigger_program import Lowered, TriggerProgram
from squallpy.runtime.evaluate.constant_evaluation import fold_constant

if TYPE_CHECKING:  # NB: matrices are imported by scripts that have any, so that others start at once
    from squallpy.maintain.matrix.matrix_program import MatrixProgram
    from squallpy.physical.matrix.matrix_plan import MatrixPlan


@dataclass(frozen=True, slots=True)
class CompiledProgram:
    """Queries at every stage up to their trigger program, wherever its views will be.

    Args:
        results: The number of each query's output in the program: queries that differ only in names have one.
        compensated: Sums in cofactor matrices are of double-doubles.
    """

    queries: tuple[Query, ...]
    optimised: tuple[Query, ...]
    results: tuple[int, ...]
    lowered: Lowered
    program: TriggerProgram
    compensated: bool

    @property
    def titles(self) -> tuple[tuple[str, ...], ...]:
        """The queries that each output of the program is printed for; nothing where there is one query."""
        return titles_of(self.queries, self.results)


@dataclass(frozen=True, slots=True)
class CompiledQuery(CompiledProgram):
    """Queries at every stage. `relations` are all that is read: their own, and those under their matrices."""

    plan: Plan
    relations: tuple[Relation, ...] = ()

    def is_printed_by_partitions(self, place: int) -> bool:
        """True if partitions keep the result of the query at a place, and print its changes."""
        _, result = self.program.printed[self.results[place]]
        return result.name in self.plan.partitioned


def _is_compensated(settings: Settings) -> bool:
    return settings.fivm_sums == "compensated"


def to_program(
    *queries: Query, settings: Settings | None = None, report_late: bool = False, observer: PassObserver | None = None,
    totals: Mapping[str, int] = MappingProxyType({}), present: Collection[str] = (),
) -> CompiledProgram:  # fmt: skip
    """Compile bound queries to one trigger program.

    Args:
        report_late: Rows that come after their window has passed are reported.
        observer: Called after each pass.
        totals: Rows that relations will ever have, as far as they are known.
        present: Relations of which they are what there is at a time.
    """
    settings = settings or Settings()
    disabled = disabled_passes(settings.passes, settings.optimizer)
    context = PassContext(fold_constant, report_late, disabled, ids=fresh_ids(*(query.plan for query in queries)))
    plans = [run_passes(query.plan, PLAN_PASSES, context, observer) for query in queries]
    optimised = tuple(q if plan is q.plan else replace(q, plan=plan) for q, plan in zip(queries, plans, strict=True))
    fold = None if "fold_constant" in disabled else fold_constant
    results = _number(optimised)
    distinct = [optimised[results.index(number)] for number in range(1 + max(results))]
    lowered = lower(distinct, context.ids, fold, context.empty_groups, settings.iterations)
    lowered = replace(lowered, auxiliary=tuple(_with_sizes(aux, totals, present) for aux in lowered.auxiliary))
    lowered = run_passes(lowered, CALCULUS_PASSES, context, observer)
    program = run_passes(materialise(lowered, settings.statements), PROGRAM_PASSES, context, observer)
    return CompiledProgram(queries, optimised, results, lowered, program, _is_compensated(settings))


def _with_sizes(aux: AuxiliaryRelation, totals: Mapping[str, int], present: Collection[str]) -> AuxiliaryRelation:
    """Tell a model of the rows that its relations will ever have."""
    if not isinstance(aux.kind, ModelRows):
        return aux
    read = sorted({atom.relation.name for term in aux.view.terms for atom in term.atoms}.intersection(totals))
    sizes, counted = tuple((name, totals[name]) for name in read), tuple(name for name in read if name in present)
    return replace(aux, kind=replace(aux.kind, sizes=sizes, present=counted))


def results_apart(compiled: CompiledProgram, apart: Collection[int]) -> Mapping[str, tuple[int, ...]]:
    """Find the results that only some queries print and that need no whole table: by name, keys to hash them by.

    Those are keys of the sink, if one has any: rows with one key are changes of each other.
    """
    found, program = dict[str, tuple[int, ...]](), compiled.program
    for number, view in enumerate(program.results):
        printing = [at for at, output in enumerate(compiled.results) if program.result_of[output] == number]
        outputs = [program.outputs[compiled.results[at]] for at in printing]
        whole = any(output.single or output.limit is not None or output.offset for output in outputs)
        if whole or not apart or not {*printing} <= {*apart}:
            continue
        keys = [*view.keys]
        for query, output in zip((compiled.queries[at] for at in printing), outputs, strict=True):
            if query.sink and query.sink.key is not None:
                columns = dict(zip(query.names, (expr for _, expr in output.items), strict=True))
                of_sink = [columns[name] for name in query.sink.key]
                keys = [key for key in keys if key in of_sink]
        found[view.name] = tuple(map(view.keys.index, keys))
    return found


def _number(queries: Sequence[Query]) -> tuple[int, ...]:
    """Number queries from 0 on; those that differ only in names have one number."""
    if len(queries) == 1:
        return (0,)
    interner, numbers = PlanInterner(), dict[int, int]()
    return tuple(numbers.setdefault(interner.number(query.plan), len(numbers)) for query in queries)


@dataclass(frozen=True)
class Compiler:
    """Compiles the queries of a script, with its matrix programs, under the same settings.

    Args:
        rows: Rows of relations to choose by where nobody knows how many there will be.
        present: Relations of which these are what there is at a time, not all changes.
        moves: State goes to the plans of other queries.
    """

    script: Script
    settings: Settings
    matrix_programs: "Mapping[str, MatrixProgram]"
    rows: Mapping[str, int] = field(default_factory=dict)
    present: Collection[str] = ()
    moves: bool = False

    def to_program(
        self, *queries: Query, report_late: bool = False, observer: PassObserver | None = None,
        totals: Mapping[str, int] = MappingProxyType({}),
    ) -> CompiledProgram:  # fmt: skip
        """Compile queries to their trigger program (`to_program`)."""
        return run_deep(
            lambda: to_program(
                *queries,
                settings=self.settings,
                report_late=report_late,
                observer=observer,
                totals={**self.rows, **totals},
                present=self.present,
            )
        )

    def compile(
        self,
        queries: Sequence[Query],
        partitions: int,
        sizes: dict[str, int],
        report_late: bool = False,
        apart: Collection[int] = (),
        bounded: bool = False,
    ) -> CompiledQuery:
        """Compile queries to their physical plan.

        Args:
            sizes: Rows of each relation, as far as they are known.
            bounded: These are all the rows that relations will ever have; else only those of static tables are.
            report_late: Rows that come after their window has passed are reported.
            apart: The places of queries whose changes partitions may print.
        """
        program = self.to_program(*queries, report_late=report_late, totals=self.totals(sizes, bounded))
        return self.place(program, partitions, sizes, apart)

    def totals(self, sizes: Mapping[str, int], bounded: bool) -> dict[str, int]:
        """Select the relations of which all rows are counted that they will ever have (`compile`)."""
        streams = {relation.name for relation in self.script.relations.values() if relation.stream}
        return {name: rows for name, rows in sizes.items() if bounded or name not in streams}

    def place(
        self, compiled: CompiledProgram, partitions: int, sizes: dict[str, int], apart: Collection[int] = ()
    ) -> CompiledQuery:
        """Compile a trigger program to the physical plan of its queries (`compile`)."""
        return run_deep(lambda: self._place(compiled, partitions, sizes, apart))

    def sizes_of(self, program: TriggerProgram, sizes: Mapping[str, int]) -> dict[str, int]:
        """Give relations that are derived from others, a row for each part, the sizes of these."""
        return dict(sizes) | {r.name: sizes.get(r.source.name, 0) for r in program.relations if r.parts}

    def _place(
        self, compiled: CompiledProgram, partitions: int, sizes: dict[str, int], apart: Collection[int]
    ) -> CompiledQuery:
        settings, program = self.settings, compiled.program
        sizes = self.sizes_of(program, sizes)
        joins = JoinOperator(settings.join_operator)
        switches = DistributionOptions(settings.move_rules, settings.move_sharing, settings.fusion)
        plan = place(
            program, partitions, sizes, switches, settings.partition, joins, compiled.compensated, settings.components,
            results_apart(compiled, apart), self.moves,
        )  # fmt: skip
        plan = set_join_parameters(
            plan, settings.join_epsilon, (settings.join_capacity_mb << 20) or None, settings.join_groups
        )
        if self.script.matrices or self.script.programs:
            plan = replace(plan, matrices=self._plan_matrices(plan, partitions))
        relations = self._relations(program, plan.matrices)
        printed = tuple((n, query.names) for n, query in zip(compiled.results, compiled.queries, strict=True))
        plan = replace(plan, printed=printed)
        stages = compiled.queries, compiled.optimised, compiled.results, compiled.lowered, program
        return CompiledQuery(*stages, compiled.compensated, plan, relations)

    def _plan_matrices(self, plan: Plan, partitions: int) -> "MatrixPlan | None":
        from squallpy.maintain.matrix.compile_triggers import Options
        from squallpy.physical.matrix.matrix_planner import plan_matrices

        settings = self.settings
        return plan_matrices(
            plan.sources,
            self.script.matrices,
            self.matrix_programs,
            Options(settings.matrix_model, settings.matrix_strategy),
            settings.matrix_deletes == "reevaluate",
            settings.matrix_place,
            partitions,
            self.script.relations.values(),
        )

    def _relations(self, program: TriggerProgram, matrices: "MatrixPlan | None") -> tuple[Relation, ...]:
        own = [relation.source for relation in program.relations if not relation.is_computed]
        under = [self.script.relations[name] for name in sorted(matrices.relations)] if matrices else []
        return tuple(dict.fromkeys([*own, *under]))
