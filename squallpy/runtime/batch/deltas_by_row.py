"""Deltas that statements read row by row, to which it makes no difference whether a key has one row or several.

ΔL(o, s) → slice M_O(o) → add to Q          its rows need not be added up by key before
ΔR → probe ΔS                               ΔS is looked up
"""

from collections.abc import Collection, Iterable, Mapping

from squallpy.base.rings import Ring
from squallpy.physical.plan import Lookup, Plan, Update
from squallpy.runtime.batch.pieces import BatchCall
from squallpy.runtime.compiled.functions import CompiledDerivation, CompiledRun
from squallpy.runtime.kernels.pool import Pool


def deltas_by_row(
    plan: Plan, calls: Collection[BatchCall], sums: Mapping[str, Pool], others: Iterable[str]
) -> frozenset[str]:
    """Find the deltas whose rows may be in any number of pieces: of integers, and read by compiled statements alone.

    Sums of doubles depend on how they are added up; they shall be the same when a batch is run again.

    Args:
        calls: What a batch does behind its deltas.
        others: Deltas that are read by key, too.
    """
    if not all(isinstance(call, CompiledRun | CompiledDerivation) for call in calls):
        return frozenset()
    updates = [step for stage in plan.stages for step in stage.steps if isinstance(step, Update)]
    looked_up = {step.source for update in updates for step in update.steps if isinstance(step, Lookup)}
    rows = frozenset(name for feed in plan.feeds for name in feed.row_deltas)
    exact = {name for name, pool in sums.items() if set(pool.payload.rings) <= {Ring.COUNT, Ring.EXACT}}
    plain = {delta.name for delta in plan.deltas if not (delta.slices or delta.group or delta.orders)}
    return frozenset((exact & plain) - looked_up - rows - {*others})
