"""Elements of the cofactor ring in memory (`base/rings/cofactor.py` has their layout): sum, product, lifting.

Blocks lie side by side in a product, so each of its words is written once: a factor's own sums and triangle, scaled by
the counts of the others, and for each pair of factors the rectangle s·s′ᵀ, scaled by those of the rest
(`fivm-on-flink` Alg. 4 and 6, without maps of indexes).
"""

from collections.abc import Sequence
from math import inf
from typing import Final

import numpy as np
import numpy.typing as npt

from squallpy.base.rings.cofactor import COMPENSATED, COUNT, HASH, KIND_BITS, ODD, Cofactor
from squallpy.runtime.kernels import count_triples
from squallpy.runtime.kernels.hashing import mix
from squallpy.runtime.kernels.intrinsics import as_float, as_word, load, store
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
from squallpy.runtime.kernels.real_sums import odd_of, printed
from squallpy.runtime.kernels.ring_arithmetic import real_add, real_multiply, real_of, two_product

Reals = npt.NDArray[np.float64]

# Factors of a product, as `kind_of_factor` encodes them: what they are, how many variables they have, and the number of
# the first of these, counted from the product's first variable and in the view tree.
SCALAR: Final = 0  # a count
BLOCK: Final = 1  # an element of the same kind as the product
LIFTED: Final = 2  # a value, which is lifted here
_WHAT_BITS: Final = 2
_SIZE_BITS: Final = 20
_FIRST: Final = _WHAT_BITS + _SIZE_BITS
_NUMBER: Final = _FIRST + _SIZE_BITS
LARGEST: Final = 2.0**511
"""The largest value that is lifted: the square of any beyond it is no double, so that it counts as an infinity."""
_REAL: Final = 1.7976931348623157e308  # the largest double
_SALT: Final = 0x4B33A62ED433D4A3


@inlined
def _values(size: int) -> int:
    return size + (size * (size + 1) >> 1)


@inlined
def block_words(code: int) -> int:
    """Count the words of an element."""
    size = code >> KIND_BITS
    return ODD + size + _values(size) * (code - 3 & 7)


@inlined
def triangle(row: int) -> int:
    """Return where a row of a lower triangle begins."""
    return row * (row + 1) >> 1


@called
def add_block(target: int, source: int, code: int) -> int:
    """Add the element at `source` to the one at `target`; 0 if nothing is left, and then its words are 0."""
    size, compensated = code >> KIND_BITS, code & 7 == COMPENSATED
    n = _values(size)
    c, h = load(target, COUNT) + load(source, COUNT), load(target, HASH) + load(source, HASH)
    store(target, COUNT, c)
    store(target, HASH, h)
    if c | h == 0:
        for i in range(ODD, ODD + size + (2 * n if compensated else n)):
            store(target, i, 0)
        return 0
    for i in range(ODD, ODD + size):
        a, b = load(target, i), load(source, i)
        if a | b != 0:
            store(target, i, count_triples.add(a, b))
    first = ODD + size
    if compensated:
        for i in range(first, first + n):
            x, y = real_add(
                as_float(load(target, i)), as_float(load(target, i + n)),
                as_float(load(source, i)), as_float(load(source, i + n)),
            )  # fmt: skip
            store(target, i, as_word(x))
            store(target, i + n, as_word(y))
    else:
        for i in range(first, first + n):
            store(target, i, as_word(as_float(load(target, i)) + as_float(load(source, i))))
    return c | h


@inlined
def is_zero_block(source: int) -> bool:
    """True if the element at `source` is zero."""
    return load(source, COUNT) | load(source, HASH) == 0


@called
def negate_block(target: int, code: int) -> None:
    """Negate the element at `target`."""
    size = code >> KIND_BITS
    n = _values(size) * (2 if code & 7 == COMPENSATED else 1)
    store(target, COUNT, -load(target, COUNT))
    store(target, HASH, -load(target, HASH))
    for i in range(ODD, ODD + size):
        store(target, i, count_triples.times(load(target, i), -1))
    for i in range(ODD + size, ODD + size + n):
        store(target, i, as_word(-as_float(load(target, i))))


def kind_of_factor(what: int, first: int = 0, size: int = 0, product: int = 0) -> int:
    """Encode a factor of a product: SCALAR, or BLOCK or LIFTED with its variables.

    Args:
        first: The number of the factor's first variable.
        product: The number of the product's first variable.
    """
    return what | size << _WHAT_BITS | first - product << _FIRST | first << _NUMBER


@inlined
def _what(kind: int) -> int:
    return kind & ((1 << _WHAT_BITS) - 1)


@inlined
def _size(kind: int) -> int:
    return (kind >> _WHAT_BITS) & ((1 << _SIZE_BITS) - 1)


@inlined
def _first(kind: int) -> int:
    """Return the place of a factor's first variable in the product."""
    return (kind >> _FIRST) & ((1 << _SIZE_BITS) - 1)


@inlined
def _within(x: float, most: float) -> float:
    """Return a value, 0 in the place of NaN and of one beyond a limit."""
    return x if abs(x) <= most else 0.0


