"""Keys that have small numbers while they are there, so that arrays and 32-bit words can stand for them.

keys.intern([[7, 1], [8, 1], [7, 1]])       →   [0, 1, 0], of which [0, 1] are new
keys.numbers([[8, 1], [9, 9]])              →   [1, -1]
keys.drop([0]);  keys.intern([[9, 9]])      →   [0], [0]
"""

import numpy as np

from squallpy.base.rings import Payload, Ring
from squallpy.runtime.kernels.fixpoint_steps import add_up_rows
from squallpy.runtime.kernels.memory_area import SCALARS, Area
from squallpy.runtime.kernels.memory_regions import Storage, Words
from squallpy.runtime.kernels.pool import Pool

_KEYS, _FREE = 0, 1  # regions
_TOP, _LEFT = SCALARS, SCALARS + 1  # scalars: numbers ever given, and how many of them are free
_BIRTH = 512
_NONE = np.empty(0, np.int64)


class NumberedKeys:
    """Keys of `width` words and their numbers.

    Args:
        slices: Columns to look up by in `pool`.
    """

    def __init__(self, width: int, slices: tuple[tuple[int, ...], ...], storage: Storage, name: str) -> None:
        self.width = width
        self.pool = Pool(width, Payload((Ring.COUNT,)), slices, storage, f"{name}.index")
        """Keys, each with its number + 1."""
        self._area = Area(storage, name, {"keys": _BIRTH, "free": _BIRTH}, scalars=2)

    def __len__(self) -> int:
        return len(self.pool)

    @property
    def top(self) -> int:
        """The number that was never given."""
        return self._area.head[_TOP]

    @property
    def keys(self) -> Words:
        """Keys by number; what stands at numbers that are free is arbitrary."""
        self._area.current()
        return self._area.array(_KEYS)[: self.top * self.width].reshape(self.top, self.width)

    def numbers(self, keys: Words) -> Words:
        """Return the number of each key, or −1."""
        return self.pool.get(keys)[:, 0] - 1

    def intern(self, keys: Words) -> tuple[Words, Words]:
        """Return the number of each key, which gets one if it has none, and those that are new."""
        found = self.numbers(keys)
        missing = np.flatnonzero(found < 0)
        if not len(missing):
            return found, _NONE
        unknown = keys.take(missing, axis=0)
        new, _ = add_up_rows(unknown, np.ones(len(unknown), np.int64))
        given = self._give(len(new))
        self.pool.upsert(new, given[:, None] + 1)
        self.keys[given] = new
        found[missing] = given if len(new) == len(unknown) else self.numbers(unknown)
        return found, given

    def drop(self, numbers: Words) -> None:
        """Forget keys by their numbers, of which each is there once."""
        self.pool.upsert(self.keys[numbers], -(numbers[:, None] + 1))
        left = self._area.head[_LEFT]
        self._reserve(_FREE, left + len(numbers))
        self._area.array(_FREE)[left : left + len(numbers)] = numbers
        self._area.head[_LEFT] = left + len(numbers)

    def clear(self) -> None:
        """Forget all keys."""
        self.pool.clear()
        self._area.current()
        self._area.head[_TOP] = self._area.head[_LEFT] = 0

    @property
    def nbytes(self) -> int:
        """Bytes in use."""
        usage = self.pool.usage
        return sum(usage.values()) - usage["records"] + 8 * self.top * self.width

    def _give(self, count: int) -> Words:
        """Take numbers that are free, then new ones."""
        self._area.current()
        left, top = self._area.head[_LEFT], self.top
        reused = min(left, count)
        given = np.concatenate([self._area.array(_FREE)[left - reused : left], np.arange(top, top + count - reused)])
        self._area.head[_LEFT] = left - reused
        self._area.head[_TOP] = top + count - reused
        self._reserve(_KEYS, self.top * self.width)
        return given

    def _reserve(self, region: int, words: int) -> None:
        if words > self._area.words(region):
            self._area.grow(region, max(words, 2 * self._area.words(region)))
