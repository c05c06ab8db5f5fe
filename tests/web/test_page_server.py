"""The endpoints of the page: figures, rows, changes, metrics, and who gets none of them."""

import json
import socket
from collections.abc import Iterator
from urllib.parse import quote, unquote

import httpx
import pyarrow as pa
import pytest

import squallpy
from squallpy import SquallError
from squallpy.base.addresses import Address
from squallpy.web.access import Access
from tests.terminal.conftest import Squall
from tests.web.conftest import SCRIPT, Site

ROWS = ((1, "ann", "2.50"), (2, "bob", "0.50"), (3, SCRIPT, "7"), (4, "ann", "1"))


def test_reports_say_what_batches_did(site: Site) -> None:
    site.step(*ROWS)
    report = site.get("/report").json()
    assert (report["batch"], report["state"], report["trouble"]) == (1, "running", "")
    (second,) = report["seconds"]
    assert (second["batches"], second["tuples"], second["read"]) == (1, 4, {"items": 4})
    assert 0 < second["p50"] <= second["p95"] <= second["max"]
    assert second["state_bytes"] > 0 and second["lag_rows"] == 0
    assert [{"source": "items"}, 4] in report["values"]["rows_read_total"]
    site.session.sql("PAUSE")
    assert site.get("/report").json()["state"] == "paused"


def test_the_catalogue_has_plan_triggers_and_settings(quiet: Site) -> None:
    found = quiet.get("/catalogue").json()
    assert [view["name"] for view in found["views"]] == ["rev", SCRIPT]
    assert found["views"][0]["columns"] == [["who", "VARCHAR"], ["n", "BIGINT"], ["total", "DECIMAL(38,2)"]]
    nodes = {node["name"]: node["kind"] for node in found["graph"]["nodes"]}
    assert nodes["items"] == "stream" and nodes["rev"] == nodes[SCRIPT] == "result"
    edges = {(edge["from"], edge["to"], edge["cost"]) for edge in found["graph"]["edges"]}
    assert ("relation items", "Q1", "O(1)") in edges
    assert "ON UPDATE ITEMS BY ΔITEMS" in found["triggers"] and "[O(1)]" in found["triggers"]
    assert {"name": "batch_rows", "value": "10000"}.items() <= found["settings"][2].items()


def test_a_join_is_a_picture_of_who_reads_what() -> None:
    with squallpy.connect() as session:
        session.stream("r", schema={"a": "INT", "b": "INT"})
        session.stream("s", schema={"b": "INT", "c": "INT"})
        session.sql("CREATE MATERIALIZED VIEW v AS SELECT a, SUM(c) AS t FROM r JOIN s ON r.b = s.b GROUP BY a")
        session.sql(
            "CREATE MATERIALIZED VIEW w AS SELECT a FROM r x WHERE x.b > (SELECT AVG(b) FROM r y WHERE y.a = x.a)"
        )
        graph = httpx.get(f"{session.serve_page('127.0.0.1:0')}catalogue").json()["graph"]
    kinds = {(edge["from"], edge["to"]): edge["kind"] for edge in graph["edges"]}
    ids = {node["id"] for node in graph["nodes"]}
    assert all({edge["from"], edge["to"]} <= ids for edge in graph["edges"])
    assert kinds["relation r", "Q1"] == "adds" and kinds["M_S", "Q1"] == "reads"
    assert any(kind == "makes" and to.startswith("relation n") for (_, to), kind in kinds.items())


def test_what_is_declared_later_is_another_edition(site: Site) -> None:
    before = site.get("/report").json()["edition"]
    site.session.sql("CREATE MATERIALIZED VIEW more AS SELECT id FROM items")
    assert site.get("/report").json()["edition"] > before
    assert "more" in [view["name"] for view in site.get("/catalogue").json()["views"]]


def test_rows_are_those_of_one_batch_in_any_format(site: Site) -> None:
    site.step(*ROWS)
    answer = site.get("/views/rev?sort=0")
    assert answer.headers["X-Squall-Batch"] == "1"
    found = answer.json()
    assert (found["view"], found["batch"], found["rows"], found["matched"]) == ("rev", 1, 3, 3)
    assert found["data"] == [
        {"who": SCRIPT, "n": 1, "total": 7.0},
        {"who": "ann", "n": 2, "total": 3.5},
        {"who": "bob", "n": 1, "total": 0.5},
    ]
    assert (
        site.get("/views/rev?format=csv&sort=2&desc=1").text
        == f"who,n,total\n{SCRIPT},1,7.00\nann,2,3.50\nbob,1,0.50\n"
    )
    table = pa.ipc.open_stream(site.get("/views/REV?format=arrow").content).read_all()
    assert table == site.session.view("rev").to_arrow()
    assert site.get(f"/views/{quote(SCRIPT, safe='')}?format=page&sort=0").json()["data"] == [["1"], ["3"]]


