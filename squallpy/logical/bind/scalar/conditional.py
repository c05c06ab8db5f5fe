"""Choices, NULLs, and casts that are written as calls."""

from functools import partial

from squallpy.base.types import BIGINT, BOOLEAN, DATE, DOUBLE, INT, TIMESTAMP, VARCHAR, Type, decimal
from squallpy.logical.bind.datetime.calendar import convert
from squallpy.logical.bind.scalar.expansion import NOTHING, ZERO, expands
from squallpy.logical.coercion import coerce
from squallpy.logical.expression_builders import call, case, coalesce
from squallpy.logical.expressions import Expr, Literal, not_null

TYPES = {
    "STRING": VARCHAR, "INT": INT, "BIGINT": BIGINT, "DOUBLE": DOUBLE, "BOOLEAN": BOOLEAN, "DATE": DATE,
    "TIMESTAMP": TIMESTAMP, "DECIMAL": decimal(10, 0),
}  # fmt: skip

expands("COALESCE")(coalesce)
expands("IFNULL")(coalesce)
expands("ISNOTNULL")(not_null)


@expands("NULLIF")
def null_if(value: Expr, other: Expr) -> Expr:
    return case([(call("=", value, other), NOTHING)], value)


@expands("NULLIFZERO")
def null_if_zero(x: Expr) -> Expr:
    return null_if(x, ZERO)


@expands("ZEROIFNULL")
def zero_if_null(x: Expr) -> Expr:
    return coalesce(x, ZERO)


@expands("IF")
def if_else(condition: Expr, yes: Expr, no: Expr) -> Expr:
    return case([(condition, yes)], no)


@expands("NVL2")
def nvl2(tested: Expr, there: Expr, missing: Expr) -> Expr:
    return case([(not_null(tested), there)], missing)


@expands("ISNAN")
def is_nan(x: Expr) -> Expr:
    """Build ISNAN(x), which is FALSE for NULL."""
    return call("<=>", coerce(x, DOUBLE), Literal(float("nan"), DOUBLE))


@expands("NANVL")
def if_nan(x: Expr, other: Expr) -> Expr:
    return case([(is_nan(x), other)], x)


@expands("DECODE")
def decode(value: Expr, *rest: Expr) -> Expr:
    """Build DECODE as CASE.

    DECODE(x, 1, 'a', 2, 'b', 'c')  →  CASE WHEN x <=> 1 THEN 'a' WHEN x <=> 2 THEN 'b' ELSE 'c' END
    """
    pairs = list(zip(rest[::2], rest[1::2], strict=False))
    otherwise = rest[-1] if len(rest) % 2 else NOTHING
    return case([(call("<=>", value, key), result) for key, result in pairs], otherwise)


@expands("ELT")
def element(place: Expr, *values: Expr) -> Expr:
    """Build ELT(n, a, b)."""
    numbered = enumerate(values, 1)
    return case([(call("=", place, Literal(n, INT)), value) for n, value in numbered], NOTHING)


def to_type(type: Type, value: Expr) -> Expr:
    """Build a cast: INT(x)  →  CAST(x AS INT)"""
    return convert(value, type)


for _name, _type in TYPES.items():
    expands(_name)(partial(to_type, _type))
