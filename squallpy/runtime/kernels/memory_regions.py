"""Regions: growable stretches of int64 words, and where they live.

    region = HEAP.region("orders.keys.0", 1024)
    region.address, region.words        →  140…, 1024   (all zero)
    region.grow(4096)                   →  same contents, zeros after them, perhaps elsewhere

The heap keeps each region in a private anonymous mapping and grows it with `mremap`: the kernel moves page tables, not
bytes, so doubling a gigabyte is as quick as doubling a page. `state/pool_storage.py` keeps them in shared files.
"""

import ctypes
import mmap
from contextlib import AbstractContextManager, nullcontext, suppress
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

Words = npt.NDArray[np.int64]

_HUGE = 2 << 20  # from here on ask for huge pages: random access then misses the cache but not the TLB as well
_POPULATE = 23  # MADV_POPULATE_WRITE of Linux 5.14; where it is not known pages come when they are touched

_C: Any = ctypes.CDLL(None)  # NB: lets go of the GIL, which `mmap.madvise` does not
_C.madvise.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]


class Region(Protocol):
    """A stretch of zero-initialised int64 words at a fixed address until it grows."""

    address: int
    words: int

    def array(self) -> Words:
        """View all words; the view keeps this memory alive even if the region grows or moves."""

    def grow(self, words: int) -> None:
        """Extend to `words` words, keeping the contents."""

    def populate(self, start: int, stop: int) -> None:
        """Request the memory of words start … stop − 1 now, not when they are touched: a hint, from any thread."""


class Storage(Protocol):
    """Home of regions, by name."""

    shared: bool  # may another process change what a region of ours looks like?

    def region(self, name: str, words: int, is_looked_up: bool = True) -> Region:
        """Open the region of that name, making it (zeroed) if there is none; words of it are looked up, or all read."""

    def read_in_order(self) -> AbstractContextManager[None]:
        """Tell the system that regions are read from begin to end for a while."""


def address_of(memory: mmap.mmap) -> int:
    """Return where a mapping starts."""
    return int(np.frombuffer(memory, np.int64).ctypes.data)


def advise_huge(memory: mmap.mmap) -> None:
    """Ask for huge pages under a large mapping, where the system offers them."""
    if len(memory) >= _HUGE and hasattr(mmap, "MADV_HUGEPAGE"):
        with suppress(OSError):  # a system built without them
            memory.madvise(mmap.MADV_HUGEPAGE)


def _size_of(words: int) -> int:
    """Return the bytes of whole pages, huge ones if they are, that so many words take.

    The end of a mapping that is no huge page's would be small pages for good.
    """
    size = 8 * max(words, 1)
    page = _HUGE if size >= _HUGE else mmap.PAGESIZE
    return -(-size // page) * page


class _HeapRegion:
    def __init__(self, words: int) -> None:
        self._map(words)

    def _map(self, words: int) -> None:
        self._memory = mmap.mmap(-1, _size_of(words), flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        self._settle()

    def _settle(self) -> None:
        advise_huge(self._memory)
        self.words = len(self._memory) // 8
        self.address = address_of(self._memory)

    def array(self) -> Words:
        return np.frombuffer(self._memory, np.int64)

    def grow(self, words: int) -> None:
        if words <= self.words:
            return
        size = _size_of(words)
        if len(self._memory) < _HUGE <= size:  # what is in small pages would stay there
            self._copy(words)
            return
        try:
            self._memory.resize(size)
            self._settle()
        except (BufferError, SystemError, ValueError):  # someone holds a view, or a system without mremap
            self._copy(words)

    def _copy(self, words: int) -> None:
        old = self.array()
        self._map(words)
        np.copyto(self.array()[: len(old)], old)

    def populate(self, start: int, stop: int) -> None:
        first = (self.address + 8 * start) // mmap.PAGESIZE * mmap.PAGESIZE
        end = self.address + 8 * min(stop, self.words)
        if first < end:  # NB: the region may move meanwhile: then this is a hint about memory that is not there
            _C.madvise(first, end - first, _POPULATE)


class _Heap:
    """Memory of this process alone."""

    shared = False

    def region(self, name: str, words: int, is_looked_up: bool = True) -> Region:
        return _HeapRegion(words)

    def read_in_order(self) -> AbstractContextManager[None]:
        return nullcontext()

    def __repr__(self) -> str:
        return "HEAP"

    def __reduce__(self) -> str:
        return "HEAP"


HEAP = _Heap()
