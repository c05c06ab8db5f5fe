"""Workspaces of products of cofactor elements: where sums of products stand until they are an element.

Factors lie side by side in a product, in the order of their variables. A workspace has for each a sum of its values,
which the counts of the others scale, and one of its rectangle, s′·sᵀ with all variables before it: rows of doubles
whose length is a multiple of a register's.

Compensated sums are added up with their errors (Ogita, Rump and Oishi, *Accurate sum and dot product*, 2005, algorithm
5.3): as if by doubles of twice the digits.
"""

from typing import Final

import numpy as np

from squallpy.base.rings.cofactor import COMPENSATED, COUNT, HASH, KIND_BITS, ODD
from squallpy.runtime.kernels.cofactor_blocks import SCALAR, first_of, size_of, triangle, values_of, what_of
from squallpy.runtime.kernels.intrinsics import load, store
from squallpy.runtime.kernels.kernel_compiler import Vector, address, called, inlined, making
from squallpy.runtime.kernels.memory_regions import Words
from squallpy.runtime.kernels.packed_reals import (
    BYTES,
    LANES,
    Packed,
    load_packed,
    load_some,
    spread,
    store_packed,
    store_some,
    where_finite,
)
from squallpy.runtime.kernels.ring_arithmetic import two_sum

# A workspace: words about the product, then some for each factor, then the sums, each a run of upper halves that a run
# of lower ones follows at a fixed distance.
RING: Final = 0
FACTORS: Final = 1  # how many there are, without the counts
SCALE: Final = 2  # product of the factors that are counts
TOTAL: Final = 3  # the product's count, and hash
HASHED: Final = 4
LOW: Final = 5  # bytes from upper halves to lower ones: of the sums,
PREFIX: Final = 6  # where the sums of the factors so far are,
PREFIX_LOW: Final = 7  # bytes to their lower halves,
SCALED: Final = 8  # and a factor's sums, scaled, at the same distance
SUMS: Final = 9  # where the sums are
TRIPLES: Final = 10  # where the triples of variables are
SCALARS: Final = 11  # how many factors are counts
ROOM: Final = 12  # where there is room for sums over many rows
HEAD: Final = 13

KIND: Final = 0  # a factor's kind
ENTRY: Final = 1  # its place in the list of factors
OWN: Final = 2  # where the sum of its values is,
RECTANGLE: Final = 3  # and that of its rectangle
FACTOR_COUNT: Final = 4  # in a row: its count,
AFTER: Final = 5  # the product of those behind it,
VALUES: Final = 6  # where its values are,
VALUES_LOW: Final = 7  # bytes to their lower halves,
VALUE: Final = 8  # and room for those of a value
FACTOR_WORDS: Final = 8 + 2 * LANES


@inlined
def padded(n: int) -> int:
    """Round up to the doubles of whole registers."""
    return (n + LANES - 1) & -LANES


@inlined
def is_compensated(code: int) -> bool:
    return code & 7 == COMPENSATED


@making
def workspace(code: int, factors: Vector, start: int, stop: int, room: int) -> Words:
    """Make the workspace of a product, its sums zero; its factors stand in `factors` from `start` to `stop`.

    Args:
        factors: Three words each, namely a source, an offset there, and a kind.
        room: Words for sums over many rows.
    """
    count, size, sums = 0, code >> KIND_BITS, 0
    for f in range(start, stop, 3):
        if what_of(factors[f + 2]) != SCALAR:
            m, first = size_of(factors[f + 2]), first_of(factors[f + 2])
            count, sums = count + 1, sums + padded(values_of(m)) + m * padded(first)
    wide, head = padded(size) + LANES, HEAD + FACTOR_WORDS * count + size
    words = np.zeros(head + 2 * sums + 4 * wide + LANES + room, np.int64)
    base = address(words)
    here = (base + 8 * head + BYTES - 1) & -BYTES
    store(base, RING, code)
    store(base, FACTORS, count)
    store(base, SCALARS, (stop - start) // 3 - count)
    store(base, LOW, 8 * sums)
    store(base, SUMS, here)
    store(base, PREFIX, here + 16 * sums)
    store(base, PREFIX_LOW, 8 * wide)
    store(base, SCALED, here + 16 * sums + 16 * wide)
    store(base, TRIPLES, base + 8 * (head - size))
    store(base, ROOM, here + 8 * (2 * sums + 4 * wide))
    at, last = base + 8 * HEAD, -1
    for _ in range(count):  # in the order of their variables
        chosen = -1
        for f in range(start, stop, 3):
            kind = factors[f + 2]
            is_left = what_of(kind) != SCALAR and first_of(kind) > last
            if is_left and (chosen < 0 or first_of(kind) < first_of(factors[chosen + 2])):
                chosen = f
        kind = factors[chosen + 2]
        last = first_of(kind)
        store(at, KIND, kind)
        store(at, ENTRY, chosen)
        store(at, OWN, here)
        here += 8 * padded(values_of(size_of(kind)))
        store(at, RECTANGLE, here)
        here += 8 * size_of(kind) * padded(last)
        at += 8 * FACTOR_WORDS
    return words


@inlined
def add_to(at: int, low: int, x: Packed, y: Packed) -> None:
    """Add a product and its error to a sum and its error."""
    s, t = two_sum(load_packed(at), x)
    store_packed(at, s)
    store_packed(at + low, load_packed(at + low) + (t + y))


@inlined
def _settle_run(o: int, o_low: int, source: int, low: int, n: int, compensated: bool) -> None:
    """Store n sums; double-doubles are normalised."""
    for j in range(0, n, LANES):
        s = load_some(source + 8 * j, n - j)
        if compensated:
            x, y = two_sum(s, where_finite(s, load_some(source + low + 8 * j, n - j)))
            store_some(o + 8 * j, x, n - j)
            store_some(o + o_low + 8 * j, where_finite(x, y), n - j)
        else:
            store_some(o + 8 * j, s, n - j)


@called
def settle(work: int, o: int) -> None:
    """Store the sum of the products as the element at `o`, and let the workspace begin anew."""
    code, low, at = load(work, RING), load(work, LOW), work + 8 * HEAD
    size, compensated = code >> KIND_BITS, is_compensated(code)
    sums, far = o + 8 * (ODD + size), 8 * values_of(size)
    store(o, COUNT, load(work, TOTAL))
    store(o, HASH, load(work, HASHED))
    for i in range(size):
        store(o, ODD + i, load(load(work, TRIPLES), i))
        store(load(work, TRIPLES), i, 0)
    for _ in range(load(work, FACTORS)):
        kind, own, rectangle = load(at, KIND), load(at, OWN), load(at, RECTANGLE)
        m, first = size_of(kind), first_of(kind)
        _settle_run(sums + 8 * first, far, own, low, m, compensated)
        for i in range(m):
            row = sums + 8 * (size + triangle(first + i))
            _settle_run(row, far, rectangle, low, first, compensated)
            _settle_run(row + 8 * first, far, own + 8 * (m + triangle(i)), low, i + 1, compensated)
            rectangle += 8 * padded(first)
        at += 8 * FACTOR_WORDS
    for j in range(0, 2 * low, BYTES):
        store_packed(load(work, SUMS) + j, spread(0.0))
    store(work, TOTAL, 0)
    store(work, HASHED, 0)
