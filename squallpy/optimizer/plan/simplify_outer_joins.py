"""Outer, semi and anti joins: filters pushed through them, and outer joins replaced by inner ones."""

from dataclasses import replace

from squallpy.logical.expressions import Expr, Literal, conjunction, conjuncts, substitute
from squallpy.logical.nodes import ConditionalJoin, Filter, Join, LeftJoin, Node, Project
from squallpy.logical.null_folding import fold_nulls
from squallpy.optimizer.plan.push_filters import split_by_reader


def push_filter_left(node: Node) -> Node | None:
    """Push conjuncts on the left input into it: σ_{p(r) ∧ q}(r ⟕ s) → σ_q(σ_p(r) ⟕ s); r ⋉ s and r ▷ s alike"""
    match node:
        case Filter(ConditionalJoin(left) as join, predicate):
            mine, rest = split_by_reader(predicate, left)
            if mine:
                below = replace(join, left=Filter(left, conjunction(mine)))
                return Filter(below, conjunction(rest)) if rest else below
    return None


def push_on_right(node: Node) -> Node | None:
    """Push conjuncts of ON into the right input: r ⟕_{p(s) ∧ q} s → r ⟕_q σ_p(s); r ⋉ s and r ▷ s alike"""
    match node:
        case ConditionalJoin(_, right, on):
            mine, rest = split_by_reader(on, right)
            if mine:
                return replace(node, right=Filter(right, conjunction(mine)), on=conjunction(rest))
    return None


def strengthen_left_join(node: Node) -> Node | None:
    """Make an outer join inner if its filter rejects rows of NULLs: σ_p(r ⟕ s) → σ_p(r ⋈ s)"""
    match node:
        case Filter(LeftJoin(left, right, on) as join, predicate) if _rejects(predicate, right):
            own = {c.id: c for c in (*left.output, *right.output)}
            items = tuple((c, own[c.id]) for c in join.output)  # the same columns, which are NOT NULL below
            return Filter(Project(Join(left, right, on), items), predicate)
    return None


def _rejects(predicate: Expr, right: Node) -> bool:
    nothing: dict[int, Expr] = {c.id: Literal(None, c.type) for c in right.output}
    without = (fold_nulls(substitute(c, nothing)) for c in conjuncts(predicate))
    return any(isinstance(c, Literal) and not c.value for c in without)
