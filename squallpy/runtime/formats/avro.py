"""Avro files by groups of blocks, each decoded once: the columns that are read, in the relation's types.

{"name": "at", "type": ["null", {"type": "long", "logicalType": "timestamp-millis"}]}   →   at TIMESTAMP, in UTC

A program of the schema decodes records, as it does those of messages; fastavro does where arrays or maps are read.
"""

import io
import json
from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from functools import lru_cache
from itertools import accumulate
from typing import Any

import pyarrow as pa

from squallpy.base.errors import SquallError
from squallpy.base.records import dataclass
from squallpy.catalog.relation import Field
from squallpy.runtime.formats.arrow_rows import DecodedRows, decode_columns, decode_rows
from squallpy.runtime.formats.avro_program import program_of
from squallpy.runtime.formats.avro_schema import arrow_type, library, without_logical
from squallpy.runtime.formats.blocked_file import BlockedFile
from squallpy.runtime.formats.change_operations import columns_of_change
from squallpy.runtime.formats.checksum import add_checksums, checksum
from squallpy.runtime.formats.counted_table import concat_tables
from squallpy.runtime.formats.file_rows import FileRows
from squallpy.runtime.formats.relation_files import File, reason
from squallpy.runtime.formats.type_conversion import Problem

MAGIC = b"Obj\x01"
GROUPS = 8  # decoded groups of blocks that a process keeps, as several files are read in turn
TOGETHER = 1 << 14  # rows from which on blocks are a group: writers make blocks of some hundred


@dataclass(frozen=True, slots=True)
class _Layout:
    """The columns of a file, the schema by which it is decoded, and the place and the rows of each block.

    Args:
        text: The schema as JSON.
        groups: The first block of each group that is decoded at once, and the number of blocks.
    """

    schema: pa.Schema
    plain: Any
    text: str
    header: int
    blocks: tuple[tuple[int, int], ...]
    rows: tuple[int, ...]
    groups: tuple[int, ...]


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
        if start >= stop:
            none = decode_rows(self._schema.empty_table(), fields, op).table
            return FileRows(none, checksums={"": 0} if with_checksum else {})
        tables, wrong, images = list[pa.Table](), dict[int, Problem](), 0
        blocks, groups = self._blocks(start, stop), _layout(self.file).groups
        for group in range(bisect_right(groups, blocks.start) - 1, bisect_left(groups, blocks.stop)):
            first, last = self.ends[groups[group]], self.ends[groups[group + 1]]
            begin, end = max(start, first), min(stop, last)
            rows = _decoded(self.file, group, fields, op)
            tables.append(rows.table.slice(begin - first, end - begin))
            wrong.update({first + r - start: p for r, p in rows.wrong.items() if begin <= first + r < end})
            images += 0 if rows.images is None else int(rows.images[begin - first : end - first].sum())
        begun = blocks[self.ends[blocks.start] < start :]
        return FileRows(
            concat_tables(tables), wrong, {"": _checksum(self.file, begun)} if with_checksum else {}, images
        )

    def checksum(self, rows: int, names: Sequence[str]) -> int:
        """Compute the checksum of the header and the blocks of the first rows."""
        return _checksum(self.file, self._blocks(0, min(rows, self.rows)))

    def _blocks(self, start: int, stop: int) -> range:
        """Number the blocks of the rows start..stop."""
        return range(bisect_right(self.ends, start) - 1, bisect_left(self.ends, stop)) if start < stop else range(0)


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
    header, rows = found[0][0] if found else file.size, tuple(n for *_, n in found if n)
    text = json.dumps({key: value for key, value in schema.items() if not key.startswith("__")})
    plain = avro.parse_schema(without_logical(schema))
    return _Layout(whole, plain, text, header, blocks, rows, _groups(rows))


def _groups(rows: Sequence[int]) -> tuple[int, ...]:
    """Group blocks of so many rows."""
    groups, size = [0], 0
    for block, each in enumerate(rows, 1):
        size += each
        if size >= TOGETHER or block == len(rows):
            groups.append(block)
            size = 0
    return tuple(groups)


def _read(file: File, begin: int, end: int) -> bytes:
    with file.open() as source:
        return bytes(source.read_at(end - begin, begin))


def _read_blocks(file: File, blocks: range) -> bytes:
    """Read successive blocks."""
    places = _layout(file).blocks
    last, size = places[blocks.stop - 1]
    return _read(file, places[blocks.start][0], last + size)


def _checksum(file: File, blocks: range) -> int:
    """Add up the checksums of successive blocks, with that of the header for the first one."""
    if not blocks:
        return 0
    layout, data = _layout(file), _read_blocks(file, blocks)
    sum, begin = 0 if blocks.start else checksum(_read(file, 0, layout.header), 0), layout.blocks[blocks.start][0]
    for offset, size in layout.blocks[blocks.start : blocks.stop]:
        sum = add_checksums(sum, checksum(data[offset - begin : offset - begin + size], offset))
    return sum


@lru_cache(maxsize=GROUPS)
def _decoded(file: File, group: int, fields: tuple[Field, ...], op: str | None) -> DecodedRows:
    """Decode a group of blocks; SQ4001 if one is damaged."""
    avro, layout = library(), _layout(file)
    told, groups = columns_of_change(op), layout.groups
    paths = *((name,) for name in told), *(field.path for field in fields)
    try:
        data = _read(file, 0, layout.header) + _read_blocks(file, range(groups[group], groups[group + 1]))
        blocks = [(block.bytes_, block.num_records) for block in avro.block_reader(io.BytesIO(data))]
        if program := program_of(layout.text, paths):
            rows = sum(count for _, count in blocks)
            columns = program.run_through(b"".join(each.getvalue() for each, _ in blocks), rows)
            file.check()
            known = [column for column in columns[: len(told)] if column is not None]
            return decode_columns(known, columns[len(told) :], rows, fields, op)
        records = [avro.schemaless_reader(data, layout.plain, None) for data, count in blocks for _ in range(count)]
        raw = _table(records, layout.schema, {path[0].lower() for path in paths})
    except (ValueError, EOFError, LookupError, pa.ArrowException) as error:
        raise SquallError("SQ4001", f"cannot read {file.display_name} as Avro: {reason(error)}") from None
    file.check()
    return decode_rows(raw, fields, op)


def _table(records: Sequence[Mapping[str, Any]], schema: pa.Schema, wanted: set[str]) -> pa.Table:
    """Make the columns of records that are wanted; one more keeps their number."""
    kept = [field for field in schema if field.name.lower() in wanted]
    columns = [pa.array((record[field.name] for record in records), field.type) for field in kept]
    return pa.table([*columns, pa.nulls(len(records))], [*(field.name for field in kept), ""])
