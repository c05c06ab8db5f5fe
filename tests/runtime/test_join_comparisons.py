"""Local joins compare few tuples more than they return: a logarithm of the state for each that comes."""

import random
from math import ceil, log2
from pathlib import Path

import pytest

from squallpy.runtime.observers.report import BatchReport
from squallpy.script_session import RunOptions, ScriptSession
from squallpy.testing.ignoring_sink import IgnoringSink

ROWS, BATCH = 3_000, 500
STREAMS = """
CREATE STREAM r (k INT, a INT, t VARCHAR) USING csv OPTIONS (path 'r.csv');
CREATE STREAM s (k INT, b INT, u VARCHAR) USING csv OPTIONS (path 's.csv');
"""


class Seen(IgnoringSink):
    """What each batch compared, and the pairs that it made."""

    def __init__(self) -> None:
        self.batches = []

    def on_query_progress(self, report: BatchReport) -> None:
        assert report.pairs == report.rows and report.compared is not None
        self.batches.append((report.tuples, report.compared, report.pairs))


def run(folder: Path, predicate: str, rows: int = ROWS) -> list[tuple[int, int, int]]:
    """The join of two streams of distinct tuples, batch by batch."""
    draw = random.Random(7)
    for name in "rs":
        lines = (f"{i},{draw.randrange(rows)},{draw.choice('abcdefgh')}" for i in draw.sample(range(rows), rows // 2))
        (folder / f"{name}.csv").write_text("\n".join(lines) + "\n")
    (folder / "q.sql").write_text(f"{STREAMS}SELECT r.k, s.k AS other, a, b FROM r JOIN s ON {predicate};")
    seen = Seen()
    ScriptSession(folder / "q.sql").run(
        RunOptions("local", batch_rows=BATCH, changes=True, final=False), seen, observer=seen
    )
    return seen.batches


def logarithm(records: int) -> int:
    """Of a place between records, a comparison more to see what is there, and one a level: its nodes are not full."""
    levels = ceil(log2(records + 1) / 4)
    return ceil(log2(records + 1)) + levels + 1


@pytest.mark.parametrize(
    "predicate",
    [
        "r.a = s.b",
        "r.t = s.u",
        "r.t = s.u AND r.a < s.b",
        "ABS(r.a - s.b) <= 1",
        "ABS(r.a - s.b) <= 40",
        "s.b + 30 >= r.a AND s.b - 10 < r.a",
        "r.a < s.b",
        "r.a >= s.b + 2900",
        "r.t = s.u AND ABS(r.a - s.b) <= 3",
        "ABS(r.a - s.b) <= 5 AND r.t <> s.u",
        "r.a = s.b AND r.t <> s.u",
        "r.a - s.b > 1000000",
    ],
)
def test_an_index_compares_few_more_than_it_finds(predicate: str, tmp_path: Path) -> None:
    state = 0
    for tuples, compared, pairs in run(tmp_path, predicate):
        state += tuples
        assert compared <= 3 * pairs + tuples * logarithm(state // 2), predicate
    assert state == ROWS


@pytest.mark.parametrize("predicate", ["(r.a + s.b) % 7 = 0", "r.a = s.b OR r.t = s.u"])
def test_what_has_no_index_compares_all(predicate: str, tmp_path: Path) -> None:
    assert sum(compared for _, compared, _ in run(tmp_path, predicate)) >= (ROWS // 2) ** 2
