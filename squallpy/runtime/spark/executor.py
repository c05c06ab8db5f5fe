"""The Spark executor: the same plan, its partitions on workers, the result on the driver.

feed stage    Sender.messages      read, pre-aggregate, route          (any worker)
apply stages  Node on partition p  triggers over mapped state          (any worker; the state is in shared files)
driver        Publisher            merge ΔQ into Q, print what changed
"""

import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Any

import pyarrow as pa

from squallpy.base.trace import SILENT, Trace
from squallpy.physical.joins.saved import to_json
from squallpy.physical.plan import Plan
from squallpy.runtime.course import course_of, pilot_of, told
from squallpy.runtime.matrix.source import handed_over
from squallpy.runtime.pipeline import Input, Node, Publisher, Sender, Stats, unpack_changes, unpack_parcels
from squallpy.runtime.result import Changes, result_layout
from squallpy.runtime.spark.cluster import start
from squallpy.runtime.spark.placement import forget
from squallpy.runtime.spark.stream import BatchTimes, StreamJob, run
from squallpy.runtime.spark.tasks import Told
from squallpy.runtime.spark.timeline import timeline
from squallpy.runtime.state.partition import StatePartition, Steps
from squallpy.runtime.state.place import Committed, Place
from squallpy.runtime.triggers import store_layout

OnBatch = Callable[[int, Changes | None, Stats], bool]


class Feed:
    """Stage 1 of a plan. Pickled without its sender, which a worker makes once and keeps."""

    def __init__(self, plan: Plan, input: Input, splits: int, trace: Trace = SILENT) -> None:
        self._plan, self._input, self._splits, self._trace = plan, input, splits, trace
        self._sender: Sender | None = None

    def __call__(self, batch: int, split: int, course: str = "") -> Iterable[tuple[int, bytes]]:
        if self._sender is None:
            self._sender = Sender(self._plan, self._input, self._trace)
        return self._sender.messages(batch, split, self._splits, course)


class Apply:
    """A plan on its partitions. Pickled without those, which a worker opens as they come to it."""

    def __init__(self, plan: Plan, place: Place, trace: Trace = SILENT) -> None:
        self._plan, self._place, self._trace = plan, place, trace
        self._partitions: dict[int, StatePartition] = {}

    def __call__(
        self, batch: int, partition: int, stage: int, messages: list[bytes], course: str = ""
    ) -> tuple[list[tuple[int, bytes]], Told]:
        if partition not in self._partitions:
            runs, layout = Node(self._plan, partition, self._trace).runs, store_layout(self._plan)
            made = self._place.partition(f"partition-{partition}", layout, *runs, trace=self._trace)
            self._partitions[partition] = made
        state, goes = self._partitions[partition], course_of(course)
        steps = Steps(goes.step, goes.stages) if goes else None
        output = state.apply(batch, messages, stage, steps)
        told = ({"partition": partition, **asdict(state.rebuilt)},) if state.rebuilt else ()
        is_last = stage == (goes.stages if goes else len(self._plan.stages)) - 1
        return [(partition, output)] if is_last else unpack_parcels(output), told


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
        self._input, self._before = handed_over(input, place)
        self._master, self._splits, self._settings = master, splits, spark_settings
        self._publisher = Publisher(plan, wanted, trace)
        self._result = place.partition("result", result_layout(plan), self._publisher.run, trace=trace)
        self.schema = self._publisher.result.schema

    def run(self, on_batch: OnBatch, stop: threading.Event | None = None) -> None:
        """Apply all batches that the checkpoint does not call done, or until `on_batch` says stop."""
        committed = Committed(self._place.durable)
        first = {name: stop - start for name, (start, stop) in self._input.shares(0, 0, 1).items()}
        pilot = pilot_of(self._plan, committed.facts, first)

        def publish(batch: int, outputs: list[bytes], times: BatchTimes) -> bool:
            start = perf_counter()
            with self._trace("publish"):
                printed = self._result.apply(batch, [b"first" if batch == 0 else b"", *outputs])
                changes, stats = unpack_changes(printed)
            nonlocal pilot
            if pilot:
                stats, pilot = stats | pilot.figures(stats), pilot.after(stats)
            rebuilt = {"rebuilt": list(times.told)} if times.told else {}
            profile = {"profile": timeline(times) | self._trace.taken()} if self._trace.on else {}
            go_on = on_batch(batch, changes, stats | _stages(times, perf_counter() - start) | rebuilt | profile)
            committed.commit(batch + 1, pilot and to_json(pilot))
            return go_on

        # NB: what Spark writes down of a clock's ticks is of no use to the next run
        with start(self._master, self._settings) as cluster, TemporaryDirectory(prefix="squallpy-") as ticks:
            job = StreamJob(
                self._input.replay.batches, self._splits, self._plan.partitions,
                Feed(self._plan, self._input, self._splits, self._trace), Apply(self._plan, self._place, self._trace),
                ticks, len(self._plan.stages), committed.batches, (lambda: told(pilot)) if pilot else None, self._trace,
                self._before,
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


__all__ = ["Apply", "Feed", "SparkExecutor"]
