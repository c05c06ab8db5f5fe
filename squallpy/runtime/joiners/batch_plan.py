"""Plan of a batch in an adaptive join: the grids that its tuples are joined on, and what is copied or moved beside it.

              a better mapping                all is copied                  next batch
    Steady ─────────────────────▶ Copying ─────────────────────▶ Switched ──────────────▶ Steady
       ▲                             │                               └── a better mapping ──▶ Copying
       └─────────────────────────────┘                KeyMoves: heavy keys get a grid, or lose it, between two batches
            no longer worth it

    epoch 0 on (4, 4)  →  (2, 8) is best: copies 0 … 2²⁸ of 2³², then 2²⁸ … 2²⁹, …  →  epoch 1 on (2, 8)

A migration takes several batches, and none of them waits for it: their tuples are joined as they come, on the grid that
there is. Beside it each joiner fills a second pool for each view, with the records of its place on the other grid: with
every batch a fraction of all, from the joiner that has them, and of those copied before the changes of the batch.
Records for others are handed off: the next batch begins with them (`hand_off_store.py`), so no batch has one more
stage. The joiners of a core copy in turns, more at a time, for to begin costs one more than to copy a little. When all
are copied, the next batch is on the new grid, and its joiners read the second pools. So each pair meets once, on one
grid, whatever statements do with it. The paper's joiners, which no batches keep in step, need sets of old and new
tuples for that (`adaptive-online-joins` Alg. 3, `testing/joins/migration_protocol.py`).
"""

import json
from collections.abc import Iterable
from functools import lru_cache
from typing import Any, ClassVar, get_args

from squallpy.base.json_codec import from_json, to_json
from squallpy.base.records import dataclass
from squallpy.physical.joins.grid import Grid
from squallpy.physical.joins.heavy_cells import HeavyCell
from squallpy.physical.joins.hypercube import Hypercube
from squallpy.physical.joins.mapping import Side
from squallpy.physical.joins.migration_transfers import Migration, migration
from squallpy.physical.joins.range_partitioning import RangePartitioning
from squallpy.runtime.kernels.view_container import HASHES
from squallpy.runtime.state.pool_names import PoolName, Role

MAX_TURNS = 8  # after which each joiner has copied once


@dataclass(frozen=True, slots=True)
class Turn:
    """A round-robin turn: joiners copy whose slot, modulo `of`, is `number`."""

    number: int = 0
    of: int = 1

    def __contains__(self, slot: int) -> bool:
        return slot % self.of == self.number


EVERYONE = Turn()


def slot_of(joiner: int, cores: int) -> int:
    """Number a joiner's slot, of MAX_TURNS: those that are dealt out to one core have different ones."""
    return joiner // cores % MAX_TURNS


@dataclass(frozen=True, slots=True)
class HandOffs:
    """Records that joiners have handed off after the batch before, those whose turn it was."""

    migrations: tuple[Migration, ...]
    turn: Turn = EVERYONE
    cores: int = 1

    def senders(self, joiner: int) -> list[int]:
        """List the joiners that may have handed off records to one."""
        moves = [migration(move.old, move.new) for move in self.migrations]
        found = {int(sender) for move in moves for side in Side for sender in move.senders(joiner, side)}
        return sorted(sender for sender in found if slot_of(sender, self.cores) in self.turn)


class _Grids:
    """Lookups that all plans share."""

    __slots__ = ()
    grids: tuple[Grid, ...]
    epoch: int

    def pool(self, view: str) -> str:
        """Name the pool of a view."""
        return PoolName(view, Role.OTHER_GRID) if self.epoch % 2 else view

    def other_pool(self, view: str) -> str:
        """Name the pool that a migration fills, or has left."""
        return view if self.epoch % 2 else PoolName(view, Role.OTHER_GRID)

    def group(self, joiner: int) -> int | None:
        """Find the number of the grid that a joiner is in."""
        return next((i for i, grid in enumerate(self.grids) if joiner in grid), None)


@dataclass(frozen=True, slots=True)
class Steady(_Grids):
    """A batch on a grid, or one for each group of joiners; `drops_copies`: it drops those of an abandoned migration."""

    grids: tuple[Grid, ...]
    epoch: int = 0
    drops_copies: bool = False
    arriving: ClassVar[None] = None


