"""The driver of a compiled batch: in one call the printed functions of a plan, and what lies between them.

    sums cleared → each delta added up → statements → indexes that grow → results changed, their rows noted

What it is given is a row of words: addresses and counts, then sections of so many entries each.

Where keys hardly repeat but in neighbours, and a delta is only read row by row, its rows are not added up by key: they
stand one behind the other. Which is the case is tried out now and then.

A large batch of wide payloads is cut into pieces whose deltas stay in the cache between being added up and being read,
as if each piece was a batch; but only if its keys hardly repeat, for each piece adds up its own alone. Beforehand all
rows are checked, as no answer can be refused any more once a piece was applied.
"""

from typing import Any, Final

from llvmlite import ir
from numba import types
from numba.core.cgutils import alloca_once

from squallpy.runtime.kernels import pool_layout as at
from squallpy.runtime.kernels.intrinsics import load, operation, store
from squallpy.runtime.kernels.kernel_compiler import Vector, address, called, inlined, kernel, making
from squallpy.runtime.kernels.key_marks import clear_marks
from squallpy.runtime.kernels.memory_area import HEAD
from squallpy.runtime.kernels.payload_arithmetic import add, copy, is_zero
from squallpy.runtime.kernels.pool_records import clear_records, grow_on
from squallpy.runtime.kernels.run_index import find_record
from squallpy.runtime.kernels.stored_payloads import read_payload
from squallpy.runtime.kernels.trigger_steps import ADD, GROW, call, frame_at

# Words that the driver is given; behind them stand the entries of sections, in this order.
STEPS: Final = 0  # the table of addresses (`trigger_steps.STEPS`)
START: Final = 1  # the call to begin with; after others than the first, a batch goes on that waited for an answer
FEEDS: Final = 2  # how many; each: batch, first row, rows
GROUPS: Final = 3  # each: function, address of its words, number of its feed, address where it has its marks; tables of
# addresses to add up by key, and to append, 0 if it must not; batches until both are tried, and how many there were
# before; rows of the last that was, and how many records it appended if the other way comes next
SUMS: Final = 4  # each: the frame of a pool that is cleared at first
CALLS: Final = 5  # each: function that runs statements or derives, address of its words, its first delta, how many; 0:
# a step that somebody else does
DELTAS: Final = 6  # each: the frame of a pool whose records a call reads
POOLS: Final = 7  # each: the frame of one that may grow, and the records at which somebody has to look ahead
RESULTS: Final = 8  # each: frames of its change and of itself, way, address and words of room, number, groups changed
CUT: Final = 9  # how many of the first calls a batch may be cut into pieces for; 0: it may not
CUT_SUMS: Final = 10  # how many of the first sums are cleared after each piece
BITS: Final = 11  # address of the bits that mark keys
STOP: Final = 12  # the call before which to end
KEPT: Final = 13  # how many of the last sums are not cleared
ENTRIES: Final = 14

FEED: Final = 3  # words of an entry
GROUP: Final = 10
CALL: Final = 4
POOL: Final = 2
RESULT: Final = 7
BATCH: Final = 1  # words that a group is given, as `codegen/pre_aggregation.py` has them
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
OWN_SUMS: Final = 5
OWN_STEPS: Final = 0
_BY_KEY, _APPEND, _LEFT, _PAUSE, _TRIED, _APPENDED = range(4, GROUP)  # words of a group
_AGAIN: Final = 126  # batches from a trial to the next, at first; twice as many each time that keys repeat,
_LONGEST: Final = 1 << 14  # up to this; but a batch of more than so many times the rows is tried at once:
_LARGER: Final = 4
_FEW_MORE: Final = 8  # it is better to append if at most an eighth of the records are more
_PIECE: Final = 1 << 16  # bytes of a delta that stay in the cache, with what is read beside it
_STEP: Final = 32  # rows that are added up before a delta's bytes are looked at
_SELDOM: Final = 7  # keys hardly repeat if at least 7 in 10 are distinct: each delta of the batch was hardly smaller
_OFTEN: Final = 10
_MOST_FEEDS: Final = 62
_EVERY: Final = (1 << 63) - 1

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


