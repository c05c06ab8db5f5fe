"""Matrix programs from Python, as a reader of the README would write them."""

import math
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from squallpy.base.errors import SquallError
from squallpy.maintain.matrix.symbolic_matrices import Symbolic
from squallpy.matrices import (
    BOOLEAN,
    MIN_PLUS,
    Properties,
    Semiring,
    cholesky,
    equal,
    exp,
    eye,
    hstack,
    inv,
    iterate,
    log,
    maximum,
    minimum,
    ones,
    program,
    qr,
    sqrt,
    vstack,
)

RANDOM = np.random.default_rng(3)


@program(strategy="incr")
def ols(X: Symbolic, Y: Symbolic) -> dict[str, Symbolic]:
    return {"beta": inv(X.T @ X) @ (X.T @ Y)}


@program(over=BOOLEAN)
def reachable(G: Symbolic) -> Symbolic:
    return iterate(4, eye(G.shape[0]), lambda acc: G @ acc + eye(G.shape[0]))


@program(over=MIN_PLUS)
def distances(G: Symbolic) -> Symbolic:
    return iterate(3, G, lambda acc: G @ acc + G)


def oracle_a_vertex_with_all_its_edges_comes_and_goes() -> None:
    """One row and one column, however many edges: two ranks, not as many as it has neighbours."""
    n, others = 60, np.delete(np.arange(60), 5)
    rows, columns = np.r_[others, np.full(59, 5)], np.r_[np.full(59, 5), others]
    A = RANDOM.random((n, n)) / n
    power, far = program(lambda A: A**4).start(A=A.copy()), distances.start(G=np.where(A * n < 0.2, A, np.inf))
    values = RANDOM.random(118) / n
    for sign in (1, -1):
        power.cells("A", rows, columns, sign * values)
        A[rows, columns] += sign * values
        np.testing.assert_allclose(power.value, np.linalg.matrix_power(A, 4), atol=1e-12)
    G = far.live.read("G").copy()
    far.cells("G", rows, columns, values)
    G[rows, columns] = np.minimum(G[rows, columns], values)
    expected = G
    for _ in range(3):
        expected = np.minimum((G[:, :, None] + expected[None]).min(axis=1), G)
    np.testing.assert_allclose(far.value, expected)


def least_squares(X: np.ndarray, Y: np.ndarray) -> np.ndarray:
    return np.linalg.lstsq(X, Y, rcond=None)[0]


def oracle_ols_follows_rows_columns_cells_and_new_observations() -> None:
    X, Y = RANDOM.standard_normal((40, 6)), RANDOM.standard_normal((40, 1))
    model = ols.start(X=X, Y=Y)
    change = RANDOM.standard_normal(6)
    model.row("X", 7, change)
    X[7] += change
    np.testing.assert_allclose(model["beta"], least_squares(X, Y), rtol=1e-9)
    model.column("X", 2, Y[:, 0])
    X[:, 2] += Y[:, 0]
    np.testing.assert_allclose(model.value, least_squares(X, Y), rtol=1e-9)
    model.cells("X", [1, 1, 3], [0, 5, 0], [0.5, 0.25, -1.0])
    X[1, 0], X[1, 5], X[3, 0] = X[1, 0] + 0.5, X[1, 5] + 0.25, X[3, 0] - 1
    model.update("Y", np.ones(40), [2.0])
    Y += 2
    np.testing.assert_allclose(model.value, least_squares(X, Y), rtol=1e-9)
    more_x, more_y = RANDOM.standard_normal((2, 6)), RANDOM.standard_normal((2, 1))
    model.append(X=more_x, Y=more_y)
    np.testing.assert_allclose(model.value, least_squares(np.vstack([X, more_x]), np.vstack([Y, more_y])), rtol=1e-9)
    assert model.counts.reevaluated == 0


def oracle_reachability_follows_new_edges_and_vertices() -> None:
    G = RANDOM.random((30, 30)) < 0.04
    model = reachable.start(G=G)
    for _ in range(10):
        i, j = RANDOM.integers(30, size=2)
        model.cells("G", [i], [j], [True])
        G[i, j] = True
        hops = np.linalg.matrix_power(G.astype(int) + np.eye(30, dtype=int), 4) > 0
        np.testing.assert_array_equal(model.value, hops)


