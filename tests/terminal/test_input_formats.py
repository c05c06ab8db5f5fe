"""Files as the world writes them, read or refused by name."""

import os
import re
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.terminal.conftest import Ended, Squall


def run(squall: Squall, room: Path, declared: str, query: str, options: str = "") -> Ended:
    (room / "q.sql").write_text(f"CREATE STREAM t {declared} OPTIONS ({options});\n{query};\n")
    return squall("run", str(room / "q.sql"), "--backend", "local", "--format", "csv")


def rows(done: Ended) -> list[str]:
    assert done.status == 0, done.err
    return done.out.splitlines()[1:]


@pytest.fixture
def folder(room: Path) -> Path:
    (room / "d").mkdir()
    return room


OLDER = pa.table({"a": pa.array([1], pa.int32())})
NEWER = pa.table({"b": ["y"], "a": pa.array([5_000_000_000], pa.int64())})


def write(room: Path, *tables: pa.Table) -> None:
    for number, table in enumerate(tables):
        pq.write_table(table, room / "d" / f"{number}.parquet")


@pytest.mark.parametrize("declared", ["", "(a BIGINT, b VARCHAR)", "(b VARCHAR, a BIGINT)"])
@pytest.mark.parametrize("tables", [(OLDER, NEWER), (NEWER, OLDER)])
def test_parquet_files_with_other_columns(squall: Squall, folder: Path, tables: tuple, declared: str) -> None:
    write(folder, *tables)
    done = run(squall, folder, f"{declared} USING parquet", "SELECT a, b FROM t", "path 'd'")
    assert sorted(rows(done)) == ["1,", "5000000000,y"]
    done = run(squall, folder, f"{declared} USING parquet", "SELECT COUNT(*) AS n, COUNT(b) AS b FROM t", "path 'd'")
    assert rows(done) == ["2,1"]


def test_a_column_that_no_file_has_and_one_that_cannot_be_null(squall: Squall, folder: Path) -> None:
    write(folder, OLDER, NEWER)
    done = run(squall, folder, "(a BIGINT, c VARCHAR) USING parquet", "SELECT a FROM t", "path 'd'")
    assert done.status == 2 and "SQ4002" in done.err and '"d" has no column "c"' in done.err
    done = run(squall, folder, "(a BIGINT, b VARCHAR NOT NULL) USING parquet", "SELECT a FROM t", "path 'd'")
    assert done.status == 2 and re.search('SQ4002 .*d/0.parquet has no column "b"', done.err)


@pytest.mark.parametrize(
    ("one", "other", "found"),
    [
        (pa.array([1], pa.int16()), pa.array([2.5]), ["1", "2.5"]),
        (pa.array([1], pa.uint64()), pa.array([-2], pa.int64()), ["-2", "1"]),
        (pa.array(["1.5"]).cast(pa.decimal128(5, 1)), pa.array(["10.25"]).cast(pa.decimal128(9, 2)), ["1.50", "10.25"]),
    ],
)
def test_numbers_as_wide_as_the_widest(
    squall: Squall, folder: Path, one: pa.Array, other: pa.Array, found: list[str]
) -> None:
    write(folder, pa.table({"a": one}), pa.table({"a": other}))
    assert sorted(rows(run(squall, folder, "USING parquet", "SELECT a FROM t", "path 'd'"))) == found


def test_types_that_have_nothing_in_common(squall: Squall, folder: Path) -> None:
    write(folder, pa.table({"a": [1]}), pa.table({"a": ["x"]}))
    done = run(squall, folder, "USING parquet", "SELECT a FROM t", "path 'd'")
    assert done.status == 2
    assert re.search('SQ4002 .*column "a" is BIGINT in d/0.parquet and VARCHAR in d/1.parquet', done.err), done.err


