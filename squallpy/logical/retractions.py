"""Operators of a query that take rows back which they have given: a result without one only grows.

SELECT zip, COUNT(*) AS n FROM f GROUP BY zip    →    COUNT(*) … GROUP BY zip changes rows that it has given
SELECT DISTINCT zip FROM f WHERE v > 0           →    None
"""

from squallpy.logical.apply import Apply, ApplyKind, Domain
from squallpy.logical.expressions import Call, Column, Expr, columns
from squallpy.logical.nodes import (
    Aggregate,
    AntiJoin,
    Filter,
    Join,
    LeftJoin,
    Limit,
    Node,
    Project,
    Scan,
    SemiJoin,
    SetOperation,
    Sort,
    TopN,
    Union,
    Window,
    WindowFunctions,
    nodes,
)
from squallpy.logical.session_windows import SessionWindow

_SELECTED = "changes rows that it has given"


def retracting_operator(plan: Node) -> str | None:
    """Describe an operator that may take rows back or change them, one nearest to the input; None if there is none."""
    tested = _tested_marks(plan)
    found = (_retraction(node, tested) for node in nodes(plan) if not is_static(node))
    return next(filter(None, found), None)


def is_static(plan: Node) -> bool:
    """True if a plan reads only tables, which are there before the first batch."""
    read = [node for node in nodes(plan) if isinstance(node, Scan | Domain)]
    return not any(isinstance(node, Domain) or node.relation.stream or node.relation.is_computed for node in read)


def _retraction(node: Node, tested: frozenset[int]) -> str | None:
    """Describe how an operator takes rows back where its inputs only grow; None if it does not."""
    match node:
        case Scan(relation) if relation.is_computed:
            return f"the cells of {relation.name} change"
        case Scan(relation):
            return f"{relation.name} is a change stream" if relation.source.has_deletes else None
        case Filter() | Project() | Join() | Union() | Sort() | SemiJoin() | Domain() | Aggregate(aggs=()):
            return None
        case SetOperation(kind):
            return "EXCEPT takes rows back that come on its right" if kind == "EXCEPT" else None
        case Aggregate(_, keys, ((_, agg), *_)):
            by = f" … GROUP BY {', '.join(str(expr) for _, expr in keys)}" if keys else ""
            return f"{agg}{by} {_SELECTED}"
        case LeftJoin(_, right) | AntiJoin(_, right):
            return None if is_static(right) else "an outer or anti join takes rows back when they get a match"
        case Apply(_, right, kind, outputs=made):
            grows = (
                kind in (ApplyKind.CROSS, ApplyKind.SEMI) or tested.issuperset(c.id for c in made) or is_static(right)
            )
            return None if grows else "a subquery takes rows back when its answer changes"
        case Window(_, spec):
            return f"{spec.frame} takes rows back that leave the window"
        case SessionWindow():
            return "a session takes its row back when another row makes it longer"
        case TopN():
            return f"{node.clause} takes rows back for others"
        case Limit():
            return "LIMIT takes rows back for others"
        case WindowFunctions(_, ((_, function), *_)):
            return f"{function.display_name or function.function} OVER (…) {_SELECTED}"
    return f"{type(node).__name__} {_SELECTED}"


def _tested_marks(plan: Node) -> frozenset[int]:
    """Find marks of EXISTS and IN, by id, that are only tested for TRUE: once a row passes, it does for good."""
    marks = {node.outputs[0]: node.kind for node in nodes(plan) if isinstance(node, Apply) and node.outputs}
    marks = {mark: kind for mark, kind in marks.items() if kind in (ApplyKind.EXISTS, ApplyKind.MARK)}
    shown = set[Column]()
    for node in nodes(plan) if marks else ():
        match node:
            case Filter(_, predicate) | Join(on=predicate) if predicate is not None:
                shown |= {m for m in columns(predicate) & marks.keys() if not _is_test(predicate, m, marks[m])}
            case Project(_, items):
                shown |= {column for _, expr in items for column in columns(expr)}
            case Aggregate(_, keys, aggs):
                read = (*(expr for _, expr in keys), *(arg for _, agg in aggs for arg in agg.args))
                shown |= {column for expr in read for column in columns(expr)}
    return frozenset(mark.id for mark in marks.keys() - shown)


def _is_test(predicate: Expr, mark: Column, kind: ApplyKind) -> bool:
    """True if a predicate that is TRUE stays so when a mark becomes TRUE."""
    match predicate:
        case Call("not", (Call("is_null", (arg,)),)) if arg == mark:
            return kind is ApplyKind.EXISTS
        case Call("and" | "or", args):
            return all(mark not in columns(arg) or _is_test(arg, mark, kind) for arg in args)
    return predicate == mark
