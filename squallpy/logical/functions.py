"""Every scalar operator and function: its arguments, its type, and what it is for.

`call(name, *args)` is how binder and rewrite rules build a Call: it checks and casts the arguments and derives type and
nullability, so that a Call always fits its arguments.

    call("+", a INT, 0.5)  →  Call("+", (CAST(a AS DECIMAL(12,1)), 0.5), DECIMAL(13,1))
"""

from collections.abc import Callable
from dataclasses import dataclass

from squallpy.base.errors import SquallError, nearest
from squallpy.base.types import BIGINT, BOOLEAN, DATE, DOUBLE, INT, TIMESTAMP, VARCHAR, Kind, Type, as_decimal, decimal
from squallpy.logical.coercion import MOST_DIGITS, cast, coerce, exactly, unify
from squallpy.logical.expressions import ROUNDED, Call, Case, Expr, Literal, not_null

Args = tuple[Expr, ...]
Rule = Callable[[str, Args], tuple[Args, Type]]  # name, arguments → arguments as needed, type of the result


@dataclass(frozen=True, slots=True)
class Function:
    """A scalar function: how many arguments (most None: any number), its type rule, and a line for the manual.

    `nulls`: "any" NULL where an argument is, "all" where all are, "never", or "always" possibly NULL.
    `settings`: arguments from this position on, evaluated first; then the function, once for rows that have the same.
    """

    least: int
    most: int | None
    rule: Rule
    doc: str
    nulls: str = "any"
    settings: int | None = None


def mismatch(name: str, args: Args, hint: str = "") -> SquallError:
    types = ", ".join(str(arg.type) for arg in args)
    return SquallError("SQ2005", f"{name.upper()} does not take ({types})", hint=hint)


def plain(args: Args) -> Args:
    """NULL literals take the type of the first argument that has one."""
    typed = next((arg.type for arg in args if arg.type.kind is not Kind.NULL), BIGINT)
    return tuple(coerce(arg, typed) if arg.type.kind is Kind.NULL else arg for arg in args)


def smallest(arg: Expr) -> Type:
    """The DECIMAL of an exact argument; an integer literal only needs its digits."""
    if isinstance(arg, Literal) and arg.type.is_integer and arg.value is not None:
        return decimal(len(str(abs(arg.value))), 0)
    return as_decimal(arg.type)


def numbers(name: str, args: Args) -> Args:
    """Two numbers, DOUBLE both or exact both."""
    args = plain(args)
    if not all(arg.type.is_numeric for arg in args):
        hint = "CAST the text to a number" if any(arg.type == VARCHAR for arg in args) else ""
        raise mismatch(name, args, hint)
    return tuple(coerce(arg, DOUBLE) for arg in args) if any(arg.type == DOUBLE for arg in args) else args


def additive(name: str, args: Args) -> tuple[Args, Type]:
    args = numbers(name, args)
    if args[0].type == DOUBLE:
        return args, DOUBLE
    if all(arg.type.is_integer for arg in args):
        return args, BIGINT
    args, digits, scale = aligned(args)
    return args, decimal(digits + scale + 1, scale)


def aligned(args: Args) -> tuple[Args, int, int]:
    """Exact arguments as DECIMALs of one scale; the most digits before the point; the scale."""
    types = [smallest(arg) for arg in args]
    scale = max(type.scale for type in types)
    digits = [type.precision - type.scale for type in types]
    cast = tuple(coerce(arg, decimal(n + scale, scale)) for arg, n in zip(args, digits, strict=True))
    return cast, max(digits), scale


def times(name: str, args: Args) -> tuple[Args, Type]:
    args = numbers(name, args)
    if args[0].type == DOUBLE:
        return args, DOUBLE
    if all(arg.type.is_integer for arg in args):
        return args, BIGINT
    args = tuple(coerce(arg, smallest(arg)) for arg in args)
    scale = sum(arg.type.scale for arg in args)
    if scale > 38:
        types = " * ".join(str(arg.type) for arg in args)
        raise SquallError("SQ2005", f"{types} has more than 38 decimals", hint="CAST a factor to DOUBLE")
    return args, decimal(sum(arg.type.precision for arg in args), scale)


