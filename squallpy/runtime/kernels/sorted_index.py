"""Sorted indexes: the records of a pool by some key columns and then by the value of one, with the sums of ranges.

    index = SortedIndex(Order((0, 1), 1), Payload((Ring.COUNT,)))
    index.upsert([[7, 10], [7, 20], [8, 30]], [[1], [2], [4]])
    index.sum_ranges([[7]], [15], [99])           →  [[2]]
    index.find_entries([[7]], [0], [99])         →  rows [0, 0], places of (7, 10) and (7, 20) in `index.entries`

    index = SortedIndex(Order((0, 1, 2), 1, heights=Heights(great=True)), Payload((Ring.COUNT,)))
    index.upsert([[7, 10, 5], [7, 20, 9], [7, 30, 4]], [[1], [1], [1]])
    index.find_highest([[7]], [0], [99])         →  the place of (7, 20, 9)

Range bounds are ranks (see `rank`), both inclusive. Updates, sums and the ends of a range cost a logarithm. A NULL in
the ranged column is in no range.
"""

from typing import NamedTuple

import numpy as np

from squallpy.base.index_order import Order
from squallpy.base.rings import Payload, Ring
from squallpy.runtime.kernels import pool_layout
from squallpy.runtime.kernels.memory_area import CONSTANTS, Area
from squallpy.runtime.kernels.memory_regions import HEAP, Storage, Words
from squallpy.runtime.kernels.radix_sort import ascending
from squallpy.runtime.kernels.tree import nodes
from squallpy.runtime.kernels.tree.folds import sums_between
from squallpy.runtime.kernels.tree.heights import ascents, highest_between
from squallpy.runtime.kernels.tree.lookup import (
    child_entries,
    ends_between,
    entries_after,
    entries_of_ranges,
    extents_of,
    first_records,
    ranges_between,
    rows_up_to,
)
from squallpy.runtime.kernels.tree.update import permute_columns, upsert_entries

LEAST, GREATEST = -(2**63) + 1, 2**63 - 1  # the ranks between which all values are
_NULL = -(2**63)
_ENTRIES, _NODES = 0, 1  # regions
_BIRTH = 16  # nodes there is room for at first


class Children(NamedTuple):
    """Entries side by side on one level of the tree: their places, and between which values the prefix sums are."""

    rows: Words  # below which of the given entries each is
    places: Words
    before: Words  # the sum of what stands before each
    least: Words
    most: Words


