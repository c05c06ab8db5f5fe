"""Sums of products of cofactor elements over many rows, as products of matrices: S′ᵀ·P, whose rows are those rows.

    Σ over rows of (c, s, Q) · (c′, s′, Q′)   →   Σ c·c′, [Σ c′·s, Σ c·s′], [Σ c′·Q; S′ᵀ·S, Σ c·Q′]

A tile of a matrix stays in registers while rows go by. A compensated sum starts at a bound of all that is added, not at
zero: so each partial sum is larger than what comes next, whose rounding error is then known after three operations
(Dekker's *FastTwoSum*, fused), where any two numbers take six. The bound is taken off in the end, without an error.

Rows that are few, or that have values or counts so large that a bound could overflow, are multiplied one by one.
"""

from typing import Final

from squallpy.base.rings.cofactor import COUNT, HASH, ODD
from squallpy.runtime.kernels.cofactor_blocks import LIFTED, SCALAR, first_of, size_of, values_of, what_of
from squallpy.runtime.kernels.cofactor_products import add_odd, add_product, ask, read_value, value_of
from squallpy.runtime.kernels.cofactor_workspace import (
    ENTRY,
    FACTOR_WORDS,
    FACTORS,
    HASHED,
    HEAD,
    KIND,
    LOW,
    OWN,
    RECTANGLE,
    RING,
    ROOM,
    SCALARS,
    TOTAL,
    add_to,
    is_compensated,
    padded,
    workspace,
)
from squallpy.runtime.kernels.intrinsics import as_float, as_word, load, store
from squallpy.runtime.kernels.kernel_compiler import Vector, address, called, inlined, making
from squallpy.runtime.kernels.memory_regions import Words
from squallpy.runtime.kernels.packed_reals import (
    BYTES,
    LANES,
    Packed,
    load_packed,
    load_some,
    magnitude,
    multiply_add,
    spread,
    store_packed,
)

_ROWS: Final = 32  # rows of a matrix: they have room in the cache, with the elements that they are made of
_FEW: Final = 4  # rows that are multiplied one by one
_BOUND: Final = 2.5  # times the sum of all magnitudes is larger than each partial sum, which is 1.5 at least
_LARGEST_COUNT: Final = 2.0**52  # products of counts up to it are doubles
_LARGEST_SUM: Final = 2.0**400  # neither products of sums up to it, nor their bounds, overflow

# The room: where there are, for each factor and row, its values, its count, the product of the counts behind it, that
# of all other counts as a double, and room for a lifted value; then for each row the product of the counts before a
# factor, the largest that a product of counts may be, and the hash; bounds of the sums of factors' values; matrices,
# and bytes from one row to the next. Lower halves of matrices stand behind the upper ones.
_VALUES, _COUNTS, _AFTER, _WEIGHTS, _LIFTED, _BEFORE, _MOST, _HASHES, _BOUNDS, _LEFT, _RIGHT, _STRIDE, _PARTS = range(
    13
)


@making
def summing_workspace(code: int, factors: Vector, start: int, stop: int) -> Words:
    """Make a workspace (`workspace`) to which `add_products` can add many rows at once."""
    n, size = (stop - start) // 3, 1
    for f in range(start, stop, 3):
        if what_of(factors[f + 2]) != SCALAR:
            size = max(size, first_of(factors[f + 2]) + size_of(factors[f + 2]))
    stride, each = padded(size) + LANES, n * _ROWS
    room = padded(_PARTS) + 8 * each + 3 * _ROWS + values_of(size) + LANES * n + 4 * _ROWS * stride
    words = workspace(code, factors, start, stop, room)
    panel = load(address(words), ROOM)
    at = panel + 8 * padded(_PARTS)
    for part, length in (
        (_LEFT, 2 * _ROWS * stride),
        (_RIGHT, 2 * _ROWS * stride),
        (_BOUNDS, values_of(size) + LANES * n),
        (_VALUES, each),
        (_COUNTS, each),
        (_AFTER, each),
        (_WEIGHTS, each),
        (_LIFTED, 4 * each),
        (_BEFORE, _ROWS),
        (_MOST, _ROWS),
        (_HASHES, _ROWS),
    ):
        store(panel, part, at)
        at += 8 * length
    store(panel, _STRIDE, 8 * stride)
    return words


