"""Tiles of products of cofactor elements: a few rows are multiplied together, factor by factor.

    read_block, read_value     where each row has a factor, and its count
    weigh_before, weigh_after  products of the counts of all other factors, of all rows of the tile at once
    ask_some                   lines of the next tile, between any two registers of sums

What is added up of them is in `cofactor_sums`.
"""

from typing import Final

from squallpy.base.rings.cofactor import COUNT, HASH, ODD
from squallpy.runtime.kernels import count_triples
from squallpy.runtime.kernels.cofactor_blocks import (
    LARGEST,
    first_of,
    hash_value,
    odd_value,
    size_of,
    values_of,
    within,
)
from squallpy.runtime.kernels.intrinsics import as_word, load, prefetch, rolled, store
from squallpy.runtime.kernels.kernel_compiler import called, inlined
from squallpy.runtime.kernels.packed_reals import (
    BYTES,
    LANES,
    Packed,
    PackedWords,
    as_reals,
    has_others,
    load_some_words,
    load_words,
    lower_reals,
    multiply_add,
    spread,
    spread_word,
    store_packed,
    store_some,
    store_words,
    upper_reals,
    where_finite,
)
from squallpy.runtime.kernels.ring_arithmetic import two_sum

TILE: Final = LANES
"""Rows that are multiplied together: what the next need is asked for in time, and one register has a word of each."""

# A workspace: words about the product, then some for each factor, then the sums, each a run of upper halves that a run
# of lower ones follows at a fixed distance.
RING: Final = 0
FACTORS: Final = 1  # how many there are, without the counts
TOTAL: Final = 2  # the product's count, and hash
HASHED: Final = 3
LOW: Final = 4  # bytes from upper halves to lower ones: of the sums,
PREFIX: Final = 5  # where a tile's rows of sums of the factors so far are,
PREFIX_LOW: Final = 6  # bytes to their lower halves,
SCALED: Final = 7  # and rows of a factor's sums, scaled, at the same distance
WIDE: Final = 8  # bytes of such a row
SUMS: Final = 9  # where the sums are
TRIPLES: Final = 10  # where the triples of variables are
LINES: Final = 11  # where it is listed which cache lines a row has: the number of a source, and bytes from there
LINES_COUNT: Final = 12  # how many these are
ASKED: Final = 13  # up to where in the list the next tile's rows are asked for
DUE: Final = 14  # by how much it is behind: registers of sums, times lines,
STEPS: Final = 15  # of which so many are due for a line
SCALES: Final = 16  # in each row of a tile, the product of the factors that are counts
TOTALS: Final = SCALES + TILE  # room for the counts of rows, and their hashes
HEAD: Final = TOTALS + 2 * TILE

KIND: Final = 0  # a factor's kind
ENTRY: Final = 1  # its place in the list of factors
OWN: Final = 2  # where the sum of its values is,
RECTANGLE: Final = 3  # and that of its rectangle
ROWS: Final = 4  # where it has a word of each row of a tile, for each of the following
FACTOR: Final = 5

PLACE: Final = 0  # where the element is,
COUNTS: Final = 1  # its count
_HASH: Final = 2  # and hash;
_TIMES: Final = 3  # the product of the counts of all other factors,
OWN_TIMES: Final = 4  # as a double, and what is left of it,
AFTER: Final = 6  # that of those behind it,
BEFORE: Final = 8  # that of those before it,
OWN_COUNT: Final = 10  # and its own count
_LIFTED: Final = 12  # elements that are lifted of values, of eight words each
ROW_WORDS: Final = TILE * (_LIFTED + 8)
_LIFTED_LOW: Final = 2


@inlined
def padded(n: int) -> int:
    """Round up to the doubles of whole registers."""
    return (n + LANES - 1) & -LANES


@inlined
def factor_at(work: int, f: int) -> int:
    """Return the address of the words about factor number `f`, in the order of variables."""
    return work + 8 * (HEAD + FACTOR * f)


@inlined
def scaled(x: Packed, y: Packed, u: Packed, v: Packed) -> tuple[Packed, Packed]:
    """Multiply double-doubles; the lower half is not normalised."""
    p = x * u
    return p, multiply_add(y, u, multiply_add(x, v, multiply_add(x, u, -p)))


@inlined
def read_block(at: int, k: int, there: int) -> None:
    """Note for row `k` of a tile where the element is."""
    rows = load(at, ROWS) + 8 * k
    store(rows, TILE * PLACE, there)
    store(rows, TILE * COUNTS, load(there, COUNT))
    store(rows, TILE * _HASH, load(there, HASH))


@inlined
def has_odd_rows(at: int, m: int, rows: int) -> int:
    """Return whether an element of m variables of a tile's rows has what is not finite, as not 0."""
    found = spread_word(0)
    for j in range(0, m, LANES):
        row = load(at, ROWS)
        for _ in range(rows):
            found = found | load_some_words(load(row, TILE * PLACE) + 8 * (ODD + j), m - j)
            row = rolled(row + 8)
    return has_others(found, 0)


@inlined
def read_value(at: int, k: int, value: float, number: int, compensated: bool) -> int:
    """Lift a value for row `k` of a tile; return whether it is not finite, as not 0.

    Args:
        number: Of the variable, in the view tree.
    """
    rows = load(at, ROWS)
    there, x, odd = rows + 8 * (TILE * _LIFTED + 8 * k), within(value, LARGEST), odd_value(value)
    p = x * x
    hashed = hash_value(value, number)
    store(there, COUNT, 1)
    store(there, HASH, hashed)
    store(there, ODD, odd)
    store(there, ODD + 1, as_word(x))
    store(there, ODD + 2, as_word(p))
    if compensated:
        store(there, ODD + 1 + _LIFTED_LOW, 0)
        square = spread(p)
        error = where_finite(square, multiply_add(spread(x), spread(x), -square))
        store_some(there + 8 * (ODD + 2 + _LIFTED_LOW), error, 1)
    store(rows, TILE * PLACE + k, there)
    store(rows, TILE * COUNTS + k, 1)
    store(rows, TILE * _HASH + k, hashed)
    return odd


