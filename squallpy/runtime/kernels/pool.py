"""Pools: views with lookups by key. Key rows of int64 → payload rows of ring words.

    pool = Pool(2, Payload((Ring.COUNT,)), slices=((0,),))
    pool.upsert([[7, 1], [7, 2], [7, 1]], [[1], [1], [-1]])     →   {(7, 2): 1}
    pool.probe([[7, 2], [7, 1]])                                →   slots [0, -1]
    pool.get([[7, 2], [7, 1]])                                  →   [[1], [0]]
    pool.copy_fraction([], 0, HASHES)                           →   [[7, 2]], [[1]], in the order of hashes
    pool.exchange([0], [[8, 2]], [[3]])                         →   {(8, 2): 3}
    pool.slice(0, [[8]])                                        →   rows [0], slots [0]
    pool.keys_of(slots), pool.words_of(slots)                   →   their contents
    pool.sorted[0]                                              →   a sorted index, kept alike: see `sorted_index.py`

One set of compiled kernels serves every pool: arity, lanes and slices are data to them. A view that is looked up by
ranges alone is kept in its sorted indexes (`sorted_pool.py`), one that is only read whole in a list (`row_list.py`).

Source: record pools of `dbtoaster-batch-ivm` §5.2.1.
"""

from collections.abc import Callable, Iterator

import numpy as np

from squallpy.base.index_order import Order
from squallpy.base.rings import Payload
from squallpy.base.rings.payload import ROOMS
from squallpy.runtime.kernels import pool_layout
from squallpy.runtime.kernels.hash_index import FIRST, HEADER, MOST, OF, SCALE, SIZE, TRIED, begin_growing, wider
from squallpy.runtime.kernels.memory_area import CONSTANTS, Area
from squallpy.runtime.kernels.memory_regions import HEAP, Storage, Words
from squallpy.runtime.kernels.order_index import LEAST_SIZE, mix_hashes, order_records, positions_needed
from squallpy.runtime.kernels.page_watch import PageWatch, WatchedPages
from squallpy.runtime.kernels.pool_records import (
    clear_records,
    forget_runs,
    get_records,
    grow_on,
    hashes_of,
    index_records,
    probe_records,
    records_between,
    upsert_records,
)
from squallpy.runtime.kernels.postings import refer_back
from squallpy.runtime.kernels.record_exchange import attach_records, close_gaps, detach_records
from squallpy.runtime.kernels.slice_lookup import slice_records
from squallpy.runtime.kernels.sorted_index import SortedIndex
from squallpy.runtime.kernels.stored_payloads import UNFIT_PAYLOAD
from squallpy.runtime.kernels.stored_records import StoredRecords
from squallpy.runtime.kernels.touched_groups import note_groups
from squallpy.runtime.kernels.view_container import HASHES, Container, OrderedContainer

_INDEX, _KEYS, _WORDS, _SLICE = 0, 1, 2, 3  # regions; each slice has three: index, arena, where
_SLICE_REGIONS = 3
_BIRTH = 512  # words of a region at first: a page
_AHEAD = 1 << 15  # records for which memory is got ready, at least; fewer are not worth a helper
_LARGE = 1 << 17  # words of an index for whose growth memory is got ready
_UNWATCHED = _UNKNOWN = (0, 0)
_SCALARS = pool_layout.SLICE_STATE - pool_layout.COUNT  # of the head, before those of slices
_GIVEN = np.empty(0, np.int64)  # a lifting of payloads that are given
_SPARSE = 3  # positions for each entry that an index in the order of keys has at most
_PIECE = 1 << 12  # rows that are added at a time while an index grows