@inlined
def _add_term(sum: Packed, rest: Packed, x: Packed, y: Packed, u: Packed, v: Packed) -> tuple[Packed, Packed]:
    """Add (x + y)·(u + v) to a sum that is larger, and what is rounded off, and y's and v's part, to the rest."""
    after = multiply_add(x, u, sum)
    return after, rest + multiply_add(x, v, multiply_add(y, u, multiply_add(x, u, sum - after)))


@inlined
def _add_weighted(sum: Packed, rest: Packed, x: Packed, u: Packed, v: Packed) -> tuple[Packed, Packed]:
    """Add x·(u + v) likewise."""
    after = multiply_add(x, u, sum)
    return after, rest + multiply_add(x, v, multiply_add(x, u, sum - after))


@inlined
def _read_factor(
    work: int, panel: int, i: int, factors: Vector, columns: Vector, places: Vector, first: int, rows: int
) -> None:
    """Locate the values of a factor in rows, and note their counts; multiplies hashes and largest counts by them."""
    at = work + 8 * (HEAD + FACTOR_WORDS * i)
    f, kind, compensated = load(at, ENTRY), load(at, KIND), is_compensated(load(work, RING))
    values, counts = load(panel, _VALUES) + 8 * _ROWS * i, load(panel, _COUNTS) + 8 * _ROWS * i
    hashes, most = load(panel, _HASHES), load(panel, _MOST)
    if what_of(kind) == LIFTED:
        for r in range(rows):
            room = load(panel, _LIFTED) + 32 * (_ROWS * i + r)
            hashed = read_value(room, 16, kind, value_of(factors, f, columns, places, first + r), compensated)
            store(hashes, r, load(hashes, r) * hashed)
            store(values, r, room)
            store(counts, r, 1)
        return
    m, source, offset = size_of(kind), factors[f], 8 * factors[f + 1]
    for r in range(rows):
        there = places[source, first + r] + offset
        count = load(there, COUNT)
        store(hashes, r, load(hashes, r) * load(there, HASH))
        store(values, r, there + 8 * (ODD + m))
        store(counts, r, count)
        store(most, r, as_word(as_float(load(most, r)) * max(1.0, abs(float(count)))))


@inlined
def _read_rows(
    work: int, factors: Vector, start: int, stop: int, columns: Vector, places: Vector, first: int, rows: int
) -> tuple[bool, int, int]:
    """Read the factors of rows; returns whether all counts are small, and the sums of counts and hashes."""
    panel = load(work, ROOM)
    n, before, hashes, most = load(work, FACTORS), load(panel, _BEFORE), load(panel, _HASHES), load(panel, _MOST)
    for r in range(rows):
        scale, span = 1, 1.0
        for f in range(start, stop if load(work, SCALARS) > 0 else start, 3):
            if what_of(factors[f + 2]) == SCALAR:
                count = load(places[factors[f], first + r] + 8 * factors[f + 1], COUNT)
                scale *= count
                span *= max(1.0, abs(float(count)))
        store(before, r, scale)
        store(hashes, r, scale)
        store(most, r, as_word(span))
        store(load(panel, _AFTER) + 8 * _ROWS * (n - 1), r, 1)
    for i in range(n):
        _read_factor(work, panel, i, factors, columns, places, first, rows)
    for i in range(n - 2, -1, -1):
        after, counts = load(panel, _AFTER) + 8 * _ROWS * i, load(panel, _COUNTS) + 8 * _ROWS * (i + 1)
        for r in range(rows):
            store(after, r, load(after, _ROWS + r) * load(counts, r))
    largest, total, hashed = 0.0, 0, 0
    for r in range(rows):
        largest = max(largest, as_float(load(most, r)))
        hashed += load(hashes, r)
        times = load(before, r)
        for f in range(r, r + _ROWS * n, _ROWS):
            store(load(panel, _WEIGHTS), f, as_word(float(times * load(load(panel, _AFTER), f))))
            times *= load(load(panel, _COUNTS), f)
        total += times
    return largest <= _LARGEST_COUNT, total, hashed


