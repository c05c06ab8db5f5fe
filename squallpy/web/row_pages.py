"""Pages of the rows of a view: those that contain a text, sorted by a column, from one on, as JSON, CSV or Arrow.

/views/rev?q=ann&sort=1&desc=1&offset=100&limit=50
"""

import io
import json
from collections.abc import Iterator, Mapping
from functools import reduce
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from squallpy.base.errors import SquallError, nearest
from squallpy.base.records import dataclass
from squallpy.runtime.evaluate.scalar.json import nested_texts
from squallpy.runtime.formats.csv_writer import csv_header, csv_rows
from squallpy.runtime.formats.json_lines import json_rows
from squallpy.runtime.formats.text_columns import cells, code_of, is_number, pieces
from squallpy.web.protocol import MonitoredRows

FORMATS = {
    "json": "application/json", "csv": "text/csv; charset=utf-8", "arrow": "application/vnd.apache.arrow.stream",
    "page": "application/json",
}  # fmt: skip
"""Types of content by format; `page` has the cells as text, as they are printed."""
_LIMIT, _MOST = 100, 10_000


@dataclass(frozen=True, slots=True)
class RowRequest:
    """The rows that are asked for.

    Args:
        text: A text that one of their cells contains, in any case.
        sort: The number of the column by which they are sorted, from 0 on; None: as the view has them.
        limit: Their greatest number; None: all.
    """

    format: str = "json"
    text: str = ""
    sort: int | None = None
    descending: bool = False
    offset: int = 0
    limit: int | None = None

    @classmethod
    def of(cls, query: Mapping[str, str]) -> "RowRequest":
        """Read the query of a URL; SQ7003 for what does not fit."""
        format = query.get("format", "json").lower()
        if format not in FORMATS:
            raise SquallError("SQ7003", f'unknown format "{format}"', hint=nearest(format, ("arrow", "json", "csv")))
        text = format in ("json", "page")
        limit = _number(query, "limit") if "limit" in query else _LIMIT if text else None
        sort = _number(query, "sort") if "sort" in query else None
        limit = min(limit, _MOST) if text and limit is not None else limit
        return cls(format, query.get("q", ""), sort, query.get("desc") == "1", _number(query, "offset"), limit)

    def select(self, rows: pa.Table) -> tuple[pa.Table, int]:
        """Return these rows, and how many match."""
        found = search(rows, self.text) if self.text else rows
        if self.sort is not None:
            if self.sort >= rows.num_columns:
                raise SquallError("SQ7003", f"there is no column {self.sort}", hint="they are numbered from 0 on")
            found = _sorted(found, self.sort, self.descending)
        return found.slice(self.offset, self.limit), len(found)

    def answer(self, view: str, rows: MonitoredRows) -> Iterator[bytes]:
        """Write these rows in their format."""
        page, matched = self.select(rows.table)
        if self.format == "csv":
            yield csv_header(page.schema)
            yield from csv_rows(page)
        elif self.format == "arrow":
            yield from _arrow(page)
        else:
            head: dict[str, Any] = {"view": view, "batch": rows.batch, "rows": len(rows.table), "matched": matched}
            columns = [{"name": f.name, "type": str(f.type), "number": is_number(f.type)} for f in page.schema]
            head |= {"offset": self.offset, "columns": columns}
            data = b"".join(_texts(page) if self.format == "page" else objects(page))
            yield json.dumps(head)[:-1].encode() + b', "data": [' + data + b"]}"


def search(rows: pa.Table, text: str) -> pa.Table:
    """Find the rows of which a cell contains a text, in any case."""
    found = []
    for piece in pieces(rows):
        shown = map(_shown, piece.columns, piece.schema)
        tests = [pc.fill_null(pc.match_substring(each, text, ignore_case=True), False) for each in shown]
        if tests:
            found.append(piece.filter(reduce(pc.or_, tests)))
    return pa.Table.from_batches(found, rows.schema)


def objects(rows: pa.Table) -> Iterator[bytes]:
    """Write rows as JSON objects between commas."""
    lines = b"".join(json_rows(rows))
    yield lines.rstrip(b"\n").replace(b"\n", b",\n")


def _sorted(rows: pa.Table, column: int, descending: bool) -> pa.Table:
    """Sort rows by a column, NULLs last. NB: names of columns may repeat."""
    keys = pa.table({"key": rows.column(column)})
    order = pc.sort_indices(keys, [("key", "descending" if descending else "ascending")])
    return rows.take(order)


def _shown(column: pa.Array, field: pa.Field) -> pa.Array:
    """Write a column as it is printed."""
    code = code_of(field)
    return nested_texts(cells(column), code) if code else cells(column)


def _texts(rows: pa.Table) -> Iterator[bytes]:
    """Write rows as JSON arrays of texts as they are printed; NULL is null."""
    columns = [
        [text for chunk in each.chunks for text in _shown(chunk, field).to_pylist()]
        for each, field in zip(rows.columns, rows.schema, strict=True)
    ]
    yield json.dumps([*zip(*columns, strict=True)], ensure_ascii=False)[1:-1].encode()


def _arrow(rows: pa.Table) -> Iterator[bytes]:
    """Write rows as a stream of Arrow, piece by piece."""
    out = _Written()
    with pa.ipc.new_stream(out, rows.schema) as writer:
        for piece in pieces(rows):
            writer.write_batch(piece)
            yield out.take()
    yield out.take()


class _Written(io.RawIOBase):
    """Bytes that were written and are not taken yet."""

    def __init__(self) -> None:
        self._parts, self._size = list[bytes](), 0

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        self._parts.append(bytes(data))
        self._size += len(self._parts[-1])
        return len(self._parts[-1])

    def tell(self) -> int:
        return self._size

    def take(self) -> bytes:
        """Take what was written since the last time."""
        parts, self._parts = self._parts, []
        return b"".join(parts)


def _number(query: Mapping[str, str], name: str) -> int:
    text = query.get(name, "0")
    if not text.isascii() or not text.isdigit() or len(text) > 15:
        raise SquallError("SQ7003", f'{name} is "{text}", and no number', hint=f"{name}=0 or more")
    return int(text)
