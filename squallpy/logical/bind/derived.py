"""Aggregates that are made of others.

COUNT_IF(p)  →  COUNT(CASE WHEN p THEN 1 END)        BOOL_AND(p)  →  SUM(CASE WHEN p THEN 0 WHEN NOT p THEN 1 END) = 0
STDDEV(x)    →  SQRT(VAR_SAMP(COUNT(x), SUM(x), SUM(x * x)))
"""

from collections.abc import Callable

from squallpy.base.types import DOUBLE, INT, NULL, as_decimal
from squallpy.logical.coerce import coerce
from squallpy.logical.expressions import Expr, Literal
from squallpy.logical.functions import call, case

Of = Callable[[str, Expr], Expr]  # the column of COUNT(x), SUM(x) …
ZERO, ONE, NOTHING = Literal(0, INT), Literal(1, INT), Literal(None, NULL)


def count_if(of: Of, condition: Expr) -> Expr:
    return of("count", case([(condition, ONE)], NOTHING))


def all_true(of: Of, condition: Expr) -> Expr:
    return call("=", of("sum", case([(condition, ZERO), (call("not", condition), ONE)], NOTHING)), ZERO)


def any_true(of: Of, condition: Expr) -> Expr:
    return call(">", of("sum", case([(condition, ONE), (call("not", condition), ZERO)], NOTHING)), ZERO)


def variance(function: str) -> Callable[[Of, Expr], Expr]:
    """Exact up to the last division where x is exact; VAR_SAMP of one value is NULL."""

    def build(of: Of, x: Expr) -> Expr:
        count = of("count", x)
        if x.type.is_exact:
            x = coerce(x, as_decimal(x.type) if x.type.scale <= 19 else DOUBLE)
        return call(function, count, of("sum", x), of("sum", call("*", x, x)))

    return build


def deviation(function: str) -> Callable[[Of, Expr], Expr]:
    return lambda of, x: call("sqrt", variance(function)(of, x))


DERIVED: dict[str, Callable[[Of, Expr], Expr]] = {
    "COUNT_IF": count_if,
    **dict.fromkeys(("BOOL_AND", "EVERY"), all_true),
    **dict.fromkeys(("BOOL_OR", "ANY", "SOME"), any_true),
    **dict.fromkeys(("VARIANCE", "VAR_SAMP"), variance("var_samp")),
    **dict.fromkeys(("STD", "STDDEV", "STDDEV_SAMP"), deviation("var_samp")),
    "VAR_POP": variance("var_pop"),
    "STDDEV_POP": deviation("var_pop"),
}
