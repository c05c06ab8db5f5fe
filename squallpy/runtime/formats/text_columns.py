"""Arrow columns as text, a column at a time; NULL stays NULL.

DECIMAL(10,2) 1.50 → 1.50     DOUBLE 0.1 → 0.1     DATE → 1998-12-01     TIMESTAMP → 1998-12-01 10:00:00[.000001]
INTERVAL → INTERVAL '0 00:10:00' DAY TO SECOND
"""

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from squallpy.runtime.evaluate.interval_texts import interval_texts

NESTED = b"squallpy.nested"  # in the metadata of a printed column: the code of its type, whose values are JSON
PIECE = 1 << 16  # rows rendered at once: bounds memory, and keeps 32-bit string offsets from overflowing


def cells(column: pa.Array) -> pa.Array:
    """Convert a column of any SQL type to strings."""
    kind = column.type
    if pa.types.is_decimal(kind):
        return _decimal(column)
    if pa.types.is_duration(kind):
        return interval_texts(column)
    text = column if pa.types.is_string(kind) else column.cast(pa.string())
    if pa.types.is_timestamp(kind):
        return pc.replace_substring_regex(text, r"\.0+$", "")
    return text


def text_column(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Convert a column in chunks to strings."""
    return pa.chunked_array([cells(chunk) for chunk in column.chunks], pa.string())


def is_number(kind: pa.DataType) -> bool:
    """True if values of a type are shown to the right."""
    return bool(pa.types.is_integer(kind) or pa.types.is_decimal(kind) or pa.types.is_floating(kind))


def code_of(field: pa.Field) -> str:
    """Return the code of a nested type; none for a column of plain values."""
    code: bytes = (field.metadata or {}).get(NESTED, b"")
    return code.decode()


def _decimal(column: pa.Array) -> pa.Array:
    """Write digits with exactly the type's scale. NB: Arrow's own cast writes 0E-10 and the like below 1e-6."""
    scale = column.type.scale
    whole = pa.Array.from_buffers(pa.decimal128(38, 0), len(column), column.buffers(), offset=column.offset)
    digits = whole.cast(pa.string())
    if scale == 0:
        return digits
    sign = pc.if_else(pc.starts_with(digits, "-"), "-", "")
    padded = pc.ascii_lpad(pc.ascii_ltrim(digits, "-"), scale + 1, "0")
    units = pc.utf8_slice_codeunits(padded, 0, -scale)
    return join(sign, units, pa.scalar("."), pc.utf8_slice_codeunits(padded, -scale))


def join(*parts: Any, by: str = "") -> pa.Array:
    """Concatenate strings element by element."""
    return pc.binary_join_element_wise(*parts, by)


def pieces(table: pa.Table) -> Iterator[pa.RecordBatch]:
    """Split a table into record batches of bounded size."""
    yield from table.to_batches(max_chunksize=PIECE)


def to_bytes(lines: pa.Array) -> bytes:
    """Encode lines without NULLs, each ended by a newline."""
    ended = join(lines, pa.scalar(""), by="\n")
    _, offsets, data = ended.buffers()
    if not len(ended) or data is None:
        return b""
    ends = pa.Array.from_buffers(pa.int32(), len(ended) + 1, [None, offsets], offset=ended.offset)
    return bytes(data.slice(ends[0].as_py(), ends[-1].as_py() - ends[0].as_py()))
