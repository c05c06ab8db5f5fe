"""Expressions of texts, printed: parts of texts where they stand, others composed in room that a function has.

SUBSTRING(s, 2)               →   s_start += leading(s_start, s_length, 1)
DATE_FORMAT(d, 'yyyy-MM')     →   put_padded(composed, …), put_text(composed, …, '-'), …
s LIKE 'a%'                   →   begins_with(s_start, s_length, 'a')
"""

from collections.abc import Callable, Sequence
from functools import reduce
from typing import TYPE_CHECKING, Final

from squallpy.base.types import Kind
from squallpy.catalog.durations import DAY
from squallpy.codegen.names import NotCompilable, constant
from squallpy.codegen.values import Text, Value
from squallpy.logical.expressions import COMPARISONS, Call, Case, Cast, Expr, Literal

if TYPE_CHECKING:
    from squallpy.codegen.expressions import RowExpressions

ROOM: Final = 4096
"""Bytes that the texts which a row composes have together, as in the kernels."""
_MOST_CHARACTERS: Final = 2**31  # more than a text has
_MOST_SCALE: Final = 6  # of a decimal whose text has no exponent, however small it is
_IN_CASE: Final = {"upper": 1, "lower": 0}
_TRIMMED: Final = {"trim": (True, True), "ltrim": (True, False), "rtrim": (False, True)}


