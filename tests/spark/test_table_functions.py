"""Table functions of matrices in Spark SQL, against NumPy."""

import math
from typing import Any

import numpy as np
import pytest

from squallpy.runtime.spark.table_functions import register

pytestmark = pytest.mark.spark
EDGES = [(0, 1, 2.0), (1, 2, 0.5), (2, 0, 1.0), (0, 3, 4.0), (3, 4, 1.0), (0, 1, 1.0), (5, 0, 3.0)]
N = 6


@pytest.fixture(scope="module")
def sql(cluster: Any) -> Any:
    session = cluster.session
    register(session)
    session.createDataFrame(EDGES, "src int, dst bigint, weight double").createOrReplaceTempView("edges")
    random = np.random.default_rng(1)
    rows = [(int(k), float(a), int(b), float(3 + 2 * a - b + 0.25 * e)) for k, (a, b, e) in
            enumerate(random.integers(-9, 9, (40, 3)))]  # fmt: skip
    session.createDataFrame(rows, "id int, a double, b int, y double").createOrReplaceTempView("obs")
    return lambda text: [tuple(row) for row in session.sql(text).collect()]


def _matrix() -> np.ndarray:
    out = np.zeros((N, N))
    for i, j, v in EDGES:
        out[i, j] += v
    return out


def oracle_power(sql: Any) -> None:
    found = np.zeros((N, N))
    for i, j, value in sql("SELECT * FROM matrix_power(TABLE(edges), 16)"):
        found[i, j] = value
    np.testing.assert_allclose(found, np.linalg.matrix_power(_matrix(), 16), rtol=1e-12)


def oracle_reachability(sql: Any) -> None:
    hops = np.linalg.matrix_power((_matrix() > 0).astype(int) + np.eye(N, dtype=int), 2) > 0
    found = sql("SELECT i, j FROM reachability(TABLE(SELECT src, dst FROM edges), 2)")
    assert sorted(found) == sorted(zip(*(p.tolist() for p in np.nonzero(hops)), strict=True))


def oracle_shortest_paths(sql: Any) -> None:
    best = np.where(np.eye(N, dtype=bool), 0.0, math.inf)
    for _ in range(3):
        step = best.copy()
        for i, j, v in EDGES:
            step[i] = np.minimum(step[i], v + best[j])
        best = step
    found = sql("SELECT i, j, value FROM shortest_paths(TABLE(edges), hops => 3)")
    assert sorted(found) == sorted(
        (int(i), int(j), best[i, j]) for i, j in zip(*np.nonzero(best < math.inf), strict=True)
    )


def oracle_page_rank(sql: Any) -> None:
    moves = _matrix()
    moves[4] = 1.0
    moves /= moves.sum(axis=1, keepdims=True)
    rank = np.full(N, 1 / N)
    for _ in range(30):
        rank = 0.9 * moves.T @ rank + 0.1 / N
    found = dict(sql("SELECT * FROM pagerank(TABLE(edges), damping => 0.9D, steps => 30)"))
    np.testing.assert_allclose([found[k] for k in range(N)], rank, rtol=1e-12)


def oracle_least_squares(sql: Any) -> None:
    rows = np.array(sql("SELECT a, b, y FROM obs"))
    expected = np.linalg.lstsq(np.column_stack([np.ones(len(rows)), rows[:, :2]]), rows[:, 2])[0]
    text = "SELECT * FROM ols(TABLE(SELECT a, b, y FROM obs), 'y', intercept => true)"
    assert dict(sql(text)) == pytest.approx(dict(zip(("intercept", "a", "b"), expected, strict=True)), rel=1e-9)
    assert {name for name, _ in sql("SELECT * FROM ols(TABLE(obs), 'y')")} == {"id", "a", "b"}


def test_joined(sql: Any) -> None:
    """What comes out is a table as any other."""
    text = (
        "SELECT e.src, COUNT(*) FROM reachability(TABLE(edges), 9) r JOIN edges e ON e.dst = r.i GROUP BY 1 ORDER BY 1"
    )
    assert sql(text)[0] == (0, 12)  # twice five from 1, two from 3


ERRORS = {
    "SELECT * FROM matrix_power(TABLE(edges), -1)": "SQ2012 the power is -1, it is a number from 0 to",
    "SELECT * FROM reachability(TABLE(obs), 2)": "SQ2005 edges are two integers and a number, not id int",
    "SELECT * FROM ols(TABLE(obs), 'z')": 'SQ2003 the table has no numeric column "z"',
    "SELECT * FROM ols(TABLE(SELECT a, a AS b, y FROM obs), 'y')": "SQ5011",
    "SELECT * FROM pagerank(TABLE(edges), damping => 2)": "SQ2012 the damping is 2.0",
    "SELECT * FROM matrix_power(TABLE(SELECT -1, 1), 2)": "SQ5010 a negative node number",
    "SELECT * FROM matrix_power(TABLE(SELECT 1 AS a, 1 AS b, CAST('NaN' AS DOUBLE) AS v), 2)": "SQ5012 nan is not",
    "SELECT * FROM matrix_power(TABLE(SELECT 1, 10000000000), 2)": "SQ5013 the matrices of the edges need",
}


@pytest.mark.parametrize("text", ERRORS)
def test_errors(sql: Any, text: str) -> None:
    with pytest.raises(Exception, match="SQ") as raised:
        sql(text)
    assert ERRORS[text] in str(raised.value)
