"""What a run without end has told its sink, and how it is stopped or killed."""

import threading
from collections.abc import Callable
from typing import Any

import pytest

from squallpy.runtime.checkpoint import durable_folder
from squallpy.testing.ignoring_sink import IgnoringSink


class Killed(Exception):
    """Simulated kill of the process."""


class StopWhenIdle(threading.Event):
    """A wish to stop that comes when there is nothing more to read."""

    def wait(self, timeout: float | None = None) -> bool:
        self.set()
        return True


class Kept(IgnoringSink):
    """All changes so far by batch, and the result; dies at a batch of the run."""

    def __init__(self) -> None:
        self.changes, self.rows = dict[int, list[str]](), list[str]()
        self.dies_at: int | None = None

    def batch(self, number: int, deletes: Any, inserts: Any) -> None:
        if self.dies_at is not None:
            self.dies_at -= 1
            if self.dies_at < 0:
                self.dies_at = None
                raise Killed
        found = [f"- {row}" for row in deletes.to_pylist()] + [f"+ {row}" for row in inserts.to_pylist()]
        assert self.changes.get(number, sorted(found)) == sorted(found), "a batch that comes again is the same"
        self.changes[number] = sorted(found)

    def final(self, table: Any) -> None:
        self.rows = sorted(map(str, table.to_pylist()))

    @property
    def kept_rows(self) -> list[str]:
        """The result as its changes tell it."""
        rows = list[str]()
        for number in sorted(self.changes):
            for change in self.changes[number]:
                if change[0] == "-":
                    rows.remove(change[2:])
            rows += [change[2:] for change in self.changes[number] if change[0] == "+"]
        return sorted(rows)


class Mortal(Kept):
    """Changes and a result; dies when rows come, if it is told to."""

    dies = False

    def batch(self, number: int, deletes: Any, inserts: Any) -> None:
        if self.dies and len(inserts):
            self.dies = False
            raise Killed
        super().batch(number, deletes, inserts)


def die_after(writes: int, patch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Kill the process after so many files; returned is what ends that."""
    left, opened = writes, durable_folder._open_file

    def dying(*arguments: Any, **named: Any) -> Any:
        nonlocal left
        left -= 1
        if left < 0:
            raise Killed
        return opened(*arguments, **named)

    patch.setattr(durable_folder, "_open_file", dying)
    return lambda: patch.setattr(durable_folder, "_open_file", opened)
