"""Rows as messages: a key, and a value as JSON or Avro; a row that goes has none, which makes its message a tombstone.

mode upsert   −(ann, 3)              →   ann: nothing
              u(bob, 4)              →   bob: {"name": "bob", "n": 4}
mode changes  7, +, (bob, 4)         →   {"batch": 7, "op": "+", "name": "bob", "n": 4}
"""

import pyarrow as pa
import pyarrow.compute as pc

from squallpy.base.errors import SquallError
from squallpy.base.records import dataclass
from squallpy.catalog.sink_spec import UPSERT, SinkSpec
from squallpy.runtime.connectors.kafka.avro_messages import AVRO, AvroFormat
from squallpy.runtime.connectors.kafka.avro_rows import AvroRows
from squallpy.runtime.connectors.kafka.native_producer import Messages
from squallpy.runtime.formats.json_lines import json_objects
from squallpy.runtime.formats.text_columns import cells
from squallpy.runtime.sinks.change_table import DELETE


@dataclass(frozen=True)
class RowEncoding:
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
    def of(cls, spec: SinkSpec, topic: str, schema: pa.Schema, added: int) -> "RowEncoding":
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

    def messages(self, rows: pa.Table, batch: int) -> Messages:
        """Encode the rows of a batch, in their order."""
        keys, own = self._keys(rows, batch), rows.select(self.values)
        values = self.avro_value.records(own) if self.avro_value else objects(own)
        if self.spec.mode == UPSERT:
            values = pc.if_else(pc.equal(rows.column("op"), DELETE), pa.scalar(None, pa.binary()), values)
        return Messages(keys, values)

    def _keys(self, rows: pa.Table, batch: int) -> pa.Array | pa.ChunkedArray:
        if not self.key:
            return pa.nulls(len(rows), pa.binary())
        if self.avro_key:
            return self.avro_key.records(rows.select(self.key))
        if not self.is_text:
            return objects(rows.select(self.key))
        (name,) = self.key
        column = rows.column(name).combine_chunks()
        if column.null_count:
            message = f'batch {batch:,} has NULL as the key "{name}", for which there is no text'
            raise SquallError("SQ7006", message, self.spec.place("key"), "write key.format 'json'")
        return cells(column).cast(pa.binary())


def objects(rows: pa.Table) -> pa.ChunkedArray:
    """Encode rows as objects of JSON."""
    return pa.chunked_array([some.cast(pa.binary()) for some in json_objects(rows)], pa.binary())
