"""Sparse inputs equal dense ones, whatever is read of them and added to them."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from squallpy.base.semirings import ARITHMETIC, MAX_PLUS, MIN_PLUS, Semiring
from squallpy.maintain.matrix.compile_triggers import STRATEGIES, Options, compile_program
from squallpy.maintain.matrix.dimensions import Size
from squallpy.maintain.matrix.matrix_expressions import Name
from squallpy.maintain.matrix.matrix_program import MatrixInput
from squallpy.maintain.matrix.parser import read_program
from squallpy.matrices import Properties, program
from squallpy.runtime.matrix import sparse_view
from squallpy.runtime.matrix.cells import Cells
from squallpy.runtime.matrix.maintained_program import MaintainedProgram
from squallpy.runtime.matrix.sparse_view import SparseView, is_sparse
from squallpy.runtime.matrix.stored_views import store_view
from squallpy.testing.matrix_checks import naive

SEMIRINGS = [ARITHMETIC, MIN_PLUS, MAX_PLUS]


def _few(random: np.random.Generator, shape: tuple[int, int], share: float, ring: Semiring) -> np.ndarray:
    return np.where(random.random(shape) < share, random.integers(-8, 9, shape) / 8, ring.zero)


@pytest.mark.parametrize("ring", SEMIRINGS, ids=str)
@given(n=st.integers(1, 40), m=st.integers(1, 40), seed=st.integers(0, 10**6))
@settings(max_examples=60, deadline=None)
def property_sparse_views_equal_dense_ones(ring: Semiring, n: int, m: int, seed: int) -> None:
    random = np.random.default_rng(seed)
    values = _few(random, (n, m), 0.02, ring)
    few, many = SparseView.of(values, ring), store_view(values, ring)
    for _ in range(6):
        k = int(random.integers(1, 4))
        u, v = _few(random, (n, k), 2 / n, ring), _few(random, (k, m), random.choice([2 / m, 0.5]), ring)
        x, y = _few(random, (m, 2), 0.7, ring), _few(random, (n, 1), 0.7, ring)
        for found, wanted in zip(few.pass_over(u, v, [x], [y]), many.pass_over(u, v, [x], [y]), strict=True):
            np.testing.assert_allclose(found[0], wanted[0], atol=1e-12)
        rows, cols = random.integers(0, n, 3), random.integers(0, m, 3)
        for view in (few, many):
            view.add_at(rows, cols, np.array([1.0, 2.0, 3.0]))
        np.testing.assert_allclose(few.read(rows, cols), many.read(rows, cols), atol=1e-12)
        np.testing.assert_allclose(few.whole(), many.whole(), atol=1e-12)
        np.testing.assert_allclose(few.at(rows, cols), many.whole()[rows, cols], atol=1e-12)


def test_what_fills_up_is_dense_from_then_on() -> None:
    view, dense = SparseView.of(np.zeros((300, 300)), ARITHMETIC), np.zeros((300, 300))
    for at in range(30):
        u, v = np.eye(300)[:, [at]], np.ones((1, 300))
        view.pass_over(u, v, [], [])
        dense += u @ v
        assert np.array_equal(view.whole(), dense)
        assert view.sparse == (at < 18)  # 18 of 300 rows are less than a sixteenth
    assert view.nbytes == 8 * 300 * 300


def test_cells_behind_others_are_put_in_order(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sparse_view, "_LEAST", 8)
    random, dense = np.random.default_rng(1), np.zeros((400, 400))
    view = SparseView.of(dense, ARITHMETIC)
    for _ in range(2000):
        i, j = random.integers(0, 400, 1), random.integers(0, 10, 1)
        view.add_at(i, j, np.ones(1))
        dense[i, j] += 1
    assert np.array_equal(view.whole(), dense) and view.sparse
    assert view.nbytes < 2 * 16 * np.count_nonzero(dense)


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("ring", SEMIRINGS, ids=str)
def differential_programs_over_sparse_inputs(ring: Semiring, strategy: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Vectors that go around in a graph, and its square: reads from both sides, evaluations, updates, growth."""
    monkeypatch.setattr(sparse_view, "_LEAST", 8)
    random, n = np.random.default_rng(3), 100
    values = {"G": _few(random, (n, n), 0.01, ring), "t": random.integers(1, 9, (n, 2)).astype(float)}
    assert is_sparse(values["G"], ring)
    source = [MatrixInput(Name("G", Size.of("n"), Size.of("n"))), MatrixInput(Name("t", Size.of("n"), Size(2)))]
    text = "R := iterate[3](t)(x => G * x + t); L := R' * G; S := G' * G"
    program = read_program(text, source, ring)
    made = compile_program(program, ["G"], {"n": n}, Options(strategy=strategy), ["n"])
    live = MaintainedProgram(made.maintained, values, strategy)
    for at in range(8):
        if at == 4:
            n += 3
            live.grow({"n": n})
            old, values["G"] = values["G"], np.full((n, n), ring.zero)
            values["G"][: n - 3, : n - 3] = old
            values["t"] = live.read("t").copy()
        cells = Cells(random.integers(0, n, 4), random.integers(0, n, 4), random.integers(1, 9, 4) / 4)
        live.add({"G": cells})
        ring.add.at(values["G"], (cells.rows, cells.cols), cells.values)
        for name, wanted in naive(program, values, {"n": n}).items():
            np.testing.assert_allclose(live.read(name), wanted, rtol=1e-9, atol=1e-9)
    assert live.views.sparse.keys() == {"G"}


def test_explain_says_what_is_sparse() -> None:
    rank = program(lambda A, t: A @ (A @ t))
    graph = _few(np.random.default_rng(5), (500, 500), 0.01, ARITHMETIC)
    model = rank.start(A=graph, t=np.ones((500, 1)))
    assert model.live.views.nbytes < 8 * 500 * 100
    model.row("A", 3, np.ones(500))
    graph[3] += 1
    np.testing.assert_allclose(model.value, graph @ (graph @ np.ones((500, 1))))
    np.testing.assert_allclose(model["A"], graph)
    made = replace(rank, known={"A": Properties(density=0.01)})
    assert "A is kept as its cells that are not zero" in made.explain({"n": 500}, A=("n", "n"), t=("n", 1))


def test_a_program_is_priced_anew_when_an_input_has_filled_up() -> None:
    """Vectors that go around in few cells are evaluated; of a square, dense matrix a power follows by its trigger."""
    n, random = 300, np.random.default_rng(6)
    inputs = [MatrixInput(Name(name, Size.of("n"), Size.of("n"))) for name in "Gt"]
    program = read_program("P := G * t; Q := G * (G * P)", inputs)
    values = {"G": _few(random, (n, n), 0.001, ARITHMETIC), "t": random.standard_normal((n, n)) / n}
    live = MaintainedProgram(compile_program(program, ["G"], {"n": n}).maintained, values)
    assert live.views.sparse
    for _ in range(4):
        u, v = random.standard_normal((n, 1)) / n, random.standard_normal((1, n))
        live.update("G", u, v)
        values["G"] = values["G"] + u @ v
        for name, wanted in naive(program, values, {"n": n}).items():
            np.testing.assert_allclose(live.read(name), wanted, rtol=1e-9, atol=1e-9)
    assert not live.views.sparse
