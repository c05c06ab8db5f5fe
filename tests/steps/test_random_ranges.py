"""Random band joins whose joiners have ranges of what the band compares, against DuckDB after every batch."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings

from squallpy.base.records import dataclass
from squallpy.physical.joins.grid import Grid
from squallpy.physical.joins.mapping import Mapping as GridMapping
from squallpy.physical.joins.migration_controller import Sizes
from squallpy.physical.joins.range_partitioning import RangePartitioning
from squallpy.physical.plan import Plan
from squallpy.runtime.joiners.batch_plan import OnRanges, RangeMove
from squallpy.testing.band_join_cases import band_join_cases
from squallpy.testing.engines import KilledEngine, MemoryEngine, MovedEngine, PartitionedEngine, SparkEngine
from squallpy.testing.generators import Case, Change
from squallpy.testing.step_tests import list_step_tests, run_steps
from tests.cases import run_supported
from tests.marks import long

BY_RANGE: dict[str, Any] = {"join_operator": "Range", "join_epsilon": 0.01}


@dataclass(frozen=True, slots=True)
class WanderingPolicy:
    """Policy that draws other regions after most batches, at random, around positions that joiners report."""

    plan: OnRanges
    joiners: int
    seed: int = 0

    def figures(self, stats: Mapping[str, Any]) -> dict[str, Any]:
        return {}

    def plan_batch(self, rows: Sizes) -> "WanderingPolicy":
        return self

    def observe(self, stats: Mapping[str, Any]) -> "WanderingPolicy":
        draw, before = Random(self.seed), self.plan
        ranges = before.to or before.ranges
        arriving = RangeMove(tuple(before.ranges.numbers.tolist())) if before.to else None
        texts = sorted({text for counts in stats.get("ranges", {}).values() for text in counts})
        places = [(int(hash), int(last) + draw.randrange(2)) for hash, _, last in map(str.split, texts)]
        bounds = sorted(draw.sample(places, min(len(places), draw.randrange(4))))
        grids, first = list[Grid](), 0
        for shape in draw.sample([(1, 1), (1, 1), (2, 1), (1, 2), (2, 2)], len(bounds) + 1):
            grids.append(Grid(GridMapping(*shape), first))
            first += shape[0] * shape[1]
        assert first <= self.joiners
        draw.shuffle(grids)
        to = RangePartitioning(ranges.band, draw.randrange(2), tuple(bounds), tuple(grids))
        plan = OnRanges(ranges, to if draw.random() < 0.8 else None, reports=True, arriving=arriving)
        return WanderingPolicy(plan, self.joiners, self.seed + 1)


class WanderingEngine(PartitionedEngine):
    """With regions that are drawn at random."""

    def _policy(self, plan: Plan) -> Any:
        policy: Any = super()._policy(plan)
        return WanderingPolicy(replace(policy.plan, reports=True), plan.partitions)


ENGINES: dict[str, Callable[[], MemoryEngine]] = {
    "wandering": partial(WanderingEngine, 10, **BY_RANGE),
    "seven joiners": partial(PartitionedEngine, 7, **BY_RANGE),
    "as it was bound": partial(PartitionedEngine, 5, optimizer=False, **BY_RANGE),
    "killed": partial(KilledEngine, 4, kills=0.02, **BY_RANGE),
    "killed, then on others": partial(MovedEngine, 4, kills=0.05, **BY_RANGE),
    "chosen by cost": partial(KilledEngine, 16, kills=0.0),
}
WITH_BANDS = (
    "join_band", "join_band_two", "join_inequality", "join_never", "or_of_joins_2", "or_of_joins_4", "or_of_joins_8",
    "range_abs", "range_abs_days", "range_dates", "range_doubles_band", "spec_range_joins", "windows_band",
)  # fmt: skip
REFUSED = ("SQ3001", "SQ5003", "SQ7003")  # what is not supported; a bound that is the reserved BIGINT; no band


@pytest.mark.parametrize("engine", ["wandering", "seven joiners", *map(long, list(ENGINES)[2:])])
@settings(
    max_examples=max(6, settings().max_examples // 4),
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)
@given(case=band_join_cases())
def oracle_random_band_joins(engine: str, case: Case) -> None:
    run(case, ENGINES[engine]())


@pytest.mark.parametrize("name", WITH_BANDS)
def step_bands_while_regions_wander(name: str, tmp_path: Path) -> None:
    run_steps(list_step_tests()[name], WanderingEngine(10, **BY_RANGE), tmp_path)


def turning_values() -> Case:
    """Make a case whose values grow, then gather at one, then go."""
    draw, batches, there = Random(5), list[list[Change]](), dict[str, list[Any]]()
    for step in range(9):
        rows = [
            (name, (len(there.get(name, ())) + i, None if i == 3 else 20 * step + draw.randrange(40), i % 3))
            for name, n in (("r", 60), ("s", 60 if step % 2 else 15))
            for i in range(n)
        ]
        if step > 5:
            rows = [(name, (id, 400 if w else x, w)) for name, (id, x, w) in rows]
        for name, row in rows:
            there.setdefault(name, []).append(row)
        batches.append([(name, 1, row) for name, row in rows])
    batches += [[(name, -1, there[name].pop(draw.randrange(len(there[name])))) for _ in range(100)] for name in "rsr"]
    batches += [[], [("r", 1, (1000 + i, i % 150, 1)) for i in range(80)], []]
    creates = "\n".join(f"CREATE STREAM {name} (id INT, x INT, w INT);" for name in "rs")
    query = "SELECT r.id AS a, SUM(s.id) AS t FROM r, s WHERE ABS(r.x - s.x) <= 3 AND r.w <= s.w GROUP BY r.id;"
    return Case(f"{creates}\n{query}", batches)


@pytest.mark.parametrize("engine", ["seven joiners", long("killed")])
def oracle_regions_that_follow_the_values(engine: str) -> None:
    """Regions are drawn anew, a value that is frequent gets a grid, and answers are exact after each batch."""
    made = ENGINES[engine]()
    run(turning_values(), made)
    coordinator = getattr(made, "_coordinator", made)
    assert coordinator.policy.drawn >= 2


@pytest.mark.long
@pytest.mark.spark
def oracle_regions_that_follow_the_values_on_spark(cluster: Any) -> None:
    run(turning_values(), SparkEngine(cluster, 4, **BY_RANGE))


@pytest.mark.long
@pytest.mark.spark
@settings(
    max_examples=max(1, settings().max_examples // 40),
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
@given(case=band_join_cases())
def oracle_random_band_joins_on_spark(cluster: Any, case: Case) -> None:
    run(case, SparkEngine(cluster, 4, **BY_RANGE))


def run(case: Case, engine: MemoryEngine) -> None:
    run_supported(case.text(), engine, *REFUSED)
