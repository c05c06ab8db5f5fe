"""Casts that the binder adds, and values of literals in their physical form (`base/types.py`)."""

import re
from decimal import ROUND_HALF_UP, Context, Decimal, InvalidOperation
from math import copysign
from typing import Any

from squallpy.base.errors import SquallError, shorten
from squallpy.base.text_casts import parse
from squallpy.base.types import BIGINT, DOUBLE, INT, MOST_DIGITS, RANGES, VARCHAR, Kind, Type, decimal
from squallpy.logical.expressions import Cast, Expr, Literal

WIDE = Context(prec=2 * MOST_DIGITS, rounding=ROUND_HALF_UP)  # NB: Python's default context rounds to 28 digits
NUMBERS = frozenset({Kind.INT, Kind.BIGINT, Kind.DECIMAL, Kind.DOUBLE})
ALWAYS = NUMBERS | {Kind.BOOLEAN, Kind.DATE, Kind.TIMESTAMP, Kind.DAY_TO_SECOND}
CASTS: dict[Kind, frozenset[Kind]] = {
    Kind.VARCHAR: ALWAYS,
    Kind.DATE: frozenset({Kind.TIMESTAMP, Kind.VARCHAR}),
    Kind.TIMESTAMP: frozenset({Kind.DATE, Kind.VARCHAR}),
    Kind.DAY_TO_SECOND: frozenset({Kind.VARCHAR}),
    **{kind: NUMBERS | {Kind.VARCHAR, Kind.BOOLEAN} for kind in (*NUMBERS, Kind.BOOLEAN)},
}


def number_literal(text: str) -> Literal:
    """Parse a number as SQL types it.

    1  →  INT        3000000000  →  BIGINT        0.06  →  DECIMAL(2,2)        1e3  →  DOUBLE
    """
    if re.fullmatch(r"([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?", text) is None:
        raise SquallError("SQ1001", f"{text} is not a number")
    if "e" in text.lower():
        return Literal(float(text), DOUBLE)
    whole, _, fraction = text.partition(".")
    scale = len(fraction)
    digits = max(len((whole + fraction).lstrip("0")), scale, 1)
    if digits > MOST_DIGITS:
        raise SquallError("SQ2005", f"{text[:60]} has more than {MOST_DIGITS} digits", hint="write a DOUBLE, with e0")
    value = int(whole + fraction)
    if "." in text or value >= 2**63:
        return Literal(value, decimal(digits, scale))
    return Literal(value, INT if value < 2**31 else BIGINT)


def read_value(text: Literal, beside: Type) -> Literal:
    """Read a text constant as what it is compared with: the number that it writes, else as CAST to that type does.

    '1.50' beside INT  →  1.50, a DECIMAL(3,2)        'true' beside BOOLEAN  →  TRUE        'NaN' beside DOUBLE  →  NaN
    """
    if text.value is not None and beside.kind in NUMBERS:
        written = text.value.strip()
        try:
            number = number_literal(written.removeprefix("-"))
        except SquallError:
            pass
        else:
            return Literal(-number.value, number.type) if written.startswith("-") else number
    return Literal(convert(text.value, VARCHAR, beside), beside)


def same_values(source: Type, target: Type) -> bool:
    """True if both types store a value alike, so that comparing or adding them needs no cast."""
    if source.is_integer and target.is_integer:
        return True
    return source.kind is target.kind is Kind.DECIMAL and source.scale == target.scale


def coerce(expr: Expr, target: Type) -> Expr:
    """Convert an operand to a type: a literal at once, another expression by a Cast if its values differ.

    1 as DECIMAL(12,2)  →  1.00        a INT as BIGINT  →  a        a INT as DOUBLE  →  CAST(a AS DOUBLE)
    """
    if expr.type == target:
        return expr
    if isinstance(expr, Literal):
        return Literal(convert(expr.value, expr.type, target), target)
    return expr if same_values(expr.type, target) else Cast(expr, target)


def coerce_exactly(expr: Expr, target: Type) -> Expr:
    """Convert an expression to exactly the type `target`, as the branches of a CASE need it."""
    coerced = coerce(expr, target)
    return coerced if coerced.type == target else Cast(coerced, target)


NO_NUMBERS = {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}
"""DOUBLEs that JSON has as texts: as CAST writes them, and as they are held."""


def cast(expr: Expr, target: Type) -> Expr:
    """Build CAST(expr AS target) as written by a user; SQ2005 where no such cast exists."""
    source = expr.type
    possible = source == target or source.kind is Kind.NULL or target.kind in CASTS.get(source.kind, frozenset())
    possible &= source == target or not (source.nested or target.nested) or source.kind is Kind.NULL
    if not possible:
        raise SquallError("SQ2005", f"cannot cast {source} to {target}")
    if isinstance(expr, Literal):
        return Literal(convert(expr.value, source, target), target)
    return expr if source == target else Cast(expr, target)


def convert(value: Any, source: Type, target: Type) -> Any:
    """Convert a physical value to another type, as the runtime casts columns; SQ2005 if it has no value there."""
    if value is None or source == target:
        return value
    try:
        return parse(value, target) if source == VARCHAR else _convert(value, source, target)
    except (ValueError, InvalidOperation, OverflowError):
        raise SquallError("SQ2005", f"{shorten(str(Literal(value, source)))} is not a valid {target}") from None


def _convert(value: Any, source: Type, target: Type) -> Any:
    match target.kind:
        case Kind.VARCHAR:
            return _text(Literal(value, source))
        case Kind.DAY_TO_SECOND:
            months, days, micros = value
            if months:
                raise ValueError(value)
            least, most = RANGES[target.kind]
            return _is_in_range(days * 86_400_000_000 + micros, least, most + 1)
        case Kind.DATE:
            return value // 86_400_000_000
        case Kind.TIMESTAMP:
            return value * 86_400_000_000
        case Kind.BOOLEAN:
            return value != 0
        case Kind.DOUBLE:
            return float(_number(value, source))
        case Kind.DECIMAL:
            return _is_in_range(scale_by(value, source, target.scale), 1 - 10**target.precision, 10**target.precision)
    limit = 2**31 if target.kind is Kind.INT else 2**63
    return _is_in_range(int(_number(value, source)), -limit, limit)


def _is_in_range(value: int, least: int, end: int) -> int:
    if not least <= value < end:
        raise OverflowError
    return value


def scale_by(value: Any, source: Type, scale: int) -> int:
    """Compute value · 10^scale, rounded half away from zero; doubles are multiplied as doubles."""
    if source.kind is Kind.DOUBLE:
        product = value * 10.0**scale
        return int(product + copysign(0.5, product))
    return int(_number(value, source).quantize(Decimal((0, (1,), -scale)), context=WIDE).scaleb(scale, WIDE))


def _number(value: Any, source: Type) -> Decimal:
    if source.kind is Kind.DECIMAL:
        return Decimal(value).scaleb(-source.scale, WIDE)
    return Decimal(value)


def _text(literal: Literal) -> str:
    """Write a value as CAST does: a literal without quotes and in lower case."""
    text = str(literal)
    match literal.type.kind:
        case Kind.DATE | Kind.TIMESTAMP:
            bare = text.split("'")[1]
            return bare.rstrip("0") if "." in bare else bare
        case Kind.DAY_TO_SECOND:
            return text
        case Kind.DOUBLE:
            return text.replace("e-0", "e-")
    return text.lower()
