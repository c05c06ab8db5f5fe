"""Reports of batches, from the figures that partitions have added up."""

from squallpy.runtime.observers.report import BatchReport, JoinReport, RunSummary


def test_a_report_has_what_is_read_outside() -> None:
    figures = {"tuples": 10, "late": 1, "feed_seconds": 0.5, "joiners": {"0": {"r": 1}}, "ilf": 7, "migrated": None}
    expected = BatchReport(tuples=10, late=1, stages={"feed": 0.5}, join=JoinReport(ilf=7))
    assert BatchReport.of(figures) == expected
    assert BatchReport.of({}).join is None and BatchReport.of({}).state_bytes is None
    assert BatchReport.of({"views": {"a": {"bytes": 3}, "b": {"bytes": 4}}}).state_bytes == 7


def test_a_summary_adds_up_batches() -> None:
    summary = RunSummary(seconds=2.0).with_batch(BatchReport(tuples=3, late=1)).with_batch(BatchReport(tuples=4))
    assert summary == RunSummary(batches=2, tuples=7, late=1, seconds=2.0)
