"""Dictionaries: strings ↔ dense integers, so that string columns can be key columns.

    names = Dictionary()
    names.intern(pa.array(["a", "b", None, "a"]))   →  [0, 1, -1, 0]
    names.lookup(pa.array(["b", "c"]))              →  [1, -1]
    names.strings(np.array([1, -1]))                →  ["b", None]

Exact: two strings get one number only if their bytes are equal, which is compared; a hash collision costs a comparison
and can never give a wrong answer. Numbers are given in order of first appearance, and change only where `keep` says.
"""

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from squallpy.runtime.kernels.hash_index import (
    FIRST,
    HEADER,
    HIGH,
    LOW,
    MOST,
    OF,
    SIZE,
    after,
    ask,
    begin_growing,
    full,
    go_on_growing,
    insert,
    is_behind,
    table_of,
    wider,
    wipe_all,
)
from squallpy.runtime.kernels.hashing import hash_bytes
from squallpy.runtime.kernels.intrinsics import load, load8, prefetch, store, store8
from squallpy.runtime.kernels.kernel_compiler import VECTOR, Vector, address, inlined, kernel
from squallpy.runtime.kernels.memory_area import HEAD, Area
from squallpy.runtime.kernels.memory_regions import HEAP, Storage, Words
from squallpy.runtime.kernels.string_columns import StringColumn, plain, string_at

_BIRTH = 512
_INDEX, _ENDS, _BYTES = 0, 1, 2  # regions: hash index; where each string ends; their bytes one after the other
COUNT, NEEDED, _GROWING = 1, 2, 3  # scalars: strings held; bytes that the next needs if it found no room; see `Pool`
_KEPT, _EDITION = 4, 5  # bytes of the strings when it was last looked which are needed; how often numbers have changed
_FEW = 1 << 20  # bytes for which nobody looks
_WORTH = 0.25  # the share of strings that has to go for the others to get new numbers
_CHUNK = 32
_PIECE = 1 << 12  # rows that are looked up at a time while the index grows


