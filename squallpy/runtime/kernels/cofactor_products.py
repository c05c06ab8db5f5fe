"""Products of cofactor elements, and sums of products over rows.

    (c, s, Q) · (c′, s′, Q′)   →   c·c′, [c′·s, c·s′], [c′·Q; s′·sᵀ, c·Q′]

Factors lie side by side in a product, in the order of their variables. A *workspace* has for each a sum of its values,
which the counts of the others scale, and one of its rectangle, s′·sᵀ with all variables before it: rows of doubles
whose length is a multiple of a register's. A rectangle takes the sums of all factors before its own at once, which are
scaled as the product goes on, so the work beside one multiplication for each word is small (`fivm-on-flink` Alg. 4 and
6, without maps of indexes).

Rows are multiplied a *tile* at a time, factor by factor: a rectangle is then a product of two matrices, whose words
stay in registers while all rows of the tile are added to them.

Products that are compensated are added up with their errors (Ogita, Rump and Oishi, *Accurate sum and dot product*,
2005, algorithm 5.3): as if by doubles of twice the digits.
"""

import numpy as np

from squallpy.base.rings.cofactor import COMPENSATED, COUNT, HASH, KIND_BITS, ODD
from squallpy.runtime.kernels.cofactor_blocks import (
    BLOCK,
    LIFTED,
    SCALAR,
    first_of,
    number_of,
    size_of,
    triangle,
    values_of,
    what_of,
)
from squallpy.runtime.kernels.cofactor_sums import add_factor
from squallpy.runtime.kernels.cofactor_tiles import (
    ENTRY,
    FACTOR,
    FACTORS,
    HASHED,
    HEAD,
    KIND,
    LINES,
    LINES_COUNT,
    LOW,
    OWN,
    PREFIX,
    PREFIX_LOW,
    RECTANGLE,
    RING,
    ROW_WORDS,
    ROWS,
    SCALED,
    STEPS,
    SUMS,
    TILE,
    TOTAL,
    TRIPLES,
    WIDE,
    add_odd,
    add_totals,
    begin_asking,
    begin_scales,
    factor_at,
    has_odd_rows,
    is_turned,
    lines_of,
    padded,
    read_block,
    read_scale,
    read_value,
    rectangle_of,
    scales,
    weigh_after,
    weigh_before,
    weigh_hash,
)
from squallpy.runtime.kernels.intrinsics import as_float, load, prefetch, store
from squallpy.runtime.kernels.kernel_compiler import Vector, address, called, inlined, making
from squallpy.runtime.kernels.memory_regions import Words
from squallpy.runtime.kernels.packed_reals import (
    BYTES,
    LANES,
    load_some,
    spread,
    spread_word,
    store_packed,
    store_some,
    where_finite,
)
from squallpy.runtime.kernels.ring_arithmetic import two_sum


@inlined
def is_compensated(code: int) -> bool:
    """True if the sums of a ring, by its code, have lower halves."""
    return code & 7 == COMPENSATED


