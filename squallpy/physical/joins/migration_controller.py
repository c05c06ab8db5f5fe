"""Migration and growth of a grid: when each is due, and to which mapping (paper Alg. 1 and 2, §4.2.2; thesis Alg. 3).

    (8, 8), |R| = |S| = 100, then 100 more of S    |ΔS| ≥ ε|S|, and (4, 16) would be no better   →  stays
    then 200 more of S                             |ΔS| ≥ ε|S|, and (4, 16) is best              →  migrates

Sizes are in units of any kind: tuples, or bytes, so that τ_R and τ_S count (§4.2.2). They may be samples, scaled up.

If |R| and |S| differ by more than a factor of J, the smaller counts as a J-th of the larger (padding without stored
dummy tuples). Deletes and expiry are changes as inserts are, and from the first one on the threshold is half as high.
"""

from dataclasses import replace
from math import ceil, inf

from squallpy.base.records import dataclass
from squallpy.physical.joins.grid import Grid
from squallpy.physical.joins.mapping import Mapping, Side, all_mappings, find_best_mapping, find_square_mapping
from squallpy.physical.joins.migration_transfers import Migration


@dataclass(frozen=True, slots=True)
class Sizes:
    """Sizes of both inputs, R and S."""

    r: int = 0
    s: int = 0

    def __add__(self, other: "Sizes") -> "Sizes":
        return Sizes(self.r + other.r, self.s + other.s)

    def times(self, n: int) -> "Sizes":
        return Sizes(n * self.r, n * self.s)

    def minus(self, other: "Sizes") -> "Sizes":
        """Subtract other sizes; a negative difference, which samples can yield, becomes 0."""
        return Sizes(max(0, self.r - other.r), max(0, self.s - other.s))

    def pad(self, joiners: int) -> "Sizes":
        """Raise the smaller size to a J-th of the larger (virtual padding)."""
        return Sizes(max(self.r, -(-self.s // joiners)), max(self.s, -(-self.r // joiners)))


NOTHING = Sizes()
EPSILON = 0.25  # default in the runtime
BOUND, BOUND_OF_SHRINKING = 1.25, 1.4  # of ILF by ILF* (Theorems 4.1 and 4.4.4)
COPIES = 2  # tuples copied for each new one, at least, while a migration runs
MARGIN = 0.95  # fraction of the headroom used, as sizes may be samples


@dataclass(frozen=True, slots=True)
class Policy:
    """ε trades load, within (3 + 2ε) / (3 + ε) of the best, for migrations, 7/ε per tuple (thesis Theorem 4.4.2)."""

    epsilon: float = 1.0
    warm_up: int = 0  # units before the first decision
    capacity: int | None = None  # units that a joiner may store: at half of it, the grid grows
    most: int = 1 << 20  # joiners
    worth: float = 1.0  # ratio to the best load above which a migration is worth it

    def __post_init__(self) -> None:
        if not 0 < self.epsilon <= 1:
            raise ValueError(f"ε is above 0 and at most 1, not {self.epsilon}")
        if self.warm_up < 0 or (self.capacity is not None and self.capacity < 1):
            raise ValueError(f"neither warm-up nor capacity is negative: {self}")

    def rate(self, migration: Migration) -> float:
        """Compute the tuples to migrate per new tuple, so that no relation changes by ε before the migration ends.

        2/ε to another mapping: |ΔR| ≤ ε|R|/4 and |ΔS| ≤ ε|S|/2 then, where the paper has ε = 1 (Theorem 4.4). A growth
        sends three times the load that it leaves, while a relation may be a third of that load: 9/ε.
        """
        return (2 if migration.new.joiners == migration.old.joiners else 9) / self.epsilon


DEFAULT = Policy()


@dataclass(frozen=True, slots=True)
class Controller:
    """A grid, with the changes since its last decision."""

    grid: Grid
    policy: Policy = DEFAULT
    sizes: Sizes = NOTHING  # now
    decided: Sizes = NOTHING  # |R| and |S| at the last decision
    changed: Sizes = NOTHING  # |ΔR| and |ΔS| since, inserts and deletes
    shrinks: bool = False  # true after the first delete
    migrating: bool = False

    @property
    def mapping(self) -> Mapping:
        return self.grid.mapping

    @property
    def load(self) -> float:
        """The input-load factor: the tuples that a joiner stores."""
        return self.mapping.load(self.sizes.r, self.sizes.s)

    @property
    def ratio(self) -> float:
        """ILF / ILF*: its load by that under the best mapping; 1 if there is nothing."""
        best = find_best_mapping(self.grid.joiners, self.sizes.r, self.sizes.s)
        least = best.load(self.sizes.r, self.sizes.s)
        return self.load / least if least else 1.0

    @property
    def threshold(self) -> float:
        """Fraction of a relation's size by which it has to change before a decision."""
        return self.policy.epsilon / 2 if self.shrinks else self.policy.epsilon

    @property
    def slack(self) -> tuple[float, float]:
        """Change of R and of S that is still allowed before a decision is due."""
        base, change = self.decided.pad(self.grid.joiners), self.changed
        return self.threshold * base.r - change.r, self.threshold * base.s - change.s

    @property
    def is_due(self) -> bool:
        """True if one of the relations has changed by the threshold."""
        of_r, of_s = self.slack
        change = self.changed
        return (change.r > 0 and of_r <= 0) or (change.s > 0 and of_s <= 0)

    @property
    def is_full(self) -> bool:
        """True if a joiner is beyond half its capacity and the grid may grow."""
        capacity = self.policy.capacity
        return capacity is not None and self.load > capacity / 2 and 4 * self.grid.joiners <= self.policy.most

    def headroom(self, now: Mapping) -> float:
        """Compute the change of R or S allowed before a joiner on the mapping `now` exceeds its bound.

        The bound is relative to the load on the best mapping, and when the grid grows, to the joiner's capacity.
        """
        (r, s), bound, out = (self.sizes.r, self.sizes.s), BOUND_OF_SHRINKING if self.shrinks else BOUND, inf
        if self.grid.joiners > now.joiners and self.policy.capacity is not None:
            out = (self.policy.capacity - now.load(r, s)) * min(now.rows, now.columns)
        for other in all_mappings(now.joiners):
            spare = bound * other.load(r, s) - now.load(r, s)
            for side, size in ((Side.R, r), (Side.S, s)):
                slope = 1 / now.cuts(side) - bound / other.cuts(side)  # the decrease for each further unit
                if slope > 0:
                    out = min(out, spare / slope)
                elif slope < 0 and self.shrinks and spare <= -slope * size:
                    out = min(out, spare / -slope)
        return max(0.0, out)

    def copy_fraction(self, old: Mapping, left: float, change: Sizes) -> float:
        """Compute the fraction of all tuples to copy with this batch, while a migration has `left` of them to copy.

        The rest is spread evenly over as many batches as COPIES asks for, or over as few as it takes to finish before
        the bound is passed, if each further batch changes as much as this one.
        """
        units, there = change.r + change.s, self.sizes.r + self.sizes.s
        if not units or not there or not left:
            return 0.0
        times = min(ceil(left * there / (COPIES * units)), MARGIN * self.headroom(old) // units)
        return left / max(1.0, times)

    def is_superseded(self, old: Mapping) -> bool:
        """True if the target of the running migration is worse by now than both the old mapping and some third one."""
        r, s = self.sizes.r, self.sizes.s
        new = self.mapping.load(r, s)
        if old.joiners != self.mapping.joiners or old.load(r, s) >= new:
            return False
        return any(mapping.load(r, s) < new for mapping in all_mappings(old.joiners) if mapping != old)

    def observe(self, came: Sizes, gone: Sizes = NOTHING, scale: int = 1) -> "Controller":
        """Add arrived and deleted tuples, each scaled up if they are a sample of one in `scale` (Alg. 1)."""
        came, gone = (Sizes(scale * x.r, scale * x.s) for x in (came, gone))
        return replace(
            self,
            sizes=(self.sizes + came).minus(gone),
            changed=self.changed + came + gone,
            shrinks=self.shrinks or gone != NOTHING,
        )

    def decide(self, coming: Sizes = NOTHING, going: Sizes = NOTHING) -> tuple["Controller", Migration | None]:
        """Start a migration if one is due and better; none while one runs, nor before the warm-up.

        The mapping is chosen for the sizes after what is known, or expected, to come and to go next.
        """
        if self.migrating or self.sizes.r + self.sizes.s < max(1, self.policy.warm_up):
            return self, None
        if self.is_full:
            return self._migrate(self.grid.grow(self._best_mapping(4 * self.grid.joiners)))
        then = self.observe(coming, going)
        if then.is_due and then._is_worth(best := then._best_mapping(self.grid.joiners)):
            return self._migrate(self.grid.remap(best))
        if self.is_due and self._best_mapping(self.grid.joiners) == self.mapping:
            return replace(self, decided=self.sizes, changed=NOTHING), None
        return self, None

    def abandon(self, grid: Grid) -> "Controller":
        """Abandon the running migration, which is no improvement any more: stay on `grid` and decide again at once."""
        assert self.migrating, "no migration runs"
        return replace(self, grid=grid, decided=NOTHING, migrating=False)

    def finish(self) -> "Controller":
        """Mark the running migration as finished."""
        assert self.migrating, "no migration runs"
        return replace(self, migrating=False)

    def _best_mapping(self, joiners: int) -> Mapping:
        """Find the best mapping of this many joiners; ties go to the present one."""
        now = self.mapping if joiners == self.grid.joiners else None
        return find_best_mapping(joiners, self.sizes.r, self.sizes.s, now)

    def _is_worth(self, best: Mapping) -> bool:
        """True if a migration to the mapping reduces the load enough; otherwise the next decision asks again."""
        least = best.load(self.sizes.r, self.sizes.s)
        return best != self.mapping and self.load >= self.policy.worth * least

    def _migrate(self, grid: Grid) -> tuple["Controller", Migration]:
        after = replace(self, grid=grid, decided=self.sizes, changed=NOTHING, migrating=True)
        return after, Migration(self.grid, grid)


def initial_controller(joiners: int, policy: Policy = DEFAULT, first: int = 0) -> Controller:
    """Create the controller of a square grid without tuples."""
    return Controller(Grid(find_square_mapping(joiners), first), policy)
