"""Scalar expressions over a row, printed: exact numbers, dates, booleans, and texts compared with constants.

l_extendedprice * (1 - l_discount)   →   x_2 = 100 - l_discount
                                         fits &= multiply_fits(l_extendedprice, x_2)
                                         x_3 = l_extendedprice * x_2

A value is a word, 0 for NULL, and perhaps a name that is 1 where it is known. Where one leaves 64 bits, `fits` becomes
0, and the generic evaluators do the batch, which know larger ones and the errors.
"""

import struct
from collections.abc import Callable, Sequence
from dataclasses import field
from functools import reduce

from squallpy.base.keys import HOLE, LEAST, NULL, is_plain, least_as_held, null_of
from squallpy.base.records import dataclass
from squallpy.base.types import RANGES, Kind, Type
from squallpy.codegen.names import Lines, Names, NotCompilable, constant
from squallpy.logical.expressions import COMPARISONS, Call, Case, Cast, Column, Expr, Literal

_LIMIT = 2**63
_COMPARE = dict(zip(COMPARISONS, ("==", "!=", "<", "<=", ">", ">="), strict=True))
_ARITHMETIC = {"+": "+", "-": "-", "*": "*", "add_days": "+", "add_micros": "+", "days_between": "-"}
_FITS = {"+": "add_fits", "-": "subtract_fits", "*": "multiply_fits"}
_REAL = {
    "+": "real_add", "-": "real_subtract", "*": "real_multiply", "/": "real_divide",
    "product_rest": "real_product_rest",
}  # fmt: skip
_PARTS = ("extract_year", "extract_month", "extract_day")
_DAY = 86_400_000_000


@dataclass(frozen=True, slots=True)
class Value:
    """A word as Python text, an atom; `known` is 1 where it is not NULL (None: everywhere)."""

    code: str
    known: str | None = None
    least: int = 0
    most: int = 1


@dataclass(frozen=True, slots=True)
class Text:
    """A text: names of where it begins and of its bytes; `known` as of a value.

    Args:
        base: The address from which it begins, printed at each use, for a dictionary may move; none: an address itself.
    """

    start: str
    length: str
    known: str | None = None
    base: str = ""

    @property
    def address(self) -> str:
        """The address at which it begins, as of now."""
        return f"{self.base} + {self.start}" if self.base else self.start


