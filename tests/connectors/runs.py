"""Runs of scripts in this process, and what their batches say."""

import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa

from squallpy.base.batch_trigger import BatchTrigger
from squallpy.logical.nodes import Query
from squallpy.script_session import RunOptions, ScriptSession

Row = tuple[Any, ...]
PATIENCE = 180.0  # seconds for what takes less than one where no others work


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
    checkpoint: Path | str | None = None,
    rows: int | None = None,
    trigger: str = "available-now",
    stop: threading.Event | None = None,
    backend: str = "local",
) -> Answers:
    """Run a script until all is read that is there."""
    answers = answers or Answers()
    session = ScriptSession(Path("script.sql"), text=text)
    options = RunOptions(
        backend=backend, batch_rows=rows, trigger=BatchTrigger.parse(trigger), changes=True, final=False,
        checkpoint=None if checkpoint is None else str(checkpoint),
    )  # fmt: skip
    session.run(options, answers, stop)
    return answers


class Running:
    """A run in a thread, until it is left."""

    def __init__(
        self, text: str, checkpoint: Path | None = None, answers: Answers | None = None, backend: str = "local"
    ) -> None:
        self.answers = answers or Answers()
        self.error: Exception | None = None
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, args=(text, checkpoint, backend), daemon=True)

    def _run(self, text: str, checkpoint: Path | None, backend: str) -> None:
        try:
            run(text, self.answers, checkpoint, trigger="as-it-comes", stop=self._stop, backend=backend)
        except Exception as error:
            self.error = error

    def __enter__(self) -> "Running":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join(PATIENCE)
        assert not self._thread.is_alive()

    def wait_for(self, is_there: Callable[[], bool], *others: "Running", seconds: float = PATIENCE) -> None:
        """Wait until something is so; raises what has ended the run, or one of others, before."""
        until = time.monotonic() + seconds
        while not is_there():
            for each in (self, *others):
                if each.error:
                    raise each.error
            assert time.monotonic() < until, self.answers.rows
            time.sleep(0.01)

    def ended(self, seconds: float = PATIENCE) -> Exception:
        """Return the error with which the run ends."""
        self._thread.join(seconds)
        assert self.error, self.answers.rows
        return self.error


class Versions:
    """Answers of a source after each of its changes: a batch has to end at one of them, none before the last."""

    def __init__(self, first: Counter[Row]) -> None:
        self._told, self._at, self.batches = [first], 0, 0

    def tell(self, answer: Counter[Row]) -> None:
        """Note the answer after one more change of the source."""
        self._told.append(answer)

    def check(self, found: Counter[Row]) -> None:
        """Compare the answer after a batch."""
        self.batches += 1
        self._at = next((i for i in range(self._at, len(self._told)) if self._told[i] == found), -1)
        assert self._at >= 0, f"{found} is none of {self._told}"
