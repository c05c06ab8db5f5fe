"""Pieces of files that grow: the rows from one number to another, as a file of their own."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from squallpy.catalog.relation import Field, Relation
from squallpy.runtime.formats.file_rows import FileRows
from squallpy.runtime.formats.relation_files import File
from squallpy.runtime.sources.source import SourceFile, open_part


@dataclass(frozen=True)
class FilePiece:
    """The rows first..stop of a file, which is opened when they are needed."""

    relation: Relation
    file: File
    first: int
    stop: int

    @staticmethod
    def of(relation: Relation, part: SourceFile, first: int) -> "FilePiece":
        """Return the rows of an open file from the `first` on."""
        piece = FilePiece(relation, part.file, first, part.rows)
        piece.__dict__["part"] = part  # NB: what a cached property would find
        return piece

    @cached_property
    def part(self) -> SourceFile:
        return open_part(self.relation, self.file)

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
