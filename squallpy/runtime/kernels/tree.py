"""The B+-tree under sorted indexes: rows in the order of their keys, and for each subtree the sum of its payloads.

    entry   key | payload | least, greatest prefix sum of the subtree, or its greatest height (if wanted) | child
    node    FAN entries side by side; beside them a header: count, level (0: leaf), neighbours on its level

An inner entry's key is a lower bound of its child's (for the first child: of nothing); its payload is the child's sum,
so the sum of any range is found along two paths, and so are the greatest height, which is one of the words of a key,
and the next record that is as high. All leaves are on one level. Keys are rows of signed words.

Source: Bayer, McCreight (1972), split on the way down; sums as in order-statistic trees, heights as in priority search
trees (McCreight, 1985).
"""

from typing import Final

import numpy as np

from squallpy.runtime.kernels import layout as at
from squallpy.runtime.kernels.area import HEAD
from squallpy.runtime.kernels.arithmetic import exact_add
from squallpy.runtime.kernels.compiled import (
    GIVEN_MATRIX,
    GIVEN_VECTOR,
    MATRIX,
    VECTOR,
    Vector,
    address,
    inlined,
    kernel,
)
from squallpy.runtime.kernels.hash_index import same
from squallpy.runtime.kernels.intrinsics import below, load, move, prefetch, store
from squallpy.runtime.kernels.payloads import add, copy, is_zero
from squallpy.runtime.kernels.regions import Words

FAN: Final = 32
LINE: Final = 64  # bytes that are fetched at a time
AHEAD: Final = 2  # how many rows before its own a node is fetched, where each row has its own
MOST_AHEAD: Final = 12  # and where leaves get several, as long as it takes to fill those before
DEPTH: Final = 12  # levels at most: nodes are at least a quarter full, but for a few
LOWEST: Final = -(2**63)  # no height is less

# Constants in the frame; KEY, PAYLOAD, LANES, PLACES, SCRATCH and RINGS stand where pools have them (see `layout`).
STRIDE: Final = 4  # words in an entry
KNOWN: Final = 6  # what entries know besides their sums: nothing, their EXTENTS, or the greatest of that word of keys

NOTHING: Final = 0
EXTENTS: Final = -1

# Regions, as offsets from PLACES.
ENTRIES: Final = 0
NODES: Final = 2

# A node's header.
COUNT: Final = 0
LEVEL: Final = 1
PREVIOUS: Final = 2  # + 1; 0: none
NEXT: Final = 3
HEADER: Final = 4

# Scalars in the head.
SIZE: Final = 1  # entries in leaves
ROOT: Final = 2  # + 1; 0: empty
TOP: Final = 3  # nodes ever used
FREE: Final = 4  # first free node + 1

# The scratch: the path to a leaf, how often keys were compared to find a place, and payloads that go up the path.
NODE: Final = 0  # of each step of the path
ENTRY: Final = 1  # which one it takes
BOUND: Final = 2  # where the key stands below which all rows of the node are; 0: there is none
STEP: Final = 3
COMPARED: Final = STEP * (DEPTH + 1)
RISING: Final = COMPARED + 1  # what the entry that a step takes has yet to be given


def spare(payload: int) -> int:
    """Words of the scratch, with payloads of so many."""
    return RISING + DEPTH * payload


@inlined
def _header(frame: Vector, node: int) -> int:
    return frame[frame[at.PLACES] + NODES] + 8 * HEADER * node


@inlined
def _count(frame: Vector, node: int) -> int:
    return load(_header(frame, node), COUNT)


@inlined
def _entry(frame: Vector, node: int, i: int) -> int:
    return frame[frame[at.PLACES] + ENTRIES] + 8 * frame[STRIDE] * (node * FAN + i)


@inlined
def _child(frame: Vector, node: int, i: int) -> int:
    return load(_entry(frame, node, i), frame[STRIDE] - 1)


@inlined
def _step(frame: Vector, depth: int) -> int:
    """Where in the frame a step of the path stands."""
    return frame[at.SCRATCH] + STEP * depth


@inlined
def _before(a: int, b: int, width: int) -> bool:
    """Is the key at `a` less than the one at `b`?"""
    for i in range(width):
        x, y = load(a, i), load(b, i)
        if x != y:
            return x < y
    return False


@inlined
def _counted(frame: Vector, comparisons: int) -> None:
    frame[frame[at.SCRATCH] + COMPARED] += comparisons


@inlined
def _first_not_below(frame: Vector, node: int, key: int, low: int) -> int:
    """Of the entries from `low` on."""
    high, tried = _count(frame, node), 0
    while low < high:
        middle = (low + high) >> 1
        tried += 1
        if _before(_entry(frame, node, middle), key, frame[at.KEY]):
            low = middle + 1
        else:
            high = middle
    _counted(frame, tried)
    return low


