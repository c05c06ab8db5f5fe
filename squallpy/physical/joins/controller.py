"""When a grid takes another mapping, and when it grows (paper Alg. 1 and 2, §4.2.2; thesis Alg. 3).

    (8, 8), |R| = |S| = 100, then 100 more of S    |ΔS| ≥ ε|S|, and (4, 16) would be no better   →  stays
    then 200 more of S                             |ΔS| ≥ ε|S|, and (4, 16) is best              →  migrates

Sizes are in units of any kind: tuples, or bytes, so that τ_R and τ_S count (§4.2.2). They may be samples, scaled up.

Where |R| and |S| are more than J apart, the smaller counts as a J-th of the larger (padding, without dummy tuples that
would be stored). Deletes and expiry are changes as inserts are, and from the first one on the threshold is half as
high.
"""

from dataclasses import dataclass, replace

from squallpy.physical.joins.grid import Grid
from squallpy.physical.joins.mapping import Mapping, optimal, square
from squallpy.physical.joins.migration import Migration


@dataclass(frozen=True, slots=True)
class Sizes:
    """Of R and of S."""

    r: int = 0
    s: int = 0

    def __add__(self, other: "Sizes") -> "Sizes":
        return Sizes(self.r + other.r, self.s + other.s)

    def less(self, other: "Sizes") -> "Sizes":
        """What is left; of samples that say less than nothing, nothing."""
        return Sizes(max(0, self.r - other.r), max(0, self.s - other.s))

    def padded(self, joiners: int) -> "Sizes":
        """No more than J apart."""
        return Sizes(max(self.r, -(-self.s // joiners)), max(self.s, -(-self.r // joiners)))


NOTHING = Sizes()
EPSILON = 0.5  # of what runs in batches: with what comes meanwhile a relation has not doubled, so that ILF ≤ 1.25 ILF*


@dataclass(frozen=True, slots=True)
class Policy:
    """ε trades load, within (3 + 2ε) / (3 + ε) of the best, for migrations, 7/ε per tuple (thesis Theorem 4.4.2)."""

    epsilon: float = 1.0
    warm_up: int = 0  # no decision before so many units are there
    capacity: int | None = None  # units that a joiner should not hold more of: at half of it, the grid grows
    most: int = 1 << 20  # joiners

    def __post_init__(self) -> None:
        if not 0 < self.epsilon <= 1:
            raise ValueError(f"ε is above 0 and at most 1, not {self.epsilon}")
        if self.warm_up < 0 or (self.capacity is not None and self.capacity < 1):
            raise ValueError(f"neither warm-up nor capacity is negative: {self}")

    def rate(self, migration: Migration) -> float:
        """How many tuples migrate for a new one, so that no relation changes by ε before the migration is done.

        2/ε to another mapping: |ΔR| ≤ ε|R|/4 and |ΔS| ≤ ε|S|/2 then, where the paper has ε = 1 (Theorem 4.4). A growth
        sends three times the load that it leaves, while a relation may be a third of that load: 9/ε.
        """
        return (2 if migration.new.joiners == migration.old.joiners else 9) / self.epsilon


DEFAULT = Policy()


@dataclass(frozen=True, slots=True)
class Controller:
    """A grid, and what it has seen since the last decision."""

    grid: Grid
    policy: Policy = DEFAULT
    sizes: Sizes = NOTHING  # now
    decided: Sizes = NOTHING  # |R| and |S| at the last decision
    changed: Sizes = NOTHING  # |ΔR| and |ΔS| since: come and gone
    shrinks: bool = False  # has anything gone?
    migrating: bool = False

    @property
    def mapping(self) -> Mapping:
        return self.grid.mapping

    @property
    def load(self) -> float:
        """The input-load factor: what a joiner holds."""
        return self.mapping.load(self.sizes.r, self.sizes.s)

    @property
    def ratio(self) -> float:
        """ILF / ILF*: its load by that under the best mapping; 1 if there is nothing."""
        best = optimal(self.grid.joiners, self.sizes.r, self.sizes.s)
        least = best.load(self.sizes.r, self.sizes.s)
        return self.load / least if least else 1.0

    @property
    def threshold(self) -> float:
        """Which share of a relation has to change."""
        return self.policy.epsilon / 2 if self.shrinks else self.policy.epsilon

    @property
    def slack(self) -> tuple[float, float]:
        """How much of R, or of S, may still change before a decision is due."""
        base, change = self.decided.padded(self.grid.joiners), self.changed
        return self.threshold * base.r - change.r, self.threshold * base.s - change.s

    @property
    def is_due(self) -> bool:
        """Has one of the relations changed enough?"""
        of_r, of_s = self.slack
        change = self.changed
        return (change.r > 0 and of_r <= 0) or (change.s > 0 and of_s <= 0)

    @property
    def is_full(self) -> bool:
        """Is a joiner beyond half its capacity, and may the grid grow?"""
        capacity = self.policy.capacity
        return capacity is not None and self.load > capacity / 2 and 4 * self.grid.joiners <= self.policy.most

    def observe(self, came: Sizes, gone: Sizes = NOTHING, scale: int = 1) -> "Controller":
        """What has come and gone; of a sample of one in `scale`, that many times it (Alg. 1)."""
        came, gone = (Sizes(scale * x.r, scale * x.s) for x in (came, gone))
        return replace(
            self,
            sizes=(self.sizes + came).less(gone),
            changed=self.changed + came + gone,
            shrinks=self.shrinks or gone != NOTHING,
        )

    def decide(self, coming: Sizes = NOTHING) -> tuple["Controller", Migration | None]:
        """A migration, if one is due and better; none while one runs, nor before the warm-up. What is known to come
        counts as if it were there."""
        if self.migrating or self.sizes.r + self.sizes.s < max(1, self.policy.warm_up):
            return self, None
        if self.is_full:
            return self._migrate(self.grid.grown(self._best(4 * self.grid.joiners)))
        then = self.observe(coming)
        if then.is_due and (best := then._best(self.grid.joiners)) != self.mapping:
            return self._migrate(self.grid.mapped(best))
        if self.is_due and self._best(self.grid.joiners) == self.mapping:
            return replace(self, decided=self.sizes, changed=NOTHING), None
        return self, None

    def given_up(self, grid: Grid) -> "Controller":
        """The same on the grid that it still has, the migration being no better any more: it decides again at once."""
        assert self.migrating, "no migration runs"
        return replace(self, grid=grid, decided=NOTHING, migrating=False)

    def finished(self) -> "Controller":
        """The same, the migration being over."""
        assert self.migrating, "no migration runs"
        return replace(self, migrating=False)

    def _best(self, joiners: int) -> Mapping:
        """The best of so many; of equals, what is there already."""
        now = self.mapping if joiners == self.grid.joiners else None
        return optimal(joiners, self.sizes.r, self.sizes.s, now)

    def _migrate(self, grid: Grid) -> tuple["Controller", Migration]:
        after = replace(self, grid=grid, decided=self.sizes, changed=NOTHING, migrating=True)
        return after, Migration(self.grid, grid)


def starting(joiners: int, policy: Policy = DEFAULT, first: int = 0) -> Controller:
    """A square grid that has seen nothing."""
    return Controller(Grid(square(joiners), first), policy)
