"""Mirrors: copies of records, and of the strings that they name, that are brought up to date between batches.

    pool    1 2 3 4   →   1 4 3 5      its mirror, brought up to date:   2 and 4 have gone, 4 and 5 have come

Records are compared slot by slot, so that it does not matter who changes them, nor how.
"""

import numpy as np
import pyarrow as pa

from squallpy.runtime.kernels.dictionary import Dictionary
from squallpy.runtime.kernels.memory_regions import Words
from squallpy.runtime.kernels.sorted_pool import SortedPool
from squallpy.runtime.kernels.view_container import Container

PIECE = 1 << 17
"""Records, or strings, that are copied at once: some milliseconds."""

Records = tuple[Words, Words]
"""Keys and payloads."""


class PoolMirror:
    """A copy of the records of a pool, in pieces of so many slots."""

    def __init__(self) -> None:
        self.pieces = list[Records]()

    def copy(self, pool: Container) -> bool:
        """Copy a piece that is not copied yet; True if there are more. All are as of one batch after `update`."""
        keys, words = pool.rows()
        start = PIECE * len(self.pieces)
        stop = len(keys) if isinstance(pool, SortedPool) else start + PIECE  # NB: it makes its rows at each call
        self.pieces += [_copied(keys, words, first) for first in range(start, min(stop, len(keys)), PIECE)]
        return stop < len(keys)

    def update(self, pool: Container) -> tuple[Records, Records]:
        """Bring the copy up to date; return the records that have gone since the last time, and those that have come.

        One that has moved to another slot is among both.
        """
        keys, words = pool.rows()
        went, came = [(keys[:0].copy(), words[:0].copy())], [(keys[:0].copy(), words[:0].copy())]
        count = -(-len(keys) // PIECE)
        went += self.pieces[count:]
        del self.pieces[count:]
        for number, first in enumerate(range(0, len(keys), PIECE)):
            now = keys[first : first + PIECE], words[first : first + PIECE]
            was = self.pieces[number] if number < len(self.pieces) else (keys[:0], words[:0])
            both = min(len(was[0]), len(now[0]))
            rows = np.union1d(*(_differing(x[:both], y[:both]) for x, y in zip(was, now, strict=True)))
            if len(rows) or len(was[0]) != len(now[0]):
                for found, each in ((went, was), (came, now)):
                    chosen = np.concatenate([rows, np.arange(both, len(each[0]))])
                    found.append((each[0].take(chosen, axis=0), each[1].take(chosen, axis=0)))
                self.pieces[number : number + 1] = [_copied(keys, words, first)]
        return _joined(went), _joined(came)


class DictionaryMirror:
    """A copy of the strings of a dictionary, numbered by another one.

    Args:
        target: The other one, in which there may be more.
    """

    def __init__(self, source: Dictionary, target: Dictionary) -> None:
        self._source, self._edition, self._target = source, source.edition, target
        self._copied, self._left, self._numbers = 0, list[pa.Array](), np.empty(0, np.int64)

    def is_of(self, source: Dictionary) -> bool:
        """True if it is a copy of this dictionary, whose numbers are those that it had."""
        return source is self._source and source.edition == self._edition

    def copy(self, pieces: int = 1) -> bool:
        """Copy so many pieces of the strings that are not copied yet, between two batches; True if there are more."""
        ends, data = self._source.contents()
        first, count = self._copied, len(ends) - 1
        self._copied = min(count, first + pieces * PIECE)
        if first < self._copied:
            places = ends[first : self._copied + 1] - ends[first]
            buffers = [None, pa.py_buffer(places), pa.py_buffer(data[ends[first] : ends[self._copied]].copy())]
            self._left.append(pa.Array.from_buffers(pa.large_binary(), self._copied - first, buffers))
        return self._copied < count

    def numbers(self) -> Words:
        """Return the number in the other dictionary of each string that is copied."""
        new = [self._target.intern(part) for part in self._left]
        self._left.clear()
        self._numbers = np.concatenate([self._numbers, *new])
        return self._numbers

    @property
    def same(self) -> int:
        """Number of strings, from the first one on, that have the same number in both."""
        differ = np.flatnonzero(self._numbers != np.arange(len(self._numbers)))
        return int(differ[0]) if len(differ) else len(self._numbers)


def _copied(keys: Words, words: Words, first: int) -> Records:
    return keys[first : first + PIECE].copy(), words[first : first + PIECE].copy()


def _differing(was: Words, now: Words) -> Words:
    """List the rows in which two arrays differ."""
    width = max(1, now.shape[1])
    differ: Words = np.flatnonzero(was.reshape(-1) != now.reshape(-1)) // width
    return differ


def _joined(parts: list[Records]) -> Records:
    return np.concatenate([keys for keys, _ in parts]), np.concatenate([words for _, words in parts])
