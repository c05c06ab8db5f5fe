"""Migration policy of joins on a grid: when it becomes another, and how fast its records are copied."""

from collections.abc import Mapping
from dataclasses import replace
from math import ceil
from typing import Any

from squallpy.base.records import dataclass
from squallpy.physical.joins.grid import Grid
from squallpy.physical.joins.joiner_groups import stored_load
from squallpy.physical.joins.mapping import Side, find_best_mapping
from squallpy.physical.joins.migration_controller import NOTHING, Controller, Sizes
from squallpy.runtime.joiners.batch_plan import MAX_TURNS, Copying, Steady, Switched, Turn
from squallpy.runtime.joiners.joiner_statistics import JoinerStatistics, loads, skew, total
from squallpy.runtime.kernels.view_container import HASHES

MIN_COPIED_TUPLES = 1 << 13  # that all joiners together copy after a batch
MIN_JOINER_TUPLES = 1 << 11  # fewer at a joiner: to begin a copy costs it more than the copy
MAX_UNEVEN_TURNS = 4  # where turns leave some cores with more to copy than others
MAX_MIGRATION_BATCHES = 256
FORESIGHT_BATCHES = 5  # like the one that comes, after which a mapping is to be best: a migration takes as long
MIN_LOAD_RATIO = 1.06  # of the loads by two mappings: one that is hardly better is likely to be worse soon after


