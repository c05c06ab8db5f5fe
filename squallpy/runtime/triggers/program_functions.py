"""Interpreted triggers in the place of compiled ones: a batch of a plan all of whose steps are programs is one call.

    compiled       a printed function for each delta and each run of statements, compiled for the plan
    interpreted    two kernels (`kernels/program_functions.py`), which are given a plan's programs

Of small batches most of the time is else Python's between kernels, whose data has left the cache meanwhile.
"""

from collections.abc import Mapping
from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa

from squallpy.base.rings import Cofactor, Payload
from squallpy.catalog.relation import MULT
from squallpy.codegen.group_code import GroupCode
from squallpy.codegen.program import RunCode
from squallpy.codegen.statement_code import touched_name
from squallpy.physical.plan import Feed, Lookup, Plan, Update
from squallpy.runtime.compiled.functions import CompiledDerivation, CompiledGroup, CompiledRun, FunctionTable, entry_of
from squallpy.runtime.kernels import program_functions as at
from squallpy.runtime.kernels import statement_steps
from squallpy.runtime.kernels.dictionary import Dictionary
from squallpy.runtime.kernels.kernel_compiler import KERNELS, Kernel
from squallpy.runtime.kernels.memory_regions import Words
from squallpy.runtime.kernels.pool import Pool
from squallpy.runtime.messages.grouping import Grouping
from squallpy.runtime.triggers.statement_assembly import Assembly, StepProgram
from squallpy.runtime.triggers.statement_execution import RunnableStatement


class ProgramGroup(CompiledGroup):
    """The kernel that computes a delta, with the delta's program.

    Args:
        is_signed: Rows may have multiplicities.
    """

    def __init__(self, grouping: Grouping, is_signed: bool) -> None:
        self.code = GroupCode(grouping.name, "", "", (), 0, ())
        self.steps = FunctionTable()
        self.entry = _entry_of(at.add_up_rows)
        self._programs = [grouping.program(counted) for counted in ((False, True) if is_signed else (False,))]
        self._words: Words = np.zeros(at.GROUP_WORDS, np.int64)
        self.address = self._words.ctypes.data
        self._words[at.STEPS] = self.steps.address
        self._schema: pa.Schema | None = None
        self._readable = False

    @property
    def is_whole(self) -> bool:
        """True if the programs are all there is to do."""
        return all(self._programs)

    def bind(self, sums: Pool, dictionary: Dictionary) -> None:
        self.steps.dictionary, self.steps.pools = dictionary, (sums,)
        self._words[at.SUMS] = sums.address

    def _locate(self, schema: pa.Schema) -> bool:
        counted = MULT in schema.names
        found = self._programs[counted] if counted < len(self._programs) else None
        if found is None or not found[0].fits(schema):
            return False
        runner, lifting = found
        program, columns, scratch = runner.arrays
        places = (at.PROGRAM, at.COLUMNS, at.SCRATCH, at.LIFTING)
        for place, words in zip(places, (program, columns, scratch, lifting), strict=True):
            self._words[place : place + 2] = words.ctypes.data, len(words)
        self._words[at.KEY], self._words[at.ROW] = runner.widths
        return True


class ProgramRun(CompiledRun):
    """The kernel that runs statements, with their programs.

    Args:
        noted: The views whose groups are noted before they change.
    """

    def __init__(
        self, first: int, statements: list[RunnableStatement], payloads: Mapping[str, Payload], noted: set[str]
    ) -> None:
        deltas = tuple(dict.fromkeys(each.delta for each in statements))
        targets = dict.fromkeys(each.target for each in statements)
        targets |= {touched_name(view): None for view in targets if view in noted}
        named, stop = (*targets,), first + len(statements)
        self.code = RunCode("", "", 0, first, stop, deltas, named, named, (), 0, ())
        self.steps = FunctionTable()
        self.entry = _entry_of(at.run_statements)
        self._statements, self._payloads, self._noted = statements, payloads, noted
        self._words: Words = np.zeros(self.code.words, np.int64)
        self.address = self._words.ctypes.data
        self._assemblies = [None if each.is_plain else each.whole_program for each in statements]
        self._lay_out()
        self._counts = (0, 0)

    def _lay_out(self) -> None:
        """Write the words about statements, but for the pools, and their programs side by side."""
        self._own: Words = np.zeros(at.STATEMENTS + at.STATEMENT * len(self._statements), np.int64)
        self._own[: at.STATEMENTS] = self.steps.address, len(self._statements)
        self._words[0] = self._own.ctypes.data
        programs, self._frames = list[Words](), list[tuple[int, str]]()
        length = 0
        for assembly in self._assemblies:
            for part in _programs_of(assembly) if assembly else ():
                self._frames += [(length + place, source) for place, source in part.frames]
                programs.append(part.program)
                length += len(part.program)
        self._programs = np.concatenate([*programs, np.empty(0, np.int64)])
        counted = np.array([place for place, _ in self._frames], np.int64) - statement_steps.FRAME
        self._found, self._tried = counted + statement_steps.FOUND, counted + statement_steps.TRIED
        start, added = self._programs.ctypes.data, list[int]()
        for i, (statement, assembly) in enumerate(zip(self._statements, self._assemblies, strict=True)):
            entry = at.STATEMENTS + at.STATEMENT * i
            own, given = self._own[entry : entry + at.STATEMENT], statement.update
            own[at.DELTA] = 1 + 3 * self.code.deltas.index(statement.delta)
            own[at.DELTA_KEY] = len(given.variables)
            own[at.DELTA_PAYLOAD] = self._payloads[statement.delta].width
            if assembly is None:
                continue
            words = sum(len(part.program) for part in _programs_of(assembly))
            own[at.STEP_PROGRAM : at.STEP_PROGRAM + 2] = start, words
            own[at.OUTCOME : at.OUTCOME + 2] = assembly.outcome.ctypes.data, len(assembly.outcome)
            own[at.REGISTERS], own[at.SOURCES] = assembly.width, assembly.sources
            start += 8 * words
            added += [entry + at.ADDED] if any(isinstance(step, Lookup) for step in given.steps) else []
        self._joined = np.array(added, np.int64)

    def bind(self, pools: Mapping[str, Any]) -> None:
        self._pools, self._used = pools, [pools[name] for name in self.code.pools]
        self.steps.pools, self._targets = self._used, self._used
        for i, statement in enumerate(self._statements):
            entry = at.STATEMENTS + at.STATEMENT * i
            for place, name in ((at.TARGET, statement.target), (at.TOUCHED, touched_name(statement.target))):
                if name in self.code.pools:
                    self._own[entry + place] = pools[name].address
                    self._own[entry + place + 1] = self.code.pools.index(name)
        for place, source in self._frames:
            self._programs[place] = pools[source].address

    @property
    def work(self) -> int:
        """Records that lookups have found so far, and rows that were added."""
        added = self._own[at.STATEMENTS + at.ADDED :: at.STATEMENT]
        return int(self._programs[self._found].sum() + added.sum())

    def take_counts(self) -> tuple[int, int]:
        """Return how many comparisons and pairs came since the last call, as `RunnableStatement.take_counts` does."""
        before = self._counts
        self._counts = int(self._programs[self._tried].sum()), int(self._own[self._joined].sum())
        return self._counts[0] - before[0], self._counts[1] - before[1]


