"""Content hashes, by which tuples are routed to partitions.

    hash_columns([int64 array, string array])   →  one int64 per row

A pure function of the values, the same on every host and in every process; of strings it hashes the bytes, never an id
that some dictionary gave them. Column order matters. NULL strings hash alike; of integer columns the caller has masked
NULLs in some fixed way.
"""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from squallpy.runtime.kernels.hashing import hash_bytes, mix
from squallpy.runtime.kernels.kernel_compiler import GIVEN_VECTOR, VECTOR, Vector, kernel
from squallpy.runtime.kernels.memory_regions import Words
from squallpy.runtime.kernels.string_columns import ROWS, StringColumn, plain, string_at

_NULL, _SEED, _STEP = 0x9B97F4A7C15F39D, 0x589965CC75374CC3, 0x1D8E4E27C47D124F


def hash_strings(array: pa.Array | pa.ChunkedArray) -> Words:
    """Hash each string's bytes to 64 bits; NULL has one fixed value."""
    if isinstance(array, pa.DictionaryArray):
        codes = np.asarray(array.indices.fill_null(-1)).astype(np.int64)
        return np.append(hash_strings(array.dictionary), _NULL)[codes]
    column = StringColumn(plain(array))
    return _hash_strings(column.source)


def hash_columns(columns: Sequence[npt.NDArray[np.int64] | pa.Array | pa.ChunkedArray]) -> Words:
    """Hash each row over all columns: int64 arrays (numpy) or string arrays (Arrow)."""
    assert columns, "nothing to hash: a tuple without routing columns goes to one partition"
    hashes = np.full(len(columns[0]), _SEED, np.int64)
    for column in columns:
        words = column if isinstance(column, np.ndarray) else hash_strings(column)
        assert len(words) == len(hashes)
        _fold(hashes, np.ascontiguousarray(words))
    return hashes


def from_zero(hashes: Words) -> Words:
    """Cut hashes to 63 bits, 0 or more: their remainder by a number of partitions is a partition."""
    return (hashes.view(np.uint64) >> np.uint64(1)).view(np.int64)


@kernel(f"{VECTOR}({VECTOR})")
def _hash_strings(source: Vector) -> Words:
    out = np.empty(source[ROWS], np.int64)
    for row in range(len(out)):
        start, length = string_at(source, row)
        out[row] = hash_bytes(start, length) if length >= 0 else _NULL
    return out


@kernel(f"void({VECTOR}, {GIVEN_VECTOR})")
def _fold(hashes: Vector, words: Vector) -> None:
    for row in range(len(hashes)):
        hashes[row] = mix(hashes[row] ^ words[row], _STEP) ^ (hashes[row] << 1)
