"""The journal of a partition: input messages of each batch since the last snapshot, in order.

    journal.append(17, [b"…", b"…"])     →  log/00000000000000000012-3f…   one segment per writer, where files can grow
    list(journal.read(after=16))         →  [(17, [b"…", b"…"])]

A record is a frame with a checksum, so a torn one, left by a writer that was killed, is no record. Segments have one
writer each and may overlap (a batch retried on another host): the first whole record of a batch counts.
"""

import struct
import zlib
from collections.abc import Iterator, Sequence
from typing import IO

from squallpy.runtime.checkpoint.durable_folder import Durable

_FRAME = struct.Struct("<4sIqq")  # magic, checksum of all that follows, batch, bytes of the body
_CHECKED = struct.Struct("<qq")
_MAGIC = b"SQJ2"


class Journal:
    """The segments under `log/` of a durable folder."""

    def __init__(self, durable: Durable) -> None:
        self._durable = durable
        self.damaged_files: list[str] = []
        """Segments in which `read` has met a record that is not whole."""

    def append(self, segment: str, batch: int, messages: Sequence[bytes]) -> int:
        """Add a record to a segment, or as one where files cannot grow; returns its bytes."""
        lengths = struct.pack(f"<q{len(messages)}q", len(messages), *map(len, messages))
        size = len(lengths) + sum(map(len, messages))
        check = zlib.crc32(lengths, zlib.crc32(_CHECKED.pack(batch, size)))
        for message in messages:
            check = zlib.crc32(message, check)
        parts = [_FRAME.pack(_MAGIC, check, batch, size) + lengths, *messages]
        if size <= 1 << 16:
            parts = [b"".join(parts)]
        if self._durable.appends:
            self._durable.append(f"log/{segment}", parts)
        else:
            self._durable.create(f"log/{batch:020}-{segment}", lambda sink: [sink.write(part) for part in parts])
        return _FRAME.size + size

    def read(self, after: int) -> Iterator[tuple[int, list[bytes]]]:
        """Read the records of the batches after `after`, in order, until one is missing."""
        self.damaged_files.clear()
        found: dict[int, list[tuple[str, int]]] = {}
        for name in self._durable.list("log"):
            with self._durable.open(f"log/{name}") as source:
                for batch, at, size in _frames(source):
                    if size < 0:
                        self.damaged_files.append(f"log/{name}")
                    else:
                        found.setdefault(batch, []).append((name, at))
        while (messages := self._record(found.get(after + 1, []))) is not None:
            after += 1
            yield after, messages

    def _record(self, positions: list[tuple[str, int]]) -> list[bytes] | None:
        """Read the first of these records that is intact."""
        for name, at in positions:
            with self._durable.open(f"log/{name}") as source:
                source.seek(at)
                _, check, batch, size = _FRAME.unpack(source.read(_FRAME.size))
                body = source.read(size)
            if zlib.crc32(body, zlib.crc32(_CHECKED.pack(batch, size))) == check:
                return _messages(body)
            self.damaged_files.append(f"log/{name}")
        return None

    def drop(self, upto: int) -> None:
        """Delete the segments with no record after batch `upto`."""
        for name in self._durable.list("log"):
            with self._durable.open(f"log/{name}") as source:
                is_obsolete = all(batch <= upto for batch, _, _ in _frames(source))
            if is_obsolete:
                self._durable.delete(f"log/{name}")


def _frames(source: IO[bytes]) -> Iterator[tuple[int, int, int]]:
    """List (batch, position, bytes of the body) of each complete frame of a segment, without the bodies.

    A torn rest is (−1, position, −1).
    """
    end = source.seek(0, 2)
    at = 0
    while at + _FRAME.size <= end:
        source.seek(at)
        magic, _, batch, size = _FRAME.unpack(source.read(_FRAME.size))
        if magic != _MAGIC or size < 0 or at + _FRAME.size + size > end:
            break
        yield batch, at, size
        at += _FRAME.size + size
    if at < end:
        yield -1, at, -1


def _messages(body: bytes) -> list[bytes]:
    (count,) = struct.unpack_from("<q", body)
    at, messages = 8 + 8 * count, []
    for length in struct.unpack_from(f"<{count}q", body, 8):
        messages.append(body[at : at + length])
        at += length
    return messages
