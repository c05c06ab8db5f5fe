"""Mirrors: copies of records, and of the strings that they name, that are brought up to date between batches.

    pool    1 2 3 4   →   1 4 3 5      its mirror, brought up to date:   2 and 4 have gone, 4 and 5 have come

Of a pool that is looked up by key, the pages that were written are copied again; others are compared slot by slot.
"""

import numpy as np
import pyarrow as pa

from squallpy.runtime.kernels.dictionary import Dictionary
from squallpy.runtime.kernels.grouped_rows import GroupedRows
from squallpy.runtime.kernels.memory_regions import Words
from squallpy.runtime.kernels.page_watch import PAGE, PageWatch
from squallpy.runtime.kernels.pool import Pool
from squallpy.runtime.kernels.sorted_pool import SortedPool
from squallpy.runtime.kernels.view_container import Container

PIECE = 1 << 17
"""Records, or strings, that are copied at once: some milliseconds."""

Records = tuple[Words, Words]
"""Keys and payloads."""
Moved = tuple[list[Records], list[Records]]
"""Records that have gone, and those that have come."""


class PoolMirror:
    """A copy of the records of a pool, in pieces of so many slots."""

    def __init__(self) -> None:
        self.pieces = list[Records]()
        self._reported = 0  # pieces whose records have been said to have come
        self._pool: Container | None = None
        self._watch: PageWatch | None = None

    def copy(self, pool: Container) -> bool:
        """Copy a piece that is not copied yet, between two batches; True if there are more.

        All are as of one batch after `update`, to which little is left to do then.
        """
        if not self.pieces:
            self._begin_watch(pool)
        rows, start = _Rows(pool), PIECE * len(self.pieces)
        is_made = isinstance(pool, SortedPool | GroupedRows)  # NB: rows are, at each call
        stop = rows.count if is_made else start + PIECE
        self.pieces += [rows.copy_piece(first) for first in range(start, min(stop, rows.count), PIECE)]
        if self._watch and pool is self._pool:
            self._watch.extend(min(stop, rows.count))
        return stop < rows.count

    def update(self, pool: Container) -> Moved:
        """Bring the copy up to date; return the records that have gone since the last time, and those that have come.

        One that has moved to another slot is among both. They hold until the next time.
        """
        now = _Rows(pool)
        count = -(-now.count // PIECE)
        went, came = self.pieces[count : self._reported], list[Records]()
        del self.pieces[count:]
        written = self._written(pool)
        for number, (was, first) in enumerate(zip(self.pieces, range(0, now.count, PIECE), strict=False)):
            length, there = len(was[0]), min(PIECE, now.count - first)
            both = min(length, there)
            rows = np.arange(both) if written is None else _written_rows(written, first, both)
            if number < self._reported:
                rows = _differing(was, now.take(first + rows), rows)
                if not len(rows) and length == there:
                    continue
                gone, new = (np.concatenate([rows, np.arange(both, end)]) for end in (length, there))
                went.append((was[0].take(gone, axis=0), was[1].take(gone, axis=0)))
                came.append(now.take(first + new))
            if length != there:
                self.pieces[number] = now.copy_piece(first)
            else:
                was[0][rows], was[1][rows] = now.take(first + rows)
        self.pieces += [now.copy_piece(PIECE * number) for number in range(len(self.pieces), count)]
        came += self.pieces[self._reported :]
        self._reported = len(self.pieces)
        return went, came

    def close(self) -> None:
        """Let the pool note no more what is written."""
        if self._watch:
            self._watch.close()
            self._watch = None

    def _begin_watch(self, pool: Container) -> None:
        self.close()
        self._pool, self._watch = pool, pool.watch() if isinstance(pool, Pool) else None

    def _written(self, pool: Container) -> Words | None:
        """List the pages that may differ from their copies; None: any may."""
        if self._watch and pool is self._pool:
            return self._watch.take(len(pool))
        self._begin_watch(pool)
        return None


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


class _Rows:
    """Rows of a container between two batches, which are made once if they have to be."""

    def __init__(self, pool: Container) -> None:
        self._pool = pool if isinstance(pool, Pool) else None
        self._all = None if isinstance(pool, Pool) else pool.rows()
        self.count = len(self._all[0]) if self._all else len(pool)

    def take(self, slots: Words) -> Records:
        """Copy the rows of some slots."""
        if self._pool is not None:
            return self._pool.keys_of(slots), self._pool.words_of(slots)
        assert self._all is not None
        return self._all[0].take(slots, axis=0), self._all[1].take(slots, axis=0)

    def copy_piece(self, first: int) -> Records:
        """Copy a piece."""
        return self.take(np.arange(first, min(first + PIECE, self.count)))


def _differing(was: Records, now: Records, rows: Words) -> Words:
    """List which of some rows differ in keys or payloads; `now` has these alone."""
    pairs = ((x[rows], y) for x, y in zip(was, now, strict=True))
    found = (np.flatnonzero(x.reshape(-1) != y.reshape(-1)) // max(1, x.shape[1]) for x, y in pairs)
    differ: Words = rows[np.union1d(*found)]
    return differ


def _written_rows(pages: Words, first: int, count: int) -> Words:
    """List the rows of pages, of `count` that begin with slot `first`."""
    low, high = np.searchsorted(pages, [first // PAGE, -(-(first + count) // PAGE)])
    rows: Words = (pages[low:high, np.newaxis] * PAGE - first + np.arange(PAGE)).reshape(-1)
    return rows[(rows >= 0) & (rows < count)]