@inlined
def _odd(x: float) -> int:
    """Return what counts a value that is lifted as 0: as ∞, −∞ or NaN."""
    return 0 if abs(x) <= LARGEST else odd_of(x * inf)


@inlined
def _hash_value(x: float, variable: int) -> int:
    """Hash a value of a variable, of this number in the view tree, to an odd number: products of these are not 0."""
    word = as_word(x + 0.0) if x == x else 0  # NB: -0.0 + 0.0 is 0.0
    return mix(word ^ _SALT, variable + 1 ^ _SALT) | 1


@inlined
def _count(factors: Vector, f: int, places: Vector, row: int) -> int:
    """Return the count of a factor: three words each, its source, its offset there and its kind."""
    return 1 if _what(factors[f + 2]) == LIFTED else load(places[factors[f], row] + 8 * factors[f + 1], COUNT)


@inlined
def _counts_but(factors: Vector, start: int, stop: int, places: Vector, row: int, f: int, g: int) -> int:
    """Multiply the counts of all factors but two, which may be one."""
    n = 1
    for other in range(start, stop, 3):
        if other not in (f, g):
            n *= _count(factors, other, places, row)
    return n


@inlined
def _put(o: int, n: int, at: int, x: float, y: float, times: int, compensated: bool) -> None:
    """Set value `at` of the element's values at `o` to x + y, `times` times; `n` is the number of values."""
    if compensated:
        if times != 1:
            u, v = real_of(times)
            x, y = real_multiply(x, y, u, v)
        store(o, at, as_word(x))
        store(o, at + n, as_word(y))
    else:
        store(o, at, as_word(x * times))


@called
def _put_factor(o: int, code: int, there: int, kind: int, times: int) -> None:
    """Set the sums and the triangle of one factor's variables."""
    size, compensated = code >> KIND_BITS, code & 7 == COMPENSATED
    n, m, first = _values(size), _size(kind), _first(kind)
    values = o + 8 * (ODD + size)
    if _what(kind) == LIFTED:
        value = as_float(load(there, 0))
        odd = _odd(value)
        store(o, ODD + first, odd if odd == 0 else count_triples.times(odd, times))
        x = _within(value, LARGEST)
        _put(values, n, first, x, 0.0, times, compensated)
        square, error = two_product(x, x)
        _put(values, n, size + triangle(first) + first, square, error, times, compensated)
        return
    k, own = _values(m), there + 8 * (ODD + m)
    for i in range(m):
        odd = load(there, ODD + i)
        store(o, ODD + first + i, odd if odd == 0 else count_triples.times(odd, times))
    for i in range(m):
        low = as_float(load(own, i + k)) if compensated else 0.0
        _put(values, n, first + i, as_float(load(own, i)), low, times, compensated)
    for i in range(m):
        at, source = size + triangle(first + i) + first, m + triangle(i)
        for j in range(i + 1):
            low = as_float(load(own, source + j + k)) if compensated else 0.0
            _put(values, n, at + j, as_float(load(own, source + j)), low, times, compensated)


@called
def _put_rectangle(o: int, code: int, a: int, a_kind: int, b: int, b_kind: int, times: int) -> None:
    """Set the sums of products of two factors' variables, those of `b` behind those of `a`."""
    size, compensated = code >> KIND_BITS, code & 7 == COMPENSATED
    n, values = _values(size), o + 8 * (ODD + size)
    m, k, first, second = _size(a_kind), _size(b_kind), _first(a_kind), _first(b_kind)
    ours = a if _what(a_kind) == LIFTED else a + 8 * (ODD + m)
    theirs = b if _what(b_kind) == LIFTED else b + 8 * (ODD + k)
    ours_most = LARGEST if _what(a_kind) == LIFTED else _REAL
    theirs_most = LARGEST if _what(b_kind) == LIFTED else _REAL
    for i in range(k):
        x = _within(as_float(load(theirs, i)), theirs_most)
        low = as_float(load(theirs, i + _values(k))) if compensated and _what(b_kind) == BLOCK else 0.0
        if times != 1:
            if compensated:
                u, v = real_of(times)
                x, low = real_multiply(x, low, u, v)
            else:
                x *= times
        at = size + triangle(second + i) + first
        if compensated:
            for j in range(m):
                y = _within(as_float(load(ours, j)), ours_most)
                y_low = as_float(load(ours, j + _values(m))) if _what(a_kind) == BLOCK else 0.0
                _put(values, n, at + j, *real_multiply(x, low, y, y_low), 1, True)
        else:
            for j in range(m):
                store(values, at + j, as_word(x * _within(as_float(load(ours, j)), ours_most)))


