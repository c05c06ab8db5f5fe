"""The batch coordinator on Spark's driver: the grids of joiners, and the supersteps of matrices in blocks.

coordinator.prepare(7)          the driver's work before a batch
coordinator.directive()         →  its number of stages, and the directive for its tasks
coordinator.complete(stats)     its reports, from which the next batch is planned
coordinator.drop_hand_offs(8)   delete hand-offs that no batch needs when 8 are committed
coordinator.facts               driver state to be written with the commit, so that a crash loses none

Matrices in blocks come first: their supersteps are stages like those of a plan, in the same job. The last of them reads
the other inputs, and sends them to the first stage of the plan.
"""

import json
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

from squallpy.base.json_codec import from_json, to_json
from squallpy.base.trace import SILENT, Trace
from squallpy.physical.plan import Plan
from squallpy.runtime.batch.node import Input, Node, Sender, Stats, parted, unpack_parcels
from squallpy.runtime.checkpoint.folders import StateLocation
from squallpy.runtime.checkpoint.partition import StatePartition, Steps
from squallpy.runtime.joiners.batch_plan import GridPilot, course_of, pilot_of, rows_of, told
from squallpy.runtime.joiners.hand_off import Post
from squallpy.runtime.matrix.driver import Known, Spread
from squallpy.runtime.matrix.reader import reading_part
from squallpy.runtime.matrix.source import hand_over, handed, handed_over
from squallpy.runtime.spark.tasks import Feed, Reports
from squallpy.runtime.triggers.stage_executor import store_layout

SAMPLE = 4096  # rows of a relation that are read before the first batch
Parcels = list[tuple[int, bytes]]


class PlanFeed:
    """The first stage of a plan. It is pickled without its sender, which each worker creates once and caches."""

    def __init__(self, plan: Plan, input: Input, splits: int, trace: Trace = SILENT) -> None:
        self._plan, self._input, self._splits, self._trace = plan, input, splits, trace
        self._sender: Sender | None = None

    def __call__(
        self, batch: int, split: int, directive: str = "", only: Collection[int] | None = None
    ) -> Iterable[tuple[int, bytes]]:
        if self._sender is None:
            self._sender = Sender(self._plan, self._input, self._trace)
        return self._sender.messages(batch, split, self._splits, directive, only)


class PlanStages:
    """A plan's stages on partitions. It is pickled without the partitions, which each worker opens on first use."""

    def __init__(self, plan: Plan, place: StateLocation, trace: Trace = SILENT) -> None:
        self._plan, self._place, self._trace = plan, place, trace
        self._partitions: dict[int, tuple[StatePartition, Post]] = {}

    def __call__(
        self, batch: int, partition: int, stage: int, messages: list[bytes], directive: str = ""
    ) -> tuple[Parcels, Reports]:
        (state, post), course = self._open(partition), course_of(directive)
        if course and course.came and stage == 0:
            with self._trace("hand-offs"):
                messages = messages + post.fetch(batch - 1, partition, course.senders(partition))
        output = state.apply(batch, messages, stage)
        if stage < len(self._plan.stages) - 1:
            return unpack_parcels(output), _rebuild_report(partition, state)
        if course and course.sends(partition):
            output, hand_offs = parted(output)
            with self._trace("hand-offs"):
                post.leave(batch, partition, hand_offs)
        return [(partition, output)], _rebuild_report(partition, state)

    def _open(self, partition: int) -> tuple[StatePartition, Post]:
        """Open the state of a partition and its hand-off store."""
        if partition not in self._partitions:
            name, runs = f"partition-{partition}", Node(self._plan, partition, self._trace).runs
            state = self._place.partition(name, store_layout(self._plan), *runs, trace=self._trace)
            self._partitions[partition] = state, Post(self._place.durable, name)
        return self._partitions[partition]


def _rebuild_report(partition: int, state: StatePartition) -> Reports:
    return ({"partition": partition, **asdict(state.rebuilt)},) if state.rebuilt else ()


@dataclass(frozen=True, slots=True)
class SuperstepHeader:
    """The supersteps of a batch: the number of the first, counted over all batches, their count, and the plan's own
    directive."""

    first: int
    count: int
    rest: str


@dataclass(frozen=True, slots=True)
class CommandFeed:
    """The feed of a plan with matrices in blocks: the driver's commands, for all partitions."""

    durable: str
    partitions: int

    def __call__(
        self, batch: int, split: int, directive: str, only: Collection[int] | None = None
    ) -> Iterable[tuple[int, bytes]]:
        if split == 0:
            commands = handed(self.durable, batch)
            yield from ((partition, commands) for partition in (range(self.partitions) if only is None else only))


