"""The first groups of an ordered result: where those belong that a batch changed.

known [[key 3, …], [key 8, …]]  with  key 5   →   [[key 3, …], [key 5, …], [key 8, …]]

The words of a group, its key or its payload, are those of the first expression of ORDER BY, so no value is made. What
words do not tell is left to a sort: groups that are equal there, or NULL.
"""

from typing import Final

import numpy as np

from squallpy.base.keys import NULL
from squallpy.runtime.kernels.intrinsics import below, load, store
from squallpy.runtime.kernels.kernel_compiler import GIVEN_MATRIX, MATRIX, VECTOR, Vector, address, inlined, kernel
from squallpy.runtime.kernels.memory_regions import Words
from squallpy.runtime.kernels.payload_arithmetic import copy
from squallpy.runtime.kernels.stored_keys import same

# Words of an order.
KIND: Final = 0
DOWN: Final = 1  # 1: descending
PLACE: Final = 2  # of the value: of the key, or of the first word in the payload
COUNT: Final = 3  # word of the payload that counts values, of which none is NULL
ROWS: Final = 4  # that counts rows: a group without any is not printed
REPEATS: Final = 5  # 1: each row is printed, not each group once
MERGES: Final = 6  # 1: how often groups are printed is known by these words
BARRED: Final = 7  # there is a bar, behind which no group is known: PLAIN, HIDDEN if words do not tell its value
BAR: Final = 8  # its value, as two words that are compared
ORDER: Final = 10
NO_BAR, PLAIN, HIDDEN = range(3)
NO_VALUE, OF_KEY, OF_WORD, OF_SUM = range(4)  # kinds: values are no words, keys, words, sums of two words

# What is told of a merge.
GROUPS: Final = 0  # how many there are, LEFT if nothing is done
DIFFERS: Final = 1  # the first that is another than before; as many as there are if none is
TIMES: Final = 2  # how many rows are printed of all
NEAR: Final = 3  # how many of those that changed may be, or have been, among the known ones
TOLD: Final = 4
LEFT: Final = -1

FEW: Final = 32  # groups that are merged, each of which is compared with all that are known


@inlined
def _value(order: Vector, key: int, payload: int) -> tuple[bool, int, int]:
    """Return whether a group has a value that words tell, and this as two words, the second without a sign."""
    kind, place, down = order[KIND], order[PLACE], -order[DOWN]
    high, low, is_known = 0, 0, kind != NO_VALUE
    if kind == OF_KEY:
        high = load(key, place)
        is_known = high != NULL
    elif kind == OF_WORD:
        high = load(payload, place)
        is_known = load(payload, order[COUNT]) != 0
    elif kind == OF_SUM:
        low, high = load(payload, place), load(payload, place + 1)
        is_known = load(payload, order[COUNT]) != 0
    return is_known, high ^ down, low ^ down


@inlined
def _compare(high: int, low: int, other_high: int, other_low: int) -> int:
    """Return −1, 0 or 1 where a value is before, beside or behind another."""
    if high != other_high:
        return -1 if high < other_high else 1
    return 0 if low == other_low else -1 if below(low, other_low) != 0 else 1


@inlined
def _is_near(order: Vector, key: int, payload: int, broad: int) -> bool:
    """True if a group is perhaps not behind the bar; one whose payload is 0 is none."""
    some = 0
    for i in range(broad):
        some |= load(payload, i)
    if some == 0:
        return False
    is_known, high, low = _value(order, key, payload)
    return order[BARRED] != PLAIN or not is_known or _compare(high, low, order[BAR], order[BAR + 1]) <= 0


@inlined
def _times(order: Vector, payload: int) -> int:
    """Return how often a group is printed."""
    rows = load(payload, order[ROWS])
    return max(rows, 0) if order[REPEATS] != 0 else 1 if rows != 0 else 0


@kernel(f"void({VECTOR}, {GIVEN_MATRIX}, {GIVEN_MATRIX})")
def set_bar(order: Vector, key: Vector, payload: Vector) -> None:
    """Let a group be the bar."""
    is_known, order[BAR], order[BAR + 1] = _value(order, address(key), address(payload))
    order[BARRED] = PLAIN if is_known else HIDDEN


