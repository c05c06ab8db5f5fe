"""Rows that are POSTed: whole requests, safe when they are answered, each once, whatever is killed."""

import gzip
import http.client
import json
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from squallpy.base.errors import SquallError
from squallpy.base.settings import Settings
from squallpy.live.live_session import LiveSession
from squallpy.runtime.checkpoint import spool
from squallpy.script_session import RunOptions, ScriptSession
from tests.kept import Kept, Killed, Mortal

COLUMNS, QUERY = "k INT, v VARCHAR", "SELECT k, COUNT(*) AS n, MAX(v) AS m FROM r GROUP BY k"
NDJSON, CSV, ARROW = "application/x-ndjson", "text/csv", "application/vnd.apache.arrow.stream"


class World:
    """A script over addresses, a checkpoint and a sink; `run` runs it in a thread."""

    def __init__(self, folder: Path, script: str = "", options: str = "", columns: str = COLUMNS) -> None:
        self.folder, self.sink, self.backend, self.error = folder, Mortal(), "local", list[BaseException]()
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port = free.getsockname()[1]
        stream = f"CREATE STREAM r ({columns}) USING http OPTIONS (port 'PORT'{options});"
        self.script = (script or f"{stream}\n{QUERY};").replace("PORT", str(self.port))

    @contextmanager
    def run(self, wanted: list[dict[str, Any]] | None = None) -> Iterator[None]:
        """Run while the block does, and until the rows are as wanted."""
        self.error.clear()
        stop, settings = threading.Event(), Settings(local_dir=str(self.folder / "local"))
        options = RunOptions(self.backend, batch_rows=3, changes=True, checkpoint=str(self.folder / "kept"))

        def work() -> None:
            try:
                ScriptSession(self.folder / "q.sql", settings, self.script).run(options, self.sink, stop)
            except BaseException as error:
                self.error.append(error)

        thread = threading.Thread(target=work)
        thread.start()
        try:
            yield
            looks = 60_000
            while thread.is_alive() and wanted is not None and self.sink.kept_rows != sorted(map(str, wanted)):
                assert (looks := looks - 1), self.sink.kept_rows
                stop.wait(0.01)
        finally:
            stop.set()
            thread.join()

    def push(self, body: str | bytes, kind: str | None = NDJSON, path: str = "/r", **headers: str) -> tuple[int, Any]:
        """POST a body, as soon as somebody listens; return the status and the answer."""
        given = {name.replace("_", "-"): value for name, value in headers.items()}
        for _ in range(6000):
            connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=600)
            try:
                connection.request("POST", path, body, given | ({"Content-Type": kind} if kind else {}))
                answer = connection.getresponse()
                said = json.loads(answer.read())
            except ConnectionRefusedError:
                assert not self.error, self.error
                threading.Event().wait(0.01)
                continue
            finally:
                connection.close()
            if answer.status != 503 or "has not begun" not in said["error"]:
                return answer.status, said
        raise AssertionError("nobody listens")


def answer(*rows: tuple[int, int, str | None]) -> list[dict[str, Any]]:
    return [{"k": k, "n": n, "m": m} for k, n, m in rows]


def arrow(**columns: Any) -> bytes:
    table, sink = pa.table(columns), pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue())


@pytest.mark.parametrize(
    ("options", "kind", "bodies"),
    [
        ("", NDJSON, [b'{"k": 1, "v": "a"}\n{"v": "b", "k": 2}', b'{"k": 1, "v": "c"}\r\n{"k": 2}\n', b"\n\n"]),
        (", format 'csv', delimiter '|', null '-'", CSV, [b"1|a\n2|b\n", b'1|"c"\n2|-\n']),
        (
            ", format 'arrow'",
            ARROW,
            [arrow(k=[1, 2], v=["a", "b"]), arrow(v=["c", None], k=pa.array(["1", "2"]), beside=[1, 2])],
        ),
    ],
)
def test_rows_in_each_format(tmp_path: Path, options: str, kind: str, bodies: list[bytes]) -> None:
    world = World(tmp_path, options=options)
    with world.run(answer((1, 2, "c"), (2, 2, "b"))):
        assert [world.push(body, kind)[1] for body in bodies] == [{"rows": 2}, {"rows": 2}, {"rows": 0}][: len(bodies)]
        if kind != ARROW:
            assert world.push(gzip.compress(b"\n"), kind, Content_Encoding="gzip") == (200, {"rows": 0})
    assert not world.error


