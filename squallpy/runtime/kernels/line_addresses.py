"""Words of eight items at once, and the lines of a table where they stand: what does not depend on how many there are.

A list of changes has a dozen items, so that a loop over them one by one, or four at a time and then the rest, mostly
guesses wrong when it ends.

    address_eight(items, words, lines, shift, table, buckets, mark)     →   eight words, eight lines
    pick_eight(line, 8, flag, bits, to)                                  →   of its words with a flag these bits
    part_eight(line, 2 * buckets, first, to, rest)                       →   its words in the two lines that it becomes
    count_eight(items, 3, counts, 1)                                     →   numbers of three groups, each 1 more
    halves_eight(words, 3, first, places, to)                            →   upper halves but for 0, and their places
"""

from functools import cache
from typing import Any, Final

from llvmlite import ir
from numba import types
from numba.core import codegen, config

from squallpy.runtime.kernels.intrinsics import operation

KEY: Final = (1 << 28) - 1
"""Bits of a word's key."""
LINE: Final = 64  # bytes of a bucket
GOLDEN: Final = 0x9E3779B1  # 2³² by the golden ratio
HALF: Final = (1 << 32) - 1
LANES: Final = 8

_I32, _I64 = ir.IntType(32), ir.IntType(64)
_VECTOR = ir.VectorType(_I64, LANES)
_POINTER = _VECTOR.as_pointer()
_int, _void = types.int64, types.void
_codegen: Any = codegen  # NB: numba has no types of these two
_config: Any = config


def _constant(word: int) -> Any:
    return ir.Constant(_VECTOR, [word] * LANES)


def _spread(builder: Any, value: Any) -> Any:
    """Make a vector of eight times a word."""
    one = builder.insert_element(ir.Constant(_VECTOR, ir.Undefined), value, _I32(0))
    return builder.shuffle_vector(one, one, ir.Constant(ir.VectorType(_I32, LANES), [0] * LANES))


def _point(builder: Any, address: Any) -> Any:
    return builder.inttoptr(address, _POINTER)


def compress(builder: Any, words: Any, to: Any, mask: Any) -> Any:
    """Store those of eight words that a mask has one behind the other; returns how many these are.

    There has to be room for eight: zeros may be stored behind them.

    NB: `llvm.masked.compressstore` jumps over each word that is not chosen, but for processors with AVX-512.
    """
    chosen = builder.select(mask, words, _constant(0))
    emit = _store_in_order if _has_avx2() else store_one_by_one
    return emit(builder, chosen, to, builder.zext(builder.bitcast(mask, ir.IntType(LANES)), _I64))


@cache
def _has_avx2() -> bool:
    """True if kernels are compiled for a processor that can put eight words of 32 bits in any order."""
    given = _config.CPU_FEATURES
    features: str = _codegen.get_host_cpu_features() if given is None else given
    return "+avx2" in features.split(",")


def _store_in_order(builder: Any, chosen: Any, to: Any, bits: Any) -> Any:
    """Store words as `compress` does, four at a time, in an order that a table has for each mask of four."""
    order, half = ir.VectorType(_I32, LANES), LANES // 2
    masks = [[lane for lane in range(half) if mask >> lane & 1] for mask in range(1 << half)]
    orders = [some + [lane for lane in range(half) if lane not in some] for some in masks]
    kind, name = ir.ArrayType(_I32, LANES << half), "squallpy.order_of_lanes"
    if (table := builder.module.globals.get(name)) is None:
        table = ir.GlobalVariable(builder.module, kind, name)
        table.linkage, table.global_constant, table.unnamed_addr, table.align = "internal", True, True, LINE
        table.initializer = ir.Constant(kind, [2 * lane + part for some in orders for lane in some for part in (0, 1)])
    name, kind = "llvm.x86.avx2.permd", ir.FunctionType(order, [order, order])
    permute = builder.module.globals.get(name) or ir.Function(builder.module, kind, name)
    orders_at, low = builder.ptrtoint(table, _I64), builder.and_(bits, _I64((1 << half) - 1))
    for first, mask in ((0, low), (half, builder.lshr(bits, _I64(half)))):
        lanes = ir.Constant(ir.VectorType(_I32, half), list(range(first, first + half)))
        four = builder.bitcast(builder.shuffle_vector(chosen, chosen, lanes), order)
        its_order = builder.add(orders_at, builder.shl(mask, _I64(5)))
        ordered = builder.call(permute, [four, builder.load(builder.inttoptr(its_order, order.as_pointer()), align=32)])
        at = builder.add(to, builder.shl(builder.ctpop(low), _I64(3))) if first else to
        builder.store(ordered, builder.inttoptr(at, order.as_pointer()), align=8)
    return builder.ctpop(bits)


def store_one_by_one(builder: Any, chosen: Any, to: Any, bits: Any) -> Any:
    """Store words as `compress` does, each where the next one overwrites it if it is not chosen."""
    for lane in range(LANES):
        builder.store(builder.extract_element(chosen, _I32(lane)), builder.inttoptr(to, _I64.as_pointer()), align=8)
        is_chosen = builder.and_(builder.lshr(bits, _I64(lane)), _I64(1))
        to = builder.add(to, builder.shl(is_chosen, _I64(3)))
    return builder.ctpop(bits)


