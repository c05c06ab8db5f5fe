"""Lines of a TCP server: USING socket OPTIONS (host 'localhost', port '9999', format 'json').

1,a⏎2,b⏎3      →   two rows; the third waits for its line end

The spool keeps lines; tasks parse them as csv or JSON, so that faulty ones are handled as those of files are.
"""

import socket
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa

from squallpy.base.errors import SquallError
from squallpy.catalog.relation import Field, Relation
from squallpy.runtime.formats.csv_dialect import Dialect
from squallpy.runtime.formats.file_rows import FileRows
from squallpy.runtime.formats.relation_files import File, reason
from squallpy.runtime.formats.text_encoding import HEAD
from squallpy.runtime.formats.type_conversion import Problem
from squallpy.runtime.sources.foreign_source import ForeignSource
from squallpy.runtime.sources.received_source import LOOK, ReceivedSource
from squallpy.runtime.sources.source import SourceFile, open_part

_LINE = "line"
_CHUNK = 1 << 16
_HEAD = b"\n" * HEAD  # NB: bytes of the first row are then never taken for marks of an encoding or a format
_LONGEST = 1 << 26  # bytes of a line
_PATIENCE = 10.0  # seconds in which a server has to answer
_UNCLOSED = Problem("SQ4003", "a quote or an escape that is open at the end of the line")


@dataclass
class SocketSource(ForeignSource):
    """The rows of a relation that a server sends."""

    @staticmethod
    def open(relation: Relation) -> "SocketSource":
        """Open the source of a relation; SQ4002 without columns, SQ3001 for those that tell where a row is from."""
        name = f"{relation.options['host']}:{relation.options['port']}"
        if not relation.fields:
            hint = "list the columns after the name"
            raise SquallError("SQ4002", f"the socket {name} tells no columns", relation.span, hint)
        if located := next((f.metadata for f in relation.fields if f.metadata), None):
            raise SquallError("SQ3001", f"{located} of a socket is not supported yet", relation.span, "leave it out")
        Dialect.of(relation.options)
        return SocketSource(relation, name, _Lines(relation.options["host"], int(relation.options["port"])))

    def asked(self, columns: Sequence[str]) -> tuple[str, ...]:
        return (_LINE,)

    def part(self, raw: pa.Table, first: int) -> SourceFile:
        return ReceivedLines.of(self.relation, self.name, raw.column(_LINE).to_pylist(), first)


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
            *lines, rest = (rest + data).replace(b"\r", b"\n").split(b"\n")
            yield from filter(None, lines)
            if len(rest) > _LONGEST:
                raise self._fault(f"a line of more than {_LONGEST >> 20} MB", "end each row with a line end")
        if not self.closing.is_set():
            raise self._fault("the connection was closed", "run it again when the server is there")

    def table(self, rows: Sequence[bytes]) -> pa.Table:
        return pa.table({_LINE: pa.array(rows, pa.binary())})

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


@dataclass(frozen=True, slots=True)
class _Text(File):
    """A text in memory, which is read as a file is."""

    data: bytes = b""

    def open(self) -> pa.BufferReader:
        return pa.BufferReader(self.data)


@dataclass(frozen=True, slots=True)
class ReceivedLines:
    """Lines as a part of a source.

    Args:
        first: The number of the first since the stream began.
        unclosed: Lines at whose end a quote is open, by their number among these.
    """

    lines: SourceFile
    first: int
    unclosed: frozenset[int]

    @staticmethod
    def of(relation: Relation, name: str, lines: Sequence[bytes], first: int) -> "ReceivedLines":
        """Parse lines, each for itself: a row has no line ends."""
        unclosed = _unclosed(lines, Dialect.of(relation.options)) if relation.row_format == "csv" else frozenset[int]()
        data = _HEAD + _joined([b"-" if i in unclosed else line for i, line in enumerate(lines)] if unclosed else lines)
        text = _Text("", len(data), 0, name, data=data)
        part = open_part(replace(relation, format=relation.row_format), text)
        return ReceivedLines(part, first, unclosed)

    @property
    def rows(self) -> int:
        return self.lines.rows

    @property
    def seams(self) -> tuple[int, ...]:
        return ()

    @property
    def file(self) -> File:
        return self.lines.file

    @property
    def columns(self) -> tuple[str, ...]:
        return self.lines.columns

    def check(self, fields: tuple[Field, ...], op: str | None) -> None:
        self.lines.check(fields, op)

    def check_read(self, fields: Sequence[Field]) -> None:
        self.lines.check_read(fields)

    def location(self, row: int) -> str:
        return f"{self.file.display_name}, row {self.first + row + 1}"

    def hint(self, row: int) -> str:
        return ""

    def read(
        self, start: int, stop: int, fields: tuple[Field, ...], op: str | None, with_checksum: bool = False
    ) -> FileRows:
        rows = self.lines.read(start, stop, fields, op, with_checksum)
        wrong = {row - start: _UNCLOSED for row in self.unclosed if start <= row < stop}
        return replace(rows, wrong=rows.wrong | wrong)

    def checksum(self, rows: int, names: Sequence[str]) -> int:
        return 0

    def grown(self, file: File) -> None:
        """Return nothing: lines that were received are whole."""


def _unclosed(lines: Sequence[bytes], dialect: Dialect) -> frozenset[int]:
    """Find the lines that would go on behind their ends."""
    from squallpy.runtime.formats.line_index import AT_LINE, Scan  # NB: loads kernels, which takes half a second

    def is_whole(some: Sequence[bytes]) -> bool:
        scan = Scan(dialect)
        scan.run(_joined(some))
        return scan.mode == AT_LINE and scan.rows == len(some)

    return frozenset(() if is_whole(lines) else (i for i, line in enumerate(lines) if not is_whole([line])))


def _joined(lines: Sequence[bytes]) -> bytes:
    return b"".join(line + b"\n" for line in lines)
