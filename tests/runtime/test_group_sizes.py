"""Views that are looked up by groups: small ones whose rows come together, parts of them, then large ones.

A pool begins with an index by runs of records, and goes over to one by record where groups are large.
"""

from collections.abc import Callable
from functools import partial
from random import Random

import pytest

from squallpy.runtime.kernels.pool import Pool
from squallpy.testing.engines import LocalEngine, MemoryEngine, PartitionedEngine, VolatileEngine
from tests.cases import run_text

SCRIPT = """CREATE STREAM r (a INT, b INT, v INT);
CREATE STREAM s (a INT, c INT);
CREATE STREAM t (b INT, d INT);
SELECT c, d, COUNT(*) AS n, SUM(v) AS v FROM r JOIN s ON r.a = s.a JOIN t ON r.b = t.b GROUP BY c, d;
"""
ENGINES: dict[str, Callable[[], MemoryEngine]] = {
    "local": VolatileEngine,
    "compiled": partial(VolatileEngine, compile="wait"),
    "durable": LocalEngine,
    "two partitions": partial(PartitionedEngine, 2),
}


def steps(random: Random) -> str:
    """Write a step test."""
    lines, there = [SCRIPT], list[str]()

    def batch(*changes: str) -> None:
        lines.extend(["batch", *changes])
        there.extend(change[2:] for change in changes if change[0] == "+")
        for change in changes:
            if change[0] == "-":
                there.remove(change[2:])

    def leave(share: float) -> list[str]:
        return [f"- {row}" for row in random.sample(there, int(share * len(there)))]

    batch(*(f"+ s {a}, {a % 3}" for a in range(40)), *(f"+ t {b}, {b % 4}" for b in range(0, 60, 2)))
    for start in range(0, 40, 10):
        groups = range(start, start + 10)
        batch(*(f"+ r {a}, {random.randrange(60)}, {i}" for a in groups for i in range(random.randint(1, 7))))
        batch(*leave(0.3), f"+ r {start}, {start}, 1")
    for part in range(8):
        batch(*(f"+ r {1 + i % 2}, {100 + 50 * part + i}, {i}" for i in range(50)), f"+ t {100 + 50 * part}, 7")
    lines.append("restart")
    batch(*leave(0.5), "+ s 1, 9", "+ s 2, 9")
    batch(*leave(1))
    batch("+ r 1, 1, 1", "+ s 1, 1", "+ t 1, 1")
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("seed", range(2))
def oracle_groups_grow(engine: str, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    gone_over, before = list[int](), Pool.index_by_record

    def noted(pool: Pool) -> None:
        entries = pool.entries
        before(pool)
        gone_over.append(pool.entries - entries)

    monkeypatch.setattr(Pool, "index_by_record", noted)
    run_text(steps(Random(seed)), ENGINES[engine]())
    assert max(gone_over) > 0
