"""Random queries over random streams against DuckDB after every batch, on every executor.

A query that is refused by name is passed over, and so is one that the oracle cannot run.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from squallpy.optimizer.plan import materialise_outer_joins
from squallpy.runtime.compiled.functions import CompiledPlan, compile_plan
from squallpy.runtime.local_executor import Printed
from squallpy.testing.engines import LocalEngine, MemoryEngine, PartitionedEngine, SparkEngine, VolatileEngine
from squallpy.testing.generators import Case, cases
from tests.cases import run_supported
from tests.marks import long


class Weighed(VolatileEngine):
    """Notes how many records each view holds after each batch."""

    def __init__(self, optimizer: bool = True) -> None:
        super().__init__(optimizer=optimizer)
        self.weights: list[dict[str, int]] = []

    def push(self, rows: dict[str, pa.Table]) -> pa.Table:
        changes = super().push(rows)
        self.weights.append(self.row_counts())
        return changes


class Nested(Weighed):
    """Outer joins and sums that are joined are auxiliary relations, however few."""

    def start(self, script: str, checkpoint: Path, tables: dict[str, pa.Table]) -> None:
        with patch.object(materialise_outer_joins, "MOST", 1):
            super().start(script, checkpoint, tables)


class Switched(VolatileEngine):
    """Interprets two batches, and has compiled triggers from then on, as a run whose code is compiled beside it."""

    _compiled_one: object = None

    def _step(self) -> Printed:
        if self._executor.next >= 2 and self._executor is not self._compiled_one:
            self._compiled_one = self._executor
            if isinstance(compiled := compile_plan(self._compiled.plan, "wait"), CompiledPlan):
                self._executor._use(compiled)
        return super()._step()


ENGINES: dict[str, Callable[[], MemoryEngine]] = {
    "optimized": Weighed,
    "few products": Nested,
    "plain": partial(Weighed, optimizer=False),
    "durable": LocalEngine,
    "three partitions": partial(PartitionedEngine, 3),
}
COMPILED: dict[str, Callable[[], MemoryEngine]] = {
    "whole batches": partial(VolatileEngine, compile="wait"),
    "durable": partial(LocalEngine, compile="wait"),
    "from the third batch on": Switched,
}
SIZES = st.sampled_from([None, 1, 7, 1000])  # of batches; None: as they were drawn
UNSUPPORTED = "SQ3001"
LONG = ("durable", "three partitions")  # only by `make long`


@pytest.mark.xdist_group("random queries")  # all engines have the same, and the oracle's answers
@pytest.mark.parametrize("engine", [long(name) if name in LONG else name for name in ENGINES])
@settings(max_examples=settings().max_examples // 4, suppress_health_check=[HealthCheck.too_slow])
@given(case=cases(), size=SIZES)
def oracle_random_queries(engine: str, case: Case, size: int | None) -> None:
    run(case.rebatch(size) if size else case, ENGINES[engine]())


@pytest.mark.compiled
@pytest.mark.xdist_group("random queries")
@pytest.mark.parametrize("engine", COMPILED)
@settings(max_examples=settings().max_examples * 2, suppress_health_check=[HealthCheck.too_slow])
@given(case=cases(), size=SIZES)
def oracle_random_queries_compiled(engine: str, case: Case, size: int | None) -> None:
    run(case.rebatch(size) if size else case, COMPILED[engine]())


@pytest.mark.spark
@settings(
    max_examples=max(1, settings().max_examples // 40),
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
@given(case=cases(), size=st.sampled_from([7, 1000]))
def oracle_random_queries_on_spark(cluster: Any, case: Case, size: int) -> None:
    run(case.rebatch(size), SparkEngine(cluster, 3))


def run(case: Case, engine: MemoryEngine) -> None:
    """The case after a batch of nothing; where all is deleted in the end, views hold again what they held then."""
    case = replace(case, batches=[[], *case.batches])
    run_supported(case.text(), engine, UNSUPPORTED)
    if isinstance(engine, Weighed) and case.is_empty_at_end:
        assert engine.weights[-1] == engine.weights[0]
