"""The micro-batch loop: every batch once and in order, whatever dies in between."""

import io
import json
import os
import signal
import struct
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from pyspark import cloudpickle
from pyspark.serializers import SpecialLengths

from squallpy import __version__
from squallpy.base.errors import SquallError
from squallpy.runtime.spark import micro_batch_loop, planned_job, worker_tasks
from squallpy.runtime.spark.micro_batch_loop import run
from squallpy.runtime.spark.planned_job import PlannedJob
from squallpy.runtime.spark.worker_tasks import PickledStages
from tests.spark import wordcount
from tests.spark.wordcount import PARTITIONS, SPLITS, Fault, counted, expected, job, words

pytestmark = pytest.mark.spark
cloudpickle.register_pickle_by_value(wordcount)  # type: ignore[no-untyped-call]  # workers need not find the tests


class Seen:
    """Remembers what came, and may interfere."""

    def __init__(self, react: Any = lambda batch: True) -> None:
        self.batches, self.outputs, self.times, self.react = [], {}, [], react

    def __call__(self, batch: Any, outputs: Any, times: Any) -> Any:
        self.batches.append(batch)
        self.outputs[batch] = [json.loads(output) for output in outputs]
        self.times.append(times)
        return self.react(batch)


def test_every_batch_comes_once_and_in_order(cluster: Any, tmp_path: Path) -> None:
    seen = Seen()
    assert run(cluster.session, job(tmp_path, 5), seen) == 4
    assert seen.batches == [0, 1, 2, 3, 4]
    assert counted(tmp_path) == expected(5)
    for batch, outputs in seen.outputs.items():
        assert len(outputs) == PARTITIONS
        assert outputs[2] == []  # applied, though nothing came
        sent = [word for split in range(SPLITS) for word in words(batch, split)]
        assert outputs[0] == [word for word in sent if wordcount.WORDS.index(word) % 2 == 0]  # in order
    times = seen.times[-1]
    assert times.batch == 4 and times.job > times.feed + times.apply
    assert times.spark["batchId"] == 3 and times.spark["durationMs"]


def test_a_query_is_known_by_its_name(cluster: Any, tmp_path: Path) -> None:
    names = list[str]()

    def on_batch(*_: Any) -> bool:
        names.extend(query.name for query in cluster.session.streams.active)
        return True

    run(cluster.session, replace(job(tmp_path, 1), name="shop"), on_batch)
    assert names == ["shop"]


def test_a_finished_job_has_nothing_more_to_do_until_it_grows(cluster: Any, tmp_path: Path) -> None:
    run(cluster.session, job(tmp_path, 2), Seen())
    again, grown = Seen(), Seen()
    assert run(cluster.session, job(tmp_path, 2), again) == 1
    assert again.batches == []
    assert run(cluster.session, job(tmp_path, 3), grown) == 2
    assert grown.batches == [2] and counted(tmp_path) == expected(3)
    assert run(cluster.session, job(tmp_path / "empty", 0), Seen()) == -1


