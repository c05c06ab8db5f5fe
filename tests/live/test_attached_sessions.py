"""Sessions that attach to the process that has a checkpoint: they read, and with write also change it."""

import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import squallpy
from squallpy import SquallError
from squallpy.api.session import Session
from squallpy.live.live_session import LiveSession
from squallpy.live.subscription import ViewSink
from tests.terminal.conftest import ENVIRONMENT, SQUALL

VIEW = "CREATE MATERIALIZED VIEW v AS SELECT k, SUM(x) AS s FROM r GROUP BY k"


@pytest.fixture
def host(tmp_path: Path) -> Iterator[Session]:
    """A session with a view, whose batches are applied by hand."""
    with squallpy.connect(checkpoint=tmp_path / "kept") as session:
        session.stream("r", schema={"k": "INT", "x": "INT"})
        session.sql(VIEW)
        session.push("r", [{"k": 1, "x": 2}, {"k": 2, "x": 5}])
        session.step()
        yield session


def attached(tmp_path: Path, write: bool = False) -> Session:
    return squallpy.connect(checkpoint=tmp_path / "kept", write=write)


def rows(session: Session, text: str = "SELECT * FROM v ORDER BY k") -> list[dict[str, Any]]:
    return session.query(text).to_arrow().to_pylist()


def test_one_that_reads_sees_whole_batches(host: Session, tmp_path: Path) -> None:
    with attached(tmp_path) as reader:
        assert reader.view("v").to_arrow().equals(host.view("v").to_arrow())
        assert rows(reader) == [{"k": 1, "s": 2}, {"k": 2, "s": 5}]
        changes = reader.view("V").changes(snapshot=True)
        assert [changes.next(0).inserts.num_rows, changes.next(0)] == [2, None]
        host.push("r", [{"k": 1, "x": 1}])
        assert rows(reader, "SELECT s FROM v WHERE k = 1") == [{"s": 2}]
        report = host.step()
        assert rows(reader, "SELECT s FROM v WHERE k = 1") == [{"s": 3}]
        change = changes.next(10)
        assert report and change and change.number == report.number
        assert (change.deletes.to_pylist(), change.inserts.to_pylist()) == ([{"k": 1, "s": 2}], [{"k": 1, "s": 3}])
        assert reader.table("r").columns == host.table("r").columns
        assert reader.view("v").stats()["rows"] == 2 and reader.explain("v") == host.explain("v")


@pytest.mark.parametrize(
    ("work", "code"),
    [
        (lambda s: s.push("r", [{"k": 1, "x": 1}]), "SQ7013"),
        (lambda s: s.step(), "SQ7013"),
        (lambda s: s.start(), "SQ7013"),
        (lambda s: s.sql("DROP MATERIALIZED VIEW v"), "SQ7013"),
        (lambda s: s.sql("SET batch_rows = 5"), "SQ7013"),
        (lambda s: s.sql("PAUSE"), "SQ7013"),
        (lambda s: s.sql("SELECT k FROM r"), "SQ7013"),
        (lambda s: s.query("SELECT k FROM r"), "SQ3001"),
        (lambda s: s.query("SELECT kk FROM v"), "SQ2003"),
        (lambda s: s.view("w"), "SQ2001"),
        (lambda s: s.push("r", [{"k": "a", "x": 1}]), "SQ4004"),
        (lambda s: s.push("v", []), "SQ2001"),
    ],
)
def fault_what_is_refused_changes_nothing(host: Session, tmp_path: Path, work: Any, code: str) -> None:
    before = host.view("v").to_arrow()
    with attached(tmp_path) as reader:
        with pytest.raises(SquallError) as caught:
            work(reader)
        assert caught.value.code == code
        assert reader.view("v").to_arrow().equals(before) and host.step() is None


def test_errors_have_their_place(host: Session, tmp_path: Path) -> None:
    with attached(tmp_path, write=True) as writer, pytest.raises(SquallError) as caught:
        writer.sql("CREATE MATERIALIZED VIEW a AS SELECT k FROM r;\nCREATE MATERIALIZED VIEW b AS\nSELECT kk FROM r")
    assert caught.value.span and (caught.value.span.line, caught.value.span.column) == (3, 8)
    assert rows(host, "SELECT COUNT(*) AS n FROM a") == [{"n": 2}]