@called
def multiply_blocks(o: int, code: int, factors: Vector, start: int, stop: int, places: Vector, row: int) -> None:
    """Set the element at `o` to a product, of the factors that stand in `factors` from `start` to `stop`."""
    total, hashed = 1, 1
    for f in range(start, stop, 3):
        kind, there = factors[f + 2], places[factors[f], row] + 8 * factors[f + 1]
        count = _count(factors, f, places, row)
        total *= count
        if _what(kind) == SCALAR:
            hashed *= count
            continue
        hashed *= load(there, HASH) if _what(kind) == BLOCK else _hash_value(as_float(load(there, 0)), kind >> _NUMBER)
        others = _counts_but(factors, start, stop, places, row, f, f)
        _put_factor(o, code, there, kind, others)
        for g in range(start, f, 3):
            other = factors[g + 2]
            if _what(other) == SCALAR:
                continue
            beside = places[factors[g], row] + 8 * factors[g + 1]
            rest = _counts_but(factors, start, stop, places, row, f, g)
            if _first(other) < _first(kind):
                _put_rectangle(o, code, beside, other, there, kind, rest)
            else:
                _put_rectangle(o, code, there, kind, beside, other, rest)
    store(o, COUNT, total)
    store(o, HASH, hashed)


def lift_rows(out: Words, offset: int, ring: Cofactor, values: Reals, times: Words | None) -> None:
    """Lift rows of values, (m, n), each `times` times (None: once), into a lane of `out`."""
    assert len(values) == ring.size and values.shape[1] == len(out) and offset + ring.words <= out.shape[1]
    counts = np.ones(len(out), np.int64) if times is None else np.ascontiguousarray(times, np.int64)
    _lift_rows(out, offset, ring.code, ring.first, np.ascontiguousarray(values).view(np.int64), counts)


@kernel(f"void({MATRIX}, int64, int64, int64, {GIVEN_MATRIX}, {GIVEN_VECTOR})")
def _lift_rows(out: Vector, offset: int, code: int, first: int, values: Vector, times: Vector) -> None:
    size, compensated = code >> KIND_BITS, code & 7 == COMPENSATED
    n, wide = _values(size), 8 * out.shape[1]
    for row in range(out.shape[0]):
        o, count = address(out) + row * wide + 8 * offset, times[row]
        there = o + 8 * (ODD + size)
        hashed = count
        for i in range(size):
            value = as_float(values[i, row])
            hashed *= _hash_value(value, first + i)
            odd = _odd(value)
            store(o, ODD + i, odd if odd == 0 else count_triples.times(odd, count))
            x = _within(value, LARGEST)
            _put(there, n, i, x, 0.0, count, compensated)
            for j in range(i + 1):
                y = _within(as_float(values[j, row]), LARGEST)
                if compensated:
                    product, error = two_product(x, y)
                    _put(there, n, size + triangle(i) + j, product, error, count, True)
                else:
                    _put(there, n, size + triangle(i) + j, x * y, 0.0, count, False)
        store(o, COUNT, count)
        store(o, HASH, hashed)


@kernel(f"{MATRIX}({MATRIX}, boolean)")
def _odd_values(odd: Vector, squared: bool) -> Words:
    """Print triples, or those of the squares, as doubles: 0 for none, ∞, −∞ or NaN."""
    out = np.empty(odd.shape, np.int64)
    for row in range(odd.shape[0]):
        for i in range(odd.shape[1]):
            found = odd[row, i]
            if squared and count_triples.count(found, 1) != 0:
                found = count_triples.triple(1, 0, count_triples.count(found, 2))
            out[row, i] = as_word(printed(0.0, 0.0, found))
    return out


def unpack_blocks(words: Words, ring: Cofactor, variables: Sequence[int]) -> tuple[Words, Reals, Reals]:
    """Unpack elements, (n, words), to counts (n,), sums and lower triangles of sums of products.

    Sums are (parts, n, m), triangles (parts, n, m(m+1)/2): the value is that of all parts together, of which there are
    two if sums are compensated. A sum of ∞, −∞ or NaN is what it would be of doubles; a product with one is NaN, but
    for the square of an infinity.

    Args:
        variables: The numbers of the variables in the order in which they are wanted.
    """
    places = np.array(variables, np.int64) - ring.first
    m, n, parts = len(places), ring.values, 2 if ring.compensated else 1
    values = np.ascontiguousarray(words[:, ODD + ring.size :]).view(np.float64)
    values = values.reshape(len(words), parts, n).transpose(1, 0, 2)
    rows = np.repeat(places, np.arange(1, m + 1))
    columns = np.concatenate([places[: i + 1] for i in range(m)])
    high, low = np.maximum(rows, columns), np.minimum(rows, columns)
    sums, products = values[:, :, places], values[:, :, ring.size + high * (high + 1) // 2 + low]
    odd = words[:, ODD : ODD + ring.size]
    if odd.any():
        others, squares = (
            _odd_values(np.ascontiguousarray(odd), squared).view(np.float64) for squared in (False, True)
        )
        sums[0] += others[:, places]
        mixed = np.where((others[:, rows] != 0) | (others[:, columns] != 0), np.nan, 0)
        products[0] += np.where(rows == columns, squares[:, rows], mixed)
    return np.ascontiguousarray(words[:, COUNT]), sums, products
