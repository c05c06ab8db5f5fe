"""Expressions over the columns of an Arrow batch, and what is kept of its rows, in one call.

WHERE l_shipdate > d, key l_orderkey, lane price · (1 − discount)

    load l_shipdate | constant d | greater | filter | load l_orderkey | key | load price … | multiply | lane

A *program* is words: of each operation which it is, the register that it fills, what it reads. A register holds a chunk
of rows, so that an operation is a loop over a chunk: 64 bits (0 for NULL) and a validity each. All that happens is
exact: where a value leaves 64 bits there is no answer, and the caller takes the slower way that has one.
"""

from typing import Final

from squallpy.runtime.kernels.intrinsics import as_float, as_word, load, load8, load32, store, store8
from squallpy.runtime.kernels.kernel_compiler import MATRIX, VECTOR, Vector, address, inlined, kernel
from squallpy.runtime.kernels.ring_arithmetic import exact_add, exact_multiply, sign

# Operations. Each is WIDTH words: which, the register that it fills, four operands.
WIDTH: Final = 6
LOAD: Final = 0  # column
CONSTANT: Final = 1  # value, is it NULL
ADD: Final = 2  # register, register; so have the next ones
SUBTRACT: Final = 3
MULTIPLY: Final = 4
EQUAL: Final = 5
UNEQUAL: Final = 6
LESS: Final = 7
LESS_EQUAL: Final = 8
GREATER: Final = 9
GREATER_EQUAL: Final = 10
AND: Final = 11
OR: Final = 12
NOT: Final = 13  # register
ORDINAL: Final = 14  # register of doubles: integers in their order
REAL_KEY: Final = 15  # register of doubles: the bits by which they are equal
PART: Final = 16  # register of days, which part: year, month or day (0, 1, 2)
IS_NULL: Final = 17  # register
CHOOSE: Final = 18  # condition, register where it is TRUE, register elsewhere
TEXT: Final = 19  # column, which comparison, address and bytes of a text
WITHIN: Final = 20  # register, least, greatest: no answer where a value is outside
FILTER: Final = 21  # register: drop the rows where it is not TRUE
KEEP: Final = 22  # register: what it has of the rows that the last filter kept
KEY: Final = 23  # place, register, the least value that is its own key
LANE: Final = 24  # word, words, register, register of multiplicities or −1
TO_REAL: Final = 25  # register, the double by which it is divided
REAL_ADD: Final = 26  # register, register, of doubles; so have the next ones
REAL_SUBTRACT: Final = 27
REAL_MULTIPLY: Final = 28
DIVIDE: Final = 29  # NULL where the divisor is 0

# Columns: what is at an address, and by how many of them, or bits of a validity, the first row is behind it.
FORMAT: Final = 0
CHILD: Final = 1  # its place in the batch; −1: it is numpy's, a byte each for booleans and validity
VALUES: Final = 2
VALID: Final = 3
FIRST: Final = 4
BYTES: Final = 5  # of texts
COLUMN: Final = 6  # words of a column
WORDS: Final = 0
HALVES: Final = 1
DECIMALS: Final = 2
BITS: Final = 3
FLAGS: Final = 4  # a byte each
TEXTS: Final = 5
LONG_TEXTS: Final = 6

CHUNK: Final = 256
_SMALL: Final = 1 << 27
_VALID: Final = 8 * CHUNK  # where in a register its bytes of validity are,
_NULLS: Final = CHUNK + CHUNK // 8  # and in which word it says whether any of them matters
_REGISTER: Final = 8 * (_NULLS + 1)  # bytes of a register
LEAST: Final = -(2**63)  # as a key NULL; no number here
_NAN: Final = 0x7FF8000000000000
_MAGNITUDE: Final = 2**63 - 1  # all bits but the sign

# Where `ArrowArray` of Arrow's C data interface has what, in words.
_OFFSET, _BUFFERS, _CHILDREN = 2, 5, 6


def scratch_words(registers: int) -> int:
    """Return how many words of scratch a program of so many registers needs."""
    return 2 * CHUNK + registers * _REGISTER // 8


@inlined
def _bind(columns: Vector, batch: int) -> None:
    """Find the memory of the columns of a batch."""
    for c in range(columns.shape[0]):
        if columns[c, CHILD] < 0:
            continue
        child = load(load(batch, _CHILDREN), columns[c, CHILD])
        buffers = load(child, _BUFFERS)
        columns[c, VALID], columns[c, VALUES] = load(buffers, 0), load(buffers, 1)
        columns[c, FIRST] = load(child, _OFFSET) + load(batch, _OFFSET)
        if columns[c, FORMAT] >= TEXTS:
            columns[c, BYTES] = load(buffers, 2)


