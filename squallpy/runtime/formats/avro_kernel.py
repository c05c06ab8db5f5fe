"""Records of Avro, decoded to columns by a program of their schema.

code      instructions of three numbers: what is read, the column that gets it or −1, and what the instruction needs
words     for each column and row: a number or its bits, where a text begins, the low half of a decimal
lengths   for each column and row: how long a text is, the high half of a decimal
counts    items that are left in the arrays and maps around a place, by their depth
"""

from typing import Any

import numpy as np

from squallpy.runtime.formats.line_index import BYTES
from squallpy.runtime.kernels.kernel_compiler import GIVEN_VECTOR, MATRIX, VECTOR, kernel

LONG, BYTE_STRING, DECIMAL, UNION, ITEMS, BOOLEAN, FLOAT, DOUBLE = range(8)
FIXED, FIXED_DECIMAL, PRESENT, JUMP, NEXT, END = range(8, 14)


@kernel(
    f"int64({BYTES}, {GIVEN_VECTOR}, {GIVEN_VECTOR}, {GIVEN_VECTOR}, {GIVEN_VECTOR}, {VECTOR}, {MATRIX},"
    f" {MATRIX}, uint8[:, ::1], uint8[::1])"
)
def decode(
    data: Any, starts: Any, ends: Any, code: Any, jumps: Any, counts: Any, words: Any, lengths: Any, valid: Any,
    wrong: Any,
) -> int:  # fmt: skip
    """Decode records, mark values that are there and records that are none, and return how many are none.

    Records with one start and end for all follow each other; behind one that is none nothing can be found.
    """
    faults, rows = 0, len(wrong)
    follow, at = len(starts) < rows, np.int64(0)
    for row in range(rows):
        end, pc, is_good = ends[0 if follow else row], 0, faults == 0 or not follow
        is_size = False
        if not follow:
            at = starts[row]
        while is_good:
            op, column, extra = code[pc], code[pc + 1], code[pc + 2]
            pc += 3
            number = np.int64(0)
            if op <= ITEMS:  # it begins with a number
                bits, shift, byte = np.uint64(0), np.uint64(0), np.uint64(128)
                while byte >= np.uint64(128):
                    if at >= end or shift > np.uint64(63):
                        is_good = False
                        break
                    byte = np.uint64(data[at])
                    at += 1
                    bits |= (byte & np.uint64(127)) << shift
                    shift += np.uint64(7)
                number = np.int64(bits >> np.uint64(1)) ^ -np.int64(bits & np.uint64(1))
                if not is_good:
                    break
            if op == LONG:
                if extra and not 0 <= number < extra:  # it is none of the symbols of an enum
                    is_good = False
                elif column >= 0:
                    words[column, row] = number
                    valid[column, row] = 1
            elif op == UNION:
                if number < 0 or number >= column:
                    is_good = False
                else:
                    pc = jumps[extra + number]
            elif op == ITEMS:  # blocks of so many, each after its bytes where that is negative; none behind the last
                if is_size:
                    is_good = bool(0 <= number <= end - at)
                    at += number
                    pc -= 3
                    is_size = False
                elif number > end - at:  # NB: a count that no one could have written is not counted down
                    is_good = False
                elif number == 0:
                    pc = extra
                elif number < 0:
                    pc -= 3
                    is_size = True
                else:
                    counts[column] = number
            elif op == NEXT:
                counts[column] -= 1
                pc = extra + 3 if counts[column] > 0 else extra
            elif op == JUMP:
                pc = extra
            elif op == PRESENT:
                valid[column, row] = 1
            elif op == END:
                is_good = at == end or (follow and row + 1 < rows)
                break
            else:
                size = number
                if op == BOOLEAN:
                    size = np.int64(1)
                elif op == FLOAT:
                    size = np.int64(4)
                elif op == DOUBLE:
                    size = np.int64(8)
                elif op >= FIXED:
                    size = extra
                is_decimal = op == DECIMAL or op >= FIXED_DECIMAL  # NB: all behind it is done
                if size < 0 or size > end - at or (is_decimal and size > 16):
                    is_good = False
                    break
                if column >= 0:
                    valid[column, row] = 1
                    if op == BYTE_STRING or op == FIXED:  # noqa: SIM109 - compiled
                        words[column, row], lengths[column, row] = at, size
                    elif is_decimal:
                        fill = np.uint64(0)
                        if size > 0 and data[at] >= 128:
                            fill = ~np.uint64(0)
                        low, high = fill, fill
                        for i in range(at, at + size):
                            high = (high << np.uint64(8)) | (low >> np.uint64(56))
                            low = (low << np.uint64(8)) | np.uint64(data[i])
                        words[column, row], lengths[column, row] = np.int64(low), np.int64(high)
                    else:
                        bits = np.uint64(0)
                        for i in range(size):
                            bits |= np.uint64(data[at + i]) << np.uint64(8 * i)
                        words[column, row] = np.int64(bits)
                at += size
        if not is_good:
            wrong[row] = 1
            faults += 1
    return faults


@kernel(f"int64({BYTES}, {GIVEN_VECTOR}, {GIVEN_VECTOR}, uint8[::1])")
def gather(data: Any, starts: Any, lengths: Any, out: Any) -> int:
    """Copy parts of bytes one behind the other, and return the bytes that were copied."""
    size = 0
    for row in range(len(starts)):
        at = starts[row]
        for i in range(lengths[row]):
            out[size] = data[at + i]
            size += 1
    return size
