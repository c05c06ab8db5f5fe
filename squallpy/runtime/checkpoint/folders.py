"""Where a query's state is: a durable folder, in the checkpoint, and a local one of mapped files."""

import json
import os
import shutil
import socket
import stat
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from squallpy.base.errors import SquallError
from squallpy.base.location import local_path
from squallpy.base.trace import SILENT, Trace
from squallpy.runtime.checkpoint.durable import Durable, keeping, open_durable, within
from squallpy.runtime.checkpoint.input_files import ReadSums
from squallpy.runtime.checkpoint.partition import Run, StatePartition
from squallpy.runtime.checkpoint.record import damaged, read_record, write_record
from squallpy.runtime.state.store import StoreLayout

FINGERPRINT = "fingerprint"  # the file in a durable folder that names what it was made for
_BATCH = "batch"  # the one that says how far the run has come
HOST_DIR = "SQUALLPY_LOCAL_DIR"  # on a host of a cluster: its folder for mapped state


@dataclass(frozen=True, slots=True)
class Place:
    """Both folders, and what a partition there must have been made for.

    A place is the same on every host of a cluster: the durable folder is one that all of them reach, and `name` lies in
    the folder that each of them has for mapped files. `before` are the batches that were done before it was made.
    `run` names the run: files that an earlier one has left on a disk, where bits flip, are not believed.
    """

    durable: str
    name: str
    fingerprint: str
    snapshot_bytes: int
    local_dir: str = ""
    before: int = 0
    run: str = ""

    @property
    def local(self) -> Path:
        """This host's folder."""
        return _fast(self.local_dir) / self.name

    def partition(self, name: str, layout: StoreLayout, *runs: Run, trace: Trace = SILENT) -> StatePartition:
        """The named partition of the query; SQ6004 on a host that does not reach the durable folder."""
        if read_record(open_durable(self.durable), FINGERPRINT, self.durable) != self.fingerprint:
            raise SquallError(
                "SQ6004",
                f"the host {socket.gethostname()} does not see the checkpoint {self.durable}",
                hint="choose one on a file system that all hosts share",
            )
        local = self.local
        own(local)
        return StatePartition(
            local / name,
            within(self.durable, name),
            layout,
            runs,
            self.fingerprint,
            snapshot_every=self.snapshot_bytes,
            trace=trace,
            run="" if is_memory(local) else self.run,
        )

    def forget_local(self, names: str = "*") -> None:
        """Drop the mapped files that this host has of partitions by those names; what is durable stays."""
        for folder in self.local.glob(names):
            shutil.rmtree(folder, ignore_errors=True)
        with suppress(OSError):
            self.local.rmdir()


class Committed:
    """How many batches of a place are done: they have reached their sink. `facts` are what is known of the next."""

    def __init__(self, durable: str) -> None:
        """SQ6005 if it is not known any more."""
        self._folder = open_durable(durable, "driver")
        line = read_record(self._folder, _BATCH, durable)
        if line is None:  # NB: a place has one from the start
            raise damaged(_BATCH, durable)
        count, _, more = line.partition(" ")
        known = json.loads(more or "{}")
        self.batches, self.facts, self._again = int(count), known.get("facts"), known.get("again")
        self.read = ReadSums.load(self._folder, durable, known.get("read", {}))

    @property
    def all_read(self) -> ReadSums:
        """The checksums of what all batches have read that were ever done, also before this generation."""
        return ReadSums.of(self._again["read"]) if self._again else self.read

    def commit(self, batches: int, facts: Any = None) -> None:
        """So many are; SQ6001 if they have read again what another generation had read, and it has changed."""
        if self._again and batches >= self._again["batches"]:
            self.read.compare(ReadSums.of(self._again["read"]))
            self._again = None
        more = {"facts": facts, "read": self.read.save(self._folder), "again": self._again}
        text = json.dumps({name: value for name, value in more.items() if value})
        write_record(self._folder, _BATCH, f"{batches} {text}" if any(more.values()) else str(batches))
        self.batches, self.facts = batches, facts


def make_ready(folder: Durable, name: str, fingerprint: str, again: int = 0, read: ReadSums | None = None) -> None:
    """A place with no batch done, in a durable folder by that name; its first `again` batches are to read what has been
    `read` before."""
    more = json.dumps({"again": {"batches": again, "read": read.sums}}) if again and read and read.sums else ""
    write_record(folder, within(name, _BATCH), f"0 {more}".strip())
    write_record(folder, within(name, FINGERPRINT), fingerprint)


def is_ready_at_most(names: Iterable[str]) -> bool:
    """Is all that there is by these names what `make_ready` makes?"""
    return {*names} <= {_BATCH, FINGERPRINT}


@contextmanager
def temporary_place(local_dir: str, fingerprint: str, snapshot_bytes: int) -> Iterator[Place]:
    """A place for a run that nobody will resume, removed after it."""
    with tempfile.TemporaryDirectory(prefix="squallpy-", dir=_fast(local_dir)) as room:
        make_ready(open_durable(room), ".", fingerprint)
        place = Place(room, f"{Path(room).name}-local", fingerprint, snapshot_bytes, local_dir)
        try:
            yield place
        finally:
            place.forget_local()


def _fast(local_dir: str) -> Path:
    """The folder for mapped files: the given one, the host's own, shared memory, else the system's temporary folder."""
    if local_dir or os.environ.get(HOST_DIR):
        return _local(local_dir or os.environ[HOST_DIR])
    shared = Path("/dev/shm")
    return shared if shared.is_dir() and os.access(shared, os.W_OK) else Path(tempfile.gettempdir())


def _local(given: str) -> Path:
    try:
        path, why = local_path(given), "only a folder of the host itself can be mapped"
    except ValueError as error:
        path, why = None, str(error)
    if path is None:
        raise SquallError("SQ6003", f"cannot keep state in the local_dir {given}: {why}")
    return writable(path, "local_dir")


def own(folder: Path) -> None:
    """Make a folder that only this user can look into; SQ6003 if another has made one by that name."""
    with keeping(str(folder)):
        folder.mkdir(mode=0o700, exist_ok=True)
        found = folder.lstat()
        if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid():
            raise SquallError("SQ6003", f"cannot keep state in {folder}: it is another user's", hint="remove it")
        if stat.S_IMODE(found.st_mode) != 0o700:
            folder.chmod(0o700)


def is_memory(folder: Path) -> bool:
    """True if a folder of this host is in memory."""
    where, best, kind = os.path.realpath(folder), "", ""
    with suppress(OSError):
        for line in Path("/proc/self/mounts").read_text().splitlines():
            _, mount, type_, *_ = line.split(" ")
            mount = mount.encode().decode("unicode_escape")  # as it writes blanks
            if len(mount) >= len(best) and (where == mount or where.startswith(mount.rstrip("/") + "/")):
                best, kind = mount, type_
    return kind in ("tmpfs", "ramfs")


def writable(folder: Path, called: str) -> Path:
    """The folder, made if it is not there; SQ6003 if that or writing to it fails."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            return folder
    except OSError as error:
        why = "it is a file" if folder.is_file() else (error.strerror or str(error)).lower()
        raise SquallError("SQ6003", f"cannot keep state in the {called} {folder}: {why}") from None
