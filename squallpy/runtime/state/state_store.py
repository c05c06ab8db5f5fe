"""Stores: the state of one partition of a query, as named pools, one dictionary for their strings, and blocks.

layout = StoreLayout((PoolLayout("q", 1, Payload((Ring.EXACT,))), PoolLayout("orders", 2, …, slices=((1,),))))
store = Store(layout)                       on the heap;  Store(layout, MappedStorage(path))  in files
store["orders"].upsert(…)
store.snapshot(file);  Store(layout).restore(file)      same contents, in the same slots, under the same numbers
store.renew()                                           without the strings that nothing names any more
"""

import io
import json
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import IO, Any

import numpy as np
import pyarrow as pa

from squallpy.base.index_order import Order
from squallpy.base.records import dataclass
from squallpy.base.rings import Payload
from squallpy.runtime.kernels.dictionary import Dictionary
from squallpy.runtime.kernels.grouped_rows import GroupedRows
from squallpy.runtime.kernels.kernel_compiler import source_stamp
from squallpy.runtime.kernels.memory_regions import HEAP, Storage, Words
from squallpy.runtime.kernels.pool import Pool, as_pool
from squallpy.runtime.kernels.row_list import RowList
from squallpy.runtime.kernels.sorted_pool import SortedPool
from squallpy.runtime.kernels.view_container import Container, OrderedContainer
from squallpy.runtime.state.matrix_blocks import BlockLayout, MatrixBlock

_FORMAT = 3  # of snapshots
_CHUNK = 1 << 18  # rows restored at a time


@cache
def layout_stamp() -> str:
    """Name the code that lays stores out in memory, by 36 characters: mapped files of other code are not read."""
    return source_stamp(Path(__file__)).hex()[:36]


@dataclass(frozen=True, slots=True)
class StringCells:
    """Cells that hold numbers of strings: those of one column, from `first` on and below `end`.

    Columns are those of keys, then of payloads. `end` is the number of no string; `first` is 0.
    """

    column: int
    first: int
    end: int

    def __call__(self, keys: Words, words: Words) -> tuple[Words, Words]:
        """Return a view of the column, and the mask of its cells that hold numbers."""
        width = keys.shape[1]
        column = keys[:, self.column] if self.column < width else words[:, self.column - width]
        return column, np.flatnonzero((column >= self.first) & (column < self.end))


@dataclass(frozen=True, slots=True)
class PoolLayout:
    """Layout of a pool (see `Pool`, `SortedPool`, `RowList`, `GroupedRows`).

    Args:
        numbered: The cells that hold numbers of strings.
        agreeing: The columns that the rows of a group agree on.
        adaptive: Whether its indexes suit what comes: runs of records, and records that go.
        narrow: Whether its keys have words of 32 bits as long as these hold them.
        small: Whether counts have 32 bits and exact sums 64 as long as these hold them.
    """

    name: str
    key_width: int
    payload: Payload
    slices: tuple[tuple[int, ...], ...] = ()
    orders: tuple[Order, ...] = ()
    numbered: tuple[StringCells, ...] = ()
    ordered: bool = False
    listed: bool = False
    group: tuple[int, ...] = ()
    agreeing: tuple[int, ...] = ()
    adaptive: bool = False
    narrow: bool = False
    small: bool = False

    def open(self, storage: Storage) -> Container:
        """Make the pool, or open what storage has of it."""
        name = f"pool.{self.name}"
        if self.ordered:
            return SortedPool(self.key_width, self.payload, self.orders, storage, name)
        if self.agreeing:
            return GroupedRows(self.key_width - 1, self.agreeing, self.slices, storage, name)
        if self.listed:
            return RowList(self.key_width, self.payload, storage, name)
        slices, orders, group, held = self.slices, self.orders, self.group, (self.adaptive, self.narrow, self.small)
        return Pool(self.key_width, self.payload, slices, storage, name, orders, group, *held)

    def __post_init__(self) -> None:
        assert "/" not in self.name and self.name not in ("", "dictionary"), f"{self.name!r} cannot name a pool's files"


@dataclass(frozen=True, slots=True)
class StoreLayout:
    """Layout of a store: pools and blocks, each by distinct names."""

    pools: tuple[PoolLayout, ...] = ()
    blocks: tuple[BlockLayout, ...] = ()

    def __post_init__(self) -> None:
        assert len({pool.name for pool in self.pools}) == len(self.pools), "two pools of one name"


