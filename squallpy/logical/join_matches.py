"""Matches of a join: the distinct values of its left side that have one, for SEMI, ANTI and outer joins."""

from collections.abc import Collection, Iterator

from squallpy.base.types import BOOLEAN
from squallpy.logical.expressions import TRUE, Call, Column, Expr, column_of, columns, conjunction, conjuncts
from squallpy.logical.nodes import Aggregate, Filter, Join, Node, Project


def distinct_matches(left: Node, right: Node, on: Expr, ids: Iterator[int]) -> tuple[Node, Expr]:
    """Make a plan that has the values of `left` with a match in `right` once each, and the condition that joins it.

    L ⋉_{l.k = r.k ∧ r.a > 1} R   →   Aggregate by k := r.k of σ_{r.a > 1}(R),  (l.k = k)

    Where `on` does more than equate both sides, the matches are looked for among the pairs of `left` and `right`.
    """
    left_ids, right_ids = left.ids, right.ids
    equal: list[tuple[str, Expr, Expr]] = []
    right_predicates: list[Expr] = []
    left_predicates: list[Expr] = []  # of `left` alone
    for conjunct in conjuncts(on):
        match conjunct:
            case Call("=" | "<=>" as name, (a, b)) if reads_only(a, left_ids) and reads_only(b, right_ids):
                equal.append((name, a, b))
            case Call("=" | "<=>" as name, (a, b)) if reads_only(a, right_ids) and reads_only(b, left_ids):
                equal.append((name, b, a))
            case _ if {c.id for c in columns(conjunct)} <= right_ids:
                right_predicates.append(conjunct)
            case _ if {c.id for c in columns(conjunct)} <= left_ids:
                left_predicates.append(conjunct)
            case _:
                read = sorted((c for c in columns(on) if c.id in left_ids), key=lambda c: c.id)
                keys: list[tuple[Column, Expr]] = [(column_of(c, next(ids)), c) for c in read]
                same = conjunction(Call("<=>", (c, key), BOOLEAN, False) for key, c in keys)
                return Aggregate(Join(left, right, on), tuple(keys), ()), same
    if (
        equal
        and not right_predicates
        and _unique_ids(right) == {b.id if isinstance(b, Column) else None for _, _, b in equal}
    ):
        return right, on
    if not equal:
        equal = [("=", TRUE, TRUE)]
    keys = [(column_of(b, next(ids)), b) for _, _, b in equal]
    pairs = [Call(name, (a, k), BOOLEAN, name == "=") for (name, a, _), (k, _) in zip(equal, keys, strict=True)]
    same = conjunction((*pairs, *left_predicates))
    return Aggregate(Filter(right, conjunction(right_predicates)) if right_predicates else right, tuple(keys), ()), same


def _unique_ids(node: Node) -> set[int | None]:
    """Find the columns whose combinations a plan has once each; empty if unknown."""
    match node:
        case Aggregate(_, keys):
            return {column.id for column, _ in keys}
        case Project(child, items):
            names = {expr.id: column.id for column, expr in items if isinstance(expr, Column)}
            return {names.get(id) for id in _unique_ids(child) if id is not None}
        case Filter(child):
            return _unique_ids(child)
    return set()


def reads_only(expr: Expr, ids: Collection[int]) -> bool:
    """True if an expression reads columns, and only the given ones."""
    return bool(columns(expr)) and all(c.id in ids for c in columns(expr))
