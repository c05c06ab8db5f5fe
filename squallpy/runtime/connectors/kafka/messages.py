"""Messages as rows: values as JSON lines or Avro, with columns that are in keys, and tombstones.

key 7, value {"v": 5}   with key 'id'           →   {"id": 7, "v": 5}
key 7, no value         changelog 'upsert'      →   {"id": 7, "__op": -1}

A message that cannot be read is told by its partition and offset.
"""

import base64
import ctypes
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from squallpy.base.errors import shorten
from squallpy.base.records import dataclass
from squallpy.base.types import VARCHAR
from squallpy.catalog.relation import METADATA, MULT, OPERATION, Field, Relation
from squallpy.runtime.connectors.kafka.avro_messages import AVRO, AvroFormat
from squallpy.runtime.connectors.kafka.librdkafka import (
    COLUMNS,
    KEY,
    OFFSET,
    PARTITION,
    SCHEMA,
    UNORDERED,
    VALUE,
    spans,
)
from squallpy.runtime.connectors.kafka.message_kernel import join_lines
from squallpy.runtime.evaluate.text_column_casts import column_type
from squallpy.runtime.formats.change_operations import columns_of_change, decode_op
from squallpy.runtime.formats.counted_table import table_without_columns
from squallpy.runtime.formats.file_rows import FileRows
from squallpy.runtime.formats.json_reader import LINES, JsonPart
from squallpy.runtime.formats.line_index import EVERY, Index
from squallpy.runtime.formats.type_conversion import Problem, note_nulls
from squallpy.runtime.sources.foreign_source import ArrowPart, ForeignSource
from squallpy.runtime.sources.located_rows import LocatedRows
from squallpy.runtime.sources.received_lines import ReceivedLines, ReceivedText
from squallpy.runtime.sources.source import SourceFile

new_bytes = ctypes.pythonapi.PyBytes_FromStringAndSize
new_bytes.restype, new_bytes.argtypes = ctypes.py_object, (ctypes.c_char_p, ctypes.c_ssize_t)
"""The maker of bytes that are to be filled: pages of memory that Python has are ready, those of an array are new."""
_NUMBER = re.compile(rb"-?(0|[1-9][0-9]*)(\.[0-9]+)?\Z")
_GONE = b'"%s": -1' % OPERATION.encode()


@dataclass
class MessageSource(ForeignSource):
    """A relation whose rows are messages."""

    def asked(self, columns: Sequence[str]) -> tuple[str, ...]:
        return COLUMNS

    @cached_property
    def avro(self) -> AvroFormat | None:
        """The schemas of values or keys; None without Avro."""
        return avro_of(self.relation)

    def part(self, raw: pa.Table, first: int) -> SourceFile:
        relation = self.relation
        if relation.row_format == AVRO and self.avro:
            part: MessagePart = AvroPart.of_avro(relation, self.name, raw, self.avro)
        else:
            part = MessagePart.of_json(relation, self.name, raw, self.avro)
        is_located = any(field.metadata for field in relation.fields)
        return LocatedMessages(part, topic_of(relation)) if is_located else part


def topic_of(relation: Relation) -> str:
    """Return the topic that a relation reads."""
    return relation.options.get("subscribe", relation.name)


def avro_of(relation: Relation) -> AvroFormat | None:
    """Find the schemas of Avro in values or keys; None if neither are. SQ7002 if options name none."""
    options = relation.options
    return AvroFormat.of(options) if AVRO in (relation.row_format, options.get("key.format")) else None


