"""The rows of files in a random order: each prefix of them is a sample without replacement.

OPTIONS (path 'lineitem.parquet', order 'random', seed '7')

The order depends on the seed and the number of rows alone, so that a run that goes on reads what is left.
"""

from collections.abc import Sequence
from functools import cached_property
from itertools import accumulate
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from squallpy.catalog.relation import Field
from squallpy.runtime.formats.checksum import add_checksums
from squallpy.runtime.formats.counted_table import concat_tables, take_rows
from squallpy.runtime.formats.file_rows import FileRows
from squallpy.runtime.formats.relation_files import File
from squallpy.runtime.formats.type_conversion import Problem

if TYPE_CHECKING:
    from squallpy.runtime.sources.source import SourceFile


class ShuffledRows:
    """The rows of some files in a random order, as if they were one file.

    Each process that reads any of them reads the columns of all of them once, and keeps these.
    """

    seams: tuple[int, ...] = ()

    def __init__(self, parts: Sequence["SourceFile"], seed: int) -> None:
        self._parts, self._seed = tuple(parts), seed
        self._kept: dict[tuple[tuple[Field, ...], bool], FileRows] = {}

    def __reduce__(self) -> tuple[type["ShuffledRows"], tuple[object, ...]]:
        return ShuffledRows, (self._parts, self._seed)

    @cached_property
    def _starts(self) -> tuple[int, ...]:
        return (0, *accumulate(part.rows for part in self._parts))

    @cached_property
    def _order(self) -> npt.NDArray[np.int64]:
        return shuffle(self.rows, self._seed)

    @property
    def rows(self) -> int:
        return self._starts[-1]

    @property
    def file(self) -> File:
        """One file that stands for all: it is as large as they are, and as new as the newest."""
        files = [part.file for part in self._parts]
        name = ", ".join(file.display_name for file in files)
        return File(name, sum(file.size for file in files), max(file.changed for file in files), name)

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(name for part in self._parts for name in part.columns))

    def check(self, fields: tuple[Field, ...], op: str | None) -> None:
        for part in self._parts:
            part.check(fields, op)

    def check_read(self, fields: Sequence[Field]) -> None:
        for part in self._parts:
            part.check_read(fields)

    def location(self, row: int) -> str:
        part, there = self._find(row)
        return part.location(there)

    def hint(self, row: int) -> str:
        part, there = self._find(row)
        return part.hint(there)

    def _find(self, row: int) -> tuple["SourceFile", int]:
        """Find the file of a row, and its number there."""
        there = int(self._order[row])
        number = int(np.searchsorted(self._starts, there, "right")) - 1
        return self._parts[number], there - self._starts[number]

    def read(
        self, start: int, stop: int, fields: tuple[Field, ...], op: str | None, with_checksum: bool = False
    ) -> FileRows:
        """Read some rows; the checksum is that of all files, and is told with the first row."""
        if (fields, with_checksum) not in self._kept:
            self._kept[fields, with_checksum] = self._read_all(fields, op, with_checksum)
        whole = self._kept[fields, with_checksum]
        chosen = self._order[start:stop]
        wrong = {at: whole.wrong[row] for at, row in enumerate(chosen.tolist()) if row in whole.wrong}
        return FileRows(take_rows(whole.table, chosen), wrong, {} if start else whole.checksums)

    def _read_all(self, fields: tuple[Field, ...], op: str | None, with_checksum: bool) -> FileRows:
        tables, wrong, sums = [], dict[int, Problem](), dict[str, int]()
        for part, start in zip(self._parts, self._starts, strict=False):
            found = part.read(0, part.rows, fields, op, with_checksum)
            tables.append(found.table)
            wrong |= {start + row: problem for row, problem in found.wrong.items()}
            sums |= {name: add_checksums(sums.get(name, 0), sum) for name, sum in found.checksums.items()}
        return FileRows(concat_tables(tables), wrong, sums)

    def checksum(self, rows: int, names: Sequence[str]) -> int:
        """Compute the checksum of all files, as any row may be among the first ones; 0 if there are no first ones."""
        sum = 0
        for part in self._parts if rows else ():
            sum = add_checksums(sum, part.checksum(part.rows, names))
        return sum

    def grown(self, file: File) -> None:
        """Return nothing: with more rows the order would be another one."""


def shuffle(count: int, seed: int) -> npt.NDArray[np.int64]:
    """Put the numbers 0..count−1 in a random order: that of their hashes, by splitmix64 (Steele et al., 2014).

    NB: not an order by numpy's generators, which may change from version to version
    """
    with np.errstate(over="ignore"):
        first = np.uint64(seed) * np.uint64(0xD1342543DE82EF95) + np.uint64(1)
        mixed = (np.arange(count, dtype=np.uint64) + first) * np.uint64(0x9E3779B97F4A7C15)
        for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
            mixed = (mixed ^ (mixed >> np.uint64(shift))) * np.uint64(factor)
        mixed ^= mixed >> np.uint64(31)
    return np.argsort(mixed, kind="stable")