def test_nested_and_twin_columns_do_no_harm_unread(squall: Squall, folder: Path) -> None:
    times = pa.array([0, 1], pa.time64("us"))
    table = pa.table([[1, 2], [{"x": 1}] * 2, [[1]] * 2, times, [3, 4], [5, 6]], ["id", "st", "li", "ti", "v", "V"])
    write(folder, table)
    for query, found in (
        ("SELECT id FROM t", ["1", "2"]), ("SELECT COUNT(*) AS n FROM t", ["2"]), ("SELECT st FROM t", ["{1}"] * 2),
    ):  # fmt: skip
        assert rows(run(squall, folder, "USING parquet", query, "path 'd'")) == found
    for query, told in (
        ("SELECT ti FROM t", 'SQ4002 .*column "ti" is time64.us., which has no SQL type'),
        ("SELECT id FROM t WHERE li = 'x'", "SQ2005 .*ARRAY<BIGINT>"),
        ("SELECT v FROM t", 'SQ2002 .*ambiguous column "v"'),
        ("SELECT * FROM t", "SQ4002 "),
    ):
        done = run(squall, folder, "USING parquet", query, "path 'd'")
        assert done.status == 2 and re.search(told, done.err), done.err


TEXT = 'id,name\n1,Ann\n2,"é\n, x"\n3,日本\n'


@pytest.mark.parametrize(
    ("encoding", "options"),
    [
        ("utf-8-sig", ""),
        ("utf-16", ""),
        ("utf-16-le", ", encoding 'UTF-16LE'"),
        ("utf-16-be", ", encoding 'utf_16be'"),
        ("utf-16-le", ", charset 'UTF-16'"),
        ("utf-16-be", ", encoding 'UTF-16'"),
    ],
)
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_utf_16(squall: Squall, room: Path, encoding: str, options: str, end: str) -> None:
    data = TEXT.replace("\n", end).encode(encoding)
    (room / "t.csv").write_bytes(data)
    declared = "(id INT, name VARCHAR) USING csv"
    done = run(squall, room, declared, "SELECT id, LENGTH(name) AS n FROM t", f"path 't.csv', header 'true'{options}")
    assert sorted(rows(done)) == ["1,3", f"2,{len(end) + 4}", "3,2"]
    done = run(squall, room, declared, "SELECT name FROM t WHERE id = 3", f"path 't.csv', header 'true'{options}")
    assert rows(done) == ["日本"]


def test_many_rows_in_utf_16(squall: Squall, room: Path) -> None:
    (room / "t.csv").write_text("".join(f"{n},{'é' * (n % 7)}\n" for n in range(20_000)), encoding="utf-16")
    query = "SELECT SUM(id) AS s, COUNT(*) AS n, SUM(LENGTH(name)) AS l FROM t"
    done = run(squall, room, "(id INT, name VARCHAR) USING csv", query, "path 't.csv'")
    assert rows(done) == [f"{sum(range(20_000))},20000,{sum(n % 7 for n in range(20_000))}"]


def test_other_encodings(squall: Squall, room: Path) -> None:
    (room / "t.csv").write_bytes(b"1,caf\xe9\n")
    declared, query = "(id INT, name VARCHAR) USING csv", "SELECT name FROM t"
    assert rows(run(squall, room, declared, query, "path 't.csv', encoding 'ISO-8859-1'")) == ["café"]
    assert rows(run(squall, room, declared, query, "path 't.csv', encoding 'windows-1252'")) == ["café"]
    done = run(squall, room, declared, query, "path 't.csv'")
    assert done.status == 2 and r"SQ4004 t.csv:1: column " in done.err and r"caf\\xe9" in done.err
    done = run(squall, room, declared, query, "path 't.csv', encoding 'shift_jis'")
    assert done.status == 2 and "SQ7002" in done.err and 'option "encoding" cannot be "shift_jis"' in done.err
    (room / "t.csv").write_text("1,x\n2,y\n", encoding="utf-16-le")
    done = run(squall, room, declared, query, "path 't.csv'")
    assert done.status == 2 and "SQ4003" in done.err and "t.csv looks like UTF-16" in done.err
    (room / "t.csv").write_text("1,x\n", encoding="utf-32")
    done = run(squall, room, declared, query, "path 't.csv'")
    assert done.status == 2 and "SQ4003" in done.err and "UTF-32" in done.err