class Dictionary:
    """An interning table for the strings of a store."""

    def __init__(self, storage: Storage = HEAP, name: str = "dictionary") -> None:
        regions = {"index": _BIRTH, "ends": _BIRTH, "bytes": _BIRTH}
        self._area = Area(storage, name, regions, scalars=5, scratch=2 * _CHUNK)

    def intern(self, array: pa.Array | pa.ChunkedArray) -> Words:
        """Return the number of each string, adding new ones; −1 for NULL."""
        return self._numbers(array, add=True)

    def lookup(self, array: pa.Array | pa.ChunkedArray) -> Words:
        """Return the number of each string, −1 for NULL and for strings that are not in the dictionary."""
        return self._numbers(array, add=False)

    def strings(self, ids: Words) -> pa.Array:
        """Return the strings of numbers, NULL for −1 (as string, or large_string beyond 2 GiB)."""
        ids, frame = np.ascontiguousarray(ids, np.int64), self._area.current()
        offsets, known = _offsets(frame, ids)
        assert known >= 0, "numbers that were never given"
        data = np.empty(offsets[-1], np.uint8)
        _spell(frame, ids, offsets, data)
        wide = offsets[-1] >= 2**31
        valid = None if known == len(ids) else pa.array(ids >= 0).buffers()[1]
        ends = pa.py_buffer(offsets if wide else offsets.astype(np.int32))
        kind = pa.large_string() if wide else pa.string()
        return pa.Array.from_buffers(kind, len(ids), [valid, ends, pa.py_buffer(data)])

    def nbytes(self, ids: Words) -> int:
        """Count the bytes of the strings of these numbers; NULL has none."""
        ends, _ = self.contents()
        known = ids[ids >= 0]
        return int((ends[known + 1] - ends[known]).sum())

    def contents(self) -> tuple[Words, npt.NDArray[np.uint8]]:
        """View all strings in order, as (where each ends, their bytes)."""
        self._area.current()
        ends = self._area.array(_ENDS)[: len(self) + 1]
        return ends, self._area.array(_BYTES).view(np.uint8)[: ends[-1]]

    def refill(self, ends: Words, data: bytes, kept: int = 0) -> None:
        """Take over the contents of another dictionary, numbers included; this one is empty."""
        assert len(self) == 0
        buffers = [None, pa.py_buffer(ends), pa.py_buffer(data)]
        self.intern(pa.Array.from_buffers(pa.large_binary(), len(ends) - 1, buffers))
        self._area.head[_KEPT] = kept

    @property
    def kept(self) -> int:
        """The bytes that it had when it was last looked which strings are needed."""
        return self._area.head[_KEPT]

    @property
    def edition(self) -> int:
        """Number of times that numbers were assigned anew."""
        return self._area.head[_EDITION]

    @property
    def is_due(self) -> bool:
        """True if it has grown to more than twice its size after the last clean-up: then half of its strings may be
        garbage."""
        return self._bytes > 2 * self.kept + _FEW

    def keep(self, needed: npt.NDArray[np.bool_]) -> Words | None:
        """Forget the strings that are not needed: by its old number the new one of each that is. None if they are so
        few that all keep theirs."""
        numbers = None
        if np.count_nonzero(needed) <= (1 - _WORTH) * len(needed):
            strings = self.strings(np.flatnonzero(needed))
            _clear(self._area.current())
            self.intern(strings)
            numbers = np.cumsum(needed) - 1
            self._area.head[_EDITION] += 1
        self._area.head[_KEPT] = self._bytes
        return numbers

    def __len__(self) -> int:
        return self._area.head[COUNT]

    @property
    def usage(self) -> dict[str, int]:
        """Strings, and bytes in use by part, as `Pool.usage` has them."""
        return {"records": len(self), "keys": self._bytes, "index": 8 * self._size}

    @property
    def _bytes(self) -> int:
        self._area.current()
        count = len(self)
        return 8 * (count + 1) + int(self._area.array(_ENDS)[count])

    @property
    def _size(self) -> int:
        """Number of positions of the index."""
        return int(self._area.array(_INDEX)[SIZE]) or FIRST

    def _numbers(self, array: pa.Array | pa.ChunkedArray, add: bool) -> Words:
        if isinstance(array, pa.DictionaryArray) and len(array.dictionary) <= 2 * len(array):  # else a slice of much
            codes = np.asarray(array.indices.fill_null(-1)).astype(np.int64)
            return np.append(self._numbers(array.dictionary, add), -1)[codes]
        column = StringColumn(plain(array))
        out = np.empty(len(column.array), np.int64)
        done = 0
        while done < len(out):
            frame, growing = self._area.current(), add and self._area.head[_GROWING]
            start, stop = done, min(len(out), done + _PIECE) if growing else len(out)
            done = _intern(frame, column.source, out, start, stop, add)
            if growing:
                _grow_on(frame)
            if done < stop:
                self.make_room()
        return out

    @property
    def address(self) -> int:
        """Address of the frame for kernels, which stays; its content holds until a string is added."""
        self._area.current()
        return self._area.address

    def tend(self) -> None:
        """Let its index, which may be growing, do so as far as is due."""
        if self._area.head[_GROWING]:
            _grow_on(self._area.current())

    def make_room(self) -> None:
        """Extend each part that has no room for the next string."""
        area, count = self._area, len(self)
        assert count < 2**31 - 1, "a dictionary holds fewer than 2³¹ strings"
        if count * OF >= self._size * MOST:
            size = wider(self._size)
            area.grow(_INDEX, HEADER + size)
            begin_growing(area.where(_INDEX), size)
            area.head[_GROWING] = 1
        if count + 1 >= area.words(_ENDS):
            area.grow(_ENDS, 2 * area.words(_ENDS))
        needed = -(-area.head[NEEDED] // 8)
        if needed > area.words(_BYTES):
            area.grow(_BYTES, max(needed, 2 * area.words(_BYTES)))


@inlined
def same_bytes(a: int, b: int, length: int) -> bool:
    while length >= 8:
        if load(a, 0) != load(b, 0):
            return False
        a, b, length = a + 8, b + 8, length - 8
    for i in range(length):  # noqa: SIM110
        if load8(a, i) != load8(b, i):
            return False
    return True


@inlined
def copy_bytes(target: int, source: int, length: int) -> None:
    while length >= 8:
        store(target, 0, load(source, 0))
        target, source, length = target + 8, source + 8, length - 8
    for i in range(length):
        store8(target, i, load8(source, i))


@kernel(f"void({VECTOR})")
def _grow_on(frame: Vector) -> None:
    store(frame[HEAD], _GROWING, 1 if go_on_growing(frame[1], load(frame[HEAD], COUNT)) else 0)


@kernel(f"void({VECTOR})")
def _clear(frame: Vector) -> None:
    wipe_all(frame[1])
    store(frame[HEAD], COUNT, 0)
    store(frame[HEAD], _GROWING, 0)


@kernel(f"int64({VECTOR}, {VECTOR}, {VECTOR}, int64, int64, boolean)")
def _intern(frame: Vector, source: Vector, out: Vector, first: int, stop: int, add: bool) -> int:
    """Number rows `first` … `stop` − 1; return the first row for which there was no room, or `stop`."""
    head, (table, shape), ends, end_words = frame[HEAD], table_of(frame[1]), frame[3], frame[4]
    data, capacity = frame[5], 8 * frame[6]
    count, scratch = load(head, COUNT), 7
    for chunk in range(first, stop, _CHUNK):
        here = min(_CHUNK, stop - chunk)
        for j in range(here):
            start, length = string_at(source, chunk + j)
            h = hash_bytes(start, length) if length >= 0 else 0
            frame[scratch + j] = h
            frame[scratch + _CHUNK + j] = ask(table, shape, h)
        for j in range(here):
            entry = load(table, frame[scratch + _CHUNK + j])
            if entry != 0:
                prefetch(data + load(ends, (entry & LOW) - 1))
        for j in range(here):
            start, length = string_at(source, chunk + j)
            if length < 0:
                out[chunk + j] = -1
                continue
            h = frame[scratch + j]
            at = frame[scratch + _CHUNK + j]
            entry = load(table, at)
            while entry != 0:
                number = (entry & LOW) - 1
                if (entry ^ h) & HIGH == 0:
                    begin = load(ends, number)
                    if load(ends, number + 1) - begin == length and same_bytes(data + begin, start, length):
                        break
                if is_behind(entry, h, at, shape):
                    entry = 0
                    break
                at = after(at, shape)
                entry = load(table, at)
            if entry == 0 and add:
                begin = load(ends, count)
                if full(count, shape) or count + 1 >= end_words or begin + length > capacity:
                    store(head, COUNT, count)
                    store(head, NEEDED, begin + length)
                    return chunk + j
                copy_bytes(data + begin, start, length)
                store(ends, count + 1, begin + length)
                count += 1
                entry = (h & HIGH) | count
                insert(table, shape, at, entry)
            out[chunk + j] = (entry & LOW) - 1
    store(head, COUNT, count)
    return stop


@kernel(f"Tuple(({VECTOR}, int64))({VECTOR}, {VECTOR})")
def _offsets(frame: Vector, ids: Vector) -> tuple[Words, int]:
    """Find where each string begins and the last ends; count those that are not NULL, −1 if a number is wrong."""
    offsets, end, known, count = np.empty(len(ids) + 1, np.int64), 0, 0, load(frame[HEAD], COUNT)
    for i in range(len(ids)):
        offsets[i] = end
        if ids[i] < -1 or ids[i] >= count:
            return offsets, -1
        if ids[i] >= 0:
            known += 1
            end += load(frame[3], ids[i] + 1) - load(frame[3], ids[i])
    offsets[len(ids)] = end
    return offsets, known


@kernel(f"void({VECTOR}, {VECTOR}, {VECTOR}, uint8[::1])")
def _spell(frame: Vector, ids: Vector, offsets: Vector, data: Vector) -> None:
    target = address(data)
    for i in range(len(ids)):
        if ids[i] >= 0:
            copy_bytes(target + offsets[i], frame[5] + load(frame[3], ids[i]), offsets[i + 1] - offsets[i])
