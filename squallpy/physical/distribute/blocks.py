"""Statement blocks, and their fusion (`dbtoaster-batch-ivm` §4.3.2, App. C.3).

A block is a run of statements of one mode: what is computed at the nodes is a stage, what is moved between two stages
is one exchange. Blocks that commute with all that is between them become one.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from squallpy.physical.distribute.locations import SOURCE
from squallpy.physical.distribute.single import Compute, Step


@dataclass(frozen=True, slots=True)
class Block:
    """Statements that run together: all computed at the nodes, or all moved at once."""

    steps: tuple[Step, ...]

    @property
    def moves(self) -> bool:
        return self.steps[0].moves

    @property
    def is_early(self) -> bool:
        """Is it computed where a batch is read?"""
        return isinstance(self.steps[0], Compute) and self.steps[0].at is SOURCE


def fused(steps: Iterable[Step]) -> tuple[Block, ...]:
    """As few blocks as reordering gives: `merge` of App. C.3."""
    blocks, done = [Block((step,)) for step in steps], []
    while blocks:
        head, *tail = blocks
        merged, rest = _merged_into(head, tail)
        if merged == head:
            done.append(head)
            blocks = tail
        else:
            blocks = [merged, *rest]
    return tuple(done)


def unfused(steps: Iterable[Step]) -> tuple[Block, ...]:
    """A block each."""
    return tuple(Block((step,)) for step in steps)


def _merged_into(head: Block, tail: Sequence[Block]) -> tuple[Block, list[Block]]:
    rest: list[Block] = []
    for block in tail:
        if block.moves == head.moves and all(_commute(other, block) for other in rest):
            head = Block((*head.steps, *block.steps))
        else:
            rest.append(block)
    return head, rest


def _commute(a: Block, b: Block) -> bool:
    return not any(x.writes & y.reads or y.writes & x.reads for x in a.steps for y in b.steps)
