"""Rows of views as of one batch, while batches go on: a lock is held for a piece at a time."""

from collections.abc import Callable, Sequence
from time import sleep

import pyarrow as pa

from squallpy.live.entries import Maintained
from squallpy.live.fair_lock import FairLock, Hold
from squallpy.live.live_program import LiveProgram
from squallpy.runtime.result.result_scan import RowScan

TRIES = 3
"""Scans that are begun before all pieces are copied under one hold, as what batches do makes scans invalid."""


def read_rows(hold: Hold, begin: Callable[[], Sequence[RowScan]]) -> list[pa.Table]:
    """Read the rows of several results, all as of one batch.

    Args:
        hold: Keeps batches from being applied.
        begin: Begins the scans, called under a hold.
    """
    for attempt in range(1, TRIES + 1):
        scans = list[RowScan]()
        try:
            with hold():
                scans += begin()
                more = _copy(scans, whole=attempt == TRIES)
            while more:
                sleep(0)  # NB: others have the interpreter now
                with hold():
                    more = _copy(scans)
        finally:
            for scan in scans:
                scan.end()
        if all(scan.is_valid for scan in scans):
            return [scan.table() for scan in scans]
    raise AssertionError("a scan that is copied under one hold is valid")


def read_view(program: LiveProgram, lock: FairLock, begin: Callable[[], Maintained]) -> tuple[int, pa.Table]:
    """Return the number of the last batch, and the rows of a materialized view as of it.

    Args:
        begin: Returns the view before any other batch, perhaps several times: the rows are those of the last time.
    """
    last = 0

    def scans() -> list[RowScan]:
        nonlocal last
        last = program.batches - 1
        return [program.scan(begin().query)]

    (rows,) = read_rows(lambda: lock, scans)
    return last, rows


def _copy(scans: Sequence[RowScan], whole: bool = False) -> bool:
    """Copy a piece of each, or all that is left; True if there are more."""
    more = [scan.copy() for scan in scans]
    while whole and any(more):
        more = [scan.copy() for scan in scans]
    return any(more)
