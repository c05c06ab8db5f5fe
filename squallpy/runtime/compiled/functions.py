"""Printed functions at work: a delta of an Arrow batch, or a run of statements over pools.

A function is given words by the address of the first: addresses of frames and buffers, and how many rows there are. Its
pools are those of the generic kernels, so both may take turns.
"""

import ctypes
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any, Protocol

import numpy as np
import pyarrow as pa

from squallpy.base.events import COMPILE, WARNING, first_line, log_event
from squallpy.base.records import dataclass
from squallpy.base.rings import Cofactor
from squallpy.catalog.relation import MULT
from squallpy.codegen import derivations
from squallpy.codegen import group_code as at
from squallpy.codegen.derivations import DerivationCode
from squallpy.codegen.group_code import GroupCode
from squallpy.codegen.pre_aggregation import ARROW
from squallpy.codegen.program import PlanCode, RunCode, print_plan
from squallpy.codegen.statement_code import ProductCode
from squallpy.physical.plan import Plan
from squallpy.runtime.compiled.code_cache import Functions, load_cached, load_compiled_apart
from squallpy.runtime.evaluate.kernel_runner import ExportedBatch
from squallpy.runtime.kernels.block_steps import BLOCK_STEPS, Product
from squallpy.runtime.kernels.cofactor_blocks import BLOCK, LIFTED, SCALAR, kind_of_factor
from squallpy.runtime.kernels.delta_records import APPENDS
from squallpy.runtime.kernels.dictionary import Dictionary
from squallpy.runtime.kernels.look_ahead import AHEAD_STEPS
from squallpy.runtime.kernels.memory_regions import Words
from squallpy.runtime.kernels.pool import Pool
from squallpy.runtime.kernels.range_steps import RANGE_STEPS
from squallpy.runtime.kernels.real_lanes import REAL_STEPS, ROOM
from squallpy.runtime.kernels.sorted_steps import SORTED_STEPS, Extremes, SortedRows
from squallpy.runtime.kernels.text_steps import NAMES
from squallpy.runtime.kernels.touched_groups import ADD_NOTED
from squallpy.runtime.kernels.trigger_steps import APPENDING, STEPS

NativeFunction = Callable[[int], int]
_GROW = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64)
_NO_MEMORY = -2


class Growable(Protocol):
    """A data structure that a function may find without room."""

    def make_room(self) -> None:
        """Let it grow."""
        ...


class FunctionTable:
    """The table of addresses that a function is given, and the pools and the dictionary that it lets grow.

    Args:
        room: Words that it may use.
        has_blocks: It has elements of cofactor rings.
        has_orders: It has views with sorted indexes.
    """

    def __init__(self, room: int = 0, has_blocks: bool = False, has_orders: bool = False) -> None:
        self.pools: Sequence[Growable] = ()
        self.dictionary: Dictionary | None = None
        self.error: BaseException | None = None
        self._called = _GROW(self._grow)
        grow = int(ctypes.cast(self._called, ctypes.c_void_p).value or 0)
        self._room = np.empty(room, np.int64)
        steps = [grow, *(step.address for step in STEPS), self._room.ctypes.data, 0, ADD_NOTED.address]
        find_entries, find_rows = AHEAD_STEPS
        steps += [find_entries.address, *(step.address for step in REAL_STEPS), *[0] * ROOM, find_rows.address, 0]
        steps += [step.address if has_blocks else 0 for step in BLOCK_STEPS]
        steps += [step.address for step in (*SORTED_STEPS, *RANGE_STEPS)] if has_orders else []
        self._table = np.array(steps, np.int64)
        self.address = self._table.ctypes.data

    @property
    def appending(self) -> int:
        """Address of a table like it, by which rows are not added up by key (`trigger_steps.APPENDING`)."""
        return int(self._appending.ctypes.data)

    @cached_property
    def _appending(self) -> Words:
        table = self._table.copy()
        for place, step in APPENDING.items():
            table[place] = step.address
        table[APPENDS] = 1
        return table

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

    def use(self, dictionary: Dictionary) -> None:
        """Let texts be those of a dictionary."""
        self.dictionary = dictionary
        self._table[NAMES] = dictionary.address

    def check(self, answer: int) -> None:
        """Raise the error because of which a function ended."""
        if answer == _NO_MEMORY:
            error, self.error = self.error, None
            raise error or MemoryError


def entry_of(function: Any) -> int:
    """Return the address of a compiled function's machine code."""
    (made,) = function.overloads.values()
    return int(made.library.get_pointer_to_function(made.fndesc.llvm_func_name))


