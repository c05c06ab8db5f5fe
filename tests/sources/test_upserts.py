"""Upserts in files: what a tombstone is, which rows are at fault, and their order."""

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from squallpy.base.errors import SquallError
from squallpy.base.types import BIGINT, INT, VARCHAR
from squallpy.catalog.relation import MULT, Field, Relation
from squallpy.runtime.formats.skipped_rows import skipped
from squallpy.runtime.sources.source import FileSource, open_source

FIELDS = (Field("id", BIGINT, False), Field("s", VARCHAR, False), Field("v", INT))


def opened(path: Path, fields: tuple[Field, ...] = FIELDS, **options: str) -> FileSource:
    kept = {"path": str(path), "changelog": "upsert"} | options
    return open_source(Relation("r", fields, True, path.suffix[1:], kept, ("id",)), path.parent)


def read(source: FileSource, *columns: str) -> list[tuple[Any, ...]]:
    return [tuple(row.values()) for row in source.read(0, source.rows, columns or ("id", "s", "v")).to_pylist()]


def write(path: Path, text: str) -> Path:
    path.write_text(text)
    return path


def test_without_a_tombstone_all_rows_are_upserts(tmp_path: Path) -> None:
    assert read(opened(write(tmp_path / "r.csv", "1,a,2\n1,b,\n"))) == [(1, "a", 2), (1, "b", None)]


@pytest.mark.parametrize("word", ["-", "d", "D", "delete", "-D", "-U", "true", "update_preimage"])
def test_words_of_tombstones(tmp_path: Path, word: str) -> None:
    """A tombstone needs its key alone, even if other columns are NOT NULL."""
    source = opened(write(tmp_path / "r.csv", f"u,1,a,2\n{word},1,,\n"), tombstone="op")
    assert read(source) == [(1, "a", 2, 1), (1, None, None, -1)]
    assert source.read(0, 2, ("v",)).column_names == ["v", MULT]


@pytest.mark.parametrize("word", ["+", "c", "r", "u", "update", "upsert", "+I", "false", "update_postimage"])
def test_words_of_upserts(tmp_path: Path, word: str) -> None:
    source = opened(write(tmp_path / "r.csv", f"id,s,v,op\n1,a,2,{word}\n"), tombstone="op", header="true")
    assert read(source) == [(1, "a", 2, 1)]


def test_flags_in_parquet(tmp_path: Path) -> None:
    table = pa.table({"id": [1, 1, 2], "s": ["a", None, None], "v": [1, 2, 3], "gone": [False, True, True]})
    pq.write_table(table, tmp_path / "r.parquet")
    assert read(opened(tmp_path / "r.parquet", tombstone="gone"), "id") == [(1, 1), (1, -1), (2, -1)]


def test_a_null_around_the_columns(tmp_path: Path) -> None:
    """A record of a compacted topic: the key, and a value or null."""
    fields = (Field("id", BIGINT, False, ("key", "id")), Field("v", INT, nested=("value", "v")))
    lines = [{"key": {"id": 1}, "value": {"v": 5}}, {"key": {"id": 1}, "value": None}, {"key": {"id": 2}, "value": {}}]
    path = write(tmp_path / "r.json", "".join(json.dumps(line) + "\n" for line in lines))
    expected = [(1, 5, 1), (1, None, -1), (2, None, 1)]
    assert read(opened(path, fields, tombstone="value"), "id", "v") == expected
    assert read(opened(path, fields, tombstone="value"), "id") == [(1, 1), (1, -1), (2, 1)]
    path = write(path, path.read_text() + '{"key": {"id": "3"}, "value": {"v": "7"}}\n')  # not as Arrow parses it
    assert read(opened(path, fields, tombstone="value"), "id", "v") == [*expected, (3, 7, 1)]


def test_words_in_json(tmp_path: Path) -> None:
    path = write(tmp_path / "r.json", '{"id": 1, "s": "a", "about": {"op": "u"}}\n{"id": 1, "about": {"op": "d"}}\n')
    assert read(opened(path, tombstone="about.op"), "id", "s") == [(1, "a", 1), (1, None, -1)]


@pytest.mark.parametrize(
    ("row", "problem"),
    [
        ("u,,a,1", 'SQ4006 .*r.csv:2: column "id" is NULL, declared NOT NULL'),
        ("d,,,", 'SQ4006 .*r.csv:2: column "id" is NULL, declared NOT NULL'),
        ("u,2,,1", 'SQ4006 .*r.csv:2: column "s" is NULL, declared NOT NULL'),
        ("x,2,a,1", "SQ4005 .*r.csv:2: column \"op\": 'x' says neither that the row deletes its key nor"),
        (",2,a,1", 'SQ4005 .*r.csv:2: column "op": NULL says neither'),
        ("1,2,a,1", "SQ4005 .*r.csv:2: column \"op\": '1' says neither"),
        ("d,zwei,,", "SQ4004 .*r.csv:2: column \"id\": 'zwei' is not a valid BIGINT"),
    ],
)
def fault_rows(tmp_path: Path, row: str, problem: str) -> None:
    """Under on_error 'skip' the row is left out, and counted."""
    path = write(tmp_path / "r.csv", f"u,1,a,1\n{row}\nd,1,,\n")
    with pytest.raises(SquallError, match=problem):
        read(opened(path, tombstone="op"))
    source = opened(path, tombstone="op", on_error="skip")
    assert read(source) == [(1, "a", 1, 1), (1, None, None, -1)]
    assert skipped(source.read(0, 3, ("id", "s"))).count == 1


def fault_a_tombstone_column_that_is_not_there(tmp_path: Path) -> None:
    path = write(tmp_path / "r.csv", "id,s,v,opp\n1,a,1,u\n")
    with pytest.raises(SquallError, match=r'SQ4002 .*r\.csv has no column "op", did you mean "opp"'):
        opened(path, tombstone="op", header="true")
    pq.write_table(pa.table({"id": [1], "s": ["a"], "v": [1]}), tmp_path / "r.parquet")
    with pytest.raises(SquallError, match=r'SQ4002 .*r\.parquet has no column "op"'):
        opened(tmp_path / "r.parquet", tombstone="op")
