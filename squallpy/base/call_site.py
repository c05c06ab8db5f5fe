"""Places in the Python code of users, for mistakes in the texts that they hand over.

joined = EquiJoin(customer, "c_custky", orders, "o_custkey")
                             ^^^^^^^^
"""

import linecache
import re
import sys
from itertools import islice
from pathlib import Path

from squallpy.base.errors import Span
from squallpy.base.records import dataclass

_PACKAGE = __name__.partition(".")[0]


@dataclass(frozen=True, slots=True)
class CallSite:
    """The expression by which a user's code entered this package: its file, lines and, where known, columns.

    Args:
        columns: Where it begins on its first line and ends on its last, in characters from 0.
    """

    file: str
    first: int
    last: int
    columns: tuple[int, int] | None = None

    @property
    def folder(self) -> Path:
        """The folder of the file; the working directory for code that is in none."""
        return Path(self.file).absolute().parent if Path(self.file).is_file() else Path.cwd()

    def span(self, text: str = "", column: int = 1, length: int = 0, last: bool = False) -> Span:
        """Find a place of a text that the call is written with; the whole call where it is not written like this.

        Args:
            text: A line of the text.
            column: The place in that line, from 1.
            length: Its characters; 0: the whole text.
            last: The last such text of the call is meant, not the first.
        """
        lines = self._lines
        # NB: the text of an argument begins and ends with a quote, or with a line of its own
        written = re.compile(rf"""(?:(?<=["'])|^){re.escape(text)}(?=["']|$)""")
        places = [(i, found.start()) for i, line in enumerate(lines) for found in written.finditer(line)]
        if places and text.strip():
            at, start = places[-1 if last else 0]
            return Span(self.file, self.first + at, start + column, length or len(text), lines[at])
        if self.columns and self.first == self.last:
            begin, end = self.columns
            return Span(self.file, self.first, begin + 1, end - begin, lines[0])
        start = len(lines[0]) - len(lines[0].lstrip())
        return Span(self.file, self.first, start + 1, max(1, len(lines[0]) - start), lines[0])

    def word(self, text: str) -> Span:
        """Find a name in the expression; the whole call where it is not written there."""
        found = re.compile(rf"(?<!\w){re.escape(text)}(?!\w)") if text.strip() else None
        for number, line in enumerate(self._lines, self.first):
            begin = self.columns[0] if self.columns and number == self.first else 0
            end = self.columns[1] if self.columns and number == self.last else len(line)
            if found and (place := found.search(line, begin, end)):
                return Span(self.file, number, place.start() + 1, len(text), line)
        return self.span()

    @property
    def _lines(self) -> list[str]:
        linecache.checkcache(self.file)
        return [linecache.getline(self.file, number).rstrip("\n") for number in range(self.first, self.last + 1)]


def call_site() -> CallSite:
    """Find the innermost expression in code outside this package."""
    frame = sys._getframe(1)
    while frame.f_globals.get("__name__", "").partition(".")[0] == _PACKAGE and frame.f_back:
        frame = frame.f_back
    first, last, begin, end = next(islice(frame.f_code.co_positions(), frame.f_lasti // 2, None))
    line = first or frame.f_lineno
    columns = None if begin is None or end is None else (begin, end)
    return CallSite(frame.f_code.co_filename, line, last or line, columns)