def test_several_batches_go_to_a_tick(cluster: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each comes once and in order, the caller counts them: a run goes on in the middle of a tick."""
    monkeypatch.setattr(micro_batch_loop, "_TICK", 600.0)  # NB: seconds after which a tick ends early
    first, second = Seen(lambda batch: batch != 4), Seen()
    together = replace(job(tmp_path, 9), batches_per_tick=3)
    assert run(cluster.session, together, first) == 4
    assert first.batches == [0, 1, 2, 3, 4] and counted(tmp_path) == expected(5)
    assert [times.spark.get("batchId") for times in first.times] == [None, None, None, 0, None]
    rest = replace(together, first=5, checkpoint=str(tmp_path / "anew"))
    assert run(cluster.session, rest, second) == 8
    assert second.batches == [5, 6, 7, 8] and counted(tmp_path) == expected(9)


def test_what_only_reads_is_planned_once_for_a_tick_and_reads_each_batch(cluster: Any, tmp_path: Path) -> None:
    reads = replace(job(tmp_path, 5), stages=0, batches_per_tick=4)
    found = {}
    Fault(str(tmp_path)).plan("feed-2-1-0")

    def on_batch(batch: Any, outputs: Any, times: Any) -> Any:
        found[batch] = [output.decode() for output in outputs]
        return True

    assert run(cluster.session, reads, on_batch) == 4
    assert not (tmp_path / "feed-2-1-0").exists(), "nothing was killed"
    assert found == {batch: [word for split in range(SPLITS) for word in words(batch, split)] for batch in range(5)}


def test_a_plan_does_for_some_batches_and_then_there_is_another(
    cluster: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is exchanged is exchanged anew for each batch, whichever plan it is of."""
    made, dropped = [], []

    class Counted(PlannedJob):
        def __init__(self, rows: Any, fetcher: Any) -> None:
            super().__init__(rows, fetcher)
            made.append(self)

        def drop(self) -> None:
            dropped.append(self)
            super().drop()

    monkeypatch.setattr(micro_batch_loop, "PlannedJob", Counted)
    monkeypatch.setattr(planned_job, "_MOST_RUNS", 3)
    seen = Seen()
    assert run(cluster.session, replace(job(tmp_path, 7), batches_per_tick=4), seen) == 6
    assert counted(tmp_path) == expected(7)
    assert [plan.used for plan in made] == [3, 3, 1] and dropped == made
    assert all(len(plan._exchanges) == 1 for plan in made)


def test_a_task_of_a_batch_takes_no_messages_of_another(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker_tasks, "_batch", lambda: 7)
    rows = [worker_tasks.pack_row(0, 7, 1, b"b"), planned_job.NOTHING, worker_tasks.pack_row(0, 7, 0, b"a")]
    assert worker_tasks._receive(rows)[0] == {0: [b"a", b"b"]}
    with pytest.raises(RuntimeError, match="a task of batch 7 was sent messages of batch 8"):
        worker_tasks._receive([*rows, worker_tasks.pack_row(0, 8, 2, b"c")])


@pytest.mark.parametrize("cut", range(1, 18))
def test_rows_are_all_there_or_it_is_an_error(cut: Any) -> None:
    """Spark closes the stream where it cannot go on: else a stage would apply a part of a batch."""
    stream = struct.pack(">i2si3si", 2, b"ab", 3, b"cde", SpecialLengths.END_OF_DATA_SECTION)
    assert list(planned_job.CompleteRows().load_stream(io.BytesIO(stream))) == [b"ab", b"cde"]
    with pytest.raises((EOFError, struct.error)):
        list(planned_job.CompleteRows().load_stream(io.BytesIO(stream[:-cut])))


@pytest.fixture
def interruptible() -> Iterator[Any]:
    """SIGINT as a program in the foreground meets it: a shell starts background jobs with the signal ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("interruptible")
@pytest.mark.parametrize("how", ["event", "answer", "interrupt"])
def test_stops_after_the_batch_in_work_and_goes_on_from_there(cluster: Any, tmp_path: Path, how: Any) -> None:
    stop = threading.Event()

    def react(batch: Any) -> Any:
        if batch != 1:
            return True
        if how == "event":
            stop.set()
        if how == "interrupt":
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(0.2)
        return how != "answer"

    first, second = Seen(react), Seen()
    if how == "interrupt":
        with pytest.raises(KeyboardInterrupt):
            run(cluster.session, job(tmp_path, 4), first, stop)
    else:
        assert run(cluster.session, job(tmp_path, 4), first, stop) == 1
    assert first.batches == [0, 1]
    assert run(cluster.session, job(tmp_path, 4), second) == 3
    assert second.batches == [2, 3] and counted(tmp_path) == expected(4)


@pytest.mark.parametrize("mistake", [{"wrong_feed": 2}, {"wrong_apply": 2}])
def test_a_mistake_of_the_users_in_a_worker_is_told_as_itself(cluster: Any, tmp_path: Path, mistake: Any) -> None:
    seen, again = Seen(), Seen()
    with pytest.raises(SquallError) as error:
        run(cluster.session, job(tmp_path, 4, **mistake), seen)
    assert str(error.value) in ("SQ4001 batch 2 is not CSV, look at it", "SQ5001 overflow")
    assert seen.batches == [0, 1]
    assert run(cluster.session, job(tmp_path, 4), again) == 3  # the user has mended it
    assert again.batches == [2, 3] and counted(tmp_path) == expected(4)


def test_what_the_caller_raises_reaches_the_caller(cluster: Any, tmp_path: Path) -> None:
    def react(batch: Any) -> Any:
        if batch == 1 and not (tmp_path / "mended").exists():
            raise OSError("disk full")
        return True

    with pytest.raises(OSError, match="disk full"):
        run(cluster.session, job(tmp_path, 3), Seen(react))
    (tmp_path / "mended").touch()
    again = Seen(react)
    run(cluster.session, job(tmp_path, 3), again)
    assert again.batches == [1, 2]  # comes again, since nobody said that it was done
    assert again.outputs[1][0] and counted(tmp_path) == expected(3)


def test_an_executor_of_another_version_is_told(cluster: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(micro_batch_loop, "PickledStages", partial(PickledStages, version="0.0.9"))
    with pytest.raises(
        SquallError, match=r"SQ8005 the driver is squallpy 0\.0\.9, but the executor on .* is "
    ) as error:
        run(cluster.session, job(tmp_path, 2), Seen())
    assert __version__ in str(error.value)
    assert not list(tmp_path.glob("state-*"))


def test_what_tasks_tell_comes_with_the_batch(cluster: Any, tmp_path: Path) -> None:
    seen = Seen()
    run(cluster.session, job(tmp_path, 2), seen)
    assert [sorted(told["partition"] for told in times.reports) for times in seen.times] == [[0, 1, 2]] * 2


def test_a_bug_in_a_worker_is_told_with_its_traceback(cluster: Any, tmp_path: Path) -> None:
    broken = job(tmp_path, 2)
    (tmp_path / "state-1.json").write_text(json.dumps({"batch": 7, "counts": {}, "output": []}))
    with pytest.raises(Exception, match="partition 1 at 7 got batch 0"):
        run(cluster.session, broken, Seen())


@pytest.mark.parametrize("place", ["feed-2-1-0", "apply-2-1", "applied-2-0", "applied-2-2"])
def fault_worker_killed(cluster: Any, tmp_path: Path, place: Any) -> None:
    Fault(str(tmp_path)).plan(place)
    seen = Seen()
    assert run(cluster.session, job(tmp_path, 4), seen) == 3
    assert not (tmp_path / place).exists(), "nothing was killed"
    assert seen.batches == [0, 1, 2, 3] and counted(tmp_path) == expected(4)


@pytest.mark.slow
@pytest.mark.cluster
def fault_driver_killed(tmp_path: Path) -> None:
    """Killed twice, once in the middle of a batch; nothing is left running, and the answer is the undisturbed one."""
    token, done = f"squall-{os.getpid()}-{time.time_ns()}", Counter()
    for last in (2, 4, None):
        with _driver(tmp_path, 7, token) as driver:
            for line in driver.stdout:
                done[int(line)] += 1
                if last is not None and int(line) >= last:
                    driver.kill()
            assert driver.wait() == (0 if last is None else -signal.SIGKILL)
        _wait_until_gone(token)
    assert set(done) == set(range(7)) and max(done.values()) <= 2
    assert counted(tmp_path) == expected(7)


def _driver(room: Path, batches: int, token: str) -> subprocess.Popen:
    command = [sys.executable, str(Path(__file__).parent / "wordcount.py"), str(room), str(batches)]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "SQUALL_TEST": token}
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)


def _wait_until_gone(token: str) -> None:
    """Until no process has `token` in its environment: neither the JVM, nor Python's daemon and workers."""
    deadline = time.monotonic() + 20
    while left := [path.parent.name for path in Path("/proc").glob("[0-9]*/environ") if token in _read(path)]:
        assert time.monotonic() < deadline, f"still running: {left}"
        time.sleep(0.1)


def _read(path: Path) -> str:
    try:
        return path.read_text(errors="replace")
    except OSError:
        return ""
