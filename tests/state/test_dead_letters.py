"""Rows that cannot be read, in a file of their own: each once, whenever a run is killed."""

import json
import threading
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from squallpy.base.batch_trigger import BatchTrigger
from squallpy.base.errors import SquallError
from squallpy.base.settings import Settings
from squallpy.runtime.checkpoint.state_folders import Committed
from squallpy.script_session import RunOptions, ScriptSession
from squallpy.testing.ignoring_sink import IgnoringSink

STREAM = """
CREATE STREAM r (k BIGINT, v BIGINT) USING {format}
    OPTIONS (path '{path}', on_error 'dead-letter', dead_letter 'dead.jsonl'{more});
"""
QUERY = "SELECT COUNT(*) AS n, SUM(v) AS s FROM r;"
WATCHED = ", watch 'true'"
POISON = {"file": "in/1.csv", "line": 2, "code": "SQ4004"}


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Name files from the folder of a test."""
    monkeypatch.chdir(tmp_path)


class Killed(Exception):
    """Simulated kill of the process."""


def write(folder: Path, **files: str) -> None:
    (folder / "in").mkdir(exist_ok=True)
    for name, text in files.items():
        (folder / "in" / f"{name[1:]}.csv").write_text(text)


def script(folder: Path, format: str = "csv", path: str = "in/", more: str = "", query: str = QUERY) -> None:
    (folder / "q.sql").write_text(STREAM.format(format=format, path=path, more=more) + query)


def run(folder: Path, checkpoint: bool = False) -> None:
    """Run to the end of what is there, in batches of two rows."""
    session = ScriptSession(folder / "q.sql", Settings(local_dir=str(folder / "local")))
    kept, ends = str(folder / "kept") if checkpoint else None, BatchTrigger(ends=True)
    session.run(RunOptions("local", batch_rows=2, trigger=ends, changes=True, checkpoint=kept), IgnoringSink())


def letters(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "dead.jsonl").read_text().splitlines()]


def test_a_letter_has_place_and_reason(tmp_path: Path) -> None:
    write(tmp_path, _1="1,10\n2,x\n3,30\n", _2="4\n")
    script(tmp_path)
    run(tmp_path)
    first, second = letters(tmp_path)
    assert first == {"batch": 0, "stream": "r", **POISON, "reason": "column \"v\": 'x' is not a valid BIGINT"}
    assert (second["batch"], second["file"], second["line"], second["code"]) == (1, "in/2.csv", 1, "SQ4003")
    write(tmp_path, _1="1,10\n", _2="4,5\n")
    run(tmp_path)
    assert letters(tmp_path) == [], "a run that keeps nothing starts over"


def test_a_row_of_a_parquet_file_has_a_number(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    pq.write_table(pa.table({"k": [1, None, 3], "v": [1, 2, 3]}), tmp_path / "in/1.parquet")
    script(tmp_path, "parquet", query="SELECT SUM(k) AS s FROM r;")
    text = (tmp_path / "q.sql").read_text().replace("k BIGINT", "k BIGINT NOT NULL")
    (tmp_path / "q.sql").write_text(text)
    run(tmp_path)
    (letter,) = letters(tmp_path)
    assert (letter["file"], letter["row"], letter["code"]) == ("in/1.parquet", 2, "SQ4006")


@pytest.mark.parametrize("more", ["", WATCHED])
@pytest.mark.parametrize("point", ["observer", "commit"])
def fault_letters_are_there_once_over_kills(
    tmp_path: Path, more: str, point: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Killed when the batch's letters are written, and when it is committed, in turn at every batch."""
    lines = [f"{k},{'x' if k % 3 == 0 else k}" for k in range(8)]
    write(tmp_path, _1="\n".join(lines[:5]) + "\n", _2="\n".join(lines[5:]) + "\n")
    script(tmp_path, more=more)
    commit = Committed.commit
    for dies_at in range(4):

        def killed(self: Committed, batches: int, facts: Any = None, at: int = dies_at) -> None:
            if batches == at + 1:
                if point == "commit":
                    commit(self, batches, facts)
                raise Killed
            commit(self, batches, facts)

        monkeypatch.setattr(Committed, "commit", killed)
        with pytest.raises(Killed):
            run(tmp_path, checkpoint=True)
    monkeypatch.setattr(Committed, "commit", commit)
    with (tmp_path / "dead.jsonl").open("a") as file:
        file.write('{"batch": 9, "str')  # a kill in the middle of a line
    run(tmp_path, checkpoint=True)
    found = [(each["file"], each["line"]) for each in letters(tmp_path)]
    assert found == [("in/1.csv", 1), ("in/1.csv", 4), ("in/2.csv", 2)]


def test_a_stream_in_two_queries_has_letters_once(tmp_path: Path) -> None:
    write(tmp_path, _1="1,x\n")
    script(tmp_path, query=f"{QUERY} SELECT MAX(v) AS m FROM r;")
    run(tmp_path)
    assert [each["line"] for each in letters(tmp_path)] == [1]


@pytest.mark.spark
def test_on_spark(cluster: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from squallpy.runtime.spark import executor

    monkeypatch.setattr(executor, "start", lambda *_: nullcontext(cluster))
    write(tmp_path, _1="1,10\n2,x\n3,30\ny,4\n")
    script(tmp_path)
    ScriptSession(tmp_path / "q.sql").run(
        RunOptions("spark", batch_rows=10, changes=True), IgnoringSink(), threading.Event()
    )
    assert [each["line"] for each in letters(tmp_path)] == [2]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("on_error 'dead-letter'", "on_error 'dead-letter' needs a file"),
        ("on_error 'skip', dead_letter 'd'", "dead_letter names a file for rows that cannot be read"),
        ("on_error 'dead-letters'", 'option "on_error" cannot be "dead-letters", did you mean "dead-letter"'),
        ("on_error 'dead-letter', dead_letter 's3://b/d'", "only local files are"),
    ],
)
def test_options_that_do_not_go_together(tmp_path: Path, options: str, message: str) -> None:
    write(tmp_path, _1="1,1\n")
    (tmp_path / "q.sql").write_text(f"CREATE STREAM r (k INT, v INT) USING csv OPTIONS (path 'in/', {options});{QUERY}")
    with pytest.raises(SquallError) as error:
        run(tmp_path)
    assert message in str(error.value)


def test_a_file_of_others_is_left_alone(tmp_path: Path) -> None:
    write(tmp_path, _1="1,1\n")
    script(tmp_path)
    run(tmp_path, checkpoint=True)
    (tmp_path / "dead.jsonl").write_text("of others\n")
    with pytest.raises(SquallError, match=r"SQ7005 .*is no file of dead letters of ours"):
        run(tmp_path, checkpoint=True)
    assert (tmp_path / "dead.jsonl").read_text() == "of others\n"
