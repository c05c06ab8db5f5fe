"""Two runs on one checkpoint, one of them on Spark: one at a time has it, and who lost it writes nothing more."""

import os
import shutil
import signal
import subprocess
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from squallpy.base.errors import SquallError
from squallpy.base.settings import Settings
from squallpy.catalog.sink_spec import SinkSpec
from squallpy.runtime.checkpoint.checkpoint import hold_lease
from squallpy.runtime.checkpoint.lease import NAME, Lease, Owner, hold_shared
from squallpy.runtime.checkpoint.state_folders import Committed
from squallpy.runtime.observers.report import BatchReport
from squallpy.runtime.spark import executor
from squallpy.script_session import RunOptions, ScriptSession
from squallpy.testing.ignoring_sink import IgnoringSink
from squallpy.testing.standalone_cluster import wait
from tests.marks import long
from tests.runs import command, on, printed, undisturbed, write

pytestmark = [pytest.mark.spark, pytest.mark.slow]

LOCKED, RECORD = "{}/kept", "fsspec+file://{}/kept"  # a folder that can be locked, and one that has the record alone
SIZE, BATCHES = ("--batch-rows", "100"), 20
ELSEWHERE = replace(Owner.here(), host="elsewhere", process=7)


@pytest.fixture(params=[LOCKED, RECORD], ids=["lock", "record"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return str(request.param).format(tmp_path)


@pytest.fixture(autouse=True)
def shared_session(cluster: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(executor, "start", lambda *_: nullcontext(cluster))


@pytest.fixture
def script(tmp_path: Path) -> Path:
    return write(tmp_path / "script")


class Doing(IgnoringSink):
    """An observer that does something when a batch is written."""

    def __init__(self, at: int, what: Callable[[], None]) -> None:
        self._at, self._what = at, what

    def on_query_progress(self, report: BatchReport) -> None:
        if report.number == self._at:
            self._what()


def run(
    script: Path,
    out: Path,
    place: str,
    backend: str = "spark",
    lease: Lease | None = None,
    then: IgnoringSink | None = None,
) -> None:
    """Run a script in this process, with its changes in files."""
    session = ScriptSession(script, Settings(local_dir=f"{script.parent}/local"))
    sink = SinkSpec("--out", "csv", {}, "changes", target=out)
    options = RunOptions(backend, batch_rows=100, out=sink, checkpoint=place, lease=lease)
    session.run(options, IgnoringSink(), observer=then)


@pytest.mark.parametrize(
    ("first", "seconds", "template"),
    [("spark", ("spark", "local"), LOCKED), long("spark", ("spark", "local"), RECORD), ("local", ("spark",), LOCKED)],
    ids=["spark, lock", "spark, record", "local, lock"],
)
def fault_a_second_run_is_refused_before_it_touches_anything(
    first: str, seconds: tuple[str, ...], template: str, script: Path, tmp_path: Path
) -> None:
    place, out = template.format(tmp_path), tmp_path / "out"
    told = {name: tmp_path / name for name in ("metrics", "late", "profile")}
    more = [word for name, path in told.items() for word in (f"--{name}", str(path))]
    for path in told.values():
        path.write_text("of a run before\n")

    def contents() -> dict[Path, bytes]:
        return {path: path.read_bytes() for path in tmp_path.rglob("[!.]*") if path.is_file()}

    def start_others() -> None:
        before = contents()
        lines = [command(script, out, "--backend", backend, "--checkpoint", place, *more) for backend in seconds]
        others = [subprocess.Popen(line, stderr=subprocess.PIPE, text=True) for line in lines]
        ended.extend((other.communicate(timeout=240)[1], other.returncode) for other in others)
        assert contents() == before

    ended: list[tuple[str, int]] = []
    run(script, out, place, first, then=Doing(5, start_others))
    assert len(ended) == len(seconds)
    for said, status in ended:
        assert status == 2 and said.startswith(f"SQ6007 the checkpoint {place} is in use by process {os.getpid()} on")
    assert printed(out) == undisturbed(script, *SIZE, batches=BATCHES)


def lose(monkeypatch: pytest.MonkeyPatch, moment: str, what: Callable[[], None]) -> IgnoringSink:
    """Do something while the sink has batch 5, or when that is committed; the sink, for the former."""
    if moment == "in the sink":
        return Doing(5, what)
    commit = Committed.commit

    def commit_then_lose(self: Committed, batches: int, facts: Any = None) -> None:
        commit(self, batches, facts)
        if batches == 6:
            monkeypatch.setattr(Committed, "commit", commit)
            what()

    monkeypatch.setattr(Committed, "commit", commit_then_lose)
    return IgnoringSink()


@pytest.mark.parametrize("moment", ["in the sink", "after a commit"])
def fault_who_lost_it_commits_and_writes_nothing_more(
    moment: str, place: str, script: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out, kept = tmp_path / "out", tmp_path / "kept"

    def replace_token() -> None:
        (kept / NAME).write_bytes(ELSEWHERE.packed())

    then = lose(monkeypatch, moment, replace_token)
    with pytest.raises(SquallError, match=r"SQ6008 .*was taken over by process 7 on elsewhere"):
        run(script, out, place, then=then)
    assert [path.name for path in sorted(out.glob("batch-*"))] == [f"batch-{number:06}.csv" for number in range(6)]
    assert (kept / "0" / "batch").read_text().split()[0] == ("5" if moment == "in the sink" else "6")
    assert Owner.read((kept / NAME).read_bytes()) == ELSEWHERE


def fault_who_lost_it_to_a_run_with_another_plan_is_told_that(
    place: str, script: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Which has deleted the state that the next batch needs."""

    def take_over() -> None:
        (tmp_path / "kept" / NAME).unlink()
        shutil.copytree(out, tmp_path / "theirs")
        run(script, tmp_path / "theirs", place, "local")

    out, calm = tmp_path / "out", undisturbed(script, *SIZE, batches=BATCHES)
    with pytest.raises(SquallError, match=r"SQ6008 .*was removed while this run used it"):
        run(script, out, place, then=lose(monkeypatch, "after a commit", take_over))
    assert printed(out) == [line for line in calm if line < "batch-000006"]
    assert printed(tmp_path / "theirs") == calm


@pytest.mark.cluster
@pytest.mark.parametrize("template", [LOCKED, RECORD], ids=["lock", "record"])
def fault_killed_with_its_lease(template: str, script: Path, tmp_path: Path) -> None:
    """A lock is free at once; a record of another host when it has not changed for long."""
    out, place, waited = tmp_path / "out", template.format(tmp_path), [0.0]
    first = on("local[2]", script, out, *SIZE, "--checkpoint", place)
    wait(lambda: len([*out.glob("batch-*")]) >= 5, 240)
    os.killpg(first.pid, signal.SIGKILL)
    first.communicate()
    assert len([*out.glob("batch-*")]) < BATCHES
    if template == LOCKED:
        with hold_lease(place) as lease:
            run(script, out, place, "local", lease)
    else:
        record = tmp_path / "kept" / NAME
        owner = Owner.read(record.read_bytes())
        assert owner and owner.process == first.pid
        record.write_bytes(replace(owner, host="elsewhere").packed())
        with hold_shared(place, waited.append) as lease:
            run(script, out, place, "spark", lease)
        assert 20 <= sum(waited) < 25
    assert printed(out) == undisturbed(script, *SIZE, batches=BATCHES)
