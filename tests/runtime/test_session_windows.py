"""Sessions of many rows that come and go, beside a search through all of them."""

import random
from datetime import datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pytest

from squallpy.testing.compare_rows import rows_of
from squallpy.testing.engines import LocalEngine, MemoryEngine, PartitionedEngine
from squallpy.testing.oracle import MULT

SCRIPT = """
CREATE STREAM r (k INT, at TIMESTAMP, v INT) USING csv OPTIONS (path 'r', op '__op');
SELECT k, session_window.start AS s, session_window.end AS e, COUNT(*) AS n, SUM(v) AS total, MIN(v) AS least
FROM r GROUP BY k, SESSION_WINDOW(at, '3 seconds');
"""
START = datetime(2026, 1, 1)
SECOND = timedelta(seconds=1)


@pytest.mark.parametrize("spread", [12, 60, 600])
@pytest.mark.parametrize("engine", [LocalEngine(), PartitionedEngine(3)], ids=lambda engine: type(engine).__name__)
def property_sessions_of_rows_that_come_and_go(engine: MemoryEngine, spread: int, tmp_path: Path) -> None:
    draw = random.Random(f"{spread}")
    engine.start(SCRIPT, tmp_path, {})
    there: list = []
    for step in range(25):
        came = [(draw.choice((1, 2, None)), at(draw, spread), draw.randrange(9)) for _ in range(draw.choice((1, 12)))]
        went = draw.sample(there, len(there) if step == 20 else draw.randint(0, min(len(there), 12)))
        for row in went:
            there.remove(row)
        there += came
        changes = [(*row, 1) for row in came] + [(*row, -1) for row in went]
        engine.push({"r": batch(draw.sample(changes, len(changes)))})
        if step == 12:
            engine.restart()
        assert sorted(map(str, rows_of(engine.result()))) == sorted(map(str, sessions(there)))


def at(draw: random.Random, spread: int) -> datetime | None:
    return None if draw.random() < 0.05 else START + SECOND * draw.randrange(spread)


def sessions(rows: list) -> list:
    """The sessions of each key, from scratch."""
    out = []
    for key in {k for k, _, _ in rows}:
        found: list[list] = []
        for time, v in sorted((t, v) for k, t, v in rows if k == key and t is not None):
            if not found or time - found[-1][-1][0] > 3 * SECOND:
                found.append([])
            found[-1].append((time, v))
        for each in found:
            values = [v for _, v in each]
            out.append((key, each[0][0], each[-1][0] + 3 * SECOND, len(each), sum(values), min(values)))
    return out


def batch(rows: list) -> pa.Table:
    """Rows, each with how often it came."""
    k, at, v, mult = zip(*rows, strict=True)
    times = pa.array(at, pa.timestamp("us"))
    return pa.table({"k": pa.array(k, pa.int32()), "at": times, "v": pa.array(v, pa.int32()), MULT: list(mult)})