@dataclass(frozen=True, slots=True)
class MessagePart(ReceivedLines):
    """Messages as a part of a source.

    Args:
        raw: The messages.
        wrong: What is wrong with some of them, by number.
    """

    raw: pa.Table = field(default_factory=SCHEMA.empty_table)
    wrong: Mapping[int, Problem] = field(default_factory=dict)

    @staticmethod
    def of_json(relation: Relation, name: str, raw: pa.Table, avro: AvroFormat | None) -> "MessagePart":
        """Parse values as JSON."""
        wrong, values, keys = dict[int, Problem](), raw.column(VALUE), KeyReader.of(relation, avro)
        if keys.in_rows or values.null_count:
            lines = keys.lines(raw.column(KEY).to_pylist(), values.to_pylist(), wrong)
            values = pa.chunked_array([pa.array(lines, pa.binary())])
        return MessagePart(_lines_of(name, values), 0, frozenset(), raw, wrong)

    def location(self, row: int) -> str:
        return f"{self.file.display_name}, partition {self._at(PARTITION, row)}, offset {self._at(OFFSET, row)}"

    def place(self, row: int) -> Mapping[str, Any]:
        """Return where a message is, and what it is, for a dead letter."""
        parts = ((name, self._at(name, row)) for name in (KEY, VALUE))
        told = {name: part and base64.b64encode(part).decode() for name, part in parts}
        return {name: self._at(name, row) for name in (PARTITION, OFFSET)} | told  # NB: `file` is the topic

    def read(
        self, start: int, stop: int, fields: tuple[Field, ...], op: str | None, with_checksum: bool = False
    ) -> FileRows:
        rows = ReceivedLines.read(self, start, stop, fields, op, with_checksum)
        wrong = {row - start: problem for row, problem in self.wrong.items() if start <= row < stop}
        return replace(rows, wrong=rows.wrong | wrong, is_ordered=self.is_ordered)

    @property
    def is_ordered(self) -> bool:
        """True if no others of the same table come beside these."""
        return bool(self.raw.schema.metadata != UNORDERED)

    def _at(self, column: str, row: int) -> Any:
        return self.raw.column(column)[row].as_py()


@dataclass(frozen=True, slots=True)
class LocatedMessages(LocatedRows):
    """Messages with columns that tell where they are from: topic, partition, offset and time."""

    part: MessagePart
    topic: str

    def place(self, row: int) -> Mapping[str, Any]:
        return self.part.place(row)

    def _located(self, name: str, start: int, stop: int) -> pa.Array | pa.ChunkedArray:
        if name == "_file":
            return pa.repeat(pa.scalar(self.topic, pa.string()), stop - start)
        raw = self.part.raw.column(name.removeprefix("_"))
        return raw.slice(start, stop - start).cast(column_type(METADATA[name]))


_NONE = AvroFormat(None)


@dataclass(frozen=True, slots=True)
class AvroPart(MessagePart):
    """Messages of Avro as a part of a source; lines are what keys tell, if that is needed."""

    avro: AvroFormat = _NONE
    keys: "KeyReader | None" = None

    @staticmethod
    def of_avro(relation: Relation, name: str, raw: pa.Table, avro: AvroFormat) -> "AvroPart":
        """Read keys, where they tell something."""
        wrong, values, keys = dict[int, Problem](), raw.column(VALUE), KeyReader.of(relation, avro)
        if not keys.in_rows and not values.null_count:
            return AvroPart(ArrowPart(name, raw), 0, frozenset(), raw, wrong, avro)
        objects = (None if is_null else b"{}" for is_null in values.is_null().to_pylist())
        lines = keys.lines(raw.column(KEY).to_pylist(), [*objects], wrong)
        told = ReceivedLines.of(replace(relation, options={**relation.options, "format": "json"}), name, lines, 0)
        return AvroPart(told.lines, 0, frozenset(), raw, wrong, avro, keys)

    def check(self, fields: tuple[Field, ...], op: str | None) -> None:
        """Do nothing: each message has its schema."""

    def check_read(self, fields: Sequence[Field]) -> None:
        """Do nothing: each message has its schema."""

    def read(
        self, start: int, stop: int, fields: tuple[Field, ...], op: str | None, with_checksum: bool = False
    ) -> FileRows:
        raw, wrong, keys = self.raw.slice(start, stop - start), dict[int, Problem](), self.keys
        change = [Field(name, VARCHAR) for name in columns_of_change(op)]
        found = self.avro.columns(raw.column(VALUE), [*change, *fields], wrong)
        told, columns = found[: len(change)], found[len(change) :]
        if keys is not None:
            loose = tuple(replace(field, nullable=True, nested=()) for field in fields)
            there = MessagePart.read(self, start, stop, loose, None)
            wrong |= there.wrong
            is_gone = raw.column(VALUE).is_null()
            for i, field in enumerate(fields):
                if field not in keys.fields:
                    columns[i] = pc.coalesce(there.table.column(i), columns[i])
                elif keys.in_rows:
                    columns[i] = there.table.column(i)
                else:
                    columns[i] = pc.if_else(is_gone, there.table.column(i), columns[i])
        for column, field in zip(columns, fields, strict=True):
            if not field.nullable and column.null_count:
                note_nulls(column.is_null(), field, wrong)
        names, images = [field.name for field in fields], 0
        if op:
            operations = decode_op(*told, name=op, wrong=wrong)
            columns, names = [*columns, operations.multiplicities], [*names, MULT]
            images = 0 if operations.images is None else int(operations.images.sum())
        table = pa.table(columns, names) if columns else table_without_columns(stop - start)
        return FileRows(table, wrong, images=images, is_ordered=self.is_ordered)


