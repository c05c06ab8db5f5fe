"""Simplification of INTERVALs, which are made of microseconds and taken apart again."""

from squallpy.base.types import BIGINT
from squallpy.logical.coercion import coerce_exactly
from squallpy.logical.expressions import Call, Expr


def cancel_interval(expr: Expr) -> Expr | None:
    """Take the microseconds that an INTERVAL is made of: MICROS(DAY_TO_SECOND(x)) → x"""
    match expr:
        case Call("micros", (Call("day_to_second", (x,)),)):
            return coerce_exactly(x, BIGINT)
    return None
