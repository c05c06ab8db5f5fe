"""The lease of a checkpoint, which one run at a time holds.

    with hold_folder(Path("kept")) as lease:        SQ6007, which names the run, if another run holds it
        lease.check()                               SQ6008 if it was lost meanwhile

In a folder that this host can lock, the lease is a lock of the operating system (flock), which a run loses when it
dies. Elsewhere a run writes a record there, and again every few seconds; a record that has not changed for long belongs
to a dead run. That is a best effort: no such file system can compare and write in one step.

    {"token": "5f…", "host": "a", "boot": "3c…", "space": "pid:[4026531836]", "process": 71, "started": 1042, "beat": 3}
"""

import errno
import fcntl
import json
import os
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from time import monotonic, sleep

from squallpy.base.errors import SquallError
from squallpy.base.events import CHECKPOINT, ERROR, WARNING, log_event
from squallpy.base.records import dataclass
from squallpy.runtime.checkpoint.durable_folder import Durable, open_durable, reporting_no_room
from squallpy.runtime.checkpoint.partition_head import boot_id, fresh_name

NAME = ".lease"  # NB: hidden, so that a folder with nothing else is a new one
_BEAT, _STALE = 5.0, 20.0  # seconds between records; seconds without a new one after which its run is taken for dead
_SETTLE, _LOOK = 1.0, 1.0  # seconds until concurrent records are visible; seconds between polls
_GAP = 0.2  # seconds after which a record is back that its run is replacing
_TAKEN = (errno.EWOULDBLOCK, errno.EACCES)


@dataclass(frozen=True, slots=True)
class Owner:
    """A run, as its record describes it. `started` is its process's start, in ticks since `boot`."""

    token: str
    host: str
    boot: str
    space: str
    process: int
    started: int
    beat: int = 0

    @classmethod
    def here(cls) -> "Owner":
        """Describe this process."""
        me = os.getpid()
        return cls(fresh_name(), socket.gethostname(), boot_id(), _space(), me, _started(me) or 0)

    @classmethod
    def read(cls, text: bytes | None) -> "Owner | None":
        """Parse a record; None if it is invalid."""
        try:
            return None if text is None else cls(**json.loads(text))
        except (ValueError, TypeError):
            return None

    def packed(self) -> bytes:
        """Write the record."""
        return json.dumps(asdict(self)).encode()

    @property
    def is_dead(self) -> bool:
        """True if this host can tell that the process is gone."""
        if self.host != socket.gethostname():
            return False
        return self.boot != boot_id() or (self.space == _space() and _started(self.process) != self.started)

    @property
    def is_alive(self) -> bool:
        """True if this host can tell that the process is there, and it is another one."""
        here = (self.host, self.boot, self.space) == (socket.gethostname(), boot_id(), _space())
        return here and self.process != os.getpid() and _started(self.process) == self.started

    def __str__(self) -> str:
        return f"process {self.process} on {self.host}"


class Lease:
    """The right to change a checkpoint; `read` reads its owner."""

    def __init__(self, folder: str, owner: Owner, read: Callable[[], Owner | None]) -> None:
        self._where, self._owner, self._read = folder, owner, read

    @property
    def is_held(self) -> bool:
        """True while the record is this run's."""
        found = self._read()
        return found is not None and found.token == self._owner.token

    def check(self) -> None:
        """Raise SQ6008 if the lease was lost: nothing may be written any more."""
        found = self._read()
        if found is None or found.token != self._owner.token:
            by = f"taken over by {found}" if found else "removed"
            log_event(CHECKPOINT, ERROR, "lease lost", checkpoint=self._where, by=by)
            what = f"the checkpoint {self._where} was {by} while this run used it"
            raise SquallError("SQ6008", what, hint="this run has stopped; what it did since then does not count")


@contextmanager
def hold_folder(folder: Path) -> Iterator[Lease]:
    """Hold the lease of a local folder, with a record alone where it has no locks; SQ6007 if another run has it."""
    path, owner = folder / NAME, Owner.here()
    with reporting_no_room(str(path)):
        file = _open_locked(path, str(folder))
    if file is None:
        with hold_shared(str(folder)) as lease:
            yield lease
        return
    try:
        if (found := _read(path)) and found.is_alive:  # at a URI, without a lock
            raise _in_use(str(folder), found)
        with reporting_no_room(str(path)):
            os.ftruncate(file, 0)
            os.pwrite(file, owner.packed(), 0)
        lease = Lease(str(folder), owner, lambda: _read(path))
        try:
            yield lease
        finally:
            if lease.is_held:  # NB: under the lock, so that the record is this run's own
                with suppress(OSError):
                    path.unlink()
    finally:
        os.close(file)


