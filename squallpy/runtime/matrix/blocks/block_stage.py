"""Matrices in blocks on partitions, as the driver commands them: what is done in each batch is decided by cost.

    stage = BlockMatrices(plan, input)
    stage.begin(step)         →  Commands(phases of every program, factors of their updates, …)
    stage.end(figures)           what partitions have reported of it; the next batch follows

The driver reads rows and weighs, and keeps no matrix. All that it has to know of the batches before are its `facts`,
which go with the commit of a batch.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from typing import Any

from squallpy.base.json_codec import from_json, to_json
from squallpy.base.records import dataclass
from squallpy.base.semirings import ARITHMETIC
from squallpy.maintain.matrix.dimensions import Sizes
from squallpy.maintain.matrix.materialise import MatrixTrigger
from squallpy.physical.matrix.block_supersteps import ALONE, Phase
from squallpy.physical.matrix.matrix_plan import MatrixPlan, MatrixProgramPlan
from squallpy.runtime.matrix.algebra import depends_on, factor_growth
from squallpy.runtime.matrix.batch_rows import RelationReader, grown_sizes
from squallpy.runtime.matrix.blocks.commands import Commands
from squallpy.runtime.matrix.blocks.partition import supersteps
from squallpy.runtime.matrix.blocks.superstep import BlockProgram
from squallpy.runtime.matrix.cells import Cells
from squallpy.runtime.matrix.drift import CHECK, random_vectors
from squallpy.runtime.matrix.maintenance_choice import Prices, factor_for, rank_of, reason_to_evaluate, report_decision
from squallpy.runtime.matrix.rows_to_cells import CellRows, check_declared, sum_rows
from squallpy.runtime.matrix.stored_views import Array
from squallpy.runtime.sources.input import BatchSpans, Input
from squallpy.runtime.state.state_store import Store, StoreLayout

Given = tuple[Phase, dict[str, Array]]  # with its operands


@dataclass(frozen=True, slots=True)
class DriverFacts:
    """State of the driver between two batches.

    Args:
        sizes: The dimensions so far.
        steps: The number of supersteps so far.
        updates: The number of changes of inputs since each program was evaluated.
        singular: The programs that have a singular matrix.
    """

    sizes: dict[str, int]
    steps: int = 0
    updates: dict[str, int] = field(default_factory=dict)
    singular: tuple[str, ...] = ()


class BlockMatrices:
    """The matrices of a query in blocks on partitions, which the driver commands.

    Args:
        facts: Those of the last commit.
    """

    def __init__(self, plan: MatrixPlan, input: Input, facts: Mapping[str, Any] | None = None) -> None:
        self.plan, self._reader = plan, RelationReader(plan, input)
        self._programs = [BlockProgram(kept, ALONE) for kept in plan.programs]
        self._facts = from_json(DriverFacts, facts) if facts else DriverFacts(dict.fromkeys(self._reader.symbols, 0))
        self._next_facts = self._facts

    @property
    def facts(self) -> dict[str, Any]:
        """The driver's knowledge of the batches so far."""
        facts: dict[str, Any] = to_json(self._facts)
        return facts

    @property
    def supersteps(self) -> tuple[int, int]:
        """The number of the batch's first superstep, counted over all batches, and how many the batch has."""
        return self._facts.steps, self._next_facts.steps - self._facts.steps

    def begin(self, step: BatchSpans, directive: str = "", slices: str = "") -> bytes:
        """Decide on a batch and return the commands for its partitions.

        `directive` and `slices`, encoded, are for the stages behind the supersteps.
        """
        rows, figures, _ = self._reader.read(step, Store(StoreLayout(())))
        sizes = grown_sizes(self._facts.sizes, rows)
        phases, arrays, of_programs = dict[str, list[Phase]](), dict[str, Array](), dict[str, Any]()
        updates, mine = dict(self._facts.updates), dict[str, dict[str, int]]()
        for program in self._programs:
            kept, name = program.plan, program.plan.name
            mine[name] = {symbol: sizes[symbol] for symbol in kept.program.symbols()}
            given, of_programs[name] = self._decide(program, _cells(kept, rows, self.plan), mine[name])
            phases[name] = [phase for phase, _ in given]
            for number, (_, operands) in enumerate(given):
                arrays |= {f"{name}/{number}/{which}": array for which, array in operands.items()}
            fired = sum(phase.do == "fire" for phase in phases[name])
            updates[name] = 0 if of_programs[name]["why"] else updates[name] + fired
        figures |= {"matrices": of_programs}
        commands = Commands(step.number, mine, phases, arrays, figures, directive, slices)
        steps = self._facts.steps + supersteps(self._programs, commands)
        self._next_facts = DriverFacts(sizes, steps, updates, self._facts.singular)
        return commands.packed()

    def end(self, figures: Mapping[str, Mapping[str, Any]]) -> None:
        """Take note of which matrices are singular after a batch."""
        evaluated = {name for name, of_program in figures.items() if of_program["how"] == "evaluated"}
        still = {name for name in self._facts.singular if name not in evaluated}
        now = still | {name for name, of_program in figures.items() if "singular" in of_program}
        self._facts = replace(self._next_facts, singular=tuple(sorted(now)))

    def _decide(
        self, program: BlockProgram, cells: Mapping[str, Cells], sizes: Sizes
    ) -> tuple[list[Given], dict[str, Any]]:
        """Decide on a program in a batch, its triggers or evaluation; returns the phases, and statistics."""
        kept, made, known = program.plan, program.maintained, self._facts
        ranks = {name: rank_of(made, name, some) for name, some in cells.items()}
        rank = max(ranks.values(), default=0)
        before = {symbol: known.sizes[symbol] for symbol in sizes}
        grown = {symbol for symbol in sizes if sizes[symbol] > before[symbol]}
        prices, is_first = Prices(made, sizes, kept.compiled.options.strategy), kept.name not in known.updates
        is_singular = kept.name in known.singular
        if why := reason_to_evaluate(prices, ranks, grown=grown, is_first=is_first, is_singular=is_singular):
            return [*_adding(cells), (Phase("evaluate"), {})], report_decision(rank, why)
        fired, ring = [], kept.program.ring
        for name, constant in made.anf.constants.items():
            if depends_on(constant, grown):
                growth = factor_growth(constant, before, sizes, ring)
                fired.append((trigger := made.triggers[name], *factor_for(trigger, *growth, ring)))
        for name, some in cells.items():
            source = made.program.input(name)
            assert source
            shape = source.name.rows.at(sizes), source.name.cols.at(sizes)
            fired.append((trigger := made.triggers[name], *factor_for(trigger, *some.factors(shape, ring), ring)))
        behind = self._phases_behind(program, [trigger for trigger, *_ in fired], sizes)
        return [*_firing(fired), *behind], report_decision(rank, why)

    def _phases_behind(self, program: BlockProgram, fired: Sequence[MatrixTrigger], sizes: Sizes) -> Iterator[Given]:
        """List the phases behind triggers: a look every CHECK updates, and an evaluation if that or an inverse asks."""
        before = self._facts.updates[program.plan.name]
        look = program.ring is ARITHMETIC and before // CHECK < (before + len(fired)) // CHECK
        if look:
            yield Phase("look"), random_vectors(program.blocks.probe, sizes, before)
        if look or any(trigger.may_fail for trigger in fired):
            yield Phase("evaluate", is_optional=True), {}


def _cells(kept: MatrixProgramPlan, rows: Mapping[str, CellRows], plan: MatrixPlan) -> dict[str, Cells]:
    """Sum what a batch adds to the inputs of a program."""
    found = {}
    for source in kept.program.inputs:
        name = source.name.name
        if len(rows.get(name, ())):
            found[name] = sum_rows(rows[name], kept.program.ring)
            check_declared(plan.matrices[name], found[name])
    return found


def _adding(cells: Mapping[str, Cells]) -> Iterator[Given]:
    for name, some in cells.items():
        yield Phase("add", name), {"rows": some.rows, "cols": some.cols, "values": some.values}


def _firing(fired: Iterable[tuple[MatrixTrigger, Array, Array]]) -> Iterator[Given]:
    for trigger, u, v in fired:
        yield Phase("fire", trigger.input.name, u.shape[1]), {"u": u, "v": v}
