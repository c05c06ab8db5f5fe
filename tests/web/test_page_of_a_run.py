"""The page of `squall run --ui`: what the run tells its observers, rows between two batches, changes, its end."""

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from squallpy.base.addresses import Address
from squallpy.live.hosted_run import HostedRun
from squallpy.live.run_reader import RunReader
from squallpy.runtime.observers.protocol import Observer
from squallpy.script_session import RunOptions, ScriptSession
from squallpy.terminal.run_command import RunRequest, run_script
from squallpy.testing.ignoring_sink import IgnoringSink
from squallpy.web.monitored_run import MonitoredRun
from squallpy.web.page_server import PageServer
from tests.terminal.conftest import CLICKS, STREAM, Squall
from tests.web.test_page_server import events

SCRIPT = """
CREATE STREAM clicks (user VARCHAR, amount DECIMAL(10,2), day DATE)
    USING csv OPTIONS (path 'in/', watch 'true', header 'true', on_error 'dead-letter', dead_letter 'bad.jsonl');
CREATE MATERIALIZED VIEW most AS SELECT MAX(amount) AS most FROM clicks;
SELECT user, SUM(amount) AS total FROM clicks GROUP BY user ORDER BY user;
"""


class Run:
    """A run without end in a thread, and its page."""

    def __init__(self, room: Path) -> None:
        self.folder, self.stop = room / "in", threading.Event()
        self.folder.mkdir()
        self.add("1.csv", CLICKS)
        session = ScriptSession(room / "q.sql", text=SCRIPT)
        session.path = room / "q.sql"
        self.reader = RunReader()
        hosted = HostedRun(
            session.path, session.text, session.script, session.settings, self.reader, {"backend": "local"}
        )
        self.run = MonitoredRun(hosted)
        self.server = PageServer(Address("127.0.0.1", 0))
        self.server.show(self.run)
        self.client = httpx.Client(base_url=self.server.url, timeout=120)
        options = RunOptions("local", changes=True, final=False, tap=self.reader.tap)
        self.thread = threading.Thread(
            target=session.run, args=(options, IgnoringSink(), self.stop), kwargs={"observer": self.reader}
        )
        self.thread.start()

    def add(self, name: str, text: str) -> None:
        (self.folder / f".{name}").write_text(text)
        (self.folder / f".{name}").rename(self.folder / name)

    def get(self, path: str) -> Any:
        return self.client.get(path).json()

    def end(self) -> None:
        self.stop.set()
        self.thread.join()


@pytest.fixture
def run(tmp_path: Path) -> Iterator[Run]:
    run = Run(tmp_path)
    yield run
    run.end()
    run.server.close()


def test_a_run_shows_what_a_session_does(run: Run) -> None:
    with run.client.stream("GET", "/events") as stream:
        reports = events(stream)
        while next(reports)[1]["batch"] < 0:
            pass
    found = run.get("/catalogue")
    assert [(view["name"], view["kind"]) for view in found["views"]] == [("most", "view"), ("query2", "query")]
    assert found["about"] == {"backend": "local"} and found["graph"]["nodes"]
    assert run.get("/views/query2")["data"] == [{"user": "ann", "total": 1.75}, {"user": "bob", "total": 2.25}]
    assert run.get("/views/most")["data"] == [{"most": 2.25}]
    assert run.client.get("/views/most/changes").text.startswith('event: error\ndata: {"code": "SQ3001"')
    with run.client.stream("GET", "/views/QUERY2/changes?snapshot=1") as stream:
        changes = events(stream)
        assert next(changes)[1]["inserts"] == [{"user": "ann", "total": 1.75}, {"user": "bob", "total": 2.25}]
        run.add("2.csv", "user,amount,day\nzoe,9,2024-01-04\nzoe,none,2024-01-04\n")
        assert next(changes)[1] == {"batch": 1, "deletes": [], "inserts": [{"user": "zoe", "total": 9.0}]}
        report = run.get("/report")
        assert report["state"] == "running"
        (row,) = report["rows"]
        assert (row["why"], row["stream"]) == ("dead letter", "clicks") and "SQ4004" in row["row"]
        assert [event["event"] for event in report["events"]] == ["start", "left out"]
        assert [each for each in report["values"]["state_bytes"] if each[0] == {"view": "strings"}]
        run.end()
        assert next(changes)[0] == "end"
    assert run.get("/report")["state"] == "ended"
    assert run.get("/views/most")["data"] == [{"most": 9.0}]


def fault_a_run_that_fails_says_so_on_its_page(room: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = list[httpx.Response]()

    def close(server: PageServer) -> None:
        seen.append(httpx.get(f"{server.url}healthz"))
        seen.append(httpx.get(f"{server.url}views/query1"))
        closing(server)

    closing = PageServer.close
    monkeypatch.setattr(PageServer, "close", close)
    (room / "q.sql").write_text((room / "q.sql").read_text().replace("SUM(amount)", "SUM(CAST(user AS INT))"))
    with pytest.raises(Exception, match="SQ5002"):
        run_script(RunRequest(room / "q.sql", backend="local", ui_address=Address("127.0.0.1", 0)))
    assert (seen[0].status_code, seen[0].text[:6]) == (503, "SQ5002")
    assert (seen[1].status_code, seen[1].text[:6]) == (410, "SQ7012")


def test_a_run_says_where_its_page_is(squall: Squall) -> None:
    ended = squall("run", "q.sql", "--backend", "local", "--ui-address", ":0")
    assert ended.status == 0 and ended.out == "user,total\nann,1.75\nbob,2.25\n"
    assert ended.err.startswith("the page is at http://localhost:") and "/?token=" in ended.err


def test_a_shell_has_a_page(squall: Squall, monkeypatch: pytest.MonkeyPatch) -> None:
    shown = list[str]()
    show = PageServer.show
    monkeypatch.setattr(PageServer, "show", lambda server, what: (show(server, what), shown.append(server.url)))
    text = f"{STREAM} CREATE MATERIALIZED VIEW v AS SELECT COUNT(*) AS n FROM clicks; SELECT * FROM v"
    ended = squall("--ui-address", "127.0.0.1:0", "-c", text)
    assert (ended.status, ended.out) == (0, "n\n3\n")
    assert ended.err == f"the page is at {shown[0]}\n"
    with pytest.raises(httpx.ConnectError):  # NB: it ends with the shell
        httpx.get(shown[0])


def test_what_ignores_reports_ignores_those_of_others() -> None:
    """Observers may be added to those of a session, and taken away."""
    from squallpy.runtime.observers.protocol import Observers
    from squallpy.runtime.observers.report import BatchReport

    told = list[str]()

    class Named(Observer):
        def __init__(self, name: str) -> None:
            self.name = name

        def on_query_progress(self, report: BatchReport) -> None:
            told.append(self.name)

    one, other = Named("one"), Named("other")
    both = Observers(one)
    both.add(other)
    both.on_query_progress(BatchReport())
    both.remove(one)
    both.on_query_progress(BatchReport())
    assert told == ["one", "other", "other"]
