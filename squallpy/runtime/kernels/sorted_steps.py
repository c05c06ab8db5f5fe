"""Sorted indexes in compiled triggers: rows added to them, and the extremes of the groups that a batch touched.

What the code is given describes an index, or the extremes of a view, as a row of words.
"""

from typing import Any, Final

import numpy as np
from numba import carray  # type: ignore[attr-defined]

from squallpy.base.index_order import Order
from squallpy.runtime.kernels import pool_layout as at
from squallpy.runtime.kernels.c_functions import CFunction, c_function
from squallpy.runtime.kernels.intrinsics import load, pointer, store
from squallpy.runtime.kernels.kernel_compiler import Vector, address, called, inlined, making
from squallpy.runtime.kernels.memory_area import HEAD
from squallpy.runtime.kernels.memory_regions import Words
from squallpy.runtime.kernels.payload_arithmetic import copy
from squallpy.runtime.kernels.pool import Pool
from squallpy.runtime.kernels.radix_sort import ascending
from squallpy.runtime.kernels.run_index import find_record
from squallpy.runtime.kernels.sorted_index import GREATEST, LEAST, SortedIndex
from squallpy.runtime.kernels.stored_payloads import word_of_payload
from squallpy.runtime.kernels.tree.lookup import end_between
from squallpy.runtime.kernels.tree.nodes import FANOUT, entry_at
from squallpy.runtime.kernels.tree.update import upsert_entries
from squallpy.runtime.kernels.trigger_steps import ENTER, GROW, REMOVE, call, frame_at

SORT: Final = 24  # addresses in the table
ADVANCE: Final = 25

# How an index holds a column: from which column of the pool, and the sum of these.
REAL: Final = 1  # doubles, by their rank
REVERSED: Final = 2
NEGATED: Final = 4

# Words that describe the extremes of a view; behind them three for each measure: the lane, whether it is the greatest,
# and what stands for NULL; then the columns of the group, and room for three keys.
TOUCHED: Final = 0  # frames: the groups that the batch touched, the view, its index, the state, and what changed
SOURCE: Final = 1
INDEX: Final = 2
STATE: Final = 3
CHANGED: Final = 4
GROUP: Final = 5  # how many columns a group has
VALUE: Final = 6  # the column of the value, the word of a payload that counts, and whether values are doubles
COUNTED: Final = 7
IS_REAL: Final = 8
ENDS: Final = 9  # how many measures
LOWEST: Final = 10  # the least word in the order of values: below it, but for NULL, words number what is too wide
FIXED: Final = 11
_STATE, _CHANGED = 1, 2  # numbers of the pools for whoever lets them grow
_NULL = -(2**63)

_ascending: Any = ascending
_ascending_rows: Any = making(_ascending.py_func)
_upsert: Any = upsert_entries
_upsert_entries: Any = called(_upsert.py_func)


class SortedRows:
    """A sorted index that compiled code adds to.

    Attributes:
        address: Address of the words that describe it.
    """

    def __init__(self, index: SortedIndex) -> None:
        self._index, order = index, index.order
        self._words: Words = np.array([0, *(w for i, c in enumerate(order.columns) for w in (c, _held(order, i)))])
        self._address = self._words.ctypes.data

    @property
    def address(self) -> int:
        self._words[0] = self._index.address
        return self._address

    def make_room(self) -> None:
        """Let it grow."""
        self._index.make_room()


def _held(order: Order, i: int) -> int:
    """Encode how the i-th column of an index is held."""
    if i == order.equal:
        return REAL * order.real + REVERSED * order.descending
    if order.heights and i == order.equal + 1:
        return REAL * order.heights.real + NEGATED * (not order.heights.great)
    return 0


@inlined
def _rank(word: int, real: int) -> int:
    """Return the word by which a value is ordered."""
    return word ^ ((word >> 63) & GREATEST) if real != 0 and word != _NULL else word


@inlined
def _hold(word: int, way: int) -> int:
    """Encode a value as an index has it."""
    held = _rank(word, way & REAL)
    if way & REVERSED != 0:
        held = ~held
    return -held if way & NEGATED != 0 else held


@inlined
def sort_rows(index: int, keys: int, words: int, rows: int, steps: int, pool: int) -> int:
    """Add rows, whose keys and payloads stand at addresses, to a sorted index; −2 if there is no memory.

    Args:
        index: The address of the words that describe it (`SortedRows`).
        pool: Its number for whoever lets it grow.
    """
    return call(load(steps, SORT), index, keys, words, rows, load(steps, GROW), pool)


