"""Columns of payloads: from and to Arrow or numpy values, and lane-wise products.

    pack([1.5, 2.5], REAL)                          →  words [[1.5, 0, 0], [2.5, 0, 0]]  (as bit patterns)
    fill_reals(out, 0, REAL, [inf, 1.5], [-1, 2])   →  out's lane at word 0: −1 times +∞, 3.0
    multiply(out, 0, EXACT, src, rows, 1, COUNT)    →  out's lane at word 0 times src[rows]'s lane at word 1
    to_decimal128(words, 18, 2)                     →  decimal128(18, 2) array; the words are its memory as they are

`load`, `multiply` and `fill_reals` change word matrices (n, W) in place. A COUNT source converts exactly to any ring,
another only goes into its own. REAL is added up and never multiplied by itself: that takes SIGNED.
"""

from math import isfinite

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from squallpy.base.rings import Ring
from squallpy.runtime.kernels import triples
from squallpy.runtime.kernels.arithmetic import exact_multiply, real_multiply, real_of, sign
from squallpy.runtime.kernels.compiled import (
    GIVEN_MATRIX,
    GIVEN_VECTOR,
    MATRIX,
    VECTOR,
    Vector,
    address,
    inlined,
    kernel,
)
from squallpy.runtime.kernels.machine import as_float, as_word, store
from squallpy.runtime.kernels.machine import load as load_word
from squallpy.runtime.kernels.reals import multiply_reals, multiply_signs, odd_of, printed, scale_real, signs_of
from squallpy.runtime.kernels.storage import Words

_WORD = (1 << 64) - 1


def pack(values: npt.NDArray[np.generic] | npt.NDArray[np.object_], ring: Ring) -> Words:
    """Values as a column of ring elements, (n, ring.words).

    int64 goes into every ring, float64 into REAL and SIGNED; Python integers (dtype object) into COUNT and EXACT, mod
    2⁶⁴ and 2¹²⁸, one by one.
    """
    if values.dtype == object and ring in (Ring.COUNT, Ring.EXACT):
        data = b"".join((int(value) % (1 << 128)).to_bytes(16, "little") for value in values)
        words = np.frombuffer(data, "<i8").reshape(-1, 2)
        return words.copy() if ring is Ring.EXACT else np.ascontiguousarray(words[:, :1])
    match ring, values.dtype.kind:
        case Ring.COUNT, "i" | "u" | "b":
            return np.ascontiguousarray(values, np.int64).reshape(-1, 1).copy()
        case Ring.EXACT, "i" | "u" | "b":
            low = values.astype(np.int64)
            return np.stack((low, low >> 63 if values.dtype != np.uint64 else np.zeros_like(low)), axis=1)
        case ((Ring.REAL | Ring.SIGNED), "f"):
            out = np.empty((len(values), ring.words), np.int64)
            fill_reals(out, 0, ring, values.astype(np.float64), None)
            return out
        case ((Ring.REAL | Ring.SIGNED), "i" | "u" | "b"):
            out = np.empty((len(values), ring.words), np.int64)
            load(out, 0, ring, values.astype(np.int64).reshape(-1, 1), None, 0, Ring.COUNT)
            return out
    raise AssertionError(f"no {values.dtype} in {ring.name}")


def fill_reals(out: Words, offset: int, ring: Ring, values: npt.NDArray[np.float64], times: Words | None) -> None:
    """out's lane = values, each `times` times (None: once); ring is REAL or SIGNED.

    0 times NaN is nothing, and −1 times +∞ takes a +∞ away: neither is what multiplying the numbers would give.
    """
    assert ring >= Ring.REAL and offset + ring.words <= out.shape[1] and len(values) == len(out)
    assert times is None or len(times) == len(values)
    reals, counts = np.ascontiguousarray(values, np.float64), _ALL if times is None else np.ascontiguousarray(times)
    _fill_reals(out, offset, int(ring), reals.view(np.int64), counts)