@inlined
def _there(columns: Vector, c: int, row: int) -> int:
    """True if a row is not NULL; `row` counts from the column's first."""
    if columns[c, VALID] == 0:
        return 1
    if columns[c, CHILD] < 0:
        return load8(columns[c, VALID], row)
    return (load8(columns[c, VALID], row >> 3) >> (row & 7)) & 1


@inlined
def _load(columns: Vector, c: int, rows: int, n: int, out: int) -> bool:
    """Fill a register from a column; False where a value has no room."""
    format, values, first, nulls = columns[c, FORMAT], columns[c, VALUES], columns[c, FIRST], columns[c, VALID] != 0
    wide = False
    if format == WORDS:
        for i in range(n):
            store(out, i, load(values, first + load(rows, i)))
    elif format == HALVES:
        for i in range(n):
            store(out, i, (load32(values, first + load(rows, i)) << 32) >> 32)
    elif format == DECIMALS:
        for i in range(n):
            row = first + load(rows, i)
            low = load(values, 2 * row)
            wide |= load(values, 2 * row + 1) != low >> 63 and _there(columns, c, row) != 0
            store(out, i, low)
    elif format == BITS:
        for i in range(n):
            row = first + load(rows, i)
            store(out, i, (load8(values, row >> 3) >> (row & 7)) & 1)
    else:
        for i in range(n):
            store(out, i, load8(values, first + load(rows, i)))
    store(out, _NULLS, nulls)
    if nulls:
        for i in range(n):
            known = _there(columns, c, first + load(rows, i))
            store8(out + _VALID, i, known)
            store(out, i, load(out, i) if known else 0)
    return not wide


@inlined
def _known(register: int, i: int) -> int:
    """True if a value is not NULL."""
    return load8(register + _VALID, i) if load(register, _NULLS) else 1


@inlined
def _compare_text(columns: Vector, c: int, row: int, text: int, length: int) -> int:
    """Sign of a text compared, byte by byte, with the one at `text`."""
    if columns[c, FORMAT] == TEXTS:
        start, end = load32(columns[c, VALUES], row), load32(columns[c, VALUES], row + 1)
    else:
        start, end = load(columns[c, VALUES], row), load(columns[c, VALUES], row + 1)
    at, size = columns[c, BYTES] + start, end - start
    for i in range(min(size, length)):
        difference = load8(at, i) - load8(text, i)
        if difference != 0:
            return difference
    return size - length


@inlined
def _holds(which: int, x: int, y: int) -> int:
    """True if a comparison is TRUE."""
    if which == EQUAL:
        return x == y
    if which == UNEQUAL:
        return x != y
    if which == LESS:
        return x < y
    if which == LESS_EQUAL:
        return x <= y
    if which == GREATER:
        return x > y
    return x >= y


@inlined
def _text(columns: Vector, c: int, rows: int, n: int, out: int, which: int, text: int, length: int) -> None:
    """Compare a column of texts with one."""
    store(out, _NULLS, columns[c, VALID] != 0)
    for i in range(n):
        row = columns[c, FIRST] + load(rows, i)
        known = _there(columns, c, row)
        store8(out + _VALID, i, known)
        store(out, i, _holds(which, _compare_text(columns, c, row, text, length), 0) if known else 0)


@inlined
def _combine(operation: int, x: int, y: int, n: int, out: int) -> bool:
    """Add, subtract, multiply or compare; False where a value has no room."""
    wide = 0
    if operation == ADD:
        for i in range(n):
            a, b = load(x, i), load(y, i)
            s = a + b
            wide |= ((a ^ s) & (b ^ s)) | (s == LEAST) * LEAST
            store(out, i, s)
    elif operation == SUBTRACT:
        for i in range(n):
            a, b = load(x, i), load(y, i)
            s = a - b
            wide |= ((a ^ b) & (a ^ s)) | (s == LEAST) * LEAST
            store(out, i, s)
    elif operation == MULTIPLY:
        for i in range(n):
            a, b = load(x, i), load(y, i)
            lo, hi = exact_multiply(a, sign(a), b, sign(b))
            wide |= (hi ^ sign(lo)) != 0 or lo == LEAST
            store(out, i, lo)
        wide = -wide
    else:
        for i in range(n):
            store(out, i, _holds(operation, load(x, i), load(y, i)))
    nulls = load(x, _NULLS) | load(y, _NULLS)
    store(out, _NULLS, nulls)
    if nulls:
        for i in range(n):
            known = _known(x, i) & _known(y, i)
            store8(out + _VALID, i, known)
            store(out, i, load(out, i) if known else 0)
    return wide >= 0