@inlined
def _first_above(frame: Vector, node: int, key: int, low: int, high: int) -> int:
    """Of the entries from `low` up to `high`."""
    tried = 0
    while low < high:
        middle = (low + high) >> 1
        tried += 1
        if _before(key, _entry(frame, node, middle), frame[at.KEY]):
            high = middle
        else:
            low = middle + 1
    _counted(frame, tried)
    return low


@inlined
def _end(frame: Vector, node: int, key: int, start: int) -> int:
    """The first entry above a key, looked for from `start` on: a few entries further takes a few comparisons."""
    low, high, step = start, _count(frame, node), 1
    while low + step <= high:
        _counted(frame, 1)
        if _before(key, _entry(frame, node, low + step - 1), frame[at.KEY]):
            high = low + step - 1
            break
        low, step = low + step, 2 * step
    return _first_above(frame, node, key, low, high)


@inlined
def _way(frame: Vector, node: int, key: int) -> int:
    """The entry of an inner node below which a key is, if anywhere."""
    return _first_above(frame, node, key, 1, _count(frame, node)) - 1


@inlined
def _move(frame: Vector, to: int, source: int, entries: int) -> None:
    """Copy entries from one address to another, which may overlap."""
    move(to, source, entries * frame[STRIDE])


@inlined
def _allocate(frame: Vector, level: int) -> int:
    head = frame[HEAD]
    node = load(head, FREE) - 1
    if node >= 0:
        store(head, FREE, load(_header(frame, node), NEXT))
    else:
        node = load(head, TOP)
        store(head, TOP, node + 1)
    header = _header(frame, node)
    store(header, COUNT, 0)
    store(header, LEVEL, level)
    store(header, PREVIOUS, 0)
    store(header, NEXT, 0)
    return node


@inlined
def _release(frame: Vector, node: int) -> None:
    """Give back a node, which leaves its level."""
    header, head = _header(frame, node), frame[HEAD]
    previous, following = load(header, PREVIOUS), load(header, NEXT)
    if previous != 0:
        store(_header(frame, previous - 1), NEXT, following)
    if following != 0:
        store(_header(frame, following - 1), PREVIOUS, previous)
    store(header, NEXT, load(head, FREE))
    store(head, FREE, node + 1)


@inlined
def _less_exact(a_lo: int, a_hi: int, b_lo: int, b_hi: int) -> bool:
    return a_hi < b_hi or (a_hi == b_hi and below(a_lo, b_lo) != 0)


@inlined
def _extend(frame: Vector, row: int, child: int) -> None:
    """The extents of the entry at `row`: for each lane between which values the sums up to each record below it are."""
    key, wide, leaf = frame[at.KEY], frame[at.PAYLOAD], load(_header(frame, child), LEVEL) == 0
    up, down = (0, 0) if leaf else (wide, 2 * wide)
    for word in range(2 * wide):
        store(row, key + wide + word, 0)
    at_lane = key
    for lane in range(frame[at.LANES]):
        lo, hi, a_lo, a_hi, b_lo, b_hi, wider = 0, 0, 0, 0, 0, 0, frame[at.RINGS + lane] != 0
        for i in range(_count(frame, child)):
            entry = _entry(frame, child, i) + 8 * at_lane
            x_lo, y_lo, z_lo = load(entry, up), load(entry, down), load(entry, 0)
            x_hi = load(entry, up + 1) if wider else x_lo >> 63
            y_hi = load(entry, down + 1) if wider else y_lo >> 63
            z_hi = load(entry, 1) if wider else z_lo >> 63
            if leaf:
                y_lo, y_hi = x_lo, x_hi
            x_lo, x_hi = exact_add(lo, hi, x_lo, x_hi)
            y_lo, y_hi = exact_add(lo, hi, y_lo, y_hi)
            lo, hi = exact_add(lo, hi, z_lo, z_hi)
            if i == 0 or _less_exact(x_lo, x_hi, a_lo, a_hi):
                a_lo, a_hi = x_lo, x_hi
            if i == 0 or _less_exact(b_lo, b_hi, y_lo, y_hi):
                b_lo, b_hi = y_lo, y_hi
        store(row, at_lane + wide, a_lo)
        store(row, at_lane + 2 * wide, b_lo)
        if wider:
            store(row, at_lane + wide + 1, a_hi)
            store(row, at_lane + 2 * wide + 1, b_hi)
        at_lane += 2 if wider else 1


@inlined
def _height(frame: Vector, node: int, i: int) -> int:
    """Of a record, or the greatest below an inner entry."""
    leaf = load(_header(frame, node), LEVEL) == 0
    return load(_entry(frame, node, i), frame[KNOWN] if leaf else frame[STRIDE] - 2)


@inlined
def _highest(frame: Vector, node: int, start: int, end: int, height: int) -> int:
    """The greatest height of entries `start` … `end − 1`, if it is more than one that is given."""
    _counted(frame, end - start)
    for i in range(start, end):
        height = max(height, _height(frame, node, i))
    return height


