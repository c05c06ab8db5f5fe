"""Scalar expressions over a row, printed: numbers, dates, moments, truth values; texts by `text_expressions.py`.

l_extendedprice * (1 - l_discount)   →   x_2 = 100 - l_discount
                                         fits &= multiply_fits(l_extendedprice, x_2)
                                         x_3 = l_extendedprice * x_2

A value is a word, 0 for NULL, and perhaps a name that is 1 where it is known. Where one leaves 64 bits, `fits` becomes
0, and the generic evaluators do the batch, which know larger ones and the errors.
"""

from collections.abc import Callable
from dataclasses import field
from functools import partial, reduce

from squallpy.base.keys import HOLE, LEAST, NULL, is_plain, least_as_held, null_of
from squallpy.base.records import dataclass
from squallpy.base.types import BIGINT, INT, RANGES, Kind, Type
from squallpy.catalog.durations import DAY
from squallpy.codegen.moment_expressions import print_moment
from squallpy.codegen.names import Lines, Names, NotCompilable, constant
from squallpy.codegen.text_expressions import TextPrinter
from squallpy.codegen.values import LIMIT, Text, Value, bounds, literal, real_word
from squallpy.logical.expressions import COMPARISONS, Call, Case, Cast, Column, Expr, Literal

_COMPARE = dict(zip(COMPARISONS, ("==", "!=", "<", "<=", ">", ">="), strict=True))
_ARITHMETIC = {"+": "+", "-": "-", "*": "*", "add_days": "+", "add_micros": "+", "days_between": "-"}
_FITS = {"+": "add_fits", "-": "subtract_fits", "*": "multiply_fits"}
_REAL = {
    "+": "real_add", "-": "real_subtract", "*": "real_multiply", "/": "real_divide",
    "product_rest": "real_product_rest",
}  # fmt: skip
_BITS = {
    "bit_and": "{} & {}", "bit_or": "{} | {}", "bit_xor": "{} ^ {}", "bit_not": "~{}",
    "shift_left": "{} << ({} & 63)", "shift_right": "{} >> ({} & 63)",
}  # fmt: skip


