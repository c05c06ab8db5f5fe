"""Plans of endless runs that are chosen anew by the rows that were read: killed on the way, without a checkpoint, and
on Spark."""

import logging
from contextlib import nullcontext
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pytest

from squallpy import choice_schedule
from squallpy.base.settings import Settings
from squallpy.program.explain_text import program_text
from squallpy.runtime.observers.protocol import Observer, QueryStart
from squallpy.script_session import RunOptions, ScriptSession
from squallpy.testing.compare_rows import difference
from tests.kept import Kept, Killed, StopWhenIdle, die_after
from tests.star_folders import StarFolders

SCRIPT = """
CREATE STREAM fact (k INT, j INT, x DOUBLE, y BIGINT, z INT) USING json OPTIONS (path 'fact/', watch 'true', op 'op');
CREATE STREAM dim (k INT, u DOUBLE) USING json OPTIONS (path 'dim/', watch 'true'{op});
CREATE {kind} other (j INT, v INT) USING json OPTIONS (path 'other/'{watch});
SELECT * FROM cofactor(TABLE(SELECT x, y, z, u, v FROM fact NATURAL JOIN dim NATURAL JOIN other));
"""


class Matrix(Kept):
    """Changes and the result, of which the rows are kept as they are."""

    table: pa.Table

    def final(self, table: Any) -> None:
        super().final(table)
        self.table = table


class World(StarFolders, Observer):
    """Folders, and a run over them that ends when nothing more comes, with the plans that it has had."""

    def __init__(
        self, folder: Path, keys: int, backend: str = "local", kept: bool = True, static: bool = False, op: str = ""
    ) -> None:
        super().__init__(folder, keys)
        self.backend, self.kept, self.sink, self.plans = backend, kept, Matrix(), list[str]()
        kind, watch = ("TABLE", "") if static else ("STREAM", ", watch 'true'")
        (folder / "q.sql").write_text(SCRIPT.format(kind=kind, watch=watch, op=op))

    def on_query_started(self, start: QueryStart) -> None:
        assert start.plan
        plan = "rows" if "V_FACT(k, j, x, y, z)" in program_text(start.plan.program) else "payloads"
        self.plans += [plan] if [plan] != self.plans[-1:] else []

    def on_plan_changed(self, start: QueryStart) -> None:
        self.on_query_started(start)

    def run(self) -> None:
        """Run until nothing more has come."""
        settings = Settings(local_dir=str(self.folder / "local"), partitions=2)
        kept = str(self.folder / "kept") if self.kept else None
        options = RunOptions(self.backend, batch_rows=40, changes=True, checkpoint=kept)
        ScriptSession(self.folder / "q.sql", settings).run(options, self.sink, StopWhenIdle(), observer=self)

    def check(self) -> None:
        """Compare the matrix with DuckDB's, and with what its changes add up to."""
        assert not (wrong := difference(self.sink.table, self.cofactors())), wrong
        assert self.sink.kept_rows == self.sink.rows
        assert sorted(self.sink.changes) == [*range(len(self.sink.changes))]


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(choice_schedule, "FIRST_ROWS", 200)


@pytest.mark.parametrize("static", [False, True])
@pytest.mark.parametrize("kept", [False, True])
def test_a_run_changes_its_plan(kept: bool, static: bool, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    world = World(tmp_path, 15, kept=kept, static=static)
    for _ in range(20):
        world.facts(60)
    with caplog.at_level(logging.INFO, "squallpy"):
        world.run()
    world.check()
    assert world.plans == ["payloads", "rows", "payloads"]
    assert [record.message for record in caplog.records].count("plan changes") == 2


def test_changes_of_a_dimension_are_told_from_its_rows(tmp_path: Path) -> None:
    world = World(tmp_path, 15, op=", op 'op'")
    for _ in range(20):
        world.facts(60)
        world.change_dimension()
    world.run()
    world.check()
    assert world.plans == ["payloads", "rows", "payloads"]


def test_a_run_goes_on_with_the_plan_that_was_chosen(tmp_path: Path) -> None:
    world = World(tmp_path, 60)
    for _ in range(5):
        world.facts(60)
        world.run()
        world.check()
    assert world.plans == ["payloads", "rows"], "each run begins with the plan of the one before"


def test_a_plan_stays_where_files_are_gone(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    world = World(tmp_path, 60)
    world.facts(60)
    world.run()
    (tmp_path / "fact" / "2.json").unlink()
    for _ in range(8):
        world.facts(60)
    with caplog.at_level(logging.INFO, "squallpy"):
        world.run()
    world.check()
    assert world.plans == ["payloads"] and any(record.message == "plan stays" for record in caplog.records)


def test_explain_why_tells_that_a_plan_is_chosen_anew(tmp_path: Path) -> None:
    world = World(tmp_path, 60, static=True)
    world.facts(60)
    told = ScriptSession(tmp_path / "q.sql").explain("why").partition("VIEW TREES")[2].splitlines()
    assert told[1:3] == [
        "  other 60",
        "  chosen anew when 10,000 rows have been read, and whenever there are twice as many",
    ]


@pytest.mark.parametrize("seed", range(4))
def fault_a_run_that_changes_its_plan_is_killed_at_any_write(
    seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    world, random, kills = World(tmp_path, 15), Random(seed), 0
    for _ in range(24):
        world.facts(60)
        live = die_after(random.choice([random.randrange(25), 10_000]), monkeypatch)
        try:
            world.run()
        except Killed:
            kills += 1
            live()
            world.run()
        live()
        world.check()
    assert {*world.plans} == {"payloads", "rows"} and kills


@pytest.mark.spark
def test_changes_of_a_dimension_are_told_from_its_rows_on_spark(
    cluster: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from squallpy.runtime.spark import executor

    monkeypatch.setattr(executor, "start", lambda *_: nullcontext(cluster))
    world = World(tmp_path, 15, "spark", op=", op 'op'")
    for _ in range(8):
        world.facts(150)
        world.change_dimension()
    world.run()
    world.check()
    assert "rows" in world.plans


@pytest.mark.spark
@pytest.mark.parametrize("kept", [False, True])
def test_a_run_on_spark_changes_its_plan(
    kept: bool, cluster: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from squallpy.runtime.spark import executor

    monkeypatch.setattr(executor, "start", lambda *_: nullcontext(cluster))
    world = World(tmp_path, 15, "spark", kept)
    for _ in range(8):
        world.facts(150)
    world.run()
    world.check()
    assert world.plans == ["payloads", "rows", "payloads"]
