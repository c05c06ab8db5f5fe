"""The steps of a statement over all rows of a delta, in one call.

ΔO(ck, ok) ⋈ M_C(ck) ⋈ M_L(ok) → Q(ok)      load ΔO | probe M_C by ck | probe M_L by ok | emit ok, n · n · (n, revenue)

A *program* is words: of each step its operation, its length, what it needs. The rows under way are *columns*, a
register for each variable, and *places*: for each source of payload factors (the delta first) the address of each
row's payload. So no payload is copied before the products are made. One set of kernels serves every statement.

Source: fused triggers, `dbtoaster-batch-ivm` §5.1; the paper generates code, here programs are data.
"""

from typing import Any, Final

import numpy as np
from numba import carray  # type: ignore[attr-defined]

from squallpy.base.rings.cofactor import PLAIN, POWERS
from squallpy.runtime.kernels import pool_layout as at
from squallpy.runtime.kernels.cofactor_products import add_products, ask_rows, settle, workspace
from squallpy.runtime.kernels.cofactor_tiles import TILE
from squallpy.runtime.kernels.intrinsics import load, pointer, store
from squallpy.runtime.kernels.kernel_compiler import (
    GIVEN_MATRIX,
    MATRIX,
    VECTOR,
    Vector,
    address,
    inlined,
    kernel,
    making,
)
from squallpy.runtime.kernels.memory_area import HEAD
from squallpy.runtime.kernels.memory_regions import Words
from squallpy.runtime.kernels.monomial_sums import multiply_monomials, sum_monomials
from squallpy.runtime.kernels.payload_products import combine, is_count
from squallpy.runtime.kernels.pool_records import probed
from squallpy.runtime.kernels.slice_lookup import sliced_records
from squallpy.runtime.kernels.stored_keys import key_at, word_at
from squallpy.runtime.kernels.stored_payloads import tagged_lane, tagged_payload, tagged_word

# Operations, the first word of a step. The second is the step's length.
PROBE: Final = 0
SLICE: Final = 1
SCAN: Final = 2
COMPARE: Final = 3
SET: Final = 4
ROW: Final = 5

# A lookup: where its pool's frame is, the number of its source, its slice; how many registers it looks by, how many
# it binds, how many live on; how many records it has found so far, and with how many it has compared rows, which it
# counts; and those: registers, (key position, register) pairs, registers.
FRAME: Final = 2
SOURCE: Final = 3
INDEX: Final = 4
COUNTS: Final = 5
FOUND: Final = 8
TRIED: Final = 9
LISTS: Final = 10

# The row that an auxiliary relation has of a record: as a lookup, but instead of source and slice, the frame of a pool
# of keys (0: none) and the address of the payloads that stand in for those keys'; what it binds are (payload position,
# register) pairs, of which the first has no register: where that is 0, there is no row.
NOTED: Final = 3
BEFORE: Final = 4

# A comparison: which (=, <>, <, <=, >, >= in this order), of a register with another (or −1: with a constant), and what
# is NULL in each; then the registers that live on. Setting: a register and its value.
WHICH: Final = 2
LEFT: Final = 3
RIGHT: Final = 4
CONSTANT: Final = 5
NULLS: Final = 6
LIVE: Final = 8

_FAR = 1 << 40


@making
def _words_at(where: int) -> Vector:
    """View the memory at an address as an array without an end."""
    there: Any = pointer(where)
    return carray(there, (_FAR,))


@making
def _given(program: Vector, start: int, count: int, columns: Vector) -> Words:
    """Gather rows of the registers that the program lists."""
    n = columns.shape[1]
    out = np.empty((n, count), np.int64)
    for k in range(count):
        register = program[start + k]
        for i in range(n):
            out[i, k] = columns[register, i]
    return out


@making
def _picked(program: Vector, start: int, count: int, columns: Vector, rows: Vector) -> Words:
    """Gather the chosen rows of the registers that the program lists."""
    m = rows.shape[0]
    out = np.empty((columns.shape[0], m), np.int64)
    for k in range(count):
        register = program[start + k]
        for j in range(m):
            out[register, j] = columns[register, rows[j]]
    return out


@making
def _moved(places: Vector, rows: Vector) -> Words:
    """Gather the places of chosen rows."""
    m = rows.shape[0]
    out = np.empty((places.shape[0], m), np.int64)
    for source in range(places.shape[0]):
        for j in range(m):
            out[source, j] = places[source, rows[j]]
    return out


@making
def _among(found: Vector) -> tuple[Words, Words]:
    """List (row, record) where there is a record."""
    m = 0
    for i in range(found.shape[0]):
        m += found[i] >= 0
    rows, records, j = np.empty(m, np.int64), np.empty(m, np.int64), 0
    for i in range(found.shape[0]):
        if found[i] >= 0:
            rows[j], records[j] = i, found[i]
            j += 1
    return rows, records


@making
def _crossed(n: int, count: int) -> tuple[Words, Words]:
    """List (row, record), each with each."""
    rows, records, j = np.empty(n * count, np.int64), np.empty(n * count, np.int64), 0
    for i in range(n):
        for record in range(count):
            rows[j], records[j] = i, record
            j += 1
    return rows, records


