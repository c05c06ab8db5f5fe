"""Lines of a TCP server: USING socket OPTIONS (host 'localhost', port '9999', format 'json').

1,a⏎2,b⏎3      →   two rows; the third waits for its line end
"""

import socket
from collections.abc import Iterator, Sequence

import pyarrow as pa

from squallpy.base.errors import SquallError
from squallpy.base.records import dataclass
from squallpy.catalog.relation import Relation
from squallpy.runtime.formats.relation_files import reason
from squallpy.runtime.sources.received_lines import LineSource, check_columns_of_lines, line_table, lines_of
from squallpy.runtime.sources.received_source import LOOK, ReceivedSource

_CHUNK = 1 << 16
_LONGEST = 1 << 26  # bytes of a line
_PATIENCE = 10.0  # seconds in which a server has to answer


@dataclass
class SocketSource(LineSource):
    """The rows of a relation that a server sends."""

    @staticmethod
    def open(relation: Relation) -> "SocketSource":
        """Open the source of a relation; SQ4002 without columns, SQ3001 for those that tell where a row is from."""
        name = f"{relation.options['host']}:{relation.options['port']}"
        check_columns_of_lines(relation, f"the socket {name}")
        return SocketSource(relation, name, _Lines(relation.options["host"], int(relation.options["port"])))


class _Lines(ReceivedSource):
    """The lines that a server sends, without their ends; empty ones are left out."""

    def __init__(self, host: str, port: int) -> None:
        super().__init__()
        self._host, self._port = host, port
        self._socket: socket.socket | None = None

    def begin(self, folder: str | None, ends: bool) -> None:
        if self._socket is None:
            self._socket = self._connect()

    def receive(self, start: int) -> Iterator[bytes]:
        assert self._socket
        rest = b""
        while data := self._receive_some(self._socket):
            lines, rest = lines_of(rest + data)
            yield from lines
            if len(rest) > _LONGEST:
                raise self._fault(f"a line of more than {_LONGEST >> 20} MB", "end each row with a line end")
        if not self.closing.is_set():
            raise self._fault("the connection was closed", "run it again when the server is there")

    def table(self, rows: Sequence[bytes]) -> pa.Table:
        return line_table(rows)

    def close(self) -> None:
        super().close()
        if self._socket:
            self._socket.close()

    def _connect(self) -> socket.socket:
        try:
            found = socket.create_connection((self._host, self._port), _PATIENCE)
        except OSError as error:
            raise self._fault(reason(error), "start the server first, or change host and port") from None
        found.settimeout(LOOK)
        return found

    def _receive_some(self, connection: socket.socket) -> bytes:
        """Wait for data; none if the server has closed the connection, or the run ends."""
        while not self.closing.is_set():
            try:
                return connection.recv(_CHUNK)
            except TimeoutError:
                continue
            except OSError as error:
                if not self.closing.is_set():
                    raise self._fault(reason(error), "run it again when the server is there") from None
        return b""

    def _fault(self, why: str, hint: str) -> SquallError:
        return SquallError("SQ4001", f"cannot read the socket {self._host}:{self._port}: {why}", hint=hint)
