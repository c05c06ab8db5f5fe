"""Products of cofactor elements, a row at a time (`cofactor_sums.py` adds those of many).

    (c, s, Q) · (c′, s′, Q′)   →   c·c′, [c′·s, c·s′], [c′·Q; s′·sᵀ, c·Q′]

A rectangle takes the sums of all factors before its own at once, which are scaled as the product goes on, so the work
beside one multiplication for each word is small (`fivm-on-flink` Alg. 4 and 6, without maps of indexes).
"""

from typing import Final

from squallpy.base.rings.cofactor import COUNT, HASH, ODD
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
    values_of,
    what_of,
    within,
)
from squallpy.runtime.kernels.cofactor_workspace import (
    AFTER,
    ENTRY,
    FACTOR_COUNT,
    FACTOR_WORDS,
    FACTORS,
    HASHED,
    HEAD,
    KIND,
    LOW,
    OWN,
    PREFIX,
    PREFIX_LOW,
    RECTANGLE,
    RING,
    SCALARS,
    SCALE,
    SCALED,
    TOTAL,
    TRIPLES,
    VALUE,
    VALUES,
    VALUES_LOW,
    add_to,
    is_compensated,
    padded,
)
from squallpy.runtime.kernels.intrinsics import as_float, as_word, load, prefetch, store
from squallpy.runtime.kernels.kernel_compiler import Vector, called, inlined
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
from squallpy.runtime.kernels.ring_arithmetic import quick_two_sum, real_of

_AHEAD: Final = 6  # rows whose factors are asked for


@inlined
def scaled(x: Packed, y: Packed, u: Packed, v: Packed) -> tuple[Packed, Packed]:
    """Multiply double-doubles; the lower half is not normalised."""
    p = x * u
    return p, multiply_add(y, u, multiply_add(x, v, multiply_add(x, u, spread(0.0) - p)))


@inlined
def _add_scaled(at: int, low: int, source: int, source_low: int, n: int, times: int, compensated: bool) -> None:
    """Add n values, `times` times, to sums."""
    high, rest = real_of(times)
    u, v = spread(high), spread(rest)
    if compensated:
        for j in range(0, n, LANES):
            there = source + 8 * j
            x, y = scaled(load_some(there, n - j), load_some(there + source_low, n - j), u, v)
            add_to(at + 8 * j, low, x, y)
    else:
        for j in range(0, n, LANES):
            x = load_some(source + 8 * j, n - j)
            store_packed(at + 8 * j, multiply_add(x, u, load_packed(at + 8 * j)))


@inlined
def _put_scaled(at: int, low: int, source: int, source_low: int, n: int, times: int, compensated: bool) -> None:
    """Set n values, and what pads them, to others `times` times."""
    high, rest = real_of(times)
    u, v = spread(high), spread(rest)
    for j in range(0, n, LANES):
        a = load_some(source + 8 * j, n - j)
        if compensated:
            x, y = quick_two_sum(*scaled(a, load_some(source + 8 * j + source_low, n - j), u, v))
            store_packed(at + 8 * j, x)
            store_packed(at + 8 * j + low, y)
        else:
            store_packed(at + 8 * j, a * u)


@inlined
def _add_rectangle(at: int, low: int, rows: int, m: int, columns: int, n: int, far: int, compensated: bool) -> None:
    """Add a product of m values at `rows` and n at `columns`, lower halves `far` behind both, to rows of sums."""
    wide = 8 * padded(n)
    for j in range(0, wide, BYTES):
        u = load_packed(columns + j)
        if compensated:
            v = load_packed(columns + far + j)
            for i in range(m):
                x, y = spread(as_float(load(rows, i))), spread(as_float(load(rows + far, i)))
                p, e = scaled(x, y, u, v)
                add_to(at + j + i * wide, low, p, e)
        else:
            for i in range(m):
                to = at + j + i * wide
                store_packed(to, multiply_add(spread(as_float(load(rows, i))), u, load_packed(to)))


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
def read_value(room: int, low: int, kind: int, value: float, compensated: bool) -> int:
    """Lift a value: put it and its square at `room`, their lower halves so many bytes behind; returns the hash."""
    x = within(value, LARGEST)
    p = x * x
    store(room, 0, as_word(x))
    store(room, 1, as_word(p))
    if compensated:
        store(room + low, 0, 0)
        store_some(room + low + 8, _square_error(spread(x), spread(p)), 1)
    return hash_value(value, number_of(kind))


