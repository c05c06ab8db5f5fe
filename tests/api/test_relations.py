"""Relations in Python: each is the query that its SQL is, and each mistake is told at its place in Python."""

import datetime as dt
from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import squallpy
from squallpy import (
    Relation,
    Session,
    SquallError,
    avg,
    call_function,
    col,
    count,
    desc,
    expr,
    lit,
    max_,
    min_,
    sum_,
    when,
)

ORDERS = {"id": "BIGINT", "who": "VARCHAR", "total": "DECIMAL(12,2)", "at": "TIMESTAMP"}
ITEMS = {"oid": "BIGINT", "price": "DECIMAL(12,2)", "at": "TIMESTAMP"}
START = dt.datetime(2024, 1, 1)


@pytest.fixture
def s() -> Iterator[Session]:
    with squallpy.connect() as session:
        session.stream("orders", schema=ORDERS, timestamp_by="at", stored=True)
        session.stream("items", schema=ITEMS, timestamp_by="at", stored=True)
        yield session


def fill(s: Session) -> None:
    """Push rows in two batches, and delete some."""
    names = ["ann", "bob", None, "cleo", "dan's"]
    orders = [
        {"id": i % 7, "who": names[i % 5], "total": Decimal(i * 7 % 40) / 2, "at": START + dt.timedelta(minutes=i)}
        for i in range(12)
    ]
    items = [
        {"oid": i % 9, "price": Decimal(i * 3 % 11) / 4, "at": START + dt.timedelta(minutes=2 * i)} for i in range(15)
    ]
    for first, last in ((0, 8), (8, 15)):
        s.push("orders", orders[first:last])
        s.push("items", items[first:last])
        s.run_until_caught_up()
    s.push("orders", orders[2:5], "-")
    s.push("items", items[7:9], "-")
    s.run_until_caught_up()


def rows(table: pa.Table) -> list[Any]:
    return sorted(table.to_pylist(), key=repr)