@inlined
def begin_scales(work: int) -> None:
    """Let no factor of the tile's rows be a count."""
    store_words(work + 8 * SCALES, spread_word(1))


@inlined
def read_scale(work: int, k: int, there: int) -> None:
    """Multiply row `k` of a tile by the count at an address."""
    store(work, SCALES + k, load(work, SCALES + k) * load(there, COUNT))


@inlined
def scales(work: int) -> PackedWords:
    """Return the counts by which the tile's rows are multiplied."""
    return load_words(work + 8 * SCALES)


@inlined
def _put_reals(at: int, words: PackedWords, compensated: bool) -> None:
    """Store words as doubles, and for compensated sums what these have not room for."""
    if not compensated:
        store_packed(at, as_reals(words))
        return
    x, y = two_sum(upper_reals(words) * spread(4294967296.0), lower_reals(words))  # both are exact
    store_packed(at, x)
    store_packed(at + BYTES, y)


@inlined
def weigh_before(at: int, before: PackedWords, compensated: bool) -> PackedWords:
    """Note the products of counts before a factor; return those with its own."""
    rows = load(at, ROWS)
    counts = load_words(rows + BYTES * COUNTS)
    store_words(rows + BYTES * _TIMES, before)
    _put_reals(rows + BYTES * BEFORE, before, compensated)
    _put_reals(rows + BYTES * OWN_COUNT, counts, compensated)
    return before * counts


@inlined
def weigh_after(at: int, after: PackedWords, compensated: bool) -> PackedWords:
    """Note the products of counts behind a factor, and of all others; return those with its own."""
    rows = load(at, ROWS)
    times = load_words(rows + BYTES * _TIMES) * after
    store_words(rows + BYTES * _TIMES, times)
    _put_reals(rows + BYTES * OWN_TIMES, times, compensated)
    _put_reals(rows + BYTES * AFTER, after, compensated)
    return after * load_words(rows + BYTES * COUNTS)


@inlined
def weigh_hash(at: int, hashed: PackedWords) -> PackedWords:
    """Multiply the hashes of a tile's rows by those of a factor."""
    return hashed * load_words(load(at, ROWS) + BYTES * _HASH)


@inlined
def add_totals(work: int, rows: int, counts: PackedWords, hashes: PackedWords) -> None:
    """Add the counts and hashes of a tile's rows to the product's."""
    store_words(work + 8 * TOTALS, counts)
    store_words(work + 8 * (TOTALS + TILE), hashes)
    total, hashed = load(work, TOTAL), load(work, HASHED)
    for k in range(rows):
        total += load(work, TOTALS + k)
        hashed += load(work, TOTALS + TILE + k)
    store(work, TOTAL, total)
    store(work, HASHED, hashed)


@called
def add_odd(work: int, rows: int) -> None:
    """Add what counts values that are not finite, of all factors of a tile's rows."""
    triples = load(work, TRIPLES)
    for f in range(load(work, FACTORS)):
        at = factor_at(work, f)
        kind, own = load(at, KIND), load(at, ROWS)
        first = first_of(kind)
        for k in range(rows):
            there, times = load(own, TILE * PLACE + k), load(own, TILE * _TIMES + k)
            for i in range(size_of(kind)):
                some = load(there, ODD + i)
                if some != 0:
                    some = count_triples.times(some, times)
                    store(triples, first + i, count_triples.add(load(triples, first + i), some))


@inlined
def is_turned(m: int, first: int) -> bool:
    """True if the rectangle of m variables with those before them takes fewer registers row by row of the latter."""
    return first * padded(m) < m * padded(first)


@inlined
def rectangle_of(m: int, first: int) -> int:
    """Count the doubles of a rectangle, whose rows have whole registers."""
    return min(first * padded(m), m * padded(first))


@inlined
def lines_of(m: int, compensated: bool) -> int:
    """Count the cache lines that an element of m variables may stand in."""
    return (8 * (ODD + m + (2 if compensated else 1) * values_of(m)) + 2 * BYTES - 2) // BYTES


@inlined
def steps_of(m: int, first: int) -> int:
    """Count the registers of sums that a factor's products are added to."""
    return (padded(values_of(m)) + rectangle_of(m, first)) // LANES


@inlined
def begin_asking(work: int, some: bool) -> None:
    """Begin to ask for the next tile's rows, if there are `some`."""
    store(work, ASKED, load(work, LINES))
    store(work, DUE, 0 if some else -(1 << 62))


@inlined
def ask_some(work: int, then: int, source_pitch: int, pitch: int, times: int = 1) -> None:
    """Ask for the next few lines of each of the next tile's rows.

    So the waits for them are spread over the whole of a tile: of a burst of requests most would wait for each other.

    Args:
        then: Where the address of the first source is, in the first of these rows.
        source_pitch: Bytes from there to that of the next source.
        pitch: And to that of the next row.
        times: How many registers of sums come next.
    """
    line, steps = load(work, ASKED), load(work, STEPS)
    due = load(work, DUE) + times * load(work, LINES_COUNT)
    while due >= steps:
        row, behind = then + source_pitch * load(line, 0), load(line, 1)
        for k in range(TILE):
            prefetch(load(row + pitch * k, 0) + behind)
        line, due = rolled(line + 16), due - steps
    store(work, ASKED, line)
    store(work, DUE, due)
