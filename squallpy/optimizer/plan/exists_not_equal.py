"""Rewrite of EXISTS with one `<>` into a comparison of two counts: those of the group, and of the equal rows.

    L ⋉_{l.k = r.k ∧ l.s <> r.s} R
 →  σ_{n > m}(L ⟕_{l.k = k} (Aggregate by r.k: COUNT(*) AS n of R)
               ⟕_{l.k = k ∧ l.s = s} (Aggregate by r.k, r.s: COUNT(*) AS m of R))

Equal rows are found by a lookup, unequal ones only by a scan: without the rewrite each new row is compared with all
rows of its k, and the matches are counted for each pair of k and s (TPC-H Q21).
"""

from collections.abc import Iterator

from squallpy.base.records import dataclass
from squallpy.base.types import BIGINT, BOOLEAN
from squallpy.logical.aggregate_calls import Agg
from squallpy.logical.containment import has_no_more, strip_projections
from squallpy.logical.expression_builders import call, coalesce
from squallpy.logical.expressions import (
    FALSE,
    TRUE,
    Call,
    Case,
    Column,
    Expr,
    Literal,
    as_nullable,
    column_of,
    columns,
    conjunction,
    conjuncts,
    not_null,
    substitute,
)
from squallpy.logical.join_matches import reads_only
from squallpy.logical.nodes import Aggregate, AntiJoin, Filter, Join, LeftJoin, Node, Project, SemiJoin

Pair = tuple[Expr, Expr]  # of the left and of the right


def exists_not_equal(node: Node, ids: Iterator[int]) -> Node | None:
    """Replace an EXISTS whose condition has one `<>` by counts of equal rows."""
    match node:
        case SemiJoin(left, right, on):
            found = _join_counts(left, right, on, ids)
            return found and Filter(*found)
        case AntiJoin(left, right, on):
            found = _join_counts(left, right, on, ids)
            return found and Filter(found[0], Call("not", (found[1],), BOOLEAN, False))
        case Join(left) | LeftJoin(left):
            left_predicates = _match_exists(node)
            found = (
                None if left_predicates is None else _join_counts(left, left_predicates.right, left_predicates.on, ids)
            )
            if left_predicates is None or found is None:
                return None
            plan, others = found
            ours = tuple((c, c) for c in left.output)
            if isinstance(node, Join):
                return Project(Filter(plan, others), (*ours, *left_predicates.items))
            shown = ((c, Case(((others, e),), Literal(None, c.type), c.type)) for c, e in left_predicates.items)
            return Project(plan, (*ours, *((as_nullable(c), e) for c, e in shown)))
    return None


def _join_counts(left: Node, right: Node, on: Expr, ids: Iterator[int]) -> tuple[Node, Expr] | None:
    """Join `left` with the counts of its matches in `right`; returned with the test for a match, never NULL."""
    parts = _split_condition(left, right, on)
    if parts is None:
        return None
    (here, there), right_predicates = parts.different, list(parts.right_predicates)
    left_predicates = [*parts.left_predicates, *([not_null(here)] if here.nullable else ())]
    right_predicates += [not_null(there)] if there.nullable else []
    rows = Filter(right, conjunction(right_predicates)) if right_predicates else right
    counts: list[Expr] = []
    for pairs in (parts.equal, (*parts.equal, parts.different)):
        keys = tuple((column_of(expr, next(ids)), expr) for _, expr in pairs)
        number = Column(next(ids), "n", BIGINT, False)
        same = conjunction(call("=", a, key) for (a, _), (key, _) in zip(pairs, keys, strict=True))
        left = LeftJoin(left, Aggregate(rows, keys, ((number, Agg("count", None)),)), same)
        counts.append(coalesce(as_nullable(number), Literal(0, BIGINT)))
    others = conjunction((Call(">", tuple(counts), BOOLEAN, False), *left_predicates))
    return left, Case(((others, TRUE),), FALSE, BOOLEAN) if others.nullable else others


@dataclass(frozen=True, slots=True)
class _Condition:
    """A join condition by kind: equalities, the inequality, and predicates on the right or the left alone."""

    equal: tuple[Pair, ...]
    different: Pair
    right_predicates: tuple[Expr, ...]
    left_predicates: tuple[Expr, ...]


def _split_condition(left: Node, right: Node, on: Expr) -> _Condition | None:
    """Split a join condition; None unless it has exactly one `<>` and nothing else between the sides but equalities."""
    ours, theirs = ({c.id for c in side.output} for side in (left, right))
    pairs: dict[str, list[Pair]] = {"=": [], "<>": []}
    right_predicates: list[Expr] = []
    left_predicates: list[Expr] = []
    for conjunct in conjuncts(on):
        match conjunct:
            case _ if {c.id for c in columns(conjunct)} <= theirs:
                right_predicates.append(conjunct)
            case _ if {c.id for c in columns(conjunct)} <= ours:
                left_predicates.append(conjunct)
            case Call("=" | "<>" as name, (a, b)) if reads_only(a, ours) and reads_only(b, theirs):
                pairs[name].append((a, b))
            case Call("=" | "<>" as name, (a, b)) if reads_only(a, theirs) and reads_only(b, ours):
                pairs[name].append((b, a))
            case _:
                return None
    if len(pairs["<>"]) != 1:
        return None
    return _Condition(tuple(pairs["="]), pairs["<>"][0], tuple(right_predicates), tuple(left_predicates))


@dataclass(frozen=True, slots=True)
class _Exists:
    """An EXISTS found in a join: its rows are `right`, its condition `on`, and `items` are the columns that it
    returns."""

    right: Node
    on: Expr
    items: tuple[tuple[Column, Expr], ...]


def _match_exists(join: Join | LeftJoin) -> _Exists | None:
    """Recognise a join with the distinct values of its left input that have a match, to which EXISTS was decorrelated.

    L ⋈_{l.s <=> s'} (Aggregate by s' := s of ((Aggregate by s := l.s of L) ⋈_{s <> r.s} R))    →    R, (l.s <> r.s)
    """
    top, shown, above = strip_projections(join.right)
    if not isinstance(top, Aggregate) or top.aggs or above or join.on is None:
        return None
    met, made, within = strip_projections(top.child)
    if not isinstance(met, Join) or not isinstance(met.left, Aggregate) or met.left.aggs:
        return None
    values = met.left
    keys = {c.id: substitute(expr, made) for c, expr in top.keys}
    theirs = {c.id: substitute(substitute(c, shown), keys) for c in join.right.output}
    given: dict[int, Expr] = {}
    for conjunct in conjuncts(join.on):
        match conjunct:
            case Call("<=>" | "=" as name, (Column() as a, Column() as b)):
                here, key = (a, theirs[b.id]) if b.id in theirs else (b, theirs.get(a.id))
                if not isinstance(key, Column) or here.id in theirs or key.id in given:
                    return None
                given[key.id] = here
                within = [*within, not_null(here)] if name == "=" and here.nullable else within
            case _:
                return None
    right_predicates = {c.id: expr.id for c, expr in values.keys if isinstance(expr, Column)}
    if right_predicates != {key: here.id for key, here in given.items() if isinstance(here, Column)}:
        return None
    if {e.id for e in keys.values() if isinstance(e, Column)} != right_predicates.keys() or len(right_predicates) < len(
        values.keys
    ):
        return None
    if not has_no_more(join.left, values.child):
        return None
    on = conjunction((*within, *([met.on] if met.on is not None else ())))
    items = tuple((c, substitute(theirs[c.id], given)) for c in join.right.output)
    return _Exists(met.right, substitute(on, given), items)