@kernel(f"{VECTOR}({VECTOR}, {GIVEN_MATRIX}, {GIVEN_MATRIX})")
def near_groups(order: Vector, keys: Vector, payloads: Vector) -> Words:
    """Number the groups that are perhaps not behind the bar."""
    found, n, width, broad = np.empty(len(keys), np.int64), 0, keys.shape[1], payloads.shape[1]
    for row in range(len(keys)):
        found[n] = row
        n += _is_near(order, address(keys) + 8 * row * width, address(payloads) + 8 * row * broad, broad)
    return found[:n].copy()


@kernel(f"{MATRIX}({VECTOR}, {GIVEN_MATRIX}, {VECTOR}, int64, int64, int64, {VECTOR})")
def merge_groups(
    order: Vector, known: Vector, changed: Vector, count: int, width: int, parts: int, told: Vector
) -> Words:
    """Put groups that changed among the known ones, in place of what these were; LEFT if that needs a sort.

    Args:
        known: Keys, payloads, and how often groups are printed, in order.
        changed: Keys, then payloads before, then after.
        count: How many there are.
        width: Words of a key.
        parts: 1: there are no payloads before.
        told: What is told of the merge.
    """
    n, wide = known.shape
    broad, base, keys, near = wide - width - 1, address(known), address(changed), np.empty(FEW, np.int64)
    before, after = keys + 8 * count * width, keys + 8 * count * (width + (parts - 1) * broad)
    told[GROUPS], told[NEAR], m, come, merged = LEFT, 0, 0, 0, np.empty((0, wide), np.int64)
    for row in range(count):
        key, old, new = keys + 8 * row * width, before + 8 * row * broad, after + 8 * row * broad
        if parts == 1 or _is_near(order, key, old, broad) or _is_near(order, key, new, broad):
            if m < FEW:
                near[m] = row
            m += 1
    told[NEAR] = m
    if m == 0 or m > FEW or order[MERGES] == 0 or order[BARRED] == HIDDEN:
        return merged
    gone, coming = np.zeros(n, np.int64), np.empty(m, np.int64)
    for j in range(m):
        key, payload = keys + 8 * near[j] * width, after + 8 * near[j] * broad
        for i in range(n):
            if same(base + 8 * i * wide, key, width):
                gone[i] = 1
                break
        if _times(order, payload) == 0:
            continue
        is_known, high, low = _value(order, key, payload)
        if not is_known:
            return merged
        if order[BARRED] == PLAIN:
            beside = _compare(high, low, order[BAR], order[BAR + 1])
            if beside == 0:
                return merged
            if beside > 0:
                continue
        at = come
        while at > 0:
            other = coming[at - 1]
            _, other_high, other_low = _value(order, keys + 8 * other * width, after + 8 * other * broad)
            beside = _compare(high, low, other_high, other_low)
            if beside == 0:
                return merged
            if beside > 0:
                break
            coming[at] = other
            at -= 1
        coming[at] = near[j]
        come += 1
    merged = np.empty((n + come, wide), np.int64)
    into, groups, j, differs, times = address(merged), 0, 0, -1, 0
    for i in range(n + 1):
        here = base + 8 * i * wide
        if i < n and gone[i] != 0:
            continue
        is_known, high, low = _value(order, here, here + 8 * width) if i < n else (True, 0, 0)
        if not is_known:
            return merged
        while j < come:
            key, payload = keys + 8 * coming[j] * width, after + 8 * coming[j] * broad
            _, new_high, new_low = _value(order, key, payload)
            beside = _compare(new_high, new_low, high, low) if i < n else -1
            if beside == 0:
                return merged
            if beside > 0:
                break
            there = into + 8 * groups * wide
            copy(there, key, width)
            copy(there + 8 * width, payload, broad)
            store(there, wide - 1, _times(order, payload))
            differs = _first_other(differs, groups, there, base, n, wide)
            times += load(there, wide - 1)
            groups, j = groups + 1, j + 1
        if i < n:
            there = into + 8 * groups * wide
            copy(there, here, wide)
            differs = _first_other(differs, groups, there, base, n, wide)
            times += load(there, wide - 1)
            groups += 1
    told[GROUPS], told[DIFFERS], told[TIMES] = groups, differs if differs >= 0 else groups, times
    return merged


@inlined
def _first_other(differs: int, group: int, there: int, base: int, n: int, wide: int) -> int:
    """Return the first group that is another than the known one at its place, up to this one."""
    if differs >= 0 or (group < n and same(there, base + 8 * group * wide, wide)):
        return differs
    return group
