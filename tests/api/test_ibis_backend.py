"""The backend of Ibis: what it creates, what it answers, and what it refuses by name."""

from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

ibis = pytest.importorskip("ibis")
pd = pytest.importorskip("pandas")

import squallpy  # noqa: E402
from squallpy import SquallError  # noqa: E402
from squallpy.ibis_backend import Backend  # noqa: E402

ROWS = [
    {
        "id": i,
        "who": ["ann", None, "bob"][i % 3],
        "total": i * 1.5,
        "at": pd.Timestamp("2026-01-31") + pd.Timedelta(days=i),
    }
    for i in range(9)
]


@pytest.fixture
def con() -> Iterator[Backend]:
    backend = Backend()
    backend.do_connect()
    yield backend
    backend.disconnect()


@pytest.fixture
def t(con: Backend) -> Any:
    return con.create_table("t", pd.DataFrame(ROWS))


def test_the_entry_point_names_the_backend() -> None:
    (entry,) = [e for e in ibis.util.backend_entry_points() if e.name == "squall"]
    assert entry.load().Backend is Backend


EXPRESSIONS: dict[str, Callable[[Any], Any]] = {
    "projections and conditions": lambda t: t.filter((t.total > 2) & t.who.notnull()).select(
        "id", twice=t.total * 2, big=t.id.isin([1, 2, 6]), upper=t.who.upper(), part=t.who.substr(1, 2)
    ),
    "groups": lambda t: t.group_by("who").agg(
        n=t.count(), some=t.count(where=t.id > 3), mean=t.total.mean(), least=t.total.min(), d=t.id.nunique()
    ),
    "a join with itself": lambda t: t.join(t.view(), [("id", "id")], how="left").count().name("n").as_table(),
    "windows": lambda t: t.mutate(
        r=ibis.row_number().over(group_by="who", order_by=ibis.desc("total")), s=t.total.sum().over(group_by="who")
    ),
    "order and limit": lambda t: t.order_by(ibis.desc("total"), "id").limit(3, offset=1),
    "sets": lambda t: t.select("id").union(t.select("id").filter(t.id > 3), distinct=True),
    "times": lambda t: t.select(
        y=t.at.year(), m=t.at.month(), d=t.at.date(), later=t.at + ibis.interval(days=3), text=t.at.strftime("%Y-%m-%d")
    ),
    "cases": lambda t: t.select(k=ibis.cases((t.id < 3, "low"), (t.id < 6, "mid"), else_="-"), c=t.who.fill_null("?")),
    "casts": lambda t: t.select(a=t.id.cast("string"), b=t.total.floor().cast("int64"), c=t.id.cast("decimal(10, 2)")),
    "bits and lists": lambda t: t.agg(b=t.id.bit_or(), l=t.who.group_concat("|", order_by=t.id), m=t.total.median()),
}  # fmt: skip


@pytest.mark.parametrize("name", EXPRESSIONS)
def oracle_expressions_have_the_answers_of_duckdb(name: str, t: Any) -> None:
    import duckdb

    ours = EXPRESSIONS[name](t).to_pyarrow()
    unbound = ibis.table(t.schema(), name="t")
    with duckdb.connect() as con:
        con.register("t", pd.DataFrame(ROWS))
        theirs = con.sql(str(ibis.to_sql(EXPRESSIONS[name](unbound), dialect="duckdb"))).fetchall()
    assert _sorted([*row.values()] for row in ours.to_pylist()) == _sorted(theirs)
    assert len(ours)


def _sorted(rows: Any) -> list[str]:
    return sorted(repr([_plain(value) for value in row]) for row in rows)


def _plain(value: Any) -> Any:
    return float(value) if isinstance(value, int | float | Decimal) and not isinstance(value, bool) else value


def test_views_are_kept_fresh(con: Backend, tmp_path: Path) -> None:
    schema = {"oid": "int64", "price": "decimal(12, 2)"}
    items = con.create_source("items", schema=schema, connector_properties={"connector": "pushed"}, stored=True)
    rev = con.create_materialized_view("rev", items.group_by("oid").agg(total=items.price.sum()))
    options = {"connector": "csv", "path": str(tmp_path / "out"), "mode": "changes"}
    con.create_sink("out", obj=rev.filter(rev.total > 2), connector_properties=options)
    con.con.push("items", [{"oid": 1, "price": "2.5"}, {"oid": 2, "price": 1}])
    con.con.step()
    assert rev.order_by("oid").to_pyarrow().to_pylist() == [
        {"oid": 1, "total": Decimal("2.50")}, {"oid": 2, "total": Decimal("1.00")},
    ]  # fmt: skip
    assert con.list_tables() == ["items", "rev"]
    assert [*(tmp_path / "out").iterdir()]
    con.drop_sink("out")
    con.create_materialized_view("rev", items.group_by("oid").agg(total=items.price.max()), overwrite=True)
    con.drop_materialized_view("rev")
    con.drop_source("items")
    con.drop_source("items", force=True)
    assert con.list_tables() == []


def test_nested_values_are_values_of_python(t: Any) -> None:
    made = (
        t.select(t.id, x=ibis.array([t.id, t.id + 1]), y=ibis.struct({"a": t.id, "b": t.who})).order_by("id").limit(2)
    )
    assert made.to_pyarrow().to_pylist() == [
        {"id": 0, "x": [0, 1], "y": {"a": 0, "b": "ann"}}, {"id": 1, "x": [1, 2], "y": {"a": 1, "b": None}},
    ]  # fmt: skip
    lists = t.group_by("who").agg(l=t.id.collect(), d=t.who.collect(distinct=True)).order_by("who").to_pyarrow()
    assert sorted(lists.to_pylist(), key=lambda row: row["l"]) == [
        {"who": "ann", "l": [0, 3, 6], "d": ["ann"]},
        {"who": None, "l": [1, 4, 7], "d": []},
        {"who": "bob", "l": [2, 5, 8], "d": ["bob"]},
    ]


def test_a_session_is_shared_with_other_interfaces(t: Any) -> None:
    with squallpy.connect() as s:
        backend = Backend()
        backend.do_connect(s)
        s.stream("r", {"a": "BIGINT"}).materialize("v")
        s.push("r", [{"a": 1}, {"a": 2}])
        s.step()
        assert backend.table("v").a.sum().execute() == 3


REFUSED: dict[str, tuple[Callable[[Any], Any], str]] = {
    "a function": (lambda t: t.select(x=ibis.random()), "RAND is not supported"),
    "an operation": (lambda t: t.total.kurtosis(), "Kurtosis"),
    "a type": (lambda t: t.select(x=t.who.cast("binary")), "binary is not supported"),
}


@pytest.mark.parametrize("name", REFUSED)
def fault_what_is_not_supported_is_refused_by_name(name: str, t: Any) -> None:
    build, message = REFUSED[name]
    with pytest.raises((SquallError, ibis.common.exceptions.IbisError), match=message):
        build(t).execute()


def fault_a_stream_is_read_by_views_only(con: Backend) -> None:
    stream = con.create_source("r", schema={"a": "int64"}, connector_properties={})
    with pytest.raises(SquallError, match="SQ3001 session:1:1: r is a stream"):
        stream.execute()


def fault_an_unknown_table_is_told(con: Backend) -> None:
    with pytest.raises(ibis.common.exceptions.TableNotFound, match="nothing"):
        con.table("nothing")