def pack_decimal128(array: pa.Decimal128Array) -> Words:
    """Unscaled values of a decimal128 array as EXACT words (n, 2), without a copy; what nulls hold is undefined."""
    data = array.buffers()[1]
    if data is None or len(array) == 0:
        return np.empty((0, 2), np.int64)
    return np.frombuffer(data, np.int64).reshape(-1, 2)[array.offset : array.offset + len(array)]


def unpack(words: Words, ring: Ring) -> npt.NDArray[np.generic] | npt.NDArray[np.object_]:
    """A column of ring elements, (n, ring.words), as int64 (COUNT, EXACT if all fit), objects (EXACT) or float64."""
    match ring:
        case Ring.COUNT:
            return np.ascontiguousarray(words[:, 0])
        case Ring.REAL | Ring.SIGNED:
            return _print_reals(np.ascontiguousarray(words)).view(np.float64)
        case Ring.EXACT:
            low, high = words[:, 0], words[:, 1]
            if np.array_equal(high, low >> 63):
                return np.ascontiguousarray(low)
            return np.array([hi << 64 | lo & _WORD for lo, hi in words.tolist()] + [None], object)[:-1]
    raise AssertionError(ring)


def integers(words: Words) -> list[int]:
    """EXACT elements as Python integers: the slow way, for tests and messages."""
    return [hi << 64 | lo & _WORD for lo, hi in words.tolist()]


def to_decimal128(words: Words, precision: int, scale: int, nulls: npt.NDArray[np.bool_] | None = None) -> pa.Array:
    """EXACT elements, (n, 2), as decimals: the element is the unscaled value. The caller knows that they fit."""
    data = np.ascontiguousarray(words)
    kind = pa.decimal128(precision, scale)
    valid = None if nulls is None else pa.array(~nulls).buffers()[1]
    return pa.Array.from_buffers(kind, len(words), [valid, pa.py_buffer(data)])


def load(
    out: Words, out_offset: int, out_ring: Ring, source: Words, rows: Words | None, offset: int, ring: Ring
) -> None:
    """out's lane = source's lane, at `rows` of the source (None: one row each)."""
    _check(out, out_offset, out_ring, source, rows, offset, ring)
    _combine(out, out_offset, source, _ALL if rows is None else rows, offset, _kind(out_ring, ring))


def multiply(
    out: Words, out_offset: int, out_ring: Ring, source: Words, rows: Words | None, offset: int, ring: Ring
) -> None:
    """out's lane ×= source's lane, at `rows` of the source (None: one row each)."""
    _check(out, out_offset, out_ring, source, rows, offset, ring)
    assert ring is not Ring.REAL, "a product of sums of doubles takes their signs"
    _combine(out, out_offset, source, _ALL if rows is None else rows, offset, _kind(out_ring, ring) + _TIMES)


_ALL: Words = np.empty(0, np.int64)
_COUNTED, _TIMES = 4, 8


def _kind(out: Ring, source: Ring) -> int:
    return int(out) if source == out else int(out) + _COUNTED


def _check(
    out: Words, out_offset: int, out_ring: Ring, source: Words, rows: Words | None, offset: int, ring: Ring
) -> None:
    """The kernels trust these: refuse what would reach outside the matrices."""
    assert ring is out_ring or ring is Ring.COUNT, f"no {ring.name} in {out_ring.name}"
    assert 0 <= out_offset <= out.shape[1] - out_ring.words and 0 <= offset <= source.shape[1] - ring.words
    assert len(out) == (len(source) if rows is None else len(rows))


@inlined
def _put(at: int, x: float, y: float, odd: int) -> None:
    store(at, 0, as_word(x))
    store(at, 1, as_word(y))
    store(at, 2, odd)


@inlined
def _scale(o: int, n: int, signed: bool) -> None:
    """The REAL or SIGNED element at o, n times."""
    x, y, odd = as_float(load_word(o, 0)), as_float(load_word(o, 1)), load_word(o, 2)
    u, v = real_of(n)
    p, q = real_multiply(x, y, u, v)
    if odd != 0 or not isfinite(p):
        p, q, odd = scale_real(x, y, odd, n, u, v)
    _put(o, p, q, odd)
    if signed:
        store(o, 3, triples.times(load_word(o, 3), n))


