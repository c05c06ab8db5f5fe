"""The messages of Flight SQL that are understood, each in a google.protobuf.Any.

Names, fields and their order are those of Arrow's format/FlightSql.proto.
"""

from squallpy.base.errors import SquallError
from squallpy.base.records import dataclass
from squallpy.flight.wire import Message

_PREFIX = "type.googleapis.com/arrow.flight.protocol.sql."


@dataclass(frozen=True, slots=True)
class Any(Message):
    """A message with its type."""

    type_url: str = ""
    value: bytes = b""


@dataclass(frozen=True, slots=True)
class CommandStatementQuery(Message):
    query: str = ""
    transaction_id: bytes = b""


@dataclass(frozen=True, slots=True)
class TicketStatementQuery(Message):
    statement_handle: bytes = b""


@dataclass(frozen=True, slots=True)
class CommandStatementUpdate(Message):
    query: str = ""
    transaction_id: bytes = b""


@dataclass(frozen=True, slots=True)
class CommandPreparedStatementQuery(Message):
    prepared_statement_handle: bytes = b""


@dataclass(frozen=True, slots=True)
class CommandPreparedStatementUpdate(Message):
    prepared_statement_handle: bytes = b""


@dataclass(frozen=True, slots=True)
class ActionCreatePreparedStatementRequest(Message):
    query: str = ""
    transaction_id: bytes = b""


@dataclass(frozen=True, slots=True)
class ActionCreatePreparedStatementResult(Message):
    prepared_statement_handle: bytes = b""
    dataset_schema: bytes = b""
    parameter_schema: bytes = b""


@dataclass(frozen=True, slots=True)
class ActionClosePreparedStatementRequest(Message):
    prepared_statement_handle: bytes = b""


@dataclass(frozen=True, slots=True)
class CommandGetSqlInfo(Message):
    info: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class CommandGetCatalogs(Message):
    pass


@dataclass(frozen=True, slots=True)
class CommandGetDbSchemas(Message):
    catalog: str | None = None
    db_schema_filter_pattern: str | None = None


@dataclass(frozen=True, slots=True)
class CommandGetTables(Message):
    catalog: str | None = None
    db_schema_filter_pattern: str | None = None
    table_name_filter_pattern: str | None = None
    table_types: tuple[str, ...] = ()
    include_schema: bool = False


@dataclass(frozen=True, slots=True)
class CommandGetTableTypes(Message):
    pass


@dataclass(frozen=True, slots=True)
class CommandGetXdbcTypeInfo(Message):
    pass


@dataclass(frozen=True, slots=True)
class CommandGetPrimaryKeys(Message):
    pass


@dataclass(frozen=True, slots=True)
class CommandGetExportedKeys(Message):
    pass


@dataclass(frozen=True, slots=True)
class CommandGetImportedKeys(Message):
    pass


@dataclass(frozen=True, slots=True)
class CommandGetCrossReference(Message):
    pass


_KNOWN: dict[str, type[Message]] = {
    each.__name__: each
    for each in (
        CommandStatementQuery, TicketStatementQuery, CommandStatementUpdate, CommandPreparedStatementQuery,
        CommandPreparedStatementUpdate, ActionCreatePreparedStatementRequest, ActionCreatePreparedStatementResult,
        ActionClosePreparedStatementRequest, CommandGetSqlInfo, CommandGetCatalogs, CommandGetDbSchemas,
        CommandGetTables, CommandGetTableTypes, CommandGetXdbcTypeInfo, CommandGetPrimaryKeys, CommandGetExportedKeys,
        CommandGetImportedKeys, CommandGetCrossReference,
    )
}  # fmt: skip


def pack(message: Message) -> bytes:
    """Write a message with its type."""
    return Any(f"{_PREFIX}{type(message).__name__}", message.encode()).encode()


def unpack(data: bytes) -> Message:
    """Read a message with its type; SQ3001 for one that is not understood, by its name."""
    packed = Any.decode(data)
    name = packed.type_url.removeprefix(_PREFIX)
    if name not in _KNOWN:
        message = f"{name} of Flight SQL is not supported" if name else "this is no message of Flight SQL"
        raise SquallError("SQ3001", message)
    return _KNOWN[name].decode(packed.value)
