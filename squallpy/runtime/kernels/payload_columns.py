"""Columns of payloads: from and to Arrow or numpy values.

    pack([1.5, 2.5], REAL)                          →  words [[1.5, 0, 0], [2.5, 0, 0]]  (as bit patterns)
    fill_reals(out, 0, REAL, [inf, 1.5], [-1, 2])   →  out's lane at word 0: −1 times +∞, 3.0
    to_decimal128(words, 18, 2)                     →  decimal128(18, 2) array; the words are its memory as they are

`fill_reals` changes a word matrix (n, W) in place.
"""

from math import isfinite

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from squallpy.base.rings import Ring
from squallpy.runtime.kernels import count_triples
from squallpy.runtime.kernels.intrinsics import as_float, as_word, store
from squallpy.runtime.kernels.kernel_compiler import GIVEN_MATRIX, GIVEN_VECTOR, MATRIX, VECTOR, Vector, address, kernel
from squallpy.runtime.kernels.memory_regions import Words
from squallpy.runtime.kernels.payload_products import put, put_count
from squallpy.runtime.kernels.real_sums import odd_of, printed, scale_real, signs_of
from squallpy.runtime.kernels.ring_arithmetic import real_multiply, real_of

_WORD = (1 << 64) - 1


def pack(values: npt.NDArray[np.generic] | npt.NDArray[np.object_], ring: Ring) -> Words:
    """Pack values into a column of ring elements, (n, ring.words).

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
            out = np.empty((len(values), 2), np.int64)
            out[:, 0] = values
            out[:, 1] = 0 if values.dtype == np.uint64 else out[:, 0] >> 63
            return out
        case ((Ring.REAL | Ring.SIGNED), "f"):
            out = np.empty((len(values), ring.words), np.int64)
            fill_reals(out, 0, ring, values.astype(np.float64), None)
            return out
        case ((Ring.REAL | Ring.SIGNED), "i" | "u" | "b"):
            out = np.empty((len(values), ring.words), np.int64)
            _fill_counts(out, int(ring), values.astype(np.int64))
            return out
    raise AssertionError(f"no {values.dtype} in {ring.name}")


def fill_reals(out: Words, offset: int, ring: Ring, values: npt.NDArray[np.float64], times: Words | None) -> None:
    """Write values, each `times` times (None: once), into a lane of `out`; ring is REAL or SIGNED.

    0 times NaN is nothing, and −1 times +∞ takes a +∞ away: neither is what multiplying the numbers would give.
    """
    assert ring >= Ring.REAL and offset + ring.words <= out.shape[1] and len(values) == len(out)
    assert times is None or len(times) == len(values)
    reals, counts = np.ascontiguousarray(values, np.float64), _ALL if times is None else np.ascontiguousarray(times)
    _fill_reals(out, offset, int(ring), reals.view(np.int64), counts)


def pack_decimal128(array: pa.Decimal128Array) -> Words:
    """View the unscaled values of a decimal128 array as EXACT words (n, 2); the words of nulls are undefined."""
    data = array.buffers()[1]
    if data is None or len(array) == 0:
        return np.empty((0, 2), np.int64)
    return np.frombuffer(data, np.int64).reshape(-1, 2)[array.offset : array.offset + len(array)]


def unpack(words: Words, ring: Ring) -> npt.NDArray[np.generic] | npt.NDArray[np.object_]:
    """Unpack a column of ring elements, (n, ring.words), to int64 (COUNT, EXACT if all fit), objects (EXACT) or
    float64."""
    match ring:
        case Ring.COUNT:
            return np.ascontiguousarray(words[:, 0])
        case Ring.REAL | Ring.SIGNED:
            return _print_reals(np.ascontiguousarray(words)).view(np.float64)
        case Ring.EXACT:
            low, high = words[:, 0], words[:, 1]
            if (high == low >> 63).all():
                return np.ascontiguousarray(low)
            return np.array([hi << 64 | lo & _WORD for lo, hi in words.tolist()] + [None], object)[:-1]
    raise AssertionError(ring)


def integers(words: Words) -> list[int]:
    """Convert EXACT elements to Python integers: the slow way, for tests and messages."""
    return [hi << 64 | lo & _WORD for lo, hi in words.tolist()]


def to_decimal128(words: Words, precision: int, scale: int, nulls: npt.NDArray[np.bool_] | None = None) -> pa.Array:
    """Convert EXACT elements, (n, 2), to decimals whose unscaled values they are; the caller knows that they fit."""
    data = np.ascontiguousarray(words)
    kind = pa.decimal128(precision, scale)
    valid = None if nulls is None else pa.array(~nulls).buffers()[1]
    return pa.Array.from_buffers(kind, len(words), [valid, pa.py_buffer(data)])


_ALL: Words = np.empty(0, np.int64)


@kernel(f"void({MATRIX}, int64, {GIVEN_VECTOR})")
def _fill_counts(out: Vector, ring: int, counts: Vector) -> None:
    for i in range(out.shape[0]):
        put_count(address(out) + 8 * i * out.shape[1], counts[i], ring == 3)


@kernel(f"void({MATRIX}, int64, int64, {GIVEN_VECTOR}, {GIVEN_VECTOR})")
def _fill_reals(out: Vector, offset: int, ring: int, values: Vector, times: Vector) -> None:
    here, wide, counted = address(out) + 8 * offset, 8 * out.shape[1], times.shape[0] > 0
    for i in range(out.shape[0]):
        o, n = here + i * wide, times[i] if counted else 1
        x = as_float(values[i])
        if not isfinite(x):
            put(o, 0.0, 0.0, count_triples.times(odd_of(x), n))
            if ring == 3:
                store(o, 3, 0)
            continue
        put(o, x, 0.0, 0)
        if n != 1:
            u, v = real_of(n)
            p, q = real_multiply(x, 0.0, u, v)
            if isfinite(p):
                put(o, p, q, 0)
            else:
                p, q, odd = scale_real(x, 0.0, 0, n, u, v)
                put(o, p, q, odd)
        if ring == 3:
            store(o, 3, count_triples.times(signs_of(x), n))


@kernel(f"{VECTOR}({GIVEN_MATRIX})")
def _print_reals(words: Vector) -> Words:
    out = np.empty(words.shape[0], np.int64)
    for i in range(len(out)):
        out[i] = as_word(printed(as_float(words[i, 0]), as_float(words[i, 1]), words[i, 2]))
    return out
