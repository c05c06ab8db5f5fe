"""Messages whose values or keys are Avro: numbered by a registry, or all of one schema that is given.

bytes of a registry   0  0 0 0 7  …      the schema 7, and a record of it
"""

import io
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from squallpy.base.errors import SquallError
from squallpy.base.records import dataclass
from squallpy.base.secrets import resolve
from squallpy.catalog.relation import Field
from squallpy.runtime.connectors.kafka.librdkafka import spans
from squallpy.runtime.connectors.kafka.schema_registry import SchemaRegistry
from squallpy.runtime.evaluate.text_column_casts import column_type
from squallpy.runtime.formats.avro_program import Path, program_of
from squallpy.runtime.formats.avro_schema import arrow_type, library, without_logical
from squallpy.runtime.formats.type_conversion import Problem, conform

AVRO = "avro"
HEADER = 5  # bytes before a record: a zero and the number of its schema
_NULL, _SHORT = -1, -2  # in the place of a header: no message, and one that has none
_NONE = pa.array([], pa.binary())
Wrong = dict[int, Problem]


@dataclass(frozen=True)
class AvroFormat:
    """Records of Avro in messages.

    Args:
        schema: The schema of all, where there is no registry.
    """

    registry: SchemaRegistry | None
    schema: str = ""

    @classmethod
    def of(cls, options: Mapping[str, str]) -> "AvroFormat":
        """Read the options of a connector; SQ7002 if they name neither a registry nor a schema."""
        registry, schema = SchemaRegistry.of(options), resolve(options.get("avro.schema", ""))
        if registry is None and not schema:
            hint = "write OPTIONS (schema.registry.url 'http://…'), or avro.schema '{…}'"
            raise SquallError("SQ7002", "messages of Avro need a schema registry, or a schema", hint=hint)
        if schema:
            try:
                library().parse_schema(json.loads(schema))
            except (ValueError, LookupError, TypeError, library().schema.SchemaParseException) as error:
                raise SquallError("SQ7002", f"avro.schema is no schema of Avro: {error}") from None
        return cls(registry, schema)

    def columns(self, values: pa.ChunkedArray, fields: Sequence[Field], wrong: Wrong) -> list[pa.ChunkedArray]:
        """Decode records to fields in their types; those that are none are noted, and NULL, as what is missing is."""
        found, order = list[list[pa.ChunkedArray]](), list[npt.NDArray[np.int64]]()
        loose = tuple(replace(field, nullable=True) for field in fields)
        whole = values.chunk(0) if values.num_chunks == 1 else pa.concat_arrays([*values.chunks, _NONE])
        for rows, schema, some in self._groups(whole, wrong):
            faults = Wrong()
            raw = _decoded(schema, some, HEADER if self.registry else 0, tuple(f.path for f in fields), faults)
            found.append([*map(_chunked, conform(raw, loose, faults))])
            wrong.update({int(rows[row]): problem for row, problem in faults.items()})
            order.append(rows)
        if len(order) == 1 and len(order[0]) == len(values):
            return found[0]
        at = np.full(len(values), -1)
        for first, rows in zip(np.cumsum([0, *map(len, order)]), order, strict=False):
            at[rows] = first + np.arange(len(rows))
        places = pa.array(at, mask=at < 0)
        types = [column_type(field.type) for field in fields]
        joined = [pa.chunked_array([c for each in found for c in each[i].chunks], t) for i, t in enumerate(types)]
        return [column.take(places) for column in joined]

    def records(self, values: Sequence[bytes | None]) -> Iterator[Any]:
        """Decode records one by one; None for those that are none."""
        for value in values:
            schema: str | None = self.schema
            if self.registry and value is not None:
                is_numbered = len(value) >= HEADER and value[0] == 0
                schema = self.registry.schema(int.from_bytes(value[1:HEADER], "big")) if is_numbered else None
            yield None if value is None or schema is None else _record(schema, value[HEADER if self.registry else 0 :])

    def _groups(self, values: pa.Array, wrong: Wrong) -> Iterator[tuple[npt.NDArray[np.int64], str, pa.Array]]:
        """Group messages by their schema: their numbers, the schema, and they."""
        if self.registry is None:
            rows = np.flatnonzero(np.asarray(values.is_valid()))
            yield rows, self.schema, values if len(rows) == len(values) else values.take(pa.array(rows))
            return
        heads = _heads(values)
        is_one = len(heads) > 0 and bool((heads == heads[0]).all())
        for head in heads[:1].tolist() if is_one else np.unique(heads[heads != _NULL]).tolist():
            if head == _NULL:
                continue
            rows, is_numbered = np.flatnonzero(heads == head), 0 <= head < 1 << 32
            schema = self.registry.schema(head) if is_numbered else None
            if schema is not None:
                yield rows, schema, values if len(rows) == len(values) else values.take(pa.array(rows))
                continue
            what = f"{self.registry} has no schema {head} of Avro" if is_numbered else "it names no schema"
            wrong.update(dict.fromkeys(rows.tolist(), Problem("SQ4003", f"the message is no Avro: {what}")))