def test_one_that_writes_takes_turns_with_others(host: Session, tmp_path: Path) -> None:
    with attached(tmp_path, write=True) as writer, attached(tmp_path, write=True) as other:
        writer.stream("t", schema={"k": "INT", "name": "VARCHAR"})
        other.sql("CREATE MATERIALIZED VIEW named AS SELECT name, s FROM v JOIN t ON v.k = t.k")
        writer.push("t", [{"k": 1, "name": "é"}])
        assert host.run_until_caught_up() == 1
        assert rows(writer, "SELECT * FROM named") == [{"name": "é", "s": 2}]
        writer.push("r", [{"k": 1, "x": 1}])
        report = other.step()
        assert report and report.tuples == 1
        assert rows(host, "SELECT * FROM named") == [{"name": "é", "s": 3}]
        with pytest.raises(SquallError, match="named reads it"):
            writer.view("v").drop()
        derived = writer.table("v").filter(lambda r: r.s > 2).select("k").materialize("big")
        assert derived.to_arrow().to_pylist() == [{"k": 1}, {"k": 2}]
        assert host.view("big").to_arrow().num_rows == 2


def test_what_was_asked_for_ends_with_who_asked(host: Session, tmp_path: Path) -> None:
    """A SELECT that is kept fresh is of the one who gave it; a view that was named stays."""
    with attached(tmp_path, write=True) as writer:
        live = writer.sql("SELECT COUNT(*) AS n FROM r")
        writer.sql("CREATE MATERIALIZED VIEW stays AS SELECT k FROM r")
        assert live and live.to_arrow().num_rows == 1
        assert live.name in repr(host)
    for _ in range(100):
        if live.name not in repr(host):
            break
        threading.Event().wait(0.05)
    assert live.name not in repr(host) and "stays" in repr(host)


def test_changes_come_to_iterators_and_callbacks(host: Session, tmp_path: Path) -> None:
    with attached(tmp_path) as reader:
        seen, done = list[Any](), threading.Event()

        def note(change: Any) -> None:
            seen.append(change.inserts.to_pylist())
            done.set()

        reader.on_change("v", note)
        changes = reader.view("v").changes()
        host.start()
        host.push("r", [{"k": 3, "x": 3}])
        assert next(iter(changes)).inserts.to_pylist() == [{"k": 3, "s": 3}]
        assert done.wait(600) and seen == [[{"k": 3, "s": 3}]]
        changes.close()
        assert changes.next() is None and changes.is_closed
        host.stop()


def test_no_changes_wait_for_one_that_has_left(host: Session, tmp_path: Path) -> None:
    """Also where it was not reading when it left."""
    sink = host._session.entries.maintained["v"].sink
    assert isinstance(sink, ViewSink)
    with attached(tmp_path) as reader:
        changes = reader.view("v").changes()
        assert changes.next(0) is None and sink.is_read
        changes.close()
        gone = (threading.Event().wait(0.05) for _ in range(100) if sink.is_read)
        assert not any(gone) and not sink.is_read