EQUAL: dict[str, tuple[Callable[[Relation, Relation], Relation], str]] = {
    "the page's": (
        lambda orders, items: (
            orders.join(items, on=lambda o, i: (o.id == i.oid) & (o.at < i.at))
            .filter(lambda r: r.total > 10)
            .group_by("who")
            .agg(n=count(), revenue=sum_("price"))
        ),
        "SELECT who, COUNT(*) AS n, SUM(price) AS revenue FROM orders AS o JOIN items AS i"
        " ON o.id = i.oid AND o.at < i.at WHERE total > 10 GROUP BY who",
    ),
    "columns that clash": (
        lambda orders, items: orders.join(items, on=lambda o, i: o.id == i.oid, how="left_outer"),
        "SELECT o.*, oid, price, i.at AS at_right FROM orders AS o LEFT JOIN items AS i ON o.id = i.oid",
    ),
    "a join with itself": (
        lambda orders, items: orders.join(orders, on=lambda a, b: (a.id == b.id) & (a.at < b.at)).select(
            "id", "at_right"
        ),
        "SELECT a.id, b.at AS at_right FROM orders AS a JOIN orders AS b ON a.id = b.id AND a.at < b.at",
    ),
    "a full join by name": (
        lambda orders, items: orders.select("id", "who").join(
            items.select("price", id="oid"), on="id", how="full_outer"
        ),
        "SELECT COALESCE(o.id, i.oid) AS id, who, price FROM orders AS o FULL JOIN items AS i ON o.id = i.oid",
    ),
    "a right join by name": (
        lambda orders, items: orders.select("id", "who").join(items.select("price", id="oid"), on=["id"], how="right"),
        "SELECT oid AS id, who, price FROM orders AS o RIGHT JOIN items AS i ON o.id = i.oid",
    ),
    "a semi join": (
        lambda orders, items: orders.join(items, on=lambda o, i: o.id == i.oid, how="semi").select("who"),
        "SELECT who FROM orders AS o LEFT SEMI JOIN items AS i ON o.id = i.oid",
    ),
    "an anti join of what is filtered": (
        lambda orders, items: (
            orders.filter(lambda r: r.total > 3)
            .join(items.filter(lambda r: r.price > 2), on=lambda o, i: o.id == i.oid, how="leftanti")
            .select("who", "total")
        ),
        "SELECT who, total FROM orders WHERE total > 3 AND NOT EXISTS"
        " (SELECT 1 FROM items WHERE oid = id AND price > 2)",
    ),
    "three": (
        lambda orders, items: (
            orders.join(items, on=lambda o, i: o.id == i.oid)
            .join(orders.group_by("who").agg(m=max_("total")), on="who", how="left")
            .select("id", "price", "m")
        ),
        "SELECT o.id, i.price, m FROM orders AS o JOIN items AS i ON o.id = i.oid"
        " LEFT JOIN (SELECT who, MAX(total) AS m FROM orders GROUP BY who) AS g ON o.who = g.who",
    ),
    "all pairs": (
        lambda orders, items: orders.join(items, how="cross").agg(n=count()),
        "SELECT COUNT(*) AS n FROM orders CROSS JOIN items",
    ),
    "groups of groups": (
        lambda orders, items: (
            orders.group_by("who", "id").agg(t=sum_("total")).filter(lambda r: r.t > 5).group_by("who").agg(n=count())
        ),
        "SELECT who, COUNT(*) AS n FROM"
        " (SELECT who, id, SUM(total) AS t FROM orders GROUP BY who, id HAVING SUM(total) > 5) AS g GROUP BY who",
    ),
    "keys that are computed": (
        lambda orders, items: orders.group_by(lambda r: r.who.upper().alias("w"), big=lambda r: r.total > 10).agg(
            avg("total").alias("mean"), least=min_("total"), most=max_(lambda r: r.total + 1)
        ),
        "SELECT UPPER(who) AS w, total > 10 AS big, AVG(total) AS mean, MIN(total) AS least, MAX(total + 1) AS most"
        " FROM orders GROUP BY UPPER(who), total > 10",
    ),
    "aggregates of some rows": (
        lambda orders, items: orders.agg(
            n=count("who", distinct=True),
            t=sum_("total", where=lambda r: r.who.is_not_null()),
            m=lambda r: r.total.max() - r.total.min(),
            c=call_function("COUNT_IF", col("total") > 5),
        ),
        "SELECT COUNT(DISTINCT who) AS n, SUM(total) FILTER (WHERE who IS NOT NULL) AS t, MAX(total) - MIN(total) AS m,"
        " COUNT_IF(total > 5) AS c FROM orders",
    ),
    "expressions": (
        lambda orders, items: orders.select(
            "id",
            a=lambda r: -r.total * 2 + r.id % 3 - 1 / (r.id + 1),
            b=lambda r: 2 ** (r.id - 3),
            c=lambda r: r.who.substring(1, 2).concat("'", "\\", r.id),
            d=when(col("total") < 5, "low").when(lambda r: r.who.like("%a%"), "a").otherwise(lit(None)),
            e=lambda r: r.at - dt.timedelta(days=1, microseconds=7),
            f=expr("id BETWEEN 2 AND 3"),
            g=lambda r: r.id.cast("VARCHAR").try_cast("DATE"),
        ),
        "SELECT id, -total * 2 + id % 3 - 1 / (id + 1) AS a, POWER(2, id - 3) AS b,"
        r" CONCAT(SUBSTRING(who, 1, 2), '''', '\\', id) AS c,"
        " CASE WHEN total < 5 THEN 'low' WHEN who LIKE '%a%' THEN 'a' END AS d,"
        " at - INTERVAL '1' DAY - INTERVAL '7' MICROSECOND AS e, id BETWEEN 2 AND 3 AS f,"
        " TRY_CAST(CAST(id AS VARCHAR) AS DATE) AS g FROM orders",
    ),
    "conditions": (
        lambda orders, items: orders.filter(
            lambda r: (r.at >= dt.datetime(2024, 1, 1, 0, 3)) & ~(r.id.isin(1, 5) | r.who.eq_null_safe(None)),
            lambda r: r.total.between(Decimal("1.5"), 18.0) & (r["who"] != "ann"),
            lambda r: r.at.cast("DATE").isin([START.date()]),
        ),
        "SELECT * FROM orders WHERE at >= TIMESTAMP '2024-01-01 00:03:00' AND NOT (id IN (1, 5) OR who IS NULL)"
        " AND total BETWEEN 1.5 AND 18 AND who <> 'ann'",
    ),
    "distinct, union": (
        lambda orders, items: orders.select("id").union(items.select("oid")).distinct(),
        "SELECT DISTINCT id FROM (SELECT id FROM orders UNION ALL SELECT oid FROM items) AS u",
    ),
    "intersect, subtract": (
        lambda orders, items: (
            orders.select("id")
            .intersect(items.select("oid"))
            .subtract(items.filter(lambda r: r.price > 2).select("oid"))
        ),
        "(SELECT id FROM orders INTERSECT SELECT oid FROM items) EXCEPT SELECT oid AS id FROM items WHERE price > 2",
    ),
    "the first": (
        lambda orders, items: (
            orders.order_by(desc("total"), lambda r: r.at.asc(nulls_first=True)).filter(lambda r: r.id > 1).limit(3)
        ),
        "SELECT * FROM orders WHERE id > 1 ORDER BY total DESC, at LIMIT 3",
    ),
    "the sum of the first": (
        lambda orders, items: orders.order_by(desc("total"), "at").limit(3).agg(t=sum_("total")),
        "SELECT SUM(total) AS t FROM (SELECT total FROM orders ORDER BY total DESC, at LIMIT 3) AS f",
    ),
    "a column that is replaced": (
        lambda orders, items: orders.with_columns(total=lambda r: r.total * 2, x=lit(1)).filter(lambda r: r.total > 20),
        "SELECT id, who, total * 2 AS total, at, 1 AS x FROM orders WHERE total * 2 > 20",
    ),
    "a rank": (
        lambda orders, items: orders.select(
            "id", r=lambda r: call_function("RANK").over(partition_by="who", order_by=(desc("total"), r.id))
        ),
        "SELECT id, RANK() OVER (PARTITION BY who ORDER BY total DESC, id) AS r FROM orders",
    ),
}  # fmt: skip

