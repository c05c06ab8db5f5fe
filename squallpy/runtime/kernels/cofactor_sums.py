"""Sums of products over the rows of a tile, in registers.

    add_factor    a factor's values, and its rectangle with those before it, added for all rows of a tile

Several registers of plain sums are added to in one loop over rows: what a row has is loaded once for all, and none
waits for the sum before it. Loops over rows are not unrolled (`rolled`): adders are busy anyway, and with them more
code than a cache of instructions has room for took a third longer.
"""

from squallpy.base.rings.cofactor import ODD
from squallpy.runtime.kernels.cofactor_blocks import values_of
from squallpy.runtime.kernels.cofactor_tiles import (
    AFTER,
    BEFORE,
    COUNTS,
    LOW,
    OWN,
    OWN_COUNT,
    OWN_TIMES,
    PLACE,
    PREFIX,
    PREFIX_LOW,
    RECTANGLE,
    ROWS,
    SCALED,
    TILE,
    WIDE,
    ask_some,
    is_turned,
    padded,
    scaled,
)
from squallpy.runtime.kernels.intrinsics import as_float, load, rolled
from squallpy.runtime.kernels.kernel_compiler import inlined
from squallpy.runtime.kernels.packed_reals import (
    BYTES,
    LANES,
    Packed,
    has_others,
    load_packed,
    load_some,
    load_words,
    multiply_add,
    spread,
    store_packed,
)
from squallpy.runtime.kernels.ring_arithmetic import two_sum


@inlined
def add_factor(
    work: int,
    at: int,
    m: int,
    first: int,
    is_last: bool,
    rows: int,
    compensated: bool,
    then: int,
    source_pitch: int,
    pitch: int,
) -> None:
    """Add the products of a tile's rows that have variables of a factor and of those before it.

    Args:
        m: How many variables the factor has.
        first: The place of the first of these in the product.
        then: Where the next tile's rows have the addresses of their elements, as of `ask_some`.
    """
    _add_values(work, at, m, rows, compensated, then, source_pitch, pitch)
    if first > 0:
        _scale_sums(work, at, m, rows, compensated)
        _add_rectangle(work, at, m, first, rows, compensated, then, source_pitch, pitch)
    if not is_last:
        _extend_prefix(work, at, m, first, rows, compensated)


@inlined
def _add_values(
    work: int, at: int, m: int, rows: int, compensated: bool, then: int, source_pitch: int, pitch: int
) -> None:
    """Add values of a factor, as often as the counts of all others say."""
    to, low, own, n = load(at, OWN), load(work, LOW), load(at, ROWS), values_of(m)
    begin, far, left = 8 * (ODD + m), 8 * n, n
    while left > 0:
        several = 1 if compensated or left <= LANES else 4 if left > 3 * LANES else 2
        ask_some(work, then, source_pitch, pitch, several)
        if several == 4:
            _add_four_values(to, own, begin, left, rows)
        elif several == 2:
            _add_two_values(to, own, begin, left, rows)
        else:
            _add_value(to, low, own, begin, far, left, rows, compensated)
        to, begin, left = rolled(to + BYTES * several), begin + BYTES * several, left - LANES * several


@inlined
def _add_four_values(to: int, row: int, begin: int, left: int, rows: int) -> None:
    """Add four registers of plain values."""
    a, b, c, d = load_packed(to), load_packed(to + BYTES), load_packed(to + 2 * BYTES), load_packed(to + 3 * BYTES)
    for _ in range(rows):
        there, u = load(row, TILE * PLACE) + begin, spread(as_float(load(row, TILE * OWN_TIMES)))
        a = multiply_add(load_packed(there), u, a)
        b = multiply_add(load_packed(there + BYTES), u, b)
        c = multiply_add(load_packed(there + 2 * BYTES), u, c)
        d = multiply_add(load_some(there + 3 * BYTES, left - 3 * LANES), u, d)
        row = rolled(row + 8)
    store_packed(to, a)
    store_packed(to + BYTES, b)
    store_packed(to + 2 * BYTES, c)
    store_packed(to + 3 * BYTES, d)


@inlined
def _add_two_values(to: int, row: int, begin: int, left: int, rows: int) -> None:
    """Add two registers of plain values."""
    a, b = load_packed(to), load_packed(to + BYTES)
    for _ in range(rows):
        there, u = load(row, TILE * PLACE) + begin, spread(as_float(load(row, TILE * OWN_TIMES)))
        a = multiply_add(load_packed(there), u, a)
        b = multiply_add(load_some(there + BYTES, left - LANES), u, b)
        row = rolled(row + 8)
    store_packed(to, a)
    store_packed(to + BYTES, b)


@inlined
def _add_value(to: int, low: int, row: int, begin: int, far: int, left: int, rows: int, compensated: bool) -> None:
    """Add a register of values."""
    total: Packed = load_packed(to)
    errors: Packed = load_packed(to + low)
    for _ in range(rows):
        there = load(row, TILE * PLACE) + begin
        a, u = load_some(there, left), spread(as_float(load(row, TILE * OWN_TIMES)))
        if compensated:
            v = spread(as_float(load(row, TILE * (OWN_TIMES + 1))))
            x, y = scaled(a, load_some(there + far, left), u, v)
            total, t = two_sum(total, x)
            errors = errors + (t + y)
        else:
            total = multiply_add(a, u, total)
        row = rolled(row + 8)
    store_packed(to, total)
    if compensated:
        store_packed(to + low, errors)


@inlined
def _put_scaled(at: int, low: int, a: Packed, b: Packed, times: int, compensated: bool) -> None:
    """Store values times a count, a double and what is left of it a run of words behind.

    Double-doubles are not normalised: a lower half is below a few units of the upper one's last place.
    """
    u = spread(as_float(load(times, 0)))
    if compensated:
        x, y = scaled(a, b, u, spread(as_float(load(times, TILE))))
        store_packed(at, x)
        store_packed(at + low, y)
    else:
        store_packed(at, a * u)


