"""The course of each batch on Spark: the grids that joiners have, and what is done to matrices in blocks.

helm.before(7)          what the driver does before a batch
helm.course()           →  how many stages it has, and what its tasks are told
helm.after(stats)       what was told of it; the next batch follows
helm.drop(8)            what no batch needs when so many are done
helm.facts              what has to be known when a batch begins, for the commit of the one before

Matrices in blocks come first: their supersteps are stages like those of a plan, in the same job. The last of them reads
what else there is, and sends it to the first stage of the plan.
"""

import json
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

from squallpy.base.json_codec import from_json, to_json
from squallpy.base.trace import SILENT, Trace
from squallpy.physical.plan import Plan
from squallpy.runtime.batch.node import Input, Node, Sender, Stats, parted, unpack_parcels
from squallpy.runtime.checkpoint.folders import Place
from squallpy.runtime.checkpoint.partition import StatePartition, Steps
from squallpy.runtime.joiners.batch_plan import GridPilot, course_of, pilot_of, rows_of, told
from squallpy.runtime.joiners.hand_off import Post
from squallpy.runtime.matrix.driver import Known, Spread
from squallpy.runtime.matrix.reader import reading_part
from squallpy.runtime.matrix.source import hand_over, handed, handed_over
from squallpy.runtime.spark.tasks import Feed, Told
from squallpy.runtime.triggers.stage_executor import store_layout

SAMPLE = 4096  # rows of a relation that are looked at before the first batch
Parcels = list[tuple[int, bytes]]


class Read:
    """The first stage of a plan. Pickled without its sender, which a worker makes once and keeps."""

    def __init__(self, plan: Plan, input: Input, splits: int, trace: Trace = SILENT) -> None:
        self._plan, self._input, self._splits, self._trace = plan, input, splits, trace
        self._sender: Sender | None = None

    def __call__(
        self, batch: int, split: int, course: str = "", only: Collection[int] | None = None
    ) -> Iterable[tuple[int, bytes]]:
        if self._sender is None:
            self._sender = Sender(self._plan, self._input, self._trace)
        return self._sender.messages(batch, split, self._splits, course, only)


class Apply:
    """A plan on its partitions. Pickled without those, which a worker opens as they come to it."""

    def __init__(self, plan: Plan, place: Place, trace: Trace = SILENT) -> None:
        self._plan, self._place, self._trace = plan, place, trace
        self._partitions: dict[int, tuple[StatePartition, Post]] = {}

    def __call__(
        self, batch: int, partition: int, stage: int, messages: list[bytes], course: str = ""
    ) -> tuple[Parcels, Told]:
        (state, post), goes = self._at(partition), course_of(course)
        if goes and goes.came and stage == 0:
            with self._trace("letters"):
                messages = messages + post.fetch(batch - 1, partition, goes.senders(partition))
        output = state.apply(batch, messages, stage)
        if stage < len(self._plan.stages) - 1:
            return unpack_parcels(output), _rebuilt(partition, state)
        if goes and goes.sends(partition):
            output, letters = parted(output)
            with self._trace("letters"):
                post.leave(batch, partition, letters)
        return [(partition, output)], _rebuilt(partition, state)

    def _at(self, partition: int) -> tuple[StatePartition, Post]:
        """The state of a partition, and the post as it uses it."""
        if partition not in self._partitions:
            name, runs = f"partition-{partition}", Node(self._plan, partition, self._trace).runs
            state = self._place.partition(name, store_layout(self._plan), *runs, trace=self._trace)
            self._partitions[partition] = state, Post(self._place.durable, name)
        return self._partitions[partition]


def _rebuilt(partition: int, state: StatePartition) -> Told:
    return ({"partition": partition, **asdict(state.rebuilt)},) if state.rebuilt else ()


@dataclass(frozen=True, slots=True)
class Lead:
    """The supersteps of a batch: the number of the first, of all that there ever were, and how many; then `rest`, the
    course of the stages behind them."""

    first: int
    count: int
    rest: str


@dataclass(frozen=True, slots=True)
class Orderly:
    """Instead of reading: the driver's orders, for all partitions."""

    durable: str
    partitions: int

    def __call__(
        self, batch: int, split: int, course: str, only: Collection[int] | None = None
    ) -> Iterable[tuple[int, bytes]]:
        if split == 0:
            orders = handed(self.durable, batch)
            yield from ((partition, orders) for partition in (range(self.partitions) if only is None else only))