WINDOWS: dict[str, tuple[Callable[[Relation], Relation], str]] = {
    "5 minutes": (lambda r: r.window("5 minutes", slide="2 min"), "RANGE 5 MIN SLIDE 2 MIN"),
    "the newest": (lambda r: r.filter(lambda r: r.id < 6).window("9 MIN"), "RANGE 9 MIN"),
    "a session": (lambda r: r.window(session="5 MIN"), "SESSION 5 MIN"),
    "tumbling": (lambda r: r.window("10 min", tumbling=True), "TUMBLE 10 MIN"),
}


@pytest.mark.parametrize("case", EQUAL)
def oracle_a_relation_is_the_query_that_its_sql_is(s: Session, case: str) -> None:
    build, text = EQUAL[case]
    relation = build(s.table("orders"), s.table("items"))
    view, other = relation.materialize("v"), s.sql(text)
    assert other is not None
    fill(s)
    assert view.columns == other.columns == relation.columns
    assert rows(view.to_arrow()) == rows(other.to_arrow())
    assert len(view.to_arrow())


@pytest.mark.parametrize("case", WINDOWS)
def oracle_windows_are_those_of_sql(s: Session, case: str) -> None:
    build, clause = WINDOWS[case]
    view = build(s.table("orders").filter(lambda r: r.id < 6)).group_by("who").agg(n=count()).materialize("v")
    other = s.sql(f"SELECT who, COUNT(*) AS n FROM orders WHERE id < 6 GROUP BY who {clause}")
    assert other is not None
    fill(s)
    assert rows(view.to_arrow()) == rows(other.to_arrow())
    assert len(view.to_arrow())


