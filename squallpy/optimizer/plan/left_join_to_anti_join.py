"""Rewrite of outer joins that only select rows without a match."""

from squallpy.logical.expressions import Call, Column, Expr, Literal, columns, conjunction, conjuncts, not_null
from squallpy.logical.nodes import Aggregate, AntiJoin, Filter, Join, LeftJoin, Node, Project, Scan


def left_join_to_anti_join(node: Node) -> Node | None:
    """Replace an outer join by an anti join if only rows without a match pass.

    σ_{found IS NULL}(L ⟕ π_{found := TRUE}(σ(R)))   →   π_{found := NULL}(L ▷ π(σ(R)))

    The anti join is a difference, L less its rows with a match. It pays where few rows have one, which is guessed where
    R is restricted; and only over one product, for n differences are 2ⁿ products.
    """
    match node:
        case Filter(LeftJoin(left, right, on) as join, predicate):
            items = right.items if isinstance(right, Project) else ()
            found = {c.id for c, expr in items if not expr.nullable}
            rest = [c for c in conjuncts(predicate) if not _is_null_of(c, found)]
            if len(rest) == len(conjuncts(predicate)) or not _is_restricted(right) or not _is_one_product(left):
                return None
            nothing = ((c, Literal(None, c.type)) for c in join.output[len(left.output) :])
            lost = Project(AntiJoin(left, right, on), (*((c, c) for c in left.output), *nothing))
            return Filter(lost, conjunction(rest)) if rest else lost
    return None


def _is_null_of(conjunct: Expr, ids: set[int]) -> bool:
    """True if a conjunct is `c IS NULL` of one of the columns."""
    match conjunct:
        case Call("is_null", (Column(id),)):
            return id in ids
    return False


def _is_restricted(node: Node) -> bool:
    """True if a plan is filtered by more than NOT NULL tests."""
    match node:
        case Filter(child, predicate):
            more = any(c != not_null(v) for c in conjuncts(predicate) for v in columns(c))
            return more or _is_restricted(child)
        case Project() | Aggregate() | Join():
            return any(map(_is_restricted, node.inputs))
    return False


def _is_one_product(node: Node) -> bool:
    """True if a plan consists of scans and aggregates, joined and filtered."""
    match node:
        case Scan() | Aggregate():
            return True
        case Filter() | Project() | Join():
            return all(map(_is_one_product, node.inputs))
    return False
