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

from typing import Any, Final

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
    joined_bits,
    lanes_with_bits,
    load_some,
    multiply_add,
    spread,
    store_packed,
    store_some,
    where_finite,
)
from squallpy.runtime.kernels.ring_arithmetic import real_of, two_sum
from squallpy.runtime.kernels.tile_sums import TILE, VALUES, VALUES_LOW, add_rectangle, add_values, put_rows, scale_rows

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
_BEFORE: Final = 12  # in each row of a tile, the product of the counts of the factors so far,
_AFTERS: Final = _BEFORE + TILE  # that of those behind,
_HASHES: Final = _AFTERS + TILE  # and that of hashes
_HEAD: Final = _HASHES + TILE

_KIND: Final = 0  # a factor's kind
_ENTRY: Final = 1  # its place in the list of factors
_OWN: Final = 2  # where the sum of its values is,
_RECTANGLE: Final = 3  # and that of its rectangle
_ROWS: Final = 4  # where the tile's rows of it are
_FACTOR: Final = 5

_TIMES: Final = 2  # a row of a factor, as of `tile_sums`; then in two doubles each how often its values are there,
_SCALE: Final = 4  # the product of the counts behind it,
_SO_FAR: Final = 6  # that of those before it,
_OWN_COUNT: Final = 8  # and its own, which is
_COUNT: Final = 10  # a whole number, too,
_AFTER: Final = 11  # as the product of those behind it,
_OTHERS: Final = 12  # and that of all others;
_IS_ODD: Final = 13  # what counts a value that is not finite,
_VALUE: Final = 14  # and room for a value and its square, which lower halves follow
_ROW: Final = 18
_LARGEST_COUNT: Final = 1 << 53  # that all doubles up to it have exactly


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
def _put_count(at: int, place: int, count: int, compensated: bool) -> None:
    """Store an integer as a double, or exactly as a double-double."""
    store(at, place, as_word(float(count)))
    if compensated:
        store(at, place + 1, as_word(real_of(count)[1] if abs(count) > _LARGEST_COUNT else 0.0))


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
    store(at, VALUES, at + 8 * _VALUE)
    store(at, VALUES_LOW, 16)
    store(at, _IS_ODD, odd_value(value))
    if compensated:
        store_some(at + 8 * (_VALUE + 3), _square_error(spread(x), spread(p)), 1)
    return hash_value(value, number)


@inlined
def _square_error(x: Packed, p: Packed) -> Packed:
    return where_finite(p, multiply_add(x, x, -p))


@inlined
def _step_of(places: Any) -> int:
    """Return the bytes from a row's place to the next one's."""
    step: int = places.strides[1]
    return step


@inlined
def _place_of(places: Any, source: int, row: int) -> int:
    """Return the address where a row has its payload of a source: of an array, an index costs more."""
    at: int = address(places) + source * places.strides[0] + row * places.strides[1]
    return at


@inlined
def _read_factors(
    work: int, factors: Vector, start: int, stop: int, columns: Vector, places: Vector, row: int, rows: int
) -> None:
    """Find the factors of a tile's rows: their counts, hashes and values, from the last factor on."""
    code, n = load(work, _RING), load(work, _FACTORS)
    afters, hashes = work + 8 * _AFTERS, work + 8 * _HASHES
    for k in range(rows):
        scale = 1
        for f in range(start, stop if load(work, _SCALARS) > 0 else start, 3):
            if what_of(factors[f + 2]) == SCALAR:
                scale *= load(places[factors[f], row + k] + 8 * factors[f + 1], COUNT)
        store(work, _BEFORE + k, scale)
        store(afters, k, 1)
        store(hashes, k, scale)
    at = work + 8 * (_HEAD + _FACTOR * (n - 1))
    for _ in range(n):
        f, kind, own = load(at, _ENTRY), load(at, _KIND), load(at, _ROWS)
        m, number, offset, place = (
            size_of(kind),
            number_of(kind),
            8 * factors[f + 1],
            _place_of(places, factors[f], row),
        )
        for k in range(rows):
            if what_of(kind) == LIFTED:
                value = value_of(factors, f, columns, places, row + k)
                hashed = _read_value(own, value, number, _is_compensated(code))
            else:
                there = load(place, 0) + offset
                hashed = load(there, HASH)
                place += _step_of(places)
                store(own, _COUNT, load(there, COUNT))
                store(own, VALUES, there + 8 * (ODD + m))
                store(own, VALUES_LOW, 8 * values_of(m))
            store(hashes, k, load(hashes, k) * hashed)
            after = load(afters, k)
            store(own, _AFTER, after)
            store(afters, k, after * load(own, _COUNT))
            own += 8 * _ROW
        at -= 8 * _FACTOR
    total, hashed = load(work, _TOTAL), load(work, _HASHED)
    for k in range(rows):
        total += load(work, _BEFORE + k) * load(afters, k)
        hashed += load(hashes, k)
    store(work, _TOTAL, total)
    store(work, _HASHED, hashed)


