"""Small hash tables, many in one arena: of keys, of words that begin with a key, or of pairs of such a word and one.

    head of a table   first unit of its block, and a flag | size class, entries
    block             1, 2, 4, 8, … units of 16 bytes: in each 4 keys, 2 words, or 1 pair

A block consists of buckets of a cache line, or is a part of one. A key stands in its bucket, or, if that is full, in
the next one that is not, so a search compares a line at once and seldom goes on; what goes out of a full bucket is
replaced by what it sent on. So what belongs to one owner is in few lines, which are neighbours. Key 0 is none; a key
may have several words. Blocks that a table has grown out of are free for others of their class.

Source: Knuth, *The Art of Computer Programming* 3, §6.4, on buckets; Bronson, Shi, *F14* (2019), for comparing a line.
"""

from typing import Final

from squallpy.runtime.kernels.intrinsics import load, load32, lowest, store, store32
from squallpy.runtime.kernels.kernel_compiler import inlined
from squallpy.runtime.kernels.line_addresses import GOLDEN, HALF, KEY, LINE, part_eight, pick_eight
from squallpy.runtime.kernels.line_comparison import equal32, equal64

KEYS: Final = 0  # kinds of entries: 4 bytes shifted by these
WORDS: Final = 1
PAIRS: Final = 2
UNIT: Final = 16
OWNED: Final = 1  # flag of heads, for callers
CLASSES: Final = 40
STATE: Final = 1 + CLASSES
"""Words of an arena's state: units that were ever used, and the first free block + 1 of each class."""
ROOM: Final = 8  # times its size, a table that grows may take so much of an arena

_LENGTH: Final = 0xFFFFFFFF


@inlined
def units_of(size_class: int) -> int:
    """Return the units of a block."""
    return 1 << size_class


@inlined
def places_of(head: int, kind: int) -> int:
    """Return how many places a table has; 0 if it has no block."""
    shape = load(head, 1) >> 32
    return 4 * units_of(shape - 1) >> kind if shape > 0 else 0


@inlined
def block_of(head: int, arena: int) -> int:
    """Return the address of a table's block, if it has one."""
    return arena + UNIT * (load(head, 0) >> 1)


@inlined
def length_of(head: int) -> int:
    """Return how many entries a table has."""
    return load(head, 1) & _LENGTH


@inlined
def bucket_among(key: int, buckets: int) -> int:
    """Return the number of a key's bucket: twice as many buckets have two for each.

    NB: products of halves of words, of which a processor makes several at once.
    """
    return (((key & KEY) * GOLDEN & HALF) * (buckets & HALF)) >> 32


@inlined
def bucket_of(key: int, places: int, kind: int) -> int:
    """Return the number of a key's bucket."""
    return bucket_among(key, places >> (4 - kind))


@inlined
def line_of(table: int, places: int, key: int, kind: int) -> int:
    """Return the address of the cache line where a key stands, or one behind it."""
    return table + LINE * bucket_of(key, places, kind)


@inlined
def next_bucket(bucket: int, places: int, kind: int) -> int:
    """Return the bucket in which those stand that one had no room for."""
    return bucket + 1 if (bucket + 1) << (4 - kind) < places else 0


@inlined
def matches(table: int, places: int, bucket: int, key: int, kind: int) -> int:
    """Find a key, or 0, in a bucket: a bit for each place of a bucket; of PAIRS it is every other bit."""
    at = table + LINE * bucket
    if kind == KEYS:
        found = equal32(at, key)
    elif kind == WORDS:
        found = equal64(at, key, KEY)
    else:
        found = equal64(at, key, KEY) & 0x55
    return found if places >> (4 - kind) > 0 else found & ((1 << (2 * places if kind == PAIRS else places)) - 1)


@inlined
def first_of(found: int, bucket: int, kind: int) -> int:
    """Return the place of the first match in a bucket."""
    return (bucket << (4 - kind)) + (lowest(found) >> 1 if kind == PAIRS else lowest(found))


@inlined
def key_at(table: int, at: int, kind: int) -> int:
    """Return the key at a place, or 0."""
    return load32(table, at) if kind == KEYS else load(table, at << (kind - 1)) & KEY


@inlined
def is_full(length: int, places: int, kind: int) -> bool:
    """True if there is no room for one more entry: half of them are taken, or all of what is no more than a line."""
    return length >= places if places >> (5 - kind) == 0 else 2 * length >= places


@inlined
def class_for(entries: int, kind: int) -> int:
    """Return the least class with room for so many entries."""
    size_class = 0
    while is_full(entries - 1, 4 * units_of(size_class) >> kind, kind):
        size_class += 1
    return size_class


@inlined
def _copy(table: int, at: int, target: int, there: int, kind: int) -> None:
    if kind == KEYS:
        store32(target, there, load32(table, at))
        return
    store(target, there << (kind - 1), load(table, at << (kind - 1)))
    if kind == PAIRS:
        store(target, 2 * there + 1, load(table, 2 * at + 1))


@inlined
def take_block(state: int, arena: int, size_class: int) -> int:
    """Take a block, all zero, from those that are free or from the top, where there is room; its first unit."""
    block = _take_units(state, arena, size_class)
    for i in range(2 * units_of(size_class)):
        store(arena + UNIT * block, i, 0)
    return block


@inlined
def _take_units(state: int, arena: int, size_class: int) -> int:
    """Take a block like `take_block`, of arbitrary words.

    What is less than a line is a part of one, whose other parts are free then.
    """
    vacant, units = load(state, 1 + size_class), units_of(size_class)
    if vacant != 0:
        block = vacant - 1
        store(state, 1 + size_class, load(arena + UNIT * block, 0))
    else:
        block = load(state, 0)
        store(state, 0, block + max(units, 4))
        for other in range(block + units, block + 4, units):
            store(arena + UNIT * other, 0, load(state, 1 + size_class))
            store(state, 1 + size_class, other + 1)
    return block