def test_several_streams_at_one_address(tmp_path: Path) -> None:
    world = World(
        tmp_path,
        """CREATE STREAM a (k INT) USING http OPTIONS (port 'PORT', endpoint '/in/a');
        CREATE STREAM b (k INT, x INT) USING http OPTIONS (port 'PORT', host '127.0.0.1', op 'op');
        SELECT a.k, SUM(x) AS s FROM a JOIN b ON a.k = b.k GROUP BY a.k;""",
    )
    with world.run([{"k": 1, "s": 5}]):
        assert world.push('{"k": 1}', path="/in/a") == (200, {"rows": 1})
        rows = [{"k": 1, "x": 5, "op": "+"}, {"k": 1, "x": 7, "op": "+"}, {"k": 1, "x": 7, "op": "-"}]
        assert world.push("\n".join(map(json.dumps, rows)), path="/b") == (200, {"rows": 3})
        assert world.push("{}", path="/a")[0] == 404
    assert not world.error


def test_pushed_rows_under_the_views_of_a_session(tmp_path: Path) -> None:
    world, session = World(tmp_path), LiveSession()
    [*session.execute(world.script.partition("\n")[0])]
    [*session.execute(f"CREATE MATERIALIZED VIEW w AS {QUERY};")]
    said = list[Any]()
    thread = threading.Thread(target=lambda: said.append(world.push('{"k": 1, "v": "a"}')))
    thread.start()
    looks = 60_000
    while session.table("w").to_pylist() != answer((1, 1, "a")):
        session.step()
        threading.Event().wait(0.01)
        assert (looks := looks - 1), session.table("w").to_pylist()
    thread.join()
    assert said == [(200, {"rows": 1})]
    session.close()


def _killed(world: World) -> None:
    """Die in a batch whose rows are then in the spool alone; what was answered is there, once."""
    world.sink.dies = True
    with world.run():
        assert world.push('{"k": 1, "v": "a"}') == (200, {"rows": 1})
        while not world.error:
            threading.Event().wait(0.01)
    assert isinstance(world.error[0], Killed)
    with world.run(answer((1, 2, "b"))):
        assert world.push('{"k": 1, "v": "b"}') == (200, {"rows": 1})
    assert not world.error
    with world.run(answer((1, 2, "b"))):
        pass
    assert len([*(world.folder / "kept").rglob("spool/*")]) == 1, "what is committed has gone from the spool"


def test_killed_in_one_process(tmp_path: Path) -> None:
    _killed(World(tmp_path))


