"""GROUP BY with ROLLUP, CUBE and GROUPING SETS: the sets of expressions that rows are grouped by, each for itself.

GROUP BY a, ROLLUP (b, c)   →   (a, b, c), (a, b), (a)
"""

from collections.abc import Iterator
from itertools import combinations, product

from sqlglot import exp

from squallpy.frontend.unsupported import QUERIES
from squallpy.logical.bind.context import Context

MOST_SETS = 64
GroupingSet = tuple[exp.Expr, ...]


def grouping_sets(ctx: Context, clause: exp.Group) -> list[GroupingSet]:
    """List the sets of a GROUP BY, one if it is a plain list; a set that is named twice is grouped by twice."""
    ctx.refuse_other_args(clause, "expressions", "rollup", "cube", "grouping_sets")
    whole = [node for part in ("rollup", "cube", "grouping_sets") for node in clause.args.get(part) or []]
    if not whole:
        elements = [list(alternatives(ctx, node)) for node in clause.expressions]
    else:  # GROUP BY a, b WITH ROLLUP; GROUP BY a, b GROUPING SETS ((a), (b))
        elements = [list(alternatives(ctx, node, clause.expressions)) for node in whole]
    count = 1
    for element in elements:
        count *= len(element)
    if count > MOST_SETS:
        raise ctx.refuse(clause, QUERIES["many sets"])
    return [tuple(dict.fromkeys(node for part in parts for node in part)) for parts in product(*elements)]


def alternatives(ctx: Context, node: exp.Expr, default: list[exp.Expr] | None = None) -> Iterator[GroupingSet]:
    """Yield the sets that one element of GROUP BY stands for."""
    match node:
        case exp.Rollup() | exp.Cube() | exp.GroupingSets():
            ctx.refuse_other_args(node, "expressions")
        case _:
            yield members(node)
            return
    listed = node.expressions or default or []
    if isinstance(node, exp.GroupingSets):
        for each in listed:
            yield from alternatives(ctx, each)
        return
    parts = [members(each) for each in listed]
    if isinstance(node, exp.Cube) and 2 ** len(parts) > MOST_SETS:
        raise ctx.refuse(node, QUERIES["many sets"])
    for size in range(len(parts), -1, -1):
        for chosen in [tuple(parts[:size])] if isinstance(node, exp.Rollup) else combinations(parts, size):
            yield tuple(each for part in chosen for each in part)


def members(node: exp.Expr) -> GroupingSet:
    """List the expressions of a set: (a, b) → a, b;  (a) → a;  () → nothing"""
    if isinstance(node, exp.Tuple):
        return tuple(node.expressions)
    return (node.this,) if isinstance(node, exp.Paren) else (node,)
