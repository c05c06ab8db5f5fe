"""Arrow string columns as the kernels see them: addresses of offsets, bytes and validity.

column = StringColumn(pa.array(["a", None, "bc"]))
hash_strings(column.source)     →  [h("a"), 0, h("bc")]
"""

from dataclasses import field
from typing import Any

import numpy as np
import pyarrow as pa

from squallpy.base.records import dataclass
from squallpy.runtime.kernels.intrinsics import load, load8, load32
from squallpy.runtime.kernels.kernel_compiler import Vector, inlined
from squallpy.runtime.kernels.memory_regions import Words

_EMPTY = pa.py_buffer(b"\0" * 16)

# What `StringColumn.source` holds.
OFFSETS, BYTES, VALID, FIRST, WIDE, ROWS = range(6)


@dataclass(slots=True)
class StringColumn:
    """An array of (large) strings or binaries and, in `source`, what kernels need of it."""

    array: pa.Array
    source: Words = field(init=False)

    def __post_init__(self) -> None:
        kind = self.array.type
        wide = pa.types.is_large_string(kind) or pa.types.is_large_binary(kind)
        assert wide or pa.types.is_string(kind) or pa.types.is_binary(kind), f"{kind} is not a string type"
        valid, offsets, data = self.array.buffers()
        self.source = np.array(
            [
                (offsets or _EMPTY).address,
                (data or _EMPTY).address,
                valid.address if valid is not None and self.array.null_count else 0,
                self.array.offset,
                int(wide),
                len(self.array),
            ],
            np.int64,
        )


def plain(array: pa.Array | pa.ChunkedArray) -> pa.Array:
    """Make one contiguous array of a type that kernels read: chunks joined, views and dictionaries spelled out."""
    if isinstance(array, pa.ChunkedArray):
        array = array.combine_chunks()
        if isinstance(array, pa.ChunkedArray):  # older Arrow, or too long for 32-bit offsets
            array = pa.concat_arrays(array.cast(pa.large_string()).chunks)
    if pa.types.is_dictionary(array.type):
        array = array.dictionary_decode()
    kind: Any = array.type
    if pa.types.is_string_view(kind) or pa.types.is_null(kind):
        array = array.cast(pa.string())
    return array


@inlined
def string_at(source: Vector, row: int) -> tuple[int, int]:
    """Return (address, bytes) of a row; length −1 for NULL."""
    i = source[FIRST] + row
    if source[VALID] != 0 and (load8(source[VALID], i >> 3) >> (i & 7)) & 1 == 0:
        return 0, -1
    if source[WIDE] != 0:
        start, end = load(source[OFFSETS], i), load(source[OFFSETS], i + 1)
    else:
        start, end = load32(source[OFFSETS], i), load32(source[OFFSETS], i + 1)
    return source[BYTES] + start, end - start