def oracle_views_are_relations_of_ad_hoc_queries(s: Session) -> None:
    view = s.table("orders").group_by("who").agg(n=count(), t=sum_("total")).materialize("v")
    other = s.table("items").group_by("oid").agg(n=count()).materialize()
    fill(s)
    found = view.join(other, on=lambda v, o: v.n >= o.n).filter(lambda r: r.n > 1).select("who", "oid").to_arrow()
    text = f"SELECT who, oid FROM v JOIN {other.name} AS o ON v.n >= o.n WHERE v.n > 1"
    assert rows(found) == rows(s.query(text).to_arrow())
    assert len(found)
    again = s.view("v").filter(lambda r: r.n > 1).materialize("w")
    assert rows(again.to_arrow()) == rows(s.query("SELECT * FROM v WHERE n > 1").to_arrow())


def test_equal_views_of_both_interfaces_are_one(s: Session) -> None:
    s.table("orders").filter(lambda r: r.total > 1).group_by("who").agg(n=count()).materialize("v")
    before = s.view("v").stats()["views"].keys()
    s.sql("CREATE MATERIALIZED VIEW w AS SELECT who, COUNT(*) AS n FROM orders WHERE total > 1 GROUP BY who")
    assert s.view("w").stats()["views"].keys() == before


def test_names_of_columns_and_relations_are_any_text(s: Session) -> None:
    r = s.stream("a b", schema={"x`y": "INT", "from": "INT"})
    v = r.filter(lambda r: r["x`y"] > r["from"]).select("X`Y", **{"sum of": lambda r: r["from"] + 1}).materialize("c d")
    r.push([{"x`y": 2, "from": 1}, {"x`y": 1, "from": 1}])
    s.step()
    assert v.to_pylist() == [{"X`Y": 2, "sum of": 2}]
    assert s.table("C D").to_arrow().to_pylist() == v.to_pylist()


MISTAKES: dict[str, tuple[Callable[[Session, Relation], Any], str, str]] = {
    "a column": (
        lambda s, r: r.filter(lambda o: o.totl > 10),
        'SQ2003 unknown column "totl", did you mean "total"?', "totl",
    ),
    "a column of the other side": (
        lambda s, r: r.join(s.table("items"), on=lambda o, i: o.id == i.id),
        'SQ2003 unknown column "id", did you mean "oid"?', "id)",
    ),
    "a key": (lambda s, r: r.group_by("wo"), 'SQ2003 unknown column "wo", did you mean "who"?', "wo"),
    "a column of an aggregate": (
        lambda s, r: r.agg(t=sum_("totl")),
        'SQ2003 unknown column "totl", did you mean "total"?', "totl",
    ),
    "a column of another relation": (
        lambda s, r: s.table("items").filter(lambda i: r.filter(lambda o: o.id == i.oid)),
        "SQ2003 a column of another relation, join the two", "i.oid",
    ),
    "a function": (lambda s, r: r.select(x=lambda r: r.who.uper()), 'SQ2004 unknown function "uper"', "uper"),
    "a function by name": (lambda s, r: r.select(x=call_function("sun", "id")), 'SQ2004 unknown function "sun"', "sun"),
    "types": (lambda s, r: r.select(x=lambda r: r.at + r.who), "SQ2005 TIMESTAMP + VARCHAR means nothing", "r.select"),
    "no condition": (lambda s, r: r.filter(lambda r: r.at), "SQ2005 WHERE needs a condition", "at"),
    "and": (lambda s, r: r.filter(lambda r: r.id == 1 and r.id == 2), "SQ2005 an expression is no condition", "r.id"),
    "None": (lambda s, r: r.filter(lambda r: r.id == None), "SQ2005 a comparison with None", "r.id"),  # noqa: E711
    "a value": (lambda s, r: r.filter(lambda r: r.id == object()), "SQ2005 a object has no type in SQL", "r.id"),
    "a join": (lambda s, r: r.join(r, on="id", how="lft"), 'SQ7003 unknown join "lft", did you mean "left"?', "lft"),
    "a join without a condition": (lambda s, r: r.join(r), "SQ1001 join needs a condition", "r.join"),
    "a cross join with one": (lambda s, r: r.join(r, on="id", how="cross"), "SQ2005 a cross join has no", "r.join"),
    "a join with no relation": (
        lambda s, r: r.join("items", on="id"),  # type: ignore[arg-type]
        "SQ2005 join takes a relation, not a str", "r.join",
    ),
    "another session": (
        lambda s, r: r.union(squallpy.connect().stream("z", schema=ORDERS)),
        "SQ2005 union of relations of two sessions", "r.union",
    ),
    "unions": (lambda s, r: r.union(r.select("id")), "SQ2005 UNION of 4 and 1 columns", "r.union"),
    "two names": (lambda s, r: r.select("id", ID="who"), 'SQ2007 two columns "ID"', "ID"),
    "a key twice": (lambda s, r: r.group_by("id").agg(id=count()), 'SQ2007 "id" is a key, too', "id"),
    "no name": (lambda s, r: r.select(lambda r: r.id + 1), "SQ1001 an expression without a name", "r.select"),
    "no columns": (lambda s, r: r.select(), "SQ1001 select needs a column", "r.select"),
    "no keys": (lambda s, r: r.group_by(), "SQ1001 group_by needs a key", "r.group_by"),
    "no aggregates": (lambda s, r: r.group_by("id").agg(), "SQ1001 agg needs an aggregate", "r.group_by"),
    "a unit": (lambda s, r: r.window("5 bananas"), 'SQ1001 unknown unit "bananas"', "bananas"),
    "two sizes": (lambda s, r: r.window("5 MIN", session="5 MIN"), "SQ2005 a window has a size, or", "r.window"),
    "a size": (lambda s, r: r.window("long"), "SQ2010 'long' is no size of a window", "long"),
    "a name that is taken": (
        lambda s, r: r.materialize("items"),
        'SQ2007 "items" is already declared', "items",
    ),
    "rows of a stream": (lambda s, r: r.to_arrow(), "SQ3001 orders is a stream", "r.to_arrow"),
    "a stage": (lambda s, r: r.explain("trigers"), "SQ7004 EXPLAIN TRIGERS shows nothing", "r.explain"),
}  # fmt: skip


