"""Faults while a sink is written: one line with the batch, exit status 2, and the answer exact when the run goes on."""

import errno
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from squallpy.base.errors import SquallError
from squallpy.base.settings import Settings
from squallpy.runtime.observers.report import BatchReport
from squallpy.runtime.sinks.output_folder import OutputFolder
from squallpy.script_session import RunOptions, ScriptSession
from squallpy.testing.ignoring_sink import IgnoringSink
from tests.sinks.conftest import QUERY, STREAM, Run, contents
from tests.sinks.test_create_sink import CHANGES

SINK = f"CREATE SINK o USING csv OPTIONS (path 'out/', mode 'changes') AS {QUERY};"
KEPT = ("--checkpoint", "kept")


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT, errno.EIO])
@pytest.mark.parametrize("method", ["draft", "publish"])
def fault_a_disk_that_is_full_or_torn(
    number: int, method: str, room: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole, calls = getattr(OutputFolder, method), 0

    def fail(*args: Any) -> None:
        nonlocal calls
        calls += 1
        if calls == 6:  # the manifest of the beginning, a batch, its manifest, …
            raise OSError(number, os.strerror(number))
        whole(*args)

    monkeypatch.setattr(OutputFolder, method, fail)
    said = run(SINK, *KEPT, status=2)
    hint = "" if number == errno.EIO else ", make room, and run the same command again"
    assert said == f"SQ7005 q.sql:2:34: cannot write batch 2 to out: {os.strerror(number).lower()}{hint}\n"
    assert contents(room / "out") == {name: CHANGES[name] for name in list(CHANGES)[:2]}
    assert run(SINK, *KEPT) == "" and contents(room / "out") == CHANGES


def fault_a_folder_that_cannot_be_written(run: Run) -> None:
    said = run(SINK.replace("out/", "/proc/none/out"), *KEPT, status=2)
    assert said == "SQ7005 q.sql:2:34: cannot write /proc/none/out: no such file or directory\n"
    said = run(SINK.replace("out/", "f.csv/out").replace("'f.csv'", "'f'"), *KEPT, status=2)
    assert said.startswith("SQ7005 q.sql:2:34: ") and said.count("\n") == 1
    said = run(SINK.replace("out/", "nowhere://a/b"), status=2)
    assert said.startswith("SQ7005 q.sql:2:34: cannot write nowhere://a/b: ") and said.count("\n") == 1
    assert run(SINK.replace("out/", "file://host/b"), status=2).startswith(
        "SQ7005 q.sql:2:34: cannot write file://host/b"
    )
    said = run(f"{QUERY};", "--out", "nowhere://a/b", "--mode", "changes", status=2)
    assert said.startswith("SQ7005 cannot write nowhere://a/b: ") and said.count("\n") == 1


class Away(IgnoringSink):
    """An observer that moves a folder after a batch."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def on_query_progress(self, report: BatchReport) -> None:
        if report.number == 1:
            self._folder.rename(self._folder.with_name("away"))


def fault_a_folder_that_vanishes_while_it_is_written(room: Path, run: Run) -> None:
    """… is not made anew without the batches that it had, and gone on with when it is back."""
    (room / "q.sql").write_text(STREAM + SINK)
    options = RunOptions("local", batch_rows=2, checkpoint=str(room / "kept"))
    with pytest.raises(SquallError, match=r"SQ7005 .*q.sql:2:34: cannot write batch 2 to .*out: no such file"):
        settings = Settings(local_dir=str(room / "local"))
        ScriptSession(room / "q.sql", settings).run(options, IgnoringSink(), observer=Away(room / "out"))
    said = run(SINK, *KEPT, status=2)
    assert said.startswith("SQ7005 q.sql:2:34: out has 0 batches, and the checkpoint has given 2, put back the"), said
    shutil.rmtree(room / "out")
    (room / "away").rename(room / "out")
    assert run(SINK, *KEPT) == "" and contents(room / "out") == CHANGES


def fault_another_query_does_not_go_on(room: Path, run: Run) -> None:
    run(SINK, *KEPT)
    other = SINK.replace("SUM(v)", "MAX(v)")
    run(other.replace("out/", "other/"), "--checkpoint", "other-kept")
    said = run(other, "--checkpoint", "other-kept", status=2)
    assert said == (
        "SQ7005 q.sql:2:34: out has batches of another query, or of mode 'changes' as csv, name another folder, or "
        "another checkpoint\n"
    )
    assert contents(room / "out") == CHANGES


def fault_an_endless_stream_has_no_final_result(room: Path, run: Run) -> None:
    stream = STREAM.replace("'f.csv'", "'in/', watch 'true'")
    said = run(SINK.replace("changes", "final"), status=2, stream=stream)
    why = "mode 'final' writes the answer at the end, and the stream f has none"
    assert said.endswith(f"SQ7003 q.sql:2:47: {why}, write mode 'changes'\n")
    (room / "in").mkdir()
    shutil.copy(room / "f.csv", room / "in")
    trigger = ("--trigger", "available-now")
    assert run(SINK.replace("changes", "final").replace("out/", "r.csv"), *trigger, stream=stream) == ""
    assert (room / "r.csv").read_text().count("\n") == 5
    assert run(SINK.replace(", mode 'changes'", ""), *trigger, *KEPT, stream=stream) == ""
    assert (room / "out").is_file()


def test_an_endless_script_has_several_queries(room: Path, run: Run) -> None:
    """They run together, in batches that are the same for all."""
    stream = STREAM.replace("'f.csv'", "'in/', watch 'true'")
    (room / "in").mkdir()
    shutil.copy(room / "f.csv", room / "in")
    both = SINK + SINK.replace("SINK o", "SINK p").replace("out/", "more/")
    assert run(both, "--trigger", "available-now", *KEPT, stream=stream) == ""
    assert contents(room / "out") == contents(room / "more") != {}


@pytest.mark.parametrize("option", [("--out", "x"), ("--mode", "changes"), ("--format", "json")])
def fault_options_of_a_select_without_one(option: tuple[str, str], run: Run) -> None:
    said = run(SINK, *option, status=2)
    assert said == f"SQ7003 {option[0]} is for a SELECT, and all queries have sinks, leave it out\n"
