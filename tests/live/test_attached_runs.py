"""Runs of scripts as those see them who attach to their checkpoints."""

import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from squallpy.base.errors import SquallError
from squallpy.live import run_reader
from squallpy.live.attached_session import AttachedSession, attach
from squallpy.live.host import Host
from squallpy.live.hosted_run import HostedRun
from squallpy.live.run_reader import RunReader
from squallpy.runtime.checkpoint.checkpoint import hold_lease
from squallpy.runtime.observers.protocol import Observer
from squallpy.script_session import RunOptions, ScriptSession
from squallpy.testing.ignoring_sink import IgnoringSink
from squallpy.web.monitoring import SERVICES, monitored

SCRIPT = """
CREATE STREAM r (a BIGINT, v INT) USING csv OPTIONS (path 'in/', watch 'true', header 'true');
CREATE TABLE names (a BIGINT, name VARCHAR) USING csv OPTIONS (path 'names.csv', header 'true');
CREATE VIEW large AS SELECT * FROM r WHERE v > 1;
CREATE MATERIALIZED VIEW `Sums` AS SELECT a, SUM(v) AS v FROM large GROUP BY a;
SELECT COUNT(*) AS n FROM r;
"""
PATIENCE = 600  # seconds until a batch, before which Spark starts, is given up


class Batches(Observer):
    """The batches of a run, for those who wait for them."""

    def __init__(self) -> None:
        self.done = threading.Semaphore(0)

    def on_query_progress(self, report: Any) -> None:
        self.done.release()


class Run:
    """A run without end in a thread, to which others can attach."""

    def __init__(self, room: Path, backend: str) -> None:
        self.room, self.stop, self.checkpoint = room, threading.Event(), room / "kept"
        (room / "in").mkdir()
        (room / "names.csv").write_text("a,name\n1,one\n")
        session = ScriptSession(room / "q.sql", text=SCRIPT)
        self.reader, self.batches, self.begun = RunReader(), Batches(), threading.Event()
        self.reader.observers.add(self.batches)
        hosted = HostedRun(session.path, SCRIPT, session.script, session.settings, self.reader, {"backend": backend})

        def run() -> None:
            with hold_lease(str(self.checkpoint)) as lease, closing(Host(self.checkpoint)) as host:
                host.serve(lambda: (hosted, SERVICES))
                self.begun.set()
                options = RunOptions(backend, checkpoint=str(self.checkpoint), lease=lease, tap=self.reader.tap)
                session.run(options, IgnoringSink(), self.stop, observer=self.reader)

        self.thread = threading.Thread(target=run)
        self.thread.start()
        assert self.begun.wait(PATIENCE)

    def add(self, rows: str) -> None:
        """Add a file, and wait for its batch."""
        number = len([*(self.room / "in").iterdir()])
        (self.room / "in" / f".{number}").write_text(f"a,v\n{rows}")
        (self.room / "in" / f".{number}").rename(self.room / "in" / f"{number}.csv")
        assert self.batches.done.acquire(timeout=PATIENCE)

    def end(self) -> None:
        self.stop.set()
        self.thread.join()


@pytest.fixture
def run(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Run]:
    run = Run(tmp_path, getattr(request, "param", "local"))
    try:
        run.add("1,2\n2,3\n2,1\n")
        yield run
    finally:
        run.end()


@pytest.fixture
def attached(run: Run) -> Iterator[AttachedSession]:
    session = attach(str(run.checkpoint), writes=True)
    assert session
    yield session
    session.close()


def rows(session: AttachedSession, text: str) -> list[dict[str, Any]]:
    (outcome,) = session.execute(text)
    assert outcome.table is not None
    return outcome.table.to_pylist()


