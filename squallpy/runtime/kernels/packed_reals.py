"""Packed doubles, and packed words: LANES of them in a vector register, as one value of kernels.

    x = load_packed(address)                 eight doubles that lie side by side
    two_sum(x, spread(0.1))                  as of one double: `ring_arithmetic` takes both
    store_some(address, x, 3)                the first three
    load_words(a) * load_words(b)            eight products of words, modulo 2⁶⁴

Where a machine's registers are narrower, LLVM takes several; so results are the same bits everywhere.
"""

import operator
from typing import Any, Final, TypeAlias

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.datamodel import models
from numba.core.typing import templates
from numba.extending import lower_builtin, register_model

from squallpy.runtime.kernels.intrinsics import operation

LANES: Final = 8
BYTES: Final = 8 * LANES

Packed: TypeAlias = float
"""Eight doubles: for type checkers, which see that it is added and multiplied as one."""
PackedWords: TypeAlias = int
"""Eight words, likewise."""

_alloca: Any = cgutils.alloca_once
_declare: Any = cgutils.get_or_insert_function  # NB: numba's own types lack those of its functions
_infer_global: Any = templates.infer_global
_lower_builtin: Any = lower_builtin
_register_model: Any = register_model

_I32, _I64 = ir.IntType(32), ir.IntType(64)
_VECTOR = ir.VectorType(ir.DoubleType(), LANES)
_WORDS = ir.VectorType(_I64, LANES)
_ZERO = ir.Constant(_VECTOR, [0.0] * LANES)


class _Type(types.Opaque):
    """Packed doubles, as numba knows them."""


class _WordsType(types.Opaque):
    """Packed words, as numba knows them."""


_packed, _words = _Type("Packed"), _WordsType("PackedWords")
_int, _float, _void = types.int64, types.float64, types.void


class _Model(models.PrimitiveModel):
    def __init__(self, manager: Any, type: Any) -> None:
        super().__init__(manager, type, _VECTOR)  # type: ignore[no-untyped-call]


class _WordsModel(models.PrimitiveModel):
    def __init__(self, manager: Any, type: Any) -> None:
        super().__init__(manager, type, _WORDS)  # type: ignore[no-untyped-call]


_register_model(_Type)(_Model)
_register_model(_WordsType)(_WordsModel)


def _operator(kind: Any, function: Any, instruction: str) -> None:
    """Let an operator work on packed values of a type."""

    class _Template(templates.AbstractTemplate):
        def generic(self, arguments: Any, _: Any) -> Any:
            return kind(kind, kind) if arguments == (kind, kind) else None

    _infer_global(function)(_Template)

    def generate(_: Any, builder: Any, __: Any, values: Any) -> Any:
        return getattr(builder, instruction)(*values)

    _lower_builtin(function, kind, kind)(generate)


for _function, _instruction in ((operator.add, "fadd"), (operator.sub, "fsub"), (operator.mul, "fmul")):
    _operator(_packed, _function, _instruction)
_operator(_words, operator.mul, "mul")
_operator(_words, operator.or_, "or_")


class _Negation(templates.AbstractTemplate):
    def generic(self, arguments: Any, _: Any) -> Any:
        return _packed(_packed) if arguments == (_packed,) else None


_infer_global(operator.neg)(_Negation)


def _negate(_: Any, builder: Any, __: Any, values: Any) -> Any:
    return builder.fneg(*values)


_lower_builtin(operator.neg, _packed)(_negate)


def _spread(builder: Any, value: Any) -> Any:
    """Fill a vector with one value."""
    kind = ir.VectorType(value.type, LANES)
    first = builder.insert_element(ir.Constant(kind, ir.Undefined), value, _I32(0))
    places = ir.Constant(ir.VectorType(_I32, LANES), [0] * LANES)
    return builder.shuffle_vector(first, ir.Constant(kind, ir.Undefined), places)


def _first(builder: Any, count: Any) -> Any:
    """Mark the first lanes, so many as `count` says."""
    lanes = ir.Constant(ir.VectorType(_I64, LANES), list(range(LANES)))
    return builder.icmp_signed("<", lanes, _spread(builder, count))


def _at(builder: Any, address: Any) -> Any:
    return builder.inttoptr(address, _VECTOR.as_pointer())


def _call(builder: Any, name: str, result: Any, *given: Any) -> Any:
    """Call an intrinsic of LLVM."""
    kind = ir.FunctionType(result, [value.type for value in given])
    return builder.call(_declare(builder.module, kind, f"llvm.{name}"), given)


@operation(_packed(_int))
def load_packed(builder: Any, address: Any) -> Any:
    """Load the doubles at `address`."""
    return builder.load(_at(builder, address), align=8)


@operation(_packed(_int, _int))
def load_some(builder: Any, address: Any, count: Any) -> Any:
    """Load `count` doubles at `address`, all lanes if these are fewer; the other lanes are 0, their memory is not
    read."""
    place = _at(builder, address)
    return _call(builder, "masked.load.v8f64.p0v8f64", _VECTOR, place, _I32(8), _first(builder, count), _ZERO)


