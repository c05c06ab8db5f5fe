"""A replication slot as a log: rows of its tables as they were when it was made, then what each transaction changed.

    log = SlotLog(server, "squall", "publication", "initial")
    log.add("t", table, …)                     the streams of a script that name this slot
    log.latest({"row": 0, "lsn": 7}, 1000)     →   {"row": 1000, "lsn": 7}       rows of the snapshot come first
    log.latest({"row": 5000, "lsn": 7}, 1000)  →   {"row": 5000, "lsn": 911}     then whole transactions

The slot is made with an exported snapshot of the database, in which all tables are copied: no change is twice or
missing. The copy is complete before a row is given out, and what is known of it is a record in the checkpoint; a run
that is killed before begins anew. Streams are at the same place, so that no batch has a part of a transaction.
"""

import json
import zlib
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import field
from itertools import accumulate
from operator import attrgetter
from time import monotonic, sleep
from typing import Any
from uuid import uuid4

import psycopg
from psycopg import pq, sql
from psycopg.pq.abc import PGconn

from squallpy.base.errors import SquallError
from squallpy.base.events import INFO, SOURCES, log_event
from squallpy.base.records import dataclass
from squallpy.runtime.checkpoint.checksummed_record import read_record, write_record
from squallpy.runtime.checkpoint.durable_folder import open_durable
from squallpy.runtime.connectors.backoff import pause
from squallpy.runtime.connectors.postgres.connection import Connection, Server
from squallpy.runtime.connectors.postgres.pgoutput import Changes, Layout
from squallpy.runtime.connectors.postgres.snapshot import Pieces, copy_table
from squallpy.runtime.connectors.postgres.tables import NOT_FOLLOWED, ServerTable, check_followed, find_table
from squallpy.runtime.connectors.postgres.wal_receiver import Transaction, WalReceiver, slot_error
from squallpy.runtime.sources.protocol import Offset

NOTE = 10.0  # seconds between notes of how far the slot has moved over what others have changed
ANEW = "begin anew with another checkpoint: it copies the tables again"
RELEASE = 10.0  # seconds in which a server notices that a run was killed, and lets go of its slot


@dataclass
class Member:
    """A stream that is read from a log.

    Args:
        columns: Those of the table that are declared, by its own names.
        read: Those of them that queries read.
        committed: The place up to which its batches are durable.
    """

    name: str
    written: str
    columns: tuple[str, ...]
    key: tuple[str, ...]
    table: ServerTable
    is_begun: bool = False
    read: frozenset[str] = frozenset()
    committed: Offset = field(default_factory=dict)


