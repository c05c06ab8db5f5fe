"""Random flat queries over random streams against DuckDB after every batch, on every executor that needs no JVM."""

import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from squallpy.testing.engines import LocalEngine, MemoryEngine, PartitionedEngine, VolatileEngine
from squallpy.testing.steps import run_steps
from squallpy.testing.strategies import Case, cases

ENGINES: dict[str, Callable[[], MemoryEngine]] = {
    "optimized": VolatileEngine,
    "plain": partial(VolatileEngine, optimizer=False),
    "durable": LocalEngine,
    "three partitions": partial(PartitionedEngine, 3),
}


@pytest.mark.parametrize("engine", ENGINES)
@settings(max_examples=settings().max_examples // 4, suppress_health_check=[HealthCheck.too_slow])
@given(case=cases(), size=st.sampled_from([None, 1, 7, 1000]))
def oracle_random_queries(engine: str, case: Case, size: int | None) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "case.slt"
        path.write_text((case.rebatched(size) if size else case).text())
        run_steps(path, ENGINES[engine](), Path(folder))