@inlined
def _reckon(operation: int, x: int, y: int, n: int, out: int) -> None:
    """Compute arithmetic of doubles, by IEEE rules."""
    nulls = 0
    for i in range(n):
        a, b = as_float(load(x, i)), as_float(load(y, i))
        known = _known(x, i) & _known(y, i)
        real: float = 0.0
        if operation == REAL_ADD:
            real = a + b
        elif operation == REAL_SUBTRACT:
            real = a - b
        elif operation == REAL_MULTIPLY:
            real = a * b
        elif b != 0.0:
            real = a / b
        else:
            known = 0
        store(out, i, as_word(real) if known else 0)
        store8(out + _VALID, i, known)
        nulls |= 1 - known
    store(out, _NULLS, nulls)


@inlined
def _connect(operation: int, x: int, y: int, n: int, out: int) -> None:
    """Compute AND or OR: NULL unless both operands are known, or one that decides is."""
    decisive = 0 if operation == AND else 1
    for i in range(n):
        a, b = load(x, i), load(y, i)
        store(out, i, a & b if operation == AND else a | b)
    nulls = load(x, _NULLS) | load(y, _NULLS)
    store(out, _NULLS, nulls)
    if nulls:
        for i in range(n):
            p, q = _known(x, i), _known(y, i)
            decided = (p & (load(x, i) == decisive)) | (q & (load(y, i) == decisive))
            store8(out + _VALID, i, decided | (p & q))


@inlined
def _change(operation: int, x: int, operand: int, n: int, out: int) -> None:
    """Apply an operation on one register, NULL where the register is."""
    for i in range(n):
        word = load(x, i)
        if operation == NOT:
            word = 1 - word
        elif operation == PART:
            word = part_of_date(word, operand)
        elif operation == TO_REAL:
            word = as_word(float(word) / as_float(operand))
        else:
            number = as_float(word) + 0.0  # −0.0 becomes 0.0
            word = as_word(number) if number == number else _NAN
            if operation == ORDINAL and word < 0:
                word ^= _MAGNITUDE
        store(out, i, word)
    nulls = load(x, _NULLS)
    store(out, _NULLS, nulls)
    if nulls:
        for i in range(n):
            store8(out + _VALID, i, _known(x, i))
            store(out, i, load(out, i) if _known(x, i) else 0)


@inlined
def _choose(condition: int, x: int, y: int, n: int, out: int) -> None:
    """Choose x where the condition is TRUE, else y."""
    store(out, _NULLS, load(x, _NULLS) | load(y, _NULLS))
    for i in range(n):
        chosen = x if load(condition, i) else y
        store(out, i, load(chosen, i))
        store8(out + _VALID, i, _known(chosen, i))


