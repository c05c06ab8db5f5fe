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
from collections.abc import Collection, Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

from squallpy.base.json_codec import from_json, to_json
from squallpy.base.trace import SILENT, Trace
from squallpy.physical.plan import Plan
from squallpy.runtime.batch.node import Input, Node, Sender, Stats, parted, unpack_parcels
from squallpy.runtime.checkpoint.folders import Place
from squallpy.runtime.checkpoint.partition import StatePartition, Steps
from squallpy.runtime.joiners.batch_plan import decode_plan, encode_plan, hands_off, senders_to
from squallpy.runtime.joiners.grid_policy import GridPolicy
from squallpy.runtime.joiners.hand_off import Post
from squallpy.runtime.joiners.migration_policy import open_policy, rows_by_side
from squallpy.runtime.matrix.blocks.partition import BlockPartition
from squallpy.runtime.matrix.stage import decode_cells, hand_over, open_matrices, read_handed
from squallpy.runtime.spark.tasks import Told
from squallpy.runtime.triggers.stage_executor import store_layout

SAMPLE = 4096  # rows of a relation that are looked at before the first batch
Parcels = list[tuple[int, bytes]]


class Read:
    """The stage that reads. Pickled without its sender, which a worker makes once and keeps."""

    def __init__(self, plan: Plan, input: Input, durable: str, splits: int, trace: Trace = SILENT) -> None:
        self._plan, self._input, self._durable, self._splits, self._trace = plan, input, durable, splits, trace
        self._sender: Sender | None = None

    def __call__(
        self, batch: int, split: int, course: str = "", only: Collection[int] | None = None
    ) -> Iterable[tuple[int, bytes]]:
        """Read a split, or send the driver's commands to all partitions, which read when their supersteps are done."""
        matrices, computed = self._plan.matrices, None
        if matrices and matrices.parts:
            targets = range(self._plan.partitions) if only is None else only
            return [] if split else [(target, read_handed(self._durable, batch)) for target in targets]
        if matrices:
            computed = decode_cells(matrices, read_handed(self._durable, batch)).split(split, self._splits)
        if self._sender is None:
            self._sender = Sender(self._plan, self._input, self._trace)
        return self._sender.messages(batch, split, self._splits, course, only, computed)


@dataclass(frozen=True, slots=True)
class Supersteps:
    """The supersteps on blocks with which a batch begins, and the directive for the stages behind them.

    Args:
        first: The number of the first, counted over all batches.
    """

    first: int
    count: int
    rest: str


class Apply:
    """A plan on its partitions. Pickled without those, which a worker opens as they come to it."""

    def __init__(self, plan: Plan, input: Input, place: Place, trace: Trace = SILENT) -> None:
        self._plan, self._input, self._place, self._trace = plan, input, place, trace
        self._partitions: dict[int, tuple[StatePartition, Post]] = {}
        self._blocks: dict[int, StatePartition] = {}

    def __call__(
        self, batch: int, partition: int, stage: int, messages: list[bytes], course: str = ""
    ) -> tuple[Parcels, Told]:
        """Run a stage of a batch on a partition: supersteps on its blocks come before the stages of the plan."""
        if self._plan.matrices and self._plan.matrices.parts:
            begun = from_json(Supersteps, json.loads(course))
            if stage < begun.count:
                blocks = self._blocks_at(partition)
                output = blocks.apply(batch, messages, stage, Steps(begun.first, begun.count))
                return unpack_parcels(output), _rebuilt(partition, blocks)
            stage, course = stage - begun.count, begun.rest
        (state, post), plan = self._at(partition), decode_plan(course)
        if (senders := senders_to(plan, partition)) and stage == 0:
            with self._trace("letters"):
                messages = messages + post.fetch(batch - 1, partition, senders)
        output = state.apply(batch, messages, stage)
        if stage < len(self._plan.stages) - 1:
            return unpack_parcels(output), _rebuilt(partition, state)
        if hands_off(plan, partition):
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

    def _blocks_at(self, partition: int) -> StatePartition:
        """Open the blocks of a partition."""
        if partition not in self._blocks:
            part = BlockPartition(self._plan, self._input, partition)
            self._blocks[partition] = self._place.partition(f"matrices-{partition}", part.layout, *part.runs)
        return self._blocks[partition]


def _rebuilt(partition: int, state: StatePartition) -> Told:
    return ({"partition": partition, **asdict(state.rebuilt)},) if state.rebuilt else ()


def _often(plan: Plan, input: Input, first: Mapping[str, int]) -> Mapping[str, Mapping[str, int]] | None:
    """What a sample of the first batch tells of keys that a join compares, if any may be heavy."""
    if plan.matrices or plan.grid or not plan.on_grid:
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
        self.policy = open_policy(plan, facts.get("joins"), first, often)
        self._input = input
        self._matrices = open_matrices(plan, input, place, facts.get("matrices"))
        self._planned = self.policy  # with the plan of the batch
        self._began = True  # what the run before has left is still there

    def at(self, cores: int) -> None:
        """Tasks will run at so many cores."""
        if isinstance(self.policy, GridPolicy):
            self.policy = replace(self.policy, cores=cores)

    def skips_feed(self, is_small: bool) -> bool:
        """True if tasks of the first stage read for themselves: the driver's commands, or batches that are small."""
        matrices = self._plan.matrices
        return matrices.parts > 0 if matrices else is_small

    def stages(self, splits: int, trace: Trace = SILENT) -> tuple[Read, Apply]:
        """Return what reads and what applies."""
        read = Read(self._plan, self._input, self._place.durable, splits, trace)
        return read, Apply(self._plan, self._input, self._place, trace)

    def before(self, batch: int) -> None:
        """What there is to be done here before a batch; again, if the batch is."""
        rows = {name: stop - start for name, (start, stop) in self._input.shares(batch, 0, 1).items()}
        self._planned = self.policy and self.policy.before(rows_by_side(self._plan, rows))
        if self._matrices:
            hand_over(self._place.durable, batch, self._matrices.begin(batch, self._encoded()))

    def course(self) -> tuple[int, str]:
        """Return how many stages the batch has, and the directive for its tasks."""
        count, directive = len(self._plan.stages), self._encoded()
        if self._matrices is None or not self._plan.matrices or not self._plan.matrices.parts:
            return count, directive
        begun = Supersteps(*self._matrices.supersteps, directive)
        return begun.count + count, json.dumps(to_json(begun))

    def _encoded(self) -> str:
        """Encode the plan of the batch for tasks."""
        return encode_plan(self._planned.plan if self._planned else None)

    def after(self, stats: Stats) -> Stats:
        """What was told of a batch, and what else is to be told; now for the next one."""
        if self._matrices:
            self._matrices.end(stats["matrices"])
        if self._planned:
            stats, self.policy = stats | self._planned.figures(stats), self._planned.after(stats)
        return stats

    def drop(self, done: int) -> None:
        """So many batches are committed: forget what those before the next were begun with."""
        if self._planned and (self._planned.plan.arriving or self._began):
            Post(self._place.durable).drop(done)
            self._began = False

    @property
    def facts(self) -> dict[str, Any] | None:
        """What has to be known of the batches so far."""
        facts = {"joins": to_json(self.policy)} if self.policy else {}
        matrices = self._matrices.facts if self._matrices else None
        return facts | ({"matrices": matrices} if matrices else {}) or None