@inlined
def _square_error(x: Packed, p: Packed) -> Packed:
    return where_finite(p, multiply_add(x, x, spread(0.0) - p))


@inlined
def _read_factors(work: int, factors: Vector, start: int, stop: int, columns: Vector, places: Vector, row: int) -> None:
    """Find the factors of a row: their counts, hashes and values."""
    code, n = load(work, RING), load(work, FACTORS)
    scale = 1
    for f in range(start, stop if load(work, SCALARS) > 0 else start, 3):
        if what_of(factors[f + 2]) == SCALAR:
            scale *= load(places[factors[f], row] + 8 * factors[f + 1], COUNT)
    hashed, after = scale, 1
    at = work + 8 * (HEAD + FACTOR_WORDS * (n - 1))
    for _ in range(n):
        f, kind = load(at, ENTRY), load(at, KIND)
        if what_of(kind) == LIFTED:
            value, room = value_of(factors, f, columns, places, row), at + 8 * VALUE
            hashed *= read_value(room, BYTES, kind, value, is_compensated(code))
            store(at, FACTOR_COUNT, 1)
            store(at, VALUES, room)
            store(at, VALUES_LOW, BYTES)
        else:
            m, there = size_of(kind), places[factors[f], row] + 8 * factors[f + 1]
            store(at, FACTOR_COUNT, load(there, COUNT))
            store(at, VALUES, there + 8 * (ODD + m))
            store(at, VALUES_LOW, 8 * values_of(m))
            hashed *= load(there, HASH)
        store(at, AFTER, after)
        after *= load(at, FACTOR_COUNT)
        at -= 8 * FACTOR_WORDS
    store(work, SCALE, scale)
    store(work, TOTAL, load(work, TOTAL) + scale * after)
    store(work, HASHED, load(work, HASHED) + hashed)


@inlined
def add_odd(work: int, at: int, factors: Vector, f: int, columns: Vector, places: Vector, row: int, times: int) -> None:
    """Add what counts values that are not finite, of one factor."""
    kind, odd = load(at, KIND), load(work, TRIPLES)
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
def ask(there: int, bytes: int) -> None:
    """Ask for the cache lines of a block."""
    for byte in range(0, bytes + BYTES, BYTES):
        prefetch(there + byte)


@inlined
def _add_row(
    work: int, factors: Vector, start: int, stop: int, columns: Vector, places: Vector, row: int, compensated: bool
) -> None:
    _read_factors(work, factors, start, stop, columns, places, row)
    at, low, before = work + 8 * HEAD, load(work, LOW), load(work, SCALE)
    prefix, far, scaled, n = load(work, PREFIX), load(work, PREFIX_LOW), load(work, SCALED), load(work, FACTORS)
    for f in range(n):
        entry, kind, count, after = load(at, ENTRY), load(at, KIND), load(at, FACTOR_COUNT), load(at, AFTER)
        values, values_low, m, first = load(at, VALUES), load(at, VALUES_LOW), size_of(kind), first_of(kind)
        add_odd(work, at, factors, entry, columns, places, row, before * after)
        _add_scaled(load(at, OWN), low, values, values_low, values_of(m), before * after, compensated)
        if first > 0:
            _put_scaled(scaled, far, values, values_low, m, after, compensated)
            _add_rectangle(load(at, RECTANGLE), low, scaled, m, prefix, first, far, compensated)
        if f + 1 < n:
            if count != 1 and first > 0:
                _put_scaled(prefix, far, prefix, far, first, count, compensated)
            _put_scaled(prefix + 8 * first, far, values, values_low, m, before, compensated)
        before *= count
        at += 8 * FACTOR_WORDS
        if factors[entry] > 0 and row + _AHEAD < places.shape[1]:  # NB: those of a delta lie side by side anyway
            parts = 2 if compensated else 1
            ask(places[factors[entry], row + _AHEAD] + 8 * factors[entry + 1], 8 * (ODD + m + parts * values_of(m)))


@called
def add_product(work: int, factors: Vector, start: int, stop: int, columns: Vector, places: Vector, row: int) -> None:
    """Add the product of a row's factors to a workspace."""
    if is_compensated(load(work, RING)):
        _add_row(work, factors, start, stop, columns, places, row, True)
    else:
        _add_row(work, factors, start, stop, columns, places, row, False)
