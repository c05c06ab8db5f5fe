"""Statements that only lift: the rows of a delta, added up as elements of the cofactor ring.

ΔR_ROWS(k, x, y)⟨n⟩   →   ΔR(k)⟨LIFT(x, 0)·LIFT(y, 1)⟩, n times each
"""

from collections.abc import Mapping

import numpy as np

from squallpy.base.records import dataclass
from squallpy.base.rings import Cofactor, Payload, Ring
from squallpy.base.types import DOUBLE
from squallpy.logical.expressions import Column
from squallpy.physical.plan import Update
from squallpy.program.calculus import lifted
from squallpy.runtime.kernels.memory_regions import Words
from squallpy.runtime.kernels.pool import Pool
from squallpy.runtime.messages.deltas import Delta
from squallpy.runtime.messages.grouping import lifting_of


@dataclass(frozen=True, slots=True)
class LiftedRows:
    """The columns of a delta that are lifted, with what makes doubles of their keys, and those of the target's keys.

    Args:
        count: The word of the delta's payload that has the multiplicity.
    """

    values: tuple[tuple[int, float], ...]
    keys: tuple[int, ...]
    count: int
    lifting: Words

    @staticmethod
    def of(update: Update, payloads: Mapping[str, Payload]) -> "LiftedRows | None":
        """Find out what a statement lifts; None if it does anything else."""
        target, given, at = (
            payloads[update.target],
            payloads[update.delta],
            {v: i for i, v in enumerate(update.variables)},
        )
        counts = {pick for pick in update.picks if given.rings[pick] is Ring.COUNT}
        if update.steps or len(counts) != 1 or len({*update.picks}) != 1:
            return None
        found = list[tuple[int, float]]()
        for lane, ring in zip(update.lanes, target.rings, strict=True):
            factors = sorted(filter(None, map(lifted, lane or ())), key=lambda factor: factor[1])
            if not isinstance(ring, Cofactor) or len(factors) != len(lane or ()):
                return None
            for value, _ in factors:
                if not isinstance(value, Column) or not (
                    value.type == DOUBLE or (value.type.is_exact and not value.type.is_wide)
                ):
                    return None
                found.append((at[value], 0.0 if value.type == DOUBLE else 10.0**value.type.scale))
        keys = tuple(at[key] for key in update.keys)
        return LiftedRows(tuple(found), keys, given.offsets[counts.pop()], lifting_of(target, is_counted=True))

    def add(self, delta: Delta, target: Pool) -> None:
        """Add a delta's rows to the target."""
        rows = np.empty((len(delta.keys), len(self.values) + 1), np.int64)
        for i, (column, divisor) in enumerate(self.values):
            keys = delta.keys[:, column]
            rows[:, i] = (keys / divisor).view(np.int64) if divisor else keys
        rows[:, -1] = delta.words[:, self.count]
        target.upsert_lifted(np.ascontiguousarray(delta.keys[:, self.keys]), rows, self.lifting)
