"""A relation's rows: the parts (files) of a source as one sequence, read by row number."""

from bisect import bisect_right
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from typing import Protocol

import numpy as np
import pyarrow as pa

from squallpy.base.errors import SquallError
from squallpy.catalog.relation import Field, Relation
from squallpy.runtime.sources.conform import Problem
from squallpy.runtime.sources.dialect import Dialect
from squallpy.runtime.sources.files import find_files
from squallpy.runtime.sources.skipped import EXAMPLES, Skipped, mark_skipped

MULT = "__mult"  # the multiplicity of a row of a change stream: +1 or −1


class Part(Protocol):
    """One file; see `CsvPart` and `ParquetPart`."""

    @property
    def rows(self) -> int: ...

    def fields(self) -> list[Field]: ...

    def place(self, row: int) -> str: ...

    def read(
        self, start: int, stop: int, fields: tuple[Field, ...], op: str | None
    ) -> tuple[pa.Table, dict[int, Problem]]: ...


@dataclass(frozen=True)
class Source:
    """Picklable: a worker opens the files anew."""

    relation: Relation
    parts: tuple[Part, ...]
    ends: tuple[int, ...]

    @property
    def rows(self) -> int:
        return self.ends[-1] if self.ends else 0

    def read(self, start: int, stop: int, columns: tuple[str, ...]) -> pa.Table:
        """Rows start … stop: `columns` in the relation's types, then, for a change stream, `__mult`.

        Raises SQ4003 (fields), SQ4004 (a value), SQ4005 (the operation) or SQ4006 (a NULL) at the first row at fault;
        under OPTIONS (on_error 'skip') such rows are left out and counted (`skipped`).
        """
        assert 0 <= start <= stop <= self.rows
        fields = tuple(f for f in self.relation.fields if f.name in columns)
        tables, left_out = [], Skipped()
        at = bisect_right(self.ends, start) if start < self.rows else len(self.parts) - 1
        while not tables or (at < len(self.parts) and start < stop):
            first = self.ends[at] - self.parts[at].rows
            end = min(stop, self.ends[at])
            table, wrong = self.parts[at].read(start - first, end - first, fields, self.relation.op)
            if wrong:
                left_out += self._left_out(self.parts[at], start - first, wrong)
                table = table.take(pa.array(np.setdiff1d(np.arange(len(table)), list(wrong))))
            tables.append(table)
            start, at = end, at + 1
        whole = pa.concat_tables(tables) if len(tables) > 1 else tables[0]
        if self.relation.op:
            whole = whole.rename_columns([*(f.name for f in fields), MULT])
        return mark_skipped(whole, left_out)

    def _left_out(self, part: Part, start: int, wrong: dict[int, Problem]) -> Skipped:
        first = sorted(wrong)[:EXAMPLES]
        if self.relation.options.get("on_error", "fail") != "skip":
            problem = wrong[first[0]]
            raise SquallError(
                problem.code, f"{part.place(start + first[0])}: {problem.text}", hint="OPTIONS (on_error 'skip') leaves such rows out"
            )
        return Skipped(len(wrong), tuple(f"{part.place(start + row)}: {wrong[row].text}" for row in first))


def open_source(relation: Relation, base: Path) -> Source:
    """The source of a relation; relative paths start at `base`. SQ4001 and SQ4002 for files that are not as declared."""
    parts = _parts(relation, base, [f.name for f in relation.fields])
    for part in parts:
        part.check(relation.fields, relation.op)  # type: ignore[attr-defined]
    return Source(relation, parts, tuple(accumulate(part.rows for part in parts)))


def infer_fields(relation: Relation, base: Path) -> tuple[Field, ...]:
    """The columns of a relation declared without any, from its first file; the operation column left out."""
    fields = _parts(relation, base, None)[0].fields()
    if not fields:
        raise SquallError("SQ4002", f'"{relation.options.get("path")}" has no columns', hint="declare them")
    return tuple(f for f in fields if f.name.lower() != (relation.op or "").lower())


def _parts(relation: Relation, base: Path, names: list[str] | None) -> tuple[Part, ...]:
    if "path" not in relation.options:
        raise SquallError("SQ4001", f'"{relation.name}" names no file', relation.span, "OPTIONS (path '...')")
    try:
        _, files = find_files(relation.options["path"], base)
    except SquallError as error:
        raise error.at(relation.span) from None
    if relation.format == "parquet":
        from squallpy.runtime.sources.parquet import ParquetPart

        return tuple(ParquetPart.open(file) for file in files)
    from squallpy.runtime.sources.csv import CsvPart

    given = names and _in_file(relation, names)
    return tuple(CsvPart.open(file, Dialect.of(relation.options), given) for file in files)


def _in_file(relation: Relation, names: list[str]) -> list[str]:
    """The columns of a text without a header: as declared, the operation first unless it is declared too."""
    return names if relation.op is None or relation.op in names else [relation.op, *names]