@inlined
def _has_odd(own: int, is_lifted: bool, m: int, rows: int) -> bool:
    """True if a tile's rows of a factor have values that are not finite."""
    found = spread(0.0)
    for i in range(0, m, LANES):
        here = own
        for _ in range(rows):
            there = here + 8 * _IS_ODD if is_lifted else load(here, VALUES) - 8 * m
            found = joined_bits(found, load_some(there + 8 * i, m - i))
            here += 8 * _ROW
    return lanes_with_bits(found) != 0


@inlined
def _add_odd(
    work: int, at: int, factors: Vector, f: int, columns: Vector, places: Vector, row: int, times: int
) -> None:
    """Add what counts values that are not finite, of one factor."""
    kind, odd = load(at, _KIND), load(work, _ODD)
    m, first = size_of(kind), first_of(kind)
    if what_of(kind) == LIFTED:
        some = odd_value(value_of(factors, f, columns, places, row))
        store(odd, first, count_triples.add(load(odd, first), count_triples.times(some, times)))
        return
    there = places[factors[f], row] + 8 * factors[f + 1]
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
    _read_factors(work, factors, start, stop, columns, places, row, rows)
    at, low, n, before = work + 8 * _HEAD, load(work, _LOW), load(work, _FACTORS), work + 8 * _BEFORE
    prefix, far, scaled, pitch = load(work, _PREFIX), load(work, _PREFIX_LOW), load(work, _SCALED), load(work, _WIDE)
    step, parts = 8 * _ROW, 2 if compensated else 1
    for f in range(n):
        entry, kind, own = load(at, _ENTRY), load(at, _KIND), load(at, _ROWS)
        m, first, changes = size_of(kind), first_of(kind), 0
        stride, offset = 8 * _padded(m), 8 * factors[entry + 1]
        for k in range(rows):
            here = own + step * k
            store(here, _OTHERS, load(before, k) * load(here, _AFTER))
            _put_count(here, _TIMES, load(here, _OTHERS), compensated)
            changes |= load(here, _COUNT) ^ 1
        for k in range(rows if first > 0 else 0):
            _put_count(own + step * k, _SCALE, load(own + step * k, _AFTER), compensated)
        for k in range(rows if f + 1 < n else 0):
            here, so_far, count = own + step * k, load(before, k), load(own + step * k, _COUNT)
            _put_count(here, _SO_FAR, so_far, compensated)
            _put_count(here, _OWN_COUNT, count, compensated)
            store(before, k, so_far * count)
        if factors[entry] > 0:  # NB: those of a delta lie side by side anyway
            place, size = _place_of(places, factors[entry], row + TILE), 8 * (ODD + m + parts * values_of(m))
            for _ in range(min(rows, places.shape[1] - row - TILE)):
                _ask(load(place, 0) + offset, size)
                place += _step_of(places)
        if _has_odd(own, what_of(kind) == LIFTED, m, rows):
            for k in range(rows):
                _add_odd(work, at, factors, entry, columns, places, row + k, load(own + step * k, _OTHERS))
        add_values(load(at, _OWN), low, own, step, _TIMES, values_of(m), rows, compensated)
        if first > 0:
            put_rows(scaled, stride, far, own, step, _SCALE, m, rows, compensated)
            to = load(at, _RECTANGLE)
            add_rectangle(to, low, scaled, stride, m, prefix, pitch, first, far, rows, compensated)
        if f + 1 < n:
            if changes != 0 and first > 0:
                scale_rows(prefix, pitch, far, own, step, _OWN_COUNT, first, rows, compensated)
            put_rows(prefix + 8 * first, pitch, far, own, step, _SO_FAR, m, rows, compensated)
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
