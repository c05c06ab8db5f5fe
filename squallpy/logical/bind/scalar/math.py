"""Functions of numbers."""

from collections.abc import Callable
from functools import partial
from math import e, pi

from squallpy.base.errors import SquallError
from squallpy.base.types import BIGINT, DOUBLE, INT, decimal
from squallpy.logical.bind.datetime import calendar
from squallpy.logical.bind.datetime.intervals import negate
from squallpy.logical.bind.scalar.expansion import ZERO, Builder, expands
from squallpy.logical.coercion import cast, coerce
from squallpy.logical.expression_builders import arithmetic, call, case
from squallpy.logical.expressions import Cast, Expr, Literal

expands("MOD")(partial(arithmetic, "%"))


@expands("PI")
def circle() -> Expr:
    return Literal(pi, DOUBLE)


@expands("E")
def euler() -> Expr:
    return Literal(e, DOUBLE)


@expands("COT")
def cotangent(x: Expr) -> Expr:
    return _reciprocal(call("tan", x))


@expands("SEC")
def secant(x: Expr) -> Expr:
    return _reciprocal(call("cos", x))


@expands("CSC")
def cosecant(x: Expr) -> Expr:
    return _reciprocal(call("sin", x))


def _reciprocal(x: Expr) -> Expr:
    """Build 1 / x, which is infinite for 0."""
    infinite = Literal(float("inf"), DOUBLE)
    return case([(call("=", x, Literal(0.0, DOUBLE)), infinite)], call("/", Literal(1.0, DOUBLE), x))


@expands("LOG1P")
def logarithm_of_more(x: Expr) -> Expr:
    return case([(call(">", x, Literal(-1, INT)), call("log1p", x))], Literal(None, DOUBLE))


@expands("ROUND")
def bind_round(x: Expr, places: Expr = ZERO) -> Expr:
    """Build ROUND(x, n), half away from zero: a cast to fewer decimals where x is exact."""
    if not isinstance(places, Literal) or not places.type.is_integer or places.value is None:
        raise SquallError("SQ3001", "ROUND to anything but a constant number of digits is not supported yet")
    if not x.type.is_exact or places.value < 0:
        return call("round", x, places)
    if places.value >= x.type.scale:
        return x
    return cast(x, decimal(x.type.precision - x.type.scale + places.value + 1, places.value))


def to_digits(name: str) -> Builder:
    """Return the builder of CEIL and FLOOR to some decimals, or to tens, hundreds …

    CEIL(x, 2)  →  CEIL(x · 100) · 0.01        FLOOR(x, -2)  →  the multiple of 100 up to FLOOR(x)
    """

    def build(x: Expr, places: Expr = ZERO) -> Expr:
        n = _places(name.upper(), places)
        if n <= 0:
            whole = call(name, x)
            return whole if not n else calendar.multiple_of(whole, 10**-n, upwards=name == "ceil")
        if x.type.is_exact and x.type.scale <= n:
            return x
        scaled, back = _scaled(x, n)
        return back(call(name, scaled))

    return build


def _places(name: str, places: Expr) -> int:
    """Read a constant number of digits after the point; SQ3001 for any other."""
    n = places.value if isinstance(places, Literal) and places.type.is_integer else None
    if n is None or abs(n) > 18:
        raise SquallError("SQ3001", f"{name} to anything but -18 to 18 constant digits is not supported yet")
    return int(n)


def _scaled(x: Expr, n: int) -> tuple[Expr, Callable[[Expr], Expr]]:
    """Multiply by 10ⁿ; returned with what makes of a whole number of that size one with n digits after the point."""
    if x.type == DOUBLE:
        power = Literal(10.0**n, DOUBLE)
        return call("*", x, power), lambda whole: call("/", coerce(whole, DOUBLE), power)
    up, down = Literal(10**n, BIGINT), Literal(1, decimal(n, n))
    return call("*", x, up), lambda whole: call("*", whole, down)


