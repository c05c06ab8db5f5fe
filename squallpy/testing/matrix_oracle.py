"""The matrices of a script, evaluated from scratch on all rows so far: what DuckDB is given for `FROM p16.D`."""

import math
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from squallpy.base.semirings import ARITHMETIC, Semiring
from squallpy.catalog.matrices import Matrix, cells
from squallpy.catalog.relation import TRUNCATED, Relation
from squallpy.logical.bind import Script
from squallpy.maintain.matrix.matrix_program import MatrixProgram
from squallpy.maintain.matrix.script_programs import prune_program
from squallpy.testing.matrix_checks import Array, naive

MULT = "__mult"
SINGULAR = 1e10  # an inverse with entries as large is that of no matrix in a test
Row = tuple[int, int, Any]


class CellsFromScratch:
    """Everything that can be read of a script's matrices."""

    def __init__(self, script: Script, programs: Mapping[str, MatrixProgram]) -> None:
        self._matrices, self._programs = script.matrices, programs
        self._semirings = {name: program.semiring for name, program in script.programs.items()}
        self._rows: dict[str, Counter[Row]] = {name: Counter() for name in script.matrices}
        self._keys = {name: relation.primary_key for name, relation in script.relations.items() if relation.is_keyed}
        self._last: dict[str, dict[tuple[Any, ...], Mapping[str, Any]]] = {name: {} for name in self._keys}
        self._extents: dict[str, int] = {
            size: 0 for m in script.matrices.values() for size in (m.rows, m.cols) if isinstance(size, str)
        }

    def relations(self) -> Iterator[Relation]:
        for name, program in self._programs.items():
            for output in (*program.outputs, *(i.name.name for i in program.inputs)):
                yield cells(f"{name}.{output}", self._semirings[name])
        yield from (cells(name, "arithmetic") for name in self._matrices)

    def push(self, relation: str, rows: pa.Table) -> None:
        changes = list(self._changes(relation, rows))
        for name, matrix in self._matrices.items():
            if matrix.relation != relation:
                continue
            for (i, j, value), times in ((cell, times) for row, times in changes for cell in _cells(matrix, row)):
                self._rows[name][i, j, value] += times
                for size, index in ((matrix.rows, i), (matrix.cols, j)):
                    if isinstance(size, str):
                        self._extents[size] = max(self._extents[size], index + 1)

    def _changes(self, relation: str, rows: pa.Table) -> Iterator[tuple[Mapping[str, Any], int]]:
        """Yield rows with how often they come, and those that upserts replace."""
        if relation not in self._keys:
            yield from ((row, row.get(MULT, 1)) for row in rows.to_pylist())
            return
        last = dict[tuple[Any, ...], Mapping[str, Any]]()
        for row in rows.to_pylist():
            if row.get(MULT) == TRUNCATED:
                last = {key: {MULT: -1} for key in self._last[relation]}
            else:
                last[tuple(row[name] for name in self._keys[relation])] = row
        for key, row in last.items():
            if old := self._last[relation].pop(key, None):
                yield old, -1
            if row.get(MULT, 1) > 0:
                self._last[relation][key] = row
                yield row, 1

    def tables(self) -> Iterator[tuple[str, pa.Table]]:
        """Yield the cells of each relation that are not zero."""
        for name, program in self._programs.items():
            inputs = {i.name.name: self._values(self._matrices[i.name.name], program.ring) for i in program.inputs}
            for output, values in inputs.items():
                yield f"{name}.{output}", _table(values, program.ring)
            for output in program.outputs:
                yield (
                    f"{name}.{output}",
                    _table(self._evaluated(prune_program(program, [output]), inputs), program.ring),
                )
        for name, matrix in self._matrices.items():
            yield name, _table(self._values(matrix, ARITHMETIC), ARITHMETIC)

    def _evaluated(self, program: MatrixProgram, inputs: Mapping[str, Array]) -> Array:
        try:
            (values,) = naive(program, inputs, self._extents).values()
        except np.linalg.LinAlgError:
            return np.empty((0, 0))
        singular = program.ring is ARITHMETIC and np.abs(values).max(initial=0) > SINGULAR
        return np.empty((0, 0)) if singular else values

    def _values(self, matrix: Matrix, ring: Semiring) -> Array:
        """Build a matrix from the rows."""
        shape = [size if isinstance(size, int) else self._extents[size] for size in (matrix.rows, matrix.cols)]
        values, terms = np.full(shape, ring.zero, ring.dtype), dict[tuple[int, int], list[Any]]()
        for (i, j, value), times in self._rows[matrix.name].items():
            if ring.negates:
                terms.setdefault((i, j), []).append(float(value) * times)
            elif times > 0:
                terms.setdefault((i, j), []).append(bool(value) if ring.dtype == "bool" else float(value))
        for place, some in terms.items():
            values[place] = math.fsum(some) if ring.negates else ring.add.reduce(some)
        if matrix.shares:
            for line in values:
                line[:] = line / line.sum() if line.sum() > 0 else 0.0
        return values


def _cells(matrix: Matrix, row: Mapping[str, Any]) -> Iterator[Row]:
    """Yield the places and entries that a row adds."""
    if matrix.outer:
        if None in (row[name] for name in matrix.columns):
            return
        left, right = ([float(row[name]) if name else 1.0 for name in names] for names in matrix.outer)
        yield from ((i, j, x * y) for i, x in enumerate(left) for j, y in enumerate(right))
        return
    i, j, *value = (row[column] for column in matrix.columns)
    yield i, j, value[0] if value else 1


def _table(values: Array, ring: Semiring) -> pa.Table:
    i, j = np.nonzero(values != ring.zero)
    return pa.table({"i": i.astype(np.int64), "j": j.astype(np.int64), "value": values[i, j]})
