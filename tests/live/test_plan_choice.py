"""Plans of sessions that are chosen anew by the rows that came: on the way to others, killed there, and on Spark."""

from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

import pytest

from squallpy import choice_schedule
from squallpy.base.settings import Settings
from squallpy.live.backend import Backend, SparkBackend
from squallpy.live.live_session import LiveSession
from squallpy.live.subscription import ViewChange
from squallpy.testing.compare_rows import difference, rows_of
from tests.kept import Killed, die_after
from tests.star_folders import StarFolders

MODEL = "FROM {}(TABLE(SELECT x, y, z, u, v FROM fact NATURAL JOIN dim NATURAL JOIN other){})"
STATEMENTS = f"""
CREATE STREAM fact (k INT, j INT, x DOUBLE, y BIGINT, z INT) USING json OPTIONS (path 'fact/', watch 'true', op 'op');
CREATE STREAM dim (k INT, u DOUBLE) USING json OPTIONS (path 'dim/', watch 'true'{{op}});
CREATE {{kind}} other (j INT, v INT) USING json OPTIONS (path 'other/'{{watch}});
CREATE MATERIALIZED VIEW m AS SELECT * {MODEL.format("cofactor", "")};
CREATE MATERIALIZED VIEW b AS SELECT * {MODEL.format("ols", ", 'y', ridge => 0.5")};
CREATE MATERIALIZED VIEW n AS SELECT k, COUNT(*) AS many FROM fact GROUP BY k;
"""


class World(StarFolders):
    """A session over folders, a reader of the changes of its view, and DuckDB over the same rows."""

    def __init__(
        self,
        folder: Path,
        keys: int,
        backend: Backend | None = None,
        kept: bool = False,
        static: bool = False,
        changing: bool = False,
    ):
        super().__init__(folder, keys)
        self.kept, self.backend = kept, backend
        self.session = self.open()
        kind, watch = ("TABLE", "") if static else ("STREAM", ", watch 'true'")
        op = ", op 'op'" if changing else ""
        [*self.session.execute(STATEMENTS.format(kind=kind, watch=watch, op=op))]
        self.read: Counter[tuple[Any, ...]] = Counter(rows_of(self.session.table("m")))
        self.session.on_change("m", self.take)

    def open(self) -> LiveSession:
        settings = Settings(local_dir=str(self.folder / "local"), partitions=2 if self.backend else 1)
        kept = str(self.folder / "kept") if self.kept else None
        return LiveSession(settings, self.folder, checkpoint=kept, backend=self.backend)

    def reopen(self) -> None:
        self.session = self.open()
        self.read = Counter(rows_of(self.session.table("m")))
        self.session.on_change("m", self.take)

    def take(self, change: ViewChange) -> None:
        """Apply a change to the rows that were read."""
        self.read.subtract(rows_of(change.deletes))
        self.read.update(rows_of(change.inserts))

    def check(self) -> None:
        """Apply what has come, and compare the matrix with DuckDB's, and the changes with the matrix."""
        self.session.run_until_caught_up()
        matrix = self.session.table("m")
        assert not (wrong := difference(matrix, self.cofactors())), wrong
        assert +self.read == Counter(rows_of(matrix)) and not -self.read

    @property
    def plan(self) -> str:
        (told,) = self.session.execute("EXPLAIN VIEWTREE m")
        return "rows" if "kept as rows" in str(told.text) else "payloads"


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(choice_schedule, "FIRST_ROWS", 200)


def follow(world: World, facts: int, steps: int) -> list[str]:
    """Add facts, and list the plans on the way."""
    plans = [world.plan]
    for _ in range(steps):
        world.facts(facts)
        world.check()
        plans += [world.plan] if world.plan != plans[-1] else []
    return plans


@pytest.mark.parametrize("static", [False, True])
@pytest.mark.parametrize("kept", [False, True])
def test_facts_keep_rows_until_a_key_has_many(kept: bool, static: bool, tmp_path: Path) -> None:
    world = World(tmp_path, 15, kept=kept, static=static)
    assert follow(world, 60, 20) == ["payloads", "rows", "payloads"]
    world.session.close()