def oracle_shortest_paths() -> None:
    G = np.where(RANDOM.random((20, 20)) < 0.1, RANDOM.integers(1, 9, (20, 20)), np.inf)
    model = distances.start(G=G)
    model.cells("G", [3, 4], [4, 5], [1.0, 1.0])
    G[3, 4], G[4, 5] = min(G[3, 4], 1), min(G[4, 5], 1)
    wanted = best = G
    for _ in range(3):
        best = np.minimum((G[:, :, None] + best[None]).min(axis=1), G)
        wanted = best
    np.testing.assert_array_equal(model.value, wanted)


def test_a_semiring_of_ones_own() -> None:
    likelihood = Semiring("viterbi", np.maximum, np.multiply, zero=0.0, one=1.0, idempotent=True)

    @program(over=likelihood)
    def best(A: Symbolic) -> Symbolic:
        return A @ A @ A

    A = RANDOM.random((7, 7))
    model = best.start(A=A)
    model.cells("A", [2], [3], [0.999])
    A[2, 3] = max(A[2, 3], 0.999)
    pairs = (A[:, :, None] * A[None]).max(axis=1)
    np.testing.assert_allclose(model.value, (pairs[:, :, None] * A[None]).max(axis=1))


def test_stacks_powers_and_numbers() -> None:
    @program
    def mixed(A: Symbolic, B: Symbolic) -> dict[str, Symbolic]:
        return {"S": vstack(hstack(A, B), hstack(B.T, 2 * A)) @ vstack(A, B), "P": (0.5 * A) ** 5, "Q": -A / 4 - B}

    A, B = RANDOM.standard_normal((5, 5)), RANDOM.standard_normal((5, 5))
    model = mixed.start(A=A, B=B)
    model.row("A", 1, np.ones(5))
    A[1] += 1
    np.testing.assert_allclose(model["S"], np.block([[A, B], [B.T, 2 * A]]) @ np.vstack([A, B]), atol=1e-12)
    np.testing.assert_allclose(model["P"], np.linalg.matrix_power(0.5 * A, 5), atol=1e-12)
    np.testing.assert_allclose(model["Q"], -A / 4 - B, atol=1e-12)


def test_what_is_known_of_an_input_is_used() -> None:
    @program(known={"S": Properties(symmetric=True)})
    def square(S: Symbolic) -> Symbolic:
        return S @ S

    assert "P := " not in square.explain(S=("n", "n"))
    assert "symmetric" in square.explain(S=("n", "n"))


@pytest.mark.parametrize(
    ("code", "message", "act"),
    [
        ("SQ5010", "row 40 is outside of X", lambda m: m.row("X", 40, np.ones(6))),
        ("SQ2011", "is no change of X", lambda m: m.update("X", np.ones(39), np.ones(6))),
        ("SQ5012", "nan is no entry", lambda m: m.row("X", 1, [math.nan] * 6)),
        ("SQ5012", "inf is no entry", lambda m: m.row("X", 1, [math.inf] * 6)),
        ("SQ2011", "of rank 41", lambda m: m.update("X", np.ones((40, 41)), np.ones((41, 6)))),
    ],
)
def test_bad_updates_change_nothing(code: str, message: str, act: Callable[..., Any]) -> None:
    X, Y = RANDOM.standard_normal((40, 6)), RANDOM.standard_normal((40, 1))
    model = ols.start(X=X, Y=Y)
    with pytest.raises(SquallError, match=message) as raised:
        act(model)
    assert raised.value.code == code
    np.testing.assert_allclose(model.value, least_squares(X, Y), rtol=1e-9)


@pytest.mark.parametrize(
    ("message", "function"),
    [
        ("cannot multiply A \\(.* × .*\\) and B", lambda A, B: A @ B),
        ("cannot multiply entry by entry", lambda A, B: A * B),
        ("sums over axis 2", lambda A, B: A.sum(axis=2)),
        ("only a square matrix has an inverse", lambda A, B: inv(B)),
        ("only a square matrix has powers", lambda A, B: B**2),
        ("cannot decide by what is in a matrix", lambda A, B: A if A else B),
        ("iterate -1 times", lambda A, B: iterate(-1, A, lambda t: t)),
        ("ndarray @ matrix", lambda A, B: np.ones((4, 4)) @ A),
    ],
)
def test_programs_that_are_none(message: str, function: Callable[..., Any]) -> None:
    with pytest.raises(SquallError, match=message):
        program(function).start(A=np.ones((4, 4)), B=np.ones((3, 4)))


