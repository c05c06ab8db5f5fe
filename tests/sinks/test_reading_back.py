"""What a sink has written is a source again, also while it is written."""

from pathlib import Path
from random import Random
from typing import Any

import duckdb
import pytest

from squallpy.base.settings import Settings
from squallpy.script_session import RunOptions, ScriptSession
from squallpy.testing.ignoring_sink import IgnoringSink
from tests.kept import Kept, StopWhenIdle

FIRST = "SELECT zip, COUNT(*) AS n, SUM(v) AS s FROM f GROUP BY zip HAVING COUNT(*) % 3 > 0"
SECOND = "SELECT n, COUNT(*) AS zips, SUM(s) AS s FROM b GROUP BY n"
READ = {
    "changes": "CREATE STREAM b (zip VARCHAR, n BIGINT, s BIGINT) USING {} OPTIONS (path 'out/', op 'op'{});",
    "upsert": "CREATE STREAM b (zip VARCHAR PRIMARY KEY, n BIGINT, s BIGINT) USING {} "
    "OPTIONS (path 'out/', changelog 'upsert', tombstone 'op'{});",
}  # fmt: skip


class Chain:
    """A script that writes a folder, and one that reads it."""

    def __init__(self, folder: Path, format: str, mode: str, options: str, watch: bool) -> None:
        self.folder, self.rows, self.sink = folder, list[tuple[str, int]](), Kept()
        (folder / "in").mkdir()
        first = "CREATE STREAM f (zip VARCHAR, v BIGINT) USING csv OPTIONS (path 'in/', watch 'true');"
        first += f"CREATE SINK o USING {format} OPTIONS (path 'out/', mode '{mode}'{options}) AS {FIRST};"
        header = ", header 'true'" if format == "csv" else ""
        second = READ[mode].format(format, header + (", watch 'true'" if watch else "")) + f"{SECOND};"
        (folder / "first.sql").write_text(first)
        (folder / "second.sql").write_text(second)

    def append(self, rows: list[tuple[str, int]]) -> None:
        """Let rows come, in a file of their own."""
        name = f"{len(self.rows):06}.csv"
        (self.folder / "in" / name).write_text("".join(f"{zip},{v}\n" for zip, v in rows))
        self.rows += rows

    def run(self, script: str, sink: IgnoringSink) -> None:
        """Run one of both as far as rows have come."""
        session = ScriptSession(self.folder / script, Settings(local_dir=str(self.folder / "local")))
        kept = str(self.folder / f"kept-{script}")
        session.run(RunOptions("local", batch_rows=3, changes=True, checkpoint=kept), sink, StopWhenIdle())

    def check(self) -> None:
        """Compare the second answer with DuckDB over the rows of the first script."""
        values = ", ".join(f"('{zip}', {v})" for zip, v in self.rows)
        query = SECOND.replace("FROM b", f"FROM ({FIRST})").replace("SUM(s)", "SUM(s)::BIGINT")
        answer: Any = duckdb.sql(f"WITH f(zip, v) AS (VALUES {values}) {query}")
        wanted = sorted(str(dict(zip(answer.columns, row, strict=True))) for row in answer.fetchall())
        assert self.sink.rows == wanted


@pytest.mark.parametrize("options", ["", ", compact '3'"], ids=["", "compact"])
@pytest.mark.parametrize("format", ["csv", "json", "parquet"])
@pytest.mark.parametrize("mode", ["changes", "upsert"])
def oracle_a_watched_folder_of_a_sink(mode: str, format: str, options: str, tmp_path: Path) -> None:
    """Manifests, drafts and batches that wait are no data, and no row comes twice."""
    draw, chain = Random(5), Chain(tmp_path, format, mode, options, watch=True)
    for _ in range(4):
        chain.append([(draw.choice("abcd"), draw.randrange(9)) for _ in range(draw.randrange(1, 9))])
        chain.run("first.sql", IgnoringSink())
        (tmp_path / "out" / ".squall-draft").write_text("half a")
        chain.run("second.sql", chain.sink)
        chain.check()


@pytest.mark.parametrize("compression", ["none", "gzip", "zstd"])
@pytest.mark.parametrize("format", ["csv", "json", "parquet"])
def oracle_all_files_of_a_sink(format: str, compression: str, tmp_path: Path) -> None:
    chain = Chain(tmp_path, format, "changes", f", compact '2', compression '{compression}'", watch=False)
    chain.append([("a", 1), ("b", 2), ("a", 3), ("c", 4), ("a", 5), ("a", 6)])
    chain.run("first.sql", IgnoringSink())
    chain.run("second.sql", chain.sink)
    chain.check()
