"""Tables of a server: their columns, their keys, and whether their changes can be followed.

describe(connection, "public.t", server)   →   Table(name "public.t", columns (id BIGINT, …), key ("id",), …)
check_followed(connection, table, …)           SQ4009 with the statement to run, if its changes are not published
"""

import re
from typing import Any

from psycopg import sql

from squallpy.base.errors import SquallError
from squallpy.base.records import dataclass
from squallpy.base.types import BIGINT, BOOLEAN, DATE, DOUBLE, INT, TIMESTAMP, VARCHAR, Type, decimal
from squallpy.catalog.relation import Field
from squallpy.runtime.connectors.postgres.connection import Connection, Server

_TYPES = {16: BOOLEAN, 20: BIGINT, 21: INT, 23: INT, 700: DOUBLE, 701: DOUBLE, 1082: DATE, 1114: TIMESTAMP,
          1184: TIMESTAMP}  # fmt: skip
NUMERIC, WITH_ZONE = 1700, 1184
UNKNOWN_SCALE = decimal(38, 9)  # of a numeric without precision
NOT_FOLLOWED = "SQ4009"
_DESCRIBE = """
SELECT a.attname, a.atttypid::int, a.atttypmod, a.attnotnull,
       COALESCE(array_position(i.indkey::int2[], a.attnum), -1), format_type(a.atttypid, a.atttypmod)
FROM pg_attribute a LEFT JOIN pg_index i ON i.indrelid = a.attrelid AND i.indisprimary
WHERE a.attrelid = %s AND a.attnum > 0 AND NOT a.attisdropped AND a.attgenerated = '' ORDER BY a.attnum"""


@dataclass(frozen=True, slots=True)
class ServerColumn:
    """A column of a server's table, with the number and the name of its type there."""

    name: str
    oid: int
    modifier: int
    nullable: bool
    type_name: str

    @property
    def type(self) -> Type:
        """The SQL type that holds its values; text for those that no other does."""
        if self.oid != NUMERIC:
            return _TYPES.get(self.oid, VARCHAR)
        if self.modifier < 0:
            return UNKNOWN_SCALE
        precision, scale = (self.modifier - 4) >> 16, (self.modifier - 4) & 0x7FF
        return decimal(precision, scale) if precision <= 38 and scale <= precision else VARCHAR


@dataclass(frozen=True, slots=True)
class ServerTable:
    """A table of a server.

    Args:
        key: The columns of its primary key, in its order.
        identity: Its replica identity: d (default), n (nothing), f (full) or i (an index).
        kind: r for a table, p for one in partitions.
    """

    schema: str
    name: str
    oid: int
    columns: tuple[ServerColumn, ...]
    key: tuple[str, ...]
    identity: str
    kind: str
    rows: int

    def __str__(self) -> str:
        return f"{_written(self.schema)}.{_written(self.name)}"

    @property
    def identifier(self) -> sql.Identifier:
        return sql.Identifier(self.schema, self.name)

    @property
    def fields(self) -> tuple[Field, ...]:
        """Its columns as those of a relation."""
        return tuple(Field(c.name, c.type, c.nullable) for c in self.columns)

    def column(self, name: str) -> ServerColumn | None:
        return next((c for c in self.columns if c.name.lower() == name.lower()), None)


def split_name(written: str) -> tuple[str | None, str]:
    """Split the name of a table: shop.orders → ("shop", "orders"), orders → (None, "orders"), "a.b" in quotes → a.b."""
    parts = re.findall(r'"((?:[^"]|"")*)"|([^."]+)', written)
    names = [quoted.replace('""', '"') if quoted else plain.strip() for quoted, plain in parts]
    if not 1 <= len(names) <= 2 or not all(names):
        raise SquallError("SQ7002", f'"{written}" is no name of a table', hint="write schema.table")
    return (names[0], names[1]) if len(names) == 2 else (None, names[0])


def describe(connection: Connection, written: str, server: Server) -> ServerTable | None:
    """Describe a table, a view or a foreign table; None if there is none of that name."""
    schema, name = split_name(written)
    where = sql.SQL(
        "SELECT n.nspname, c.relname, c.oid::int8, c.relreplident::text, c.relkind::text, c.reltuples"
        " FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.oid = to_regclass({})"
    )
    identifier = sql.Identifier(schema, name) if schema else sql.Identifier(name)
    found = connection.execute(where.format(sql.Literal(identifier.as_string(connection)))).fetchone()
    if found is None:
        return None
    rows: list[Any] = connection.execute(_DESCRIBE, (found[2],)).fetchall()
    columns = tuple(ServerColumn(row[0], row[1], row[2], not row[3], row[5]) for row in rows)
    key = tuple(row[0] for row in sorted((row for row in rows if row[4] >= 0), key=lambda row: row[4]))
    return ServerTable(found[0], found[1], found[2], columns, key, found[3], found[4], max(0, int(found[5])))