def oracle_entries_as_numpy_has_them() -> None:
    @program
    def entries(A: Symbolic, B: Symbolic) -> dict[str, Symbolic]:
        share = abs(A) / (abs(A).sum(axis=1) @ ones(1, A.shape[1]))
        same = equal(minimum(A, B), maximum(A, B)) * 2
        return {
            "share": share,
            "large": (share > 0.25) * B,
            "same": same,
            "curves": sqrt(abs(A)) + exp(-B) + log(1 / abs(B)),
            "trace": (A @ B).trace() + A.sum() + (A <= B).sum(axis=0).sum() - A.diagonal().sum(),
        }

    n = 30
    A, B = RANDOM.standard_normal((n, n)), RANDOM.standard_normal((n, n))
    B[3] = A[3]
    model = entries.start(A=A, B=B)
    for at in range(6):
        name, values = ("A", A) if at % 3 else ("B", B)
        row, change = int(RANDOM.integers(n)), RANDOM.standard_normal(n)
        model.row(name, row, change)
        values[row] += change
        with np.errstate(divide="ignore"):
            share = np.abs(A) / np.abs(A).sum(axis=1, keepdims=True)
            wanted = {
                "share": share,
                "large": (share > 0.25) * B,
                "same": (A == B) * 2.0,
                "curves": np.sqrt(np.abs(A)) + np.exp(-B) - np.log(np.abs(B)),
                "trace": np.full((1, 1), np.trace(A @ B) + A.sum() + (A <= B).sum() - np.trace(A)),
            }
        for output, expected in wanted.items():
            np.testing.assert_allclose(model[output], expected, rtol=1e-9, atol=1e-9)


def oracle_an_iteration_ends_when_it_has_converged() -> None:
    """As many steps as NumPy takes, one by one: a result further on would differ."""

    @program
    def ranks(G: Symbolic) -> dict[str, Symbolic]:
        n = G.shape[0]
        P = G / (G.sum(axis=1) @ ones(1, n))
        rank = iterate(100, ones(n, 1) / n, lambda x: 0.85 * (P.T @ x) + 0.15 * (ones(n, 1) / n), until=1e-5)
        return {"square": P @ P, "rank": rank}

    n, steps = 40, set[int]()
    G = (np.random.default_rng(3).random((n, n)) < 0.2) + np.eye(n)
    model = ranks.start(G=G)
    for at in range(8):
        change = np.eye(n)[0] * 10.0**at  # more and more of what leaves a node goes to the first
        model.row("G", at, change)
        G[at] += change
        P, x, count, largest = G / G.sum(axis=1, keepdims=True), np.full((n, 1), 1 / n), 0, 1.0
        while largest > 1e-5:
            before, x, count = x, 0.85 * P.T @ x + 0.15 / n, count + 1
            largest = float(np.abs(x - before).max())
        steps.add(count)
        np.testing.assert_allclose(model["rank"], x, rtol=1e-9)
        np.testing.assert_allclose(model["square"], P @ P, rtol=1e-9)
    assert len(steps) > 1


@pytest.mark.long
def test_iterations_of_hundreds_of_steps_compile() -> None:
    model = program(strategy="reeval")(lambda A, x: iterate(250, x, lambda x: abs(A @ x)))
    np.testing.assert_allclose(model.start(A=-np.eye(2), x=np.ones((2, 1))).value, np.ones((2, 1)))


def test_an_iteration_that_does_not_converge_is_told_until_it_does() -> None:
    solve = program(lambda A, b: {"x": iterate(60, b, lambda x: b - A @ x, until=1e-9), "C": A @ A})
    model = solve.start(A=np.eye(3) * 2, b=np.ones((3, 1)))
    with pytest.raises(SquallError, match=r"SQ5016 iterate\[60\].* still changes after 60 steps, allow more steps"):
        _ = model["x"]
    np.testing.assert_allclose(model["C"], np.eye(3) * 4)
    model.update("A", np.eye(3), np.eye(3) * -1.5)
    np.testing.assert_allclose(model["x"], np.ones((3, 1)) / 1.5, rtol=1e-8)


def test_a_singular_matrix_is_told_until_it_is_regular() -> None:
    inverse = program(lambda A: inv(A))
    model = inverse.start(A=np.zeros((3, 3)))
    with pytest.raises(SquallError, match="A is singular and has no inverse"):
        _ = model.value
    model.update("A", np.eye(3), 2 * np.eye(3))
    np.testing.assert_allclose(model.value, np.eye(3) / 2)
    model.row("A", 1, [0, -2, 0])
    with pytest.raises(SquallError, match="SQ5011"):
        _ = model.value


