"""Plans that do not fit together are refused by the constructors, with the edge, the column and the line of Python."""

from collections.abc import Callable

import pytest

from squallpy.base.errors import SquallError
from squallpy.plans import Aggregate, Component, DataSource, EquiJoin, Project, Select, Sink, ThetaJoin, Window

ORDERS = {"o_orderkey": "BIGINT", "o_custkey": "BIGINT NOT NULL", "o_date": "DATE"}
CUSTOMER = {"c_custkey": "BIGINT", "c_name": "VARCHAR"}


def orders(name: str | None = None) -> DataSource:
    return DataSource("orders", "o.csv", ORDERS, name=name)


def customer() -> DataSource:
    return DataSource("customer", "c.csv", CUSTOMER)


WRONG: dict[str, tuple[Callable[[], Component], str, str]] = {
    "left key": (
        lambda: EquiJoin(orders(), "o_custky", customer(), "c_custkey"),
        'SQ2003 orders → EquiJoin orders_customer: unknown column "o_custky", did you mean "o_custkey"?',
        "o_custky",
    ),
    "right key": (
        lambda: EquiJoin(orders(), "o_custkey", customer(), "o_custkey"),
        'SQ2003 customer → EquiJoin orders_customer: unknown column "o_custkey", did you mean "c_custkey"?',
        "o_custkey",
    ),
    "types of keys": (
        lambda: EquiJoin(orders(), "o_date", customer(), "c_custkey"),
        "SQ2005 orders, customer → EquiJoin orders_customer: o_date and c_custkey: cannot compare DATE with BIGINT, "
        "CAST one side",
        "c_custkey",
    ),
    "number of keys": (
        lambda: EquiJoin(orders(), ("o_date", "o_custkey"), customer(), "c_custkey"),
        "SQ2005 orders → EquiJoin orders_customer has 2 keys, customer → EquiJoin orders_customer 1, "
        "name as many of both",
        "",
    ),
    "no key": (
        lambda: EquiJoin(orders(), "", customer(), "c_custkey"),
        'SQ1001 orders → EquiJoin orders_customer: "" is not one expression',
        "",
    ),
    "one qualifier twice": (
        lambda: EquiJoin(orders(), "o_custkey", orders(), "o_custkey"),
        'SQ2007 orders, orders → EquiJoin orders_orders: columns of both are qualified by "orders", '
        'give one of them a name: name="…"',
        "",
    ),
    "ambiguous": (
        lambda: ThetaJoin(orders(), orders("b"), "o_date < b.o_date"),
        'SQ2002 orders, b → ThetaJoin orders_b: ambiguous column "o_date", write orders.o_date or b.o_date',
        "o_date",
    ),
    "unknown qualifier": (
        lambda: ThetaJoin(orders(), customer(), "o_custkey < customr.c_custkey"),
        'SQ2001 orders, customer → ThetaJoin orders_customer: unknown table "customr" in FROM, '
        'did you mean "customer"?',
        "customr",
    ),
    "no condition": (
        lambda: ThetaJoin(orders(), customer(), "o_custkey + 1"),
        "SQ2005 ThetaJoin orders_customer: it needs a condition, this is BIGINT",
        "o_custkey + 1",
    ),
    "types of a predicate": (
        lambda: Select(orders(), "o_date > 3"),
        "SQ2005 orders → Select orders: cannot compare DATE with INT, CAST one side",
        "o_date > 3",
    ),
    "two lines": (
        lambda: Select(
            orders(),
            """o_custkey > 1
            AND o_custky < 3""",
        ),
        'SQ2003 orders → Select orders: unknown column "o_custky", did you mean "o_custkey"?',
        "o_custky",
    ),
    "aggregate in a predicate": (
        lambda: Select(orders(), "SUM(o_custkey) > 1"),
        "SQ2009 orders → Select orders: SUM is an aggregate and cannot stand in Select",
        "SUM",
    ),
    "subquery": (
        lambda: Select(orders(), "o_custkey > (SELECT 1)"),
        "SQ3001 orders → Select orders: a subquery in Select is not supported, join with what it reads",
        "1",
    ),
    "syntax": (lambda: Select(orders(), "o_custkey >"), "SQ1001 orders → Select orders: the query ends too early", ""),
    "another clause": (
        lambda: Select(orders(), "o_date IS NULL FROM x"),
        "SQ3001 orders → Select orders: FROM of SELECT is not supported yet",
        "x",
    ),
    "no columns": (lambda: Project(orders()), "SQ1001 Project orders: it has no columns", ""),
    "a column": (
        lambda: Project(orders(), "a"),
        'SQ2003 orders → Project orders: unknown column "a", known: o_custkey, o_date, o_orderkey',
        "a",
    ),
    "a column that was projected away": (
        lambda: Select(Project(orders(), "o_date"), "o_custkey = 1"),
        'SQ2003 orders → Select orders: unknown column "o_custkey", did you mean "o_date"?',
        "o_custkey",
    ),
    "aggregate in a projection": (
        lambda: Project(orders(), n="COUNT(*)"),
        "SQ2009 Project orders: an aggregate is not allowed in it, Aggregate has groups",
        "",
    ),
    "column of no group": (
        lambda: Aggregate(orders(), by="o_custkey", n="o_orderkey + 1"),
        'SQ2006 orders → Aggregate orders: "o_orderkey" is not in GROUP BY, '
        "add it to GROUP BY or put it into an aggregate",
        "o_orderkey",
    ),
    "no aggregate": (
        lambda: Aggregate(orders(), n="o_orderkey + 1"),
        "SQ2009 Aggregate orders: none of it is an aggregate, Project computes expressions of each row",
        "",
    ),
    "nothing of groups": (
        lambda: Aggregate(orders()),
        "SQ1001 Aggregate orders: it has neither keys nor aggregates",
        "",
    ),
    "window without time": (
        lambda: Window(orders(), "RANGE 5 MIN"),
        'SQ2010 orders → Window orders: "orders" has no event time for this window, '
        "declare it with TIMESTAMP BY, or use ROWS",
        "RANGE 5 MIN",
    ),
    "no window": (lambda: Window(orders(), "5 MIN"), 'SQ1001 orders → Window orders: unexpected "5"', "5"),
    "order": (
        lambda: Sink(orders(), order_by="o_cust"),
        'SQ2003 orders → Sink orders: unknown column "o_cust", did you mean "o_custkey"?',
        "o_cust",
    ),
    "mode of a sink": (
        lambda: Sink(Aggregate(orders(), by="o_custkey", n="COUNT(*)"), "out/", using="csv", mode="append"),
        "SQ3001 orders → Sink orders: mode 'append' only adds rows, and "
        "COUNT(*) … GROUP BY o_custkey changes rows that it has given, write mode 'changes' or 'upsert'",
        "",
    ),
    "option of a sink": (
        lambda: Sink(orders(), "out/", using="csv", options={"moed": "final"}),
        'SQ7002 Sink orders: unknown option "moed", did you mean "mode"?',
        "",
    ),
    "no component": (
        lambda: Select("orders", "a > 1"),  # type: ignore[arg-type]
        "SQ2005 Select ?: an input is a component, not a str",
        "",
    ),
    "no path": (lambda: DataSource("o"), "SQ7002 DataSource o: \"o\" has no path, write OPTIONS (path '...')", ""),
    "a type": (
        lambda: DataSource("o", "o.csv", {"a": "BIGIN"}),
        'SQ2008 DataSource o: unknown type "BIGIN", did you mean "BIGINT"?',
        "",
    ),
    "an option": (
        lambda: DataSource("o", "o.csv", {"a": "INT"}, options={"hedder": "x"}),
        'SQ7002 DataSource o: unknown option "hedder", did you mean "header"?',
        "",
    ),
    "tasks": (
        lambda: DataSource("o", "o.csv", {"a": "INT"}, parallelism=0),
        "SQ7003 DataSource o: parallelism is from 1 to 4,096, not 0",
        "",
    ),
    "a scheme": (
        lambda: EquiJoin(orders(), "o_custkey", customer(), "c_custkey", partitioning="hsah"),
        'SQ7003 EquiJoin orders_customer: no partitioning is called "hsah", did you mean "hash"?',
        "hsah",
    ),
    "a scheme of other components": (
        lambda: ThetaJoin(orders(), customer(), "o_custkey < c_custkey", partitioning="hash"),
        "SQ7003 ThetaJoin orders_customer: partitioning hash is not for it, use grid or broadcast",
        "hash",
    ),
    "an operator": (
        lambda: EquiJoin(orders(), "o_custkey", customer(), "c_custkey", operator="dynamo"),
        'SQ7003 EquiJoin orders_customer: no join operator is called "dynamo", did you mean "Dynamic"?',
        "dynamo",
    ),
    "an operator for equalities": (
        lambda: ThetaJoin(orders(), customer(), "o_custkey < c_custkey", operator="SHJ"),
        "SQ7003 ThetaJoin orders_customer: operator SHJ needs an equality, use StaticMid, StaticOpt, Dynamic",
        "SHJ",
    ),
    "operator and scheme": (
        lambda: EquiJoin(orders(), "o_custkey", customer(), "c_custkey", partitioning="grid", operator="SHJ"),
        "SQ7003 EquiJoin orders_customer: operator SHJ does not go with partitioning grid, "
        "it is hash; leave one of them out",
        "grid",
    ),
    "broadcast of no input": (
        lambda: EquiJoin(orders(), "o_custkey", customer(), "c_custkey", partitioning="broadcast(nation)"),
        "SQ7003 EquiJoin orders_customer: broadcast(nation) does not name one of its inputs, "
        "write broadcast(orders) or broadcast(customer)",
        "broadcast(nation)",
    ),
    "parallelism of a broadcast": (
        lambda: EquiJoin(
            orders(), "o_custkey", customer(), "c_custkey", partitioning="broadcast(orders)", parallelism=2
        ),
        "SQ7003 EquiJoin orders_customer: a parallelism does not go with partitioning broadcast, leave it out",
        "broadcast(orders)",
    ),
    "parallelism of Hybrid": (
        lambda: EquiJoin(orders(), "o_custkey", customer(), "c_custkey", operator="Hybrid", parallelism=2),
        "SQ7003 EquiJoin orders_customer: Hybrid gives heavy keys all partitions, and has no parallelism, "
        "leave it out, or use SHJ",
        "Hybrid",
    ),
    "hash by no key": (
        lambda: EquiJoin(orders(), "o_custkey", customer(), "c_custkey", partitioning="hash(o_date)"),
        'SQ7003 EquiJoin orders_customer: "o_date" is none of its keys, did you mean "o_custkey"?',
        "hash(o_date)",
    ),
    "hash by a computed key": (
        lambda: EquiJoin(orders(), "o_custkey + 1", customer(), "c_custkey", partitioning="hash"),
        'SQ7003 EquiJoin orders_customer: the key "o_custkey + 1" is computed, and cannot be hashed, '
        "hash by another, or broadcast an input",
        "o_custkey + 1",
    ),
    "scheme of the result": (
        lambda: Sink(Aggregate(orders(), by="o_custkey", n="COUNT(*)", partitioning="hash")),
        "SQ7003 Aggregate orders: hash: its groups are the result, which is on the driver, partition the joins below",
        "",
    ),
}


