"""Sessions that another process has, to which this one is attached.

session = attach("state/", writes=True)          None if no session is there
session.push("r", rows);  session.step();  session.table("v")

The definitions are mirrored here, so that names and columns are known without asking; all else is asked of the host.
"""

import secrets
import socket
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import pyarrow as pa

from squallpy import __version__
from squallpy.base.errors import Span, SquallError
from squallpy.base.local_paths import local_path
from squallpy.base.settings import Settings, parse_settings
from squallpy.catalog.catalog import Catalog
from squallpy.catalog.relation import Field
from squallpy.frontend.query import SelectText
from squallpy.frontend.script import parse_script
from squallpy.frontend.source_text import START, SourcePosition
from squallpy.frontend.statement_texts import list_statements
from squallpy.frontend.statements import Select, Subscribe
from squallpy.live.definitions import Definitions, unopened_definitions
from squallpy.live.entries import Entries
from squallpy.live.host import FOLDER, is_private, socket_path
from squallpy.live.messages import Disconnected, decode_error, receive, send
from squallpy.live.outcome import Outcome
from squallpy.live.pushed_tables import pushed_table
from squallpy.live.session_compiler import SessionCompiler
from squallpy.live.subscription import ChangeReader, ViewChange
from squallpy.runtime.observers.report import BatchReport

_PATIENCE, _LOOK = 1.0, 0.05  # seconds in which a host that has just begun listens; between two looks
Answer = tuple[dict[str, Any], list[pa.Table]]


def attach(checkpoint: str, writes: bool) -> "AttachedSession | None":
    """Attach to the session at a checkpoint; None if there is none that can be attached to."""
    path = local_path(checkpoint)
    until = time.monotonic() + _PATIENCE
    while path is not None:
        try:
            if not is_private(path / FOLDER):
                return None
            return AttachedSession(checkpoint, path, writes)
        except (OSError, Disconnected):
            if time.monotonic() > until:
                return None
            time.sleep(_LOOK)
    return None


class _Connections:
    """Connections to a host, each for one call at a time.

    Attributes:
        takes_statements: The host has a session; it has the run of a script otherwise.
    """

    takes_statements = True

    def __init__(self, checkpoint: str, path: Path, writes: bool) -> None:
        self._checkpoint, self._path = checkpoint, path
        self._hello = {"version": __version__, "writes": writes, "client": secrets.token_hex(8)}
        self._idle, self._lock, self._is_closed = list[socket.socket](), threading.Lock(), False

    def connect(self) -> socket.socket:
        """Open a connection; raises OSError or Disconnected if nobody listens."""
        peer = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            with socket_path(self._path) as place:
                peer.connect(place)
            told, _ = _checked(*_exchange(peer, self._hello))
            self.takes_statements = bool(told["writes"])
        except BaseException:
            peer.close()
            raise
        return peer

    def call(self, message: Mapping[str, Any], tables: Sequence[pa.Table] = ()) -> Answer:
        """Ask the host; SQ7014 if it has ended."""
        with self._lock:
            if self._is_closed:
                raise SquallError("SQ7012", "the session is closed", hint="connect anew")
            peer = self._idle.pop() if self._idle else None
        try:
            peer = peer or self.connect()
            answer = _exchange(peer, message, tables)
        except BaseException as error:  # NB: perhaps interrupted, with the answer still to come
            if peer:
                peer.close()
            if isinstance(error, OSError | Disconnected):
                self._forget()
                raise self.ended() from None
            raise
        self._keep(peer)
        return _checked(*answer)

    def ended(self) -> SquallError:
        message = f"the session at {self._checkpoint} has ended"
        return SquallError("SQ7014", message, hint="connect anew to go on with it")

    def _keep(self, peer: socket.socket) -> None:
        with self._lock:
            if not self._is_closed:
                self._idle.append(peer)
                return
        peer.close()

    def _forget(self) -> None:
        """Close the connections that nobody uses: they are of a host that has ended, or of nobody any more."""
        with self._lock:
            idle, self._idle = self._idle, []
        for peer in idle:
            peer.close()

    def close(self) -> None:
        self._is_closed = True
        self._forget()


