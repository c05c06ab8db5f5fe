"""Random self-joins of up to eight copies against DuckDB after every batch, on several executors: rows of a batch meet
each other in every place of the query."""

from collections.abc import Callable
from functools import partial
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from squallpy.maintain.relational import materialise
from squallpy.testing.engines import LocalEngine, MemoryEngine, PartitionedEngine, SparkEngine, VolatileEngine
from squallpy.testing.generators import Case, Change, insert_missing
from tests.marks import long
from tests.steps.test_random import Weighed, run

COPIES = {"key": 8, "chain": 6, "star": 4, "ring": 4, "clique": 3, "inequalities": 3, "cross": 3, "any": 4}
LONG = ("durable", "two partitions", "plain")  # only by `make long`
ENGINES: dict[str, Callable[[], MemoryEngine]] = {
    "optimized": Weighed,
    "plain": partial(Weighed, optimizer=False),
    "durable": LocalEngine,
    "two partitions": partial(PartitionedEngine, 2),
    "one statement a stage": partial(PartitionedEngine, 3, fusion=False),
    "on grids": partial(PartitionedEngine, 4, join_operator="Dynamic"),
}
FILTERS = ("", "", "{0}.c > 0", "{0}.a <> 1", "{0}.b < {0}.c")


class Torn(VolatileEngine):
    """Components of before and after the batch are cut, never expanded."""

    def start(self, *given: Any) -> None:
        with patch.object(materialise, "MOST_TERMS", 0):
            super().start(*given)


class Apart(VolatileEngine):
    """Relations are materialised one by one."""

    def start(self, *given: Any) -> None:
        with patch.object(materialise, "MOST", 0):
            super().start(*given)


@st.composite
def conditions(draw: st.DrawFn, shape: str, n: int) -> list[str]:
    """What joins the copies t0, t1, …"""
    pairs = [(i, i + 1) for i in range(n - 1)]
    match shape:
        case "key":
            return [f"t{i}.a = t{j}.a" for i, j in pairs]
        case "chain":
            return [f"t{i}.b = t{j}.a" for i, j in pairs]
        case "star":
            return [f"t0.{'abc'[i % 3]} = t{i}.a" for i in range(1, n)]
        case "ring":
            return [f"t{i}.b = t{(i + 1) % n}.a" for i in range(n)]
        case "clique":
            return [f"t{i}.{'ab'[j % 2]} = t{j}.{'ba'[i % 2]}" for i in range(n) for j in range(i + 1, n)]
        case "inequalities":
            return [f"t{i}.a {draw(st.sampled_from(['<', '<=', '<>', '>']))} t{j}.b" for i, j in pairs]
        case "any":
            fields = st.sampled_from("abc")
            ties = [(draw(st.integers(0, i - 1)), i) for i in range(1, n)]
            return [f"t{i}.{draw(fields)} {draw(st.sampled_from('==<'))} t{j}.{draw(fields)}" for i, j in ties]
    return []


@st.composite
def queries(draw: st.DrawFn) -> str:
    """COUNT, SUM or rows of a self-join, some copies filtered; alone, in EXISTS, in FROM or as a scalar subquery."""
    shape = draw(st.sampled_from(list(COPIES)))
    n = draw(st.integers(2, COPIES[shape]))
    where = draw(conditions(shape, n))
    where += [text.format(f"t{i}") for i in range(n) if (text := draw(st.sampled_from(FILTERS)))]
    order = draw(st.permutations(range(n)))
    source = f"FROM {', '.join(f'r AS t{i}' for i in order)}" + (f" WHERE {' AND '.join(where)}" if where else "")
    one, other = f"t{draw(st.integers(0, n - 1))}", f"t{draw(st.integers(0, n - 1))}"
    match draw(st.sampled_from(["count", "sums", "groups", "rows", "exists", "nested", "scalar"])):
        case "count":
            return f"SELECT COUNT(*) AS n {source}"
        case "sums":
            return f"SELECT SUM({one}.c * {other}.b) AS x, AVG({one}.b - {other}.c) AS y {source}"
        case "groups":
            return f"SELECT {one}.c, COUNT(*) AS n, SUM({other}.b) AS x {source} GROUP BY {one}.c"
        case "rows" if n < 4:
            return f"SELECT {one}.a, {other}.b {source}"
        case "exists":
            inner = f"SELECT 1 {source}{' AND' if where else ' WHERE'} t0.a = o.b"
            return f"SELECT o.a, o.c FROM r AS o WHERE EXISTS ({inner})"
        case "nested":
            inner = f"SELECT {one}.a AS k, COUNT(*) AS n {source} GROUP BY {one}.a"
            return f"SELECT x.n, COUNT(*) AS m FROM ({inner}) AS x, ({inner}) AS y WHERE x.k = y.k GROUP BY x.n"
    return f"SELECT COUNT(*) AS n FROM r AS o WHERE o.c < (SELECT COUNT(*) {source})"


@st.composite
def cases(draw: st.DrawFn) -> Case:
    rows = st.tuples(*[st.sampled_from([None, 0, 1, 2])] * 3)
    change = st.builds(lambda sign, row: ("r", sign, row), st.sampled_from([1, 1, -1]), rows)
    changes: list[list[Change]] = draw(st.lists(st.lists(change, min_size=2, max_size=5), min_size=2, max_size=3))
    insert_missing(changes, True)
    return Case(f"CREATE STREAM r (a INT, b INT, c INT);\n{draw(queries())};", changes)


@pytest.mark.xdist_group("self-joins")
@pytest.mark.parametrize("engine", [long(name) if name in LONG else name for name in (*ENGINES, "torn", "apart")])
@settings(max_examples=settings().max_examples // 4, suppress_health_check=[HealthCheck.too_slow])
@given(case=cases())
def oracle_self_joins(engine: str, case: Case) -> None:
    run(case, {**ENGINES, "torn": Torn, "apart": Apart}[engine]())


@pytest.mark.spark
@settings(
    max_examples=max(1, settings().max_examples // 40),
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
@given(case=cases())
def oracle_self_joins_on_spark(cluster: Any, case: Case) -> None:
    run(case, SparkEngine(cluster, 3))