@inlined
def _learn(frame: Vector, row: int, child: int) -> None:
    """What the entry at `row` knows of its child besides the sum."""
    if frame[KNOWN] == EXTENTS:
        _extend(frame, row, child)
    elif frame[KNOWN] != NOTHING:
        store(row, frame[STRIDE] - 2, _highest(frame, child, 0, _count(frame, child), LOWEST))


@inlined
def _summarise(frame: Vector, node: int, i: int) -> None:
    """Payload of an inner entry, and what else it knows, anew."""
    row, child = _entry(frame, node, i), _child(frame, node, i)
    for word in range(frame[at.PAYLOAD]):
        store(row, frame[at.KEY] + word, 0)
    for j in range(_count(frame, child)):
        add(frame, row + 8 * frame[at.KEY], _entry(frame, child, j) + 8 * frame[at.KEY])
    _learn(frame, row, child)


@inlined
def _insert(frame: Vector, node: int, i: int) -> int:
    """Make room for an entry; its address."""
    count, row = _count(frame, node), _entry(frame, node, i)
    _move(frame, row + 8 * frame[STRIDE], row, count - i)
    store(_header(frame, node), COUNT, count + 1)
    return row


@inlined
def _delete(frame: Vector, node: int, i: int) -> None:
    count, row = _count(frame, node) - 1, _entry(frame, node, i)
    _move(frame, row, row + 8 * frame[STRIDE], count - i)
    store(_header(frame, node), COUNT, count)


@inlined
def _link(frame: Vector, left: int, right: int) -> None:
    """Put a new node behind another."""
    mine, other = _header(frame, left), _header(frame, right)
    following = load(mine, NEXT)
    store(other, NEXT, following)
    store(other, PREVIOUS, left + 1)
    store(mine, NEXT, right + 1)
    if following != 0:
        store(_header(frame, following - 1), PREVIOUS, right + 1)


@inlined
def _left_half(frame: Vector, node: int, key: int) -> int:
    """How many entries of a full node stay in it when a key comes: half, or all but one where the key is behind all
    that there are on this level, for then others behind it will follow."""
    last = load(_header(frame, node), NEXT) == 0 and _before(_entry(frame, node, FAN - 1), key, frame[at.KEY])
    return FAN - 1 if last else FAN // 2


@inlined
def _split(frame: Vector, node: int, i: int, stays: int) -> None:
    """Part the full child of entry `i` in two, the first of so many entries; there is room for another entry."""
    left = _child(frame, node, i)
    right = _allocate(frame, load(_header(frame, left), LEVEL))
    _move(frame, _entry(frame, right, 0), _entry(frame, left, stays), FAN - stays)
    store(_header(frame, left), COUNT, stays)
    store(_header(frame, right), COUNT, FAN - stays)
    _link(frame, left, right)
    row = _insert(frame, node, i + 1)
    copy(row, _entry(frame, right, 0), frame[at.KEY])
    store(row, frame[STRIDE] - 1, right)
    for j in range(i, i + 2):
        _summarise(frame, node, j)


@inlined
def _merge(frame: Vector, node: int, i: int) -> None:
    """Put the children of entries `i` and `i + 1` together, if they go into half a node."""
    left, right = _child(frame, node, i), _child(frame, node, i + 1)
    mine, theirs = _count(frame, left), _count(frame, right)
    if mine + theirs <= FAN // 2:
        row = _entry(frame, left, mine)
        _move(frame, row, _entry(frame, right, 0), theirs)
        if load(_header(frame, left), LEVEL) > 0:  # a first child's key bounds nothing
            copy(row, _entry(frame, node, i + 1), frame[at.KEY])
        store(_header(frame, left), COUNT, mine + theirs)
        _release(frame, right)
        _delete(frame, node, i + 1)
        _summarise(frame, node, i)


@inlined
def _shrink(frame: Vector, depth: int) -> None:
    """After an entry left a leaf: mend the path above it, which is left."""
    head = frame[HEAD]
    for d in range(depth - 1, -1, -1):
        _forget(frame, d)
        node, i = frame[_step(frame, d) + NODE], frame[_step(frame, d) + ENTRY]
        child = _child(frame, node, i)
        count = _count(frame, child)
        if count == 0:
            _release(frame, child)
            _delete(frame, node, i)
            continue
        _summarise(frame, node, i)
        if count < FAN // 4 and _count(frame, node) > 1:
            _merge(frame, node, max(i - 1, 0))
    root = load(head, ROOT) - 1
    while load(_header(frame, root), LEVEL) > 0 and _count(frame, root) == 1:
        child = _child(frame, root, 0)
        _release(frame, root)
        root = child
    if _count(frame, root) == 0:
        _release(frame, root)
        root = -1
    store(head, ROOT, root + 1)


@inlined
def _rising(frame: Vector, depth: int) -> int:
    """Where the payload stands that the entry of a step has yet to be given."""
    return address(frame) + 8 * (frame[at.SCRATCH] + RISING + frame[at.PAYLOAD] * depth)