class SlotLog:
    """The log of a slot, which the streams of a run share.

    Args:
        mode: 'initial' gives the rows that are there first, 'never' only changes.
    """

    def __init__(self, server: Server, slot: str, publication: str, mode: str) -> None:
        self.server, self.slot, self.publication, self.mode = server, slot, publication, mode
        self._prefix = slot
        self._members = dict[str, Member]()
        self._folder: str | None = None
        self._ends, self._wanted = False, 0
        self._receiver: WalReceiver | None = None
        self._record: dict[str, Any] | None = None
        self._waiting, self._rows_so_far = list[Transaction](), 0
        self._reached, self._noted = 0, monotonic()
        self._gone = 0  # the place before which the slot tells no changes any more
        self._checked = list[Layout]()  # what has been compared with the columns that are read
        self._dropped = 0  # pieces of the snapshot, from the first on

    # streams

    def add(self, member: Member) -> None:
        """Add a stream; SQ7002 when others have been read already."""
        if self._record is not None:
            message = f'the slot "{self.slot}" serves the streams that were there when it began'
            raise SquallError("SQ7002", message, hint="give this one a slot.name of its own")
        self._members[member.name] = member

    def begin(self, name: str, folder: str | None, ends: bool) -> None:
        """Begin to read a stream; `folder` keeps what the next run has to know, `ends`: what is there now is enough."""
        self._members[name].is_begun = True
        self._folder, self._ends = folder, ends

    @property
    def is_behind(self) -> bool:
        """True if changes that were there when the run began have not come yet."""
        return self._ends and self._reached < self._wanted

    def remove(self, name: str) -> None:
        """Take a stream away; the log is closed after the last one."""
        self._members.pop(name, None)
        if not self._members and self._receiver:
            self._receiver.close()
            self._receiver = None

    # places

    def initial(self) -> Offset:
        """Return the place before all rows."""
        record = self._begun()
        return {"row": 0, "lsn": record["lsn"]}

    def latest(self, start: Offset, rows: int | None) -> Offset:
        """Return how far a batch may go: some rows of the snapshot, or whole transactions of about so many changes."""
        total = self._total
        if start["row"] < total:
            return {"row": total if rows is None else min(total, start["row"] + rows), "lsn": start["lsn"]}
        self._pull()
        end, first = start["lsn"], self._place(start)
        for at in range(first, len(self._waiting)):
            transaction = self._waiting[at]
            if rows is not None and self._rows_before(at) - self._rows_before(first) >= rows:
                break
            if problem := self._problem(transaction):
                if end != start["lsn"]:
                    break
                raise problem
            end = transaction.end
        if end == start["lsn"]:
            self._check()
            self._let_go()
        return {"row": start["row"], "lsn": end}

    def changes(self, name: str, start: Offset, end: Offset) -> list[Changes]:
        """Return what transactions between two places have changed of a stream's table."""
        self._await(end["lsn"])
        self._check_kept(name, start)
        oid, found = self._members[name].table.oid, list[Changes]()
        for transaction in self._between(start, end):
            for part in transaction.changes.get(oid, ()):
                if found and found[-1].layout is part.layout:
                    found[-1].messages.extend(part.messages)
                else:
                    found.append(Changes(part.layout, [*part.messages]))
        return found

    def snapshot(self, name: str, start: Offset, end: Offset) -> list[tuple[str, int, int]]:
        """Return the pieces of a stream's table that lie between two places: their names, and rows of them."""
        self._begun()
        if start["row"] < min(end["row"], self._pieces[self._dropped - 1][2] if self._dropped else 0):
            self._check_kept(name, {"lsn": -1})
        found = list[tuple[str, int, int]]()
        for piece, first, stop in self._pieces:
            low, high = max(first, start["row"]), min(stop, end["row"])
            if low < high and piece["stream"] == name:
                found.append((piece["name"], low - first, high - first))
        return found

    @property
    def pieces(self) -> Pieces:
        """The rows of the snapshot."""
        self._begun()
        return self._store

    def commit(self, name: str, end: Offset) -> None:
        """Take note that what lies before a place is durable for a stream."""
        self._members[name].committed = end
        ends = [each.committed for each in self._members.values() if each.is_begun]
        if not all(ends):
            return
        row, place = min(each["row"] for each in ends), min(each["lsn"] for each in ends)
        while self._dropped < len(self._pieces) and self._pieces[self._dropped][2] <= row:
            self._store.drop([self._pieces[self._dropped][0]["name"]])
            self._dropped += 1
        if done := bisect_right(self._waiting, place, key=_end):
            assert self._receiver
            self._receiver.released(sum(each.size for each in self._waiting[:done]))
            del self._waiting[:done]
        if self._receiver and row >= self._total:
            self._receiver.confirm(place)
            self._gone = max(self._gone, place)

    def committed_at(self, start: Offset, end: Offset) -> float | None:
        """Return when the first transaction between two places was committed."""
        return next((each.committed for each in self._between(start, end)), None)

    def backlog(self, end: Offset) -> tuple[int, float | None]:
        """Count the changes that have come behind a place, and tell since when the first waits."""
        at = self._place(end)
        since = self._waiting[at].committed if at < len(self._waiting) else None
        return max(0, self._total - end["row"]) + self._rows_so_far - self._rows_before(at), since

    @property
    def waits_for(self) -> str:
        """The server, if it is away."""
        return f"PostgreSQL at {self.server}" if self._receiver and self._receiver.is_away else ""

    # the slot and its snapshot

    def _begun(self) -> dict[str, Any]:
        """Take up the slot where a run before has left it, or make it, with the snapshot."""
        if self._record is not None:
            return self._record
        self._store = Pieces(self._folder, f"{self._key}-piece-")
        self._record = known = self.server.ask(self._take_up)
        self._pieces = self._numbered(known["pieces"])
        return known

    def _take_up(self, connection: Connection) -> dict[str, Any]:
        conditions = {m.name: self._check_table(connection, m) for m in self._members.values()}
        known = self._restore()
        if known:
            self._check_slot(connection, known)
        else:
            known = self._make(connection, conditions)
        if self._ends:
            flushed = connection.execute("SELECT pg_current_wal_flush_lsn()::text").fetchone()
            self._wanted = _number(flushed[0]) if flushed else 0
        return known

    def _check_table(self, connection: Connection, member: Member) -> str | None:
        member.table = find_table(connection, member.written, self.server)
        return check_followed(connection, member.table, self.publication, member.key)

    def _make(self, connection: Connection, conditions: dict[str, str | None]) -> dict[str, Any]:
        """Make the slot and copy the tables."""
        self._store.clear()
        is_temporary = self._folder is None
        if not is_temporary:
            self._drop_half_made(connection)
            self._write({"slot": self.slot, "complete": False})
        replication = self.server.replicate()
        # NB: a temporary slot of the attempt before may be there still, and so may those of other runs
        self.slot = name = f"{self._prefix}_{uuid4().hex[:8]}" if is_temporary else self._prefix
        exported = "export" if self.mode == "initial" else "nothing"
        kind = "TEMPORARY " if is_temporary else ""
        command = f"CREATE_REPLICATION_SLOT \"{name}\" {kind}LOGICAL pgoutput (SNAPSHOT '{exported}')"
        if connection.info.server_version < 150000:
            command = f'CREATE_REPLICATION_SLOT "{name}" {kind}LOGICAL pgoutput {exported.upper()}_SNAPSHOT'.replace(
                "NOTHING_SNAPSHOT", "NOEXPORT_SNAPSHOT"
            )
        result = replication.exec_(command.encode())
        if result.status != pq.ExecStatus.TUPLES_OK:
            error = psycopg.errors.error_from_result(result)
            replication.finish()
            raise self._slot_there() if error.sqlstate == "42710" else error
        place = _number((result.get_value(0, 1) or b"").decode())
        pieces = list[dict[str, Any]]()
        if self.mode == "initial":
            with connection.transaction():
                connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
                snapshot = (result.get_value(0, 2) or b"").decode()
                connection.execute(sql.SQL("SET TRANSACTION SNAPSHOT {}").format(sql.Literal(snapshot)))
                for member in self._members.values():
                    pieces += self._copy(connection, member, conditions[member.name], len(pieces))
        layouts = {m.name: self._layout(m) for m in self._members.values()}
        record = {"slot": name, "complete": True, "lsn": place, "pieces": pieces, "layouts": layouts}
        record |= {"from": place, "moved": place}
        self._write(record)
        log_event(SOURCES, INFO, "slot made", slot=name, server=str(self.server), rows=sum(p["rows"] for p in pieces))
        self._open_receiver(is_temporary, replication)
        return record

    def _copy(self, connection: Connection, member: Member, condition: str | None, first: int) -> list[dict[str, Any]]:
        pieces = list[dict[str, Any]]()
        for rows in copy_table(connection, member.table, member.columns, condition):
            name = f"{first + len(pieces)}"
            self._store.add(name, rows)
            pieces.append({"stream": member.name, "name": name, "rows": len(rows)})
        return pieces

    def _layout(self, member: Member) -> dict[str, Any]:
        """Describe the columns that are read, as the log will: by number of type and modifier."""
        found = {c.name: [c.oid, c.modifier] for n in member.columns if (c := member.table.column(n))}
        return {"oid": member.table.oid, "columns": found}

    def _drop_half_made(self, connection: Connection) -> None:
        """Drop a slot that a killed run has made before it had copied the tables; SQ4009 if it is not ours."""
        there = connection.execute(
            "SELECT active FROM pg_replication_slots WHERE slot_name = %s", (self.slot,)
        ).fetchone()
        if there is None:
            return
        if self.mode == "initial" and self._half_made:
            self._wait_until_free(connection)
            connection.execute("SELECT pg_drop_replication_slot(%s)", (self.slot,))
        else:
            raise self._slot_there()

    def _slot_there(self) -> SquallError:
        message = f'the replication slot "{self.slot}" of {self.server} is there already, of another run or checkpoint'
        hint = f"name another slot.name, or drop it: squall slots drop URL {self.slot}"
        return SquallError(NOT_FOLLOWED, message, hint=hint)

    def _check_slot(self, connection: Connection, known: dict[str, Any]) -> None:
        """Raise SQ4009 if the slot does not have all that comes behind what is durable."""
        for member in self._members.values():
            if member.name not in known["layouts"]:
                message = f'the slot "{self.slot}" was made without {member.written}'
                raise SquallError(NOT_FOLLOWED, message, hint=ANEW)
            if known["layouts"][member.name]["oid"] != member.table.oid:
                message = f"{member.written} is another table than the one that the checkpoint has read"
                raise SquallError(NOT_FOLLOWED, message, hint=ANEW)
        found = connection.execute(
            "SELECT confirmed_flush_lsn::text, wal_status, active_pid FROM pg_replication_slots WHERE slot_name = %s",
            (self.slot,),
        ).fetchone()
        where = f'the replication slot "{self.slot}" of {self.server}'
        if found is None:
            raise SquallError(
                NOT_FOLLOWED, f"{where} is gone: changes since {_text(known['moved'])} are lost", hint=ANEW
            )
        if found[1] == "lost":
            message = f"{where} has lost changes since {found[0]}: the server kept no more than max_slot_wal_keep_size"
            raise SquallError(NOT_FOLLOWED, message, hint=ANEW)
        confirmed = _number(found[0])
        self._gone = known["from"] if known["from"] < confirmed <= known["moved"] else confirmed
        self._wait_until_free(connection)
        self._open_receiver(False, None)

    def _wait_until_free(self, connection: Connection) -> None:
        until, tries = monotonic() + RELEASE, 0
        while connection.execute(
            "SELECT 1 FROM pg_replication_slots WHERE slot_name = %s AND active", (self.slot,)
        ).fetchone():
            if monotonic() > until:
                raise slot_error(self.server, self.slot, psycopg.errors.ObjectInUse("in use"))
            sleep(pause(tries))
            tries += 1

    def _open_receiver(self, is_temporary: bool, connection: PGconn | None) -> None:
        tables = [member.table.oid for member in self._members.values()]
        self._receiver = WalReceiver(self.server, self.slot, self.publication, tables, is_temporary, connection)
        try:
            self._receiver.start()
        except psycopg.Error as error:
            raise slot_error(self.server, self.slot, error) from None

    # the record in the checkpoint

    @property
    def _key(self) -> str:
        return f"slot-{zlib.crc32(f'{self.server} {self.slot}'.encode()):08x}"

    def _restore(self) -> dict[str, Any] | None:
        """Read the record of a run before; None if there is none, or its copy was not complete."""
        self._half_made = False
        if self._folder is None:
            return None
        text = read_record(open_durable(self._folder), self._key, self._folder)
        known: dict[str, Any] = json.loads(text) if text else {}
        self._half_made = known.get("complete") is False
        return known if known.get("complete") else None

    def _write(self, record: dict[str, Any]) -> None:
        if self._folder is not None:
            write_record(open_durable(self._folder, "slot"), self._key, json.dumps(record))

    def _numbered(self, pieces: Sequence[dict[str, Any]]) -> list[tuple[dict[str, Any], int, int]]:
        ends = [*accumulate((piece["rows"] for piece in pieces), initial=0)]
        return [(piece, ends[i], ends[i + 1]) for i, piece in enumerate(pieces)]

    @property
    def _total(self) -> int:
        self._begun()
        return self._pieces[-1][2] if self._pieces else 0

    # transactions

    def _pull(self) -> None:
        assert self._receiver
        self._reached = self._receiver.reached  # NB: read first, so that all before it is among what is taken
        for transaction in self._receiver.take():
            self._rows_so_far += transaction.rows
            transaction.rows_so_far = self._rows_so_far
            self._waiting.append(transaction)

    def _check(self) -> None:
        assert self._receiver
        if self._receiver.error:
            raise self._receiver.error

    def _await(self, place: int) -> None:
        """Wait until everything up to a place has been received, again after a restart."""
        self._begun()
        while True:
            self._pull()
            if self._reached >= place:
                return
            self._check()
            assert self._receiver
            self._receiver.wait(0.05)

    def _check_kept(self, name: str, start: Offset) -> None:
        """Raise SQ4009 if changes behind a place are told no more."""
        if start["lsn"] < self._gone:
            message = f"what {name} was before {_text(self._gone)} is told no more: its slot has moved on"
            raise SquallError(NOT_FOLLOWED, message, hint=f"{ANEW}; in a session, create views before rows come")

    def _place(self, offset: Offset) -> int:
        """Find the first transaction behind a place."""
        return bisect_right(self._waiting, offset["lsn"], key=_end)

    def _rows_before(self, at: int) -> int:
        """Count the changes before a transaction."""
        if at < len(self._waiting):
            return self._waiting[at].rows_so_far - self._waiting[at].rows
        return self._rows_so_far

    def _between(self, start: Offset, end: Offset) -> list[Transaction]:
        return self._waiting[self._place(start) : self._place(end)]

    def _problem(self, transaction: Transaction) -> SquallError | None:
        """Find what keeps a transaction from being read: a truncation without a key, a column that has changed."""
        assert self._record
        where = f"at {_text(transaction.end)}"
        for member in self._members.values():
            if member.table.oid in transaction.truncated and not member.key:
                message = (
                    f"{member.table} was truncated {where}, and {member.name} has no PRIMARY KEY by which rows are kept"
                )
                return SquallError(NOT_FOLLOWED, message, hint=f"{ANEW}; DELETE FROM tells each row")
            was = self._record["layouts"][member.name]["columns"]
            for part in transaction.changes.get(member.table.oid, ()):
                if any(part.layout is each for each in self._checked):
                    continue
                now = dict(
                    zip(part.layout.names, zip(part.layout.types, part.layout.modifiers, strict=True), strict=True)
                )
                for name, (oid, modifier) in ((name, was[name]) for name in was if name in member.read):
                    if name not in now:
                        message = f'the column "{name}" of {member.table} is there no more {where}'
                        return SquallError(NOT_FOLLOWED, message, hint=f"the batch before is whole; {ANEW}")
                    if now[name] != (oid, modifier):
                        message = f'the column "{name}" of {member.table} has another type {where}'
                        return SquallError(NOT_FOLLOWED, message, hint=f"the batch before is whole; {ANEW}")
                self._checked.append(part.layout)
        return None

    def _let_go(self) -> None:
        """Let the slot move over what others have changed, when nothing of ours is on its way."""
        record, now = self._record, monotonic()
        assert record and self._receiver
        is_due = self._receiver.is_asked or now - self._noted >= NOTE
        if self._waiting or not is_due or self._reached <= record["moved"]:
            return
        if any(not m.committed or m.committed["row"] < self._total for m in self._members.values() if m.is_begun):
            return
        self._noted = now
        record["from"] = min(m.committed["lsn"] for m in self._members.values() if m.is_begun)
        record["moved"] = self._reached
        self._write(record)
        self._receiver.confirm(self._reached)


_end = attrgetter("end")


def _number(place: str) -> int:
    """Read a place in the log: 0/16B3748 → 23803720"""
    high, low = place.split("/")
    return (int(high, 16) << 32) + int(low, 16)


def _text(place: int) -> str:
    """Write a place in the log as the server does."""
    return f"{place >> 32:X}/{place & 0xFFFFFFFF:X}"
