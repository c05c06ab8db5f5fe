"""The few machine operations that Python lacks: raw loads and stores, unsigned 64-bit arithmetic, bit casts.

Kernels address memory by number, so that one small array of addresses (a *frame*, see `memory_area.py`) stands for a
whole data structure: numba spends 100–200 ns on every array argument. All integers are int64; where the sign must not
count, one of these functions says so.

    load(address, 2)             the third word at `address`
    shift_right(-1, 63) == 1     logical, not arithmetic
"""

from collections.abc import Callable
from functools import wraps
from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

_I8, _I32, _I64, _I128 = (ir.IntType(bits) for bits in (8, 32, 64, 128))
_int, _float, _void = types.int64, types.float64, types.void
_pointer: Any = types.CPointer(types.int64)  # type: ignore[no-untyped-call]

Emit = Callable[..., Any]  # (builder, *argument values) → result value


def operation(signature: Any) -> Callable[[Emit], Callable[..., int]]:
    """Make an operation of the function that emits it."""

    def declare(emit: Emit) -> Callable[..., int]:
        def generate(context: Any, builder: Any, _: Any, values: Any) -> Any:
            result = emit(builder, *values)
            return context.get_dummy_value() if signature.return_type == _void else result

        @wraps(emit)  # also its parameters, as numba sees them: the typing context takes the builder's place
        def typed(context: Any, *given: Any) -> Any:
            return signature, generate

        made: Callable[..., int] = intrinsic(typed)  # or floats, which take int for an answer
        return made

    return declare


def _element(builder: Any, unit: Any, address: Any, index: Any) -> Any:
    """Point at element `index` of an array of `unit` at `address`."""
    return builder.gep(builder.inttoptr(address, unit.as_pointer()), [index])


@operation(_int(_int, _int))
def load(builder: Any, address: Any, index: Any) -> Any:
    """Load the int64 word number `index` at `address`, which need not be aligned."""
    return builder.load(_element(builder, _I64, address, index), align=1)


@operation(_int(_int, _int))
def load32(builder: Any, address: Any, index: Any) -> Any:
    """Load the 32-bit word number `index` at `address`, zero-extended."""
    return builder.zext(builder.load(_element(builder, _I32, address, index), align=1), _I64)


@operation(_int(_int, _int))
def load8(builder: Any, address: Any, index: Any) -> Any:
    """Load the byte number `index` at `address`, zero-extended."""
    return builder.zext(builder.load(_element(builder, _I8, address, index)), _I64)


@operation(_void(_int, _int, _int))
def store(builder: Any, address: Any, index: Any, word: Any) -> Any:
    """Set the int64 word number `index` at `address`, which need not be aligned."""
    builder.store(word, _element(builder, _I64, address, index), align=1)


@operation(_void(_int, _int, _int))
def store32(builder: Any, address: Any, index: Any, word: Any) -> Any:
    """Set the 32-bit word number `index` at `address` to the low half of `word`."""
    builder.store(builder.trunc(word, _I32), _element(builder, _I32, address, index), align=1)


@operation(_void(_int, _int, _int))
def store8(builder: Any, address: Any, index: Any, byte: Any) -> Any:
    """Set the byte number `index` at `address` to the low eight bits of `byte`."""
    builder.store(builder.trunc(byte, _I8), _element(builder, _I8, address, index))


def _transfer(builder: Any, name: str, to: Any, source: Any, size: Any) -> None:
    """Call an intrinsic of LLVM that copies bytes from one address to another."""
    pointer, unmarked = _I8.as_pointer(), ir.IntType(1)(0)
    kind = ir.FunctionType(ir.VoidType(), [pointer, pointer, _I64, unmarked.type])
    function = builder.module.declare_intrinsic(name, (pointer, pointer, _I64), kind)
    places = [builder.inttoptr(address, pointer) for address in (to, source)]
    builder.call(function, [*places, size, unmarked])


@operation(_void(_int, _int, _int))
def move(builder: Any, to: Any, source: Any, words: Any) -> Any:
    """Copy words from one address to another, which may overlap."""
    _transfer(builder, "llvm.memmove", to, source, builder.shl(words, _I64(3)))


@operation(_void(_int, _int, _int))
def copy_bytes(builder: Any, to: Any, source: Any, size: Any) -> Any:
    """Copy bytes from one address to another; the two parts must not overlap."""
    _transfer(builder, "llvm.memcpy", to, source, size)