@expands("BROUND")
def round_to_even(x: Expr, places: Expr = ZERO) -> Expr:
    """Build BROUND(x, n): of two numbers that are as near, the even one."""
    n = _places("BROUND", places)
    if n < 0:
        raise SquallError("SQ3001", "BROUND to tens, hundreds … is not supported yet")
    if x.type.is_exact and x.type.scale <= n:
        return x
    scaled, back = _scaled(x, n) if n else (x, lambda whole: coerce(whole, DOUBLE) if x.type == DOUBLE else whole)
    low = call("floor", scaled)
    rest, half, more = call("-", scaled, low), Literal(5, decimal(2, 1)), call("+", low, Literal(1, INT))
    is_odd = call("<>", call("%", low, Literal(2, INT)), ZERO)
    return back(case([(call(">", rest, half), more), (call("and", call("=", rest, half), is_odd), more)], low))


@expands("NEGATIVE")
def negative(x: Expr) -> Expr:
    return negate(x)


@expands("POSITIVE")
def positive(x: Expr) -> Expr:
    return x if x.type.is_numeric or x.type.is_interval else call("+", x, ZERO)


expands("FLOOR")(to_digits("floor"))
expands("CEIL")(to_digits("ceil"))


@expands("LOG")
def logarithm(base: Expr, x: Expr | None = None) -> Expr:
    """Build LOG(x), LOG(base, x)."""
    return call("ln", base) if x is None else call("/", call("ln", x), call("ln", base))


@expands("PMOD")
def positive_remainder(a: Expr, b: Expr) -> Expr:
    """Build PMOD(a, b), not negative where the divisor is not.

    PMOD(-10, 3) → 2, PMOD(-10, -3) → -1
    """
    rest = call("%", a, b)
    lacks = call("and", call("<", rest, ZERO), call(">", b, ZERO))
    return case([(lacks, call("%", call("+", rest, b), b))], rest)


def try_operation(name: str) -> Builder:
    """Return the builder of TRY_ADD(a, b), NULL where whole numbers have no sum."""

    def build(a: Expr, b: Expr) -> Expr:
        if not (a.type.is_integer and b.type.is_integer):
            return arithmetic(name, a, b)
        return call("tried", Cast(call(name, *(cast(x, decimal(19, 0)) for x in (a, b))), BIGINT))

    return build


for _name, _operator in (("TRY_ADD", "+"), ("TRY_SUBTRACT", "-"), ("TRY_MULTIPLY", "*")):
    expands(_name)(try_operation(_operator))


@expands("WIDTH_BUCKET")
def bucket(x: Expr, low: Expr, high: Expr, count: Expr) -> Expr:
    """Build WIDTH_BUCKET(x, low, high, n): in which of n equal parts x is, from 1; 0 before and n + 1 behind them."""
    x, low, high, count = coerce(x, DOUBLE), coerce(low, DOUBLE), coerce(high, DOUBLE), coerce(count, BIGINT)
    behind, size = call("+", count, Literal(1, BIGINT)), coerce(count, DOUBLE)

    def among(a: Expr, b: Expr, whole: Expr) -> Expr:
        part = cast(call("floor", call("/", call("*", size, call("-", a, b)), whole)), BIGINT)
        return call("+", part, Literal(1, BIGINT))

    rising, falling = among(x, low, call("-", high, low)), among(low, x, call("-", low, high))
    is_some, up, down = call(">", count, ZERO), call("<", low, high), call(">", low, high)
    return case(
        [
            (call("and", is_some, up, call("<", x, low)), Literal(0, BIGINT)),
            (call("and", is_some, up, call(">=", x, high)), behind),
            (call("and", is_some, up), rising),
            (call("and", is_some, down, call(">", x, low)), Literal(0, BIGINT)),
            (call("and", is_some, down, call("<=", x, high)), behind),
            (call("and", is_some, down), falling),
        ],
        Literal(None, BIGINT),
    )
