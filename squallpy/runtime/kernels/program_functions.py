"""Functions for the driver of a batch that are the same for all plans: what a plan does are programs, given as words.

    printed for a plan      add_up_lineitem(given)    apply_2(given)
    programs                add_up_rows(given)        run_statements(given)

They are given words as printed functions are (`codegen/pre_aggregation.py`, `codegen/program.py`), and addresses of
programs besides, so that a plan whose triggers are interpreted is one call a batch, too.
"""

from typing import Any, Final

import numpy as np
from numba import carray  # type: ignore[attr-defined]

from squallpy.runtime.kernels import batch_expressions, statement_steps
from squallpy.runtime.kernels.intrinsics import load, pointer, store
from squallpy.runtime.kernels.kernel_compiler import Vector, address, called, kernel, making
from squallpy.runtime.kernels.payload_arithmetic import copy
from squallpy.runtime.kernels.pool_records import upsert_records
from squallpy.runtime.kernels.touched_groups import add_noted_rows
from squallpy.runtime.kernels.trigger_steps import GROW, add_rows, call, frame_at

# Words that `add_up_rows` is given, by the address of the first: those that a printed function is given, then the
# addresses and lengths of a program, of its columns, its scratch and a lifting (`cofactor_lifting`), the words of a key
# and of a row before it is lifted, and room for an `ArrowArray`.
STEPS: Final = 0
BATCH: Final = 1
FIRST: Final = 2
ROWS: Final = 3
SUMS: Final = 5
PROGRAM: Final = 6
COLUMNS: Final = 8
SCRATCH: Final = 10
LIFTING: Final = 12
KEY: Final = 14
ROW: Final = 15
ARRAY: Final = 16
GROUP_WORDS: Final = 26
_ARRAY_WORDS: Final = GROUP_WORDS - ARRAY
_OFFSET: Final = 2  # of an ArrowArray, in words

# Words at the address that is the first that `run_statements` is given: the table of addresses, how many statements
# there are, then of each the place of its delta in the words that are given, its keys' and payloads' words, addresses
# and lengths of its program and of its outcome's words (none: rows are added as they are), its registers and sources,
# frame and number of its target and of the pool of groups where it is noted (0: nowhere), and the rows that it has
# added so far.
COUNT: Final = 1
STATEMENTS: Final = 2
DELTA: Final = 0
DELTA_KEY: Final = 1
DELTA_PAYLOAD: Final = 2
STEP_PROGRAM: Final = 3
OUTCOME: Final = 5
REGISTERS: Final = 7
SOURCES: Final = 8
TARGET: Final = 9
TOUCHED: Final = 11
ADDED: Final = 13
STATEMENT: Final = 14
CHUNK: Final = 1 << 14  # rows that are joined at a time: what a step makes of them is to stay in the cache

_NO_ANSWER: Final = -1
_NO_MEMORY: Final = -2
_program: Any = batch_expressions.run_program
_kernel: Any = upsert_records
_statement: Any = statement_steps.run
_run_program: Any = called(_program.py_func)
_upsert_rows: Any = called(_kernel.py_func)
_run_statement: Any = making(_statement.py_func)


@making
def _vector(words: int, place: int) -> Vector:
    """View the words whose address and number stand at a place."""
    there: Any = pointer(load(words, place))
    return carray(there, (load(words, place + 1),))


@making
def _matrix(where: int, rows: int, width: int) -> Vector:
    """View rows of words at an address."""
    there: Any = pointer(where)
    return carray(there, (rows, width))


@kernel("int64(int64)")
def add_up_rows(given: int) -> int:
    """Add rows of a record batch up by key; return 0, −1 where a value has no room, −2 without memory."""
    rows, array = load(given, ROWS), given + 8 * ARRAY
    copy(array, load(given, BATCH), _ARRAY_WORDS)
    store(array, _OFFSET, load(array, _OFFSET) + load(given, FIRST))
    keys, words = np.empty((rows, load(given, KEY)), np.int64), np.empty((rows, load(given, ROW)), np.int64)
    columns = _matrix(load(given, COLUMNS), load(given, COLUMNS + 1), batch_expressions.COLUMN)
    kept, no_sums = np.empty(rows, np.int64), np.empty(0, np.int64)
    program, scratch, lifting = _vector(given, PROGRAM), _vector(given, SCRATCH), _vector(given, LIFTING)
    left = _run_program(program, columns, array, rows, scratch, keys, words, kept, no_sums)
    if left < 0:
        return _NO_ANSWER
    frame, grow, done = frame_at(load(given, SUMS)), load(load(given, STEPS), GROW), 0
    while True:
        done = _upsert_rows(frame, keys, words, lifting, done, left)
        if done >= left:
            return 0
        if call(grow, 0, 0, 0, 0, 0, 0) == 0:
            return _NO_MEMORY


@making
def _add(statement: int, steps: int, keys: int, words: int, rows: int) -> int:
    """Add rows to a statement's target, whose groups are noted before if they have to be; −2 without memory."""
    target, number = frame_at(load(statement, TARGET)), load(statement, TARGET + 1)
    store(statement, ADDED, load(statement, ADDED) + rows)
    if load(statement, TOUCHED) == 0:
        return add_rows(target, keys, words, rows, steps, number)
    touched = frame_at(load(statement, TOUCHED))
    return add_noted_rows(touched, target, keys, words, rows, steps, load(statement, TOUCHED + 1), number)


@kernel("int64(int64)")
def run_statements(given: int) -> int:
    """Run statements over their deltas, one after the other; return 0, or −2 without memory."""
    own = load(given, 0)
    steps = load(own, STEPS)
    for i in range(load(own, COUNT)):
        statement = own + 8 * (STATEMENTS + STATEMENT * i)
        delta = given + 8 * load(statement, DELTA)
        keys, words, rows = load(delta, 0), load(delta, 1), load(delta, 2)
        if load(statement, OUTCOME + 1) == 0:
            if rows > 0 and _add(statement, steps, keys, words, rows) < 0:
                return _NO_MEMORY
            continue
        width, broad = load(statement, DELTA_KEY), load(statement, DELTA_PAYLOAD)
        program, outcome = _vector(statement, STEP_PROGRAM), _vector(statement, OUTCOME)
        for first in range(0, rows, CHUNK):
            some = min(CHUNK, rows - first)
            there = _matrix(keys + 8 * first * width, some, width)
            payloads = _matrix(words + 8 * first * broad, some, broad)
            registers, sources = load(statement, REGISTERS), load(statement, SOURCES)
            made, products = _run_statement(program, outcome, there, payloads, registers, sources)
            answer = _add(statement, steps, address(made), address(products), made.shape[0])
            if answer < 0 or made.shape[0] != products.shape[0]:  # NB: which also keeps both until here
                return _NO_MEMORY
    return 0
