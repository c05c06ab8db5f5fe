"""Watched files: what comes and grows is read once, in the order in which it was seen; what changes is refused."""

import gzip
import io
import json
import os
import pickle
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from squallpy.base.errors import SquallError
from squallpy.base.types import BIGINT, VARCHAR
from squallpy.catalog.relation import Field, Relation
from squallpy.catalog.window_spec import ARRIVAL
from squallpy.runtime.formats.relation_files import File
from squallpy.runtime.sources import watched_files
from squallpy.runtime.sources.folder_listing import FolderListing
from squallpy.runtime.sources.protocol import BatchLimit
from squallpy.runtime.sources.source import open_part
from squallpy.runtime.sources.watched_files import WatchedFiles

FIELDS = (Field("k", BIGINT), Field("s", VARCHAR))


class Folder:
    """A watched folder, and what was read of it so far."""

    def __init__(self, path: Path, format: str = "csv", **options: str) -> None:
        self.path = path
        options = {"path": "in", "watch": "true", **options}
        self.source = WatchedFiles(Relation("r", FIELDS, True, format, options), path)
        self.source.check(("k", "s"))
        self.end = self.source.initial()

    def write(self, name: str, text: str, mode: str = "w") -> None:
        file = self.path / "in" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        with file.open(mode) as sink:
            sink.write(text)

    def read(self, rows: int | None = None, tasks: int = 1) -> list[Any]:
        """Read what is new, at once as a run reads it after a while."""
        self.source._listing._full_look = 0.0
        start, self.end = self.end, self.source.latest(self.end, BatchLimit(rows=rows))
        slices = self.source.split(start, self.end, tasks)
        assert len(slices) == tasks
        return [value for each in slices for value in each.read(("k",)).column("k").to_pylist()]


