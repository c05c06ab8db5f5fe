"""The few machine operations that Python lacks: raw loads and stores, unsigned 64-bit arithmetic, bit casts.

Kernels address memory by number, so that one small array of addresses (a *frame*, see `area.py`) stands for a whole
data structure: numba spends 100–200 ns on every array argument. All integers are int64; where the sign must not count,
one of these functions says so.

    load(address, 2)             the third word at `address`
    shift_right(-1, 63) == 1     logical, not arithmetic
"""

from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

_I8, _I16, _I32, _I64, _I128 = (ir.IntType(bits) for bits in (8, 16, 32, 64, 128))
_int, _float = types.int64, types.float64


def _at(builder: ir.IRBuilder, unit: ir.Type, address: ir.Value, index: ir.Value) -> ir.Value:
    """Pointer to element `index` of an array of `unit` at `address`."""
    return builder.gep(builder.inttoptr(address, unit.as_pointer()), [index])


@intrinsic
def load(typing: Any, address: Any, index: Any) -> tuple[Any, Callable[..., Any]]:
    """The int64 word number `index` at `address` (which need not be aligned)."""

    def emit(context: Any, builder: ir.IRBuilder, signature: Any, args: Any) -> ir.Value:
        return builder.load(_at(builder, _I64, *args), align=1)

    return _int(_int, _int), emit


@intrinsic
def load32(typing: Any, address: Any, index: Any) -> tuple[Any, Callable[..., Any]]:
    """The 32-bit word number `index` at `address`, zero-extended."""

    def emit(context: Any, builder: ir.IRBuilder, signature: Any, args: Any) -> ir.Value:
        return builder.zext(builder.load(_at(builder, _I32, *args), align=1), _I64)

    return _int(_int, _int), emit


@intrinsic
def load8(typing: Any, address: Any, index: Any) -> tuple[Any, Callable[..., Any]]:
    """The byte number `index` at `address`, zero-extended."""

    def emit(context: Any, builder: ir.IRBuilder, signature: Any, args: Any) -> ir.Value:
        return builder.zext(builder.load(_at(builder, _I8, *args)), _I64)

    return _int(_int, _int), emit


@intrinsic
def store(typing: Any, address: Any, index: Any, word: Any) -> tuple[Any, Callable[..., Any]]:
    """Set the int64 word number `index` at `address`."""

    def emit(context: Any, builder: ir.IRBuilder, signature: Any, args: Any) -> ir.Value:
        builder.store(args[2], _at(builder, _I64, args[0], args[1]), align=1)
        return context.get_dummy_value()

    return types.void(_int, _int, _int), emit


@intrinsic
def store8(typing: Any, address: Any, index: Any, byte: Any) -> tuple[Any, Callable[..., Any]]:
    """Set the byte number `index` at `address` to the low eight bits of `byte`."""

    def emit(context: Any, builder: ir.IRBuilder, signature: Any, args: Any) -> ir.Value:
        builder.store(builder.trunc(args[2], _I8), _at(builder, _I8, args[0], args[1]))
        return context.get_dummy_value()

    return types.void(_int, _int, _int), emit


@intrinsic
def prefetch(typing: Any, address: Any) -> tuple[Any, Callable[..., Any]]:
    """Ask for the cache line at `address`; harmless whatever the address."""

    def emit(context: Any, builder: ir.IRBuilder, signature: Any, args: Any) -> ir.Value:
        pointer = builder.inttoptr(args[0], _I8.as_pointer())
        kind = ir.FunctionType(ir.VoidType(), [_I8.as_pointer(), _I32, _I32, _I32])
        name = "llvm.prefetch.p0"
        function = builder.module.globals.get(name) or ir.Function(builder.module, kind, name)
        builder.call(function, [pointer, _I32(0), _I32(3), _I32(1)])
        return context.get_dummy_value()

    return types.void(_int), emit


@intrinsic
def shift_right(typing: Any, word: Any, bits: Any) -> tuple[Any, Callable[..., Any]]:
    """Logical shift: zeros come in at the top."""

    def emit(context: Any, builder: ir.IRBuilder, signature: Any, args: Any) -> ir.Value:
        return builder.lshr(*args)

    return _int(_int, _int), emit


@intrinsic
def below(typing: Any, a: Any, b: Any) -> tuple[Any, Callable[..., Any]]:
    """1 if a < b as unsigned words, else 0: the carry of `a = x + b`."""

    def emit(context: Any, builder: ir.IRBuilder, signature: Any, args: Any) -> ir.Value:
        return builder.zext(builder.icmp_unsigned("<", *args), _I64)

    return _int(_int, _int), emit


@intrinsic
def multiply_high(typing: Any, a: Any, b: Any) -> tuple[Any, Callable[..., Any]]:
    """The upper 64 bits of the unsigned 128-bit product."""

    def emit(context: Any, builder: ir.IRBuilder, signature: Any, args: Any) -> ir.Value:
        product = builder.mul(builder.zext(args[0], _I128), builder.zext(args[1], _I128))
        return builder.trunc(builder.lshr(product, _I128(64)), _I64)

    return _int(_int, _int), emit


@intrinsic
def as_float(typing: Any, word: Any) -> tuple[Any, Callable[..., Any]]:
    """The float64 with these bits."""

    def emit(context: Any, builder: ir.IRBuilder, signature: Any, args: Any) -> ir.Value:
        return builder.bitcast(args[0], ir.DoubleType())

    return _float(_int), emit


@intrinsic
def as_word(typing: Any, number: Any) -> tuple[Any, Callable[..., Any]]:
    """The bits of this float64."""

    def emit(context: Any, builder: ir.IRBuilder, signature: Any, args: Any) -> ir.Value:
        return builder.bitcast(args[0], _I64)

    return _int(_float), emit