@inlined
def _forget(frame: Vector, depth: int) -> None:
    """The entry of a step is to be given nothing."""
    for word in range(frame[at.PAYLOAD]):
        store(_rising(frame, depth), word, 0)


@inlined
def _rise(frame: Vector, depth: int) -> None:
    """Leave the node to which a step leads: its entry is given what it has yet to be, and so will those above."""
    entry, rising = (
        _entry(frame, frame[_step(frame, depth) + NODE], frame[_step(frame, depth) + ENTRY]),
        _rising(frame, depth),
    )
    add(frame, entry + 8 * frame[at.KEY], rising)
    _learn(frame, entry, load(entry, frame[STRIDE] - 1))
    if depth > 0:
        add(frame, _rising(frame, depth - 1), rising)
    _forget(frame, depth)


@inlined
def _goes_here(frame: Vector, key: int, depth: int) -> bool:
    """Is the key that of a row of this node, if of any, and has it room for one?"""
    _counted(frame, 1)
    node, bound = frame[_step(frame, depth) + NODE], frame[_step(frame, depth) + BOUND]
    return _count(frame, node) < FAN and (bound == 0 or _before(key, bound, frame[at.KEY]))


@inlined
def _begin(frame: Vector) -> None:
    """The path begins at the root, which is to have room for an entry."""
    head = frame[HEAD]
    node = load(head, ROOT) - 1
    if node < 0:
        node = _allocate(frame, 0)
        store(head, ROOT, node + 1)
    elif _count(frame, node) == FAN:
        top = _allocate(frame, load(_header(frame, node), LEVEL) + 1)
        row = _insert(frame, top, 0)
        copy(row, _entry(frame, node, 0), frame[at.KEY])
        store(row, frame[STRIDE] - 1, node)
        store(head, ROOT, top + 1)
        node = top
    frame[_step(frame, 0) + NODE], frame[_step(frame, 0) + ENTRY], frame[_step(frame, 0) + BOUND] = node, 0, 0


@inlined
def _fetch(frame: Vector, node: int, key: int, taken: int) -> None:
    """Fetch the child where a key goes, which is looked for soon, if it is behind the entry that is taken now."""
    i = 0 if key == 0 else _end(frame, node, key, taken + 1) - 1
    if i > taken:
        child = _child(frame, node, i)
        prefetch(_header(frame, child))
        for line in range(0, 8 * FAN * frame[STRIDE], LINE):
            prefetch(_entry(frame, child, 0) + line)


