"""Answers to what clients ask about a session: its schemas, and the views and tables that they can read."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

import pyarrow as pa

from squallpy.base.errors import SquallError
from squallpy.base.records import dataclass
from squallpy.catalog.catalog import ViewDefinition
from squallpy.catalog.relation import Field, Relation
from squallpy.flight.messages import (
    CommandGetCatalogs,
    CommandGetCrossReference,
    CommandGetDbSchemas,
    CommandGetExportedKeys,
    CommandGetImportedKeys,
    CommandGetPrimaryKeys,
    CommandGetSqlInfo,
    CommandGetTables,
    CommandGetTableTypes,
    CommandGetXdbcTypeInfo,
)
from squallpy.flight.sql_info import SCHEMA as FACTS
from squallpy.flight.sql_info import facts_table
from squallpy.flight.wire import Message
from squallpy.live.open_session import OpenSession
from squallpy.runtime.evaluate.vectors import arrow_type

CATALOG, MAIN = "squallpy", "main"
"""The catalogue, and the schema of names that have none."""
TABLE, VIEW = KINDS = ("TABLE", "VIEW")
_ARROW = {"utf8": pa.string(), "int32": pa.int32(), "uint8": pa.uint8(), "bool": pa.bool_(), "binary": pa.binary()}


@dataclass(frozen=True, slots=True)
class Readable:
    """A view or static table that clients can read."""

    schema: str
    name: str
    kind: str
    fields: tuple[Field, ...]


def result_schema(fields: Iterable[Field]) -> pa.Schema:
    """Return the Arrow schema of rows, with the SQL types of their columns as metadata; nested values are JSON."""
    return pa.schema(
        [
            pa.field(field.name, arrow_type(field.type), metadata={"ARROW:FLIGHT:SQL:TYPE_NAME": str(field.type)})
            for field in fields
        ]
    )


def schema_of(command: Message) -> pa.Schema | None:
    """Return the columns of the answer to a question about a session; None for another command."""
    if isinstance(command, CommandGetTables) and command.include_schema:
        return _SCHEMAS[CommandGetTables].append(pa.field("table_schema", pa.binary(), nullable=False))
    return _SCHEMAS.get(type(command))


def answer(command: Message, session: OpenSession) -> pa.Table:
    """Answer a question about a session, which has a schema."""
    if isinstance(command, CommandGetSqlInfo):
        return facts_table(command.info)
    schema = schema_of(command)
    assert schema
    rows = [*_rows(command, session)]
    arrays = [pa.array([row[i] for row in rows], field.type) for i, field in enumerate(schema)]
    return pa.Table.from_arrays(arrays, schema=schema)


def _rows(command: Message, session: OpenSession) -> Sequence[tuple[Any, ...]]:
    match command:
        case CommandGetCatalogs():
            return [(CATALOG,)]
        case CommandGetTableTypes():
            return [(kind,) for kind in KINDS]
        case CommandGetDbSchemas(catalog, pattern):
            schemas = {MAIN, *(each.schema for each in list_readable(session))}
            return [(CATALOG, name) for name in sorted(schemas) if _is_in(catalog) and _matches(pattern, name)]
        case CommandGetTables(catalog, schemas, names, kinds, include_schema):
            found = [
                each
                for each in list_readable(session)
                if _is_in(catalog) and _matches(schemas, each.schema) and _matches(names, each.name)
                if not kinds or each.kind in kinds
            ]
            found.sort(key=lambda each: (each.schema, each.name, each.kind))
            more = [(result_schema(each.fields).serialize().to_pybytes(),) if include_schema else () for each in found]
            return [(CATALOG, each.schema, each.name, each.kind, *rest) for each, rest in zip(found, more, strict=True)]
    return []


def list_readable(session: OpenSession) -> Iterator[Readable]:
    """List the views and static tables of a session, without views of streams that are not materialized."""
    for entry in [*session.catalog.entries.values()]:
        match entry:
            case Relation(stream=False) if not (entry.is_computed or entry.is_implied):
                kind = TABLE
            case ViewDefinition(is_materialized=materialized, query=query) if materialized or not session.reads_streams(
                query
            ):
                kind = VIEW
            case _:
                continue
        schema, _, name = entry.name.rpartition(".")
        with suppress(SquallError):  # NB: it may be dropped meanwhile
            yield Readable(schema or MAIN, name, kind, session.columns(entry.name))


def _is_in(catalog: str | None) -> bool:
    """True if a catalogue that is asked for is ours; any is if none is named."""
    return catalog is None or catalog == CATALOG


def _matches(pattern: str | None, name: str) -> bool:
    r"""True if a name is LIKE a pattern, in any case, or there is no pattern: 'a\_%' matches a_b."""
    if pattern is None:
        return True
    wild: Mapping[str, str] = {"%": ".*", "_": "."}
    parts = re.findall(r"\\[\\%_]|.", pattern, re.DOTALL)
    written = "".join(wild.get(part) or re.escape(part[-1]) for part in parts)
    return re.fullmatch(written, name, re.IGNORECASE | re.DOTALL) is not None


def _schema(text: str) -> pa.Schema:
    """Make a schema of words: a:utf8 b:int32! has columns a, and b, which is never NULL."""
    columns = (word.partition(":")[::2] for word in text.split())
    return pa.schema([pa.field(name, _ARROW[kind.rstrip("!")], not kind.endswith("!")) for name, kind in columns])


_PAIR = (
    "pk_catalog_name:utf8 pk_db_schema_name:utf8 pk_table_name:utf8! pk_column_name:utf8! fk_catalog_name:utf8 "
    "fk_db_schema_name:utf8 fk_table_name:utf8! fk_column_name:utf8! key_sequence:int32! fk_key_name:utf8 "
    "pk_key_name:utf8 update_rule:uint8! delete_rule:uint8!"
)
_TYPE = (
    "type_name:utf8! data_type:int32! column_size:int32 literal_prefix:utf8 literal_suffix:utf8 create_params:utf8 "
    "nullable:int32! case_sensitive:bool! searchable:int32! unsigned_attribute:bool fixed_prec_scale:bool! "
    "auto_increment:bool local_type_name:utf8 minimum_scale:int32 maximum_scale:int32 sql_data_type:int32! "
    "datetime_subcode:int32 num_prec_radix:int32 interval_precision:int32"
)
_SCHEMAS: Mapping[type[Message], pa.Schema] = {
    CommandGetSqlInfo: FACTS,
    CommandGetCatalogs: _schema("catalog_name:utf8!"),
    CommandGetDbSchemas: _schema("catalog_name:utf8 db_schema_name:utf8!"),
    CommandGetTables: _schema("catalog_name:utf8 db_schema_name:utf8 table_name:utf8! table_type:utf8!"),
    CommandGetTableTypes: _schema("table_type:utf8!"),
    CommandGetPrimaryKeys: _schema(
        "catalog_name:utf8 db_schema_name:utf8 table_name:utf8! column_name:utf8! key_name:utf8 key_sequence:int32!"
    ),
    CommandGetExportedKeys: _schema(_PAIR),
    CommandGetImportedKeys: _schema(_PAIR),
    CommandGetCrossReference: _schema(_PAIR),
    CommandGetXdbcTypeInfo: _schema(_TYPE),
}
