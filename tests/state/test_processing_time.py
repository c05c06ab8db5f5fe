"""Windows that processing time closes: by a clock of the test's own, over kills, at no cost when nothing is left."""

import json
import threading
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from squallpy.base.batch_trigger import BatchTrigger
from squallpy.base.settings import Settings
from squallpy.runtime.checkpoint.checksummed_record import read_record
from squallpy.runtime.checkpoint.durable_folder import open_durable
from squallpy.runtime.observers.report import BatchReport
from squallpy.script_session import RunOptions, ScriptSession
from squallpy.testing.ignoring_sink import IgnoringSink

STREAM = """
CREATE STREAM {name} (k BIGINT, at TIMESTAMP) USING csv OPTIONS (path '{name}/', watch 'true'{options})
    TIMESTAMP BY at;
"""
COUNT = "SELECT COUNT(*) AS n FROM r RANGE 5 MIN;"
VISIBLE = "SELECT COUNT(*) AS n FROM r WHERE at BETWEEN NOW() - INTERVAL '5' MINUTE AND NOW();"
TEN = 1_767_261_600_000_000  # 2026-01-01 10:00:00
BOTH = "SELECT COUNT(*) AS n FROM (SELECT k FROM r UNION ALL SELECT k FROM s) AS u RANGE 5 MIN;"


class Killed(Exception):
    """Simulated kill of the process."""


class Clock(threading.Event):
    """A clock that goes on when a run waits, by `step` seconds, until it stops the run."""

    def __init__(self, until: float, step: float = 1.0) -> None:
        super().__init__()
        self.now, self.until, self.step, self.looks = 0.0, until, step, 0

    def __call__(self) -> float:
        return self.now

    def wait(self, timeout: float | None = None) -> bool:
        self.now, self.looks = self.now + self.step, self.looks + 1
        if self.now >= self.until:
            self.set()
        return self.is_set()


class Seen(IgnoringSink):
    """The count after each batch that changes it, and the reports."""

    def __init__(self) -> None:
        self.counts, self.reports = dict[int, list[int]](), list[BatchReport]()
        self.dies_at: int | None = None

    def batch(self, number: int, deletes: Any, inserts: Any) -> None:
        counts = inserts.column("n").to_pylist()
        if counts or number not in self.counts:
            assert self.counts.get(number, counts) == counts, "a batch that comes again is the same"
            self.counts[number] = counts
        if number == self.dies_at:
            self.dies_at = None
            raise Killed

    def on_query_progress(self, report: BatchReport) -> None:
        self.reports.append(report)

    @property
    def answers(self) -> list[int]:
        """The answers, one after the other."""
        return [count for number in sorted(self.counts) for count in self.counts[number]]

    @property
    def late(self) -> list[str]:
        return [row for report in self.reports for rows in report.late_rows.values() for row in rows]


class Room:
    """A script, the folders of its streams, and a checkpoint."""

    def __init__(self, folder: Path, backend: str, query: str, **options: str) -> None:
        self.folder, self.backend, self.files = folder, backend, 0
        creates = [STREAM.format(name=name, options=more) for name, more in options.items()]
        (folder / "q.sql").write_text("".join(creates) + query)
        for name in options:
            (folder / name).mkdir()

    def put(self, stream: str, *times: str) -> None:
        self.files += 1
        rows = "".join(f"{self.files},2026-01-01 {time}\n" for time in times)
        (self.folder / stream / f"{self.files}.csv").write_text(rows)

    def run(self, clock: Clock, seen: Seen, checkpoint: bool = True) -> None:
        session = ScriptSession(self.folder / "q.sql", Settings(local_dir=str(self.folder / "local")))
        kept = str(self.folder / "kept") if checkpoint else None
        options = RunOptions(self.backend, batch_rows=10, changes=True, late=True, checkpoint=kept, clock=clock)
        options = replace(options, read_time=lambda: TEN + int(clock.now * 1_000_000))
        session.run(options, seen, clock, observer=seen)


def check_windows_close(room: Room, step: float) -> None:
    """RANGE 5 MIN over 10:00 and 10:01: they go 5 minutes of event time later, which begins after a minute."""
    seen = Seen()
    room.put("r", "10:00:00", "10:01:00")
    room.run(Clock(299, step), seen)
    assert seen.answers == [2]
    room.run(Clock(900, step), seen)
    assert seen.answers == [2, 1, 0]
    done = len(seen.reports)
    room.put("r", "10:00:30", "10:02:30")
    room.run(Clock(59, step), seen)
    assert seen.answers == [2, 1, 0, 1]
    assert seen.late == ['{"k": 2, "at": "2026-01-01 10:00:30"}'] and len(seen.reports) <= done + 2


def test_windows_close_by_processing_time(tmp_path: Path) -> None:
    check_windows_close(Room(tmp_path, "local", COUNT, r=", close_after '1 minute'"), 1.0)