@dataclass(frozen=True, slots=True)
class GridPolicy:
    """Policy of a grid, or of groups of joiners with one each.

    Controllers weigh tuples by their bytes, as they came on average so far (§4.2.2). Of rows that are about to be read,
    as many are expected to stay as did so far; from windows as many tuples are expected to pass out as with the last
    batch, which no row tells.

    Args:
        held: Tuples that there are.
        came: Tuples that ever arrived, at all joiners together.
        brought: Bytes of those.
        read: Rows that ever were read.
        changed: Bytes by which rows made relations larger, and smaller, both added up.
        rows: Rows of the batch that runs.
        expiring: Bytes that passed out of windows with the last batch.
        expired: Bytes that ever did.
        cores: Number of cores at which tasks run.
    """

    plan: Steady | Switched | Copying
    controllers: tuple[Controller, ...]
    held: Sizes = NOTHING
    came: Sizes = NOTHING
    brought: Sizes = NOTHING
    read: Sizes = NOTHING
    changed: Sizes = NOTHING
    rows: Sizes = NOTHING
    expiring: Sizes = NOTHING
    expired: Sizes = NOTHING
    cores: int = 1

    def figures(self, stats: Mapping[str, Any]) -> dict[str, Any]:
        """Report the mapping (of each group, where there are several) and the load of the batch that it was for.

        `ilf` is the tuples of a joiner of the largest group, by the relations' sizes, `ilf_ratio` that load by the best
        mapping's (in bytes), `loads` the tuples of each joiner, `busiest` those of the one with most by the mean.
        """
        joiners: JoinerStatistics = stats["joiners"]
        now, mappings = self._observe(joiners), [grid.mapping for grid in self.plan.grids]
        sizes, shapes = now.controllers[0].sizes, [[m.rows, m.columns] for m in mappings]
        best = stored_load([find_best_mapping(m.joiners, sizes.r, sizes.s) for m in mappings], sizes.r, sizes.s)
        count = sum(mapping.joiners for mapping in mappings)
        return {
            "mapping": shapes[0] if len(shapes) == 1 else shapes, "epoch": self.plan.epoch,
            "ilf": stored_load(mappings, now.held.r, now.held.s),
            "ilf_ratio": stored_load(mappings, sizes.r, sizes.s) / best if best else 1.0,
            "busiest": skew(joiners, count), "loads": loads(joiners, count),
            "migrated": self.plan.high / HASHES if isinstance(self.plan, Copying) else None,
        }  # fmt: skip

    def with_cores(self, cores: int) -> "GridPolicy":
        """Set the number of cores at which tasks run."""
        return replace(self, cores=cores)

    def plan_batch(self, rows: Sizes) -> "GridPolicy":
        """Plan a batch of so many rows, which are counted before they are sent, as if it were the first of several."""
        plan, controllers = self.plan, self.controllers
        coming = self._expect(controllers[0].sizes + self.expired, rows)
        batches = self._foresight
        later = coming.times(batches), self.expiring.times(batches)
        match plan:
            case Copying() if self._is_moot(*later):
                plan, controllers = self._abandon(plan)
            case Copying(is_last=True):
                plan, controllers = self._switch(plan, coming)
            case Copying():
                plan = replace(plan, now=Steady(plan.grids, plan.epoch), handed=plan.handing_off)
            case _:
                plan = Steady(plan.grids, plan.epoch)
        if not isinstance(plan, Copying):
            controllers = tuple(c.decide(*later)[0] for c in controllers)
            if any(controller.migrating for controller in controllers):
                # NB: cores stay as they are while a migration runs, so that turns do, also if it goes on with others
                plan = Copying(plan, tuple(controller.grid for controller in controllers), cores=self.cores)
        if isinstance(plan, Copying):
            change = self._expect(self.changed.minus(self.expired), rows) + self.expiring
            plan = self._advance(plan, self._next_hash(plan, controllers, change))
        return replace(self, plan=plan, controllers=controllers, read=self.read + rows, rows=rows)

    def observe(self, stats: Mapping[str, Any]) -> "GridPolicy":
        """Take in the statistics of the batch."""
        return self._observe(stats["joiners"])

    @property
    def _foresight(self) -> int:
        """The number of batches to plan for: at most until half of what windows hold has passed out."""
        held, going = self.controllers[0].sizes, self.expiring
        most = (held.r + held.s) // (2 * (going.r + going.s)) if going != NOTHING else FORESIGHT_BATCHES
        return max(1, min(FORESIGHT_BATCHES, most))

    def _advance(self, plan: Copying, high: int) -> Copying:
        """Let a batch copy up to a hash.

        All joiners copy, or in turns where that saves time (each has few tuples to copy, or each core has some whose
        turn it is) and enough batches are left for all turns.
        """
        fraction, joiners = high - plan.high, sum(grid.joiners for grid in plan.grids)
        load = stored_load([grid.mapping for grid in plan.grids], self.held.r, self.held.s)
        is_small = fraction * load < MIN_JOINER_TUPLES * HASHES
        most = max(MAX_UNEVEN_TURNS if is_small else 1, min(MAX_TURNS, joiners // plan.cores))
        turns = plan.turn.of
        if not 1 < turns <= most:
            turns = 1 << min(most, (HASHES - plan.high) // fraction).bit_length() - 1
        turn = Turn((plan.turn.number + 1) % turns, turns)
        return replace(plan, low=plan.high, high=high, turn=turn, done=plan.copied_after)

    def _expect(self, so_far: Sizes, rows: Sizes) -> Sizes:
        """Scale `so_far`, what all rows before have brought, to so many rows; one without any is like the other."""
        read = self.read
        of_r, of_s = (size / count if count else None for size, count in ((so_far.r, read.r), (so_far.s, read.s)))
        return Sizes(int(rows.r * (of_r or of_s or 0)), int(rows.s * (of_s or of_r or 0)))

    def _switch(self, plan: Copying, coming: Sizes) -> tuple[Steady | Switched, tuple[Controller, ...]]:
        """Switch to the grids that all is copied to, unless the old ones are better by now."""
        sizes = (self.controllers[0].sizes + coming).minus(self.expiring)
        old, new = (stored_load([g.mapping for g in grids], sizes.r, sizes.s) for grids in (plan.grids, plan.to))
        if new > old:
            return self._abandon(plan)
        finished = tuple(c.finish() if c.migrating else c for c in self.controllers)
        return Switched(plan.to, plan.epoch + 1, plan.handing_off), finished

    def _is_moot(self, coming: Sizes, going: Sizes) -> bool:
        """True if the mapping that is copied to has become worse than one in the other direction."""
        both = zip(self.controllers, self.plan.grids, strict=True)
        return any(c.observe(coming, going).is_superseded(grid.mapping) for c, grid in both if c.migrating)

    def _abandon(self, plan: Copying) -> tuple[Steady, tuple[Controller, ...]]:
        """Return to the old grids alone, dropping the copies."""
        both = zip(self.controllers, plan.grids, strict=True)
        controllers = tuple(c.abandon(grid) if c.migrating else c for c, grid in both)
        return Steady(plan.grids, plan.epoch, drops_copies=True), controllers

    def _next_hash(self, plan: Copying, controllers: tuple[Controller, ...], change: Sizes) -> int:
        """Choose the hash up to which a batch copies that changes so many bytes."""
        left, mappings = 1 - plan.high / HASHES, [grid.mapping for grid in plan.grids]
        least = [c.copy_fraction(m, left, change) for c, m in zip(controllers, mappings, strict=True) if c.migrating]
        tuples = sum(m.joiners for m in mappings) * stored_load(mappings, self.held.r, self.held.s)
        fraction = max(*least, MIN_COPIED_TUPLES / max(1, tuples), 1 / MAX_MIGRATION_BATCHES)
        return min(HASHES, plan.high + ceil(fraction * HASHES))

    def _observe(self, joiners: JoinerStatistics) -> "GridPolicy":
        """Take in the tuples that came and went.

        Tuples that only change their multiplicity count half as coming, half as going. Those that arrive come to all
        groups, and stay in one.
        """
        now = self.held
        groups = [_Group(grid, [joiners[str(n)] for n in grid.numbers]) for grid in self.plan.grids]
        arrived, held = groups[0].tuples("r", "s"), sum((group.tuples("R", "S") for group in groups), NOTHING)
        gone = Sizes(max(0, arrived.r - held.r + now.r) // 2, max(0, arrived.s - held.s + now.s) // 2)
        ids = Sizes(held.r - now.r + gone.r, held.s - now.s + gone.s)
        came = self.came + Sizes(total(joiners, "r"), total(joiners, "s"))
        brought = self.brought + Sizes(total(joiners, "r bytes"), total(joiners, "s bytes"))
        changes = (_bytes_of(ids, came, brought), _bytes_of(gone, came, brought))
        # NB: rows that delete have come, too, so what went without any has passed out of a window
        expiring = _bytes_of(gone.minus(self.rows.minus(ids)), came, brought)
        sizes = _bytes_of(held, came, brought)
        controllers = tuple(replace(c.observe(*changes), sizes=sizes) for c in self.controllers)
        changed = self.changed + changes[0] + changes[1]
        return replace(
            self, controllers=controllers, held=held, came=came, brought=brought, changed=changed, expiring=expiring,
            expired=self.expired + expiring,
        )  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Group:
    """The joiners of a grid, with the statistics of each."""

    grid: Grid
    joiners: list[Mapping[str, int]]

    def tuples(self, r: str, s: str) -> Sizes:
        """Count the tuples of two figures, each tuple once."""
        copies, sums = self.grid.mapping.copies, [sum(joiner[name] for joiner in self.joiners) for name in (r, s)]
        return Sizes(sums[0] // copies(Side.R), sums[1] // copies(Side.S))


def _bytes_of(tuples: Sizes, came: Sizes, brought: Sizes) -> Sizes:
    """Weigh tuples by the mean bytes of those that came."""
    return Sizes(tuples.r * brought.r // max(1, came.r), tuples.s * brought.s // max(1, came.s))