def test_rows_are_paged_searched_and_sorted(site: Site) -> None:
    site.step(*((n, f"Name {n:03}", "1") for n in range(250)))
    first = site.get("/views/rev?sort=0").json()
    assert (len(first["data"]), first["matched"]) == (100, 250)
    page = site.get("/views/rev?format=page&sort=0&desc=1&offset=245&limit=50").json()
    assert [row[0] for row in page["data"]] == ["Name 004", "Name 003", "Name 002", "Name 001", "Name 000"]
    found = site.get("/views/rev?q=ME+24&sort=0").json()
    assert (found["rows"], found["matched"], found["data"][0]["who"]) == (250, 10, "Name 240")
    assert site.get("/views/rev?q=%25").json()["matched"] == 0
    assert site.get("/views/rev?offset=999").json()["data"] == []


@pytest.mark.parametrize(
    ("path", "status", "text"),
    [
        ("/views/rv", 404, 'SQ2001 unknown view "rv", did you mean "rev"?'),
        ("/views/rv/changes", 404, 'SQ2001 unknown view "rv"'),
        ("/views/rev?format=xml", 400, 'SQ7003 unknown format "xml"'),
        ("/views/rev?limit=-1", 400, 'SQ7003 limit is "-1", and no number'),
        ("/views/rev?sort=9", 400, "SQ7003 there is no column 9"),
        ("/static/../page.py", 404, ""),
        ("/static/nothing.js", 404, "there is no such file"),
        ("/nothing", 404, ""),
    ],
)
def fault_what_is_not_there(quiet: Site, path: str, status: int, text: str) -> None:
    answer = quiet.get(path)
    assert answer.status_code == status
    assert answer.text.startswith(text)


def events(response: httpx.Response) -> Iterator[tuple[str, dict]]:
    name = ""
    for line in response.iter_lines():
        if line.startswith("event: "):
            name = line.removeprefix("event: ")
        elif line.startswith("data: "):
            yield name, json.loads(line.removeprefix("data: "))


def test_changes_come_behind_a_snapshot(site: Site) -> None:
    site.step(*ROWS)
    with site.client.stream("GET", "/views/rev/changes?snapshot=1") as stream:
        assert stream.headers["Content-Type"].startswith("text/event-stream")
        found = events(stream)
        name, snapshot = next(found)
        assert (name, snapshot["batch"], len(snapshot["inserts"]), snapshot["deletes"]) == ("change", 1, 3, [])
        site.step((9, "bob", "1"))
        name, change = next(found)
        assert (name, change["batch"]) == ("change", 2)
        assert change["deletes"] == [{"who": "bob", "n": 1, "total": 0.5}]
        assert change["inserts"] == [{"who": "bob", "n": 2, "total": 1.5}]
        site.session.view("rev").drop()
        assert next(found)[0] == "end"


def test_reports_come_by_themselves_behind_what_was_before(site: Site) -> None:
    with site.client.stream("GET", "/events") as stream:
        found = events(stream)
        assert next(found)[1]["batch"] == -1
        site.step(*ROWS)
        while (report := next(found)[1])["batch"] < 1:
            pass
        assert report["seconds"][-1]["tuples"] == 4
        with httpx.Client(base_url=site.url, timeout=120).stream("GET", "/events") as other:
            first = next(events(other))[1]
            assert first["batch"] == 1 and first["seconds"][-1]["tuples"] == 4
        site.session.close()
        assert [name for name, _ in found][-2:] == ["report", "end"]


def test_fifty_clients_and_those_that_leave_hold_nothing_up(site: Site) -> None:
    clients = [httpx.Client(base_url=site.url, timeout=120) for _ in range(50)]
    streams = [client.stream("GET", "/views/rev/changes") for client in clients]
    opened = [stream.__enter__() for stream in streams]
    for stream in streams[1::2]:
        stream.__exit__(None, None, None)
    site.step(*ROWS)
    for answer in opened[::2]:
        assert next(events(answer))[1]["batch"] == 1
    for stream in streams[::2]:
        stream.__exit__(None, None, None)
    assert site.get("/healthz").text == "ok\n"
    for client in clients:
        client.close()


def test_metrics_and_health_are_those_of_runs(site: Site) -> None:
    site.step(*ROWS)
    answer = site.get("/metrics")
    assert answer.headers["Content-Type"] == "text/plain; version=0.0.4; charset=utf-8"
    assert 'squallpy_rows_read_total{source="items"} 4\n' in answer.text
    assert (site.get("/healthz").status_code, site.get("/healthz").text) == (200, "ok\n")
    site.session.sql("CREATE MATERIALIZED VIEW bad AS SELECT CAST(price * 1e8 AS INT) AS n FROM items")
    with pytest.raises(SquallError):
        site.step((1, "none", "99"))
    assert site.get("/healthz").status_code == 503
    assert site.get("/report").json()["trouble"].startswith("SQ5")


