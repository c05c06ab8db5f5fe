"""Watches: which pages of a pool's records were written since someone looked.

    watch = PageWatch(pool)
    pool.upsert(…)                       kernels mark the page of each record that they write
    watch.take()                         →   [0, 7]: pages that may differ from what was there before

A page is `PAGE` records. Kernels mark pages that were there when the watch began or last took; those behind count as
written.
"""

from typing import Any, Final

import numpy as np

from squallpy.runtime.kernels import pool_layout as at
from squallpy.runtime.kernels.intrinsics import store8
from squallpy.runtime.kernels.kernel_compiler import Vector, inlined
from squallpy.runtime.kernels.memory_regions import Words

_SHIFT: Final = 6
PAGE: Final = 1 << _SHIFT
"""Records of a page: so few that a batch of scattered records marks little else."""


@inlined
def mark_written(frame: Vector, record: int) -> None:
    """Mark the page of a record that is written, if anyone watches it."""
    page = record >> _SHIFT
    if page < frame[at.WATCHED]:
        store8(frame[at.MARKS], page, 1)


Marks = np.ndarray[Any, np.dtype[np.bool_]]


class PageWatch:
    """The pages that one reader has yet to look at."""

    def __init__(self, watched: "WatchedPages", count: int) -> None:
        self._watched = watched
        self._marked = np.zeros(_pages(count), np.bool_)

    def take(self, count: int) -> Words:
        """List pages that were written since the last time, in order; from now on so many records are watched."""
        self._watched.pass_on()
        behind = np.arange(len(self._marked), _pages(count))
        pages: Words = np.concatenate([np.flatnonzero(self._marked), behind])
        self._marked = np.zeros(_pages(count), np.bool_)
        self._watched.watch()
        return pages

    def extend(self, count: int) -> None:
        """Watch so many records from now on, if these are more."""
        if (more := _pages(count) - len(self._marked)) > 0:
            self._watched.pass_on()
            self._marked = np.concatenate([self._marked, np.zeros(more, np.bool_)])
            self._watched.watch()

    def close(self) -> None:
        """End the watch."""
        self._watched.end(self)

    @property
    def pages(self) -> int:
        """Number of pages that are watched."""
        return len(self._marked)

    def add(self, marks: Marks) -> None:
        """Add marks of the first pages."""
        count = min(len(marks), len(self._marked))
        self._marked[:count] |= marks[:count]


class WatchedPages:
    """The marks of one pool, and all who read them.

    Args:
        frame: The frame of the pool, in which kernels find the marks.
    """

    def __init__(self, frame: Words) -> None:
        self._frame, self._watches = frame, list[PageWatch]()
        self._marks = np.zeros(0, np.bool_)

    def begin(self, count: int) -> PageWatch:
        """Begin a watch of so many records."""
        self.pass_on()
        self._watches.append(PageWatch(self, count))
        self.watch()
        return self._watches[-1]

    def pass_on(self) -> None:
        """Pass the marks on to all who watch."""
        for watch in self._watches:
            watch.add(self._marks)
        self._marks[:] = False

    def end(self, watch: PageWatch) -> None:
        """End a watch, if it has not ended."""
        self.pass_on()
        self._watches = [each for each in self._watches if each is not watch]
        self.watch()

    def watch(self) -> None:
        """Let kernels mark all pages that anyone watches; marks are passed on before."""
        pages = max((each.pages for each in self._watches), default=0)
        self._marks = np.zeros(pages, np.bool_)
        self._frame[at.MARKS], self._frame[at.WATCHED] = self._marks.ctypes.data, pages


def _pages(count: int) -> int:
    return -(-count // PAGE)