@dataclass(frozen=True, slots=True)
class KeyReader:
    """A reader of keys.

    Args:
        avro: The schemas of keys that are Avro.
        fields: The columns that are in keys, or of tombstones only.
        in_rows: The columns of rows are in keys, too.
        is_text: A key is the text of one column, else an object.
        gone: What a tombstone says beside its key.
    """

    fields: tuple[Field, ...]
    in_rows: bool
    is_text: bool
    gone: bytes
    avro: AvroFormat | None = None

    @staticmethod
    def of(relation: Relation, avro: AvroFormat | None = None) -> "KeyReader":
        """Choose the columns that options name, or those of the PRIMARY KEY."""
        names = [name.strip().lower() for name in relation.options.get("key", "").split(",") if name.strip()]
        wanted = names or [name.lower() for name in relation.primary_key]
        fields = tuple(f for f in relation.fields if f.name.lower() in wanted)
        is_text = len(fields) == 1 and relation.options.get("key.format", "text") == "text"
        told = relation.options.get("tombstone", OPERATION)
        gone = _GONE if told == OPERATION else json.dumps(told).encode() + b': "true"'
        is_avro = relation.options.get("key.format") == AVRO
        return KeyReader(fields, bool(names), is_text, gone, avro if is_avro else None)

    def lines(
        self, keys: Sequence[bytes | None], values: Sequence[bytes | None], wrong: dict[int, Problem]
    ) -> list[bytes]:
        """Write messages as lines; faults of keys are noted."""
        found = keys if self.avro is None else [*map(self._as_json, self.avro.records(keys))]
        return [self.line(key, value, row, wrong) for row, (key, value) in enumerate(zip(found, values, strict=True))]

    def _as_json(self, record: Any) -> bytes | None:
        """Write a key of Avro as JSON; one value is that of the one column."""
        named = {self.fields[0].path[0]: record} if record is not None and not isinstance(record, dict) else record
        return None if named is None else json.dumps(named, default=str).encode()

    def line(self, key: bytes | None, value: bytes | None, row: int, wrong: dict[int, Problem]) -> bytes:
        """Write a message as a line; a fault of its key is noted."""
        if value is not None and not self.in_rows:
            return value
        members = self._members(key)
        if members is None:
            shown = "none" if key is None else shorten(repr(key.decode(errors="backslashreplace")))
            wanted = f"the text of {self.fields[0].name}" if self.is_text else "an object of JSON"
            wrong[row] = Problem("SQ4003", f"the key of the message is {shown}, not {wanted}")
            return b"{}"
        if value is None:
            return b"{" + members + b", " + self.gone + b"}"
        rest = value.lstrip()
        if not rest.startswith(b"{"):
            return value
        rest = rest[1:].lstrip()
        return b"{" + members + (b"" if rest.startswith(b"}") else b", ") + rest

    def _members(self, key: bytes | None) -> bytes | None:
        """Write a key as members of an object; None if it is no key."""
        if key is None:
            return None
        if self.is_text:
            (only,) = self.fields
            plain = _NUMBER.match(key) if only.type.is_numeric else None
            text = key if plain else json.dumps(key.decode(errors="replace"), ensure_ascii=False).encode()
            return b"%s: %s" % (json.dumps(only.path[0]).encode(), text)
        try:
            found = json.loads(key)
        except ValueError:
            return None
        if isinstance(found, dict) and isinstance(found.get("payload"), dict) and "schema" in found:
            found = found["payload"]  # NB: Debezium's keys may come with their schema
        return json.dumps(found, ensure_ascii=False)[1:-1].encode() if isinstance(found, dict) and found else None


def _lines_of(name: str, values: pa.ChunkedArray) -> JsonPart:
    """Make values lines of JSON, of which it is known where each begins."""
    rows, chunks = len(values), [spans(chunk) for chunk in values.chunks if len(chunk)]
    size = sum(int(ends[-1] - ends[0] + (np.diff(ends) == 0).sum()) + len(ends) - 1 for ends, _ in chunks)
    text, starts = new_bytes(None, size), np.empty(rows, np.int64)
    place, at, first = np.frombuffer(text, np.uint8).ctypes.data, 0, 0
    for ends, data in chunks:
        at = join_lines(data, ends, len(ends) - 1, place, at, starts[first:])
        first += len(ends) - 1
    index = Index(rows, size, starts[::EVERY], np.arange(1, rows + 1, EVERY), False)
    return JsonPart(ReceivedText("", size, 0, name, data=text), LINES, index)
