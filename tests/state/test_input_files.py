"""Files behind a checkpoint: the same ones are gone on with, touched or copied, others are refused by name."""

import os
import shutil
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from squallpy.base.errors import SquallError
from squallpy.base.settings import Settings
from squallpy.runtime.checkpoint import input_files
from squallpy.runtime.checkpoint.state_folders import Committed
from squallpy.runtime.formats import checksum
from squallpy.script_session import RunOptions, ScriptSession
from squallpy.testing.ignoring_sink import IgnoringSink

QUERY = "SELECT k, SUM(v) AS s, MIN(v) AS m, COUNT(*) AS n FROM t GROUP BY k;\n"


class Rows(IgnoringSink):
    """A sink that stops after so many batches, and has the final rows."""

    def __init__(self, batches: int | None = None, fails: bool = False) -> None:
        self.left, self.fails, self.stop = batches, fails, threading.Event()
        self.rows: list[str] | None = None
        if batches == 0:  # of those that come again, which no sink is told of, one
            self.stop.set()

    def batch(self, *_: Any) -> None:
        if self.left is not None:
            self.left -= 1
            if self.left == 0:
                self.stop.set()
                if self.fails:
                    raise KeyboardInterrupt

    def final(self, table: pa.Table) -> None:
        self.rows = sorted(map(str, table.to_pylist()))


def run(room: Path, batches: int | None = None, fails: bool = False, checkpoint: bool = True, rows: int = 100) -> Any:
    """Run the script of a folder; the rows of its answer."""
    sink = Rows(batches, fails)
    options = RunOptions("local", batch_rows=rows, checkpoint=str(room / "kept") if checkpoint else None)
    session = ScriptSession(room / "q.sql", Settings(local_dir=str(room / "local")))
    session.run(options, sink, sink.stop, observer=sink)
    return sink.rows


def csv_of(numbers: Any) -> str:
    return "k,v,w\n" + "".join(f"{n % 3},{n},x\n" for n in numbers)


def write_csv(path: Path, numbers: Any) -> None:
    path.write_text(csv_of(numbers))


def write_parquet(path: Path, numbers: Any) -> None:
    numbers = list(numbers)
    table = pa.table({"k": [n % 3 for n in numbers], "v": numbers, "w": ["x"] * len(numbers)})
    pq.write_table(table, path, row_group_size=150, write_statistics=False, compression="none", use_dictionary=False)


WRITERS = {"csv": write_csv, "parquet": write_parquet}


