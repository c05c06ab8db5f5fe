"""Small batches of text files are parts of rows that were parsed together: the same as by themselves."""

from pathlib import Path
from random import Random

import pyarrow as pa
import pytest

from squallpy.base.errors import SquallError
from squallpy.base.types import INT, VARCHAR, decimal
from squallpy.catalog.relation import Field, Relation
from squallpy.runtime.formats import indexed_text, read_ahead
from squallpy.runtime.formats.csv import CsvPart
from squallpy.runtime.formats.indexed_text import IndexedText
from squallpy.runtime.formats.read_ahead import ReadAhead
from squallpy.runtime.sources import open_source
from squallpy.runtime.sources.foreign_source import ForeignSource
from squallpy.runtime.sources.protocol import BatchLimit
from squallpy.runtime.sources.pushed_rows import PushedRows

FIELDS = (Field("k", INT, nullable=False), Field("v", decimal(6, 2)), Field("s", VARCHAR))
OP = "op"


def csv_row(draw: Random, old: bool) -> str:
    """A row of csv, seldom a faulty one, perhaps with empty lines behind it."""
    text = draw.choice(["é", '"a\nb"', '"x ""y"""', "", '","'])
    number = draw.choice(["1.5", "-20", "", "0.001" if draw.random() < 0.01 else "7"])
    key = draw.randrange(99) if draw.random() < 0.99 else draw.choice(["x", ""])
    return f"{key},{number},{text},{'U' if old and draw.random() < 0.01 else '+'}" + draw.choice(["\n", "\r\n", "\n\n"])


def json_row(draw: Random, old: bool) -> str:
    key = draw.randrange(99) if draw.random() < 0.99 else '"x"'
    operation = "U" if old and draw.random() < 0.01 else "+"
    return f'{{"k": {key}, "v": {draw.randrange(9)}, "s": "é", "op": "{operation}"}}' + draw.choice(["\n", "\r\n"])


@pytest.mark.parametrize("format", ["csv", "json"])
@pytest.mark.parametrize("seed", range(4))
def differential_rows_read_ahead(format: str, seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows, problems, checksums and images of ranges in order, of some that are read again, and of some apart."""
    draw, kept = Random(seed), ReadAhead()
    monkeypatch.setattr(indexed_text, "PARSED", kept)
    monkeypatch.setattr(indexed_text, "ROWS", draw.choice([16, 200]))
    row, header = (csv_row, "k,v,s,op\n") if format == "csv" else (json_row, "")
    text = header + "".join(row(draw, old=seed % 2 == 1) for _ in range(500))
    (tmp_path / f"r.{format}").write_text(text, newline="")
    options = {"path": f"r.{format}", "op": OP} | ({"header": "true"} if format == "csv" else {})
    (part,) = open_source(Relation("r", FIELDS, True, format, options), tmp_path).parts
    assert isinstance(part, IndexedText) and part.rows == 500
    at, parts = 0, 0
    while at < part.rows:
        stop = min(part.rows, at + draw.randrange(1, 12))
        found, wanted = part.read(at, stop, FIELDS, OP, True), part._read(at, stop, FIELDS, OP, True)
        parts += any(each.rows is not None and each.first <= at < each.stop for each in kept.files.values())
        assert found.table.equals(wanted.table) and found.wrong == wanted.wrong
        assert found.checksums == wanted.checksums and found.images == wanted.images
        at = draw.choice(
            [stop, stop, stop, at, max(0, at - 5), min(part.rows - 1, stop + 20) if stop < part.rows else stop]
        )
    assert parts > 10


def test_a_file_that_is_written_is_noticed(tmp_path: Path) -> None:
    file = tmp_path / "r.csv"
    file.write_text("1,2,x\n" * 100)
    source = open_source(Relation("r", FIELDS, True, "csv", {"path": "r.csv"}), tmp_path)
    source.read(0, 3, ("k",))
    assert isinstance(source.parts[0], CsvPart) and any(key[0].path == str(file) for key in read_ahead.PARSED.files)
    file.write_text("2,2,x\n" * 100)
    with pytest.raises(SquallError, match="was written while it was read"):
        source.read(3, 6, ("k",))


def test_parsed_rows_of_few_files_are_kept() -> None:
    kept = ReadAhead()
    for number in range(100):
        kept.keep(number, read_ahead.ParsedRows(0, 1, None, b"", 0, (0, 0)))
    assert [*kept.files] == [*range(68, 100)]


def test_pushed_rows_are_checked_when_they_have_another_schema() -> None:
    pushed = PushedRows()
    source = ForeignSource(Relation("r", FIELDS, True, "pushed", {}), "rows", pushed)
    place = source.initial()
    good = pa.table({"k": [1], "v": ["2.5"], "s": ["é"]})
    for rows in (good, good, good.set_column(0, "k", pa.array([0], pa.date32()))):
        pushed.push(rows)
        place, start = source.latest(place, BatchLimit()), place
        (read,) = source.split(start, place, 1)
        if rows is good:
            assert read.read(("k", "s")).to_pylist() == [{"k": 1, "s": "é"}]
            continue
        with pytest.raises(SquallError, match=r'SQ4002 .*column "k" is date32'):
            read.read(("k", "s"))
