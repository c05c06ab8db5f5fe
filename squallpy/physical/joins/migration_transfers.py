"""Migration between two grids: tuples that a joiner keeps, and those it sends (paper §4.2.1, Lemma 4.4; Fig. 3, 4b).

    (8, 2) → (4, 4)    joiners 0 and 2 exchange their tuples of R; of S each keeps the half of its new column

One rule covers all migrations: a joiner that needs a tuple and lacks it gets it from the joiner that has it and shares
the other coordinate: for a tuple of R its old column, for one of S its old row. There is one such joiner, so each tuple
is sent once to each. Halving rows is an exchange between pairs, a growth a split in four; a hashed key is a (1,
1)-grid, so that its promotion to a grid, and its demotion, are migrations too.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cached_property, lru_cache

import numpy as np

from squallpy.base.records import dataclass
from squallpy.physical.joins.grid import Grid
from squallpy.physical.joins.mapping import Mask, Numbers, Side, Tickets

PartHomes = tuple[tuple[int, tuple[int, ...]], ...]
"""Parts of a relation in the new grid, each with the joiners that will store it."""

_NOBODY = np.zeros(0, np.int64)


@dataclass(frozen=True)
class Migration:
    """Two grids, and all that follows from them; see `migration`."""

    old: Grid
    new: Grid

    def __str__(self) -> str:
        return f"{self.old.mapping} → {self.new.mapping}"

    def keeps(self, joiner: int, side: Side, tickets: Tickets) -> Mask:
        """Mark the tuples of a joiner that it still stores afterwards (KEEP); the others are discarded."""
        if joiner not in self.new:
            return np.zeros(len(tickets), np.bool_)
        return self.new.owns(joiner, side, tickets)

    def parcels(self, joiner: int, side: Side, tickets: Tickets) -> Iterator[tuple[int, Numbers]]:
        """Yield each receiver of a joiner's tuples with the positions of the tuples it gets (MIGRATED)."""
        targets = self.receivers(joiner, side)
        if not len(targets):
            return
        parts, rows = self.new.coordinates(side, tickets), dict[int, Numbers]()
        for target in targets.tolist():
            coordinates = self.new.coordinate(side, target)
            if coordinates not in rows:
                rows[coordinates] = np.flatnonzero(parts == coordinates)
            if len(rows[coordinates]):
                yield target, rows[coordinates]

    def moves_whole(self, side: Side) -> bool:
        """True if all tuples of a relation at a joiner have the same targets."""
        return self.new.mapping.cuts(side) <= self.old.mapping.cuts(side)

    def partition_tuples(
        self, joiner: int, side: Side, tickets: Callable[[], Tickets]
    ) -> Iterator[tuple[tuple[int, ...], Numbers | None]]:
        """Yield the groups of joiners, itself included, that store the same of a joiner's tuples afterwards.

        Each comes with the positions of these tuples; None stands for all, for which no ticket has to be read.
        """
        homes = self._part_homes(joiner, side)
        if self.moves_whole(side):
            yield from ((joiners, None) for _, joiners in homes)
        elif homes:
            parts = self.new.coordinates(side, tickets())
            for coordinates, joiners in homes:
                rows = np.flatnonzero(parts == coordinates)
                if len(rows):
                    yield joiners, rows

    def receivers(self, joiner: int, side: Side) -> Numbers:
        """List the joiners that get tuples of a relation from this one."""
        return self._partners[side][1].get(joiner, _NOBODY)

    def senders(self, joiner: int, side: Side) -> Numbers:
        """List the joiners from which this one gets tuples of a relation."""
        return self._partners[side][0].get(joiner, _NOBODY)

    def send_cost(self, r: float, s: float) -> float:
        """Compute the tuples sent by the busiest joiner, for relations of these sizes."""
        return self._busiest(r, s, receives=False)

    def cost(self, r: float, s: float) -> float:
        """Compute the tuples sent and received by the busiest joiner (Lemma 4.4: 2|R|/n for one step)."""
        return self._busiest(r, s, receives=True)

    def _busiest(self, r: float, s: float, *, receives: bool) -> float:
        out = np.zeros(1 + max(self.old.numbers[-1], self.new.numbers[-1]))
        for (senders, receivers), side, size in zip(self._pairs, Side, (r, s), strict=True):
            each = size / max(self.old.mapping.cuts(side), self.new.mapping.cuts(side))
            for joiners in (senders, receivers) if receives else (senders,):
                out += each * np.bincount(joiners, minlength=len(out))
        return float(out.max())

    @cached_property
    def _pairs(self) -> tuple[tuple[Numbers, Numbers], ...]:
        """Pairs of sender and receiver, by side. A sender holds the tuples and shares the receiver's other
        coordinate."""
        found = []
        for side in Side:
            receivers = self.new.numbers[:, None]
            new_parts, other_parts = (
                self.new.coordinates_of(side, receivers),
                self.old.coordinates_of(side.other, receivers),
            )
            old, new = (grid.mapping.cuts(side) for grid in (self.old, self.new))
            parts = new_parts * old // new + np.arange(max(1, old // new))
            senders = self.old.joiners_at(side, parts, other_parts)
            sends = senders != receivers
            found.append((senders[sends], np.broadcast_to(receivers, sends.shape)[sends]))
        return tuple(found)

    @cached_property
    def _partners(self) -> tuple[tuple[dict[int, Numbers], dict[int, Numbers]], ...]:
        """Senders to each joiner and receivers from each, by side."""
        return tuple(
            (_group_by(receivers, senders), _group_by(senders, receivers)) for senders, receivers in self._pairs
        )

    @cached_property
    def _part_home_cache(self) -> tuple[dict[int, PartHomes], ...]:
        return {}, {}

    def _part_homes(self, joiner: int, side: Side) -> PartHomes:
        """Map the new parts that a joiner's tuples may fall into to the joiners that will store them."""
        if joiner not in self._part_home_cache[side]:
            found = dict[int, tuple[int, ...]]()
            itself = [joiner] if joiner in self.old and joiner in self.new else []
            for target in (*itself, *self.receivers(joiner, side).tolist()):
                coordinates = self.new.coordinate(side, target)
                found[coordinates] = (*found.get(coordinates, ()), target)
            self._part_home_cache[side][joiner] = tuple(found.items())
        return self._part_home_cache[side][joiner]


@lru_cache(maxsize=1 << 8)
def migration(old: Grid, new: Grid) -> Migration:
    """Intern the migration between two grids: finding senders and receivers takes a while, and all joiners share it."""
    return Migration(old, new)


def _group_by(numbers: Numbers, others: Numbers) -> dict[int, Numbers]:
    """Group the ascending `others` by their numbers."""
    order = np.lexsort((others, numbers))
    some, starts = np.unique(numbers[order], return_index=True)
    return dict(zip(some.tolist(), np.split(others[order], starts[1:]), strict=False))


@dataclass(frozen=True, slots=True)
class TransferProgress:
    """Progress of sending `total` tuples; the first `sent` are done."""

    total: int
    sent: int = 0

    @property
    def is_done(self) -> bool:
        return self.sent >= self.total

    def step(self, received: int, rate: float = 2.0, floor: int = 0) -> "TransferProgress":
        """Send `rate` tuples for each new one (§4.3.2), but at least `floor`, also when idle.

        Progress(10, 4).step(received=2)  →  Progress(10, 8)
        """
        return replace(self, sent=min(self.total, self.sent + max(int(np.ceil(rate * received)), floor)))
