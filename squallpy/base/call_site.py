"""Places in the Python code of users, for mistakes in the texts that they hand over.

joined = EquiJoin(customer, "c_custky", orders, "o_custkey")
                             ^^^^^^^^
"""

import linecache
import re
import sys
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from squallpy.base.errors import Span

_PACKAGE = __name__.partition(".")[0]


@dataclass(frozen=True, slots=True)
class CallSite:
    """The call by which a user's code entered this package: its file, and the lines that it is written on."""

    file: str
    first: int
    last: int

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
        linecache.checkcache(self.file)
        lines = [linecache.getline(self.file, number).rstrip("\n") for number in range(self.first, self.last + 1)]
        # NB: the text of an argument begins and ends with a quote, or with a line of its own
        written = re.compile(rf"""(?:(?<=["'])|^){re.escape(text)}(?=["']|$)""")
        places = [(i, found.start()) for i, line in enumerate(lines) for found in written.finditer(line)]
        if places and text.strip():
            at, start = places[-1 if last else 0]
            return Span(self.file, self.first + at, start + column, length or len(text), lines[at])
        start = len(lines[0]) - len(lines[0].lstrip())
        return Span(self.file, self.first, start + 1, max(1, len(lines[0]) - start), lines[0])


def call_site() -> CallSite:
    """Find the innermost call in code outside this package."""
    frame = sys._getframe(1)
    while frame.f_globals.get("__name__", "").partition(".")[0] == _PACKAGE and frame.f_back:
        frame = frame.f_back
    first, last, *_ = next(islice(frame.f_code.co_positions(), frame.f_lasti // 2, None))
    line = first or frame.f_lineno
    return CallSite(frame.f_code.co_filename, line, last or line)
