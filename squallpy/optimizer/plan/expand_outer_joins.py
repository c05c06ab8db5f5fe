"""Outer joins as unions of the rows with a match and of those without, padded with NULLs."""

from collections.abc import Iterator

from squallpy.logical.expressions import TRUE, Expr, Literal, column_of, is_null
from squallpy.logical.join_matches import distinct_matches
from squallpy.logical.nodes import Filter, Join, LeftJoin, Node, Project, Union
from squallpy.optimizer.plan.groupjoin import EmptyGroups, groupjoin


def expand_outer_joins(node: Node, ids: Iterator[int], empty_groups: EmptyGroups) -> Node | None:
    """Replace an outer join by the union of its matches and of the left rows without any, if a groupjoin finds these.

    L ⟕_{l = k} R   →   (L ⋈_{l = k} R) ∪ π_{NULL}(rows_without_match(L, R))
    """
    if not isinstance(node, LeftJoin):
        return None
    left, right = node.left, node.right
    lost = rows_without_match(left, right, node.on, ids, empty_groups)
    if lost is None:
        return None
    nothing = tuple(Literal(None, c.type) for c in right.output)
    parts: tuple[tuple[Node, tuple[Expr, ...]], ...] = (
        (Join(left, right, node.on), (*left.output, *right.output)),
        (lost, (*left.output, *nothing)),
    )
    inputs = (Project(part, tuple((column_of(e, next(ids)), e) for e in exprs)) for part, exprs in parts)
    return Union(tuple(inputs), node.output)


def rows_without_match(left: Node, right: Node, on: Expr, ids: Iterator[int], empty_groups: EmptyGroups) -> Node | None:
    """Select the rows of `left` without a match by a groupjoin: those of whose values there is no match.

    L ▷_{l = k} R   →   π_L(σ_{marker IS NULL}(L ⟕_{l = k} π_{marker := TRUE}(Aggregate by k of R)))
    """
    matches, same = distinct_matches(left, right, on, ids)
    marker = column_of(TRUE, next(ids))
    marked = Project(matches, (*((c, c) for c in matches.output), (marker, TRUE)))
    joined = groupjoin(LeftJoin(left, marked, same), ids, empty_groups)
    if joined is None:
        return None
    return Project(Filter(joined, is_null(joined.output[-1])), tuple((c, c) for c in left.output))
