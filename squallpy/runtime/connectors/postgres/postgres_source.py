"""Streams and tables of PostgreSQL as sources.

open_stream(relation, logs)   →   PostgresStream    a snapshot, then changes, from the log that streams of a slot share
open_table(relation)          →   PostgresTable     rows as they are, read once
"""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa

from squallpy.base.errors import SquallError
from squallpy.base.records import dataclass
from squallpy.catalog.format_options import STORED
from squallpy.catalog.relation import OPERATION, Field, Relation
from squallpy.runtime.connectors.postgres.connection import Server
from squallpy.runtime.connectors.postgres.pgoutput import Changes, LogFault, decode
from squallpy.runtime.connectors.postgres.slot_log import Member, SlotLog
from squallpy.runtime.connectors.postgres.snapshot import PieceSlice, copy_table
from squallpy.runtime.connectors.postgres.tables import NOT_FOLLOWED, ServerTable, find_table
from squallpy.runtime.formats.counted_table import concat_tables
from squallpy.runtime.sources.protocol import Backlog, BatchLimit, Offset, Slice, Source
from squallpy.runtime.sources.source import cut
from squallpy.runtime.sources.table_slice import TableSlice

SLOT, PUBLICATION, MODE = "slot.name", "publication.name", "snapshot.mode"
DEFAULT = "squall"


def infer(relation: Relation) -> tuple[tuple[Field, ...], tuple[str, ...]]:
    """Infer the columns and the primary key of a relation that lists none."""
    table = _table(relation, Server.of(relation.options))
    return table.fields, table.key


def open_source(relation: Relation, shared: dict[Any, Any]) -> Source:
    """Open a stream or a table; `shared`: the logs of the streams before."""
    server = Server.of(relation.options)
    if not relation.stream:
        return PostgresTable(relation, server)
    slot, publication = relation.options.get(SLOT, DEFAULT), relation.options.get(PUBLICATION, DEFAULT)
    mode = relation.options.get(MODE, "initial")
    log = shared.setdefault((str(server), slot), SlotLog(server, slot, publication, mode))
    if (log.publication, log.mode) != (publication, mode):
        message = f'the streams of the slot "{slot}" have other publications or snapshot modes'
        raise SquallError("SQ7002", message, hint="give each a slot.name of its own")
    return PostgresStream(relation, server, log)


class PostgresStream(Source):
    """A table whose changes are followed."""

    is_counted = False

    def __init__(self, relation: Relation, server: Server, log: SlotLog) -> None:
        table = _table(relation, server)
        self._relation, self._log, self._table = relation, log, table
        names = (table.column(field.path[0]) for field in relation.fields if not field.metadata)
        self._columns = tuple(column.name for column in names if column)
        self._member = Member(relation.name, _written(relation), self._columns, relation.primary_key, table)
        log.add(self._member)

    @property
    def is_replayable(self) -> bool:
        """True unless what was read is kept for views that come later."""
        return self._relation.options.get(STORED) != "true"

    @property
    def schema(self) -> pa.Schema:
        return _schema(self._table, [(OPERATION, pa.int64())])

    @property
    def shared_log(self) -> SlotLog:
        return self._log

    @property
    def rows(self) -> int:
        return self._table.rows

    @property
    def waits_for(self) -> str:
        return self._log.waits_for

    @property
    def is_behind(self) -> bool:
        return self._log.is_behind

    def check(self, columns: Sequence[str]) -> None:
        fields = (field for field in self._relation.fields if field.name in columns)
        found = (self._table.column(field.path[0]) for field in fields)
        self._member.read |= frozenset(column.name for column in found if column)

    def begin(self, folder: str | None, ends: bool) -> None:
        self._log.begin(self._relation.name, folder, ends)

    def initial(self) -> Offset:
        return self._log.initial()

    def latest(self, start: Offset, limit: BatchLimit) -> Offset:
        return self._log.latest(start, limit.rows)

    def split(self, start: Offset, end: Offset, tasks: int) -> Sequence[Slice]:
        name, pieces = self._relation.name, self._log.pieces
        parts: list[PieceSlice | Changes] = [pieces.slice(*each) for each in self._log.snapshot(name, start, end)]
        if end["lsn"] > start["lsn"]:
            parts += self._log.changes(name, start, end)
        if not parts:
            return []
        if len(parts) == 1 and isinstance(parts[0], Changes):
            parts = [*_cut(parts[0], tasks)]
        ends = [*(cut(0, len(parts), number, tasks) for number in range(tasks)), len(parts)]
        fields = enumerate(self._relation.fields)
        numbers = {f.path[0]: number for number, f in fields} if self._relation.is_keyed else None
        found = [parts[a:b] for a, b in pairwise(ends) if a < b]
        return [LogSlice(tuple(some), numbers) for some in found]

    def backlog(self, end: Offset) -> Backlog:
        return Backlog(*self._log.backlog(end))

    def committed(self, start: Offset, end: Offset) -> float | None:
        return self._log.committed_at(start, end)

    def commit(self, end: Offset) -> None:
        self._log.commit(self._relation.name, end)

    def close(self) -> None:
        self._log.remove(self._relation.name)


