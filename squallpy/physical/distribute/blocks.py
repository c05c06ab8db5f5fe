"""Statement blocks, and their fusion (`dbtoaster-batch-ivm` §4.3.2, App. C.3).

A block is a run of statements of one mode: what is computed at the nodes is a stage, what is moved between two stages
is one exchange. Blocks that commute with all that is between them become one.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from squallpy.physical.distribute.locations import SOURCE
from squallpy.physical.distribute.single import Compute, Step


@dataclass(frozen=True, slots=True)
class Block:
    """Statements that run together: all computed at the nodes, or all moved at once."""

    steps: tuple[Step, ...]
    writes: frozenset[str] = field(init=False, repr=False, compare=False)
    reads: frozenset[str] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "writes", frozenset().union(*(step.writes for step in self.steps)))
        object.__setattr__(self, "reads", frozenset().union(*(step.reads for step in self.steps)))

    @property
    def moves(self) -> bool:
        return self.steps[0].moves

    @property
    def is_early(self) -> bool:
        """Is it computed where a batch is read?"""
        return isinstance(self.steps[0], Compute) and self.steps[0].at is SOURCE


def fused(steps: Iterable[Step]) -> tuple[Block, ...]:
    """As few blocks as reordering gives: `merge` of App. C.3. What does not go with a block at first, never does: that
    which it does not commute with stays between them."""
    done, rest = list[Block](), list(steps)
    while rest:
        block, rest = _merged(rest)
        done.append(block)
    return tuple(done)


def unfused(steps: Iterable[Step]) -> tuple[Block, ...]:
    """A block each."""
    return tuple(Block((step,)) for step in steps)


def _merged(steps: Sequence[Step]) -> tuple[Block, list[Step]]:
    """The first with those that commute with all that stays between, and what stays."""
    moves, taken, rest = steps[0].moves, list[Step](), list[Step]()
    reads, writes = set[str](), set[str]()  # of the rest
    for step in steps:
        if step.moves == moves and writes.isdisjoint(step.reads) and reads.isdisjoint(step.writes):
            taken.append(step)
        else:
            rest.append(step)
            reads |= step.reads
            writes |= step.writes
    return Block(tuple(taken)), rest
