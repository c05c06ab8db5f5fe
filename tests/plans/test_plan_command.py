"""`squall run` and `squall explain` of plan files: the output of a script with the same query, mistakes in one line."""

from pathlib import Path

import pytest

from squallpy.plans import DataSource, Sink
from squallpy.terminal.cli import main

PLAN = """from squallpy.plans import Aggregate, DataSource, EquiJoin, Sink

r = DataSource("r", "r.csv", {"a": "INT", "b": "INT"})
s = DataSource("s", "s.csv", {"b": "INT", "c": "INT"})
n = Sink(Aggregate(EquiJoin(r, "b", s, "b"), by="c", n="COUNT(*)"))
"""
SCRIPT = """CREATE STREAM r (a INT, b INT) USING csv OPTIONS (path 'r.csv');
CREATE STREAM s (b INT, c INT) USING csv OPTIONS (path 's.csv');
SELECT c, COUNT(*) AS n FROM r JOIN s ON r.b = s.b GROUP BY c;
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "r.csv").write_text("1,1\n2,1\n3,2\n")
    (tmp_path / "s.csv").write_text("1,7\n2,7\n2,8\n")
    (tmp_path / "plan.py").write_text(PLAN)
    (tmp_path / "script.sql").write_text(SCRIPT)
    return tmp_path


def output(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert main([*arguments]) == 0
    return capsys.readouterr().out


def test_the_same_plan_and_answer_as_of_the_script(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    plan, script = str(folder / "plan.py"), str(folder / "script.sql")
    rows = output(capsys, "run", plan, "--backend", "local")
    assert rows == output(capsys, "run", script, "--backend", "local") == "c,n\n7,3\n8,1\n"
    for stage in ("triggers", "physical", "stages"):
        shown = output(capsys, "explain", stage, plan)
        same = output(capsys, "explain", stage, script)
        component = "COMPONENT EquiJoin r_s of r, s: by cost; M_S, M_R\n" if stage == "physical" else ""
        assert shown == same + component


def test_a_checkpoint_resumes(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["run", str(folder / "plan.py"), "--backend", "local", "--checkpoint", str(folder / "state")]
    assert output(capsys, *arguments) == output(capsys, *arguments) == "c,n\n7,3\n8,1\n"


def test_several_sinks_run_together(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "plan.py").write_text(f'{PLAN}m = Sink(Aggregate(r, m="SUM(a)"))\n')
    assert output(capsys, "run", str(folder / "plan.py"), "--backend", "local").split() == [
        "c,n", "7,3", "8,1", "m", "6",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x = = 1\n", "SQ1001 {}:1:5: invalid syntax"),
        ("\nx = 1 / 0\n", "SQ1003 {}:2:1: the plan raises ZeroDivisionError: division by zero"),
        ("x = 1\n", "SQ1002 {}: the plan has no Sink, give it to a name: plan = Sink(…)"),
        (PLAN.replace('"b", s', '"d", s'), '{}:5:33: r → EquiJoin r_s: unknown column "d", known: a, b'),
    ],
    ids=["syntax", "raises", "no sink", "unknown column"],
)
def test_a_mistake_is_one_line(text: str, message: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = folder / "plan.py"
    path.write_text(text)
    assert main(["run", str(path), "--backend", "local"]) == 2
    assert message.format(path) in capsys.readouterr().err


def test_no_such_plan(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", str(folder / "none.py"), "--backend", "local"]) == 2
    assert "SQ4001 cannot read the script" in capsys.readouterr().err


def test_rows_are_written_to_files(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """As by CREATE SINK; `to_arrow` returns them all the same."""
    (folder / "plan.py").write_text(PLAN.replace('n="COUNT(*)"))', 'n="COUNT(*)"), "out.csv", mode="final")'))
    assert output(capsys, "run", str(folder / "plan.py"), "--backend", "local") == ""
    assert (folder / "out.csv").read_text() == "c,n\n7,3\n8,1\n"
    source = DataSource("r", folder / "r.csv", {"a": "INT", "b": "INT"})
    assert Sink(source, folder / "rows/", using="csv", mode="append").to_arrow().num_rows == 3
    assert not (folder / "rows").exists()


def test_submit(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The line of spark-submit has the plan in the place of the script."""
    assert str(folder / "plan.py") in output(capsys, "submit", str(folder / "plan.py"), "--print")
