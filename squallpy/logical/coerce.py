"""Casts that the binder adds, and values of literals in their physical form (`base/types.py`)."""

from datetime import date, datetime, timedelta
from decimal import ROUND_HALF_UP, Decimal, InvalidOperation
from typing import Any

from squallpy.base.errors import SquallError
from squallpy.base.types import BIGINT, DOUBLE, INT, VARCHAR, Kind, Type, common, decimal
from squallpy.logical.expressions import EPOCH, Cast, Expr, Literal

EPOCH_TIME = datetime(1970, 1, 1)
CONTEXT_DIGITS = 38
ALWAYS = frozenset({Kind.BOOLEAN, Kind.INT, Kind.BIGINT, Kind.DECIMAL, Kind.DOUBLE, Kind.DATE, Kind.TIMESTAMP})
NUMBERS = frozenset({Kind.INT, Kind.BIGINT, Kind.DECIMAL, Kind.DOUBLE})
CASTS: dict[Kind, frozenset[Kind]] = {
    Kind.VARCHAR: ALWAYS,
    Kind.DATE: frozenset({Kind.TIMESTAMP, Kind.VARCHAR}),
    Kind.TIMESTAMP: frozenset({Kind.DATE, Kind.VARCHAR}),
    Kind.BOOLEAN: frozenset({Kind.VARCHAR}),
    **{kind: NUMBERS | {Kind.VARCHAR} for kind in NUMBERS},
}


def number_literal(text: str) -> Literal:
    """A number as SQL types it.

    1  →  INT        3000000000  →  BIGINT        0.06  →  DECIMAL(2,2)        1e3  →  DOUBLE
    """
    if "e" in text.lower():
        return Literal(float(text), DOUBLE)
    whole, _, fraction = text.partition(".")
    value, scale = int((whole or "0") + fraction), len(fraction)
    digits = max(len(str(value)), scale)
    if digits > CONTEXT_DIGITS:
        raise SquallError("SQ2005", f"{text} has more than {CONTEXT_DIGITS} digits", hint="write a DOUBLE, with e0")
    if "." in text or value >= 2**63:
        return Literal(value, decimal(digits, scale))
    return Literal(value, INT if value < 2**31 else BIGINT)


def same_values(source: Type, target: Type) -> bool:
    """Whether both types hold a value alike, so that no cast is needed to compare or add."""
    if source.is_integer and target.is_integer:
        return True
    return source.kind is target.kind is Kind.DECIMAL and source.scale == target.scale


def coerce(expr: Expr, target: Type) -> Expr:
    """`expr` as `target` for an operator: a literal is converted now, anything else gets a Cast if its values differ.

    1 as DECIMAL(12,2)  →  1.00        a INT as BIGINT  →  a        a INT as DOUBLE  →  CAST(a AS DOUBLE)
    """
    if expr.type == target:
        return expr
    if isinstance(expr, Literal):
        return Literal(convert(expr.value, expr.type, target), target)
    return expr if same_values(expr.type, target) else Cast(expr, target)


def exactly(expr: Expr, target: Type) -> Expr:
    """`expr` with exactly the type `target`, as the branches of a CASE need it."""
    coerced = coerce(expr, target)
    return coerced if coerced.type == target else Cast(coerced, target)


def cast(expr: Expr, target: Type) -> Expr:
    """CAST(expr AS target) as written by a user; raises SQ2005 where no such cast exists."""
    source = expr.type
    possible = source == target or source.kind is Kind.NULL or target.kind in CASTS.get(source.kind, frozenset())
    if not possible:
        raise SquallError("SQ2005", f"cannot cast {source} to {target}")
    if isinstance(expr, Literal):
        return Literal(convert(expr.value, source, target), target)
    return expr if source == target else Cast(expr, target)


def unify(types: list[Type]) -> Type | None:
    """The common type of several; None if there is none."""
    result = types[0]
    for type in types[1:]:
        merged = common(result, type)
        if merged is None:
            return None
        result = merged
    return result


def convert(value: Any, source: Type, target: Type) -> Any:
    """A physical value of one type as one of another; SQ2005 if it has none there."""
    if value is None or source == target:
        return value
    try:
        result = _convert(value, source, target)
    except (ValueError, InvalidOperation, OverflowError):
        shown = f"'{value}'" if source == VARCHAR else f"{Literal(value, source)}"
        raise SquallError("SQ2005", f"{shown} is not a valid {target}") from None
    return result


def _convert(value: Any, source: Type, target: Type) -> Any:
    match target.kind:
        case Kind.VARCHAR:
            return str(Literal(value, source)).removeprefix("DATE ").removeprefix("TIMESTAMP ").strip("'")
        case Kind.DATE:
            return (date.fromisoformat(value.strip()) - EPOCH).days if source == VARCHAR else value // 86_400_000_000
        case Kind.TIMESTAMP:
            return parse_timestamp(value) if source == VARCHAR else value * 86_400_000_000
        case Kind.BOOLEAN:
            return {"true": True, "t": True, "false": False, "f": False}.get(value.strip().lower()) or _no(value)
        case Kind.DOUBLE:
            return float(as_number(value, source))
        case Kind.DECIMAL:
            scaled = int((as_number(value, source).scaleb(target.scale)).to_integral_value(ROUND_HALF_UP))
            return scaled if abs(scaled) < 10**target.precision else _no(value)
    number = int(as_number(value, source))
    return number if -(2**63) <= number < 2**63 else _no(value)


def _no(value: Any) -> Any:
    if isinstance(value, str) and value.strip().lower() in ("false", "f"):
        return False
    raise ValueError(value)


def as_number(value: Any, source: Type) -> Decimal:
    if source.kind is Kind.DECIMAL:
        return Decimal(value).scaleb(-source.scale)
    if source == VARCHAR:
        return Decimal(value.strip())
    return Decimal(value)


def parse_timestamp(text: str) -> int:
    """µs since 1970 of 'YYYY-MM-DD[ HH:MM[:SS[.ffffff]]]'; no time zones."""
    moment = datetime.fromisoformat(text.strip())
    if moment.tzinfo is not None:
        raise ValueError(text)
    return (moment - EPOCH_TIME) // timedelta(microseconds=1)
