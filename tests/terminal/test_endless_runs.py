"""Runs without end as processes: signals, folders that are not there, and disks that are full."""

import resource
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.terminal.conftest import CLICKS, ENVIRONMENT, SQUALL, STREAM

WATCHED = STREAM.replace("clicks.csv'", "in/', watch 'true'")
COUNT = "SELECT user, COUNT(*) AS n FROM clicks GROUP BY user;"


@pytest.fixture
def watching(room: Path) -> Path:
    (room / "q.sql").write_text(WATCHED + COUNT)
    return room


@contextmanager
def running(room: Path, *options: str, **more: Any) -> Iterator["subprocess.Popen[str]"]:
    """An endless run in one process, which is killed if it is still there in the end."""
    line = (*SQUALL, "run", "q.sql", "--backend", "local", *options)
    pipes: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with subprocess.Popen(line, cwd=room, env=ENVIRONMENT, **pipes, **more) as process:
        try:
            yield process
        finally:
            process.kill()


def read(process: "subprocess.Popen[str]", lines: int) -> list[str]:
    assert process.stdout
    return [process.stdout.readline().strip() for _ in range(lines)]


@pytest.mark.parametrize(("number", "status"), [(signal.SIGTERM, 0), (signal.SIGINT, 130)])
def test_a_signal_ends_it_after_the_batch(watching: Path, number: int, status: int) -> None:
    """SIGTERM is how such a run ends; a folder that comes later is waited for, which is said once."""
    with running(watching, "--checkpoint", "kept") as process:
        assert read(process, 1) == ["batch,op,user,n"]
        assert process.stderr
        assert process.stderr.readline() == "the stream clicks waits for in/, which is not there\n"
        (watching / "draft").mkdir()
        (watching / "draft/1.csv").write_text(CLICKS)
        (watching / "draft").rename(watching / "in")
        assert sorted(read(process, 2)) == ["1,+,ann,2", "1,+,bob,1"]
        process.send_signal(number)
        _, said = process.communicate(timeout=600)
    assert process.returncode == status
    assert said.splitlines() == [
        "finishing the batch in work; Ctrl-C again to stop at once",
        "stopped after 2 batches; the same command goes on from there, with --checkpoint kept",
    ]


def test_sigterm_before_the_first_batch_is_no_failure(watching: Path) -> None:
    """As a pod gets it that is moved while it starts."""
    (watching / "in").mkdir()
    slow = "import sys, time, squallpy.terminal.cli as cli; print('up', flush=True); sys.exit(cli.main(sys.argv[1:]))"
    line = [sys.executable, "-c", slow, "run", "q.sql", "--backend", "local", "--checkpoint", "kept"]
    with subprocess.Popen(line, cwd=watching, env=ENVIRONMENT, stderr=subprocess.PIPE, text=True) as process:
        while not (watching / "kept").exists():
            assert process.poll() is None
        process.send_signal(signal.SIGTERM)
        _, said = process.communicate(timeout=600)
    assert process.returncode == 0 and "stopped " in said


def fault_a_folder_that_goes_away_is_waited_for(watching: Path) -> None:
    """What was read of it stays; it is said each time, and events say when it is back."""
    (watching / "in").mkdir()
    (watching / "in/1.csv").write_text(CLICKS)
    with running(watching, "--checkpoint", "kept", "--log-format", "json") as process:
        assert sorted(read(process, 3)) == ["0,+,ann,2", "0,+,bob,1", "batch,op,user,n"]
        shutil.rmtree(watching / "in")
        assert process.stderr
        waiting = next(line for line in process.stderr if '"waiting"' in line)
        assert '"logger": "squallpy.sources"' in waiting and '"stream": "clicks", "path": "in/"' in waiting
        (watching / "in").mkdir()
        (watching / "in/2.csv").write_text(CLICKS)
        assert sorted(read(process, 4)) == ["1,+,ann,4", "1,+,bob,2", "1,-,ann,2", "1,-,bob,1"]
        assert any('"found"' in line for line in process.stderr)
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=600)
    assert process.returncode == 0


def fault_a_full_disk_under_the_checkpoint(watching: Path) -> None:
    """One line, and the batch before is whole: the same command goes on when there is room."""
    (watching / "in").mkdir()
    for number in range(40):
        rows = "".join(f"u{number}-{i},1.50,2024-01-01\n" for i in range(500))
        (watching / "in" / f"{number:02}.csv").write_text("user,amount,day\n" + rows)
    options = ["--trigger", "available-now", "--batch-rows", "500", "--checkpoint", "kept"]
    options += ["--out", "out", "--mode", "changes", "--format", "csv"]

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))

    with running(watching, *options, preexec_fn=limit) as process:
        _, said = process.communicate(timeout=120)
    assert process.returncode == 2 and said.startswith("SQ6006 cannot write state to ") and said.count("\n") == 1
    assert "nothing is lost: the same command resumes when there is room" in said
    done = len(list((watching / "out").glob("batch-*")))
    assert 0 < done < 40
    with running(watching, *options) as process:
        assert process.communicate(timeout=120)[1] == "" and process.returncode == 0
    lines = [line for file in sorted((watching / "out").glob("batch-*")) for line in file.read_text().splitlines()[1:]]
    assert len(lines) == 20_000 and len({line.split(",")[2] for line in lines}) == 20_000
