"""Elements of the cofactor ring of a degree above 1 in memory: product, lifting, unpacking.

    degree 2, one variable x   →   Σx, Σx², Σx³, Σx⁴

Among those of three variables, Σ x_i·x_j·x_k, i ≥ j ≥ k, stands at C(i + 2, 3) + C(j + 1, 2) + k; as at other degrees.
So the sums over the first m variables are, at any degree, a prefix of those over more; and those that have the same
variables beside them are a run. A product is made in its own memory, factor by factor in the order of their variables:
each sum of the next factor scales a run of the sums of those before, from the highest degree down, which reads only
lower ones.
"""

from math import comb
from typing import Final

import numpy as np
import numpy.typing as npt

from squallpy.base.rings.cofactor import COUNT, HASH, ODD, POWER_SHIFT, Cofactor
from squallpy.runtime.kernels import count_triples
from squallpy.runtime.kernels.cofactor_blocks import (
    LIFTED,
    SCALAR,
    Reals,
    add_block,
    first_of,
    hash_value,
    number_of,
    odd_value,
    odd_values,
    size_of,
    size_of_code,
    values_of_code,
    what_of,
    within,
)
from squallpy.runtime.kernels.cofactor_products import value_of
from squallpy.runtime.kernels.cofactor_tiles import scaled
from squallpy.runtime.kernels.intrinsics import as_float, as_word, load, store
from squallpy.runtime.kernels.kernel_compiler import Vector, address, called, inlined, making
from squallpy.runtime.kernels.memory_regions import Words
from squallpy.runtime.kernels.packed_reals import LANES, load_some, spread, store_some, where_finite
from squallpy.runtime.kernels.ring_arithmetic import quick_two_sum, real_multiply, real_of

# Scratch memory, in runs of as many words as the highest power, at most
_MOST: Final = 9
_SYMBOLS: Final = 0  # variables of the next factor, from 1, in a product; 0 stands for any of those before
_NEXT: Final = _MOST  # by degree, the next sum of the next factor
_RUNS: Final = 2 * _MOST  # by degree, how many sums there are of those before,
_BEGIN: Final = 3 * _MOST  # where they begin, and so do those of the product,
_OWN: Final = 4 * _MOST  # and those of the next factor
_POWERS: Final = 5 * _MOST  # of a value, and their lower halves
_ONE: Final = 7 * _MOST  # the count of those before, as a double, and its lower half
_SCRATCH: Final = 8 * _MOST


@inlined
def _power(code: int) -> int:
    """Return how many variables are multiplied at most."""
    return (code >> POWER_SHIFT) & 15


