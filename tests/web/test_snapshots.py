"""Rows as the page asks for them: seldom where listing them takes long, and the last ones when it is quiet."""

from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from squallpy.web.monitored import Rows
from squallpy.web.row_pages import RowRequest
from squallpy.web.snapshots import KEPT, Snapshots


@dataclass
class Slow:
    """Views that take a second to list, by a clock of their own."""

    batch: int = 0
    now: float = 100.0
    taken: int = 0

    def rows(self, view: str) -> Rows:
        self.taken += 1
        self.now += 1
        return Rows(self.batch, pa.table({"a": [self.batch]}))


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


def test_arrow_is_written_piece_by_piece() -> None:
    rows = pa.table({"a": range(200_000)})
    parts = [*RowRequest("arrow").answer("v", Rows(1, rows))]
    assert len(parts) > 3 and max(map(len, parts)) < 700_000
    assert pa.ipc.open_stream(b"".join(parts)).read_all() == rows
