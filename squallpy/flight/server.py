"""The server of Flight SQL: SELECTs over the views of a session, each as of one whole batch, and nothing else.

Handles of statements are their texts: the server keeps nothing for a client, and one that goes leaves nothing behind.
"""

import base64
import hmac
import os
import re
import secrets
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import pyarrow as pa
from pyarrow import flight

from squallpy.base.addresses import Address, is_loopback
from squallpy.base.errors import SquallError
from squallpy.base.events import first_line
from squallpy.base.records import dataclass
from squallpy.flight.messages import (
    ActionClosePreparedStatementRequest,
    ActionCreatePreparedStatementRequest,
    ActionCreatePreparedStatementResult,
    CommandPreparedStatementQuery,
    CommandPreparedStatementUpdate,
    CommandStatementQuery,
    CommandStatementUpdate,
    TicketStatementQuery,
    pack,
    unpack,
)
from squallpy.flight.metadata import answer, result_schema, schema_of
from squallpy.flight.wire import Message
from squallpy.frontend.script import parse_script
from squallpy.frontend.statements import Select
from squallpy.live.open_session import OpenSession

OPTION = "--flight"
TOKEN = "SQUALL_FLIGHT_TOKEN"
"""The variable of the environment that has the token of a server which others can reach."""
MESSAGE = 1 << 20
"""Bytes of rows in one message: gRPC's clients refuse large ones."""
_FILE = "query"
_QUERIES = ("SELECT", "WITH", "VALUES", "FROM", "TABLE")
_HINT = "send a SELECT over views"
_KIND = re.compile(
    r"\s*((?:CREATE|ALTER|DROP)\s+(?:OR\s+REPLACE\s+)?(?:TEMP(?:ORARY)?\s+)?(?:MATERIALIZED\s+)?\w+|\w+)", re.IGNORECASE
)


class FlightServer:
    """Flight SQL of a session, until it is closed.

    Raises:
        SquallError: SQ7005 if it cannot listen there.
    """

    def __init__(self, session: OpenSession, address: Address) -> None:
        address.listen(OPTION).close()  # NB: gRPC only says that it did not start
        self.token = "" if is_loopback(address.host) else os.environ.get(TOKEN) or secrets.token_urlsafe(24)
        """What clients have to show; empty: nothing."""
        host = address.host or "::"
        self._server = _Server(session, f"grpc://{Address(host, address.port)}", self.token)
        shown = "localhost" if host in ("::", "0.0.0.0") else host
        self.url = f"grpc://{Address(shown, self._server.port)}"

    def close(self) -> None:
        """Let the answers in work end, and listen no more."""
        self._server.shutdown()


