"""Elements of the cofactor ring in memory (`base/rings/cofactor.py` has their layout): sum, lifting, unpacking."""

from collections.abc import Sequence
from functools import lru_cache
from math import inf
from typing import Final

import numpy as np
import numpy.typing as npt

from squallpy.base.rings.cofactor import COUNT, HASH, KIND_BITS, ODD, POWERS, SIZE_BITS, VALUES_SHIFT, Cofactor
from squallpy.runtime.kernels import count_triples
from squallpy.runtime.kernels.hashing import mix
from squallpy.runtime.kernels.intrinsics import as_float, as_word, load, store
from squallpy.runtime.kernels.kernel_compiler import MATRIX, Vector, called, inlined, kernel
from squallpy.runtime.kernels.memory_regions import Words
from squallpy.runtime.kernels.packed_reals import LANES, load_some, store_some
from squallpy.runtime.kernels.real_sums import odd_of, printed
from squallpy.runtime.kernels.ring_arithmetic import real_add

Reals = npt.NDArray[np.float64]

# Factors of a product, as `kind_of_factor` encodes them: what they are, how many variables they have, and the number of
# the first of these, counted from the product's first variable and in the view tree.
SCALAR: Final = 0  # a count
BLOCK: Final = 1  # an element of the same kind as the product
LIFTED: Final = 2  # a value, which is lifted here
_WHAT_BITS: Final = 2
_FIRST: Final = _WHAT_BITS + SIZE_BITS
_NUMBER: Final = _FIRST + SIZE_BITS
LARGEST: Final = 2.0**511
"""The largest value that is lifted: the square of any beyond it is no double, so that it counts as an infinity."""
_SALT: Final = 0x4B33A62ED433D4A3
_NAN: Final = 0x7FF8 << 48  # of all NaNs, none of which may be hashed as a number: an update of one to 0 is a change


@inlined
def values_of(size: int) -> int:
    """Count the sums, and sums of products, of so many variables."""
    return size + (size * (size + 1) >> 1)


@inlined
def size_of_code(code: int) -> int:
    """Count the variables of an element."""
    return (code >> KIND_BITS) & ((1 << SIZE_BITS) - 1)


@inlined
def values_of_code(code: int) -> int:
    """Count the sums of an element."""
    return code >> VALUES_SHIFT if code & POWERS else values_of(code >> KIND_BITS)


@inlined
def block_words(code: int) -> int:
    """Count the words of an element."""
    return ODD + size_of_code(code) + values_of_code(code) * (1 + (code & 1))


@inlined
def triangle(row: int) -> int:
    """Return where a row of a lower triangle begins."""
    return row * (row + 1) >> 1


@called
def add_block(target: int, source: int, code: int) -> int:
    """Add the element at `source` to the one at `target`; 0 if nothing is left, and then its words are 0."""
    size, n, compensated = size_of_code(code), values_of_code(code), code & 1 == 1
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
    to, there, low = target + 8 * (ODD + size), source + 8 * (ODD + size), 8 * n
    for j in range(0, n, LANES):
        at, other, left = to + 8 * j, there + 8 * j, n - j
        a, b = load_some(at, left), load_some(other, left)
        if compensated:
            x, y = real_add(a, load_some(at + low, left), b, load_some(other + low, left))
            store_some(at, x, left)
            store_some(at + low, y, left)
        else:
            store_some(at, a + b, left)
    return c | h


@inlined
def is_zero_block(source: int) -> bool:
    """True if the element at `source` is zero."""
    return load(source, COUNT) | load(source, HASH) == 0


@called
def negate_block(target: int, code: int) -> None:
    """Negate the element at `target`."""
    size, n = size_of_code(code), values_of_code(code) * (1 + (code & 1))
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
def what_of(kind: int) -> int:
    """Return what a factor is."""
    return kind & ((1 << _WHAT_BITS) - 1)


@inlined
def size_of(kind: int) -> int:
    """Count a factor's variables."""
    return (kind >> _WHAT_BITS) & ((1 << SIZE_BITS) - 1)


@inlined
def first_of(kind: int) -> int:
    """Return the place of a factor's first variable in the product."""
    return (kind >> _FIRST) & ((1 << SIZE_BITS) - 1)


@inlined
def number_of(kind: int) -> int:
    """Return the number in the view tree of a factor's first variable."""
    return kind >> _NUMBER


@inlined
def within(x: float, most: float) -> float:
    """Return a value, 0 in the place of NaN and of one beyond a limit."""
    return x if abs(x) <= most else 0.0


@inlined
def odd_value(x: float, most: float = LARGEST) -> int:
    """Return what counts a value that is lifted as 0: as ∞, −∞ or NaN."""
    return 0 if abs(x) <= most else odd_of(x * inf)


@inlined
def hash_value(x: float, variable: int) -> int:
    """Hash a value of a variable, of this number in the view tree, to an odd number: products of these are not 0."""
    word = as_word(x + 0.0) if x == x else _NAN  # NB: -0.0 + 0.0 is 0.0
    return mix(word ^ _SALT, variable + 1 ^ _SALT) | 1


@kernel(f"{MATRIX}({MATRIX}, boolean)")
def odd_values(odd: Vector, squared: bool) -> Words:
    """Print triples, or those of the squares, as doubles: 0 for none, ∞, −∞ or NaN."""
    out = np.empty(odd.shape, np.int64)
    for row in range(odd.shape[0]):
        for i in range(odd.shape[1]):
            found = odd[row, i]
            if squared and count_triples.count(found, 1) != 0:
                found = count_triples.triple(1, 0, count_triples.count(found, 2))
            out[row, i] = as_word(printed(0.0, 0.0, found))
    return out


@lru_cache(maxsize=64)
def _order_of(ring: Cofactor, variables: tuple[int, ...]) -> tuple[Words, Words, Words, Words]:
    """Find the places of variables in an element, then of pairs, row by row: the first, the second, their product."""
    places = np.array(variables, np.int64) - ring.first
    rows = np.repeat(places, np.arange(1, len(places) + 1))
    columns = np.concatenate([places[: i + 1] for i in range(len(places))])
    high, low = np.maximum(rows, columns), np.minimum(rows, columns)
    return places, rows, columns, ring.size + high * (high + 1) // 2 + low


def unpack_blocks(words: Words, ring: Cofactor, variables: Sequence[int]) -> tuple[Words, Reals, Reals]:
    """Unpack elements, (n, words), to counts (n,), sums and lower triangles of sums of products.

    Sums are (parts, n, m), triangles (parts, n, m(m+1)/2): the value is that of all parts together, of which there are
    two if sums are compensated. A sum of ∞, −∞ or NaN is what it would be of doubles; a product with one is NaN, but
    for the square of an infinity.

    Args:
        variables: The numbers of the variables in the order in which they are wanted.
    """
    places, rows, columns, triangles = _order_of(ring, tuple(variables))
    values = np.ascontiguousarray(words[:, ODD + ring.size :]).view(np.float64)
    values = values.reshape(len(words), 2 if ring.compensated else 1, ring.values).transpose(1, 0, 2)
    sums, products = values[:, :, places], values[:, :, triangles]
    odd = words[:, ODD : ODD + ring.size]
    if odd.any():
        others, squares = (odd_values(np.ascontiguousarray(odd), squared).view(np.float64) for squared in (False, True))
        sums[0] += others[:, places]
        mixed = np.where((others[:, rows] != 0) | (others[:, columns] != 0), np.nan, 0)
        products[0] += np.where(rows == columns, squares[:, rows], mixed)
    return np.ascontiguousarray(words[:, COUNT]), sums, products
