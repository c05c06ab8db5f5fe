"""The operator as asynchronous tasks (paper §3.2, §4.3), and the check that it is right (Definition 4.2).

    source → reshufflers → joiners ⇄ joiners → controllers → reshufflers

A source deals tuples to reshufflers; these route them, and count them for the controllers, one for each group of
joiners; joiners run the protocol. The join is the cross product, for the operator looks at no value: whatever
predicate a pair satisfies or not, it is to come out once. Seen from outside:

- no pair ever comes out twice; when a migration is over, each pair of tuples that have arrived everywhere has come out;
- reshufflers, joiners and controllers of a group are in at most two epochs;
- when all is quiet, each joiner holds exactly the tuples of its row and of its column.
"""

from dataclasses import field, replace
from typing import Any

import numpy as np

from squallpy.base.records import dataclass
from squallpy.physical.joins.grid import Grid
from squallpy.physical.joins.joiner_groups import GroupHomes, meet, powers_of_two, square_grids
from squallpy.physical.joins.mapping import Numbers, Side
from squallpy.physical.joins.migration_controller import DEFAULT, Controller, Policy, Sizes
from squallpy.physical.joins.migration_transfers import Migration
from squallpy.testing.joins.migration_protocol import ALGORITHM_4, Joiner, Parcel, Phase, Rules, TupleSet
from squallpy.testing.joins.network import Network, Pick, Task
from squallpy.testing.joins.streams import Stream, StreamPart

SOURCE: Task = "source"


class Violation(AssertionError):
    """The operator broke a promise."""


@dataclass(frozen=True, slots=True)
class Arrival:
    """Tuples routed by the mapping of an epoch."""

    epoch: int
    side: Side
    tuples: StreamPart


@dataclass(frozen=True, slots=True)
class Signal:
    """Message of a controller to reshufflers, and of these to joiners, that a migration begins."""

    migration: Migration


@dataclass(frozen=True, slots=True)
class Count:
    """Message of a reshuffler to the controllers: the sizes of the inserts and deletes that it routed."""

    came: Sizes
    gone: Sizes


@dataclass(frozen=True, slots=True)
class EndMessage:
    """Message of a joiner to another: all tuples for it have been sent."""


@dataclass(frozen=True, slots=True)
class AcknowledgeMessage:
    """Message of a joiner to its controller: it has finished a migration."""


@dataclass(frozen=True, slots=True)
class Continue:
    """Message of a joiner to itself: send more tuples of a migration, even if none arrive."""


@dataclass(slots=True)
class Output:
    """Number of times that each pair of an R and an S tuple has come out."""

    stream: Stream
    homes: GroupHomes
    row: Numbers = field(init=False)  # of each tuple among those of its relation
    pairs: np.ndarray = field(init=False)

    def __post_init__(self) -> None:
        of_s = self.stream.sides.astype(np.bool_)
        self.row = np.where(of_s, np.cumsum(of_s), np.cumsum(~of_s)) - 1
        self.pairs = np.zeros((int((~of_s).sum()), int(of_s.sum())), np.int16)

    def add(self, group: int, side: Side, arriving: StreamPart, stored: StreamPart) -> None:
        """Count the pairs that a joiner of a group puts out."""
        one, other = arriving.positions, stored.positions
        mine = [self.homes.of(self.stream.tickets[p]) == group for p in (one, other)]
        met = meet((mine[0][:, None], mine[1]), (one[:, None], other))
        a, b = np.nonzero(met)
        rows, columns = (one[a], other[b]) if side is Side.R else (other[b], one[a])
        self.pairs[self.row[rows], self.row[columns]] += 1

    def check(self, arrived: np.ndarray) -> None:
        """Raise Violation if a pair came out twice, or one of arrived tuples did not come out."""
        if self.pairs.size and self.pairs.max() > 1:
            raise Violation(f"{int((self.pairs > 1).sum())} pairs came out more than once")
        of_s = self.stream.sides.astype(np.bool_)
        there = self.pairs[np.ix_(arrived[~of_s], arrived[of_s])]
        if not there.all():
            raise Violation(f"{int((there == 0).sum())} pairs did not come out")


class JoinerStorage:
    """Storage of a joiner: positions of its tuples in the stream."""

    def __init__(self, stream: Stream, output: Output, group: int) -> None:
        self._stream, self._output, self._group = stream, output, group
        self._parts: dict[tuple[TupleSet, Side], Numbers] = {}

    def part(self, part: TupleSet, side: Side) -> StreamPart:
        return StreamPart(self._stream, self._parts.get((part, side), np.empty(0, np.int64)))

    def join(self, side: Side, arriving: StreamPart, stored: StreamPart) -> None:
        self._output.add(self._group, side, arriving, stored)

    def add(self, part: TupleSet, side: Side, tuples: StreamPart) -> None:
        self._parts[part, side] = np.concatenate([self.part(part, side).positions, tuples.positions])

    def settle(self, side: Side, state: list[StreamPart]) -> None:
        for part in TupleSet:
            self._parts.pop((part, side), None)
        self._parts[TupleSet.STATE, side] = np.concatenate([tuples.positions for tuples in state])

    def forget(self, before: int, homes: GroupHomes) -> None:
        """Drop tuples of other groups that no earlier tuple can meet any more."""
        for side in Side:
            state = self.part(TupleSet.STATE, side)
            lives = (homes.of(state.tickets) == self._group) | (state.positions >= before)
            self._parts[TupleSet.STATE, side] = state.positions[lives]


