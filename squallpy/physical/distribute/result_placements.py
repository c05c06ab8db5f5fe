"""Results that partitions keep and print, where their groups are whole, so that no driver has to add them up.

Q(a, n) += Sum_[a](ΔR(a, b) ⋈ M_S(b))  at [a]             hashed by a already
Q(a, n) += Sum_[a](ΔR(a))              where it is read   sent to the hash of a instead of to the driver
"""

from collections.abc import Iterable, Mapping

from squallpy.physical.distribute.location_tags import SOURCE, Dist
from squallpy.physical.distribute.single_transformer import Compute
from squallpy.physical.distribute.statement_blocks import StatementBlock


def hashed_results(
    blocks: Iterable[StatementBlock], wanted: Mapping[str, tuple[int, ...]]
) -> Mapping[str, tuple[int, ...]]:
    """Find the results that can be hashed by some of their `wanted` keys without another exchange: by which."""
    steps, found = [step for block in blocks for step in block.steps if isinstance(step, Compute)], {}
    for name, keys in wanted.items():
        changes = [step for step in steps if step.statement.target == name]
        hashes = {_hashed_keys(step) for step in changes if step.at is not SOURCE} or {keys}
        by = next(iter(hashes)) if len(hashes) == 1 else ()
        if changes and by and set(by) <= set(keys):
            found[name] = by
    return found


def _hashed_keys(step: Compute) -> tuple[int, ...]:
    """Find the positions of the keys by which the rows of a step are spread over all partitions; () for others."""
    keys = step.statement.keys
    match step.at:
        case _ if step.keep is not None and step.workers is None:
            return step.keep
        case Dist(by, None) if set(by) <= set(keys):
            return tuple(keys.index(key) for key in by)
    return ()