@c_function(6)
def _sort_rows(index: int, keys: int, words: int, rows: int, grow: int, pool: int) -> int:
    """Add rows to a sorted index, in its order."""
    frame, done = frame_at(load(index, 0)), 0
    width, broad = frame[at.KEY], frame[at.PAYLOAD]
    held = np.empty((rows, width), np.int64)
    for row in range(rows):
        for i in range(width):
            word = load(keys, row * width + load(index, 1 + 2 * i))
            store(address(held), row * width + i, _hold(word, load(index, 2 + 2 * i)))
    way = _ascending_rows(held)
    there: Any = pointer(words)
    payloads = carray(there, (rows, broad))
    while True:
        done = _upsert_entries(frame, held, payloads, way, done)
        if done >= rows:
            return 0
        if call(grow, pool, 0, 0, 0, 0, 0) == 0:
            return -2


class Extremes:
    """The extremes of a view's groups, which compiled code brings up to date for those that a batch touched.

    Args:
        touched: The records that the batch touched, with their payloads before it.
        state: By group how many values it has, and its extremes.
        changed: By group, what the state was and what it is: cleared before each batch.
        measures: The lane of each in the state, whether it is the greatest, and what stands for NULL.
    """

    def __init__(
        self,
        touched: Pool,
        source: Pool,
        index: SortedIndex,
        state: Pool,
        changed: Pool,
        *,
        group: tuple[int, ...],
        value: int,
        count: int,
        lowest: int,
        measures: list[tuple[int, bool, int]],
    ) -> None:
        self._pools, self.state, self.changed = (touched, source, index, state, changed), state, changed
        fixed = [*[0] * GROUP, len(group), value, count, index.order.real, len(measures), lowest]
        room = 2 * len(index.order.columns) + len(group)
        self._words: Words = np.array(
            [*fixed, *(word for measure in measures for word in measure), *group, *[0] * room], np.int64
        )

    @property
    def address(self) -> int:
        """Address of the words that describe them."""
        self._words[:GROUP] = [pool.address for pool in self._pools]
        return int(self._words.ctypes.data)


@inlined
def advance_extremes(extremes: int, steps: int, is_first: int) -> int:
    """Bring the extremes of touched groups up to date; −1 if there are values too wide for it, −2 without memory.

    What they were and are stands in the pool of what changed; the only group of a view without any is there in the
    first batch, too.
    """
    return call(load(steps, ADVANCE), extremes, steps, is_first, 0, 0, 0)


@inlined
def _payload(frame: Vector, record: int) -> int:
    return frame[frame[at.PLACES] + at.WORDS] + 8 * record * frame[at.PAYLOAD]


@inlined
def _enter(frame: Vector, key: int, steps: int, pool: int) -> int:
    return call(load(steps, ENTER), address(frame), key, load(steps, GROW), pool, 0, 0)


@inlined
def _enter_group(extremes: int, key: int, steps: int) -> int:
    """Find the record of what changed in a group, or make it of what the state is, twice; −1 if there is no memory."""
    changed, state = frame_at(load(extremes, CHANGED)), frame_at(load(extremes, STATE))
    count, broad = load(changed[HEAD], at.COUNT), state[at.PAYLOAD]
    record = _enter(changed, key, steps, _CHANGED)
    if record != count:
        return record
    own, there = _payload(changed, record), find_record(state, key)
    for i in range(broad):
        word = load(_payload(state, there), i) if there >= 0 else 0
        store(own, i, word)
        store(own, broad + i, word)
    if there < 0:
        for m in range(load(extremes, ENDS)):
            measure = extremes + 8 * (FIXED + 3 * m)
            store(own, broad + load(measure, 0), load(measure, 2))
    return record


@inlined
def _bound(extremes: int, group: int, low: int, high: int) -> int:
    """Put together the keys between which the values of a group are; returns the address of the first."""
    frame, width = frame_at(load(extremes, INDEX)), load(extremes, GROUP)
    lows, key = extremes + 8 * (FIXED + 3 * load(extremes, ENDS) + 2 * width), frame[at.KEY]
    highs = lows + 8 * key
    copy(lows, group, width)
    copy(highs, group, width)
    store(lows, width, low)
    store(highs, width, high)
    for i in range(width + 1, key):
        store(lows, i, _NULL)
        store(highs, i, GREATEST)
    return lows


