"""Migration policy of joins by keys: which keys are heavy and have a grid each (thesis §4.4.4)."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from squallpy.base.records import dataclass
from squallpy.physical.joins.heavy_keys import HeavyKeys
from squallpy.physical.joins.mapping import Side
from squallpy.physical.joins.migration_controller import Sizes
from squallpy.runtime.joiners.batch_plan import KeyMoves
from squallpy.runtime.joiners.joiner_statistics import OTHER_KEYS, loads, name_of_keys, skew

MAX_MOVING_KEYS = 4  # at once: while keys move, joiners look at all their tuples, which costs a quarter of one's work


@dataclass(frozen=True, slots=True)
class KeyPolicy:
    """Policy that moves the tuples of a key all at once, between two batches: a key is heavy before it has many."""

    plan: KeyMoves
    keys: HeavyKeys

    def figures(self, stats: Mapping[str, Any]) -> dict[str, Any]:
        """Report how many keys have a grid, the tuples of each joiner, and of the one with most by the mean."""
        joiners, count = stats["joiners"], self.keys.joiners
        return {
            "heavy_keys": len(self.plan.heavy), "busiest": skew(joiners, count), "loads": loads(joiners, count),
        }  # fmt: skip

    def plan_batch(self, rows: Sizes) -> "KeyPolicy":
        """Keep the plan, which does not depend on how many rows come."""
        return self

    def observe(self, stats: Mapping[str, Any]) -> "KeyPolicy":
        """Plan the next batch."""
        keys, places = self.keys, dict(self.plan.heavy)
        for key, _, to in self.plan.moves:
            keys = keys.finish(key)
            places[key] = to
        keys, moves = observe_keys(keys, stats.get("keys", {})).decide()
        placed = tuple((key, places[key]) for key in sorted(places) if places[key].joiners > 1)
        moving = tuple((key, migration.old, migration.new) for key, migration in moves)
        return KeyPolicy(KeyMoves(placed, moving, self.plan.handing_off), keys)


def observe_keys(keys: HeavyKeys, statistics: Mapping[str, Mapping[str, int]]) -> HeavyKeys:
    """Take in the keys of most tuples that readers report, and how many tuples have others."""
    for side in Side:
        came, went = (dict(statistics.get(name_of_keys(side, sign), {})) for sign in (1, -1))
        others = (came.pop(OTHER_KEYS, 0), went.pop(OTHER_KEYS, 0))
        counts = np.array([*came.values(), *(-count for count in went.values())], np.int64)
        keys = keys.observe(side, np.array([int(key) for key in (*came, *went)], np.uint64), counts, others)
    return keys