def _exchange(peer: socket.socket, message: Mapping[str, Any], tables: Sequence[pa.Table] = ()) -> Answer:
    """Send a message and return what is answered."""
    send(peer, message, tables)
    return receive(peer)


def _checked(told: dict[str, Any], tables: list[pa.Table]) -> Answer:
    """Return an answer, or raise the error that it is."""
    if "error" in told:
        raise decode_error(told["error"])
    return told, tables


class AttachedSession:
    """A session of another process; several threads may use it.

    Args:
        checkpoint: Where the session is kept, as the user names it; `path` is its folder.
        writes: It may change what the session has; SQ7013 otherwise.
    """

    def __init__(self, checkpoint: str, path: Path, writes: bool) -> None:
        self.checkpoint = checkpoint
        self._connections = _Connections(checkpoint, path, writes)
        self._mirror: Definitions | None = None
        self._version, self._lock = "", threading.RLock()
        self._known()
        self.is_writable = writes and self._connections.takes_statements

    def _call(self, call: str, **arguments: Any) -> dict[str, Any]:
        return self._connections.call({"call": call, **arguments})[0]

    def _known(self) -> Definitions:
        """Return the definitions of the session, asked for anew if they have changed."""
        with self._lock:
            if self._mirror is None or self.version != self._version:
                told = self._call("definitions")
                self._settings = parse_settings(told["settings"])
                self._mirror = _mirrored(told, self._settings)
                self._version = told["version"]
            return self._mirror

    @property
    def version(self) -> str:
        return str(self._call("version")["version"])

    @property
    def settings(self) -> Settings:
        self._known()
        return self._settings

    @property
    def statements(self) -> tuple[str, ...]:
        return self._known().statements()

    @property
    def catalog(self) -> Catalog:
        return self._known().catalog

    @property
    def entries(self) -> Entries:
        return self._known().entries

    @property
    def failure(self) -> Exception | None:
        """The error that has ended the connection."""
        try:
            self._call("version")
        except SquallError as error:
            return error
        return None

    @property
    def is_running(self) -> bool:
        """True: batches come when the host applies them."""
        return True

    @property
    def is_attached(self) -> bool:
        return True

    @property
    def is_of_script(self) -> bool:
        """True if the host is the run of a script, which nobody else changes."""
        return not self._connections.takes_statements

    def execute(
        self, text: str, file: str = "session", maintains: bool = False, position: SourcePosition = START
    ) -> Iterator[Outcome]:
        """Let the host execute the statements of a text one by one; paths in them are by its folder."""
        for given, begins in list_statements(text, position):
            for statement in parse_script(given, file, begins):
                if isinstance(statement, Subscribe):
                    reader = self.subscribe(statement.name, statement.with_snapshot, span=statement.span)
                    yield Outcome("SUBSCRIBE", subscription=reader)
                    continue
                message = {"call": "execute", "text": given, "file": file, "position": begins}
                keeps = maintains and isinstance(statement, Select)
                told, tables = self._connections.call({**message, "maintains": keeps})
                yield Outcome(told["message"], tables[0] if tables else None, told["text"], told["view"])

    def ask(self, service: str, asked: Mapping[str, Any]) -> Answer:
        """Ask a service of the host."""
        return self._connections.call({"call": "ask", "service": service, **asked})

    def push(self, name: str, rows: Any, op: str = "+") -> int:
        """Push rows to a stream; a mistake in them is told before any is sent."""
        table = pushed_table(self._known().pushed(name), rows, op)
        told, _ = self._connections.call({"call": "push", "name": name}, [table])
        return int(told["rows"])

    def step(self) -> BatchReport | None:
        """Let the host apply one batch; its report has the plain figures."""
        report = self._call("step")["report"]
        return None if report is None else BatchReport(**report)

    def run_until_caught_up(self) -> int:
        batches = 0
        while self.step() is not None:
            batches += 1
        return batches

    def start(self) -> None:
        self._call("start")

    def stop(self) -> None:
        self._call("stop")

    def close(self) -> None:
        """Leave the session, which goes on; queries that were made for this one end."""
        self._connections.close()

    def table(self, name: str, span: Span | None = None) -> pa.Table:
        self._known().maintained(name, span)
        _, (table,) = self._connections.call({"call": "table", "name": name})
        return table

    def reads_streams(self, query: SelectText) -> bool:
        return self._known().reads_streams(query)

    def has_end(self, name: str) -> bool:
        return bool(self._call("has_end", name=name)["has_end"])

    def maintained_name(self, name: str) -> str:
        return self._known().maintained(name).name

    def columns(self, name: str, span: Span | None = None) -> tuple[Field, ...]:
        return self._known().columns(name, span)

    def schema(self, text: str, file: str = "session") -> tuple[Field, ...]:
        return self._known().schema(text, file)

    def stats(self, name: str) -> Mapping[str, Any]:
        stats: Mapping[str, Any] = self._call("stats", name=name)["stats"]
        return stats

    def subscribe(
        self,
        name: str,
        with_snapshot: bool = False,
        limit: int | None = None,
        span: Span | None = None,
        newest: bool = False,
    ) -> "RemoteSubscription":
        self._known().maintained(name, span)
        try:
            peer = self._connections.connect()
        except (OSError, Disconnected):
            raise self._connections.ended() from None
        asked = {"name": name, "with_snapshot": with_snapshot, "limit": limit, "newest": newest}
        return RemoteSubscription(peer, asked, self._connections.ended)

    def on_change(self, name: str, callback: Callable[[Any], None]) -> None:
        """Call a function with each change of a view, in a thread of its own, until the session is closed."""
        reader = self.subscribe(name)

        def run() -> None:
            with suppress(SquallError):
                while not reader.is_closed:
                    if change := reader.next(timeout=_LOOK):
                        callback(change)

        threading.Thread(target=run, name="squallpy changes", daemon=True).start()