def rounded_result(name: str, args: Args) -> tuple[Args, Type]:
    """DECIMALs whose exact result takes more than 38 digits: it keeps the digits before the point, and six behind it.

    DECIMAL(38,18) * DECIMAL(38,18)  →  DECIMAL(38,6)        DECIMAL(38,0) + DECIMAL(30,20)  →  DECIMAL(38,6)

    Source: Spark, `DecimalType.adjustPrecisionScale`.
    """
    args = tuple(coerce(arg, smallest(arg)) for arg in args)
    (p, s), (q, t) = ((arg.type.precision, arg.type.scale) for arg in args)
    if name == "remainder":
        return args, decimal(min(p - s, q - t) + max(s, t), max(s, t))
    digits, scale = (p + q + 1 - s - t, s + t) if name == "product" else (max(p - s, q - t) + 1, max(s, t))
    return args, decimal(MOST_DIGITS, max(MOST_DIGITS - digits, min(scale, 6)))


OPERATORS = {operator: name for name, operator in ROUNDED.items()}


def arithmetic(operator: str, left: Expr, right: Expr) -> Call:
    """Two numbers and an operator, exact; where that may take more than 38 digits, rounded as in Spark."""
    args = plain((left, right))
    if (
        operator in OPERATORS
        and all(arg.type.is_exact for arg in args)
        and not all(arg.type.is_integer for arg in args)
    ):
        (p, s), (q, t) = ((type.precision, type.scale) for type in map(smallest, args))
        needed = p + q if operator == "*" else max(p - s, q - t) + max(s, t)
        found = call(OPERATORS[operator], *args)
        if needed > MOST_DIGITS and (operator == "%" or found.type.scale < (s + t if operator == "*" else max(s, t))):
            return found
    return call(operator, left, right)


def quotient(name: str, args: Args) -> tuple[Args, Type]:
    return tuple(coerce(arg, DOUBLE) for arg in numbers(name, args)), DOUBLE


def remainder(name: str, args: Args) -> tuple[Args, Type]:
    args = numbers(name, args)
    if args[0].type == DOUBLE:
        return args, DOUBLE
    if all(arg.type.is_integer for arg in args):
        return args, BIGINT
    args, digits, scale = aligned(args)
    return args, decimal(digits + scale, scale)


def signed(name: str, args: Args) -> tuple[Args, Type]:
    """A number; INT gives BIGINT, as the least INT has no opposite among them."""
    args = plain(args)
    if not args[0].type.is_numeric:
        raise mismatch(name, args)
    return args, BIGINT if args[0].type.is_integer else args[0].type


def comparable(name: str, args: Args) -> tuple[Args, Type]:
    target = unify([arg.type for arg in args])
    if target is None or target.kind is Kind.INTERVAL:
        types = " with ".join(dict.fromkeys(str(arg.type) for arg in args))
        raise SquallError("SQ2005", f"cannot compare {types}", hint="CAST one side")
    if target.kind is Kind.NULL:
        target = BIGINT
    if target.kind is Kind.DECIMAL:  # a literal with fewer digits than its type would make the other side wider
        target = unify([smallest(arg) for arg in args if arg.type.kind is not Kind.NULL]) or target
    return tuple(coerce(arg, target) for arg in args), BOOLEAN


def booleans(name: str, args: Args) -> tuple[Args, Type]:
    args = tuple(coerce(arg, BOOLEAN) if arg.type.kind is Kind.NULL else arg for arg in args)
    if not all(arg.type == BOOLEAN for arg in args):
        raise mismatch(name, tuple(arg for arg in args if arg.type != BOOLEAN), "write a comparison")
    return args, BOOLEAN


def anything(name: str, args: Args) -> tuple[Args, Type]:
    if any(arg.type.kind is Kind.INTERVAL for arg in args):
        raise mismatch(name, args)
    return args, BOOLEAN


def takes(result: Type, *accepted: tuple[Kind, ...]) -> Rule:
    """A rule for fixed argument kinds; the last one repeats. NULL literals take the first kind."""

    def rule(name: str, args: Args) -> tuple[Args, Type]:
        checked = []
        for i, arg in enumerate(args):
            kinds = accepted[min(i, len(accepted) - 1)]
            if arg.type.kind is Kind.NULL:
                arg = coerce(arg, Type(kinds[0]))
            if arg.type.kind not in kinds:
                raise mismatch(name, args, "CAST it to VARCHAR" if kinds == TEXT else "")
            checked.append(arg)
        return tuple(checked), result

    return rule


def spelled(name: str, args: Args) -> tuple[Args, Type]:
    """Texts, and of what is none how CAST spells it."""
    if any(arg.type.kind is Kind.INTERVAL for arg in args):
        raise mismatch(name, args)
    return tuple(cast(arg, VARCHAR) for arg in args), VARCHAR


