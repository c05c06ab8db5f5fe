"""docs/plans.md: its plan runs, its mistake is refused as shown, and what it shows of EXPLAIN is in a golden plan."""

import re
from pathlib import Path

import pytest

from squallpy.base.errors import SquallError
from squallpy.plan_file import load_plan

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "docs" / "plans.md").read_text()
(PLAN,) = re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL)


@pytest.fixture
def plan(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("customer.csv").write_text("1,Ann,BUILDING\n2,Bob,MACHINERY\n")
    Path("orders.csv").write_text("10,1\n11,1\n12,2\n")
    Path("plan.py").write_text(PLAN)
    return Path("plan.py")


def test_the_plan_runs(plan: Path) -> None:
    (answer,) = load_plan(plan).answers("local")
    assert sorted(answer.to_pylist(), key=str) == [
        {"mktsegment": "BUILDING", "n": 2},
        {"mktsegment": "MACHINERY", "n": 1},
    ]


def test_the_mistake_is_refused(plan: Path) -> None:
    plan.write_text(PLAN.replace('EquiJoin(customer, "custkey"', 'EquiJoin(customer, "custky"'))
    with pytest.raises(SquallError) as refused:
        load_plan(plan)
    assert f"```\n{refused.value}\n{refused.value.caret()}\n```" in TEXT


def test_the_components_are_those_of_the_golden_plan() -> None:
    (shown,) = re.findall(r"```\n(JOIN .*?)```", TEXT, re.DOTALL)
    golden = (ROOT / "plans" / "by_hand" / "q3.txt").read_text().splitlines()
    assert [line for line in shown.splitlines() if line not in golden] == []
