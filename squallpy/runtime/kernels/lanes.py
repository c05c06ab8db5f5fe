"""Columns of payloads: from and to Arrow or numpy values, and lane-wise products.

    pack([1.5, 2.5], REAL)                          →  words [[1.5, 0], [2.5, 0]]  (as bit patterns)
    multiply(out, 0, EXACT, src, rows, 1, COUNT)    →  out's lane at word 0 times src[rows]'s lane at word 1
    to_decimal128(words, 18, 2)                     →  decimal128(18, 2) array; the words are its memory as they are

`load`, `multiply` and `negate` change word matrices (n, W) in place. A COUNT source converts exactly to any ring, an
EXACT or REAL source only goes into its own.
"""

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from squallpy.base.rings import Ring
from squallpy.runtime.kernels.arithmetic import exact_multiply, exact_negate, real_multiply, real_of, sign
from squallpy.runtime.kernels.compiled import GIVEN_MATRIX, GIVEN_VECTOR, MATRIX, Vector, address, kernel
from squallpy.runtime.kernels.machine import as_float, as_word, store
from squallpy.runtime.kernels.machine import load as load_word
from squallpy.runtime.kernels.storage import Words

_WORD = (1 << 64) - 1


def pack(values: npt.NDArray[np.generic] | npt.NDArray[np.object_], ring: Ring) -> Words:
    """Values as a column of ring elements, (n, ring.words).

    int64 goes into COUNT, EXACT and REAL, float64 into REAL; Python integers (dtype object) into COUNT and EXACT, mod
    2⁶⁴ and 2¹²⁸, one by one.
    """
    if values.dtype == object and ring is not Ring.REAL:
        data = b"".join((int(value) % (1 << 128)).to_bytes(16, "little") for value in values)
        words = np.frombuffer(data, "<i8").reshape(-1, 2)
        return words.copy() if ring is Ring.EXACT else np.ascontiguousarray(words[:, :1])
    match ring, values.dtype.kind:
        case Ring.COUNT, "i" | "u" | "b":
            return np.ascontiguousarray(values, np.int64).reshape(-1, 1).copy()
        case Ring.EXACT, "i" | "u" | "b":
            low = values.astype(np.int64)
            return np.stack((low, low >> 63 if values.dtype != np.uint64 else np.zeros_like(low)), axis=1)
        case Ring.REAL, "f":
            words = np.zeros((len(values), 2), np.int64)
            words[:, 0] = values.astype(np.float64).view(np.int64)
            return words
        case Ring.REAL, "i" | "u" | "b":
            out = np.empty((len(values), 2), np.int64)
            load(out, 0, ring, values.astype(np.int64).reshape(-1, 1), None, 0, Ring.COUNT)
            return out
    raise AssertionError(f"no {values.dtype} in {ring.name}")


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
        case Ring.REAL:
            pairs = np.ascontiguousarray(words).view(np.float64)
            with np.errstate(invalid="ignore"):
                return np.asarray(pairs[:, 0] + pairs[:, 1])
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
    _combine(out, out_offset, source, _ALL if rows is None else rows, offset, _kind(out_ring, ring) + _TIMES)


def negate(out: Words, offset: int, ring: Ring) -> None:
    """out's lane = −out's lane."""
    assert out.flags.c_contiguous and offset + ring.words <= out.shape[1]
    _negate(out, offset, int(ring))


_ALL: Words = np.empty(0, np.int64)
_TIMES = 8


def _kind(out: Ring, source: Ring) -> int:
    return int(out) if source == out else int(out) + 3


def _check(
    out: Words, out_offset: int, out_ring: Ring, source: Words, rows: Words | None, offset: int, ring: Ring
) -> None:
    """The kernels trust these: refuse what would reach outside the matrices."""
    assert ring is out_ring or ring is Ring.COUNT, f"no {ring.name} in {out_ring.name}"
    assert 0 <= out_offset <= out.shape[1] - out_ring.words and 0 <= offset <= source.shape[1] - ring.words
    assert len(out) == (len(source) if rows is None else len(rows))


@kernel(f"void({MATRIX}, int64, {GIVEN_MATRIX}, {GIVEN_VECTOR}, int64, int64)")
def _combine(out: Vector, to: int, source: Vector, rows: Vector, offset: int, kind: int) -> None:
    """kind: ring of both lanes 0–2, or of out's where the source's is COUNT 3–5; + 8 to multiply."""
    n, times, kind = out.shape[0], kind >= 8, kind & 7
    width, given, here = 8 * source.shape[1], address(source), address(out)
    picked = rows.shape[0] == n
    for i in range(n):
        row = rows[i] if picked else i
        if row < 0 or row >= source.shape[0]:
            raise IndexError("no such row in the source")
        a = given + row * width + 8 * offset
        o = here + i * 8 * out.shape[1] + 8 * to
        if kind == 0:
            store(o, 0, load_word(o, 0) * load_word(a, 0) if times else load_word(a, 0))
        elif kind == 1 or kind == 4:
            lo = load_word(a, 0)
            hi = load_word(a, 1) if kind == 1 else sign(lo)
            if times:
                lo, hi = exact_multiply(load_word(o, 0), load_word(o, 1), lo, hi)
            store(o, 0, lo)
            store(o, 1, hi)
        else:
            x, y = real_of(load_word(a, 0))
            if kind == 2:
                x, y = as_float(load_word(a, 0)), as_float(load_word(a, 1))
            if times:
                x, y = real_multiply(as_float(load_word(o, 0)), as_float(load_word(o, 1)), x, y)
            store(o, 0, as_word(x))
            store(o, 1, as_word(y))


@kernel(f"void({MATRIX}, int64, int64)")
def _negate(out: Vector, at: int, ring: int) -> None:
    for i in range(out.shape[0]):
        if ring == 0:
            out[i, at] = -out[i, at]
        elif ring == 1:
            out[i, at], out[i, at + 1] = exact_negate(out[i, at], out[i, at + 1])
        else:
            out[i, at], out[i, at + 1] = as_word(-as_float(out[i, at])), as_word(-as_float(out[i, at + 1]))