class SortedIndex:
    """An ordered multiset of key rows with payloads; zero payloads are not kept.

    Places are row numbers of `entries`, valid until the next `upsert` or `clear`.
    """

    def __init__(self, order: Order, payload: Payload, storage: Storage = HEAP, name: str = "sorted") -> None:
        width = len(order.columns)
        assert sorted(order.columns) == list(range(width)) and order.equal < width, f"{order} orders no key"
        assert not order.extents or set(payload.rings) <= {Ring.COUNT, Ring.EXACT}, "extents are of integers"
        plain = order.equal + 1 < width and not (order.descending or order.extents)
        assert plain or not order.heights, f"{order} has heights and more"
        self.order, self.payload, self._columns = order, payload, list(order.columns)
        self._places, self._held_otherwise = (
            np.array(order.columns),
            order.real or order.descending or bool(order.heights),
        )
        self._stride = width + payload.width * (3 if order.extents else 1) + (2 if order.heights else 1)
        known = order.equal + 1 if order.heights else nodes.EXTENTS if order.extents else nodes.NO_SUMMARY
        rings = [ring.code for ring in payload.rings]
        ends = pool_layout.RINGS + len(rings)
        fixed = [width, payload.width, len(rings), self._stride, ends, known, ends + 4, *[0] * 7]
        regions = {"entries": _BIRTH * nodes.FANOUT * self._stride, "nodes": _BIRTH * nodes.HEADER}
        self._area = Area(
            storage,
            name,
            regions,
            scalars=nodes.FREE,
            constants=[*fixed, *rings],
            scratch=nodes.scratch_words(payload.width),
        )
        self._compared = ends + 4 + nodes.COMPARED
        assert CONSTANTS + len(fixed) == pool_layout.RINGS

    def upsert(self, keys: Words, words: Words) -> None:
        """Add a payload to each key, in order; keys are rows as the pool has them."""
        rows, done = self._rows(keys), 0
        way = ascending(rows)  # neighbours share their path
        while (done := upsert_entries(self._area.current(), rows, words, way, done)) != len(rows):
            assert done >= 0, f"keys {keys.shape} and words {words.shape} do not fit {self!r}"
            self.make_room()

    def make_room(self) -> None:
        """Let it have room for twice as many nodes."""
        needed = 2 * (self._area.head[nodes.TOP] + nodes.DEPTH)
        self._area.grow(_ENTRIES, needed * nodes.FANOUT * self._stride)
        self._area.grow(_NODES, needed * nodes.HEADER)

    @property
    def address(self) -> int:
        """Address of the frame for kernels, which stays; its content holds until the next `upsert` or `clear`."""
        self._area.current()
        return self._area.address

    def find_ranges(self, equal: Words, low: Words, high: Words, most: int = GREATEST) -> tuple[Words, Words]:
        """Find for each row where the entries with its values and in its range begin, and count them.

        Of ranges with more than `most` entries only some are counted, as many at least.
        """
        return self._count_ranges(*self._bounds(equal, low, high), most)

    def _count_ranges(self, lows: Words, highs: Words, most: int = GREATEST) -> tuple[Words, Words]:
        return ranges_between(self._area.current(), lows, highs, ascending(lows), most)

    def list_ranges(self, firsts: Words, counts: Words) -> tuple[Words, Words]:
        """List all (row, place) of the ranges that `find_ranges` found; rows ascend."""
        return entries_of_ranges(self._area.current(), firsts, counts)

    def find_entries(self, equal: Words, low: Words, high: Words) -> tuple[Words, Words]:
        """List all (row, place) whose entry has the row's values and is in its range; rows ascend."""
        return self.list_ranges(*self.find_ranges(equal, low, high))

    def find_below(self, equal: Words, rank: int, *, with_null: bool = False) -> tuple[Words, Words]:
        """List all (row, place) whose entry has the row's values and is below a rank; `with_null`: NULL is, too."""
        n, given = equal.shape
        lows, highs = self._bounds(equal, np.full(n, LEAST), np.full(n, rank - 1))
        if with_null:
            (highs if self.order.descending else lows)[:, given] = self._stored(np.full(n, _NULL))
        return self.list_ranges(*self._count_ranges(lows, highs))

    def find_ends(self, equal: Words, low: Words, high: Words, *, greatest: bool) -> Words:
        """Find the place of the least (or greatest) value in each range; −1 where there is none."""
        last = greatest is not self.order.descending
        return ends_between(self._area.current(), *self._bounds(equal, low, high), last)

    def find_highest(self, equal: Words, low: Words, high: Words) -> Words:
        """Find the place of the first of the highest entries in each range; −1 where there is none."""
        return highest_between(self._area.current(), *self._bounds(equal, low, high))

    def find_ascent(
        self, equal: Words, ranks: Words, froms: Words, tops: Words, *, back: bool, steps: int = GREATEST
    ) -> tuple[Words, Words]:
        """List all (row, place) of entries with the row's values that rise from a rank on.

        Those are the next entry that is as high as froms[row], and then each that is higher than the one before, up to
        the height tops[row]. `back`: from the rank down; an entry that is as high as the one before counts, too.
        """
        n, given = equal.shape
        starts, ends = np.full((2, n, len(self._columns)), _NULL if back else GREATEST)
        starts[:, :given] = ends[:, :given] = equal
        starts[:, given] = ranks
        return ascents(self._area.current(), starts, ends, froms, tops, back, steps)

    def sum_ranges(self, equal: Words, low: Words, high: Words) -> Words:
        """Sum the payloads in each range."""
        out = np.zeros((len(equal), self.payload.width), np.int64)
        sums_between(self._area.current(), *self._bounds(equal, low, high), out.reshape(-1))
        return out

    def list_children(self, places: Words | None, before: Words) -> Children:
        """List the entries right below others, each of which has the sum `before` in front of it.

        places: None stands for the root, once for each row of `before`.
        """
        frame = self._area.current()
        if places is None:
            root = self._area.head[nodes.ROOT] - 1
            parents = np.full(len(before) if root >= 0 else 0, root)
        else:
            parents = np.ascontiguousarray(self.entries[places, -1])
        rows, below = child_entries(frame, parents)
        here = before[rows]
        least, most = np.empty_like(here), np.empty_like(here)
        extents_of(frame, rows, below, here.reshape(-1), least.reshape(-1), most.reshape(-1))
        return Children(rows, below, here, least, most)

    def find_by_sum(self, word: int, wanted: Words) -> Words:
        """Find the places of the first records up to which the sum of a payload word exceeds each wanted one.

        −1 where there is none. No payload is below 0, else it may be another place.
        """
        frame, root = self._area.current(), self._area.head[nodes.ROOT] - 1
        found, rows = np.full(len(wanted), -1), np.arange(len(wanted) if root >= 0 else 0)
        parents, before = np.full(len(rows), root), np.zeros(len(rows), np.int64)
        while len(rows):
            of, places = child_entries(frame, parents)
            own = self.entries[places, self.payload_at + word]
            upto = np.cumsum(own)
            begin = np.searchsorted(of, np.arange(len(rows)))  # no node is empty
            upto += (before - (upto - own)[begin])[of]
            passed = np.flatnonzero(upto > wanted[rows][of])
            some, first = np.unique(of[passed], return_index=True)
            at = passed[first]
            if self.are_records(places[at]):
                found[rows[some]] = places[at]
                break
            rows, before = rows[some], (upto - own)[at]
            parents = np.ascontiguousarray(self.entries[places[at], -1])
        return found

    def sum_before(self, equal: Words) -> Words:
        """Sum all payloads before the entries with the values of each row."""
        ends = np.full((len(equal), len(self._columns)), GREATEST)
        ends[:, : equal.shape[1]] = equal
        out, some = np.zeros((len(equal), self.payload.width), np.int64), np.zeros(len(equal), bool)
        for column in reversed(range(equal.shape[1])):  # the last one that can be less by 1, if any
            less = ~some & (equal[:, column] != _NULL)
            ends[less, column] -= 1
            ends[~some & ~less, column] = GREATEST
            some |= less
        found = np.ascontiguousarray(ends[some])
        sums = np.zeros((len(found), self.payload.width), np.int64)
        sums_between(self._area.current(), np.full_like(found, _NULL), found, sums.reshape(-1))
        out[some] = sums
        return out

    def copy_after(self, key: Words, slot: int, slots: int) -> tuple[Words, Words]:
        """Copy keys and payloads of the first records behind a key (1, K), or of all (0, K), in the order of the index.

        They are `slot` by `slots` of those there are, rounded up.
        """
        keys, words = entries_after(self._area.current(), self._places, self._rows(key), slot, slots)
        for i, column in enumerate(self._columns) if self._held_otherwise else ():
            keys[:, column] = self._given(i, keys[:, column])
        return keys, words

    def select_up_to(self, keys: Words, key: Words) -> Words:
        """Select the keys that are not behind one (1, K); none of (0, K)."""
        return rows_up_to(self._rows(keys), self._rows(key))

    def are_records(self, places: Words) -> bool:
        """True if these entries, all of one level, are records."""
        return not len(places) or self._area.array(_NODES)[places[0] // nodes.FANOUT * nodes.HEADER + nodes.LEVEL] == 0

    def first_records(self, places: Words) -> Words:
        """Find the place of the first record below each entry."""
        return first_records(self._area.current(), np.ascontiguousarray(places))

    def column(self, column: int, places: Words) -> Words:
        """Return a key column of the pool at places of records."""
        at = self._columns.index(column)
        return self._given(at, self.entries[places, at])

    @property
    def compared(self) -> int:
        """Number of comparisons with keys in all searches so far, those for updates and prefetching included."""
        return int(self._area.frame[self._compared])

    @property
    def ranged(self) -> int:
        """The ranged column of the pool."""
        return self.order.columns[self.order.equal]

    @property
    def entries(self) -> Words:
        """Entries by place, a view; payloads begin at word `payload_at`."""
        self._area.current()
        count = self._area.head[nodes.TOP] * nodes.FANOUT
        return self._area.array(_ENTRIES)[: count * self._stride].reshape(count, self._stride)

    @property
    def payload_at(self) -> int:
        """Word of `entries` at which payloads begin."""
        return len(self._columns)

    def rank(self, words: Words) -> Words:
        """Map values of the ranged column to words in their order."""
        return _rank(words, self.order.real)

    def value(self, ranks: Words) -> Words:
        """Map ranks back to values of the ranged column."""
        return _value(ranks, self.order.real)

    def height(self, words: Words) -> Words:
        """Map values of the column behind the ranged one to heights."""
        assert self.order.heights
        ranks = _rank(words, self.order.heights.real)
        return ranks if self.order.heights.great else -ranks  # NB: what stands for NULL stays the least

    def clear(self) -> None:
        """Drop all records, keeping the memory."""
        self._area.current()
        for scalar in (nodes.SIZE, nodes.ROOT, nodes.TOP, nodes.FREE):
            self._area.head[scalar] = 0

    def __len__(self) -> int:
        return self._area.head[nodes.SIZE]

    @property
    def nbytes(self) -> int:
        """Bytes of the nodes that were ever used."""
        return 8 * self._area.head[nodes.TOP] * (nodes.FANOUT * self._stride + nodes.HEADER)

    def __repr__(self) -> str:
        return f"Sorted({self.order}; {len(self)} records)"

    def _held(self, i: int, words: Words) -> Words:
        """Encode values of the i-th column as the tree has them."""
        if i == self.order.equal:
            return self._stored(self.rank(words))
        return self.height(words) if self.order.heights and i == self.order.equal + 1 else words

    def _given(self, i: int, words: Words) -> Words:
        """Decode values of the i-th column of the tree."""
        if i == self.order.equal:
            return self.value(self._stored(words))
        if (heights := self.order.heights) and i == self.order.equal + 1:
            return _value(words if heights.great else -words, heights.real)
        return words

    def _rows(self, keys: Words) -> Words:
        """Encode keys as the tree has them."""
        rows = permute_columns(keys, self._places)
        for i in range(rows.shape[1]) if self._held_otherwise else ():
            rows[:, i] = self._held(i, rows[:, i])
        return rows

    def _stored(self, ranks: Words) -> Words:
        """Reverse ranks where the order descends; its own inverse."""
        return ~ranks if self.order.descending else ranks

    def _bounds(self, equal: Words, low: Words, high: Words) -> tuple[Words, Words]:
        """Convert ranges to the keys from which and up to which entries are."""
        low = np.maximum(low, LEAST)
        if self.order.descending:
            low, high = ~high, ~low
        n, given = equal.shape
        bounds = np.empty((2, n, len(self._columns)), np.int64)
        bounds[:, :, :given], bounds[0, :, given], bounds[1, :, given] = equal, low, high
        bounds[0, :, given + 1 :], bounds[1, :, given + 1 :] = _NULL, GREATEST
        return bounds[0], bounds[1]


def _rank(words: Words, real: bool) -> Words:
    """Map values to words in their order."""
    return np.where(words == _NULL, words, words ^ ((words >> 63) & GREATEST)) if real else words


def _value(ranks: Words, real: bool) -> Words:
    """Map ranks back to values."""
    if not real:
        return ranks
    words = np.where(ranks == _NULL, ranks, ranks ^ ((ranks >> 63) & GREATEST))
    return np.where(ranks == -1, 0, words)  # −0.0 is no key