@dataclass(frozen=True, slots=True)
class Switched(_Grids):
    """The first batch of an epoch: the last records arrive, and the pools of the epoch before are dropped."""

    grids: tuple[Grid, ...]
    epoch: int
    arriving: HandOffs
    drops_copies: ClassVar[bool] = True


@dataclass(frozen=True, slots=True)
class Copying(_Grids):
    """A batch after which joiners copy records to the grids `to`.

    Args:
        now: The plan that the batch itself follows.
        low: The hash, of 2³², below which batches before have copied.
        high: The hash below which all is copied when it is everyone's turn again.
        done: By slot, the hash up to which it has copied; none: `low`.
        cores: Number of cores that joiners are dealt out to, so that each has as many whose turn it is.
        handed: Records that the batch before has copied for others.
    """

    now: Steady | Switched
    to: tuple[Grid, ...]
    low: int = 0
    high: int = 0
    turn: Turn = EVERYONE
    done: tuple[int, ...] = ()
    cores: int = 1
    handed: HandOffs | None = None

    @property
    def grids(self) -> tuple[Grid, ...]:  # type: ignore[override]  # NB: a dataclass may not have it as a field, too
        """Grids on which the batch is joined."""
        return self.now.grids

    @property
    def epoch(self) -> int:  # type: ignore[override]
        """Number of the grids on which the batch is joined."""
        return self.now.epoch

    @property
    def drops_copies(self) -> bool:
        """True if it drops the pools of the epoch before, or those of an abandoned migration."""
        return self.now.drops_copies

    @property
    def arriving(self) -> HandOffs | None:
        """Records that arrive with the batch."""
        return self.now.arriving or self.handed

    @property
    def migrations(self) -> tuple[Migration, ...]:
        """Migrations of each group of joiners."""
        return tuple(map(migration, self.grids, self.to))

    @property
    def is_last(self) -> bool:
        """True if all is copied after the batch."""
        return self.high == HASHES

    @property
    def copiers(self) -> Turn:
        """Turn of the joiners that copy after the batch."""
        return EVERYONE if self.is_last else self.turn

    @property
    def copied_after(self) -> tuple[int, ...]:
        """Hash, by slot, up to which joiners have copied after the batch."""
        return tuple(self._range(slot)[1 if slot in self.copiers else 0] for slot in range(MAX_TURNS))

    @property
    def handing_off(self) -> HandOffs:
        """Records that arrive with the next batch."""
        return HandOffs(self.migrations, self.copiers, self.cores)

    def copies(self, joiner: int) -> tuple[int, int] | None:
        """Return the hashes from which on and up to which a joiner copies after the batch; None if it does not."""
        slot = slot_of(joiner, self.cores)
        return self._range(slot) if slot in self.copiers else None

    def _range(self, slot: int) -> tuple[int, int]:
        """Return the hashes that a slot copies in its turn: as far as all will be when it has its next."""
        low = self.done[slot] if self.done else self.low
        ahead = (self.copiers.of - 1) * (self.high - self.low)
        return low, max(low, min(HASHES, self.high + ahead))


@dataclass(frozen=True, slots=True)
class KeyMoves(_Grids):
    """A batch by keys, of which heavy ones have a grid each; `moves`: (key, from, to) of those that move after it."""

    heavy: tuple[tuple[int, Grid], ...] = ()
    moves: tuple[tuple[int, Grid, Grid], ...] = ()
    arriving: HandOffs | None = None
    grids: ClassVar[tuple[Grid, ...]] = ()  # type: ignore[misc]  # NB: no field
    epoch: ClassVar[int] = 0  # type: ignore[misc]
    drops_copies: ClassVar[bool] = False

    @property
    def handing_off(self) -> HandOffs | None:
        """Records that arrive with the next batch."""
        moves = dict.fromkeys(migration(old, new) for _, old, new in self.moves)
        return HandOffs((*moves,)) if moves else None


@dataclass(frozen=True, slots=True)
class BitMove:
    """A bit of joiners' numbers that has changed its dimension: each has handed off records to that with the other.

    Args:
        joiners: Those of the hypercube; partitions beyond them have none.
    """

    bit: int
    joiners: int

    def partner(self, joiner: int) -> int:
        return joiner ^ 1 << self.bit

    def senders(self, joiner: int) -> list[int]:
        """List the joiners that may have handed off records to one."""
        return [self.partner(joiner)] if joiner < self.joiners else []


