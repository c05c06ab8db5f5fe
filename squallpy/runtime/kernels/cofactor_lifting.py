"""Lifting of rows of values to cofactor elements, and to payloads that have lanes of other rings, too."""

from typing import Final

import numpy as np
import numpy.typing as npt

from squallpy.base.rings.cofactor import COMPENSATED, COUNT, HASH, KIND_BITS, ODD, PLAIN, POWERS, Cofactor
from squallpy.runtime.kernels import count_triples
from squallpy.runtime.kernels.cofactor_blocks import LARGEST, hash_value, odd_value, triangle, values_of, within
from squallpy.runtime.kernels.cofactor_tiles import scaled
from squallpy.runtime.kernels.intrinsics import as_float, load, rolled, store
from squallpy.runtime.kernels.kernel_compiler import (
    GIVEN_MATRIX,
    GIVEN_VECTOR,
    MATRIX,
    Vector,
    address,
    called,
    inlined,
    kernel,
)
from squallpy.runtime.kernels.memory_regions import Words
from squallpy.runtime.kernels.monomial_sums import lift_monomials
from squallpy.runtime.kernels.packed_reals import (
    LANES,
    Packed,
    load_some,
    multiply_add,
    spread,
    store_packed,
    store_some,
    within_packed,
)
from squallpy.runtime.kernels.ring_arithmetic import quick_two_sum, real_of

Reals = npt.NDArray[np.float64]

# How a payload is made of a row: the place of the row's multiplicity (−1: 1), then of each lane its offset, the code of
# its ring or else the number of its words, the number of its first variable, and its place in the row.
TIMES: Final = 0
LANE_WORDS: Final = 4


@inlined
def _store_run(o: int, far: int, n: int, compensated: bool, times: int) -> None:
    """Multiply the values of an element by its multiplicity."""
    high, rest = real_of(times)
    u, v = spread(high), spread(rest)
    for j in range(0, n, LANES):
        at, left = o + 8 * j, n - j
        a = load_some(at, left)
        if compensated:
            x, y = quick_two_sum(*scaled(a, load_some(at + far, left), u, v))
            store_some(at, x, left)
            store_some(at + far, y, left)
        else:
            store_some(at, a * u, left)


@inlined
def _store_row(at: int, x: Packed, n: int, room: int) -> None:
    """Store n values, and more where `room` of them come behind: rows that are stored then.

    Parts of a register are stored one by one.
    """
    if room >= LANES:
        store_packed(at, x)
    else:
        store_some(at, x, n)


@called
def lift_element(o: int, code: int, first: int, values: int, times: int) -> None:
    """Set the element at `o` to the product of the lifted doubles at `values`, `times` times.

    Args:
        first: The number of the first variable in the view tree.
    """
    if code & POWERS:
        lift_monomials(o, code, first, values, times)
        return
    size, compensated = code >> KIND_BITS, code & 7 == COMPENSATED
    n, sums, hashed = values_of(size), o + 8 * (ODD + size), times
    far, row = 8 * n, o + 8 * (ODD + 2 * size)
    i = 0
    while i < size:
        value = as_float(load(values, i))
        hashed *= hash_value(value, first + i)
        odd = odd_value(value)
        store(o, ODD + i, odd if odd == 0 else count_triples.times(odd, times))
        i = rolled(i + 1)  # NB: in a register of values it would wait until they are stored
    store(o, COUNT, times)
    store(o, HASH, hashed)
    for j in range(0, size, LANES):
        _store_row(sums + 8 * j, within_packed(load_some(values + 8 * j, size - j), LARGEST), size - j, n - j)
        if compensated:
            _store_row(sums + far + 8 * j, spread(0.0), size - j, n - j)
    some = within_packed(load_some(values, size), LARGEST)
    for i in range(min(size, LANES)):  # what is stored behind a row is stored over by the next one
        x, behind = spread(within(as_float(load(values, i)), LARGEST)), n - size - triangle(i)
        p = x * some
        _store_row(row, p, i + 1, behind)
        if compensated:
            _store_row(row + far, multiply_add(x, some, -p), i + 1, behind)
        row += 8 * (i + 1)
    for i in range(LANES, size):
        x, behind = spread(within(as_float(load(values, i)), LARGEST)), n - size - triangle(i)
        for j in range(0, i + 1, LANES):
            y = within_packed(load_some(values + 8 * j, i + 1 - j), LARGEST)
            p = x * y
            _store_row(row + 8 * j, p, i + 1 - j, behind - j)
            if compensated:
                _store_row(row + far + 8 * j, multiply_add(x, y, -p), i + 1 - j, behind - j)
        row += 8 * (i + 1)
    if times != 1:
        _store_run(sums, far, n, compensated, times)


@inlined
def lift_payload(o: int, row: int, lifting: Vector) -> None:
    """Make the payload at `o` of the words of a row."""
    times = 1 if lifting[TIMES] < 0 else load(row, lifting[TIMES])
    for lane in range(TIMES + 1, lifting.shape[0], LANE_WORDS):
        to, ring, there = o + 8 * lifting[lane], lifting[lane + 1], row + 8 * lifting[lane + 3]
        if ring >= PLAIN:
            lift_element(to, ring, lifting[lane + 2], there, times)
        else:
            for word in range(ring):
                store(to, word, load(there, word))


def lift_rows(out: Words, offset: int, ring: Cofactor, values: Reals, times: Words | None) -> None:
    """Lift rows of values, (m, n), each `times` times (None: once), into a lane of `out`."""
    assert len(values) == ring.size and values.shape[1] == len(out) and offset + ring.words <= out.shape[1]
    counts = np.ones(len(out), np.int64) if times is None else np.ascontiguousarray(times, np.int64)
    _lift_rows(out, offset, ring.code, ring.first, np.ascontiguousarray(values.T).view(np.int64), counts)


@kernel(f"void({MATRIX}, int64, int64, int64, {GIVEN_MATRIX}, {GIVEN_VECTOR})")
def _lift_rows(out: Vector, offset: int, code: int, first: int, values: Vector, times: Vector) -> None:
    for row in range(out.shape[0]):
        o = address(out) + 8 * (row * out.shape[1] + offset)
        lift_element(o, code, first, address(values) + 8 * row * values.shape[1], times[row])
