"""Places where a session's program runs: this process, or Spark."""

import tempfile
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, Protocol

from squallpy.base.settings import Settings
from squallpy.codegen.program import PlanCode
from squallpy.live.live_executor import LiveExecutor
from squallpy.physical.plan import Plan
from squallpy.runtime.checkpoint.state_folders import StateLocation
from squallpy.runtime.compiled.functions import CompiledPlan, compile_plan, printed_code
from squallpy.runtime.local_executor import DurableLocalExecutor
from squallpy.runtime.sources.input import Input

if TYPE_CHECKING:  # NB: PySpark is imported by sessions on Spark only
    from squallpy.runtime.spark.spark_session import Cluster


Code = CompiledPlan | PlanCode | None
"""The compiled triggers of a plan, or what compiles them beside batches; None: they are interpreted."""


class Backend(Protocol):
    """A place that runs programs."""

    def partitions(self, settings: Settings) -> int:
        """Return the number of partitions of a program there."""
        ...

    @property
    def in_memory(self) -> bool:
        """True if state may be in memory alone, of a session without a checkpoint."""
        ...

    def compile(self, plan: Plan, settings: Settings) -> Code:
        """Compile the triggers of a plan as the setting `compile` has it."""
        ...

    def open(self, plan: Plan, input: Input, location: StateLocation, settings: Settings, code: Code) -> LiveExecutor:
        """Open an executor where the state of a location stands."""
        ...

    def close(self) -> None:
        """End what has been started."""
        ...


class LocalBackend:
    """The process of the session."""

    in_memory = True

    def partitions(self, settings: Settings) -> int:
        return 1

    def compile(self, plan: Plan, settings: Settings) -> Code:
        return compile_plan(plan, settings.compile)

    def open(self, plan: Plan, input: Input, location: StateLocation, settings: Settings, code: Code) -> LiveExecutor:
        return DurableLocalExecutor(plan, input, location, compiled=code)

    def close(self) -> None:
        """Do nothing."""


class SparkBackend:
    """Spark, started when the first batch needs it, or a session of Spark's that is there.

    Args:
        spark: A running `SparkSession`; None: one of our own with a `master`.
    """

    in_memory = False

    def __init__(self, master: str, spark: Any = None) -> None:
        self._master, self._spark, self._opened = master, spark, ExitStack()
        self._cluster: Cluster | None = None

    def partitions(self, settings: Settings) -> int:
        return settings.partitions

    def compile(self, plan: Plan, settings: Settings) -> Code:
        return compile_plan(plan, settings.compile)

    def open(self, plan: Plan, input: Input, location: StateLocation, settings: Settings, code: Code) -> LiveExecutor:
        from squallpy.runtime.spark.stepped_executor import SteppedSparkExecutor

        printed = printed_code(code)
        return SteppedSparkExecutor(plan, input, location, self._running(), settings.splits, "session", printed)

    def _running(self) -> "Cluster":
        from squallpy.runtime.spark.spark_session import adopt, start

        if self._cluster is None:
            self._cluster = self._opened.enter_context(adopt(self._spark) if self._spark else start(self._master))
        return self._cluster

    def close(self) -> None:
        self._opened.close()


def temporary_checkpoint(opened: ExitStack) -> str:
    """Make a folder for the state of a session that is not resumed, which goes when the session ends."""
    return opened.enter_context(tempfile.TemporaryDirectory(prefix="squallpy-session-"))
