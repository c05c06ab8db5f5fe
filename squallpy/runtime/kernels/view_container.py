"""Containers: what a view is kept in, seen without lookups by key. `Pool` adds those."""

from abc import ABC, abstractmethod
from collections.abc import Iterator

import numpy as np

from squallpy.base.rings import Payload
from squallpy.runtime.kernels.memory_regions import Words
from squallpy.runtime.kernels.sorted_index import SortedIndex

HASHES = 1 << 32  # records without a sorted index are in the order of hashes of 32 bits


class Container(ABC):
    """Rows of `key_width` int64 as keys, each with an element of `payload`'s ring.

    Arguments are C-contiguous int64 matrices. Keys and payloads that it shows are valid until the next `upsert` or
    `clear`.
    """

    key_width: int
    payload: Payload
    sorted: tuple[SortedIndex, ...] = ()

    @abstractmethod
    def upsert(self, keys: Words, words: Words) -> None:
        """Add a payload to each key, in order."""

    @abstractmethod
    def rows(self) -> tuple[Words, Words]:
        """Return the contents as (keys, words)."""

    def pieces(self, rows: int) -> Iterator[Words]:
        """Yield the keys, then the payloads, so many rows at a time if they have to be made."""
        yield from self.rows()

    @property
    def keys(self) -> Words:
        """Keys by row."""
        return self.rows()[0]

    @property
    def words(self) -> Words:
        """Payloads by row."""
        return self.rows()[1]

    @abstractmethod
    def clear(self) -> None:
        """Drop all records."""

    @abstractmethod
    def __len__(self) -> int: ...

    @property
    @abstractmethod
    def usage(self) -> dict[str, int]:
        """Records, and bytes in use by part."""


class OrderedContainer(Container):
    """A container whose records have an order, that of its first sorted index or of their hashes.

    So it can be copied bit by bit, while it changes: a reader that goes on from call to call, and copies again each
    record that is changed where it has been (`select_copied`), has copied every record as it is.
    """

    def copy_fraction(self, reached: Words, low: int, high: int) -> tuple[Words, Words]:
        """Copy keys and payloads of the records with hashes `low` … `high` − 1, of `HASHES`.

        In the order of a sorted index, in which that is quicker, it is the same fraction of the records: those behind
        the key that was `reached` (1, K), or the first ones if none was (0, K).
        """
        if low == high:
            return np.empty((0, self.key_width), np.int64), np.empty((0, self.payload.width), np.int64)
        return self.sorted[0].copy_after(reached, high - low, HASHES - low)

    def select_copied(self, keys: Words, reached: Words, low: int) -> Words:
        """Select the keys up to the one that was `reached`, or with hashes below `low`."""
        return np.arange(len(keys)) if low == HASHES else self.sorted[0].select_up_to(keys, reached)

    def fill(self, keys: Words, words: Words, high: int) -> None:
        """Add records that `copy_fraction` has copied from another container, up to hash `high`."""
        self.upsert(keys, words)
