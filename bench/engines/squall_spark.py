"""The Spark executor on local[2], in one JVM for all runs of the process."""

from contextlib import ExitStack
from time import perf_counter
from typing import Any

import pyarrow as pa
import pyspark

from bench.data.tables import Stream
from bench.engines.shared_cluster import warm
from bench.engines.squall_local import Local, open_sources, plan_of
from bench.measure.batches import Watch
from squallpy.base.settings import Settings
from squallpy.runtime.checkpoint.state_folders import temporary_location
from squallpy.runtime.compiled.functions import compile_plan, printed_code
from squallpy.runtime.observers.report import BatchReport
from squallpy.runtime.result.result import BatchChanges
from squallpy.runtime.sources.input import Input
from squallpy.runtime.spark.executor import SparkExecutor

MASTER = "local[2]"


class Squall:
    """Batches end when their printed changes are on the driver; everything of Spark's between them counts.

    Triggers are compiled before the first batch of the run that warms up; later ones find them on the disk.
    """

    version = f"{Local.version} on Spark {pyspark.__version__}"
    facts: dict[str, Any] = {}  # noqa: RUF012

    def __init__(self) -> None:
        self._open = ExitStack()
        self._open.enter_context(warm(MASTER))

    def run(self, stream: Stream, watch: Watch) -> pa.Table | None:
        settings = Settings()
        input = Input(open_sources(stream), stream.replay)
        until, last = perf_counter(), -1

        def on_batch(batch: int, changes: BatchChanges, report: BatchReport) -> bool:
            nonlocal until, last
            assert changes[0] is not None
            before, until, last = until, perf_counter(), batch
            return watch.record(batch, until - before)

        with temporary_location(settings.local_dir, "bench", settings.snapshot_mb << 20) as place:
            plan = plan_of(stream, settings.partitions)
            code = printed_code(compile_plan(plan, "wait"))
            squall = SparkExecutor(plan, input, place, MASTER, settings.splits, with_changes=True, code=code)
            squall.run(on_batch)
            return squall.final()[0] if last + 1 == stream.batches else None

    def close(self) -> None:
        self._open.close()