@pytest.mark.parametrize(
    "run", ["local", pytest.param("spark", marks=[pytest.mark.spark, pytest.mark.long])], indirect=True
)
def test_a_run_is_read_by_statements(run: Run, attached: AttachedSession) -> None:
    """Its views and its SELECTs, by name; each answer is as of one batch."""
    assert [(each["name"], each["kind"]) for each in rows(attached, "SHOW VIEWS")] == [
        ("large", "view"), ("Sums", "materialized view"), ("query2", "materialized view"),
    ]  # fmt: skip
    assert [each["name"] for each in rows(attached, "show streams")] == ["r"]
    assert rows(attached, "DESCRIBE sums")[1] == {"column": "v", "type": "BIGINT", "nullable": "YES"}
    text = "SELECT name, v, n FROM SUMS JOIN names USING (a), query2"
    assert rows(attached, text) == [{"name": "one", "v": 2, "n": 3}]
    run.add("1,4\n")
    assert rows(attached, text) == [{"name": "one", "v": 6, "n": 4}]
    assert attached.table("sums").sort_by("a").to_pylist() == [{"a": 1, "v": 6}, {"a": 2, "v": 3}]
    (explained,) = attached.execute("EXPLAIN `Sums`")
    assert "RESULT of Sums" in (explained.text or "")
    assert attached.stats("query2")["rows"] == 1


def test_a_run_takes_no_statements(run: Run, attached: AttachedSession) -> None:
    assert not attached.is_writable and attached.is_of_script
    changes = ["CREATE VIEW w AS SELECT a FROM r", "DROP VIEW sums", "PAUSE", "SET hash_rows = 5"]
    for text in changes:
        with pytest.raises(SquallError, match=r"SQ7013.* a statement changes what .* from q.sql, end the run"):
            [*attached.execute(text)]
    with pytest.raises(SquallError, match="SQ7013"):
        attached.step()
    with pytest.raises(SquallError, match="SQ7013"):
        [*attached.execute("SELECT a FROM r", maintains=True)]
    for text in ("SELECT * FROM nothing", "SUBSCRIBE nothing"):
        with pytest.raises(SquallError, match="SQ2001"):
            [*attached.execute(text)]
    with pytest.raises(SquallError, match=r"SQ3001.*the changes of Sums are not passed on by its run, read its rows"):
        attached.subscribe("sums")
    run.end()
    with pytest.raises(SquallError, match="SQ7014"):
        attached.table("sums")


def test_the_page_of_a_run_elsewhere(run: Run, attached: AttachedSession) -> None:
    page = monitored(attached)
    assert page.batch == 0 and page.catalogue()["name"] == "q.sql"
    run.add("2,7\n")
    assert page.batch == 1
    found = page.rows("Sums")
    assert found.batch == 1 and {"a": 2, "v": 10} in found.table.to_pylist()
    assert page.report()["state"] == "running" and 'source="r"' in page.metrics()


def test_who_reads_does_not_wait_for_ever(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A batch that takes long is told, and goes on; who reads when the run has ended does not wait."""
    monkeypatch.setattr(run_reader, "_PATIENCE", 0.01)
    reader = RunReader()
    with pytest.raises(SquallError, match="SQ7010"), reader.hold():
        raise AssertionError
    reader.on_query_idle({})  # NB: nobody waits any more
    reader.end(ValueError, ValueError(), None)
    with pytest.raises(SquallError, match="SQ7012"), reader.hold():
        raise AssertionError


def test_run_and_prompt_at_one_checkpoint(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "names.csv").write_text("a,name\n1,one\n")
    (tmp_path / "q.sql").write_text(SCRIPT)
    squall = [sys.executable, "-m", "squallpy.terminal"]
    command = [*squall, "run", "q.sql", "--backend", "local", "--checkpoint", "kept"]
    with subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, text=True) as running:
        try:
            (tmp_path / "in" / "1.csv").write_text("a,v\n1,2\n")
            assert running.stdout and running.stdout.readline()
            asked = subprocess.run(
                [*squall, "--checkpoint", "kept", "-c", "SELECT v FROM sums"],
                cwd=tmp_path, capture_output=True, text=True, timeout=60,
            )  # fmt: skip
        finally:
            running.terminate()
    assert (asked.stdout, asked.stderr) == ("v\n2\n", "attached to the run at kept to read\n")
    assert running.returncode == 0
