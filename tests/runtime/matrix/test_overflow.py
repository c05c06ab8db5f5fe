"""Counts beyond 64 bits: said by the name of what they are in, and nothing is changed."""

import numpy as np
import pytest

from squallpy.base.errors import SquallError
from squallpy.base.semirings import COUNTING
from squallpy.catalog.matrices import Matrix
from squallpy.maintain.matrix.compile_triggers import compile_program
from squallpy.maintain.matrix.dimensions import Size
from squallpy.maintain.matrix.matrix_expressions import Name
from squallpy.maintain.matrix.matrix_program import MatrixInput
from squallpy.maintain.matrix.parser import read_program
from squallpy.runtime.matrix.cells import Cells
from squallpy.runtime.matrix.maintained_program import MaintainedProgram
from squallpy.runtime.matrix.rows_to_cells import CellRows, sum_rows

N = 6
PROGRAMS = ["B := A * A; D := B * B", "D := A + A", "D := 3 * A", "C := A' * A; D := C * A"]


def _live(text: str, strategy: str, growing: bool = False) -> tuple[MaintainedProgram, tuple[str, ...]]:
    sources = [MatrixInput(Name(name, Size.of("n"), Size.of("n"))) for name in ("A", "Z")]
    program = read_program(f"{text}; Y := Z + Z", sources, COUNTING)
    compiled = compile_program(program, ["A", "Z"], {"n": N}, growing=("n",) if growing else ())
    random = np.random.default_rng(0)
    values = {name: random.integers(0, 5, (N, N)) for name in ("A", "Z")}
    return MaintainedProgram(compiled.maintained, values, strategy), program.outputs


def _read(live: MaintainedProgram, outputs: tuple[str, ...]) -> list[list[list[int]]]:
    return [live.read(name).tolist() for name in ("A", "Z", *outputs)]


@pytest.mark.parametrize("strategy", ["incr", "reeval"])
@pytest.mark.parametrize("text", PROGRAMS)
@pytest.mark.parametrize("ends", ["row", "dense"])
def oracle_overflow_changes_nothing(text: str, strategy: str, ends: str) -> None:
    live, outputs = _live(text, strategy)
    before, counts = _read(live, outputs), live.counts.updates
    u = np.zeros((N, 1), np.int64)
    u[2 if ends == "row" else slice(None)] = 1
    with pytest.raises(SquallError, match=r"SQ5001.* a count in (B|C|D|A \* A) is beyond BIGINT"):
        live.update("A", u, np.full((1, N), 2**62))
    assert _read(live, outputs) == before and live.counts.updates == counts
    live.update("A", u, np.ones((1, N), np.int64))
    again, _ = _live(text, strategy)
    again.update("A", u, np.ones((1, N), np.int64))
    assert _read(live, outputs) == _read(again, outputs)


@pytest.mark.parametrize("strategy", ["incr", "reeval"])
def oracle_overflow_of_the_second_takes_back_the_first(strategy: str) -> None:
    live, outputs = _live(PROGRAMS[0], strategy)
    before = _read(live, outputs)
    place = np.array([1]), np.array([2])
    with pytest.raises(SquallError, match="SQ5001"):
        live.add({"Z": Cells(*place, np.array([7])), "A": Cells(*place, np.array([2**62]))})
    assert _read(live, outputs) == before


def oracle_overflow_of_the_input_itself() -> None:
    live, outputs = _live(PROGRAMS[0], "incr")
    before = _read(live, outputs)
    with pytest.raises(SquallError, match=r"SQ5001 .*a count in A is beyond"):
        live.add({"A": Cells(np.array([0, 0]), np.array([1, 2]), np.array([2**63 - 1, 2**63 - 1]))})
    assert _read(live, outputs) == before


def oracle_counts_that_cancel_fit() -> None:
    live, _ = _live("D := A * Z", "reeval")
    big, n = np.zeros((N, N), np.int64), np.arange(N)
    big[0, 0], big[0, 1] = 2**40, -(2**40)
    live.update("A", np.eye(N, dtype=np.int64), big - live.read("A"))
    live.update("Z", np.eye(N, dtype=np.int64), np.full((N, N), 2**30) - live.read("Z"))
    assert live.read("D")[n, n].tolist() == [0] * N


def oracle_overflow_of_cells_that_are_one() -> None:
    """Cells of one place are added up before they are a change: so far as that fits, also where not all do."""
    live, outputs = _live("D := A - Z", "incr")
    before, place = _read(live, outputs), (np.array([1, 1, 1]), np.array([2, 2, 2]))
    with pytest.raises(SquallError, match=r"SQ5001 .*a count in A is beyond"):
        live.add({"A": Cells(*place, np.array([2**62, 2**62, 2**62]))})
    assert _read(live, outputs) == before
    live.add({"A": Cells(*place, np.array([2**62, 2**62, -(2**62)]))})
    assert live.read("A")[1, 2] == before[0][1][2] + 2**62


def oracle_overflow_of_rows_of_a_stream() -> None:
    matrix = Matrix("A", "n", "n", "s", True, ("i", "j", "value"))
    places, numbers = np.zeros(2, np.int64), np.arange(2)
    for values, mult in (([2**62, 5], [2, 1]), ([2**62, 2**62], [1, 1])):
        rows = CellRows(matrix, places, places, np.array(values), np.array(mult), numbers)
        with pytest.raises(SquallError, match=r"SQ5001 .*a count in A is beyond BIGINT"):
            sum_rows(rows, COUNTING)
    rows = CellRows(matrix, places, places, np.array([-(2**62), 0]), np.array([2, -1]), numbers)
    assert sum_rows(rows, COUNTING).values.tolist() == [-(2**63)]


def oracle_overflow_of_replaced_cells() -> None:
    live, outputs = _live(PROGRAMS[0], "incr")
    before, place = _read(live, outputs), (np.array([1]), np.array([1]))
    with pytest.raises(SquallError, match="SQ5001"):
        live.replace({"Z": Cells(*place, np.array([3])), "A": Cells(*place, np.array([2**62]))})
    assert _read(live, outputs) == before
