"""Random joins of three and four streams on a hypercube of joiners, against DuckDB after every batch."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings

from squallpy.testing.engines import KilledEngine, MemoryEngine, PartitionedEngine, SparkEngine
from squallpy.testing.generators import Case, Change
from squallpy.testing.step_tests import list_step_tests, run_steps
from squallpy.testing.theta_join_cases import theta_join_cases
from tests.cases import run_supported
from tests.marks import long

ON_CUBE: dict[str, Any] = {"join_operator": "HyperCube"}
ENGINES: dict[str, Callable[[], MemoryEngine]] = {
    "eight joiners": partial(PartitionedEngine, 8, **ON_CUBE),
    "as it was bound": partial(PartitionedEngine, 5, optimizer=False, **ON_CUBE),
    "killed": partial(KilledEngine, 4, kills=0.02, **ON_CUBE),
    "chosen by cost": partial(PartitionedEngine, 16),
}
REFUSED = ("SQ3001", "SQ7003")  # what is not supported; a query that no hypercube suits


@pytest.mark.parametrize("engine", ["eight joiners", *map(long, list(ENGINES)[1:])])
@settings(
    max_examples=max(4, settings().max_examples // 8),
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)
@given(case=theta_join_cases())
def oracle_random_joins_of_many(engine: str, case: Case) -> None:
    run(case, ENGINES[engine]())


@pytest.mark.parametrize("engine", ["eight joiners", *map(long, list(ENGINES)[1:3])])
def step_windows_on_a_hypercube(engine: str, tmp_path: Path) -> None:
    made = ENGINES[engine]()
    run_steps(list_step_tests()["hypercube_windows"], made, tmp_path)
    assert made._compiled.plan.hypercube is not None


def turning_sizes() -> Case:
    """Make a case in which one stream after the other is the largest, then many rows go."""
    draw, batches, there = Random(5), list[list[Change]](), dict[str, list[Any]]()
    for largest in ("r", "r", "t", "t", "s", "s"):
        counts = {name: 60 if name == largest else 2 for name in "rst"}
        rows = [
            (name, (len(there.get(name, ())) + i, draw.choice([None, *range(150)]), f"{draw.randrange(9)}"))
            for name, n in counts.items()
            for i in range(n)
        ]
        for name, row in rows:
            there.setdefault(name, []).append(row)
        batches.append([(name, 1, row) for name, row in rows])
    batches += [[(name, -1, there[name].pop(draw.randrange(len(there[name])))) for _ in range(100)] for name in "rt"]
    batches += [[], [("r", 1, (1000 + i, i % 150, "x")) for i in range(80)], []]
    creates = "\n".join(f"CREATE STREAM {name} (id INT, x INT, w VARCHAR);" for name in "rst")
    query = (
        "SELECT r.id AS a, s.id AS b, t.id AS c FROM r, s, t "
        "WHERE ABS(r.x - s.x) <= 1 AND s.x <= t.x AND t.x < s.x + 3 AND r.w >= t.w;"
    )
    return Case(f"{creates}\n{query}", batches)


@pytest.mark.parametrize("engine", ["eight joiners", long("killed")])
def oracle_parts_that_follow_the_sizes(engine: str) -> None:
    """Bits move to the dimension of the largest stream, and answers are exact after each batch."""
    made = ENGINES[engine]()
    run(turning_sizes(), made)
    coordinator = getattr(made, "_coordinator", made)
    assert coordinator.policy.moved >= 4 and coordinator.policy.plan.cube != made._compiled.plan.hypercube.cube


@pytest.mark.long
@pytest.mark.spark
def oracle_parts_that_follow_the_sizes_on_spark(cluster: Any) -> None:
    run(turning_sizes(), SparkEngine(cluster, 4, **ON_CUBE))


@pytest.mark.long
@pytest.mark.spark
@settings(
    max_examples=max(1, settings().max_examples // 40),
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
@given(case=theta_join_cases())
def oracle_random_joins_of_many_on_spark(cluster: Any, case: Case) -> None:
    run(case, SparkEngine(cluster, 4, **ON_CUBE))


def run(case: Case, engine: MemoryEngine) -> None:
    run_supported(case.text(), engine, *REFUSED)
