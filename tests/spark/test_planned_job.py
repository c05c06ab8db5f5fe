"""The way of rows of jobs from the JVM."""

from typing import Any

import pytest

from squallpy.runtime.spark import planned_job
from squallpy.runtime.spark.planned_job import RowFetcher


class Found:
    """A list of the JVM's."""

    def __init__(self, *sizes: int) -> None:
        self.rows = [bytes(size) for size in sizes]
        self.calls = 0

    def size(self) -> int:
        return len(self.rows)

    def get(self, i: int) -> bytes:
        self.calls += 1
        return self.rows[i]


def test_small_rows_are_fetched_by_calls_and_others_seldom(monkeypatch: pytest.MonkeyPatch) -> None:
    """A large row that comes by a call, which waits, makes its like come by a socket for twice as long."""

    class Fetcher(RowFetcher):
        def __init__(self) -> None:
            self._patience, self._small_jobs = planned_job._PATIENCE, 0

        def _stream(self, found: Any, reader: Any) -> list[bytes]:
            return list(found.rows)

    monkeypatch.setattr(planned_job, "_PATIENCE", 3)
    monkeypatch.setattr(planned_job, "_MOST_PATIENCE", 8)
    fetcher = Fetcher()

    def fetched(*sizes: int) -> int:
        found = Found(*sizes)
        assert fetcher.fetch(found, None) == found.rows
        return found.calls

    assert [fetched(10, 20) for _ in range(5)] == [0, 0, 0, 2, 2]
    assert fetched(10, 100_000) == 2
    assert [fetched(10, 20) for _ in range(8)] == [0] * 6 + [2, 2]
    assert [fetched(100_000), fetched(100_000)] == [1, 0]
    assert [fetched() for _ in range(9)] == [0] * 9
    assert [fetched(1, 2), fetched(*[1] * 7), fetched(1)] == [2, 7, 0]
