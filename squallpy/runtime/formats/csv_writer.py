"""Rows as CSV (RFC 4180, lines ended by a newline): NULL is empty, the empty string is "".

Many readers skip a blank line; so the NULLs of a result with a single column are "", in its changes too. NULLs of
strings stay empty, as "" is the empty string; DuckDB writes and reads them so.

csv_header(schema)  →  b"id,name\\n"          csv_rows(table)  →  b'1,"a, b"\\n2,\\n'
"""

from collections.abc import Iterator

import pyarrow as pa
import pyarrow.compute as pc

from squallpy.runtime.evaluate.scalar.json import nested_texts
from squallpy.runtime.formats.text_columns import cells, code_of, join, pieces, to_bytes

_SPECIAL = r'^$|[",\r\n]'


def csv_header(schema: pa.Schema) -> bytes:
    """Write the line of column names."""
    return to_bytes(join(*(_quote(pa.array([name])) for name in schema.names), by=","))


def csv_rows(table: pa.Table, extra: int = 0) -> Iterator[bytes]:
    """Write the lines of a table, piece by piece; the first `added` columns do not belong to the result."""
    own = table.schema.types[extra:]
    null = '""' if len(own) == 1 and not pa.types.is_string(own[0]) else ""
    for piece in pieces(table):
        fields = zip(piece.columns, piece.schema, strict=True)
        yield to_bytes(join(*(pc.fill_null(_field(column, field), null) for column, field in fields), by=","))


def _field(column: pa.Array, field: pa.Field) -> pa.Array:
    text = cells(column)
    if code := code_of(field):
        text = nested_texts(text, code)
    return _quote(text) if pa.types.is_string(column.type) else text


def _quote(text: pa.Array) -> pa.Array:
    """Quote texts that would be read differently without quotes."""
    quoted = join(pa.scalar('"'), pc.replace_substring(text, '"', '""'), pa.scalar('"'))
    return pc.if_else(pc.match_substring_regex(text, _SPECIAL), quoted, text)
