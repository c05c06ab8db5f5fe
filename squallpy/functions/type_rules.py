"""Type rules of operations: from argument types to the types they are coerced to, and the result's.

additive("+", (INT, DECIMAL(2,1)))  →  (DECIMAL(11,1), DECIMAL(2,1)), DECIMAL(12,1)
"""

from collections.abc import Callable, Iterable
from functools import partial

from squallpy.base.errors import SquallError
from squallpy.base.types import (
    BIGINT,
    BOOLEAN,
    DATE,
    DOUBLE,
    MOST_DIGITS,
    TIMESTAMP,
    VARCHAR,
    Kind,
    Type,
    as_decimal,
    decimal,
    unify,
)
from squallpy.functions.entries import Argument, Arguments, TypeRule, Typing

TEXT, WHOLE = (Kind.VARCHAR,), (Kind.INT, Kind.BIGINT)
NUMERIC = (Kind.DOUBLE, Kind.INT, Kind.BIGINT, Kind.DECIMAL)
IN_MICROSECONDS = (Kind.TIMESTAMP, Kind.DAY_TO_SECOND)
DAYS, TIMES, MOMENTS = (Kind.DATE,), (Kind.TIMESTAMP,), (Kind.DATE, Kind.TIMESTAMP)


class Mismatch(SquallError):
    """Arguments that a function, or an operation that it is made of, does not take: SQ2005."""

    def __init__(self, name: str, types: Iterable[Type], hint: str = "") -> None:
        message = f"{name.upper()} does not take ({', '.join(map(str, types))})"
        super().__init__("SQ2005", message, hint=hint)


def mismatch(name: str, args: Arguments, hint: str = "") -> Mismatch:
    return Mismatch(name, (arg.type for arg in args), hint)


def types(args: Arguments) -> tuple[Type, ...]:
    return tuple(arg.type for arg in args)


def type_nulls(args: Arguments) -> Arguments:
    """Give NULL literals the type of the first argument that has one."""
    known = next((arg.type for arg in args if arg.type.kind is not Kind.NULL), BIGINT)
    return [arg._replace(type=known) if arg.type.kind is Kind.NULL else arg for arg in args]


def numeric(name: str, args: Arguments, hint: str = "") -> Arguments:
    """Check that all arguments are numbers."""
    args = type_nulls(args)
    if not all(arg.type.is_numeric for arg in args):
        raise mismatch(name, args, hint)
    return args


def smallest(arg: Argument) -> Type:
    """Find the DECIMAL of an exact argument; an integer literal only needs its digits."""
    if arg.is_literal and arg.type.is_integer and arg.value is not None:
        return decimal(len(str(abs(arg.value))), 0)
    return as_decimal(arg.type)


def numbers(name: str, args: Arguments) -> Arguments:
    """Check for two numbers, both DOUBLE or both exact."""
    args = numeric(name, args, "CAST the text to a number" if any(arg.type == VARCHAR for arg in args) else "")
    return [arg._replace(type=DOUBLE) for arg in args] if any(arg.type == DOUBLE for arg in args) else args


def arithmetic(exact: Callable[[Arguments], Typing]) -> TypeRule:
    """Make a rule by which doubles yield DOUBLE and integers BIGINT; `exact` types other exact numbers."""

    def rule(name: str, args: Arguments) -> Typing:
        args = numbers(name, args)
        if args[0].type == DOUBLE:
            return types(args), DOUBLE
        return (types(args), BIGINT) if all(arg.type.is_integer for arg in args) else exact(args)

    return rule


def align(args: Arguments) -> tuple[tuple[Type, ...], int, int]:
    """Bring exact arguments to DECIMALs of one scale; the most digits before the point; the scale."""
    smallest_types = [smallest(arg) for arg in args]
    scale = max(type.scale for type in smallest_types)
    digits = [type.precision - type.scale for type in smallest_types]
    return tuple(decimal(n + scale, scale) for n in digits), max(digits), scale


def decimal_sum(args: Arguments, carry: int = 1) -> Typing:
    aligned, digits, scale = align(args)
    return aligned, decimal(digits + scale + carry, scale)


def decimal_product(args: Arguments) -> Typing:
    factors = tuple(smallest(arg) for arg in args)
    scale = sum(type.scale for type in factors)
    if scale > MOST_DIGITS:
        product = " * ".join(map(str, factors))
        raise SquallError("SQ2005", f"{product} has more than 38 decimals", hint="CAST a factor to DOUBLE")
    return factors, decimal(sum(type.precision for type in factors), scale)


