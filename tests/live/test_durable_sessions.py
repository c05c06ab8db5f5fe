"""Sessions with a checkpoint: killed anywhere, they go on, and each statement is in force whole or not at all."""

import json
import os
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from itertools import count
from pathlib import Path
from random import Random
from typing import Any

import duckdb
import pytest

import squallpy
from squallpy.base.errors import SquallError
from squallpy.base.settings import Settings
from squallpy.live.generation import Generation
from squallpy.live.live_session import LiveSession
from squallpy.runtime.checkpoint.checkpoint import hold_lease
from squallpy.testing.compare_rows import difference, rows_of
from tests.kept import Killed, die_after
from tests.live.test_live_session import OVER_VIEWS, QUERIES, beside

STREAMS = """
CREATE STREAM r (a BIGINT, b BIGINT, v BIGINT) USING json OPTIONS (path 'r/', watch 'true', op 'op');
CREATE STREAM s (b BIGINT, w BIGINT, t VARCHAR) USING json OPTIONS (path 's/', watch 'true', op 'op');
"""
WORLDS = int(os.environ.get("KILLS", "6"))


class World:
    """A session over folders, which is killed at any write, and DuckDB over the same rows."""

    def __init__(self, seed: int, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.random, self.folder, self.patch = Random(seed), folder, monkeypatch
        self.rows: dict[str, list[tuple[Any, ...]]] = {"r": [], "s": []}
        self.files = self.kills = 0
        self.session = self.open()
        [*self.session.execute(STREAMS)]

    def open(self) -> LiveSession:
        settings = Settings(local_dir=str(self.folder / "local"), snapshot_mb=1)
        return LiveSession(settings, self.folder, checkpoint=str(self.folder / "kept"))

    def push(self) -> None:
        """Write files with inserts, and deletes of rows that are there."""
        for name, columns in (("r", "abv"), ("s", "bwt")):
            new = [tuple(self._value(c) for c in columns) for _ in range(self.random.randrange(6))]
            old = self.random.sample(self.rows[name], min(len(self.rows[name]), self.random.randrange(3)))
            for row in old:
                self.rows[name].remove(row)
            self.rows[name] += new
            signed = [(*row, "+") for row in new] + [(*row, "-") for row in old]
            lines = [dict(zip((*columns, "op"), row, strict=True)) for row in signed]
            text = "".join(f"{json.dumps(line)}\n" for line in lines)
            (self.folder / name).mkdir(exist_ok=True)
            (self.folder / name / f"{self.files}.json").write_text(text)
            self.files += 1

    def _value(self, column: str) -> Any:
        return self.random.choice([None, "x", "é"] if column == "t" else [None, 0, 1, 2, 3])

    def killed(self, act: Callable[[], object]) -> bool:
        """Do something, and be killed at one of its writes; true if it was."""
        lives_on = die_after(self.random.randrange(25), self.patch)
        try:
            act()
        except Killed:
            self.kills += 1
            lives_on()
            self.session._opened.close()  # NB: what the end of a process does
            self.session = self.open()
            return True
        finally:
            lives_on()
        return False

    def act(self) -> None:
        """Create, drop or alter a view, restart, or apply what has come."""
        views = [*self.session.entries.views]
        name = self.random.choice(views) if views else ""
        match self.random.randrange(5):
            case 0 | 1:
                query = self.random.choice(OVER_VIEWS).format(name) if views and self.random.random() < 0.3 else ""
                query = query or self.random.choice(QUERIES)
                number = self.random.randrange(1000)
                [*self.session.execute(f"CREATE MATERIALIZED VIEW IF NOT EXISTS v{number} AS {query}")]
            case 2 if views:
                [*self.session.execute(f"DROP MATERIALIZED VIEW {name} CASCADE")]
            case 3 if views:
                with suppress(SquallError):  # NB: its readers may need its columns
                    [*self.session.execute(f"ALTER VIEW {name} AS {self.random.choice(QUERIES)}")]
            case 4:
                self.session.close()
                self.session = self.open()
        self.session.run_until_caught_up()

    def check(self) -> None:
        """Compare each view with DuckDB."""
        self.session.run_until_caught_up()
        duck = duckdb.connect()
        duck.execute("CREATE TABLE r (a BIGINT, b BIGINT, v BIGINT); CREATE TABLE s (b BIGINT, w BIGINT, t TEXT)")
        for name, rows in self.rows.items():
            if rows:
                duck.executemany(f"INSERT INTO {name} VALUES (?, ?, ?)", rows)
        for text in self.session._definitions.statements():
            if "VIEW" in text.split("AS")[0]:
                duck.execute(text.replace("MATERIALIZED ", "").replace("`", '"'))
        for name, query in self.session.entries.views.items():
            wanted = duck.execute(f"SELECT * FROM {name}").fetchall()
            assert not (found := difference(self.session.table(name), wanted)), f"{query.text}\n{found}"


@pytest.mark.parametrize("seed", range(WORLDS))
def fault_sessions_killed_at_any_write(seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also while batches go on beside the state of a view that comes or goes."""
    world, catch_up = World(seed, tmp_path, monkeypatch), Generation.catch_up
    turns = count()

    def behind_a_batch(generation: Generation) -> int:
        if generation.begun_beside and next(turns) % 4 < 3:
            world.push()
            world.session.step()
        return catch_up(generation)

    monkeypatch.setattr(Generation, "catch_up", behind_a_batch)
    for _ in range(8):
        world.push()
        world.killed(world.act)
        world.check()
    world.session.close()


def test_batches_go_on_while_the_state_of_another_generation_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What they have read is in it when it is in force, also what their sources and their log would have forgotten."""
    session, write, pushed = LiveSession(checkpoint=str(tmp_path / "kept")), Generation.write, list[int]()
    assert session._checkpoint
    session._checkpoint._snapshot_bytes = 0
    [*session.execute("CREATE STREAM r (a BIGINT) USING pushed; CREATE STREAM s (b BIGINT) USING pushed")]
    [*session.execute("CREATE MATERIALIZED VIEW v AS SELECT SUM(a) AS total FROM r")]
    [*session.execute("CREATE MATERIALIZED VIEW w AS SELECT a % 3 AS g, COUNT(*) AS n FROM r GROUP BY a % 3")]

    def push_and_step(times: int = 1) -> None:
        for _ in range(times):
            pushed.append(len(pushed))
            session.push("r", {"a": [pushed[-1]]})
            assert session.step()

    def slow(generation: Generation) -> None:
        beside(lambda: push_and_step(6))
        write(generation)
        beside(push_and_step)

    monkeypatch.setattr(Generation, "write", slow)
    push_and_step(4)
    for statement in (
        "CREATE MATERIALIZED VIEW x AS SELECT SUM(n) AS n FROM w",
        "CREATE MATERIALIZED VIEW y AS SELECT COUNT(b) AS n FROM s",
        "DROP VIEW w CASCADE",
    ):
        many = len(pushed)
        [*session.execute(statement)]
        assert len(pushed) == many + 7
        for name, column, wanted in (("v", "total", sum(pushed)), ("x", "n", len(pushed)), ("y", "n", 0)):
            if name in session.entries.views:
                assert session.table(name)[column].to_pylist() == [wanted]
        push_and_step()
    session.close()
    with squallpy.connect(checkpoint=str(tmp_path / "kept")) as s:
        assert s.view("v").to_pylist() == [{"total": sum(pushed)}]


@pytest.mark.parametrize("writes", range(6))
def fault_readers_have_each_batch_once_after_a_kill(
    writes: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also one that views had when the process was killed, and that was not committed."""
    session, folder = LiveSession(base=tmp_path, checkpoint=str(tmp_path / "kept")), tmp_path / "r"
    [*session.execute("CREATE STREAM r (a INT, b INT) USING json OPTIONS (path 'r/', watch 'true')")]
    [*session.execute("CREATE MATERIALIZED VIEW v AS SELECT a, SUM(b) AS b FROM r GROUP BY a")]
    folder.mkdir()
    (folder / "1.json").write_text('{"a": 1, "b": 2}\n')
    session.run_until_caught_up()
    (folder / "2.json").write_text('{"a": 1, "b": 3}\n{"a": 2, "b": 3}\n')
    live = die_after(writes, monkeypatch)
    with suppress(Killed):
        session.run_until_caught_up()
    live()
    session._opened.close()  # NB: what the end of a process does
    session = LiveSession(base=tmp_path, checkpoint=str(tmp_path / "kept"))
    reader, seen = session.subscribe("v", with_snapshot=True), Counter[tuple[Any, ...]]()
    session.run_until_caught_up()
    for change in reader:
        seen.subtract(rows_of(change.deletes))
        seen.update(rows_of(change.inserts))
    assert +seen == Counter({(1, 5): 1, (2, 3): 1}) and not -seen
    session.close()


def test_views_are_there_after_a_restart_and_go_on(tmp_path: Path) -> None:
    folder = str(tmp_path / "kept")
    with squallpy.connect(checkpoint=folder) as s:
        s.stream("items", schema={"id": "BIGINT", "price": "BIGINT"}, stored=True)
        s.sql("SET batch_rows = 7")
        s.sql("CREATE MATERIALIZED VIEW rev AS SELECT id, SUM(price) AS total FROM items GROUP BY id")
        s.push("items", {"id": [1, 2], "price": [3, 4]})
        s.step()
    with squallpy.connect(checkpoint=folder) as s:
        assert s.view("rev").to_pylist() == [{"id": 1, "total": 3}, {"id": 2, "total": 4}]
        s.push("items", {"id": [1], "price": [1]})
        s.step()
        s.sql("CREATE MATERIALIZED VIEW prices AS SELECT price, COUNT(*) AS n FROM items GROUP BY price")
        assert s.query("SELECT COUNT(*) AS n FROM prices").to_pylist() == [{"n": 3}]
    with squallpy.connect(checkpoint=folder) as s:
        assert s.query("SELECT SUM(total) AS t FROM rev").to_pylist() == [{"t": 8}]
        assert s._session.settings.batch_rows == 7


def test_columns_of_files_are_known_when_the_files_have_gone(tmp_path: Path) -> None:
    (tmp_path / "r").mkdir()
    (tmp_path / "r/1.csv").write_text("a,b\n1,2\n")
    for number in range(2):
        session = LiveSession(base=tmp_path, checkpoint=str(tmp_path / "kept"))
        if not number:
            [*session.execute("CREATE STREAM r USING csv OPTIONS (path 'r/', header 'true', watch 'true')")]
            [*session.execute("CREATE MATERIALIZED VIEW v AS SELECT SUM(b) AS b FROM r")]
            session.run_until_caught_up()
            (tmp_path / "r/1.csv").unlink()
        assert session.table("v").to_pylist() == [{"b": 2}]
        session.close()


@pytest.mark.parametrize("mode", ["changes", "upsert"])
def test_a_sink_has_all_rows_of_its_query_and_then_its_changes(tmp_path: Path, mode: str) -> None:
    sink = f"CREATE SINK o USING csv OPTIONS (path 'out/', mode '{mode}') AS SELECT a, SUM(b) AS b FROM r GROUP BY a"
    session = LiveSession(base=tmp_path, checkpoint=str(tmp_path / "kept"))
    [*session.execute("CREATE STREAM r (a BIGINT, b BIGINT) USING pushed OPTIONS (op 'op') STORED")]
    [*session.execute("CREATE MATERIALIZED VIEW v AS SELECT COUNT(*) AS n FROM r")]
    session.push("r", {"a": [1, 2], "b": [1, 1]})
    session.step()
    [*session.execute(sink)]
    session.push("r", {"a": [1], "b": [5]})
    session.step()
    session.close()
    session = LiveSession(base=tmp_path, checkpoint=str(tmp_path / "kept"))
    session.push("r", {"a": [2], "b": [1]})
    session.step()
    session.close()
    lines = [line for path in sorted((tmp_path / "out").glob("*.csv")) for line in path.read_text().splitlines()[1:]]
    assert lines[:2] == ["0,+,1,1", "0,+,2,1"] and lines[2:] == (
        ["1,-,1,1", "1,+,1,6", "2,-,2,1", "2,+,2,2"] if mode == "changes" else ["1,u,1,6", "2,u,2,2"]
    )


def fault_a_checkpoint_of_a_script_is_none_of_a_session(tmp_path: Path) -> None:
    (tmp_path / "made-for").write_text("{}")
    with pytest.raises(SquallError, match="SQ6002"):
        squallpy.connect(checkpoint=tmp_path)


def fault_a_checkpoint_that_no_session_has(tmp_path: Path) -> None:
    """A run of a script has it, to which nobody can attach."""
    with hold_lease(str(tmp_path)), pytest.raises(SquallError, match="SQ6007"):
        squallpy.connect(checkpoint=tmp_path)
