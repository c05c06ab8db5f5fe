"""Rows as CSV (RFC 4180, lines ended by a newline): NULL is nothing, the empty string is "".

Many readers skip a blank line; so where a result has a single column, its NULLs are "", in its changes too. Not those
of strings, where "" is the empty string: they are nothing there, too, as DuckDB writes and reads them.

csv_header(schema)  →  b"id,name\\n"          csv_rows(table)  →  b'1,"a, b"\\n2,\\n'
"""

from collections.abc import Iterator

import pyarrow as pa
import pyarrow.compute as pc

from squallpy.runtime.formats.text_columns import cells, join, pieces, to_bytes

_SPECIAL = r'^$|[",\r\n]'


def csv_header(schema: pa.Schema) -> bytes:
    """The line of column names."""
    return to_bytes(join(*(_quoted(pa.array([name])) for name in schema.names), by=","))


def csv_rows(table: pa.Table, added: int = 0) -> Iterator[bytes]:
    """The lines of a table, some at a time; the first `added` columns are not the result's own."""
    own = table.schema.types[added:]
    null = '""' if len(own) == 1 and not pa.types.is_string(own[0]) else ""
    for piece in pieces(table):
        yield to_bytes(join(*(pc.fill_null(_field(column), null) for column in piece.columns), by=","))


def _field(column: pa.Array) -> pa.Array:
    text = cells(column)
    return _quoted(text) if pa.types.is_string(column.type) else text


def _quoted(text: pa.Array) -> pa.Array:
    """In quotes where the text would be read as something else without."""
    quoted = join(pa.scalar('"'), pc.replace_substring(text, '"', '""'), pa.scalar('"'))
    return pc.if_else(pc.match_substring_regex(text, _SPECIAL), quoted, text)
