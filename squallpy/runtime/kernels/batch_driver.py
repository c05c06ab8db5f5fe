"""The driver of a compiled batch: in one call the printed functions of a plan, and what lies between them.

    sums cleared → each delta added up → statements → indexes that grow → results changed, their rows noted

What it is given is a row of words: addresses and counts, then sections of so many entries each.
"""

from typing import Any, Final

from llvmlite import ir
from numba import types
from numba.core.cgutils import alloca_once

from squallpy.runtime.kernels import pool_layout as at
from squallpy.runtime.kernels.group_index import hash_record
from squallpy.runtime.kernels.hash_index import LOW, home, seek, table_of
from squallpy.runtime.kernels.intrinsics import load, operation, store
from squallpy.runtime.kernels.kernel_compiler import Vector, address, called, kernel, making
from squallpy.runtime.kernels.memory_area import HEAD
from squallpy.runtime.kernels.payload_arithmetic import add, copy, is_zero
from squallpy.runtime.kernels.pool_records import clear_records, grow_on
from squallpy.runtime.kernels.trigger_steps import ADD, GROW, call, frame_at

# Words that the driver is given; behind them stand the entries of sections, in this order.
STEPS: Final = 0  # the table of addresses (`trigger_steps.STEPS`)
START: Final = 1  # the call to begin with; after others than the first, a batch goes on that waited for an answer
FEEDS: Final = 2  # how many; each: batch, first row, rows
GROUPS: Final = 3  # each: function, address of its words, number of its feed
SUMS: Final = 4  # each: the frame of a pool that is cleared at first
CALLS: Final = 5  # each: function that runs statements or derives, address of its words, its first delta, how many; 0:
# a step that somebody else does
DELTAS: Final = 6  # each: the frame of a pool whose records a call reads
POOLS: Final = 7  # each: the frame of one that may grow, and the records at which somebody has to look ahead
RESULTS: Final = 8  # each: frames of its change and of itself, way, address and words of room, number, groups changed
ENTRIES: Final = 9

FEED: Final = 3  # words of an entry
GROUP: Final = 3
CALL: Final = 4
POOL: Final = 2
RESULT: Final = 7
BATCH: Final = 1  # words that a group is given, as `codegen/groups.py` has them
FIRST: Final = 2
ROWS: Final = 3
SKIPPED: Final = 0  # ways of a result: somebody else does it
ADDED: Final = 1
COMPARED: Final = 2  # added, payloads before and after noted
LISTED: Final = 3  # noted, but not added
DUE: Final = 1  # answers, besides 0
NO_ANSWER: Final = -1
NO_MEMORY: Final = -2
WAITS: Final = -10  # less the number of the call that is not compiled, or has no answer: somebody else does it
_LEAST: Final = 16

_alloca: Any = alloca_once
_clear: Any = clear_records
_clear_records: Any = called(_clear.py_func)
_grow: Any = grow_on
_grow_on: Any = making(_grow.py_func)
_word = types.int64


@operation(_word(_word, _word))
def invoke(builder: Any, function: Any, given: Any) -> Any:
    """Call a compiled function of a word, as numba lays it out: its result and its exception are given by address."""
    word, pointer = ir.IntType(64), ir.IntType(8).as_pointer()
    result, error = (_alloca(builder, kind) for kind in (word, pointer))
    kind = ir.FunctionType(ir.IntType(32), [word.as_pointer(), pointer.as_pointer(), word]).as_pointer()
    builder.call(builder.inttoptr(function, kind), [result, error, given])
    return builder.load(result)


