"""Batches in pieces that are applied one after the other, as if each was a batch: for what calls that may be done.

    ΔR += rows | V_R += ΔR | V += ΔR · V_S | derive ΔN of V | Q += ΔN
    └── for each piece of the rows ───────┘ └── once a batch ──────────┘

What changes views by the batch's rows is linear in each relation's delta, so views are the same as without pieces. What
a batch derives of them, and prints, it does once.
"""

from collections.abc import Collection, Sequence

from squallpy.base.records import dataclass
from squallpy.physical.plan import Derive
from squallpy.runtime.compiled.functions import CompiledDerivation, CompiledGroup, CompiledRun
from squallpy.runtime.triggers.statement_execution import RunnableStatement

BatchCall = CompiledRun | CompiledDerivation | RunnableStatement | Derive


@dataclass(frozen=True, slots=True)
class Pieces:
    """The first calls of a batch, which are made for each piece, and the sums that only they read; none: no pieces."""

    calls: int = 0
    sums: Collection[str] = ()


def find_pieces(
    groups: Sequence[CompiledGroup], calls: Sequence[BatchCall], sums: Collection[str], read: Collection[str] = ()
) -> Pieces:
    """Find what may be done for one piece of a batch after the other.

    All groups have marks, hence payloads so wide that it is worth it, and check their rows beforehand.

    Args:
        sums: The pools in which a batch adds up deltas.
        read: Those that are read when all calls are made.
    """
    if not groups or not all(group.code.has_marks for group in groups):
        return Pieces()
    first = list[CompiledRun]()
    for call in calls:
        if not isinstance(call, CompiledRun) or call.code.is_checked or call.code.unique:
            break
        first.append(call)
    own = {group.code.delta for group in groups}
    own |= {name for call in first for name in call.code.targets if name in sums}
    if not own.isdisjoint(read) or any(_may_read(call, own) for call in calls[len(first) :]):
        return Pieces()
    return Pieces(len(first), own)


def _may_read(call: BatchCall, deltas: Collection[str]) -> bool:
    """True if a call perhaps reads one of these deltas."""
    if isinstance(call, CompiledRun):
        return not {*call.code.deltas, *call.code.pools}.isdisjoint(deltas)
    return isinstance(call, RunnableStatement)
