"""Avro files by block, decoded once: the columns that are read, in the relation's types.

{"name": "at", "type": ["null", {"type": "long", "logicalType": "timestamp-millis"}]}   →   at TIMESTAMP, in UTC
"""

import io
from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate
from types import ModuleType
from typing import Any

import pyarrow as pa

from squallpy.base.errors import SquallError
from squallpy.catalog.relation import Field
from squallpy.runtime.formats.arrow_rows import DecodedRows, decode_rows
from squallpy.runtime.formats.blocked_file import BlockedFile
from squallpy.runtime.formats.change_operations import columns_of_change
from squallpy.runtime.formats.checksum import add_checksums, checksum
from squallpy.runtime.formats.counted_table import concat_tables
from squallpy.runtime.formats.file_rows import FileRows
from squallpy.runtime.formats.relation_files import File, reason
from squallpy.runtime.formats.type_conversion import Problem

MAGIC = b"Obj\x01"
BLOCKS = 8  # decoded blocks that a process keeps, as several files are read in turn
NUMBERS = {"int": pa.int32(), "long": pa.int64(), "float": pa.float32(), "double": pa.float64()}
PLAIN = NUMBERS | {"null": pa.null(), "boolean": pa.bool_(), "bytes": pa.binary(), "string": pa.string()}
TIMES = {
    "date": pa.date32(), "time-millis": pa.time32("ms"), "time-micros": pa.time64("us"),
    **{f"timestamp-{name}": pa.timestamp(unit, "UTC") for name, unit in (("millis", "ms"), ("micros", "us"))},
    **{f"local-timestamp-{name}": pa.timestamp(unit) for name, unit in (("millis", "ms"), ("micros", "us"))},
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Layout:
    """The columns of a file, the schema by which it is decoded, and the place and the rows of each block."""

    schema: pa.Schema
    plain: Any
    header: int
    blocks: tuple[tuple[int, int], ...]
    rows: tuple[int, ...]


class AvroPart(BlockedFile):
    """An Avro file."""

    @staticmethod
    def open(file: File) -> "AvroPart":
        return AvroPart(file, (0, *accumulate(_layout(file).rows)) if file.size else (0,))

    @property
    def _schema(self) -> pa.Schema:
        return _layout(self.file).schema

    def read(
        self, start: int, stop: int, fields: tuple[Field, ...], op: str | None, with_checksum: bool = False
    ) -> FileRows:
        """Read rows start..stop; checksums cover blocks whose first row is among them, the header with the first."""
        tables, wrong, images, sum = list[pa.Table](), dict[int, Problem](), 0, 0
        for block in range(bisect_right(self.ends, start) - 1, bisect_left(self.ends, stop)):
            first, last = self.ends[block], self.ends[block + 1]
            begin, end = max(start, first), min(stop, last)
            rows = _decoded(self.file, block, fields, op)
            tables.append(rows.table.slice(begin - first, end - begin))
            wrong.update({first + r - start: p for r, p in rows.wrong.items() if begin <= first + r < end})
            images += 0 if rows.images is None else int(rows.images[begin - first : end - first].sum())
            if with_checksum and begin == first:
                sum = add_checksums(sum, _checksum(self.file, block))
        if not tables:
            tables.append(decode_rows(_layout(self.file).schema.empty_table(), fields, op).table)
        return FileRows(concat_tables(tables), wrong, {"": sum} if with_checksum else {}, images)

    def checksum(self, rows: int, names: Sequence[str]) -> int:
        """Compute the checksum of the header and the blocks of the first rows."""
        sum = 0
        for block in range(bisect_left(self.ends[:-1], min(rows, self.rows))):
            sum = add_checksums(sum, _checksum(self.file, block))
        return sum


def library() -> ModuleType:
    """Import fastavro; SQ8009 if it is not installed."""
    try:
        import fastavro
    except ImportError:
        hint = "install it: pip install 'squallpy[avro]'"
        raise SquallError("SQ8009", "USING avro needs the package fastavro", hint=hint) from None
    return fastavro


@lru_cache(maxsize=256)
def _layout(file: File) -> _Layout:
    """Read the schema of a file, and where its blocks are, once in a process."""
    avro, source = library(), file.open()
    try:
        with source:
            if source.read(len(MAGIC)) != MAGIC:
                raise ValueError("it does not begin as an Avro file does")
            source.seek(0)
            reader = avro.block_reader(source)
            schema = reader.writer_schema
            found = [(block.offset, block.size, block.num_records) for block in reader]
    except (ValueError, EOFError, KeyError, OSError) as error:
        raise SquallError("SQ4001", f"cannot read {file.display_name} as Avro: {reason(error)}") from None
    file.check()
    if not isinstance(schema, dict) or schema.get("type") != "record":
        raise SquallError("SQ4002", f"{file.display_name} has values and no records, so that it has no columns")
    named = dict[str, Any]()
    columns = [(f["name"], arrow_type(f["type"], named)) for f in schema["fields"]]
    whole = pa.schema([(name, type or pa.dense_union([])) for name, type in columns])  # NB: it has no SQL type
    blocks = tuple((offset, size) for offset, size, rows in found if rows)
    header = found[0][0] if found else file.size
    return _Layout(whole, avro.parse_schema(without_logical(schema)), header, blocks, tuple(n for *_, n in found if n))


def arrow_type(schema: Any, named: dict[str, Any]) -> pa.DataType | None:
    """Choose the Arrow type of a schema; None if there is none, as for unions of other types than numbers and null."""
    if isinstance(schema, list):
        return _union([arrow_type(each, named) for each in schema if each != "null"])
    if isinstance(schema, str):
        return PLAIN.get(schema) or named.get(schema)
    kind, logical = schema["type"], schema.get("logicalType")
    if logical == "decimal" and schema["precision"] <= 38:
        return pa.decimal128(schema["precision"], schema.get("scale", 0))
    if logical in TIMES:
        return TIMES[logical]
    match kind:
        case "record":
            inner = [(f["name"], arrow_type(f["type"], named)) for f in schema["fields"]]
            found = pa.struct(inner) if all(type for _, type in inner) else None
        case "array":
            element = arrow_type(schema["items"], named)
            return element and pa.list_(element)
        case "map":
            value = arrow_type(schema["values"], named)
            return value and pa.map_(pa.string(), value)
        case "enum" | "fixed":
            found = pa.string() if kind == "enum" else pa.binary(schema["size"])
        case _:
            return arrow_type(kind, named)
    named[schema["name"]] = found
    return found


def _union(types: Sequence[pa.DataType | None]) -> pa.DataType | None:
    """Choose the type that holds the values of all: itself of one, the wider of numbers."""
    if not types:
        return pa.null()
    if len(types) == 1:
        return types[0]
    if not all(type in NUMBERS.values() for type in types):
        return None
    return pa.int64() if all(pa.types.is_integer(type) for type in types) else pa.float64()


def without_logical(schema: Any) -> Any:
    """Drop logical types, except of decimals, so that times are the numbers that Arrow knows, in any year."""
    if isinstance(schema, list):
        return [without_logical(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    kept = {key: value for key, value in schema.items() if key != "logicalType" or value == "decimal"}
    for key in ("type", "items", "values"):
        if key in kept:
            kept[key] = without_logical(kept[key])
    if "fields" in kept:
        kept["fields"] = [without_logical(field) for field in kept["fields"]]
    return {key: value for key, value in kept.items() if not key.startswith("__")}


def _block(file: File, block: int) -> bytes:
    """Read a block behind the header of its file."""
    layout = _layout(file)
    offset, size = layout.blocks[block]
    with file.open() as source:
        return bytes(source.read_at(layout.header, 0)) + bytes(source.read_at(size, offset))


def _checksum(file: File, block: int) -> int:
    """Compute the checksum of a block, of the first one with the header."""
    header, data = _layout(file).header, _block(file, block)
    sum = checksum(data[header:], _layout(file).blocks[block][0])
    return sum if block else add_checksums(sum, checksum(data[:header], 0))


@lru_cache(maxsize=BLOCKS)
def _decoded(file: File, block: int, fields: tuple[Field, ...], op: str | None) -> DecodedRows:
    """Decode a block; SQ4001 if it is damaged."""
    avro, layout = library(), _layout(file)
    try:
        (found,) = avro.block_reader(io.BytesIO(_block(file, block)))
        records = [avro.schemaless_reader(found.bytes_, layout.plain, None) for _ in range(found.num_records)]
        names = (*(field.path[0] for field in fields), *columns_of_change(op))
        raw = _table(records, layout.schema, {name.lower() for name in names})
    except (ValueError, EOFError, LookupError, pa.ArrowException) as error:
        raise SquallError("SQ4001", f"cannot read {file.display_name} as Avro: {reason(error)}") from None
    file.check()
    return decode_rows(raw, fields, op)


def _table(records: Sequence[Mapping[str, Any]], schema: pa.Schema, wanted: set[str]) -> pa.Table:
    """Make the columns of records that are wanted; one more keeps their number."""
    kept = [field for field in schema if field.name.lower() in wanted]
    columns = [pa.array((record[field.name] for record in records), field.type) for field in kept]
    return pa.table([*columns, pa.nulls(len(records))], [*(field.name for field in kept), ""])
