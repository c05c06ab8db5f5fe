"""Statement blocks, and their fusion (`dbtoaster-batch-ivm` §4.3.2, App. C.3).

A block is a run of statements of one mode: what is computed at the nodes is a stage, what is moved between two stages
is one exchange. Blocks that commute with all that is between them become one.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from squallpy.physical.distribute.location_tags import SOURCE
from squallpy.physical.distribute.single_transformer import Compute, Derivation, Step


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
    which it does not commute with stays between them.

    What changes the source view of an auxiliary relation, and what looks which groups were changed, is in one block:
    it waits until all of it can be.
    """
    done, rest = list[Block](), list(steps)
    sources = frozenset(step.source for step in rest if isinstance(step, Derivation))
    while rest:
        found = _merged(rest, rest[0].moves)
        if torn := _torn(*found, sources):
            found = _waiting(rest, torn, sources) or found
        taken, rest = found
        done.append(Block(tuple(taken)))
    return tuple(done)


def unfused(steps: Iterable[Step]) -> tuple[Block, ...]:
    """A block each."""
    return tuple(Block((step,)) for step in steps)


def _merged(steps: Sequence[Step], moves: bool, held: frozenset[str] = frozenset()) -> tuple[list[Step], list[Step]]:
    """All steps of a mode that commute with all that stays before them, and what stays; `held`: views whose changes
    do."""
    taken, rest = list[Step](), list[Step]()
    reads, writes = set[str](), set[str]()  # of the rest
    for step in steps:
        free = step.moves == moves and writes.isdisjoint(step.reads) and reads.isdisjoint(step.writes)
        if free and not (held and _changed(step, held)):
            taken.append(step)
        else:
            rest.append(step)
            reads |= step.reads
            writes |= step.writes
    return taken, rest


def _waiting(
    steps: Sequence[Step], held: frozenset[str], sources: frozenset[str]
) -> tuple[list[Step], list[Step]] | None:
    """A block of what need not wait, and what stays; None if there would be nothing in it."""
    while True:
        both = (_merged(steps, moves, held) for moves in (steps[0].moves, not steps[0].moves))
        taken, rest = next((found for found in both if found[0]), ([], []))
        if not taken:
            return None
        if not (torn := _torn(taken, rest, sources)):
            return taken, rest
        held |= torn


def _torn(taken: Iterable[Step], rest: Iterable[Step], sources: frozenset[str]) -> frozenset[str]:
    """Find the source views that are changed in a block and behind it."""
    if not sources:
        return sources
    first, later = (frozenset().union(*(_changed(s, sources) for s in some)) for some in (taken, rest))
    return first & later


def _changed(step: Step, sources: frozenset[str]) -> frozenset[str]:
    """Those of the views that a step changes, or looks what was changed of."""
    return (step.writes | {step.source} if isinstance(step, Derivation) else step.writes) & sources
