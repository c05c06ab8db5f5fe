"""Splitting of a text into statements at the semicolons that are neither in strings, names and comments nor in $$ … $$.

list(split_statements("SELECT 1; SELECT ';' -- ;"))   →   SELECT 1 (complete), SELECT ';' (not complete)
"""

import re
from collections.abc import Iterator

from squallpy.base.records import dataclass
from squallpy.frontend.source_text import SourcePosition

_PARTS = re.compile(
    r"""
    (?P<blank>\s+|--[^\n]*|/\*.*?(?:\*/|\Z))
  | (?P<end>;)
  | (?P<text>(?<=\W[rR])(?:'[^']*'|"[^"]*")|'(?:[^'\\]|\\.|'')*'?|"(?:[^"\\]|\\.|"")*"?|`(?:[^`]|``)*`?
      |\$\$.*?(?:\$\$|\Z)|[^\s;'"`$/-]+|.)
    """,
    re.VERBOSE | re.DOTALL,
)


@dataclass(frozen=True, slots=True)
class StatementText:
    """A statement in a text, from its first word to its last; complete if a semicolon follows."""

    start: int
    end: int
    is_complete: bool


def list_statements(text: str, position: SourcePosition) -> Iterator[tuple[str, SourcePosition]]:
    """Yield the statements of a text that begins at a position, each with its own."""
    done = 0
    for part in split_statements(text):
        position, done = position.behind(text[done : part.start]), part.start
        yield text[part.start : part.end], position


def split_statements(text: str) -> Iterator[StatementText]:
    """Yield the statements of a text that are not empty."""
    start = end = -1
    for part in _PARTS.finditer(text):
        if part["end"]:
            if start >= 0:
                yield StatementText(start, end, True)
            start = -1
        elif part["text"]:
            start, end = part.start() if start < 0 else start, part.end()
    if start >= 0:
        yield StatementText(start, end, False)
