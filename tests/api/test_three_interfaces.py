"""The thesis's listing (section 3.2.1) in SQL, by functions and put together by hand, with one answer."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import squallpy
from squallpy import count
from squallpy.plans import Aggregate, DataSource, EquiJoin, Project, Sink, Window
from squallpy.script_session import RunOptions, ScriptSession
from squallpy.testing.compare_rows import rows_of
from squallpy.testing.example_runs import PrintedExample
from tests.marks import long

CUSTOMER = "\n".join(
    (
        "1,Ann,BUILDING,2026-01-01 10:00:00",
        "2,Bob,MACHINERY,2026-01-01 10:01:00",
        "3,Cid,BUILDING,2026-01-01 10:02:00",
        "4,Dot,BUILDING,2026-01-01 10:05:30",
    )
)
ORDERS = "\n".join(
    (
        "10,1,2026-01-01 10:00:30",
        "11,2,2026-01-01 10:01:30",
        "12,3,2026-01-01 10:03:00",
        "13,3,2026-01-01 10:05:20",
        "14,9,2026-01-01 10:05:30",
        "15,4,2026-01-01 10:05:40",
    )
)

ANSWERS = {
    "": [("BUILDING", 4), ("MACHINERY", 1)],
    "RANGE 5 MIN": [("BUILDING", 3), ("MACHINERY", 1)],  # Ann and her order have left the window
}
Rows = list[tuple[object, ...]]


def in_sql(folder: Path, window: str, backend: str) -> Rows:
    script = folder / "orders.sql"
    script.write_text(f"""
CREATE STREAM customer (custkey BIGINT, name VARCHAR, mktsegment VARCHAR, at TIMESTAMP)
    USING csv OPTIONS (path 'customer.csv') TIMESTAMP BY at;
CREATE STREAM orders (orderkey BIGINT, custkey BIGINT, at TIMESTAMP)
    USING csv OPTIONS (path 'orders.csv') TIMESTAMP BY at;

SELECT customer.mktsegment, COUNT(orders.orderkey) AS n
FROM customer JOIN orders ON customer.custkey = orders.custkey
GROUP BY customer.mktsegment
{window};
""")
    answer = PrintedExample()
    ScriptSession(script).run(RunOptions(backend=backend, batch_rows=2), answer)
    return rows_of(answer.table)


def by_functions(folder: Path, window: str, backend: str) -> Rows:
    schemas = {
        "customer": {"custkey": "BIGINT", "name": "VARCHAR", "mktsegment": "VARCHAR", "at": "TIMESTAMP"},
        "orders": {"orderkey": "BIGINT", "custkey": "BIGINT", "at": "TIMESTAMP"},
    }
    with squallpy.connect(backend) as s:
        customer, orders = (
            s.stream(name, schema, path=folder / f"{name}.csv", timestamp_by="at") for name, schema in schemas.items()
        )
        joined = customer.join(orders, on="custkey")
        seen = joined.window(window.removeprefix("RANGE ")) if window else joined
        view = seen.group_by("mktsegment").agg(n=count("orderkey")).materialize()
        s.run_until_caught_up()
        return rows_of(view.to_arrow())


def by_hand(folder: Path, window: str, backend: str) -> Rows:
    customer = Project(
        DataSource(
            "customer",
            folder / "customer.csv",
            {"custkey": "BIGINT", "name": "VARCHAR", "mktsegment": "VARCHAR", "at": "TIMESTAMP"},
            timestamp_by="at",
        ),
        "custkey",
        "mktsegment",
    )
    orders = Project(
        DataSource(
            "orders",
            folder / "orders.csv",
            {"orderkey": "BIGINT", "custkey": "BIGINT", "at": "TIMESTAMP"},
            timestamp_by="at",
        ),
        "orderkey",
        "custkey",
    )
    joined = EquiJoin(customer, "custkey", orders, "custkey", operator="SHJ", parallelism=2)
    counted = Aggregate(Window(joined, window) if window else joined, by="mktsegment", n="COUNT(orderkey)")
    return rows_of(Sink(counted).to_arrow(backend))


INTERFACES: dict[str, Callable[[Path, str, str], Rows]] = {
    "SQL": in_sql,
    "by functions": by_functions,
    "by hand": by_hand,
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "customer.csv").write_text(CUSTOMER)
    (tmp_path / "orders.csv").write_text(ORDERS)
    return tmp_path


@pytest.mark.parametrize("window", ANSWERS)
@pytest.mark.parametrize("name", INTERFACES)
def test_one_answer(name: str, window: str, folder: Path) -> None:
    assert sorted(INTERFACES[name](folder, window, "local"), key=repr) == ANSWERS[window]


@pytest.mark.spark
@pytest.mark.parametrize("name", [long("SQL"), long("by hand")])
def test_one_answer_on_spark(name: str, folder: Path) -> None:
    """In a process of its own, as this one may have a session of Spark's."""
    window = "RANGE 5 MIN"
    code = (
        "from pathlib import Path; from tests.api.test_three_interfaces import INTERFACES; "
        f"print(sorted(INTERFACES[{name!r}](Path({str(folder)!r}), {window!r}, 'spark'), key=repr))"
    )
    command = [sys.executable, "-c", code]
    run = subprocess.run(command, cwd=Path(__file__).parents[2], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == repr(ANSWERS[window])


def test_strings_functions_and_matrices_are_in_one_session() -> None:
    from squallpy.matrices import inv, program

    @program
    def ols(X, Y):  # type: ignore[no-untyped-def]
        return {"beta": inv(X.T @ X) @ (X.T @ Y)}

    with squallpy.connect() as s:
        points = s.stream("points", {"x": "DOUBLE", "y": "DOUBLE"})
        s.sql("CREATE MATERIALIZED VIEW near AS SELECT x, y FROM points WHERE x < 10")
        near = s.table("near").select(one=squallpy.lit(1.0), x="x", y="y").materialize("design")
        points.push([{"x": float(i), "y": 2.0 + 3.0 * i} for i in range(12)])
        s.step()
        rows = near.to_pandas()
        model = ols.start(X=rows[["one", "x"]].to_numpy(), Y=rows[["y"]].to_numpy())
        assert model["beta"].ravel() == pytest.approx([2.0, 3.0])
