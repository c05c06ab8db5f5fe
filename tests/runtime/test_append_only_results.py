"""A join whose result only grows is printed and forgotten, if nobody asks for all of it in the end."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from squallpy.runtime.observers.report import BatchReport
from squallpy.script_session import RunOptions, ScriptSession
from squallpy.testing.ignoring_sink import IgnoringSink

STREAMS = """
CREATE STREAM r (k INT, v INT) USING csv OPTIONS (path 'r.csv');
CREATE STREAM s (k INT, w INT) USING csv OPTIONS (path 's.csv'{op});
"""
BAND = "SELECT v, w FROM r JOIN s ON ABS(r.k - s.k) <= 1;"


class Kept(IgnoringSink):
    """Every change of a run, and how many rows of its result it knows after each batch."""

    def __init__(self) -> None:
        self.rows, self.known = [], []

    def batch(self, number: int, deletes: Any, inserts: Any) -> None:
        assert not len(deletes)
        self.rows += inserts.to_pylist()

    def on_query_progress(self, report: BatchReport) -> None:
        self.known.append((report.views or {})["Q"]["records"])

    def final(self, table: pa.Table) -> None:
        self.table = table


def run(folder: Path, query: str, final: bool, op: str = "") -> Kept:
    """The script over twelve rows of r and of s in batches of five."""
    lines = [f"{i % 4},{i}" for i in range(12)]
    (folder / "r.csv").write_text("\n".join(lines) + "\n")
    (folder / "s.csv").write_text("\n".join(f"+,{line}" if op else line for line in lines) + "\n")
    (folder / "q.sql").write_text(STREAMS.format(op=op and ", op 'op'") + query)
    kept = Kept()
    options = RunOptions("local", batch_rows=5, changes=True, final=final, measured=True)
    ScriptSession(folder / "q.sql").run(options, kept, observer=kept)
    return kept


def differential_what_is_forgotten_was_printed(tmp_path: Path) -> None:
    passed, known = run(tmp_path, BAND, final=False), run(tmp_path, BAND, final=True)
    assert passed.rows == known.rows and sorted(map(str, passed.rows)) == sorted(map(str, known.table.to_pylist()))
    assert passed.known == [0] * len(passed.known) and known.known[-1] == len(known.table) > 50


@pytest.mark.parametrize(
    "query",
    ["SELECT v, COUNT(*) AS n FROM r JOIN s ON ABS(r.k - s.k) <= 1 GROUP BY v HAVING COUNT(*) > 0;",
     "SELECT DISTINCT v FROM r;", "SELECT v FROM r WHERE v NOT IN (SELECT w FROM s WHERE w > 100);"],
)  # fmt: skip
def test_other_results_are_kept(query: str, tmp_path: Path) -> None:
    (tmp_path / "q.sql").write_text(STREAMS.format(op="") + query)
    for name in "rs":
        (tmp_path / f"{name}.csv").write_text("1,1\n")
    session = ScriptSession(tmp_path / "q.sql")
    (bound,) = session.script.queries
    assert not session.compile(bound, 1, session.sizes).plan.only_grows