def test_files_come_when_they_come(tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    assert folder.read() == []  # there is no folder yet
    folder.write("b.csv", "1,x\n2,y\n")
    assert folder.read() == [1, 2]
    assert folder.read() == []
    folder.write("a.csv", "3,z\n")
    folder.write("deep/er/c.csv", "4,z\n")
    folder.write("_SUCCESS", "no data\n")
    assert sorted(folder.read()) == [3, 4]
    assert folder.end == {"row": 4}


def test_a_batch_ends_by_bytes(tmp_path: Path) -> None:
    """About as many as are asked for, by the average of a file's rows, and at least a row; by rows and files, too."""
    folder = Folder(tmp_path, maxbytespertrigger="30")
    folder.write("a.csv", "".join(f"{i},xx\n" for i in range(8)))  # 5 bytes a row
    folder.write("b.csv", "".join(f"{i},{'y' * 56}\n" for i in range(8, 10)))  # 59
    assert folder.read(rows=5) == [0, 1, 2, 3, 4]
    assert folder.read() == [5, 6, 7]
    assert [folder.read() for _ in range(3)] == [[8], [9], []]
    folder.write("a.csv", "".join(f"{i},{'z' * 11}\n" for i in range(10, 14)), "a")  # 14 each, 8 on average
    assert [folder.read() for _ in range(3)] == [[10, 11, 12], [13], []]
    os.utime(tmp_path / "in" / "b.csv", (1e9, 1e9))  # NB: both may have been written in one tick of the clock
    both = Folder(tmp_path, maxbytespertrigger="1000", maxfilespertrigger="1")
    assert [len(both.read()) for _ in range(3)] == [2, 12, 0]  # the file that changed last comes last


def test_pieces_that_were_read_are_forgotten(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Files grow, and are known again, also those that are not open any more."""
    monkeypatch.setattr(watched_files, "OPEN", 3)
    folder = Folder(tmp_path)
    for turn in range(3):
        for number in range(20):
            folder.write(f"{number}.csv", f"{100 * turn + number},x\n", "a")
            assert turn or folder.read() == [number]
            folder.source.commit(folder.end)
        assert turn == 0 or sorted(folder.read()) == [100 * turn + number for number in range(20)]
        folder.source.commit(folder.end)
        folder.source.commit(folder.end)
        assert (len(folder.source._pieces), folder.source.pieces) == (1, 20 * turn + 20)
        assert len(folder.source._open) == 3
    folder.write("0.csv", "7,x\n100,x\n200,x\n300,x\n")
    with pytest.raises(SquallError, match=r"SQ6001 .*0.csv has changed since it was read"):
        folder.read()


def test_files_grow_by_whole_lines(tmp_path: Path) -> None:
    """A quoted value may have lines of its own; a last line waits for its end."""
    folder = Folder(tmp_path)
    folder.write("a.csv", "1,x\n2,")
    assert folder.read() == [1]
    folder.write("a.csv", 'y\n3,"one\nt', "a")
    folder.write("b.csv", "10,x\n")
    assert folder.read() == [2, 10]
    folder.write("a.csv", 'wo"\n4,z', "a")
    assert folder.read() == [3]
    folder.write("b.csv", "", "a")
    assert folder.read() == []
    folder.write("a.csv", "\n", "a")
    assert folder.read() == [4]


@pytest.mark.parametrize("size", [1, 4095, 4096, 4097, 9000])
def test_rows_are_found_behind_an_index(tmp_path: Path, size: int) -> None:
    folder = Folder(tmp_path)
    folder.write("a.csv", "".join(f"{i},x\n" for i in range(size)) + "7")
    assert folder.read(tasks=3) == list(range(size))
    folder.write("a.csv", "7,x\n" + "".join(f"{i},x\n" for i in range(size)), "a")
    assert folder.read(tasks=2) == [77, *range(size)]


def test_a_header_is_no_row(tmp_path: Path) -> None:
    folder = Folder(tmp_path, header="true")
    folder.write("a.csv", "s,k")
    assert folder.read() == []
    folder.write("a.csv", "\nx,1\n", "a")
    folder.write("b.csv", "k,s\n")
    assert folder.read() == [1]
    folder.write("b.csv", "2,x\n", "a")
    assert folder.read() == [2]


def test_a_batch_has_a_limit(tmp_path: Path) -> None:
    folder = Folder(tmp_path, maxfilespertrigger="2")
    for i in range(5):
        folder.write(f"{i}.csv", f"{i},x\n{i},y\n")
        os.utime(tmp_path / "in" / f"{i}.csv", (i, i))
    assert folder.read() == [0, 0, 1, 1]
    assert folder.read(rows=3) == [2, 2, 3]
    assert folder.read() == [3, 4, 4]


def test_rows_are_numbered_over_all_files(tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    folder.write("a.csv", "1,x\n2,x\n")
    assert folder.read() == [1, 2]
    folder.write("b.csv", "3,x\n")
    folder.write("a.csv", "4,x\n", "a")
    folder.source._listing._full_look = 0.0
    start, end = folder.end, folder.source.latest(folder.end, BatchLimit())
    (part,) = folder.source.split(start, end, 1)
    assert sorted(part.read((ARRIVAL,)).column(ARRIVAL).to_pylist()) == [2, 3]


@pytest.mark.parametrize("change", ["9,x\n2,y\n3,z\n", "1,x\n", "1,x\n3,y\n"], ids=["replaced", "shorter", "rewritten"])
def fault_a_file_that_changes_is_refused(tmp_path: Path, change: str) -> None:
    folder = Folder(tmp_path)
    folder.write("a.csv", "1,x\n2,y\n")
    assert folder.read() == [1, 2]
    folder.write("a.csv", change)
    os.utime(tmp_path / "in" / "a.csv", (1, 1))
    with pytest.raises(SquallError, match=r"SQ6001 .*in/a.csv has changed since it was read"):
        folder.read()


def test_a_file_may_be_touched(tmp_path: Path) -> None:
    folder, table = Folder(tmp_path, "parquet"), pa.table({"k": [1, 2], "s": ["x", "y"]})
    (tmp_path / "in").mkdir()
    pq.write_table(table, tmp_path / "in" / "a.parquet")
    assert folder.read() == [1, 2]
    os.utime(tmp_path / "in" / "a.parquet", (1, 1))
    assert folder.read() == []


def test_a_file_that_was_read_may_go(tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    folder.write("a.csv", "1,x\n")
    assert folder.read() == [1]
    (tmp_path / "in" / "a.csv").unlink()
    folder.write("b.csv", "2,x\n")
    assert folder.read() == [2]


def fault_a_file_of_another_schema_is_refused(tmp_path: Path) -> None:
    folder = Folder(tmp_path, header="true")
    folder.write("a.csv", "k,s\n1,x\n")
    assert folder.read() == [1]
    folder.write("b.csv", "k,other\n1,x\n")
    with pytest.raises(SquallError, match=r"SQ4002 .*in/b.csv has no column \"s\""):
        folder.read()


def test_parquet_files_count_when_they_have_their_footer(tmp_path: Path) -> None:
    folder, table = Folder(tmp_path, "parquet"), pa.table({"k": [1, 2], "s": ["x", "y"]})
    (tmp_path / "in").mkdir()
    pq.write_table(table, tmp_path / "whole.parquet")
    whole = (tmp_path / "whole.parquet").read_bytes()
    for written in (0, 100, len(whole)):
        (tmp_path / "in" / "a.parquet").write_bytes(whole[:written])
        assert folder.read() == ([1, 2] if written == len(whole) else [])
    (tmp_path / "in" / "b.parquet").write_bytes(whole[:100])
    os.utime(tmp_path / "in" / "b.parquet", (1, 1))
    with pytest.raises(SquallError, match="SQ4001"):
        folder.read()


def test_a_look_tells_what_is_new(tmp_path: Path) -> None:
    """New names are found at once; files that have grown when all are looked at, which costs more."""
    now = 0.0
    listing = FolderListing(str(tmp_path), tmp_path, lambda: now)
    for name in "ab":
        (tmp_path / name).write_text("x")
    assert {Path(file.path).name for file in listing.look()} == {"a", "b"}
    listing._full_look = 1.0
    (tmp_path / "c").write_text("x")
    (tmp_path / "a").write_text("xx")
    assert [Path(file.path).name for file in listing.look()] == ["c"]
    now = 1.0
    assert [Path(file.path).name for file in listing.look()] == ["a"]
    assert listing.look() == []


def test_a_compressed_file_counts_when_it_is_whole(tmp_path: Path) -> None:
    """Its last line needs no end; what is appended to it later would be lost, and is refused."""
    folder, whole = Folder(tmp_path), gzip.compress(b"1,x\n2,y")
    folder.write("a.csv.gz", "")
    assert folder.read() == []
    path = tmp_path / "in" / "a.csv.gz"
    for size in (1, 10, len(whole) - 1):
        path.write_bytes(whole[:size])
        assert folder.read() == []
    folder.write("b.csv", "3,z\n")
    path.write_bytes(whole)
    assert sorted(folder.read()) == [1, 2, 3]
    path.write_bytes(whole + gzip.compress(b"4,z\n"))
    with pytest.raises(SquallError, match=r"SQ6001 .*in/a\.csv\.gz has changed since it was read, add other files"):
        folder.read()


def fault_a_compressed_file_that_stays_half(tmp_path: Path) -> None:
    folder = Folder(tmp_path, compression="gzip")
    folder.write("a.csv", "")
    (tmp_path / "in" / "a.csv").write_bytes(gzip.compress(b"1,x\n")[:-3])
    assert folder.read() == []
    os.utime(tmp_path / "in" / "a.csv", (1, 1))
    with pytest.raises(SquallError, match=r"SQ4001 .*a\.csv cannot be decompressed as gzip: Truncated"):
        folder.read()


@pytest.mark.parametrize("format", ["csv", "parquet"])
def test_a_file_may_be_touched_before_it_is_read(tmp_path: Path, format: str) -> None:
    """Between the look that has found it and its reading, by whoever reads it, and between two parts of it."""
    folder = Folder(tmp_path, format)
    path = tmp_path / "in" / f"a.{format}"
    path.parent.mkdir()
    if format == "csv":
        path.write_text("1,x\n2,y\n3,z\n")
    else:
        pq.write_table(pa.table({"k": [1, 2, 3], "s": ["x", "y", "z"]}), path)
    assert folder.source.latest(folder.end, BatchLimit()) == {"row": 3}
    os.utime(path, (1, 1))
    assert folder.read(rows=1) == [1]
    os.utime(path, (2, 2))
    start, end = folder.end, folder.source.latest(folder.end, BatchLimit(rows=1))
    elsewhere = pickle.loads(pickle.dumps(folder.source.split(start, end, 1)))
    os.utime(path, (3, 3))
    assert [part.read(("k",)).column("k").to_pylist() for part in elsewhere] == [[2]]


def fault_a_file_that_is_replaced_before_it_is_read(tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    folder.write("a.csv", "1,x\n2,y\n")
    start, end = folder.end, folder.source.latest(folder.end, BatchLimit())
    folder.write("a.csv", "3,z\n4,z\n")
    os.utime(tmp_path / "in" / "a.csv", (1, 1))
    with pytest.raises(SquallError, match=r"SQ4001 .*in/a.csv was written while it was read"):
        [part.read(("k",)) for part in folder.source.split(start, end, 1)]


def test_a_file_that_is_written_during_the_look_is_looked_at_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also one that has gone meanwhile."""
    folder = Folder(tmp_path)
    folder.write("a.csv", "1,x\n")
    folder.write("b.csv", "5,x\n")
    path = tmp_path / "in" / "a.csv"

    def rewrite(relation: Relation, file: File) -> Any:
        if file.path.endswith("a.csv") and path.read_text() == "1,x\n":
            path.write_text("2,x\n")
            os.utime(path, (1, 1))
        if file.path.endswith("b.csv"):
            (tmp_path / "in" / "b.csv").unlink()
        return open_part(relation, file)

    monkeypatch.setattr("squallpy.runtime.sources.watched_files.open_part", rewrite)
    assert folder.read() == []
    assert folder.read() == [2] and folder.read() == []


def _csv(rows: dict[str, list[Any]]) -> bytes:
    return "\n".join(",".join(map(str, line)) for line in (rows, *zip(*rows.values(), strict=True))).encode() + b"\n"


def _json(rows: dict[str, list[Any]]) -> bytes:
    lines = (dict(zip(rows, values, strict=True)) for values in zip(*rows.values(), strict=True))
    return "".join(json.dumps(line) + "\n" for line in lines).encode()


def _parquet(rows: dict[str, list[Any]]) -> bytes:
    sink = io.BytesIO()
    pq.write_table(pa.table(rows), sink)
    return sink.getvalue()


def _avro(rows: dict[str, list[Any]]) -> bytes:
    types = {int: "long", str: "string"}
    fields = [{"name": name, "type": types[type(values[0])]} for name, values in rows.items()]
    lines = [dict(zip(rows, values, strict=True)) for values in zip(*rows.values(), strict=True)]
    sink = io.BytesIO()
    fastavro.writer(sink, fastavro.parse_schema({"type": "record", "name": "r", "fields": fields}), lines)
    return sink.getvalue()


WRITERS = {"csv": _csv, "json": _json, "parquet": _parquet, "avro": _avro}
BEFORE: dict[str, list[Any]] = {"k": [1, 2], "s": ["x", "y"]}


@pytest.mark.parametrize("format", WRITERS)
@pytest.mark.parametrize(
    ("after", "told"),
    [
        ({"new": [0], "k": [3], "s": ["z"]}, None),
        ({"s": ["z"], "k": [3]}, None),
        ({"k": [3]}, {"csv": r'SQ4002 .*b\.csv has no column "s"', "parquet": [3], "avro": [3], "json": [3]}),
        (
            {"s": ["z"]},
            {"csv": r'SQ4002 .*in/b\.csv has no column "k"', "json": [None], "parquet": [None], "avro": [None]},
        ),
        (
            {"k": ["zwei"], "s": ["z"]},
            {
                "csv": r"SQ4004 .*in/b\.csv:2: column \"k\": 'zwei' is not a valid BIGINT",
                "json": r"SQ4004 .*in/b\.json:1: column \"k\": 'zwei' is not a valid BIGINT",
                "parquet": r"SQ4004 .*in/b\.parquet, row 1: column \"k\": 'zwei' is not a valid BIGINT",
                "avro": r"SQ4004 .*in/b\.avro, row 1: column \"k\": 'zwei' is not a valid BIGINT",
            },
        ),
    ],
    ids=["one more", "in another order", "one that is not read goes", "one that is read goes", "another type"],
)
def fault_a_later_file_of_another_schema(tmp_path: Path, format: str, after: Any, told: Any) -> None:
    """What came before is whole; a column that a file lacks is NULL where files have columns of their own."""
    folder = Folder(tmp_path, format, **({"header": "true"} if format == "csv" else {}))
    folder.source.check(("k",))
    folder.write(f"a.{format}", "")
    (tmp_path / "in" / f"a.{format}").write_bytes(WRITERS[format](BEFORE))
    assert folder.read() == [1, 2]
    end = folder.end
    (tmp_path / "in" / f"b.{format}").write_bytes(WRITERS[format](after))
    expected = [3] if told is None else told[format]
    if isinstance(expected, list):
        assert folder.read() == expected
        return
    with pytest.raises(SquallError, match=expected):
        folder.read()
    assert end == {"row": 2}


@pytest.mark.parametrize(
    ("format", "content", "problem"),
    [
        ("parquet", {"k": [[1]], "s": ["x"]}, r'SQ4002 .*in/b\.parquet: column "k" is list<.*>, declared BIGINT'),
        ("parquet", {"k": [True], "s": ["x"]}, r'SQ4002 .*in/b\.parquet: column "k" is bool, declared BIGINT'),
    ],
)
def fault_a_later_file_of_a_type_that_cannot_be(tmp_path: Path, format: str, content: Any, problem: str) -> None:
    folder = Folder(tmp_path, format)
    folder.write(f"a.{format}", "")
    (tmp_path / "in" / f"a.{format}").write_bytes(WRITERS[format](BEFORE))
    assert folder.read() == [1, 2]
    (tmp_path / "in" / f"b.{format}").write_bytes(WRITERS[format](content))
    with pytest.raises(SquallError, match=problem):
        folder.read()
