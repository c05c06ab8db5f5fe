"""Rows in a random order: each once, by the seed alone; faults, changed files and restarts as elsewhere."""

import pickle
from pathlib import Path

import numpy as np
import pytest

from squallpy.base.errors import SquallError
from squallpy.runtime.sources import FileSource, open_source, skipped
from squallpy.runtime.sources.shuffled_rows import shuffle
from squallpy.script_session import RunOptions, ScriptSession
from tests.kept import Killed, Mortal

STREAM = "CREATE STREAM r (a INT, b VARCHAR) USING csv OPTIONS (path 'r', order 'random'{});\n"
SAME = {0: [2, 4, 6, 5, 1, 7, 0, 3], 7: [7, 2, 5, 4, 1, 3, 6, 0]}


@pytest.fixture
def room(tmp_path: Path) -> Path:
    (tmp_path / "r").mkdir()
    for name, rows in (("1.csv", range(50)), ("2.csv", ()), ("3.csv", range(50, 120))):
        (tmp_path / "r" / name).write_text("".join(f"{n},row {n}\n" for n in rows))
    return tmp_path


def source(room: Path, more: str = "") -> FileSource:
    (room / "q.sql").write_text(f"{STREAM.format(more)}SELECT a FROM r;")
    return open_source(ScriptSession(room / "q.sql").script.relations["r"], room)


def test_an_order_is_the_same_everywhere_and_for_ever() -> None:
    assert shuffle(8, 0).tolist() == SAME[0] and shuffle(8, 7).tolist() == SAME[7]
    assert len(shuffle(0, 1)) == 0
    for seed in range(20):
        order = shuffle(1000, seed)
        assert sorted(order.tolist()) == list(range(1000))
        assert abs(np.corrcoef(order, np.arange(1000))[0, 1]) < 0.12  # NB: four times what is usual


@pytest.mark.parametrize("size", [1, 7, 120])
def test_slices_are_parts_of_one_order(room: Path, size: int) -> None:
    whole = source(room, ", seed '3'")
    other = pickle.loads(pickle.dumps(whole))
    found = [row for at in range(0, 120, size) for row in other.read(at, min(120, at + size), ("b", "a")).to_pylist()]
    assert [row["a"] for row in found] == shuffle(120, 3).tolist()
    assert all(row["b"] == f"row {row['a']}" for row in found)
    assert other.read(7, 7, ("a",)).num_rows == 0


def test_rows_at_fault_are_told_where_they_are(room: Path) -> None:
    with (room / "r" / "3.csv").open("a") as file:
        file.write("x,y\n")
    with pytest.raises(SquallError, match=r"SQ4004 .*3\.csv:71"):
        source(room).read(0, 121, ("a",))
    skipping = source(room, ", on_error 'skip'")
    assert sorted(skipping.read(0, 121, ("a",))["a"].to_pylist()) == list(range(120))
    assert [skipped(skipping.read(at, at + 1, ("a",))).count for at in range(121)].count(1) == 1


def test_a_run_that_is_killed_goes_on_with_the_rows_that_are_left(room: Path) -> None:
    source(room)
    sink = Mortal()
    options = RunOptions(backend="local", batch_rows=30, changes=True, checkpoint=str(room / "kept"))
    sink.dies = True
    with pytest.raises(Killed):
        ScriptSession(room / "q.sql").run(options, sink)
    ScriptSession(room / "q.sql").run(options, sink)
    assert sorted(int(row.split(": ")[1].rstrip("}")) for row in sink.kept_rows) == list(range(120))
    assert len(sink.changes) == 4


@pytest.mark.parametrize("text", ["0,row 1\n", "999,a row more\n"])
def fault_a_file_that_has_changed(room: Path, text: str) -> None:
    source(room)
    options = RunOptions(backend="local", batch_rows=30, changes=True, checkpoint=str(room / "kept"))
    dies = Mortal()
    dies.dies_at = 1
    with pytest.raises(Killed):
        ScriptSession(room / "q.sql").run(options, dies)
    rows = (room / "r" / "1.csv").read_text().splitlines(keepends=True)
    (room / "r" / "1.csv").write_text("".join([*(rows[1:] if text.startswith("0,") else rows), text]))
    with pytest.raises(SquallError, match="SQ6001"):
        ScriptSession(room / "q.sql").run(options, Mortal())
