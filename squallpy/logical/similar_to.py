"""Patterns of SIMILAR TO, the SQL standard's regular expressions, → regular expressions of RE2.

    'a(b|c)*%'   →   a(?:b|c)*.*        '_[^0-9]{2,3}.'   →   .[^0-9]{2,3}\\.

Special are % _ | * + ? {m,n} ( ) [ ]; a character after the escape character is itself.
"""

import re

from squallpy.base.errors import SquallError
from squallpy.base.records import dataclass

MOST_TIMES = 1000  # of a repetition, in RE2
MOST_NESTED = 100
SPECIAL = "%_|*+?{}()[]"
TIMES = re.compile(r"\{(\d+)(?:,(\d*))?\}")
CLASSES = ("alpha", "upper", "lower", "digit", "alnum", "space")
WHITESPACE = "whitespace"


def expression_of(pattern: str, escape: str | None) -> str:
    """Translate a pattern into a regular expression that matches whole texts; SQ5002 for one that is not valid."""
    reader = _Reader(pattern, escape)
    body = reader.alternatives()
    if reader.at < len(pattern):
        raise reader.error('a ")" that nothing opens')
    return rf"(?s)\A(?:{body})\z"


@dataclass(slots=True)
class _Reader:
    """A pattern while it is read, from `at` on."""

    pattern: str
    escape: str | None
    at: int = 0
    depth: int = 0

    def error(self, why: str) -> SquallError:
        return SquallError("SQ5002", f"'{self.pattern}' is not a valid pattern of SIMILAR TO: {why}")

    def take_character(self) -> tuple[str, bool]:
        """Take a character, and tell whether it is special; '' at the end."""
        found = self.pattern[self.at : self.at + 1]
        self.at += 1
        if self.escape and found == self.escape:
            found = self.pattern[self.at : self.at + 1]
            self.at += 1
            if not found:
                raise self.error("it ends with its escape character")
            return found, False
        return found, found in SPECIAL and bool(found)

    def alternatives(self) -> str:
        """Read a|b|c up to its end or a closing parenthesis."""
        options, parts, repeated = list[str](), list[str](), False
        while self.at < len(self.pattern):
            start = self.at
            found, special = self.take_character()
            if special and found == ")":
                self.at = start
                break
            if special and found == "|":
                options.append("".join(parts))
                parts, repeated = [], False
            elif special and found in "*+?{":
                if not parts:
                    raise self.error(f'a "{found}" with nothing before it')
                # NB: a** and a*? repeat (a*), which RE2 refuses or reads as a lazy match
                atom = f"(?:{parts[-1]})" if repeated else parts[-1]
                parts[-1] = atom + (self.times(start) if found == "{" else found)
                repeated = True
            else:
                parts.append(self.one(found, special))
                repeated = False
        return "|".join((*options, "".join(parts)))

    def one(self, found: str, special: bool) -> str:
        """Parse the element that a character begins: itself, any, a set or a group."""
        if not special:
            return re.escape(found)
        match found:
            case "%":
                return "(?:.*)"
            case "_":
                return "."
            case "(":
                self.depth += 1
                if self.depth > MOST_NESTED:
                    raise self.error(f"more than {MOST_NESTED} parentheses in each other")
                inside = self.alternatives()
                self.depth -= 1
                if self.take_character() != (")", True):
                    raise self.error('a "(" that is not closed')
                return f"(?:{inside})"
            case "[":
                return self.characters()
        raise self.error(f'a "{found}" that nothing opens')

    def times(self, start: int) -> str:
        """Read {m}, {m,} or {m,n}."""
        found = TIMES.match(self.pattern, start)
        if found is None:
            raise self.error('a "{" that no {m}, {m,} or {m,n} begins with')
        numbers = [int(number) for number in found.groups() if number]
        if max(numbers) > MOST_TIMES:
            raise self.error(f"more than {MOST_TIMES} times")
        if numbers != sorted(numbers):
            raise self.error("the least number of times is the larger one")
        self.at = found.end()
        return found[0]

    def characters(self) -> str:
        """Parse [a-z_], [^0-9] or [[:ALPHA:]] after its opening bracket."""
        negated = self.pattern[self.at : self.at + 1] == "^"
        self.at += negated
        parts = list[str]()
        while True:
            if self.pattern.startswith("[:", self.at):
                parts.append(self.named_class())
                continue
            start = self.at
            found, special = self.take_character()
            if not found:
                raise self.error('a "[" that is not closed')
            if special and found == "]":
                break
            is_last = self.pattern.startswith("]", self.at)
            is_range = found == "-" and self.at == start + 1 and bool(parts) and not is_last
            parts.append("-" if is_range else re.sub(r"([\\\]\[^-])", r"\\\1", found))
        if not parts:
            raise self.error("a set of no characters")
        return f"[{'^' if negated else ''}{''.join(parts)}]"

    def named_class(self) -> str:
        """Read [:DIGIT:] in a set."""
        end = self.pattern.find(":]", self.at + 2)
        name = self.pattern[self.at + 2 : end].lower() if end >= 0 else ""
        if name not in (*CLASSES, WHITESPACE):
            raise self.error(f"there are the classes {', '.join((*CLASSES, WHITESPACE)).upper()}")
        self.at = end + 2
        return f"[:{'space' if name == WHITESPACE else name}:]"
