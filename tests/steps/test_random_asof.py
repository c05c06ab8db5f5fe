"""Random ASOF joins against DuckDB after every batch, with rows that go, late ones, and restarts."""

from collections.abc import Callable
from functools import partial
from random import Random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from squallpy.testing.engines import LocalEngine, MemoryEngine, PartitionedEngine, VolatileEngine
from tests.cases import run_text

STREAMS = "CREATE STREAM r (k INT, t INT, v INT);\nCREATE STREAM s (k INT, t INT, w INT);\n"
QUERIES = {
    "last": "SELECT r.k, r.t, v, s.t AS at, w FROM r ASOF JOIN s ON r.k = s.k AND r.t >= s.t",
    "last before, or none": "SELECT r.k, r.t, v, s.t AS at, w FROM r ASOF LEFT JOIN s ON r.k = s.k AND s.t < r.t",
    "next": "SELECT r.k, COUNT(*) AS n, SUM(v) AS v, MIN(w) AS w "
    "FROM r ASOF JOIN s ON r.t <= s.t AND r.k = s.k GROUP BY r.k",
    "using": "SELECT * FROM r ASOF LEFT JOIN s USING (k, t)",
    "of sums": "SELECT v, w "
    "FROM (SELECT k, t, SUM(v) AS v FROM r GROUP BY k, t) AS x ASOF JOIN s USING (k, t) WHERE v > 0",
    "lateral": "SELECT r.k, r.t, v, at, w FROM r, "
    "LATERAL (SELECT s.t AS at, w FROM s WHERE r.k = s.k AND s.t <= r.t ORDER BY s.t DESC, w LIMIT 1) x",
    "left lateral": "SELECT r.k, v, w + r.t AS w FROM r LEFT JOIN "
    "LATERAL (SELECT w, s.k FROM s WHERE s.t > r.t AND s.k = r.k AND w <> 2 ORDER BY s.t, w, s.k LIMIT 1) x ON TRUE",
    "twice": "SELECT r.v, s.w, x.v AS u "
    "FROM r ASOF LEFT JOIN s USING (k, t) ASOF LEFT JOIN r AS x ON s.k = x.k AND s.t > x.t",
}
ENGINES: dict[str, Callable[[], MemoryEngine]] = {
    "local": VolatileEngine,
    "durable": LocalEngine,
    "plain": partial(VolatileEngine, optimizer=False),
    "two partitions": partial(PartitionedEngine, 2),
}


def case(seed: int, query: str, size: int) -> str:
    """Write a step test of random batches. Two rows of a stream with a key and a time are the same row."""
    random, there, lines = Random(seed), list[str](), [STREAMS, f"{QUERIES[query]};"]
    for number in range(random.randint(1, 40)):
        if number % size == 0:
            lines += ["restart"] * (random.random() < 0.1) + ["batch"]
        if there and random.random() < 0.3:
            lines.append(f"- {there.pop(random.randrange(len(there)))}")
            continue
        key, time = random.choice(["1", "1", "2", "NULL"]), random.choice([*map(str, range(12)), "NULL"])
        value = "NULL" if time == "NULL" else str((int(time) * 7 + len(key)) % 5 - 1)
        there.append(f"{random.choice('rs')} {key}, {time}, {value}")
        lines.append(f"+ {there[-1]}")
    return "\n".join(lines) + "\n"


@pytest.mark.xdist_group("random asof")  # all engines have the same, and the oracle's answers
@pytest.mark.parametrize("engine", ENGINES)
@settings(max_examples=max(1, settings().max_examples // 8), suppress_health_check=[HealthCheck.too_slow])
@given(seed=st.integers(0, 2**32), query=st.sampled_from(sorted(QUERIES)), size=st.sampled_from([1, 3, 7, 1000]))
def oracle_random_asof(engine: str, seed: int, query: str, size: int) -> None:
    run_text(case(seed, query, size), ENGINES[engine]())
