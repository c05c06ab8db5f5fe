"""Rules of Fig. A.1 and A.2: what goes in, what comes out, and that both are the same matrix in every semiring."""

import numpy as np
import pytest

from squallpy.base.semirings import ARITHMETIC, BOOLEAN, MIN_PLUS, Semiring
from squallpy.maintain.matrix.dimensions import Size
from squallpy.maintain.matrix.equivalence_search import neighbours
from squallpy.maintain.matrix.iterative_models import match_affine, write_models
from squallpy.maintain.matrix.matrix_expressions import Iterate, Matrix, Name, shape
from squallpy.maintain.matrix.matrix_program import MatrixInput, MatrixProgram, Statement
from squallpy.maintain.matrix.meta_information import Properties
from squallpy.maintain.matrix.parser import read_program
from squallpy.maintain.matrix.simplify import simplify
from squallpy.testing.matrix_checks import RINGS, entries, naive

FACTS = {"S": Properties(symmetric=True)}
SHAPES: dict[str, tuple[int | str, int | str]] = {
    "A": ("n", "n"),
    "B": ("n", "n"),
    "S": ("n", "n"),
    "X": ("m", "n"),
    "y": ("n", 1),
}
INPUTS = [
    MatrixInput(Name(name, Size.of(rows), Size.of(cols)), FACTS.get(name, Properties()))
    for name, (rows, cols) in SHAPES.items()
]
SIZES = {"n": 4, "m": 3}


def parsed(text: str, ring: Semiring = ARITHMETIC) -> Matrix:
    return read_program(text, INPUTS, ring).statements[-1].value


def value(matrix: Matrix, ring: Semiring, seed: int = 1) -> np.ndarray:
    random = np.random.default_rng(seed)
    arrays = {i.name.name: entries(random, i.name.rows.at(SIZES), i.name.cols.at(SIZES), ring) for i in INPUTS}
    arrays["S"] = ring.add(arrays["S"], arrays["S"].T)
    program = MatrixProgram(tuple(INPUTS), (Statement(Name("result", *shape(matrix)), matrix),), ("result",), ring)
    return naive(program, arrays, SIZES)["result"]


def same(left: Matrix, right: Matrix, ring: Semiring) -> None:
    np.testing.assert_allclose(value(left, ring).astype(float), value(right, ring).astype(float), atol=1e-9)


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("A''", "A"),
        ("S'", "S"),
        ("(A * X')'", "X * A'"),
        ("(A + B)'", "A' + B'"),
        ("eye(n)'", "eye(n)"),
        ("A * eye(n) * B", "A * B"),
        ("zeros(n, n) * A + B", "B"),
        ("A + zeros(n, n)", "A"),
        ("hstack(zeros(n, n), zeros(n, m))", "zeros(n, m + n)"),
        ("fill(n, n, 0.0) + A", "A"),
        ("diag(n, 1) * A", "A"),
        ("2 * (3 * A) * B", "6 * A * B"),
        ("1 * A", "A"),
        ("A - A", "zeros(n, n)"),
        ("A + B + A", "2 * A + B"),
        ("-(A + B)", "-A - B"),
        ("let x := A * B in x", "A * B"),
        ("let x := A * B in B", "B"),
        ("let x := A in x * x", "A * A"),
        ("iterate[0](A)(x => x * B)", "A"),
        ("iterate[2](A)(x => B * x)", "B * B * A"),
        ("inv(2 * S)", "1 / 2 * inv(S)"),
        ("inv(eye(n))", "eye(n)"),
        ("A ^ 1", "A"),
        ("(A .* B)'", "A' .* B'"),
        ("A .* zeros(n, n) + B", "B"),
        ("rowSums(A .* B)", "rowSums(A .* B)"),
        ("A .* B * ones(n, 3)", "rowSums(A .* B) * ones(1, 3)"),
        ("colSums(A .* B)", "rowSums(A' .* B')'"),
        ("diag(A * B * A)", "rowSums(A .* (A' * B'))"),
        ("A ^ 0 * B", "B"),
    ],
)
def test_simplification(text: str, wanted: str) -> None:
    before = parsed(text)
    after = simplify(before, FACTS, ARITHMETIC)
    assert str(after).replace("0.5", "1 / 2") == wanted
    if "inv" not in text:
        same(before, after, ARITHMETIC)


def test_sums_of_equals_depend_on_the_semiring() -> None:
    assert str(simplify(parsed("A + A", BOOLEAN), FACTS, BOOLEAN)) == "A"
    assert str(simplify(parsed("2 * A", MIN_PLUS), FACTS, MIN_PLUS)) == "2 * A"  # two more, not twice


@pytest.mark.parametrize("ring", RINGS, ids=str)
@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("A * (B + S)", {"A * B + A * S"}),
        ("(A + B) * S", {"A * S + B * S"}),
        ("A * B + A * S", {"A * (B + S)"}),
        ("A * B + S * B", {"(A + S) * B"}),
        ("A * B + A", {"A * (B + eye(n))"}),
        ("let x := A * B in x * x", {"A * B * A * B"}),
    ],
)
def test_equivalence(text: str, wanted: set[str], ring: Semiring) -> None:
    first = parsed(text, ring)
    found = {str(other): other for _, other in neighbours(first)}
    assert wanted <= set(found)
    for other in found.values():
        same(first, other, ring)


@pytest.mark.parametrize("ring", RINGS, ids=str)
@pytest.mark.parametrize(
    "text",
    [
        "iterate[7](y)(t => A * t + y)",
        "iterate[16](A)(t => A * t)",
        "iterate[5](eye(n))(t => A * t + eye(n))",
        "iterate[6](X)(t => t * A + X)",
        "iterate[13](y)(t => A * (B * t + y) + t)",
    ],
)
def test_iterative_models_are_the_same_matrix(text: str, ring: Semiring) -> None:
    iteration = parsed(text, ring)
    assert isinstance(iteration, Iterate)
    ways = write_models(iteration, FACTS, ring)
    assert {"exponential", "skip-2", "skip-4"} <= set(ways)
    limit = 1e-3 if ring is ARITHMETIC else 0
    wanted = value(iteration, ring).astype(float)
    for written in ways.values():
        np.testing.assert_allclose(value(written, ring).astype(float), wanted, rtol=1e-9, atol=limit)


@pytest.mark.parametrize(
    ("text", "matrix", "constant"),
    [
        ("iterate[2](y)(t => A * t + y)", "A", "y"),
        ("iterate[2](y)(t => t - X' * (X * t - X * y))", "eye(n) - X' * X", "X' * X * y"),
        ("iterate[2](A)(t => t * B)", "B", "None"),
        ("iterate[2](y)(t => 0.5 * (A * t) + 0.5 * t)", "0.5 * A + diag(n, 0.5)", "None"),
    ],
)
def test_affine_steps(text: str, matrix: str, constant: str) -> None:
    iteration = parsed(text)
    assert isinstance(iteration, Iterate)
    step = match_affine(iteration.body, iteration.name, FACTS, ARITHMETIC)
    assert step is not None
    assert (str(step.matrix).replace("0.5 * eye(n)", "diag(n, 0.5)"), str(step.constant)) == (matrix, constant)


@pytest.mark.parametrize("body", ["t * t", "A * t * B", "t'"])
def test_steps_that_are_not_affine(body: str) -> None:
    iteration = parsed(f"iterate[2](A)(t => {body})")
    assert isinstance(iteration, Iterate)
    assert match_affine(iteration.body, iteration.name, FACTS, ARITHMETIC) is None
