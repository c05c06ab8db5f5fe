"""Rows as messages: a key, and a value as JSON or Avro; a row that goes has none, which makes its message a tombstone.

mode upsert   −(ann, 3)              →   ann: nothing
              u(bob, 4)              →   bob: {"name": "bob", "n": 4}
mode changes  7, +, (bob, 4)         →   {"batch": 7, "op": "+", "name": "bob", "n": 4}
"""

from collections.abc import Iterator, Sequence

import pyarrow as pa

from squallpy.base.errors import SquallError
from squallpy.base.records import dataclass
from squallpy.catalog.sink_spec import UPSERT, SinkSpec
from squallpy.runtime.connectors.kafka.avro_messages import AVRO, AvroFormat
from squallpy.runtime.connectors.kafka.avro_rows import AvroRows
from squallpy.runtime.formats.json_lines import json_rows
from squallpy.runtime.formats.text_columns import cells
from squallpy.runtime.sinks.change_table import DELETE

Message = tuple[bytes | None, bytes | None, list[tuple[str, str | bytes | None]]]
"""The key, the value and the headers of a message."""


@dataclass(frozen=True)
class Encoding:
    """The encoding of rows of a sink.

    Args:
        schema: The rows as they come.
        values: The columns of values.
        key: The columns of keys; none: messages have no key.
        is_text: A key is the text of its column, else an object.
        avro_key: Makes keys of rows, if they are Avro.
        avro_value: Makes values of rows, if they are Avro.
    """

    spec: SinkSpec
    schema: pa.Schema
    values: tuple[str, ...]
    key: tuple[str, ...]
    is_text: bool
    avro_key: AvroRows | None = None
    avro_value: AvroRows | None = None

    @classmethod
    def of(cls, spec: SinkSpec, topic: str, schema: pa.Schema, added: int) -> "Encoding":
        """Choose the encoding that a declaration says, of rows with so many columns in front."""
        key = spec.key or ()
        values = schema.names[added if spec.mode == UPSERT else 0 :]
        formats = {"key": spec.options.get("key.format", "text"), "value": spec.options.get("format", "json")}
        avro = AvroFormat.of(spec.options) if AVRO in formats.values() else None
        made = dict[str, AvroRows]()
        for part, names in (("key", key), ("value", values)):
            if formats[part] == AVRO and avro and names:
                made[part] = AvroRows.of(spec, topic, part, pa.schema([schema.field(name) for name in names]), avro)
        is_text = len(key) == 1 and formats["key"] == "text"
        return cls(spec, schema, tuple(values), key, is_text, made.get("key"), made.get("value"))

    def messages(self, rows: pa.Table, batch: int) -> list[Message]:
        """Encode the rows of a batch, in their order."""
        keys, own = self._keys(rows, batch), rows.select(self.values)
        values = self.avro_value.records(own) if self.avro_value else objects(own)
        if self.spec.mode != UPSERT:
            return [(key, value, []) for key, value in zip(keys, values, strict=True)]
        went = (op == DELETE for op in rows.column("op").to_pylist())
        return [(key, None if gone else value, []) for key, value, gone in zip(keys, values, went, strict=True)]

    def _keys(self, rows: pa.Table, batch: int) -> Sequence[bytes | None] | Iterator[bytes]:
        if not self.key:
            return [None] * len(rows)
        if self.avro_key:
            return self.avro_key.records(rows.select(self.key))
        if not self.is_text:
            return objects(rows.select(self.key))
        (name,) = self.key
        column = rows.column(name).combine_chunks()
        if column.null_count:
            message = f'batch {batch:,} has NULL as the key "{name}", for which there is no text'
            raise SquallError("SQ7006", message, self.spec.place("key"), "write key.format 'json'")
        return [text.encode() for text in cells(column).to_pylist()]


def objects(rows: pa.Table) -> Iterator[bytes]:
    """Encode rows as objects of JSON."""
    for lines in json_rows(rows):
        yield from lines.split(b"\n")[:-1]