@inlined
def _multiply(o: int, a: int) -> None:
    """The SIGNED element at o times the one at a."""
    x, y, odd, signs = as_float(load_word(o, 0)), as_float(load_word(o, 1)), load_word(o, 2), load_word(o, 3)
    u, v, other, others = as_float(load_word(a, 0)), as_float(load_word(a, 1)), load_word(a, 2), load_word(a, 3)
    p, q = real_multiply(x, y, u, v)
    if odd | other != 0 or not isfinite(p):
        p, q, odd = multiply_reals(x, y, odd, signs, u, v, other, others)
    _put(o, p, q, odd)
    store(o, 3, multiply_signs(signs, others))


@kernel(f"void({MATRIX}, int64, {GIVEN_MATRIX}, {GIVEN_VECTOR}, int64, int64)")
def _combine(out: Vector, to: int, source: Vector, rows: Vector, offset: int, kind: int) -> None:
    """kind: ring of both lanes 0–3, or of out's where the source's is COUNT 5–7; + 8 to multiply."""
    n, times, counted, ring = out.shape[0], kind >= 8, kind & 4 != 0, kind & 3
    width, given, here = 8 * source.shape[1], address(source), address(out)
    picked = rows.shape[0] == n
    for i in range(n):
        row = rows[i] if picked else i
        if row < 0 or row >= source.shape[0]:
            raise IndexError("no such row in the source")
        a = given + row * width + 8 * offset
        o = here + i * 8 * out.shape[1] + 8 * to
        if ring == 0:
            store(o, 0, load_word(o, 0) * load_word(a, 0) if times else load_word(a, 0))
        elif ring == 1:
            lo = load_word(a, 0)
            hi = sign(lo) if counted else load_word(a, 1)
            if times:
                lo, hi = exact_multiply(load_word(o, 0), load_word(o, 1), lo, hi)
            store(o, 0, lo)
            store(o, 1, hi)
        elif times and counted:
            _scale(o, load_word(a, 0), ring == 3)
        elif times:
            _multiply(o, a)
        elif counted:
            x, y = real_of(load_word(a, 0))
            _put(o, x, y, 0)
            if ring == 3:
                store(o, 3, triples.triple(load_word(a, 0), 0, 0))
        else:
            for word in range(ring + 1):
                store(o, word, load_word(a, word))


@kernel(f"void({MATRIX}, int64, int64, {GIVEN_VECTOR}, {GIVEN_VECTOR})")
def _fill_reals(out: Vector, offset: int, ring: int, values: Vector, times: Vector) -> None:
    here, wide, counted = address(out) + 8 * offset, 8 * out.shape[1], times.shape[0] > 0
    for i in range(out.shape[0]):
        o, n = here + i * wide, times[i] if counted else 1
        x = as_float(values[i])
        if not isfinite(x):
            _put(o, 0.0, 0.0, triples.times(odd_of(x), n))
            if ring == 3:
                store(o, 3, 0)
            continue
        _put(o, x, 0.0, 0)
        if n != 1:
            u, v = real_of(n)
            p, q = real_multiply(x, 0.0, u, v)
            if isfinite(p):
                _put(o, p, q, 0)
            else:
                p, q, odd = scale_real(x, 0.0, 0, n, u, v)
                _put(o, p, q, odd)
        if ring == 3:
            store(o, 3, triples.times(signs_of(x), n))


@kernel(f"{VECTOR}({GIVEN_MATRIX})")
def _print_reals(words: Vector) -> Words:
    out = np.empty(words.shape[0], np.int64)
    for i in range(len(out)):
        out[i] = as_word(printed(as_float(words[i, 0]), as_float(words[i, 1]), words[i, 2]))
    return out
