"""Changes of results that wait until somebody reads them: the cells of a query's one cofactor matrix.

    batch                 V() += …                          its payload before is noted
    its changes are read  derive ΔN1 of V | Q += ΔN1        two rows for each of hundreds of cells

Each batch changes nearly all cells, so that deriving them takes as long as a small batch does without.
"""

from collections.abc import Collection, Mapping, Sequence

from squallpy.functions.model_functions import Statistics
from squallpy.physical.plan import AuxiliaryPlan
from squallpy.program.auxiliary.model_rows import ModelRows
from squallpy.runtime.batch.pieces import BatchCall
from squallpy.runtime.compiled.functions import CompiledDerivation, CompiledRun
from squallpy.runtime.kernels.batch_driver import SKIPPED


def count_deferred(
    calls: Sequence[BatchCall],
    auxiliary: Mapping[str, AuxiliaryPlan],
    copies: Mapping[str, str],
    results: Collection[str],
    ways: Collection[int],
) -> int:
    """Count the last calls of a batch that may wait until results are read; 0 if some results are of other calls.

    Args:
        auxiliary: Auxiliary relations by name.
        copies: The delta that a result's change is, by the names of results.
        ways: How results take their changes (`batch_driver`).
    """
    derived = set[str]()
    for call in reversed(calls):
        if not (isinstance(call, CompiledDerivation) and _is_one_matrix(auxiliary[call.code.relation])):
            break
        derived.add(call.code.delta)
    before = calls[: len(calls) - len(derived)]
    waits = all(copies.get(name) in derived for name in results) and SKIPPED not in ways
    return len(derived) if waits and all(isinstance(call, CompiledRun) for call in before) else 0


def _is_one_matrix(aux: AuxiliaryPlan) -> bool:
    """True if it has the cells of a single group's matrix."""
    return isinstance(aux.kind, ModelRows) and isinstance(aux.kind.model, Statistics) and not aux.source.keys
