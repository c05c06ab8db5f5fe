"""JSON lines: Arrow parses any range of rows; where it fails, each line is parsed for itself.

{"id": 1, "address": {"zip": "1010"}, "v": 2.50}   →   id 1, zip '1010' (FROM 'address.zip'), v 2.50

A field that a line lacks is NULL. A value becomes that of a column as its text would: a number in a VARCHAR column is
the text of the number, an object its JSON.
"""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import json as arrow_json

from squallpy.base.errors import SquallError, shorten
from squallpy.base.records import dataclass
from squallpy.base.types import BIGINT, VARCHAR
from squallpy.catalog.relation import MULT, Field
from squallpy.runtime.formats.change_operations import columns_of_change, decode_op
from squallpy.runtime.formats.counted_table import table_without_columns
from squallpy.runtime.formats.csv import parsed_type
from squallpy.runtime.formats.csv_dialect import Dialect
from squallpy.runtime.formats.indexed_text import IndexedText
from squallpy.runtime.formats.json_template import parse_alike, template_of
from squallpy.runtime.formats.nested_values import arrow_of
from squallpy.runtime.formats.relation_files import File, reason
from squallpy.runtime.formats.type_conversion import PROGRESS, Problem, conform, sql_type

LINES = Dialect(quote="")  # a line end is always the end of a row: within a JSON string it is escaped
SAMPLE = 1 << 20  # bytes from which columns are inferred
NULL_LINE = Problem("SQ4003", "'null' is not a JSON object")
_NO_OBJECT = re.compile(rb"^[ \t]*[^{ \t\r\n]", re.MULTILINE)


