"""Streams without end: what a run has read is known by its checkpoint, whenever it is killed and whatever has come."""

import json
from contextlib import nullcontext, suppress
from pathlib import Path
from random import Random
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from squallpy.base.errors import SquallError
from squallpy.base.settings import Settings
from squallpy.runtime import query_input
from squallpy.runtime.checkpoint.checksummed_record import read_record, write_record
from squallpy.runtime.checkpoint.durable_folder import open_durable
from squallpy.runtime.checkpoint.state_folders import Committed
from squallpy.script_session import RunOptions, ScriptSession
from tests.kept import Kept, Killed, StopWhenIdle

SCRIPT = """
CREATE STREAM r (k BIGINT, v BIGINT) USING csv OPTIONS (path 'r/', watch 'true');
CREATE STREAM s (k BIGINT, w BIGINT) USING csv OPTIONS (path 's/*.csv', watch 'true', maxFilesPerTrigger '2');
CREATE TABLE t (k BIGINT, name VARCHAR) USING csv OPTIONS (path 't.csv');
SELECT name, COUNT(*) AS n, SUM(v * w) AS total FROM r JOIN s USING (k) JOIN t USING (k) GROUP BY name;
"""
ORACLE = SCRIPT.rpartition("t.csv');")[2].replace("SUM(v * w)", "SUM(v * w)::BIGINT")


ALWAYS = "WHERE (v < 1000 AND w < 50) OR (v < 1000 AND w >= 50)"  # NB: passes make another program of it


class World:
    """A script, the folders that it watches, and a checkpoint."""

    def __init__(self, folder: Path, backend: str = "local") -> None:
        self.folder, self.backend, self.sink = folder, backend, Kept()
        (folder / "q.sql").write_text(SCRIPT)
        (folder / "t.csv").write_text("".join(f"{k},{'ab'[k % 2]}\n" for k in range(5)))
        self.rows: dict[str, list[str]] = {"r": [], "s": []}
        self.unended: dict[Path, str] = {}
        self.settings: dict[str, Any] = {}

    def append(self, name: str, lines: list[str], tail: str = "") -> None:
        """Append lines to a file, and the beginning of another; what was begun before is ended first."""
        path = self.folder / name
        path.parent.mkdir(exist_ok=True)
        begun = self.unended.pop(path, "")
        with path.open("a") as sink:
            sink.write(("\n" if begun else "") + "".join(f"{line}\n" for line in lines) + tail)
        self.rows[name[0]] += [*([begun] if begun else []), *lines]
        if tail:
            self.unended[path] = tail

    def run(self, batch_rows: int = 3, dies_at: int | None = None) -> None:
        """Run until nothing more has come, or to a kill."""
        self.sink.dies_at = dies_at
        session = ScriptSession(
            self.folder / "q.sql", Settings(local_dir=str(self.folder / "local"), partitions=2, **self.settings)
        )
        kept = str(self.folder / "kept")
        options = RunOptions(self.backend, batch_rows=batch_rows, changes=True, checkpoint=kept)
        try:
            session.run(options, self.sink, StopWhenIdle())
        except Killed:
            if dies_at is None:
                raise
            self.run(batch_rows)

    def check(self) -> None:
        """Compare with DuckDB over the whole lines."""
        database = duckdb.connect()
        for name, columns in (("r", "k, v"), ("s", "k, w")):
            values = ", ".join(f"({line})" for line in self.rows[name]) or "(NULL, NULL)"
            database.execute(f"CREATE TABLE {name} AS SELECT * FROM (VALUES {values}) AS x({columns})")
        database.execute(f"CREATE TABLE t AS FROM read_csv('{self.folder / 't.csv'}', names = ['k', 'name'])")
        answer = database.execute(ORACLE)
        names = [column[0] for column in answer.description or ()]
        wanted = sorted(str(dict(zip(names, row, strict=True))) for row in answer.fetchall())
        assert self.sink.rows == wanted and self.sink.kept_rows == wanted


def line(random: Random) -> str:
    return f"{random.randrange(5)},{random.randrange(100)}"