@pytest.mark.parametrize("kept", [False, True])
def test_changes_of_a_dimension_are_told_from_its_rows(kept: bool, tmp_path: Path) -> None:
    world, plans = World(tmp_path, 15, kept=kept, changing=True), ["payloads"]
    for _ in range(20):
        world.facts(60)
        world.change_dimension()
        world.check()
        plans += [world.plan] if world.plan != plans[-1] else []
        if kept and len(plans) > 1:
            world.session.close()
            world.reopen()
            assert world.plan == plans[-1]
    assert plans == ["payloads", "rows", "payloads"]
    world.session.close()


def test_facts_whose_keys_come_often_have_payloads(tmp_path: Path) -> None:
    world = World(tmp_path, 4)
    assert follow(world, 150, 6) == ["payloads"]
    world.session.close()


def test_a_plan_stays_where_rows_are_gone(tmp_path: Path) -> None:
    session = LiveSession(base=tmp_path)
    [*session.execute("CREATE STREAM fact (k INT, x DOUBLE, y DOUBLE, z DOUBLE) USING pushed")]
    [*session.execute("CREATE STREAM dim (k INT, u DOUBLE) USING pushed")]
    [
        *session.execute(
            "CREATE MATERIALIZED VIEW m AS SELECT * FROM cofactor(TABLE(SELECT x, y, z, u FROM fact NATURAL JOIN dim))"
        )
    ]
    session.push("dim", {"k": [*range(400)], "u": [1.0] * 400})
    for start in range(0, 800, 100):
        keys = [*range(start, start + 100)]
        session.push("fact", {"k": keys, **dict.fromkeys("xyz", [0.5] * 100)})
        session.run_until_caught_up()
    assert session.table("m")["value"][0].as_py() == 400
    (told,) = session.execute("EXPLAIN VIEWTREE m")
    assert "kept as rows" not in str(told.text) and session.failure is None
    session.close()


def test_a_session_goes_on_with_the_plan_that_was_chosen(tmp_path: Path) -> None:
    world = World(tmp_path, 60, kept=True)
    assert follow(world, 60, 4) == ["payloads", "rows"]
    world.session.close()
    world.reopen()
    assert world.plan == "rows"
    world.check()
    [*world.session.execute(f"CREATE MATERIALIZED VIEW w AS SELECT * {MODEL.format('cofactor', '')}")]
    assert follow(world, 60, 2) == ["rows"]
    world.session.close()


@pytest.mark.parametrize("seed", range(4))
def fault_a_session_that_changes_its_plan_is_killed_at_any_write(
    seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    world, random, plans, kills = World(tmp_path, 15, kept=True), Random(seed), list[str](), 0
    for _ in range(24):
        world.facts(60)
        live = die_after(random.choice([random.randrange(20), 1000, 1000]), monkeypatch)
        try:
            world.session.run_until_caught_up()
        except Killed:
            kills += 1
            live()
            world.session._opened.close()  # NB: what the end of a process does
            world.reopen()
        live()
        world.check()
        plans += [world.plan] if [world.plan] != plans[-1:] else []
    assert "rows" in plans and kills, plans
    world.session.close()


def test_no_join_of_a_session_is_on_a_hypercube_whose_state_cannot_move(tmp_path: Path) -> None:
    world = World(tmp_path, 4)
    queries = [each.query for each in world.session.entries.maintained.values()]
    compiled = world.session.compiler.compile(world.session.catalog, queries, 2)
    assert compiled.plan.hypercube is None
    world.session.close()


@pytest.mark.spark
@pytest.mark.parametrize("changing", [False, True])
def test_a_session_on_spark_changes_its_plan(changing: bool, cluster: Any, tmp_path: Path) -> None:
    world = World(tmp_path, 15, SparkBackend("", cluster.session), changing=changing)
    assert follow(world, 150, 8) == ["payloads", "rows", "payloads"]
    world.session.close()
