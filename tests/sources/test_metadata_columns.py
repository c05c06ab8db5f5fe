"""Columns that tell where a row is from: its file, its number there, when the file was written."""

import json
import os
from datetime import datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from squallpy.base.errors import SquallError
from squallpy.script_session import RunOptions, ScriptSession
from tests.kept import Kept, StopWhenIdle

COLUMNS = "f VARCHAR FROM '_file', k INT, at TIMESTAMP FROM '_timestamp', _offset BIGINT, _partition INT"


def write(path: Path, keys: list[int]) -> None:
    match path.suffix:
        case ".csv":
            path.write_text("".join(f"{k},x\n" for k in keys))
        case ".json":
            path.write_text("".join(json.dumps({"k": k}) + "\n" for k in keys))
        case _:
            pq.write_table(pa.table({"k": keys}), path)
    os.utime(path, (1_700_000_000, 1_700_000_000))


def answer(folder: Path, script: str, rows: int = 2) -> list[dict[str, Any]]:
    class Rows(Kept):
        def final(self, table: Any) -> None:
            self.found = table.to_pylist()

    sink = Rows()
    (folder / "q.sql").write_text(script)
    ScriptSession(folder / "q.sql").run(RunOptions("local", changes=True, batch_rows=rows), sink, StopWhenIdle())
    return sorted(sink.found, key=str)


@pytest.mark.parametrize("watch", ["", ", watch 'true'"])
@pytest.mark.parametrize("format", ["csv", "json", "parquet"])
def test_files(tmp_path: Path, format: str, watch: str) -> None:
    """Columns of csv are by place, without those that are not there."""
    (tmp_path / "in").mkdir()
    write(tmp_path / "in" / f"a.{format}", [7, 8, 9])
    write(tmp_path / "in" / f"b.{format}", [5])
    columns = COLUMNS + (", v VARCHAR" if format == "csv" else "")
    script = f"CREATE STREAM r ({columns}) USING {format} OPTIONS (path 'in/'{watch});"
    rows = answer(tmp_path, f"{script} SELECT f, k, at, _offset, _partition FROM r;")
    at = datetime(2023, 11, 14, 22, 13, 20)
    wanted = [("a", 7, 0), ("a", 8, 1), ("a", 9, 2), ("b", 5, 0)]
    assert rows == [
        {"f": str(tmp_path / "in" / f"{name}.{format}"), "k": k, "at": at, "_offset": offset, "_partition": 0}
        for name, k, offset in wanted
    ]
    assert answer(tmp_path, f"{script} SELECT COUNT(f) AS n FROM r WHERE _offset > 0;") == [{"n": 2}]


@pytest.mark.parametrize("source", ["LimitedLines", "SimpleLines", "TableLines", "LimitedLines', spool 'true"])
def test_data_sources(tmp_path: Path, source: str) -> None:
    """They have partitions, and numbers of rows in these, by batch."""
    lines = tmp_path / "lines.csv"
    lines.write_text("".join(f"{n},x\n" for n in range(5)))
    options = f"class 'tests.sources.lines_source.{source}', file '{lines}'"
    script = (
        f"CREATE STREAM r (key INT, p INT FROM '_partition', o BIGINT FROM '_offset') USING python OPTIONS ({options});"
    )
    rows = answer(tmp_path, f"{script} SELECT key, p, o FROM r;", rows=100)
    places = {
        "LimitedLines": [(0, 0), (0, 1), (1, 0), (1, 1), (0, 0)],  # four a batch, two a partition
        "SimpleLines": [(0, 0), (0, 1), (0, 2), (0, 0), (0, 1)],  # three a batch
        "TableLines": [(n, 0) for n in range(5)],
    }
    wanted = places[source.partition("'")[0]]
    assert rows == [{"key": key, "p": p, "o": o} for key, (p, o) in enumerate(wanted)]


@pytest.mark.parametrize(
    ("script", "fault"),
    [
        ("(f INT FROM '_file') USING csv OPTIONS (path 'x.csv')", 'SQ2005 .*1:18: "_file" is VARCHAR, not INT'),
        ("(k INT FROM 'a.b') USING csv OPTIONS (path 'x.csv')", "SQ3001 .* FROM, which is for json"),
        ("(_offset BIGINT) USING json OPTIONS (path 'x', changelog 'debezium')", "SQ3001 .* _offset of Debezium's"),
        ("USING parquet OPTIONS (path 'x.parquet')", 'SQ2007 .* the column "_file" of the files has a name'),
        ("(k INT, _file VARCHAR) USING python OPTIONS (generator 'tests.sources.lines_source.generated', file 'x')",
         'SQ4002 .* has no column "_file"'),
    ],
)  # fmt: skip
def fault_no_place(tmp_path: Path, script: str, fault: str) -> None:
    pq.write_table(pa.table({"_file": ["x"]}), tmp_path / "x.parquet")
    (tmp_path / "x").write_text("1,a\n")
    with pytest.raises(SquallError, match=fault):
        text = script.replace("file 'x'", f"file '{tmp_path}/x'")
        answer(tmp_path, f"CREATE STREAM r {text}; SELECT * FROM r;")
