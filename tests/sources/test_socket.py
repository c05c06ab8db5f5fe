"""Lines of a TCP server: each is read once, whatever is killed; what a connection may do wrong."""

import socket
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import nullcontext, suppress
from pathlib import Path
from typing import Any

import pytest

from squallpy.base.batch_trigger import BatchTrigger
from squallpy.base.errors import SquallError
from squallpy.base.settings import Settings
from squallpy.live.live_session import LiveSession
from squallpy.script_session import RunOptions, ScriptSession
from tests.kept import Kept, Killed, Mortal

COLUMNS, QUERY = "k INT, v VARCHAR", "SELECT k, COUNT(*) AS n, MAX(v) AS m FROM r GROUP BY k"


class Server:
    """A server that sends bytes to each client, those after None only when it closes the connection."""

    def __init__(self, *sent: Sequence[bytes | None]) -> None:
        self.listening = socket.create_server(("127.0.0.1", 0))
        self.port = self.listening.getsockname()[1]
        self.sent, self.done = sent, threading.Event()
        self.thread = threading.Thread(target=self.serve, daemon=True)
        self.thread.start()

    def serve(self) -> None:
        for parts in self.sent:
            with suppress(OSError):
                client, _ = self.listening.accept()
                with client:
                    for part in parts:
                        if part is not None:
                            client.sendall(part)
                            time.sleep(0.01)
                    if None not in parts:
                        client.recv(1)  # NB: until the run ends
        self.done.set()

    def close(self) -> None:
        self.listening.close()


@pytest.fixture
def servers() -> Iterator[list[Server]]:
    started = list[Server]()
    yield started
    for server in started:
        server.close()


class UntilFound(threading.Event):
    """A wish to stop that comes when the changes add up to some rows, or after a minute."""

    def __init__(self, sink: Kept, wanted: Sequence[dict[str, Any]] | None) -> None:
        super().__init__()
        self.sink, self.looks = sink, 60_000
        self.wanted = None if wanted is None else sorted(map(str, wanted))

    def wait(self, timeout: float | None = None) -> bool:
        self.looks -= 1
        if self.sink.kept_rows == self.wanted or not self.looks:
            self.set()
        return super().wait(0.01)


class World:
    """A script over a socket, a checkpoint and a sink."""

    def __init__(self, folder: Path, server: Server, options: str = "", columns: str = COLUMNS) -> None:
        self.folder, self.sink, self.backend = folder, Mortal(), "local"
        given = f"host '127.0.0.1', port '{server.port}'{options}"
        self.script = f"CREATE STREAM r ({columns}) USING socket OPTIONS ({given});\n{QUERY};"

    def run(self, wanted: Sequence[dict[str, Any]] | None) -> None:
        """Run until the answer is there that is wanted, or without one until an error."""
        settings = Settings(local_dir=str(self.folder / "local"))
        options = RunOptions(
            self.backend, batch_rows=3, changes=True, checkpoint=str(self.folder / "kept"),
            trigger=BatchTrigger.parse("as-it-comes"),
        )  # fmt: skip
        ScriptSession(self.folder / "q.sql", settings, self.script).run(
            options, self.sink, UntilFound(self.sink, wanted)
        )
        assert wanted is not None and self.sink.rows == sorted(map(str, wanted))


def answer(*rows: tuple[int, int, str | None]) -> list[dict[str, Any]]:
    return [{"k": k, "n": n, "m": m} for k, n, m in rows]


@pytest.mark.parametrize(
    ("options", "sent"),
    [
        ("", [b"1,a\n", b"2,", b"b\r\n1", b",c\r", b"\n\n2,a\n3,lost"]),
        (", delimiter '|', null '-'", [b"1|a|\n2|b|\n", b"1|c|\n2|-|\n"]),
        (", format 'json'", [b'{"k": 1, "v": "a"}\n{"v": "b", "k": 2}\n', b'{"k": 1, "v": "c"}\n{"k": 2}\n']),
    ],
)
def test_lines_of_a_server(tmp_path: Path, servers: list[Server], options: str, sent: list[bytes]) -> None:
    servers.append(Server(sent))
    World(tmp_path, servers[0], options).run(answer((1, 2, "c"), (2, 2, "b")))


def test_a_view_over_a_server(servers: list[Server]) -> None:
    """In a session, whose input is its own."""
    servers.append(Server([b"1,a\n2,b\n", b"1,c\n"]))
    session = LiveSession()
    given = f"host '127.0.0.1', port '{servers[0].port}'"
    [*session.execute(f"CREATE STREAM r ({COLUMNS}) USING socket OPTIONS ({given});")]
    [*session.execute(f"CREATE MATERIALIZED VIEW w AS {QUERY};")]
    wanted, looks = sorted(map(str, answer((1, 2, "c"), (2, 1, "b")))), 60_000
    while sorted(map(str, session.table("w").to_pylist())) != wanted:
        session.step()
        time.sleep(0.01)
        assert (looks := looks - 1), session.table("w").to_pylist()
    session.close()