@pytest.mark.spark
def test_killed_on_spark(cluster: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from squallpy.runtime.spark import executor

    monkeypatch.setattr(executor, "start", lambda *_: nullcontext(cluster))
    world = World(tmp_path)
    world.backend = "spark"
    _killed(world)


def test_many_at_once(tmp_path: Path) -> None:
    world, said = World(tmp_path), list[Any]()
    with world.run([{"k": k, "n": 30, "m": "x"} for k in range(8)]):
        assert world.push("")[0] == 200

        def work(k: int) -> None:
            for _ in range(10):
                said.append(world.push(f'{{"k": {k}, "v": "x"}}\n' * 3))

        threads = [threading.Thread(target=work, args=(k,)) for k in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert said == [(200, {"rows": 3})] * 80
    assert not world.error


def fault_bodies_that_cannot_be_read(tmp_path: Path) -> None:
    """A request is taken as a whole or not at all; what was not taken is told, and the run goes on."""
    world = World(tmp_path)
    with world.run(answer((1, 1, "a"))):
        status, said = world.push('{"k": 1, "v": "lost"}\n{"k": "x"}\n')
        assert status == 400 and said["code"] == "SQ4004" and "/r, row 2" in said["error"], said
        assert world.push("[1]")[1]["code"] == "SQ4003"
        assert world.push(b"{", Content_Encoding="gzip")[0] == 400
        assert world.push("x", Content_Encoding="br")[0] == 400
        assert world.push("1,a", CSV)[0] == 415
        assert world.push("", path="/")[0] == 404
        assert world.push('{"k": 9}', Origin="http://elsewhere")[0] == 403
        assert world.push('{"k": 9}', Host="elsewhere.example")[0] == 403
        assert world.push('{"k": 1, "v": "a"}', None) == (200, {"rows": 1})
        with pytest.raises(http.client.BadStatusLine), socket.create_connection(("127.0.0.1", world.port)) as cut:
            cut.sendall(b'POST /r HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99\r\n\r\n{"k": 1}\n')
            cut.shutdown(socket.SHUT_WR)
            raise http.client.BadStatusLine(cut.recv(1).decode())
        for request, code in ((b"GET /r", b" 405 "), (b"POST /r", b" 411 ")):
            with socket.create_connection(("127.0.0.1", world.port)) as bare:
                bare.sendall(request + b" HTTP/1.1\r\nHost: localhost\r\n\r\n")
                assert code in bare.recv(100)
    assert not world.error


def fault_rows_that_are_left_out(tmp_path: Path) -> None:
    letters = tmp_path / "letters.jsonl"
    world = World(tmp_path, options=f", on_error 'dead-letter', dead_letter '{letters}'")
    with world.run(answer((1, 2, "b"))):
        assert world.push('{"k": 1, "v": "a"}\n{"k": "x"}\n{"k": 1, "v": "b"}') == (200, {"rows": 3})
    assert not world.error
    (line,) = letters.read_text().splitlines()
    assert json.loads(line)["row"] == 2


def fault_no_room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows that cannot be written are not answered for; they are pushed again when there is room."""
    world, add = World(tmp_path), spool.SpooledSource._add

    def full(self: Any, *args: Any) -> None:
        raise SquallError("SQ6006", "cannot write state: no space left on device")

    with world.run(answer((1, 1, "b"))):
        assert world.push("")[0] == 200
        monkeypatch.setattr(spool.SpooledSource, "_add", full)
        assert world.push('{"k": 1, "v": "a"}')[0] == 503
        monkeypatch.setattr(spool.SpooledSource, "_add", add)
        assert world.push('{"k": 1, "v": "b"}') == (200, {"rows": 1})
    assert not world.error


def test_a_token(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(tmp_path, options=", host '0.0.0.0', token_env 'PUSHED'")
    with world.run():
        pass
    assert "SQ7002" in str(world.error[0]) and "the environment has no PUSHED" in str(world.error[0])
    monkeypatch.setenv("PUSHED", "s3cret")
    with world.run(answer((1, 1, "a"))):
        assert world.push('{"k": 1, "v": "x"}')[0] == 401
        assert world.push('{"k": 1, "v": "x"}', Authorization="Bearer wrong")[0] == 401
        assert world.push('{"k": 1, "v": "a"}', Authorization="Bearer s3cret")[0] == 200
    assert not world.error


@pytest.mark.parametrize(
    ("relation", "fault"),
    [
        ("STREAM r (k INT) USING http", 'SQ7002 .* "r" has no port'),
        ("STREAM r (k INT) USING http OPTIONS (port '1', endpoint 'x')", 'SQ7002 .* option "endpoint" cannot be "x"'),
        ("STREAM r (k INT) USING http OPTIONS (port '1', host '0.0.0.0')", "SQ7002 .* others than this machine"),
        ("STREAM r (k INT) USING http OPTIONS (port '1', format 'avro')", 'SQ7002 .* option "format" cannot be "avro"'),
        ("STREAM r (k INT) USING http OPTIONS (port '1', sep ';')", "SQ7002 .* is for csv, not for json"),
        ("STREAM r (k INT) USING http OPTIONS (port '1', format 'arrow', on_error 'skip')", "SQ7002 .* 'skip' is"),
        ("STREAM r (k INT) USING socket OPTIONS (port '1', format 'arrow')", 'SQ7002 .* cannot be "arrow"'),
        ("STREAM r USING http OPTIONS (port '1')", "SQ4002 .* tells no columns"),
        ("TABLE r (k INT) USING http OPTIONS (port '1')", "SQ7002 .* declare a STREAM"),
        ("STREAM r (k INT) USING http OPTIONS (port 'PORT')", r"SQ7005 .* cannot listen on 127.0.0.1:\d+: addr"),
        (
            "STREAM s (k INT) USING http OPTIONS (port 'FREE', endpoint '/r'); "
            "CREATE STREAM r (k INT) USING http OPTIONS (port 'FREE')",
            "SQ7002 .* two streams are at http://127.0.0.1",
        ),
    ],
)  # fmt: skip
def fault_no_address(tmp_path: Path, relation: str, fault: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken, socket.create_server(("127.0.0.1", 0)) as free:
        ports = {"PORT": taken.getsockname()[1], "FREE": free.getsockname()[1]}
        free.close()
        for name, port in ports.items():
            relation = relation.replace(name, str(port))
        other = "SELECT COUNT(*) AS n FROM s UNION ALL " if "STREAM s" in relation else ""
        with pytest.raises(SquallError, match=fault):
            ScriptSession(tmp_path / "q.sql", None, f"CREATE {relation}; {other}SELECT COUNT(*) AS n FROM r;").run(
                RunOptions("local"), Kept()
            )