class Led:
    """Supersteps on matrices in blocks, then the stages of a plan."""

    def __init__(self, plan: Plan, input: Input, spread: Spread, place: Place, apply: Apply) -> None:
        self._plan, self._input, self._matrices, self._place = plan, input, spread.plan, place
        self._apply = apply
        self._partitions: dict[int, StatePartition] = {}

    def __call__(
        self, batch: int, partition: int, stage: int, messages: list[bytes], course: str
    ) -> tuple[Parcels, Told]:
        lead = from_json(Lead, json.loads(course))
        if stage >= lead.count:
            return self._apply(batch, partition, stage - lead.count, messages, *([lead.rest] if lead.rest else []))
        if partition not in self._partitions:
            part = reading_part(self._plan, self._input, self._matrices, partition)
            self._partitions[partition] = self._place.partition(f"matrices-{partition}", part.layout, *part.runs)
        state = self._partitions[partition]
        output = state.apply(batch, messages, stage, Steps(lead.first, lead.count))
        return unpack_parcels(output), _rebuilt(partition, state)


def _often(plan: Plan, input: Input, first: Mapping[str, int]) -> Mapping[str, Mapping[str, int]] | None:
    """What a sample of the first batch tells of keys that a join compares, if any may be heavy."""
    if input.maker or plan.grid or not plan.on_grid:
        return None
    rows = max([1, *first.values()])  # NB: it may bring nothing
    return Sender(plan, input).often(0, 0, -(-rows // SAMPLE))


class Helm:
    """Decides on each batch before it, from what was told of those before. `facts` are those of the last commit;
    `first`: how many rows of each relation the first batch brings."""

    def __init__(
        self,
        plan: Plan,
        input: Input,
        place: Place,
        facts: Mapping[str, Any] | None,
        first: Mapping[str, int] | None = None,
    ) -> None:
        facts = facts or {}
        self._plan, self._place = plan, place
        often = _often(plan, input, first) if first and not facts else None
        self.pilot = pilot_of(plan, facts.get("joins"), first, often)
        self._input, self._before = handed_over(input, place)
        self._spread = input.maker if isinstance(input.maker, Spread) else None
        if self._spread and "matrices" in facts:
            self._spread.known = from_json(Known, facts["matrices"])
        self._supersteps = 0
        self._steered = self.pilot  # on the course of the batch
        self._began = True  # what the run before has left is still there

    def at(self, cores: int) -> None:
        """Tasks will run at so many cores."""
        if isinstance(self.pilot, GridPilot):
            self.pilot = replace(self.pilot, cores=cores)

    @property
    def orders(self) -> bool:
        """Do partitions begin with what they are told, and read later?"""
        return self._spread is not None

    def stages(self, splits: int, trace: Trace = SILENT) -> "tuple[Feed, Callable[..., tuple[Parcels, Told]]]":
        """What reads and what applies."""
        apply = Apply(self._plan, self._place, trace)
        if self._spread is None:
            return Read(self._plan, self._input, splits, trace), apply
        led = Led(self._plan, self._input, self._spread, self._place, apply)
        return Orderly(self._place.durable, self._plan.partitions), led

    def before(self, batch: int) -> None:
        """What there is to be done here before a batch; again, if the batch is."""
        rows = {name: stop - start for name, (start, stop) in self._input.shares(batch, 0, 1).items()}
        self._steered = self.pilot and self.pilot.before(rows_of(self._plan, rows))
        if self._before:
            self._before(batch)
        if self._spread:
            orders, self._supersteps = self._spread.orders(batch, self._behind()[1])
            hand_over(self._place, batch, orders.packed())

    def course(self) -> tuple[int, str]:
        """How many stages the batch has, and how it goes."""
        count, rest = self._behind()
        if self._spread is None:
            return count, rest
        lead = Lead(self._spread.known.steps, self._supersteps, rest)
        return lead.count + count, json.dumps(to_json(lead))

    def _behind(self) -> tuple[int, str]:
        """The same of the stages of the plan."""
        return len(self._plan.stages), told(self._steered)

    def after(self, stats: Stats) -> Stats:
        """What was told of a batch, and what else is to be told; now for the next one."""
        if self._spread:
            self._spread.after(stats["matrices"])
        if self._steered:
            stats, self.pilot = stats | self._steered.figures(stats), self._steered.after(stats)
        return stats

    def drop(self, done: int) -> None:
        """So many batches are committed: forget what those before the next were begun with."""
        if self._steered and (self._steered.course.came or self._began):
            Post(self._place.durable).drop(done)
            self._began = False

    @property
    def facts(self) -> dict[str, Any] | None:
        """What has to be known of the batches so far."""
        facts = {"joins": to_json(self.pilot)} if self.pilot else {}
        return facts | ({"matrices": to_json(self._spread.known)} if self._spread else {}) or None
