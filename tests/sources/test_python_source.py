"""Data sources that are written for PySpark: each kind of reader, in process and on Spark, and what they do wrong."""

import re
import sys
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from random import Random
from typing import Any

import duckdb
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from squallpy.base.batch_trigger import BatchTrigger
from squallpy.base.errors import SquallError
from squallpy.base.settings import Settings
from squallpy.script_session import RunOptions, ScriptSession
from tests.kept import Kept, Killed, StopWhenIdle

STREAMS = ("Lines", "LimitedLines", "ArrowLines", "SimpleLines")
SPOOLED = ("Lines spooled", "LimitedLines spooled", "ForgetfulLines")
QUERY = "SELECT key, COUNT(*) AS n, MAX(value) AS m FROM r GROUP BY key"


class World:
    """A script over a data source, the file that it reads, and a checkpoint."""

    def __init__(self, folder: Path, source: str, backend: str = "local", relation: str = "STREAM r") -> None:
        self.folder, self.backend, self.sink, self.stop = folder, backend, Kept(), StopWhenIdle
        self.file, self.rows, self.partitions = folder / "lines.csv", list[str](), 2
        self.file.touch()
        name, _, more = source.partition(" ")
        name = name if "." in name else f"tests.sources.lines_source.{name}"
        options = f"class '{name}', file '{self.file}'" + (", spool 'true'" if more else "")
        self.script = f"CREATE {relation} USING python OPTIONS ({options});\n{QUERY};"

    def append(self, *rows: str) -> None:
        with self.file.open("a") as file:
            file.writelines(f"{row}\n" for row in rows)
        self.rows += rows

    def run(self, batch_rows: int = 3, dies_at: int | None = None) -> None:
        """Run until nothing more has come; after a kill once more."""
        self.sink.dies_at = dies_at
        folder = {"local_dir": str(self.folder / "local")}
        session = ScriptSession(self.folder / "q.sql", Settings(**folder, partitions=self.partitions), self.script)  # type: ignore[arg-type]
        kept, trigger = str(self.folder / "kept"), BatchTrigger.parse("as-it-comes")
        try:
            session.run(
                RunOptions(self.backend, batch_rows=batch_rows, changes=True, checkpoint=kept, trigger=trigger),
                self.sink, self.stop(),
            )  # fmt: skip
        except Killed:
            assert dies_at is not None
            self.run(batch_rows)

    def check(self) -> None:
        """Compare the answer, and the sum of all changes, with DuckDB's."""
        values = ", ".join("({}, '{}')".format(*row.split(",")) for row in self.rows)
        database = duckdb.connect()
        database.execute("CREATE TABLE r (key INT, value VARCHAR)")
        database.execute(f"INSERT INTO r VALUES {values}" if values else "SELECT 1")
        names, found = ("key", "n", "m"), database.execute(QUERY).fetchall()
        wanted = sorted(str(dict(zip(names, row, strict=True))) for row in found)
        assert self.sink.rows == wanted and self.sink.kept_rows == wanted


@pytest.mark.parametrize("source", STREAMS)
def test_every_reader_of_streams(tmp_path: Path, source: str) -> None:
    world = World(tmp_path, source)
    world.run()
    world.check()
    for number in range(3):
        world.append(*(f"{key % 3},{number}{key}" for key in range(7)))
        world.run()
        world.check()
        assert (tmp_path / "lines.done").read_text() == str(7 * number + 7), "batches were committed"


