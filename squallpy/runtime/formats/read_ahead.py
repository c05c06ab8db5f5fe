"""Rows of text files, parsed some thousands at a time and given out in small batches.

A parse of 100 rows costs as much as one of some thousands, and rows are found by scanning from an indexed one.
"""

from collections import OrderedDict
from dataclasses import field
from typing import Any

from squallpy.base.records import dataclass
from squallpy.runtime.formats.file_rows import FileRows

ROWS = 8192  # that are parsed at once; batches of half as many are parsed by themselves
BYTES = 1 << 22  # of text that is parsed at once, by the mean size of a row
_FILES = 32  # whose rows a process keeps


@dataclass(slots=True)
class ParsedRows:
    """Parsed rows of a file.

    Args:
        rows: Without checksums; None: they cannot be given out in parts.
        text: What they were parsed from, which begins at an `offset` in the file.
        place: A row, and where it begins in the text.
    """

    first: int
    stop: int
    rows: FileRows | None
    text: bytes
    offset: int
    place: tuple[int, int]

    def part(self, start: int, stop: int) -> FileRows | None:
        """Return some of the rows."""
        if self.rows is None:
            return None
        begin, end = start - self.first, stop - self.first
        wrong = {row - begin: problem for row, problem in self.rows.wrong.items() if begin <= row < end}
        return FileRows(self.rows.table.slice(begin, end - begin), wrong)


@dataclass(slots=True)
class ReadAhead:
    """The last parsed rows of each file, as they are read in order."""

    files: OrderedDict[Any, ParsedRows] = field(default_factory=OrderedDict)

    def find(self, key: Any, start: int, stop: int) -> ParsedRows | None:
        """Return parsed rows of a file that have some rows."""
        found = self.files.get(key)
        return found if found and found.first <= start and stop <= found.stop else None

    def keep(self, key: Any, parsed: ParsedRows) -> None:
        """Keep parsed rows in place of others of the file."""
        self.files.pop(key, None)
        self.files[key] = parsed
        while len(self.files) > _FILES:
            self.files.popitem(last=False)


PARSED = ReadAhead()  # NB: of this process; entries never change, as the file's size and time are in the key
