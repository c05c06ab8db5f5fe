"""Locations of a query's state: a durable folder in the checkpoint, and a local one of mapped files."""

import hashlib
import json
import os
import re
import shutil
import socket
import stat
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from squallpy.base.errors import SquallError
from squallpy.base.local_paths import join_path, local_path
from squallpy.base.records import dataclass
from squallpy.base.timing import SILENT, Trace
from squallpy.runtime.checkpoint.checksummed_record import damaged_error, read_record, write_record
from squallpy.runtime.checkpoint.durable_folder import Durable, open_durable, reporting_no_room
from squallpy.runtime.checkpoint.input_files import ReadSums
from squallpy.runtime.checkpoint.partition_head import fresh_name
from squallpy.runtime.checkpoint.snapshot import write_snapshot
from squallpy.runtime.checkpoint.state_partition import Run, StatePartition, read_state
from squallpy.runtime.sources.replay import BatchSizes
from squallpy.runtime.state.state_store import Store, StoreLayout

FINGERPRINT = "fingerprint"  # the file in a durable folder with its fingerprint
MADE_FOR = "made-for"  # the record of a checkpoint
_BATCH = "batch"  # the file with the number of committed batches
HOST_DIR = "SQUALLPY_LOCAL_DIR"  # on a host of a cluster: its folder for mapped state


@dataclass(frozen=True, slots=True)
class StateLocation:
    """The durable and the local folder of a query's state, and its fingerprint.

    A location is the same on every host of a cluster: all hosts reach the durable folder, and `name` lies in each
    host's own folder of mapped files. `before` counts the batches done before it was made. `run` names the run: files
    that an earlier one left on a disk, where bits may have flipped, are not trusted. Batches of input with an end have
    `batch_rows`, 0 if that is not known, after `earlier` ones (`Replay`), and `again` large ones repeat those before.
    """

    durable: str
    name: str
    fingerprint: str
    snapshot_bytes: int
    local_dir: str = ""
    before: int = 0
    run: str = ""
    batch_rows: int = 0
    earlier: BatchSizes = ()
    again: int = 0

    def number(self, batch: int) -> int | None:
        """Return the number under which a batch is reported; None if it only repeats earlier ones."""
        return self.before + batch - self.again if batch >= self.again else None

    @property
    def local(self) -> Path:
        """Local folder of this host."""
        return _mapping_folder(self.local_dir) / self.name

    def partition(self, name: str, layout: StoreLayout, *runs: Run, trace: Trace = SILENT) -> StatePartition:
        """Open the named partition of the query; SQ6004 on a host that does not reach the durable folder."""
        if read_record(open_durable(self.durable), FINGERPRINT, self.durable) != self.fingerprint:
            raise SquallError(
                "SQ6004",
                f"the host {socket.gethostname()} does not see the checkpoint {self.durable}",
                hint="choose one on a file system that all hosts share",
            )
        local = self.local
        make_private(local)
        return StatePartition(
            local / name,
            join_path(self.durable, name),
            layout,
            runs,
            self.fingerprint,
            snapshot_every=self.snapshot_bytes,
            trace=trace,
            run="" if is_memory(local) else self.run,
        )

    def read(self, name: str, layout: StoreLayout, *runs: Run, step: int) -> Store:
        """Read what the named partition was after a step, on the heap; SQ6005 if files that it needs are damaged."""
        return read_state(join_path(self.durable, name), layout, runs, step)

    def write(self, name: str, store: Store, step: int, stages: int) -> None:
        """Write what a partition of this name is to begin with after a step; SQ6006 if there is no room."""
        with reporting_no_room(self.durable):
            folder = open_durable(join_path(self.durable, name), "driver")
            folder.create(f"snapshot/{step:020}", lambda sink: write_snapshot(sink, [b""] * stages, store))

    def delete_local(self, names: str = "*") -> None:
        """Delete this host's mapped files of the named partitions; durable files stay."""
        for folder in self.local.glob(names):
            shutil.rmtree(folder, ignore_errors=True)
        with suppress(OSError):
            self.local.rmdir()


def state_location(
    folder: str, generation: int, fingerprint: str, local_dir: str, snapshot_bytes: int
) -> StateLocation:
    """Compute the location of a generation of a checkpoint; on each host it has a folder of one name."""
    absolute = folder if local_path(folder) is None else str(Path(local_path(folder) or "").resolve())
    name = hashlib.sha256(os.fsencode(f"{absolute} {generation}")).hexdigest()[:16]
    durable = join_path(absolute, str(generation))
    return StateLocation(durable, f"squallpy-{name}", fingerprint, snapshot_bytes, local_dir, run=fresh_name())