class _Server(flight.FlightServerBase):  # type: ignore[misc]
    """The procedures of Flight."""

    def __init__(self, session: OpenSession, location: str, token: str) -> None:
        super().__init__(location, auth_handler=_NoHandshake(), middleware={"token": _TokenCheck(token)})
        self._session = session

    def get_flight_info(self, context: Any, descriptor: Any) -> Any:
        with _telling():
            command = unpack(descriptor.command or b"")
            schema, ticket = self._schema(command), descriptor.command
            if isinstance(command, CommandStatementQuery):
                ticket = pack(TicketStatementQuery(command.query.encode()))
            return flight.FlightInfo(schema, descriptor, [flight.FlightEndpoint(ticket, [])], -1, -1)

    def get_schema(self, context: Any, descriptor: Any) -> Any:
        with _telling():
            return flight.SchemaResult(self._schema(unpack(descriptor.command or b"")))

    def do_get(self, context: Any, ticket: Any) -> Any:
        with _telling():
            command = unpack(ticket.ticket)
            if schema_of(command):
                return flight.RecordBatchStream(answer(command, self._session))
            schema = self._schema(command)
            (outcome,) = self._session.execute(_text(command), _FILE)
            assert outcome.table is not None
            table = pa.Table.from_arrays(outcome.table.columns, schema=schema)
            rows = max(1, len(table) * MESSAGE // max(table.nbytes, 1))
            batches = table.to_batches(max_chunksize=rows)
            return flight.RecordBatchStream(pa.RecordBatchReader.from_batches(schema, batches))

    def do_put(self, context: Any, descriptor: Any, reader: Any, writer: Any) -> None:
        with _telling():
            command = unpack(descriptor.command or b"")
            if isinstance(command, CommandPreparedStatementQuery):
                raise SquallError("SQ3001", "parameters of a statement are not supported", hint="write the values")
            _check_select(_text(command))
            raise SquallError("SQ3001", "a SELECT is no update", hint="execute it as a query")

    def list_actions(self, context: Any) -> list[Any]:
        return [("CreatePreparedStatement", "Check a SELECT"), ("ClosePreparedStatement", "Do nothing")]

    def do_action(self, context: Any, action: Any) -> list[Any]:
        with _telling():
            body = action.body.to_pybytes()
            match unpack(body) if body else None:
                case ActionCreatePreparedStatementRequest(query):
                    schema = self._schema(CommandStatementQuery(query)).serialize().to_pybytes()
                    nothing = pa.schema([]).serialize().to_pybytes()
                    return [flight.Result(pack(ActionCreatePreparedStatementResult(query.encode(), schema, nothing)))]
                case ActionClosePreparedStatementRequest():
                    return []
            raise SquallError("SQ3001", f"{action.type} of Flight SQL is not supported")

    def _schema(self, command: Message) -> pa.Schema:
        """Return the columns of what a command answers."""
        if (schema := schema_of(command)) is None:
            text = _text(command)
            _check_select(text)
            schema = result_schema(self._session.schema(text, _FILE))
        return schema


def _text(command: Message) -> str:
    """Return the statement of a command."""
    match command:
        case CommandStatementQuery(query) | CommandStatementUpdate(query):
            return query
        case (
            TicketStatementQuery(handle)
            | CommandPreparedStatementQuery(handle)
            | CommandPreparedStatementUpdate(handle)
        ):
            return handle.decode(errors="replace")
    raise SquallError("SQ3001", f"{type(command).__name__} of Flight SQL is not supported here")


def _check_select(text: str) -> None:
    """Raise SQ3001 for a statement that is no SELECT, by its name, as clients only read."""
    kind = _KIND.match(text)
    if kind and kind[1].upper() not in _QUERIES:
        what = " ".join(kind[1].upper().split())
        raise SquallError("SQ3001", f"{what} is not allowed over Flight SQL, which only reads", hint=_HINT)
    statements = parse_script(text, _FILE)
    if len(statements) != 1 or not isinstance(statements[0], Select):
        raise SquallError("SQ3001", "Flight SQL takes one statement at a time, which is a query", hint=_HINT)


@contextmanager
def _telling() -> Iterator[None]:
    """Tell clients what is wrong in one line, with the place in their text below."""
    try:
        yield
    except SquallError as error:
        raise flight.FlightServerError("\n".join(filter(None, [str(error), error.caret()]))) from None
    except flight.FlightError:
        raise
    except Exception as error:  # NB: of others Arrow sends the traceback
        raise flight.FlightInternalError(first_line(error)) from None


class _NoHandshake(flight.ServerAuthHandler):  # type: ignore[misc]
    """An empty handshake: clients are known by the headers of each call."""

    def authenticate(self, outgoing: Any, incoming: Any) -> None:
        return

    def is_valid(self, token: Any) -> str:
        return ""


class _TokenCheck(flight.ServerMiddlewareFactory):  # type: ignore[misc]
    """Check of each call for the token: `Authorization: Bearer TOKEN`, or the password of any user.

    NB: JDBC logs in as a user where it is given one, though an empty one, and so where no token is needed.
    """

    def __init__(self, token: str) -> None:
        self._token = token.encode()

    def start_call(self, info: Any, headers: Mapping[str, list[str]]) -> "_TokenHeader | None":
        given = next((values[0] for name, values in headers.items() if name.lower() == "authorization"), "")
        kind, _, shown = given.partition(" ")
        data = shown.strip().encode()
        if kind.lower() == "basic":
            try:
                data = base64.b64decode(data + b"==").partition(b":")[2]  # NB: Go writes no padding
            except ValueError:
                data = b""
        if not self._token or (kind.lower() in ("basic", "bearer") and hmac.compare_digest(data, self._token)):
            return _TokenHeader(self._token.decode() or "none") if kind else None
        hint = f"send the header Authorization: Bearer TOKEN; squall has printed it, or {TOKEN} has it"
        raise flight.FlightUnauthenticatedError(f"a token is needed: {hint}")


@dataclass
class _TokenHeader(flight.ServerMiddleware):  # type: ignore[misc]
    """Header for a client that has sent a password, with what it is to send from then on."""

    token: str

    def sending_headers(self) -> dict[str, str]:
        return {"authorization": f"Bearer {self.token}"}

    def call_completed(self, exception: Any) -> None:
        return