class SuperstepStages:
    """Supersteps on matrices in blocks, followed by the stages of a plan."""

    def __init__(self, plan: Plan, input: Input, spread: Spread, place: StateLocation, apply: PlanStages) -> None:
        self._plan, self._input, self._matrices, self._place = plan, input, spread.plan, place
        self._apply = apply
        self._partitions: dict[int, StatePartition] = {}

    def __call__(
        self, batch: int, partition: int, stage: int, messages: list[bytes], directive: str
    ) -> tuple[Parcels, Reports]:
        header = from_json(SuperstepHeader, json.loads(directive))
        if stage >= header.count:
            return self._apply(
                batch, partition, stage - header.count, messages, *([header.rest] if header.rest else [])
            )
        if partition not in self._partitions:
            part = reading_part(self._plan, self._input, self._matrices, partition)
            self._partitions[partition] = self._place.partition(f"matrices-{partition}", part.layout, *part.runs)
        state = self._partitions[partition]
        output = state.apply(batch, messages, stage, Steps(header.first, header.count))
        return unpack_parcels(output), _rebuild_report(partition, state)


def _sample_key_counts(plan: Plan, input: Input, first: Mapping[str, int]) -> Mapping[str, Mapping[str, int]] | None:
    """Count, in a sample of the first batch, the keys that a join compares, if any may be heavy."""
    if input.maker or plan.grid or not plan.on_grid:
        return None
    rows = max([1, *first.values()])  # NB: it may be empty
    return Sender(plan, input).often(0, 0, -(-rows // SAMPLE))


class BatchCoordinator:
    """The planner of each batch, from the reports of those before.

    `facts` are those of the last commit; `first` counts the rows of each relation in the first batch.
    """

    def __init__(
        self,
        plan: Plan,
        input: Input,
        place: StateLocation,
        facts: Mapping[str, Any] | None,
        first: Mapping[str, int] | None = None,
    ) -> None:
        facts = facts or {}
        self._plan, self._place = plan, place
        often = _sample_key_counts(plan, input, first) if first and not facts else None
        self.pilot = pilot_of(plan, facts.get("joins"), first, often)
        self._input, self._before = handed_over(input, place)
        self._spread = input.maker if isinstance(input.maker, Spread) else None
        if self._spread and "matrices" in facts:
            self._spread.known = from_json(Known, facts["matrices"])
        self._supersteps = 0
        self._batch_pilot = self.pilot  # with the course of the running batch
        self._has_old_hand_offs = True  # left by the run before

    def set_cores(self, cores: int) -> None:
        """Set the number of cores at which tasks run."""
        if isinstance(self.pilot, GridPilot):
            self.pilot = replace(self.pilot, cores=cores)

    @property
    def has_commands(self) -> bool:
        """True if partitions begin with commands and read their input later."""
        return self._spread is not None

    def stages(self, splits: int, trace: Trace = SILENT) -> "tuple[Feed, Callable[..., tuple[Parcels, Reports]]]":
        """Create the callables that feed and apply a batch."""
        apply = PlanStages(self._plan, self._place, trace)
        if self._spread is None:
            return PlanFeed(self._plan, self._input, splits, trace), apply
        stages = SuperstepStages(self._plan, self._input, self._spread, self._place, apply)
        return CommandFeed(self._place.durable, self._plan.partitions), stages

    def prepare(self, batch: int) -> None:
        """Prepare a batch; called again if the batch is repeated."""
        rows = {name: stop - start for name, (start, stop) in self._input.shares(batch, 0, 1).items()}
        self._batch_pilot = self.pilot and self.pilot.before(rows_of(self._plan, rows))
        if self._before:
            self._before(batch)
        if self._spread:
            commands, self._supersteps = self._spread.orders(batch, self._plan_directive()[1])
            hand_over(self._place, batch, commands.packed())

    def directive(self) -> tuple[int, str]:
        """Return the number of stages of the batch, and its directive."""
        count, rest = self._plan_directive()
        if self._spread is None:
            return count, rest
        header = SuperstepHeader(self._spread.known.steps, self._supersteps, rest)
        return header.count + count, json.dumps(to_json(header))

    def _plan_directive(self) -> tuple[int, str]:
        """Return the number of stages of the plan alone, and their directive."""
        return len(self._plan.stages), told(self._batch_pilot)

    def complete(self, stats: Stats) -> Stats:
        """Plan the next batch from the reports of this one, and add the figures of migrations to its statistics."""
        if self._spread:
            self._spread.after(stats["matrices"])
        if self._batch_pilot:
            stats, self.pilot = stats | self._batch_pilot.figures(stats), self._batch_pilot.after(stats)
        return stats

    def drop_hand_offs(self, done: int) -> None:
        """Drop the hand-offs of batches before `done`, the number of batches committed."""
        if self._batch_pilot and (self._batch_pilot.course.came or self._has_old_hand_offs):
            Post(self._place.durable).drop(done)
            self._has_old_hand_offs = False

    @property
    def facts(self) -> dict[str, Any] | None:
        """Driver state to be written with the commit, so that the next batch can be planned after a crash."""
        facts = {"joins": to_json(self.pilot)} if self.pilot else {}
        return facts | ({"matrices": to_json(self._spread.known)} if self._spread else {}) or None