TEXT, WHOLE = (Kind.VARCHAR,), (Kind.INT, Kind.BIGINT)
NUMERIC = (Kind.DOUBLE, Kind.INT, Kind.BIGINT, Kind.DECIMAL)
DAYS, TIMES, MOMENTS = (Kind.DATE,), (Kind.TIMESTAMP,), (Kind.DATE, Kind.TIMESTAMP)


def real(name: str, args: Args) -> tuple[Args, Type]:
    args = plain(args)
    if not all(arg.type.is_numeric for arg in args):
        raise mismatch(name, args)
    return tuple(coerce(arg, DOUBLE) for arg in args), DOUBLE


def whole(name: str, args: Args) -> tuple[Args, Type]:
    """FLOOR and CEIL: integers as they are, DECIMAL without a scale, BIGINT of a DOUBLE."""
    args = plain(args)
    (arg,) = args
    if not arg.type.is_numeric:
        raise mismatch(name, args)
    if arg.type.kind is Kind.DECIMAL:
        return args, decimal(arg.type.precision - arg.type.scale + 1, 0)
    return args, BIGINT if arg.type == DOUBLE else arg.type


def rounded(name: str, args: Args) -> tuple[Args, Type]:
    """A DOUBLE, or an exact number to tens, hundreds …: those have no digits after the point."""
    if args[0].type.is_integer:
        return args, BIGINT
    if args[0].type.kind is Kind.DECIMAL:
        return args, decimal(args[0].type.precision - args[0].type.scale + 1, 0)
    (x, places), _ = takes(DOUBLE, (Kind.DOUBLE,), WHOLE)(name, args)
    return (x, places), DOUBLE


def truncated(name: str, args: Args) -> tuple[Args, Type]:
    """A DOUBLE, an integer to tens, hundreds …, or a DECIMAL to fewer digits after the point than it has."""
    (number, places), _ = takes(DOUBLE, NUMERIC, WHOLE)(name, args)
    if number.type.kind is not Kind.DECIMAL:
        return (number, places), number.type
    assert isinstance(places, Literal) and places.value < number.type.scale
    scale = max(places.value, 0)
    return (number, places), decimal(number.type.precision - number.type.scale + scale, scale)


def divided(name: str, args: Args) -> tuple[Args, Type]:
    args, type = remainder(name, args)
    if type == DOUBLE:
        raise mismatch(name, args, "it is for exact numbers")
    return args, BIGINT


def bits(name: str, args: Args) -> tuple[Args, Type]:
    """Of integers, as 64 bits."""
    args = plain(args)
    if not all(arg.type.is_integer for arg in args):
        raise mismatch(name, args)
    return args, BIGINT


def untouched(name: str, args: Args) -> tuple[Args, Type]:
    return args, args[0].type


def extreme(name: str, args: Args) -> tuple[Args, Type]:
    args, _ = comparable(name, args)
    target = unify([arg.type for arg in args])
    assert target is not None
    return tuple(exactly(arg, target) for arg in args), target


def moments(name: str, args: Args) -> tuple[Args, Type]:
    """COUNT(x), SUM(x), SUM(x * x)"""
    count, total, squares = args
    assert count.type == BIGINT and squares.type.scale == 2 * total.type.scale
    return args, DOUBLE


def mixed(name: str, args: Args) -> tuple[Args, Type]:
    """COUNT(*), SUM(y), SUM(x), SUM(y * x)"""
    count, first, second, product = args
    assert count.type == BIGINT and product.type.scale == first.type.scale + second.type.scale
    return args, DOUBLE


def checked(name: str, args: Args) -> tuple[Args, Type]:
    """SUM(x), SUM(CAST(x AS DOUBLE))"""
    total, near = args
    assert total.type.kind is Kind.DECIMAL and near.type == DOUBLE
    return args, total.type


def single(name: str, args: Args) -> tuple[Args, Type]:
    """A value, how many rows have one, and the query."""
    value, rows, query = args
    assert rows.type == BIGINT and isinstance(query, Literal)
    return args, value.type


def months(name: str, args: Args) -> tuple[Args, Type]:
    return takes(args[0].type, MOMENTS, WHOLE)(name, args)


def alike(name: str, args: Args) -> tuple[Args, Type]:
    assert all(isinstance(arg, Literal) for arg in args[2:])
    return takes(BOOLEAN, TEXT)(name, args)