@making
def _found(frame: Vector, kind: int, index: int, given: Vector) -> tuple[Words, Words]:
    """List all (row, record) of a lookup; rows ascend."""
    if kind == PROBE:  # the lines of an element of a cofactor ring are asked for by the product
        return _among(probed(frame, given, frame[at.RINGS] >= PLAIN))
    if kind == SLICE:
        return sliced_records(frame, index, given)
    return _crossed(given.shape[0], load(frame[HEAD], at.COUNT))


@making
def _look_up(program: Vector, step: int, columns: Words, places: Words) -> tuple[Words, Words]:
    """Join the rows with the records that they find."""
    frame, kind, source = _words_at(program[step + FRAME]), program[step], program[step + SOURCE]
    bound, binds, live = program[step + COUNTS], program[step + COUNTS + 1], program[step + COUNTS + 2]
    lists, n = step + LISTS, columns.shape[1]
    rows, records = _found(frame, kind, program[step + INDEX], _given(program, lists, bound, columns))
    program[step + FOUND] += rows.shape[0]
    program[step + TRIED] += (n if kind != SCAN else 0) + (rows.shape[0] if kind != PROBE else 0)
    if kind != PROBE or rows.shape[0] != n:  # else everyone found one, and stays where it is
        columns = _picked(program, lists + bound + 2 * binds, live, columns, rows)
        places = _moved(places, rows)
    unit = frame[at.UNIT]
    for j in range(rows.shape[0]):
        places[source, j] = tagged_payload(frame, records[j])
    for k in range(lists + bound, lists + bound + 2 * binds, 2):
        position, register = program[k], program[k + 1]
        for j in range(rows.shape[0]):
            columns[register, j] = word_at(key_at(frame, records[j]), position, unit)
    return columns, places


@making
def _look_through(program: Vector, step: int, columns: Words, places: Words) -> tuple[Words, Words]:
    """Bind payload words of the auxiliary relation's rows that keys name; drop the rows whose key has none."""
    frame, bound = _words_at(program[step + FRAME]), program[step + COUNTS]
    first, n = step + LISTS + bound, columns.shape[1]
    last = first + 2 * program[step + COUNTS + 1]
    given = _given(program, step + LISTS, bound, columns)
    broad, there = 8 * frame[at.PAYLOAD], probed(frame, given)
    for i in range(n):
        there[i] = tagged_payload(frame, there[i]) if there[i] >= 0 else 0
    if program[step + NOTED] != 0:
        noted = probed(_words_at(program[step + NOTED]), given)
        for i in range(n):
            if noted[i] >= 0:
                there[i] = program[step + BEFORE] + noted[i] * broad
    found = np.empty(n, np.int64)
    for i in range(n):
        found[i] = i if there[i] != 0 and tagged_word(frame, there[i], program[first]) != 0 else -1
    rows, _ = _among(found)
    program[step + FOUND] += rows.shape[0]
    program[step + TRIED] += n
    if rows.shape[0] != n:
        columns = _picked(program, last, program[step + COUNTS + 2], columns, rows)
        places = _moved(places, rows)
    for k in range(first + 2, last, 2):
        for j in range(rows.shape[0]):
            columns[program[k + 1], j] = tagged_word(frame, there[rows[j]], program[k])
    return columns, places


@inlined
def _holds(which: int, a: int, b: int) -> bool:
    if which == 0:
        return a == b
    if which == 1:
        return a != b
    if which < 4:
        return a < b if which == 2 else a <= b
    return a > b if which == 4 else a >= b


@making
def _compare(program: Vector, step: int, columns: Words, places: Words) -> tuple[Words, Words]:
    """Select the rows for which a comparison is TRUE."""
    which, left, right = program[step + WHICH], program[step + LEFT], program[step + RIGHT]
    n, null, other = columns.shape[1], program[step + NULLS], program[step + NULLS + 1]
    found = np.empty(n, np.int64)
    for i in range(n):
        a = columns[left, i]
        b = program[step + CONSTANT] if right < 0 else columns[right, i]
        found[i] = i if a != null and (right < 0 or b != other) and _holds(which, a, b) else -1
    rows, _ = _among(found)
    if rows.shape[0] == n:
        return columns, places
    return _picked(program, step + LIVE, program[step + 1] - LIVE, columns, rows), _moved(places, rows)


@making
def _joined(program: Vector, columns: Words, places: Words) -> tuple[Words, Words]:
    step = 0
    while step < program.shape[0] and columns.shape[1] > 0:
        operation = program[step]
        if operation <= SCAN:
            columns, places = _look_up(program, step, columns, places)
        elif operation == COMPARE:
            columns, places = _compare(program, step, columns, places)
        elif operation == ROW:
            columns, places = _look_through(program, step, columns, places)
        else:
            for i in range(columns.shape[1]):
                columns[program[step + 2], i] = program[step + 3]
        step += program[step + 1]
    return columns, places


