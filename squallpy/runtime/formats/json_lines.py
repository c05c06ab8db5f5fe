"""Rows as JSON lines: DECIMAL and other numbers as numbers with all their digits, dates and times as strings.

    json_rows(table)  →  b'{"id": 1, "price": 1.50, "name": null}\\n'

JSON has no NaN or infinite numbers: they are written as the strings "NaN", "Infinity" and "-Infinity".
"""

import json
from collections.abc import Iterator

import pyarrow as pa
import pyarrow.compute as pc

from squallpy.runtime.formats.text_columns import cells, code_of, join, pieces, to_bytes

_NO_NUMBER = {"nan": '"NaN"', "-nan": '"NaN"', "inf": '"Infinity"', "-inf": '"-Infinity"'}


def json_rows(table: pa.Table) -> Iterator[bytes]:
    """Write the lines of a table, piece by piece."""
    yield from map(to_bytes, json_objects(table))


def json_objects(table: pa.Table) -> Iterator[pa.Array]:
    """Write each row of a table as an object, piece by piece."""
    names = [json.dumps(name, ensure_ascii=False) for name in table.column_names]
    for piece in pieces(table):
        columns = zip(names, piece.columns, piece.schema, strict=True)
        pairs = [join(pa.scalar(name), _value(column, field), by=": ") for name, column, field in columns]
        yield join(pa.scalar("{"), join(*pairs, by=", "), pa.scalar("}"))


def _value(column: pa.Array, field: pa.Field) -> pa.Array:
    text, kind = cells(column), column.type
    if code_of(field):  # it is JSON
        return pc.fill_null(text, "null")
    if pa.types.is_string(kind):
        text = quoted_texts(text)
    elif pa.types.is_temporal(kind):
        text = join(pa.scalar('"'), text, pa.scalar('"'))
    elif pa.types.is_floating(kind):
        for word, string in _NO_NUMBER.items():
            text = pc.if_else(pc.equal(text, word), string, text)
    return pc.fill_null(text, "null")


def quoted_texts(text: pa.Array) -> pa.Array:
    """Write texts as strings of JSON."""
    if pc.any(pc.match_substring_regex(text, r"[\x00-\x1f]")).as_py():  # rare, and needs many kinds of escapes
        return pa.array(
            [None if s is None else json.dumps(s, ensure_ascii=False) for s in text.to_pylist()], pa.string()
        )
    escaped = pc.replace_substring(pc.replace_substring(text, "\\", "\\\\"), '"', '\\"')
    return join(pa.scalar('"'), escaped, pa.scalar('"'))