@pytest.mark.spark
def test_on_spark(cluster: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from squallpy.runtime.spark import executor

    monkeypatch.setattr(executor, "start", lambda *_: nullcontext(cluster))
    check_windows_close(Room(tmp_path, "spark", COUNT, r=", close_after '1 minute'"), 30.0)


def test_rows_enter_and_leave_by_the_time_of_day(tmp_path: Path) -> None:
    """One a second while a row is visible or still to come, also in a run that goes on; then none."""
    room, seen = Room(tmp_path, "local", VISIBLE, r=""), Seen()
    room.put("r", "09:56:00", "10:00:00", "10:03:00")
    room.run(Clock(120), seen)
    assert seen.answers == [2, 1]
    clock = Clock(1_000)
    clock.now = 170.0
    room.run(clock, seen)
    assert seen.answers == [2, 1, 2, 1, 0]
    assert 300 <= len(seen.reports) <= 450 < clock.looks


def fault_the_time_of_a_batch_that_is_tried_again(tmp_path: Path) -> None:
    """NOW() is logged with a batch, and never goes back."""
    room, seen = Room(tmp_path, "local", VISIBLE, r=""), Seen()
    room.put("r", "10:00:00", "10:01:00", "10:02:00")
    seen.dies_at = 1
    with pytest.raises(Killed):
        room.run(Clock(500, 330), seen)
    logged = json.loads(read_record(open_durable(str(tmp_path / "kept/0")), "offsets", "") or "")
    assert logged["times"] == {"": {"is_idle": False, "since": 0, "until": TEN + 330_000_000}}
    (tmp_path / "local").rename(tmp_path / "gone")
    room.run(Clock(1), seen)
    assert seen.answers == [1, 2] and max(seen.counts) == 1
    room.run(Clock(400, 370), seen)
    assert seen.answers == [1, 2, 1]


def fault_files_to_their_end_have_one_time(tmp_path: Path) -> None:
    """That at which the run began, also after a kill."""
    rows = "".join(f"1,2026-01-01 {time}\n" for time in ("09:30:00", "10:01:00", "10:02:00"))
    (tmp_path / "r.csv").write_text(rows)
    create = "CREATE STREAM r (k BIGINT, at TIMESTAMP) USING csv OPTIONS (path 'r.csv');"
    (tmp_path / "q.sql").write_text(f"{create} SELECT COUNT(*) AS n FROM r WHERE at > NOW() - INTERVAL '1' HOUR;")
    options, seen = RunOptions("local", batch_rows=1, changes=True, checkpoint=str(tmp_path / "kept")), Seen()
    seen.dies_at = 1
    with pytest.raises(Killed):
        ScriptSession(tmp_path / "q.sql").run(replace(options, read_time=lambda: TEN), seen)
    ScriptSession(tmp_path / "q.sql").run(replace(options, read_time=lambda: TEN + 9 * 3_600_000_000), seen)
    assert seen.answers == [1, 2, 3]


def test_ten_hours_without_rows_are_a_few_batches(tmp_path: Path) -> None:
    """One a second while there is a row to lose, then none."""
    room, seen = Room(tmp_path, "local", COUNT, r=", close_after '1 minute'"), Seen()
    room.put("r", "10:00:00")
    clock = Clock(36_000)
    room.run(clock, seen, checkpoint=False)
    assert seen.answers == [1, 0] and clock.looks >= 35_000
    assert 300 <= len(seen.reports) <= 302


def test_an_idle_stream_holds_no_window_back(tmp_path: Path) -> None:
    room, seen = Room(tmp_path, "local", BOTH, r="", s=", idle_timeout '30 seconds'"), Seen()
    room.put("s", "10:00:00")
    room.put("r", "10:00:00", "11:00:00")
    room.run(Clock(29, 5), seen, checkpoint=False)
    assert seen.answers == [3], "s has not shown that anything is over"
    seen = Seen()
    room.run(Clock(60, 5), seen, checkpoint=False)
    assert seen.answers == [3, 1]
    assert len(seen.reports) == 2


def test_a_stream_without_any_rows_is_idle_too(tmp_path: Path) -> None:
    room, seen = Room(tmp_path, "local", BOTH, r="", s=", idle_timeout '30 seconds'"), Seen()
    room.put("r", "10:00:00", "11:00:00")
    room.run(Clock(40), seen, checkpoint=False)
    assert seen.answers == [2, 1]


def test_rows_of_a_stream_that_was_idle_may_be_late(tmp_path: Path) -> None:
    room, seen = Room(tmp_path, "local", BOTH, r="", s=", idle_timeout '30 seconds'"), Seen()
    room.put("r", "10:00:00", "11:00:00")
    room.run(Clock(40), seen)
    room.put("s", "10:59:00", "10:30:00")
    room.run(Clock(10), seen)
    assert seen.answers == [2, 1, 2] and seen.late == ['{"k": 2, "at": "2026-01-01 10:30:00"}']


@pytest.mark.parametrize("is_rebuilt", [False, True])
def fault_a_batch_that_is_tried_again_decides_the_same(tmp_path: Path, is_rebuilt: bool) -> None:
    """Whatever the clock of the next run says: what was decided is logged before."""
    room, seen = Room(tmp_path, "local", COUNT, r=", close_after '1 minute'"), Seen()
    room.put("r", "10:00:00", "10:01:00")
    seen.dies_at = 1
    with pytest.raises(Killed):
        room.run(Clock(500, 330), seen)
    logged = json.loads(read_record(open_durable(str(tmp_path / "kept/0")), "offsets", "") or "")
    assert logged["batch"] == 1 and logged["times"] == {"r": {"is_idle": False, "since": 0, "until": 270_000_000}}
    if is_rebuilt:
        (tmp_path / "local").rename(tmp_path / "gone")
    room.run(Clock(1), seen)
    assert seen.answers == [2, 1] and max(seen.counts) == 1
    room.run(Clock(400), seen)
    assert seen.answers == [2, 1, 0]


def test_a_trigger_that_ends_waits_for_no_clock(tmp_path: Path) -> None:
    room, seen = Room(tmp_path, "local", COUNT, r=", close_after '1 ms'"), Seen()
    room.put("r", "10:00:00")
    session = ScriptSession(tmp_path / "q.sql")
    session.run(RunOptions("local", changes=True, trigger=BatchTrigger(ends=True)), seen, observer=seen)
    assert seen.answers == [1] and len(seen.reports) == 1
