"""Where a query's state is: a durable folder, the checkpoint, and a local one of mapped files."""

import hashlib
import os
import shutil
import socket
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from squallpy.base.errors import SquallError
from squallpy.base.trace import SILENT, Trace
from squallpy.runtime.state.durable import open_durable
from squallpy.runtime.state.partition import Run, StatePartition
from squallpy.runtime.state.store import StoreLayout

MADE_FOR = "fingerprint"  # the file in a durable folder that names what it was made for
HOST_DIR = "SQUALLPY_LOCAL_DIR"  # on a host of a cluster: its folder for mapped state


@dataclass(frozen=True, slots=True)
class Place:
    """Both folders, and what a partition there must have been made for.

    A place is the same on every host of a cluster: the durable folder is one that all of them reach, and `name` lies in
    the folder that each of them has for mapped files.
    """

    durable: str
    name: str
    fingerprint: str
    snapshot_bytes: int
    local_dir: str = ""

    @property
    def local(self) -> Path:
        """This host's folder."""
        return _fast(self.local_dir) / self.name

    def partition(self, name: str, layout: StoreLayout, *runs: Run, trace: Trace = SILENT) -> StatePartition:
        """The named partition of the query; SQ6004 on a host that does not reach the durable folder."""
        seen = open_durable(self.durable).read(MADE_FOR)
        if seen != self.fingerprint.encode():
            raise SquallError(
                "SQ6004",
                f"the host {socket.gethostname()} does not see the checkpoint {self.durable}",
                hint="choose one on a file system that all hosts share",
            )
        return StatePartition(
            self.local / name,
            f"{self.durable}/{name}",
            layout,
            runs,
            self.fingerprint,
            snapshot_every=self.snapshot_bytes,
            trace=trace,
        )

    def forget_local(self) -> None:
        """Drop the mapped files of this host; what is durable stays."""
        shutil.rmtree(self.local, ignore_errors=True)


def open_place(checkpoint: Path, local_dir: str, fingerprint: str, snapshot_bytes: int) -> Place:
    """The place of a query with a checkpoint; SQ6001 if it is of another query, SQ6003 if it cannot be written."""
    _writable(checkpoint, "checkpoint")
    made_for = checkpoint / MADE_FOR
    if not made_for.exists():
        if any(checkpoint.iterdir()):
            raise SquallError("SQ6002", f"{checkpoint} is not empty and not a checkpoint", hint="choose a new folder")
        made_for.write_text(fingerprint)
    elif made_for.read_text() != fingerprint:
        raise SquallError(
            "SQ6001",
            f"the checkpoint {checkpoint} is of another query, or of other settings",
            hint="give each query its own folder",
        )
    name = hashlib.sha256(str(checkpoint.resolve()).encode()).hexdigest()[:16]
    return Place(str(checkpoint.resolve()), f"squallpy-{name}", fingerprint, snapshot_bytes, local_dir)


@contextmanager
def temporary_place(local_dir: str, fingerprint: str, snapshot_bytes: int) -> Iterator[Place]:
    """A place for a run that nobody will resume, removed after it."""
    with tempfile.TemporaryDirectory(prefix="squallpy-", dir=_fast(local_dir)) as room:
        (Path(room) / MADE_FOR).write_text(fingerprint)
        place = Place(room, f"{Path(room).name}-local", fingerprint, snapshot_bytes, local_dir)
        try:
            yield place
        finally:
            place.forget_local()


def _fast(local_dir: str) -> Path:
    """The folder for mapped files: the given one, the host's own, shared memory, else the system's temporary folder."""
    if local_dir or os.environ.get(HOST_DIR):
        return _writable(Path(local_dir or os.environ[HOST_DIR]), "local_dir")
    shared = Path("/dev/shm")
    return shared if shared.is_dir() and os.access(shared, os.W_OK) else Path(tempfile.gettempdir())


def _writable(folder: Path, called: str) -> Path:
    """The folder, made if it is not there; SQ6003 if that or writing to it fails."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            return folder
    except OSError as error:
        why = "it is a file" if folder.is_file() else (error.strerror or str(error)).lower()
        raise SquallError("SQ6003", f"cannot keep state in the {called} {folder}: {why}") from None
