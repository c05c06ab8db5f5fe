"""Random sessions and rows that come and go with the time of day against DuckDB after every batch, with restarts."""

from collections.abc import Callable
from datetime import datetime, timedelta
from functools import partial
from random import Random
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from squallpy.testing.engines import LocalEngine, MemoryEngine, PartitionedEngine, SparkEngine, VolatileEngine
from tests.cases import run_text
from tests.marks import long

START = datetime(2026, 1, 1)
DELAY = 5  # seconds that rows come late at most
STREAMS = f"""
CREATE STREAM r (k INT, v INT, at TIMESTAMP) TIMESTAMP BY at DELAY {DELAY} SEC;
CREATE STREAM s (j INT, w INT, since TIMESTAMP);
"""
SESSIONS = "FROM r GROUP BY k, SESSION_WINDOW(at, '3 seconds')"
QUERIES = {
    "sessions": f"SELECT k, session_window, COUNT(*) AS n, SUM(v) AS t {SESSIONS}",
    "all values": f"SELECT k, MIN(v) AS a, MAX(at) AS b, COUNT(DISTINCT v) AS d, MEDIAN(v) AS m {SESSIONS}",
    "of all": "SELECT session_window.start AS s, AVG(v) AS v "
    "FROM r WHERE v > 0 GROUP BY SESSION_WINDOW(at, '1 second')",
    "long sessions": f"SELECT k, session_window.end AS e {SESSIONS} HAVING COUNT(*) > 2",
    "of sessions": f"SELECT n, COUNT(*) AS c, MAX(k) AS k FROM (SELECT k, COUNT(*) AS n {SESSIONS}) t GROUP BY n",
    "joined": "SELECT w, session_window, COUNT(*) AS n "
    "FROM r JOIN s ON k = j AND v < w GROUP BY w, SESSION_WINDOW(at, '2 seconds')",
    "outer": "SELECT k, COUNT(w) AS n FROM r LEFT JOIN s ON k = j GROUP BY k, SESSION_WINDOW(since, '4 seconds')",
    "beside": "SELECT x.k, x.s, s.w "
    f"FROM (SELECT k, session_window.start AS s {SESSIONS}) x JOIN s ON x.k = s.j AND s.since >= x.s",
    "ranked": "SELECT k, n, RANK() OVER (PARTITION BY k ORDER BY n DESC) AS p "
    f"FROM (SELECT k, COUNT(*) AS n {SESSIONS}) t",
    "last": "SELECT k, v FROM r WHERE v >= 0 SESSION 3 SEC",
    "of the last": "SELECT k, COUNT(*) AS n, SUM(v) AS t, MIN(at) AS m FROM r GROUP BY k SESSION 2 SEC",
    "last pairs": "SELECT a.v, b.v AS w FROM r AS a JOIN r AS b ON a.k = b.k AND a.v < b.v SESSION 3 SEC",
    "sessions of the last": "SELECT k, session_window.start AS s, COUNT(*) AS n "
    "FROM r GROUP BY k, SESSION_WINDOW(at, '1 second') SESSION 4 SEC",
    "recent": "SELECT k, COUNT(*) AS n, MAX(v) AS m FROM r WHERE at > NOW() - INTERVAL '4' SECOND GROUP BY k",
    "begun": "SELECT v FROM r WHERE at <= NOW()",
    "at work": "SELECT DISTINCT k FROM r WHERE NOW() BETWEEN at AND at + INTERVAL '3' SECOND",
    "both recent": "SELECT k, v, w "
    "FROM r JOIN s ON k = j WHERE at > NOW() - INTERVAL '6' SECOND AND since >= NOW() - INTERVAL '2' SECOND",
    "not lately": "SELECT k, v FROM r WHERE NOT EXISTS (SELECT * FROM s "
    "WHERE j = k AND since > NOW() - INTERVAL '4' SECOND)",
    "with lately": "SELECT k, w FROM r LEFT JOIN (SELECT * FROM s "
    "WHERE since >= NOW() - INTERVAL '5' SECOND) x ON j = k",
    "sessions of recent": "SELECT k, session_window, SUM(v) AS t "
    "FROM r WHERE at > NOW() - INTERVAL '8' SECOND GROUP BY k, SESSION_WINDOW(at, '2 seconds')",
}
LONG = ("durable", "two partitions")  # only by `make long`
ENGINES: dict[str, Callable[[], MemoryEngine]] = {
    "durable": LocalEngine,
    "plain": partial(VolatileEngine, optimizer=False),
    "two partitions": partial(PartitionedEngine, 2),
    "three partitions": partial(PartitionedEngine, 3),
}


def case(seed: int, query: str, size: int) -> str:
    """Write a step test of random batches: times go up, but for rows that are late, and some rows are deleted."""
    random, there, lines, now = Random(seed), list[str](), [STREAMS, f"{QUERIES[query]};"], START
    for number in range(random.randint(1, 30)):
        if number % size == 0:
            now = max(now, START + timedelta(seconds=number * random.choice([1, 1, 2])))
            lines += ["restart"] * (random.random() < 0.1) + [f"batch at {now}"]
        if there and random.random() < 0.25:
            lines.append(f"- {there.pop(random.randrange(len(there)))}")
            continue
        late = random.choice([0, 0, 0.5, 1, 2, 3, DELAY])
        time = f"'{START + timedelta(seconds=number - late)}'" if random.random() < 0.95 else "NULL"
        k, v = random.choice(["1", "1", "2", "NULL"]), random.choice(["-1", "0", "1", "2", "NULL"])
        row = f"{random.choice('rrs')} {k}, {v}, {time}"
        there.append(row)
        lines.append(f"+ {row}")
    if random.random() < 0.5:
        lines += [f"batch at {now + timedelta(seconds=60)}", *(f"- {row}" for row in there)]
    return "\n".join(lines) + "\n"


CASES = given(
    seed=st.integers(0, 2**32), query=st.sampled_from(sorted(QUERIES)), size=st.sampled_from([1, 1, 3, 7, 1000])
)


@pytest.mark.xdist_group("random times")  # all engines have the same, and the oracle's answers
@pytest.mark.parametrize("engine", [long(name) if name in LONG else name for name in ENGINES])
@settings(max_examples=max(1, settings().max_examples // 4), suppress_health_check=[HealthCheck.too_slow])
@CASES
def oracle_random_times(engine: str, seed: int, query: str, size: int) -> None:
    run_text(case(seed, query, size), ENGINES[engine]())


@pytest.mark.spark
@settings(
    max_examples=max(1, settings().max_examples // 40),
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
@CASES
def oracle_random_times_on_spark(cluster: Any, seed: int, query: str, size: int) -> None:
    run_text(case(seed, query, max(size, 7)), SparkEngine(cluster, 3))
