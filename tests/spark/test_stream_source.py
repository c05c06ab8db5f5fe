"""Streams of Spark's own: rows by readStream, once, whatever is killed between Spark's batches and ours."""

import json
from collections import Counter
from contextlib import nullcontext
from pathlib import Path
from random import Random
from typing import Any

import pytest

from squallpy.base.batch_trigger import BatchTrigger
from squallpy.base.errors import SquallError
from squallpy.base.settings import Settings
from squallpy.runtime.checkpoint.durable_folder import LocalDurable
from squallpy.script_session import RunOptions, ScriptSession
from tests.kept import Kept, Killed
from tests.marks import long

pytestmark = pytest.mark.spark


class World:
    """A script over a stream of Spark's, and a checkpoint."""

    def __init__(self, folder: Path, columns: str, options: str, query: str) -> None:
        self.folder, self.sink = folder, Kept()
        (folder / "in").mkdir()
        self.script = f"CREATE STREAM r ({columns}) USING spark OPTIONS ({options});\n{query};"

    def run(self, batch_rows: int = 100, dies_at: int | None = None, trigger: str = "available-now") -> None:
        """Read all that is there; after a kill once more."""
        self.sink.dies_at = dies_at
        session = ScriptSession(
            self.folder / "q.sql", Settings(partitions=2, local_dir=str(self.folder / "l")), self.script
        )
        options = RunOptions(batch_rows=batch_rows, changes=True, checkpoint=str(self.folder / "kept"))
        try:
            session.run(RunOptions(**_fields(options), trigger=BatchTrigger.parse(trigger)), self.sink)
        except Killed:
            assert dies_at is not None
            self.run(batch_rows)

    def put(self, name: str, text: str) -> None:
        """Move a file into the folder, whole."""
        (self.folder / name).write_text(text)
        (self.folder / name).rename(self.folder / "in" / name)


def _fields(options: RunOptions) -> dict[str, Any]:
    return {"batch_rows": options.batch_rows, "changes": options.changes, "checkpoint": options.checkpoint}


@pytest.fixture(autouse=True)
def shared(cluster: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from squallpy.runtime.spark import executor

    monkeypatch.setattr(executor, "start", lambda *_: nullcontext(cluster))


@pytest.mark.parametrize("format", ["json", long("text")])
def test_files_by_read_stream(tmp_path: Path, format: str) -> None:
    """Several files a batch of Spark's or one, small batches of ours or large ones, and kills of ours."""
    random, more = Random(format), ", maxFilesPerTrigger '2'" if format == "text" else ""
    column = "value VARCHAR" if format == "text" else "k BIGINT, value VARCHAR"
    world = World(
        tmp_path,
        column,
        f"format '{format}', path '{tmp_path}/in'{more}",
        "SELECT value, COUNT(*) AS n FROM r GROUP BY value",
    )
    found, number = Counter[str](), 0
    for turn in range(4):
        for _ in range(random.randrange(1, 4)):
            values, number = [random.choice("abc") for _ in range(random.randrange(8))], number + 1
            lines = values if format == "text" else [json.dumps({"k": number, "value": value}) for value in values]
            world.put(f"{number}.txt", "".join(f"{line}\n" for line in lines))
            found.update(values)
        world.run(random.choice([2, 100]), dies_at=random.choice([0, 1]) if turn else None)
        assert world.sink.rows == sorted(str({"value": value, "n": n}) for value, n in found.items())
        assert world.sink.kept_rows == world.sink.rows


def fault_killed_between_two_records(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A batch that Spark tries again is written anew if the spool has no record of it, else skipped."""
    world = World(tmp_path, "value VARCHAR", f"format 'text', path '{tmp_path}/in'", "SELECT COUNT(*) AS n FROM r")
    create, dies = LocalDurable.create, list[str]()

    def fail(self: LocalDurable, name: str, fill: Any) -> None:
        if name.startswith("batch-") and dies == ["before"]:
            dies.pop()
            raise RuntimeError("killed")
        create(self, name, fill)
        if name.startswith("batch-") and dies == ["after"]:
            dies.pop()
            raise RuntimeError("killed")

    monkeypatch.setattr(LocalDurable, "create", fail)
    for number, moment in enumerate(["", "before", "", "after", ""]):
        world.put(f"{number}.txt", "x\ny\n")
        dies[:] = [moment] if moment else []
        if moment:
            with pytest.raises(SquallError, match=r"SQ4008 .* the source spark text fails on Spark: "):
                world.run()
        world.run()
        assert world.sink.rows == [str({"n": 2 * number + 2})]
    (stream,) = (tmp_path / "kept" / "spool").iterdir()
    assert len([path for path in stream.iterdir() if path.name.startswith("batch-")]) == 1, "others went"


def test_rate_and_a_data_source(tmp_path: Path) -> None:
    """A rate has no schema to be told; a class is registered by its name."""
    lines = tmp_path / "lines.csv"
    lines.write_text("1,a\n2,b\n1,c\n")
    options = f"class 'tests.sources.lines_source.LimitedLines', file '{lines}'"
    world = World(tmp_path, "key INT, value VARCHAR", options, "SELECT key, MAX(value) AS m FROM r GROUP BY key")
    world.run()
    assert world.sink.rows == [str({"key": 1, "m": "c"}), str({"key": 2, "m": "b"})]
    lines.write_text("1,a\n2,b\n1,c\n3,d\n2,e\n")
    world.run()
    assert world.sink.rows == [str({"key": k, "m": m}) for k, m in ((1, "c"), (2, "e"), (3, "d"))]


@pytest.mark.parametrize(
    ("columns", "options", "fault"),
    [
        ("value VARCHAR", "format 'kinesis'", "SQ4008 .* the source spark kinesis fails on Spark: .*kinesis"),
        ("line VARCHAR", "format 'text', path 'IN'", 'SQ4002 .* spark text has no column "line", known: value'),
        ("value DATE", "format 'rate'", 'SQ4002 .* spark rate: column "value" is int64, declared DATE'),
        ("value VARCHAR", "format 'text', path '/nowhere'", "SQ4008 .* the source spark text fails on Spark: "),
    ],
)
def fault_no_stream(tmp_path: Path, columns: str, options: str, fault: str) -> None:
    world = World(tmp_path, columns, options.replace("IN", f"{tmp_path}/in"), "SELECT COUNT(*) AS n FROM r")
    with pytest.raises(SquallError, match=fault) as caught:
        world.run()
    assert caught.value.caret() and "\n" not in str(caught.value)


def fault_no_spark(tmp_path: Path) -> None:
    world = World(tmp_path, "value VARCHAR", "format 'rate'", "SELECT COUNT(*) AS n FROM r")
    session = ScriptSession(tmp_path / "q.sql", None, world.script)
    with pytest.raises(SquallError, match=r"SQ3001 .*q.sql:1:15: USING spark reads r by Spark's readStream"):
        session.run(RunOptions("local"), world.sink)
    assert "r" in session.explain("physical")
    with pytest.raises(SquallError, match=r"SQ7003 .* --trigger once cannot wait"):
        world.run(trigger="once")
    with pytest.raises(SquallError, match=r"SQ4002 .* the source spark tells no columns"):
        ScriptSession(tmp_path / "q.sql", None, world.script.replace("(value VARCHAR) ", "")).explain("physical")