def _heads(values: pa.Array) -> npt.NDArray[np.int64]:
    """Read what is before each record as a number, which is the schema's; those that are too short have none."""
    ends, data = spans(values)
    starts, found = ends[:-1], np.full(len(values), _SHORT)
    is_long = np.diff(ends) >= HEADER
    at = starts if is_long.all() else starts[is_long]
    head = np.zeros(len(at), np.int64)
    for byte in range(HEADER):
        head = head << 8 | data[at + byte]
    found[is_long] = head
    if values.null_count:
        found[np.asarray(values.is_null())] = _NULL
    return found


def _decoded(schema: str, values: pa.Array, header: int, paths: tuple[Path, ...], wrong: Wrong) -> pa.Table:
    """Decode records of one schema to columns, which are numbered; those that are none are noted."""
    program = program_of(schema, paths)
    if program is None:
        return _by_library(schema, values.to_pylist(), header, paths, wrong)
    ends, data = spans(values)
    places = ends.astype(np.int64)
    columns, faults = program.run(data, places[:-1] + header, places[1:])
    for row in np.flatnonzero(faults).tolist():
        wrong[row] = _NO_RECORD
    return pa.table(columns, [str(i) for i in range(len(paths))])


_NO_RECORD = Problem("SQ4003", "the message is no record of its schema")


def _by_library(schema: str, values: Sequence[bytes], header: int, paths: Sequence[Path], wrong: Wrong) -> pa.Table:
    """Decode records by fastavro, those with arrays and maps."""
    records = [_record(schema, value[header:]) for value in values]
    wrong.update({row: _NO_RECORD for row, record in enumerate(records) if record is None})
    whole = arrow_type(json.loads(schema), {})
    columns = list[pa.Array]()
    for path in paths:
        type, inside = whole, [*records]
        for name in path:
            if not name:
                type, inside = pa.string(), [None if each is None else "true" for each in inside]
                break
            fields = type if type and pa.types.is_struct(type) else ()
            inner = next((f for f in fields if f.name.lower() == name.lower()), None)
            inside = [each and inner and each.get(inner.name) for each in inside]
            type = inner.type if inner else None
        columns.append(pa.array(inside, type) if type else pa.nulls(len(inside)))
    return pa.table(columns, [str(i) for i in range(len(paths))])


@lru_cache(maxsize=256)
def _plain(schema: str) -> Any:
    return library().parse_schema(without_logical(json.loads(schema)))


def _record(schema: str, data: bytes) -> Any:
    """Decode a record; None if it is none."""
    source = io.BytesIO(data)
    try:
        found = library().schemaless_reader(source, _plain(schema), None)
    except Exception:  # NB: of bytes that are no record fastavro raises whatever comes to its mind
        return None
    return found if source.tell() == len(data) else None


def _chunked(column: pa.Array | pa.ChunkedArray) -> pa.ChunkedArray:
    return column if isinstance(column, pa.ChunkedArray) else pa.chunked_array([column])