@pytest.mark.parametrize("mistake", MISTAKES)
def fault_mistakes_are_told_at_their_place_in_python(s: Session, mistake: str) -> None:
    act, line, place = MISTAKES[mistake]
    with pytest.raises(SquallError) as caught:
        act(s, s.table("orders"))
    error = caught.value
    assert f"{error.code} {error.message}{f', {error.hint}' if error.hint else ''}".startswith(line), error
    assert error.span
    assert Path(error.span.file) == Path(__file__)
    assert error.span.text[error.span.column - 1 :].startswith(place), error.caret()


def fault_an_unknown_relation_is_told(s: Session) -> None:
    with pytest.raises(SquallError, match='SQ2001 unknown stream or table or view "order", did you mean "orders"'):
        s.table("order")


def test_intervals() -> None:
    """A timedelta is an INTERVAL: in rows that are pushed, also beside texts, in conditions and in answers."""
    with squallpy.connect() as session:
        calls = session.stream("calls", {"k": "INT", "lasted": "INTERVAL DAY TO SECOND"})
        long = (
            calls.filter(lambda r: r.lasted > dt.timedelta(minutes=1)).group_by("k").agg(all=sum_("lasted"), n=count())
        )
        kept = long.materialize("long")
        calls.push([{"k": 1, "lasted": "0 01:00:00"}, {"k": 1, "lasted": dt.timedelta(days=2, microseconds=1)}])
        calls.push([{"k": 1, "lasted": "-1 00:00:00"}, {"k": 2, "lasted": dt.timedelta(days=-1)}])
        calls.push({"k": [2], "lasted": [dt.timedelta(hours=3)]})
        session.run_until_caught_up()
        assert sorted(kept.to_pylist(), key=str) == [
            {"k": 1, "all": dt.timedelta(days=2, hours=1, microseconds=1), "n": 2},
            {"k": 2, "all": dt.timedelta(hours=3), "n": 1},
        ]
