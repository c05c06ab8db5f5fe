"""The thesis's listing (section 3.2.1) in SQL and put together by hand, with one answer: orders by market segment.

Another interface is one more function of INTERFACES.
"""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from squallpy.plans import Aggregate, DataSource, EquiJoin, Project, Sink, Window
from squallpy.session import RunOptions, Session
from squallpy.testing.compare_rows import rows_of
from squallpy.testing.example_runs import PrintedExample

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
    Session(script).run(RunOptions(backend=backend, batch_rows=2), answer)
    return rows_of(answer.table)


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


INTERFACES: dict[str, Callable[[Path, str, str], Rows]] = {"SQL": in_sql, "by hand": by_hand}


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
@pytest.mark.parametrize("name", ["SQL", "by hand"])
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