def _mirrored(told: Mapping[str, Any], settings: Settings) -> Definitions:
    """Define what a host has told of its session, without opening anything."""
    compiler = SessionCompiler(settings, Path(told["base"]), dict(told["columns"]))
    compiler.rows, compiler.present = dict(told["rows"]), tuple(told["present"])
    definitions = unopened_definitions(compiler)
    for text in told["statements"]:
        for statement in parse_script(text, "session"):
            definitions.execute(statement, text)
    return definitions


class RemoteSubscription(ChangeReader):
    """Changes of a view that wait at the host for their reader."""

    def __init__(self, peer: socket.socket, asked: Mapping[str, Any], ended: Callable[[], SquallError]) -> None:
        self._peer, self._ended, self._is_closed, self._lock = peer, ended, False, threading.Lock()
        self.view = self._ask({"call": "subscribe", **asked})[0]["view"]

    def _ask(self, message: Mapping[str, Any]) -> Answer:
        try:
            return _checked(*_exchange(self._peer, message))
        except Disconnected:
            is_closed = self._is_closed
            self.close()
            if is_closed:
                return {"number": None, "is_closed": True}, []
            raise self._ended() from None
        except BaseException:
            self.close()
            raise

    def next(self, timeout: float | None = None) -> ViewChange | None:
        with self._lock:
            if self._is_closed:
                return None
            told, tables = self._ask({"call": "next", "timeout": timeout})
            if told["is_closed"] and not tables:
                self.close()
            return ViewChange(told["number"], *tables) if tables else None

    def close(self) -> None:
        self._is_closed = True
        with suppress(OSError):
            self._peer.shutdown(socket.SHUT_RDWR)
        self._peer.close()

    @property
    def is_closed(self) -> bool:
        return self._is_closed
