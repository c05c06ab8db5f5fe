"""Pieces of files that grow: the rows from one number to another, as a file of their own."""

from collections.abc import Sequence
from dataclasses import asdict, fields, replace
from functools import cached_property
from typing import Any, cast

from squallpy.base.records import dataclass
from squallpy.catalog.relation import Field, Relation
from squallpy.runtime.formats.checksum import checksum
from squallpy.runtime.formats.file_rows import FileRows
from squallpy.runtime.formats.relation_files import File
from squallpy.runtime.sources.source import SourceFile, open_part

PROBE = 1 << 16  # bytes at the end of what is known of a file by which it is recognised


LoggedPiece = dict[str, Any]
"""A piece as JSON: its file, the size of that when it was seen, its first row and end, and a checksum of its end."""
_FILE = tuple(field.name for field in fields(File))


def end_checksum(size: int, file: File) -> int:
    """Compute a checksum of the last of the bytes that are known of a file, up to a size, as they are now."""
    start = max(0, size - PROBE)
    with file.open() as stream:
        return checksum(stream.read_at(size - start, start), start)


@dataclass(frozen=True)
class FilePiece:
    """The rows first..stop of a file, which is opened when they are needed.

    Args:
        end: A checksum of the last bytes, by which a file that was only touched since is known again.
        seen: The size of the file when it was seen, with a last line that has no end.
    """

    relation: Relation
    file: File
    first: int
    stop: int
    end: int
    seen: int

    @staticmethod
    def of(relation: Relation, part: SourceFile, first: int, seen: int) -> "FilePiece":
        """Return the rows of an open file from the `first` on."""
        piece = FilePiece(relation, part.file, first, part.rows, end_checksum(part.file.size, part.file), seen)
        piece.__dict__["_part"] = part  # NB: what a cached property would find
        return piece

    @staticmethod
    def restore(relation: Relation, logged: LoggedPiece) -> "FilePiece":
        """Return a piece that was logged."""
        file = File(**{name: logged[name] for name in _FILE})
        return FilePiece(relation, file, logged["first"], logged["stop"], logged["end"], logged["seen"])

    @property
    def logged(self) -> LoggedPiece:
        """The piece as it is logged."""
        return asdict(self.file) | {"first": self.first, "stop": self.stop, "seen": self.seen, "end": self.end}

    @cached_property
    def _part(self) -> SourceFile:
        now = self._touched(self.file)
        return open_part(self.relation, now or self.file)

    @property
    def part(self) -> SourceFile:
        """The open file, under the time of change that it has now if it was touched."""
        part = self._part
        if now := self._touched(part.file):
            self.__dict__["_part"] = part = replace(cast(Any, part), file=now)
        return part

    def _touched(self, known: File) -> File | None:
        """Describe a file that was only touched since it was known; None if it was not, or has another end."""
        now = known.touched()
        return now if now and end_checksum(self.file.size, now) == self.end else None

    @property
    def rows(self) -> int:
        return self.stop - self.first

    @property
    def seams(self) -> tuple[int, ...]:
        return tuple(seam - self.first for seam in self.part.seams if self.first <= seam <= self.stop)

    @property
    def columns(self) -> tuple[str, ...]:
        return self.part.columns

    def check(self, fields: tuple[Field, ...], op: str | None) -> None:
        self.part.check(fields, op)

    def check_read(self, fields: Sequence[Field]) -> None:
        self.part.check_read(fields)

    def location(self, row: int) -> str:
        return self.part.location(self.first + row)

    def hint(self, row: int) -> str:
        return self.part.hint(self.first + row)

    def read(
        self, start: int, stop: int, fields: tuple[Field, ...], op: str | None, with_checksum: bool = False
    ) -> FileRows:
        return self.part.read(self.first + start, self.first + stop, fields, op, with_checksum)

    def checksum(self, rows: int, names: Sequence[str]) -> int:
        before = self.part.checksum(self.first, names) if self.first else 0
        return (self.part.checksum(self.first + rows, names) - before) % (1 << 64)

    def grown(self, file: File) -> SourceFile | None:
        return self.part.grown(file)
