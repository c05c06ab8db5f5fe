"""The Spark executor: the same plan, its partitions on workers, the result on the driver.

feed stage    Sender.messages      read, pre-aggregate, route          (any worker)
apply stages  Node on partition p  triggers over mapped state          (any worker; the state is in shared files)
driver        Publisher            merge ΔQ into Q, print what changed
"""

import threading
from collections.abc import Callable, Mapping
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Any

import pyarrow as pa

from squallpy.base.trace import SILENT, Trace
from squallpy.physical.plan import Plan
from squallpy.runtime.batch.node import Input, Publisher, Stats, unpack_changes
from squallpy.runtime.checkpoint.folders import Committed, Place
from squallpy.runtime.formats.file_rows import READ
from squallpy.runtime.result.result import Changes, result_layout
from squallpy.runtime.spark.cluster import start
from squallpy.runtime.spark.coordinator import Helm
from squallpy.runtime.spark.placement import forget
from squallpy.runtime.spark.stream import BatchTimes, StreamJob, run
from squallpy.runtime.spark.timeline import timeline

OnBatch = Callable[[int, Changes | None, Stats], bool]

TOGETHER = 512  # batches to a tick of Spark's clock, which takes as long as a small batch
SMALL = 50_000  # rows of a batch, with those of tables of the first, that cost less to read twice than to send


class SparkExecutor:
    """Runs a plan over its input on Spark, from where the checkpoint stands."""

    def __init__(
        self,
        plan: Plan,
        input: Input,
        place: Place,
        master: str,
        splits: int,
        spark_settings: Mapping[str, str] | None = None,
        wanted: bool = True,
        trace: Trace = SILENT,
    ) -> None:
        self._plan, self._place, self._trace = plan, place, trace
        self._input, self._master, self._splits, self._settings = input, master, splits, spark_settings
        self._publisher = Publisher(plan, wanted, trace)
        self._result = place.partition("result", result_layout(plan), self._publisher.run, trace=trace)
        self.schema = self._publisher.result.schema

    def run(
        self, on_batch: OnBatch, begin: Callable[[], None] = lambda: None, stop: threading.Event | None = None
    ) -> None:
        """Apply all batches that the checkpoint does not call done, or until `on_batch` says stop; `begin` before the
        first, when Spark is up."""
        committed = Committed(self._place.durable)
        first = {name: stop - start for name, (start, stop) in self._input.shares(0, 0, 1).items()}
        helm = Helm(self._plan, self._input, self._place, committed.facts, first)

        def before(batch: int) -> None:
            begin()
            helm.before(batch)

        def publish(batch: int, outputs: list[bytes], times: BatchTimes) -> bool:
            start = perf_counter()
            with self._trace("publish"):
                printed = self._result.apply(batch, [b"first" if batch == 0 else b"", *outputs])
                changes, stats = unpack_changes(printed)
            committed.read.add(stats.pop(READ, {}))
            stats = helm.after(stats)
            rebuilt = {"rebuilt": list(times.told)} if times.told else {}
            profile = {"profile": timeline(times) | self._trace.taken()} if self._trace.on else {}
            go_on = on_batch(batch, changes, stats | _stages(times, perf_counter() - start) | rebuilt | profile)
            committed.commit(batch + 1, helm.facts)
            helm.drop(batch + 1)
            return go_on

        # NB: what Spark writes down of a clock's ticks is of no use to the next run
        with start(self._master, self._settings) as cluster, TemporaryDirectory(prefix="squallpy-") as ticks:
            helm.at(cluster.session.sparkContext.defaultParallelism)
            job = StreamJob(
                self._input.replay.batches, self._splits, self._plan.partitions,
                *helm.stages(self._splits, self._trace), ticks, len(self._plan.stages), committed.batches,
                helm.course, self._trace, before, TOGETHER,
                helm.skips_feed(is_small=sum(first.values()) <= SMALL),
            )  # fmt: skip
            run(cluster.session, job, publish, stop)
            forget(cluster.session, self._place)

    def final(self) -> pa.Table:
        """The printed result as of the last batch."""
        return self._publisher.result.final(self._result.store())


def _stages(times: BatchTimes, publish: float) -> dict[str, Any]:
    """The seconds of a batch by stage, for `--metrics`."""
    return {
        "job_seconds": times.job, "feed_seconds": times.feed, "apply_seconds": times.apply,
        "between_seconds": times.between, "publish_seconds": publish, "fixed_seconds": times.fixed,
    }  # fmt: skip
