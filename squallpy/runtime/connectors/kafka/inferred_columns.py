"""Columns of messages of Avro that a relation does not list: those of the latest schema of its topic.

TOPIC-value   {"fields": [{"name": "id", "type": "long"}, {"name": "at", "type": {"logicalType": "date", …}}]}
    →   id BIGINT, at DATE

Of Debezium's envelopes they are those of `after`, with the fields of TOPIC-key as PRIMARY KEY.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import pyarrow as pa

from squallpy.base.errors import SquallError
from squallpy.catalog.relation import Field, Relation
from squallpy.runtime.connectors.kafka.avro_messages import AVRO, AvroFormat
from squallpy.runtime.connectors.kafka.messages import topic_of
from squallpy.runtime.connectors.kafka.schema_registry import SchemaRegistry
from squallpy.runtime.formats.avro_program import program_of
from squallpy.runtime.formats.avro_schema import arrow_type
from squallpy.runtime.formats.type_conversion import sql_type

_LIST = "list the columns after the name"


def infer(relation: Relation) -> tuple[tuple[Field, ...], tuple[str, ...]]:
    """Infer the columns of messages, and the primary key of envelopes; SQ4002 for those that have no schema."""
    if relation.row_format != AVRO:
        raise SquallError("SQ4002", "messages of JSON tell no columns", hint=_LIST)
    avro, topic, head = AvroFormat.of(relation.options), topic_of(relation), ("after",) if relation.is_debezium else ()
    schema = _latest(avro.registry, f"{topic}-value") if avro.registry else avro.schema
    fields = tuple(_columns(schema, head))
    if not fields:
        what = "is no envelope of Debezium" if head else "has no columns"
        raise SquallError("SQ4002", f"the schema of values of the topic {topic} {what}", hint=_LIST)
    names = {name.strip().lower() for name in relation.options.get("key", "").split(",") if name.strip()}
    if apart := names - {field.name.lower() for field in fields}:
        message = f'columns in keys alone are told by no schema of values: "{min(apart)}"'
        raise SquallError("SQ4002", message, hint=_LIST)
    key = _key(avro.registry, topic, fields) if head and avro.registry else ()
    return tuple(replace(field, nullable=field.name not in key) for field in fields), key


def _latest(registry: SchemaRegistry, subject: str) -> str:
    """Return the latest schema of a subject; SQ4002 if there is none."""
    if (found := registry.latest(subject)) is None:
        raise SquallError(
            "SQ4002", f"{registry} has no schema of Avro for {subject}, which would tell columns", hint=_LIST
        )
    return found


def _key(registry: SchemaRegistry, topic: str, fields: tuple[Field, ...]) -> tuple[str, ...]:
    """Name the columns of a topic's keys; none where keys are not of Avro, or have columns of their own."""
    known, schema = {field.name.lower(): field.name for field in fields}, registry.latest(f"{topic}-key")
    names = [name.lower() for name, _ in _members(json.loads(schema), ())] if schema else []
    return tuple(known[name] for name in names) if {*names} <= {*known} else ()


def _columns(schema: str, head: tuple[str, ...]) -> Iterator[Field]:
    """Yield the columns of a record within a schema, each in the type in which messages are decoded."""
    for name, kind in _members(json.loads(schema), head):
        program = program_of(schema, ((*head, name),))
        column = program.columns[0] if program else None
        type: pa.DataType | None = column.type if column else kind
        if type is not None and (found := sql_type(type)):
            yield Field(name, found)


def _members(schema: Any, head: tuple[str, ...]) -> list[tuple[str, pa.DataType | None]]:
    """List the fields of the record at a path, with their Arrow types; none if there is no record."""
    named, records = dict[str, Any](), dict[str, Any]()
    _note(schema, records)
    record = _record(schema, records)
    for name in head:
        inner = next((f["type"] for f in (record or {}).get("fields", ()) if f["name"] == name), None)
        record = _record(inner, records)
    if record is None:
        return []
    arrow_type(schema, named)
    return [(f["name"], arrow_type(f["type"], named)) for f in record["fields"]]


def _record(schema: Any, records: Mapping[str, Any]) -> Any:
    """Return the record that a schema is, names, or has beside null; None if it is none."""
    if isinstance(schema, list):
        others = [each for each in schema if each != "null"]
        schema = others[0] if len(others) == 1 else None
    if isinstance(schema, str):
        return records.get(schema)
    return schema if isinstance(schema, dict) and schema.get("type") == "record" else None


def _note(schema: Any, records: dict[str, Any]) -> None:
    """Note the records that are defined in a schema, by their names."""
    if isinstance(schema, list):
        for each in schema:
            _note(each, records)
    elif isinstance(schema, dict):
        if schema.get("type") == "record":
            records[schema["name"]] = schema
            records[f"{schema.get('namespace', '')}.{schema['name']}"] = schema
            for each in schema["fields"]:
                _note(each["type"], records)
        else:
            _note(schema.get("type"), records)