additive, multiplicative = arithmetic(decimal_sum), arithmetic(decimal_product)
remainder = arithmetic(partial(decimal_sum, carry=0))


def rounded_decimals(name: str, args: Arguments) -> Typing:
    """Type DECIMALs whose exact result takes more than 38 digits: digits before the point stay, and six after it.

    DECIMAL(38,18) * DECIMAL(38,18)  →  DECIMAL(38,6)        DECIMAL(38,0) + DECIMAL(30,20)  →  DECIMAL(38,6)

    Source: Spark, `DecimalType.adjustPrecisionScale`.
    """
    operands = tuple(smallest(arg) for arg in type_nulls(args))
    (p, s), (q, t) = ((type.precision, type.scale) for type in operands)
    if name == "remainder":
        return operands, decimal(min(p - s, q - t) + max(s, t), max(s, t))
    digits, scale = (p + q + 1 - s - t, s + t) if name == "product" else (max(p - s, q - t) + 1, max(s, t))
    return operands, decimal(MOST_DIGITS, max(MOST_DIGITS - digits, min(scale, 6)))


def quotient(name: str, args: Arguments) -> Typing:
    return (DOUBLE,) * len(numbers(name, args)), DOUBLE


def whole_quotient(name: str, args: Arguments) -> Typing:
    argument_types, type = remainder(name, args)
    if type == DOUBLE:
        raise mismatch(name, [Argument(DOUBLE)] * 2, "it is for exact numbers")
    return argument_types, BIGINT


def type_signed(name: str, args: Arguments) -> Typing:
    """Type a number; INT yields BIGINT, as the least INT has no opposite in INT."""
    args = numeric(name, args)
    return types(args), BIGINT if args[0].type.is_integer else args[0].type


def comparable(name: str, args: Arguments) -> Typing:
    """Type arguments of a common type, whose comparison is BOOLEAN."""
    return (compared_type(args),) * len(args), BOOLEAN


def compared_type(args: Arguments) -> Type:
    """Find the type in which arguments are compared; SQ2005 if they have none in common."""
    target = unify([arg.type for arg in args])
    if target is None or target.kind is Kind.INTERVAL:
        compared = " with ".join(dict.fromkeys(str(arg.type) for arg in args))
        raise SquallError("SQ2005", f"cannot compare {compared}", hint="CAST one side")
    if target.kind is Kind.NULL:
        return BIGINT
    if target.kind is Kind.DECIMAL:  # a literal with fewer digits than its type would make the other side wider
        return unify([smallest(arg) for arg in args if arg.type.kind is not Kind.NULL]) or target
    return target


def extreme(name: str, args: Arguments) -> Typing:
    target = compared_type(args)
    if target.nested:
        raise mismatch(name, args, f"take ARRAY_{'MAX' if name == 'greatest' else 'MIN'}(ARRAY(x, y))")
    return (target,) * len(args), target


def booleans(name: str, args: Arguments) -> Typing:
    others = [arg for arg in args if arg.type != BOOLEAN and arg.type.kind is not Kind.NULL]
    if others:
        raise mismatch(name, others, "write a comparison")
    return (BOOLEAN,) * len(args), BOOLEAN


def accept_any(name: str, args: Arguments) -> Typing:
    if any(arg.type.kind is Kind.INTERVAL for arg in args):
        raise mismatch(name, args)
    return types(args), BOOLEAN


def takes(result: Type, *accepted: tuple[Kind, ...]) -> TypeRule:
    """Make a rule for fixed kinds of arguments; the last one repeats.

    NULL literals take the first kind, and DATEs where only a TIMESTAMP is taken are its midnight.
    """

    def rule(name: str, args: Arguments) -> Typing:
        argument_types = list[Type]()
        for i, arg in enumerate(args):
            kinds = accepted[min(i, len(accepted) - 1)]
            type = Type(kinds[0]) if arg.type.kind is Kind.NULL else arg.type
            type = TIMESTAMP if kinds == TIMES and type == DATE else type
            if type.kind not in kinds or type.nested:
                is_unread = type == VARCHAR and set(kinds) <= {*MOMENTS}
                raise mismatch(name, args, f"CAST it to {Type(kinds[0])}" if kinds == TEXT or is_unread else "")
            argument_types.append(type)
        return tuple(argument_types), result

    return rule


def as_texts(name: str, args: Arguments) -> Typing:
    """Accept values of any type, as CAST writes them."""
    if any(arg.type.kind is Kind.INTERVAL or arg.type.nested for arg in args):
        raise mismatch(name, args)
    return (VARCHAR,) * len(args), VARCHAR