@inlined
def _ahead(frame: Vector, rows: int) -> int:
    """How many rows before its own a node is fetched for one of so many that come to a tree: a leaf has some 20
    entries."""
    return min(MOST_AHEAD, AHEAD + 3 * 20 * rows // max(1, load(frame[HEAD], SIZE)))


@inlined
def _later(rows: Vector, way: Vector, step: int) -> int:
    """The address of the row of a later step; 0: there is none."""
    return address(rows) + 8 * rows.shape[1] * way[step] if step < len(way) else 0


@inlined
def _descend(frame: Vector, key: int, depth: int, later: int) -> int:
    """From a node of the path, where a key goes, to the leaf of it, splitting full nodes; its depth.

    What the path took there had no key above this one, so its way is looked for from that entry on. Where the key of a
    `later` row goes another way (0: there is none), its node is fetched meanwhile.
    """
    step = _step(frame, depth)
    node = frame[step + NODE]
    while load(_header(frame, node), LEVEL) > 0:
        i = _end(frame, node, key, frame[step + ENTRY] + 1) - 1
        if _count(frame, _child(frame, node, i)) == FAN:
            _split(frame, node, i, _left_half(frame, _child(frame, node, i), key))
            if not _before(key, _entry(frame, node, i + 1), frame[at.KEY]):
                i += 1
        frame[step + ENTRY], bound = i, frame[step + BOUND]
        if i + 1 < _count(frame, node):
            bound = _entry(frame, node, i + 1)
        _fetch(frame, node, later, i)
        depth, step, node = depth + 1, step + STEP, _child(frame, node, i)
        frame[step + NODE], frame[step + ENTRY], frame[step + BOUND] = node, 0, bound
    return depth


@inlined
def _has_room(frame: Vector) -> bool:
    """For as many new nodes as one entry can need."""
    nodes, places = load(frame[HEAD], TOP) + DEPTH, frame[at.PLACES]
    return nodes * HEADER <= frame[places + NODES + 1] and nodes * FAN * frame[STRIDE] <= frame[places + ENTRIES + 1]


@kernel(f"{MATRIX}({GIVEN_MATRIX}, {GIVEN_VECTOR})")
def arranged(keys: Words, columns: Vector) -> Words:
    """The columns of keys in another order."""
    n, width = keys.shape
    rows = np.empty((n, width), np.int64)
    for row in range(n):
        for i in range(width):
            rows[row, i] = keys[row, columns[i]]
    return rows


@kernel(f"int64({VECTOR}, {GIVEN_MATRIX}, {GIVEN_MATRIX}, {GIVEN_VECTOR}, int64)")
def upsert_entries(frame: Vector, rows: Vector, payloads: Vector, way: Vector, start: int) -> int:
    """Add a payload to each key, by the `way` in which they ascend, from its step `start` on; up to which there was
    room, −1 if the widths are wrong.

    From one key to the next the path is only left as far up as it has to be, and brought up to date there.
    """
    n, key, wide, head = rows.shape[0], frame[at.KEY], frame[at.PAYLOAD], frame[HEAD]
    if rows.shape[1] != key or payloads.shape[1] != wide or payloads.shape[0] != n:
        return -1
    done, depth, leaf, i, ahead = start, 0, -1, 0, _ahead(frame, n)
    while done < n:
        given, payload = address(rows) + 8 * key * way[done], address(payloads) + 8 * wide * way[done]
        if leaf < 0 or not _goes_here(frame, given, depth):
            while depth > 0 and (leaf < 0 or not _goes_here(frame, given, depth)):
                depth -= 1
                _rise(frame, depth)
            if not _has_room(frame):
                break
            if depth == 0:
                _begin(frame)
            depth = _descend(frame, given, depth, _later(rows, way, done + ahead))
            leaf, i = frame[_step(frame, depth) + NODE], 0
        i = _first_not_below(frame, leaf, given, i)
        entry = _entry(frame, leaf, i)
        done += 1
        if i == _count(frame, leaf) or _before(given, entry, key):
            if is_zero(frame, payload):
                continue
            entry = _insert(frame, leaf, i)
            copy(entry, given, key)
            copy(entry + 8 * key, payload, wide)
            store(head, SIZE, load(head, SIZE) + 1)
        elif not add(frame, entry + 8 * key, payload):
            _delete(frame, leaf, i)
            store(head, SIZE, load(head, SIZE) - 1)
            if _count(frame, leaf) < FAN // 4:
                _shrink(frame, depth)
                leaf, depth = -1, 0
                continue
        if depth > 0:
            add(frame, _rising(frame, depth - 1), payload)
    while depth > 0:
        depth -= 1
        _rise(frame, depth)
    return done


@inlined
def _leaf(frame: Vector, key: int, later: int) -> int:
    """The leaf where a key is, if anywhere; −1 in an empty tree. Of a `later` key as in `_descend`."""
    node = load(frame[HEAD], ROOT) - 1
    while node >= 0 and load(_header(frame, node), LEVEL) > 0:
        i = _way(frame, node, key)
        _fetch(frame, node, later, i)
        node = _child(frame, node, i)
    return node


@inlined
def _holds(frame: Vector, leaf: int, key: int) -> bool:
    """Is the first entry that is not below a key in this leaf, and not its first, before which there may be others?"""
    _counted(frame, 2)
    last, wide = _entry(frame, leaf, _count(frame, leaf) - 1), frame[at.KEY]
    return _before(_entry(frame, leaf, 0), key, wide) and not _before(last, key, wide)


@kernel(f"Tuple(({VECTOR}, {VECTOR}))({VECTOR}, {GIVEN_MATRIX}, {GIVEN_MATRIX}, {GIVEN_VECTOR})")
def stretches_between(frame: Vector, lows: Vector, highs: Vector, way: Vector) -> tuple[Words, Words]:
    """For each row the place of the first entry with lows[row] ≤ its key ≤ highs[row], and how many there are.

    The bound above is looked for from the first entry on. Rows are looked at by the `way` in which their lower bounds
    ascend: they stay in a leaf, and what is asked twice is found once.
    """
    n, key, leaf, again, before = lows.shape[0], frame[at.KEY], -1, False, -1
    places, counts = np.zeros(n, np.int64), np.zeros(n, np.int64)
    for k in range(n):
        row = way[k]
        low, high = address(lows) + 8 * key * row, address(highs) + 8 * key * row
        low_before, high_before = address(lows) + 8 * key * before, address(highs) + 8 * key * before
        if before >= 0 and same(low, low_before, key) and same(high, high_before, key):
            places[row], counts[row] = places[before], counts[before]
            continue
        before = row
        if _before(high, low, key):
            continue
        if not again or not _holds(frame, leaf, low):
            found = _leaf(frame, low, _later(lows, way, k + AHEAD))
            if found < 0:
                continue
            again, leaf = found == leaf, found
        here, first = leaf, _first_not_below(frame, leaf, low, 0)
        if first == _count(frame, here):
            here, first = load(_header(frame, here), NEXT) - 1, 0
        places[row] = here * FAN + first
        while here >= 0:
            end = _end(frame, here, high, first)
            counts[row] += end - first
            if end < _count(frame, here):
                break
            here, first = load(_header(frame, here), NEXT) - 1, 0
    return places, counts


@kernel(f"Tuple(({VECTOR}, {VECTOR}))({VECTOR}, {GIVEN_VECTOR}, {GIVEN_VECTOR})")
def entries_from(frame: Vector, firsts: Vector, counts: Vector) -> tuple[Words, Words]:
    """(row, place of an entry) of as many entries as each row counts, from its first place on."""
    total, k = 0, 0
    for row in range(counts.shape[0]):
        total += counts[row]
    rows, places = np.empty(total, np.int64), np.empty(total, np.int64)
    for row in range(counts.shape[0]):
        leaf, first, left = firsts[row] // FAN, firsts[row] % FAN, counts[row]
        while left > 0:
            some = min(left, _count(frame, leaf) - first)
            for i in range(first, first + some):
                rows[k], places[k] = row, leaf * FAN + i
                k += 1
            left, first, leaf = left - some, 0, load(_header(frame, leaf), NEXT) - 1
    return rows, places


@kernel(f"Tuple(({MATRIX}, {MATRIX}))({VECTOR}, {GIVEN_VECTOR}, {GIVEN_MATRIX}, int64, int64)")
def entries_behind(frame: Vector, columns: Vector, after: Words, share: int, of: int) -> tuple[Words, Words]:
    """Keys and payloads of the first entries behind a key, `share` by `of` of those there are, rounded up, in their
    order; without a key (no row) of all. The i-th word of a key becomes that of `columns[i]`."""
    key, wide, node, first, left = frame[at.KEY], frame[at.PAYLOAD], load(frame[HEAD], ROOT) - 1, 0, 0
    while node >= 0 and load(_header(frame, node), LEVEL) > 0:
        node = _child(frame, node, _way(frame, node, address(after)) if after.shape[0] > 0 else 0)
    if node >= 0 and after.shape[0] > 0:
        first = _first_above(frame, node, address(after), 0, _count(frame, node))
    leaf = node
    while leaf >= 0:
        left += _count(frame, leaf)
        leaf = load(_header(frame, leaf), NEXT) - 1
    n = -(-(left - first) * share // of)
    keys, payloads, k = np.empty((n, key), np.int64), np.empty((n, wide), np.int64), 0
    while k < n:
        for i in range(first, min(_count(frame, node), first + n - k)):
            entry = _entry(frame, node, i)
            for word in range(key):
                keys[k, columns[word]] = load(entry, word)
            copy(address(payloads) + 8 * wide * k, entry + 8 * key, wide)
            k += 1
        first, node = 0, load(_header(frame, node), NEXT) - 1
    return keys, payloads


@kernel(f"{VECTOR}({GIVEN_MATRIX}, {GIVEN_MATRIX})")
def not_behind(rows: Vector, key: Vector) -> Words:
    """Which rows are not behind a key; without one, none."""
    n, width, found = rows.shape[0] if key.shape[0] > 0 else 0, rows.shape[1], 0
    out = np.empty(n, np.int64)
    for row in range(n):
        out[found] = row
        if not _before(address(key), address(rows) + 8 * width * row, width):
            found += 1
    return out[:found].copy()


@kernel(f"{VECTOR}({VECTOR}, {GIVEN_MATRIX}, {GIVEN_MATRIX}, int64)")
def ends_between(frame: Vector, lows: Vector, highs: Vector, last: int) -> Words:
    """The place of the first (last = 0) or last (1) entry with lows[row] ≤ its key ≤ highs[row]; −1: there is none."""
    n, key = lows.shape[0], frame[at.KEY]
    out = np.empty(n, np.int64)
    for row in range(n):
        low, high = address(lows) + 8 * key * row, address(highs) + 8 * key * row
        leaf = _leaf(frame, high if last != 0 else low, 0)
        out[row] = -1
        if leaf < 0:
            continue
        i = (
            _first_above(frame, leaf, high, 0, _count(frame, leaf)) - 1
            if last != 0
            else _first_not_below(frame, leaf, low, 0)
        )
        if last != 0 and i < 0:
            leaf = load(_header(frame, leaf), PREVIOUS) - 1
            i = _count(frame, leaf) - 1 if leaf >= 0 else -1
        elif last == 0 and i == _count(frame, leaf):
            leaf, i = load(_header(frame, leaf), NEXT) - 1, 0
        if leaf >= 0:
            entry = _entry(frame, leaf, i)
            if not _before(entry, low, key) and not _before(high, entry, key):
                out[row] = leaf * FAN + i
    return out


@inlined
def _gather(frame: Vector, node: int, start: int, end: int, target: int) -> None:
    """Add up the payloads of entries `start` … `end − 1`."""
    for i in range(start, end):
        add(frame, target, _entry(frame, node, i) + 8 * frame[at.KEY])


@inlined
def _gather_side(frame: Vector, node: int, key: int, target: int, right: bool) -> None:
    """Add up what is from a key on (right), or up to it (not), below a node."""
    while load(_header(frame, node), LEVEL) > 0:
        i = _way(frame, node, key)
        _gather(frame, node, i + 1 if right else 0, _count(frame, node) if right else i, target)
        node = _child(frame, node, i)
    start, end = 0, _count(frame, node)
    if right:
        start = _first_not_below(frame, node, key, 0)
    else:
        end = _first_above(frame, node, key, 0, end)
    _gather(frame, node, start, end, target)


@inlined
def _parting(frame: Vector, node: int, low: int, high: int) -> tuple[int, int, int]:
    """The node at which the ways to two keys part, and into which of its entries; in a leaf they have not: 0, 0."""
    while load(_header(frame, node), LEVEL) > 0:
        i, j = _way(frame, node, low), _way(frame, node, high)
        if i != j:
            return node, i, j
        node = _child(frame, node, i)
    return node, 0, 0


@kernel(f"void({VECTOR}, {GIVEN_MATRIX}, {GIVEN_MATRIX}, {VECTOR})")
def sums_between(frame: Vector, lows: Vector, highs: Vector, out: Vector) -> None:
    """For each row the sum of the payloads with lows[row] ≤ key ≤ highs[row]; `out` is zero before, rows after rows."""
    key, wide = frame[at.KEY], frame[at.PAYLOAD]
    for row in range(lows.shape[0]):
        low, high = address(lows) + 8 * key * row, address(highs) + 8 * key * row
        target, node = address(out) + 8 * wide * row, load(frame[HEAD], ROOT) - 1
        if node < 0 or _before(high, low, key):
            continue
        node, i, j = _parting(frame, node, low, high)
        if i == j:
            first = _first_not_below(frame, node, low, 0)
            _gather(frame, node, first, _first_above(frame, node, high, first, _count(frame, node)), target)
        else:
            _gather(frame, node, i + 1, j, target)
            _gather_side(frame, _child(frame, node, i), low, target, True)
            _gather_side(frame, _child(frame, node, j), high, target, False)


@kernel(f"{VECTOR}({VECTOR}, {GIVEN_VECTOR})")
def first_places(frame: Vector, places: Vector) -> Words:
    """For the place of each entry that of the first record below it, or itself in a leaf."""
    out = np.empty(places.shape[0], np.int64)
    for row in range(places.shape[0]):
        place = places[row]
        level = load(_header(frame, place // FAN), LEVEL)
        for _ in range(level):
            place = _child(frame, place // FAN, place % FAN) * FAN
        out[row] = place
    return out


@kernel(f"Tuple(({VECTOR}, {VECTOR}))({VECTOR}, {GIVEN_VECTOR})")
def places_below(frame: Vector, nodes: Vector) -> tuple[Words, Words]:
    """All (row, place) of the entries in each of the nodes."""
    total = 0
    for row in range(nodes.shape[0]):
        total += _count(frame, nodes[row])
    rows, places, k = np.empty(total, np.int64), np.empty(total, np.int64), 0
    for row in range(nodes.shape[0]):
        for i in range(_count(frame, nodes[row])):
            rows[k], places[k] = row, nodes[row] * FAN + i
            k += 1
    return rows, places


@kernel(f"void({VECTOR}, {GIVEN_VECTOR}, {GIVEN_VECTOR}, {VECTOR}, {VECTOR}, {VECTOR})")
def extents_of(frame: Vector, rows: Vector, places: Vector, before: Vector, least: Vector, most: Vector) -> None:
    """Between which values the prefix sums of the records below each entry are, where `before` stands in front of it.

    `before` gives, for each of the nodes that `rows` tells, what is before it; each entry's turns into what is before
    its own: `least` and `most` come out, `before` has room for all. All hold rows of payload words side by side.
    """
    key, wide = frame[at.KEY], frame[at.PAYLOAD]
    up, down = key, key
    for k in range(rows.shape[0]):
        entry = _entry(frame, places[k] // FAN, places[k] % FAN)
        if load(_header(frame, places[k] // FAN), LEVEL) > 0:
            up, down = key + wide, key + 2 * wide
        here = address(before) + 8 * wide * k
        low, high = address(least) + 8 * wide * k, address(most) + 8 * wide * k
        if k > 0 and rows[k] == rows[k - 1]:
            last = _entry(frame, places[k - 1] // FAN, places[k - 1] % FAN)
            copy(here, address(before) + 8 * wide * (k - 1), wide)
            add(frame, here, last + 8 * key)
        copy(low, entry + 8 * up, wide)
        copy(high, entry + 8 * down, wide)
        add(frame, low, here)
        add(frame, high, here)


@inlined
def _highest_side(frame: Vector, node: int, key: int, height: int, right: bool) -> int:
    """The greatest height of what is from a key on (right), or up to it (not), below a node, if it is more than one."""
    while load(_header(frame, node), LEVEL) > 0:
        i = _way(frame, node, key)
        height = _highest(frame, node, i + 1 if right else 0, _count(frame, node) if right else i, height)
        node = _child(frame, node, i)
    start, end = 0, _count(frame, node)
    if right:
        start = _first_not_below(frame, node, key, 0)
    else:
        end = _first_above(frame, node, key, 0, end)
    return _highest(frame, node, start, end, height)


@inlined
def _as_high(frame: Vector, node: int, start: int, end: int, height: int, last: int) -> int:
    """The first (or last) of entries `start` … `end − 1` that is as high; −1 if none is."""
    for k in range(end - start):
        i = end - 1 - k if last != 0 else start + k
        _counted(frame, 1)
        if _height(frame, node, i) >= height:
            return i
    return -1


@inlined
def _next_as_high(frame: Vector, key: int, height: int, last: int, beyond: int) -> int:
    """The place of the first record from a key on (last = 0), or the last one up to it (1), that is as high as is
    asked, −1 if there is none; `beyond`: not that of the key itself.

    On the way down to the key it is noted where a subtree beside it has one; if the leaf has none, it is in the last.
    """
    node, other, there = load(frame[HEAD], ROOT) - 1, -1, -1
    if node < 0:
        return -1
    while load(_header(frame, node), LEVEL) > 0:
        i = _way(frame, node, key)
        start, end = (0, i) if last != 0 else (i + 1, _count(frame, node))
        found = _as_high(frame, node, start, end, height, last)
        if found >= 0:
            other, there = node, found
        node = _child(frame, node, i)
    start, end = 0, _count(frame, node)
    if (last != 0) == (beyond != 0):
        bound = _first_not_below(frame, node, key, 0)
    else:
        bound = _first_above(frame, node, key, 0, end)
    if last != 0:
        end = bound
    else:
        start = bound
    found = _as_high(frame, node, start, end, height, last)
    if found >= 0:
        return node * FAN + found
    if other < 0:
        return -1
    node = other
    while load(_header(frame, node), LEVEL) > 0:
        node = _child(frame, node, there)
        there = _as_high(frame, node, 0, _count(frame, node), height, last)
    return node * FAN + there


@kernel(f"{VECTOR}({VECTOR}, {GIVEN_MATRIX}, {GIVEN_MATRIX})")
def highest_between(frame: Vector, lows: Vector, highs: Vector) -> Words:
    """The place of the first of the highest entries with lows[row] ≤ its key ≤ highs[row]; −1 where there is none."""
    n, key = lows.shape[0], frame[at.KEY]
    out = np.full(n, -1, np.int64)
    for row in range(n):
        low, high = address(lows) + 8 * key * row, address(highs) + 8 * key * row
        node, height = load(frame[HEAD], ROOT) - 1, LOWEST
        if node < 0 or _before(high, low, key):
            continue
        node, i, j = _parting(frame, node, low, high)
        if i == j:
            first = _first_not_below(frame, node, low, 0)
            height = _highest(frame, node, first, _first_above(frame, node, high, first, _count(frame, node)), height)
        else:
            height = _highest(frame, node, i + 1, j, height)
            height = _highest_side(frame, _child(frame, node, i), low, height, True)
            height = _highest_side(frame, _child(frame, node, j), high, height, False)
        place = _next_as_high(frame, low, height, 0, 0)
        if place >= 0 and not _before(high, _entry(frame, place // FAN, place % FAN), key):
            out[row] = place
    return out


@kernel(
    f"Tuple(({VECTOR}, {VECTOR}))"
    f"({VECTOR}, {GIVEN_MATRIX}, {GIVEN_MATRIX}, {GIVEN_VECTOR}, {GIVEN_VECTOR}, int64, int64)"
)
def ascents(
    frame: Vector, starts: Vector, ends: Vector, froms: Vector, tops: Vector, last: int, steps: int
) -> tuple[Words, Words]:
    """(row, place) of the entries that one meets going up from starts[row], which is not among them, to ends[row],
    onwards (last = 0) or back (1): the next one whose height is froms[row] or more, then each that is higher than the
    one before, or going back as high, as long as they are no higher than tops[row]; no more than so many `steps`.
    """
    n, key, found = starts.shape[0], frame[at.KEY], 0
    rows, places = np.empty(2 * n + 1, np.int64), np.empty(2 * n + 1, np.int64)
    for row in range(n):
        here, end = address(starts) + 8 * key * row, address(ends) + 8 * key * row
        height, left = froms[row], steps
        while left > 0 and height <= tops[row]:
            place = _next_as_high(frame, here, height, last, 1)
            if place < 0:
                break
            here = _entry(frame, place // FAN, place % FAN)
            height = _height(frame, place // FAN, place % FAN)
            past = _before(here, end, key) if last != 0 else _before(end, here, key)
            if past or height > tops[row]:
                break
            if found == len(rows):
                rows, places = np.append(rows, np.empty_like(rows)), np.append(places, np.empty_like(places))
            rows[found], places[found] = row, place
            found, left = found + 1, left - 1
            if last == 0:
                if height == tops[row]:
                    break
                height += 1
    return rows[:found].copy(), places[:found].copy()