@pytest.fixture(params=["csv", "parquet"])
def room(tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    """A folder with a script, whose stream has 3 files of 400 rows."""
    options = "path 'd'" + (", header 'true'" if request.param == "csv" else "")
    columns = "k BIGINT, v BIGINT"
    (tmp_path / "q.sql").write_text(f"CREATE STREAM t ({columns}) USING {request.param} OPTIONS ({options});\n{QUERY}")
    (tmp_path / "d").mkdir()
    for part in range(3):
        WRITERS[request.param](tmp_path / "d" / f"{part}.{request.param}", range(part * 400, part * 400 + 400))
    return tmp_path


def rewrite(room: Path, part: int, numbers: Any) -> str:
    """Write one of its files anew; its name."""
    (path,) = (room / "d").glob(f"{part}.*")
    WRITERS[path.suffix[1:]](path, numbers)
    return path.name


def touch(room: Path) -> None:
    for path in (room / "d").iterdir():
        os.utime(path, ns=(0, path.stat().st_mtime_ns + 1_000_000_000))


@pytest.mark.parametrize("batches", [1, 3, 4, 5, 11, None])
def test_a_touched_and_a_copied_file_are_the_same(room: Path, batches: int | None) -> None:
    calm = run(room, checkpoint=False)
    run(room, batches)
    touch(room)
    shutil.copytree(room / "d", room / "e")
    shutil.rmtree(room / "d")
    (room / "e").rename(room / "d")
    assert run(room) == calm


@pytest.mark.parametrize("batches", [1, 4, 5, 11, None])
def fault_rows_in_another_order(room: Path, batches: int | None) -> None:
    run(room, batches)
    part = ((batches or 12) - 1) // 4  # the file read last
    name = rewrite(room, part, reversed(range(part * 400, part * 400 + 400)))
    with pytest.raises(SquallError, match=rf"SQ6001 .*{name} has changed since the checkpoint .*kept read it"):
        run(room)


@pytest.mark.parametrize("batches", [5, None])
def fault_one_value_of_a_file_long_read(room: Path, batches: int | None) -> None:
    run(room, batches)
    name = rewrite(room, 0, [3, *range(1, 400)])
    with pytest.raises(SquallError, match=rf"SQ6001 .*{name} has changed since"):
        run(room)
    rewrite(room, 0, range(400))
    assert run(room) == run(room, checkpoint=False)


@pytest.mark.spark
@pytest.mark.cluster
def fault_a_file_that_tasks_have_read_changed(room: Path) -> None:
    """In processes of their own: one has one session of Spark's, which tests share."""

    def on_spark() -> tuple[int, str, list[str]]:
        line = [
            "run",
            str(room / "q.sql"),
            "--checkpoint",
            str(room / "kept"),
            "--batch-rows",
            "400",
            "--mode",
            "final",
        ]
        ended = subprocess.run([sys.executable, "-m", "squallpy.terminal", *line], capture_output=True, text=True)
        return ended.returncode, ended.stderr, sorted(ended.stdout.splitlines())

    status, _, calm = on_spark()
    assert (status, len(calm)) == (0, 4)
    touch(room)
    assert on_spark() == (0, "", calm)
    name = rewrite(room, 1, reversed(range(400, 800)))
    status, said, _ = on_spark()
    assert status == 2 and "SQ6001" in said and f"{name} has changed since" in said


def test_rows_that_nobody_has_read_may_change(room: Path) -> None:
    run(room, 5)
    rewrite(room, 2, range(5000, 5400))
    assert run(room) == run(room, checkpoint=False)


def test_rows_behind_those_read_of_a_csv_file_may_change(tmp_path: Path) -> None:
    (tmp_path / "q.sql").write_text(
        f"CREATE STREAM t (k INT, v INT) USING csv OPTIONS (path 't.csv', header 'true');\n{QUERY}"
    )
    write_csv(tmp_path / "t.csv", range(1200))
    run(tmp_path, 5)
    write_csv(tmp_path / "t.csv", [*range(500), *range(1199, 499, -1)])
    assert run(tmp_path) == run(tmp_path, checkpoint=False)
    write_csv(tmp_path / "t.csv", [*range(499), 1, *range(1199, 499, -1)])
    with pytest.raises(SquallError, match=r"SQ6001 .*t.csv has changed since"):
        run(tmp_path)


@pytest.mark.parametrize("batches", [1, 5])
def fault_killed_in_a_batch_of_rows_that_changed(room: Path, batches: int) -> None:
    """What a killed run has applied of a batch, and not committed, is of what a file had before."""
    with pytest.raises(KeyboardInterrupt):
        run(room, batches, fails=True)
    rewrite(room, (batches - 1) // 4, range(7000, 7400))
    assert run(room) == run(room, checkpoint=False)


def fault_changed_while_the_input_comes_again(room: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A killed run and a touched file: state is made anew, and that the input changes meanwhile is found, too."""
    monkeypatch.setattr("squallpy.runtime.sources.replay.LEAP_ROWS", 200)
    with pytest.raises(KeyboardInterrupt):
        run(room, 9, fails=True)
    touch(room)
    run(room, 0)  # the first of four batches of those that come again
    assert Committed(str(room / "kept" / "1")).batches == 1
    rewrite(room, 1, range(8000, 8400))
    with pytest.raises(SquallError, match=r"SQ6001 the files of t have changed since the checkpoint was made"):
        run(room)


def test_static_tables(tmp_path: Path) -> None:
    (tmp_path / "q.sql").write_text(
        "CREATE STREAM t (k INT, v INT) USING csv OPTIONS (path 't.csv', header 'true');\n"
        "CREATE TABLE s (k INT, v INT) USING csv OPTIONS (path 's.csv', header 'true');\n"
        "SELECT s.v AS a, COUNT(*) AS n FROM t JOIN s ON t.k = s.k GROUP BY s.v;\n"
    )
    write_csv(tmp_path / "t.csv", range(1200))
    write_csv(tmp_path / "s.csv", range(3))
    run(tmp_path, 5)
    write_csv(tmp_path / "s.csv", [0, 1, 5])
    with pytest.raises(SquallError, match=r"SQ6001 .*s.csv has changed since"):
        run(tmp_path)


def test_a_line_that_had_no_end_and_has_grown(tmp_path: Path) -> None:
    (tmp_path / "q.sql").write_text(f"CREATE STREAM t (k INT, v INT) USING csv OPTIONS (path 't.csv');\n{QUERY}")
    (tmp_path / "t.csv").write_text("1,10\n2,2")
    run(tmp_path)
    (tmp_path / "t.csv").write_text("1,10\n2,25")
    with pytest.raises(SquallError, match=r"SQ6001 .*t.csv has changed since"):
        run(tmp_path)


def fault_a_file_is_written_anew_while_it_is_read(room: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    batch = Rows.batch

    def written(sink: Rows, *about: Any) -> None:
        batch(sink, *about)
        rewrite(room, 2, reversed(range(800, 1200)))

    monkeypatch.setattr(Rows, "batch", written)
    with pytest.raises(SquallError, match=r"SQ4001 .*2\..* was written while it was read"):
        run(room, checkpoint=False)


def test_the_same_size_and_time_are_not_read(room: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run(room, 5)

    def unread(*_: Any) -> int:
        raise AssertionError("read")

    monkeypatch.setattr("squallpy.runtime.formats.csv.CsvPart.checksum", unread)
    monkeypatch.setattr("squallpy.runtime.formats.parquet.ParquetPart.checksum", unread)
    run(room)


def test_many_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Checksums of files long read go to records of their own."""
    monkeypatch.setattr(input_files, "SEGMENT", 4)
    (tmp_path / "q.sql").write_text(
        f"CREATE STREAM t (k INT, v INT) USING csv OPTIONS (path 'd', header 'true');\n{QUERY}"
    )
    (tmp_path / "d").mkdir()
    for part in range(30):
        write_csv(tmp_path / "d" / f"{part:02}.csv", range(part * 10, part * 10 + 10))
    for batches in (1, 3, 5, None):
        run(tmp_path, batches, rows=17)
        committed = Committed(str(tmp_path / "kept" / "0"))
        assert len(committed.read_sums.sums["t"]) == -(-min(300, 17 * committed.batches) // 10)
        touch(tmp_path)
    write_csv(tmp_path / "d" / "02.csv", reversed(range(20, 30)))
    with pytest.raises(SquallError, match=r"SQ6001 .*02.csv has changed since"):
        run(tmp_path, rows=17)


def test_a_column_that_nobody_reads_is_declared_later(room: Path) -> None:
    run(room, 5)
    script = (room / "q.sql").read_text()
    (room / "q.sql").write_text(script.replace("(k BIGINT, v BIGINT)", "(k BIGINT, w VARCHAR, v BIGINT)"))
    assert run(room) == run(room, checkpoint=False)


@pytest.mark.parametrize("script", ["(v INT, k INT)", "(k VARCHAR, v INT)"])
def test_columns_by_place_are_those_that_they_were(tmp_path: Path, script: str) -> None:
    declared = "CREATE STREAM t (k INT, v INT) USING csv OPTIONS (path 't.csv');\n"
    (tmp_path / "q.sql").write_text(declared + QUERY)
    (tmp_path / "t.csv").write_text("1,2\n3,4\n")
    run(tmp_path)
    (tmp_path / "q.sql").write_text(declared.replace("(k INT, v INT)", script) + QUERY)
    with pytest.raises(SquallError, match=r"SQ6001 the checkpoint .* is of another query"):
        run(tmp_path)


def property_checksums_add_up() -> None:
    data = os.urandom(20_000)
    whole = checksum.checksum(data, 3)
    for cut in (0, 1, 2, 3, 4, 5, 4093, 4096, 8191, 19_999, 20_000):
        parts = checksum.checksum(data[:cut], 3), checksum.checksum(data[cut:], 3 + cut)
        assert checksum.add_checksums(*parts) == whole
    assert checksum.checksum(data, 4) != whole
    for place in (0, 5_000, 19_999):
        other = data[:place] + bytes([data[place] ^ 128]) + data[place + 1 :]
        assert checksum.checksum(other, 3) != whole