@pytest.mark.parametrize("case", WRONG)
def test_refusals(case: str) -> None:
    """The error has the message, and its caret is below the text."""
    build, expected, marked = WRONG[case]
    with pytest.raises(SquallError) as refused:
        build()
    error = refused.value
    span = error.span
    assert span and span.file == __file__
    assert f"{error.code} {error.message}" + (f", {error.hint}" if error.hint else "") == expected
    if marked:
        assert span.text[span.column - 1 :].startswith(marked[: span.length])


def test_two_declarations_of_one_stream() -> None:
    other = DataSource("orders", "o.csv", {"z": "INT"}, name="b")
    with pytest.raises(SquallError, match=r'SQ2007 .*"orders" is declared otherwise at .*test_constructors\.py'):
        Sink(ThetaJoin(orders(), other, "z > 1")).explain()


def test_columns() -> None:
    """A component knows its columns, and a join those of both inputs."""
    joined = EquiJoin(orders(), "o_custkey", customer(), "c_custkey")
    assert [c.name for c in joined.columns] == ["o_orderkey", "o_custkey", "o_date", "c_custkey", "c_name"]
    named = Project(joined, "customer.*", day="orders.o_date")
    assert [(c.name, str(c.type)) for c in named.columns] == [
        ("c_custkey", "BIGINT"),
        ("c_name", "VARCHAR"),
        ("day", "DATE"),
    ]
    assert [c.name for c in Aggregate(named, by="day AS d", n="COUNT(*)").columns] == ["d", "n"]