@dataclass
class RowExpressions:
    """Prints expressions over the row at hand.

    Args:
        load: Loads a column's word.
        load_text: Loads a column that is a text.
    """

    lines: Lines
    names: Names
    load: Callable[[Column], Value]
    load_text: Callable[[Column], Text]
    checks: int = 0
    """Number of values so far that may not fit."""
    _values: dict[Expr, Value] = field(default_factory=dict)
    _texts: dict[Expr, Text] = field(default_factory=dict)

    def assign(self, variable: Column, value: Expr) -> None:
        """Bind a variable to a value from here on."""
        if variable.type.kind is Kind.VARCHAR:
            self._texts[variable] = self.text(value)
        else:
            self._values[variable] = self.value(value)

    def text(self, expr: Expr) -> Text:
        """Print a text, once: a column, or a part of a text from a constant character on."""
        if expr not in self._texts:
            self._texts[expr] = self._text(expr)
        return self._texts[expr]

    def _text(self, expr: Expr) -> Text:
        match expr:
            case Column():
                return self.load_text(expr)
            case Literal(str(value)):
                return Text(self.lines.address(value), str(len(value.encode())))
            case Call("substring", (arg, Literal(int(first)), *rest)) if first >= 0 and _are_counts(rest):
                text, start, length = self.text(arg), self.names("part_start"), self.names("part_length")
                skipped = f"leading({text.address}, {text.length}, {first - 1})" if first > 1 else "0"
                self.lines(f"{start} = {skipped}  # {expr}")
                self.lines(f"{length} = {text.length} - {start}")
                self.lines(f"{start} += {text.start}")
                part = Text(start, length, text.known, text.base)
                for literal in rest:
                    assert isinstance(literal, Literal)
                    self.lines(f"{length} = leading({part.address}, {length}, {max(0, literal.value)})")
                return part
        raise NotCompilable(f"{expr}, a text")

    def value(self, expr: Expr) -> Value:
        """Print an expression, once."""
        if expr not in self._values:
            self._values[expr] = self._value(expr)
        return self._values[expr]

    def product(self, factors: tuple[Expr, ...]) -> Value:
        """Print a product in which NULL is 0."""
        values = [Value(v.code, None, v.least, v.most) for v in map(self.value, factors)]
        return reduce(lambda a, b: self._arithmetic("*", a, b, ""), values) if values else _literal(1)

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
            product = self._name(f"real_multiply({product}, {code})") if product else code
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
            case Literal(value) if -_LIMIT < int(value) < _LIMIT:
                return _literal(int(value))
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
        if any(arg.type.kind is Kind.VARCHAR for arg in args):
            return self._on_texts(call)
        if call.type.kind is Kind.DOUBLE:
            return self._real(call)
        if name in _COMPARE:
            a, b = map(self._ordinal, args)
            return self._let(f"1 if {a.code} {_COMPARE[name]} {b.code} else 0", self._both(a, b), call)
        if name == "in" and args[0].type.kind is not Kind.DOUBLE:
            first, *others = map(self.value, args)
            same = (self._let(f"1 if {first.code} == {v.code} else 0", self._both(first, v), call) for v in others)
            return reduce(lambda a, b: self._connect("or", a, b, call), same)
        if name in ("and", "or"):
            return reduce(lambda a, b: self._connect(name, a, b, call), map(self.value, args))
        if name == "not":
            a = self.value(args[0])
            return self._let(f"1 - {a.code}", a.known, call)
        if name == "is_null":
            return self._is_null(self.value(args[0]).known)
        if name == "micros":
            return self.value(args[0])
        if name == "day_to_second":
            return self._within(self.value(args[0]), *RANGES[call.type.kind])
        if name in _PARTS and args[0].type.kind is Kind.DATE:
            a = self.value(args[0])
            return self._let(f"part_of_date({a.code}, {_PARTS.index(name)})", a.known, call, 0, 9999)
        if name == "negate" and call.type.is_exact:
            return self._arithmetic("-", _literal(0), self.value(args[0]), str(call))
        if name == "abs" and call.type.is_exact:
            a = self._magnitude(args[0])
            return self._let(f"abs({a.code})", a.known, call, 0, max(-a.least, a.most))
        if name == "%" and call.type.is_integer and all(arg.type.is_integer for arg in args):
            a, b = map(self._magnitude, args)
            known, divides = self._both(a, b), f"1 if {b.code} != 0 else 0"
            known = self._name(f"{known} & ({divides})" if known else divides)
            rest = self._name(f"abs({a.code}) % max(abs({b.code}), 1)")
            return self._let(f"{rest} if {a.code} >= 0 else -{rest}", known, call, *bounds(call.type))
        if name in ("least", "greatest") and call.type.is_integer and not any(arg.nullable for arg in args):
            values, pick = [self.value(arg) for arg in args], min if name == "least" else max
            ends = pick(v.least for v in values), pick(v.most for v in values)
            return self._let(f"{pick.__name__}({', '.join(v.code for v in values)})", None, call, *ends)
        if name in _ARITHMETIC and (call.type.is_exact or call.type.kind in RANGES):
            value = self._arithmetic(_ARITHMETIC[name], self.value(args[0]), self.value(args[1]), str(call))
            return self._within(value, *RANGES[call.type.kind]) if call.type.kind in RANGES else value
        raise NotCompilable(f"{call.name} in {call}")

    def _magnitude(self, expr: Expr) -> Value:
        """Print a value that has an absolute value."""
        value = self.value(expr)
        return self._within(value, 1 - _LIMIT, _LIMIT - 1) if value.least <= -_LIMIT else value

    def _real(self, call: Call) -> Value:
        """Print arithmetic of doubles; a quotient by 0 is NULL."""
        if call.name == "negate":
            a = self.value(call.args[0])
            return self._let(f"{a.code} ^ LEAST_WORD", a.known, call, *bounds(call.type))
        if call.name not in _REAL or any(arg.type.kind is not Kind.DOUBLE for arg in call.args):
            raise NotCompilable(f"{call}, of doubles")
        a, b = map(self.value, call.args)
        known = self._both(a, b)
        if call.name == "/":
            divides = f"1 if ordinal({b.code}) != 0 else 0"
            known = self._name(f"{known} & ({divides})" if known else divides)
        return self._let(f"{_REAL[call.name]}({a.code}, {b.code})", known, call, *bounds(call.type))

    def _ordinal(self, expr: Expr) -> Value:
        """Print a value that is compared."""
        value = self.value(expr)
        if expr.type.kind is not Kind.DOUBLE:
            return value
        return self._let(f"ordinal({value.code})", value.known, None, *bounds(expr.type))

    def _on_texts(self, call: Call) -> Value:
        """Print a comparison of texts, a list of constants or a pattern of constants."""
        match call:
            case Call("=" | "<>" | "in" as name, (arg, *others)) if _are_texts(others):
                tests = [_is_text(self.text(arg), str(other.value)) for other in others if isinstance(other, Literal)]
                return self._truth(_any_of(tests), name == "<>", self.text(arg).known, call)
            case Call("=" | "<>" as name, (Literal(str()) as literal, arg)):
                return self._truth(_is_text(self.text(arg), literal.value), name == "<>", self.text(arg).known, call)
            case Call("=" | "<>" as name, (left, right)):
                a, b = self.text(left), self.text(right)
                same = f"same_text({a.address}, {a.length}, {b.address}, {b.length})"
                return self._truth(same, name == "<>", self._both(a, b), call)
            case Call("like", (arg, Literal(str(pattern)))) if not set(pattern) & set("_\\"):
                return self._truth(self._like(self.text(arg), pattern), False, self.text(arg).known, call)
        raise NotCompilable(f"{call}, of texts")

    def _truth(self, test: str, negated: bool, known: str | None, call: Call) -> Value:
        test = f"not ({test})" if negated else test
        return self._let(f"1 if {f'{known} and {test}' if known else test} else 0", known, call, masked=False)

    def _like(self, text: Text, pattern: str) -> str:
        """Print the test that a text has the parts of a pattern, one behind the other."""
        head, *middle = pattern.split("%")
        if not middle:
            return _is_text(text, head)
        *middle, tail = middle
        tests, behind = list[str](), str(len(head.encode()))
        if head:
            tests.append(f"begins_with({text.address}, {text.length}, {self._needle(head)})")
        for part in filter(None, middle):
            found = self.names("behind")
            self.lines(f"{found} = search({text.address}, {text.length}, {behind}, {self._needle(part)})")
            behind = found
        if any(middle):
            tests.append(f"{behind} >= 0")
        if tail:
            size = len(tail.encode())
            tests.append(f"{text.length} - {size} >= {behind}")
            tests.append(f"begins_with({text.address} + {text.length} - {size}, {size}, {self._needle(tail)})")
        return " and ".join(tests) or "True"

    def _needle(self, text: str) -> str:
        return f"{self.lines.address(text)}, {len(text.encode())}"

    def _cast(self, expr: Cast, value: Value, source: Type, target: Type) -> Value:
        if source.kind is Kind.DATE and target.kind is Kind.TIMESTAMP:
            return self._arithmetic("*", value, _literal(_DAY), str(expr))
        step = target.scale - source.scale
        if source == target:
            return value
        if source.is_exact and target.kind is Kind.DOUBLE:
            unit = real_word(10.0**source.scale)
            return self._let(f"real_of({value.code}, {unit})", value.known, str(expr), *bounds(target))
        if not (source.is_exact and target.is_exact) or step < 0:
            raise NotCompilable(f"{expr}, from {source}")
        if step:
            value = self._arithmetic("*", value, _literal(10**step), str(expr))
        least, most = bounds(target)
        return value if least <= value.least and value.most <= most else self._within(value, least, most)

    def _case(self, expr: Case, whens: list[tuple[Value, Value]], out: Value) -> Value:
        for condition, value in reversed(whens):
            known = None
            if expr.nullable and (value.known or out.known):
                known = self._name(f"{value.known or 1} if {condition.code} else {out.known or 1}")
            least, most = min(value.least, out.least), max(value.most, out.most)
            out = self._let(f"{value.code} if {condition.code} else {out.code}", known, expr, least, most, masked=False)
        return out

    def _connect(self, name: str, a: Value, b: Value, expr: Expr) -> Value:
        """Print AND or OR: NULL unless both are known, or one that decides is."""
        known = None
        if a.known or b.known:
            p, q = a.known or "1", b.known or "1"
            if name == "and":
                known = self._name(f"({p} & (1 - {a.code})) | ({q} & (1 - {b.code})) | ({p} & {q})")
            else:
                known = self._name(f"{a.code} | {b.code} | ({p} & {q})")
        return self._let(f"{a.code} {'&' if name == 'and' else '|'} {b.code}", known, expr, masked=False)

    def _is_null(self, known: str | None) -> Value:
        return _literal(0) if known is None else self._let(f"1 - {known}", None, None)

    def _arithmetic(self, operator: str, a: Value, b: Value, comment: str) -> Value:
        ends = [_apply(operator, x, y) for x in (a.least, a.most) for y in (b.least, b.most)]
        least, most = min(ends), max(ends)
        if least <= -_LIMIT or most >= _LIMIT:
            self.checks += 1
            self.lines(f"fits &= {_FITS[operator]}({a.code}, {b.code})")
            least, most = max(least, 1 - _LIMIT), min(most, _LIMIT - 1)
        return self._let(f"{a.code} {operator} {b.code}", self._both(a, b), comment, least, most)

    def _within(self, value: Value, least: int, most: int) -> Value:
        self.checks += 1
        self.lines(f"fits &= 1 if {constant(least)} <= {value.code} <= {constant(most)} else 0")
        return Value(value.code, value.known, max(value.least, least), min(value.most, most))

    def _both(self, a: Value | Text, b: Value | Text) -> str | None:
        """Name what is 1 where both are known."""
        if a.known and b.known and a.known != b.known:
            return self._name(f"{a.known} & {b.known}")
        return a.known or b.known

    def _let(
        self, code: str, known: str | None, of: Expr | str | None, least: int = 0, most: int = 1, masked: bool = True
    ) -> Value:
        """Name a word; where it is not known, it is 0, if it has to be `masked`."""
        code = f"({code}) if {known} else 0" if known and masked else code
        return Value(self._name(code, "" if of is None else str(of)), known, min(least, 0), max(most, 0))

    def _name(self, code: str, comment: str = "") -> str:
        name = self.names("x")
        comment = " ".join(comment.split())
        self.lines(f"{name} = {code}" + (f"  # {comment}" if comment and len(comment) < 60 else ""))
        return name


