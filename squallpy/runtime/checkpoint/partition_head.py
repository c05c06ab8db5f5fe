"""The head of a state partition: the step of its local pools, and whether they are consistent.

One small record in one file, rewritten by one system call, so that a process killed at any moment leaves the old record
or the new one. Local pools live as long as the host is up; after a reboot the head is ignored.
"""

import os
import struct
import uuid
import zlib
from dataclasses import replace
from functools import cache
from pathlib import Path

from squallpy.base.records import dataclass

_RECORD = struct.Struct("<4sq?qq36s36s36s36s36s")  # magic, step, dirty, edition, logged, then texts
_CHECK = struct.Struct("<I")  # checksum after the record
_MAGIC = b"SQH6"  # NB: to be increased with each change of this record


@dataclass(frozen=True, slots=True)
class Head:
    """The state of local pools.

    Args:
        step: The last step applied, −1 before the first.
        edition: The folder of the pool files.
        logged: Bytes in the journal since the last snapshot.
        run: The only run that trusts them; empty for any.
        layout: By which code they are laid out (`layout_stamp`).
    """

    step: int
    dirty: bool
    edition: int
    logged: int
    segment: str
    identity: str
    boot: str
    run: str = ""
    layout: str = ""

    @classmethod
    def read(cls, path: Path) -> "Head | None":
        """Read the head in a file; None if it is missing, of another format or damaged."""
        try:
            data = path.read_bytes()
        except FileNotFoundError:
            return None
        record, check = data[: _RECORD.size], data[_RECORD.size :]
        if check != _CHECK.pack(zlib.crc32(record)) or record[:4] != _MAGIC:
            return None
        _, step, dirty, edition, logged, *texts = _RECORD.unpack(record)
        return cls(step, dirty, edition, logged, *(text.rstrip(b"\0").decode() for text in texts))

    def write(self, path: Path) -> "Head":
        """Write this head to the file."""
        texts = (text.encode() for text in (self.segment, self.identity, self.boot, self.run, self.layout))
        record = _RECORD.pack(_MAGIC, self.step, self.dirty, self.edition, self.logged, *texts)
        file = os.open(path, os.O_WRONLY | os.O_CREAT, 0o600)
        try:
            os.pwrite(file, record + _CHECK.pack(zlib.crc32(record)), 0)
        finally:
            os.close(file)
        return self

    def copy(self, **changes: object) -> "Head":
        """Copy this head with some fields changed."""
        return replace(self, **changes)  # type: ignore[arg-type]


@cache
def boot_id() -> str:
    """Identify this boot of the host: 36 characters."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="utf-8").strip()
    except OSError:  # NB: not on Linux: the host and its approximate start
        started = os.stat("/var/run").st_ctime_ns if os.path.exists("/var/run") else 0
        return str(uuid.uuid5(uuid.NAMESPACE_OID, f"{uuid.getnode()} {started}"))


def fresh_name() -> str:
    """Generate a unique name of 36 characters."""
    return str(uuid.uuid4())