# who may ask


@pytest.mark.parametrize("host", ["localhost:{}", "127.0.0.1:{}", "[::1]:{}", "LOCALHOST"])
def test_this_machine_may_ask(quiet: Site, host: str) -> None:
    assert quiet.get("/report", Host=host.format(8090)).status_code == 200


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1.evil.example:8090", "", "10.0.0.1:8090"])
def fault_a_name_that_only_leads_here(quiet: Site, host: str) -> None:
    assert quiet.get("/report", Host=host).status_code == 421


def fault_anything_but_reading(quiet: Site) -> None:
    assert quiet.client.post("/report").status_code == 405
    assert quiet.client.options("/report", headers={"Origin": "http://evil.example"}).status_code == 405


def test_other_sites_get_no_answer_to_read(quiet: Site) -> None:
    answer = quiet.get("/report", Origin="http://evil.example")
    assert not [name for name in answer.headers if name.startswith("access-control")]
    assert answer.headers["Cross-Origin-Resource-Policy"] == "same-origin"
    assert "default-src 'none'" in answer.headers["Content-Security-Policy"]
    assert "unsafe" not in answer.headers["Content-Security-Policy"]


def test_a_token_is_needed_where_others_reach_the_page(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SQUALL_UI_TOKEN", "a secret")
    with squallpy.connect() as session:
        opened = Site(session, session.serve_page("0.0.0.0:0"))
        base, token = opened.url.split("?token=")
        token = unquote(token)
        assert token == "a secret"
        get = httpx.Client(base_url=base, timeout=120).get
        assert (get("/").status_code, get("/report").status_code, get("/healthz").status_code) == (401, 401, 200)
        assert get("/report", headers={"Authorization": "Bearer wrong"}).status_code == 401
        assert get("/report", headers={"Authorization": f"Bearer {token}"}).status_code == 200
        assert get("/", params={"token": "wrong"}).status_code == 401
        browser = httpx.Client(base_url=base, timeout=20, follow_redirects=True)
        assert browser.get("/", params={"token": token}).status_code == 200
        assert "token" not in str(browser.get("/").url)
        assert browser.get("/report").status_code == 200


def test_a_token_is_made_up_where_none_is_given() -> None:
    inside, outside = Access.to(Address("127.0.0.1", 1), {}), Access.to(Address("", 1), {})
    assert not inside.token and len(outside.token) > 20
    assert outside.knows("192.168.1.7:8090") and outside.knows(socket.gethostname())
    assert not outside.knows("evil.example")


# where it listens


def fault_the_port_is_taken(squall: Squall, quiet: Site) -> None:
    port = quiet.url.rstrip("/").rpartition(":")[2]
    with pytest.raises(SquallError) as raised:
        squallpy.connect().serve_page(f"127.0.0.1:{port}")
    why = f"--ui cannot listen on 127.0.0.1:{port}: address already in use"
    expected = f"SQ7005 {why}, name another port; 0 is any that is free"
    assert str(raised.value) == expected
    result = squall("-c", "SELECT 1", "--ui-address", f"127.0.0.1:{port}")
    assert (result.status, result.err) == (2, f"{expected}\n")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--ui", "run", "q.sql"), "SQ7004 --ui is given, and the command run, squall run --ui\n"),
        (
            ("--ui-address", ":0", "ui", "x"),
            "SQ7004 --ui-address is given, and the command ui, squall ui --ui-address\n",
        ),
        (("--ui", "doctor"), "SQ7004 --ui is given, and the command doctor, leave one out\n"),
    ],
)
def fault_the_option_stands_before_a_command(squall: Squall, options: tuple[str, ...], said: str) -> None:
    ended = squall(*options)
    assert (ended.status, ended.err) == (2, said)


def fault_a_package_is_missing(squall: Squall, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("squallpy.web.page_server.find_spec", lambda name: None if name == "uvicorn" else object())
    result = squall("run", "q.sql", "--backend", "local", "--ui")
    said = "SQ8009 the page needs uvicorn, which is not installed, pip install 'squallpy[ui]'\n"
    assert (result.status, result.err) == (3, said)


@pytest.mark.parametrize("given", ["8090", "http://localhost:8090", ":99999"])
def fault_what_is_no_address(squall: Squall, given: str) -> None:
    result = squall("-c", "SELECT 1", "--ui-address", given)
    assert result.status == 2
    assert result.err.startswith(f"SQ7003 --ui-address {given}")
