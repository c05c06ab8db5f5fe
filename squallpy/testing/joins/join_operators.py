"""The join operators behind one interface (paper §5; thesis §4.5).

    Hashed   SHJ: a tuple goes to the joiner of its key
    Static   StaticMid, a square grid; StaticOpt, the best grid for given sizes
    Dynamic  grids of any number of joiners, which adapt
    Hybrid   SHJ, but heavy keys have adaptive grids

`route` finds the joiners of a batch's tuples; `observe` and `decide` follow the sizes, and start migrations; `finish`
ends one. SHJ and Hybrid route by keys, which are hashes of the columns that an equi-join compares.
"""

from dataclasses import replace
from typing import Protocol, Self

import numpy as np

from squallpy.base.records import dataclass
from squallpy.base.settings import BINARY_OPERATORS
from squallpy.physical.joins.grid import Grid
from squallpy.physical.joins.heavy_keys import HEAVY_FRACTION, HeavyKeys, hash_joiner, initial_heavy_keys
from squallpy.physical.joins.joiner_groups import GroupHomes, powers_of_two, square_grids
from squallpy.physical.joins.key_frequencies import Keys
from squallpy.physical.joins.mapping import Mask, Numbers, Side, Tickets, find_best_mapping, find_square_mapping
from squallpy.physical.joins.migration_controller import Controller, Policy, Sizes
from squallpy.physical.joins.migration_transfers import Migration

NAMES = BINARY_OPERATORS


@dataclass(frozen=True, slots=True)
class Routes:
    """The tuple at a position of the batch goes to a joiner, which stores it, or only joins it (groups)."""

    positions: Numbers
    joiners: Numbers
    stored: Mask


@dataclass(frozen=True, slots=True)
class Move:
    """A migration of a group of joiners, or of a heavy key."""

    migration: Migration
    group: int = 0
    key: int | None = None


class Operator(Protocol):
    """The distribution of tuples over joiners."""

    def route(self, side: Side, keys: Keys, tickets: Tickets) -> Routes: ...

    def observe(self, side: Side, keys: Keys, signs: Numbers, units: Numbers) -> Self:
        """Count inserts (+1) and deletes (−1), each of this many units (bytes, or 1)."""
        ...

    def decide(self) -> tuple[Self, tuple[Move, ...]]: ...

    def finish(self, move: Move) -> Self: ...


class FixedRoutes:
    """An operator whose routes never change."""

    __slots__ = ()

    def observe(self, side: Side, keys: Keys, signs: Numbers, units: Numbers) -> Self:
        return self

    def decide(self) -> tuple[Self, tuple[Move, ...]]:
        return self, ()

    def finish(self, move: Move) -> Self:
        raise AssertionError("nothing migrates")


@dataclass(frozen=True, slots=True)
class Static(FixedRoutes):
    """A fixed grid."""

    grid: Grid

    def route(self, side: Side, keys: Keys, tickets: Tickets) -> Routes:
        targets = self.grid.targets(side, tickets)
        return _count_stored(np.repeat(np.arange(len(tickets)), targets.shape[1]), targets.ravel())


@dataclass(frozen=True, slots=True)
class Dynamic:
    """Groups of joiners, each with its own controller."""

    controllers: tuple[Controller, ...]

    def route(self, side: Side, keys: Keys, tickets: Tickets) -> Routes:
        homes = GroupHomes(tuple(c.grid.joiners for c in self.controllers)).of(tickets)
        positions, joiners, stored = [], [], []
        for i, controller in enumerate(self.controllers):
            targets = controller.grid.targets(side, tickets)
            positions.append(np.repeat(np.arange(len(tickets)), targets.shape[1]))
            joiners.append(targets.ravel())
            stored.append(homes[positions[-1]] == i)
        return Routes(np.concatenate(positions), np.concatenate(joiners), np.concatenate(stored))

    def observe(self, side: Side, keys: Keys, signs: Numbers, units: Numbers) -> Self:
        came, gone = (int(units[signs * sign > 0].sum()) for sign in (1, -1))
        sizes = (Sizes(0, came), Sizes(0, gone)) if side else (Sizes(came), Sizes(gone))
        return replace(self, controllers=tuple(c.observe(*sizes) for c in self.controllers))

    def decide(self) -> tuple[Self, tuple[Move, ...]]:
        decided = [controller.decide() for controller in self.controllers]
        moves = tuple(Move(m, group=i) for i, (_, m) in enumerate(decided) if m is not None)
        return replace(self, controllers=tuple(controller for controller, _ in decided)), moves

    def finish(self, move: Move) -> Self:
        controllers = list(self.controllers)
        controllers[move.group] = controllers[move.group].finish()
        return replace(self, controllers=tuple(controllers))


@dataclass(frozen=True, slots=True)
class Hybrid:
    """Light keys by hash, heavy keys by their grids."""

    keys: HeavyKeys

    def route(self, side: Side, keys: Keys, tickets: Tickets) -> Routes:
        return _count_stored(*self.keys.route(side, keys, tickets))

    def observe(self, side: Side, keys: Keys, signs: Numbers, units: Numbers) -> Self:
        return replace(self, keys=self.keys.observe(side, keys, signs))

    def decide(self) -> tuple[Self, tuple[Move, ...]]:
        after, moves = self.keys.decide()
        return replace(self, keys=after), tuple(Move(migration, key=key) for key, migration in moves)

    def finish(self, move: Move) -> Self:
        assert move.key is not None
        return replace(self, keys=self.keys.finish(move.key))


@dataclass(frozen=True, slots=True)
class Hashed(FixedRoutes):
    """All keys by hash."""

    keys: HeavyKeys

    def route(self, side: Side, keys: Keys, tickets: Tickets) -> Routes:
        return _count_stored(np.arange(len(keys)), hash_joiner(self.keys.joiners, keys))


def create_operator(
    name: str, joiners: int, policy: Policy | None = None, sizes: Sizes | None = None, fraction: float = HEAVY_FRACTION
) -> Operator:
    """Create an operator by one of NAMES; `sizes` serve StaticOpt. Static grids use the largest power of two of
    joiners."""
    power = powers_of_two(joiners)[0]
    match name:
        case "SHJ":
            return Hashed(initial_heavy_keys(joiners, fraction))
        case "StaticMid":
            return Static(Grid(find_square_mapping(power)))
        case "StaticOpt":
            if sizes is None:
                raise ValueError("StaticOpt has to be told the sizes of both relations")
            return Static(Grid(find_best_mapping(power, sizes.r, sizes.s)))
        case "Dynamic":
            if policy and policy.capacity is not None and power < joiners:
                raise ValueError(f"only a power of two of joiners can grow, not {joiners}")
            return Dynamic(tuple(Controller(grid, policy or Policy()) for grid in square_grids(joiners)))
        case "Hybrid":
            return Hybrid(initial_heavy_keys(joiners, fraction, policy))
    raise ValueError(f'no join operator "{name}": {", ".join(NAMES)}')


def _count_stored(positions: Numbers, joiners: Numbers) -> Routes:
    return Routes(positions, joiners, np.ones(len(positions), np.bool_))
