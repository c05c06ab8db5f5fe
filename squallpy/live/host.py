"""The host of a session, or of a run: it answers those who attach to it by a socket in the folder of its checkpoint.

state/.host/socket      a Unix socket; its folder is for the owner of the process alone (0700)

Those who are attached read, and with `writes` give statements, push rows and apply batches, each in its turn. Queries
that were made for one of them end with it.
"""

import os
import select
import socket
import stat
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import fields
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import pyarrow as pa

from squallpy import __version__
from squallpy.base.errors import SquallError
from squallpy.base.events import CHECKPOINT, WARNING, log_event
from squallpy.frontend.declaration_text import qualified
from squallpy.frontend.script import parse_script
from squallpy.frontend.source_text import SourcePosition
from squallpy.frontend.statements import READS, Select
from squallpy.live.messages import Disconnected, encode_error, receive, send
from squallpy.live.subscription import Subscription
from squallpy.runtime.observers.report import BatchReport

if TYPE_CHECKING:
    from squallpy.live.hosted_run import HostedRun
    from squallpy.live.live_session import LiveSession

    Hosted: TypeAlias = LiveSession | HostedRun
    """A session, or the run of a script."""

FOLDER, NAME = ".host", "socket"
_LONGEST = 100  # bytes of the path of a socket, of which systems allow 104 to 108
_LOOK = 0.5  # seconds between two looks whether who waits for a change is still there
Answer = tuple[Mapping[str, Any], list[pa.Table]]
Service = Callable[[Mapping[str, Any]], Answer]
Services = Mapping[str, Callable[["Hosted"], Service]]
"""More that a host answers, by name: what begins it when it is first asked for."""


@contextmanager
def socket_path(checkpoint: Path) -> Iterator[str]:
    """Yield a path of the socket that is short enough for the system, also in a deep folder."""
    folder = checkpoint / FOLDER
    if len(os.fsencode(folder / NAME)) <= _LONGEST:
        yield str(folder / NAME)
        return
    opened = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield f"/proc/self/fd/{opened}/{NAME}"
    finally:
        os.close(opened)


def is_private(folder: Path) -> bool:
    """True if a folder belongs to this user, and nobody else may look into it."""
    found = os.stat(folder)
    return found.st_uid == os.geteuid() and not stat.S_IMODE(found.st_mode) & 0o077


class Host:
    """The socket of a session at a checkpoint whose lease this process holds."""

    def __init__(self, checkpoint: Path) -> None:
        self._checkpoint, self._folder = checkpoint, checkpoint / FOLDER
        self._clients, self._made, self._peers = Counter[str](), dict[str, list[str]](), set[socket.socket]()
        self._lock = threading.Lock()
        self._services: Services = {}
        self._begun = dict[str, Service]()
        self._socket = self._open()

    def _open(self) -> socket.socket | None:
        """Listen; who attaches is answered when the session is there. None where there can be no socket."""
        try:
            self._folder.mkdir(mode=0o700, exist_ok=True)
            self._folder.chmod(0o700)
            (self._folder / NAME).unlink(missing_ok=True)  # NB: of one that was killed, for the lease is held
            opened = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            try:
                with socket_path(self._checkpoint) as path:
                    opened.bind(path)
                opened.listen()
            except BaseException:
                opened.close()
                raise
        except OSError as error:
            log_event(CHECKPOINT, WARNING, "nobody can attach", checkpoint=str(self._checkpoint), error=str(error))
            return None
        return opened

    def serve(self, open: "Callable[[], tuple[Hosted, Services]]") -> None:
        """Answer those who attach, in threads."""
        if self._socket:
            threading.Thread(target=self._accept, args=(open,), name="squallpy host", daemon=True).start()

    def _accept(self, open: "Callable[[], tuple[Hosted, Services]]") -> None:
        assert self._socket
        while True:
            try:
                peer, _ = self._socket.accept()
            except OSError:  # closed
                return
            session, self._services = open()
            threading.Thread(target=self._attend, args=(session, peer), name="squallpy attached", daemon=True).start()

    def _attend(self, session: "Hosted", peer: socket.socket) -> None:
        """Answer one connection until it ends."""
        with peer, suppress(Disconnected):
            hello, _ = receive(peer)
            client, writes = str(hello.get("client")), bool(hello.get("writes"))
            if (version := hello.get("version")) != __version__:
                message = f"the session is one of squallpy {__version__}, and this is {version}"
                send(peer, {"error": encode_error(SquallError("SQ7014", message))})
                return
            with self._lock:
                self._clients[client] += 1
                self._peers.add(peer)
                made = self._made.setdefault(client, [])
            connection = _Connection(session, peer, writes, made, partial(self._service, session))
            try:
                send(peer, {"writes": session.is_writable})
                while True:
                    connection.answer(*receive(peer))
            finally:
                connection.close()
                self._leave(session, peer, client)

    def _service(self, session: "Hosted", name: str) -> Service:
        """Return a service, which begins when it is first asked for."""
        with self._lock:
            if name not in self._begun:
                self._begun[name] = self._services[name](session)
            return self._begun[name]

    def _leave(self, session: "Hosted", peer: socket.socket, client: str) -> None:
        """Drop the queries of one that has left with its last connection."""
        with self._lock:
            self._peers.discard(peer)
            self._clients[client] -= 1
            made = [] if self._clients[client] > 0 else self._made.pop(client, [])
        for name in made if session.failure is None else ():
            text = f"DROP MATERIALIZED VIEW IF EXISTS {qualified(name)}"
            with suppress(SquallError):  # dropped by hand, or read by views of others
                (statement,) = parse_script(text, "session")
                session.execute_statement(statement, text)

    def close(self) -> None:
        """Listen no more; those who are attached find their session ended."""
        if self._socket:
            with self._lock:
                closed = [self._socket, *self._peers]
            for each in closed:
                with suppress(OSError):
                    each.shutdown(socket.SHUT_RDWR)
            self._socket.close()
            with suppress(OSError):
                (self._folder / NAME).unlink()
                self._folder.rmdir()


