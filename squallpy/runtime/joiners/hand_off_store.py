"""Hand-offs between joiners, with which the next batch begins: in the checkpoint, which all hosts reach.

    hand-offs/17/3                                     of partition 3 after batch 17: a table of receivers, the messages

    store.write(17, 3, [(1, b"…"), (2, b"…")])
    store.read(17, receiver=1, senders=[3])            →   [b"…"]

A joiner that runs a batch again writes the same hand-offs again. A receiver logs those that it reads with the messages
of the batch, so they are needed until the batch after theirs is done.
"""

import struct
import zlib
from collections.abc import Iterable, Sequence

from squallpy.base.errors import SquallError
from squallpy.base.local_paths import join_path
from squallpy.runtime.checkpoint.durable_folder import open_durable

_COUNT = struct.Struct("<q")
_ENTRY = struct.Struct("<qqI")  # receiver, bytes, checksum


class HandOffStore:
    """The hand-offs under a durable folder."""

    def __init__(self, durable: str, writer: str = "") -> None:
        self._place, self._folder = durable, open_durable(durable, writer)

    def write(self, batch: int, sender: int, messages: Sequence[tuple[int, bytes]]) -> None:
        """Write what a partition hands off after a batch; at most one message for each other partition."""
        table = [_ENTRY.pack(receiver, len(message), zlib.crc32(message)) for receiver, message in messages]
        parts = [_COUNT.pack(len(messages)), *table, *(message for _, message in messages)]
        self._folder.create(f"hand-offs/{batch}/{sender}", lambda sink: sink.write(b"".join(parts)))

    def read(self, batch: int, receiver: int, senders: Iterable[int]) -> list[bytes]:
        """Read what some have handed off to a partition; SQ6005 if it is damaged."""
        found = (self._read_one(f"hand-offs/{batch}/{sender}", receiver) for sender in senders)
        return [message for message in found if message is not None]

    def _read_one(self, name: str, receiver: int) -> bytes | None:
        try:
            with self._folder.open(name) as source:
                (count,) = _COUNT.unpack(source.read(_COUNT.size))
                at = _COUNT.size + count * _ENTRY.size
                for target, size, check in _ENTRY.iter_unpack(source.read(count * _ENTRY.size)):
                    if target == receiver:
                        source.seek(at)
                        if zlib.crc32(message := source.read(size)) != check:
                            raise ValueError(name)
                        return message
                    at += size
                return None
        except (FileNotFoundError, ValueError, struct.error):
            told = f"the state is lost: {join_path(self._place, name)} damaged"
            hint = "bring it back from a copy, or choose a new checkpoint"
            raise SquallError("SQ6005", told, hint=hint) from None

    def drop(self, done: int) -> None:
        """Delete the hand-offs with which batches before the `done` first have begun."""
        for name in self._folder.list("hand-offs"):
            if int(name) < done - 1:
                self._folder.drop(f"hand-offs/{name}")
