"""Rows as the page asks for them: seldom where listing them takes long, and the last ones when it is quiet."""

import json
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from squallpy.web.protocol import MonitoredRows
from squallpy.web.row_pages import RowRequest
from squallpy.web.snapshots import KEPT, Snapshots


@dataclass
class Slow:
    """Views that take a second to list, by a clock of their own."""

    batch: int = 0
    now: float = 100.0
    taken: int = 0

    def rows(self, view: str) -> MonitoredRows:
        self.taken += 1
        self.now += 1
        return MonitoredRows(self.batch, pa.table({"a": [self.batch]}))


def test_batches_lose_a_hundredth_of_their_time() -> None:
    slow: Any = Slow()
    snapshots = Snapshots(lambda: slow, lambda: slow.now)
    for _ in range(2000):
        slow.now += 0.5
        slow.batch += 1
        snapshots.rows("v", fresh=False)
    assert 10 <= slow.taken <= 11
    assert snapshots.rows("v").batch == slow.batch


def test_rows_are_the_last_ones_when_no_batch_comes() -> None:
    slow: Any = Slow()
    snapshots = Snapshots(lambda: slow, lambda: slow.now)
    snapshots.rows("v", fresh=False)
    slow.batch += 1
    assert snapshots.rows("v", fresh=False).batch == 0
    slow.now += 1
    assert snapshots.rows("v", fresh=False).batch == 1
    assert snapshots.rows("v").batch == 1 and slow.taken == 2
    slow.now += KEPT + 1
    snapshots.prune()
    snapshots.rows("v", fresh=False)
    assert slow.taken == 3


def test_a_view_of_a_million_rows_is_paged_searched_and_sorted() -> None:
    numbers = pa.array(range(1_000_000))
    rows = MonitoredRows(1, pa.table({"a": numbers, "b": numbers.cast(pa.string())}))

    def page(**query: str) -> Any:
        return json.loads(b"".join(RowRequest.of({"format": "page", "limit": "2", **query}).answer("v", rows)))

    assert page(offset="999999")["data"] == [["999999", "999999"]]
    assert page(sort="0", desc="1")["data"][0] == ["999999", "999999"]
    found = page(q="99999", offset="10")
    assert (found["matched"], found["rows"]) == (19, 1_000_000)
    assert found["data"] == [["999991", "999991"], ["999992", "999992"]]
    assert sum(part.count(b"\n") for part in RowRequest("csv").answer("v", rows)) == 1_000_001


def test_arrow_is_written_piece_by_piece() -> None:
    rows = pa.table({"a": range(200_000)})
    parts = [*RowRequest("arrow").answer("v", MonitoredRows(1, rows))]
    assert len(parts) > 3 and max(map(len, parts)) < 700_000
    assert pa.ipc.open_stream(b"".join(parts)).read_all() == rows