def oracle_factors_are_rotated() -> None:
    """Rows, columns and cells of the matrices change: what is symmetric stays so, as with X' * X."""

    @program(strategy="incr")
    def factors(A: Symbolic, X: Symbolic) -> dict[str, Symbolic]:
        Q, R = qr(X)
        L = cholesky(A)
        return {
            "L": L,
            "ridge": cholesky(X.T @ X + eye(X.shape[1])),
            "Q": Q,
            "R": R,
            "log det": log(L.diagonal()).sum(),
        }

    X = RANDOM.standard_normal((60, 40))
    A, u = np.eye(40), np.zeros((40, 1))
    model = factors.start(A=A, X=X)
    for at in range(40):
        row = RANDOM.standard_normal(40) * 10.0 ** (at % 3 - 1)
        model.row("X", at, row)
        X[at] += row
        if at % 3 == 2:  # what was added before goes again
            model.update("A", -u, u.T)
            A = A - u @ u.T
        else:
            u = row[:, None]
            model.update("A", u, u.T)
            A = A + u @ u.T
        L, (Q, R) = np.linalg.cholesky(A), np.linalg.qr(X)
        signs = np.sign(R.diagonal())
        wanted = {"L": L, "Q": Q * signs, "R": signs[:, None] * R, "log det": [[np.log(L.diagonal()).sum()]]}
        wanted["ridge"] = np.linalg.cholesky(X.T @ X + np.eye(40))
        for output, expected in wanted.items():
            np.testing.assert_allclose(model[output], expected, rtol=1e-8, atol=1e-9)
    assert (model.counts.updates, model.counts.reevaluated, model.counts.refreshed) == (80, 0, 0)
    assert model.live.drift() < 1e-12


def test_a_factor_is_computed_anew_where_rotations_would_lose_accuracy() -> None:
    model = program(strategy="incr")(lambda A: cholesky(A)).start(A=np.eye(3) + 1e8 * np.ones((3, 3)))
    model.update("A", np.full((3, 1), -1e8), np.ones((1, 3)))
    np.testing.assert_array_equal(model.value, np.eye(3))
    assert model.counts.refreshed == 1


@pytest.mark.parametrize(
    ("make", "values", "u", "v"),
    [
        (cholesky, np.eye(2), [[0], [1]], [[1, 0]]),  # not symmetric
        (cholesky, np.eye(2), [[0], [1]], [[0, -1]]),  # singular
        (cholesky, np.eye(2), [[0], [1]], [[0, -4]]),  # indefinite
        (cholesky, np.ones((1, 1)), [[1]], [[-1]]),
        (cholesky, np.eye(2) * 1e300, [[0, 1e300], [1e300, 0]], [[1e9, 0], [0, 1e9]]),  # infinite
        (lambda X: qr(X)[1], np.eye(3)[:, :2], [[0], [1], [0]], [[1, -1]]),  # columns that are alike
        (lambda X: qr(X)[0], np.eye(3)[:, :2], [[0], [1], [0]], [[0, -1]]),
    ],
)
def test_there_are_no_factors_until_there_are(
    make: Callable[[Symbolic], Symbolic], values: Any, u: Any, v: Any
) -> None:
    with np.errstate(over="ignore"):
        model = program(strategy="incr")(make).start(A=values) if make is cholesky else program(make).start(X=values)
        before, name = model.value.copy(), "A" if make is cholesky else "X"
        model.update(name, np.array(u, float), np.array(v, float))
        with pytest.raises(SquallError, match=r"SQ5011 .*it has no (Cholesky|unique QR) factor"):
            _ = model.value
        if np.abs(u).max() < 1e9:
            model.update(name, -np.array(u, float), np.array(v, float))
            np.testing.assert_allclose(model.value, before)


def test_there_is_no_subtraction_in_a_semiring_without_one() -> None:
    with pytest.raises(SquallError, match="the boolean semiring has no subtraction"):
        program(over=BOOLEAN)(lambda A: A - A).start(A=np.ones((2, 2), bool))
    with pytest.raises(SquallError, match="no inverse of a matrix"):
        program(over=MIN_PLUS)(lambda A: inv(A)).start(A=np.ones((2, 2)))