class Store(Mapping[str, Container]):
    """Pools by name, `dictionary` and `blocks`; with shared storage, whatever another process left there."""

    def __init__(self, layout: StoreLayout, storage: Storage = HEAP, *, dictionary: Dictionary | None = None) -> None:
        self.layout, self._storage = layout, storage
        self.dictionary = Dictionary(storage) if dictionary is None else dictionary
        self._pools = {pool.name: pool.open(storage) for pool in layout.pools}
        self.blocks = {block.name: MatrixBlock(block, storage) for block in layout.blocks}
        self._seen = 0

    def __getitem__(self, name: str) -> Container:
        return self._pools[name]

    def adopt(self, name: str, pool: Container) -> None:
        """Replace a pool by one of another store with the same dictionary."""
        self._pools[name] = pool

    def layout_of(self, name: str) -> PoolLayout:
        """Return the layout of a pool."""
        return next(layout for layout in self.layout.pools if layout.name == name)

    def pool(self, name: str) -> Pool:
        """Return a container that is looked up by key."""
        return as_pool(self[name])

    def ordered(self, name: str) -> OrderedContainer:
        """Return a container whose records have an order."""
        found = self[name]
        assert isinstance(found, OrderedContainer), f"{name} has no order"
        return found

    def __iter__(self) -> Iterator[str]:
        return iter(self._pools)

    def __len__(self) -> int:
        return len(self._pools)

    def usage(self) -> dict[str, dict[str, int]]:
        """Report records, bytes in use and bytes of each part, by pool and for all strings."""
        parts = {name: pool.usage for name, pool in self.items()} | {"strings": self.dictionary.usage}
        taken = {name: {"records": p.pop("records"), "bytes": sum(p.values()), **p} for name, p in parts.items()}
        return taken | {name: {"records": b.shape[0], "bytes": b.nbytes} for name, b in self.blocks.items()}

    def renew(self) -> None:
        """Forget the strings that nothing names any more, once they may be half of all; the others get other numbers.
        Between batches, for nobody may know a number then."""
        strings = len(self.dictionary)
        if strings == self._seen:  # NB: a look at their bytes costs as much as a small batch
            return
        self._seen = strings
        if not self.dictionary.is_due:
            return
        needed = np.zeros(len(self.dictionary), np.bool_)
        for layout in self.layout.pools:
            for numbered in layout.numbered:
                column, cells = numbered(*self[layout.name].rows())
                needed[column[cells] - numbered.first] = True
        numbers = self.dictionary.keep(needed)
        if numbers is None:
            return
        for layout in (pool for pool in self.layout.pools if pool.numbered):
            pool = self[layout.name]
            keys, words = (part.copy() for part in pool.rows())
            for numbered in layout.numbered:
                column, cells = numbered(keys, words)
                column[cells] = numbers[column[cells] - numbered.first] + numbered.first
            pool.clear()
            pool.upsert(keys, words)

    @property
    def live_nbytes(self) -> int:
        """Size of the contents alone: what a snapshot holds before compression."""
        rows = sum(len(pool) * (pool.key_width + pool.payload.width) * 8 for pool in self.values())
        blocks = sum(block.nbytes for block in self.blocks.values())
        return rows + blocks + sum(part.nbytes for part in self.dictionary.contents())

    def copy(self) -> "Store":
        """Copy the contents to the heap, in the same slots, under the same numbers."""
        made = Store(self.layout)
        ends, data = self.dictionary.contents()
        made.dictionary.refill(ends, data.tobytes(), self.dictionary.kept)
        for name, pool in self.items():
            keys, words = pool.rows()
            made[name].upsert(np.ascontiguousarray(keys), np.ascontiguousarray(words))
        for name, block in self.blocks.items():
            made.blocks[name].assign(block.values)
        return made

    def snapshot(self, sink: IO[bytes]) -> None:
        """Write the contents, compressed."""
        names = self.dictionary.contents()
        head = {
            "format": _FORMAT,
            "dictionary": [*(len(part) for part in names), self.dictionary.kept],
            "pools": [[name, len(pool), pool.key_width, pool.payload.width] for name, pool in self.items()],
            "blocks": [[name, *block.shape, block.layout.dtype] for name, block in self.blocks.items()],
        }
        with self._storage.read_in_order(), pa.CompressedOutputStream(_KeepOpen(sink), "zstd") as out:
            line = json.dumps(head).encode()
            out.write(len(line).to_bytes(8, "little") + line)
            blocks = (row for block in self.blocks.values() for row in block.values)
            for part in (*names, *(part for pool in self.values() for part in pool.pieces(_CHUNK)), *blocks):
                if part.size:
                    out.write(pa.py_buffer(part))

    def restore(self, source: IO[bytes]) -> None:
        """Read a snapshot of a store of the same layout into this one, which is empty."""
        assert not len(self.dictionary) and not any(len(pool) for pool in self.values()), "restored into a store in use"
        with pa.CompressedInputStream(source, "zstd") as data:
            head = json.loads(_read(data, int.from_bytes(_read(data, 8), "little")))
            ours: list[list[Any]] = [[name, pool.key_width, pool.payload.width] for name, pool in self.items()]
            ours += [[name, block.layout.dtype] for name, block in self.blocks.items()]
            theirs = [[name, key, payload] for name, _, key, payload in head["pools"]]
            theirs += [[name, dtype] for name, _, _, dtype in head["blocks"]]
            assert head["format"] == _FORMAT and ours == theirs, "a snapshot of another layout"
            ends, count, kept = head["dictionary"]
            self.dictionary.refill(_words(data, ends), _read(data, count), kept)
            for name, rows, _, _ in head["pools"]:
                self._refill(self[name], rows, data)
            for name, rows, columns, dtype in head["blocks"]:
                block = self.blocks[name]
                block.resize((rows, columns), 0)
                for row in block.values if columns else ():
                    row[:] = np.frombuffer(_read(data, row.nbytes), dtype)

    def _refill(self, pool: Container, rows: int, data: Any) -> None:
        keys = _words(data, rows * pool.key_width).reshape(rows, pool.key_width)
        for start in range(0, rows, _CHUNK):
            part = keys[start : start + _CHUNK]
            pool.upsert(part, _words(data, len(part) * pool.payload.width).reshape(len(part), pool.payload.width))


class _KeepOpen(io.RawIOBase):
    """A file that Arrow may close without closing the one below."""

    def __init__(self, below: IO[bytes]) -> None:
        self._below = below

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        return self._below.write(data)


def _read(data: Any, size: int) -> bytes:
    parts = []
    while size:
        part = data.read(size)
        assert part, "a snapshot ends early"
        parts.append(part)
        size -= len(part)
    return b"".join(parts)


def _words(data: Any, count: int) -> Words:
    return np.frombuffer(_read(data, count * 8), np.int64)