@inlined
def give_block(head: int, state: int, arena: int) -> None:
    """Give back the block of a table, if it has one."""
    shape = load(head, 1) >> 32
    if shape > 0:
        store(block_of(head, arena), 0, load(state, shape))
        store(state, shape, (load(head, 0) >> 1) + 1)


@inlined
def set_block(head: int, block: int, size_class: int, flag: int) -> None:
    """Let a table have another block; class −1: none."""
    store(head, 0, block << 1 | flag)
    store(head, 1, (size_class + 1) << 32 | length_of(head))


@inlined
def free_place(table: int, places: int, key: int, kind: int) -> int:
    """Find the first free place for a key."""
    bucket = bucket_of(key, places, kind)
    free = matches(table, places, bucket, 0, kind)
    while free == 0:
        bucket = next_bucket(bucket, places, kind)
        free = matches(table, places, bucket, 0, kind)
    return first_of(free, bucket, kind)


@inlined
def _double(table: int, places: int, target: int) -> None:
    """Copy words to a table with twice as many buckets: those of a bucket to two of them, in order.

    The other way, to look for a free place for each, waits for the word before to be stored. Words that their own
    bucket had no room for are listed where the table was, whose lines are read by then.
    """
    buckets, left = places >> 3, 0
    for b in range(buckets):
        left += part_eight(table + LINE * b, 2 * buckets, 2 * b, target + 2 * LINE * b, table + 8 * left)
    _enter_words(table, left, target, 2 * places)


@inlined
def _move_words(table: int, places: int, target: int, size: int) -> None:
    """Copy words to a table of zeros of any size, which are first listed where they were."""
    found = 0
    for b in range(places >> 3):
        found += pick_eight(table + LINE * b, 8, KEY, -1, table + 8 * found)
    _enter_words(table, found, target, size)


@inlined
def _enter_words(words: int, count: int, table: int, places: int) -> None:
    """Enter words of a list in a table."""
    for i in range(count):
        word = load(words, i)
        store(table, free_place(table, places, word & KEY, WORDS), word)


@inlined
def resize(head: int, state: int, arena: int, size_class: int, kind: int) -> None:
    """Move the entries of a table to a block of another class, for which there is room; −1: there are none."""
    places, table, block = places_of(head, kind), block_of(head, arena), 0
    if size_class >= 0:
        size = 4 * units_of(size_class) >> kind
        if kind == WORDS and places >= 8 and size == 2 * places:
            block = _take_units(state, arena, size_class)
            _double(table, places, arena + UNIT * block)
        else:
            block = take_block(state, arena, size_class)
            target = arena + UNIT * block
            if kind == WORDS and places >= 8:
                _move_words(table, places, target, size)
            else:
                for i in range(places):
                    key = key_at(table, i, kind)
                    if key != 0:
                        _copy(table, i, target, free_place(target, size, key, kind), kind)
    give_block(head, state, arena)
    set_block(head, block, size_class, load(head, 0) & OWNED)


@inlined
def enter(head: int, state: int, arena: int, key: int, kind: int) -> int:
    """Take a free place for a key, behind others that it has, in a table that grows if need be.

    Returned is the place, at which the caller has to store the key.
    """
    while is_full(length_of(head), places_of(head, kind), kind):
        resize(head, state, arena, load(head, 1) >> 32, kind)
    store(head, 1, load(head, 1) + 1)
    return free_place(block_of(head, arena), places_of(head, kind), key, kind)


@inlined
def find(table: int, places: int, key: int, kind: int) -> int:
    """Find the first place of a key in a table that has a block, or −1."""
    bucket = start = bucket_of(key, places, kind)
    while True:
        found = matches(table, places, bucket, key, kind)
        if found != 0:
            return first_of(found, bucket, kind)
        if matches(table, places, bucket, 0, kind) != 0:
            return -1
        bucket = next_bucket(bucket, places, kind)
        if bucket == start:
            return -1


@inlined
def drop(head: int, arena: int, at: int, kind: int) -> None:
    """Take out the entry at a place, for which one comes that its bucket, if it was full, sent on."""
    places, table = places_of(head, kind), block_of(head, arena)
    bucket, hole, buckets = at >> (4 - kind), at, places >> (4 - kind)
    while buckets > 1 and matches(table, places, bucket, 0, kind) == 0:
        behind, found = bucket, False
        while not found:
            behind = next_bucket(behind, places, kind)
            if behind == bucket:
                break
            for there in range(behind << (4 - kind), (behind + 1) << (4 - kind)):
                key = key_at(table, there, kind)
                if key != 0:
                    far, near = behind - bucket_of(key, places, kind), behind - bucket
                    if (far if far >= 0 else far + buckets) >= (near if near >= 0 else near + buckets):
                        found = True
                        was_full = matches(table, places, behind, 0, kind) == 0
                        _copy(table, there, table, hole, kind)
                        hole = there
                        break
            if not found and matches(table, places, behind, 0, kind) != 0:
                break
        if not found or not was_full:
            break
        bucket = behind
    if kind == KEYS:
        store32(table, hole, 0)
    else:
        store(table, hole << (kind - 1), 0)
    store(head, 1, load(head, 1) - 1)


@inlined
def shrink(head: int, state: int, arena: int, kind: int) -> None:
    """Move a table to a smaller block if it is nearly empty, and give its block back if it is empty."""
    length, places = length_of(head), places_of(head, kind)
    if length == 0:
        if places > 0:
            resize(head, state, arena, -1, kind)
    elif places >= 32 and 10 * length < places:
        resize(head, state, arena, class_for(2 * length, kind), kind)
