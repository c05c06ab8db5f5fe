"""Words of eight items at once, and the lines of a table where they stand: what does not depend on how many there are.

A list of changes has a dozen items, so that a loop over them one by one, or four at a time and then the rest, mostly
guesses wrong when it ends.

    address_eight(items, words, lines, 3, shift, table, buckets, mark)   →   three words, three lines
"""

from typing import Any

from llvmlite import ir
from numba import types

from squallpy.runtime.kernels.arena_tables import GOLDEN, HALF, KEY, LINE
from squallpy.runtime.kernels.intrinsics import operation

_I1, _I32, _I64, _LANES = ir.IntType(1), ir.IntType(32), ir.IntType(64), 8
_VECTOR, _BITS = ir.VectorType(_I64, _LANES), ir.VectorType(_I1, _LANES)
_POINTER = _VECTOR.as_pointer()
_int, _void = types.int64, types.void


def _constant(word: int) -> Any:
    return ir.Constant(_VECTOR, [word] * _LANES)


def _intrinsic(builder: Any, name: str, answer: Any, *arguments: Any) -> Any:
    """Call an intrinsic of LLVM that moves eight words."""
    name, kind = f"llvm.masked.{name}.v8i64.p0", ir.FunctionType(answer, [a.type for a in arguments])
    function = builder.module.globals.get(name) or ir.Function(builder.module, kind, name)
    return builder.call(function, arguments)


@operation(_void(_int, _int, _int, _int, _int, _int, _int, _int))
def address_eight(
    builder: Any, items: Any, words: Any, lines: Any, count: Any, shift: Any, table: Any, buckets: Any, mark: Any
) -> None:
    """Store the words of the first eight items at most, which are `shift` more than these, and the line of each.

    Args:
        count: How many items there are.
        mark: What is added to a line's address.
    """

    def spread(value: Any) -> Any:
        one = builder.insert_element(ir.Constant(_VECTOR, ir.Undefined), value, _I32(0))
        return builder.shuffle_vector(one, one, ir.Constant(ir.VectorType(_I32, _LANES), [0] * _LANES))

    def point(address: Any) -> Any:
        return builder.inttoptr(address, _POINTER)

    there = builder.icmp_unsigned("<", ir.Constant(_VECTOR, list(range(_LANES))), spread(count))
    some = _intrinsic(builder, "load", _VECTOR, point(items), _I32(8), there, _constant(0))
    found = builder.add(some, spread(shift))
    hashed = builder.and_(builder.mul(builder.and_(found, _constant(KEY)), _constant(GOLDEN)), _constant(HALF))
    bucket = builder.lshr(builder.mul(hashed, spread(builder.and_(buckets, _I64(HALF)))), _constant(32))
    line = builder.or_(builder.add(builder.mul(bucket, _constant(LINE)), spread(table)), spread(mark))
    for to, what in ((words, found), (lines, line)):
        _intrinsic(builder, "store", ir.VoidType(), what, point(to), _I32(8), there)
