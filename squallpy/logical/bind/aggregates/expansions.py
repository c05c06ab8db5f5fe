"""Aggregates that are made of others.

COUNT_IF(p)  →  COUNT(CASE WHEN p THEN 1 END)        BOOL_AND(p)  →  SUM(CASE WHEN p THEN 0 WHEN NOT p THEN 1 END) = 0
STDDEV(x)    →  SQRT(VAR_SAMP(COUNT(x), SUM(x), SUM(x), SUM(x * x)))
MEDIAN(x)    →  the value below the middle of all + (the one above − that) · the rest of (COUNT(x) − 1) / 2
CORR(y, x)   →  COVAR_POP(y, x) / SQRT(VAR_POP(y) * VAR_POP(x)), of the rows in which neither is NULL
"""

from collections.abc import Callable
from fractions import Fraction

from squallpy.base.records import dataclass
from squallpy.base.types import BIGINT, DOUBLE, INT, MOST_DIGITS, NULL, Kind, as_decimal
from squallpy.logical.coercion import coerce
from squallpy.logical.expression_builders import call, case
from squallpy.logical.expressions import Expr, Literal, conjunction, not_null

Of = Callable[[str, Expr], Expr]  # the column of COUNT(x), SUM(x) …
ZERO, ONE, NOTHING = Literal(0, INT), Literal(1, INT), Literal(None, NULL)


def count_if(of: Of, condition: Expr) -> Expr:
    return of("count", case([(condition, ONE)], NOTHING))


def all_true(of: Of, condition: Expr) -> Expr:
    return call("=", of("sum", case([(condition, ZERO), (call("not", condition), ONE)], NOTHING)), ZERO)


def any_true(of: Of, condition: Expr) -> Expr:
    return call(">", of("sum", case([(condition, ONE), (call("not", condition), ZERO)], NOTHING)), ZERO)


def squarable(x: Expr) -> Expr:
    """Convert a number to an exact one whose square has a type, or to a DOUBLE."""
    return coerce(x, as_decimal(x.type) if x.type.is_exact and x.type.scale <= 19 else DOUBLE)


def variance(function: str) -> Callable[[Of, Expr], Expr]:
    """Return the builder of a variance: exact but for the last division if x is; VAR_SAMP of one value is NULL."""

    def build(of: Of, x: Expr) -> Expr:
        value = squarable(x) if x.type.is_exact else x
        return call(function, of("count", x), *mixed_sums(of, value, value))

    return build


def mixed_sums(of: Of, y: Expr, x: Expr) -> list[Expr]:
    """Sum up numbers and their products, which DOUBLEs do in two words: also what rounding took from each.

    Without it the squares of numbers far from zero, which are longer than a word, leave no variance.
    """
    product = call("*", y, x)
    sums = [of("sum", each) for each in (y, x, product)]
    if product.type == DOUBLE:
        sums += [of("sum_rest", each) for each in (y, x, product)]
        sums.append(of("sum", call("product_rest", y, x)))
    return sums


def deviation(function: str) -> Callable[[Of, Expr], Expr]:
    return lambda of, x: call("sqrt", variance(function)(of, x))


def standardised_moment(function: str, order: int) -> Callable[[Of, Expr], Expr]:
    """Return the builder of SKEWNESS or KURTOSIS, of sums of powers: exact ones of short DECIMALs, else DOUBLEs."""

    def build(of: Of, x: Expr) -> Expr:
        is_short = x.type.kind is Kind.DECIMAL and x.type.precision <= MOST_DIGITS // 5
        powers = [x if is_short else coerce(x, DOUBLE)]
        while len(powers) < order:
            powers.append(call("*", powers[-1], powers[0]))
        return call(function, of("count", x), *(of("sum", power) for power in powers))

    return build


