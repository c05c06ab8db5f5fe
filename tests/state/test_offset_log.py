"""The log of offsets: the pieces of files that a batch begins to read, in the order in which they were seen."""

import os
from pathlib import Path

import pytest

from squallpy.base.types import BIGINT
from squallpy.catalog.relation import Field, Relation
from squallpy.runtime.checkpoint import offset_log
from squallpy.runtime.checkpoint.offset_log import OffsetLog
from squallpy.runtime.sources.arrivals import Arrivals
from squallpy.runtime.sources.watched_files import WatchedFiles


class Run:
    """A run over a folder from where the log of an earlier one ends; each batch has one row."""

    def __init__(self, folder: Path) -> None:
        options = {"path": "in", "watch": "true"}
        self.source = WatchedFiles(Relation("r", (Field("k", BIGINT),), True, "csv", options), folder)
        self.log = OffsetLog(str(folder / "log"), {"r": self.source})
        decided = self.log.restore()
        self.arrivals = Arrivals({"r": self.source}, 1, decided, self.log.write)
        self.batch = decided[0] if decided else -1

    def read(self) -> int:
        """Read the row of the next batch."""
        self.batch += 1
        return self.again()

    def again(self) -> int:
        """Read the row of the batch before once more."""
        self.source._listing._full_look = 0.0
        spans = self.arrivals.spans(self.batch)
        assert spans
        (part,) = self.source.split(*spans["r"], 1)
        (value,) = part.read(("k",)).column("k").to_pylist()
        return int(value)


def put(folder: Path, value: int, time: int) -> None:
    (folder / "in").mkdir(exist_ok=True)
    (folder / "in" / f"{value}.csv").write_text(f"{value}\n")
    os.utime(folder / "in" / f"{value}.csv", (time, time))


def fault_files_are_seen_in_another_order_after_a_kill(tmp_path: Path) -> None:
    """A file that was seen but not read is a new one, whatever the killed run had logged behind it."""
    for value in (1, 2, 3):
        put(tmp_path, value, value)
    first = Run(tmp_path)
    assert first.read() == 1
    put(tmp_path, 9, 0)
    assert first.read() == 2
    second = Run(tmp_path)
    assert (second.again(), second.read(), second.read()) == (2, 9, 3)
    third = Run(tmp_path)
    assert third.again() == 3 and third.arrivals.spans(third.batch + 1) is None


@pytest.mark.parametrize("merged", [2, 3, 16])
def test_records_are_merged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, merged: int) -> None:
    """… while pieces are forgotten, and behind what a run before has written."""
    monkeypatch.setattr(offset_log, "MERGED", merged)
    run, sizes = Run(tmp_path), list[int]()
    for value in range(30):
        put(tmp_path, value, value)
        assert run.read() == value
        run.source.commit({"row": value + 1})
        if value % 7 == 2:
            run = Run(tmp_path)
            assert run.again() == value
            run.source.forget({"row": value})
        sizes.append(len([name for name in os.listdir(tmp_path / "log") if name.startswith("seen")]))
    assert max(sizes) < merged * offset_log.LEVELS + 30 // merged**offset_log.LEVELS
    pieces = OffsetLog(str(tmp_path / "log"), {"r": run.source})._read("r", run.log._records["r"])
    assert [piece["path"] for piece in pieces] == [str(tmp_path / "in" / f"{value}.csv") for value in range(30)]


def test_large_records_are_left_alone() -> None:
    assert offset_log.find_merged([0], 1) is None
    assert offset_log.find_merged([*range(16)], 16) == 0
    assert offset_log.find_merged([0, 4096, *range(4097, 4112)], 4112) == 4096
    assert offset_log.find_merged([0, 100, *range(116, 131)], 131) is None
