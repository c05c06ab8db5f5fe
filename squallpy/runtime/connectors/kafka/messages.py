"""Messages as rows: values as JSON lines, with columns that are in keys, and tombstones.

key 7, value {"v": 5}   with key 'id'           →   {"id": 7, "v": 5}
key 7, no value         changelog 'upsert'      →   {"id": 7, "__op": -1}

A message that cannot be read is told by its partition and offset.
"""

import base64
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa

from squallpy.base.errors import shorten
from squallpy.catalog.relation import OPERATION, Field, Relation
from squallpy.runtime.formats.file_rows import FileRows
from squallpy.runtime.formats.type_conversion import Problem
from squallpy.runtime.sources.foreign_source import ForeignSource
from squallpy.runtime.sources.received_lines import ReceivedLines
from squallpy.runtime.sources.source import SourceFile

KEY, VALUE, PARTITION, OFFSET = COLUMNS = ("key", "value", "partition", "offset")
SCHEMA = pa.schema([(KEY, pa.binary()), (VALUE, pa.binary()), (PARTITION, pa.int32()), (OFFSET, pa.int64())])
_NUMBER = re.compile(rb"-?(0|[1-9][0-9]*)(\.[0-9]+)?\Z")
_GONE = b'"%s": -1' % OPERATION.encode()


@dataclass
class MessageSource(ForeignSource):
    """A relation whose rows are messages."""

    def asked(self, columns: Sequence[str]) -> tuple[str, ...]:
        return COLUMNS

    def part(self, raw: pa.Table, first: int) -> SourceFile:
        return MessagePart.of_json(self.relation, self.name, raw)


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
    def of_json(relation: Relation, name: str, raw: pa.Table) -> "MessagePart":
        """Parse values as JSON."""
        wrong, values = dict[int, Problem](), raw.column(VALUE).to_pylist()
        keys = KeyReader.of(relation)
        if keys.in_rows or None in values:
            both = enumerate(zip(raw.column(KEY).to_pylist(), values, strict=True))
            values = [keys.line(key, value, row, wrong) for row, (key, value) in both]
        lines = ReceivedLines.of(relation, name, [_one_line(value) for value in values], 0)
        return MessagePart(lines.lines, 0, lines.unclosed, raw, wrong)

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
        return replace(rows, wrong=rows.wrong | wrong) if wrong else rows

    def _at(self, column: str, row: int) -> Any:
        return self.raw.column(column)[row].as_py()


@dataclass(frozen=True, slots=True)
class KeyReader:
    """A reader of keys.

    Args:
        fields: The columns that are in keys, or of tombstones only.
        in_rows: The columns of rows are in keys, too.
        is_text: A key is the text of one column, else an object.
        gone: What a tombstone says beside its key.
    """

    fields: tuple[Field, ...]
    in_rows: bool
    is_text: bool
    gone: bytes

    @staticmethod
    def of(relation: Relation) -> "KeyReader":
        """Choose the columns that options name, or those of the PRIMARY KEY."""
        names = [name.strip().lower() for name in relation.options.get("key", "").split(",") if name.strip()]
        wanted = names or [name.lower() for name in relation.primary_key]
        fields = tuple(f for f in relation.fields if f.name.lower() in wanted)
        is_text = len(fields) == 1 and relation.options.get("key.format", "text") == "text"
        told = relation.options.get("tombstone", OPERATION)
        gone = _GONE if told == OPERATION else json.dumps(told).encode() + b': "true"'
        return KeyReader(fields, bool(names), is_text, gone)

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


def _one_line(value: bytes) -> bytes:
    return value.replace(b"\n", b" ").replace(b"\r", b" ") if b"\n" in value or b"\r" in value else value
