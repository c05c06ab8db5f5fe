"""Rows as records of Avro, of a schema that is made of their columns.

k INT, s DECIMAL(12,2)   →   {"type": "record", "fields": [{"name": "k", "type": ["null", "int"], …}, …], …}
"""

import io
import json
import re
from typing import Any

import pyarrow as pa

from squallpy.base.errors import SquallError
from squallpy.base.records import dataclass
from squallpy.catalog.sink_spec import SinkSpec
from squallpy.runtime.connectors.kafka.avro_messages import AvroFormat
from squallpy.runtime.formats.avro_schema import library
from squallpy.runtime.formats.text_columns import text_column

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")


@dataclass(frozen=True)
class AvroRows:
    """The encoding of rows as records.

    Args:
        parsed: The schema as fastavro has it.
        head: The bytes before each record.
    """

    parsed: Any
    head: bytes

    @classmethod
    def of(cls, spec: SinkSpec, topic: str, part: str, schema: pa.Schema, avro: AvroFormat) -> "AvroRows":
        """Choose the schema of values or keys, and its number in the registry; SQ7005 for a name that Avro forbids."""
        if avro.registry is None:
            return cls(library().parse_schema(json.loads(avro.schema)), b"")
        for name in schema.names:
            if not _NAME.match(name):
                message = f'"{name}" is no name of a field of Avro'
                raise SquallError("SQ7005", message, spec.place("format"), "rename it in the query: … AS …")
        fields = [{"name": f.name, "type": ["null", _avro_type(f.type)], "default": None} for f in schema]
        name = re.sub(r"[^A-Za-z0-9_]", "_", f"{topic}_{part}")
        made = {"type": "record", "name": name if _NAME.match(name) else f"_{name}", "fields": fields}
        number = avro.registry.register(f"{topic}-{part}", json.dumps(made))
        return cls(library().parse_schema(made), b"\0" + number.to_bytes(4, "big"))

    def records(self, rows: pa.Table) -> pa.Array | pa.ChunkedArray:
        """Encode rows."""
        write, found = library().schemaless_writer, list[bytes]()
        for row in pa.table([_written(column) for column in rows.columns], rows.column_names).to_pylist():
            out = io.BytesIO(self.head)
            out.seek(len(self.head))
            write(out, self.parsed, row)
            found.append(out.getvalue())
        return pa.array(found, pa.binary())


def _written(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Convert times to numbers, and intervals, for which Avro has no type of their precision, to texts."""
    if pa.types.is_duration(column.type):
        return text_column(column)
    if pa.types.is_temporal(column.type):
        return column.cast(pa.int32() if column.type.bit_width == 32 else pa.int64())
    return column


def _avro_type(type: pa.DataType) -> Any:
    """Name the type of Avro that holds the values of a column; what is nested is JSON."""
    if pa.types.is_decimal(type):
        return {"type": "bytes", "logicalType": "decimal", "precision": type.precision, "scale": type.scale}
    if pa.types.is_date(type):
        return {"type": "int", "logicalType": "date"}
    if pa.types.is_timestamp(type):
        return {"type": "long", "logicalType": "timestamp-micros"}
    if pa.types.is_integer(type):
        return "int" if type.bit_width <= 32 else "long"
    if pa.types.is_floating(type):
        return "double"
    return "boolean" if pa.types.is_boolean(type) else "string"
