"""The Spark executor: the plan's partitions on workers, the result on the driver.

feed stage    Sender.messages      read, pre-aggregate, route          (any worker)
apply stages  Node on partition p  triggers over mapped state          (any worker; the state is in shared files)
driver        Publisher            merge ΔQ into Q, print the changes
"""

import threading
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Any

import pyarrow as pa

from squallpy.base.timing import SILENT, Trace
from squallpy.codegen.program import PlanCode
from squallpy.physical.plan import Plan, Update
from squallpy.runtime.batch.micro_batch import Publisher, unpack_changes
from squallpy.runtime.checkpoint.partition_report import PartitionReport, checkpoint_figures
from squallpy.runtime.checkpoint.state_folders import Committed, StateLocation
from squallpy.runtime.formats.file_rows import READ
from squallpy.runtime.observers.report import BatchReport
from squallpy.runtime.result.result import NO_TESTS, BatchChanges, Changes, Equal, Wanted, result_layout
from squallpy.runtime.result.result_scan import RowScan
from squallpy.runtime.sinks.part_writer import PartWriter
from squallpy.runtime.sinks.written_changes import WrittenChanges, WrittenPart
from squallpy.runtime.sources.input import Input
from squallpy.runtime.spark.coordinator import BatchCoordinator
from squallpy.runtime.spark.micro_batch_loop import BatchTimes, StreamJob, run
from squallpy.runtime.spark.preferred_locations import evict_local_state
from squallpy.runtime.spark.spark_session import Cluster, start
from squallpy.runtime.spark.stream_source import started
from squallpy.runtime.spark.timeline import timeline
from squallpy.runtime.spark.worker_tasks import Reports

OnBatch = Callable[[int, BatchChanges, BatchReport], bool]

TOGETHER = 512  # batches per tick of Spark's clock, which takes as long as a small batch
SMALL = 150_000  # rows of a batch, with the tables of the first one, that are cheaper to read twice than to exchange