class Committed:
    """Number of batches that have reached their sink, with driver state (`facts`) for the next."""

    def __init__(self, durable: str) -> None:
        """Read the record; SQ6005 if it is missing."""
        self._path, self._folder = durable, open_durable(durable, "driver")
        line = read_record(self._folder, _BATCH, durable)
        if line is None:  # NB: a checkpoint has one from the start
            raise damaged_error(_BATCH, durable)
        count, _, more = line.partition(" ")
        known = json.loads(more or "{}")
        self.batches, self.facts, self._backfill = int(count), known.get("facts"), known.get("again")
        self.read_sums = ReadSums.load(self._folder, durable, known.get("read", {}))

    @property
    def all_read_sums(self) -> ReadSums:
        """Checksums of the input of all batches ever committed, also before this generation."""
        return ReadSums.of(self._backfill["read"]) if self._backfill else self.read_sums

    @property
    def made_for(self) -> str:
        """The record by which this generation comes in force, if it does so once it has repeated input."""
        return str((self._backfill or {}).get("made_for", ""))

    def commit(self, batches: int, facts: Any = None) -> None:
        """Commit batches; SQ6001 if they have repeated input of another generation, and it has changed."""
        made_for, read = "", self.read_sums.save(self._folder)
        if self._backfill and batches >= self._backfill["batches"]:
            ReadSums.load(self._folder, self._path, read).compare(ReadSums.of(self._backfill["read"]))
            made_for, self._backfill = self.made_for, None
        more = {"facts": facts, "read": read, "again": self._backfill}
        text = json.dumps({name: value for name, value in more.items() if value})
        write_record(self._folder, _BATCH, f"{batches} {text}" if any(more.values()) else str(batches))
        self.batches, self.facts = batches, facts
        if made_for:
            write_record(open_durable(self._path.rpartition("/")[0], "driver"), MADE_FOR, made_for)

    def take_over(self, before: "Committed", facts: Any) -> None:
        """Begin with what another generation has committed, with other driver state; its sinks have all of that."""
        self.read_sums, self._backfill = ReadSums(before.read_sums.sums), before._backfill
        self.commit(before.batches, facts)


def initialise(
    folder: Durable, name: str, fingerprint: str, again: int = 0, read: ReadSums | None = None, made_for: str = ""
) -> None:
    """Write the records of a location without committed batches; its first `again` batches repeat what was `read`.

    Once they have, the location is in force by the record `made_for`, if there is one.
    """
    sums, more = read.sums if read else {}, {"made_for": made_for} if made_for else {}
    told = json.dumps({"again": {"batches": again, "read": sums, **more}}) if again and (sums or more) else ""
    write_record(folder, join_path(name, _BATCH), f"0 {told}".strip())
    write_record(folder, join_path(name, FINGERPRINT), fingerprint)


def is_initial(names: Iterable[str]) -> bool:
    """True if only files of `initialise` are among these names."""
    return {*names} <= {_BATCH, FINGERPRINT}


@contextmanager
def temporary_location(local_dir: str, fingerprint: str, snapshot_bytes: int) -> Iterator[StateLocation]:
    """Create a state location that nobody will resume, and remove it in the end."""
    with tempfile.TemporaryDirectory(prefix="squallpy-", dir=_mapping_folder(local_dir)) as folder:
        initialise(open_durable(folder), ".", fingerprint)
        location = StateLocation(folder, f"{Path(folder).name}-local", fingerprint, snapshot_bytes, local_dir)
        try:
            yield location
        finally:
            location.delete_local()


def _mapping_folder(local_dir: str) -> Path:
    """Choose the folder for mapped files: the given one, the host's, shared memory, or the temporary folder."""
    if local_dir or os.environ.get(HOST_DIR):
        return _local_folder(local_dir or os.environ[HOST_DIR])
    shared = Path("/dev/shm")
    return shared if shared.is_dir() and os.access(shared, os.W_OK) else Path(tempfile.gettempdir())


def _local_folder(given: str) -> Path:
    try:
        path, why = local_path(given), "only a folder of the host itself can be mapped"
    except ValueError as error:
        path, why = None, str(error)
    if path is None:
        raise SquallError("SQ6003", f"cannot keep state in the local_dir {given}: {why}")
    return make_writable(path, "local_dir")


def make_private(folder: Path) -> None:
    """Create a folder that only this user can read; SQ6003 if another user has made it."""
    with reporting_no_room(str(folder)):
        folder.mkdir(mode=0o700, exist_ok=True)
        found = folder.lstat()
        if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid():
            raise SquallError("SQ6003", f"cannot keep state in {folder}: it is another user's", hint="remove it")
        if stat.S_IMODE(found.st_mode) != 0o700:
            folder.chmod(0o700)


def is_memory(folder: Path, mounts: Path = Path("/proc/self/mounts")) -> bool:
    """True if a folder of this host is in memory."""
    where, best, kind = os.path.realpath(folder), "", ""
    with suppress(OSError):
        for line in mounts.read_bytes().splitlines():
            _, mount, type_, *_ = (os.fsdecode(word) for word in line.split(b" "))
            mount = re.sub(r"\\(\d{3})", lambda found: chr(int(found[1], 8)), mount)  # as it writes blanks
            if len(mount) >= len(best) and (where == mount or where.startswith(mount.rstrip("/") + "/")):
                best, kind = mount, type_
    return kind in ("tmpfs", "ramfs")


def make_writable(folder: Path, called: str) -> Path:
    """Create a folder if it does not exist; SQ6003 if that or writing to it fails."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            return folder
    except OSError as error:
        why = "it is a file" if folder.is_file() else (error.strerror or str(error)).lower()
        raise SquallError("SQ6003", f"cannot keep state in the {called} {folder}: {why}") from None
