"""Equi-joins whose heavy keys have grids of their own, while the other keys are hashed (thesis §4.4.4, `Hybrid`).

    16 joiners, a key with |R_k| = 10,000 and |S_k| = 10   →   (16, 1): a sixteenth of R_k and all of S_k at each

A key is a rectangle of the join matrix, and shares no state with others. Its work is its tuples plus their pairs, |R_k|
+ |S_k| + |R_k| · |S_k|; it is heavy if that exceeds a fraction `share` of the mean joiner's work, and light again below
a quarter of it. So there are at most J / share heavy keys, and the hashed keys are so small that hashing balances them:
the busiest joiner is above the mean by about √(share · 2 ln J) at worst, and by less than half of that under Zipf's
law.

If a move has a fixed cost, keys wait until their joint work exceeds several thresholds. So the busiest joiner has at
most that much above the mean.

Frequencies come from sketches of 2 J / share counters; from its promotion on, the changes of a key are counted.
A key in no sketch has less than half a threshold of tuples.
"""

from collections.abc import Iterable, Sequence
from dataclasses import field, replace
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from squallpy.base.records import dataclass
from squallpy.physical.joins.grid import Grid, single_joiner_grid
from squallpy.physical.joins.key_frequencies import Frequencies, Keys, frequencies
from squallpy.physical.joins.mapping import Numbers, Side, Tickets, find_best_mapping, top_bits
from squallpy.physical.joins.migration_controller import Controller, Policy, Sizes
from squallpy.physical.joins.migration_transfers import Migration

Floats = npt.NDArray[np.float64]
N = TypeVar("N", Numbers, Floats)

HEAVY_FRACTION = 1 / 64  # of the mean joiner's work makes a key heavy
LEAST = 4  # work per joiner below which a key is not worth a grid
LIGHTER = 4  # a key is light again at this fraction of the heavy threshold


@dataclass(frozen=True, slots=True)
class HeavyKey:
    """A key with a grid, or a demoted key whose tuples are leaving it."""

    key: int
    controller: Controller
    demoted: bool = False

    @property
    def place(self) -> Grid:
        return self.controller.grid


