"""What `bench.matrix` compares computes the same: baselines as the papers ran them, strong ones, triggers by hand."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.matrix import baselines, figures, inputs
from bench.matrix.by_hand import Ols, Powers, Reachability, ShortestPaths
from squallpy.runtime.kernels.matrix import boolean

SIZES = st.sampled_from([5, 30, 70])
SEEDS = st.integers(0, 1000)


def close(actual: Any, expected: Any) -> None:
    np.testing.assert_allclose(actual, expected, rtol=1e-8, atol=1e-10)


@given(SIZES, SEEDS)
def differential_iterations(n: int, seed: int) -> None:
    random = np.random.default_rng(seed)
    A, B, T = inputs.contraction(n, random), random.normal(size=(n, 3)), random.normal(size=(n, 3))
    close(baselines.powers(A, 16), np.linalg.matrix_power(A, 16))
    close(baselines.sums_of_powers(A, 8), sum(np.linalg.matrix_power(A, power) for power in range(8)))
    for wide in (1, n):
        b, t = np.repeat(B[:, :1], wide, 1), np.repeat(T[:, :1], wide, 1)
        close(baselines.affine_iteration_strong(A, b, t, 16), baselines.affine_iteration(A, b, t, 16))
    X, Y = inputs.observations(n, n, random), random.normal(size=(n, 2))
    close(baselines.gradient_descent_strong(X, Y, 16), baselines.gradient_descent(X, Y, 16))


@given(SIZES, SEEDS)
def differential_powers(n: int, seed: int) -> None:
    random = np.random.default_rng(seed)
    live = Powers(inputs.contraction(n, random), 16)
    for _ in range(3):
        live.update(*inputs.batch_of_rows(n, 4, 1.0, random))
    close(live.result, np.linalg.matrix_power(live.views[0], 16))


@given(SIZES, st.sampled_from([1, 2]), SEEDS)
def differential_least_squares(m: int, tall: int, seed: int) -> None:
    random = np.random.default_rng(seed)
    X, Y = inputs.observations(tall * m, m, random), random.normal(size=(tall * m, 1))
    live = Ols(X, Y)
    for _ in range(3):
        U, V = inputs.row_update(tall * m, m, random)
        live.update(U, 0.1 * V)
    expected = np.linalg.lstsq(X, Y)[0]
    for found in (live.result, baselines.ols(X, Y), baselines.ols_strong(X, Y)):
        np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("graph", [inputs.random_graph, inputs.scale_free_graph])
@given(n=SIZES, seed=SEEDS)
def differential_graphs(graph: Callable[..., Any], n: int, seed: int) -> None:
    random = np.random.default_rng(seed)
    G = graph(n, 0.05, random)
    reach, paths = Reachability(boolean.pack(G), 4), ShortestPaths(inputs.lengths(G, random), 4)
    for _ in range(5):
        a, b = random.choice(n, 2, replace=False)
        reach.update(a, b)
        paths.update(a, b, float(random.integers(1, 101)))
    hops = np.linalg.matrix_power((boolean.unpack(reach.G, n) | np.eye(n, dtype=bool)).astype(float), 4) > 0
    for found in (reach.result, baselines.reachability(reach.G, 4), baselines.reachability_strong(reach.G, 4)):
        assert (boolean.unpack(found, n) == hops).all()
    assert ((paths.result < np.inf) == hops).all()
    for lengths in (baselines.shortest_paths(paths.G, 4), baselines.shortest_paths_strong(paths.G, 4)):
        assert (lengths == paths.result).all()


def oracle_a_batch_of_rows_has_the_rank_of_its_distinct_rows() -> None:
    U, V = inputs.batch_of_rows(100, 50, 2.0, np.random.default_rng(0))
    assert U.shape == V.shape and U.shape[1] < 50 and (U.sum(axis=0) == 1).all() and (U.sum(axis=1) <= 1).all()


@pytest.mark.long
def test_figures_are_tables_of_all_that_is_measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    small = "--n 20 --hops 40 --sizes 20 --steps 4 --rounds 1 --figures"
    for chosen, expected in (("memory,layouts", 2), ("memory", 2)):
        monkeypatch.setattr("sys.argv", ["figures", *small.split(), chosen, "--out", str(tmp_path / "out.md")])
        figures.main()
        assert (tmp_path / "out.md").read_text().count("\n## ") == expected
    assert "| 20 |" in (tmp_path / "out.md").read_text()