def test_half_a_character_in_utf_16_is_a_value_at_fault(squall: Squall, room: Path) -> None:
    (room / "t.csv").write_bytes("1,x\n2,y".encode("utf-16") + b"z")
    done = run(squall, room, "(id INT, name VARCHAR) USING csv", "SELECT name FROM t", "path 't.csv'")
    assert done.status == 2 and 'SQ4004 t.csv:2: column "name"' in done.err
    (room / "t.csv").write_bytes("1,x\n".encode("utf-16") + b"2\0,\0\x00\xd8\n\0")  # half of a pair
    done = run(squall, room, "(id INT, name VARCHAR) USING csv", "SELECT name FROM t", "path 't.csv'")
    assert done.status == 2 and 'SQ4004 t.csv:2: column "name"' in done.err


def test_rows_with_a_wrong_number_of_fields_and_bytes_that_are_not_utf_8(squall: Squall, room: Path) -> None:
    (room / "t.csv").write_bytes(b"1,a\n2\xa2\n3,c\n4,\xff\n5,\xef\xb7\x90\n")
    declared, query = "(id INT, name VARCHAR) USING csv", "SELECT id, name FROM t"
    done = run(squall, room, declared, query, "path 't.csv', on_error 'skip'")
    assert rows(done) == ["1,a", "3,c", "5,\ufdd0"] and "2 rows skipped" in done.err and "Traceback" not in done.err
    done = run(squall, room, declared, query, "path 't.csv'")
    assert done.status == 2 and "SQ4003 t.csv:2: expected 2 fields, found 1" in done.err


@pytest.mark.parametrize("text", ["id,v\n1,2\n", "ID , V\n1,2\n", "id,v,w\n1,2\n"])
def test_a_header_that_is_read_as_a_row(squall: Squall, room: Path, text: str) -> None:
    (room / "t.csv").write_text(text)
    done = run(squall, room, "(id INT, v INT) USING csv", "SELECT SUM(v) AS s FROM t", "path 't.csv'")
    assert done.status == 2 and "write OPTIONS (header 'true')" in done.err
    done = run(squall, room, "(id INT, v INT) USING csv", "SELECT SUM(v) AS s FROM t", "path 't.csv', on_error 'skip'")
    assert done.status == 0


def test_a_row_that_is_at_fault_is_no_header(squall: Squall, room: Path) -> None:
    (room / "t.csv").write_text("x,y\n1,2\n")
    done = run(squall, room, "(id INT, v INT) USING csv", "SELECT SUM(v) AS s FROM t", "path 't.csv'")
    assert done.status == 2 and "header" not in done.err


@pytest.mark.parametrize("text", ["1,2", "1", '"1"', "a"])
def test_one_row_without_an_end(squall: Squall, room: Path, text: str) -> None:
    (room / "t.csv").write_text(text)
    assert rows(run(squall, room, "USING csv", "SELECT COUNT(*) AS n FROM t", "path 't.csv'")) == ["1"]


@pytest.mark.parametrize("path", ["d", "d/*.csv"])
def test_names_that_are_not_utf_8(squall: Squall, folder: Path, path: str) -> None:
    name = os.fsdecode(b"\xff\xfe.csv")
    (folder / "d" / name).write_text("1,2\n")
    declared = "(id INT, v INT) USING csv"
    assert rows(run(squall, folder, declared, "SELECT SUM(v) AS s FROM t", f"path '{path}'")) == ["2"]
    (folder / "d" / name).write_text("1,x\n")
    done = run(squall, folder, declared, "SELECT SUM(v) AS s FROM t", f"path '{path}'")
    assert done.status == 2 and r"SQ4004 d/\xff\xfe.csv:1" in done.err


def test_what_is_no_file(squall: Squall, folder: Path) -> None:
    os.mkfifo(folder / "pipe")
    for path in ("pipe", "/dev/zero"):
        done = run(squall, folder, "(id INT) USING csv", "SELECT COUNT(*) AS n FROM t", f"path '{path}'")
        assert done.status == 2 and "SQ4001" in done.err and f"{path} is not a regular file" in done.err


@pytest.mark.parametrize("delimiter", ["", r"\0", "ab", "é"])
def test_delimiters_that_cannot_be(squall: Squall, room: Path, delimiter: str) -> None:
    (room / "t.csv").write_text("1,2\n")
    done = run(squall, room, "(a INT) USING csv", "SELECT a FROM t", f"path 't.csv', delimiter '{delimiter}'")
    assert done.status == 2 and "SQ7002" in done.err and 'option "delimiter" cannot be' in done.err