@inlined
def _feeds(given: int) -> int:
    return given + 8 * ENTRIES


@inlined
def _groups(given: int) -> int:
    return _feeds(given) + 8 * FEED * load(given, FEEDS)


@inlined
def _sums(given: int) -> int:
    return _groups(given) + 8 * GROUP * load(given, GROUPS)


@inlined
def _calls(given: int) -> int:
    return _sums(given) + 8 * load(given, SUMS)


@inlined
def _deltas(given: int) -> int:
    return _calls(given) + 8 * CALL * load(given, CALLS)


@inlined
def _count(frame: int) -> int:
    """Count the records of the pool whose frame is at an address."""
    return load(load(frame, HEAD), at.COUNT)


@making
def _clear_sums(given: int, count: int) -> None:
    """Clear the first sums."""
    for i in range(count):
        frame = load(_sums(given), i)
        if _count(frame) != 0:
            _clear_records(frame_at(frame))


@called
def _add_up(given: int, number: int, start: int, rows: int) -> int:
    """Let a group read rows of its feed's batch; return its answer."""
    group = _groups(given) + 8 * GROUP * number
    own, feed = load(group, 1), _feeds(given) + 8 * FEED * load(group, 2)
    store(own, BATCH, load(feed, 0))
    store(own, FIRST, load(feed, 1) + start)
    store(own, ROWS, rows)
    return invoke(load(group, 0), own)


@called
def _add_up_all(given: int, number: int, rows: int) -> int:
    """Let a group read all rows of its feed's batch, by key or one behind the other; return its answer."""
    group = _groups(given) + 8 * GROUP * number
    own, appending, appended = load(group, 1), load(group, _APPEND), load(group, _APPENDED)
    if appending == 0:
        return _add_up(given, number, 0, rows)
    before = load(group, _TRIED)
    is_trial = load(group, _LEFT) <= 0 or rows > _LARGER * before
    if is_trial:
        store(own, OWN_STEPS, appending if appended == 0 else load(group, _BY_KEY))
    store(group, _LEFT, load(group, _LEFT) - 1)
    answer = _add_up(given, number, 0, rows)
    count = _count(load(own, OWN_SUMS))
    if is_trial and appended == 0:
        store(group, _APPENDED, count)
        store(group, _LEFT, 0)
        store(group, _TRIED, rows)
    elif is_trial and 2 * rows >= before:  # much fewer rows would tell nothing of as many
        pause = min(max(2 * load(group, _PAUSE), _AGAIN), _LONGEST)
        if _FEW_MORE * appended * rows <= (_FEW_MORE + 1) * count * before:
            store(own, OWN_STEPS, appending)
            pause = _AGAIN
        store(group, _APPENDED, 0)
        store(group, _LEFT, pause)
        store(group, _PAUSE, pause)
        store(group, _TRIED, max(rows, before))
    return answer


@called
def _apply(given: int, number: int) -> int:
    """Let a call read its deltas; return 0, or what the driver answers."""
    call_at, deltas = _calls(given) + 8 * CALL * number, _deltas(given)
    if load(call_at, 0) == 0:
        return WAITS - number
    own, first = load(call_at, 1), load(call_at, 2)
    for j in range(load(call_at, 3)):
        frame = load(deltas, first + j)
        places = load(frame, at.PLACES)
        store(own, 1 + 3 * j, load(frame, places + at.KEYS))
        store(own, 2 + 3 * j, load(frame, places + at.WORDS))
        store(own, 3 + 3 * j, _count(frame))
    answer = invoke(load(call_at, 0), own)
    return 0 if answer >= 0 else answer if answer == NO_MEMORY else WAITS - number


@inlined
def _delta(given: int, number: int) -> int:
    """Return the frame of the pool in which a group adds up."""
    return load(load(_groups(given), GROUP * number + 1), OWN_SUMS)


