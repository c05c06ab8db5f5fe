"""What a sink has written is exact, whenever the run is killed: DuckDB over its files is the query over the input."""

import json
import os
import random
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from random import Random

import duckdb
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from squallpy.base.settings import Settings
from squallpy.script_session import RunOptions, ScriptSession
from squallpy.testing.ignoring_sink import IgnoringSink
from tests.kept import StopWhenIdle
from tests.sinks.mortal_folders import Killed, Life, living

STREAM = "CREATE STREAM f (zip VARCHAR, v BIGINT) USING csv OPTIONS (path 'in/', watch 'true');"
QUERIES = {
    "changes": "SELECT zip, COUNT(*) AS n, SUM(v)::BIGINT AS s FROM f GROUP BY zip HAVING COUNT(*) % 4 > 0",
    "append": "SELECT zip, v FROM f WHERE v % 3 > 0",
}
QUERIES["upsert"] = QUERIES["changes"]


class World:
    """A watched folder, a query over it whose sink writes files, and a checkpoint."""

    def __init__(self, folder: Path, mode: str, format: str, options: str) -> None:
        self.folder, self.mode, self.format, self.rows = folder, mode, format, list[tuple[str, int]]()
        (folder / "in").mkdir()
        query = QUERIES[mode].replace("SUM(v)::BIGINT", "SUM(v)")
        sink = f"CREATE SINK o USING {format} OPTIONS (path 'out/', mode '{mode}'{options}) AS {query};"
        (folder / "q.sql").write_text(STREAM + sink)

    def append(self, rows: list[tuple[str, int]]) -> None:
        """Let rows come, in a file of their own."""
        name = f"{len(self.rows):06}.csv"
        (self.folder / "in" / name).write_text("".join(f"{zip},{v}\n" for zip, v in rows))
        self.rows += rows

    def run(self, batch_rows: int, life: Life | None = None) -> None:
        """Run until nothing more has come, or to a kill."""
        session = ScriptSession(self.folder / "q.sql", Settings(local_dir=str(self.folder / "local")))
        options = RunOptions("local", batch_rows=batch_rows, checkpoint=str(self.folder / "kept"))
        with living(life):
            session.run(options, IgnoringSink(), StopWhenIdle())

    def files(self, waiting: bool) -> list[str]:
        """List the files of the folder, or those that the manifest says are whole."""
        out = self.folder / "out"
        shown = sorted(out.glob("batch-*"))
        if waiting:
            known = json.loads((out / "_manifest").read_text())
            rest = range(known["shown"], known["batches"])
            shown = [path for path in shown if int(path.name.partition(".")[0].rpartition("-")[2]) < known["shown"]]
            shown += [out / "_waiting" / f"batch-{number:06}.{known['format']}" for number in rest]
        return [str(path) for path in shown]

    def check(self, complete: bool) -> None:
        """Read all files as those do who list the folder, and by the manifest: each row is there once.

        Args:
            complete: The run has ended, so that they are the answer.
        """
        database = duckdb.connect()
        assert not complete or not list((self.folder / "out").glob("_waiting/*"))
        for waiting in (True, False):
            files = self.files(waiting)
            if not files:
                continue
            columns = {"changes": "zip, n, s", "append": "zip, v", "upsert": "zip, n, s"}[self.mode]
            read = f"read_{self.format}({files})" if self.format == "parquet" else f"read_{self.format}_auto({files})"
            found = f"SELECT * FROM {read}"
            if self.mode == "changes":
                groups = f"SELECT {columns} FROM {read} GROUP BY ALL HAVING SUM(CASE op WHEN '+' THEN 1 ELSE -1 END)"
                found = f"{groups} > 0"
                assert database.sql(f"{groups} NOT IN (0, 1)").fetchall() == []
            elif self.mode == "upsert":
                last = "QUALIFY ROW_NUMBER() OVER (PARTITION BY zip ORDER BY batch DESC) = 1"
                found = f"SELECT {columns} FROM (SELECT * FROM {read} {last}) WHERE op <> '-'"
                twice = f"SELECT batch, zip FROM {read} GROUP BY ALL HAVING COUNT(*) > 1"
                assert database.sql(twice).fetchall() == []
            if complete:
                values = ", ".join(f"('{zip}', {v})" for zip, v in self.rows)
                wanted = f"WITH f(zip, v) AS (VALUES {values}) {QUERIES[self.mode]}"
                assert sorted(database.sql(found).fetchall()) == sorted(database.sql(wanted).fetchall())


OPTIONS = ["", ", compact '3'", ", compression 'gzip'", ", compact '4', compression 'zstd'"]


@settings(deadline=None, max_examples=max(5, settings().max_examples // 10))
@given(seed=st.integers(0, 1 << 30))
def property_files_are_exact_over_kills(seed: int, tmp_path_factory: pytest.TempPathFactory) -> None:
    draw = Random(seed)
    mode, format = draw.choice(list(QUERIES)), draw.choice(["csv", "json", "parquet"])
    world = World(tmp_path_factory.mktemp("world"), mode, format, draw.choice(OPTIONS))
    for _ in range(3):
        world.append([(draw.choice("abcde"), draw.randrange(9)) for _ in range(draw.randrange(1, 9))])
        for _ in range(draw.randrange(5)):
            if draw.random() < 0.3:
                world.append([(draw.choice("abcde"), draw.randrange(9))])
            with suppress(Killed):
                world.run(draw.choice([1, 2, 5]), Life(draw.randrange(25), draw.random() < 0.5))
            if (world.folder / "out" / "_manifest").exists():
                world.check(complete=False)
        world.run(2)
        world.check(complete=True)


@pytest.mark.parametrize("operations", range(0, 30, 3))
def fault_killed_over_input_with_an_end(operations: int, tmp_path: Path) -> None:
    """… which goes on in batches of another size."""
    world = World(tmp_path, "changes", "csv", "")
    script = (tmp_path / "q.sql").read_text()
    (tmp_path / "q.sql").write_text(script.replace(", watch 'true'", ""))
    world.append([(zip, v) for v, zip in enumerate("abacadabra")])
    with suppress(Killed):
        world.run(2, Life(operations, after=True))
    world.run(3)
    world.check(complete=True)


@pytest.mark.slow
def fault_killed_by_the_system(tmp_path: Path) -> None:
    """… at any moment, by SIGKILL, while rows come."""
    draw = random.Random(3)
    world = World(tmp_path, "upsert", "csv", ", compact '5'")
    command = [sys.executable, "-m", "squallpy.terminal", "run", "q.sql", "--backend", "local", "--batch-rows", "2"]
    command += ["--checkpoint", "kept"]
    for _ in range(4):
        run = subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE, start_new_session=True)
        for _ in range(20):
            world.append([(draw.choice("abcde"), draw.randrange(9)) for _ in range(draw.randrange(1, 9))])
            time.sleep(0.05)
        until = time.monotonic() + 60
        while not list((tmp_path / "out").glob("batch-*")) and time.monotonic() < until:
            time.sleep(0.05)
        time.sleep(draw.random() / 4)
        os.killpg(run.pid, signal.SIGKILL)
        run.communicate()
        world.check(complete=False)
    ended = subprocess.run([*command, "--trigger", "available-now"], cwd=tmp_path, check=True, capture_output=True)
    assert (ended.stdout, ended.stderr) == (b"", b"")
    world.check(complete=True)