@operation(_int(_int, _int, _int))
def call(builder: Any, function: Any, first: Any, second: Any) -> Any:
    """Call the function of C at an address with two words, which it may ignore, and return a word."""
    kind = ir.FunctionType(_I64, [_I64, _I64])
    return builder.call(builder.inttoptr(function, kind.as_pointer()), [first, second])


@operation(_pointer(_int))
def pointer(builder: Any, address: Any) -> Any:
    """Convert an address to the pointer that numba's `carray` takes, which makes an array of the memory there."""
    return builder.inttoptr(address, _I64.as_pointer())


@operation(_void(_int))
def prefetch(builder: Any, address: Any) -> Any:
    """Ask for the cache line at `address`; harmless whatever the address."""
    pointer = _I8.as_pointer()
    kind = ir.FunctionType(ir.VoidType(), [pointer, _I32, _I32, _I32])
    function = builder.module.declare_intrinsic("llvm.prefetch", (pointer,), kind)
    builder.call(function, [builder.inttoptr(address, pointer), _I32(0), _I32(3), _I32(1)])


@operation(_int(_int))
def rolled(builder: Any, word: Any) -> Any:
    """Return a word, of which LLVM then knows nothing: a loop that does this is not unrolled.

    NB: LLVM unrolls loops for AMD's processors until they fill no cache of instructions any more.
    """
    return builder.asm(ir.FunctionType(_I64, [_I64]), "", "=r,0", [word], False)


@operation(_int(_int, _int))
def shift_right(builder: Any, word: Any, bits: Any) -> Any:
    """Shift right logically: zeros come in at the top."""
    return builder.lshr(word, bits)


@operation(_int(_int, _int))
def below(builder: Any, a: Any, b: Any) -> Any:
    """Return 1 if a < b as unsigned words, else 0: the carry of `a = x + b`."""
    return builder.zext(builder.icmp_unsigned("<", a, b), _I64)


@operation(_int(_int, _int))
def multiply_high(builder: Any, a: Any, b: Any) -> Any:
    """Return the upper 64 bits of the unsigned 128-bit product."""
    product = builder.mul(builder.zext(a, _I128), builder.zext(b, _I128))
    return builder.trunc(builder.lshr(product, _I128(64)), _I64)


@operation(_int(_int))
def lowest(builder: Any, word: Any) -> Any:
    """Return the number of the lowest bit that is set, of 64; 64 if none is."""
    return builder.cttz(word, ir.Constant(ir.IntType(1), 0))


_VECTOR = ir.VectorType(_I64, 8)


def _spread(builder: Any, word: Any) -> Any:
    """Make a vector of eight times a word."""
    none, first = ir.Constant(_VECTOR, ir.Undefined), ir.Constant(ir.VectorType(_I32, 8), [0] * 8)
    return builder.shuffle_vector(builder.insert_element(none, word, _I32(0)), none, first)


def _eight(builder: Any, address: Any) -> Any:
    """Load the eight words at an address."""
    return builder.load(builder.inttoptr(address, _VECTOR.as_pointer()), align=8)


def _bits(builder: Any, flags: Any) -> Any:
    """Make a word of eight flags."""
    return builder.zext(builder.bitcast(flags, _I8), _I64)


@operation(_int(_int, _int))
def product_overflows(builder: Any, a: Any, b: Any) -> Any:
    """Return 1 if the product of two signed words has no room in one."""
    return builder.zext(builder.extract_value(builder.smul_with_overflow(a, b), 1), _I64)


@operation(_int(_int, _int))
def reaching(builder: Any, address: Any, least: Any) -> Any:
    """Return a bit for each of the eight words at an address that, less 1, is not below another, all unsigned.

    NB: that of a word of 0 is 1.
    """
    before = builder.sub(_eight(builder, address), ir.Constant(_VECTOR, [1] * 8))
    return _bits(builder, builder.icmp_unsigned(">=", before, _spread(builder, least)))


@operation(_float(_int))
def as_float(builder: Any, word: Any) -> Any:
    """Reinterpret a word as the float64 with these bits."""
    return builder.bitcast(word, ir.DoubleType())


@operation(_int(_float))
def as_word(builder: Any, number: Any) -> Any:
    """Reinterpret a float64 as the word of its bits."""
    return builder.bitcast(number, _I64)
