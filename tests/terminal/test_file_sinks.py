"""Files of observers: whole, and once."""

import json
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

from squallpy.base.errors import SquallError
from squallpy.runtime.observers.late_rows import LateRows
from squallpy.runtime.observers.metrics import Metrics
from squallpy.runtime.observers.profile import Profile
from squallpy.runtime.observers.protocol import QueryStart
from squallpy.runtime.observers.report import BatchReport
from squallpy.terminal.stdout_sinks import StdoutSink

SCHEMA = pa.schema([("k", pa.int64())])
VIEWS = {"M_R": {"records": 1, "bytes": 64}, "strings": {"records": 0, "bytes": 16}}
REPORT = BatchReport(tuples=5, rows=1, seconds=0.5, stages={"feed": 0.1}, views=VIEWS)


def query(number: int = 1) -> Any:
    return SimpleNamespace(number=number)


START = QueryStart(query(), 9, pa.table)


def rows(*values: int) -> pa.Table:
    return pa.table({"k": pa.array(values, pa.int64())})


def files(folder: Path) -> dict[str, str]:
    return {str(f.relative_to(folder)): f.read_text() for f in sorted(folder.rglob("*")) if f.is_file()}


def test_what_cannot_be_written_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(SquallError, match="SQ7005 cannot write"):
        Metrics(tmp_path / "file" / "m.jsonl")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no disk that is always full")
def test_a_full_disk_is_said_by_all_that_write(tmp_path: Path) -> None:
    full = tmp_path / "full"
    full.symlink_to("/dev/full")
    late = replace(REPORT, late_rows={"s": ["{}"]})

    def metrics() -> None:
        Metrics(full).on_query_progress(REPORT)

    def stdout() -> None:
        StdoutSink(full.open("wb", buffering=0), "csv", False, False, nullcontext).final(rows(1))

    for write in (metrics, stdout, lambda: LateRows(full).on_query_progress(late), lambda: Profile(full).write()):
        with pytest.raises(SquallError, match=r"SQ7005 cannot write (.*full|to stdout): no space left on device"):
            write()


def batches(path: Path) -> list[int]:
    return [json.loads(line)["batch"] for line in path.read_text().splitlines()]


def test_metrics_have_each_batch_once(tmp_path: Path) -> None:
    path = tmp_path / "m.jsonl"

    def run(first: int, last: int, resumed: bool) -> None:
        metrics = Metrics(path, resumed=resumed)
        metrics.on_query_started(START)
        for number in range(first, last + 1):
            metrics.on_query_progress(replace(REPORT, number=number))

    run(0, 2, resumed=False)
    with path.open("a") as file:
        file.write('{"batch": 3, "tup')  # a crash in the middle of a line
    run(2, 4, resumed=True)
    assert batches(path) == [0, 1, 2, 3, 4]
    run(0, 1, resumed=False)
    assert batches(path) == [0, 1]


def test_late_rows_are_there_once(tmp_path: Path) -> None:
    path = tmp_path / "late.csv"

    def run(first: int, last: int, resumed: bool) -> None:
        late = LateRows(path, resumed=resumed)
        late.on_query_started(START)
        for number in range(first, last + 1):
            rows = {"s": ['{"id": 2}', f'{{"id": "{number}, 7"}}']} if number % 2 else {}
            late.on_query_progress(replace(REPORT, number=number, late_rows=rows))

    run(0, 3, resumed=False)
    with path.open("a") as file:
        file.write('5,s,"{""id')  # a crash in the middle of a line
    run(3, 4, resumed=True)
    row = '{n},s,"{{""id"": ""{n}, 7""}}"\n{n},s,"{{""id"": 2}}"\n'
    assert path.read_text() == "batch,stream,row\n" + row.format(n=1) + row.format(n=3)
    run(0, 0, resumed=False)
    assert path.read_text() == "batch,stream,row\n"
    for other in (b"a,b\n", b"\x00", b"\xff\xfe", b'"' + b"x" * 200_000):
        path.write_bytes(other)
        with pytest.raises(SquallError, match=r"SQ7005 .*no file of late rows"):
            LateRows(path, resumed=True)
    with pytest.raises(SquallError, match=r"SQ7005 cannot write .*: is a directory"):
        LateRows(tmp_path, resumed=True)


def golden_metrics_line(tmp_path: Path) -> None:
    metrics = Metrics(tmp_path / "m.jsonl")
    metrics.on_query_started(START)
    metrics.on_query_progress(REPORT)
    assert (tmp_path / "m.jsonl").read_text() == (
        '{"batch": 0, "tuples": 5, "rows": 1, "seconds": 0.5, "state_bytes": 80, "skipped": 0, "unmatched": 0, '
        '"duplicates": 0, "late": 0, "received_bytes": null, "compared": null, "pairs": null, '
        '"stages": {"feed": 0.1}, '
        '"views": {"M_R": {"records": 1, "bytes": 64}, "strings": {"records": 0, "bytes": 16}}, '
        '"mapping": null, "ilf": null}\n'
    )
