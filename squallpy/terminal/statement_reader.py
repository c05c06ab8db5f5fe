"""Splitting of what is typed, piped or pasted into statements and dot commands, as they become complete.

read_entries(["SELECT 1;\\n", ".mode csv\\n", "SELECT 2"])   →   SELECT 1, .mode csv, SELECT 2
"""

from collections.abc import Iterable, Iterator

from squallpy.base.records import dataclass
from squallpy.frontend.source_text import SourcePosition
from squallpy.frontend.statement_texts import split_statements

_LEADS = (".", "\\")
"""The first characters of commands, as DuckDB's and as psql's; no statement begins with them."""


@dataclass(frozen=True, slots=True)
class Entry:
    """A statement or a dot command, and its place in what it was read from.

    Args:
        line: The number of lines before it.
        column: The number of characters before it in its line.
    """

    text: str
    line: int = 0
    column: int = 0
    is_command: bool = False

    @property
    def position(self) -> SourcePosition:
        """The position where it begins in what it was read from."""
        return SourcePosition(self.line, self.column)


def read_entries(lines: Iterable[str]) -> Iterator[Entry]:
    """Yield each statement and command of lines as soon as it is complete; the last one needs no semicolon."""
    waiting, first = "", 0
    for number, line in enumerate(lines):
        if is_command(line) and not _has_words(waiting):
            yield Entry(line.strip(), number, len(line) - len(line.lstrip()), True)
            waiting = ""
            continue
        if not waiting:
            first = number
        waiting += line
        if ";" in line:
            done = 0
            for part in split_statements(waiting):
                if part.is_complete:
                    yield _placed(waiting, part.start, part.end, first)
                    done = waiting.index(";", part.end) + 1
            first, waiting = first + waiting.count("\n", 0, done), _blank(waiting, done)
            if "/*" not in waiting and not _has_words(waiting):  # NB: or long comments would be split again and again
                waiting = ""
    for part in split_statements(waiting):
        yield _placed(waiting, part.start, part.end, first)


def is_command(line: str) -> bool:
    """True if a line at which no statement has begun is a dot command."""
    return line.lstrip().startswith(_LEADS)


def is_complete(text: str) -> bool:
    """True if nothing is missing in a text that is typed: each statement has its semicolon, or it is a command."""
    head, _, last = text.rstrip().rpartition("\n")
    return (is_command(last) and not _has_words(head)) or not _has_words(text)


def _has_words(text: str) -> bool:
    """True if a statement has begun in a text and not ended."""
    return bool(text.strip()) and any(not part.is_complete for part in split_statements(text))


def _placed(text: str, start: int, end: int, first: int) -> Entry:
    line = text.count("\n", 0, start)
    return Entry(text[start:end], first + line, start - (text.rfind("\n", 0, start) + 1))


def _blank(text: str, done: int) -> str:
    """Return what follows a place of a text, behind as many spaces as its line has before it."""
    rest = text[done:]
    return " " * (done - (text.rfind("\n", 0, done) + 1)) + rest if rest.strip() else ""
