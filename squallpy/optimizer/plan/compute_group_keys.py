"""Grouping without the keys that others determine: they are computed where the groups are read.

γ_{k, f(k)}(r)   →   π_{k, f(k)}(γ_k(r))        GROUP BY name, UPPER(name), 'all'    →    GROUP BY name
"""

from squallpy.base.types import DOUBLE
from squallpy.logical.expression_builders import replace_known
from squallpy.logical.expressions import Column, Expr, columns, substitute
from squallpy.logical.first_rows import FirstRows
from squallpy.logical.nodes import Aggregate, Filter, Join, Node, Project, Repeat, nodes
from squallpy.logical.session_windows import SessionBounds
from squallpy.optimizer.pass_manager import top_down


def compute_group_keys(plan: Node) -> Node:
    """Compute the keys of groups that follow from other keys, as the end of a window does from its start."""
    whole = {id(node.child) for node in nodes(plan) if isinstance(node, Repeat | SessionBounds | FirstRows)}
    return top_down(plan, lambda node: None if id(node) in whole else _without_computed(node))


def _without_computed(node: Node) -> Node | None:
    if not isinstance(node, Aggregate) or len(node.keys) < 2:
        return None
    known, computed = _definitions(node.child), dict[Column, Expr]()
    kept = {column: substitute(expr, known) for column, expr in node.keys}
    for column in reversed(list(kept)):
        # NB: 0.0 and -0.0 are one key, but two texts
        others = {expr: other for other, expr in kept.items() if other != column and expr.type != DOUBLE}
        found = replace_known(kept[column], others)
        if others and set(columns(found)) <= set(others.values()):
            computed = {c: substitute(expr, {column.id: found}) for c, expr in computed.items()} | {column: found}
            del kept[column]
    if not computed:
        return None
    grouped = Aggregate(node.child, tuple(key for key in node.keys if key[0] in kept), node.aggs)
    return Project(grouped, tuple((c, computed.get(c, c)) for c in node.output))


def _definitions(plan: Node) -> dict[int, Expr]:
    """Write the columns that a plan computes by those that it computes them from."""
    match plan:
        case Project(child, items):
            below = _definitions(child)
            return {column.id: substitute(expr, below) for column, expr in items}
        case Filter(child):
            return _definitions(child)
        case Join(left, right):
            return _definitions(left) | _definitions(right)
    return {}