def test_an_internal_error_ends_no_query_of_who_asked(
    host: Session, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its connection stays, with which the query would go."""
    with attached(tmp_path, write=True) as writer:
        live = writer.sql("SELECT COUNT(*) AS n FROM r")
        monkeypatch.setattr(LiveSession, "table", lambda *_: [][1])
        with pytest.raises(RuntimeError, match="IndexError"):
            writer.view("v").to_arrow()
        monkeypatch.undo()
        threading.Event().wait(0.2)
        assert live and live.to_arrow().num_rows == 1


def test_a_subscription_ends_as_that_of_the_host_does(host: Session, tmp_path: Path) -> None:
    with attached(tmp_path) as reader:
        gone = reader.view("v").changes()
        host.sql("ALTER MATERIALIZED VIEW v AS SELECT k FROM r")
        with pytest.raises(SquallError, match="SQ2014"):
            gone.next(10)
        dropped = reader.view("v").changes()
        host.view("v").drop()
        assert dropped.next(10) is None and dropped.is_closed
        with pytest.raises(SquallError, match="SQ2001"):
            reader.view("v")


def fault_the_host_ends(host: Session, tmp_path: Path) -> None:
    with attached(tmp_path) as reader:
        waiting = reader.view("v").changes()
        view = reader.view("v")
        host.close()
        for work in (lambda: waiting.next(10), view.to_arrow, lambda: rows(reader)):
            with pytest.raises(SquallError, match="SQ7014"):
                work()
        with attached(tmp_path) as next_host:  # it goes on, and the reader is attached to it
            assert rows(next_host) == [{"k": 1, "s": 2}, {"k": 2, "s": 5}]
            assert view.to_arrow().num_rows == 2
    with pytest.raises(SquallError, match="SQ7012"):
        reader.view("v")


def test_a_host_that_has_ended_is_told_once(host: Session, tmp_path: Path) -> None:
    """However many connections there were; then whoever has the session is asked."""
    with attached(tmp_path) as reader:
        threads = [threading.Thread(target=lambda: reader.view("v").to_arrow()) for _ in range(4)]
        for each in threads:
            each.start()
        for each in threads:
            each.join()
        host.close()
        with attached(tmp_path):
            with pytest.raises(SquallError, match="SQ7014"):
                reader.view("v")
            assert reader.view("v").to_arrow().num_rows == 2


def fault_a_peer_that_is_no_session(host: Session, tmp_path: Path) -> None:
    """Whatever is sent, the host goes on."""
    other = b"\0" * 7 + b"\x0e" + b'{"tables": []}'
    for sent in (b"", b"\0", b"\xff" * 8, b"\0" * 7 + b"\x02{}", b"\0" * 7 + b"\x05hello", other, os.urandom(64)):
        with socket.socket(socket.AF_UNIX) as peer:
            peer.connect(str(tmp_path / "kept/.host/socket"))
            peer.sendall(sent)
    with attached(tmp_path) as reader:
        assert len(rows(reader)) == 2


def test_deep_folders_and_folders_of_others(tmp_path: Path) -> None:
    deep = tmp_path.joinpath(*["a folder with a long name"] * 5)
    with squallpy.connect(checkpoint=deep) as host:
        host.sql("CREATE STREAM r (k INT) USING pushed; CREATE MATERIALIZED VIEW v AS SELECT k FROM r")
        assert (deep / ".host").stat().st_mode & 0o777 == 0o700
        with squallpy.connect(checkpoint=deep) as reader:
            assert rows(reader, "SELECT * FROM v") == []
        (deep / ".host").chmod(0o755)  # somebody else might answer
        with pytest.raises(SquallError, match="SQ6007"):
            squallpy.connect(checkpoint=deep)
    assert not (deep / ".host").exists()


def fault_the_host_is_killed(tmp_path: Path) -> None:
    """Another process becomes the host, with all that was committed."""
    program = f"""
import squallpy
s = squallpy.connect(checkpoint="kept")
s.stream("r", schema={{"k": "INT", "x": "INT"}})
s.sql("{VIEW}")
s.push("r", [{{"k": 1, "x": 2}}])
s.start()
print("ready", flush=True)
input()
"""
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True, "env": ENVIRONMENT}
    with subprocess.Popen([sys.executable, "-c", program], cwd=tmp_path, **pipes) as process:
        assert process.stdout and process.stdout.readline() == "ready\n"
        with attached(tmp_path, write=True) as writer:
            writer.push("r", [{"k": 2, "x": 7}])
            writer.run_until_caught_up()
            shell = (*SQUALL, "--checkpoint", "kept", "-c", "SELECT SUM(s) AS s FROM v; DROP MATERIALIZED VIEW v")
            ended = subprocess.run(
                shell, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False, env=ENVIRONMENT
            )
            assert (ended.returncode, ended.stdout) == (2, "s\n9\n")
            assert ended.stderr.startswith("attached to the session at kept to read; --write also changes it\nSQ7013 ")
            process.send_signal(signal.SIGKILL)
            process.wait()
            with pytest.raises(SquallError, match="SQ7014"):
                writer.step()
    with attached(tmp_path) as host:
        assert rows(host) == [{"k": 1, "s": 2}, {"k": 2, "s": 7}]