class SparkExecutor:
    """The executor of a plan over its input on Spark, from where the checkpoint stands."""

    def __init__(
        self,
        plan: Plan,
        input: Input,
        location: StateLocation,
        master: str,
        splits: int,
        spark_settings: Mapping[str, str] | None = None,
        with_changes: Wanted = True,
        trace: Trace = SILENT,
        name: str = "",
        cluster: Cluster | None = None,
        code: PlanCode | None = None,
    ) -> None:
        self._cluster, self._code = cluster, code
        self._plan, self._location, self._trace = plan, location, trace
        self._input, self._master, self._splits, self._settings = input, master, splits, spark_settings
        self._name = name
        self._publisher = Publisher(plan, with_changes, trace)
        self._result = location.partition("result", result_layout(plan), self._publisher.run, trace=trace)
        self.schemas = self._publisher.results.schemas
        self._counted: dict[str, dict[int | str, tuple[int, int]]] = {}  # records and bytes by pool and partition
        self.writers: Mapping[int, PartWriter] = {}
        """The writers of queries, by their places, of which partitions print the changes; set before the run."""

    def run(
        self, on_batch: OnBatch, begin: Callable[[], None] = lambda: None, stop: threading.Event | None = None
    ) -> None:
        """Apply all batches that are not committed, or until `on_batch` says stop.

        `begin` is called before the first, when Spark is up.
        """
        committed = Committed(self._location.durable)
        first = self._input.row_counts(self._input.step(self._input.batches.example))
        coordinator = BatchCoordinator(self._plan, self._input, self._location, committed.facts, first)

        def prepare(batch: int) -> None:
            begin()
            coordinator.prepare(batch)

        def publish(batch: int, outputs: list[bytes], times: BatchTimes) -> bool:
            start = perf_counter()
            with self._trace("publish"):
                printed = self._result.apply(batch, [b"first" if batch == 0 else b"", *outputs])
                own, stats = unpack_changes(printed)
            committed.read_sums.add(stats.pop(READ, {}))
            stats = coordinator.complete(stats)
            profile = {"profile": timeline(times) | self._trace.take_seconds()} if self._trace.on else {}
            reports = [each for each in times.reports if isinstance(each, PartitionReport)]
            for each in reports:
                for pool, *used in each.counted:
                    self._counted.setdefault(pool, {})[each.partition] = (used[0], used[1])
            stats |= checkpoint_figures([*reports, self._result.report("result")]) | {"retries": times.retries}
            stats |= _stage_seconds(times, perf_counter() - start) | profile
            report = BatchReport.of(stats)
            go_on = on_batch(batch, self._changes(own, times.reports), report)
            committed.commit(batch + 1, coordinator.facts)
            self._input.commit(self._input.step(batch), report.open_rows)
            coordinator.drop_hand_offs(batch + 1)
            return go_on

        # NB: the next run does not use Spark's record of the clock's ticks
        with (
            nullcontext(self._cluster) if self._cluster else start(self._master, self._settings) as cluster,
            started(self._input, cluster.session, self._name),
            TemporaryDirectory(prefix="squallpy-") as ticks,
        ):
            coordinator.set_cores(cluster.session.sparkContext.defaultParallelism)
            reads = coordinator.skips_feed(is_small=self._input.is_counted and sum(first.values()) <= SMALL)
            is_here = (cluster.session.sparkContext.master or "").startswith("local")
            splits = 1 if reads and is_here and not self._plan.matrices else self._splits
            feed, stages = coordinator.stages(splits, self._trace, self._code)
            stages.writers = {query: writer.on_hosts(is_here) for query, writer in self.writers.items()}
            job = StreamJob(
                self._input.batches.batches, splits, self._plan.partitions, feed, stages, ticks,
                self._plan.stages_of_partitions, committed.batches,
                coordinator.directives, self._trace, prepare, TOGETHER,
                input=self._input, name=self._name, titles=stage_titles(self._plan),
                skips_feed=reads,
            )  # fmt: skip
            run(cluster.session, job, publish, stop)
            evict_local_state(cluster.session, self._location)

    def _changes(self, own: tuple[Changes | None, ...], reports: Reports) -> BatchChanges:
        """Add the changes that partitions have printed to those of the driver's own results."""
        if not self.writers:
            return own
        written = [each for each in reports if isinstance(each, WrittenPart)]
        return tuple(
            WrittenChanges([part for part in written if part.query == query]) if query in self.writers else changes
            for query, changes in enumerate(own)
        )

    def final(self) -> tuple[pa.Table, ...]:
        """Return the printed result of each query as of the last batch."""
        return self._publisher.results.final(self._result.store())

    def result(self, query: int, equal: Equal = NO_TESTS) -> pa.Table:
        """Return the printed result of one query as of the last batch (`Results.table`)."""
        return self._publisher.results.table(self._result.store(), query, equal)

    def scan(self, query: int, equal: Equal = NO_TESTS) -> RowScan:
        """Begin to list the rows of one query as of the last batch (`Results.scan`)."""
        return self._publisher.results.scan(self._result.store(), query, equal)

    def end_scans(self) -> None:
        """End scans, whose rows cannot be had any more."""
        self._publisher.results.end_scans()

    @property
    def usage(self) -> dict[str, dict[str, int]]:
        """Records and bytes by pool of the driver, and of those that count or keep the rows of relations."""
        counted = {
            pool: {"records": sum(records for records, _ in parts.values()), "bytes": sum(b for _, b in parts.values())}
            for pool, parts in self._counted.items()
        }
        return counted | self._result.store().usage()


def stage_titles(plan: Plan) -> tuple[str, ...]:
    """Name the stages of a plan after what they read and the views that they change."""
    read = dict.fromkeys(feed.relation.source.name for feed in plan.sources)
    targets = ([step.target for step in stage.steps if isinstance(step, Update)] for stage in plan.stages)
    views = (", ".join(dict.fromkeys(names)) or "nothing" for names in targets)
    return f"read {', '.join(read)}", *(f"change {names}" for names in views)


def _stage_seconds(times: BatchTimes, publish: float) -> dict[str, Any]:
    """Report the seconds of a batch by stage, for `--metrics`."""
    return {
        "job_seconds": times.job, "feed_seconds": times.feed, "apply_seconds": times.apply,
        "between_seconds": times.between, "publish_seconds": publish, "fixed_seconds": times.fixed,
    }  # fmt: skip
