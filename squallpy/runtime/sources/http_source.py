"""Rows that are POSTed: USING http OPTIONS (port '8080', endpoint '/clicks', format 'json').

POST /clicks  {"user": "ann", "n": 1}⏎{"user": "bob", "n": 2}⏎   →   200 {"rows": 2}, when both are in the spool

A request is taken whole or not at all. Its thread writes the spool, with what came in others meanwhile.
"""

import os
import threading
from collections.abc import Mapping, Sequence
from dataclasses import field
from io import BytesIO
from time import time

import pyarrow as pa
import pyarrow.compute as pc

from squallpy.base.addresses import Address, is_loopback
from squallpy.base.errors import SquallError
from squallpy.base.records import dataclass
from squallpy.catalog.format_options import ARROW
from squallpy.catalog.relation import MULT, Relation
from squallpy.runtime.formats.counted_table import concat_tables
from squallpy.runtime.sources.foreign_source import ArrowPart, ForeignSource, check_rows, names_asked
from squallpy.runtime.sources.protocol import BatchLimit, Offset, Source, Spool
from squallpy.runtime.sources.push_server import Endpoint, Overloaded, PushServer, Unfit
from squallpy.runtime.sources.received_lines import (
    LineSource,
    ReceivedLines,
    check_columns_of_lines,
    line_table,
    lines_of,
)
from squallpy.runtime.sources.source import FileSource
from squallpy.runtime.sources.table_slice import TableSlice

AHEAD = 1_000_000  # rows in the spool that no batch has read: more are not taken
_ARROW = "application/vnd.apache.arrow.stream"
_KINDS: Mapping[str, tuple[str, ...]] = {
    "json": ("application/x-ndjson", "application/jsonl", "application/json-lines", "application/json"),
    "csv": ("text/csv",),
    "arrow": (_ARROW,),
}


def open_http(relation: Relation) -> ForeignSource:
    """Open the source of a relation; SQ4002 without columns, SQ7002 without the token that its address needs."""
    options = relation.options
    address = Address(options.get("host", "127.0.0.1"), int(options["port"]))
    token = _token(relation, address)
    endpoint = options.get("endpoint", f"/{relation.name}")
    name = f"http://{address}{endpoint}"
    check_columns_of_lines(relation, f"the address {name}")
    posted = PostedRows(relation, name, Endpoint(address, endpoint, token))
    made = ForeignSource if relation.row_format == ARROW else LineSource
    return made(relation, name, posted)


def _token(relation: Relation, address: Address) -> str:
    """Read the token of an endpoint from the environment; empty where only this machine reaches it."""
    variable = relation.options.get("token_env", "")
    token = os.environ.get(variable, "") if variable else ""
    if variable and not token:
        hint = "set it to the token that clients send as Authorization: Bearer TOKEN"
        raise SquallError("SQ7002", f"the environment has no {variable}", relation.span, hint)
    if not token and not is_loopback(address.host):
        message = f"others than this machine may reach {address}, and there is no token"
        raise SquallError("SQ7002", message, relation.span, "write OPTIONS (token_env 'VARIABLE'), or host '127.0.0.1'")
    return token


@dataclass
class _Request:
    """The rows of a request.

    Args:
        since: When they came, in Unix time.
        is_safe: They are in the spool.
    """

    rows: pa.Table
    since: float = field(default_factory=time)
    is_safe: bool = False


class PostedRows(Source):
    """The rows that are POSTed to an endpoint."""

    is_replayable = False

    def __init__(self, relation: Relation, name: str, endpoint: Endpoint) -> None:
        self._relation, self._name, self.endpoint = relation, name, endpoint
        self._waiting, self._taken, self._lock = list[_Request](), list[_Request](), threading.Lock()
        self._spool: Spool | None = None
        self._server: PushServer | None = None

    @property
    def format(self) -> str:
        """The format of the bodies: json, csv or arrow."""
        return self._relation.row_format

    @property
    def kinds(self) -> Sequence[str]:
        """The media types of that format."""
        return _KINDS[self.format]

    def begin(self, folder: str | None, ends: bool) -> None:
        if self._server is None:
            self._server = PushServer.serve(self)

    def attach(self, spool: Spool) -> None:
        self._spool = spool

    def take(self, body: bytes) -> int:
        """Take the rows of a request, and return their number when they are in the spool.

        Raises Unfit for a body that cannot be read, Overloaded if batches do not keep up.
        """
        try:
            rows = self._table(body)
        except SquallError as error:
            raise Unfit(error.code, f"{error.message}{f', {error.hint}' if error.hint else ''}") from None
        spool, request = self._spool, _Request(rows)
        if spool is None or spool.ahead + len(rows) > AHEAD > len(rows):
            raise Overloaded("the run has not begun" if spool is None else "batches do not keep up")
        if not len(rows):
            return 0
        with self._lock:
            self._waiting.append(request)
        spool.take()
        if not request.is_safe:
            raise Overloaded("the rows could not be written")
        return len(rows)

    def _table(self, body: bytes) -> pa.Table:
        """Read a body; where faults end a run, a body with any is refused as a whole."""
        relation = self._relation
        columns = tuple(each.name for each in relation.fields)
        if self.format == ARROW:
            return self._arrow_table(body)
        lines, rest = lines_of(body)
        lines += [rest] if rest else []
        if lines and not relation.skips_faults:
            part = ReceivedLines.of(relation, self._name, lines, 0)
            FileSource(relation, (part,)).read(0, len(lines), columns)
        return line_table(lines)

    def _arrow_table(self, body: bytes) -> pa.Table:
        relation = self._relation
        try:
            with pa.ipc.open_stream(BytesIO(body)) as reader:
                table = reader.read_all()
        except (pa.ArrowException, OSError) as error:
            why = " ".join(str(error).split())
            raise SquallError("SQ4003", f"the body is no Arrow IPC stream: {why}") from None
        part, columns = ArrowPart(self._name, table), tuple(each.name for each in relation.fields)
        check_rows(relation, part, columns)
        rows = FileSource(relation, (part,)).read(0, len(table), columns)
        told, rows = names_asked((), relation), rows.replace_schema_metadata()
        if not told:
            return rows.select([*columns])
        return rows.select([*columns]).append_column(told[0], pc.if_else(pc.greater(rows[MULT], 0), "+", "-"))

    def initial(self) -> Offset:
        return {"row": 0}

    def latest(self, start: Offset, limit: BatchLimit) -> Offset:
        with self._lock:
            self._taken, self._waiting = self._waiting, []
        return {"row": start["row"] + sum(len(request.rows) for request in self._taken)}

    def split(self, start: Offset, end: Offset, tasks: int) -> Sequence[TableSlice]:
        return [TableSlice(concat_tables([request.rows for request in self._taken]))] if self._taken else []

    def committed(self, start: Offset, end: Offset) -> float | None:
        return min((request.since for request in self._taken), default=None)

    def commit(self, end: Offset) -> None:
        for request in self._taken:
            request.is_safe = True

    def close(self) -> None:
        if self._server:
            self._server.leave(self)
            self._server = None
