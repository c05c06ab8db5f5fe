"""Comparison of a whole cache line with a word: the machine's widest, or as many narrower ones as it takes.

equal32(address of 5, 7, 5, …, 5)    →   0b101, for 16 words of 32 bits
"""

from typing import Any

from llvmlite import ir
from numba import types

from squallpy.runtime.kernels.intrinsics import operation

_I32, _I64 = ir.IntType(32), ir.IntType(64)
_int = types.int64


def _equal(builder: Any, lane: Any, address: Any, word: Any, mask: Any | None) -> Any:
    """Compare the lanes of 64 bytes at an address with a word, under a mask; a bit for each that is equal."""
    count, first = 512 // lane.width, ir.Constant(_I32, 0)
    vector = ir.VectorType(lane, count)

    def spread(value: Any) -> Any:
        one = builder.insert_element(ir.Constant(vector, ir.Undefined), value, first)
        return builder.shuffle_vector(one, one, ir.Constant(ir.VectorType(_I32, count), [0] * count))

    found = builder.load(builder.inttoptr(address, vector.as_pointer()), align=1)
    if mask is not None:
        found = builder.and_(found, spread(mask))
    bits = builder.bitcast(builder.icmp_unsigned("==", found, spread(word)), ir.IntType(count))
    return builder.zext(bits, _I64)


@operation(_int(_int, _int))
def equal32(builder: Any, address: Any, word: Any) -> Any:
    """Compare 16 words of 32 bits at an address with the low half of one; a bit for each that is equal."""
    return _equal(builder, _I32, address, builder.trunc(word, _I32), None)


@operation(_int(_int, _int, _int))
def equal64(builder: Any, address: Any, word: Any, mask: Any) -> Any:
    """Compare those bits of eight words at an address that a mask has with a word; a bit for each that is equal."""
    return _equal(builder, _I64, address, word, mask)
