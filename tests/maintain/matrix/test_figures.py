"""The figures of the thesis: programs through all phases, as `figure_*.txt` beside this file have them."""

from pathlib import Path

import pytest

from squallpy.base.semirings import ARITHMETIC, COUNTING, Semiring
from squallpy.maintain.matrix.dimensions import Size
from squallpy.maintain.matrix.explain_text import phases_text
from squallpy.maintain.matrix.expression_cost import Guess
from squallpy.maintain.matrix.materialise import maintain
from squallpy.maintain.matrix.matrix_expressions import Name
from squallpy.maintain.matrix.matrix_program import MatrixInput
from squallpy.maintain.matrix.parser import read_program


def matrix(name: str, rows: str | int, cols: str | int) -> MatrixInput:
    return MatrixInput(Name(name, Size.of(rows), Size.of(cols)))


FIGURES = {
    "figure_5_1": ("B := A * A; C := B * B; D := C * C", [matrix("A", "n", "n")], ARITHMETIC),
    "figure_5_12": ("R := iterate[2](eye(n))(acc => G * acc + eye(n))", [matrix("G", "n", "n")], COUNTING),
    "figure_5_13": ("beta := inv(X' * X) * X' * Y", [matrix("X", "m", "n"), matrix("Y", "m", "p")], ARITHMETIC),
    "figure_5_14": ("P := iterate[4](A)(acc => acc * acc)", [matrix("A", "n", "n")], ARITHMETIC),  # NB: A¹⁶, not A⁸
}


def phases(text: str, inputs: list[MatrixInput], ring: Semiring) -> str:
    program = read_program(text, inputs, ring)
    made = maintain(program, [inputs[0].name.name], Guess({"n": 1000, "m": 2000, "p": 100}))
    return f"-- program\n{program}\n\n{phases_text(made)}"


@pytest.mark.parametrize("figure", FIGURES)
def golden_figures(figure: str) -> None:
    assert phases(*FIGURES[figure]) == (Path(__file__).parent / f"{figure}.txt").read_text()


if __name__ == "__main__":  # rewrites the files, to be reviewed as a diff
    for name, arguments in FIGURES.items():
        (Path(__file__).parent / f"{name}.txt").write_text(phases(*arguments))
