"""Well-formed statements, in which inputs meet where they are joined (`dbtoaster-batch-ivm` §4.2).

    M(a) at [a] += Sum_[a](M₁(a, b) at [a] ⋈ M₂(a, b) at [b])
    →  Repart_[a](Sum_[a](Repart_[b](M₁(a, b)) ⋈ M₂(a, b)))

As in the paper, cost is ignored here: `simplify_transformers` considers it.
"""

from collections.abc import Iterable, Mapping, Sequence
from functools import partial, reduce
from typing import cast

from squallpy.logical.expressions import Column
from squallpy.physical.distribute.location_tags import (
    EVERYWHERE,
    LOCAL,
    RANDOM,
    SOURCE,
    Dist,
    HypercubeCells,
    Join,
    Line,
    LocatedExpression,
    Location,
    Move,
    PlacementError,
    Read,
    Sum,
    has_copies,
    join_location,
)


def make_well_formed(reads: Sequence[Read], keys: tuple[Column, ...], target: Location | None) -> LocatedExpression:
    """Evaluate Sum_[keys](reads ⋈ …) at the target's location.

    For the target RANDOM partial sums suffice; for None, the driver, they may also stay where the batch is read.
    """
    first, *others = reads
    others.sort(key=lambda read: read.at is EVERYWHERE)  # NB: it meets with everything that is at a worker
    whole = Sum(keys, reduce(partial(_join, target), others, cast(LocatedExpression, first)))
    if target is None and whole.at is SOURCE:
        return whole
    if target is not None and target is not RANDOM:
        return _move_to(target, whole)
    if isinstance(whole.at, Line):
        raise PlacementError("each node of a row would add up the same")
    return Move(Dist(keys), whole) if whole.at in (EVERYWHERE, SOURCE) else whole  # NB: added by one node, not by each


def evaluate_at_cells(
    reads: Sequence[Read],
    cells: Mapping[str, Location],
    keys: tuple[Column, ...],
    target: Location | None,
    partial: bool,
) -> LocatedExpression:
    """Evaluate Sum_[keys](reads ⋈ …) at the joiners of a hypercube: only what is not there moves.

    Args:
        cells: Where deltas are sent.
        partial: The outcome stays, for later statements of the batch.
    """
    there: list[LocatedExpression] = [
        read if isinstance(read.at, HypercubeCells) or read.at is EVERYWHERE else _send(read, cells) for read in reads
    ]
    there.sort(key=lambda one: one.at is EVERYWHERE)
    whole = Sum(keys, reduce(Join, there[1:], there[0]))
    if isinstance(target, HypercubeCells):
        if not (isinstance(whole.at, HypercubeCells) and whole.at.dimensions == target.dimensions):
            raise PlacementError("its parts would be at other joiners")
        return whole
    if target is not None and target is not RANDOM:
        return _move_to(target, whole)
    if has_copies(whole.at) and not partial:
        raise PlacementError("joiners with the same coordinates would add up the same")
    return Move(Dist(keys), whole) if whole.at is EVERYWHERE else whole


def _send(read: Read, cells: Mapping[str, Location]) -> Move:
    if not read.delta or read.ref.name not in cells:
        raise PlacementError("a view that is elsewhere would be sent with every batch")
    return Move(cells[read.ref.name], read)


def _join(target: Location | None, left: LocatedExpression, right: LocatedExpression) -> LocatedExpression:
    """Join two expressions, moving one side if that suffices, the left one if there is a choice."""
    if join_location(left.at, right.at) is not None:
        return Join(left, right)
    for one, other in ((left, right), (right, left)):
        match other.at:
            case Dist(by) if set(by) <= one.variables:
                moved = Move(other.at, one)
                return Join(moved, other) if one is left else Join(other, moved)
            case Line(_, _, key) as grid if not isinstance(one.at, Line) and set(key) <= one.variables:
                moved = Move(Line(grid.across, _all_variables(one), key), one)
                return Join(moved, other) if one is left else Join(other, moved)
    if LOCAL in (left.at, right.at):
        return Join(_move_to(LOCAL, left), _move_to(LOCAL, right))
    if right.at is SOURCE:  # NB: so is the left one, or they have no common variables
        shared = left.variables & right.variables
        meet = Dist(_sort_variables(shared or right.variables))
        return Join(_move_to(meet if shared else EVERYWHERE, left), Move(meet, right))
    if right.at is EVERYWHERE:  # NB: hence the left one may be anywhere
        spread = isinstance(target, Dist) and set(target.keys) <= left.variables
        anyhow = Dist(_sort_variables(left.variables))
        return Join(Move(target if target and (spread or target is EVERYWHERE) else anyhow, left), right)
    return Join(Move(EVERYWHERE, left), right)


def _all_variables(expression: LocatedExpression) -> tuple[Column, ...]:
    """List all variables; those of a read in the view's order, so that one move serves joins and storage."""
    return expression.ref.variables if isinstance(expression, Read) else _sort_variables(expression.variables)


def _sort_variables(variables: Iterable[Column]) -> tuple[Column, ...]:
    return tuple(sorted(variables, key=lambda v: v.id))


def _move_to(location: Location, expression: LocatedExpression) -> LocatedExpression:
    return expression if expression.at == location else Move(location, expression)
