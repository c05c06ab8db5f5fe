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

from typing import Final

import numpy as np

from squallpy.base.rings.cofactor import COMPENSATED, COUNT, HASH, KIND_BITS, ODD
from squallpy.runtime.kernels import count_triples
from squallpy.runtime.kernels.cofactor_blocks import (
    LARGEST,
    LIFTED,
    SCALAR,
    first_of,
    hash_value,
    number_of,
    odd_value,
    size_of,
    triangle,
    values_of,
    what_of,
    within,
)
from squallpy.runtime.kernels.intrinsics import as_float, as_word, load, prefetch, store
from squallpy.runtime.kernels.kernel_compiler import Vector, address, called, inlined, making
from squallpy.runtime.kernels.memory_regions import Words
from squallpy.runtime.kernels.packed_reals import (
    BYTES,
    LANES,
    Packed,
    load_packed,
    load_some,
    multiply_add,
    spread,
    store_packed,
    store_some,
    where_finite,
)
from squallpy.runtime.kernels.ring_arithmetic import real_of, two_sum

# A workspace: words about the product, then some for each factor, then the sums, each a run of upper halves that a run
# of lower ones follows at a fixed distance.
_RING: Final = 0
_FACTORS: Final = 1  # how many there are, without the counts
_TOTAL: Final = 2  # the product's count, and hash
_HASHED: Final = 3
_LOW: Final = 4  # bytes from upper halves to lower ones: of the sums,
_PREFIX: Final = 5  # where a tile's rows of sums of the factors so far are,
_PREFIX_LOW: Final = 6  # bytes to their lower halves,
_SCALED: Final = 7  # and rows of a factor's sums, scaled, at the same distance
_WIDE: Final = 8  # bytes of such a row
_SUMS: Final = 9  # where the sums are
_ODD: Final = 10  # where the triples of variables are
_SCALARS: Final = 11  # how many factors are counts
_BEFORE: Final = 12  # in each row of a tile, the product of the counts of the factors so far

_KIND: Final = 0  # a factor's kind
_ENTRY: Final = 1  # its place in the list of factors
_OWN: Final = 2  # where the sum of its values is,
_RECTANGLE: Final = 3  # and that of its rectangle
_ROWS: Final = 4  # where the tile's rows of it are
_FACTOR: Final = 5

_COUNT: Final = 0  # a row of a factor: its count,
_AFTER: Final = 1  # the product of those behind it,
_VALUES: Final = 2  # where its values are,
_VALUES_LOW: Final = 3  # bytes to their lower halves,
_VALUE: Final = 4  # and room for a value and its square, which lower halves follow
_ROW: Final = 8

TILE: Final = 8
"""Rows that are multiplied together: so many that what the next need is asked for in time, and all are in the cache."""
_HEAD: Final = _BEFORE + TILE


@inlined
def _padded(n: int) -> int:
    """Round up to the doubles of whole registers."""
    return (n + LANES - 1) & -LANES


@inlined
def _is_compensated(code: int) -> bool:
    return code & 7 == COMPENSATED


