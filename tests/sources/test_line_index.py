"""The index of rows against Python's csv module."""

import csv
import io
from pathlib import Path
from typing import Literal

from hypothesis import given
from hypothesis import strategies as st

from squallpy.runtime.formats.csv_dialect import Dialect
from squallpy.runtime.formats.line_index import LineScan, build_index
from squallpy.runtime.formats.relation_files import local_file

cell = st.text('ab",\n\r| ', max_size=5)
rows = st.lists(st.lists(cell, min_size=2, max_size=3), max_size=12)


def quoting(rows: list[list[str]]) -> Literal[0, 1]:
    # NB: Python leaves a lone \r without quotes, which ends a line elsewhere
    return csv.QUOTE_ALL if any("\r" in cell for row in rows for cell in row) else csv.QUOTE_MINIMAL


@given(rows, st.sampled_from(["\n", "\r\n"]), st.integers(1, 40))
def oracle_rows_are_those_of_the_csv_module(rows: list[list[str]], end: str, chunk: int) -> None:
    text = io.StringIO()
    csv.writer(text, lineterminator=end, quoting=quoting(rows)).writerows(rows)
    data = text.getvalue().encode()
    scan = LineScan(Dialect())
    for at in range(0, len(data), chunk):  # wherever a chunk ends, even between \r and \n
        scan.run(data[at : at + chunk])
    assert scan.rows == len(rows)


@given(rows)
def property_a_scan_stops_at_the_start_of_a_row(rows: list[list[str]]) -> None:
    text = io.StringIO()
    starts = []
    writer = csv.writer(text, lineterminator="\n", quoting=quoting(rows))
    for row in rows:
        starts.append(len(text.getvalue()))
        writer.writerow(row)
    data = text.getvalue().encode()
    for number, start in enumerate(starts):
        scan = LineScan(Dialect())
        assert scan.run(data, number)[0] == start
        assert scan.line == 1 + data[:start].count(b"\n") + data[:start].replace(b"\r\n", b"").count(b"\r")


def test_every_4096th_row_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.write_text("\ufeff" + "".join(f"{i}\n\n" for i in range(10_000)))
    index = build_index(local_file(path), Dialect())
    assert index.rows == 10_000
    assert list(index.lines) == [1, 2 * 4096 + 1, 2 * 8192 + 1]
    assert path.read_bytes()[index.offset(2) :].startswith(b"8192\n")
    assert index.offset(3) == path.stat().st_size