@dataclass(frozen=True, slots=True, eq=False)
class HeavyKeys:
    """The keys of an equi-join: their frequencies, and the grids of the heavy ones.

    Changes of heavy keys are added up in `recent`, a row per key; a key's controller observes them once they may
    suffice for a decision (`waits`). So a batch costs little more with a thousand heavy keys than with one.
    """

    joiners: int
    share: float
    policy: Policy
    sides: tuple[Frequencies, Frequencies]
    keys: tuple[HeavyKey, ...] = ()
    hashes: Keys = field(default_factory=lambda: np.empty(0, np.uint64))
    # by key: inserts of R and of S, deletes of R and of S
    recent: Numbers = field(default_factory=lambda: np.empty(0, np.int64))
    # by key: |R_k| and |S_k|, slack of both, true after the first delete
    waits: Floats = field(default_factory=lambda: np.empty(0, np.float64))
    together: int = 1  # thresholds that new heavy keys have to exceed together to be promoted

    @property
    def grid_joiners(self) -> int:
        """Number of joiners of a heavy key's grid, a power of two."""
        return 1 << self.joiners.bit_length() - 1

    def route(self, side: Side, keys: Keys, tickets: Tickets) -> tuple[Numbers, Numbers]:
        """Compute the positions of tuples, repeated for each copy, and the joiners they go to."""
        return route_by_key(self.joiners, self.hashes, [heavy.place for heavy in self.keys], side, keys, tickets)

    def observe(self, side: Side, keys: Keys, counts: Numbers, others: tuple[int, int] = (0, 0)) -> "HeavyKeys":
        """Count inserts (above 0) and deletes (below) of keys; `others` counts those of rare keys that are not
        named."""
        sides = list(self.sides)
        sides[side] = sides[side].add(keys, counts, others)
        which = _positions(self.hashes, keys)
        is_heavy = which >= 0
        cells = 4 * which[is_heavy] + side + 2 * (counts[is_heavy] < 0)
        recent = self.recent.copy()
        np.add.at(recent, cells, np.abs(counts[is_heavy]))
        return replace(self, sides=(sides[0], sides[1]), recent=recent)

    def decide(self) -> tuple["HeavyKeys", tuple[tuple[int, Migration], ...]]:
        """Decide which keys are promoted, demoted or get another mapping, with their migrations."""
        keys = np.unique(np.concatenate([self.sides[0].keys, self.sides[1].keys]))
        light = keys[_positions(self.hashes, keys) < 0]
        of_r, of_s = (self.sides[side].of(light) for side in Side)
        work = _work(of_r, of_s)
        recent, waits = _rows(self.recent, 4), _rows(self.waits, 5)
        sizes = np.maximum(waits[:, :2] + recent[:, :2] - recent[:, 2:], 0)
        heaviness = _work(sizes[:, 0], sizes[:, 1])
        pairs = float((work - of_r - of_s).sum() + (heaviness - sizes.sum(axis=1)).sum())
        limit = max(self.share * self._mean_work(pairs), LEAST * self.joiners)
        changed = recent[:, :2] + recent[:, 2:]
        is_due = ((changed > 0) & (changed >= waits[:, 2:4])).any(axis=1)
        is_due |= recent[:, 2:].any(axis=1) & (waits[:, 4] == 0)
        is_light = heaviness < limit / LIGHTER
        moves, after = list[tuple[int, Migration]](), list(self.keys)
        observed = np.flatnonzero(is_due | is_light)
        for i in observed.tolist():
            after[i] = self._reconsider(_observe_recent(self.keys[i], recent[i].tolist()), bool(is_light[i]), moves)
        above = work > limit
        for i in np.flatnonzero(above).tolist() if moves or work[above].sum() >= self.together * limit else ():
            after.append(self._promote(int(light[i]), Sizes(int(of_r[i]), int(of_s[i]))))
            moves.append(
                (after[-1].key, Migration(single_joiner_grid(self._hash_grid(after[-1].key)), after[-1].place))
            )
        if len(after) == len(self.keys) and not len(observed):
            return self, ()
        return self._with_keys(after, self.hashes[observed].tolist()), tuple(moves)

    def with_sampled_grids(self, sample: "HeavyKeys") -> "HeavyKeys":
        """Start from the grids that a sample of the input gave its heavy keys, before any tuple has arrived."""
        assert not self.keys, "grids are given before the first tuple"
        return self._with_keys([HeavyKey(heavy.key, Controller(heavy.place, self.policy)) for heavy in sample.keys])

    def finish(self, key: int) -> "HeavyKeys":
        """Mark the migration of a key as finished."""
        i = int(np.searchsorted(self.hashes, np.uint64(key)))
        heavy, (before, after) = self.keys[i], (self.keys[:i], self.keys[i + 1 :])
        assert heavy.key == key, "a key that has no grid cannot be done with it"
        if heavy.demoted:
            return self._with_keys([*before, *after])
        done = replace(heavy, controller=heavy.controller.finish())
        return replace(self, keys=(*before, done, *after))

    def _with_keys(self, keys: list[HeavyKey], observed: Iterable[int] = ()) -> "HeavyKeys":
        """Replace the heavy keys, and clear the recent changes of those whose controllers have observed them."""
        keys.sort(key=lambda heavy: heavy.key)
        hashes = np.array([heavy.key for heavy in keys], np.uint64)
        before = _positions(self.hashes, hashes)
        ids = np.isin(hashes, np.array(list(observed), np.uint64)) | (before < 0)
        recent, waits = np.zeros((len(keys), 4), np.int64), np.zeros((len(keys), 5))
        recent[~ids], waits[~ids] = _rows(self.recent, 4)[before[~ids]], _rows(self.waits, 5)[before[~ids]]
        for i in np.flatnonzero(ids).tolist():
            waits[i] = _observation_thresholds(keys[i].controller)
        return replace(self, keys=tuple(keys), hashes=hashes, recent=recent.ravel(), waits=waits.ravel())

    def _mean_work(self, pairs: float) -> float:
        """Estimate the mean work of a joiner, rather too low: light keys outside the sketches count without pairs."""
        return (self.sides[0].size + self.sides[1].size + pairs) / self.joiners

    def _hash_grid(self, key: int) -> int:
        return int(hash_joiner(self.joiners, np.array([key], np.uint64))[0])

    def _promote(self, key: int, sizes: Sizes) -> HeavyKey:
        grid = Grid(find_best_mapping(self.grid_joiners, sizes.r, sizes.s))
        return HeavyKey(key, Controller(grid, self.policy, sizes, decided=sizes, migrating=True))

    def _reconsider(self, heavy: HeavyKey, is_light: bool, moves: list[tuple[int, Migration]]) -> HeavyKey:
        if heavy.controller.migrating:
            return heavy
        if is_light:
            home = single_joiner_grid(self._hash_grid(heavy.key))
            moves.append((heavy.key, Migration(heavy.place, home)))
            return HeavyKey(heavy.key, replace(heavy.controller, grid=home, migrating=True), demoted=True)
        controller, migration = heavy.controller.decide()
        if migration is not None:
            moves.append((heavy.key, migration))
        return replace(heavy, controller=controller)