def test_changes_of_a_server(tmp_path: Path, servers: list[Server]) -> None:
    servers.append(Server([b"+,1,a\n+,2,b\n-,1,a\n+,2,c\n"]))
    World(tmp_path, servers[0], ", op 'c0'").run(answer((2, 2, "c")))


def _killed(world: World) -> None:
    """Die in a batch whose rows are then in the spool alone."""
    world.sink.dies = True
    with pytest.raises(Killed):
        world.run(answer((1, 1, "a")))
    world.run(answer((1, 2, "b")))


def test_killed_in_one_process(tmp_path: Path, servers: list[Server]) -> None:
    servers.append(Server([b"1,a\n"], [b"1,b\n"]))
    _killed(World(tmp_path, servers[0]))


@pytest.mark.spark
def test_killed_on_spark(cluster: Any, tmp_path: Path, servers: list[Server], monkeypatch: pytest.MonkeyPatch) -> None:
    from squallpy.runtime.spark import executor

    monkeypatch.setattr(executor, "start", lambda *_: nullcontext(cluster))
    servers.append(Server([b"1,a\n"], [b"1,b\n"]))
    world = World(tmp_path, servers[0])
    world.backend = "spark"
    _killed(world)


def fault_nobody_listens(tmp_path: Path, servers: list[Server]) -> None:
    server = Server()
    server.close()
    world = World(tmp_path, server)
    with pytest.raises(SquallError) as raised:
        world.run(None)
    wanted = f"cannot read the socket 127.0.0.1:{server.port}: connection refused, start the server first"
    assert raised.value.code == "SQ4001" and raised.value.span and wanted in str(raised.value)


def fault_the_connection_is_closed(tmp_path: Path, servers: list[Server]) -> None:
    """Its rows come first; the next run goes on with what the server sends then."""
    servers.append(Server([b"1,a\n2,b\n1,", None], [b"1,c\n"]))
    world = World(tmp_path, servers[0])
    with pytest.raises(SquallError, match=r"SQ4001 .* the connection was closed"):
        world.run(None)
    assert world.sink.kept_rows == sorted(map(str, answer((1, 1, "a"), (2, 1, "b"))))
    world.run(answer((1, 2, "c"), (2, 1, "b")))


FAULTY = b'1,a\n2,"b\nx,c\n1,"d"\n3\n2,"e\n2,f\n'


def fault_lines_that_cannot_be_read(tmp_path: Path, servers: list[Server]) -> None:
    """A quote that is open at the end of a line is a fault of that line alone."""
    servers += [Server([FAULTY]), Server([FAULTY])]
    letters = tmp_path / "letters.jsonl"
    world = World(tmp_path, servers[0], f", on_error 'dead-letter', dead_letter '{letters}'")
    world.run(answer((1, 2, "d"), (2, 1, "f")))
    rows = [line.partition('"row": ')[2].partition(",")[0] for line in letters.read_text().splitlines()]
    assert rows == ["2", "3", "5", "6"]
    (tmp_path / "other").mkdir()
    with pytest.raises(SquallError, match=rf"SQ4003 .*127.0.0.1:{servers[1].port}, row 2: a quote or an escape"):
        World(tmp_path / "other", servers[1]).run(None)


@pytest.mark.parametrize(
    ("relation", "fault"),
    [
        ("STREAM r (k INT) USING socket", 'SQ7002 .* "r" has no port'),
        ("STREAM r (k INT) USING socket OPTIONS (port '1')", "SQ7002 .* a socket needs a host"),
        ("STREAM r (k INT) USING socket OPTIONS (host '')", 'SQ7002 .* option "host" is empty'),
        ("STREAM r (k INT) USING socket OPTIONS (port '70000')", 'SQ7002 .* option "port" cannot be "70000"'),
        ("STREAM r (k INT) USING socket OPTIONS (format 'avro')", 'SQ7002 .* option "format" cannot be "avro"'),
        ("STREAM r (k INT) USING socket OPTIONS (watch 'true')", 'SQ7002 .* option "watch" is for files, not'),
        ("STREAM r (k INT) USING csv OPTIONS (port '1')", 'SQ7002 .* option "port" is for socket and http, not'),
        ("TABLE r (k INT) USING socket OPTIONS (host 'h', port '1')", "SQ7002 .* declare a STREAM"),
        ("STREAM r USING socket OPTIONS (host 'h', port '1')", "SQ4002 .* tells no columns"),
        ("STREAM r (_offset BIGINT) USING socket OPTIONS (host 'h', port '1')", "SQ3001 .* _offset of the socket"),
        (
            "STREAM r (k INT) USING socket OPTIONS (host 'h', port '1', sep ';', format 'json')",
            'SQ7002 .* option "delimiter" is for csv, not for json',
        ),
    ],
)
def fault_no_socket(tmp_path: Path, relation: str, fault: str) -> None:
    with pytest.raises(SquallError, match=fault):
        ScriptSession(tmp_path / "q.sql", None, f"CREATE {relation}; SELECT COUNT(*) AS n FROM r;").run(
            RunOptions("local"), Kept()
        )