class Pool(OrderedContainer):
    """A map from keys, rows of `key_width` int64, to elements of `payload`'s ring; zero elements are not kept.

    Slots number the records 0 … len − 1 without holes, in an order that depends on the calls alone; they hold until the
    next `upsert` or `clear`. `slices` are key columns to look up by, `group` those that its primary index is by, if not
    all, on which few records agree; `orders` are of sorted indexes. If it is adaptive, the primary index is by the
    first slice as long as the records of a group stand together (`run_index.py`), and slices have back references
    once records go. If it is narrow, its keys have words of 32 bits as long as these hold them (`stored_keys.py`), and
    so have payloads of counts and exact sums if it is small (`stored_payloads.py`).
    """

    def __init__(
        self,
        key_width: int,
        payload: Payload,
        slices: tuple[tuple[int, ...], ...] = (),
        storage: Storage = HEAP,
        name: str = "pool",
        orders: tuple[Order, ...] = (),
        group: tuple[int, ...] = (),
        adaptive: bool = False,
        narrow: bool = False,
        small: bool = False,
    ) -> None:
        assert payload.width > 0, "a payload has at least one lane"
        assert all(0 <= column < key_width for columns in (*slices, group) for column in columns), (
            "a slice is by key columns"
        )
        self.key_width, self.payload, self.slices = key_width, payload, slices
        regions = {"index": _BIRTH, "keys": _BIRTH, "words": _BIRTH}
        self.group = group or tuple(range(key_width))
        bounds = list[int]()
        for columns in (self.group, *slices):
            bounds += [len(columns), *columns, *[0] * (key_width - len(columns))]
        for s in range(len(slices)):
            regions |= {f"{part}{s}": _BIRTH for part in ("index", "arena", "where")}
        rings = [ring.code for ring in payload.rings]
        start = pool_layout.RINGS + len(rings)
        places = start + len(bounds)
        fixed = [
            key_width,
            payload.width,
            len(rings),
            len(slices),
            places,
            start + 1 + key_width,
            places + 2 * len(regions),
            *_UNWATCHED,
            1 if adaptive and slices and not group else 0,
            *_UNKNOWN,  # how wide keys are, which `StoredRecords.note_width` says,
            *_UNKNOWN,  # and payloads, of which it knows where rooms are
        ]
        assert CONSTANTS + len(fixed) == pool_layout.RINGS
        small = small and payload.can_be_narrow
        scratch = 6 * pool_layout.CHUNK + 2 * key_width
        fixed[pool_layout.PAYLOAD_ROOMS - CONSTANTS] = places + 2 * len(regions) + scratch
        self._area = Area(
            storage,
            name,
            regions,
            scalars=_SCALARS + pool_layout.STATE * len(slices),
            constants=[*fixed, *rings, *bounds],
            scratch=scratch + ROOMS * payload.width * small,
        )
        if not narrow:
            self._area.head[pool_layout.WIDENED] = 1
        if not small:
            self._area.head[pool_layout.BROADENED] = 1
        self._records = StoredRecords(self._area, key_width, payload, _KEYS)
        self._area.on_change = self._records.note_width
        self._records.note_width()
        for s in range(0 if adaptive else len(slices)):
            self._area.head[self._state_at(s, pool_layout.REFERENCED)] = 1
        self._watched = WatchedPages(self._area.frame)
        self._ready = _AHEAD  # records at which to look ahead again
        self.sorted = tuple(SortedIndex(order, payload, storage, f"{name}.sorted{i}") for i, order in enumerate(orders))

    @property
    def address(self) -> int:
        """Address of the frame for kernels, which stays; its content holds until the next `upsert` or `clear`."""
        self._area.current()
        return self._area.address

    @property
    def frame(self) -> Words:
        """Frame for kernels, whose content holds until the next `upsert` or `clear`."""
        return self._area.current()

    @property
    def places(self) -> tuple[int, int]:
        """Addresses of keys and payloads, until the next `upsert`."""
        self._area.current()
        return self._area.where(_KEYS), self._area.where(_WORDS)

    def upsert(self, keys: Words, words: Words) -> None:
        self._upsert(keys, words, _GIVEN)
        for index in self.sorted:
            index.upsert(keys, words)

    def upsert_lifted(self, keys: Words, rows: Words, lifting: Words) -> None:
        """Add payloads that are made of rows as `cofactor_lifting` does, without being made twice."""
        assert not self.sorted and not self.slices
        self._upsert(keys, rows, lifting)

    def _upsert(self, keys: Words, words: Words, lifting: Words) -> None:
        area, rows = self._area, len(keys)
        frame, done = area.current(), 0
        if not area.head[pool_layout.GROWING]:
            done = upsert_records(frame, keys, words, lifting, 0, rows)
            if done == rows and area.head[pool_layout.COUNT] < self._ready:
                return
        first = max(0, done)
        self._add(keys, words, lambda start, stop: upsert_records(frame, keys, words, lifting, start, stop), first)

    def _add(self, keys: Words, words: Words, add: Callable[[int, int], int], done: int = 0) -> None:
        """Add rows from `done` on, a piece at a time while the index grows.

        Args:
            add: A kernel that returns the first row for which there was no room.
        """
        frame = self._area.current()
        while done < len(keys):
            growing = self._area.head[pool_layout.GROWING]
            start, stop = done, min(len(keys), done + _PIECE) if growing else len(keys)
            done = add(start, stop)
            assert done >= 0, f"keys {keys.shape} and words {words.shape} do not fit {self!r}"
            if growing:
                grow_on(frame)
            if done < stop:
                self.make_room()
        if len(self) >= self._ready:
            self._look_ahead()

    def note_groups(self, source: "Pool", keys: Words, first: int) -> int:
        """Add the payloads that keys from row `first` on have in another pool, 0 too, unless the keys are here.

        Returns the first row for which there was no room, or how many there are.
        """
        return note_groups(self._area.current(), source._area.current(), keys, first)

    def exchange(self, gone: Words, keys: Words, words: Words) -> None:
        """Drop records by their slots, and add others, of which none is there and none is zero."""
        assert not self.sorted
        self.index_by_record()
        for s, _ in self._indexes():
            self._refer_back(s)
        self._records.widen_payloads()
        frame = self._area.current()
        detach_records(frame, gone)
        self._add(keys, words, lambda start, stop: attach_records(frame, gone, keys, words, start, stop))
        if len(gone) > len(keys):
            close_gaps(frame, np.sort(gone[len(keys) :])[::-1].copy())

    def probe(self, keys: Words) -> Words:
        """Find the slot of each key, −1 where there is none."""
        assert keys.shape[1] == self.key_width
        return probe_records(self._area.current(), keys)

    def get(self, keys: Words) -> Words:
        """Return the payload of each key, zero where there is none."""
        assert keys.shape[1] == self.key_width
        return get_records(self._area.current(), keys)

    def slice(self, index: int, bound: Words) -> tuple[Words, Words]:
        """List all pairs (row of `bound`, slot) that agree on the columns of slice `index`, of the group if that is −1.

        Rows ascend, then slots.
        """
        assert bound.shape[1] == len(self.slices[index] if index >= 0 else self.group)
        if index < 0 and self._is_by_runs:
            found = self.probe(bound)
            rows = np.flatnonzero(found >= 0)
            return rows, found[rows]
        return slice_records(self._area.current(), index, bound)

    def copy_fraction(self, reached: Words, low: int, high: int) -> tuple[Words, Words]:
        if self.sorted or low == high:
            return super().copy_fraction(reached, low, high)
        self.index_by_record()
        slots = records_between(self._area.current(), low, high)
        return self.keys_of(slots), self.words_of(slots)

    def select_copied(self, keys: Words, reached: Words, low: int) -> Words:
        if self.sorted or low == HASHES:
            return super().select_copied(keys, reached, low)
        self.index_by_record()
        return np.flatnonzero(hashes_of(self._area.current(), keys) < low)

    def fill(self, keys: Words, words: Words, high: int) -> None:
        self.index_by_record()
        if not self.sorted:  # filled in the order of hashes, a small index would be crowded at its beginning
            self._widen((len(self) + len(keys)) * HASHES // high)
        self.upsert(keys, words)

    def watch(self) -> PageWatch:
        """Begin to watch which of the records that are there this process writes."""
        return self._watched.begin(len(self))

    def scan(self) -> Words:
        """List all slots."""
        return np.arange(len(self))

    def rows(self) -> tuple[Words, Words]:
        return self.keys, self.words

    def pieces(self, rows: int) -> Iterator[Words]:
        for start in range(0, len(self), rows):
            yield self._records.keys_between(start, start + rows)
        for start in range(0, len(self), rows):
            yield self._records.words_between(start, start + rows)

    @property
    def keys(self) -> Words:
        """Keys by slot, a view, or a copy where they are narrow."""
        return self._records.keys

    def keys_of(self, slots: Words) -> Words:
        """Copy the keys of records."""
        return self._records.keys_of(slots)

    @property
    def words(self) -> Words:
        """Payloads by slot, a view, or a copy where they are narrow."""
        return self._records.words

    def words_of(self, slots: Words) -> Words:
        """Copy the payloads of records."""
        return self._records.words_of(slots)

    def clear(self) -> None:
        """Drop all records, keeping the memory, at a cost in proportion to their number."""
        if len(self):
            clear_records(self._area.current())
            for index in self.sorted:
                index.clear()

    def __len__(self) -> int:
        return self._area.head[pool_layout.COUNT]

    @property
    def usage(self) -> dict[str, int]:
        """Records, and bytes in use by part, without room to grow: the system gives that when it is used."""
        count = len(self)
        slices = sum(
            self._size(index) + self._pieces(s) * pool_layout.PIECE // 2 + (count // 2 if self._refers_back(s) else 0)
            for s, index in self._indexes()
        )
        return {
            "records": count,
            "keys": self._records.unit * count * self.key_width,
            "payloads": self._records.payload_unit * count * self.payload.width,
            "index": 8 * self._size(_INDEX),
            "slices": 8 * slices,
            "sorted": sum(index.nbytes for index in self.sorted),
        }

    def __repr__(self) -> str:
        rings = ", ".join(ring.name for ring in self.payload.rings)
        return f"Pool({self.key_width} → {rings}; {len(self)} records)"

    def tend(self) -> None:
        """Let its indexes, which may be growing, do so as far as is due, and look ahead."""
        if self._area.head[pool_layout.GROWING]:
            grow_on(self._area.current())
        if len(self) >= self._ready:
            self._look_ahead()

    @property
    def ready(self) -> int:
        """Records at which it has to look ahead again."""
        return self._ready

    def make_room(self) -> None:
        """Extend each region that has no room for one more chunk of records."""
        unfit = self._area.head[pool_layout.UNFIT]
        self._area.head[pool_layout.UNFIT] = 0
        if unfit == UNFIT_PAYLOAD:
            self._records.widen_payloads()
        elif unfit:
            self._mix_hashes()
            self._records.widen_keys()
        if self._area.head[pool_layout.PASSED] >= pool_layout.MOST_PASSED:
            self._relieve_index()
        area, count = self._area, len(self) + 2 * pool_layout.CHUNK
        assert count < 2**31, "a pool holds fewer than 2³¹ records"
        needs = [(_KEYS, self._records.key_words(count)), (_WORDS, self._records.payload_words(count))]
        for s, index in self._indexes():
            arena = pool_layout.PIECE * self._pieces(s) + pool_layout.ARENA_ROOM * count + pool_layout.ARENA_LEAST
            needs.append((index + 1, arena // 2 + 1))
            if self._refers_back(s):
                needs.append((index + 2, count // 2 + 1))
            elif self._state(s, pool_layout.SEARCHED) > len(self) + pool_layout.MOST_SEARCHED:
                self._refer_back(s)
        for region, words in needs:
            if words > area.words(region):
                area.grow(region, max(words, 2 * area.words(region)))
        for region, entries in self._entries().items():
            if (entries + 2 * pool_layout.CHUNK) * OF >= self._size(region) * MOST:
                self._grow_index(region)

    def _widen(self, records: int) -> None:
        """Make room in the index for so many records, and where there is none, for a quarter more."""
        if records * OF >= self._size(_INDEX) * MOST:
            while 5 * records * OF >= 4 * self._size(_INDEX) * MOST:
                self._grow_index(_INDEX)

    def _look_ahead(self) -> None:
        """Let a helper prepare the memory of the next records, and that into which indexes will soon grow."""
        area, count = self._area, len(self)
        more = max(_AHEAD, count // 16)
        self._ready = count + more // 2
        growing = [
            (_KEYS, self._records.key_words(count), self._records.key_words(count + more)),
            (_WORDS, self._records.payload_words(count), self._records.payload_words(count + more)),
        ]
        for s, index in self._indexes():
            top = self._pieces(s) * pool_layout.PIECE // 2
            growing.append((index + 1, top, top + more))
            if self._refers_back(s):
                growing.append((index + 2, count // 2, (count + more) // 2))
        for region, entries in self._entries().items():
            size = self._size(region)
            if region == _INDEX and self.keeps_order:
                end = HEADER + min(size, positions_needed(area.current()))
                growing.append((region, end, min(HEADER + size, end + 2 * more)))
            elif size >= _LARGE and entries * OF * 9 >= size * MOST * 8:
                growing.append((region, HEADER + size, HEADER + wider(size)))
        area.get_ready(growing)

    def _indexes(self) -> list[tuple[int, int]]:
        """Pair each slice that has postings with the region of its index; its arena and `where` come after."""
        return [(s, _SLICE + _SLICE_REGIONS * s) for s in range(1 if self._is_by_runs else 0, len(self.slices))]

    def _entries(self) -> dict[int, int]:
        """Count the entries of each index, by its region."""
        live = {region: self._state(s, pool_layout.LIVE) for s, region in self._indexes()}
        return {_INDEX: self._area.head[pool_layout.ENTRIES] if self._is_by_runs else len(self), **live}

    @property
    def entries(self) -> int:
        """Count the entries of the primary index."""
        return self._entries()[_INDEX]

    def index_by_record(self) -> None:
        """Let the primary index have an entry for each record from now on, if it is by runs, and slice 0 postings."""
        self._mix_hashes()
        if not self._is_by_runs:
            return
        frame, done = self._area.current(), 0
        forget_runs(frame)
        self._widen(len(self))
        while (done := index_records(frame, done)) < len(self):
            self.make_room()

    def _relieve_index(self) -> None:
        """Let the primary index have more positions, or another order, since too many entries were passed."""
        if not self.keeps_order:
            self.index_by_record()
            return
        self._area.head[pool_layout.PASSED] = 0
        needed = positions_needed(self._area.current())
        if not self._size(_INDEX) * 7 // 8 <= needed <= _SPARSE * self.entries:
            self._mix_hashes()
            return
        while self._size(_INDEX) * 7 // 8 <= needed:
            self._grow_index(_INDEX)

    def _mix_hashes(self) -> None:
        """Let the primary index have records by mixed hashes from now on, not in the order of keys."""
        if self.keeps_order:
            mix_hashes(self._area.current())
        self._area.array(_INDEX)[TRIED] = 1

    @property
    def keeps_order(self) -> bool:
        """True if the primary index has records in the order of their keys (`order_index.py`)."""
        return bool(self._area.array(_INDEX)[SCALE])

    @property
    def _is_by_runs(self) -> bool:
        return self._area.frame[pool_layout.RUNS] != 0 and self._area.head[pool_layout.BY_RECORD] == 0

    def _refers_back(self, s: int) -> bool:
        """True if a slice has back references, by which records that go are found in their postings."""
        return self._state(s, pool_layout.REFERENCED) != 0

    def _refer_back(self, s: int) -> None:
        """Let a slice have back references from now on."""
        if self._refers_back(s):
            return
        region, words = _SLICE + _SLICE_REGIONS * s + 2, (len(self) + 2 * pool_layout.CHUNK) // 2 + 1
        if words > self._area.words(region):
            self._area.grow(region, max(words, 2 * self._area.words(region)))
        refer_back(self._area.current(), s)

    def _pieces(self, s: int) -> int:
        """Count the pieces of the slice's arena that were ever used."""
        return self._state(s, pool_layout.TOP)

    def _state(self, s: int, word: int) -> int:
        return self._area.head[self._state_at(s, word)]

    def _state_at(self, s: int, word: int) -> int:
        return pool_layout.SLICE_STATE + pool_layout.STATE * s + word

    def _grow_index(self, region: int) -> None:
        size = wider(self._size(region))
        if region == _INDEX and size > LEAST_SIZE and not self._area.array(_INDEX)[TRIED]:
            order_records(self._area.current())
        if HEADER + size > self._area.words(region):
            self._area.grow(region, HEADER + size)
        begin_growing(self._area.where(region), size)
        self._area.head[pool_layout.GROWING] = 1

    def _size(self, region: int) -> int:
        """Count the positions of an index."""
        return int(self._area.array(region)[SIZE]) or FIRST


def as_pool(container: Container) -> Pool:
    """Return a container as the pool that it is."""
    assert isinstance(container, Pool), f"{container} is not looked up by key"
    return container
