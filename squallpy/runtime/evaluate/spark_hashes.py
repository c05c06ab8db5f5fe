"""The hashes of Spark's HASH and XXHASH64: Murmur3 of 32 bits and xxHash of 64, of values one after the other.

Each value is hashed with the hash so far as its seed; NULL leaves that as it is. All rows of a batch are hashed at
once, texts a word at a time.

Source: Austin Appleby, MurmurHash3 (x86, 32 bits); Yann Collet, xxHash (64 bits). Spark hashes the last bytes of a text
that make no word one by one, and a value of 32 bits by itself.
"""

from abc import ABC, abstractmethod
from typing import Any

import numpy as np
import pyarrow as pa

Rows = Any  # a numpy mask, or the numbers of rows
SEED = 42


class RowHash(ABC):
    """The hash of each row so far."""

    def __init__(self, rows: int) -> None:
        self.values = np.full(rows, SEED, self.dtype)

    dtype: type[np.uint32] | type[np.uint64]

    @abstractmethod
    def add_ints(self, values: Any, rows: Rows) -> None:
        """Hash integers of 32 bits, those of some rows."""

    @abstractmethod
    def add_longs(self, values: Any, rows: Rows) -> None:
        """Hash integers of 64 bits."""

    @abstractmethod
    def add_bytes(self, values: pa.Array, rows: Rows) -> None:
        """Hash texts or binary values, none of them NULL."""


class Murmur3(RowHash):
    """Murmur3 in 32 bits, as Spark's HASH."""

    dtype = np.uint32

    def add_ints(self, values: Any, rows: Rows) -> None:
        self.values[rows] = _finish(_mix(self.values[rows], values.astype(np.uint32)), 4)

    def add_longs(self, values: Any, rows: Rows) -> None:
        low, high = (values.astype(np.uint64) >> shift for shift in (np.uint64(0), np.uint64(32)))
        mixed = _mix(_mix(self.values[rows], low.astype(np.uint32)), high.astype(np.uint32))
        self.values[rows] = _finish(mixed, 8)

    def add_bytes(self, values: pa.Array, rows: Rows) -> None:
        text, hashes = _Bytes(values), self.values[rows]
        for at, left in text.places(4):
            hashes[left] = _mix(hashes[left], text.words(left, at, 4).astype(np.uint32))
        for at, left in text.rest(4):
            hashes[left] = _mix(hashes[left], text.words(left, at, 1).astype(np.int8).astype(np.uint32))
        self.values[rows] = _finish(hashes, text.lengths.astype(np.uint32))


def _rotated(values: Any, bits: int) -> Any:
    width = values.dtype.itemsize * 8
    return (values << values.dtype.type(bits)) | (values >> values.dtype.type(width - bits))


def _mix(hashes: Any, words: Any) -> Any:
    words = _rotated(words * np.uint32(0xCC9E2D51), 15) * np.uint32(0x1B873593)
    return _rotated(hashes ^ words, 13) * np.uint32(5) + np.uint32(0xE6546B64)


def _finish(hashes: Any, length: Any) -> Any:
    hashes = hashes ^ np.uint32(length)
    hashes = (hashes ^ (hashes >> np.uint32(16))) * np.uint32(0x85EBCA6B)
    hashes = (hashes ^ (hashes >> np.uint32(13))) * np.uint32(0xC2B2AE35)
    return hashes ^ (hashes >> np.uint32(16))


_P1, _P2, _P3, _P4, _P5 = (
    np.uint64(prime)
    for prime in (0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9, 0x85EBCA77C2B2AE63, 0x27D4EB2F165667C5)
)