@settings(deadline=None, max_examples=max(5, settings().max_examples // 10))
@given(seed=st.integers(0, 1 << 30), source=st.sampled_from([*STREAMS, *SPOOLED]))
def property_rows_come_once(seed: int, source: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Rows come, runs are killed before a batch is committed and go on with other batches."""
    random = Random(seed)
    world = World(tmp_path_factory.mktemp("world"), source)
    for _ in range(4):
        world.append(*(f"{random.randrange(4)},{random.randrange(100)}" for _ in range(random.randrange(12))))
        world.run(random.choice([1, 3, 100]), random.choice([None, 0, 1, 2]))
        world.check()


@pytest.mark.parametrize(
    ("relation", "value"),
    [("STREAM r", "MAX(value)"), ("STREAM r (key BIGINT)", "'c'"), ("TABLE r (value VARCHAR, key INT)", "MAX(value)")],
)
def test_a_table_reader_ends(tmp_path: Path, relation: str, value: str) -> None:
    """Rows of a reader are there from the beginning; columns are declared in any order, as other types, or not."""
    world = World(tmp_path, "TableLines", relation=relation)
    world.append("1,a", "2,c", "1,c")
    session = ScriptSession(tmp_path / "q.sql", Settings(), world.script.replace("MAX(value)", value))
    assert session.endless is None
    session.run(RunOptions("local", changes=True), world.sink)
    world.check()


@pytest.mark.spark
@pytest.mark.parametrize("source", [*STREAMS, "LimitedLines spooled"])
def test_on_spark(cluster: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, source: str) -> None:
    from squallpy.runtime.spark import executor

    monkeypatch.setattr(executor, "start", lambda *_: nullcontext(cluster))
    world = World(tmp_path, source, "spark")
    for number in range(3):
        world.append(*(f"{key % 3},{number}{key}" for key in range(7)))
        world.partitions = 2 + number  # NB: state moves, and what was spooled is still there
        world.run(batch_rows=4, dies_at=1 if number == 1 else None)
        world.check()


BAD = """
from pathlib import Path
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition

class Good(DataSourceStreamReader):
    def initialOffset(self): return {"at": 0}
    def latestOffset(self): return {"at": 3}
    def partitions(self, start, end): return [InputPartition(n) for n in range(start["at"], end["at"])]
    def read(self, partition): yield (partition.value, "x")

class Bad(Good):
%s

class Source(DataSource):
    def schema(self): return "key INT, value STRING"
    def streamReader(self, schema): return Bad()

def maker(options): return Source(options)
"""


def write(folder: Path, text: str, name: str = "bad_source") -> None:
    (folder / f"{name}.py").write_text(text)
    sys.modules.pop(name, None)


@pytest.fixture
def module(tmp_path: Path) -> Iterator[Path]:
    path = list(sys.path)
    yield tmp_path
    sys.path[:] = path
    sys.modules.pop("bad_source", None)


RAISES = "def read(self, partition): raise OSError('no\\nline')"


@pytest.mark.parametrize(
    ("method", "fault"),
    [
        (RAISES, "raised OSError in read: no line in batch 0"),
        ("def initialOffset(self): return [1]", "has the offset [1], no JSON object in batch 0"),
        ("def latestOffset(self): return {'at': {1, 2}}", "has the offset {'at': {1, 2}}, no JSON object in batch 0"),
        ("def latestOffset(self): return {'at': float('nan')}", 'has the offset {"at": NaN}, no JSON object'),
        ("def latestOffset(self): return {'at': -1}", 'went back from {"at": 0} to {"at": -1} in batch 0'),
        ("def partitions(self, start, end): return None", "raised TypeError in split: 'NoneType' object is not"),
        ("def read(self, partition): yield (1,)", "read a row of 1 values, and its schema has key, value in batch 0"),
        ("def read(self, partition): yield ('a', 'b')", """read 'a' for the column "key", which is int32 in batch 0"""),
        ("def read(self, partition): yield {'key': 1}", "read a dict, not a tuple, a Row or an Arrow record batch"),
        ("def read(self, partition): return 7", "read a int, not an iterator of rows in batch 0"),
        ("lock = property(lambda self: 1)\n    def __init__(self): import threading; self.x = threading.Lock()",
         "has a reader that cannot be sent to tasks: TypeError in pickle"),
    ],
)  # fmt: skip
def fault_a_reader(module: Path, method: str, fault: str) -> None:
    """Each is one line with the class, the batch and a place in the script; the answer is exact when it is mended."""
    write(module, BAD % f"    {method}")
    world = World(module, "bad_source.Source")
    with pytest.raises(
        SquallError, match=f"SQ4008 .*q.sql:1:15: the source bad_source.Source {re.escape(fault)}"
    ) as caught:
        world.run()
    assert "\n" not in str(caught.value) and caught.value.caret()
    write(module, BAD % "    pass")
    world.rows = ["0,x", "1,x", "2,x"]
    world.run()
    world.check()


def test_a_source_that_never_ends_is_told_that_what_is_there_is_enough(module: Path) -> None:
    text = BAD.replace("class Bad(Good):", "class Bad(Good, SupportsTriggerAvailableNow):")
    more = "    top = 1 << 40\n    def prepareForTriggerAvailableNow(self): self.top = 7\n"
    more += "    def latestOffset(self, start, limit): return {'at': min(self.top, start['at'] + 2)}"
    write(module, "from pyspark.sql.streaming.datasource import SupportsTriggerAvailableNow\n" + text % more)
    world = World(module, "bad_source.Source")
    options = RunOptions("local", changes=True, trigger=BatchTrigger.parse("available-now"))
    ScriptSession(module / "q.sql", None, world.script).run(options, world.sink)
    world.rows = [f"{n},x" for n in range(7)]
    world.check()


def fault_a_source_that_goes_back_later(module: Path) -> None:
    write(module, BAD % "    pass")
    world = World(module, "bad_source.Source")
    world.run()
    write(module, BAD % "    def latestOffset(self): return {'at': 2}")
    with pytest.raises(SquallError, match=r'SQ4008 .* went back from {"at": 3} to {"at": 2} in batch 1'):
        world.run()


@pytest.mark.parametrize(
    ("name", "fault"),
    [
        ("bad_source.Sorce", 'SQ7002 .* the module bad_source has no "Sorce", did you mean "Source"'),
        ("bad_sorce.Source", 'SQ7002 .* there is no module "bad_sorce", put it beside the script'),
        ("bad_source.maker", "SQ7002 .* bad_source.maker is no class that derives from pyspark"),
        ("bad_source.Good", "SQ7002 .* bad_source.Good is no class that derives from pyspark"),
        (".source", r"SQ7002 .* OPTIONS \(class '.source'\) names nothing in a module"),
    ],
)
def fault_no_data_source(module: Path, name: str, fault: str) -> None:
    write(module, BAD % "    pass")
    with pytest.raises(SquallError, match=fault) as caught:
        World(module, name).run()
    assert caught.value.caret()


@pytest.mark.parametrize(
    ("columns", "fault"),
    [
        ("(kee INT)", 'bad_source.Source has no column "kee", did you mean "key"'),
        ("(key INT, value BOOLEAN, more INT)", 'bad_source.Source has no column "more"'),
        ("(key DATE)", 'bad_source.Source: column "key" is int32, declared DATE'),
    ],
)
def fault_other_columns(module: Path, columns: str, fault: str) -> None:
    write(module, BAD % "    pass")
    world = World(module, "bad_source.Source", relation=f"STREAM r {columns}")
    world.script = world.script.partition(";\n")[0] + ";\nSELECT COUNT(*) AS n FROM r;"
    with pytest.raises(SquallError, match=f"SQ4002 .*q.sql:1:15: {re.escape(fault)}"):
        world.run()


def fault_values_that_do_not_fit(module: Path) -> None:
    """… are one row's fault, and may be left out."""
    write(module, BAD % "    pass")
    world = World(module, "bad_source.Source", relation="STREAM r (key INT, value BIGINT)")
    with pytest.raises(SquallError, match=r"SQ4004 .* bad_source.Source, row 1: .* 'x' is not a valid"):
        world.run()


def test_a_schema_may_be_declared(module: Path) -> None:
    text = (BAD % "    pass").replace('    def schema(self): return "key INT, value STRING"\n', "")
    write(module, text)
    world = World(module, "bad_source.Source", relation="STREAM r (key INT, value VARCHAR)")
    world.rows = ["0,x", "1,x", "2,x"]
    world.run()
    world.check()
    with pytest.raises(SquallError, match=r"SQ4002 .* has no schema\(\), list the columns"):
        World(module, "bad_source.Source").run()