class CompiledGroup:
    """A printed function that computes a delta."""

    def __init__(self, code: GroupCode, function: NativeFunction) -> None:
        self.code, self._function, self.steps = code, function, FunctionTable(code.room, code.room > 0)
        self.entry = entry_of(function)
        self._words: Words = np.zeros(code.words, np.int64)
        self.address = self._words.ctypes.data
        self._words[at.STEPS] = self.steps.address
        self._texts = self._words[at.COLUMNS + len(code.columns) : code.marks_at]
        self._schema: pa.Schema | None = None
        self._readable, self._edition = False, -1

    def __call__(self, batch: ExportedBatch, sums: Pool, dictionary: Dictionary) -> bool:
        """Add the rows of a batch to `sums`; False if the generic evaluators have to do it."""
        if not self.fits(batch.schema):
            return False
        self.bind(sums, dictionary)
        self.note(dictionary)
        self._words[at.BATCH], self._words[at.FIRST], self._words[at.ROWS] = batch.address, 0, batch.rows
        answer = self._function(self.address)
        self.steps.check(answer)
        sums.tend()
        if self.code.texts:
            dictionary.tend()
        return answer == 0

    def bind(self, sums: Pool, dictionary: Dictionary) -> None:
        """Let it add to `sums`, with texts numbered by a dictionary."""
        if self.code.texts and self.steps.dictionary is not dictionary:
            self._edition = -1
        self.steps.dictionary, self.steps.pools = dictionary, (sums,)
        self._words[at.DICTIONARY], self._words[at.SUMS] = dictionary.address, sums.address

    def note(self, dictionary: Dictionary) -> None:
        """Forget numbers of texts if the dictionary has given others since."""
        if self.code.texts and self._edition != dictionary.edition:
            self._texts[:] = 0
            self._edition = dictionary.edition

    @property
    def marks(self) -> int:
        """The address where it is given what it marks keys with, 0 if it has no marks."""
        return self.address + 8 * self.code.marks_at if self.code.has_marks else 0

    def fits(self, schema: pa.Schema) -> bool:
        """Locate the columns in a batch; False if the function cannot read it."""
        if self._schema is None or not (self._schema is schema or self._schema.equals(schema)):
            self._readable = self._locate(schema)
        self._schema = schema
        return self._readable

    def _locate(self, schema: pa.Schema) -> bool:
        """Locate the columns in a batch; False if one is not laid out as the function reads it."""
        for i, (name, type) in enumerate(self.code.columns):
            child = schema.get_field_index(name)
            self._words[at.COLUMNS + i] = child
            if child < 0:
                if name != MULT:
                    return False
            elif str(schema.types[child]).partition("(")[0] != ARROW[type.kind]:
                return False
        return MULT not in schema.names or any(name == MULT for name, _ in self.code.columns)


class CompiledRun:
    """A printed function that runs statements of a stage."""

    def __init__(self, code: RunCode, function: NativeFunction) -> None:
        self.code, self._function, self.steps = (
            code,
            function,
            FunctionTable(code.room, bool(code.products), bool(code.orders)),
        )
        self._products = [_product(each) for each in code.products]
        self.entry = entry_of(function)
        self._words: Words = np.zeros(code.words, np.int64)
        self.address = self._words.ctypes.data
        self._words[0] = self.steps.address
        self._words[code.products_at : code.notes] = [product.address for product in self._products]
        self._pools: Mapping[str, Any] = {}
        self._used, self._targets = list[Any](), list[Pool]()

    def __call__(
        self, deltas: Sequence[tuple[Words, Words] | None], pools: Mapping[str, Any], names: Dictionary
    ) -> tuple[int, ...] | None:
        """Run the statements; None if there is no answer, and nothing was changed.

        Otherwise it returns which of the unique views has a count above 1 of a key that was added to.
        """
        self.steps.use(names)
        if pools is not self._pools:
            self.bind(pools)
        words, code = self._words, self.code
        for i, given in enumerate(deltas):
            words[1 + 3 * i : 4 + 3 * i] = (0, 0, 0) if given is None else (*map(_address, given), len(given[0]))
        words[code.frames : code.products_at] = [pool.address for pool in self._used]
        answer = self._function(self.address)
        self.steps.check(answer)
        if answer < 0:
            return None
        for pool in self._targets:
            pool.tend()
        return tuple(self.repeats)

    def bind(self, pools: Mapping[str, Any]) -> None:
        """Let it read and change these pools."""
        orders = {name: SortedRows(pools[view].sorted[i]) for name, (view, i) in self.code.orders.items()}
        self._pools, self._used = pools, [orders.get(name) or pools[name] for name in self.code.pools]
        self.steps.pools = self._used
        self._targets = [pools[name] for name in self.code.targets if name not in orders]
        self._words[self.code.frames : self.code.products_at] = [pool.address for pool in self._used]

    @property
    def repeats(self) -> memoryview:
        """Words of the unique views, of which one is 1 where a count came to be above 1 in the last run, else 0."""
        return self._words.data[self.code.notes :]


