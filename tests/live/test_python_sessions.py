"""`squallpy.connect`: streams, pushed rows, views and their changes, and one line for each mistake."""

import asyncio
from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import squallpy
from squallpy import Session, SquallError

ITEMS = {"oid": "BIGINT", "price": "DECIMAL(12,2)"}
REVENUE = "CREATE MATERIALIZED VIEW revenue AS SELECT oid, SUM(price) AS total FROM items GROUP BY oid"


@pytest.fixture
def s() -> Iterator[Session]:
    with squallpy.connect() as session:
        session.stream("items", schema=ITEMS)
        session.sql(REVENUE)
        yield session


def test_a_query_of_ones_own_is_tested_in_five_lines(s: Session) -> None:
    s.push("items", [{"oid": 1, "price": "2.50"}, {"oid": 1, "price": 1}])
    s.step()
    assert s.view("revenue").to_pylist() == [{"oid": 1, "total": Decimal("3.50")}]


@pytest.mark.parametrize("form", ["arrow", "batch", "pandas", "polars", "dicts", "columns"])
def test_rows_are_pushed_in_any_form(s: Session, form: str) -> None:
    table = pa.table({"price": [Decimal("1.50"), None], "oid": [1, 2]})
    rows: Any = {
        "arrow": table,
        "batch": table.to_batches()[0],
        "dicts": table.to_pylist(),
        "columns": table.to_pydict(),
    }
    if form == "pandas":
        rows = pytest.importorskip("pandas") and table.to_pandas()
    elif form == "polars":
        rows = pytest.importorskip("polars").from_arrow(table)
    else:
        rows = rows[form]
    assert s.push("items", rows) == 2
    s.run_until_caught_up()
    assert s.query("SELECT * FROM revenue ORDER BY oid").to_pylist() == [
        {"oid": 1, "total": Decimal("1.50")},
        {"oid": 2, "total": None},
    ]


def test_operations_are_one_for_all_rows_or_a_column_of_them(s: Session) -> None:
    s.push("items", {"oid": [1, 2], "price": [1, 2]})
    s.push("items", {"oid": [1], "price": [1]}, "-")
    s.push("items", {"oid": [2, 3], "price": [2, 3], "kind": ["delete", "insert"]}, op="kind")
    s.run_until_caught_up()
    assert s.view("revenue").to_pylist() == [{"oid": 3, "total": Decimal(3)}]


def test_upserts_replace_rows_by_key() -> None:
    with squallpy.connect() as s:
        s.stream("p", schema={"id": "BIGINT", "name": "VARCHAR"}, primary_key="id", changelog="upsert")
        v = s.sql("SELECT name, COUNT(*) AS n FROM p GROUP BY name")
        s.push("p", [{"id": 1, "name": "a"}, {"id": 2, "name": "a"}])
        s.push("p", [{"id": 1, "name": "b"}])
        s.push("p", [{"id": 2, "name": None}], "-")
        s.run_until_caught_up()
        assert v is not None and v.to_pylist() == [{"name": "b", "n": 1}]


def test_files_and_pushed_rows_are_joined(tmp_path: Path) -> None:
    (tmp_path / "names.csv").write_text("1,pen\n2,ink\n")
    with squallpy.connect() as s:
        s.stream("names", schema={"id": "BIGINT", "name": "VARCHAR"}, path=tmp_path / "names.csv")
        s.stream("sold", schema={"id": "BIGINT"})
        v = s.sql("SELECT name, COUNT(*) AS n FROM sold JOIN names USING (id) GROUP BY name")
        s.push("sold", [{"id": 2}, {"id": 2}])
        s.run_until_caught_up()
        assert v is not None and v.to_pylist() == [{"name": "ink", "n": 2}]


def test_changes_come_batch_by_batch(s: Session) -> None:
    changes = s.view("revenue").changes(snapshot=True)
    s.push("items", [{"oid": 1, "price": 1}])
    s.step()
    s.push("items", [{"oid": 1, "price": 2}])
    s.step()
    found = [(c.number, c.deletes.to_pylist(), c.inserts.to_pylist()) for c in changes]
    assert found == [
        (0, [], []),
        (1, [], [{"oid": 1, "total": Decimal(1)}]),
        (2, [{"oid": 1, "total": Decimal(1)}], [{"oid": 1, "total": Decimal(3)}]),
    ]


def test_a_reader_waits_while_batches_run_in_a_thread(s: Session) -> None:
    changes = s.view("revenue").changes()
    s.start()
    s.push("items", [{"oid": 1, "price": 1}])
    first = changes.next(timeout=600)
    assert first and first.inserts.to_pylist() == [{"oid": 1, "total": Decimal(1)}]
    s.stop()
    assert list(changes) == []


def test_changes_are_awaited(s: Session) -> None:
    async def read() -> list[Any]:
        return [change.inserts.num_rows async for change in changes]

    changes = s.view("revenue").changes()
    s.push("items", [{"oid": 1, "price": 1}])
    s.step()
    assert asyncio.run(read()) == [1]


def fault_a_slow_reader_is_told_that_changes_are_lost(s: Session) -> None:
    changes = s.view("revenue").changes(limit=1)
    for _ in range(2):
        s.push("items", [{"oid": 1, "price": 1}])
        s.step()
    with pytest.raises(SquallError, match="SQ7010 the reader of changes of revenue is 1 batches behind"):
        list(changes)


