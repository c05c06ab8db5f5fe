"""In what order a trigger visits its views."""

from collections import Counter

import pytest

from squallpy.base.semirings import ARITHMETIC, BOOLEAN, Semiring
from squallpy.maintain.matrix.compile_triggers import compile_program
from squallpy.maintain.matrix.derivation import DerivedDeltas
from squallpy.maintain.matrix.dimensions import Size
from squallpy.maintain.matrix.materialise import MatrixTrigger, MatrixUpdate
from squallpy.maintain.matrix.matrix_expressions import Name, add, product, stack
from squallpy.maintain.matrix.matrix_program import MatrixInput, Statement
from squallpy.maintain.matrix.parser import read_program
from squallpy.maintain.matrix.view_visits import count_visits
from squallpy.physical.matrix.view_passes import ViewPass, schedule_passes

N, K = Size.of("n"), Size.of("k")
A, B, C = (Name(name, N, N) for name in "ABC")
U, W, T, S = (Name(name, N, K) for name in ("u", "w", "t", "s"))
V = Name("v", K, N)
AFFINE = "T := iterate[16](T0)(t => A * t + B)"
PROGRAMS = {
    "powers": ("P := A ^ 16", ARITHMETIC, 1),
    "sums": ("S := iterate[15](eye(n))(s => A * s + eye(n))", ARITHMETIC, 1),
    "vectors": (AFFINE, ARITHMETIC, 1),
    "thin": (AFFINE, ARITHMETIC, 50),
    "square": (AFFINE, ARITHMETIC, 2000),
    "reachable": ("R := iterate[4](eye(n))(acc => A * acc + eye(n))", BOOLEAN, 1),
}


def trigger(steps: list[Statement], updates: list[MatrixUpdate]) -> MatrixTrigger:
    return MatrixTrigger(A, U, V, DerivedDeltas((), {}), (), tuple(steps), tuple(updates))


@pytest.mark.parametrize(("text", "ring", "p"), PROGRAMS.values(), ids=PROGRAMS)
def test_no_view_is_visited_more_often_than_it_must_be(text: str, ring: Semiring, p: int) -> None:
    shapes = {"A": ("n", "n"), "B": ("n", "p"), "T0": ("n", "p")}
    inputs = [MatrixInput(Name(name, Size.of(rows), Size.of(cols))) for name, (rows, cols) in shapes.items()]
    made = compile_program(read_program(text, inputs, ring), ["A"], {"n": 2000, "p": p}).maintained
    found = Counter(
        work.view.name for work in schedule_passes(made.triggers["A"], made.matrices) if isinstance(work, ViewPass)
    )
    assert found == {view: len(turns) for view, turns in count_visits(made.triggers["A"], set(made.matrices)).items()}


def test_what_reads_a_view_that_is_no_product_is_done_before_it_changes() -> None:
    """s waits for w, and A with it: in one visit it would change before s is there."""
    steps = [Statement(T, product(A, U)), Statement(W, product(B, T)), Statement(S, add(product(C, W), U))]
    wide = Statement(Name("x", N, N + K), stack(A, W))
    order = list(map(str, schedule_passes(trigger([*steps[:2], wide], [MatrixUpdate(A, U, V)]), ["A", "B"])))
    assert order == ["pass A: t := A * u", "pass B: w := B * t", "x := [A, w]", "pass A: A += u * v"]


def test_what_another_view_changes_by_is_taken_before_it_changes() -> None:
    updates = [MatrixUpdate(A, U, V), MatrixUpdate(B, A, C)]
    order = list(map(str, schedule_passes(trigger([], updates), ["A", "B", "C"])))
    assert order == ["pass B: B += A * C", "pass A: A += u * v"]
