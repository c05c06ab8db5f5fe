"""Rows POSTed to a server: batches in order, the same key for what is sent again, what is refused."""

import json
import threading
from collections import Counter
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from squallpy.base.errors import SquallError
from tests.connectors.runs import Running, run
from tests.connectors.servers import free_port


class Server(ThreadingHTTPServer):
    """A web server that remembers requests, and answers them as it is told; None: it hangs up."""

    def __init__(self, port: int = 0) -> None:
        super().__init__(("127.0.0.1", port), Handler)
        self.requests = list[tuple[dict[str, str], list[Any]]]()
        self.answers = list[int | None]()
        threading.Thread(target=self.serve_forever, daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/hook?of=test"

    @property
    def told(self) -> list[Any]:
        """The rows of all requests, each key once."""
        return [row for rows in {h["idempotency-key"]: rows for h, rows in self.requests}.values() for row in rows]


class Handler(BaseHTTPRequestHandler):
    """The handler of its requests."""

    protocol_version = "HTTP/1.1"
    server: Server

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"]))
        assert self.path == "/hook?of=test"
        headers = {name.lower(): value for name, value in self.headers.items()}
        self.server.requests.append((headers, [json.loads(line) for line in body.splitlines()]))
        status = self.server.answers.pop(0) if self.server.answers else 204
        if status is None:
            self.close_connection = True
            return
        self.send_response(status)
        said = b"not so\nmore" if status >= 400 else b""
        if status == 429:
            self.send_header("retry-after", "0")
        self.send_header("content-length", str(len(said)))
        self.end_headers()
        self.wfile.write(said)

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing."""


@pytest.fixture
def server() -> Iterator[Server]:
    made = Server()
    yield made
    made.shutdown()
    made.server_close()


def script(folder: Path, url: str, more: str = "", query: str = "SELECT k, COUNT(*) AS n FROM r GROUP BY k") -> str:
    stream = f"CREATE STREAM r (k VARCHAR, v INT) USING csv OPTIONS (path '{folder}/in/', watch 'true');"
    return f"{stream} CREATE SINK s USING webhook OPTIONS (url '{url}'{more}) AS {query};"


def put(folder: Path, name: str, text: str) -> None:
    (folder / "in").mkdir(exist_ok=True)
    (folder / f".{name}").write_text(text)
    (folder / f".{name}").rename(folder / "in" / name)


def test_changes_are_posted(server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A server that is busy or hangs up is sent the same request again, and nothing is missing."""
    monkeypatch.setenv("HOOK_TOKEN", "secret")
    text = script(tmp_path, server.url, ", 'header.X-Token' 'of ${env:HOOK_TOKEN}', mode 'changes', request.rows '2'")
    put(tmp_path, "1.csv", "a,1\nb,2\na,3\nc,4\n")
    server.answers = [503, None, 429, 200, 408]
    run(text, checkpoint=tmp_path / "kept")
    put(tmp_path, "2.csv", "a,5\n")
    run(text, checkpoint=tmp_path / "kept")
    assert all(headers["x-token"] == "of secret" for headers, _ in server.requests)
    assert [len(rows) for _, rows in server.requests] == [2, 2, 2, 2, 1, 1, 2]
    keys = [headers["idempotency-key"] for headers, _ in server.requests]
    assert len({*keys[:4]}) == len({*keys[4:6]}) == 1 and len({*keys}) == 3
    assert all(key.startswith("s-") for key in keys) and "secret" not in str(keys)
    answer = Counter[tuple[str, int]]()
    for row in server.told:
        answer[row["k"], row["n"]] += 1 if row["op"] == "+" else -1
    assert +answer == Counter([("a", 3), ("b", 1), ("c", 1)])
    kept = (path for path in (tmp_path / "kept").rglob("*") if path.is_file())
    assert not any(b"secret" in path.read_bytes() for path in kept)


def test_what_is_refused(server: Server, tmp_path: Path) -> None:
    put(tmp_path, "1.csv", "a,1\n")
    upsert = script(tmp_path, server.url, ", mode 'upsert'")
    server.answers = [422]
    with pytest.raises(
        SquallError, match=r"SQ7006 script.sql:.* batch 0 cannot be sent: 127.0.0.1:[0-9]+ answers 422 not so, the"
    ):
        run(upsert, checkpoint=tmp_path / "kept")
    run(upsert, checkpoint=tmp_path / "kept")  # NB: what is mended goes on
    assert server.told[-1] == {"batch": 0, "op": "+", "k": "a", "n": 1}
    for url, more, says in (
        ("ftp://h/x", "", r"SQ7002 .*the url is none of a web server, such as https://example.org/hook"),
        ("http://h:x/", "", r"SQ7002 .*the url is none of a web server"),
        (f"http://127.0.0.1:{free_port()}/", ", connect_timeout '0.2 seconds'", "SQ8010 .*127.0.0.1:[0-9]+ cannot be"),
        (server.url, ", 'header.a' '${env:NOT_THERE}'", r"SQ7002 .*the environment has no variable NOT_THERE"),
        (server.url, ", request.rows '0'", r'SQ7002 .*option "request.rows" cannot be "0", a number of at least 1'),
        (server.url, ", timeout 'x'", r'SQ7002 .*option "timeout" cannot be "x", an interval above 0'),
        (server.url, ", existing 'keep'", r'SQ7002 .*unknown option "existing" of webhook'),
    ):  # fmt: skip
        with pytest.raises(SquallError, match=says):
            run(script(tmp_path, url, ", mode 'changes'" + more))
    with pytest.raises(SquallError, match=r'SQ7002 .*unknown format "webhook"'):
        run("CREATE STREAM r USING webhook OPTIONS (url 'http://h/'); SELECT * FROM r;")
    with pytest.raises(SquallError, match=r'"s" has no url'):
        run(upsert.replace(f"url '{server.url}', ", ""))


def test_a_server_that_goes_away(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """A run waits for it, and says so once; at the start it says how often rows may come."""
    server = Server()
    url, port = server.url, server.server_port
    put(tmp_path, "1.csv", "a,1\n")
    with Running(script(tmp_path, url, ", mode 'append'", "SELECT k, v FROM r"), tmp_path / "kept") as running:
        running.wait_for(lambda: len(server.told) == 1)
        server.answers = [None]
        server.shutdown()
        server.server_close()
        put(tmp_path, "2.csv", "b,2\n")
        running.wait_for(lambda: "server is away" in caplog.text)
        again = Server(port)
        running.wait_for(lambda: again.told == [{"k": "b", "v": 2}])
    again.shutdown()
    again.server_close()
    assert caplog.text.count("server is away") == caplog.text.count("server is back") == 1
    assert caplog.text.count("delivery") == 1
