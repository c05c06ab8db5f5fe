"""Storage of pools: `HEAP`, this process's memory, or `MappedStorage`, files that several processes of a host map.

    Pool(1, payload, storage=MappedStorage(Path("/dev/shm/q/part-3/state.0")), name="orders")

Files grow in place, and have the room that they grow by from then on: a store into a promise that a full file system
cannot keep would be a SIGBUS. A directory on a disk works for state larger than memory, slower: the system reads the
page that a record is on, and those behind it only while all is read in order.
"""

import ctypes
import mmap
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from weakref import WeakSet

import numpy as np

from squallpy.runtime.kernels.memory_regions import HEAP, Region, Storage, Words

__all__ = ["HEAP", "MappedStorage", "Region", "Storage"]

_C: Any = ctypes.CDLL(None, use_errno=True)
_C.mmap.restype = ctypes.c_void_p
_C.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_int64]
_C.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
_C.madvise.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
_FAILED = ctypes.c_void_p(-1).value
_PIECE = mmap.PAGESIZE  # bytes that files are multiples of
_AHEAD = 16  # addresses that a file is given, by its bytes


class _Mapping:
    """A shared mapping of a file, longer than the file, which so may grow; it ends when nothing refers to it any more.

    NB: Python's own `mmap` keeps a file descriptor for each mapping; a worker with many pools would run out of them.
    """

    def __init__(self, file: int, path: Path, size: int) -> None:
        address = _C.mmap(None, size, mmap.PROT_READ | mmap.PROT_WRITE, mmap.MAP_SHARED, file, 0)
        if address == _FAILED:
            raise OSError(ctypes.get_errno(), "cannot map state", str(path))
        self.address: int = address
        self.size = size
        self.__array_interface__ = {"version": 3, "typestr": "<i8", "shape": (size // 8,), "data": (address, False)}

    def advise(self, how: int) -> None:
        """Tell the system how what is not in memory will be read: a hint."""
        _C.madvise(self.address, self.size, how)

    def __del__(self, unmap: Any = _C.munmap) -> None:
        if hasattr(self, "address"):
            unmap(self.address, self.size)


class _FileRegion:
    def __init__(self, path: Path, words: int, is_looked_up: bool) -> None:
        self._path = path
        self._usual = mmap.MADV_RANDOM if is_looked_up else mmap.MADV_NORMAL
        self._mapping: _Mapping | None = None
        self._extend(words)

    def _extend(self, words: int) -> None:
        """Make the file, or make it longer. Its address seldom changes, for all pages would have to be mapped anew."""
        size = -(-max(words, 1) * 8 // _PIECE) * _PIECE
        file = os.open(self._path, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            present = os.fstat(file).st_size
            if present < size:
                self._allocate(file, present, size)
            size = max(size, present)
            if self._mapping is None or self._mapping.size < size:
                self._mapping = _Mapping(file, self._path, _AHEAD * size)
                self._mapping.advise(self._usual)
        finally:
            os.close(file)
        self.address, self.words = self._mapping.address, size // 8
        self._array: Words = np.asarray(self._mapping)[: self.words]

    def _allocate(self, file: int, present: int, size: int) -> None:
        """Make the file longer."""
        try:
            if hasattr(os, "posix_fallocate"):
                os.posix_fallocate(file, present, size - present)
            else:  # macOS: a promise
                os.ftruncate(file, size)
        except OSError as error:
            os.ftruncate(file, present)
            raise OSError(error.errno, f"no room to grow state by {size - present:,} bytes", str(self._path)) from None

    def array(self) -> Words:
        return self._array

    def grow(self, words: int) -> None:
        if words > self.words:
            self._extend(words)

    def populate(self, start: int, stop: int) -> None:
        """Do nothing: files have their room allocated."""

    def read_in_order(self, begins: bool) -> None:
        """Tell the system that all of the file is read, or that this has ended."""
        if self._mapping:
            self._mapping.advise(mmap.MADV_SEQUENTIAL if begins else self._usual)


class MappedStorage:
    """Regions as files in a directory, for processes that take turns under a lock of their own."""

    shared = True

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self._regions: WeakSet[_FileRegion] = WeakSet()
        directory.mkdir(parents=True, exist_ok=True)

    def region(self, name: str, words: int, is_looked_up: bool = True) -> Region:
        region = _FileRegion(self.directory / name, words, is_looked_up)
        self._regions.add(region)
        return region

    @contextmanager
    def read_in_order(self) -> Iterator[None]:
        regions = [*self._regions]
        for region in regions:
            region.read_in_order(True)
        try:
            yield
        finally:
            for region in regions:
                region.read_in_order(False)

    def __repr__(self) -> str:
        return f"MappedStorage({str(self.directory)!r})"