@dataclass(frozen=True, slots=True)
class OnHypercube(_Grids):
    """A batch on a hypercube, all of whose records move to the places of another after it, if there is one.

    Args:
        heavy: Keys whose tuples have cells of their own, in this batch and the next.
        to: The hypercube of the next batch, which differs in one bit.
    """

    cube: Hypercube
    heavy: tuple[HeavyCell, ...] = ()
    to: Hypercube | None = None
    arriving: BitMove | None = None
    grids: ClassVar[tuple[Grid, ...]] = ()  # type: ignore[misc]  # NB: no field
    epoch: ClassVar[int] = 0  # type: ignore[misc]
    drops_copies: ClassVar[bool] = False

    @property
    def move(self) -> BitMove | None:
        """The bit that changes its dimension after the batch."""
        if self.to is None:
            return None
        (bit,) = (bit for own, to in zip(self.cube.bits, self.to.bits, strict=True) for bit in own if bit not in to)
        return BitMove(bit, self.cube.joiners)


@dataclass(frozen=True, slots=True)
class RangeMove:
    """Regions that were drawn anew: these joiners have handed off records to those that lacked them."""

    from_joiners: tuple[int, ...]

    def senders(self, joiner: int) -> list[int]:
        """List the joiners that may have handed off records to one."""
        return [sender for sender in self.from_joiners if sender != joiner]


@dataclass(frozen=True, slots=True)
class OnRanges(_Grids):
    """A batch of a band join by ranges, all of whose records move to the joiners of other ranges after it, if any.

    Args:
        to: The ranges of the next batch.
        reports: Joiners report histograms of what they hold after the batch, and of what came with it.
        epoch: Number of the grids on which the join was before, by which the pools of its views are named.
    """

    ranges: RangePartitioning
    to: RangePartitioning | None = None
    reports: bool = False
    arriving: RangeMove | None = None
    epoch: int = 0
    grids: ClassVar[tuple[Grid, ...]] = ()  # type: ignore[misc]  # NB: no field
    drops_copies: ClassVar[bool] = False


BatchPlan = Steady | Switched | Copying | KeyMoves | OnHypercube | OnRanges


def hands_off(plan: BatchPlan | None, joiner: int) -> bool:
    """True if a joiner hands off records after a batch."""
    match plan:
        case Copying():
            return plan.copies(joiner) is not None
        case KeyMoves(moves=moves):
            return bool(moves)
        case OnHypercube(cube=cube, to=to):
            return to is not None and joiner < cube.joiners
        case OnRanges(ranges=ranges, to=after):
            return after is not None and joiner in ranges.numbers
    return False


def senders_to(plan: BatchPlan | None, joiner: int) -> Iterable[int]:
    """List the joiners that may have handed off records to one, for the beginning of a batch."""
    return plan.arriving.senders(joiner) if plan and plan.arriving else ()


def is_moving(plan: BatchPlan | None) -> bool:
    """True if records are on their way, between pools or partitions, before or after a batch."""
    match plan:
        case Steady(drops_copies=drops):
            return drops
        case KeyMoves(moves=moves, arriving=arriving):
            return bool(moves or arriving)
        case OnHypercube(to=to, arriving=moved):
            return bool(to or moved)
        case OnRanges(to=after, arriving=from_others):
            return bool(after or from_others)
    return plan is not None


def encode_plan(plan: BatchPlan | None) -> str:
    """Write a plan as the text that tasks get; none is empty."""
    return json.dumps({type(plan).__name__: to_json(plan)}) if plan else ""


@lru_cache(maxsize=2)  # the partitions of a worker get the same one, at each stage
def decode_plan(text: str) -> BatchPlan | None:
    """Read the plan that `encode_plan` has written."""
    if not text:
        return None
    ((name, data),) = json.loads(text).items()
    kinds: dict[str, Any] = {kind.__name__: kind for kind in get_args(BatchPlan)}
    plan: BatchPlan = from_json(kinds[name], data)
    return plan
