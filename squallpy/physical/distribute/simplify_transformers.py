"""Simplification of moves: the rules of Fig. 3 and 4 and their cost (`dbtoaster-batch-ivm` §4.3.1).

    Repart_[a](Sum_[a](Repart_[b](M₁(a, b)) ⋈ M₂(a, b)))   →   Sum_[a](M₁(a, b) ⋈ Repart_[a](M₂(a, b)))

The paper pushes transformers down by trial and error. Here the cheapest expression so far is rewritten first, until
none can be cheaper or LIMIT are done.
"""

from collections.abc import Callable, Iterator
from functools import lru_cache
from heapq import heappop, heappush
from itertools import count

from squallpy.logical.expressions import Column
from squallpy.physical.distribute.location_tags import (
    EVERYWHERE,
    RANDOM,
    SOURCE,
    Cost,
    Join,
    Line,
    LocatedExpression,
    Location,
    Mark,
    Move,
    Sum,
    has_whole_groups,
    join_location,
)

LIMIT = 6  # expressions that are rewritten


def simplify_moves(expression: LocatedExpression) -> LocatedExpression:
    """Find the cheapest equivalent that the rules reach; cheaper expressions are rewritten first."""
    start = remove_redundant_moves(expression)
    best, least, seen = start, start.cost, {start}
    queue, number = [(least, 0, start)], count(1)
    for _ in range(LIMIT):
        if not queue or least <= _lower_bound(best):
            break
        for found in map(remove_redundant_moves, _rewrite(heappop(queue)[-1])):
            if found not in seen:
                seen.add(found)
                heappush(queue, (found.cost, next(number), found))
                if _serves(found.at, expression.at) and found.cost < least and not _splits_copy_inside(found):
                    best, least = found, found.cost
    return best


def _splits_copy_inside(expression: LocatedExpression) -> bool:
    """True if a copy is split below the root, where each node would send all of it."""
    return (expression.child if isinstance(expression, Move) else expression).splits_copy


def _lower_bound(expression: LocatedExpression) -> Cost:
    """Bound the cost of all equivalents from below: each delta that is read moves once."""
    read = sum(one.at is SOURCE for one in expression.reads)
    return 0, min(read, 1), 0, read, 0


def _serves(at: Location, target: Location) -> bool:
    """True if the location serves as the wanted one; partial sums may be at any workers, once."""
    return at == target or (target is RANDOM and at not in (EVERYWHERE, SOURCE))


def remove_redundant_moves(expression: LocatedExpression) -> LocatedExpression:
    """Remove moves to the present location, moves of moves, and sums that add nothing up (Fig. 4, bottom-up)."""
    if expression.is_simple:
        return expression
    match expression:
        case Move(to, Sum(_, child) as total) if total.adds_nothing:
            return _move(to, child)
        case Join(left, right):
            return Join(remove_redundant_moves(left), remove_redundant_moves(right))
        case Sum(keys, child):
            return Sum(keys, remove_redundant_moves(child))
        case Move(to, child):
            return _move(to, remove_redundant_moves(child))
    return expression


def push_move_below_join(expression: LocatedExpression) -> Iterator[LocatedExpression]:
    """Rewrite Move(a ⋈ b) → Move(a) ⋈ Move(b); a side without the variables has to be everywhere."""
    match expression:
        case Move(to, Join(left, right)):
            for left_to, right_to in ((to, to), (to, EVERYWHERE), (EVERYWHERE, to)):
                if _can_move(left_to, left) and _can_move(right_to, right):
                    yield from _join(_move(left_to, left), _move(right_to, right), to)


def pull_move_above_join(expression: LocatedExpression) -> Iterator[LocatedExpression]:
    """Rewrite Move(a) ⋈ Move(b) → Move(a ⋈ b), where a and b meet."""
    match expression:
        case Join(Move(to, left), Move(other, right)) if to == other:
            yield from (_move(to, join) for join in _join(left, right) if _can_move(to, join))


def push_move_below_sum(expression: LocatedExpression) -> Iterator[LocatedExpression]:
    """Rewrite Move(Sum(a)) → Sum(Move(a))."""
    match expression:
        case Move(to, Sum(keys, child)) if _can_move(to, child):  # a key may be computed above
            yield from _sum(keys, _move(to, child))


def pull_move_above_sum(expression: LocatedExpression) -> Iterator[LocatedExpression]:
    """Rewrite Sum(Move(a)) → Move(Sum(a)), which moves less."""
    match expression:
        case Sum(keys, Move(to, child)) if _can_move(to, expression):
            yield from (_move(to, found) for found in _sum(keys, child) if _can_move(to, found))


def move_other_side(expression: LocatedExpression) -> Iterator[LocatedExpression]:
    """Rewrite Move(a) ⋈ b → a ⋈ Move(b), the other joins that a statement could have begun with."""
    match expression:
        case Join(Move(_, left), right) if left.at not in (RANDOM, SOURCE) and _can_move(left.at, right):
            yield from _join(left, _move(left.at, right))
    match expression:
        case Join(left, Move(_, right)) if right.at not in (RANDOM, SOURCE) and _can_move(right.at, left):
            yield from _join(_move(right.at, left), right)


RULES: tuple[Callable[[LocatedExpression], Iterator[LocatedExpression]], ...] = (
    push_move_below_join,
    pull_move_above_join,
    push_move_below_sum,
    pull_move_above_sum,
    move_other_side,
)


@lru_cache(maxsize=1 << 12)  # most subexpressions are shared
def _rewrite(expression: LocatedExpression) -> tuple[LocatedExpression, ...]:
    """List the expressions that one rule makes at one node."""
    return tuple(_find_rewriting(expression))


def _find_rewriting(expression: LocatedExpression) -> Iterator[LocatedExpression]:
    for rule in RULES:
        yield from rule(expression)
    match expression:
        case Join(left, right):
            for found in _rewrite(left):
                yield from _join(found, right)
            for found in _rewrite(right):
                yield from _join(left, found)
        case Sum(keys, child):
            for found in _rewrite(child):
                yield from _sum(keys, found)
        case Move(to, child):
            yield from (_move(to, found) for found in _rewrite(child) if _can_move(to, found))


def _join(left: LocatedExpression, right: LocatedExpression, at: Location | None = None) -> Iterator[LocatedExpression]:
    """Yield the join if its sides meet, at location `at` if it is given."""
    found = join_location(left.at, right.at)
    if found is not None and at in (None, found):
        yield Join(left, right)


def _move(to: Location, child: LocatedExpression) -> LocatedExpression:
    """Move a child, unless it is there already; a move of a move becomes one."""
    if child.at == to:
        return child
    return _move(to, child.child) if isinstance(child, Move) else Move(to, child)


def _sum(keys: tuple[Column, ...], child: LocatedExpression) -> Iterator[LocatedExpression]:
    """Yield the sum, if no part of it would count twice."""
    if has_whole_groups(keys, child):
        yield Sum(keys, child)


def _can_move(to: Location, child: LocatedExpression) -> bool:
    """True if the child can be moved there: it has the hashed variables, and its copies arrive only once."""
    source = child.child.at if isinstance(child, Move) else child.at
    if source != to and (isinstance(source, Line) or (source is EVERYWHERE and isinstance(to, Line))):
        return False
    return isinstance(to, Mark) or child.variables.issuperset(to.keys)
