"""Words of eight items at once, and the lines of a table where they stand: what does not depend on how many there are.

A list of changes has a dozen items, so that a loop over them one by one, or four at a time and then the rest, mostly
guesses wrong when it ends.

    address_eight(items, words, lines, 3, shift, table, buckets, mark)   →   three words, three lines
    pick_eight(line, 8, flag, bits, to)                                  →   of its words with a flag these bits
    part_eight(line, 2 * buckets, first, to, rest)                       →   its words in the two lines that it becomes
    count_eight(items, 3, counts, 1)                                     →   numbers of three groups, each 1 more
    halves_eight(words, 3, first, places, to)                            →   upper halves but for 0, and their places
"""

from typing import Any, Final

from llvmlite import ir
from numba import types

from squallpy.runtime.kernels.intrinsics import operation

KEY: Final = (1 << 28) - 1
"""Bits of a word's key."""
LINE: Final = 64  # bytes of a bucket
GOLDEN: Final = 0x9E3779B1  # 2³² by the golden ratio
HALF: Final = (1 << 32) - 1

_I32, _I64, _LANES = ir.IntType(32), ir.IntType(64), 8
_VECTOR = ir.VectorType(_I64, _LANES)
_POINTER = _VECTOR.as_pointer()
_int, _void = types.int64, types.void


def _constant(word: int) -> Any:
    return ir.Constant(_VECTOR, [word] * _LANES)


def _intrinsic(builder: Any, name: str, answer: Any, *arguments: Any) -> Any:
    """Call an intrinsic of LLVM that moves eight words."""
    name, kind = f"llvm.masked.{name}.v8i64.p0", ir.FunctionType(answer, [a.type for a in arguments])
    function = builder.module.globals.get(name) or ir.Function(builder.module, kind, name)
    return builder.call(function, arguments)


def _spread(builder: Any, value: Any) -> Any:
    """Make a vector of eight times a word."""
    one = builder.insert_element(ir.Constant(_VECTOR, ir.Undefined), value, _I32(0))
    return builder.shuffle_vector(one, one, ir.Constant(ir.VectorType(_I32, _LANES), [0] * _LANES))


def _point(builder: Any, address: Any) -> Any:
    return builder.inttoptr(address, _POINTER)


def _compress(builder: Any, words: Any, to: Any, mask: Any) -> Any:
    """Store those of eight words that a mask has one behind the other; returns how many these are."""
    pointer, name = _I64.as_pointer(), "llvm.masked.compressstore.v8i64"
    kind = ir.FunctionType(ir.VoidType(), [_VECTOR, pointer, mask.type])
    compress = builder.module.globals.get(name) or ir.Function(builder.module, kind, name)
    builder.call(compress, [words, builder.inttoptr(to, pointer), mask])
    return builder.ctpop(builder.zext(builder.bitcast(mask, ir.IntType(_LANES)), _I64))


def _first(builder: Any, count: Any) -> Any:
    """Mark the first lanes, so many."""
    return builder.icmp_unsigned("<", ir.Constant(_VECTOR, list(range(_LANES))), _spread(builder, count))


def _bucket(builder: Any, words: Any, buckets: Any) -> Any:
    """Compute the buckets of words as `bucket_among` does."""
    hashed = builder.and_(builder.mul(builder.and_(words, _constant(KEY)), _constant(GOLDEN)), _constant(HALF))
    return builder.lshr(builder.mul(hashed, _spread(builder, builder.and_(buckets, _I64(HALF)))), _constant(32))


def _some(builder: Any, words: Any, count: Any) -> Any:
    """Load the first of eight words, so many, and zeros."""
    there = _first(builder, count)
    return _intrinsic(builder, "load", _VECTOR, _point(builder, words), _I32(8), there, _constant(0))


@operation(_void(_int, _int, _int, _int, _int, _int, _int, _int))
def address_eight(
    builder: Any, items: Any, words: Any, lines: Any, count: Any, shift: Any, table: Any, buckets: Any, mark: Any
) -> None:
    """Store the words of the first eight items at most, which are `shift` more than these, and the line of each.

    Args:
        count: How many items there are.
        mark: What is added to a line's address.
    """

    there = _first(builder, count)
    some = _some(builder, items, count)
    found = builder.add(some, _spread(builder, shift))
    bucket = _bucket(builder, found, buckets)
    line = builder.or_(
        builder.add(builder.mul(bucket, _constant(LINE)), _spread(builder, table)), _spread(builder, mark)
    )
    for to, what in ((words, found), (lines, line)):
        _intrinsic(builder, "store", ir.VoidType(), what, _point(builder, to), _I32(8), there)


