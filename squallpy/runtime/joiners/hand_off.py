"""Letters from partitions to partitions, with which the next batch begins: in the checkpoint, which all hosts reach.

    post/17/3                                  what partition 3 has sent after batch 17: a table of letters, the letters

    post.leave(17, 3, [(1, b"…"), (2, b"…")])
    post.fetch(17, receiver=1, senders=[3])    →   [b"…"]

Who has left a letter leaves the same one when it is asked again. Who fetches one logs it with what else a batch brings,
so that letters are needed until the batch after theirs is done.
"""

import struct
import zlib
from collections.abc import Iterable, Sequence

from squallpy.base.errors import SquallError
from squallpy.runtime.checkpoint.durable import join_path, open_durable

_COUNT = struct.Struct("<q")
_LETTER = struct.Struct("<qqI")  # receiver, bytes, checksum


class Post:
    """The letters under a durable folder."""

    def __init__(self, durable: str, writer: str = "") -> None:
        self._place, self._folder = durable, open_durable(durable, writer)

    def leave(self, batch: int, sender: int, letters: Sequence[tuple[int, bytes]]) -> None:
        """Keep what a partition sends after a batch; at most one letter for each other."""
        table = [_LETTER.pack(receiver, len(letter), zlib.crc32(letter)) for receiver, letter in letters]
        parts = [_COUNT.pack(len(letters)), *table, *(letter for _, letter in letters)]
        self._folder.create(f"post/{batch}/{sender}", lambda sink: sink.write(b"".join(parts)))

    def fetch(self, batch: int, receiver: int, senders: Iterable[int]) -> list[bytes]:
        """Read the letters that some have sent to a partition; SQ6005 if one is damaged."""
        found = (self._letter(f"post/{batch}/{sender}", receiver) for sender in senders)
        return [letter for letter in found if letter is not None]

    def _letter(self, name: str, receiver: int) -> bytes | None:
        try:
            with self._folder.open(name) as source:
                (count,) = _COUNT.unpack(source.read(_COUNT.size))
                at = _COUNT.size + count * _LETTER.size
                for target, size, check in _LETTER.iter_unpack(source.read(count * _LETTER.size)):
                    if target == receiver:
                        source.seek(at)
                        if zlib.crc32(letter := source.read(size)) != check:
                            raise ValueError(name)
                        return letter
                    at += size
                return None
        except (FileNotFoundError, ValueError, struct.error):
            told = f"the state is lost: {join_path(self._place, name)} damaged"
            hint = "bring it back from a copy, or choose a new checkpoint"
            raise SquallError("SQ6005", told, hint=hint) from None

    def drop(self, done: int) -> None:
        """Forget the letters that batches before the `done` first were begun with."""
        for name in self._folder.list("post"):
            if int(name) < done - 1:
                self._folder.drop(f"post/{name}")