def _programs_of(assembly: Assembly) -> list[StepProgram]:
    return [part for part in assembly.parts if isinstance(part, StepProgram)]


class ProgramPlan:
    """The kernels of a plan's triggers, made once by the one who calls them."""

    def __init__(self, groups: Mapping[str, ProgramGroup], runs: Mapping[int, ProgramRun]) -> None:
        self._groups, self._runs = groups, runs

    def group(self, delta: str) -> CompiledGroup | None:
        """Return what computes a delta, if anything does."""
        return self._groups.get(delta)

    def runs(self) -> dict[int, CompiledRun]:
        """Return the runs of statements, by the number of the first."""
        return {**self._runs}

    def derivations(self) -> list[CompiledDerivation]:
        """Return what computes deltas of auxiliary relations: nothing."""
        return []


def open_programs(plan: Plan) -> ProgramPlan | None:
    """Make the triggers of a plan of cofactor rings, in one partition, kernels; None if one is more than a program."""
    payloads = {each.name: each.payload for each in (*plan.pools, *plan.deltas, *plan.results)}
    if plan.partitions != 1 or len(plan.stages) != 1 or plan.unique or plan.on_grid or plan.windows or plan.matrices:
        return None
    if not any(isinstance(ring, Cofactor) for each in plan.deltas for ring in each.payload.rings):
        return None
    groups = dict[str, ProgramGroup]()
    for feed in plan.sources:
        if feed.row_deltas or feed.relation.source.is_keyed:
            return None
        groups |= _groups_of(feed)
    sliced = {delta.name for delta in plan.deltas if delta.slices}  # NB: what is lifted is not entered in slices
    runs = None if sliced & groups.keys() else _runs_of(plan, payloads)
    if runs is None or not all(group.is_whole for group in groups.values()):
        return None
    return ProgramPlan(groups, runs)


def _groups_of(feed: Feed) -> dict[str, ProgramGroup]:
    signed = feed.relation.source.is_signed
    deltas = zip(feed.deltas, feed.payloads, strict=True)
    return {delta.name: ProgramGroup(Grouping(delta, payload), signed) for delta, payload in deltas}


def _runs_of(plan: Plan, payloads: Mapping[str, Payload]) -> dict[int, ProgramRun] | None:
    """Make the longest runs of statements none of which reads what another adds up; None if one is more than a
    program."""
    auxiliary = [feed.auxiliary for feed in plan.feeds if feed.auxiliary]
    noted = {aux.source.name for aux in auxiliary if aux.kind.has_groups}
    sorted_pools = {pool.name for pool in plan.pools if pool.orders or pool.is_ordered}
    deltas = {delta.name for delta in plan.deltas}
    found, run, first = dict[int, ProgramRun](), list[RunnableStatement](), 0
    for number, step in enumerate((*plan.stages[0].steps, None)):
        if run and (not isinstance(step, Update) or step.delta in {each.target for each in run}):
            found[first] = ProgramRun(first, run, payloads, noted)
            run = []
        if not isinstance(step, Update):
            continue
        looked_up = [each for each in step.steps if isinstance(each, Lookup)]
        if step.delta not in deltas or step.target in sorted_pools:
            return None
        if any(each.row or each.range for each in looked_up):
            return None
        statement = RunnableStatement(step, payloads)
        if not statement.is_plain and statement.whole_program is None:
            return None
        first = first if run else number
        run.append(statement)
    return found


def are_programs_loaded() -> bool:
    """True if this process has the kernels loaded, which takes a tenth of a second."""
    return all(_kernel_of(function).is_loaded for function in (at.add_up_rows, at.run_statements))


def _kernel_of(function: Any) -> Kernel:
    return next(each for each in KERNELS if each.function is function)


@cache
def _entry_of(function: Any) -> int:
    _kernel_of(function).load()  # NB: else it has no code before its first call
    return entry_of(function)
