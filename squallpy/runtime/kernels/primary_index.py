"""The primary index of a pool: by which columns its hash index has the records, and what agrees on them.

Pool(2, payload)                            both columns, an entry for each record
Pool(2, payload, group=(0,))                column 0, an entry for each record (`group_index.py`)
Pool(2, payload, ((0,),), adaptive=True)    column 0, an entry for each run that agrees on it (`run_index.py`)
"""

from squallpy.runtime.kernels import pool_layout as at
from squallpy.runtime.kernels.hash_index import SCALE
from squallpy.runtime.kernels.hashing import hash_picked
from squallpy.runtime.kernels.intrinsics import load, store
from squallpy.runtime.kernels.kernel_compiler import Vector, address, inlined
from squallpy.runtime.kernels.memory_area import HEAD
from squallpy.runtime.kernels.narrow_words import narrowed
from squallpy.runtime.kernels.stored_keys import NARROW, are_same, key_at, word_at

_LIFT = 1 << 31  # makes the least word 0


@inlined
def is_by_runs(frame: Vector) -> bool:
    """True if the index has an entry for each run of records that agree on the columns of slice 0."""
    return frame[at.RUNS] != 0 and load(frame[HEAD], at.BY_RECORD) == 0


@inlined
def first_slice(frame: Vector) -> int:
    """Return the first slice that has postings."""
    return 1 if is_by_runs(frame) else 0


@inlined
def indexed_columns(frame: Vector) -> int:
    """Return the word of the frame at which the index's columns begin: how many, then which."""
    return frame[at.BOUNDS] if is_by_runs(frame) else frame[at.BOUNDS] - frame[at.KEY] - 1


@inlined
def has_keys_in_hashes(frame: Vector) -> bool:
    """True if an entry tells the key of its record: one word of 32 bits."""
    return frame[at.KEY] == 1 and frame[at.UNIT] == NARROW and not is_by_runs(frame)


@inlined
def hash_record(frame: Vector, key: int) -> int:
    """Hash of the key at an address, by which the index has it."""
    columns = indexed_columns(frame)
    if keeps_order(frame):
        return hash_in_order(load(key, frame[columns + 1]))
    return hash_picked(key, address(frame) + 8 * (columns + 1), frame[columns])


@inlined
def keeps_order(frame: Vector) -> bool:
    """True if the index, which is by one column, has records in the order of their keys (`order_index.py`)."""
    return load(frame[frame[at.PLACES]], SCALE) != 0


@inlined
def hash_in_order(word: int) -> int:
    """Hash of a word of a key, of 32 bits, in an index that has records in the order of their keys."""
    return (narrowed(word) + _LIFT) << 32


@inlined
def put_picked(key: int, picks: int, values: int, width: int) -> None:
    """Put `width` words into the columns of a key whose positions stand at address `picks`."""
    for i in range(width):
        store(key, load(picks, i), load(values, i))


@inlined
def agree_records(frame: Vector, a: int, b: int) -> bool:
    """True if two records agree on the index's columns."""
    columns, unit, one, other = indexed_columns(frame), frame[at.UNIT], key_at(frame, a), key_at(frame, b)
    for i in range(columns + 1, columns + 1 + frame[columns]):  # noqa: SIM110
        if not are_same(one, other, frame[i], unit):
            return False
    return True


@inlined
def agree(frame: Vector, record: int, key: int) -> bool:
    """True if a record agrees on the index's columns with the key at an address."""
    columns, own, unit = indexed_columns(frame), key_at(frame, record), frame[at.UNIT]
    for i in range(columns + 1, columns + 1 + frame[columns]):
        if word_at(own, frame[i], unit) != load(key, frame[i]):
            return False
    return True