class XxHash64(RowHash):
    """xxHash in 64 bits, as Spark's XXHASH64."""

    dtype = np.uint64

    def add_ints(self, values: Any, rows: Rows) -> None:
        self.values[rows] = _avalanche(_take_half(self.values[rows] + _P5 + np.uint64(4), values.astype(np.uint32)))

    def add_longs(self, values: Any, rows: Rows) -> None:
        self.values[rows] = _avalanche(_take_word(self.values[rows] + _P5 + np.uint64(8), values.astype(np.uint64)))

    def add_bytes(self, values: pa.Array, rows: Rows) -> None:
        text, seeds = _Bytes(values), self.values[rows]
        hashes = _take_stripes(text, seeds) + text.lengths.astype(np.uint64)
        for at, left in text.rest(32, 8):
            hashes[left] = _take_word(hashes[left], text.words(left, at, 8))
        for at, left in text.rest(8, 4):
            hashes[left] = _take_half(hashes[left], text.words(left, at, 4))
        for at, left in text.rest(4):
            hashes[left] = _rotated(hashes[left] ^ (text.words(left, at, 1) * _P5), 11) * _P1
        self.values[rows] = _avalanche(hashes)


def _take_word(hashes: Any, words: Any) -> Any:
    return _rotated(hashes ^ _round(np.uint64(0), words), 27) * _P1 + _P4


def _take_half(hashes: Any, words: Any) -> Any:
    return _rotated(hashes ^ (words.astype(np.uint64) * _P1), 23) * _P2 + _P3


def _round(lane: Any, words: Any) -> Any:
    return _rotated(lane + words * _P2, 31) * _P1


def _take_stripes(text: "_Bytes", seeds: Any) -> Any:
    """Hash the stripes of 32 bytes of each text by four lanes; a shorter text has its seed."""
    lanes = [seeds + _P1 + _P2, seeds + _P2, seeds + np.uint64(0), seeds - _P1]
    for at, left in text.places(32):
        for number, lane in enumerate(lanes):
            lane[left] = _round(lane[left], text.words(left, at + 8 * number, 8))
    merged = sum(
        (_rotated(lane, bits) for lane, bits in zip(lanes[1:], (7, 12, 18), strict=True)), _rotated(lanes[0], 1)
    )
    for lane in lanes:
        merged = (merged ^ _round(np.uint64(0), lane)) * _P1 + _P4
    return np.where(text.lengths >= 32, merged, seeds + _P5)


def _avalanche(hashes: Any) -> Any:
    hashes = (hashes ^ (hashes >> np.uint64(33))) * _P2
    hashes = (hashes ^ (hashes >> np.uint64(29))) * _P3
    return hashes ^ (hashes >> np.uint64(32))


class _Bytes:
    """The bytes of binary values, read a word at a time."""

    def __init__(self, values: pa.Array) -> None:
        held = values.cast(pa.large_binary())
        held = held.combine_chunks() if isinstance(held, pa.ChunkedArray) else held
        _, offsets, data = held.buffers()
        ends = np.frombuffer(offsets, np.int64)[held.offset : held.offset + len(held) + 1]
        self._starts, self.lengths = ends[:-1], np.diff(ends)
        self._data = np.frombuffer(data, np.uint8) if data is not None else np.empty(0, np.uint8)

    def places(self, size: int) -> Any:
        """Yield the places of whole pieces of a size, each with the values that have one there."""
        for at in range(0, int(self.lengths.max(initial=0)) - size + 1, size):
            yield at, np.flatnonzero(self.lengths >= at + size)

    def rest(self, behind: int, size: int = 1) -> Any:
        """Yield the places of smaller pieces behind the last whole one, as places within each value."""
        starts = self.lengths // behind * behind
        for number in range(behind // size):
            left = np.flatnonzero(self.lengths >= starts + (number + 1) * size)
            if len(left):
                yield starts[left] + number * size, left

    def words(self, of: Any, at: Any, size: int) -> Any:
        """Read little-endian words of some values, each at a place."""
        first, found = self._starts[of] + at, np.zeros(len(of), np.uint64)
        for number in range(size):
            found |= self._data[first + number].astype(np.uint64) << np.uint64(8 * number)
        return found
