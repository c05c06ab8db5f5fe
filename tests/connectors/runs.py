"""Runs of scripts in this process, and what their batches say."""

import threading
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa

from squallpy.base.batch_trigger import BatchTrigger
from squallpy.logical.nodes import Query
from squallpy.session import RunOptions, Session

Row = tuple[Any, ...]


class Answers:
    """The answer after each batch, added up from changes."""

    def __init__(self, on_batch: Callable[[Counter[Row]], None] = lambda _: None) -> None:
        self.rows, self.batches, self._on_batch = Counter[Row](), 0, on_batch

    def begin(self, query: Query, schema: pa.Schema, batches: int | None) -> None:
        """Begin."""

    def batch(self, number: int, deletes: pa.Table | None, inserts: pa.Table | None) -> None:
        assert deletes is not None and inserts is not None
        for table, sign in ((deletes, -1), (inserts, 1)):
            for row in table.to_pylist():
                self.rows[tuple(row.values())] += sign
        self.rows = Counter({row: count for row, count in self.rows.items() if count})
        assert all(count > 0 for count in self.rows.values()), self.rows
        self.batches += 1
        self._on_batch(self.rows)

    def final(self, table: pa.Table) -> None:
        """End."""

    def finish(self, stopped: bool) -> None:
        """End."""


def run(
    text: str,
    answers: Answers | None = None,
    checkpoint: Path | None = None,
    rows: int | None = None,
    trigger: str = "available-now",
    stop: threading.Event | None = None,
    backend: str = "local",
) -> Answers:
    """Run a script until all is read that is there."""
    answers = answers or Answers()
    session = Session(Path("script.sql"), text=text)
    options = RunOptions(
        backend=backend, batch_rows=rows, trigger=BatchTrigger.parse(trigger), changes=True, final=False,
        checkpoint=None if checkpoint is None else str(checkpoint),
    )  # fmt: skip
    session.run(options, answers, stop)
    return answers
