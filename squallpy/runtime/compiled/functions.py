"""Printed functions at work: a delta of an Arrow batch, or a run of statements over pools.

A function is given words by the address of the first: addresses of frames and buffers, and how many rows there are. Its
pools are those of the generic kernels, so both may take turns.
"""

import ctypes
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import numpy as np
import pyarrow as pa

from squallpy.base.events import COMPILE, WARNING, first_line, log_event
from squallpy.catalog.relation import MULT
from squallpy.codegen import groups as at
from squallpy.codegen.groups import ARROW, GroupCode
from squallpy.codegen.program import PlanCode, RunCode, print_plan
from squallpy.physical.plan import Plan
from squallpy.runtime.compiled.code_cache import load_cached, load_code
from squallpy.runtime.evaluate.kernel_runner import Batch
from squallpy.runtime.kernels.dictionary import Dictionary
from squallpy.runtime.kernels.memory_regions import Words
from squallpy.runtime.kernels.pool import Pool
from squallpy.runtime.kernels.trigger_steps import STEPS

Function = Callable[[int], int]
_GROW = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64)
_NO_MEMORY = -2


class Steps:
    """The table of addresses that a function is given, and the pools and the dictionary that it lets grow."""

    def __init__(self, room: int = 0) -> None:
        self.pools: Sequence[Pool] = ()
        self.dictionary: Dictionary | None = None
        self.error: BaseException | None = None
        self._called = _GROW(self._grow)
        grow = int(ctypes.cast(self._called, ctypes.c_void_p).value or 0)
        self._room = np.empty(room, np.int64)
        self._table = np.array([grow, *(step.address for step in STEPS), self._room.ctypes.data], np.int64)
        self.address = self._table.ctypes.data

    def _grow(self, number: int) -> int:
        try:
            if number >= 0:
                self.pools[number].make_room()
            else:
                assert self.dictionary is not None
                self.dictionary.make_room()
        except BaseException as error:  # NB: it cannot pass through the function, which ends then
            self.error = error
            return 0
        return 1

    def check(self, answer: int) -> None:
        """Raise the error because of which a function ended."""
        if answer == _NO_MEMORY:
            error, self.error = self.error, None
            raise error or MemoryError


class CompiledGroup:
    """A printed function that computes a delta."""

    def __init__(self, code: GroupCode, function: Function) -> None:
        self._code, self._function, self._steps = code, function, Steps()
        self._words: Words = np.zeros(code.words, np.int64)
        self._address = self._words.ctypes.data
        self._words[at.STEPS] = self._steps.address
        self._texts = self._words[at.COLUMNS + len(code.columns) :]
        self._schema: pa.Schema | None = None
        self._readable, self._edition = False, -1

    def __call__(self, batch: Batch, sums: Pool, dictionary: Dictionary, span: tuple[int, int] | None = None) -> bool:
        """Add the rows of a batch to `sums`; False if the generic evaluators have to do it.

        Args:
            span: The first row that counts, and how many do.
        """
        first, rows = span or (0, batch.rows)
        if self._schema is None or not (self._schema is batch.schema or self._schema.equals(batch.schema)):
            self._readable = self._locate(batch.schema)
        self._schema = batch.schema
        if not self._readable:
            return False
        words, steps = self._words, self._steps
        if self._code.texts and (steps.dictionary is not dictionary or self._edition != dictionary.edition):
            self._texts[:] = 0
            self._edition = dictionary.edition
        steps.dictionary, steps.pools = dictionary, (sums,)
        words[at.BATCH], words[at.FIRST], words[at.ROWS] = batch.address, first, rows
        words[at.DICTIONARY], words[at.SUMS] = dictionary.address, sums.address
        answer = self._function(self._address)
        steps.check(answer)
        sums.tend(rows)
        if self._code.texts:
            dictionary.tend(rows)
        return answer == 0

    def _locate(self, schema: pa.Schema) -> bool:
        """Locate the columns in a batch; False if one is not laid out as the function reads it."""
        for i, (name, type) in enumerate(self._code.columns):
            child = schema.get_field_index(name)
            self._words[at.COLUMNS + i] = child
            if child < 0:
                if name != MULT:
                    return False
            elif str(schema.types[child]).partition("(")[0] != ARROW[type.kind]:
                return False
        return MULT not in schema.names or any(name == MULT for name, _ in self._code.columns)