def find_table(connection: Connection, written: str, server: Server) -> ServerTable:
    """Describe a table; SQ4001 if there is none."""
    table = describe(connection, written, server)
    if table is None:
        schema, name = split_name(written)
        found = connection.execute(
            "SELECT n.nspname, c.relname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace"
            " WHERE lower(c.relname) = lower(%s) AND c.relkind IN ('r', 'p', 'v', 'm', 'f') AND"
            " n.nspname !~ '^pg_' ORDER BY lower(n.nspname) = lower(%s) DESC, 1, 2",
            (name, schema or "public"),
        ).fetchone()
        hint = f"did you mean {_written(found[0])}.{_written(found[1])}?" if found else "write schema.table"
        if found == (schema or "public", name):
            hint = f"it is there: run GRANT USAGE ON SCHEMA {_written(found[0])} for the user"
        raise SquallError("SQ4001", f'PostgreSQL at {server} has no table "{written}"', hint=hint)
    return table


def check_followed(connection: Connection, table: ServerTable, publication: str, key: tuple[str, ...]) -> str | None:
    """Check that the changes of a table are published, with what tells old rows; SQ4009 with the statement to run.

    Args:
        key: The PRIMARY KEY of the stream; none if old rows have to be whole.

    Returns the condition of the publication on its rows, if there is one.
    """
    (level,) = connection.execute("SHOW wal_level").fetchone() or ("",)
    if level != "logical":
        raise _refused(f"wal_level is {level}", "ALTER SYSTEM SET wal_level = logical", " and start the server anew")
    _check_logged(connection, table)
    known = connection.execute(
        "SELECT pubviaroot, pubinsert AND pubupdate AND pubdelete AND pubtruncate FROM pg_publication"
        " WHERE pubname = %s",
        (publication,),
    ).fetchone()
    if known is None:
        raise _refused(
            f'there is no publication "{publication}"', f"CREATE PUBLICATION {_written(publication)} FOR TABLE {table}"
        )
    if not known[1]:
        everything = "publish = 'insert, update, delete, truncate'"
        raise _refused(
            f"the publication {publication} tells some changes only",
            f"ALTER PUBLICATION {_written(publication)} SET ({everything})",
        )
    version = connection.info.server_version
    columns, condition = ("attnames, rowfilter", True) if version >= 150000 else ("NULL, NULL", False)
    found = connection.execute(
        f"SELECT {columns} FROM pg_publication_tables WHERE pubname = %s AND schemaname = %s AND tablename = %s",
        (publication, table.schema, table.name),
    ).fetchone()
    if found is None:
        if table.kind == "p" and not known[0]:
            raise _refused(
                f"{table} is in partitions, which {publication} publishes one by one",
                f"ALTER PUBLICATION {_written(publication)} SET (publish_via_partition_root = true)",
            )
        raise _refused(
            f"{table} is not in the publication {publication}",
            f"ALTER PUBLICATION {_written(publication)} ADD TABLE {table}",
        )
    _check_identity(table, key)
    return found[1] if condition else None


def _check_logged(connection: Connection, table: ServerTable) -> None:
    """Raise SQ4009 for what has no changes in the server's log."""
    kinds = {"v": "a view", "m": "a materialized view", "f": "a foreign table"}
    if table.kind in kinds:
        message = f"{table} is {kinds[table.kind]}, whose changes are not in the server's log"
        hint = "follow the tables under it, or declare a TABLE, which is read once"
        raise SquallError(NOT_FOLLOWED, message, hint=hint)
    query = "SELECT 1 FROM pg_class WHERE oid = %s AND relpersistence = 'u'"
    if connection.execute(query, (table.oid,)).fetchone():
        raise _refused(f"{table} is UNLOGGED, so that its changes are not told", f"ALTER TABLE {table} SET LOGGED")


def _check_identity(table: ServerTable, key: tuple[str, ...]) -> None:
    full = f"ALTER TABLE {table} REPLICA IDENTITY FULL"
    if table.identity == "f":
        return
    if table.identity == "n":
        default = f"ALTER TABLE {table} REPLICA IDENTITY DEFAULT" if table.key else full
        raise _refused(f"{table} has REPLICA IDENTITY NOTHING, so that old rows are not told", default)
    if not table.key and table.identity == "d":
        raise _refused(f"{table} has no primary key, so that old rows are not told", full)
    if not key:
        columns = ", ".join(table.key)
        raise _refused(
            f"{table} tells only the key of old rows, and the stream has no PRIMARY KEY", full,
            f", or declare PRIMARY KEY ({columns})",
        )  # fmt: skip
    if table.identity == "d" and {k.lower() for k in key} != {k.lower() for k in table.key}:
        raise _refused(
            f"the primary key of {table} is ({', '.join(table.key)}), not ({', '.join(key)})", full,
            " or declare the same key",
        )  # fmt: skip


def _refused(what: str, statement: str, more: str = "") -> SquallError:
    return SquallError(NOT_FOLLOWED, what, hint=f"run {statement};{more}")


def _written(name: str) -> str:
    """Write a name as SQL, in quotes where it needs them."""
    return name if re.fullmatch(r"[a-z_][a-z0-9_]*", name) else '"' + name.replace('"', '""') + '"'
