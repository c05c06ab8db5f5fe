"""Lookups by the key columns that a pool's primary index is by: all of them, or its group.

    Pool(2, payload, group=(0,))    records that agree on column 0 have one hash, and stand one behind the other

So a lookup that finds one record at most needs no secondary index. It is chosen for declared keys; where data break
one, a group has several records, which are found, too, by a pass over them.
"""

from squallpy.runtime.kernels import pool_layout as at
from squallpy.runtime.kernels.hash_index import HIGH, LOW, after, home, is_behind, is_of, table_of
from squallpy.runtime.kernels.intrinsics import load
from squallpy.runtime.kernels.kernel_compiler import Vector, inlined
from squallpy.runtime.kernels.postings import ALONE
from squallpy.runtime.kernels.primary_index import agree
from squallpy.runtime.kernels.run_index import COUNTED, MANY, MOST, RUN
from squallpy.runtime.kernels.stored_keys import key_of_record


@inlined
def group_of(frame: Vector, key: int, h: int) -> int:
    """Find the records that agree with the key at an address, of this hash: one (`ALONE`), several, or −1."""
    table, shape = table_of(frame[frame[at.PLACES]])
    position = home(h, shape)
    first, count, record, entry = 0, 0, 0, load(table, position)
    while not is_behind(entry, h, position, shape):
        if (entry ^ h) & HIGH == 0 and agree(frame, (entry & LOW) - 1, key):
            if count == 0:
                first, record = position, (entry & LOW) - 1
            count += 1
        position = after(position, shape)
        entry = load(table, position)
    return -1 if count == 0 else ALONE + record if count == 1 else MANY | count << COUNTED | first


@inlined
def group_length(group: int) -> int:
    """Return how many records a group has."""
    return 0 if group < 0 else (group >> COUNTED) & MOST if group >= RUN else 1


@inlined
def group_record(frame: Vector, group: int, i: int) -> int:
    """Return record number `i` of a group."""
    if group < MANY:
        return group - ALONE
    table, shape = table_of(frame[frame[at.PLACES]])
    position = group & LOW
    head = load(table, position)
    first = key_of_record(frame, (head & LOW) - 1)
    while i > 0:
        position = after(position, shape)
        entry = load(table, position)
        if is_of(entry, head) and agree(frame, (entry & LOW) - 1, first):
            i -= 1
    return (load(table, position) & LOW) - 1
