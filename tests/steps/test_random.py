"""Random flat queries over random streams on the local executor, against DuckDB after every batch."""

import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings

from squallpy.testing.engines import LocalEngine
from squallpy.testing.steps import run_steps
from squallpy.testing.strategies import Case, cases


@pytest.mark.parametrize("optimizer", [True, False], ids=["optimized", "plain"])
@settings(max_examples=settings().max_examples // 4, suppress_health_check=[HealthCheck.too_slow])
@given(case=cases())
def oracle_random_queries(optimizer: bool, case: Case) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "case.slt"
        path.write_text(case.text())
        run_steps(path, LocalEngine(optimizer), Path(folder))