@inlined
def _bound_values(work: int, panel: int, rows: int) -> bool:
    """Bound the weighted sums of all factors' values; False if one of these is large, or not finite."""
    bounds, most = load(panel, _BOUNDS), load(panel, _MOST)
    for i in range(load(work, FACTORS)):
        n = values_of(size_of(load(work + 8 * (HEAD + FACTOR_WORDS * i), KIND)))
        values, weights = load(panel, _VALUES) + 8 * _ROWS * i, load(panel, _WEIGHTS) + 8 * _ROWS * i
        for j in range(0, n, LANES):
            bound: Packed = spread(0.0)
            largest: Packed = spread(0.0)
            for r in range(rows):
                x = load_some(load(values, r) + 8 * j, n - j)
                bound = bound + magnitude(spread(as_float(load(weights, r))) * x)
                largest = multiply_add(magnitude(x), spread(as_float(load(most, r))), largest)
            store_packed(bounds + 8 * j, largest)
            for lane in range(j, j + LANES):
                if not as_float(load(bounds, lane)) < _LARGEST_SUM:
                    return False
            store_packed(bounds + 8 * j, bound)
        bounds += 8 * padded(n)
    return True


@inlined
def _add_values(own: int, low: int, panel: int, i: int, n: int, bounds: int, rows: int, compensated: bool) -> None:
    """Add a factor's values in rows, weighted, to the sums at `own`."""
    values, weights = load(panel, _VALUES) + 8 * _ROWS * i, load(panel, _WEIGHTS) + 8 * _ROWS * i
    zero: Packed = spread(0.0)
    for j in range(0, n, LANES):
        if compensated:
            bound: Packed = spread(_BOUND) * load_packed(bounds + 8 * j)
            sum, rest = bound, zero
            for r in range(rows):
                there = load(values, r) + 8 * j
                u, v = load_some(there, n - j), load_some(there + 8 * n, n - j)
                sum, rest = _add_weighted(sum, rest, spread(as_float(load(weights, r))), u, v)
            add_to(own + 8 * j, low, sum - bound, rest)
        else:
            sum = load_packed(own + 8 * j)
            for r in range(rows):
                u = load_some(load(values, r) + 8 * j, n - j)
                sum = multiply_add(spread(as_float(load(weights, r))), u, sum)
            store_packed(own + 8 * j, sum)


@inlined
def _put_rows(matrix: int, panel: int, i: int, m: int, counts: int, rows: int, compensated: bool) -> None:
    """Set rows of a matrix to a factor's sums, so many times, and what pads them to 0."""
    values, stride, far = load(panel, _VALUES) + 8 * _ROWS * i, load(panel, _STRIDE), 8 * values_of(m)
    for r in range(rows):
        _put_times(matrix + r * stride, _ROWS * stride, load(values, r), far, m, float(load(counts, r)), compensated)


@inlined
def _put_times(to: int, low: int, source: int, source_low: int, n: int, times: float, compensated: bool) -> None:
    """Multiply n numbers."""
    w = spread(times)
    for j in range(0, n, LANES):
        u = load_some(source + 8 * j, n - j)
        p = w * u
        store_packed(to + 8 * j, p)
        if compensated:
            v = load_some(source + source_low + 8 * j, n - j)
            store_packed(to + low + 8 * j, multiply_add(w, v, multiply_add(w, u, spread(0.0) - p)))


@inlined
def _add_matrix(rectangle: int, low: int, panel: int, m: int, n: int, rows: int, compensated: bool) -> None:
    """Add S′ᵀ·P, of m and n columns, to rows of sums."""
    left, right, stride = load(panel, _LEFT), load(panel, _RIGHT), load(panel, _STRIDE)
    far, wide = _ROWS * stride, 8 * padded(n)
    zero: Packed = spread(0.0)
    for j in range(0, wide, BYTES):
        if compensated:
            for i in range(m):
                bound = zero
                for r in range(rows):
                    x = spread(as_float(load(left + r * stride + 8 * i, 0)))
                    bound = bound + magnitude(x * load_packed(right + r * stride + j))
                bound = spread(_BOUND) * bound
                sum, rest = bound, zero
                for r in range(rows):
                    row, column = left + r * stride + 8 * i, right + r * stride + j
                    x, y = spread(as_float(load(row, 0))), spread(as_float(load(row + far, 0)))
                    sum, rest = _add_term(sum, rest, x, y, load_packed(column), load_packed(column + far))
                add_to(rectangle + i * wide + j, low, sum - bound, rest)
        else:
            for i in range(m):
                sum = load_packed(rectangle + i * wide + j)
                for r in range(rows):
                    x = spread(as_float(load(left + r * stride + 8 * i, 0)))
                    sum = multiply_add(x, load_packed(right + r * stride + j), sum)
                store_packed(rectangle + i * wide + j, sum)