def spaced(name: str, args: Args) -> tuple[Args, Type]:
    """A start, a stop, and a step: a number, or months, days and microseconds."""
    assert args[0].type == args[1].type and len(args) in (3, 5)
    return args, args[0].type


def listed(name: str, args: Args) -> tuple[Args, Type]:
    assert all(isinstance(arg, Literal) for arg in args[1:])
    return comparable(name, args)


REALS = ("sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "tanh", "cbrt", "degrees", "radians")

FUNCTIONS: dict[str, Function] = {
    "+": Function(2, 2, additive, "sum; INT and BIGINT give BIGINT, DECIMAL one digit more"),
    "-": Function(2, 2, additive, "difference"),
    "*": Function(2, 2, times, "product; DECIMAL precisions and scales add up, at most 38 digits"),
    **{
        name: Function(2, 2, rounded_result, f"{operator}, rounded to what 38 digits have room for")
        for name, operator in ROUNDED.items()
        if operator != "%"
    },
    "remainder": Function(2, 2, rounded_result, "%, of DECIMALs that have no scale in common", "divisor"),
    "/": Function(2, 2, quotient, "quotient, always DOUBLE; NULL where the divisor is 0", "divisor"),
    "%": Function(2, 2, remainder, "remainder with the sign of the dividend; NULL where the divisor is 0", "divisor"),
    "negate": Function(1, 1, signed, "-x; BIGINT of an INT"),
    "abs": Function(1, 1, signed, "absolute value; BIGINT of an INT"),
    "floor": Function(1, 1, whole, "the next whole number below"),
    "ceil": Function(1, 1, whole, "the next whole number above"),
    "div": Function(2, 2, divided, "quotient cut to a whole number; NULL where the divisor is 0", "divisor"),
    "truncate": Function(2, 2, truncated, "cut to that many digits after the point, or to tens", settings=1),
    "round": Function(2, 2, rounded, "rounded to that many digits after the point, half away from zero", settings=1),
    "sign": Function(1, 1, real, "-1.0, 0.0 or 1.0"),
    "exp": Function(1, 1, real, "e to that power"),
    "ln": Function(1, 1, real, "natural logarithm; NULL of what is not positive", "always"),
    "log10": Function(1, 1, real, "logarithm to base 10; NULL of what is not positive", "always"),
    "log2": Function(1, 1, real, "logarithm to base 2; NULL of what is not positive", "always"),
    **{name: Function(1, 1, real, f"{name} of a DOUBLE") for name in REALS},
    "power": Function(2, 2, real, "first to the power of the second"),
    "atan2": Function(2, 2, real, "the angle of (x, y), y first"),
    "hypot": Function(2, 2, real, "the length of (x, y)"),
    "bit_and": Function(2, 2, bits, "bits of both"),
    "bit_or": Function(2, 2, bits, "bits of either"),
    "bit_xor": Function(2, 2, bits, "bits of one"),
    "shift_left": Function(2, 2, bits, "bits moved up, by the last six bits of the second; what leaves is lost"),
    "shift_right": Function(2, 2, bits, "bits moved down, the sign staying"),
    "bit_count": Function(1, 1, bits, "how many bits are 1"),
    "tried": Function(1, 1, untouched, "the value of a CAST; NULL where that would fail", "always"),
    "bit_not": Function(1, 1, bits, "the other bits"),
    "greatest": Function(2, None, extreme, "the greatest that is not NULL", "all"),
    "least": Function(2, None, extreme, "the least that is not NULL", "all"),
    "sqrt": Function(1, 1, real, "square root; NaN of a negative number"),
    "checked": Function(2, 2, checked, "an exact sum, if it is not far from the same sum of doubles"),
    "only": Function(3, 3, single, "the value of a subquery, if it has one row"),
    "var_pop": Function(3, 3, moments, "variance from COUNT(x), SUM(x), SUM(x * x)", "always"),
    "var_samp": Function(3, 3, moments, "variance of a sample, likewise; NULL of one value", "always"),
    "covar_pop": Function(4, 4, mixed, "covariance from COUNT(*), SUM(y), SUM(x), SUM(y * x)", "always"),
    "covar_samp": Function(4, 4, mixed, "covariance of a sample, likewise; NULL of one pair", "always"),
    "=": Function(2, 2, comparable, "equal; both sides are cast to their common type"),
    "<>": Function(2, 2, comparable, "not equal"),
    "<=>": Function(2, 2, comparable, "equal or both NULL; never NULL itself", "never"),
    "<": Function(2, 2, comparable, "less; VARCHAR by code points"),
    "<=": Function(2, 2, comparable, "less or equal"),
    ">": Function(2, 2, comparable, "greater"),
    ">=": Function(2, 2, comparable, "greater or equal"),
    "and": Function(2, None, booleans, "three-valued AND of any number of conditions"),
    "or": Function(2, None, booleans, "three-valued OR of any number of conditions"),
    "not": Function(1, 1, booleans, "three-valued NOT"),
    "is_null": Function(1, 1, anything, "TRUE or FALSE, never NULL", "never"),
    "in": Function(2, None, listed, "x IN (constants); NULL where nothing matches and one is NULL"),
    "like": Function(2, 3, alike, "x LIKE pattern [ESCAPE e]; e is given wherever a pattern has one", settings=1),
    "similar": Function(2, 3, alike, "x SIMILAR TO pattern [ESCAPE e], as of LIKE", settings=1),
    "||": Function(2, None, spelled, "concatenation; NULL where a part is"),
    "substring": Function(2, 3, takes(VARCHAR, TEXT, WHOLE), "a part; a negative position is from the end", settings=1),
    "upper": Function(1, 1, takes(VARCHAR, TEXT), "upper case"),
    "lower": Function(1, 1, takes(VARCHAR, TEXT), "lower case"),
    "trim": Function(2, 2, takes(VARCHAR, TEXT), "without some characters at both ends", settings=1),
    "ltrim": Function(2, 2, takes(VARCHAR, TEXT), "without some characters at its start", settings=1),
    "rtrim": Function(2, 2, takes(VARCHAR, TEXT), "without some characters at its end", settings=1),
    "lpad": Function(3, 3, takes(VARCHAR, TEXT, WHOLE, TEXT), "to a length, filled up at its start", settings=1),
    "rpad": Function(3, 3, takes(VARCHAR, TEXT, WHOLE, TEXT), "to a length, filled up at its end", settings=1),
    "replace": Function(3, 3, takes(VARCHAR, TEXT), "every occurrence of the second by the third", settings=1),
    "repeat": Function(2, 2, takes(VARCHAR, TEXT, WHOLE), "that many times after itself", settings=1),
    "initcap": Function(1, 1, takes(VARCHAR, TEXT), "every word with a capital, and small letters"),
    "translate": Function(3, 3, takes(VARCHAR, TEXT), "characters of one text by another's", settings=1),
    "concat_ws": Function(2, None, takes(VARCHAR, TEXT), "what is not NULL, with the first between", "never"),
    "split_part": Function(3, 3, takes(VARCHAR, TEXT, TEXT, WHOLE), "a part between separators, or ''", settings=1),
    "instr": Function(2, 2, takes(INT, TEXT), "where the second first occurs, from 1; 0 if it does not", settings=1),
    "rlike": Function(2, 2, takes(BOOLEAN, TEXT), "does a regular expression (RE2) match a part?", settings=1),
    "regexp_replace": Function(3, 3, takes(VARCHAR, TEXT), "what matches replaced; $1 is the first group", settings=1),
    "reverse": Function(1, 1, takes(VARCHAR, TEXT), "backwards"),
    "startswith": Function(2, 2, takes(BOOLEAN, TEXT), "does it begin so?", settings=1),
    "endswith": Function(2, 2, takes(BOOLEAN, TEXT), "does it end so?", settings=1),
    "contains": Function(2, 2, takes(BOOLEAN, TEXT), "does it have that inside?", settings=1),
    "ascii": Function(1, 1, takes(INT, TEXT), "the number of the first character; 0 of none"),
    "chr": Function(1, 1, takes(VARCHAR, WHOLE), "the character of a number"),
    "octets": Function(1, 1, takes(INT, TEXT), "number of bytes"),
    "regexp_extract": Function(3, 3, takes(VARCHAR, TEXT, TEXT, WHOLE), "what a group matches, or ''", settings=1),
    "regexp_count": Function(2, 2, takes(INT, TEXT), "how often an expression matches", settings=1),
    "substring_index": Function(3, 3, takes(VARCHAR, TEXT, TEXT, WHOLE), "what is before a separator", settings=1),
    "length": Function(1, 1, takes(INT, TEXT), "number of characters"),
    "digest": Function(2, 2, takes(VARCHAR, TEXT), "a hash of its bytes, in hexadecimal digits", settings=1),
    "crc32": Function(1, 1, takes(BIGINT, TEXT), "the cyclic redundancy check of its bytes"),
    "base64": Function(1, 1, takes(VARCHAR, TEXT), "its bytes in base 64"),
    "hex": Function(1, 1, takes(VARCHAR, TEXT), "its bytes in hexadecimal digits"),
    "hex_number": Function(1, 1, takes(VARCHAR, WHOLE), "its hexadecimal digits"),
    "json_at": Function(2, 2, takes(VARCHAR, TEXT), "what stands at a path, '$.a[0]', in JSON", "always", settings=1),
    "soundex": Function(1, 1, takes(VARCHAR, TEXT), "how it sounds in English: a letter and three digits"),
    "levenshtein": Function(2, 2, takes(INT, TEXT), "the least number of characters to be changed", settings=1),
    **{
        f"extract_{part}": Function(1, 1, takes(INT, MOMENTS), f"the {part} of a DATE or TIMESTAMP")
        for part in ("year", "quarter", "month", "week", "day", "dayofweek", "weekday", "dayofyear")
    },
    **{
        f"extract_{part}": Function(1, 1, takes(INT, TIMES), f"the {part} of a TIMESTAMP, whole")
        for part in ("hour", "minute", "second")
    },
    "micros": Function(1, 1, takes(BIGINT, TIMES), "microseconds since 1970"),
    "add_months": Function(2, 2, months, "months later; the day is cut to the month's last"),
    "last_day": Function(1, 1, takes(DATE, MOMENTS), "the last day of its month"),
    "trunc": Function(2, 2, takes(DATE, MOMENTS, TEXT), "the first day of its YEAR, QUARTER, MONTH or WEEK"),
    "trunc_time": Function(2, 2, takes(TIMESTAMP, TIMES, WHOLE), "the last multiple of so many microseconds"),
    "add_days": Function(2, 2, takes(DATE, DAYS, WHOLE), "days later"),
    "add_micros": Function(2, 2, takes(TIMESTAMP, TIMES, WHOLE), "microseconds later"),
    "sequence": Function(3, 5, spaced, "start, stop and step, of which rows are made"),
    "days_between": Function(2, 2, takes(INT, DAYS), "first date minus second, in days"),
}  # fmt: skip


def call(name: str, *args: Expr) -> Call:
    """The Call of a function; raises SQ2004 for an unknown name, SQ2005 for arguments that do not fit."""
    function = FUNCTIONS.get(name)
    if function is None:
        raise SquallError("SQ2004", f'unknown function "{name}"', hint=nearest(name, FUNCTIONS))
    if len(args) < function.least or (function.most is not None and len(args) > function.most):
        counts = sorted({function.least, function.most or function.least})
        wanted = " to ".join(map(str, counts)) + ("" if function.most else " or more")
        raise SquallError("SQ2005", f"{name.upper()} takes {wanted} arguments, not {len(args)}")
    fitted, type = function.rule(name, args)
    return Call(name, fitted, type, nullable(function, fitted))


def nullable(function: Function, args: Args) -> bool:
    if function.nulls == "never":
        return False
    if function.nulls == "divisor":
        divisor = args[1]
        return args[0].nullable or not (isinstance(divisor, Literal) and bool(divisor.value))
    if function.nulls == "all":
        return all(arg.nullable for arg in args)
    return function.nulls == "always" or any(arg.nullable for arg in args)


def case(whens: list[tuple[Expr, Expr]], otherwise: Expr) -> Case | Literal:
    """CASE with its values cast to their common type, a bare NULL if they all are; SQ2005 if they have none."""
    values = [value for _, value in whens] + [otherwise]
    target = unify([value.type for value in values])
    if target is None:
        types = ", ".join(dict.fromkeys(str(value.type) for value in values))
        raise SquallError("SQ2005", f"the branches of a CASE have no common type: {types}")
    conditions = [booleans("when", (condition,))[0][0] for condition, _ in whens]
    if target.kind is Kind.NULL:
        return Literal(None, target)
    fitted = tuple((c, exactly(v, target)) for c, (_, v) in zip(conditions, whens, strict=True))
    return Case(fitted, exactly(otherwise, target), target)


def not_distinct(a: Expr, b: Expr) -> Call:
    """a = b, or both are NULL."""
    return call("<=>" if a.nullable or b.nullable else "=", a, b)


def coalesce(*args: Expr) -> Expr:
    """COALESCE(a, b)  →  CASE WHEN NOT a IS NULL THEN a ELSE b END"""
    *tested, last = args
    return case([(not_null(arg), arg) for arg in tested], last) if tested else last
