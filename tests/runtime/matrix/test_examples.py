"""The examples of matrices end at what NumPy says of their files; explain shows every program."""

import csv
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from squallpy.maintain.matrix.compile_triggers import compile_program
from squallpy.maintain.matrix.dimensions import Size
from squallpy.maintain.matrix.matrix_expressions import Name
from squallpy.maintain.matrix.matrix_program import MatrixInput
from squallpy.maintain.matrix.parser import read_program
from squallpy.runtime.matrix.maintained_program import MaintainedProgram
from squallpy.runtime.observers.metrics import metrics_line
from squallpy.runtime.observers.report import BatchReport
from squallpy.script_session import RunOptions, ScriptSession
from squallpy.testing.example_runs import PrintedExample

FOLDER = Path(__file__).parents[3] / "examples" / "matrix"


def _final(name: str, rows: int) -> list[Any]:
    sink = PrintedExample()
    ScriptSession(FOLDER / f"{name}.sql").run(RunOptions("local", batch_rows=rows), sink, observer=sink)
    return [tuple(row.values()) for row in sink.table.to_pylist()]


def _matrix(name: str, shape: tuple[int, int]) -> np.ndarray:
    out = np.zeros(shape)
    with (FOLDER / f"{name}.csv").open() as file:
        for i, j, *value in list(csv.reader(file))[1:]:
            out[int(i), int(j)] += float(value[0]) if value else 1.0
    return out


@pytest.mark.parametrize("rows", [1, 7, 1000])
def oracle_power(rows: int) -> None:
    last = np.linalg.matrix_power(_matrix("moves", (10, 10)), 16)[7]
    found = dict(_final("p16", rows))
    assert found.keys() == set(np.flatnonzero(last))
    np.testing.assert_allclose([found[j] for j in range(10)], last, rtol=1e-9)


@pytest.mark.parametrize("rows", [1, 7, 1000])
def oracle_least_squares(rows: int) -> None:
    expected = np.linalg.lstsq(_matrix("houses", (12, 3)), _matrix("prices", (12, 1)))[0].ravel()
    assert sorted(_final("ols", rows)) == sorted(
        zip(("a house", "a square metre", "a room"), np.round(expected, 2).tolist(), strict=True)
    )


@pytest.mark.parametrize("rows", [1, 7, 1000])
def oracle_reachability(rows: int) -> None:
    step = (_matrix("flights", (10, 10)) > 0) | np.eye(10, dtype=bool)
    reached = (np.linalg.matrix_power(step.astype(int), 4) > 0).sum(axis=1) - 1
    assert dict(_final("reachability", rows)) == dict(enumerate(reached.tolist()))


@pytest.mark.parametrize("stage", ["logical", "triggers", "physical"])
@pytest.mark.parametrize("name", ["p16", "ols", "reachability"])
def test_explained(name: str, stage: str) -> None:
    text = ScriptSession(FOLDER / f"{name}.sql").explain(stage)
    said = {"logical": "Matrix program", "triggers": "-- materialisation", "physical": "pass "}[stage]
    assert said in text


def test_singular_as_written() -> None:
    """What has no inverse is told in the words of the program; what does not depend on it goes on."""
    inputs = [MatrixInput(Name("X", Size.of("m"), Size.of("n")))]
    program = read_program("B := inv(X' * X) * X'; C := X * X'", inputs)
    live = MaintainedProgram(compile_program(program, ["X"], {}).maintained, {"X": np.ones((3, 2))})
    assert live.singular and live.singular.message == "X' * X is singular and has no inverse"
    assert "B" not in live.views and (live.read("C") == 2).all()


class _Told(PrintedExample):
    """Also keeps what is told of batches."""

    def __init__(self) -> None:
        self.lines: list[dict[str, Any]] = []

    def on_query_progress(self, report: BatchReport) -> None:
        self.lines.append(metrics_line(report))


def test_metrics() -> None:
    """Rows of streams are counted once, also where only matrices read them; programs tell how they followed."""
    sink = _Told()
    ScriptSession(FOLDER / "ols.sql").run(RunOptions("local", batch_rows=8), sink, observer=sink)
    assert sum(line["tuples"] for line in sink.lines) == 36 + 12
    first, *others = (line["matrices"]["ols"] for line in sink.lines)
    assert (first["how"], first["why"]) == ("evaluated", "the first rows") and "singular" in first
    assert all(0 < told["rank"] <= 3 and told["bytes"] > 0 and told["drift"] < 1e-9 for told in others)
    assert all(bool(told["why"]) == (told["how"] == "evaluated") for told in others)
