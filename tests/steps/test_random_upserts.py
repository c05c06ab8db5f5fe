"""Random upserts and tombstones against DuckDB after every batch, on every executor, with restarts."""

from collections.abc import Callable
from functools import partial
from random import Random
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from squallpy.testing.engines import (
    LocalEngine,
    MemoryEngine,
    MovedEngine,
    PartitionedEngine,
    SparkEngine,
    VolatileEngine,
)
from tests.cases import run_text

STREAMS = """
CREATE STREAM r (id INT, g VARCHAR, v INT, x DOUBLE, d DECIMAL(8,2), wide DECIMAL(30,2), t DATE, m TIMESTAMP, b BOOLEAN,
    big BIGINT NOT NULL, PRIMARY KEY (id)) USING csv OPTIONS (path 'r', changelog 'upsert', tombstone 'op');
CREATE STREAM s (k VARCHAR, n BIGINT, id INT, w INT, PRIMARY KEY (k, n))
    USING csv OPTIONS (path 's', changelog 'upsert', tombstone 'op');
CREATE STREAM u (id INT, a INT);
"""
QUERIES = {
    "rows": "SELECT * FROM r",
    "keys": "SELECT id FROM r",
    "count": "SELECT COUNT(*) AS n FROM r",
    "filter": "SELECT g, v FROM r WHERE v > 2 AND g <> 'b'",
    "groups": "SELECT g, b, COUNT(*), SUM(v), SUM(d), MAX(wide), MIN(m), AVG(x) FROM r GROUP BY g, b",
    "dates": "SELECT t, COUNT(DISTINCT v), MAX(g), SUM(wide), SUM(big) FROM r GROUP BY t HAVING COUNT(*) > 1",
    "self join": "SELECT a.id, b.id AS other FROM r a JOIN r b ON a.g = b.g AND a.v < b.v",
    "two": "SELECT r.g, SUM(s.w) AS w FROM r JOIN s ON r.id = s.id WHERE s.n < 3 GROUP BY r.g",
    "plain": "SELECT r.g, u.a FROM r JOIN u ON r.id = u.id",
    "outer": "SELECT r.id, s.k, s.w FROM r LEFT JOIN s ON r.id = s.id AND r.v = s.w",
    "exists": "SELECT id FROM r WHERE NOT EXISTS (SELECT 1 FROM s WHERE s.id = r.id AND s.w > r.v)",
    "exploded": "SELECT part, COUNT(*) AS n FROM r LATERAL VIEW EXPLODE(SPLIT(g, 'b')) e AS part GROUP BY part",
    "both": "SELECT id, g FROM r UNION ALL SELECT id, part FROM r LATERAL VIEW EXPLODE(SPLIT(g, 'b')) e AS part",
    "ranked": "SELECT g, id, ROW_NUMBER() OVER (PARTITION BY g ORDER BY v, id) AS n FROM r",
    "top": "SELECT id, v FROM r ORDER BY v DESC, id LIMIT 3",
    "above average": "SELECT id FROM r WHERE v > (SELECT AVG(w) FROM s)",
}
ENGINES: dict[str, Callable[[], MemoryEngine]] = {
    "durable": LocalEngine,
    "plain": partial(VolatileEngine, optimizer=False),
    "three partitions": partial(PartitionedEngine, 3),
    "killed": partial(MovedEngine, 3),
    "on grids": partial(PartitionedEngine, 4, join_operator="auto"),
}


def case(seed: int, query: str) -> str:
    """Write a step test of random batches."""
    random = Random(seed)
    lines = [STREAMS, f"{QUERIES[query]};"]
    for _ in range(random.randint(2, 5)):
        lines.append("batch")
        lines += [row(random) for _ in range(random.choice([0, 1, 5, 25]))]
        lines += ["restart"] * (random.random() < 0.3)
    return "\n".join(lines) + "\n"


def row(random: Random) -> str:
    """Write a row of some stream: values are few, so that rows are replaced, repeated and deleted."""

    def one(*values: str) -> str:
        return random.choice(values)

    sign = one("+", "+", "+", "-")
    match one("r", "r", "r", "s", "u"):
        case name if name != "u" and random.random() < 0.03:
            return f"truncate {name}"
        case "r":
            values = [one("NULL", "'a'", "'b'", "'abc'", "''"), one("NULL", "1", "2", "3", "-2147483648", "2147483647")]
            values += [
                one("NULL", "0.5", "-1.25"),
                one("NULL", "1.50", "-999999.99"),
                one("NULL", f"{'9' * 20}.25", "-3"),
            ]
            values += [one("NULL", "2026-01-31", "0001-01-01"), one("NULL", "2026-01-31 10:00:00.000001")]
            values += [one("NULL", "true", "false"), one("0", "9007199254740993", "-7")]
            return f"{sign} r {random.randint(1, 6)}, {', '.join(values if sign == '+' else ['NULL'] * 9)}"
        case "s":
            values = [one("NULL", "1", "2", "3"), one("NULL", "1", "2", "3")]
            key = [one("'x'", "'y'", "''"), one("1", "2", "3", "-1")]
            return f"{sign} s {', '.join([*key, *(values if sign == '+' else ['NULL'] * 2)])}"
    return f"+ u {random.randint(1, 6)}, {random.randint(1, 3)}"


@pytest.mark.xdist_group("random upserts")  # all engines have the same, and the oracle's answers
@pytest.mark.parametrize("engine", ENGINES)
@settings(max_examples=settings().max_examples // 4, suppress_health_check=[HealthCheck.too_slow])
@given(seed=st.integers(0, 2**32), query=st.sampled_from(sorted(QUERIES)))
def oracle_random_upserts(engine: str, seed: int, query: str) -> None:
    run_text(case(seed, query), ENGINES[engine]())


@pytest.mark.spark
@settings(
    max_examples=max(1, settings().max_examples // 40),
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
@given(seed=st.integers(0, 2**32), query=st.sampled_from(sorted(QUERIES)))
def oracle_random_upserts_on_spark(cluster: Any, seed: int, query: str) -> None:
    run_text(case(seed, query), SparkEngine(cluster, 3))