@dataclass
class RowExpressions:
    """Prints expressions over the row at hand.

    Args:
        load: Loads a column's word.
        load_text: Loads a column that is a text.
        composed: The name of the address of room for texts that are composed; none: there is no room.
    """

    lines: Lines
    names: Names
    load: Callable[[Column], Value]
    load_text: Callable[[Column], Text]
    checks: int = 0
    """Number of values so far that may not fit."""
    composed: str = ""
    _values: dict[Expr, Value] = field(default_factory=dict)
    _texts: dict[Expr, Text] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._printer = TextPrinter(self, self.composed)

    @property
    def has_composed(self) -> bool:
        """True if texts have been composed."""
        return self._printer.has_composed

    def assign(self, variable: Column, value: Expr) -> None:
        """Bind a variable to a value from here on."""
        if variable.type.kind is Kind.VARCHAR:
            self._texts[variable] = self.text(value)
        else:
            self._values[variable] = self.value(value)

    def text(self, expr: Expr) -> Text:
        """Print a text, once."""
        if expr not in self._texts:
            self._texts[expr] = self.load_text(expr) if isinstance(expr, Column) else self._printer.text(expr)
        return self._texts[expr]

    def value(self, expr: Expr) -> Value:
        """Print an expression, once."""
        if expr not in self._values:
            self._values[expr] = self._value(expr)
        return self._values[expr]

    def product(self, factors: tuple[Expr, ...]) -> Value:
        """Print a product in which NULL is 0."""
        values = [Value(v.code, None, v.least, v.most) for v in map(self.value, factors)]
        return reduce(lambda a, b: self._arithmetic("*", a, b, ""), values) if values else literal(1)

    def real_product(self, factors: tuple[Expr, ...], times: Value | None) -> str:
        """Print a product as a double, and behind a comma how often it counts: never if a factor is NULL or FALSE.

        Args:
            times: How often the row counts; None: once.
        """
        product, counts = "", [] if times is None else [times.code]
        for factor in factors:
            value = self.value(factor)
            counts += [value.known] if value.known else []
            if factor.type.kind is Kind.BOOLEAN:
                counts.append(value.code)
                continue
            if not factor.type.is_exact and factor.type.kind is not Kind.DOUBLE:
                raise NotCompilable(f"{factor}, a factor of doubles")
            code = f"real_of({value.code}, {real_word(1.0)})" if factor.type.is_exact else value.code
            product = self.name(f"real_multiply({product}, {code})") if product else code
        return f"{product}, {' * '.join(counts) or 1}"

    def key(self, key: Expr) -> str:
        """Print a value that is no text as the word of a key."""
        return self.key_word(self.value(key), key.type)

    def key_word(self, value: Value, type: Type) -> str:
        """Print the word by which a value of a type is a key; some have none."""
        is_real, least = type.kind is Kind.DOUBLE, least_as_held(type)
        word = f"real_key({value.code})" if is_real else value.code
        if value.least < least and not is_real:
            self.checks += 1
            known = f"{value.known} == 0 or " if value.known else ""
            self.lines(f"fits &= 1 if {known}{value.code} >= {constant(least)} else 0")
        return f"({word} if {value.known} else LEAST_WORD)" if value.known else word

    def text_key(self, key: Expr) -> str:
        """Print the number that a text has in the dictionary, to which it is added if it is not there."""
        text, number = self.text(key), self.names("number")
        found = f"intern(steps, {text.address}, {text.length})"
        self.lines(f"{number} = {found}" + (f" if {text.known} else -1" if text.known else ""))
        self.lines(f"if {number} == -2:")
        self.lines("    return -2")
        return number

    def times(self, value: Value, times: Value) -> Value:
        """Print a value so many times."""
        return self._arithmetic("*", value, times, "")

    def _value(self, expr: Expr) -> Value:
        if expr.type.kind in (Kind.VARCHAR, Kind.INTERVAL, Kind.NULL):
            raise NotCompilable(f"{expr}, a {expr.type}")
        match expr:
            case Column():
                return self.load(expr)
            case Literal(None):
                return Value("0", "0", 0, 0)
            case Literal(float(value)):
                return Value(f"({real_word(value)})", None, *bounds(expr.type))
            case Literal(value) if -LIMIT < int(value) < LIMIT:
                return literal(int(value))
            case Cast(arg, target):
                return self._cast(expr, self.value(arg), arg.type, target)
            case Case(whens, otherwise):
                return self._case(expr, [(self.value(c), self.value(v)) for c, v in whens], self.value(otherwise))
            case Call():
                return self._call(expr)
        raise NotCompilable(str(expr))

    def _call(self, call: Call) -> Value:
        name, args = call.name, call.args
        if name == "is_null" and args[0].type.kind is Kind.VARCHAR:
            return self._is_null(self.text(args[0]).known)
        if any(arg.type.kind is Kind.VARCHAR for arg in args) and name != "trunc":
            return self._printer.test(call)
        if call.type.kind is Kind.DOUBLE and name not in ("least", "greatest"):
            return self._real(call)
        if name in _COMPARE:
            a, b = map(self._ordinal, args)
            return self.let(f"1 if {a.code} {_COMPARE[name]} {b.code} else 0", self.both(a, b), call)
        if name == "<=>":
            a, b = map(self._ordinal, args)
            alike = f"({a.known or 1}) == ({b.known or 1}) and " if a.known or b.known else ""
            return self.let(f"1 if {alike}{a.code} == {b.code} else 0", None, call)
        if name == "in":
            first, *others = map(self._ordinal, args)
            same = (self.let(f"1 if {first.code} == {v.code} else 0", self.both(first, v), call) for v in others)
            return reduce(lambda a, b: self._connect("or", a, b, call), same)
        if name in ("and", "or"):
            return reduce(lambda a, b: self._connect(name, a, b, call), map(self.value, args))
        if name == "not":
            a = self.value(args[0])
            return self.let(f"1 - {a.code}", a.known, call)
        if name == "is_null":
            return self._is_null(self.value(args[0]).known)
        if name == "micros":
            return self.value(args[0])
        if name == "day_to_second":
            return self.within(self.value(args[0]), *RANGES[call.type.kind])
        if name == "negate" and call.type.is_exact:
            return self._arithmetic("-", literal(0), self.value(args[0]), str(call))
        if name == "abs" and call.type.is_exact:
            a = self._magnitude(args[0])
            return self.let(f"abs({a.code})", a.known, call, 0, max(-a.least, a.most))
        if name == "%" and call.type.is_integer and all(arg.type.is_integer for arg in args):
            a, b = map(self._magnitude, args)
            divisible = self._divisible(self.both(a, b), b.code)
            rest = self.name(f"abs({a.code}) % max(abs({b.code}), 1)")
            return self.let(f"{rest} if {a.code} >= 0 else -{rest}", divisible, call, *bounds(call.type))
        if name == "div":
            return self._quotient(call, *map(self._magnitude, args))
        if name in ("floor", "ceil"):
            if args[0].type.kind is Kind.DOUBLE:
                return self._word_of(f"real_{name}", self.value(args[0]), call)
            return self._whole(call, self._magnitude(args[0]), 10 ** args[0].type.scale)
        if name in _BITS:
            values = [self.value(arg) for arg in args]
            known = reduce(self.both_known, (value.known for value in values))
            return self.let(_BITS[name].format(*(v.code for v in values)), known, call, *bounds(BIGINT))
        if name in ("least", "greatest"):
            return reduce(partial(self._extreme, call), map(self.value, args))
        if name in _ARITHMETIC and (call.type.is_exact or call.type.kind in RANGES):
            value = self._arithmetic(_ARITHMETIC[name], self.value(args[0]), self.value(args[1]), str(call))
            return self.within(value, *RANGES[call.type.kind]) if call.type.kind in RANGES else value
        return print_moment(call, self)

    def _quotient(self, call: Call, a: Value, b: Value) -> Value:
        """Print a quotient, cut off to a whole number; by 0 it is NULL."""
        known, most = self._divisible(self.both(a, b), b.code), max(-a.least, a.most)
        size = self.name(f"abs({a.code}) // max(abs({b.code}), 1)")
        return self.let(f"{size} if ({a.code} < 0) == ({b.code} < 0) else -{size}", known, call, -most, most)

    def _divisible(self, known: str | None, divisor: str) -> str:
        """Name what is 1 where a quotient is known: both operands are, and the divisor is not 0."""
        divides = f"1 if {divisor} != 0 else 0"
        return self.name(f"{known} & ({divides})" if known else divides)

    def _whole(self, call: Call, a: Value, unit: int) -> Value:
        """Print FLOOR or CEIL of so many units."""
        if unit >= LIMIT:
            raise NotCompilable(f"{call.name} in {call}")
        code = f"{a.code} // {unit}" if call.name == "floor" else f"-(-{a.code} // {unit})"
        return self.let(code, a.known, call, a.least // unit, -(-a.most // unit))

    def _word_of(self, rounded: str, value: Value, expr: Expr, scaled: str = "") -> Value:
        """Print the whole number that a double is rounded to; one without 64 bits has no answer."""
        real = self.name(f"{rounded}({scaled or value.code})", str(expr))
        self.checks += 1
        self.lines(f"fits &= 1 if {f'{value.known} == 0 or ' if value.known else ''}has_word({real}) else 0")
        return self.let(f"word_of({real})", value.known, None, *bounds(BIGINT))

    def _extreme(self, call: Call, a: Value, b: Value) -> Value:
        """Print the greater or lesser of two values; the other one if one is NULL."""
        is_real, sign = call.type.kind is Kind.DOUBLE, ">" if call.name == "greatest" else "<"
        first, second = (f"ordinal({v.code})" if is_real else v.code for v in (a, b))
        beats = f"{second} {sign} {first}"
        if b.known:
            beats = f"{b.known} and {beats}"
        if a.known:
            beats = f"({beats}) or {f'{b.known} and ' if b.known else ''}{a.known} == 0"
        known = self.name(f"{a.known} | {b.known}") if a.known and b.known else None
        ends = min(a.least, b.least), max(a.most, b.most)
        return self.let(f"{b.code} if {beats} else {a.code}", known, call, *ends, masked=False)

    def _magnitude(self, expr: Expr) -> Value:
        """Print a value that has an absolute value."""
        value = self.value(expr)
        return self.within(value, 1 - LIMIT, LIMIT - 1) if value.least <= -LIMIT else value

    def _real(self, call: Call) -> Value:
        """Print arithmetic of doubles; a quotient by 0 is NULL."""
        if call.name == "negate":
            a = self.value(call.args[0])
            return self.let(f"{a.code} ^ LEAST_WORD", a.known, call, *bounds(call.type))
        if call.name == "abs":
            a = self.value(call.args[0])
            return self.let(f"{a.code} & {LIMIT - 1}", a.known, call, *bounds(call.type))
        if call.name == "sqrt":
            a = self.value(call.args[0])
            return self.let(f"real_square_root({a.code})", a.known, call, *bounds(call.type))
        if call.name not in _REAL or any(arg.type.kind is not Kind.DOUBLE for arg in call.args):
            raise NotCompilable(f"{call}, of doubles")
        a, b = map(self.value, call.args)
        known = self.both(a, b)
        if call.name == "/":
            known = self._divisible(known, f"ordinal({b.code})")
        return self.let(f"{_REAL[call.name]}({a.code}, {b.code})", known, call, *bounds(call.type))

    def _ordinal(self, expr: Expr) -> Value:
        """Print a value that is compared."""
        value = self.value(expr)
        if expr.type.kind is not Kind.DOUBLE:
            return value
        return self.let(f"ordinal({value.code})", value.known, None, *bounds(expr.type))

    def _cast(self, expr: Cast, value: Value, source: Type, target: Type) -> Value:
        if source.kind is Kind.DATE and target.kind is Kind.TIMESTAMP:
            return self._arithmetic("*", value, literal(DAY), str(expr))
        if source.kind is Kind.TIMESTAMP and target.kind is Kind.DATE:
            return self.let(f"{value.code} // {DAY}", value.known, expr, *RANGES[Kind.DATE])
        if source == target:
            return value
        if target.kind is Kind.BOOLEAN and source.is_numeric:
            code = f"ordinal({value.code})" if source.kind is Kind.DOUBLE else value.code
            return self.let(f"1 if {code} != 0 else 0", value.known, expr)
        if source.kind is Kind.BOOLEAN and target.is_exact:
            source = INT
        step = target.scale - source.scale
        if source.is_exact and target.kind is Kind.DOUBLE:
            unit = real_word(10.0**source.scale)
            return self.let(f"real_of({value.code}, {unit})", value.known, str(expr), *bounds(target))
        if source.kind is Kind.DOUBLE and target.is_exact:
            scaled = f"real_multiply({value.code}, {real_word(10.0**target.scale)})" if target.scale else value.code
            whole = self._word_of("real_trunc" if target.is_integer else "real_half_away", value, expr, scaled)
            return self.within(whole, *bounds(target))
        if not (source.is_exact and target.is_exact):
            raise NotCompilable(f"{expr}, from {source}")
        if step > 0:
            value = self._arithmetic("*", value, literal(10**step), str(expr))
        if step < 0:
            value = self._rounded(expr, value, 10**-step, target)
        least, most = bounds(target)
        return value if least <= value.least and value.most <= most else self.within(value, least, most)

    def _rounded(self, expr: Cast, value: Value, unit: int, target: Type) -> Value:
        """Print a value in a larger unit: the next one, half away from zero, or, as an integer, cut off."""
        half = 0 if target.is_integer else unit // 2
        most = LIMIT - 1 - half
        if unit >= LIMIT:
            raise NotCompilable(f"{expr}, from more than 18 digits")
        if value.least < -most or value.most > most:
            value = self.within(value, -most, most)
        size = self.name(f"(abs({value.code}) + {half}) // {unit}")
        ends = -((half - min(value.least, 0)) // unit), (max(value.most, 0) + half) // unit
        return self.let(f"{size} if {value.code} >= 0 else -{size}", value.known, expr, *ends)

    def _case(self, expr: Case, whens: list[tuple[Value, Value]], out: Value) -> Value:
        for condition, value in reversed(whens):
            known = None
            if expr.nullable and (value.known or out.known):
                known = self.name(f"{value.known or 1} if {condition.code} else {out.known or 1}")
            least, most = min(value.least, out.least), max(value.most, out.most)
            out = self.let(f"{value.code} if {condition.code} else {out.code}", known, expr, least, most, masked=False)
        return out

    def _connect(self, name: str, a: Value, b: Value, expr: Expr) -> Value:
        """Print AND or OR: NULL unless both are known, or one that decides is."""
        known = None
        if a.known or b.known:
            p, q = a.known or "1", b.known or "1"
            if name == "and":
                known = self.name(f"({p} & (1 - {a.code})) | ({q} & (1 - {b.code})) | ({p} & {q})")
            else:
                known = self.name(f"{a.code} | {b.code} | ({p} & {q})")
        return self.let(f"{a.code} {'&' if name == 'and' else '|'} {b.code}", known, expr, masked=False)

    def _is_null(self, known: str | None) -> Value:
        return literal(0) if known is None else self.let(f"1 - {known}", None, None)

    def _arithmetic(self, operator: str, a: Value, b: Value, comment: str) -> Value:
        ends = [_apply(operator, x, y) for x in (a.least, a.most) for y in (b.least, b.most)]
        least, most = min(ends), max(ends)
        if least <= -LIMIT or most >= LIMIT:
            self.checks += 1
            self.lines(f"fits &= {_FITS[operator]}({a.code}, {b.code})")
            least, most = max(least, 1 - LIMIT), min(most, LIMIT - 1)
        return self.let(f"{a.code} {operator} {b.code}", self.both(a, b), comment, least, most)

    def within(self, value: Value, least: int, most: int) -> Value:
        """Print that a value which is not within two ends has no answer."""
        self.checks += 1
        self.lines(f"fits &= 1 if {constant(least)} <= {value.code} <= {constant(most)} else 0")
        return Value(value.code, value.known, max(value.least, least), min(value.most, most))

    def both(self, a: Value | Text, b: Value | Text) -> str | None:
        """Name what is 1 where both are known."""
        return self.both_known(a.known, b.known)

    def both_known(self, a: str | None, b: str | None) -> str | None:
        """Name what is 1 where two names are."""
        return self.name(f"{a} & {b}") if a and b and a != b else a or b

    def let(
        self, code: str, known: str | None, of: Expr | str | None, least: int = 0, most: int = 1, masked: bool = True
    ) -> Value:
        """Name a word; where it is not known, it is 0, if it has to be `masked`."""
        code = f"({code}) if {known} else 0" if known and masked else code
        return Value(self.name(code, "" if of is None else str(of)), known, min(least, 0), max(most, 0))

    def name(self, code: str, comment: str = "") -> str:
        """Name what an expression of Python has."""
        name = self.names("x")
        comment = " ".join(comment.split())
        self.lines(f"{name} = {code}" + (f"  # {comment}" if comment and len(comment) < 60 else ""))
        return name


def _apply(operator: str, x: int, y: int) -> int:
    return x + y if operator == "+" else x - y if operator == "-" else x * y


def print_key(column: Column, word: str, row: RowExpressions, in_order: bool = False) -> Value:
    """Print the value of a key, given its word.

    Args:
        in_order: The word of a wide decimal is known to be its value.
    """
    body, names, type = row.lines, row.names, column.type
    if type.is_wide and not in_order:
        row.checks += 1
        apart = f"{word} == {constant(NULL)} or " if column.nullable else ""
        body(f"fits &= 1 if {apart}{word} >= {constant(LEAST)} else 0")
    elif not type.is_wide and not is_plain(type) and type.kind is not Kind.DOUBLE:
        raise NotCompilable(f"{column}, a {type} that is looked at")
    known, value, code = None, names(column.name), word
    if column.nullable:
        known = names(f"{column.name}_known")
        body(f"{known} = 1 if {word} != {constant(null_of(type))} else 0")
        code = f"({word} if {known} else 0)"
    if type.kind is Kind.BIGINT:
        code = f"{code} - (1 if {code} <= {HOLE} else 0)"
    if code == word:
        return Value(word, None, *bounds(type))
    body(f"{value} = {code}")
    return Value(value, known, *bounds(type))


def print_text(column: Column, word: str, row: RowExpressions) -> Text:
    """Print where the text begins that is a number in the dictionary, and its size."""
    number, start, size = (row.names(f"{column.name}{suffix}") for suffix in ("", "_start", "_size"))
    row.lines(f"{number} = {word}")
    row.lines(f"{start}, {size} = offset_of(steps, {number}), size_of(steps, {number})")
    known = row.names(f"{column.name}_known") if column.nullable else None
    if known:
        row.lines(f"{known} = 1 if {number} >= 0 else 0")
    return Text(start, size, known, "texts_at(steps)")