class CompiledDerivation:
    """A printed function that computes a delta of an auxiliary relation."""

    def __init__(self, code: DerivationCode, function: NativeFunction) -> None:
        self.code, self.steps, self.entry = (
            code,
            FunctionTable(code.room, has_orders=code.is_extreme),
            entry_of(function),
        )
        self._words: Words = np.zeros(derivations.WORDS, np.int64)
        self.address = self._words.ctypes.data

    def bind(self, touched: Pool, source: Pool, sums: Pool, names: Dictionary, domain: Pool | None) -> None:
        """Let it read touched groups, their view, and the one that has those of which rows are read; add to `sums`."""
        self.steps.pools = (sums,)
        self.steps.use(names)
        frames = (pool.address for pool in (touched, source, sums))
        self._words[:] = self.steps.address, *frames, 0, 0 if domain is None else domain.address

    def bind_extremes(self, extremes: Extremes, sums: Pool, names: Dictionary) -> None:
        """Let it bring extremes up to date, and add to `sums`."""
        self.steps.pools = (sums, extremes.state, extremes.changed)
        self.steps.use(names)
        self._words[:] = self.steps.address, extremes.changed.address, extremes.address, sums.address, 0, 0

    @property
    def is_first(self) -> bool:
        """True if the batch is the first."""
        return bool(self._words[derivations.FIRST])

    @is_first.setter
    def is_first(self, value: bool) -> None:
        self._words[derivations.FIRST] = value


@dataclass(frozen=True)
class CompiledPlan:
    """The functions of a plan, each made once by those who call it.

    Args:
        is_checked: Batches are interpreted, too, now and then.
    """

    code: PlanCode
    functions: Functions
    is_checked: bool = False

    def group(self, delta: str) -> CompiledGroup | None:
        """Make the function that computes a delta, if there is one."""
        code = next((each for each in self.code.groups if each.delta == delta), None)
        return CompiledGroup(code, getattr(self.functions, code.function)) if code else None

    def runs(self, stage: int = 0) -> dict[int, CompiledRun]:
        """Make the functions of runs of statements of a stage, by the number of the first."""
        own = (each for each in self.code.runs if each.stage == stage)
        return {each.first: CompiledRun(each, getattr(self.functions, each.function)) for each in own}

    def derivations(self) -> list[CompiledDerivation]:
        """Make the functions that compute deltas of auxiliary relations."""
        return [CompiledDerivation(each, getattr(self.functions, each.function)) for each in self.code.derivations]


def compile_plan(plan: Plan, mode: str) -> CompiledPlan | PlanCode | None:
    """Print and compile the triggers of a plan; None where nothing is to be compiled, or cannot be.

    Args:
        mode: The setting `compile`; with `background`, code that the disk does not have is returned as it is printed.
    """
    if mode == "off":
        return None
    try:
        code = print_plan(plan)
        if not code.groups and not code.runs:
            return None
        functions = load_cached(code.text) if mode == "background" else load_compiled_apart(code.text)
        return CompiledPlan(code, functions, mode == "shadow") if functions else code
    except Exception as error:  # NB: whatever the compiler's reason, the kernels go on without it
        log_event(COMPILE, WARNING, "not compiled", reason=first_line(error))
        return None


def printed_code(compiled: CompiledPlan | PlanCode | None) -> PlanCode | None:
    """Return the code of what `compile_plan` returns."""
    return compiled.code if isinstance(compiled, CompiledPlan) else compiled


def _product(code: ProductCode) -> Product:
    """Write the factors of a product as words, as kernels read them."""
    words = list[int]()
    for factor in code.factors:
        if factor.ring is None:
            words += [-1 - factor.word, 0, kind_of_factor(LIFTED, factor.number, 1, code.ring.first)]
        elif isinstance(factor.ring, Cofactor):
            kind = kind_of_factor(BLOCK, factor.ring.first, factor.ring.size, code.ring.first)
            words += [factor.word, factor.offset, kind]
        else:
            words += [factor.word, factor.offset, kind_of_factor(SCALAR)]
    return Product(code.ring, words, code.width, code.rows)


def _address(words: Words) -> int:
    assert words.flags.c_contiguous
    return int(words.__array_interface__["data"][0])
