"""Traces, and profiles that add them up."""

import json
from pathlib import Path

import pytest

from squallpy.base.errors import SquallError
from squallpy.base.timing import SILENT, Trace
from squallpy.runtime.observers.profile import Profile
from squallpy.runtime.spark.micro_batch_loop import BatchTimes
from squallpy.runtime.spark.timeline import timeline
from squallpy.runtime.spark.worker_tasks import TaskProfile


def test_spans_are_within_spans() -> None:
    trace = Trace()
    for _ in range(2):
        with trace("a"), trace("b"):
            pass
    with trace("b"):
        pass
    taken = trace.take_seconds()
    assert list(taken) == [("a", "b"), ("a",), ("b",)]
    assert taken["a",] >= taken["a", "b"] > 0
    assert trace.take_seconds() == {}


def test_a_span_ends_with_what_is_raised() -> None:
    trace = Trace()
    with pytest.raises(ValueError), trace("a"):
        raise ValueError
    with trace("b"):
        pass
    assert set(trace.take_seconds()) == {("a",), ("b",)}


def test_silence() -> None:
    with SILENT("a"):
        pass
    assert SILENT.take_seconds() == {}


def test_a_flame_has_each_second_once(tmp_path: Path) -> None:
    profile = Profile(tmp_path / "p.json")
    profile.add(0, {("job",): 9.0, ("job", "stage 1"): 4.0})
    profile.add(1, {("job",): 2.0, ("job", "stage 1"): 1.5, ("print",): 0.5})
    profile.add(2, {("job",): 4.0, ("job", "stage 1"): 1.0})
    profile.write()
    told = json.loads((tmp_path / "p.json").read_text())
    names = [frame["name"] for frame in told["shared"]["frames"]]
    whole, slowest = (
        {"/".join(names[i] for i in way): weight for way, weight in zip(p["samples"], p["weights"], strict=True)}
        for p in told["profiles"]
    )
    assert whole == {"job": 8.5, "job/stage 1": 6.5, "print": 0.5}
    assert slowest == {"job": 3.0, "job/stage 1": 1.0}
    assert [p["name"] for p in told["profiles"]] == ["3 batches", "the slowest after the first, 2"]
    assert profile.table() == [
        "                            median        p95  share",
        "a batch after the first  3250.0 ms  4000.0 ms  100%",
        "  job                    3000.0 ms  4000.0 ms   92%",
        "    stage 1              1250.0 ms  1500.0 ms   38%",
        "  print                   250.0 ms   500.0 ms    8%",
    ]


def test_a_file_that_cannot_be_written_is_said_before_the_run(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(SquallError, match="SQ7005 cannot write"):
        Profile(tmp_path / "file" / "p.json")


def test_a_job_is_laid_out_by_the_clock_and_its_slowest_tasks() -> None:
    profiles = (
        TaskProfile(0, 10.25, 10.5, {("read r",): 0.125}),
        TaskProfile(0, 10.25, 10.75, {("read r",): 0.375}),
        TaskProfile(1, 11.0, 11.5, {("log",): 0.25}),
    )
    spark = {"durationMs": {"walCommit": 100, "commitOffsets": 300, "addBatch": 2000}}
    times = BatchTimes(1, 2.0, 0.5, 0.5, 0.5, spark, began=10.0, built=0.125, profiles=profiles)
    assert {"/".join(way): seconds for way, seconds in timeline(times).items() if seconds} == {
        "Spark between batches": 0.5,
        "Spark between batches/write-ahead log": 0.1,
        "Spark between batches/commit": 0.3,
        "job": 2.0,
        "job/describe to Spark": 0.125,
        "job/plan, schedule, wake Python": 0.125,
        "job/stage 1": 0.5,
        "job/stage 1/read r": 0.375,
        "job/exchange 1": 0.25,
        "job/stage 2": 0.5,
        "job/stage 2/log": 0.25,
        "job/gather": 0.5,
    }
