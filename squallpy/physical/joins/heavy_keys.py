"""Equi-joins: heavy keys have a grid of their own over all joiners, the others are hashed (thesis §4.4.4, `Hybrid`).

    16 joiners, a key with |R_k| = 10,000 and |S_k| = 10   →   (16, 1): a sixteenth of R_k and all of S_k at each

A key is a rectangle of the join matrix, and shares no state with others. What it costs is the tuples it brings and the
pairs they make, |R_k| + |S_k| + |R_k| · |S_k|; it is heavy if that is more than a `share` of what a joiner has on
average, and light again below a quarter of it. So there are never more than J / share heavy keys, and what is hashed
is in pieces so small that hashing spreads it: the busiest joiner is above the mean by about √(share · 2 ln J) of it
at worst, and by less than half of that with Zipf's law.

Where a move has a price of its own, keys may wait for each other, until their work together passes some thresholds. So
the busiest joiner has no more than that above the mean.

Frequencies come from sketches of 2 J / share counters; from its promotion on, a key's changes are counted. What is in
no sketch has less than half a threshold of tuples. It may still make more pairs than that, in a relation of many
millions of tuples: so joiners may report what pairs they made of which keys, and a sketch of those has the same error.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from squallpy.physical.joins.controller import Controller, Policy, Sizes
from squallpy.physical.joins.grid import Grid, at
from squallpy.physical.joins.mapping import Numbers, Side, Tickets, optimal, top_bits
from squallpy.physical.joins.migration import Migration
from squallpy.physical.joins.sketch import Frequencies, Keys, Sketch, frequencies

Floats = npt.NDArray[np.float64]
N = TypeVar("N", Numbers, Floats)

SHARE = 1 / 64  # of the mean joiner's work
LEAST = 4  # work per joiner, below which a key is not worth a grid
LIGHTER = 4  # times less work than makes a key heavy makes it light again


@dataclass(frozen=True, slots=True)
class HeavyKey:
    """A key with a grid, or with one that its tuples are just leaving."""

    key: int
    controller: Controller
    demoted: bool = False

    @property
    def place(self) -> Grid:
        return self.controller.grid


@dataclass(frozen=True, slots=True, eq=False)
class Heavy:
    """The keys of an equi-join: frequencies, and what has a grid, by key.

    What comes of heavy keys is added up in `recent`, a row of a key; its controller hears of it when that may be enough
    for a decision, which `waits` says. So a batch costs little more with a thousand heavy keys than with one.
    """

    joiners: int
    share: float
    policy: Policy
    sides: tuple[Frequencies, Frequencies]
    pairs: Sketch
    keys: tuple[HeavyKey, ...] = ()
    hashes: Keys = field(default_factory=lambda: np.empty(0, np.uint64))
    # by key: came of R and of S, went of R and of S
    recent: Numbers = field(default_factory=lambda: np.empty(0, np.int64))
    # by key: |R_k| and |S_k|, slack of both, whether they shrink
    waits: Floats = field(default_factory=lambda: np.empty(0, np.float64))
    together: int = 1  # thresholds that the work of keys has to reach together for them to be promoted

    @property
    def grid_joiners(self) -> int:
        """How many joiners a grid has: a power of two."""
        return 1 << self.joiners.bit_length() - 1

    def route(self, side: Side, keys: Keys, tickets: Tickets) -> tuple[Numbers, Numbers]:
        """Positions of tuples, and the joiners they go to."""
        return routed(self.joiners, self.hashes, [heavy.place for heavy in self.keys], side, keys, tickets)

    def observe(self, side: Side, keys: Keys, counts: Numbers, others: tuple[int, int] = (0, 0)) -> "Heavy":
        """Inserts (above 0) and deletes (below) of a relation; as many of `others`, which have few, came and went."""
        sides = list(self.sides)
        sides[side] = sides[side].add(keys, counts, others)
        which = _among(self.hashes, keys)
        mine = which >= 0
        cells = 4 * which[mine] + side + 2 * (counts[mine] < 0)
        recent = self.recent.copy()
        np.add.at(recent, cells, np.abs(counts[mine]))
        return replace(self, sides=(sides[0], sides[1]), recent=recent)

    def observe_pairs(self, keys: Keys, counts: Numbers) -> "Heavy":
        """Pairs that joiners have put out of some light keys."""
        return replace(self, pairs=self.pairs.add(keys, counts))

    def decide(self) -> tuple["Heavy", tuple[tuple[int, Migration], ...]]:
        """Keys that are promoted, demoted or take another mapping, with their migrations."""
        keys = np.unique(np.concatenate([self.sides[0].keys, self.sides[1].keys, self.pairs.keys]))
        light = keys[_among(self.hashes, keys) < 0]
        of_r, of_s = (self.sides[side].of(light) for side in Side)
        work = _work(of_r, of_s, self.pairs.of(light))
        recent, waits = _rows(self.recent, 4), _rows(self.waits, 5)
        sizes = np.maximum(waits[:, :2] + recent[:, :2] - recent[:, 2:], 0)
        heaviness = _work(sizes[:, 0], sizes[:, 1], np.zeros(len(sizes)))
        pairs = float((work - of_r - of_s).sum() + (heaviness - sizes.sum(axis=1)).sum())
        limit = max(self.share * self._mean(pairs), LEAST * self.joiners)
        changed = recent[:, :2] + recent[:, 2:]
        is_due = ((changed > 0) & (changed >= waits[:, 2:4])).any(axis=1)
        is_due |= recent[:, 2:].any(axis=1) & (waits[:, 4] == 0)
        is_light = heaviness < limit / LIGHTER
        moves, after = list[tuple[int, Migration]](), list(self.keys)
        told = np.flatnonzero(is_due | is_light)
        for i in told.tolist():
            after[i] = self._reconsidered(_told(self.keys[i], recent[i].tolist()), bool(is_light[i]), moves)
        above = work > limit
        for i in np.flatnonzero(above).tolist() if moves or work[above].sum() >= self.together * limit else ():
            after.append(self._promoted(int(light[i]), Sizes(int(of_r[i]), int(of_s[i]))))
            moves.append((after[-1].key, Migration(at(self._home(after[-1].key)), after[-1].place)))
        if len(after) == len(self.keys) and not len(told):
            return self, ()
        return self._with(after, self.hashes[told].tolist()), tuple(moves)

    def expecting(self, sample: "Heavy") -> "Heavy":
        """The same, as nothing has come yet, with the grids that a sample of what will come has given its keys."""
        assert not self.keys, "grids are given before the first tuple"
        return self._with([HeavyKey(heavy.key, Controller(heavy.place, self.policy)) for heavy in sample.keys])

    def finished(self, key: int) -> "Heavy":
        """The migration of a key is over."""
        i = int(np.searchsorted(self.hashes, np.uint64(key)))
        heavy, (before, after) = self.keys[i], (self.keys[:i], self.keys[i + 1 :])
        assert heavy.key == key, "a key that has no grid cannot be done with it"
        if heavy.demoted:
            return self._with([*before, *after])
        done = replace(heavy, controller=heavy.controller.finished())
        return replace(self, keys=(*before, done, *after))

    def _with(self, keys: list[HeavyKey], told: Iterable[int] = ()) -> "Heavy":
        """With other keys, and no more recent changes of those that have been told."""
        keys.sort(key=lambda heavy: heavy.key)
        hashes = np.array([heavy.key for heavy in keys], np.uint64)
        before = _among(self.hashes, hashes)
        fresh = np.isin(hashes, np.array(list(told), np.uint64)) | (before < 0)
        recent, waits = np.zeros((len(keys), 4), np.int64), np.zeros((len(keys), 5))
        recent[~fresh], waits[~fresh] = _rows(self.recent, 4)[before[~fresh]], _rows(self.waits, 5)[before[~fresh]]
        for i in np.flatnonzero(fresh).tolist():
            waits[i] = _waits(keys[i].controller)
        return replace(self, keys=tuple(keys), hashes=hashes, recent=recent.ravel(), waits=waits.ravel())

    def _mean(self, pairs: float) -> float:
        """The work of a joiner; light keys outside the sketches make no pairs here, so that it is rather too low."""
        return (self.sides[0].size + self.sides[1].size + pairs) / self.joiners

    def _home(self, key: int) -> int:
        return int(home(self.joiners, np.array([key], np.uint64))[0])

    def _promoted(self, key: int, sizes: Sizes) -> HeavyKey:
        grid = Grid(optimal(self.grid_joiners, sizes.r, sizes.s))
        return HeavyKey(key, Controller(grid, self.policy, sizes, decided=sizes, migrating=True))

    def _reconsidered(self, heavy: HeavyKey, is_light: bool, moves: list[tuple[int, Migration]]) -> HeavyKey:
        if heavy.controller.migrating:
            return heavy
        if is_light:
            home = at(self._home(heavy.key))
            moves.append((heavy.key, Migration(heavy.place, home)))
            return HeavyKey(heavy.key, replace(heavy.controller, grid=home, migrating=True), demoted=True)
        controller, migration = heavy.controller.decide()
        if migration is not None:
            moves.append((heavy.key, migration))
        return replace(heavy, controller=controller)


def home(joiners: int, keys: Keys) -> Numbers:
    """The joiner of light keys."""
    return top_bits(keys, 32) * joiners >> 32


def routed(
    joiners: int, heavy: Keys, places: Sequence[Grid], side: Side, keys: Keys, tickets: Tickets
) -> tuple[Numbers, Numbers]:
    """Positions of tuples, and the joiners they go to; heavy keys, in order, have places."""
    which = _among(heavy, keys)
    light = np.flatnonzero(which < 0)
    positions, targets = [light], [home(joiners, keys[light])]
    kinds = {grid: i for i, grid in enumerate(dict.fromkeys(places))}
    kind = np.array([kinds[grid] for grid in places], np.int64)
    for grid, i in kinds.items():
        mine = np.flatnonzero((which >= 0) & (kind[which] == i))
        several = grid.targets(side, tickets[mine])
        positions.append(np.repeat(mine, several.shape[1]))
        targets.append(several.ravel())
    return np.concatenate(positions), np.concatenate(targets)


def heavy(joiners: int, share: float = SHARE, policy: Policy | None = None, together: int = 1) -> Heavy:
    """An equi-join that has seen nothing."""
    if joiners < 1 or not 0 < share <= 1:
        raise ValueError(f"a join has a joiner or more, and heavy keys a share of 0 to 1, not {joiners} and {share}")
    size = int(np.ceil(2 * joiners / share))
    sides = frequencies(size), frequencies(size)
    return Heavy(joiners, share, policy or Policy(), sides, Sketch(size), together=together)


def _among(sorted_keys: Keys, keys: Keys) -> Numbers:
    """The positions of keys among others, −1 for those that are not there."""
    if not len(sorted_keys):
        return np.full(len(keys), -1)
    found = np.minimum(np.searchsorted(sorted_keys, keys), len(sorted_keys) - 1)
    return np.where(sorted_keys[found] == keys, found, -1)


def _work(r: Floats | Numbers, s: Floats | Numbers, pairs: Floats | Numbers) -> Floats:
    """Tuples, and pairs: those that their numbers make, or more if joiners said so."""
    made = np.multiply(r, s, dtype=np.float64)
    return np.add(r, s) + np.maximum(made, pairs)


def _told(heavy: HeavyKey, recent: list[int]) -> HeavyKey:
    """With what has come and gone."""
    came, gone = Sizes(*recent[:2]), Sizes(*recent[2:])
    return replace(heavy, controller=heavy.controller.observe(came, gone))


def _waits(controller: Controller) -> tuple[float, ...]:
    """What decides whether a controller has to hear of changes."""
    return (controller.sizes.r, controller.sizes.s, *controller.slack, controller.shrinks)


def _rows(values: N, width: int) -> N:
    return values.reshape(-1, width)