class CompiledRun:
    """A printed function that runs statements of a stage."""

    def __init__(self, code: RunCode, function: Function) -> None:
        self.code, self._function, self._steps = code, function, Steps(code.room)
        self._words: Words = np.zeros(code.words, np.int64)
        self._address = self._words.ctypes.data
        self._words[0] = self._steps.address
        self._frames, self._notes = code.frames, code.notes
        self._pools: Mapping[str, Any] = {}
        self._targets: list[Pool] = []

    def __call__(self, deltas: Sequence[tuple[Words, Words] | None], pools: Mapping[str, Any]) -> tuple[int, ...]:
        """Run the statements; returns which of the unique views has a count above 1 of a key that was added to."""
        for i, given in enumerate(deltas):
            where = (0, 0, 0) if given is None else (*map(_address, given), len(given[0]))
            self._words[1 + 3 * i : 4 + 3 * i] = where
        return self._run(pools)

    def over(self, deltas: Sequence[Pool], pools: Mapping[str, Any]) -> tuple[int, ...]:
        """Run the statements over deltas that are the records of pools."""
        words, place = self._words, 1
        for pool in deltas:
            words[place], words[place + 1], words[place + 2] = *pool.places, len(pool)
            place += 3
        return self._run(pools)

    def _run(self, pools: Mapping[str, Any]) -> tuple[int, ...]:
        words, code = self._words, self.code
        if pools is not self._pools:
            self._pools, self._steps.pools = pools, [pools[name] for name in code.pools]
            self._targets = [pools[name] for name in code.targets]
        words[self._frames : self._notes] = [pool.address for pool in self._steps.pools]
        self._steps.check(self._function(self._address))
        rows = int(words[3 : self._frames : 3].sum())
        for pool in self._targets:
            pool.tend(rows)
        return tuple(words[self._notes :].tolist())


@dataclass(frozen=True)
class CompiledPlan:
    """The functions of a plan, each made once by those who call it.

    Args:
        is_checked: Batches are interpreted, too, now and then.
    """

    code: PlanCode
    module: ModuleType
    is_checked: bool = False

    def group(self, delta: str) -> CompiledGroup | None:
        """Make the function that computes a delta, if there is one."""
        code = next((each for each in self.code.groups if each.delta == delta), None)
        return CompiledGroup(code, getattr(self.module, code.function)) if code else None

    def runs(self) -> dict[int, CompiledRun]:
        """Make the functions of runs of statements, by the number of the first."""
        return {each.first: CompiledRun(each, getattr(self.module, each.function)) for each in self.code.runs}


def compile_plan(plan: Plan, mode: str) -> CompiledPlan | PlanCode | None:
    """Print and compile the triggers of a plan; None where nothing is to be compiled, or cannot be.

    Args:
        mode: The setting `compile`; with `background`, code that the disk does not have is returned as it is printed.
    """
    if mode == "off" or plan.partitions > 1 or len(plan.stages) > 1:
        return None
    code = print_plan(plan)
    if not code.groups and not code.runs:
        return None
    try:
        module = load_cached(code.text) if mode == "background" else load_code(code.text)
        return CompiledPlan(code, module, mode == "shadow") if module else code
    except Exception as error:  # NB: whatever the compiler's reason, the kernels go on without it
        log_event(COMPILE, WARNING, "not compiled", reason=first_line(error))
        return None


def _address(words: Words) -> int:
    assert words.flags.c_contiguous
    return int(words.__array_interface__["data"][0])