@making
def _loaded(keys: Vector, words: Vector, registers: int, sources: int) -> tuple[Words, Words]:
    n, width, start, broad = keys.shape[0], keys.shape[1], address(words), 8 * words.shape[1]
    columns, places = np.empty((registers, n), np.int64), np.empty((sources, n), np.int64)
    for i in range(n):
        for k in range(width):
            columns[k, i] = keys[i, k]
        places[0, i] = start + i * broad
    return columns, places


@making
def _summed_product(outcome: Vector, columns: Vector, places: Vector) -> Words:
    """Sum the products of all rows for a target without keys, whose payload is one cofactor matrix."""
    words, stop = np.empty((1, outcome[1]), np.int64), outcome.shape[0]
    if outcome[4] & POWERS:
        return sum_monomials(outcome[4], outcome, 6, stop, columns, places)
    work = workspace(outcome[4], outcome, 6, stop)
    ask_rows(address(work), places, min(TILE, places.shape[1]))
    for i in range(0, places.shape[1], TILE):
        add_products(address(work), outcome, 6, stop, columns, places, i, min(TILE, places.shape[1] - i))
    settle(address(work), address(words))
    return words


@making
def _emitted(outcome: Vector, columns: Vector, places: Vector) -> tuple[Words, Words]:
    """Emit the keys and payloads of the rows, as `outcome` lays them out.

    `outcome`: how many registers make a key, and those; the width of a payload; then for each lane its offset, its
    words, the code of its ring, and the number of its factors, of each of which: source, offset, kind. No factors: 0.
    Sources below 0 are registers of values that are lifted.
    """
    n, width = columns.shape[1], outcome[0]
    if width == 0 and n > 1 and outcome[4] >= PLAIN and outcome.shape[0] == 6 + 3 * outcome[5]:
        return np.empty((1, 0), np.int64), _summed_product(outcome, columns, places)
    keys = _given(outcome, 1, width, columns)
    words = np.empty((n, outcome[width + 1]), np.int64)
    here, broad, lane, room = address(words), 8 * outcome[width + 1], width + 2, np.empty(2, np.int64)
    while lane < outcome.shape[0]:
        offset, size, ring, factors = outcome[lane], outcome[lane + 1], outcome[lane + 2], outcome[lane + 3]
        lane += 4
        if factors == 0:
            for i in range(n):
                for word in range(offset, offset + size):
                    words[i, word] = 0
        elif ring >= PLAIN:
            stop = lane + 3 * factors
            if ring & POWERS:
                multiply_monomials(here + 8 * offset, broad, ring, outcome, lane, stop, columns, places)
                lane = stop
                continue
            work = workspace(ring, outcome, lane, stop)
            for i in range(n):
                add_products(address(work), outcome, lane, stop, columns, places, i, 1)
                settle(address(work), here + i * broad + 8 * offset)
            lane = stop
            continue
        for f in range(lane, lane + 3 * factors, 3):
            source, there, kind = outcome[f], outcome[f + 1], outcome[f + 2]
            for i in range(n):
                factor = tagged_lane(places[source, i], there, is_count(kind), address(room))
                combine(here + i * broad + 8 * offset, factor, kind)
        lane += 3 * factors
    return keys, words


@kernel(f"Tuple(({MATRIX}, {MATRIX}))({VECTOR}, {VECTOR}, {GIVEN_MATRIX}, {GIVEN_MATRIX}, int64, int64)")
def run(
    program: Vector, outcome: Vector, keys: Vector, words: Vector, registers: int, sources: int
) -> tuple[Words, Words]:
    """Run a statement's program from the rows of a delta to keys and payloads for the target, keys perhaps more than
    once."""
    columns, places = _loaded(keys, words, registers, sources)
    columns, places = _joined(program, columns, places)
    return _emitted(outcome, columns, places)


@kernel(f"Tuple(({MATRIX}, {MATRIX}))({GIVEN_MATRIX}, {GIVEN_MATRIX}, int64, int64)")
def loaded(keys: Vector, words: Vector, registers: int, sources: int) -> tuple[Words, Words]:
    """Load the rows of a delta as columns and places: the keys are the first columns, their payloads' addresses the
    first places.

    The payloads have to stay where they are.
    """
    return _loaded(keys, words, registers, sources)


@kernel(f"Tuple(({MATRIX}, {MATRIX}))({VECTOR}, {MATRIX}, {MATRIX})")
def joined(program: Vector, columns: Words, places: Words) -> tuple[Words, Words]:
    """Run the steps of a program on columns and places."""
    return _joined(program, columns, places)


@kernel(f"Tuple(({MATRIX}, {MATRIX}))({VECTOR}, {MATRIX}, {MATRIX})")
def emitted(outcome: Vector, columns: Vector, places: Vector) -> tuple[Words, Words]:
    """Emit the keys and payloads of the rows."""
    return _emitted(outcome, columns, places)


@kernel(f"{MATRIX}({VECTOR}, int64)")
def payloads(places: Vector, width: int) -> Words:
    """Copy the payloads at `places`."""
    out = np.empty((places.shape[0], width), np.int64)
    here = address(out)
    for i in range(places.shape[0]):
        for word in range(width):
            store(here + 8 * i * width, word, load(places[i], word))
    return out
