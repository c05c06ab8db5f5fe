"""Errors for users: a code, a position in the script and a next step. An assertion, by contrast, is a bug of Squall.

SQ2003 q.sql:2:8: unknown column "pric", did you mean "price"?
"""

import difflib
from collections.abc import Iterable

from squallpy.base.records import dataclass


@dataclass(frozen=True, slots=True)
class Span:
    """A place in a script: file, 1-based line and column, length in characters, and the text of that line."""

    file: str
    line: int
    column: int
    length: int = 1
    text: str = ""

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}"


def shorten(text: str) -> str:
    """Cut a quoted text to the length of a message."""
    return text if len(text) <= 60 else text[:56] + "...'"


def counted(count: int, noun: str, plural: str) -> str:
    """Write a number and what it counts: 1 batch, 1,200 batches."""
    return f"{count:,} {noun if count == 1 else plural}"


@dataclass(frozen=True, slots=True)
class Notice:
    """A note on a script that runs: one line, as an error's."""

    message: str
    span: Span
    hint: str = ""

    def __str__(self) -> str:
        return f"note {self.span}: {self.message}" + (f", {self.hint}" if self.hint else "")


class SquallError(Exception):
    """A mistake of the user's, or data that cannot be read: one line, and a caret where there is a span.

    Codes: SQ1xxx syntax and script, SQ2xxx names and types, SQ3xxx not supported, SQ4xxx sources and data,
    SQ5xxx values at run time, SQ6xxx checkpoints and state, SQ7xxx settings and options, SQ8xxx environment.
    """

    def __init__(self, code: str, message: str, span: Span | None = None, hint: str = "") -> None:
        super().__init__(code, message, span, hint)
        self.code, self.message, self.span, self.hint = code, message, span, hint

    def at(self, span: Span | None) -> "SquallError":
        """Return the same error with a span, unless it has one already."""
        return self if self.span or span is None else SquallError(self.code, self.message, span, self.hint)

    def __str__(self) -> str:
        place = f" {self.span}:" if self.span else ""
        hint = f", {self.hint}" if self.hint else ""
        return f"{self.code}{place} {self.message}{hint}"

    def caret(self) -> str:
        """Show the line of the script with a caret under the span; empty without a span."""
        if not self.span or not self.span.text:
            return ""
        lead = "".join("\t" if c == "\t" else " " for c in self.span.text[: self.span.column - 1])
        return f"    {self.span.text}\n    {lead}{'^' * max(1, self.span.length)}"

    def _repr_html_(self) -> str:
        """Show the line and the caret in a notebook."""
        from html import escape

        text = "\n".join(filter(None, [str(self), self.caret()]))
        return f'<pre style="color:#c33;overflow-x:auto">{escape(text)}</pre>'


def nearest(name: str, known: Iterable[str]) -> str:
    """Suggest the known name nearest to `name` (`did you mean "x"?`), else list the known names, if they are few."""
    names = sorted(set(known))
    close = difflib.get_close_matches(name.lower(), [n.lower() for n in names], n=1, cutoff=0.5)
    if close:
        return f'did you mean "{next(n for n in names if n.lower() == close[0])}"?'
    return f"known: {', '.join(names)}" if 0 < len(names) <= 14 else ""