@dataclass(frozen=True, slots=True)
class LogSlice:
    """Rows of a snapshot, and changes behind it, which a task decodes."""

    parts: tuple[PieceSlice | Changes, ...]
    numbers: Mapping[str, int] | None

    @property
    def rows(self) -> None:
        """No number: it is known when they are read."""

    def read(self, columns: tuple[str, ...]) -> pa.Table:
        names = [name for name in columns if name != OPERATION]
        return concat_tables([self._read(part, names).select(list(columns)) for part in self.parts])

    def _read(self, part: PieceSlice | Changes, names: Sequence[str]) -> pa.Table:
        if isinstance(part, Changes):
            try:
                return decode(part, names, self.numbers)
            except LogFault as fault:
                raise SquallError(NOT_FOLLOWED, str(fault), hint="the batch before is whole") from None
        found = part.read()
        return _select(found, names).append_column(OPERATION, pa.array(np.ones(len(found), np.int64)))


class PostgresTable(Source):
    """Rows as they are when a run begins, which no one can read again later."""

    is_bounded, is_replayable, is_counted = True, False, True

    def __init__(self, relation: Relation, server: Server) -> None:
        self._relation, self._server, self._table = relation, server, _table(relation, server)
        self._found: pa.Table | None = None

    @property
    def schema(self) -> pa.Schema:
        return _schema(self._table, [])

    @property
    def rows(self) -> int:
        return self._table.rows

    def initial(self) -> Offset:
        return {"row": 0}

    def latest(self, start: Offset, limit: BatchLimit) -> Offset:
        return {"row": len(self._read())}

    def split(self, start: Offset, end: Offset, tasks: int) -> Sequence[Slice]:
        rows, first = self._read(), start["row"]
        return [TableSlice(rows.slice(first, end["row"] - first), first)]

    def commit(self, end: Offset) -> None:
        self._found = None

    def _read(self) -> pa.Table:
        if self._found is None:
            names = [field.path[0] for field in self._relation.fields if not field.metadata]
            parts = self._server.ask(lambda connection: [*copy_table(connection, self._table, names)])
            self._found = (
                concat_tables(parts) if parts else pa.table({name: pa.array([], pa.string()) for name in names})
            )
        return self._found


def _written(relation: Relation) -> str:
    return relation.options.get("table", relation.name)


def _table(relation: Relation, server: Server) -> ServerTable:
    """Find the table of a relation, and the columns that this names; SQ4001, SQ4002."""
    return server.ask(lambda connection: find_table(connection, _written(relation), server))


def _schema(table: ServerTable, added: Sequence[tuple[str, pa.DataType]]) -> pa.Schema:
    """Describe rows as they are read: all texts."""
    texts = [pa.field(column.name, pa.string(), column.nullable) for column in table.columns]
    return pa.schema([*texts, *(pa.field(*each) for each in added)])


def _select(rows: pa.Table, names: Sequence[str]) -> pa.Table:
    at = {name.lower(): i for i, name in enumerate(rows.column_names)}
    return pa.table([rows.column(at[name.lower()]) for name in names], list(names))


def _cut(changes: Changes, parts: int) -> list[Changes]:
    """Cut changes into parts, in order, of at least a thousand messages each."""
    parts = max(1, min(parts, len(changes.messages) // 1000))
    ends = [*(cut(0, len(changes.messages), number, parts) for number in range(parts)), len(changes.messages)]
    return [Changes(changes.layout, changes.messages[a:b]) for a, b in pairwise(ends)]
