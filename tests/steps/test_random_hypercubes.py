"""Random joins of three and four streams on a hypercube of joiners, against DuckDB after every batch."""

import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import duckdb
import pytest
from hypothesis import HealthCheck, given, reject, settings

from squallpy.base.errors import SquallError
from squallpy.testing.engines import KilledEngine, MemoryEngine, PartitionedEngine, SparkEngine
from squallpy.testing.generators import Case
from squallpy.testing.step_tests import list_step_tests, run_steps
from squallpy.testing.theta_join_cases import theta_join_cases
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
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "case.slt"
        path.write_text(case.text())
        try:
            run_steps(path, engine, Path(folder))
        except SquallError as error:
            if error.code not in REFUSED:
                raise
            reject()
        except duckdb.Error:
            reject()