@settings(deadline=None, max_examples=max(5, settings().max_examples // 10))
@given(seed=st.integers(0, 1 << 30))
def property_a_checkpoint_knows_what_was_read(seed: int, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Files come, grow and go, lines are half written, runs are killed and go on with other batches."""
    random = Random(seed)
    world = World(tmp_path_factory.mktemp("world"))
    for _ in range(4):
        for _ in range(random.randrange(6)):
            name = f"{random.choice('rs')}/{random.randrange(3)}.csv"
            lines = [line(random) for _ in range(random.randrange(4))]
            world.append(name, lines, random.choice(["", "", "1,2", "3,45"]))
        world.run(random.choice([1, 3, 100]), random.choice([None, None, 0, 1, 2]))
        world.check()


def fault_a_file_that_was_replaced_is_refused(tmp_path: Path) -> None:
    """… by its content, at the same size and with more behind; not one that was touched, or has only grown."""
    world = World(tmp_path)
    world.append("r/0.csv", ["1,10", "2,20"])
    world.run()
    (tmp_path / "r/0.csv").touch()
    world.append("s/0.csv", ["1,1"])
    world.run()
    world.check()
    for text in ("1,11\n2,20\n", "1,11\n2,20\n3,3\n", "1,10\n"):
        (tmp_path / "r/0.csv").write_text(text)
        with pytest.raises(SquallError, match=r"SQ6001 .*r/0.csv has changed since the checkpoint .*kept read it"):
            world.run()
    (tmp_path / "r/0.csv").write_text("1,10\n2,20\n3,30\n")
    world.rows["r"].append("3,30")
    world.run()
    world.check()


def test_a_file_that_was_read_to_its_end_may_go(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.append("r/0.csv", ["1,10", "2,20"])
    world.append("s/0.csv", ["1,1", "2,2"])
    world.run()
    (tmp_path / "r/0.csv").unlink()
    world.append("r/1.csv", ["1,30"])
    world.run()
    world.check()


def fault_a_half_read_file_must_not_go(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.append("r/0.csv", [f"1,{i}" for i in range(9)])
    with pytest.raises(Killed):
        world.sink.dies_at = 2
        session = ScriptSession(tmp_path / "q.sql", Settings(local_dir=str(tmp_path / "local")))
        session.run(
            RunOptions("local", batch_rows=2, changes=True, checkpoint=str(tmp_path / "kept")), world.sink,
            StopWhenIdle(),
        )  # fmt: skip
    (tmp_path / "r/0.csv").unlink()
    with pytest.raises(SquallError, match=r"SQ6001 .*r/0.csv"):
        world.run()


@settings(deadline=None, max_examples=max(5, settings().max_examples // 10))
@given(seed=st.integers(0, 1 << 30))
def property_another_program_repeats_what_was_read(seed: int, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Whatever programs take turns, and whenever they are killed, also while they repeat: no change is told twice."""
    random = Random(seed)
    world = world_of_programs(tmp_path_factory.mktemp("world"))
    for _ in range(5):
        for _ in range(random.randrange(4)):
            world.append(f"{random.choice('rs')}/{random.randrange(9)}.csv", [line(random) for _ in range(3)])
        world.settings = random.choice([{}, {"optimizer": False}])
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(query_input, "LEAP_ROWS", random.choice([2, 7, 1000]))
            patch.setattr(Committed, "commit", dying(random.choice([1, 2, 3, 1000]), random.random() < 0.5))
            with suppress(Killed):
                world.run(random.choice([1, 3, 100]), random.choice([None, None, 1]))
            patch.undo()
        world.run(5)
        world.check()


def world_of_programs(folder: Path, backend: str = "local") -> World:
    """A world whose query has another program without passes."""
    world = World(folder, backend)
    (folder / "q.sql").write_text(SCRIPT.replace("GROUP BY", f"{ALWAYS} GROUP BY"))
    return world


def dying(commits: int, is_done: bool = True) -> Any:
    """Return a commit that dies when it has been called so often, when it `is_done` or before."""
    commit, left = Committed.commit, [commits]

    def found(self: Committed, *arguments: Any) -> None:
        left[0] -= 1
        if left[0] or is_done:
            commit(self, *arguments)
        if not left[0]:
            raise Killed

    return found


def test_the_generation_before_is_in_force_until_all_is_repeated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    world, kept = world_of_programs(tmp_path), tmp_path / "kept"
    for number in range(4):
        world.append(f"r/{number}.csv", [f"{k},{number}" for k in range(4)])
        world.append(f"s/{number}.csv", [f"{k},1" for k in range(4)])
    world.run()
    monkeypatch.setattr(query_input, "LEAP_ROWS", 10)
    world.settings = {"optimizer": False}
    monkeypatch.setattr(Committed, "commit", dying(2))
    with pytest.raises(Killed):
        world.run()
    monkeypatch.undo()
    assert {"0", "1"} <= {path.name for path in kept.iterdir()}
    (tmp_path / "r/0.csv").rename(tmp_path / "hidden")
    gone = r"SQ6001 .* cannot move: its statements are others, and .*r/0.csv, which it has read, is gone"
    with pytest.raises(SquallError, match=gone):
        world.run()
    world.settings = {}
    world.append("r/4.csv", ["1,4"])
    world.run()
    world.check()
    (tmp_path / "hidden").rename(tmp_path / "r/0.csv")
    world.settings = {"optimizer": False}
    world.append("r/5.csv", ["2,5"])
    world.run()
    world.check()
    assert {path.name for path in kept.iterdir() if path.name.isdecimal()} <= {"0", "1"}
    (tmp_path / "r/0.csv").unlink()
    world.run()
    world.check()
    assert {path.name for path in kept.iterdir() if path.name.isdecimal()} == {"1"}


@pytest.mark.parametrize(
    ("stream", "why"),
    [
        (
            "USING python OPTIONS (class 'tests.sources.lines_source.Lines', file 'FILE')",
            "rows of r cannot be read again",
        ),
        ("USING csv OPTIONS (path 'FILE', watch 'true', idle_timeout '1 s') TIMESTAMP BY at", "processing time"),
    ],
)
def fault_another_program_over_what_is_gone(tmp_path: Path, stream: str, why: str) -> None:
    columns = "key INT, value VARCHAR" if "python" in stream else "key INT, at TIMESTAMP"
    (tmp_path / "lines.csv").write_text("1,2020-01-01\n")
    script = f"CREATE STREAM r ({columns}) {stream.replace('FILE', str(tmp_path / 'lines.csv'))};"
    script += "SELECT key, COUNT(*) AS n FROM r GROUP BY key;"
    options = RunOptions("local", changes=True, checkpoint=str(tmp_path / "kept"))
    ScriptSession(tmp_path / "q.sql", Settings(), script).run(options, Kept(), StopWhenIdle())
    kept = open_durable(str(tmp_path / "kept"))
    record = read_record(kept, "made-for", "kept")
    assert record
    write_record(kept, "made-for", json.dumps(json.loads(record) | {"plan": "another", "program": "another"}))
    with pytest.raises(SquallError, match=rf"SQ6001 .* its state cannot move: its statements are others, and {why}"):
        ScriptSession(tmp_path / "q.sql", Settings(), script).run(options, Kept(), StopWhenIdle())


@pytest.mark.spark
def test_another_program_on_spark(cluster: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from squallpy.runtime.spark import executor

    monkeypatch.setattr(executor, "start", lambda *_: nullcontext(cluster))
    monkeypatch.setattr(query_input, "LEAP_ROWS", 8)
    world = world_of_programs(tmp_path, "spark")
    for number in range(3):
        world.append(f"r/{number}.csv", [f"{k},{number}" for k in range(5)])
        world.append(f"s/{number}.csv", [f"{k},{k}" for k in range(5)])
        world.settings = {"optimizer": number != 1}
        world.run(batch_rows=4)
        world.check()
        assert (tmp_path / "kept" / str(number)).exists()


@pytest.mark.spark
def test_on_spark(cluster: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from squallpy.runtime.spark import executor

    monkeypatch.setattr(executor, "start", lambda *_: nullcontext(cluster))
    world = World(tmp_path, "spark")
    for number in range(3):
        world.append(f"r/{number}.csv", [f"{k},{number}" for k in range(5)], "4,7")
        world.append("s/0.csv", [f"{k},{k}" for k in range(5)])
        world.run(batch_rows=4, dies_at=2 if number == 1 else None)
        world.check()


@pytest.mark.parametrize("format", ["csv", "parquet"])
def test_matrices_and_rows_of_one_stream(tmp_path: Path, format: str) -> None:
    """Both read the same files, each its own columns, and know them again when they were touched."""

    def write(number: int) -> None:
        (tmp_path / "m").mkdir(exist_ok=True)
        file = tmp_path / "m" / f"{number}.{format}"
        table = pa.table({"i": [number, 0], "j": [0, number], "x": [1.0, 2.0], "more": [number, number]})
        if format == "parquet":
            pq.write_table(table, file)
        else:
            file.write_text("".join(",".join(map(str, row.values())) + "\n" for row in table.to_pylist()))

    (tmp_path / "q.sql").write_text(f"""
        CREATE STREAM m (i INT, j INT, x DOUBLE, more INT) USING {format} OPTIONS (path 'm/', watch 'true');
        CREATE MATRIX A (n, n) FROM STREAM m (i, j, x);
        CREATE MATRIX PROGRAM p AS $$ B := A * A $$;
        SELECT i, SUM(value) AS total, (SELECT SUM(more) FROM m) AS more FROM p.B GROUP BY i;
    """)
    for number in range(3):
        write(number)
        if number:
            (tmp_path / "m" / f"0.{format}").touch()
        sink = Kept()
        options = RunOptions("local", batch_rows=3, changes=True, checkpoint=str(tmp_path / "kept"))
        ScriptSession(tmp_path / "q.sql", Settings(local_dir=str(tmp_path / "local"))).run(
            options, sink, StopWhenIdle()
        )
        matrix = np.zeros((3, 3))
        for each in range(number + 1):
            matrix[each, 0] += 1
            matrix[0, each] += 2
        square, more = matrix @ matrix, 2 * sum(range(number + 1))
        wanted = [
            {"i": i, "total": float(t), "more": more} for i, t in enumerate(square.sum(axis=1)) if square[i].any()
        ]
        assert sink.rows == sorted(map(str, wanted))
