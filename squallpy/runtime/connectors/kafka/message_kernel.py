"""Messages of librdkafka, taken from its memory as columns: no object of Python's is made of one.

pointers   where each `rd_kafka_message_t` is
marks      per message and column of bytes: where it ends in the column, as Arrow has it
"""

from typing import Any

import numpy as np

from squallpy.runtime.formats.json_template import HIGH_BITS, LOW_BITS
from squallpy.runtime.formats.line_index import BYTES
from squallpy.runtime.kernels.intrinsics import call, copy_bytes, load, load8, load32, store8
from squallpy.runtime.kernels.kernel_compiler import VECTOR, address, kernel

ERROR, VALUE, VALUE_SIZE, KEY, KEY_SIZE, OFFSET = 0, 3, 4, 5, 6, 7  # words of a message
FEEDS, RETURNS = 10 * LOW_BITS, 13 * LOW_BITS  # words of line ends
GOOD, VALUE_BYTES, KEY_BYTES = range(3)  # words that `measure` fills


@kernel(f"int64({VECTOR}, int64, {VECTOR})")
def measure(pointers: Any, count: int, sizes: Any) -> int:
    """Count messages that are no errors, and the bytes of their values and keys; return the number of errors."""
    good, values, keys = 0, 0, 0
    for i in range(count):
        at = pointers[i]
        if load32(at, ERROR) == 0:
            good += 1
            values += load(at, VALUE_SIZE)
            keys += load(at, KEY_SIZE)
    sizes[GOOD], sizes[VALUE_BYTES], sizes[KEY_BYTES] = good, values, keys
    return count - good


@kernel(
    f"int64({VECTOR}, int64, int64, {VECTOR}, {VECTOR}, int32[::1], uint8[::1], boolean[::1], int32[::1], uint8[::1],"
    " boolean[::1])"
)
def take(
    pointers: Any, count: int, timestamp: int, offsets: Any, times: Any, value_ends: Any, values: Any,
    are_values: Any, key_ends: Any, keys: Any, are_keys: Any,
) -> int:  # fmt: skip
    """Copy messages that are no errors into columns, with their times by the function at `timestamp`."""
    row, value_end, key_end = 0, 0, 0
    value_ends[0], key_ends[0] = 0, 0
    for i in range(count):
        at = pointers[i]
        if load32(at, ERROR) != 0:
            continue
        offsets[row], times[row] = load(at, OFFSET), call(timestamp, at, 0)
        size, source = load(at, VALUE_SIZE), load(at, VALUE)
        copy_bytes(address(values) + value_end, source, size)
        value_end += size
        value_ends[row + 1], are_values[row] = value_end, source != 0
        size, source = load(at, KEY_SIZE), load(at, KEY)
        copy_bytes(address(keys) + key_end, source, size)
        key_end += size
        key_ends[row + 1], are_keys[row] = key_end, source != 0
        row += 1
    return row


@kernel(f"int64({VECTOR}, int64, int64)")
def release(pointers: Any, count: int, destroy: int) -> int:
    """Give messages back by the function at `destroy`."""
    for i in range(count):
        call(destroy, pointers[i], 0)
    return count


@kernel(f"int64({BYTES}, Array(int32, 1, 'C', readonly=True), int64, int64, int64, {VECTOR})")
def join_lines(data: Any, ends: Any, rows: int, out: int, size: int, starts: Any) -> int:
    """Write values as lines at an address, `size` bytes behind it, and where each begins; return where the last ends.

    Line ends within a value become spaces, and so does an empty one: a line of its own is then a row.
    """
    for row in range(rows):
        starts[row] = size
        length, source, to = ends[row + 1] - ends[row], address(data) + ends[row], out + size
        copy_bytes(to, source, length)
        found = np.int64(0)
        for i in range(length >> 3):  # a byte is 0 where the lowest that borrows is one
            word = load(source, i)
            feeds, returns = word ^ FEEDS, word ^ RETURNS
            found |= ((feeds - LOW_BITS) & ~feeds | (returns - LOW_BITS) & ~returns) & HIGH_BITS
        for i in range(length & ~7, length):
            if load8(source, i) == 10 or load8(source, i) == 13:
                found = np.int64(1)
        if found:
            for i in range(length):
                if load8(source, i) == 10 or load8(source, i) == 13:
                    store8(to, i, 32)
        size += length
        if length == 0:
            store8(out, size, 32)
            size += 1
        store8(out, size, 10)
        size += 1
    return size
