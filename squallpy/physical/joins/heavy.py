"""Equi-joins: heavy keys have a grid of their own over all joiners, the others are hashed (thesis §4.4.4, `Hybrid`).

    16 joiners, a key with |R_k| = 10,000 and |S_k| = 10   →   (16, 1): a sixteenth of R_k and all of S_k at each

A key is a rectangle of the join matrix, and shares no state with others. What it costs is the tuples it brings and the
pairs they make, |R_k| + |S_k| + |R_k| · |S_k|; it is heavy if that is more than a `share` of what a joiner has on
average, and light again below a quarter of it. Of n keys hashed to J joiners the busiest then has about √(share · 2 ln
J) more than the mean at most, whatever the skew; and there are never more than J / share heavy keys.

Frequencies come from sketches of 2 J / share counters, and are exact once a key is heavy. A key that is in no sketch
has at most a share of |R| and |S| of half the threshold; of the pairs it makes no more is known, so joiners may report
keys that made many, which are counted in a sketch, too.
"""

from dataclasses import dataclass, field, replace

import numpy as np

from squallpy.physical.joins.controller import Controller, Policy, Sizes
from squallpy.physical.joins.grid import Grid, at
from squallpy.physical.joins.mapping import Numbers, Side, Tickets, optimal, top_bits
from squallpy.physical.joins.migration import Migration
from squallpy.physical.joins.sketch import Frequencies, Keys, Sketch, frequencies

SHARE = 1 / 64  # of the mean joiner's work: of 16 joiners the busiest has 1.25 times the mean
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


@dataclass(frozen=True, slots=True)
class Heavy:
    """The keys of an equi-join: frequencies, and what has a grid, by key."""

    joiners: int
    share: float
    policy: Policy
    sides: tuple[Frequencies, Frequencies]
    pairs: Sketch
    keys: tuple[HeavyKey, ...] = field(default=())

    @property
    def grid_joiners(self) -> int:
        """How many joiners a grid has: a power of two."""
        return 1 << self.joiners.bit_length() - 1

    def home(self, keys: Keys) -> Numbers:
        """The joiner of light keys."""
        return (top_bits(keys, 32) * self.joiners >> 32).astype(np.int64)

    def route(self, side: Side, keys: Keys, tickets: Tickets) -> tuple[Numbers, Numbers]:
        """Positions of tuples, and the joiners they go to."""
        which = _among(self.heavy_keys, keys)
        light = np.flatnonzero(which < 0)
        positions, joiners = [light], [self.home(keys[light])]
        grids = [heavy.place for heavy in self.keys]
        kinds = {grid: i for i, grid in enumerate(dict.fromkeys(grids))}
        kind = np.array([kinds[grid] for grid in grids], np.int64)
        for grid, i in kinds.items():
            mine = np.flatnonzero((which >= 0) & (kind[which] == i))
            targets = grid.targets(side, tickets[mine])
            positions.append(np.repeat(mine, targets.shape[1]))
            joiners.append(targets.ravel())
        return np.concatenate(positions), np.concatenate(joiners)

    @property
    def heavy_keys(self) -> Keys:
        return np.array([heavy.key for heavy in self.keys], np.uint64)

    def observe(self, side: Side, keys: Keys, signs: Numbers) -> "Heavy":
        """Inserts (+1) and deletes (−1) of a relation."""
        sides = list(self.sides)
        sides[side] = sides[side].add(keys, signs)
        which = _among(self.heavy_keys, keys)
        came, gone = (
            np.bincount(which[(which >= 0) & (signs * sign > 0)], minlength=len(self.keys)) for sign in (1, -1)
        )
        after = tuple(
            replace(heavy, controller=heavy.controller.observe(_of(side, c), _of(side, g))) if c or g else heavy
            for heavy, c, g in zip(self.keys, came.tolist(), gone.tolist(), strict=True)
        )
        return replace(self, sides=(sides[0], sides[1]), keys=after)

    def observe_pairs(self, keys: Keys, counts: Numbers) -> "Heavy":
        """Pairs that joiners have put out of some light keys."""
        return replace(self, pairs=self.pairs.add(keys, counts))

    def decide(self) -> tuple["Heavy", tuple[tuple[int, Migration], ...]]:
        """Keys that are promoted, demoted or take another mapping, with their migrations."""
        keys = np.unique(np.concatenate([self.sides[0].keys, self.sides[1].keys, self.pairs.keys]))
        light = keys[_among(self.heavy_keys, keys) < 0]
        r, s = (self.sides[side].of(light) for side in Side)
        work = _work(r, s, self.pairs.of(light))
        heaviness = np.array([_work(h.controller.sizes.r, h.controller.sizes.s, 0) for h in self.keys])
        limit = max(self.share * self._mean(work, r, s, heaviness), LEAST * self.joiners)
        moves = list[tuple[int, Migration]]()
        after = [self._reconsidered(h, w < limit / LIGHTER, moves) for h, w in zip(self.keys, heaviness, strict=True)]
        for i in np.flatnonzero(work > limit).tolist():
            promoted = self._promoted(int(light[i]), Sizes(int(r[i]), int(s[i])))
            after.append(promoted)
            moves.append((promoted.key, Migration(at(self._home(promoted.key)), promoted.place)))
        after.sort(key=lambda heavy: heavy.key)
        return replace(self, keys=tuple(after)), tuple(moves)

    def finished(self, key: int) -> "Heavy":
        """The migration of a key is over."""
        (heavy,) = (h for h in self.keys if h.key == key)
        rest = tuple(h for h in self.keys if h.key != key)
        if heavy.demoted:
            return replace(self, keys=rest)
        done = replace(heavy, controller=heavy.controller.finished())
        return replace(self, keys=tuple(sorted((*rest, done), key=lambda h: h.key)))

    def _mean(self, work: np.ndarray, r: Numbers, s: Numbers, heaviness: np.ndarray) -> float:
        """The work of a joiner; light keys outside the sketches make no pairs here, so that it is rather too low."""
        pairs = float((work - r - s).sum()) + sum(float(h.controller.sizes.r) * h.controller.sizes.s for h in self.keys)
        return (self.sides[0].size + self.sides[1].size + pairs) / self.joiners

    def _home(self, key: int) -> int:
        return int(self.home(np.array([key], np.uint64))[0])

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


def heavy(joiners: int, share: float = SHARE, policy: Policy | None = None) -> Heavy:
    """An equi-join that has seen nothing."""
    if joiners < 1 or not 0 < share <= 1:
        raise ValueError(f"a join has a joiner or more, and heavy keys a share of 0 to 1, not {joiners} and {share}")
    size = int(np.ceil(2 * joiners / share))
    return Heavy(joiners, share, policy or Policy(), (frequencies(size), frequencies(size)), Sketch(size))


def _among(sorted_keys: Keys, keys: Keys) -> Numbers:
    """The positions of keys among others, −1 for those that are not there."""
    if not len(sorted_keys):
        return np.full(len(keys), -1)
    found = np.minimum(np.searchsorted(sorted_keys, keys), len(sorted_keys) - 1)
    return np.where(sorted_keys[found] == keys, found, -1)


def _work(r: Numbers | int, s: Numbers | int, pairs: Numbers | int) -> np.ndarray:
    """Tuples, and pairs: those that their numbers make, or more if joiners said so."""
    made = np.multiply(r, s, dtype=np.float64)
    return np.add(r, s) + np.maximum(made, pairs)


def _of(side: Side, count: int) -> Sizes:
    return Sizes(0, count) if side else Sizes(count)
