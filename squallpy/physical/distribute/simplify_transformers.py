"""Fewer moves, of less: the rules of Fig. 3 and 4 and their cost (`dbtoaster-batch-ivm` §4.3.1).

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
    LOCAL,
    RANDOM,
    SOURCE,
    Expression,
    Join,
    Line,
    Location,
    Mark,
    Move,
    Read,
    Sum,
    can_add_up,
    meeting,
)

LIMIT = 6  # expressions that are rewritten
KNOWN = 1 << 14  # expressions of which is remembered what was found: most of each is in others as well
Cost = tuple[int, int, int, int, int]


def cheapest(expression: Expression) -> Expression:
    """The cheapest equivalent that the rules lead to; the cheaper ones are rewritten first."""
    start = simplified(expression)
    best, least, seen = start, cost(start), {start}
    queue, number = [(least, 0, start)], count(1)
    for _ in range(LIMIT):
        if not queue or least <= _least(best):
            break
        for found in map(simplified, _rewritten(heappop(queue)[-1])):
            if found not in seen:
                seen.add(found)
                heappush(queue, (price := cost(found), next(number), found))
                if _will_do(found.at, expression.at) and price < least:
                    best, least = found, price
    return best


def _least(expression: Expression) -> Cost:
    """No equivalent costs less: what was read moves once."""
    read = sum(one.at is SOURCE for one in expression.reads)
    return 0, min(read, 1), 0, read, 0


def _will_do(at: Location, wanted: Location) -> bool:
    """Partial sums may be anywhere, once."""
    return at == wanted or (wanted is RANDOM and at not in (EVERYWHERE, SOURCE))


@lru_cache(maxsize=KNOWN)
def cost(expression: Expression) -> Cost:
    """Whole views moved, rounds, copies made of views and deltas, moves, moves to the driver: first things first.

    The paper counts rounds, then prefers to move what comes from a batch; but a view that is moved with every batch
    makes the batch cost what the view holds.
    """
    match expression:
        case Join(left, right):
            (views, rounds, copies, moves, gathers), others = cost(left), cost(right)
            rounds = max(rounds, others[1])
            return views + others[0], rounds, copies + others[2], moves + others[3], gathers + others[4]
        case Sum(_, child):
            return cost(child)
        case Move(to, child) if not expression.is_free:
            views, rounds, copies, moves, gathers = cost(child)
            copied = to is EVERYWHERE or isinstance(to, Line)
            return views + (not child.is_delta), rounds + 1, copies + copied, moves + 1, gathers + (to is LOCAL)
        case Move(_, child):
            return cost(child)
    return 0, 0, 0, 0, 0


@lru_cache(maxsize=KNOWN)
def simplified(expression: Expression) -> Expression:
    """Fig. 4, bottom-up: a move to where it is, and a move of a move; also a sum that adds nothing up."""
    match expression:
        case Move(to, Sum(keys, Read() as read)) if set(keys) == read.variables:
            return _moved(to, read)
        case Join(left, right):
            return Join(simplified(left), simplified(right))
        case Sum(keys, child):
            return Sum(keys, simplified(child))
        case Move(to, child):
            return _moved(to, simplified(child))
    return expression


def push_move_below_join(expression: Expression) -> Iterator[Expression]:
    """Move(a ⋈ b) → Move(a) ⋈ Move(b); a side without the variables has to be everywhere"""
    match expression:
        case Move(to, Join(left, right)):
            for mine, others in ((to, to), (to, EVERYWHERE), (EVERYWHERE, to)):
                if _can(mine, left) and _can(others, right):
                    yield from _joined(_moved(mine, left), _moved(others, right), to)


def pull_move_above_join(expression: Expression) -> Iterator[Expression]:
    """Move(a) ⋈ Move(b) → Move(a ⋈ b), where those meet"""
    match expression:
        case Join(Move(to, left), Move(other, right)) if to == other:
            yield from (_moved(to, join) for join in _joined(left, right) if _can(to, join))


def push_move_below_sum(expression: Expression) -> Iterator[Expression]:
    """Move(Sum(a)) → Sum(Move(a))"""
    match expression:
        case Move(to, Sum(keys, child)) if _can(to, child):  # a key may be computed above
            yield from _summed(keys, _moved(to, child))


def pull_move_above_sum(expression: Expression) -> Iterator[Expression]:
    """Sum(Move(a)) → Move(Sum(a)): less is moved"""
    match expression:
        case Sum(keys, Move(to, child)) if _can(to, expression):
            yield from (_moved(to, found) for found in _summed(keys, child) if _can(to, found))


def move_other_side(expression: Expression) -> Iterator[Expression]:
    """Move(a) ⋈ b → a ⋈ Move(b): the joins that a statement could have begun with"""
    match expression:
        case Join(Move(_, left), right) if left.at not in (RANDOM, SOURCE) and _can(left.at, right):
            yield from _joined(left, _moved(left.at, right))
    match expression:
        case Join(left, Move(_, right)) if right.at not in (RANDOM, SOURCE) and _can(right.at, left):
            yield from _joined(_moved(right.at, left), right)


RULES: tuple[Callable[[Expression], Iterator[Expression]], ...] = (
    push_move_below_join,
    pull_move_above_join,
    push_move_below_sum,
    pull_move_above_sum,
    move_other_side,
)


@lru_cache(maxsize=KNOWN >> 2)
def _rewritten(expression: Expression) -> tuple[Expression, ...]:
    """What one rule makes of one node, wherever that then is."""
    return tuple(_found(expression))


def _found(expression: Expression) -> Iterator[Expression]:
    for rule in RULES:
        yield from rule(expression)
    match expression:
        case Join(left, right):
            for found in _rewritten(left):
                yield from _joined(found, right)
            for found in _rewritten(right):
                yield from _joined(left, found)
        case Sum(keys, child):
            for found in _rewritten(child):
                yield from _summed(keys, found)
        case Move(to, child):
            yield from (_moved(to, found) for found in _rewritten(child) if _can(to, found))


def _joined(left: Expression, right: Expression, at: Location | None = None) -> Iterator[Expression]:
    """The join, if its sides meet, at `at`."""
    found = meeting(left.at, right.at)
    if found is not None and at in (None, found):
        yield Join(left, right)


def _moved(to: Location, child: Expression) -> Expression:
    """A move, unless it is one to where it is, or one of a move."""
    if child.at == to:
        return child
    return _moved(to, child.child) if isinstance(child, Move) else Move(to, child)


def _summed(keys: tuple[Column, ...], child: Expression) -> Iterator[Expression]:
    """The sum, if no part of it would count twice."""
    if can_add_up(keys, child):
        yield Sum(keys, child)


def _can(to: Location, child: Expression) -> bool:
    """Can it be moved there? Not without what it is spread by; what several nodes have only if it was moved to them."""
    source = child.child.at if isinstance(child, Move) else child.at
    if source != to and (isinstance(source, Line) or (source is EVERYWHERE and isinstance(to, Line))):
        return False
    return isinstance(to, Mark) or set(to.by) <= child.variables
