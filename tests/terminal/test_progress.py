"""What is said on stderr, and when."""

import io
import re
from dataclasses import replace
from time import sleep

import pytest

from squallpy.runtime.observers.protocol import QueryStart
from squallpy.runtime.observers.report import BatchReport, RunSummary
from squallpy.terminal import progress
from squallpy.terminal.progress import Progress, summary_line

SUMMARY = RunSummary(tuples=1500, seconds=0.5)


class Screen(io.StringIO):
    """A terminal that remembers what it was sent."""

    def isatty(self) -> bool:
        return True


def golden_summary() -> None:
    assert summary_line(SUMMARY) == "1,500 tuples in 0.5 s, 3,000 tuples/s"
    assert summary_line(replace(SUMMARY, skipped=1, unmatched=2)) == (
        "1,500 tuples in 0.5 s, 3,000 tuples/s, 1 row skipped, 2 deletes of rows that were not there"
    )
    assert summary_line(replace(SUMMARY, tuples=0)) == "0 tuples in 0.5 s"


def test_a_log_is_told_only_what_was_left_out() -> None:
    log = io.StringIO()
    quiet = Progress("starting", log)
    with quiet.running():
        quiet.on_query_terminated(SUMMARY)
        quiet.on_query_terminated(replace(SUMMARY, skipped=2))
    assert log.getvalue() == "2 rows skipped\n"


def test_a_short_run_shows_no_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    screen = Screen()
    shown = Progress("starting", screen)
    with shown.running():
        shown.on_query_terminated(SUMMARY)
    assert screen.getvalue() == "1,500 tuples in 0.5 s, 3,000 tuples/s\n"


def test_a_long_run_shows_a_line_that_erases_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(progress, "_PATIENCE", 0.0)
    monkeypatch.setattr(progress, "_REFRESH", 0.01)
    screen = Screen()
    shown = Progress("starting Spark", screen)
    with shown.running():
        sleep(0.1)
        shown.on_query_started(QueryStart((), 20, tuple))
        shown.on_query_progress(BatchReport(4, total_tuples=5000))
        sleep(0.1)
    lines = screen.getvalue().split("\r\x1b[2K")
    assert lines[0] == lines[-1] == ""
    assert re.fullmatch(r"starting Spark  \d+ s", lines[1]) and re.fullmatch(
        r"batch 5 of 20  5,000 tuples  \d+ s", lines[-2]
    )


def test_a_singular_matrix_is_told_once() -> None:
    log = io.StringIO()
    quiet = Progress("starting", log)
    singular = {"singular": "X' * X is singular and has no inverse"}
    for number, figures in enumerate((singular, singular, {}, singular)):
        quiet.on_query_progress(BatchReport(number, matrices={"ols": figures}))
    assert log.getvalue().splitlines() == [
        "batch 0: X' * X is singular and has no inverse; all of ols that needs it is empty until it is regular",
        "batch 3: X' * X is singular and has no inverse; all of ols that needs it is empty until it is regular",
    ]


def test_a_regression_that_is_not_determined_is_told_once_a_run() -> None:
    log = io.StringIO()
    quiet = Progress("starting", log)
    for number, labels in enumerate(({}, {"y": 1}, {"y": 2, "Größe": 1}, {}, {"y": 1})):
        quiet.on_query_progress(BatchReport(number, singular=labels or None))
    assert log.getvalue().splitlines() == [
        f'batch {number}: X\'X for "{label}" is singular and has no inverse: features are constant or collinear; '
        "all of ols that needs it is empty until it is regular"
        for number, label in ((1, "y"), (2, "Größe"))
    ]