@inlined
def _add_matrices(
    work: int, factors: Vector, columns: Vector, places: Vector, first: int, rows: int, compensated: bool
) -> None:
    """Add the products of rows whose factors are read."""
    panel, at, low, n = load(work, ROOM), work + 8 * HEAD, load(work, LOW), load(work, FACTORS)
    right, stride, bounds = load(panel, _RIGHT), load(panel, _STRIDE), load(panel, _BOUNDS)
    before = load(panel, _BEFORE)
    for i in range(n):
        entry, kind = load(at, ENTRY), load(at, KIND)
        m, behind, size = size_of(kind), first_of(kind), values_of(size_of(kind))
        counts, after = load(panel, _COUNTS) + 8 * _ROWS * i, load(panel, _AFTER) + 8 * _ROWS * i
        many = 0
        for r in range(rows):
            add_odd(work, at, factors, entry, columns, places, first + r, load(before, r) * load(after, r))
            many |= load(counts, r) ^ 1
        _ask_factor(factors, entry, kind, places, first + _ROWS, compensated)
        _add_values(load(at, OWN), low, panel, i, size, bounds, rows, compensated)
        bounds += 8 * padded(size)
        if behind > 0:
            _put_rows(load(panel, _LEFT), panel, i, m, after, rows, compensated)
            _add_matrix(load(at, RECTANGLE), low, panel, m, behind, rows, compensated)
        if i + 1 < n:
            if many != 0:
                for r in range(rows):
                    row, times = right + r * stride, float(load(counts, r))
                    _put_times(row, _ROWS * stride, row, _ROWS * stride, behind, times, compensated)
            _put_rows(right + 8 * behind, panel, i, m, before, rows, compensated)
            for r in range(rows):
                store(before, r, load(before, r) * load(counts, r))
        at += 8 * FACTOR_WORDS


@inlined
def _ask_factor(factors: Vector, f: int, kind: int, places: Vector, first: int, compensated: bool) -> None:
    """Ask for a factor's elements in the rows of the next matrix; those of a delta lie side by side anyway."""
    if factors[f] > 0 and what_of(kind) != LIFTED:
        m = size_of(kind)
        bytes = 8 * (ODD + m + (2 if compensated else 1) * values_of(m))
        for row in range(first, min(first + _ROWS, places.shape[1])):
            ask(places[factors[f], row] + 8 * factors[f + 1], bytes)


@called
def add_products(work: int, factors: Vector, start: int, stop: int, columns: Vector, places: Vector) -> None:
    """Add the products of all rows' factors to a workspace (`summing_workspace`)."""
    panel, compensated, every = load(work, ROOM), is_compensated(load(work, RING)), places.shape[1]
    for i in range(load(work, FACTORS) if every >= _FEW else 0):
        at = work + 8 * (HEAD + FACTOR_WORDS * i)
        _ask_factor(factors, load(at, ENTRY), load(at, KIND), places, 0, compensated)
    for first in range(0, every, _ROWS):
        rows = min(_ROWS, every - first)
        if rows >= _FEW:
            small, total, hashed = _read_rows(work, factors, start, stop, columns, places, first, rows)
            if small and (not compensated or _bound_values(work, panel, rows)):
                store(work, TOTAL, load(work, TOTAL) + total)
                store(work, HASHED, load(work, HASHED) + hashed)
                if compensated:
                    _add_matrices(work, factors, columns, places, first, rows, True)
                else:
                    _add_matrices(work, factors, columns, places, first, rows, False)
                continue
        for row in range(first, first + rows):
            add_product(work, factors, start, stop, columns, places, row)