@dataclass(frozen=True)
class JsonPart(IndexedText):
    """A file of JSON lines."""

    @staticmethod
    def open(file: File, compression: str = "", is_growing: bool = False) -> "JsonPart":
        """Open a file."""
        return JsonPart.of_file(file, replace(LINES, compression=compression), is_growing)

    @property
    def columns(self) -> tuple[str, ...]:
        return ()  # NB: each line has its own

    def check(self, fields: tuple[Field, ...], op: str | None) -> None:
        """Do nothing: a field that a line lacks is NULL."""

    def check_read(self, fields: Sequence[Field]) -> None:
        """Do nothing: each line has its own types."""

    def hint(self, row: int) -> str:
        return ""

    def infer(self) -> tuple[Field, ...]:
        """Infer columns from the first rows: those of plain values; SQ4003 for rows that are no JSON."""
        step = max(1, SAMPLE * self.index.rows // max(1, self.index.size))
        data = self._utf8(0, min(self.rows, step))
        try:
            if _has_others(data, min(self.rows, step)):
                raise pa.ArrowInvalid("a line is no object")
            found = arrow_json.read_json(pa.BufferReader(data), _reading(data)).schema if self.rows else ()
        except pa.ArrowInvalid as error:
            message = f"{self.file.display_name} cannot be read as JSON lines: {reason(error)}"
            raise SquallError("SQ4003", message, hint="list the columns after the name") from None
        types = ((field.name, sql_type(field.type)) for field in found)
        plain = ((name, type) for name, type in types if type and not type.nested)
        return tuple(Field(name, BIGINT if type.is_integer else type) for name, type in plain)

    def _parse_piece(
        self, data: bytes, start: int, stop: int, fields: tuple[Field, ...], op: str | None, wrong: dict[int, Problem]
    ) -> tuple[pa.Table, int]:
        change = [Field(name, VARCHAR) for name in columns_of_change(op)]
        wanted = [*change, *fields]
        raw = _parse_alike(data, wanted, stop - start)
        try:
            if raw is None and _has_others(data, stop - start):
                raise pa.ArrowInvalid("a line is no object")
            raw = _parse(data, wanted) if raw is None else raw
            if len(raw) != stop - start:
                raise pa.ArrowInvalid("a line has no row, or several")
        except pa.ArrowException:
            raw = _parse_lines(data, wanted, stop - start, wrong)
        columns = conform(raw.select(range(len(change), len(wanted))), fields, wrong)
        names, images = [f.name for f in fields], 0
        if op:
            operations = decode_op(*raw.columns[: len(change)], name=op, wrong=wrong)
            columns, names = [*columns, operations.multiplicities], [*names, MULT]
            images = 0 if operations.images is None else int(operations.images.sum())
        return pa.table(columns, names) if columns else table_without_columns(stop - start), images


def _has_others(data: bytes, rows: int) -> bool:
    """True if there is a line that is no object; Arrow's parser crashes where the first one is null."""
    return data.startswith(b"{") + data.count(b"\n{") != rows and _NO_OBJECT.search(data) is not None


def _reading(data: bytes) -> arrow_json.ReadOptions:
    """Read all in one block, as a row has to be in one."""
    return arrow_json.ReadOptions(use_threads=False, block_size=len(data) + 1)


def _parse_alike(data: bytes, fields: Sequence[Field], rows: int) -> pa.Table | None:
    """Parse fields of lines that are alike, numbered; None if they are not, or a value is not simple.

    Where all lines have a plain value, there is nothing within it: {"before": null, …} has no before.id.
    """
    made = template_of(data[: data.find(b"\n") + 1 or len(data)].strip())
    if made is None or any(field.type.nested for field in fields):
        return None
    same = dict[int, pa.Array]()
    for i, field in enumerate(fields):
        *around, last = field.path
        if not last:
            is_object = any(len(path) > len(around) and [*path[: len(around)]] == around for path in made.paths)
            same[i] = pa.repeat("true", rows) if is_object else pa.nulls(rows, pa.string())
        elif any(field.path[: len(path)] == path for path in made.paths if len(path) < len(field.path)):
            same[i] = pa.nulls(rows, parsed_type(field))
    rest = [(i, field) for i, field in enumerate(fields) if i not in same]
    types = {field.path: parsed_type(field) for _, field in rest}
    if len(types) < len(rest) or not all(map(all, types)):
        return None
    try:
        found = parse_alike(data, rows, types)
    except pa.ArrowException:
        return None
    if found is None or not same:
        return found
    columns = same | {i: found.column(at) for at, (i, _) in enumerate(rest)}
    return pa.table([columns[i] for i in range(len(fields))], [str(i) for i in range(len(fields))])


def _parse(data: bytes, fields: Sequence[Field]) -> pa.Table:
    """Parse fields by Arrow, numbered; ArrowInvalid where a value has another type than its column."""
    tree: dict[str, Any] = {}
    for field in fields:
        inside = tree
        for name in field.path[:-1]:
            inside = inside.setdefault(name, {})
            if not isinstance(inside, dict):
                raise pa.ArrowInvalid("a value and an object")
        if field.path[-1] and inside.setdefault(field.path[-1], kind := _parsed_type(field)) != kind:
            raise pa.ArrowInvalid("a value of two types")
    options = arrow_json.ParseOptions(explicit_schema=pa.schema(_types(tree)), unexpected_field_behavior="ignore")
    raw = arrow_json.read_json(pa.BufferReader(data), _reading(data), options)
    columns = []
    for field in fields:
        column, inner = raw.column(field.path[0]), list(filter(None, field.path[1:]))
        column = pc.struct_field(column, inner) if inner else column
        columns.append(
            column if field.path[-1] else pc.if_else(column.is_valid(), "true", pa.scalar(None, pa.string()))
        )
    names = [str(i) for i in range(len(columns))]
    return pa.table(columns, names) if columns else table_without_columns(len(raw))


def _types(tree: Mapping[str, Any]) -> list[pa.Field]:
    """Describe nested fields to Arrow."""
    return [pa.field(n, pa.struct(_types(type)) if isinstance(type, dict) else type) for n, type in tree.items()]


def _parsed_type(field: Field) -> pa.DataType:
    """Choose the Arrow type to parse: INT in 32 bits, so that larger numbers fail; times as text."""
    return arrow_of(field.type)


def _parse_lines(data: bytes, fields: Sequence[Field], rows: int, wrong: dict[int, Problem]) -> pa.Table:
    """Parse each line for itself, values as text; lines that are no JSON object are noted, and NULL in all columns."""
    texts: list[list[str | None]] = [[] for _ in fields]
    lines = [line for line in re.split(rb"[\r\n]+", data) if line]
    assert len(lines) == rows, "as many lines as rows"
    for row, line in enumerate(lines):
        found = _object(line, row, wrong)
        for column, field in zip(texts, fields, strict=True):
            column.append(_text(_value(found, field.path)))
    return pa.table([pa.array(column, pa.string()) for column in texts], [str(i) for i in range(len(fields))])


class _Number(str):
    """A number as it is written."""


def _object(line: bytes, row: int, wrong: dict[int, Problem]) -> Mapping[str, Any]:
    """Parse a line; an empty object, and a note, if it is none."""
    try:
        found = json.loads(line.decode(), parse_int=_Number, parse_float=_Number, parse_constant=_Number)
    except (ValueError, RecursionError) as error:
        if not line.strip():
            wrong[row] = PROGRESS
        else:
            shown = shorten(repr(line.decode(errors="backslashreplace")))
            wrong[row] = Problem("SQ4003", f"{shown} is not JSON: {str(error).partition(':')[0].lower()}")
        return {}
    if not isinstance(found, dict):
        problem = Problem("SQ4003", f"{shorten(repr(line.decode()))} is not a JSON object")
        wrong[row] = NULL_LINE if found is None else problem
        return {}
    return found


def _value(found: Any, path: Iterable[str]) -> Any:
    """Find the value at a path; None where there is none."""
    for name in path:
        found = (found.get(name) if name else True) if isinstance(found, dict) else None
    return found


def _text(value: Any) -> str | None:
    """Spell a value as text."""
    if value is None or isinstance(value, str):
        return value if value is None else str(value).encode("utf-8", "replace").decode()
    if isinstance(value, bool):
        return "true" if value else "false"
    return _spelled(value)


def _spelled(value: Any) -> str:
    """Spell a value as JSON, numbers as they were."""
    if isinstance(value, dict):
        return f"{{{','.join(f'{json.dumps(name, ensure_ascii=False)}:{_spelled(v)}' for name, v in value.items())}}}"
    if isinstance(value, list):
        return f"[{','.join(map(_spelled, value))}]"
    return str(value) if isinstance(value, _Number) else json.dumps(value, ensure_ascii=False)
