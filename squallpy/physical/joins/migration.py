"""From one grid to another: what a joiner keeps, what it sends and to whom (paper §4.2.1, Lemma 4.4; Fig. 3 and 4b).

    (8, 2) → (4, 4)    joiners 0 and 2 exchange what they have of R; of S each keeps the half of its new column

The rule is one for all migrations: a joiner that is to have a tuple, and has not, gets it from the joiner that has it
and shares its other coordinate: for a tuple of R its old column, for one of S its old row. There is one such joiner,
so each tuple is sent to each once. Halving rows is then an exchange between pairs, a growth a split in four; a hashed
key is a (1, 1)-grid, so that its promotion to a grid, and its demotion, are migrations too.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from squallpy.physical.joins.grid import Grid
from squallpy.physical.joins.mapping import Mask, Numbers, Side, Tickets

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Migration:
    """Two grids, and all that follows from them."""

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
        homes = _homes(self, joiner, side)
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
        return _partners(self, joiner, side)[1]

    def senders(self, joiner: int, side: Side) -> Numbers:
        """The joiners from which this one gets tuples of a relation."""
        return _partners(self, joiner, side)[0]

    def sent(self, r: float, s: float) -> float:
        """What the busiest joiner sends of relations of these sizes."""
        return float(self._moved(self._some[:, None], self.new.numbers, 1, r, s).max())

    def cost(self, r: float, s: float) -> float:
        """What the busiest joiner sends and receives (Lemma 4.4: 2|R|/n for one step)."""
        some = self._some
        sent = self._moved(some[:, None], self.new.numbers, 1, r, s)
        return float((sent + self._moved(self.old.numbers[:, None], some, 0, r, s)).max())

    @property
    def _some(self) -> Numbers:
        """Joiners among which is the busiest: all where one sends or gets all, else the first and the last, as the old
        ones have all the same to do, and the new ones."""
        both = np.union1d(self.old.numbers, self.new.numbers)
        return both if 1 in (self.old.joiners, self.new.joiners) else both[[0, -1]]

    def _moved(self, senders: Numbers, receivers: Numbers, axis: int, r: float, s: float) -> Floats:
        """What the ones send to the others, added up along an axis."""
        out: Floats = np.zeros(())
        for side, size in ((Side.R, r), (Side.S, s)):
            held, finer = size / self.old.mapping.cuts(side), self.new.mapping.cuts(side) / self.old.mapping.cuts(side)
            out = out + held / max(finer, 1) * np.count_nonzero(self._passes(senders, receivers, side), axis)
        return out

    def _passes(self, senders: Numbers, receivers: Numbers, side: Side) -> Mask:
        """Does one send tuples of a relation to the other?"""
        old, new = self.old, self.new
        part, wanted = old.part_of(side, senders), new.part_of(side, receivers)
        finer = new.mapping.cuts(side).bit_length() - old.mapping.cuts(side).bit_length()
        fits = part == wanted >> finer if finer >= 0 else part >> -finer == wanted
        beside = old.part_of(side.other, senders) == old.part_of(side.other, receivers)
        has = old.has(receivers) & (old.part_of(side, receivers) == part)
        return np.asarray(fits & beside & ~has & old.has(senders) & new.has(receivers), np.bool_)


@lru_cache(maxsize=1 << 12)  # asked for by each joiner of a machine, batch after batch
def _partners(migration: Migration, joiner: int, side: Side) -> tuple[Numbers, Numbers]:
    """From whom a joiner gets tuples of a relation, and to whom it sends."""
    here, old, new = np.array([joiner]), migration.old.numbers, migration.new.numbers
    return old[migration._passes(old, here, side)], new[migration._passes(here, new, side)]


@lru_cache(maxsize=1 << 12)
def _homes(migration: Migration, joiner: int, side: Side) -> tuple[tuple[int, tuple[int, ...]], ...]:
    """The parts of a relation in the new grid of which a joiner may have tuples, and who gets them from it or keeps
    them."""
    found = dict[int, tuple[int, ...]]()
    itself = [joiner] if joiner in migration.old and joiner in migration.new else []
    for target in (*itself, *migration.receivers(joiner, side).tolist()):
        part = migration.new.place(side, target)
        found[part] = (*found.get(part, ()), target)
    return tuple(found.items())


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