def real(name: str, args: Arguments) -> Typing:
    return (DOUBLE,) * len(numeric(name, args)), DOUBLE


def type_floor(name: str, args: Arguments) -> Typing:
    """Type FLOOR and CEIL: integers unchanged, DECIMAL without a scale, BIGINT for a DOUBLE."""
    args = numeric(name, args)
    (arg,) = args
    if arg.type.kind is Kind.DECIMAL:
        return types(args), decimal(arg.type.precision - arg.type.scale + 1, 0)
    return types(args), BIGINT if arg.type == DOUBLE else arg.type


def type_round(name: str, args: Arguments) -> Typing:
    """Type a DOUBLE, or an exact number rounded to tens, hundreds …, without digits after the point."""
    if args[0].type.is_integer:
        return types(args), BIGINT
    if args[0].type.kind is Kind.DECIMAL:
        return types(args), decimal(args[0].type.precision - args[0].type.scale + 1, 0)
    return takes(DOUBLE, (Kind.DOUBLE,), WHOLE)(name, args)


def type_truncate(name: str, args: Arguments) -> Typing:
    """Type a DOUBLE, an integer truncated to tens, hundreds …, or a DECIMAL with fewer digits after the point."""
    argument_types, _ = takes(DOUBLE, NUMERIC, WHOLE)(name, args)
    number, places = argument_types[0], args[1]
    if number.kind is not Kind.DECIMAL:
        return argument_types, number
    assert places.is_literal and places.value < number.scale
    scale = max(places.value, 0)
    return argument_types, decimal(number.precision - number.scale + scale, scale)


def bits(name: str, args: Arguments) -> Typing:
    """Type integers as 64 bits."""
    args = type_nulls(args)
    if not all(arg.type.is_integer for arg in args):
        raise mismatch(name, args)
    return types(args), BIGINT


def hashed(result: Type) -> TypeRule:
    """Make a rule for values without parts, each of its own type."""

    def rule(name: str, args: Arguments) -> Typing:
        if any(arg.type.kind is Kind.INTERVAL or arg.type.nested for arg in args):
            raise mismatch(name, args, "take a field, or CAST it to VARCHAR")
        return tuple(BIGINT if arg.type.kind is Kind.NULL else arg.type for arg in args), result

    return rule


def type_of_first(name: str, args: Arguments) -> Typing:
    return types(args), args[0].type


def powers(name: str, args: Arguments) -> Typing:
    """Type COUNT(x), SUM(x), SUM(x²), SUM(x³) …"""
    count, *sums = types(args)
    assert count == BIGINT and all(total.scale == n * sums[0].scale for n, total in enumerate(sums, 1))
    return types(args), DOUBLE


def mixed_moments(name: str, args: Arguments) -> Typing:
    """Type COUNT(*), SUM(y), SUM(x), SUM(y * x), and of DOUBLEs SUM_REST(y) … and the SUM of PRODUCT_REST(y, x)."""
    count, first, second, product, *rests = types(args)
    assert count == BIGINT and product.scale == first.scale + second.scale and len(rests) == 4 * (product == DOUBLE)
    return types(args), DOUBLE


def checked_sum(name: str, args: Arguments) -> Typing:
    """Type SUM(x), SUM(CAST(x AS DOUBLE))."""
    total, near = types(args)
    assert total.kind is Kind.DECIMAL and near == DOUBLE
    return types(args), total


def single_value(name: str, args: Arguments) -> Typing:
    """Type a value, the number of its rows, and the query."""
    value, rows, query = args
    assert rows.type == BIGINT and query.is_literal
    return types(args), value.type


def months(name: str, args: Arguments) -> Typing:
    return takes(args[0].type, MOMENTS, WHOLE)(name, args)


def pattern(name: str, args: Arguments) -> Typing:
    """Type a text, a pattern, and a literal escape character."""
    if not all(arg.is_literal for arg in args[2:]):
        raise mismatch(name, args, hint="the escape character is a constant")
    return takes(BOOLEAN, TEXT)(name, args)


def series(name: str, args: Arguments) -> Typing:
    """Type a start, a stop, and a step: a number, or months, days and microseconds."""
    assert args[0].type == args[1].type and len(args) in (3, 5)
    return types(args), args[0].type


def type_in_list(name: str, args: Arguments) -> Typing:
    """Type a value and literals to compare it with."""
    assert all(arg.is_literal for arg in args[1:])
    return comparable(name, args)
