"""Functions of numbers."""

from functools import partial
from math import e, pi

from squallpy.base.errors import SquallError
from squallpy.base.types import BIGINT, DOUBLE, INT, decimal
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
    return call("/", Literal(1.0, DOUBLE), call("tan", x))


@expands("SEC")
def secant(x: Expr) -> Expr:
    return call("/", Literal(1.0, DOUBLE), call("cos", x))


@expands("CSC")
def cosecant(x: Expr) -> Expr:
    return call("/", Literal(1.0, DOUBLE), call("sin", x))


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
    """Return the builder of CEIL and FLOOR to some decimals: CEIL(x, n)  →  CEIL(x · 10ⁿ) · 10⁻ⁿ"""

    def build(x: Expr, places: Expr = ZERO) -> Expr:
        if not isinstance(places, Literal) or not places.type.is_integer or not 0 <= (places.value or 0) <= 18:
            raise SquallError("SQ3001", f"{name.upper()} to anything but 0 to 18 constant digits is not supported yet")
        if not places.value or (x.type.is_exact and x.type.scale <= places.value):
            return call(name, x) if not places.value else x
        if x.type == DOUBLE:
            power = Literal(10.0**places.value, DOUBLE)
            return call("/", coerce(call(name, call("*", x, power)), DOUBLE), power)
        up, down = Literal(10**places.value, BIGINT), Literal(1, decimal(places.value, places.value))
        return call("*", call(name, call("*", x, up)), down)

    return build


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
