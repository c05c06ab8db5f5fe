"""The operator in micro-batches, as a runtime of batches runs it: decisions, signals and ends of migrations at borders.

    batch 3: decide (8, 2) → (4, 4)    batches 4, 5: new tuples by both mappings, state moves    border of 5: all finish

At the end of each batch, whether state moves or not, every pair of tuples so far has come out once. With `restart` all
that is not a store goes through JSON at every border, as after a crash.
"""

import json
from collections import defaultdict

import numpy as np

from squallpy.physical.joins.controller import DEFAULT, Policy
from squallpy.physical.joins.groups import Homes
from squallpy.physical.joins.mapping import Side
from squallpy.physical.joins.operators import Dynamic, Move, operator
from squallpy.physical.joins.protocol import IN_BATCHES, Joiner, Parcel, Phase, Rules
from squallpy.physical.joins.saved import from_json, to_json
from squallpy.testing.joins.simulator import Kept, Output, Violation
from squallpy.testing.joins.streams import Some, Stream


class Batches:
    """A stream in batches through grids of any number of joiners."""

    def __init__(
        self,
        stream: Stream,
        joiners: int,
        batch: int,
        policy: Policy = DEFAULT,
        *,
        floor: int = 4,
        restart: bool = False,
        rules: Rules = IN_BATCHES,
    ) -> None:
        self.stream, self.batch, self.policy, self.floor = stream, batch, policy, floor
        self._restart, self._rules = restart, rules
        chosen = operator("Dynamic", joiners, policy)
        assert isinstance(chosen, Dynamic)
        self.operator = chosen
        self.homes = Homes(tuple(c.grid.joiners for c in chosen.controllers))
        self.output = Output(stream, self.homes)
        self.joiners: dict[int, Joiner[Some]] = {}
        self.kept: dict[int, Kept] = {}
        self.epochs = [0] * len(chosen.controllers)
        self.running: dict[int, Move] = {}  # migrations, by group
        self.moves: list[tuple[int, int, Move]] = []  # with the batches in which they were decided and done
        self.sent: list[int] = []  # by batch, tuples that the busiest joiner sent to others
        self._on_the_way: list[Parcel[Some]] = []
        for group, controller in enumerate(chosen.controllers):
            self._start(group, controller.grid.numbers.tolist())

    def run(self) -> "Batches":
        """All batches, then empty ones until nothing moves."""
        number, position = 0, 0
        while position < len(self.stream) or self.running:
            piece = np.arange(position, min(position + self.batch, len(self.stream)))
            self._apply(number, Some(self.stream, piece))
            self.output.check(np.arange(len(self.stream)) < position + len(piece))
            number, position = number + 1, position + self.batch
            if number > 100 + 10 * len(self.stream):
                raise Violation("a migration does not end")
        return self

    def _apply(self, number: int, batch: Some) -> None:
        for parcel in self._on_the_way:
            self.joiners[parcel.target].migrated(parcel.side, parcel.tuples)
        self._on_the_way = []
        received: defaultdict[int, int] = defaultdict(int)
        for side in Side:
            self._arrive(side, batch.take(self.stream.sides[batch.positions] == side), received)
        self._send(received)
        self._border(number, batch)

    def _arrive(self, side: Side, tuples: Some, received: dict[int, int]) -> None:
        """By the new mapping to stay, by the old one to visit."""
        for move in self.running.values():
            old = move.migration.old.targets(side, tuples.tickets)
            for number in np.unique(old).tolist():
                self.joiners[number].visit(side, tuples.take((old == number).any(axis=1)))
        routes = self.operator.route(side, tuples.tickets, tuples.tickets)
        for number in np.unique(routes.joiners).tolist():
            mine = tuples.take(routes.positions[routes.joiners == number])
            received[number] += len(mine.positions)
            self.joiners[number].arrive(self.epochs[self._group(number)], side, mine)

    def _send(self, received: dict[int, int]) -> None:
        sent = [0]
        for number, joiner in self.joiners.items():
            if (migration := joiner.phase.migration) is not None:
                rate = self.policy.rate(migration)
                before = sum(progress.sent for progress in joiner.phase.progress)
                self._on_the_way += joiner.send(received[number], rate, self.floor)
                sent.append(sum(progress.sent for progress in joiner.phase.progress) - before)
                limit = 2 * max(int(np.ceil(rate * received[number])), self.floor)  # of either side
                if sent[-1] > limit:
                    raise Violation(f"joiner {number} sent {sent[-1]} tuples for {received[number]}")
        self.sent.append(max(sent))

    def _border(self, number: int, batch: Some) -> None:
        """Between two batches: migrations end for all of their joiners at once; others start."""
        for group, move in list(self.running.items()):
            mine = [j for j in self.joiners.values() if self._group(j.number) == group]
            if self._on_the_way or not all(joiner.has_sent for joiner in mine):
                continue
            for joiner in mine:
                for other in joiner.receivers:
                    self.joiners[other].ended(joiner.number)
            for joiner in mine:
                joiner.finish()
            self.operator = self.operator.finished(move)
            del self.running[group]
            self.moves = [(a, number if m is move else b, m) for a, b, m in self.moves]
        for joiner in self.joiners.values():
            if not joiner.is_migrating:
                self.kept[joiner.number].forget(len(self.stream), self.homes)
        for side in Side:
            tuples = batch.take(self.stream.sides[batch.positions] == side)
            ones = np.ones(len(tuples.positions), np.int64)
            signs = self.stream.counts[tuples.positions].astype(np.int64)
            self.operator = self.operator.observe(side, tuples.tickets, signs, ones)
        self.operator, moves = self.operator.decide()
        for move in moves:
            self._begin(number, move)
        if self._restart:
            self._crash()

    def _begin(self, number: int, move: Move) -> None:
        self.running[move.group] = move
        self.moves.append((number, -1, move))
        self._start(move.group, move.migration.new.numbers.tolist())
        self.epochs[move.group] += 1
        for joiner in self.joiners.values():
            if self._group(joiner.number) == move.group:
                joiner.signal(0, move.migration)

    def _start(self, group: int, numbers: list[int]) -> None:
        for number in numbers:
            if number not in self.joiners:
                self.kept[number] = Kept(self.stream, self.output, group)
                phase = Phase(self.epochs[group])
                self.joiners[number] = Joiner(number, 1, self.kept[number], phase, self._rules)

    def _group(self, number: int) -> int:
        grids = [controller.grid for controller in self.operator.controllers]
        return next(i for i, grid in enumerate(grids) if grid.has(np.array([number]))[0])

    def _crash(self) -> None:
        """All that is left is what is on disk."""
        self.operator = from_json(Dynamic, json.loads(json.dumps(to_json(self.operator))))
        for number, joiner in self.joiners.items():
            phase = from_json(Phase, json.loads(json.dumps(to_json(joiner.phase))))
            self.joiners[number] = Joiner(number, 1, self.kept[number], phase, self._rules)
