"""The spans of a batch on Spark: Spark's overhead around it, its job, and stages as their slowest tasks ran them.

    Spark between batches     write-ahead log, planning, commit, …    by its own report of the batch before
    job                       describe to Spark; plan, schedule, wake Python; stage 1; exchange 1; stage 2; gather

The stages are placed by the clocks of their hosts; where those differ, spans that do not fit are omitted.
"""

from collections.abc import Iterable

from squallpy.base.timing import Seconds, prefix_spans
from squallpy.runtime.spark.micro_batch_loop import BatchTimes
from squallpy.runtime.spark.worker_tasks import TaskProfile

_BETWEEN = {
    "latestOffset": "next offset",
    "walCommit": "write-ahead log",
    "getBatch": "get batch",
    "queryPlanning": "planning",
    "commitOffsets": "commit",
}


def timeline(times: BatchTimes) -> Seconds:
    """Lay out the seconds of a batch by span."""
    phases = times.spark.get("durationMs", {})
    spans = {("Spark between batches", name): phases.get(key, 0) / 1000 for key, name in _BETWEEN.items()}
    fits = min(1.0, times.between / (sum(spans.values()) or 1.0))
    spans = {path: value * fits for path, value in spans.items()}
    job = {("describe to Spark",): times.built} | _stages(
        times.profiles, times.began + times.built, times.began + times.job
    )
    return {("Spark between batches",): times.between} | spans | {("job",): times.job} | prefix_spans(("job",), job)


def _stages(profiles: Iterable[TaskProfile], start: float, end: float) -> Seconds:
    """Lay out the stages, from when Spark knows of a job until its rows have come."""
    spans: Seconds = {}
    tasks: dict[int, list[TaskProfile]] = {}
    for work in profiles:
        tasks.setdefault(work.stage, []).append(work)
    for at, (stage, mine) in enumerate(sorted(tasks.items())):
        slowest = max(mine, key=lambda work: work.end - work.start)
        first, last = min(work.start for work in mine), max(work.end for work in mine)
        name = f"stage {stage + 1}"
        spans[f"exchange {stage}" if at else "plan, schedule, wake Python",] = max(0.0, first - start)
        spans[name,] = last - first
        spans |= prefix_spans((name,), slowest.seconds)
        start = last
    return spans | {("gather",): max(0.0, end - start)}