DERIVED: dict[str, Callable[[Of, Expr], Expr]] = {
    "COUNT_IF": count_if,
    "BOOL_AND": all_true,
    "BOOL_OR": any_true,
    "VAR_SAMP": variance("var_samp"),
    "VAR_POP": variance("var_pop"),
    "STDDEV_SAMP": deviation("var_samp"),
    "STDDEV_POP": deviation("var_pop"),
    "SKEWNESS": standardised_moment("skewness", 3),
    "KURTOSIS": standardised_moment("kurtosis", 4),
}
"""Builders of the aggregates whose form is Derived."""


def interpolate(of: Callable[[str], Expr], count: Expr, fraction: Fraction) -> Expr:
    """Build PERCENTILE_CONT: what is at q · (n − 1) on the line from the value below to the one above."""
    low, high = of("below"), of("above")
    last = coerce(call("-", count, Literal(1, BIGINT)), DOUBLE)
    position = call("*", Literal(float(fraction), DOUBLE), last)
    part = call("-", position, coerce(call("floor", position), DOUBLE))
    start, end = coerce(low, DOUBLE), coerce(high, DOUBLE)
    return case([(call("=", low, high), start)], call("+", start, call("*", call("-", end, start), part)))


@dataclass(frozen=True, slots=True)
class Pairs:
    """Two numbers of each row in which neither is NULL, and what is summed up of them."""

    of: Of
    y: Expr
    x: Expr

    @property
    def count(self) -> Expr:
        return self.of("count", case([(conjunction((not_null(self.y), not_null(self.x))), ONE)], NOTHING))

    def average(self, x: Expr) -> Expr:
        return self.of("avg", x)

    def variance(self, x: Expr) -> Expr:
        return variance("var_pop")(self.of, x)

    def covariance(self, function: str = "covar_pop") -> Expr:
        return call(function, self.count, *mixed_sums(self.of, self.y, self.x))

    def total(self, moment: Expr) -> Expr:
        """Multiply a moment by n, which makes a sum of squares."""
        return call("*", coerce(self.count, DOUBLE), moment)

    @property
    def correlation(self) -> Expr:
        return call("/", self.covariance(), call("sqrt", call("*", self.variance(self.y), self.variance(self.x))))

    @property
    def slope(self) -> Expr:
        return call("/", self.covariance(), self.variance(self.x))

    @property
    def intercept(self) -> Expr:
        return call("-", self.average(self.y), call("*", self.slope, self.average(self.x)))

    @property
    def determination(self) -> Expr:
        """R²: 1 where y does not vary, NULL where x does not."""
        flat = (call("=", self.variance(v), Literal(0.0, DOUBLE)) for v in (self.x, self.y))
        squared = call("*", self.correlation, self.correlation)
        return case([(next(flat), NOTHING), (next(flat), Literal(1.0, DOUBLE))], squared)


def pair_values(of: Of, y: Expr, x: Expr) -> Pairs:
    """Pair two numbers, each NULL where the other is."""
    exact = y.type.is_exact and x.type.is_exact and y.type.scale + x.type.scale <= 38
    y, x = (squarable(v) if exact else coerce(v, DOUBLE) for v in (y, x))
    mine, theirs = case([(not_null(x), y)], NOTHING), case([(not_null(y), x)], NOTHING)
    return Pairs(of, mine if x.nullable else y, theirs if y.nullable else x)


PAIRED: dict[str, Callable[[Pairs], Expr]] = {
    "CORR": lambda p: p.correlation,
    "COVAR_POP": lambda p: p.covariance(),
    "COVAR_SAMP": lambda p: p.covariance("covar_samp"),
    "REGR_COUNT": lambda p: p.count,
    "REGR_AVGX": lambda p: p.average(p.x),
    "REGR_AVGY": lambda p: p.average(p.y),
    "REGR_SXX": lambda p: p.total(p.variance(p.x)),
    "REGR_SYY": lambda p: p.total(p.variance(p.y)),
    "REGR_SXY": lambda p: p.total(p.covariance()),
    "REGR_SLOPE": lambda p: p.slope,
    "REGR_INTERCEPT": lambda p: p.intercept,
    "REGR_R2": lambda p: p.determination,
}
"""Builders of the aggregates whose form is Paired."""