@inlined
def _most_of(code: int) -> float:
    """Return the largest value that is lifted: its highest power is a double."""
    return as_float(1023 + 1022 // _power(code) << 52)


@inlined
def _choose(n: int, k: int) -> int:
    """Compute the binomial coefficient C(n, k)."""
    found = 1
    for i in range(k):
        found = found * (n - i) // (i + 1)
    return found


@inlined
def _begin(size: int, degree: int) -> int:
    """Return where the sums of a degree begin."""
    return _choose(size + degree - 1, degree - 1) - 1


@inlined
def _scale_run(at: int, far: int, source: int, source_far: int, n: int, u: float, v: float, compensated: bool) -> None:
    """Set n values to those at `source` times u + v; `far` are bytes to the lower halves."""
    high, rest = spread(u), spread(v)
    for j in range(0, 8 * n, 8 * LANES):
        left = n - (j >> 3)
        a = load_some(source + j, left)
        if compensated:
            x, y = quick_two_sum(*scaled(a, load_some(source + source_far + j, left), high, rest))
            store_some(at + j, x, left)
            store_some(at + far + j, where_finite(x, y), left)
        else:
            store_some(at + j, a * high, left)


@called
def _append(work: int, o: int, code: int, m: int, count: int, values: int, far: int, k: int, times: int) -> None:
    """Multiply the element at `o`, which has m variables and a count, by one of k variables, which is there `times`."""
    size, power, compensated = size_of_code(code), _power(code), code & 1 == 1
    sums, low = o + 8 * (ODD + size), 8 * values_of_code(code)
    x, y = real_of(count)
    store(work, _ONE, as_word(x))
    store(work, _ONE + 1, as_word(y))
    for t in range(1, power + 1):
        store(work, _RUNS + t, _choose(m + t - 1, t))
        store(work, _BEGIN + t, sums + 8 * _begin(size, t))
        store(work, _OWN + t, values + 8 * _begin(k, t))
    u, v = real_of(times)
    for t in range(power, 0, -1):
        for p in range(t + 1):
            store(work, _SYMBOLS + p, 0)
            store(work, _NEXT + p, 0)
        begin, run = load(work, _BEGIN + t), load(work, _RUNS + t)
        at, p = begin + 8 * run, 0
        while True:
            p = t - 1
            while p > 0 and load(work, _SYMBOLS + p) == load(work, _SYMBOLS + p - 1):
                p -= 1
            if p == 0 and load(work, _SYMBOLS) == k:
                break
            store(work, _SYMBOLS + p, load(work, _SYMBOLS + p) + 1)
            for q in range(p + 1, t):
                store(work, _SYMBOLS + q, 0)
            own, before = p + 1, t - p - 1  # how many of its variables, and of those before
            number = load(work, _NEXT + own)
            store(work, _NEXT + own, number + 1)
            there = load(work, _OWN + own) + 8 * number
            high = as_float(load(there, 0))
            rest = as_float(load(there + far, 0)) if compensated else 0.0
            if before == 0:
                _scale_run(at, low, work + 8 * _ONE, 8, 1, high, rest, compensated)
                at += 8
            elif m > 0:
                n = load(work, _RUNS + before)
                _scale_run(at, low, load(work, _BEGIN + before), low, n, high, rest, compensated)
                at += 8 * n
        if times != 1:
            _scale_run(begin, low, begin, low, run, u, v, compensated)


@inlined
def _append_value(work: int, o: int, code: int, m: int, count: int, value: float) -> None:
    """Multiply the element at `o`, which has m variables and a count, by a lifted value; 0 if that is too large."""
    power, at = _power(code), work + 8 * _POWERS
    x = within(value, _most_of(code))
    high, low = x, 0.0
    for t in range(power):
        store(at, t, as_word(high))
        store(at, _MOST + t, as_word(low))
        if code & 1:
            high, low = real_multiply(high, low, x, 0.0)
        else:
            high *= x
    _append(work, o, code, m, count, at, 8 * _MOST, 1, 1)


@inlined
def _next_factor(factors: Vector, start: int, stop: int, first: int) -> int:
    """Find the factor whose variables begin at or behind a place; −1 for none."""
    chosen = -1
    for f in range(start, stop, 3):
        is_left = what_of(factors[f + 2]) != SCALAR and first_of(factors[f + 2]) >= first
        if is_left and (chosen < 0 or first_of(factors[f + 2]) < first_of(factors[chosen + 2])):
            chosen = f
    return chosen


@inlined
def _count_of(factors: Vector, f: int, places: Vector, row: int) -> int:
    """Return the count of a factor."""
    return 1 if what_of(factors[f + 2]) == LIFTED else load(places[factors[f], row] + 8 * factors[f + 1], COUNT)


@called
def _multiply(
    work: int, o: int, code: int, factors: Vector, start: int, stop: int, columns: Vector, places: Vector, row: int
) -> None:
    """Set the element at `o` to the product of a row's factors."""
    count, m = 1, 0
    for f in range(start, stop, 3):
        if what_of(factors[f + 2]) == SCALAR:
            count *= _count_of(factors, f, places, row)
    hashed, f = count, _next_factor(factors, start, stop, 0)
    while f >= 0:
        kind = factors[f + 2]
        k, times, others = size_of(kind), _count_of(factors, f, places, row), 1
        for other in range(start, stop, 3):
            others *= 1 if other == f else _count_of(factors, other, places, row)
        if what_of(kind) == LIFTED:
            value = value_of(factors, f, columns, places, row)
            odd = odd_value(value, _most_of(code))
            store(o, ODD + m, odd if odd == 0 else count_triples.times(odd, others))
            hashed *= hash_value(value, number_of(kind))
            _append_value(work, o, code, m, count, value)
        else:
            there = places[factors[f], row] + 8 * factors[f + 1]
            for i in range(k):
                odd = load(there, ODD + i)
                store(o, ODD + m + i, odd if odd == 0 else count_triples.times(odd, others))
            hashed *= load(there, HASH)
            far = 8 * (_choose(k + _power(code), k) - 1)
            _append(work, o, code, m, count, there + 8 * (ODD + k), far, k, times)
        m, count, f = m + k, count * times, _next_factor(factors, start, stop, m + k)
    store(o, COUNT, count)
    store(o, HASH, hashed)


@making
def multiply_monomials(
    here: int, wide: int, code: int, factors: Vector, start: int, stop: int, columns: Vector, places: Vector
) -> None:
    """Set the element of each row, `wide` bytes apart, to the product of its factors."""
    work = np.empty(_SCRATCH, np.int64)
    for row in range(places.shape[1]):
        _multiply(address(work), here + row * wide, code, factors, start, stop, columns, places, row)


@making
def sum_monomials(code: int, factors: Vector, start: int, stop: int, columns: Vector, places: Vector) -> Words:
    """Add up the products of all rows."""
    work = np.empty(_SCRATCH, np.int64)
    width = ODD + size_of_code(code) + values_of_code(code) * (1 + (code & 1))
    words, product = np.zeros((1, width), np.int64), np.empty(width, np.int64)
    for row in range(places.shape[1]):
        _multiply(address(work), address(product), code, factors, start, stop, columns, places, row)
        add_block(address(words), address(product), code)
    return words


@called
def lift_monomials(o: int, code: int, first: int, values: int, times: int) -> None:
    """Set the element at `o` to the product of the lifted doubles at `values`, `times` times.

    Each run of sums of one variable more is that of the variables up to the one by which it is multiplied.
    """
    size, compensated, most, hashed = size_of_code(code), code & 1 == 1, _most_of(code), times
    sums, low = o + 8 * (ODD + size), 8 * values_of_code(code)
    u, v = real_of(times)
    for i in range(size):
        value = as_float(load(values, i))
        hashed *= hash_value(value, first + i)
        odd = odd_value(value, most)
        store(o, ODD + i, odd if odd == 0 else count_triples.times(odd, times))
        x, y = real_multiply(within(value, most), 0.0, u, v)
        store(sums, i, as_word(x))
        if compensated:
            store(sums + low, i, as_word(y))
    for t in range(2, _power(code) + 1):
        at, source = sums + 8 * _begin(size, t), sums + 8 * _begin(size, t - 1)
        for i in range(size):
            n = _choose(i + t - 1, t - 1)
            x = within(as_float(load(values, i)), most)
            _scale_run(at, low, source, low, n, x, 0.0, compensated)
            at += 8 * n
    store(o, COUNT, times)
    store(o, HASH, hashed)


def unpack_monomials(words: Words, ring: Cofactor, monomials: Words) -> Reals:
    """Unpack sums of products of variables from elements, (n, words): parts of them, (parts, n, sums).

    What is not finite is printed as by `unpack_blocks`: a power of a variable as a sum or a square, a product with any
    other variable as NaN.

    Args:
        monomials: The numbers of the variables that are multiplied, −1 in the place of none, (sums, most).
    """
    chosen = -np.sort(-np.where(monomials < 0, -1, monomials - ring.first))
    degree, parts = (chosen >= 0).sum(axis=1), 2 if ring.compensated else 1
    values = np.ascontiguousarray(words[:, ODD + ring.size :]).view(np.float64)
    values = values.reshape(len(words), parts, ring.values).transpose(1, 0, 2)
    counts = np.zeros((parts, len(words), 1))
    counts[0, :, 0] = words[:, COUNT]
    found: Reals = np.concatenate([counts, values], axis=2)[:, :, _places(chosen, degree, ring.size)]
    odd = np.ascontiguousarray(words[:, ODD : ODD + ring.size])
    if odd.any():
        whole, squared = (odd_values(odd, is_even).view(np.float64) for is_even in (False, True))
        is_power = (degree > 0) & ((chosen == chosen[:, :1]) | (chosen < 0)).all(axis=1)
        powers = np.where(degree % 2 == 0, squared[:, chosen[:, 0]], whole[:, chosen[:, 0]])
        mixed = ((whole != 0)[:, chosen] & (chosen >= 0)).any(axis=2)
        found[0] += np.where(is_power, powers, np.where(mixed, np.nan, 0.0))
    return found


def _places(chosen: Words, degree: Words, size: int) -> npt.NDArray[np.int64]:
    """Find the places of sums behind the count: variables descend, and −1 follows them."""
    most = chosen.shape[1]
    choose = np.array([[comb(n, k) for k in range(most + 1)] for n in range(size + most)], np.int64)
    place = np.where(degree > 0, choose[size + degree - 1, degree - 1], 0)
    for k in range(most):
        left = np.maximum(degree - k, 1)
        place += np.where(k < degree, choose[chosen[:, k] + left - 1, left], 0)
    return place
