"""Sinks that are data sources of PySpark: told what Spark would tell them, and what they raise is one line."""

import json
import re
import sys
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

from squallpy.base.entry_points import SINKS
from squallpy.terminal.cli import main
from tests.base.test_entry_points import install
from tests.sinks.conftest import QUERY, ROWS, STREAM, Run
from tests.sinks.memory_sinks import EVENTS, FAILS

PAGE = (Path(__file__).parents[2] / "docs" / "sinks.md").read_text(encoding="utf-8")
SINK = "CREATE SINK o USING python OPTIONS (class 'tests.sinks.memory_sinks.{}', mode '{}', Url 'x') AS {};"


@pytest.fixture(autouse=True)
def told(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """What a test is told is its own."""
    monkeypatch.setattr(sys, "path", list(sys.path))
    EVENTS.clear()
    FAILS.clear()
    yield
    FAILS.clear()


def test_rows_of_batches(run: Run) -> None:
    run(SINK.format("Rows", "changes", "SELECT zip, v FROM f WHERE v > 5"))
    name = "tests.sinks.memory_sinks.Rows"
    assert EVENTS[:2] == [
        ("__init__", {"class": name, "mode": "changes", "url": "x"}),
        ("streamWriter", "struct<batch:bigint,op:string,zip:string,v:bigint>", False),
    ]
    assert EVENTS[2:] == [
        ("write", 0, "0", []), ("commit", [0], 0),
        ("write", 0, "1", []), ("commit", [0], 1),
        ("write", 0, "2", [{"batch": 2, "op": "+", "zip": "a", "v": 6}]), ("commit", [1], 2),
        ("write", 0, "3", [{"batch": 3, "op": "+", "zip": "d", "v": 7}]), ("commit", [1], 3),
    ]  # fmt: skip


def test_record_batches_and_types(room: Path, run: Run) -> None:
    (room / "t.csv").write_text("2024-05-01 10:00:00,1.50,2024-05-02,true\n")
    stream = "CREATE STREAM f (at TIMESTAMP, d DECIMAL(10,2), day DATE, b BOOLEAN) USING csv OPTIONS (path 't.csv');\n"
    for name in ("Rows", "Arrow"):
        EVENTS.clear()
        run(SINK.format(name, "append", "SELECT *, 1.5 AS y FROM f"), stream=stream)
        schema = "struct<at:timestamp,d:decimal(10,2),day:date,b:boolean,y:decimal(2,1)>"
        assert EVENTS[1] == ("streamWriter", schema, False)
        (row,) = EVENTS[2][-1]
        assert str(row["d"]) == "1.50" and str(row["day"]) == "2024-05-02" and row["b"] is True
        assert row["at"].timestamp() == 1714557600


def test_the_final_result(run: Run) -> None:
    run(SINK.format("Rows", "final", f"{QUERY} ORDER BY zip LIMIT 2"))
    result = [("a", 3, 9), ("b", 2, 8)]
    schema = "struct<zip:string,n:bigint,s:bigint>"
    assert EVENTS[1:] == [("writer", schema, True), ("write", result), ("commit", [None])]
    EVENTS.clear()
    run(SINK.format("Arrow", "final", f"{QUERY} ORDER BY zip LIMIT 2"))
    assert EVENTS[2] == ("write", [dict(zip(("zip", "n", "s"), row, strict=True)) for row in result])


def test_the_key_of_upserts_is_an_option(run: Run) -> None:
    run(SINK.format("Rows", "upsert", QUERY))
    assert EVENTS[0][1]["key"] == "zip" and EVENTS[-2][-1] == [{"batch": 3, "op": "+", "zip": "d", "n": 1, "s": 7}]


@pytest.mark.parametrize("method", ["__init__", "streamWriter", "write", "commit"])
def fault_a_sink_that_raises(method: str, run: Run) -> None:
    """… after which the run goes on where it was."""
    script = SINK.format("Arrow", "changes", QUERY)
    options = ("--checkpoint", "kept")
    FAILS[method] = "no\nsuch table"
    said = run(script, *options, status=2)
    where = f"{method} of batch 0" if method in ("write", "commit") else method
    assert (
        said
        == f"SQ7006 q.sql:2:13: the sink o raised ValueError in {where}: no such table, the batch before is whole\n"
    )
    if method in ("write", "commit"):
        assert EVENTS[-1] == ("abort", [None] if method == "write" else [1], 0)
    FAILS.clear()
    EVENTS.clear()
    assert run(script, *options) == ""
    assert [event[-1] for event in EVENTS if event[0] == "commit"] == [0, 1, 2, 3]
    FAILS[method] = "again"
    if method in ("__init__", "streamWriter"):
        assert "ValueError" in run(script, *options, status=2)


@pytest.mark.parametrize(
    ("sink", "mode", "message"),
    [
        ("Rws", "changes", 'SQ7002 q.sql:2:37: the module tests.sinks.memory_sinks has no "Rws", did you mean "Rows"?'),
        ("NoSource", "changes", "SQ7002 q.sql:2:37: tests.sinks.memory_sinks.NoSource is no class that derives from"),
        ("OnlyResults", "changes", "SQ7002 q.sql:2:83: tests.sinks.memory_sinks.OnlyResults has no streamWriter, "
                                   "which mode 'changes' needs, define it, or write mode 'final'"),
    ],
)  # fmt: skip
def fault_a_class_that_is_no_sink(sink: str, mode: str, message: str, run: Run) -> None:
    said = run(SINK.format(sink, mode, QUERY), status=2)
    assert said.startswith(message), said


def fault_a_module_that_is_not_there_or_torn(room: Path, run: Run) -> None:
    script = f"CREATE SINK o USING python OPTIONS (class '{{}}', mode 'changes') AS {QUERY};"
    (room / "torn_sink.py").write_text("1 / 0\n")
    for name, message in (
        ("absent_sink.Sink", 'SQ7002 q.sql:2:37: there is no module "absent_sink", put it beside the script, or'),
        ("torn_sink.Sink", "SQ7006 q.sql:2:13: the sink o raised ZeroDivisionError in import: division by zero"),
        ("Sink", "SQ7002 q.sql:2:37: OPTIONS (class 'Sink') names nothing in a module"),
    ):
        assert run(script.format(name), status=2).startswith(message)
    said = run(f"CREATE SINK o USING python OPTIONS (mode 'changes') AS {QUERY};", status=2)
    assert said == "SQ7002 q.sql:2:13: sink \"o\" has no class, write OPTIONS (class '...')\n"


def documented() -> tuple[str, str]:
    """The sink of docs/sinks.md, and its script."""
    found = re.search(r"^```python\n(.*?)^```\n\n```sql\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    assert found
    return found[1], found[2]


ANSWER = {"batch": 3, "rows": {"a": 3, "b": 2, "c": 1, "d": 1}}


def test_the_documented_sink(room: Path, run: Run) -> None:
    text, script = documented()
    assert sum(1 for line in text.splitlines() if line) <= 22
    (room / "totals_sink.py").write_text(text)
    (room / "f.csv").write_text("".join(f"{zip},{v}\n" for _, zip, v in ROWS))
    assert run(script, stream="") == ""
    assert json.loads((room / "totals.json").read_text()) == ANSWER


def test_a_sink_of_a_package(room: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    text, script = documented()
    install(room, "packaged_sink", "Totals = packaged_sink:Totals", text, SINKS)
    monkeypatch.setattr(sys, "path", [str(room), *sys.path])
    (room / "f.csv").write_text("".join(f"{zip},{v}\n" for _, zip, v in ROWS))
    script = script.replace("USING python", "USING totals").replace("class 'totals_sink.Totals', ", "")
    assert run(script, stream="") == "" and json.loads((room / "totals.json").read_text()) == ANSWER
    said = run(script.replace("totals OPT", "total OPT"), stream="", status=2)
    assert 'unknown format of a sink "total", did you mean "totals"?' in said


@pytest.mark.spark
def test_on_spark(cluster: Any, room: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from squallpy.runtime.spark import executor

    monkeypatch.setattr(executor, "start", lambda *_: nullcontext(cluster))
    monkeypatch.chdir(room)
    (room / "q.sql").write_text(STREAM + SINK.format("Rows", "upsert", QUERY))
    assert main(["run", "q.sql", "--batch-rows", "2"]) == 0
    assert [event[-1] for event in EVENTS if event[0] == "commit"] == [0, 1, 2, 3]
    assert EVENTS[-2][-1] == [{"batch": 3, "op": "+", "zip": "d", "n": 1, "s": 7}]
    EVENTS.clear()
    assert main(["run", "q.sql", "--batch-rows", "4", "--set", "sinks.part_rows=1"]) == 0
    assert not [event for event in EVENTS if event[0] == "write"], "tasks have written, in processes of their own"
    assert [(sum(sent), batch) for method, sent, batch in EVENTS[2:] if method == "commit"] == [(3, 0), (3, 1)]