def _open_locked(path: Path, folder: str) -> int | None:
    """Open and lock the lock file; None if this file system has no locks.

    NB: a child that had the descriptor would keep the lock when this process is dead; Python's are not inherited.
    """
    while True:
        file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if os.path.samestat(os.fstat(file), os.stat(path)):
                return file
        except FileNotFoundError:  # its run has just ended
            pass
        except OSError as error:
            if error.errno in _TAKEN:
                raise _in_use(folder, _read(path)) from None
            os.close(file)
            return None
        except BaseException:
            os.close(file)
            raise
        os.close(file)


def _read(path: Path) -> Owner | None:
    try:
        return Owner.read(path.read_bytes())
    except (FileNotFoundError, NotADirectoryError):
        return None


@contextmanager
def hold_shared(where: str, pause: Callable[[float], None] = sleep) -> Iterator[Lease]:
    """Hold the lease of a folder on any file system; SQ6007 if another run has it.

    Waits while it is unknown whether the former owner is dead.
    """
    owner = Owner.here()
    folder = open_durable(where, f"lease-{owner.token}")  # NB: two runs that begin at once write a draft each
    read = partial(_read_shared, folder, pause)
    _await_end(read, where, pause)
    with reporting_no_room(where):
        _write(folder, owner)
    pause(_SETTLE)
    lease = Lease(where, owner, read)
    if not lease.is_held:
        raise _in_use(where, read())
    ended = threading.Event()
    thread = threading.Thread(target=_keep_alive, args=(folder, owner, lease, ended), name="lease", daemon=True)
    thread.start()
    try:
        yield lease
    finally:
        ended.set()
        thread.join()
        with suppress(OSError):
            if lease.is_held:
                folder.delete(NAME)


def _read_shared(folder: Durable, pause: Callable[[float], None]) -> Owner | None:
    """Read a record, and once more if there is none: HDFS deletes a file before another takes its name."""
    text = folder.read(NAME)
    if text is None:
        pause(_GAP)
        text = folder.read(NAME)
    return Owner.read(text)


def _await_end(read: Callable[[], Owner | None], where: str, pause: Callable[[float], None]) -> None:
    """Return when no run has the folder; SQ6007 as soon as one shows that it is alive."""
    first, waited = read(), 0.0
    if first is not None and first.is_alive:
        raise _in_use(where, first)
    while first is not None and not first.is_dead and waited < _STALE:
        pause(_LOOK)
        waited += _LOOK
        found = read()
        if found is not None and found != first:
            raise _in_use(where, found)
        first = found


def _keep_alive(folder: Durable, owner: Owner, lease: Lease, ended: threading.Event) -> None:
    """Rewrite the record regularly, until the run ends or another owns it."""
    due = monotonic() + _BEAT
    while not ended.wait(max(0.0, due - monotonic())):
        due = monotonic() + _BEAT
        try:
            if not lease.is_held:
                return
            owner = replace(owner, beat=owner.beat + 1)
            _write(folder, owner)
        except (OSError, SquallError) as error:  # NB: it may be reachable again before the record is stale
            log_event(CHECKPOINT, WARNING, "lease not renewed", error=str(error))


def _write(folder: Durable, owner: Owner) -> None:
    folder.create(NAME, lambda sink: sink.write(owner.packed()))


def _in_use(folder: str, owner: Owner | None) -> SquallError:
    by = f"{owner}" if owner else "another run"
    return SquallError("SQ6007", f"the checkpoint {folder} is in use by {by}", hint="wait for its end, or name another")


def _space() -> str:
    """Name the namespace of process ids, of which each container has its own."""
    try:
        return os.readlink("/proc/self/ns/pid")
    except OSError:
        return ""


def _started(process: int) -> int | None:
    """Read the start of a process, in ticks since boot; None if it does not run, 0 if that cannot be read."""
    try:
        stat = Path(f"/proc/{process}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        if Path("/proc/self/stat").exists():
            return None
        try:
            os.kill(process, 0)
        except ProcessLookupError:
            return None
        except OSError:
            pass
        return 0
    return int(stat.rpartition(")")[2].split()[19])
