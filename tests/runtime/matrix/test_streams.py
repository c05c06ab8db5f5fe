"""Random programs under random streams of ± rows: after every batch a query has what NumPy makes of all rows so far."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from squallpy.base.errors import SquallError
from squallpy.base.semirings import ARITHMETIC, BOOLEAN, COUNTING, MAX_PLUS, MIN_PLUS, Semiring
from squallpy.maintain.matrix.compile_triggers import STRATEGIES
from squallpy.maintain.matrix.matrix_program import MatrixProgram
from squallpy.maintain.matrix.parser import read_program
from squallpy.testing.engines import LocalEngine, MemoryEngine, PartitionedEngine, VolatileEngine
from squallpy.testing.matrix_checks import INPUTS, Array, naive, programs

SIZES = {"n": 5, "m": 3}
ENGINES: dict[str, Callable[..., MemoryEngine]] = {
    "durable": partial(LocalEngine, matrix_deletes="reevaluate"),
    "volatile": partial(VolatileEngine, matrix_deletes="reevaluate"),
    "blocks": partial(PartitionedEngine, 3, matrix_place="blocks"),
}
TYPES = {ARITHMETIC: "DOUBLE", COUNTING: "BIGINT", BOOLEAN: "INT", MIN_PLUS: "DOUBLE", MAX_PLUS: "DOUBLE"}


def _script(program: MatrixProgram, output: str, where: str) -> str:
    lines = []
    for i in INPUTS:
        name, rows, cols = i.name.name, i.name.rows, i.name.cols
        stream = f"s{name.lower()}"
        lines.append(f"CREATE STREAM {stream} (r INT, c INT, v {TYPES[program.ring]})")
        lines[-1] += f" USING csv OPTIONS (path '{stream}', op '__op');"
        lines.append(f"CREATE MATRIX {name} ({rows}, {cols}) FROM STREAM {stream} (r, c, v);")
    lines.append(f"CREATE MATRIX PROGRAM p OVER {program.ring} AS $$ {_text(program)} $$;")
    return "\n".join([*lines, f"SELECT i, j, value FROM p.{output} {where};"])


def _is_read_as_written(program: MatrixProgram) -> bool:
    """Not those with constants that have no text."""
    try:
        return read_program(_text(program), INPUTS, program.ring).statements == program.statements
    except SquallError:
        return False


def _text(program: MatrixProgram) -> str:
    return ";\n".join(map(str, program.statements))


class _Rows:
    """The rows of the streams so far, and the matrices that they make."""

    def __init__(self, ring: Semiring, seed: int) -> None:
        self._ring, self._random = ring, np.random.default_rng(seed)
        self._rows: dict[str, list[tuple[int, int, Any]]] = {i.name.name: [] for i in INPUTS}
        self.extents = dict.fromkeys(SIZES, 0)

    def batch(self, some_go: bool) -> dict[str, pa.Table]:
        """Some rows come to each stream, some go."""
        out = {}
        for i in INPUTS:
            name, sizes = i.name.name, [str(i.name.rows), str(i.name.cols)]
            gone = [row for row in self._rows[name] if some_go and self._random.random() < 0.2]
            come: list[tuple[int, int, Any]] = []
            for _ in range(int(self._random.integers(0, 5))):
                at_row, at_col = (int(self._random.integers(0, SIZES[size])) for size in sizes)
                value = int(self._random.integers(-2, 3))
                come.append((at_row, at_col, value / 4 if self._ring is ARITHMETIC else value))
            for row in gone:
                self._rows[name].remove(row)
            self._rows[name] += come
            for entry in come:
                for size, index in zip(sizes, entry, strict=False):
                    self.extents[size] = max(self.extents[size], index + 1)
            signed = [(*row, 1) for row in come] + [(*row, -1) for row in gone]
            if signed:
                columns = list(zip(*signed, strict=True))
                out[f"s{name.lower()}"] = pa.table(dict(zip(("r", "c", "v", "__mult"), columns, strict=True)))
        return out

    def matrices(self) -> dict[str, Array]:
        made = {}
        for i in INPUTS:
            shape = [self.extents[str(size)] for size in (i.name.rows, i.name.cols)]
            values = made[i.name.name] = np.full(shape, self._ring.zero, self._ring.dtype)
            for r, c, v in self._rows[i.name.name]:
                values[r, c] = self._ring.add(values[r, c], v != 0 if self._ring is BOOLEAN else v)
        return made


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("ring", TYPES, ids=str)
@settings(max_examples=5, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def property_streams_equal_naive(ring: Semiring, engine: str, data: Any) -> None:
    program = data.draw(programs(ring).filter(_is_read_as_written))
    output = data.draw(st.sampled_from(program.outputs))
    low, high = (0, 99) if data.draw(st.booleans()) else (1, 2)
    rows = _Rows(ring, data.draw(st.integers(0, 10**6)))
    running = ENGINES[engine](matrix_strategy=data.draw(st.sampled_from(STRATEGIES)))
    with TemporaryDirectory() as folder:
        where = "" if (low, high) == (0, 99) else f"WHERE i BETWEEN {low} AND {high}"
        running.start(_script(program, output, where), Path(folder), {})
        for number in range(4):
            running.push(rows.batch(some_go=ring.negates or engine != "blocks"))
            expected = naive(program, rows.matrices(), rows.extents)[output]
            found = np.full(expected.shape, ring.zero, ring.dtype)
            for cell in running.result().to_pylist():
                found[cell["i"], cell["j"]] = cell["value"]
            kept = np.arange(len(expected))
            expected[(kept < low) | (kept > high)] = ring.zero
            np.testing.assert_allclose(found, expected, rtol=1e-8, atol=1e-9)
            if number == 1:
                running.restart()