@called
def _is_large(given: int) -> bool:
    """True if a delta of a batch that may be cut is perhaps larger than what stays in the cache."""
    for i in range(load(given, GROUPS) if load(given, CUT) > 0 else 0):
        rows = load(_feeds(given), FEED * load(_groups(given), GROUP * i + 2) + 2)
        if 8 * rows * load(_delta(given, i), at.PAYLOAD) > 2 * _PIECE:
            return True
    return False


@called
def _check(given: int) -> int:
    """Let groups check all rows; NO_ANSWER: one has none. Otherwise bits for the feeds whose keys hardly repeat."""
    fresh = _EVERY
    for i in range(load(given, GROUPS)):
        group = _groups(given) + 8 * GROUP * i
        feed, marks = load(group, 2), load(group, 3)
        rows = load(_feeds(given), FEED * feed + 2)
        store(marks, 0, load(given, BITS))
        store(marks, 1, clear_marks(load(given, BITS), rows))
        found = _add_up(given, i, 0, rows) if rows > 0 else 0
        store(marks, 0, 0)
        if found < 0:
            return found
        if _OFTEN * found < rows * _SELDOM:
            fresh &= ~(1 << min(feed, _MOST_FEEDS))
    return fresh


@making
def _apply_pieces(given: int, fresh: int) -> int:
    """Apply a batch piece by piece; return 0, or what the driver answers."""
    for feed in range(load(given, FEEDS)):
        rows = load(_feeds(given), FEED * feed + 2)
        step, start = _STEP if fresh >> min(feed, _MOST_FEEDS) & 1 else rows, 0
        while start < rows:
            stop, is_full = min(start + step, rows), False
            for i in range(load(given, GROUPS)):
                if load(_groups(given), GROUP * i + 2) == feed:
                    answer = _add_up(given, i, start, stop - start)
                    if answer < 0:
                        return answer
                    frame = _delta(given, i)
                    is_full |= 8 * _count(frame) * load(frame, at.PAYLOAD) >= _PIECE
            start = stop
            if is_full or start == rows:
                for i in range(load(given, CUT)):
                    answer = _apply(given, i)
                    if answer < 0:
                        return answer
                _clear_sums(given, load(given, CUT_SUMS))
    return 0


@kernel("int64(int64)")
def drive(given: int) -> int:
    """Apply a batch. DUE: somebody has to look ahead for pools; NO_ANSWER: nothing but names was changed."""
    pools = _deltas(given) + 8 * load(given, DELTAS)
    results, start = pools + 8 * POOL * load(given, POOLS), load(given, START)
    if start == 0:
        _clear_sums(given, load(given, SUMS) - load(given, KEPT))
        if _is_large(given):
            answer = _check(given)
            if answer >= 0:
                answer, start = _apply_pieces(given, answer), load(given, CUT)
            if answer < 0:
                return answer
        else:
            for i in range(load(given, GROUPS)):
                count = load(_feeds(given), FEED * load(_groups(given), GROUP * i + 2) + 2)
                answer = _add_up_all(given, i, count) if count > 0 else 0
                if answer < 0:
                    return answer
    for i in range(start, load(given, STOP)):
        answer = _apply(given, i)
        if answer < 0:
            return answer
    for i in range(load(given, RESULTS)):
        if not _apply_result(results + 8 * RESULT * i, load(given, STEPS)):
            return NO_MEMORY
    answer = 0
    for i in range(load(given, POOLS)):
        frame = frame_at(load(pools, POOL * i))
        if load(frame[HEAD], at.GROWING) != 0:
            _grow_on(frame)
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
    width, broad = frame[at.KEY], frame[at.PAYLOAD]
    for row in range(count):
        key, change = keys + 8 * row * width, words + 8 * row * broad
        old, new = before + 8 * row * broad, after + 8 * row * broad
        record = find_record(frame, key)
        if record >= 0:
            read_payload(frame, record, old)
            copy(new, old, broad)
            is_left = add(frame, new, change)
        else:
            copy(new, change, broad)
            is_left = not is_zero(frame, change)
        for i in range(broad if record < 0 else 0):
            store(old, i, 0)
        for i in range(broad if not is_left else 0):
            store(new, i, 0)
