"""Steps of semi-naive iteration over pools: joins of changed rows with records, derivations added up, and their effect.

combine_rows   rows (x, z) and records (z, y) that match   →   derivations (x, y), with their rank and number
changed_rows   (0, 1, 3): 2 → 0, (1, 5): 0 → 1             →   of leaf 0 (1, 3): −2
add_up_rows    (1, 3): 1, (1, 4): 1, (1, 3): −1            →   (1, 4): 1
settle_rows    a row of rank 2 with 1 derivation, of which 1 goes in iteration 2     →   GONE
"""

from typing import Final

import numpy as np

from squallpy.runtime.kernels import pool_layout as at
from squallpy.runtime.kernels.hash_index import HIGH, LOW, seek, table_of
from squallpy.runtime.kernels.hashing import hash_row
from squallpy.runtime.kernels.intrinsics import load, prefetch, shift_right, store
from squallpy.runtime.kernels.kernel_compiler import GIVEN_MATRIX, GIVEN_VECTOR, MATRIX, VECTOR, Vector, address, kernel
from squallpy.runtime.kernels.memory_regions import Words
from squallpy.runtime.kernels.page_watch import mark_written
from squallpy.runtime.kernels.payload_arithmetic import copy
from squallpy.runtime.kernels.pool_records import ask_records
from squallpy.runtime.kernels.stored_keys import key_at, same, word_at
from squallpy.runtime.kernels.stored_payloads import payload_at, tagged_payload, tagged_word

NEVER: Final = 2**63 - 1
"""The rank of a row that is not there."""
STAYS: Final = 0
GONE: Final = 1
COME: Final = 2
SOONER: Final = 3  # there as of a later iteration until now
LATER: Final = 4  # there as of an earlier iteration: the derivations are not its first
LOST: Final = 5  # neither there nor derived in this iteration
_AHEAD: Final = 16  # rows for whose lines is asked in advance
_TAG: Final = 32


@kernel(
    f"Tuple(({MATRIX}, {VECTOR}, {VECTOR}))({VECTOR}, {GIVEN_VECTOR}, {GIVEN_VECTOR}, {GIVEN_MATRIX}, {GIVEN_VECTOR},"
    f" {GIVEN_VECTOR}, {GIVEN_VECTOR}, {GIVEN_VECTOR})"
)
def combine_rows(
    frame: Vector, of: Vector, records: Vector, rows: Vector, ranks: Vector, times: Vector, picks: Vector, facts: Vector
) -> tuple[Words, Words, Words]:
    """Join pairs of a row, whose number is in `of`, and a record: columns, the later rank, and products of times.

    Args:
        picks: For each column of the result one of the rows, or the complement of one of the record's key.
        facts: Where a record's rank is, in its payload or as complement in its key, and in its payload how often it is
            there; the number of words in both if it has none.
    """
    n, width, broad = len(of), len(picks), rows.shape[1]
    payload, unit = frame[at.PAYLOAD], frame[at.UNIT]
    out, later, product = np.empty((n, width), np.int64), np.empty(n, np.int64), np.empty(n, np.int64)
    target, given, rank_at, times_at = address(out), address(rows), facts[0], facts[1]
    for i in range(n):
        if i + _AHEAD < n:
            prefetch(key_at(frame, records[i + _AHEAD]))
            prefetch(payload_at(frame, records[i + _AHEAD]))
        row, own, facts_of = given + 8 * of[i] * broad, key_at(frame, records[i]), tagged_payload(frame, records[i])
        for j in range(width):
            pick = picks[j]
            store(target, i * width + j, load(row, pick) if pick >= 0 else word_at(own, ~pick, unit))
        rank = ranks[of[i]]
        if rank_at < payload:
            rank = max(rank, tagged_word(frame, facts_of, rank_at) if rank_at >= 0 else word_at(own, ~rank_at, unit))
        later[i] = rank
        product[i] = times[of[i]] * tagged_word(frame, facts_of, times_at) if times_at < payload else times[of[i]]
    return out, later, product


