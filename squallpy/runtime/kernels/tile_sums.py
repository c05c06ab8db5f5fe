"""Sums of products over the rows of a tile, which stay in registers while its rows are read.

    sums[i, j] += Σ_k  values[k, i] · columns[k, j]        a rectangle
    sums[j]    += Σ_k  times[k] · values[k, j]             values where they are

Compensated sums have their errors beside them, and factors their lower halves.

Source: Ogita, Rump and Oishi, *Accurate sum and dot product* (2005), algorithm 5.3: as if by doubles of twice the
digits.
"""

from typing import Final

from squallpy.runtime.kernels.intrinsics import as_float, load
from squallpy.runtime.kernels.kernel_compiler import inlined
from squallpy.runtime.kernels.packed_reals import (
    BYTES,
    LANES,
    Packed,
    load_packed,
    load_some,
    multiply_add,
    spread,
    store_packed,
)
from squallpy.runtime.kernels.ring_arithmetic import two_sum

TILE: Final = 8
"""Rows that are multiplied together: so many that what the next need is asked for in time, and all are in the cache."""
VALUES: Final = 0
"""Place, among the words of a row, of the address of its values."""
VALUES_LOW: Final = 1
"""Place of the bytes from values to their lower halves."""


@inlined
def scaled(x: Packed, y: Packed, u: Packed, v: Packed) -> tuple[Packed, Packed]:
    """Multiply double-doubles; the lower half is not normalised."""
    p = x * u
    return p, multiply_add(y, u, multiply_add(x, v, multiply_add(x, u, -p)))


@inlined
def _added(s: Packed, e: Packed, x: Packed, y: Packed) -> tuple[Packed, Packed]:
    """Add a value and its error to a sum and its error."""
    t, rest = two_sum(s, x)
    return t, e + (rest + y)


@inlined
def add_values(
    to: int, low: int, rows_at: int, row_bytes: int, times: int, n: int, rows: int, compensated: bool
) -> None:
    """Add n values of each row, a number of times, to sums.

    Args:
        low: Bytes from sums to their errors.
        rows_at: The address of the first row's words.
        times: Which of these is the number of times, a double-double.
    """
    for j in range(0, n, LANES):
        here, left = rows_at, n - j
        s: Packed = load_packed(to + 8 * j)
        e: Packed = load_packed(to + 8 * j + low)
        for _ in range(rows):
            there = load(here, VALUES) + 8 * j
            x, u = load_some(there, left), spread(as_float(load(here, times)))
            if compensated:
                y, v = load_some(there + load(here, VALUES_LOW), left), spread(as_float(load(here, times + 1)))
                p, q = scaled(x, y, u, v)
                s, e = _added(s, e, p, q)
            else:
                s = multiply_add(x, u, s)
            here += row_bytes
        store_packed(to + 8 * j, s)
        if compensated:
            store_packed(to + 8 * j + low, e)


@inlined
def put_rows(
    to: int, pitch: int, far: int, rows_at: int, row_bytes: int, times: int, n: int, rows: int, compensated: bool
) -> None:
    """Set rows of n doubles, and what pads them, to values a number of times.

    Args:
        pitch: Bytes from a row to the next one.
        far: Bytes to the lower halves, which are not normalised.
    """
    for j in range(0, n, LANES):
        here, there, left = rows_at, to + 8 * j, n - j
        for _ in range(rows):
            source, u = load(here, VALUES) + 8 * j, spread(as_float(load(here, times)))
            a = load_some(source, left)
            if compensated:
                b, v = load_some(source + load(here, VALUES_LOW), left), spread(as_float(load(here, times + 1)))
                x, y = scaled(a, b, u, v)
                store_packed(there, x)
                store_packed(there + far, y)
            else:
                store_packed(there, a * u)
            here += row_bytes
            there += pitch


@inlined
def scale_rows(
    at: int, pitch: int, far: int, rows_at: int, row_bytes: int, times: int, n: int, rows: int, compensated: bool
) -> None:
    """Multiply rows of n doubles, and what pads them, by a number of times."""
    for j in range(0, n, LANES):
        here, there = rows_at, at + 8 * j
        for _ in range(rows):
            a, u = load_packed(there), spread(as_float(load(here, times)))
            if compensated:
                x, y = scaled(a, load_packed(there + far), u, spread(as_float(load(here, times + 1))))
                store_packed(there, x)
                store_packed(there + far, y)
            else:
                store_packed(there, a * u)
            here += row_bytes
            there += pitch


@inlined
def add_rectangle(
    to: int,
    low: int,
    values: int,
    stride: int,
    m: int,
    columns: int,
    pitch: int,
    n: int,
    far: int,
    rows: int,
    compensated: bool,
) -> None:
    """Add the products of m values and n others, over all rows, to rows of sums whose length is whole registers'.

    Two rows of sums are added up at a time: what both are multiplied by is loaded once.

    Args:
        low: Bytes from sums to their errors.
        stride: Bytes from a row's values to the next one's; `pitch`: those of the others.
        far: Bytes to the lower halves of both.
    """
    wide = 8 * ((n + LANES - 1) & -LANES)
    for i in range(0, m - 1, 2):
        for j in range(0, wide, BYTES):
            here, x_at, u_at = to + i * wide + j, values + 8 * i, columns + j
            a: Packed = load_packed(here)
            a_low: Packed = load_packed(here + low)
            b: Packed = load_packed(here + wide)
            b_low: Packed = load_packed(here + wide + low)
            for _ in range(rows):
                u, v = load_packed(u_at), load_packed(u_at + far if compensated else u_at)
                a, a_low = _add_product(a, a_low, x_at, far, u, v, compensated)
                b, b_low = _add_product(b, b_low, x_at + 8, far, u, v, compensated)
                x_at += stride
                u_at += pitch
            store_packed(here, a)
            store_packed(here + wide, b)
            if compensated:
                store_packed(here + low, a_low)
                store_packed(here + wide + low, b_low)
    for j in range(0, wide if m & 1 else 0, BYTES):
        here, x_at, u_at = to + (m - 1) * wide + j, values + 8 * (m - 1), columns + j
        c: Packed = load_packed(here)
        c_low: Packed = load_packed(here + low)
        for _ in range(rows):
            u, v = load_packed(u_at), load_packed(u_at + far if compensated else u_at)
            c, c_low = _add_product(c, c_low, x_at, far, u, v, compensated)
            x_at += stride
            u_at += pitch
        store_packed(here, c)
        if compensated:
            store_packed(here + low, c_low)


@inlined
def _add_product(
    s: Packed, e: Packed, x_at: int, far: int, u: Packed, v: Packed, compensated: bool
) -> tuple[Packed, Packed]:
    """Add the products of one value, at an address, and others."""
    x = spread(as_float(load(x_at, 0)))
    if not compensated:
        return multiply_add(x, u, s), e
    p, q = scaled(x, spread(as_float(load(x_at + far, 0))), u, v)
    return _added(s, e, p, q)