class _Connection:
    """A connection of one that is attached.

    Args:
        made: The queries that were made for it.
        service: Returns a service by its name.
    """

    def __init__(
        self, session: "Hosted", peer: socket.socket, writes: bool, made: list[str], service: Callable[[str], Service]
    ) -> None:
        self._session, self._peer, self._writes, self._made, self._service = session, peer, writes, made, service
        self._reader: Subscription | None = None

    def answer(self, message: Mapping[str, Any], tables: list[pa.Table]) -> None:
        """Do what a message asks for, and send what came of it, or its error."""
        calls: dict[str, Callable[[], Answer]] = {
            "version": lambda: ({"version": self._session.version}, []),
            "definitions": lambda: (self._session.definitions(), []),
            "execute": lambda: self._execute(
                message["text"], message["file"], message["maintains"], SourcePosition(*message["position"])
            ),
            "push": lambda: self._push(message["name"], tables[0]),
            "step": self._step,
            "start": self._start,
            "stop": self._stop,
            "table": lambda: ({}, [self._session.table(message["name"])]),
            "has_end": lambda: ({"has_end": self._session.has_end(message["name"])}, []),
            "stats": lambda: ({"stats": self._session.stats(message["name"])}, []),
            "subscribe": lambda: self._subscribe(message),
            "next": lambda: self._next(message["timeout"]),
            "ask": lambda: self._service(message["service"])(message),
        }
        try:
            told, found = calls[message["call"]]()
        except Disconnected:
            raise
        except Exception as error:
            told, found = {"error": encode_error(error)}, []
        send(self._peer, told, found)

    def close(self) -> None:
        """Let no changes wait for it any longer."""
        if self._reader:
            self._reader.close()

    def _check_writes(self, what: str) -> None:
        if not self._writes and self._session.is_writable:  # NB: a run refuses by itself, and says why
            message = f"{what} changes the session that another process has, and this one only reads"
            raise SquallError("SQ7013", message, hint="attach with --write, or connect(…, write=True)")

    def _execute(self, text: str, file: str, maintains: bool, position: SourcePosition) -> Answer:
        """Execute a statement."""
        (statement,) = parse_script(text, file, position)
        if maintains and isinstance(statement, Select):
            self._check_writes("a SELECT that is kept fresh")
            outcome = self._session.maintain(statement)
            assert outcome.view
            self._made.append(outcome.view)
        else:
            if not isinstance(statement, READS):
                self._check_writes("the statement")
            outcome = self._session.execute_statement(statement, text)
        told = {"message": outcome.message, "text": outcome.text, "view": outcome.view}
        return told, [] if outcome.table is None else [outcome.table]

    def _push(self, name: str, table: pa.Table) -> Answer:
        self._check_writes("a push")
        return {"rows": self._session.push_table(name, table)}, []

    def _step(self) -> Answer:
        self._check_writes("a batch")
        report = self._session.step()
        return {"report": None if report is None else _figures(report)}, []

    def _start(self) -> Answer:
        self._check_writes("starting batches")
        self._session.start()
        return {}, []

    def _stop(self) -> Answer:
        self._check_writes("stopping batches")
        self._session.stop()
        return {}, []

    def _subscribe(self, asked: Mapping[str, Any]) -> Answer:
        self._reader = self._session.subscribe(
            asked["name"], asked["with_snapshot"], asked["limit"], newest=asked["newest"]
        )
        return {"view": self._reader.view}, []

    def _next(self, timeout: float | None) -> Answer:
        """Take the next change of what the connection is subscribed to, as long as its other end is there."""
        assert self._reader
        left = float("inf") if timeout is None else timeout
        change = self._reader.next(min(left, _LOOK))
        while change is None and not self._reader.is_over and (left := left - _LOOK) > 0:
            if select.select([self._peer], [], [], 0)[0]:  # NB: it waits for the answer, and sends nothing but its end
                raise Disconnected
            change = self._reader.next(min(left, _LOOK))
        told = {"number": change.number if change else None, "is_closed": self._reader.is_closed}
        return told, [change.deletes, change.inserts] if change else []


def _figures(report: BatchReport) -> dict[str, Any]:
    """Return the plain figures of a report."""
    values = {each.name: getattr(report, each.name) for each in fields(report)}
    return {name: value for name, value in values.items() if isinstance(value, int | float)}
