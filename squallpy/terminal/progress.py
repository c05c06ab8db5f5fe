"""A progress line on stderr that erases itself, and the summary at the end.

Without a terminal on stderr there is no such line, and no summary: a log or a pipe only gets errors and notes on
rejected rows.
"""

import os
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from time import perf_counter
from typing import TYPE_CHECKING, TextIO

from squallpy.base.events import INFO, QUERY, log_event
from squallpy.runtime.observers.protocol import Observer, QueryStart
from squallpy.runtime.observers.report import BatchReport, RunSummary
from squallpy.terminal.terminal_detection import can_redraw

if TYPE_CHECKING:
    from squallpy.runtime.sources.source_report import SourceReport

_PATIENCE, _REFRESH = 1.0, 0.2  # seconds of silence at first; between two looks
ERASE = "\r\x1b[2K"


class Progress(Observer):
    """An observer that talks on stderr; `started` at once, for Spark takes its time before the first batch.

    Args:
        logs: What it has to say is an event, among others on stderr.
    """

    def __init__(self, starting: str, stream: TextIO | None = None, logs: bool = False) -> None:
        self._stream, self._logs = stream or sys.stderr, logs
        self._terminal = can_redraw(self._stream) and not logs
        self._text, self._shown = starting, ""
        self._of: int | None = None
        self._singular: dict[str, str | None] = {}  # by program, the inverses that did not exist after the last batch
        self._undetermined = set[str]()  # labels of regressions of which it has been said
        self._waiting = set[str]()  # streams of which it has been said
        self._lock, self._ended = threading.RLock(), threading.Event()
        self._started = perf_counter()

    @contextmanager
    def running(self) -> Iterator[None]:
        """Keep the line up to date while the block runs."""
        thread = threading.Thread(target=self._refresh, name="progress", daemon=True)
        if self._terminal:
            thread.start()
        try:
            yield
        finally:
            self._ended.set()
            self.hide()

    def hide(self) -> None:
        """Take the line away; the next refresh brings it back."""
        with self._lock:
            if self._shown:
                self._stream.write(ERASE)
                self._stream.flush()
                self._shown = ""

    @contextmanager
    def aside(self) -> Iterator[None]:
        """Hide the line while the block writes to what may be the same terminal."""
        with self._lock:
            self.hide()
            yield

    def quiet(self) -> None:
        """Stop the line: something else shows the progress."""
        self._ended.set()
        self.hide()

    def say(self, line: str) -> None:
        """Print a line that stays."""
        if self._logs:
            log_event(QUERY, INFO, "note", text=line)
            return
        with self._lock:
            self.hide()
            print(line, file=self._stream, flush=True)

    def on_query_started(self, start: QueryStart) -> None:
        self._of = start.batches

    def on_query_progress(self, report: BatchReport) -> None:
        number = report.number
        for path in sorted({path for rebuilt in report.rebuilt for path in rebuilt["damaged"]}):
            self.say(f"{path} was damaged; the state was rebuilt from what was written before it, and nothing is lost")
        for name, figures in (report.matrices or {}).items():
            singular = figures.get("singular")
            if singular and singular != self._singular.get(name):
                self.say(f"batch {number:,}: {singular}; all of {name} that needs it is empty until it is regular")
            self._singular[name] = singular
        for label in sorted((report.singular or {}).keys() - self._undetermined):
            told = f'X\'X for "{label}" is singular and has no inverse: features are constant or collinear'
            self.say(f"batch {number:,}: {told}; all of ols that needs it is empty until it is regular")
            self._undetermined.add(label)
        place = f"batch {number + 1:,}" + ("" if self._of is None else f" of {self._of:,}")
        self._text = f"{place}  {report.total_tuples:,} tuples"

        self._note_waiting(report.sources)

    def on_query_idle(self, sources: "Mapping[str, SourceReport]") -> None:
        self._note_waiting(sources)

    def _note_waiting(self, sources: "Mapping[str, SourceReport]") -> None:
        """Tell once of each stream that it waits for a place that is not there."""
        for stream, about in sources.items():
            if about.waits_for and stream not in self._waiting:
                self.say(f"the stream {stream} waits for {about.waits_for}, which is not there")
            (self._waiting.add if about.waits_for else self._waiting.discard)(stream)

    def on_query_terminated(self, summary: RunSummary) -> None:
        if self._terminal:
            self.say(summary_line(summary))
        elif left_out(summary):
            self.say(left_out(summary))

    def _refresh(self) -> None:
        self._ended.wait(_PATIENCE)
        while not self._ended.is_set():
            with self._lock:
                text = f"{self._text}  {perf_counter() - self._started:.0f} s"[: _columns(self._stream) - 1]
                if text != self._shown and not self._ended.is_set():
                    self._stream.write(ERASE + text)
                    self._stream.flush()
                    self._shown = text
            self._ended.wait(_REFRESH)


def summary_line(summary: RunSummary) -> str:
    """Summarise a run: `6,001,215 tuples in 12.3 s, 487,903 tuples/s, 3 rows skipped`"""
    tuples, seconds = summary.tuples, summary.seconds
    rate = f", {tuples / seconds:,.0f} tuples/s" if seconds > 0 and tuples else ""
    return ", ".join(filter(None, [f"{tuples:,} tuples in {seconds:.1f} s{rate}", left_out(summary)]))


def left_out(summary: RunSummary) -> str:
    """Count the rows left out, by reason; empty if there are none.

    `3 rows skipped, 1 row late, 1 delete of a row that was not there, 2 rows that break a PRIMARY KEY`
    """
    skipped, late, unmatched, duplicates = summary.skipped, summary.late, summary.unmatched, summary.duplicates
    parts = []
    if skipped:
        parts.append(f"{skipped:,} {'row' if skipped == 1 else 'rows'} skipped")
    if late:
        parts.append(f"{late:,} {'row' if late == 1 else 'rows'} late")
    if unmatched:
        deletes = "delete of a row that was" if unmatched == 1 else "deletes of rows that were"
        parts.append(f"{unmatched:,} {deletes} not there")
    if duplicates:
        parts.append(f"{duplicates:,} {'row that breaks' if duplicates == 1 else 'rows that break'} a PRIMARY KEY")
    return ", ".join(parts)


def _columns(stream: TextIO) -> int:
    try:
        return os.get_terminal_size(stream.fileno()).columns or 80
    except (OSError, ValueError):
        return 80
