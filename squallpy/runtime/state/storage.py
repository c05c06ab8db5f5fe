"""Where pools live: `HEAP`, this process's memory, or `Mapped`, files that several processes of a host map.

    Pool(1, payload, storage=Mapped(Path("/dev/shm/q/part-3/state.0")), name="orders")

Files are sparse and grow in place. A directory on a disk works for state larger than memory, slower: the system pages.
"""

import ctypes
import errno
import mmap
import os
from pathlib import Path
from typing import Any

import numpy as np

from squallpy.runtime.kernels.storage import HEAP, Region, Storage, Words

__all__ = ["HEAP", "Mapped", "Region", "Storage"]

_C: Any = ctypes.CDLL(None, use_errno=True)
_C.mmap.restype = ctypes.c_void_p
_C.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_int64]
_C.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
_FAILED = ctypes.c_void_p(-1).value
_SPARE = 1 << 20  # bytes that growth leaves free in the file system


class _Mapping:
    """A shared mapping of a whole file, undone when nothing refers to it any more.

    NB: Python's own `mmap` keeps a file descriptor for each mapping; a worker with many pools would run out of them.
    """

    def __init__(self, path: Path, size: int) -> None:
        """Map the file, made or extended to `size` bytes at least."""
        file = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            present = os.fstat(file).st_size
            if present < size:
                room = os.statvfs(file)
                if size - present > room.f_bavail * room.f_frsize - _SPARE:  # else the next store would be a SIGBUS
                    raise OSError(errno.ENOSPC, f"no room to grow state by {size - present} bytes", str(path))
                os.ftruncate(file, size)
            self.size = max(size, present)
            address = _C.mmap(None, self.size, mmap.PROT_READ | mmap.PROT_WRITE, mmap.MAP_SHARED, file, 0)
            if address == _FAILED:
                raise OSError(ctypes.get_errno(), "cannot map state", str(path))
        finally:
            os.close(file)
        self.address: int = address
        shape = (self.size // 8,)
        self.__array_interface__ = {"version": 3, "typestr": "<i8", "shape": shape, "data": (address, False)}

    def __del__(self, unmap: Any = _C.munmap) -> None:
        if hasattr(self, "address"):
            unmap(self.address, self.size)


class _FileRegion:
    def __init__(self, path: Path, words: int) -> None:
        self._path = path
        self._map(words)

    def _map(self, words: int) -> None:
        self._mapping = _Mapping(self._path, -(-max(words, 1) * 8 // mmap.PAGESIZE) * mmap.PAGESIZE)
        self.address, self.words = self._mapping.address, self._mapping.size // 8

    def array(self) -> Words:
        return np.asarray(self._mapping)

    def grow(self, words: int) -> None:
        if words > self.words:
            self._map(words)

    def populate(self, start: int, stop: int) -> None:
        """Nothing: files are sparse, and take no room that is not used."""


class Mapped:
    """Regions as files in a directory, for processes that take turns under a lock of their own."""

    shared = True

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        directory.mkdir(parents=True, exist_ok=True)

    def region(self, name: str, words: int) -> Region:
        return _FileRegion(self.directory / name, words)

    def __repr__(self) -> str:
        return f"Mapped({str(self.directory)!r})"
