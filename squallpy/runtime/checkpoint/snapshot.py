"""Snapshots: the contents of a partition after a step in one file, with a checksum.

write_snapshot(sink, [b"output of the step"], store)
is_whole(source)   →  True                    then  read_outputs(source, 1), store.restore(source)

outputs, each with its length · the store · checksum of both, their bytes, a magic
"""

import struct
import zlib
from collections.abc import Sequence
from typing import IO, cast

from squallpy.runtime.state.state_store import Store

_TRAILER = struct.Struct("<Iq4s")
_MAGIC = b"SQS2"
_CHUNK = 4 << 20  # bytes read at once


def write_snapshot(sink: IO[bytes], outputs: Sequence[bytes], store: Store) -> int:
    """Write the outputs of the last batch's steps, and the contents of the store; return the bytes."""
    checked = _ChecksumSink(sink)
    for output in outputs:
        checked.write(len(output).to_bytes(8, "little") + output)
    store.snapshot(cast(IO[bytes], checked))
    sink.write(_TRAILER.pack(checked.check, checked.size, _MAGIC))
    return checked.size + _TRAILER.size


def is_intact(source: IO[bytes]) -> bool:
    """True if a snapshot is intact; the source is then at its beginning."""
    size = source.seek(0, 2) - _TRAILER.size
    if size < 0:
        return False
    source.seek(size)
    check, written, magic = _TRAILER.unpack(source.read(_TRAILER.size))
    if (written, magic) != (size, _MAGIC):
        return False
    source.seek(0)
    found = 0
    while size:
        part = source.read(min(size, _CHUNK))
        if not part:
            return False
        found, size = zlib.crc32(part, found), size - len(part)
    source.seek(0)
    return bool(found == check)


def read_outputs(source: IO[bytes], count: int) -> list[bytes]:
    """Read this many outputs; the store follows."""
    return [source.read(int.from_bytes(source.read(8), "little")) for _ in range(count)]


class _ChecksumSink:
    """A sink that computes a checksum of what is written."""

    def __init__(self, below: IO[bytes]) -> None:
        self._below, self.check, self.size = below, 0, 0

    def write(self, data: bytes) -> int:
        self.check, self.size = zlib.crc32(data, self.check), self.size + len(data)
        return self._below.write(data)
