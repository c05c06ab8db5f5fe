"""A batch on Spark as spans: what Spark does around it, its job, the stages of that as their slowest tasks had them.

    Spark between batches     write-ahead log, planning, commit, …    by its own report of the batch before
    job                       describe to Spark; plan, schedule, wake Python; stage 1; exchange 1; stage 2; gather

The stages are laid out by the clocks of the hosts that ran them; where those differ, what does not fit is left out.
"""

from collections.abc import Iterable

from squallpy.base.trace import Seconds, below
from squallpy.runtime.spark.stream import BatchTimes
from squallpy.runtime.spark.tasks import Work

_BETWEEN = {
    "latestOffset": "next offset",
    "walCommit": "write-ahead log",
    "getBatch": "get batch",
    "queryPlanning": "planning",
    "commitOffsets": "commit",
}


def timeline(times: BatchTimes) -> Seconds:
    """Seconds by span."""
    phases = times.spark.get("durationMs", {})
    spans = {("Spark between batches", name): phases.get(key, 0) / 1000 for key, name in _BETWEEN.items()}
    fits = min(1.0, times.between / (sum(spans.values()) or 1.0))
    spans = {way: value * fits for way, value in spans.items()}
    job = {("describe to Spark",): times.built} | _stages(
        times.works, times.began + times.built, times.began + times.job
    )
    return {("Spark between batches",): times.between} | spans | {("job",): times.job} | below(("job",), job)


def _stages(works: Iterable[Work], start: float, end: float) -> Seconds:
    """From when Spark knows of a job until its rows are there."""
    spans: Seconds = {}
    tasks: dict[int, list[Work]] = {}
    for work in works:
        tasks.setdefault(work.stage, []).append(work)
    for at, (stage, mine) in enumerate(sorted(tasks.items())):
        slowest = max(mine, key=lambda work: work.end - work.start)
        first, last = min(work.start for work in mine), max(work.end for work in mine)
        name = f"stage {stage + 1}"
        spans[f"exchange {stage}" if at else "plan, schedule, wake Python",] = max(0.0, first - start)
        spans[name,] = last - first
        spans |= below((name,), slowest.seconds)
        start = last
    return spans | {("gather",): max(0.0, end - start)}
