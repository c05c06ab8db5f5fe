"""Leases: one run at a time has a checkpoint, a dead one has none, and who lost it stops."""

import errno
import fcntl
import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from squallpy.base.errors import SquallError
from squallpy.base.settings import Settings
from squallpy.runtime.checkpoint.checkpoint import hold_lease
from squallpy.runtime.checkpoint.durable_folder import open_durable
from squallpy.runtime.checkpoint.lease import NAME, Lease, Owner, hold_shared
from squallpy.script_session import RunOptions, ScriptSession
from squallpy.testing.ignoring_sink import IgnoringSink
from tests.runs import ONE_STAGE, undisturbed, write

ELSEWHERE = replace(Owner.here(), host="elsewhere", process=7)


@pytest.fixture(params=["{}/kept", "file://{}/kept", "fsspec+file://{}/kept"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return str(request.param).format(tmp_path)


HOLDER = """
import sys, time
from squallpy.runtime.checkpoint.checkpoint import hold_lease
with hold_lease(sys.argv[1]):
    print("held", flush=True)
    time.sleep(600)
"""


@contextmanager
def holder(place: str) -> Iterator["subprocess.Popen[str]"]:
    """A process that has the lease of a place, and is killed at the end."""
    with subprocess.Popen([sys.executable, "-c", HOLDER, place], stdout=subprocess.PIPE, text=True) as running:
        try:
            assert running.stdout is not None and running.stdout.readline() == "held\n"
            yield running
        finally:
            running.kill()


def test_a_second_run_is_kept_out_by_name_and_a_killed_one_at_once_has_nothing(place: str, tmp_path: Path) -> None:
    with holder(place) as running:
        before = (tmp_path / "kept" / NAME).read_bytes()
        told = rf"SQ6007 the checkpoint .*kept is in use by process {running.pid} on"
        with pytest.raises(SquallError, match=told), hold_lease(place):
            pass
        assert (tmp_path / "kept" / NAME).read_bytes().startswith(before[:40])
    with hold_lease(place) as lease:
        lease.check()
    assert list((tmp_path / "kept").iterdir()) == []  # as new


def test_a_stopped_run_keeps_its_lease(tmp_path: Path) -> None:
    with holder(str(tmp_path / "kept")) as running:
        running.send_signal(signal.SIGSTOP)
        with pytest.raises(SquallError, match="SQ6007"), hold_lease(str(tmp_path / "kept")):
            pass


def test_a_path_and_a_uri_of_one_folder_are_one_checkpoint(tmp_path: Path) -> None:
    with holder(str(tmp_path / "kept")) as running:
        for place in (f"fsspec+file://{tmp_path}/kept", f"file:{tmp_path}/kept"):
            with pytest.raises(SquallError, match=f"SQ6007 .*process {running.pid}"), hold_lease(place):
                pass


def test_who_lost_it_is_told(place: str, tmp_path: Path) -> None:
    with hold_lease(place) as lease:
        (tmp_path / "kept" / NAME).write_bytes(ELSEWHERE.packed())
        with pytest.raises(SquallError, match=r"SQ6008 .*was taken over by process 7 on elsewhere while"):
            lease.check()
        shutil.rmtree(tmp_path / "kept")
        with pytest.raises(SquallError, match=r"SQ6008 .*was removed while"):
            lease.check()


def test_a_lease_that_was_lost_is_not_given_back(place: str, tmp_path: Path) -> None:
    with hold_lease(place):
        (tmp_path / "kept" / NAME).write_bytes(ELSEWHERE.packed())
    assert Owner.read((tmp_path / "kept" / NAME).read_bytes()) == ELSEWHERE


def test_an_error_after_it_was_lost_is_the_loss(place: str, tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError), hold_lease(place):
        (tmp_path / "absent").read_bytes()
    with pytest.raises(SquallError, match=r"SQ6008 .*taken over by process 7"), hold_lease(place):
        (tmp_path / "kept" / NAME).write_bytes(ELSEWHERE.packed())
        (tmp_path / "absent").read_bytes()


def test_a_folder_that_is_made_again_is_another(tmp_path: Path) -> None:
    with hold_lease(str(tmp_path / "kept")) as first:
        shutil.rmtree(tmp_path / "kept")
        with hold_lease(str(tmp_path / "kept")) as second:
            second.check()
            with pytest.raises(SquallError, match=f"SQ6008 .*taken over by process {os.getpid()}"):
                first.check()


def test_no_process_that_is_started_holds_it_on(tmp_path: Path) -> None:
    """As a JVM is, and a worker from that: it lives on when the run is dead."""
    with hold_lease(str(tmp_path / "kept")):
        child = subprocess.Popen(["sleep", "600"], close_fds=False)
    try:
        with hold_lease(str(tmp_path / "kept")) as lease:
            lease.check()
    finally:
        child.kill()
        child.wait()


class Clock:
    """Time that passes by waiting, while others do something."""

    def __init__(self, does: Callable[[float], object] = lambda now: None) -> None:
        self.now, self._does = 0.0, does

    def __call__(self, seconds: float) -> None:
        self.now += seconds
        self._does(self.now)


def test_a_run_elsewhere_is_dead_when_its_record_stays_as_it_is(tmp_path: Path) -> None:
    clock = Clock()
    (tmp_path / NAME).write_bytes(ELSEWHERE.packed())
    with hold_shared(str(tmp_path), clock) as lease:
        lease.check()
    assert 20 <= clock.now < 25
    assert not (tmp_path / NAME).exists()


def test_a_run_elsewhere_that_writes_its_record_again_is_not(tmp_path: Path) -> None:
    folder = open_durable(str(tmp_path))

    def beat(now: float) -> None:
        folder.create(NAME, lambda sink: sink.write(replace(ELSEWHERE, beat=int(now) // 15).packed()))

    beat(0)
    with pytest.raises(SquallError, match=r"SQ6007 .*process 7 on elsewhere"), hold_shared(str(tmp_path), Clock(beat)):
        pass


def test_of_two_that_write_at_once_one_has_it(tmp_path: Path) -> None:
    """The one that wrote last; the other finds that when it reads again."""
    late = Clock(lambda now: now < 1 or (tmp_path / NAME).write_bytes(ELSEWHERE.packed()))
    with pytest.raises(SquallError, match=r"SQ6007 .*process 7 on elsewhere"), hold_shared(str(tmp_path), late):
        pass
    assert Owner.read((tmp_path / NAME).read_bytes()) == ELSEWHERE


@pytest.mark.parametrize("place", ["{}", "fsspec+file://{}"])
def test_two_that_write_at_once_write_a_draft_each(place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second writes its record while the first has its draft open."""
    place, packed, entered = place.format(tmp_path), Owner.packed, ExitStack()

    def pack_while_another_begins(owner: Owner) -> bytes:
        monkeypatch.setattr(Owner, "packed", packed)
        seconds.append(entered.enter_context(hold_shared(place, Clock())))
        return packed(owner)

    monkeypatch.setattr(Owner, "packed", pack_while_another_begins)
    seconds: list[Lease] = []
    with entered, hold_shared(place, Clock()) as first:
        first.check()
        with pytest.raises(SquallError, match=f"SQ6008 .*taken over by process {os.getpid()}"):
            seconds[0].check()
    assert list(tmp_path.iterdir()) == []


def test_a_record_is_missing_for_a_moment_where_it_is_deleted_before_it_is_replaced(tmp_path: Path) -> None:
    record = tmp_path / NAME
    with (
        pytest.raises(SquallError, match=r"SQ6007 .*process 7 on elsewhere"),
        hold_shared(str(tmp_path), Clock(lambda now: record.write_bytes(replace(ELSEWHERE, beat=int(now)).packed()))),
    ):
        pass
    record.unlink()
    own: list[bytes] = []
    with hold_shared(str(tmp_path), Clock(lambda now: own and record.write_bytes(own[0]))) as lease:
        own.append(record.read_bytes())
        record.unlink()
        lease.check()


def test_a_folder_that_cannot_be_locked_has_the_record_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise OSError(errno.ENOLCK, "no locks")

    monkeypatch.setattr(fcntl, "flock", refuse)
    with hold_lease(str(tmp_path)) as lease:
        lease.check()
        (tmp_path / NAME).write_bytes(ELSEWHERE.packed())
        with pytest.raises(SquallError, match=r"SQ6008 .*process 7 on elsewhere"):
            lease.check()


@pytest.mark.parametrize("record", [b"", b"\xff", b"[]", b'{"token": 1}', b"null", b"7"])
def test_a_record_that_names_nobody_keeps_nobody_out(place: str, tmp_path: Path, record: bytes) -> None:
    (tmp_path / "kept").mkdir()
    (tmp_path / "kept" / NAME).write_bytes(record)
    with hold_lease(place) as lease:
        lease.check()


class Thief(IgnoringSink):
    """A sink under which the lease is lost after a batch."""

    def __init__(self, checkpoint: Path, after: int) -> None:
        self.checkpoint, self.after, self.batches = checkpoint, after, []

    def batch(self, number: int, deletes: Any, inserts: Any) -> None:
        self.batches.append(number)
        if number == self.after:
            (self.checkpoint / NAME).write_bytes(ELSEWHERE.packed())

    def final(self, table: Any) -> None:
        pytest.fail("a result of a run that has lost its checkpoint")


def fault_a_run_that_lost_its_lease_commits_nothing_more(tmp_path: Path) -> None:
    script, kept = write(tmp_path, ONE_STAGE), tmp_path / "kept"
    sink = Thief(kept, 5)
    session = ScriptSession(script, Settings(local_dir=str(tmp_path / "local")))
    with pytest.raises(SquallError, match="SQ6008"):
        session.run(RunOptions("local", batch_rows=50, changes=True, checkpoint=str(kept)), sink)
    assert sink.batches == [*range(6)]
    assert (kept / "0" / "batch").read_text().split()[0] == "5"


COMMAND = (sys.executable, "-m", "squallpy.terminal", "run")


def fault_two_runs_on_one_checkpoint(tmp_path: Path) -> None:
    """Started together, again and again, until all is done: one at a time goes on, and every change is there once."""
    script, out = write(tmp_path, ONE_STAGE), tmp_path / "out"
    options = ("--backend", "local", "--batch-rows", "50", "--mode", "changes", "--out", str(out), "--format", "csv")
    more = ("--checkpoint", str(tmp_path / "kept"), "--metrics", str(tmp_path / "m"))
    runs = [
        subprocess.Popen([*COMMAND, str(script), *options, *more], stderr=subprocess.PIPE, text=True) for _ in range(3)
    ]
    ended = [(run.communicate()[1], run.returncode) for run in runs]
    assert all((status == 0 and not said) or (status == 2 and said.startswith("SQ6007")) for said, status in ended), (
        ended
    )
    assert 0 in [status for _, status in ended]
    assert [json.loads(line)["batch"] for line in (tmp_path / "m").read_text().splitlines()] == [*range(40)]
    found = [
        f"{file.name}: {line}" for file in sorted(out.glob("batch-*")) for line in sorted(file.read_text().splitlines())
    ]
    assert found == undisturbed(script)
