"""SQL in cells, and what notebooks show of views, plans and mistakes."""

import sys
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, ClassVar

import pyarrow as pa
import pytest

import squallpy
from squallpy import Session
from squallpy.api import notebook as magics
from squallpy.api.html import PlanText, table_html
from squallpy.api.live_display import LiveDisplay
from squallpy.api.notebook import CellError, Notebook

pytest.importorskip("IPython")

STREAM = "CREATE STREAM items (oid BIGINT, name VARCHAR, price DECIMAL(12,2)) USING pushed;"
REVENUE = "CREATE MATERIALIZED VIEW revenue AS SELECT name, SUM(price) AS total FROM items GROUP BY name;"


@pytest.fixture
def ipython() -> Iterator[Any]:
    """Return IPython with the extension, without a history on disk."""
    from IPython.core.interactiveshell import InteractiveShell
    from traitlets.config import Config

    shell = InteractiveShell(config=Config({"HistoryManager": {"enabled": False}}))
    shell.run_line_magic("load_ext", "squallpy")
    try:
        yield shell
    finally:
        shell.run_line_magic("unload_ext", "squallpy")


@pytest.fixture
def shown() -> list[Any]:
    return []


@pytest.fixture
def notebook(shown: list[Any]) -> Iterator[Notebook]:
    made = Notebook({}, shown.append)
    made.run("", STREAM + REVENUE)
    yield made
    made.close()


def push(session: Session, *names: str | None) -> None:
    session.push("items", [{"oid": i, "name": name, "price": "1.50"} for i, name in enumerate(names)])


def test_ipython_runs_cells_and_lines(ipython: Any) -> None:
    created = ipython.run_cell(f"%%squall\n{STREAM}\n{REVENUE}").result
    assert repr(created) == "<view revenue: name VARCHAR, total DECIMAL(38,2)>"
    assert ipython.run_cell("s = %squall\ns.push('items', [{'oid': 1, 'name': 'a', 'price': 2}])").success
    assert ipython.run_cell("n = %squall SELECT COUNT(*) AS n FROM revenue\nn.to_pylist()").result == [{"n": 1}]
    assert ipython.run_cell("live = s.view('revenue').live()\nlive").success
    ipython.run_line_magic("unload_ext", "squallpy")
    assert ipython.user_ns["live"].is_over
    ipython.run_line_magic("load_ext", "squallpy")