@making
def workspace(code: int, factors: Vector, start: int, stop: int) -> Words:
    """Make the workspace of a product, its sums zero; its factors stand in `factors` from `start` to `stop`.

    Three words each: a source, an offset there, a kind.
    """
    count, size, sums, lines = 0, code >> KIND_BITS, 0, 0
    for f in range(start, stop, 3):
        if what_of(factors[f + 2]) != SCALAR:
            m, first = size_of(factors[f + 2]), first_of(factors[f + 2])
            count, sums = count + 1, sums + padded(values_of(m)) + rectangle_of(m, first)
            lines += lines_of(m, is_compensated(code)) if what_of(factors[f + 2]) == BLOCK else 0
    wide, head = padded(size) + LANES, padded(HEAD + FACTOR * count + size + 2 * lines)
    words = np.zeros(head + ROW_WORDS * count + 2 * sums + 4 * TILE * wide + LANES, np.int64)
    base = aligned(address(words))
    rows, line = base + 8 * head, base + 8 * (HEAD + FACTOR * count + size)
    here = rows + 8 * ROW_WORDS * count
    store(base, LINES, line)
    store(base, LINES_COUNT, lines)
    store(base, STEPS, sums // LANES)
    store(base, RING, code)
    store(base, FACTORS, count)
    store(base, LOW, 8 * sums)
    store(base, SUMS, here)
    store(base, PREFIX, here + 16 * sums)
    store(base, PREFIX_LOW, 8 * TILE * wide)
    store(base, SCALED, here + 16 * sums + 16 * TILE * wide)
    store(base, WIDE, 8 * wide)
    store(base, TRIPLES, base + 8 * (HEAD + FACTOR * count))
    last = -1
    for number in range(count):  # in the order of their variables
        at, chosen = factor_at(base, number), -1
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
        here += 8 * rectangle_of(size_of(kind), last)
        store(at, ROWS, rows + 8 * ROW_WORDS * number)
        for i in range(lines_of(size_of(kind), is_compensated(code)) if what_of(kind) == BLOCK else 0):
            store(line, 0, factors[chosen])
            store(line, 1, 8 * factors[chosen + 1] + i * BYTES)
            line += 16
    return words


@inlined
def aligned(address: int) -> int:
    """Return where a workspace begins in its memory, at the beginning of a cache line."""
    return (address + BYTES - 1) & -BYTES


@inlined
def value_of(factors: Vector, f: int, columns: Vector, places: Vector, row: int) -> float:
    """Return the value that a factor lifts: at a place, or in a register, whose number comes as −1 and below.

    Of a register the second word is the double by which it is divided, 0 where it is a double's bits.
    """
    source, second = factors[f], factors[f + 1]
    if source >= 0:
        return as_float(load(places[source, row] + 8 * second, 0))
    word = columns[-1 - source, row]
    return as_float(word) if second == 0 else float(word) / as_float(second)


@inlined
def _add_tile(
    work: int,
    factors: Vector,
    start: int,
    stop: int,
    columns: Vector,
    places: Vector,
    row: int,
    rows: int,
    compensated: bool,
) -> None:
    """Add the products of a tile's rows."""
    n, odd, count, pitch = load(work, FACTORS), 0, places.shape[1], places.strides[1]
    begin_scales(work)
    for f in range(start, stop if (stop - start) // 3 > n else start, 3):
        if what_of(factors[f + 2]) == SCALAR:
            for k in range(rows):
                read_scale(work, k, places[factors[f], row + k] + 8 * factors[f + 1])
    for number in range(n):
        at = factor_at(work, number)
        f, kind = load(at, ENTRY), load(at, KIND)
        if what_of(kind) == LIFTED:
            for k in range(rows):
                value = value_of(factors, f, columns, places, row + k)
                odd |= read_value(at, k, value, number_of(kind), compensated)
        else:
            place, offset = address(places) + places.strides[0] * factors[f] + pitch * row, 8 * factors[f + 1]
            for k in range(rows):
                read_block(at, k, load(place, 0) + offset)
                place += pitch
            odd |= has_odd_rows(at, size_of(kind), rows)
    counts = hashes = scales(work)
    for number in range(n):
        at = factor_at(work, number)
        hashes = weigh_hash(at, hashes)
        counts = weigh_before(at, counts, compensated)
    add_totals(work, rows, counts, hashes)
    after = spread_word(1)
    for number in range(n - 1, -1, -1):
        after = weigh_after(factor_at(work, number), after, compensated)
    if odd != 0:
        add_odd(work, rows)
    then = address(places) + pitch * min(row + TILE, count - TILE)
    begin_asking(work, row % TILE == 0 and row + TILE < count)
    for number in range(n):
        at = factor_at(work, number)
        kind = load(at, KIND)
        add_factor(
            work, at, size_of(kind), first_of(kind), number + 1 == n, rows, compensated, then, places.strides[0], pitch
        )


@inlined
def ask_rows(words: int, places: Vector, rows: int) -> None:
    """Ask for what the first rows are multiplied of."""
    work = aligned(words)
    line = load(work, LINES)
    for _ in range(load(work, LINES_COUNT)):
        for row in range(rows):
            prefetch(places[load(line, 0), row] + load(line, 1))
        line += 16


@called
def add_products(
    words: int, factors: Vector, start: int, stop: int, columns: Vector, places: Vector, row: int, rows: int
) -> None:
    """Add the products of a tile's rows, TILE at most from `row` on, to a workspace."""
    work = aligned(words)
    if is_compensated(load(work, RING)):
        _add_tile(work, factors, start, stop, columns, places, row, rows, True)
    else:
        _add_tile(work, factors, start, stop, columns, places, row, rows, False)


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
def settle(words: int, o: int) -> None:
    """Store the sum of the products as the element at `o`, and let the workspace begin anew."""
    work = aligned(words)
    code, low = load(work, RING), load(work, LOW)
    size, compensated = code >> KIND_BITS, is_compensated(code)
    sums, far = o + 8 * (ODD + size), 8 * values_of(size)
    store(o, COUNT, load(work, TOTAL))
    store(o, HASH, load(work, HASHED))
    for i in range(size):
        store(o, ODD + i, load(load(work, TRIPLES), i))
        store(load(work, TRIPLES), i, 0)
    for number in range(load(work, FACTORS)):
        at = factor_at(work, number)
        kind, own, rectangle = load(at, KIND), load(at, OWN), load(at, RECTANGLE)
        m, first = size_of(kind), first_of(kind)
        _settle_run(sums + 8 * first, far, own, low, m, compensated)
        for i in range(m):
            row = sums + 8 * (size + triangle(first + i))
            if is_turned(m, first):
                for j in range(first):
                    _settle_run(row + 8 * j, far, rectangle + 8 * (j * padded(m) + i), low, 1, compensated)
            else:
                _settle_run(row, far, rectangle + 8 * i * padded(first), low, first, compensated)
            _settle_run(row + 8 * first, far, own + 8 * (m + triangle(i)), low, i + 1, compensated)
    for j in range(0, 2 * low, BYTES):
        store_packed(load(work, SUMS) + j, spread(0.0))
    store(work, TOTAL, 0)
    store(work, HASHED, 0)