def hash_joiner(joiners: int, keys: Keys) -> Numbers:
    """Compute the joiner of light keys from their hashes."""
    return top_bits(keys, 32) * joiners >> 32


def route_by_key(
    joiners: int, heavy: Keys, heavy_grids: Sequence[Grid], side: Side, keys: Keys, tickets: Tickets
) -> tuple[Numbers, Numbers]:
    """Compute the positions of tuples and the joiners they go to; `places` holds the grids of the heavy keys in
    order."""
    which = _positions(heavy, keys)
    light = np.flatnonzero(which < 0)
    positions, targets = [light], [hash_joiner(joiners, keys[light])]
    kinds = {grid: i for i, grid in enumerate(dict.fromkeys(heavy_grids))}
    kind = np.array([kinds[grid] for grid in heavy_grids], np.int64)
    for grid, i in kinds.items():
        mine = np.flatnonzero((which >= 0) & (kind[which] == i))
        several = grid.targets(side, tickets[mine])
        positions.append(np.repeat(mine, several.shape[1]))
        targets.append(several.ravel())
    return np.concatenate(positions), np.concatenate(targets)


def initial_heavy_keys(
    joiners: int, fraction: float = HEAVY_FRACTION, policy: Policy | None = None, together: int = 1
) -> HeavyKeys:
    """Create the state of an equi-join without tuples."""
    if joiners < 1 or not 0 < fraction <= 1:
        raise ValueError(f"a join has a joiner or more, and heavy keys a share of 0 to 1, not {joiners} and {fraction}")
    size = int(np.ceil(2 * joiners / fraction))
    sides = frequencies(size), frequencies(size)
    return HeavyKeys(joiners, fraction, policy or Policy(), sides, together=together)


def _positions(sorted_keys: Keys, keys: Keys) -> Numbers:
    """Find the positions of keys in a sorted list, −1 for absent ones."""
    if not len(sorted_keys):
        return np.full(len(keys), -1)
    found = np.minimum(np.searchsorted(sorted_keys, keys), len(sorted_keys) - 1)
    return np.where(sorted_keys[found] == keys, found, -1)


def _work(r: Floats | Numbers, s: Floats | Numbers) -> Floats:
    """Compute the work of keys: their tuples and pairs."""
    return np.add(r, s) + np.multiply(r, s, dtype=np.float64)


def _observe_recent(heavy: HeavyKey, recent: list[int]) -> HeavyKey:
    """Let a key's controller observe its recent changes."""
    came, gone = Sizes(*recent[:2]), Sizes(*recent[2:])
    return replace(heavy, controller=heavy.controller.observe(came, gone))


def _observation_thresholds(controller: Controller) -> tuple[float, ...]:
    """List the sizes and slacks from which follows when a controller has to observe changes."""
    return (controller.sizes.r, controller.sizes.s, *controller.slack, controller.shrinks)


def _rows(values: N, width: int) -> N:
    return values.reshape(-1, width)
