"""A thread that receives the transactions of a replication slot as they are committed, and tells what is durable.

receiver = WalReceiver(server, "squall", "publication")
receiver.start()
receiver.take(at_most=1000)    →   transactions that have come
receiver.confirm(lsn)              the server may forget what lies before

When the server goes away it is waited for, and told once; what had been received stays.
"""

import select
import struct
import threading
import time
from collections import deque
from collections.abc import Collection
from dataclasses import field

import psycopg
from psycopg import pq
from psycopg.pq.abc import PGconn

from squallpy.base.errors import SquallError
from squallpy.base.events import SOURCES, WARNING, first_line, log_event
from squallpy.base.records import dataclass
from squallpy.runtime.connectors.backoff import pause
from squallpy.runtime.connectors.postgres import pgoutput
from squallpy.runtime.connectors.postgres.connection import Server, is_passing
from squallpy.runtime.connectors.postgres.pgoutput import Changes, Layout

EPOCH = 946_684_800  # 2000-01-01 in Unix time
ANSWER = 1.0  # seconds between messages to the server
HELD = 128 << 20  # bytes of messages received ahead; then the server waits


@dataclass(slots=True)
class Transaction:
    """A committed transaction: where it ends in the log, when it was committed, what it has changed by table.

    Args:
        rows: The number of its changes, and behind it the number of all up to it.
        truncated: The tables that it truncates.
    """

    end: int = 0
    rows: int = 0
    rows_so_far: int = 0
    committed: float = 0.0
    changes: dict[int, list[Changes]] = field(default_factory=dict)
    truncated: set[int] = field(default_factory=set)
    size: int = 0