def _first(builder: Any, count: Any) -> Any:
    """Mark the first lanes, so many."""
    return builder.icmp_unsigned("<", ir.Constant(_VECTOR, list(range(LANES))), _spread(builder, count))


def _bucket(builder: Any, words: Any, buckets: Any) -> Any:
    """Compute the buckets of words as `bucket_among` does."""
    hashed = builder.and_(builder.mul(builder.and_(words, _constant(KEY)), _constant(GOLDEN)), _constant(HALF))
    return builder.lshr(builder.mul(hashed, _spread(builder, builder.and_(buckets, _I64(HALF)))), _constant(32))


def _eight(builder: Any, words: Any) -> Any:
    return builder.load(_point(builder, words), align=8)


def _some(builder: Any, words: Any, count: Any) -> Any:
    """Load the first of eight words, so many, and zeros."""
    name, align, there, none = "llvm.masked.load.v8i64.p0", _I32(8), _first(builder, count), _constant(0)
    kind = ir.FunctionType(_VECTOR, [_POINTER, align.type, there.type, _VECTOR])
    function = builder.module.globals.get(name) or ir.Function(builder.module, kind, name)
    return builder.call(function, [_point(builder, words), align, there, none])


@operation(_void(_int, _int, _int, _int, _int, _int, _int))
def address_eight(
    builder: Any, items: Any, words: Any, lines: Any, shift: Any, table: Any, buckets: Any, mark: Any
) -> None:
    """Store the words of eight items, which are `shift` more than these, and the line of each.

    NB: where there are fewer items, what is stored behind theirs is arbitrary. A store under a mask takes AMD's
    processors as long as 40 instructions.

    Args:
        mark: What is added to a line's address.
    """
    found = builder.add(_eight(builder, items), _spread(builder, shift))
    bucket = _bucket(builder, found, buckets)
    line = builder.or_(
        builder.add(builder.mul(bucket, _constant(LINE)), _spread(builder, table)), _spread(builder, mark)
    )
    for to, what in ((words, found), (lines, line)):
        builder.store(what, _point(builder, to), align=8)


@operation(_int(_int, _int, _int, _int, _int))
def pick_eight(builder: Any, words: Any, count: Any, flag: Any, bits: Any, to: Any) -> Any:
    """Store some bits of those of the first eight words at most that have a flag, one behind the other.

    Returns how many these are.

    Args:
        count: How many words there are.
    """
    some = _some(builder, words, count)
    chosen = builder.icmp_unsigned("!=", builder.and_(some, _spread(builder, flag)), _constant(0))
    return compress(builder, builder.and_(some, _spread(builder, bits)), to, chosen)


@operation(_int(_int, _int, _int, _int, _int))
def part_eight(builder: Any, words: Any, buckets: Any, first: Any, to: Any, rest: Any) -> Any:
    """Copy the words of a bucket, which is to be two of so many, to these lines: those of each in order, then zeros.

    Returns how many words stand in neither, as their own bucket had no room for them.

    Args:
        first: The number of the first of the two.
        rest: The address to which words go that stand in neither; it may be the bucket's.
    """
    some = _eight(builder, words)
    behind = builder.sub(_bucket(builder, some, buckets), _spread(builder, first))
    there = builder.icmp_unsigned("!=", some, _constant(0))
    for half in range(2):
        here = builder.and_(there, builder.icmp_unsigned("==", behind, _constant(half)))
        line = builder.add(to, _I64(LINE * half))
        builder.store(_constant(0), _point(builder, line), align=8)
        compress(builder, some, line, here)
    return compress(builder, some, rest, builder.and_(there, builder.icmp_unsigned(">", behind, _constant(1))))


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
    narrow = ir.VectorType(_I32, LANES).as_pointer()
    given = builder.load(builder.inttoptr(numbers, narrow), align=4)
    return _list_numbers(builder, builder.sext(given, _VECTOR), first, places, to)


def _list_numbers(builder: Any, numbers: Any, first: Any, places: Any, to: Any) -> Any:
    there = builder.icmp_unsigned("!=", numbers, _constant(0))
    compress(builder, builder.add(ir.Constant(_VECTOR, list(range(LANES))), _spread(builder, first)), places, there)
    return compress(builder, numbers, to, there)


@operation(_void(_int, _int, _int, _int))
def count_eight(builder: Any, items: Any, count: Any, counts: Any, amount: Any) -> None:
    """Add to the numbers, of 32 bits each, of the groups of the first eight items at most, which are different ones.

    NB: a scatter under a mask jumps over each lane that it leaves out, but for processors with AVX-512.

    Args:
        count: How many items there are.
        counts: The address of the numbers, from group 0 on; the key of a group is one more. Before them are eight that
            have no meaning, to which lanes without an item add.
    """
    there, nowhere = _first(builder, count), ir.Constant(_VECTOR, list(range(-LANES, 0)))
    groups = builder.sub(builder.and_(_eight(builder, items), _constant(KEY)), _constant(1))
    groups, more = builder.select(there, groups, nowhere), builder.trunc(amount, _I32)
    base = builder.inttoptr(counts, _I32.as_pointer())
    for lane in range(LANES):
        at = builder.gep(base, [builder.extract_element(groups, _I32(lane))])
        builder.store(builder.add(builder.load(at, align=4), more), at, align=4)
