"""Statement blocks and their fusion (`dbtoaster-batch-ivm` §4.3.2, App. C.3).

A block is a run of statements of one mode: computations at the nodes form a stage, the moves between two stages one
exchange. Blocks that commute with all steps between them become one.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import field

from squallpy.base.records import dataclass
from squallpy.physical.distribute.location_tags import SOURCE
from squallpy.physical.distribute.single_transformer import Compute, Derivation, DistributedStep


@dataclass(frozen=True, slots=True)
class StatementBlock:
    """Statements that run together: all computed at the nodes, or all moved at once."""

    steps: tuple[DistributedStep, ...]
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
        """True if it is computed where a batch is read."""
        return isinstance(self.steps[0], Compute) and self.steps[0].at is SOURCE


def fuse(steps: Iterable[DistributedStep]) -> tuple[StatementBlock, ...]:
    """Fuse steps into as few blocks as reordering allows (`merge` of App. C.3).

    A step that cannot join a block at first never can: the step it does not commute with stays between them. All
    changes of an auxiliary relation's source view, and its derivation, are in one block, which waits until all of them
    can be.
    """
    done, fusion = list[StatementBlock](), _Fusion(steps)
    while fusion.rest:
        done.append(StatementBlock(tuple(fusion.take_block())))
    return tuple(done)


def one_block_each(steps: Iterable[DistributedStep]) -> tuple[StatementBlock, ...]:
    """Make a block of each step."""
    return tuple(StatementBlock((step,)) for step in steps)


class _Fusion:
    """The steps that are left to be fused, and the source views of auxiliary relations that they change."""

    def __init__(self, steps: Iterable[DistributedStep]) -> None:
        self.rest = list(steps)
        sources = frozenset(step.source for step in self.rest if isinstance(step, Derivation))
        self._changed = {id(step): _changed_sources(step, sources) for step in self.rest}
        self._left = self._count_changes(self.rest)

    def take_block(self) -> list[DistributedStep]:
        """Split the steps of the next block off."""
        found = self._merge(self.rest[0].moves)
        if split_up := self._split_changes(found[0]):
            found = self._block_without_waiting(split_up) or found
        taken, self.rest = found
        self._left -= self._count_changes(taken)
        return taken

    def _merge(
        self, moves: bool, held: frozenset[str] = frozenset()
    ) -> tuple[list[DistributedStep], list[DistributedStep]]:
        """Split off all steps of a mode that commute with the steps left before them; changes of `held` views stay."""
        taken, rest = list[DistributedStep](), list[DistributedStep]()
        reads, writes = set[str](), set[str]()  # of the rest
        for step in self.rest:
            free = step.moves == moves and writes.isdisjoint(step.reads) and reads.isdisjoint(step.writes)
            if free and held.isdisjoint(self._changed[id(step)]):
                taken.append(step)
            else:
                rest.append(step)
                reads |= step.reads
                writes |= step.writes
        return taken, rest

    def _block_without_waiting(
        self, held: frozenset[str]
    ) -> tuple[list[DistributedStep], list[DistributedStep]] | None:
        """Split off a block of steps that need not wait; None if there are none."""
        first = self.rest[0].moves
        while True:
            taken, rest = next(
                (found for moves in (first, not first) if (found := self._merge(moves, held))[0]), ([], [])
            )
            if not taken:
                return None
            if not (split_up := self._split_changes(taken)):
                return taken, rest
            held |= split_up

    def _split_changes(self, taken: Iterable[DistributedStep]) -> frozenset[str]:
        """Find the source views that are changed both in a block and after it."""
        return frozenset(source for source, times in self._count_changes(taken).items() if times < self._left[source])

    def _count_changes(self, steps: Iterable[DistributedStep]) -> Counter[str]:
        return Counter(source for step in steps for source in self._changed[id(step)])


def _changed_sources(step: DistributedStep, sources: frozenset[str]) -> frozenset[str]:
    """List the source views that a step changes, or derives an auxiliary relation from."""
    return (step.writes | {step.source} if isinstance(step, Derivation) else step.writes) & sources
