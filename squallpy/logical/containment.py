"""Containment: what is seen to be among the rows, or the values, of another plan.

σ_p(L)                         is within   L
the values of k in σ_p(L)      are within  those of k in L, scanned a second time
"""

from squallpy.logical.apply import Apply, Domain
from squallpy.logical.expressions import Column, Expr, conjuncts, substitute, transform
from squallpy.logical.nodes import ConditionalJoin, Filter, Join, Node, Project, Scan, WindowFunctions


def has_no_more(plan: Node, part: Node) -> bool:
    """Are the rows of `part` that a plan joins, or filters, all in `part`?"""
    if _is_within(plan, part):
        return True
    match plan:
        case Filter(child) | Project(child):
            return has_no_more(child, part)
        case Join(left, right):
            return has_no_more(left, part) or has_no_more(right, part)
        case ConditionalJoin(left):
            return has_no_more(left, part)
    return False


def _is_within(node: Node, whole: Node) -> bool:
    """The same inputs, perhaps with more asked of them?"""
    match node, whole:
        case _ if node == whole:
            return True
        case Filter(child, predicate), Filter(other, asked) if set(conjuncts(asked)) <= set(conjuncts(predicate)):
            return _is_within(child, other)
        case Filter(child), _:
            return _is_within(child, whole)
        case Join(a, b, on), Join(c, d, asked):
            known, all = (set() if p is None else set(conjuncts(p)) for p in (on, asked))
            return all <= known and _is_within(a, c) and _is_within(b, d)
    return False


def narrowed(plan: Node, needed: set[int]) -> Node:
    """Find the least input of a plan that has some columns, and all combinations of values that they have there.

    a, b of (r ⋈ s) ⟕ t   →   r, if they are r's
    """
    sides: tuple[Node, ...]
    match plan:
        case Join(Domain()):
            return plan
        case Join(left, right):
            sides = (left, right)
        case ConditionalJoin(left) | Apply(left) | WindowFunctions(left):
            sides = (left,)
        case Filter(child):
            found = narrowed(child, needed)
            return plan if found is child else found
        case _:
            return plan
    return next((narrowed(side, needed) for side in sides if needed <= side.ids), plan)


def values_within(node: Node, exprs: tuple[Expr, ...], whole: Node, others: tuple[Expr, ...]) -> bool:
    """Is each combination of values that `exprs` have in a plan one that `others` have in `whole`?

    Seen where both are one relation, and less is asked of the second.
    """
    mine, theirs = _restricted(node, exprs), _restricted(whole, others)
    if mine is None or theirs is None or mine[0].relation != theirs[0].relation:
        return False
    (scan, exprs, more), (other, others, asked) = mine, theirs
    names: dict[int, Expr] = {a.id: b for a, b in zip(scan.columns, other.columns, strict=True)}
    same = [_plain(substitute(expr, names)) for expr in exprs] == [_plain(expr) for expr in others]
    return same and {_plain(p) for p in asked} <= {_plain(substitute(p, names)) for p in more}


def _restricted(node: Node, exprs: tuple[Expr, ...]) -> tuple[Scan, tuple[Expr, ...], list[Expr]] | None:
    """The scan below filters and projections, with the expressions and all that is asked in terms of its columns."""
    below, made, asked = peeled(node)
    return (below, tuple(substitute(e, made) for e in exprs), asked) if isinstance(below, Scan) else None


def _plain(expr: Expr) -> Expr:
    """Columns by their ids alone: one that is NOT NULL again above an outer join is the same."""
    return transform(expr, lambda e: Column(e.id, "", e.type) if isinstance(e, Column) else None)


def peeled(node: Node) -> tuple[Node, dict[int, Expr], list[Expr]]:
    """What is below projections and filters, the columns above in terms of its own, and what the filters ask."""
    above = list[Project | Filter]()
    while isinstance(node, Project | Filter):
        above.append(node)
        node = node.child
    shown: dict[int, Expr] = {}
    asked: list[tuple[Expr, ...]] = []
    for each in reversed(above):
        if isinstance(each, Project):
            shown = {c.id: substitute(expr, shown) for c, expr in each.items}
        else:
            asked.append(tuple(substitute(p, shown) for p in conjuncts(each.predicate)))
    return node, shown, [p for some in reversed(asked) for p in some]
