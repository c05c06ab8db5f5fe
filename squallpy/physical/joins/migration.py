"""From one grid to another: what a joiner keeps, what it sends and to whom (paper §4.2.1, Lemma 4.4; Fig. 3 and 4b).

    (8, 2) → (4, 4)    joiners 0 and 2 exchange what they have of R; of S each keeps the half of its new column

The rule is one for all migrations: a joiner that is to have a tuple, and has not, gets it from the joiner that has it
and shares its other coordinate: for a tuple of R its old column, for one of S its old row. There is one such joiner,
so each tuple is sent to each once. Halving rows is then an exchange between pairs, a growth a split in four; a hashed
key is a (1, 1)-grid, so that its promotion to a grid, and its demotion, are migrations too.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache

import numpy as np

from squallpy.physical.joins.grid import Grid
from squallpy.physical.joins.mapping import Mask, Numbers, Side, Tickets

Homes = tuple[tuple[int, tuple[int, ...]], ...]
"""Parts of a relation in the new grid, and the joiners that are to have them."""

_NOBODY = np.zeros(0, np.int64)


@dataclass(frozen=True)
class Migration:
    """Two grids, and all that follows from them; see `migration`."""

    old: Grid
    new: Grid

    def __str__(self) -> str:
        return f"{self.old.mapping} → {self.new.mapping}"

    def keeps(self, joiner: int, side: Side, tickets: Tickets) -> Mask:
        """KEEP: which of the tuples that a joiner has are still its own afterwards? It discards the others."""
        if joiner not in self.new:
            return np.zeros(len(tickets), np.bool_)
        return self.new.owns(joiner, side, tickets)

    def parcels(self, joiner: int, side: Side, tickets: Tickets) -> Iterator[tuple[int, Numbers]]:
        """MIGRATED: the joiners to which one sends any of the tuples that it has, and the positions of these."""
        targets = self.receivers(joiner, side)
        if not len(targets):
            return
        parts, rows = self.new.part(side, tickets), dict[int, Numbers]()
        for target in targets.tolist():
            part = self.new.place(side, target)
            if part not in rows:
                rows[part] = np.flatnonzero(parts == part)
            if len(rows[part]):
                yield target, rows[part]

    def is_whole(self, side: Side) -> bool:
        """Do the tuples of a relation that a joiner has stay together, wherever they go?"""
        return self.new.mapping.cuts(side) <= self.old.mapping.cuts(side)

    def dealt(
        self, joiner: int, side: Side, tickets: Callable[[], Tickets]
    ) -> Iterator[tuple[tuple[int, ...], Numbers | None]]:
        """Both at once: the joiners, itself among them, that have the same of its tuples afterwards, and the positions
        of these; None: all, for which nobody has to know any ticket."""
        homes = self._homes(joiner, side)
        if self.is_whole(side):
            yield from ((joiners, None) for _, joiners in homes)
        elif homes:
            parts = self.new.part(side, tickets())
            for part, joiners in homes:
                rows = np.flatnonzero(parts == part)
                if len(rows):
                    yield joiners, rows

    def receivers(self, joiner: int, side: Side) -> Numbers:
        """The joiners that get tuples of a relation from this one."""
        return self._partners[side][1].get(joiner, _NOBODY)

    def senders(self, joiner: int, side: Side) -> Numbers:
        """The joiners from which this one gets tuples of a relation."""
        return self._partners[side][0].get(joiner, _NOBODY)

    def sent(self, r: float, s: float) -> float:
        """What the busiest joiner sends of relations of these sizes."""
        return self._busiest(r, s, receives=False)

    def cost(self, r: float, s: float) -> float:
        """What the busiest joiner sends and receives (Lemma 4.4: 2|R|/n for one step)."""
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
        """By side, pair by pair, the joiners that send tuples of it, and those to whom. A joiner gets what it is to
        have from those that had it in its place of the other relation, or from itself."""
        found = []
        for side in Side:
            receivers = self.new.numbers[:, None]
            wanted, beside = self.new.part_of(side, receivers), self.old.part_of(side.other, receivers)
            old, new = (grid.mapping.cuts(side) for grid in (self.old, self.new))
            parts = wanted * old // new + np.arange(max(1, old // new))
            senders = self.old.at(side, parts, beside)
            sends = senders != receivers
            found.append((senders[sends], np.broadcast_to(receivers, sends.shape)[sends]))
        return tuple(found)

    @cached_property
    def _partners(self) -> tuple[tuple[dict[int, Numbers], dict[int, Numbers]], ...]:
        """By side, from whom each joiner gets tuples of it, and to whom each sends."""
        return tuple((_grouped(receivers, senders), _grouped(senders, receivers)) for senders, receivers in self._pairs)

    @cached_property
    def _known(self) -> tuple[dict[int, Homes], ...]:
        return {}, {}

    def _homes(self, joiner: int, side: Side) -> Homes:
        """The parts of a relation in the new grid of which a joiner may have tuples, and who gets them from it or keeps
        them."""
        if joiner not in self._known[side]:
            found = dict[int, tuple[int, ...]]()
            itself = [joiner] if joiner in self.old and joiner in self.new else []
            for target in (*itself, *self.receivers(joiner, side).tolist()):
                part = self.new.place(side, target)
                found[part] = (*found.get(part, ()), target)
            self._known[side][joiner] = tuple(found.items())
        return self._known[side][joiner]


@lru_cache(maxsize=1 << 8)
def migration(old: Grid, new: Grid) -> Migration:
    """The same one for all joiners of a machine, batch after batch: who sends to whom takes a while to find."""
    return Migration(old, new)


def _grouped(numbers: Numbers, others: Numbers) -> dict[int, Numbers]:
    """By the ones the others, which ascend."""
    order = np.lexsort((others, numbers))
    some, starts = np.unique(numbers[order], return_index=True)
    return dict(zip(some.tolist(), np.split(others[order], starts[1:]), strict=False))  # NB: of none one is empty


@dataclass(frozen=True, slots=True)
class Progress:
    """How much of what is to be sent has been: of `total` tuples, those before `sent`."""

    total: int
    sent: int = 0

    @property
    def is_done(self) -> bool:
        return self.sent >= self.total

    def step(self, received: int, rate: float = 2.0, floor: int = 0) -> "Progress":
        """After so many new tuples: `rate` times as many have moved (§4.3.2), and `floor` at least, also when idle.

        Progress(10, 4).step(received=2)  →  Progress(10, 8)
        """
        return replace(self, sent=min(self.total, self.sent + max(int(np.ceil(rate * received)), floor)))
