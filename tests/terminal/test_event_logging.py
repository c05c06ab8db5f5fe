"""Events of a run on stderr: a line each, as text or JSON, and none that nobody asked for."""

import json
import logging
import re
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from squallpy.base.batch_trigger import BatchTrigger
from squallpy.base.settings import Settings
from squallpy.runtime.observers.event_log import EventLog
from squallpy.runtime.observers.report import BatchReport, JoinReport, RunSummary
from squallpy.script_session import RunOptions, ScriptSession
from squallpy.testing.ignoring_sink import IgnoringSink
from tests.terminal.conftest import CLICKS, QUERY, STREAM, Squall

LOCAL = ("--backend", "local", "--batch-rows", "1")
JSON = ("--log-format", "json")
WATCHED = STREAM.replace("clicks.csv'", "in/', watch 'true'")


def events(err: str) -> list[dict[str, Any]]:
    """The events of lines of JSON, without what differs from run to run."""
    found = [json.loads(line) for line in err.splitlines()]
    for event in found:
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", event.pop("time"))
    return found


def test_a_run_is_silent_unless_asked(squall: Squall) -> None:
    assert squall("run", "q.sql", *LOCAL).err == ""
    assert squall("run", "q.sql", *LOCAL, "--log-level", "warning").err == ""


def golden_json(squall: Squall) -> None:
    ended = squall("run", "q.sql", *LOCAL, *JSON)
    start, stop = events(ended.err)
    assert start == {
        "level": "info", "logger": "squallpy.query", "event": "start", "script": "q.sql", "backend": "local",
        "checkpoint": None, "version": "0.1.0", "queries": 1, "batches": 3,
    }  # fmt: skip
    assert stop.pop("seconds") > 0
    assert stop == {
        "level": "info", "logger": "squallpy.query", "event": "stop", "reason": "end of input", "batches": 3,
        "tuples": 3,
    }  # fmt: skip


def golden_text(squall: Squall) -> None:
    ended = squall("run", "q.sql", *LOCAL, "--log-level", "debug")
    lines = [line.split(" ", 1)[1] for line in ended.err.splitlines()]
    assert lines[0] == ("info squallpy.query start script=q.sql backend=local version=0.1.0 queries=1 batches=3")
    assert re.fullmatch(r"debug squallpy\.query batch batch=0 tuples=1 rows=0 seconds=[\d.e-]+", lines[1])
    assert re.fullmatch(r'info squallpy\.query stop reason="end of input" batches=3 tuples=3 seconds=[\d.]+', lines[4])


def test_a_failure_is_an_event_with_the_status_of_its_error(room: Path, squall: Squall) -> None:
    (room / "clicks.csv").write_text(CLICKS + "eve,none,2024-01-04\n")
    ended = squall("run", "q.sql", *LOCAL, *JSON)
    start, fail = events(ended.err)
    assert (ended.status, start["event"], fail["event"], fail["level"]) == (2, "start", "fail", "error")
    assert fail["code"] == "SQ4004" and fail["text"].startswith("SQ4004 clicks.csv:5")
    assert squall("run", "none.sql", *LOCAL, *JSON).status == 2


def test_a_run_that_goes_on_says_where_and_how(room: Path, caplog: pytest.LogCaptureFixture) -> None:
    """A snapshot, what is left out, the end, the resumption; and state that has to be rebuilt."""
    caplog.set_level(logging.INFO, "squallpy")
    (room / "in").mkdir()
    (room / "q.sql").write_text(WATCHED.replace("watch", "on_error 'skip', watch") + QUERY)
    options = RunOptions("local", batch_rows=1, trigger=BatchTrigger(ends=True), checkpoint=str(room / "kept"))

    def run() -> list[tuple[str, dict[str, Any]]]:
        caplog.clear()
        session = ScriptSession(room / "q.sql", Settings(local_dir=str(room / "local"), snapshot_mb=0))
        session.run(options, IgnoringSink(), observer=EventLog())
        return [(record.message, record.__dict__["fields"]) for record in caplog.records]

    (room / "in/1.csv").write_text(CLICKS + "eve,none,2024-01-04\n")
    found = run()
    assert [name for name, _ in found if name != "snapshot"] == ["start", "left out", "stop"]
    assert {about["partition"] for name, about in found if name == "snapshot"} == {0, "result"}
    shutil.rmtree(room / "local", ignore_errors=True)
    (room / "in/2.csv").write_text(CLICKS)
    found = run()
    assert found[0] == ("resume", {"queries": 1, "batches": None, "batch": 4})
    assert {about["partition"] for name, about in found if name == "rebuild"} == {0, "result"}


def test_a_migration_begins_and_ends(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, "squallpy")
    log, still = EventLog(), JoinReport([2, 2], 10, 1.0, 1.0, epoch=0)
    moving, done = replace(still, migrated=0.5), replace(still, mapping=[1, 4], epoch=1)
    for number, join in enumerate((still, moving, moving, done, replace(done, migrated=0.1), done)):
        log.on_query_progress(BatchReport(number, join=join))
    log.on_query_progress(BatchReport(6, retries=2, join=JoinReport(heavy_keys=3)))
    log.on_query_terminated(RunSummary())
    found = [(record.levelname, record.message, getattr(record, "fields", {})) for record in caplog.records]
    assert [(fields["state"], fields["batch"]) for _, name, fields in found if name == "migration"] == [
        ("begun", 1), ("finished", 3), ("begun", 4), ("abandoned", 5), ("keys", 6),
    ]  # fmt: skip
    assert ("WARNING", "retry", {"batch": 6, "attempts": 2}) in found