def oracle_columns_and_vertices_are_appended() -> None:
    @program(shapes={"X": ("m", "n")})
    def square(X: Symbolic) -> Symbolic:
        return X.T @ X

    X, more = RANDOM.standard_normal((9, 3)), RANDOM.standard_normal((9, 2))
    model = square.start(X=X)
    model.append_columns(X=more)
    wide = np.hstack([X, more])
    np.testing.assert_allclose(model.value, wide.T @ wide, atol=1e-12)

    G = RANDOM.random((6, 6)) < 0.2
    graph = reachable.start(G=G)
    graph.append(G=[[True, False, False, False, False, False]])  # a seventh vertex, and its edge to the first
    grown = np.zeros((7, 7), bool)
    grown[:6, :6], grown[6, 0] = G, True
    np.testing.assert_array_equal(graph.value, np.linalg.matrix_power(grown + np.eye(7, dtype=int), 4) > 0)
    with pytest.raises(SquallError, match="Y is not a matrix to which columns can be appended"):
        ols.start(X=X, Y=X[:, :1]).append_columns(Y=X[:, :1])


@pytest.mark.parametrize(
    ("code", "message", "parts"),
    [
        ("SQ2011", "what is appended to X has 5 columns", {"X": np.ones((2, 5)), "Y": np.ones((2, 1))}),
        (
            "SQ2011",
            "3 rows are appended to Y, where another matrix gets 2",
            {"X": np.ones((2, 6)), "Y": np.ones((3, 1))},
        ),
        ("SQ5012", "nan is no entry of the matrix Y", {"X": np.ones((2, 6)), "Y": [[1.0], [math.nan]]}),
        ("SQ2012", "Z is no input", {"X": np.ones((2, 6)), "Z": np.ones((2, 1))}),
    ],
)
def test_bad_rows_are_not_appended(code: str, message: str, parts: dict[str, NDArray[np.float64]]) -> None:
    X, Y = RANDOM.standard_normal((40, 6)), RANDOM.standard_normal((40, 1))
    model = ols.start(X=X, Y=Y)
    with pytest.raises(SquallError, match=message) as raised:
        model.append(**parts)
    assert raised.value.code == code
    assert (model["X"].shape, model["Y"].shape, model.counts.updates) == ((40, 6), (40, 1), 0)
    np.testing.assert_allclose(model.value, least_squares(X, Y), rtol=1e-9)


def test_updates_of_lower_rank_than_columns_are_compressed() -> None:
    @program(strategy="incr")
    def power(A: Symbolic) -> Symbolic:
        return A**4

    A, u, v = RANDOM.standard_normal((200, 200)) / 20, RANDOM.standard_normal(200), RANDOM.standard_normal(200)
    model = power.start(A=A)
    ranks = []
    fire = model.live._fire
    model.live._fire = lambda *rest: (ranks.append(rest[1].shape[1]), fire(*rest))[1]
    model.update("A", np.outer(u, [1, 2, 3]) / 50, np.tile(v, (3, 1)) / 50)
    assert ranks == [1]
    np.testing.assert_allclose(model.value, np.linalg.matrix_power(A + 6 * np.outer(u, v) / 2500, 4), atol=1e-12)


@pytest.mark.parametrize("chosen", [None, "20"])
def test_blas_is_told_to_let_idle_threads_sleep_before_it_is_loaded(chosen: str | None) -> None:
    """Unless whoever runs the program has told it another time."""
    environment = {key: value for key, value in os.environ.items() if key != "OPENBLAS_THREAD_TIMEOUT"}
    environment |= {"OPENBLAS_THREAD_TIMEOUT": chosen} if chosen else {}
    script = "import os, sys, squallpy; print(os.environ['OPENBLAS_THREAD_TIMEOUT'], 'numpy' in sys.modules)"
    told = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=True)
    assert told.stdout.split() == [chosen or "8", "False"]


def test_the_example_of_the_manual() -> None:
    page = (Path(__file__).parents[1] / "docs" / "matrix.md").read_text(encoding="utf-8")
    example = re.findall(r"```python\n(.*?)```", page, re.DOTALL)[0]
    x, more, y, new = (RANDOM.normal(size=shape) for shape in ((9, 2), (3, 2), (9, 1), (3, 1)))
    names: dict[str, Any] = {"observations": x, "answers": y, "difference": [1, 2], "more": more, "their_answers": new}
    exec(example, names)
    x[7] += [1, 2]
    wanted = np.linalg.lstsq(np.vstack([x, more]), np.vstack([y, new]))[0]
    np.testing.assert_allclose(names["model"]["beta"], wanted, rtol=1e-9)
