"""Figures over time: reports are taken in when somebody looks, at the times at which they came."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from squallpy.runtime.observers.protocol import QueryStart
from squallpy.runtime.observers.report import BatchReport, JoinReport
from squallpy.runtime.sources.protocol import Backlog
from squallpy.runtime.sources.source_report import SourceReport
from squallpy.web.recorder import Recorder


@dataclass
class Clock:
    now: float = 1000.0
    sources: Mapping[str, SourceReport] = field(default_factory=dict)

    def recorder(self, patience: float = 60.0) -> Recorder:
        usage = {"M_R": {"records": 3, "bytes": 50}}
        return Recorder(patience, lambda: self.now, lambda: self.now, lambda: usage, lambda _: self.sources)


def test_seconds_add_up_the_batches_that_came_in_them() -> None:
    clock = Clock()
    recorder = clock.recorder()
    for number in range(20):
        clock.now = 1000.0 + number / 10
        report = BatchReport(number, tuples=10, rows=2, skipped=1, seconds=number / 100, read_rows={"r": 10})
        recorder.on_query_progress(report)
    clock.now = 1005.0
    first, second = recorder.report()["seconds"]
    assert (first["at"], first["batches"], first["tuples"], first["changed"], first["left_out"]) == (
        1000,
        10,
        100,
        20,
        10,
    )
    assert (first["p50"], first["p95"], first["max"]) == (0.04, 0.09, 0.09)
    assert (second["at"], second["read"]) == (1001, {"r": 100})
    assert first["state_bytes"] == second["state_bytes"] == 50
    assert [each["at"] for each in recorder.report(1001)["seconds"]] == [1001]
    (event,) = [each for each in recorder.report()["events"] if each["fields"]["batch"] == 3]
    assert (event["event"], event["at"], event["fields"]["skipped"]) == ("left out", 1000.3, 1)


def test_reports_are_taken_in_though_nobody_looks() -> None:
    clock = Clock()
    recorder = clock.recorder()
    for number in range(10_000):
        recorder.on_query_progress(BatchReport(number, tuples=1))
    assert len(recorder._pending) < 1000
    assert "squallpy_batches_total 10000\n" in recorder.metrics.exposition()
    assert recorder.report()["seconds"][0]["batches"] == 10_000


def test_a_run_lives_by_the_times_at_which_its_batches_ended() -> None:
    clock = Clock()
    recorder = clock.recorder(patience=10)
    recorder.on_query_started(QueryStart((), None, tuple))
    clock.now += 9
    recorder.on_query_progress(BatchReport())
    clock.now += 9
    assert recorder.metrics.trouble == ""
    clock.now += 2
    assert recorder.metrics.trouble == "no batch and no look at the input for 11 s"


def test_lag_is_that_of_the_last_look() -> None:
    clock = Clock(sources={"r": SourceReport(None, Backlog(7, 996.0)), "s": SourceReport(None, Backlog(0))})
    recorder = clock.recorder()
    recorder.on_query_progress(BatchReport())
    (second,) = recorder.report()["seconds"]
    assert (second["lag_rows"], second["lag"]) == (7, 4.0)
    clock.sources = {"r": SourceReport(None, Backlog(0)), "s": SourceReport(None, Backlog(0))}
    clock.now += 0.5
    recorder.sample(0)
    (second,) = recorder.report()["seconds"]
    assert (second["lag_rows"], second["lag"]) == (0, 0.0)


def test_mappings_and_migrations_of_joins() -> None:
    clock = Clock()
    recorder = clock.recorder()
    steps = [
        JoinReport([2, 2], ilf=10.0, epoch=0), JoinReport([2, 2], ilf=20.0, epoch=0, migrated=0.5),
        JoinReport([4, 1], ilf=15.0, epoch=1),
    ]  # fmt: skip
    for number, join in enumerate(steps):
        recorder.on_query_progress(BatchReport(number, join=join, received={"0": {"0": 5, "1": 7}}))
    report = recorder.report()
    assert [(each["batch"], each["mapping"], each["epoch"]) for each in report["mappings"]] == [
        (0, [2, 2], 0),
        (2, [4, 1], 1),
    ]
    assert report["received"] == {"0": {"0": 15, "1": 21}}
    assert report["join"]["ilf"] == 15.0
    assert [each["fields"]["state"] for each in report["events"]] == ["begun", "finished"]