@kernel("int64(int64)")
def drive(given: int) -> int:
    """Apply a batch. DUE: somebody has to look ahead for pools; NO_ANSWER: nothing but names was changed."""
    feeds = given + 8 * ENTRIES
    groups = feeds + 8 * FEED * load(given, FEEDS)
    sums = groups + 8 * GROUP * load(given, GROUPS)
    calls = sums + 8 * load(given, SUMS)
    deltas = calls + 8 * CALL * load(given, CALLS)
    pools = deltas + 8 * load(given, DELTAS)
    results = pools + 8 * POOL * load(given, POOLS)
    rows = _LEAST
    if load(given, START) == 0:
        for i in range(load(given, SUMS)):
            frame = frame_at(load(sums, i))
            if load(frame[HEAD], at.COUNT) != 0:
                _clear_records(frame)
        for i in range(load(given, GROUPS)):
            own, feed = load(groups, GROUP * i + 1), feeds + 8 * FEED * load(groups, GROUP * i + 2)
            if load(feed, 2) > 0:
                store(own, BATCH, load(feed, 0))
                store(own, FIRST, load(feed, 1))
                store(own, ROWS, load(feed, 2))
                answer = invoke(load(groups, GROUP * i), own)
                if answer < 0:
                    return answer
    for i in range(load(given, START), load(given, CALLS)):
        if load(calls, CALL * i) == 0:
            return WAITS - i
        own, first = load(calls, CALL * i + 1), load(calls, CALL * i + 2)
        for j in range(load(calls, CALL * i + 3)):
            frame = frame_at(load(deltas, first + j))
            places, count = frame[at.PLACES], load(frame[HEAD], at.COUNT)
            store(own, 1 + 3 * j, frame[places + at.KEYS])
            store(own, 2 + 3 * j, frame[places + at.WORDS])
            store(own, 3 + 3 * j, count)
            rows += count
        answer = invoke(load(calls, CALL * i), own)
        if answer < 0:
            return answer if answer == NO_MEMORY else WAITS - i
    for i in range(load(given, RESULTS)):
        if not _apply_result(results + 8 * RESULT * i, load(given, STEPS)):
            return NO_MEMORY
    answer = 0
    for i in range(load(given, POOLS)):
        frame = frame_at(load(pools, POOL * i))
        if load(frame[HEAD], at.GROWING) != 0:
            _grow_on(frame, rows)
        if load(frame[HEAD], at.COUNT) >= load(pools, POOL * i + 1):
            answer = DUE
    return answer


@called
def _apply_result(entry: int, steps: int) -> bool:
    """Add the change of a result to it, and note keys, payloads before and after; False if there is no memory."""
    change, way = frame_at(load(entry, 0)), load(entry, 2)
    count, places = load(change[HEAD], at.COUNT), change[at.PLACES]
    store(entry, 6, count)
    if way == SKIPPED or count == 0:
        return True
    width, broad = change[at.KEY], change[at.PAYLOAD]
    while count * (width + 2 * broad) > load(entry, 4):
        if call(load(steps, GROW), load(entry, 5) + 1, 0, 0, 0, 0, 0) == 0:
            return False
    keys, words, room = change[places + at.KEYS], change[places + at.WORDS], load(entry, 3)
    before = room + 8 * count * width
    copy(room, keys, count * width)
    if way == LISTED:
        copy(before, words, count * broad)
        return True
    view = frame_at(load(entry, 1))
    if way == COMPARED:
        _compare(view, keys, words, count, before, before + 8 * count * broad)
    return call(load(steps, ADD), address(view), keys, words, count, load(steps, GROW), load(entry, 5)) >= 0


@called
def _compare(frame: Vector, keys: int, words: int, count: int, before: int, after: int) -> None:
    """Note the payloads of keys, 0 where there is none, and what they will be when others are added."""
    places, width, broad = frame[at.PLACES], frame[at.KEY], frame[at.PAYLOAD]
    table, shape = table_of(frame[places])
    for row in range(count):
        key, change = keys + 8 * row * width, words + 8 * row * broad
        old, new = before + 8 * row * broad, after + 8 * row * broad
        h = hash_record(frame, key)
        position = seek(table, shape, home(h, shape), h, key, width, frame[places + at.KEYS], 8 * width)
        if position >= 0:
            there = frame[places + at.WORDS] + 8 * ((load(table, position) & LOW) - 1) * broad
            copy(old, there, broad)
            copy(new, there, broad)
            is_left = add(frame, new, change)
        else:
            copy(new, change, broad)
            is_left = not is_zero(frame, change)
        for i in range(broad if position < 0 else 0):
            store(old, i, 0)
        for i in range(broad if not is_left else 0):
            store(new, i, 0)