@inlined
def part_of_date(days: int, which: int) -> int:
    """Extract year, month or day of a date, counted from 1970-01-01 in the Gregorian calendar.

    Source: Howard Hinnant, *chrono-compatible low-level date algorithms*, civil_from_days.
    """
    z = days + 719468
    era = z // 146097
    of_era = z - era * 146097
    year = (of_era - of_era // 1460 + of_era // 36524 - of_era // 146096) // 365
    of_year = of_era - (365 * year + year // 4 - year // 100)
    from_march = (5 * of_year + 2) // 153
    month = from_march + 3 if from_march < 10 else from_march - 9
    if which == 0:
        return year + era * 400 + (1 if month <= 2 else 0)
    return month if which == 1 else of_year - (153 * from_march + 2) // 5 + 1


@inlined
def _write_key(to: int, stride: int, x: int, least: int, n: int) -> bool:
    """Write a column of keys, one every `stride` bytes; False where a value is a reserved one."""
    for i in range(n):
        word = load(x, i)
        if not _known(x, i):
            word = LEAST
        elif word < least:
            return False
        store(to + i * stride, 0, word)
    return True


@inlined
def _write_lane(to: int, stride: int, words: int, x: int, times: int, n: int) -> bool:
    """Write a lane of payloads, one every `stride` bytes, `times` times (0: once); False where one has no room."""
    for i in range(n):
        word = load(x, i)
        if times != 0:
            word, high = exact_multiply(word, sign(word), load(times, i), sign(load(times, i)))
            if high != sign(word):
                return False
        store(to + i * stride, 0, word)
        if words == 2:
            store(to + i * stride, 1, sign(word))
    return True


@inlined
def _sum_lane(to: int, words: int, x: int, times: int, n: int) -> bool:
    """Add a lane of payloads up, `times` times each (0: once); False where one has no room."""
    lo, hi, bits, often = load(to, 0), load(to, words - 1), 0, 0
    for i in range(n):
        bits |= load(x, i) ^ load(x, i) >> 63
    if times != 0:
        for i in range(n):
            often |= load(times, i) ^ load(times, i) >> 63
    if bits < _SMALL and often < _SMALL:  # then no sum has more than 62 bits, and LLVM adds up several at once
        total = 0
        if times != 0:
            for i in range(n):
                total += load(x, i) * load(times, i)
        else:
            for i in range(n):
                total += load(x, i)
        lo, hi = exact_add(lo, hi, total, sign(total))
        n = 0
    for i in range(n):
        word = load(x, i)
        if times != 0:
            word, high = exact_multiply(word, sign(word), load(times, i), sign(load(times, i)))
            if high != sign(word):
                return False
        lo, hi = exact_add(lo, hi, word, sign(word))
    if words == 2:
        store(to, 1, hi)
    store(to, 0, lo)
    return True


@kernel(f"int64({VECTOR}, {MATRIX}, int64, int64, {VECTOR}, {MATRIX}, {MATRIX}, {VECTOR}, {VECTOR})")
def run_program(
    program: Vector,
    columns: Vector,
    batch: int,
    total: int,
    scratch: Vector,
    keys: Vector,
    words: Vector,
    kept: Vector,
    sums: Vector,
) -> int:
    """Run a program over `total` rows of the `ArrowArray` at `batch`, and return how many rows are left.

    Their keys, payloads and numbers are then in `keys`, `words` and `kept`. −1 where a value has no room in 64 bits, or
    cannot be a key.

    Args:
        sums: Gets the sum of all payloads instead, lanes of counts and exact sums; empty if each is wanted.
    """
    _bind(columns, batch)
    rows = address(scratch)
    picked, registers = rows + 8 * CHUNK, rows + 16 * CHUNK
    wide, broad = 8 * keys.shape[1], 8 * words.shape[1]
    done = 0
    for chunk in range(0, total, CHUNK):
        n = min(CHUNK, total - chunk)
        for i in range(n):
            store(rows, i, chunk + i)
        for at in range(0, program.shape[0], WIDTH):
            operation, a, b, c, d = program[at], program[at + 2], program[at + 3], program[at + 4], program[at + 5]
            out, x, y = registers + program[at + 1] * _REGISTER, registers + a * _REGISTER, registers + b * _REGISTER
            fits = True
            if operation == LOAD:
                fits = _load(columns, a, rows, n, out)
            elif operation == CONSTANT:
                store(out, _NULLS, b)
                for i in range(n):
                    store(out, i, a)
                    store8(out + _VALID, i, 1 - b)
            elif operation <= GREATER_EQUAL:
                fits = _combine(operation, x, y, n, out)
            elif operation <= OR:
                _connect(operation, x, y, n, out)
            elif operation <= PART or operation == TO_REAL:
                _change(operation, x, b, n, out)
            elif operation == IS_NULL:
                store(out, _NULLS, 0)
                for i in range(n):
                    store(out, i, 1 - _known(x, i))
            elif operation == CHOOSE:
                _choose(x, y, registers + c * _REGISTER, n, out)
            elif operation == TEXT:
                _text(columns, a, rows, n, out, b, c, d)
            elif operation == WITHIN:
                for i in range(n):
                    fits &= b <= load(x, i) <= c
            elif operation == FILTER:
                left = 0
                for i in range(n):
                    store(picked, left, i)
                    left += load(x, i)
                for i in range(left):
                    store(rows, i, load(rows, load(picked, i)))
                n = left
            elif operation == KEEP:
                for i in range(n):
                    store(x, i, load(x, load(picked, i)))
                    store8(x + _VALID, i, load8(x + _VALID, load(picked, i)))
            elif operation > TO_REAL:
                _reckon(operation, x, y, n, out)
            elif operation == KEY:
                fits = _write_key(address(keys) + done * wide + 8 * a, wide, y, c, n)
            else:
                times = registers + d * _REGISTER if d >= 0 else 0
                if len(sums) > 0:
                    fits = _sum_lane(address(sums) + 8 * a, b, registers + c * _REGISTER, times, n)
                else:
                    fits = _write_lane(
                        address(words) + done * broad + 8 * a, broad, b, registers + c * _REGISTER, times, n
                    )
            if not fits:
                return -1
        for i in range(n if len(sums) == 0 else 0):
            store(address(kept), done + i, load(rows, i))
        done += n
    return done