@kernel(f"Tuple(({MATRIX}, {VECTOR}))({GIVEN_MATRIX}, {GIVEN_VECTOR})")
def add_up_rows(rows: Vector, times: Vector) -> tuple[Words, Words]:
    """Add up the times of equal rows, in the order of their first; sums of 0 are left out, unless a time was 0."""
    n, width, bits = rows.shape[0], rows.shape[1], 4
    while 1 << bits < n + n // 2:
        bits += 1
    table, hashes, mask = np.zeros(1 << bits, np.int64), np.empty(n, np.int64), (1 << bits) - 1
    out, sums, is_asked = np.empty((n, width), np.int64), np.empty(n, np.int64), np.zeros(n, np.bool_)
    # NB: the table is freed after the last use of its name, which the address is not
    entries, source, target, count = address(table), address(rows), address(out), 0
    for i in range(n):
        hashes[i] = hash_row(source + 8 * i * width, width)
    for i in range(n):
        if i + _AHEAD < n:
            prefetch(entries + 8 * shift_right(hashes[i + _AHEAD], 64 - bits))
        h, row = hashes[i], source + 8 * i * width
        tag, position = h << (64 - _TAG), shift_right(h, 64 - bits)
        while True:
            entry = table[position]
            if entry == 0:
                table[position] = tag | (count + 1)
                copy(target + 8 * count * width, row, width)
                sums[count], is_asked[count] = times[i], times[i] == 0
                count += 1
                break
            number = (entry & LOW) - 1
            if (entry ^ tag) & HIGH == 0 and same(target + 8 * number * width, row, width):
                sums[number] += times[i]
                is_asked[number] |= times[i] == 0
                break
            position = (position + 1) & mask
    kept = 0
    for i in range(count):
        if sums[i] != 0 or is_asked[i]:
            if kept < i:
                copy(target + 8 * kept * width, target + 8 * i * width, width)
                sums[kept] = sums[i]
            kept += 1
    return out[:kept], sums[:kept]


@kernel(
    f"Tuple(({MATRIX}, {VECTOR}))({GIVEN_MATRIX}, {GIVEN_MATRIX}, {GIVEN_MATRIX}, int64, int64, int64, {GIVEN_VECTOR},"
    " int64)"
)
def changed_rows(
    groups: Vector, before: Vector, now: Vector, count: int, number: int, leaf: int, slots: Vector, most: int
) -> tuple[Words, Words]:
    """List the rows of a leaf that came or, below 0, went, and how often, from the groups of a view of all leaves.

    Args:
        before: Payloads of the groups, and `now`; the word `count` tells how often a row is there, if that is above 0.
        number: The column of a group that tells the leaf; and `slots` those that have the columns of its rows.
        most: No row is there more often than that: 1 if how often does not matter.
    """
    n, width, found = groups.shape[0], len(slots), 0
    rows, times = np.empty((n, width), np.int64), np.empty(n, np.int64)
    for i in range(n):
        change = min(max(now[i, count], 0), most) - min(max(before[i, count], 0), most)
        if groups[i, number] == leaf and change != 0:
            for j in range(width):
                rows[found, j] = groups[i, slots[j]]
            times[found] = change
            found += 1
    return rows[:found], times[:found]


@kernel(f"{MATRIX}({VECTOR}, {GIVEN_MATRIX}, {GIVEN_VECTOR}, {GIVEN_VECTOR}, int64)")
def settle_rows(frame: Vector, rows: Vector, times: Vector, waiting: Vector, iteration: int) -> Words:
    """Add derivations of an iteration to rows, of which each has its rank and the number of derivations of that rank.

    Records change their ranks and numbers here, but none comes or goes. Returned are for each row five words: what
    happened, its record or −1, its rank and number before, and the number in this iteration.

    Args:
        waiting: The derivations of this iteration that were noted for each row while it had none of it; or empty.
    """
    n, key, payload, places, scratch = len(times), frame[at.KEY], frame[at.PAYLOAD], frame[at.PLACES], frame[at.SCRATCH]
    (table, shape), keys, words = table_of(frame[places]), frame[places + at.KEYS], frame[places + at.WORDS]
    out, base = np.empty((n, 5), np.int64), address(rows)
    for chunk in range(0, n, at.CHUNK):
        here = min(at.CHUNK, n - chunk)
        ask_records(frame, base, chunk, here)
        for j in range(here):
            i, h, position = chunk + j, frame[scratch + j], frame[scratch + at.CHUNK + j]
            position = seek(table, shape, position, h, base + 8 * i * key, key, keys, frame[at.UNIT])
            record, rank, count, total, fate = -1, NEVER, 0, times[i], STAYS
            if position >= 0:
                record = (load(table, position) & LOW) - 1
                rank, count = load(words, record * payload), load(words, record * payload + 1)
            if rank == iteration:
                total += count
                fate = STAYS if total > 0 else GONE
            elif rank < iteration:
                fate = LATER if total != 0 else STAYS
            else:
                if len(waiting) > 0:
                    total += waiting[i]
                if record < 0:
                    fate = COME if total > 0 else LOST
                elif total > 0:
                    fate = SOONER
            if fate == SOONER or (fate == STAYS and rank == iteration and times[i] != 0):
                store(words, record * payload, iteration)
                store(words, record * payload + 1, total)
                mark_written(frame, record)
            out[i, 0], out[i, 1], out[i, 2], out[i, 3], out[i, 4] = fate, record, rank, count, total
    return out