class WalReceiver:
    """Transactions of a slot, from the place on that the server knows as confirmed.

    Args:
        tables: The numbers of tables whose changes are kept.
        is_temporary: The slot goes with its connection, so that a lost one cannot be made anew.
        connection: A connection for replication that is there already.
    """

    def __init__(
        self,
        server: Server,
        slot: str,
        publication: str,
        tables: Collection[int],
        is_temporary: bool,
        connection: PGconn | None,
    ) -> None:
        self.server, self._slot, self._publication, self._tables = server, slot, publication, frozenset(tables)
        self._is_temporary, self._connection = is_temporary, connection
        self._received, self._lock = deque[Transaction](), threading.Condition()
        self._held = self._confirmed = 0
        self.reached = 0
        """The place up to which everything has been received."""
        self.error: SquallError | None = None
        self.is_asked = False
        """True if the server asks what is confirmed, as before it ends: it waits for all to be."""
        self.is_away = False
        self._closing = threading.Event()
        self._thread: threading.Thread | None = None
        self._layouts = dict[int, Layout]()
        self._open, self._is_open = Transaction(), False

    def start(self) -> None:
        """Begin to receive, in a thread; SQ8010 if the server refuses it."""
        self._begin()
        self._thread = threading.Thread(target=self._run, name=f"slot {self._slot}", daemon=True)
        self._thread.start()

    def take(self) -> list[Transaction]:
        """Take the transactions that have come."""
        with self._lock:
            taken = [*self._received]
            self._received.clear()
            return taken

    def released(self, size: int) -> None:
        """Take note that so many bytes of messages are held no more."""
        with self._lock:
            self._held -= size
            self._lock.notify_all()

    def confirm(self, place: int) -> None:
        """Let the server forget what lies before a place."""
        self._confirmed, self.is_asked = max(self._confirmed, place), False

    def wait(self, seconds: float) -> None:
        """Wait for more, or an error."""
        with self._lock:
            self._lock.wait(seconds)

    def close(self) -> None:
        """End the thread and the connection, after a last word of what is durable."""
        self._closing.set()
        if self._thread:
            self._thread.join(10)
        elif self._connection:
            self._connection.finish()

    def _begin(self) -> None:
        connection = self._connection or self.server.replicate()
        self._connection = None
        names = self._publication.replace("'", "''").replace('"', '""')
        command = (
            f"START_REPLICATION SLOT \"{self._slot}\" LOGICAL 0/0 (proto_version '1', publication_names '\"{names}\"')"
        )
        result = connection.exec_(command.encode())
        if result.status != pq.ExecStatus.COPY_BOTH:
            error = psycopg.errors.error_from_result(result)
            connection.finish()
            raise _Refused(error)
        self._connection = connection

    def _run(self) -> None:
        """Receive until the end, over as many connections as it takes."""
        tries = 0
        while not self._closing.is_set():
            try:
                if self._connection is None:
                    self._begin()
                    log_event(SOURCES, WARNING, "server is back", server=str(self.server), slot=self._slot)
                self.is_away, tries = False, 0
                self._receive()
            except (psycopg.Error, _Refused, SquallError) as error:
                self._drop()
                if self._closing.is_set():
                    return
                cause = error.error if isinstance(error, _Refused) else error
                if self._is_fatal(cause):
                    self._fail(cause)
                    return
                if not self.is_away:
                    log_event(SOURCES, WARNING, "server is away", server=str(self.server), reason=first_line(cause))
                self.is_away = True
                self._closing.wait(pause(tries))
                tries += 1
            except Exception as error:
                self._drop()
                self._fail(error)
                return
        self._drop()

    def _is_fatal(self, error: Exception) -> bool:
        if self._is_temporary:
            return True
        return isinstance(error, psycopg.Error) and not is_passing(error) and error.sqlstate is not None

    def _fail(self, error: Exception) -> None:
        with self._lock:
            if isinstance(error, psycopg.Error):
                self.error = slot_error(self.server, self._slot, error)
            elif isinstance(error, SquallError):
                self.error = error
            else:
                self.error = SquallError("SQ4008", f"the log of {self.server} cannot be read: {error}")
            self._lock.notify_all()

    def _drop(self) -> None:
        if self._connection:
            self._connection.finish()
        self._connection = None

    def _receive(self) -> None:
        """Receive messages of one connection; psycopg.OperationalError when it ends."""
        connection = self._connection
        assert connection
        self._open, self._is_open, said, confirmed = Transaction(), False, 0.0, 0
        after = self.reached  # NB: a new connection begins where the server knows, which is before what was received
        poll = select.poll()
        poll.register(connection.socket, select.POLLIN)
        while True:
            now = time.monotonic()
            is_closing = self._closing.is_set()
            if now - said > ANSWER or (self._confirmed > confirmed and now - said > ANSWER / 10) or is_closing:
                self._answer(connection)
                said, confirmed = now, self._confirmed
            if is_closing:
                connection.put_copy_end()
                connection.flush()
                return
            if self._held > HELD:
                self.wait(ANSWER / 10)
                continue
            length, message = connection.get_copy_data(1)
            if length == 0:
                poll.poll(50)
                connection.consume_input()
                continue
            if length < 0:
                result = connection.get_result()
                said_last = connection.error_message.decode(errors="replace")
                if result is not None and result.status == pq.ExecStatus.FATAL_ERROR:
                    raise psycopg.errors.error_from_result(result)
                raise psycopg.OperationalError(said_last or "the connection was closed")
            kind = message[0]
            if kind == ord("k"):
                end, _, wants_answer = struct.unpack(">QQB", bytes(message[1:18]))
                if not self._is_open:
                    self._reach(end)
                if wants_answer:
                    self.is_asked, said = True, 0.0
            elif kind == ord("w"):
                self._read(bytes(message[25:]), after)

    def _answer(self, connection: PGconn) -> None:
        at, micros = self._confirmed, int((time.time() - EPOCH) * 1e6)
        connection.put_copy_data(struct.pack(">cQQQQB", b"r", max(at, self.reached), at, at, micros, 0))
        connection.flush()

    def _read(self, message: bytes, after: int) -> None:
        """Take a message of the plugin to the transaction in work."""
        kind, work = message[0], self._open
        self._is_open = kind != pgoutput.COMMIT
        if kind in (pgoutput.INSERT, pgoutput.UPDATE, pgoutput.DELETE):
            self._keep(int.from_bytes(message[1:5], "big"), message)
        elif kind == pgoutput.COMMIT:
            _, end, micros = struct.unpack_from(">QQq", message, 2)
            work.end, work.committed = end, EPOCH + micros / 1e6
            self._open = Transaction()
            if end > after and work.rows:
                with self._lock:
                    self._received.append(work)
                    self._held += work.size
            self._reach(end)
        elif kind == pgoutput.RELATION:
            layout = Layout.read(message)
            if self._layouts.get(layout.oid) != layout:
                self._layouts[layout.oid] = layout
        elif kind == pgoutput.TRUNCATE:
            (count,) = struct.unpack_from(">I", message, 1)
            for oid in struct.unpack_from(f">{count}I", message, 6):
                self._keep(oid, pgoutput.truncation(oid))
                work.truncated.add(oid)

    def _keep(self, oid: int, message: bytes) -> None:
        """Add a change of a table to the transaction in work."""
        if oid not in self._tables:
            return
        work, layout = self._open, self._layouts[oid]
        parts = work.changes.get(oid)
        if parts is None:
            parts = work.changes[oid] = []
        if not parts or parts[-1].layout is not layout:
            parts.append(Changes(layout, []))
        parts[-1].messages.append(message)
        work.size += len(message) + 100  # NB: what Python adds
        work.rows += 1

    def _reach(self, place: int) -> None:
        with self._lock:
            self.reached = max(self.reached, place)
            self._lock.notify_all()


class _Refused(Exception):
    """The server refuses to replicate."""

    def __init__(self, error: psycopg.Error) -> None:
        super().__init__(str(error))
        self.error = error


def slot_error(server: Server, slot: str, error: psycopg.Error) -> SquallError:
    """Describe what is wrong with a slot."""
    if error.sqlstate == "42704":
        hint = "begin anew with another checkpoint: it copies the tables again"
        return SquallError("SQ4009", f'the replication slot "{slot}" of {server} is gone', hint=hint)
    if error.sqlstate == "55006":
        hint = "stop the other run, or give each a slot.name and a checkpoint of its own"
        return SquallError("SQ4009", f'the replication slot "{slot}" of {server} is in use', hint=hint)
    return server.error(error)
