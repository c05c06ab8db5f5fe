"""Rows of tables as they are at one moment, copied whole before the first is given out.

Pieces(folder, "1f0c-")          pieces of tables, as Arrow's IPC format in a durable folder, or in memory without one
copy_table(connection, …)        yields tables of text, some megabytes each
"""

import io
from collections.abc import Iterator, Sequence
from dataclasses import field

import pyarrow as pa
import pyarrow.csv as csv
from psycopg import sql

from squallpy.base.records import dataclass
from squallpy.runtime.checkpoint.durable_folder import open_durable
from squallpy.runtime.checkpoint.durable_table import read_again, write_table
from squallpy.runtime.connectors.postgres.connection import Connection
from squallpy.runtime.connectors.postgres.pgoutput import plain_texts
from squallpy.runtime.connectors.postgres.tables import ServerTable

PIECE = 16 << 20  # bytes of CSV that are parsed at once


@dataclass
class Pieces:
    """Pieces of tables, by name.

    Args:
        folder: The path or URI of a durable folder; None keeps them in memory.
    """

    folder: str | None
    prefix: str
    held: dict[str, pa.Table] = field(default_factory=dict)

    def add(self, name: str, rows: pa.Table) -> None:
        """Add a piece."""
        if self.folder is None:
            self.held[name] = rows
            return
        write_table(self.folder, self.prefix + name, rows, "snapshot", compression="lz4")

    def slice(self, name: str, start: int, stop: int) -> "PieceSlice":
        """Select rows of a piece, to be read by any process."""
        if self.folder is None:
            return PieceSlice("", name, 0, stop - start, self.held[name].slice(start, stop - start))
        return PieceSlice(self.folder, self.prefix + name, start, stop)

    def drop(self, names: Sequence[str]) -> None:
        """Delete pieces that nobody reads again."""
        for name in names:
            if self.folder is None:
                self.held.pop(name, None)
            else:
                open_durable(self.folder).delete(self.prefix + name)

    def clear(self) -> None:
        """Delete the pieces of a copy that was not completed."""
        if self.folder is not None:
            durable = open_durable(self.folder)
            for name in durable.list(""):
                if name.startswith(self.prefix):
                    durable.delete(name)


@dataclass(frozen=True, slots=True)
class PieceSlice:
    """Some rows of a piece; `table`: those in memory."""

    folder: str
    name: str
    start: int
    stop: int
    table: pa.Table | None = None

    def read(self) -> pa.Table:
        """Read the rows; SQ6005 if the piece is damaged."""
        if self.table is not None:
            return self.table
        return read_again(self.folder, self.name).slice(self.start, self.stop - self.start)


def copy_table(
    connection: Connection, table: ServerTable, columns: Sequence[str], condition: str | None = None
) -> Iterator[pa.Table]:
    """Copy some columns of a table as text, of the rows that satisfy a condition of the server's."""
    found = [column for name in columns if (column := table.column(name))]
    names = sql.SQL(", ").join(sql.Identifier(column.name) for column in found)
    where = sql.SQL(f" WHERE {condition}" if condition else "")
    query = sql.SQL("COPY (SELECT {} FROM {}{}) TO STDOUT (FORMAT csv)").format(names, table.identifier, where)
    types = [column.oid for column in found]
    with connection.cursor() as cursor, cursor.copy(query) as copy:
        buffer, size = io.BytesIO(), 0
        for data in copy:  # NB: each is a whole row
            size += buffer.write(data)
            if size >= PIECE:
                yield _parse(buffer.getvalue(), columns, types)
                buffer, size = io.BytesIO(), 0
        if size:
            yield _parse(buffer.getvalue(), columns, types)


def _parse(text: bytes, names: Sequence[str], types: Sequence[int]) -> pa.Table:
    """Parse CSV, in which NULL is nothing and the empty string is in quotes."""
    if not names:
        return pa.table({"": pa.nulls(text.count(b"\n"), pa.string())})
    read = csv.ReadOptions(column_names=[str(i) for i in range(len(names))], use_threads=False, block_size=1 << 30)
    convert = csv.ConvertOptions(
        column_types={str(i): pa.string() for i in range(len(names))},
        strings_can_be_null=True,
        quoted_strings_can_be_null=False,
        null_values=[""],
        check_utf8=False,
    )
    parse = csv.ParseOptions(newlines_in_values=True, ignore_empty_lines=False)
    found = csv.read_csv(io.BytesIO(text), read_options=read, parse_options=parse, convert_options=convert)
    columns = [plain_texts(c.combine_chunks(), type) for c, type in zip(found.columns, types, strict=True)]
    return pa.table(columns, list(names))
