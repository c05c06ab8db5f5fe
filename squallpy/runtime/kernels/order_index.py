"""A primary index in the order of keys: the hash of a key is the key, its home is on a line.

    keys 1,000,  1,004,  1,008, …   →   homes 0, 5, 10, …        (4 / 3 positions for each record)

Numbers of orders, or times of events, ascend as records come. Hashed, each new one is entered at another place of the
table; in order it stands beside the one before it, in a line that is in the processor's cache, and so do those that are
looked up together. Nothing moves when the table grows: new keys have homes at its end.

That pays as long as keys ascend and are spread evenly. Whether they do is tried once, when an index gets large: all
records are entered in order. Who adds rows counts the entries that are passed or moved, as where an index is by runs;
where these are too many a row, the table has got too short, or else hashes are mixed again, for good.

Source: Kraska et al., *The case for learned index structures* (2018), §4: a model of the keys as hash, here a line.
"""

from typing import Final

from squallpy.runtime.kernels import pool_layout as at
from squallpy.runtime.kernels.hash_index import (
    BASE,
    HIGH,
    OLD,
    SCALE,
    TRIED,
    ask,
    crowding,
    forget_order,
    insert,
    place_for,
    table_of,
    wipe_all,
)
from squallpy.runtime.kernels.intrinsics import below, load, multiply_high, store
from squallpy.runtime.kernels.kernel_compiler import VECTOR, Vector, called, kernel
from squallpy.runtime.kernels.memory_area import HEAD
from squallpy.runtime.kernels.narrow_words import narrowed
from squallpy.runtime.kernels.primary_index import hash_in_order, hash_record, indexed_columns, is_by_runs
from squallpy.runtime.kernels.run_index import begins_run
from squallpy.runtime.kernels.stored_keys import NARROW, key_at, key_of_record, word_at

LEAST_SIZE: Final = 8000
"""Positions of an index from which on it is tried."""
_POSITIONS, _RECORDS = 4, 3  # of a table, for so many records: less than it may have, as keys may become sparser
_DESCENTS: Final = 4  # keys ascend if at most one in so many is less than that of the record before
_ANY: Final = 1 << 62
_CROWDED: Final = 4  # entries that are passed or moved for each that is entered


@kernel(f"boolean({VECTOR})")
def order_records(frame: Vector) -> bool:
    """Enter all records in the order of their keys, if these ascend and are spread evenly; else leave all as it was."""
    region, columns = frame[frame[at.PLACES]], indexed_columns(frame)
    column, count, unit = frame[columns + 1], load(frame[HEAD], at.COUNT), frame[at.UNIT]
    entries = load(frame[HEAD], at.ENTRIES) if is_by_runs(frame) else count
    store(region, TRIED, 1)
    if frame[columns] != 1 or unit != NARROW or count == 0:
        return False
    least = most = before = narrowed(word_at(key_at(frame, 0), column, unit))
    descents = 0
    for record in range(1, count):
        word = narrowed(word_at(key_at(frame, record), column, unit))
        least, most = min(least, word), max(most, word)
        descents += 1 if word < before else 0
        before = word
    if descents * _DESCENTS > count:
        return False
    scale = ((entries * _POSITIONS // _RECORDS) << 32) // (most - least + 1)
    wipe_all(region)
    store(region, SCALE, scale)
    store(region, BASE, hash_in_order(least))
    store(region, OLD, scale)
    if _enter_all(frame, count, _CROWDED * entries):
        return True
    forget_order(region)
    _enter_all(frame, count, _ANY)
    return False


@called
def _enter_all(frame: Vector, count: int, crowded: int) -> bool:
    """Enter all records, or runs of them, in an empty index; False if over `crowded` entries were passed or moved."""
    (table, shape), by_runs, passed = table_of(frame[frame[at.PLACES]]), is_by_runs(frame), 0
    for chunk in range(0, count, at.CHUNK):
        stop = min(chunk + at.CHUNK, count)
        for record in range(chunk, stop):
            ask(table, shape, hash_record(frame, key_of_record(frame, record)))
        for record in range(chunk, stop):
            if by_runs and not begins_run(frame, record):
                continue
            entry = (hash_record(frame, key_of_record(frame, record)) & HIGH) | (record + 1)
            position = place_for(table, shape, entry)
            passed += crowding(shape, entry, position, insert(table, shape, position, entry))
        if passed > crowded:
            return False
    return True


@kernel(f"void({VECTOR})")
def mix_hashes(frame: Vector) -> None:
    """Let an index that has records in the order of their keys have them by mixed hashes."""
    forget_order(frame[frame[at.PLACES]])
    store(frame[HEAD], at.PASSED, 0)
    _enter_all(frame, load(frame[HEAD], at.COUNT), _ANY)


@kernel(f"int64({VECTOR})")
def positions_needed(frame: Vector) -> int:
    """Return how many positions the keys of the last records take."""
    count, columns, region, most = load(frame[HEAD], at.COUNT), indexed_columns(frame), frame[frame[at.PLACES]], 0
    base, scale = load(region, BASE), load(region, SCALE)
    for record in range(max(0, count - at.CHUNK), count):
        h = hash_in_order(word_at(key_at(frame, record), frame[columns + 1], frame[at.UNIT]))
        if below(base, h) != 0:
            most = max(most, multiply_high(h - base, scale) + 1)
    return most