def test_a_mistake_in_a_cell_is_shown_with_a_caret_and_without_calls(
    ipython: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    result = ipython.run_cell(f"%%squall\n{STREAM}\nSELECT oid,\n       nam FROM items")
    assert isinstance(result.error_in_exec, CellError)
    out, err = capsys.readouterr()
    assert (out + err).rstrip().splitlines()[-3:] == [
        'SQ2003 cell:4:8: unknown column "nam", did you mean "name"?',
        "           nam FROM items",
        "           ^^^",
    ]


def test_answers_in_the_middle_of_a_cell_are_shown(notebook: Notebook, shown: list[Any]) -> None:
    push(notebook.session, "a", "b")
    last = notebook.run("", "SELECT COUNT(*) AS n FROM revenue; EXPLAIN revenue; SELECT MAX(total) AS m FROM revenue")
    assert [type(each).__name__ for each in shown] == ["Snapshot", "PlanText"]
    assert shown[0].to_pylist() == [{"n": 2}]
    assert last.to_pylist()[0]["m"] == 1.5


def test_a_select_over_streams_is_kept_fresh_once(notebook: Notebook) -> None:
    text = "SELECT COUNT(*) AS n FROM items"
    first = notebook.run(text)
    push(notebook.session, "a", "b")
    again = notebook.run(text)
    assert (first.name, first.to_pylist()) == (again.name, [{"n": 2}])
    again.drop()
    assert notebook.run(text).name != first.name


def test_a_cell_may_name_the_session(shown: list[Any]) -> None:
    with squallpy.connect() as s:
        notebook = Notebook({"s": s}, shown.append)
        notebook.run("s", f"{STREAM}{REVENUE}")
        push(s, "a")
        assert len(notebook.run("SELECT * FROM revenue").to_pylist()) == 1
        assert notebook.run("s SHOW VIEWS").to_pylist()[0]["name"] == "revenue"
        assert notebook.run("") is s
        assert not s._session.is_running, "who made the session says when batches run by themselves"
        notebook.close()
        assert len(s.view("revenue").to_pylist()) == 1
    with pytest.raises(CellError, match='SQ2001 unknown session "t", known: s'):
        notebook.run("t", "SELECT 1")


def fault_a_batch_that_fails_ends_the_session_and_the_next_cell_begins_another(
    notebook: Notebook, capsys: pytest.CaptureFixture[str]
) -> None:
    notebook.run("", "CREATE MATERIALIZED VIEW numbers AS SELECT CAST(name AS INT) AS i FROM items")
    push(notebook.session, "x")
    with pytest.raises(CellError, match="SQ5002"):
        notebook.run("SELECT * FROM numbers")
    assert "the next cell begins another" in capsys.readouterr().err
    assert notebook.run("SHOW VIEWS").to_pylist() == []


class Interrupted(ThreadPoolExecutor):
    """Threads of which one is interrupted who waits for them."""

    tasks: ClassVar[list[Future[Any]]] = []

    def submit(self, work: Callable[..., Any], /, *arguments: Any, **named: Any) -> Future[Any]:
        self.tasks.append(super().submit(work, *arguments, **named))
        interrupt: Future[Any] = Future()
        interrupt.set_exception(KeyboardInterrupt())
        return interrupt


def fault_an_interrupt_lets_the_batch_end(notebook: Notebook, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(notebook, "_run", lambda *arguments: arguments[-1].wait(60))
    monkeypatch.setattr(magics, "ThreadPoolExecutor", Interrupted)
    with pytest.raises(KeyboardInterrupt):
        notebook.run("SELECT * FROM revenue")
    assert [task.result() for task in Interrupted.tasks] == [True], "it was not told"
    monkeypatch.undo()
    assert notebook.run("SELECT * FROM revenue").to_pylist() == []


def test_html_of_views_has_types_and_nothing_unescaped(notebook: Notebook) -> None:
    push(notebook.session, "<script>alert(1)</script>", None, *map(str, range(30)))
    view = notebook.run("", 'CREATE MATERIALIZED VIEW v AS SELECT name AS `<b>"n"`, 1.0 AS one FROM items')
    html = view._repr_html_()
    assert "<script>" not in html and "&lt;script&gt;" in html and "&lt;b&gt;&quot;n&quot;" in html
    assert "VARCHAR" in html and ">NULL<" in html and "the first 20 of 32 rows" in html
    assert html.count("<tr>") == 21
    assert view._mime_() == ("text/html", html)
    assert "DECIMAL(12,2)" in notebook.session.table("items")._repr_html_()
    assert "name" in notebook.session.table("items").filter(lambda r: r.oid > 1)._repr_html_()


def test_html_of_answers_of_any_type() -> None:
    table = pa.table({"t": pa.array([0], pa.timestamp("us")), "long": ["x" * 1000]})
    html = table_html(table)
    assert "TIMESTAMP" in html and "1970-01-01 00:00:00" in html and "x" * 201 not in html
    assert "0 rows" in table_html(table.slice(0, 0)) and "1 row<" in html
    assert "0 rows" in table_html(pa.table({}))


def test_mistakes_and_views_that_are_gone_are_shown(notebook: Notebook) -> None:
    with pytest.raises(CellError) as caught:
        notebook.run("SELECT name, nam <> '<b>' AS b FROM items")
    html = caught.value._repr_html_()
    assert "SQ2003 cell:1:14: unknown column" in html and "nam &lt;&gt; &#x27;&lt;b&gt;&#x27;" in html
    assert html.endswith(" " * 17 + "^^^</pre>")
    view = notebook.session.view("revenue")
    view.drop()
    assert "SQ2001 unknown materialized view &quot;revenue&quot;" in view._repr_html_()


def test_a_plan_is_its_text(notebook: Notebook) -> None:
    plan = notebook.session.view("revenue").explain()
    assert isinstance(plan, PlanText) and "ON UPDATE ITEMS" in plan and repr(plan) == str(plan)
    assert PlanText("a < b")._mime_()[1].endswith(">a &lt; b</pre>")


class Handle:
    """What IPython returns of a display with an id."""

    def __init__(self) -> None:
        self.states = list[str]()

    def update(self, bundle: dict[str, str], raw: bool) -> None:
        self.states.append(bundle["text/plain"])


def live(session: Session) -> tuple[LiveDisplay, Handle]:
    display, handle = session.view("revenue").live(), Handle()
    display._handle = handle
    return display, handle


def test_a_live_view_is_refreshed_until_it_is_stopped(notebook: Notebook) -> None:
    s = notebook.session
    display, handle = live(s)
    for name in "abc":
        push(s, name)
        s.run_until_caught_up()
    display.stop()
    display.wait()
    assert handle.states[-1] == "<stopped: revenue, 3 rows>" and len(handle.states) < 20
    assert "stopped" in display._mime_()[1]
    push(s, "d")
    s.run_until_caught_up()
    assert handle.states[-1] == "<stopped: revenue, 3 rows>"


def test_a_live_view_ends_with_its_session_its_view_and_another_display(notebook: Notebook) -> None:
    first, _ = live(notebook.session)
    second, handle = live(notebook.session)
    assert first.is_over and not second.is_over
    push(notebook.session, "a")
    notebook.session.run_until_caught_up()
    notebook.session.view("revenue").drop()
    second.wait(60)
    assert second.is_over and handle.states[-1].startswith("<ended: revenue")
    notebook.run("", REVENUE.replace("revenue", "other"))
    third = notebook.session.view("other").live()
    notebook.session.close()
    assert third.is_over and repr(third) == "<stopped: other, 1 rows>"


def fault_a_live_view_shows_what_has_ended_the_batches() -> None:
    with squallpy.connect() as s:
        s.sql(STREAM + REVENUE + "CREATE MATERIALIZED VIEW i AS SELECT CAST(name AS INT) AS i FROM items")
        display, handle = live(s)
        push(s, "x")
        with pytest.raises(squallpy.SquallError):
            s.step()
        display.wait(60)
        assert "SQ5002" in handle.states[-1]


def test_import_of_the_package_brings_no_notebook() -> None:
    import subprocess

    code = "import sys, squallpy; print([m for m in sys.modules if m.split('.')[0] in ('IPython', 'pyarrow', 'numpy')])"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"