@called
def _search(extremes: int, group: int, is_last: int, null: int) -> int:
    """Find the least or greatest value of a group whose count is above 0; NULL if there is none."""
    frame, width, lowest = frame_at(load(extremes, INDEX)), load(extremes, GROUP), load(extremes, LOWEST)
    key, counted, low = frame[at.KEY], load(extremes, COUNTED), _bound(extremes, group, lowest, GREATEST)
    while True:
        place = end_between(frame, low, low + 8 * key, is_last != 0)
        if place < 0:
            return null
        entry = entry_at(frame, place // FANOUT, place % FANOUT)
        held = load(entry, width)
        if load(entry, key + counted) > 0:
            return _rank(held, load(extremes, IS_REAL))  # NB: the way back is the same
        if held == (lowest if is_last != 0 else GREATEST):
            return null
        if is_last != 0:
            store(low, key + width, held - 1)
        else:
            store(low, width, held + 1)


@inlined
def _read_group(extremes: int, key: int) -> int:
    """Put the group of a key together; returns its address."""
    width, ends = load(extremes, GROUP), load(extremes, ENDS)
    columns = extremes + 8 * (FIXED + 3 * ends)
    group = columns + 8 * (width + 2 * frame_at(load(extremes, INDEX))[at.KEY])
    for i in range(width):
        store(group, i, load(key, load(columns, i)))
    return group


@called
def _are_ordered(extremes: int) -> bool:
    """True if all values of touched groups, present and past, are in order."""
    touched, lowest = frame_at(load(extremes, TOUCHED)), load(extremes, LOWEST)
    if lowest == LEAST:
        return True
    index = frame_at(load(extremes, INDEX))
    for record in range(load(touched[HEAD], at.COUNT)):
        key = touched[touched[at.PLACES] + at.KEYS] + 8 * record * touched[at.KEY]
        value = load(key, load(extremes, VALUE))
        low = _bound(extremes, _read_group(extremes, key), LEAST, lowest - 1)
        if (value < lowest and value != _NULL) or end_between(index, low, low + 8 * index[at.KEY], False) >= 0:
            return False
    return True


@c_function(6)
def _advance(extremes: int, steps: int, is_first: int, _c: int, _d: int, _e: int) -> int:
    """Bring extremes up to date."""
    touched, source = frame_at(load(extremes, TOUCHED)), frame_at(load(extremes, SOURCE))
    state, changed = frame_at(load(extremes, STATE)), frame_at(load(extremes, CHANGED))
    width, ends, broad = load(extremes, GROUP), load(extremes, ENDS), state[at.PAYLOAD]
    counted, real = load(extremes, COUNTED), load(extremes, IS_REAL)
    if not _are_ordered(extremes):
        return -1
    if width == 0 and is_first != 0 and _enter_group(extremes, extremes, steps) < 0:
        return -2
    for record in range(load(touched[HEAD], at.COUNT)):
        key = touched[touched[at.PLACES] + at.KEYS] + 8 * record * touched[at.KEY]
        there = find_record(source, key)
        was = load(_payload(touched, record), counted) > 0
        now = there >= 0 and word_of_payload(source, there, counted) > 0
        found = _enter_group(extremes, _read_group(extremes, key), steps)
        if found < 0:
            return -2
        old, value = _payload(changed, found), load(key, load(extremes, VALUE))
        new = old + 8 * broad
        store(new, 0, load(new, 0) + now - was)
        for m in range(ends):
            measure = extremes + 8 * (FIXED + 3 * m)
            lane, null, last = load(measure, 0), load(measure, 2), load(new, load(measure, 0))
            if was and not now and value == load(old, lane):
                store(old, 2 * broad, load(old, 2 * broad) | (1 << m))  # it has gone
            elif now and value != null:
                ahead = _rank(value, real) > _rank(last, real)
                if last == null or (ahead if load(measure, 1) != 0 else not ahead):
                    store(new, lane, value)
    for record in range(load(changed[HEAD], at.COUNT)):
        key, old = changed[changed[at.PLACES] + at.KEYS] + 8 * record * width, _payload(changed, record)
        new, gone = old + 8 * broad, load(old, 2 * broad)
        for m in range(ends):
            measure = extremes + 8 * (FIXED + 3 * m)
            if load(new, 0) == 0:
                store(new, load(measure, 0), 0)
            elif (gone >> m) & 1 != 0:
                store(new, load(measure, 0), _search(extremes, key, load(measure, 1), load(measure, 2)))
        if load(new, 0) != 0:
            kept = _enter(state, key, steps, _STATE)
            if kept < 0:
                return -2
            copy(_payload(state, kept), new, broad)
        elif load(old, 0) != 0:
            call(load(steps, REMOVE), address(state), key, 0, 0, 0, 0)
    return 0


SORTED_STEPS: tuple[CFunction, ...] = (_sort_rows, _advance)
"""Functions whose addresses are in the table."""