@inlined
def _put_sums(to: int, pitch: int, low: int, own: int, m: int, times: int, rows: int, compensated: bool) -> None:
    """Store the sums of a factor's rows, as often as a product of counts says, in rows so many bytes apart."""
    begin, left, far = 8 * (ODD + m), m, 8 * values_of(m)
    while left > 0:
        at, row = to, own
        for _ in range(rows):
            there = load(row, TILE * PLACE) + begin
            a = load_some(there, left)
            b = load_some(there + far, left) if compensated else a
            _put_scaled(at, low, a, b, row + 8 * TILE * times, compensated)
            row = rolled(row + 8)
            at += pitch
        to, begin, left = to + BYTES, begin + BYTES, left - LANES


@inlined
def _scale_sums(work: int, at: int, m: int, rows: int, compensated: bool) -> None:
    """Scale a factor's sums by the counts behind it."""
    _put_sums(load(work, SCALED), 8 * padded(m), load(work, PREFIX_LOW), load(at, ROWS), m, AFTER, rows, compensated)


@inlined
def _extend_prefix(work: int, at: int, m: int, first: int, rows: int, compensated: bool) -> None:
    """Scale the sums so far by a factor's count, and put its own, scaled by the counts before it, behind them."""
    to, low, own, wide = load(work, PREFIX), load(work, PREFIX_LOW), load(at, ROWS), load(work, WIDE)
    for j in range(0, 8 * first if has_others(load_words(own + BYTES * COUNTS), 1) != 0 else 0, BYTES):
        there, row = to + j, own
        for _ in range(rows):
            a = load_packed(there)
            b = load_packed(there + low) if compensated else a
            _put_scaled(there, low, a, b, row + 8 * TILE * OWN_COUNT, compensated)
            row = rolled(row + 8)
            there += wide
    _put_sums(to + 8 * first, wide, low, own, m, BEFORE, rows, compensated)


@inlined
def _add_rectangle(
    work: int, at: int, m: int, first: int, rows: int, compensated: bool, then: int, source_pitch: int, pitch: int
) -> None:
    """Add the products of m values of a factor and those before them, for all rows of a tile."""
    to, low, far, left = load(at, RECTANGLE), load(work, LOW), load(work, PREFIX_LOW), m
    x_at, x_row, u_at, u_row, wide = load(work, SCALED), 8 * padded(m), load(work, PREFIX), load(work, WIDE), first
    if is_turned(m, first):
        x_at, x_row, u_at, u_row, wide, left = u_at, u_row, x_at, x_row, m, first
    wide = 8 * padded(wide)
    while left > 0:
        several = 4 if left >= 4 and not compensated else 2 if left >= 2 and not compensated else 1
        column = 0
        while column != wide:
            ask_some(work, then, source_pitch, pitch, several)
            if several == 4:
                _add_four(to, wide, x_at, x_row, u_at + column, u_row, rows)
            elif several == 2:
                _add_two(to, wide, x_at, x_row, u_at + column, u_row, rows)
            else:
                _add_one(to, low, x_at, x_row, u_at + column, u_row, far, rows, compensated)
            to += BYTES
            column = rolled(column + BYTES)
        to += wide * (several - 1)
        x_at, left = rolled(x_at + 8 * several), left - several


@inlined
def _add_four(to: int, wide: int, x_at: int, stride: int, u_at: int, row: int, rows: int) -> None:
    """Add a register of the products of each of four values side by side."""
    a, b, c, d = load_packed(to), load_packed(to + wide), load_packed(to + 2 * wide), load_packed(to + 3 * wide)
    for _ in range(rows):
        u = load_packed(u_at)
        a = multiply_add(spread(as_float(load(x_at, 0))), u, a)
        b = multiply_add(spread(as_float(load(x_at, 1))), u, b)
        c = multiply_add(spread(as_float(load(x_at, 2))), u, c)
        d = multiply_add(spread(as_float(load(x_at, 3))), u, d)
        x_at = rolled(x_at + stride)
        u_at += row
    store_packed(to, a)
    store_packed(to + wide, b)
    store_packed(to + 2 * wide, c)
    store_packed(to + 3 * wide, d)


@inlined
def _add_two(to: int, wide: int, x_at: int, stride: int, u_at: int, row: int, rows: int) -> None:
    """Add a register of the products of each of two values side by side."""
    a, b = load_packed(to), load_packed(to + wide)
    for _ in range(rows):
        u = load_packed(u_at)
        a = multiply_add(spread(as_float(load(x_at, 0))), u, a)
        b = multiply_add(spread(as_float(load(x_at, 1))), u, b)
        x_at = rolled(x_at + stride)
        u_at += row
    store_packed(to, a)
    store_packed(to + wide, b)


@inlined
def _add_one(
    to: int, low: int, x_at: int, stride: int, u_at: int, row: int, far: int, rows: int, compensated: bool
) -> None:
    """Add a register of the products of a value."""
    total: Packed = load_packed(to)
    errors: Packed = load_packed(to + low)
    for _ in range(rows):
        x, u = spread(as_float(load(x_at, 0))), load_packed(u_at)
        if compensated:
            p, e = scaled(x, spread(as_float(load(x_at + far, 0))), u, load_packed(u_at + far))
            total, t = two_sum(total, p)
            errors = errors + (t + e)
        else:
            total = multiply_add(x, u, total)
        x_at = rolled(x_at + stride)
        u_at += row
    store_packed(to, total)
    if compensated:
        store_packed(to + low, errors)