@dataclass(slots=True)
class Group:
    """Grid with the state of its tasks."""

    controller: Controller
    epoch: int = 0
    acknowledged: int = 0
    known: list[tuple[int, Grid]] = field(default_factory=list)  # epoch and grid, by reshuffler
    migrations: list[Migration] = field(default_factory=list)


class Simulation:
    """Operator fed with a stream; `pick` chooses which message is next, or else a random generator with a seed."""

    def __init__(
        self,
        stream: Stream,
        joiners: int,
        policy: Policy = DEFAULT,
        *,
        reshufflers: int = 3,
        pick: Pick | None = None,
        seed: int = 0,
        chunk: int = 3,
        sampled: bool = False,
        rules: Rules = ALGORITHM_4,
    ) -> None:
        rng = np.random.default_rng(seed)
        self.network = Network(pick or (lambda n: int(rng.integers(n))))
        self.stream, self.rules, self.sampled, self.reshufflers = stream, rules, sampled, reshufflers
        self.homes = GroupHomes(powers_of_two(joiners))
        assert len(self.homes.sizes) == 1 or policy.capacity is None, "only a grid alone can grow"
        self.output = Output(stream, self.homes)
        self.groups = [Group(Controller(g, policy), known=[(0, g)] * reshufflers) for g in square_grids(joiners)]
        self.joiners: dict[int, Joiner[StreamPart]] = {}
        self._storage: dict[int, JoinerStorage] = {}
        self._seen: dict[int, dict[int, int]] = {}  # the last tuple of each reshuffler, by joiner
        self._group: dict[int, int] = {}
        self._announced: set[int] = set()  # joiners that have said `EndMessage` in this migration
        for i, group in enumerate(self.groups):
            self._start(i, group.controller.grid.numbers)
        self._missing = np.zeros(len(stream), np.int64)  # messages of each tuple that have not arrived
        self._routed = np.zeros(len(stream), np.bool_)
        self._send_stream(rng, chunk)

    @property
    def migrations(self) -> list[Migration]:
        return [migration for group in self.groups for migration in group.migrations]

    def run(self) -> "Simulation":
        """Deliver messages until all channels are empty; raise Violation if a promise is broken."""
        while (message := self.network.receive()) is not None:
            self._deliver(*message)
        if any(group.controller.migrating for group in self.groups):
            raise Violation("a migration has not ended")
        self._check_output()
        for number in self.joiners:
            self._check_state(number)
        return self

    def _send_stream(self, rng: np.random.Generator, chunk: int) -> None:
        """Send the tuples in their order, a few of one relation at a time, each time to a random reshuffler."""
        turns = np.flatnonzero(np.diff(self.stream.sides)) + 1
        for run in np.split(np.arange(len(self.stream)), turns):
            start = 0
            while start < len(run):
                stop = start + 1 + int(rng.integers(chunk))
                task = ("reshuffler", int(rng.integers(self.reshufflers)))
                side = Side(int(self.stream.sides[run[0]]))
                self.network.send(SOURCE, task, (side, StreamPart(self.stream, run[start:stop])))
                start = stop

    def _deliver(self, sender: Any, receiver: Any, message: Any) -> None:
        match receiver:
            case ("reshuffler", int(number)):
                if isinstance(message, Signal):
                    self._switch(number, sender[1], message.migration)
                else:
                    self._route(number, *message)
            case ("controller", int(number)):
                self._control(number, message)
            case ("joiner", int(number)):
                self._join(number, sender, message)

    # reshufflers

    def _route(self, reshuffler: int, side: Side, tuples: StreamPart) -> None:
        me = ("reshuffler", reshuffler)
        self._routed[tuples.positions] = True
        counts = self.stream.counts[tuples.positions]
        came, gone = int((counts > 0).sum()), int((counts < 0).sum())
        count = Count(Sizes(0, came), Sizes(0, gone)) if side else Count(Sizes(came), Sizes(gone))
        for i, group in enumerate(self.groups):
            epoch, grid = group.known[reshuffler]
            targets = grid.targets(side, tuples.tickets)
            np.add.at(self._missing, tuples.positions, targets.shape[1])
            for target in np.unique(targets).tolist():
                mine = tuples.take((targets == target).any(axis=1))
                self.network.send(me, ("joiner", target), Arrival(epoch, side, mine))
            if not self.sampled or reshuffler == 0:
                self.network.send(me, ("controller", i), count)

    def _switch(self, reshuffler: int, group: int, migration: Migration) -> None:
        self.groups[group].known[reshuffler] = (self.groups[group].known[reshuffler][0] + 1, migration.new)
        for number in np.union1d(migration.old.numbers, migration.new.numbers).tolist():
            self.network.send(("reshuffler", reshuffler), ("joiner", number), Signal(migration))

    # controllers

    def _control(self, number: int, message: Any) -> None:
        group = self.groups[number]
        match message:
            case Count(came, gone):
                scale = self.reshufflers if self.sampled else 1
                group.controller = group.controller.observe(came, gone, scale)
            case AcknowledgeMessage():
                group.acknowledged += 1
                if group.acknowledged < group.controller.grid.joiners:
                    return
                group.controller = group.controller.finish()
                if not any(g.controller.migrating for g in self.groups):
                    self._check_output()
        self._check_epochs(group)
        group.controller, migration = group.controller.decide()
        if migration is None:
            return
        group.epoch, group.acknowledged = group.epoch + 1, 0
        group.migrations.append(migration)
        self._start(number, migration.new.numbers, group.epoch - 1)
        for reshuffler in range(self.reshufflers):
            self.network.send(("controller", number), ("reshuffler", reshuffler), Signal(migration))

    # joiners

    def _start(self, group: int, numbers: Numbers, epoch: int = 0) -> None:
        for number in numbers.tolist():
            if number not in self.joiners:
                self._storage[number], self._seen[number] = JoinerStorage(self.stream, self.output, group), {}
                self.joiners[number] = Joiner(number, self.reshufflers, self._storage[number], Phase(epoch), self.rules)
                self._group[number] = group

    def _join(self, number: int, sender: Any, message: Any) -> None:
        joiner, me = self.joiners[number], ("joiner", number)
        parcels: list[Parcel[StreamPart]] = []
        match message:
            case Arrival(epoch, side, tuples):
                parcels = joiner.arrive(epoch, side, tuples)
                parcels += self._send_on(joiner, len(tuples.positions))
                np.subtract.at(self._missing, tuples.positions, 1)
                self._seen[number][sender[1]] = int(tuples.positions[-1])
                self._forget(number)
            case Signal(migration):
                first = not joiner.is_migrating
                joiner.signal(sender[1], migration)
                if first:
                    self.network.send(me, me, Continue())
            case Continue():
                parcels = self._send_on(joiner, 0)
                if not joiner.has_sent_state:
                    self.network.send(me, me, Continue())
            case Parcel(_, side, tuples):
                joiner.receive_migrated(side, tuples)
            case EndMessage():
                joiner.receive_end(sender[1])
        for parcel in parcels:
            self.network.send(me, ("joiner", parcel.target), parcel)
        self._finish(joiner)

    def _send_on(self, joiner: Joiner[StreamPart], received: int) -> list[Parcel[StreamPart]]:
        if (migration := joiner.phase.migration) is None:
            return []
        policy = self.groups[self._group[joiner.number]].controller.policy
        return joiner.send(received, policy.rate(migration), floor=1)

    def _finish(self, joiner: Joiner[StreamPart]) -> None:
        """Announce that a joiner has sent all its tuples; acknowledge the migration once it has received all."""
        me = ("joiner", joiner.number)
        if joiner.number not in self._announced and joiner.has_sent:
            self._announced.add(joiner.number)
            for number in sorted(joiner.receivers):
                self.network.send(me, ("joiner", number), EndMessage())
        if joiner.number in self._announced and joiner.can_finish:
            joiner.finish()
            self._announced.discard(joiner.number)
            self.network.send(me, ("controller", self._group[joiner.number]), AcknowledgeMessage())

    def _forget(self, number: int) -> None:
        seen = self._seen[number]
        if len(self.groups) > 1 and not self.joiners[number].is_migrating and len(seen) == self.reshufflers:
            self._storage[number].forget(min(seen.values()), self.homes)

    # promises

    def _check_output(self) -> None:
        self.output.check(self._routed & (self._missing == 0))

    def _check_epochs(self, group: Group) -> None:
        """Raise Violation unless reshufflers and joiners are at the controller's epoch, or one behind."""
        alive = {group.epoch} | {epoch for epoch, _ in group.known}
        alive |= {self.joiners[int(n)].phase.epoch for n in group.controller.grid.numbers}
        if not alive <= {group.epoch, group.epoch - 1}:
            raise Violation(f"epochs {sorted(alive)} are alive")

    def _check_state(self, number: int) -> None:
        group = self._group[number]
        grid = self.groups[group].controller.grid
        mine = self.homes.of(self.stream.tickets) == group
        for side in Side:
            there = self._storage[number].part(TupleSet.STATE, side)
            stored = np.sort(there.positions[self.homes.of(there.tickets) == group])
            owned = np.flatnonzero(mine & (self.stream.sides == side) & grid.owns(number, side, self.stream.tickets))
            if not np.array_equal(stored, owned):
                raise Violation(f"joiner {number} holds {len(stored)} tuples of {side.name} instead of {len(owned)}")


def remove_rule(rules: Rules, row: Any) -> Rules:
    """Remove one row from the rules of the protocol."""
    return replace(
        rules,
        meetings=tuple(m for m in rules.meetings if m != row),
        sent=tuple(p for p in rules.sent if p != row),
        stays=tuple(s for s in rules.stays if s != row),
    )