@operation(_int(_int, _int, _int, _int, _int))
def pick_eight(builder: Any, words: Any, count: Any, flag: Any, bits: Any, to: Any) -> Any:
    """Store some bits of those of the first eight words at most that have a flag, one behind the other.

    Returns how many these are.

    Args:
        count: How many words there are.
    """
    some = _some(builder, words, count)
    chosen = builder.icmp_unsigned("!=", builder.and_(some, _spread(builder, flag)), _constant(0))
    return _compress(builder, builder.and_(some, _spread(builder, bits)), to, chosen)


@operation(_int(_int, _int, _int, _int, _int))
def part_eight(builder: Any, words: Any, buckets: Any, first: Any, to: Any, rest: Any) -> Any:
    """Copy the words of a bucket, which is to be two of so many, to these lines: those of each in order, then zeros.

    Returns how many words stand in neither, as their own bucket had no room for them.

    Args:
        first: The number of the first of the two.
        rest: The address to which words go that stand in neither; it may be the bucket's.
    """
    some = builder.load(_point(builder, words), align=8)
    behind = builder.sub(_bucket(builder, some, buckets), _spread(builder, first))
    there = builder.icmp_unsigned("!=", some, _constant(0))
    for half in range(2):
        here = builder.and_(there, builder.icmp_unsigned("==", behind, _constant(half)))
        line = builder.add(to, _I64(LINE * half))
        builder.store(_constant(0), _point(builder, line), align=8)
        _compress(builder, some, line, here)
    return _compress(builder, some, rest, builder.and_(there, builder.icmp_unsigned(">", behind, _constant(1))))


@operation(_int(_int, _int, _int, _int, _int))
def halves_eight(builder: Any, words: Any, count: Any, first: Any, places: Any, to: Any) -> Any:
    """List which of the first eight words at most have an upper half that is not 0, and these, as signed numbers.

    Returns how many these are.

    Args:
        count: How many words there are.
        first: The place of the first word.
    """
    return _list_numbers(builder, builder.ashr(_some(builder, words, count), _constant(32)), first, places, to)


@operation(_int(_int, _int, _int, _int))
def numbers_eight(builder: Any, numbers: Any, first: Any, places: Any, to: Any) -> Any:
    """List which of eight signed numbers of 32 bits are not 0, and these, like `halves_eight`."""
    narrow = ir.VectorType(_I32, _LANES).as_pointer()
    given = builder.load(builder.inttoptr(numbers, narrow), align=4)
    return _list_numbers(builder, builder.sext(given, _VECTOR), first, places, to)


def _list_numbers(builder: Any, numbers: Any, first: Any, places: Any, to: Any) -> Any:
    there = builder.icmp_unsigned("!=", numbers, _constant(0))
    _compress(builder, builder.add(ir.Constant(_VECTOR, list(range(_LANES))), _spread(builder, first)), places, there)
    return _compress(builder, numbers, to, there)


@operation(_void(_int, _int, _int, _int))
def count_eight(builder: Any, items: Any, count: Any, counts: Any, amount: Any) -> None:
    """Add to the numbers, of 32 bits each, of the groups of the first eight items at most, which are different ones.

    Args:
        count: How many items there are.
        counts: The address of the numbers, from group 0 on; the key of a group is one more.
    """
    there, narrow = _first(builder, count), ir.VectorType(_I32, _LANES)
    pointers = ir.VectorType(_I32.as_pointer(), _LANES)
    groups = builder.sub(builder.and_(_some(builder, items, count), _constant(KEY)), _constant(1))
    at = builder.inttoptr(builder.add(builder.mul(groups, _constant(4)), _spread(builder, counts)), pointers)
    name = "llvm.masked.gather.v8i32.v8p0"
    kind = ir.FunctionType(narrow, [pointers, _I32, there.type, narrow])
    gather = builder.module.globals.get(name) or ir.Function(builder.module, kind, name)
    known = builder.call(gather, [at, _I32(4), there, ir.Constant(narrow, [0] * _LANES)])
    more = builder.add(known, builder.trunc(_spread(builder, amount), narrow))
    name = "llvm.masked.scatter.v8i32.v8p0"
    kind = ir.FunctionType(ir.VoidType(), [narrow, pointers, _I32, there.type])
    scatter = builder.module.globals.get(name) or ir.Function(builder.module, kind, name)
    builder.call(scatter, [more, at, _I32(4), there])
