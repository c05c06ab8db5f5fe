"""Containment: proofs that a plan's rows, or values, are among those of another.

σ_p(L)                         is within   L
the values of k in σ_p(L)      are within  those of k in L, scanned a second time
"""

from squallpy.logical.apply import Apply, Domain
from squallpy.logical.expressions import Column, Expr, conjuncts, substitute, transform
from squallpy.logical.nodes import ConditionalJoin, Filter, Join, Node, Project, Scan, WindowFunctions


def has_no_more(plan: Node, part: Node) -> bool:
    """True if the rows of `part` that a plan joins or filters are all in `part`."""
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
    """True if both plans read the same inputs, the first perhaps with more predicates."""
    match node, whole:
        case _ if node == whole:
            return True
        case Filter(child, predicate), Filter(other, predicates) if set(conjuncts(predicates)) <= set(
            conjuncts(predicate)
        ):
            return _is_within(child, other)
        case Filter(child), _:
            return _is_within(child, whole)
        case Join(a, b, on), Join(c, d, predicates):
            known, all = (set() if p is None else set(conjuncts(p)) for p in (on, predicates))
            return all <= known and _is_within(a, c) and _is_within(b, d)
    return False


def narrow_plan(plan: Node, needed: set[int]) -> Node:
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
            found = narrow_plan(child, needed)
            return plan if found is child else found
        case _:
            return plan
    return next((narrow_plan(side, needed) for side in sides if needed <= side.ids), plan)


def values_within(node: Node, exprs: tuple[Expr, ...], whole: Node, others: tuple[Expr, ...]) -> bool:
    """True if each combination of values of `exprs` in a plan is one of `others` in `whole`.

    Proven if both read one relation, and the second has fewer predicates.
    """
    part, other_part = _restricted(node, exprs), _restricted(whole, others)
    if part is None or other_part is None or part[0].relation != other_part[0].relation:
        return False
    (scan, exprs, more), (other, others, predicates) = part, other_part
    names: dict[int, Expr] = {a.id: b for a, b in zip(scan.columns, other.columns, strict=True)}
    same = [_by_ids(substitute(expr, names)) for expr in exprs] == [_by_ids(expr) for expr in others]
    return same and {_by_ids(p) for p in predicates} <= {_by_ids(substitute(p, names)) for p in more}


def _restricted(node: Node, exprs: tuple[Expr, ...]) -> tuple[Scan, tuple[Expr, ...], list[Expr]] | None:
    """Find the scan below filters and projections, with expressions and predicates over its columns."""
    below, made, predicates = strip_projections(node)
    return (below, tuple(substitute(e, made) for e in exprs), predicates) if isinstance(below, Scan) else None


def _by_ids(expr: Expr) -> Expr:
    """Reduce columns to their ids: a column that is NOT NULL again above an outer join is the same."""
    return transform(expr, lambda e: Column(e.id, "", e.type) if isinstance(e, Column) else None)


def strip_projections(node: Node) -> tuple[Node, dict[int, Expr], list[Expr]]:
    """Strip projections and filters: the plan below, the columns above in its terms, and the predicates."""
    above = list[Project | Filter]()
    while isinstance(node, Project | Filter):
        above.append(node)
        node = node.child
    shown: dict[int, Expr] = {}
    predicates: list[tuple[Expr, ...]] = []
    for each in reversed(above):
        if isinstance(each, Project):
            shown = {c.id: substitute(expr, shown) for c, expr in each.items}
        else:
            predicates.append(tuple(substitute(p, shown) for p in conjuncts(each.predicate)))
    return node, shown, [p for some in reversed(predicates) for p in some]