@operation(_void(_int, _packed))
def store_packed(builder: Any, address: Any, value: Any) -> Any:
    """Store all lanes at `address`."""
    builder.store(value, _at(builder, address), align=8)


@operation(_void(_int, _packed, _int))
def store_some(builder: Any, address: Any, value: Any, count: Any) -> Any:
    """Store the first `count` lanes at `address`, all if they are fewer.

    NB: not by a masked store, which takes some processors of AMD as long as a dozen others.
    """
    with builder.if_else(builder.icmp_signed(">=", count, _I64(LANES))) as (every, some):
        with every:
            builder.store(value, _at(builder, address), align=8)
        with some:
            place, left = _alloca(builder, _I64), _alloca(builder, _VECTOR)
            builder.store(address, place)
            builder.store(value, left)
            size = LANES // 2
            while size:
                with builder.if_then(builder.icmp_signed("!=", builder.and_(count, _I64(size)), _I64(0))):
                    rest, at = builder.load(left), builder.load(place)
                    kind = ir.VectorType(ir.DoubleType(), size)
                    first = builder.shuffle_vector(rest, _ZERO, ir.Constant(ir.VectorType(_I32, size), [*range(size)]))
                    builder.store(first, builder.inttoptr(at, kind.as_pointer()), align=8)
                    lanes = ir.Constant(ir.VectorType(_I32, LANES), [(i + size) % LANES for i in range(LANES)])
                    builder.store(builder.shuffle_vector(rest, _ZERO, lanes), left)
                    builder.store(builder.add(at, _I64(8 * size)), place)
                size //= 2


@operation(_packed(_float))
def spread(builder: Any, value: Any) -> Any:
    """Fill all lanes with one double."""
    return _spread(builder, value)


@operation(_packed(_packed, _packed, _packed))
def multiply_add(builder: Any, a: Any, b: Any, c: Any) -> Any:
    """Compute a · b + c, rounded once."""
    return _call(builder, "fma.v8f64", _VECTOR, a, b, c)


@operation(_packed(_packed, _float))
def within_packed(builder: Any, x: Any, most: Any) -> Any:
    """Replace NaN and what is beyond a limit by 0."""
    size = _call(builder, "fabs.v8f64", _VECTOR, x)
    return builder.select(builder.fcmp_ordered("<=", size, _spread(builder, most)), x, _ZERO)


@operation(_packed(_packed, _packed))
def where_finite(builder: Any, x: Any, y: Any) -> Any:
    """Choose y in the lanes where x is finite, else 0."""
    zero_or_nan = builder.fsub(x, x)
    return builder.select(builder.fcmp_ordered("ord", zero_or_nan, zero_or_nan), y, _ZERO)


@operation(_words(_int))
def load_words(builder: Any, address: Any) -> Any:
    """Load the words at `address`."""
    return builder.load(builder.inttoptr(address, _WORDS.as_pointer()), align=8)


@operation(_words(_int, _int))
def load_some_words(builder: Any, address: Any, count: Any) -> Any:
    """Load `count` words at `address`, as `load_some` does doubles."""
    place, none = builder.inttoptr(address, _WORDS.as_pointer()), ir.Constant(_WORDS, [0] * LANES)
    return _call(builder, "masked.load.v8i64.p0v8i64", _WORDS, place, _I32(8), _first(builder, count), none)


@operation(_int(_words, _int))
def has_others(builder: Any, words: Any, word: Any) -> Any:
    """Return 1 if one of the words is another than `word`, else 0."""
    lanes, all_lanes = builder.icmp_signed("!=", words, _spread(builder, word)), ir.IntType(LANES)
    return builder.zext(builder.icmp_signed("!=", builder.bitcast(lanes, all_lanes), all_lanes(0)), _I64)


@operation(_void(_int, _words))
def store_words(builder: Any, address: Any, value: Any) -> Any:
    """Store all words at `address`."""
    builder.store(value, builder.inttoptr(address, _WORDS.as_pointer()), align=8)


@operation(_words(_int))
def spread_word(builder: Any, value: Any) -> Any:
    """Fill all lanes with one word."""
    return _spread(builder, value)


@operation(_packed(_words))
def as_reals(builder: Any, words: Any) -> Any:
    """Convert words to doubles, rounded."""
    return builder.sitofp(words, _VECTOR)


@operation(_packed(_words))
def upper_reals(builder: Any, words: Any) -> Any:
    """Convert the upper halves of words, with their signs, to doubles: what is left of a word by 2³²."""
    return builder.sitofp(builder.ashr(words, ir.Constant(_WORDS, [32] * LANES)), _VECTOR)


@operation(_packed(_words))
def lower_reals(builder: Any, words: Any) -> Any:
    """Convert the lower halves of words, without a sign, to doubles."""
    return builder.sitofp(builder.and_(words, ir.Constant(_WORDS, [0xFFFFFFFF] * LANES)), _VECTOR)
