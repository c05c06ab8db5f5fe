"""The text of a script, and positions in it."""

import io
import re
from bisect import bisect_right
from dataclasses import field
from pathlib import Path
from typing import NamedTuple

from squallpy.base.errors import Span, SquallError, nearest
from squallpy.base.records import dataclass


def read_script(path: Path) -> str:
    """Read a script's text; SQ4001 if it cannot be read or is not UTF-8."""
    try:
        data = path.read_bytes()
    except OSError as error:
        scripts = [script.name for script in path.parent.glob("*.sql")] if not path.is_dir() else []
        hint = nearest(path.name, scripts)
        why = (error.strerror or str(error)).lower()
        raise SquallError("SQ4001", f"cannot read the script {path}: {why}", hint=hint) from None
    return decode_script(data, str(path))


def decode_script(data: bytes, file: str) -> str:
    r"""Decode a script, with or without a byte order mark, lines ended by "\n"; SQ4001 where it is not UTF-8.

    b"SELECT 1;\r\n"   →   "SELECT 1;\n"
    """
    with io.TextIOWrapper(io.BytesIO(data), encoding="utf-8-sig", errors="replace") as lines:
        text = lines.read()
    try:
        data.decode("utf-8-sig")
    except UnicodeDecodeError:
        at = text.index("\ufffd")
        line, column = text.count("\n", 0, at) + 1, at - text.rfind("\n", 0, at)
        span = Span(file, line, column)
        raise SquallError("SQ4001", "this is not UTF-8 text", span, "a script is a text file") from None
    return text


def read_directive(text: str, name: str) -> str:
    """Read a comment line `-- name: …` of a script; empty if there is none."""
    found = re.search(rf"^--[ \t]*{re.escape(name)}:[ \t]*(.*?)[ \t]*$", text, re.MULTILINE)
    return found[1] if found else ""


def with_backslashes(text: str) -> str:
    r"""Write standard SQL's ESCAPE '\', in which a backslash is one character, as Spark does; all offsets stay.

    LIKE '%!_%' ESCAPE '\'   →   LIKE '%!_%' ESCAPE'\\'
    """
    return re.sub(r"\b(ESCAPE[ \t]*)[ \t]'\\'(?!')", r"\1'\\\\'", text, flags=re.IGNORECASE)


class SourcePosition(NamedTuple):
    """The position in a file where a text begins.

    Args:
        line: The number of lines before it.
        column: The number of characters before it in its line.
    """

    line: int = 0
    column: int = 0

    def behind(self, text: str) -> "SourcePosition":
        """Return where goes on what follows a text that begins here."""
        lines = text.count("\n")
        return SourcePosition(self.line + lines, len(text) - (text.rfind("\n") + 1) + (0 if lines else self.column))


START = SourcePosition()
"""The beginning of a file."""


@dataclass(frozen=True, slots=True)
class ScriptText:
    """A script with its file's name; offsets in characters become spans with line, column and the line's text.

    Args:
        position: Where it begins, if it is a part of the file.
    """

    text: str
    file: str
    position: SourcePosition = START
    starts: tuple[int, ...] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        breaks = (found.end() for found in re.finditer("\n", self.text))
        object.__setattr__(self, "starts", (0, *breaks))

    def span(self, start: int, end: int | None = None) -> Span:
        """Make the span of text[start:end], cut at the end of its first line; one character if `end` is missing."""
        start = min(start, len(self.text))
        line = bisect_right(self.starts, start) - 1
        column = start - self.starts[line]
        content = self.text[self.starts[line] :].split("\n", 1)[0].rstrip("\r")
        length = min((end or start + 1) - start, len(content) - column)
        before = 0 if line else self.position.column
        position = (self.position.line + line + 1, before + column + 1)
        return Span(self.file, *position, max(1, length), " " * before + content)

    def offset(self, line: int, column: int) -> int:
        """Find the offset of a 1-based line and column."""
        return self.starts[line - 1] + column - 1


def word_at(text: str, start: int) -> str:
    """Take the word, number or single character at an offset; empty at the end of the text."""
    end = start
    while end < len(text) and (text[end].isalnum() or text[end] == "_"):
        end += 1
    return text[start : max(end, start + 1)]
