"""Compressed csv and JSON lines: any range of rows as of the text itself, and files that are none by name."""

import bz2
import gzip
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from squallpy.base.errors import SquallError
from squallpy.base.types import BIGINT, VARCHAR
from squallpy.catalog.relation import Field, Relation
from squallpy.runtime.formats import compression
from squallpy.runtime.sources.source import FileSource, infer_fields, open_source

FIELDS = (Field("k", BIGINT), Field("s", VARCHAR))
CODECS = {".gz": "gzip", ".bz2": "bz2", ".zst": "zstd", ".lz4": "lz4"}
CSV = "".join(f"{k},'{k % 7}'\n" for k in range(10_000))
JSON = "".join(f'{{"k": {k}, "s": "\'{k % 7}\'"}}\n' for k in range(10_000))


def compressed(text: str, codec: str) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.CompressedOutputStream(sink, codec) as stream:
        stream.write(text.encode())
    return bytes(sink.getvalue())


def relation(path: Path, fields: tuple[Field, ...] = FIELDS, format: str = "csv", **options: str) -> Relation:
    return Relation("r", fields, True, format, {"path": str(path), **options})


def opened(path: Path, content: bytes, format: str = "csv", **options: str) -> FileSource:
    path.write_bytes(content)
    return open_source(relation(path, FIELDS, format, **options), path.parent)


def read(source: FileSource, start: int, stop: int) -> list[tuple[Any, ...]]:
    return [tuple(row.values()) for row in source.read(start, stop, ("k", "s")).to_pylist()]


@pytest.mark.parametrize("in_memory", [0, 1 << 22], ids=["mapped", "in memory"])
@pytest.mark.parametrize(("format", "text"), [("csv", CSV), ("json", JSON)], ids=["csv", "json"])
@pytest.mark.parametrize("suffix", CODECS)
def test_any_range_of_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, suffix: str, format: str, text: str, in_memory: int
) -> None:
    monkeypatch.setattr(compression, "IN_MEMORY", in_memory)
    source = opened(tmp_path / f"r.{format}{suffix}", compressed(text, CODECS[suffix]), format)
    assert source.rows == 10_000
    for start, stop in ((0, 3), (4095, 4098), (9999, 10_000), (0, 10_000)):
        assert read(source, start, stop) == [(k, f"'{k % 7}'") for k in range(start, stop)]


def test_by_an_option(tmp_path: Path) -> None:
    """It is worth more than the suffix."""
    assert opened(tmp_path / "r.csv", bz2.compress(CSV.encode()), compression="bz2").rows == 10_000
    assert opened(tmp_path / "a.gz", CSV.encode(), compression="none").rows == 10_000
    assert opened(tmp_path / "b.bz2", gzip.compress(CSV.encode()), compression="gzip").rows == 10_000


def test_parts_and_nothing(tmp_path: Path) -> None:
    """What was appended to a gzip file is a part of its text, as gzip says; no bytes are no text."""
    assert opened(tmp_path / "r.gz", gzip.compress(b"1,a\n2,b\n") + gzip.compress(b"3,c\n")).rows == 3
    assert opened(tmp_path / "a.gz", gzip.compress(b"")).rows == 0
    assert opened(tmp_path / "b.gz", b"").rows == 0


def test_readers_share_out_whole_files(tmp_path: Path) -> None:
    for number in range(4):
        (tmp_path / f"{number}.csv.gz").write_bytes(gzip.compress(b"1,a\n" * (90 + number)))
    source = open_source(relation(tmp_path), tmp_path)
    assert [slice.rows for slice in source.split({"row": 0}, {"row": source.rows}, 2)] == [181, 185]


def test_columns_are_inferred(tmp_path: Path) -> None:
    (tmp_path / "r.csv.gz").write_bytes(gzip.compress(b"a,b\n1,x\n"))
    found = infer_fields(relation(tmp_path / "r.csv.gz", (), header="true"), tmp_path)
    assert [field.name for field in found] == ["a", "b"]
    (tmp_path / "r.json.zst").write_bytes(compressed('{"a": 1}\n', "zstd"))
    assert infer_fields(relation(tmp_path / "r.json.zst", (), "json"), tmp_path) == (Field("a", BIGINT),)


def fault_a_value_is_found_by_its_line(tmp_path: Path) -> None:
    with pytest.raises(SquallError, match=r"SQ4004 .*r\.csv\.gz:2: column \"k\": 'x' is not a valid BIGINT"):
        read(opened(tmp_path / "r.csv.gz", gzip.compress(b"1,a\nx,b\n")), 0, 2)


@pytest.mark.parametrize(
    ("name", "content", "problem"),
    [
        ("r.csv.gz", b"1,a\n2,b\n", r"SQ4001 .*r\.csv\.gz cannot be decompressed as gzip: .*incorrect header"),
        (
            "r.csv.gz",
            gzip.compress(CSV.encode(), mtime=0)[:-9],
            r"SQ4001 .*r\.csv\.gz cannot be decompressed as gzip: trunc",
        ),
        ("r.csv.bz2", bz2.compress(b"1,a\n") + b"1,a\n", r"SQ4001 .*r\.csv\.bz2 cannot be decompressed as bz2"),
        (
            "r.csv",
            gzip.compress(b"1,a\n", mtime=0),
            r"SQ4001 .*r\.csv is compressed, write OPTIONS \(compression 'gzip'\)",
        ),
        ("r.csv.zip", b"PK\3\4", r"SQ4001 .*r\.csv\.zip is compressed as zip or xz, decompress it"),
        ("r.csv", b"\xfd7zXZ\0", r"SQ4001 .*r\.csv is compressed as zip or xz"),
    ],
)
def fault_files(tmp_path: Path, name: str, content: bytes, problem: str) -> None:
    with pytest.raises(SquallError, match=f"(?i){problem}"):
        opened(tmp_path / name, content)
