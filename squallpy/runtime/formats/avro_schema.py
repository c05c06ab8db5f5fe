"""Schemas of Avro as types of Arrow.

{"type": "long", "logicalType": "timestamp-millis"}   →   timestamp[ms, UTC]
{"type": "int", "connect.name": "io.debezium.time.Date"}   →   date32
"""

from collections.abc import Sequence
from types import ModuleType
from typing import Any

import pyarrow as pa

from squallpy.base.errors import SquallError

NUMBERS = {"int": pa.int32(), "long": pa.int64(), "float": pa.float32(), "double": pa.float64()}
PLAIN = NUMBERS | {"null": pa.null(), "boolean": pa.bool_(), "bytes": pa.binary(), "string": pa.string()}
TIMES = {
    "date": pa.date32(), "time-millis": pa.time32("ms"), "time-micros": pa.time64("us"),
    **{f"timestamp-{name}": pa.timestamp(unit, "UTC") for name, unit in (("millis", "ms"), ("micros", "us"))},
    **{f"local-timestamp-{name}": pa.timestamp(unit) for name, unit in (("millis", "ms"), ("micros", "us"))},
}  # fmt: skip
DEBEZIUM = {
    "io.debezium.time.Date": pa.date32(), "io.debezium.time.Timestamp": pa.timestamp("ms"),
    "io.debezium.time.MicroTimestamp": pa.timestamp("us"),
}  # fmt: skip
"""Types that Debezium names beside numbers of Avro."""


def library() -> ModuleType:
    """Import fastavro; SQ8009 if it is not installed."""
    try:
        import fastavro
    except ImportError:
        hint = "install it: pip install 'squallpy[avro]'"
        raise SquallError("SQ8009", "USING avro needs the package fastavro", hint=hint) from None
    return fastavro


def arrow_type(schema: Any, named: dict[str, Any]) -> pa.DataType | None:
    """Choose the Arrow type of a schema; None if there is none, as for unions of other types than numbers and null."""
    if isinstance(schema, list):
        return _union([arrow_type(each, named) for each in schema if each != "null"])
    if isinstance(schema, str):
        return PLAIN.get(schema) or named.get(schema)
    kind, logical = schema["type"], schema.get("logicalType")
    if logical == "decimal" and schema["precision"] <= 38:
        return pa.decimal128(schema["precision"], schema.get("scale", 0))
    if known := DEBEZIUM.get(schema.get("connect.name", "")) or TIMES.get(logical or ""):
        return known
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