@making
def workspace(code: int, factors: Vector, start: int, stop: int) -> Words:
    """Make the workspace of a product, its sums zero; its factors stand in `factors` from `start` to `stop`.

    Three words each: a source, an offset there, a kind.
    """
    count, size, sums = 0, code >> KIND_BITS, 0
    for f in range(start, stop, 3):
        if what_of(factors[f + 2]) != SCALAR:
            m, first = size_of(factors[f + 2]), first_of(factors[f + 2])
            count, sums = count + 1, sums + _padded(values_of(m)) + m * _padded(first)
    wide, head = _padded(size) + LANES, _HEAD + (_FACTOR + TILE * _ROW) * count + size
    words = np.zeros(head + 2 * sums + 4 * TILE * wide + LANES, np.int64)
    base = address(words)
    here = (base + 8 * head + BYTES - 1) & -BYTES
    store(base, _RING, code)
    store(base, _FACTORS, count)
    store(base, _SCALARS, (stop - start) // 3 - count)
    store(base, _LOW, 8 * sums)
    store(base, _SUMS, here)
    store(base, _PREFIX, here + 16 * sums)
    store(base, _PREFIX_LOW, 8 * TILE * wide)
    store(base, _SCALED, here + 16 * sums + 16 * TILE * wide)
    store(base, _WIDE, 8 * wide)
    store(base, _ODD, base + 8 * (head - size))
    at, rows, last = base + 8 * _HEAD, base + 8 * (_HEAD + _FACTOR * count), -1
    for _ in range(count):  # in the order of their variables
        chosen = -1
        for f in range(start, stop, 3):
            kind = factors[f + 2]
            is_left = what_of(kind) != SCALAR and first_of(kind) > last
            if is_left and (chosen < 0 or first_of(kind) < first_of(factors[chosen + 2])):
                chosen = f
        kind = factors[chosen + 2]
        last = first_of(kind)
        store(at, _KIND, kind)
        store(at, _ENTRY, chosen)
        store(at, _OWN, here)
        here += 8 * _padded(values_of(size_of(kind)))
        store(at, _RECTANGLE, here)
        here += 8 * size_of(kind) * _padded(last)
        store(at, _ROWS, rows)
        rows += 8 * TILE * _ROW
        at += 8 * _FACTOR
    return words


@inlined
def scaled(x: Packed, y: Packed, u: Packed, v: Packed) -> tuple[Packed, Packed]:
    """Multiply double-doubles; the lower half is not normalised."""
    p = x * u
    return p, multiply_add(y, u, multiply_add(x, v, multiply_add(x, u, -p)))


@inlined
def _add_to(at: int, low: int, x: Packed, y: Packed) -> None:
    """Add a product and its error to a sum and its error."""
    s, t = two_sum(load_packed(at), x)
    store_packed(at, s)
    store_packed(at + low, load_packed(at + low) + (t + y))


@inlined
def _add_scaled(at: int, low: int, source: int, source_low: int, n: int, times: int, compensated: bool) -> None:
    """Add n values, `times` times, to sums."""
    high, rest = real_of(times)
    u, v = spread(high), spread(rest)
    if compensated:
        for j in range(0, n, LANES):
            there = source + 8 * j
            x, y = scaled(load_some(there, n - j), load_some(there + source_low, n - j), u, v)
            _add_to(at + 8 * j, low, x, y)
    else:
        for j in range(0, n, LANES):
            x = load_some(source + 8 * j, n - j)
            store_packed(at + 8 * j, multiply_add(x, u, load_packed(at + 8 * j)))


@inlined
def _put_scaled(at: int, low: int, source: int, source_low: int, n: int, times: int, compensated: bool) -> None:
    """Set n values, and what pads them, to others `times` times.

    Double-doubles are not normalised: a lower half is below a few units of the upper one's last place.
    """
    high, rest = real_of(times)
    u, v = spread(high), spread(rest)
    for j in range(0, n, LANES):
        a = load_some(source + 8 * j, n - j)
        if compensated:
            x, y = scaled(a, load_some(source + 8 * j + source_low, n - j), u, v)
            store_packed(at + 8 * j, x)
            store_packed(at + 8 * j + low, y)
        else:
            store_packed(at + 8 * j, a * u)


@inlined
def _add_rectangle(work: int, at: int, low: int, m: int, stride: int, n: int, rows: int, compensated: bool) -> None:
    """Add the products of m values of a factor and the n before them to rows of sums, for all rows of a tile.

    Args:
        stride: Bytes of a row of the factor's values.
    """
    values, columns, far = load(work, _SCALED), load(work, _PREFIX), load(work, _PREFIX_LOW)
    wide, pitch = 8 * _padded(n), load(work, _WIDE)
    for i in range(m):
        for j in range(0, wide, BYTES):
            to, x_at, u_at = at + i * wide + j, values + 8 * i, columns + j
            sums: Packed = load_packed(to)
            errors: Packed = load_packed(to + low)
            for _ in range(rows):
                x, u = spread(as_float(load(x_at, 0))), load_packed(u_at)
                if compensated:
                    p, e = scaled(x, spread(as_float(load(x_at + far, 0))), u, load_packed(u_at + far))
                    sums, t = two_sum(sums, p)
                    errors = errors + (t + e)
                else:
                    sums = multiply_add(x, u, sums)
                x_at += stride
                u_at += pitch
            store_packed(to, sums)
            if compensated:
                store_packed(to + low, errors)


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
def _read_value(at: int, value: float, number: int, compensated: bool) -> int:
    """Lift a value: put it and its square into a row of a factor; returns the hash.

    Args:
        number: Of the variable, in the view tree.
    """
    x = within(value, LARGEST)
    p = x * x
    store(at, _VALUE, as_word(x))
    store(at, _VALUE + 1, as_word(p))
    store(at, _COUNT, 1)
    store(at, _VALUES, at + 8 * _VALUE)
    store(at, _VALUES_LOW, 16)
    if compensated:
        store_some(at + 8 * (_VALUE + 3), _square_error(spread(x), spread(p)), 1)
    return hash_value(value, number)


@inlined
def _square_error(x: Packed, p: Packed) -> Packed:
    return where_finite(p, multiply_add(x, x, -p))


@inlined
def _read_factors(
    work: int, factors: Vector, start: int, stop: int, columns: Vector, places: Vector, row: int, k: int
) -> None:
    """Find the factors of a row, number k of the tile: their counts, hashes and values."""
    code, n = load(work, _RING), load(work, _FACTORS)
    scale = 1
    for f in range(start, stop if load(work, _SCALARS) > 0 else start, 3):
        if what_of(factors[f + 2]) == SCALAR:
            scale *= load(places[factors[f], row] + 8 * factors[f + 1], COUNT)
    hashed, after = scale, 1
    at = work + 8 * (_HEAD + _FACTOR * (n - 1))
    for _ in range(n):
        f, kind, own = load(at, _ENTRY), load(at, _KIND), load(at, _ROWS) + 8 * _ROW * k
        if what_of(kind) == LIFTED:
            value = value_of(factors, f, columns, places, row)
            hashed *= _read_value(own, value, number_of(kind), _is_compensated(code))
        else:
            m, there = size_of(kind), places[factors[f], row] + 8 * factors[f + 1]
            store(own, _COUNT, load(there, COUNT))
            store(own, _VALUES, there + 8 * (ODD + m))
            store(own, _VALUES_LOW, 8 * values_of(m))
            hashed *= load(there, HASH)
        store(own, _AFTER, after)
        after *= load(own, _COUNT)
        at -= 8 * _FACTOR
    store(work, _BEFORE + k, scale)
    store(work, _TOTAL, load(work, _TOTAL) + scale * after)
    store(work, _HASHED, load(work, _HASHED) + hashed)


@inlined
def _add_odd(
    work: int, at: int, factors: Vector, f: int, columns: Vector, places: Vector, row: int, times: int
) -> None:
    """Add what counts values that are not finite, of one factor."""
    kind, odd = load(at, _KIND), load(work, _ODD)
    m, first = size_of(kind), first_of(kind)
    if what_of(kind) == LIFTED:
        some = odd_value(value_of(factors, f, columns, places, row))
        if some != 0:
            store(odd, first, count_triples.add(load(odd, first), count_triples.times(some, times)))
        return
    any_odd, there = 0, places[factors[f], row] + 8 * factors[f + 1]
    for i in range(m):
        any_odd |= load(there, ODD + i)
    if any_odd != 0:
        for i in range(m):
            some = count_triples.times(load(there, ODD + i), times)
            store(odd, first + i, count_triples.add(load(odd, first + i), some))


@inlined
def _ask(there: int, bytes: int) -> None:
    """Ask for the cache lines of a block."""
    for byte in range(0, bytes + BYTES, BYTES):
        prefetch(there + byte)


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
    for k in range(rows):
        _read_factors(work, factors, start, stop, columns, places, row + k, k)
    at, low, n, before = work + 8 * _HEAD, load(work, _LOW), load(work, _FACTORS), work + 8 * _BEFORE
    prefix, far, scaled, pitch = load(work, _PREFIX), load(work, _PREFIX_LOW), load(work, _SCALED), load(work, _WIDE)
    for f in range(n):
        entry, kind, own = load(at, _ENTRY), load(at, _KIND), load(at, _ROWS)
        m, first = size_of(kind), first_of(kind)
        stride = 8 * _padded(m)
        for k in range(rows):
            here, so_far = own + 8 * _ROW * k, load(before, k)
            values, values_low, after = load(here, _VALUES), load(here, _VALUES_LOW), load(here, _AFTER)
            _add_odd(work, at, factors, entry, columns, places, row + k, so_far * after)
            _add_scaled(load(at, _OWN), low, values, values_low, values_of(m), so_far * after, compensated)
            if first > 0:
                _put_scaled(scaled + k * stride, far, values, values_low, m, after, compensated)
            if factors[entry] > 0 and row + k + TILE < places.shape[1]:  # NB: those of a delta lie side by side anyway
                parts = 2 if compensated else 1
                there = places[factors[entry], row + k + TILE] + 8 * factors[entry + 1]
                _ask(there, 8 * (ODD + m + parts * values_of(m)))
        if first > 0:
            _add_rectangle(work, load(at, _RECTANGLE), low, m, stride, first, rows, compensated)
        for k in range(rows if f + 1 < n else 0):
            here, so_far, columns_at = own + 8 * _ROW * k, load(before, k), prefix + k * pitch
            values, values_low, count = load(here, _VALUES), load(here, _VALUES_LOW), load(here, _COUNT)
            if count != 1 and first > 0:
                _put_scaled(columns_at, far, columns_at, far, first, count, compensated)
            _put_scaled(columns_at + 8 * first, far, values, values_low, m, so_far, compensated)
            store(before, k, so_far * count)
        at += 8 * _FACTOR


@inlined
def ask_rows(work: int, factors: Vector, places: Vector, rows: int) -> None:
    """Ask for what the first rows are multiplied of."""
    at, parts = work + 8 * _HEAD, 2 if _is_compensated(load(work, _RING)) else 1
    for _ in range(load(work, _FACTORS)):
        f, m = load(at, _ENTRY), size_of(load(at, _KIND))
        for row in range(rows if factors[f] > 0 else 0):
            _ask(places[factors[f], row] + 8 * factors[f + 1], 8 * (ODD + m + parts * values_of(m)))
        at += 8 * _FACTOR


@called
def add_products(
    work: int, factors: Vector, start: int, stop: int, columns: Vector, places: Vector, row: int, rows: int
) -> None:
    """Add the products of a tile's rows, TILE at most from `row` on, to a workspace."""
    if _is_compensated(load(work, _RING)):
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
def settle(work: int, o: int) -> None:
    """Store the sum of the products as the element at `o`, and let the workspace begin anew."""
    code, low, at = load(work, _RING), load(work, _LOW), work + 8 * _HEAD
    size, compensated = code >> KIND_BITS, _is_compensated(code)
    sums, far = o + 8 * (ODD + size), 8 * values_of(size)
    store(o, COUNT, load(work, _TOTAL))
    store(o, HASH, load(work, _HASHED))
    for i in range(size):
        store(o, ODD + i, load(load(work, _ODD), i))
        store(load(work, _ODD), i, 0)
    for _ in range(load(work, _FACTORS)):
        kind, own, rectangle = load(at, _KIND), load(at, _OWN), load(at, _RECTANGLE)
        m, first = size_of(kind), first_of(kind)
        _settle_run(sums + 8 * first, far, own, low, m, compensated)
        for i in range(m):
            row = sums + 8 * (size + triangle(first + i))
            _settle_run(row, far, rectangle, low, first, compensated)
            _settle_run(row + 8 * first, far, own + 8 * (m + triangle(i)), low, i + 1, compensated)
            rectangle += 8 * _padded(first)
        at += 8 * _FACTOR
    for j in range(0, 2 * low, BYTES):
        store_packed(load(work, _SUMS) + j, spread(0.0))
    store(work, _TOTAL, 0)
    store(work, _HASHED, 0)
