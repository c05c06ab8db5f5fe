"""Statement blocks and their fusion (`dbtoaster-batch-ivm` §4.3.2, App. C.3).

A block is a run of statements of one mode: computations at the nodes form a stage, the moves between two stages one
exchange. Blocks that commute with all steps between them become one.
"""

from collections.abc import Iterable, Sequence
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
    done, rest = list[StatementBlock](), list(steps)
    sources = frozenset(step.source for step in rest if isinstance(step, Derivation))
    while rest:
        found = _merge(rest, rest[0].moves)
        if split_up := _split_changes(*found, sources):
            found = _block_without_waiting(rest, split_up, sources) or found
        taken, rest = found
        done.append(StatementBlock(tuple(taken)))
    return tuple(done)


def one_block_each(steps: Iterable[DistributedStep]) -> tuple[StatementBlock, ...]:
    """Make a block of each step."""
    return tuple(StatementBlock((step,)) for step in steps)


def _merge(
    steps: Sequence[DistributedStep], moves: bool, held: frozenset[str] = frozenset()
) -> tuple[list[DistributedStep], list[DistributedStep]]:
    """Split off all steps of a mode that commute with the steps left before them; changes of `held` views stay."""
    taken, rest = list[DistributedStep](), list[DistributedStep]()
    reads, writes = set[str](), set[str]()  # of the rest
    for step in steps:
        free = step.moves == moves and writes.isdisjoint(step.reads) and reads.isdisjoint(step.writes)
        if free and not (held and _changed_sources(step, held)):
            taken.append(step)
        else:
            rest.append(step)
            reads |= step.reads
            writes |= step.writes
    return taken, rest


def _block_without_waiting(
    steps: Sequence[DistributedStep], held: frozenset[str], sources: frozenset[str]
) -> tuple[list[DistributedStep], list[DistributedStep]] | None:
    """Split off a block of steps that need not wait; None if there are none."""
    while True:
        both = (_merge(steps, moves, held) for moves in (steps[0].moves, not steps[0].moves))
        taken, rest = next((found for found in both if found[0]), ([], []))
        if not taken:
            return None
        if not (split_up := _split_changes(taken, rest, sources)):
            return taken, rest
        held |= split_up


def _split_changes(
    taken: Iterable[DistributedStep], rest: Iterable[DistributedStep], sources: frozenset[str]
) -> frozenset[str]:
    """Find the source views that are changed both in a block and after it."""
    if not sources:
        return sources
    first, later = (frozenset().union(*(_changed_sources(s, sources) for s in some)) for some in (taken, rest))
    return first & later


def _changed_sources(step: DistributedStep, sources: frozenset[str]) -> frozenset[str]:
    """List the source views that a step changes, or derives an auxiliary relation from."""
    return (step.writes | {step.source} if isinstance(step, Derivation) else step.writes) & sources