class TextPrinter:
    """Prints expressions of texts over a row.

    Args:
        composed: The name of the address of room for texts that are composed; none: there is no room.
    """

    def __init__(self, row: "RowExpressions", composed: str) -> None:
        self._row, self._lines, self._names, self._composed = row, row.lines, row.names, composed
        self._end = "0"  # of what has been composed so far

    @property
    def has_composed(self) -> bool:
        """True if texts have been composed."""
        return self._end != "0"

    def text(self, expr: Expr) -> Text:
        """Print an expression that is a text, but no column."""
        match expr:
            case Literal(None):
                return Text(self._lines.address(""), "0", "0")
            case Literal(str(value)):
                return Text(self._lines.address(value), str(len(value.encode())))
            case Call("substring", (arg, Literal(int(first)), *rest)) if _are_counts(rest):
                counts = [min(max(_count(each), 0), _MOST_CHARACTERS) for each in rest]
                return self._part(expr, self._row.text(arg), max(first, -_MOST_CHARACTERS), *counts)
            case Call("trim" | "ltrim" | "rtrim" as name, (arg, Literal(str(letters)))) if letters.isascii():
                return self._trimmed(expr, self._row.text(arg), letters, *_TRIMMED[name])
            case Call("split_part", (arg, Literal(str(separator)), Literal(int(number)))) if separator and number > 0:
                return self._split(expr, self._row.text(arg), separator, number)
            case Case(whens, otherwise):
                return self._case(expr, [(self._row.value(c), self._row.text(v)) for c, v in whens], otherwise)
            case Call("||", args):
                texts = [self._row.text(arg) for arg in args]
                known = reduce(self._row.both_known, (text.known for text in texts))
                return self._compose([f"put_text({{}}, {text.span})".format for text in texts], known, expr)
            case Call("lpad" | "rpad" as name, (arg, Literal(int(width)), Literal(str(fill)))) if width <= ROOM:
                text, is_left = self._row.text(arg), int(name == "lpad")
                wide = f"put_padded({{}}, {text.span}, {max(width, 0)}, {self._needle(fill)}, {is_left})"
                return self._compose([wide.format], text.known, expr)
            case Call("upper" | "lower" as name, (arg,)):
                text = self._row.text(arg)
                return self._compose([f"put_in_case({{}}, {text.span}, {_IN_CASE[name]})".format], text.known, expr)
            case Call("replace", (arg, Literal(str(old)), Literal(str(new)))) if old:
                text = self._row.text(arg)
                put = f"put_replaced({{}}, {text.span}, {self._needle(old)}, {self._needle(new)})"
                return self._compose([put.format], text.known, expr)
            case Cast(arg) if arg.type.kind is not Kind.VARCHAR:
                return self._cast(expr, arg)
        raise NotCompilable(f"{expr}, a text")

    def test(self, call: Call) -> Value:
        """Print a comparison of texts, a list of constants, a pattern, or a number that texts have."""
        match call:
            case Call("=" | "<>" | "in" as name, (arg, *others)) if _are_texts(others):
                tests = [_is_text(self._row.text(arg), str(o.value)) for o in others if isinstance(o, Literal)]
                return self._truth(_any_of(tests), name == "<>", self._row.text(arg).known, call)
            case Call("=" | "<>" as name, (Literal(str()) as literal, arg)):
                same = _is_text(self._row.text(arg), literal.value)
                return self._truth(same, name == "<>", self._row.text(arg).known, call)
            case Call("=" | "<>" as name, (left, right)):
                a, b = self._row.text(left), self._row.text(right)
                return self._truth(f"same_text({a.span}, {b.span})", name == "<>", self._row.both(a, b), call)
            case Call("<=>", (left, right)):
                a, b = self._row.text(left), self._row.text(right)
                alike = f"({a.known or 1}) == ({b.known or 1})"
                either = f"({a.known or 1}) == 0 or " if a.known else ""
                return self._truth(f"{alike} and ({either}same_text({a.span}, {b.span}))", False, None, call)
            case Call(name, (left, right)) if name in COMPARISONS:
                a, b = self._row.text(left), self._row.text(right)
                test = f"compare_texts({a.span}, {b.span}) {name} 0"
                return self._truth(test, False, self._row.both(a, b), call)
            case Call("like", (arg, Literal(str(pattern)))) if "\\" not in pattern:
                text = self._row.text(arg)
                wild = f"is_like({text.span}, {self._needle(pattern)})"
                return self._truth(wild if "_" in pattern else self._like(text, pattern), False, text.known, call)
            case Call("startswith" | "endswith" | "contains" as name, (arg, Literal(str(part)))):
                before, behind = ("" if name == "startswith" else "%"), ("" if name == "endswith" else "%")
                text = self._row.text(arg)
                return self._truth(self._like(text, (before, part, behind)), False, text.known, call)
            case Call("length", (arg,)):
                return self._number(f"characters_of({self._row.text(arg).span})", self._row.text(arg), call)
            case Call("octets", (arg,)):
                return self._number(self._row.text(arg).length, self._row.text(arg), call)
            case Call("instr", (arg, Literal(str(part)))):
                place = f"place_of({self._row.text(arg).span}, {self._needle(part)})"
                return self._number(place, self._row.text(arg), call)
        raise NotCompilable(f"{call}, of texts")

    def _number(self, code: str, text: Text, call: Call) -> Value:
        return self._row.let(code, text.known, call, 0, 2**31 - 1)

    def _part(self, expr: Expr, text: Text, first: int, count: int | None = None) -> Text:
        """Print a part from a character on, of so many characters; below 0 the first is counted from the end."""
        if first >= 0:
            return self._cut(expr, text, str(max(first - 1, 0)), None if count is None else str(count))
        skipped = self._row.name(f"characters_of({text.span}) - {-first}")
        begin = f"max({skipped}, 0)"
        has_end = count is not None and first + count < 0
        return self._cut(expr, text, begin, f"max({skipped} + {count}, 0) - {begin}" if has_end else None)

    def _cut(self, expr: Expr, text: Text, skipped: str, count: str | None) -> Text:
        """Print a text without its first characters, and at most so many of the others."""
        start, length = self._names("part_start"), self._names("part_length")
        self._lines(f"{start} = {'0' if skipped == '0' else f'leading({text.span}, {skipped})'}  # {expr}")
        self._lines(f"{length} = {text.length} - {start}")
        self._lines(f"{start} += {text.start}")
        part = Text(start, length, text.known, text.base)
        if count is not None:
            self._lines(f"{length} = leading({part.span}, {count})")
        return part

    def _trimmed(self, expr: Expr, text: Text, letters: str, at_start: bool, at_end: bool) -> Text:
        """Print a text without some letters at its ends."""
        start, length, signs = self._names("part_start"), self._names("part_length"), self._needle(letters)
        self._lines(f"{start} = skip_letters({text.span}, {signs})  # {expr}" if at_start else f"{start} = 0  # {expr}")
        self._lines(f"{length} = {text.length} - {start}")
        self._lines(f"{start} += {text.start}")
        part = Text(start, length, text.known, text.base)
        if at_end:
            self._lines(f"{length} = without_letters({part.span}, {signs})")
        return part

    def _split(self, expr: Expr, text: Text, separator: str, number: int) -> Text:
        """Print a part between separators, empty if there is none."""
        start, length, needle = self._names("part_start"), self._names("part_length"), self._needle(separator)
        self._lines(f"{start} = part_before({text.span}, {needle}, {number})  # {expr}")
        self._lines(f"{length} = part_length({text.span}, {start}, {needle})")
        self._lines(f"{start} = max({start}, 0) + {text.start}")
        return Text(start, length, text.known, text.base)

    def _case(self, expr: Case, whens: list[tuple[Value, Text]], otherwise: Expr) -> Text:
        """Print the text of the first condition that is TRUE."""
        out = self._row.text(otherwise)
        if {text.base for text in (out, *(text for _, text in whens))} - {"", self._composed}:
            raise NotCompilable(f"{expr}, of texts that may move")
        for condition, text in reversed(whens):
            start, length, known = self._names("text_start"), self._names("text_length"), None
            self._lines(f"{start} = {text.address} if {condition.code} else {out.address}")
            self._lines(f"{length} = {text.length} if {condition.code} else {out.length}")
            if text.known or out.known:
                known = self._names("text_known")
                self._lines(f"{known} = {text.known or 1} if {condition.code} else {out.known or 1}")
            out = Text(start, length, known)
        return out

    def _cast(self, expr: Cast, arg: Expr) -> Text:
        """Print the text of a number, a date, a moment or a truth value."""
        value, type = self._row.value(arg), arg.type
        if type.is_exact and type.scale <= _MOST_SCALE:
            return self._compose([f"put_decimal({{}}, {value.code}, {type.scale})".format], value.known, expr)
        if type.kind is Kind.BOOLEAN:
            yes, no = (Text(self._lines.address(word), str(len(word))) for word in ("true", "false"))
            start, length = self._names("text_start"), self._names("text_length")
            self._lines(f"{start} = {yes.start} if {value.code} else {no.start}")
            self._lines(f"{length} = 5 - {value.code}")
            return Text(start, length, value.known)
        if type.kind not in (Kind.DATE, Kind.TIMESTAMP):
            raise NotCompilable(f"{expr}, a text")
        is_date = type.kind is Kind.DATE
        day = value.code if is_date else f"{value.code} // {DAY}"
        parts = ", ".join(f"part_of_date({day}, {part})" for part in range(3))
        puts = [f"put_date({{}}, {parts})".format]
        if not is_date:
            puts.append(f"put_time({{}}, {value.code} % {DAY})".format)
        return self._compose(puts, value.known, expr)

    def _compose(self, puts: Sequence[Callable[[str], str]], known: str | None, expr: Expr) -> Text:
        """Print a text that is composed, behind the others of the row.

        Args:
            puts: Print what puts a part of it, each given the room and where in it.
        """
        if not self._composed:
            raise NotCompilable(f"{expr}, a text that is composed")
        begin, end = self._end, self._names("composed_end")
        self._lines.note(str(expr))
        for number, put in enumerate(puts):
            self._lines(f"{end} = {put(f'{self._composed}, {end if number else begin}')}")
        self._lines(f"if {f'{known} and ' if known else ''}{end} > {ROOM}:")
        self._lines("    return -1")
        if known:  # NB: what is composed next begins within the room
            self._lines(f"{end} = min({end}, {ROOM})")
        self._end, length = end, self._names("composed_length")
        self._lines(f"{length} = {end} - {begin}")
        return Text(begin, length, known, self._composed)

    def _truth(self, test: str, negated: bool, known: str | None, call: Call) -> Value:
        test = f"not ({test})" if negated else test
        return self._row.let(f"1 if {f'{known} and {test}' if known else test} else 0", known, call, masked=False)

    def _like(self, text: Text, pattern: str | tuple[str, ...]) -> str:
        """Print the test that a text has the parts of a pattern, one behind the other.

        Args:
            pattern: Parts between %; or before, the part, and behind.
        """
        head, *middle = pattern.split("%") if isinstance(pattern, str) else _parts_around(*pattern)
        if not middle:
            return _is_text(text, head)
        *middle, tail = middle
        tests, behind = list[str](), str(len(head.encode()))
        if head:
            tests.append(f"begins_with({text.span}, {self._needle(head)})")
        for part in filter(None, middle):
            found = self._names("behind")
            self._lines(f"{found} = search({text.span}, {behind}, {self._needle(part)})")
            behind = found
        if any(middle):
            tests.append(f"{behind} >= 0")
        if tail:
            size = len(tail.encode())
            tests.append(f"{text.length} - {size} >= {behind}")
            tests.append(f"begins_with({text.address} + {text.length} - {size}, {size}, {self._needle(tail)})")
        return " and ".join(tests) or "True"

    def _needle(self, text: str) -> str:
        return f"{self._lines.address(text)}, {len(text.encode())}"


def _parts_around(before: str, part: str, behind: str) -> list[str]:
    """List the parts of a pattern in which a part may have signs of its own."""
    return [*([""] if before else []), part, *([""] if behind else [])]


def _are_texts(exprs: list[Expr]) -> bool:
    return bool(exprs) and all(isinstance(e, Literal) and isinstance(e.value, str) for e in exprs)


def _are_counts(exprs: list[Expr]) -> bool:
    return all(isinstance(e, Literal) and isinstance(e.value, int) for e in exprs)


def _count(expr: Expr) -> int:
    assert isinstance(expr, Literal)
    return int(expr.value)


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
