"""Decoded row groups of files that are read in order: the last of each, and the next one ahead of time.

Who reads batch after batch would wait for each row group to be decoded. A thread decodes the next one while rows of the
last are still read, or while a worker waits for its next batch.
"""

import os
from collections import OrderedDict
from collections.abc import Hashable
from dataclasses import field
from functools import cache
from typing import TYPE_CHECKING, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from squallpy.base.records import dataclass
from squallpy.runtime.formats.type_conversion import Problem

if TYPE_CHECKING:
    from concurrent.futures import ThreadPoolExecutor

KEEP = 256 << 20  # bytes of decoded row groups per process, as several files are read in turn
_AHEAD = 64 << 20  # bytes of a row group, decoded, beyond which the next one is not decoded ahead of time
_IN_ORDER = 2  # reads that began where the one before ended, after which the next is expected to do so, too
_LAST = 8  # the next row group is decoded when the last eighth of one is reached, or the last batch


@dataclass(frozen=True, slots=True)
class RowGroup:
    """Decoded rows, with problems of some of them, checksums by column if wanted, and images of updates."""

    table: pa.Table
    wrong: dict[int, Problem]
    checksums: dict[str, int]
    images: npt.NDArray[np.int64] | None


class Decode(Protocol):
    """A function that decodes a row group of a file; `is_ahead`: in the thread for that."""

    def __call__(self, group: int, is_ahead: bool = False, /) -> RowGroup: ...


class Pending(Protocol):
    """A row group that is being decoded."""

    def result(self) -> RowGroup:
        """Return it when it is decoded, or raise what went wrong."""
        ...


@dataclass(slots=True)
class _Reads:
    """The rows of a file that were read last, and how many reads before had begun where another ended."""

    start: int
    stop: int
    in_order: int = 0
    ahead: tuple[int, Pending] | None = None


@dataclass(slots=True)
class RowGroupCache:
    """A cache of decoded row groups: the last of each file, since rows are read in order.

    It holds at most KEEP bytes, and always the last group, beside those that are decoded ahead of time.
    """

    groups: OrderedDict[Hashable, tuple[int, RowGroup]] = field(default_factory=OrderedDict)
    _reads: dict[Hashable, _Reads] = field(default_factory=dict)

    def get(self, key: Hashable, group: int, decode: Decode) -> RowGroup:
        """Return a row group of what the key names: columns of a file, decoded in a way."""
        known, rows = self.groups.pop(key, (None, None))
        if rows is not None and known == group:
            self.groups[key] = group, rows
            return rows
        del rows  # NB: frees its memory before the next one is decoded
        self.groups[key] = group, (rows := self._decoded(key, group, decode))
        while len(self.groups) > 1 and sum(g.table.nbytes for _, g in self.groups.values()) > KEEP:
            self._reads.pop(self.groups.popitem(last=False)[0], None)
        return rows

    def _decoded(self, key: Hashable, group: int, decode: Decode) -> RowGroup:
        """Decode a row group, or take it from the thread that does."""
        reads = self._reads.get(key)
        ahead = reads.ahead if reads else None
        if reads and ahead:
            reads.ahead = None
            number, decoded = ahead
            if number == group:
                return decoded.result()
        return decode(group)

    def look_ahead(self, key: Hashable, read: tuple[int, int], last: tuple[int, int, int], decode: Decode) -> None:
        """Begin to decode the row group behind the last one, if it will probably be read soon.

        Args:
            read: The first and end row of what was just read.
            last: The number of the last row group that has some of these rows, its first and its end row.
        """
        (start, stop), (group, first, end) = read, last
        reads = self._reads.setdefault(key, _Reads(start, start))
        if start != reads.start:  # NB: tasks of the same worker may read a batch one after the other
            reads.in_order = reads.in_order + 1 if start == reads.stop else 0
        reads.start, reads.stop = start, stop
        is_near = end - stop <= max(stop - start, (end - first) // _LAST)
        if reads.ahead is None and is_near and reads.in_order >= _IN_ORDER and _has_cores():
            found = self.groups.get(key)
            if found and found[1].table.nbytes <= _AHEAD:
                reads.ahead = group + 1, _thread().submit(decode, group + 1, True)


@cache
def _thread() -> "ThreadPoolExecutor":
    """Return the thread that decodes ahead of time; it keeps its decoders and its memory, and ends with the process."""
    from concurrent.futures import ThreadPoolExecutor

    return ThreadPoolExecutor(1, "row groups")


def _has_cores() -> bool:
    """True if this process may run on several cores."""
    return len(os.sched_getaffinity(0)) > 1 if hasattr(os, "sched_getaffinity") else (os.cpu_count() or 1) > 1
