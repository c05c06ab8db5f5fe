"""The block that the driver runs: sums without keys, and what is derived of them.

    T1()    := Sum_[](ΔR(k) ⋈ V_S(k))    at [k]: each partition sums its own
    T1.1    := Repart_[](T1())           to the driver, as changes of the result are
    V()     += T1.1()                    the sum of the partitions' sums

At a partition it would take another exchange, for a row of each.
"""

from collections.abc import Sequence

from squallpy.physical.distribute.single_transformer import Compute, Derivation, Transfer
from squallpy.physical.distribute.statement_blocks import StatementBlock
from squallpy.program.trigger_program import TriggerProgram


def ends_on_driver(blocks: Sequence[StatementBlock], program: TriggerProgram) -> bool:
    """True if all that the last block reads are sums without keys: sent by partitions to one node, or its own."""
    if len(blocks) < 3 or blocks[-1].moves or not blocks[-2].moves:
        return False
    *before, exchange, last = blocks
    steps = [step for block in before if not block.is_early for step in block.steps]
    keyless = {s.statement.target for s in steps if isinstance(s, Compute) and not s.statement.keys}
    if not exchange.reads <= keyless or any(isinstance(s, Transfer) and s.keys != () for s in exchange.steps):
        return False
    views = {view.name: view for view in program.views}
    own = last.writes & views.keys() - {view.name for view in program.results}
    if any(views[name].keys for name in own) or any(own & (block.reads | block.writes) for block in before):
        return False
    alone = all(step.is_alone for step in last.steps if isinstance(step, Derivation))
    return alone and last.reads <= exchange.writes | last.writes