def fault_a_callback_that_raises_ends_the_batches(s: Session) -> None:
    def broken(change: Any) -> None:
        raise ZeroDivisionError("mine")

    s.view("revenue").on_change(broken)
    s.push("items", [{"oid": 1, "price": 1}])
    with pytest.raises(ZeroDivisionError):
        s.step()
    with pytest.raises(ZeroDivisionError):
        s.step()


def _late(s: Session) -> None:
    """Create a view after rows of its stream have been read and forgotten."""
    for _ in range(2):
        s.push("items", [{"oid": 1, "price": 1}])
        s.step()
    s.sql("CREATE MATERIALIZED VIEW n AS SELECT price, COUNT(*) AS n FROM items GROUP BY price")


def _read_and_dropped(s: Session) -> None:
    s.sql("SELECT * FROM revenue")
    s.view("revenue").drop()


MISTAKES: dict[str, tuple[Callable[[Session], Any], str]] = {
    "an unknown stream": (lambda s: s.push("itms", []), 'SQ2001 unknown stream or table "itms", did you mean "items"?'),
    "an unknown view": (lambda s: s.view("rev"), 'SQ2001 unknown materialized view "rev", did you mean "revenue"?'),
    "no rows": (lambda s: s.push("items", 3), "SQ7011 a int was pushed to items"),
    "a column is missing": (
        lambda s: s.push("items", [{"oid": 1}]),
        'SQ4002 the rows pushed to items have no column "price"',
    ),
    "another type": (lambda s: s.push("items", [{"oid": "x", "price": 1}]), "SQ4004 the rows pushed to items, row 1"),
    "an unknown op": (
        lambda s: s.push("items", [{"oid": 1, "price": 1}], "kind"),
        "SQ2003 the rows pushed to items have no",
    ),
    "a stream in query": (lambda s: s.query("SELECT * FROM items"), "SQ3001 session:1:1: items is a stream"),
    "DDL in query": (lambda s: s.query("SET batch_rows = 1"), "SQ1001 this is no SELECT"),
    "nothing in query": (lambda s: s.query(" ; -- none"), "SQ1001 this is no SELECT"),
    "two in query": (lambda s: s.query("SELECT 1 AS a; SELECT 2 AS b"), "SQ1001 this is no SELECT"),
    "a column": (
        lambda s: s.sql("SELECT pric FROM items"),
        'SQ2003 session:1:8: unknown column "pric", did you mean "price"?',
    ),
    "a name that is taken": (
        lambda s: s.stream("ITEMS", schema=ITEMS),
        'SQ2007 session:1:15: "ITEMS" is already declared',
    ),
    "no columns": (lambda s: s.stream("z"), "SQ4002 the stream z has no columns"),
    "a view that is read": (_read_and_dropped, "SQ2014 session:1:24: revenue cannot be"),
    "two columns of a name": (
        lambda s: s.sql("CREATE MATERIALIZED VIEW z AS SELECT oid, oid FROM items"),
        "SQ2007 session:1:26: the view has two",
    ),
    "rows of files": (
        lambda s: s.stream("f", schema=ITEMS, path=__file__, using="csv").push([]),
        "SQ7011 f reads csv, and no rows",
    ),
    "rows that are gone": (_late, "SQ6009 session:1:15: rows of items that were read are gone"),
    "a setting": (lambda s: squallpy.connect(settings={"batch": 1}), "SQ7001 unknown setting"),
    "a backend": (lambda s: squallpy.connect("locl"), 'SQ7003 unknown backend "locl", did you mean "local"?'),
}  # fmt: skip


@pytest.mark.parametrize("mistake", MISTAKES)
def fault_mistakes_are_one_line(s: Session, mistake: str) -> None:
    act, line = MISTAKES[mistake]
    with pytest.raises(SquallError) as caught:
        act(s)
    assert str(caught.value).startswith(line), caught.value


def test_a_closed_session_says_so(s: Session) -> None:
    view = s.view("revenue")
    s.close()
    with pytest.raises(SquallError, match="SQ7012 the session is closed"):
        view.to_arrow()


def test_names_of_the_package() -> None:
    assert {"connect", "Session", "SquallError", "View"} <= {*dir(squallpy)}
    with pytest.raises(AttributeError, match="no attribute 'conect'"):
        _ = squallpy.conect


def test_a_view_whose_filling_fails_is_not_there(s: Session) -> None:
    s.stream("words", schema={"w": "VARCHAR"}, stored=True)
    s.sql("CREATE MATERIALIZED VIEW n AS SELECT COUNT(w) AS n FROM words")
    s.push("words", [{"w": "x"}])
    s.step()
    for _ in range(2):
        with pytest.raises(SquallError, match="SQ5002"):
            s.sql("CREATE MATERIALIZED VIEW bad AS SELECT CAST(w AS INT) AS i FROM words")
    s.sql("CREATE MATERIALIZED VIEW bad AS SELECT w FROM words")
    assert s.view("bad").to_pylist() == [{"w": "x"}]


def test_query_does_nothing_but_answer() -> None:
    with squallpy.connect() as s:
        s.sql("CREATE STREAM r (a INT) USING pushed; CREATE MATERIALIZED VIEW v AS SELECT a FROM r")
        with pytest.raises(SquallError, match="this is no SELECT"):
            s.query("DROP MATERIALIZED VIEW v")
        assert s.view("v").to_arrow().num_rows == 0
        assert s.query("show views").to_arrow()["name"].to_pylist() == ["v"]