def real_word(value: float) -> int:
    """Return the bits of a double as a word."""
    (word,) = struct.unpack("<q", struct.pack("<d", value))
    return int(word)


def _literal(value: int) -> Value:
    return Value(constant(value) if value >= 0 else f"({constant(value)})", None, value, value)


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


def bounds(type: Type) -> tuple[int, int]:
    """Return the least and the greatest word of a type."""
    if type.kind is Kind.BOOLEAN:
        return 0, 1
    if type.kind is Kind.INT:
        return -(2**31), 2**31 - 1
    if type.kind in RANGES:
        return RANGES[type.kind]
    if type.kind is Kind.DECIMAL and not type.is_wide:
        return 1 - 10**type.precision, 10**type.precision - 1
    return -_LIMIT, _LIMIT - 1


def _are_texts(exprs: list[Expr]) -> bool:
    return bool(exprs) and all(isinstance(e, Literal) and isinstance(e.value, str) for e in exprs)


def _are_counts(exprs: list[Expr]) -> bool:
    return all(isinstance(e, Literal) and isinstance(e.value, int) for e in exprs)


def _is_text(text: Text, constant_text: str) -> str:
    """Print the test that a text is a constant, by whole words."""
    data = constant_text.encode()
    tests, at = [f"{text.length} == {len(data)}"], 0
    for size, load in ((8, "load"), (4, "load32"), (1, "load8")):
        while len(data) - at >= size:
            word = int.from_bytes(data[at : at + size], "little", signed=size == 8)
            tests.append(f"{load}({text.address} + {at}, 0) == {constant(word)}")
            at += size
    return " and ".join(tests)


def _any_of(tests: Sequence[str]) -> str:
    """Print that one of several tests is true, as something that AND can follow or precede."""
    return f"({' or '.join(f'({test})' for test in tests)})" if len(tests) > 1 else tests[0]
