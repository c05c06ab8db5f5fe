"""Checks that a query in TABLE(…) selects columns of inner joins by equality; what else it has is refused by name."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from sqlglot import exp

from squallpy.frontend.window_clause import CLAUSE
from squallpy.logical.bind.context import Context
from squallpy.logical.expressions import Call, Column, Expr, columns, conjuncts, substitute
from squallpy.logical.nodes import Aggregate, Filter, Join, Node, Project, Scan, nodes

HINT = "it reads columns of inner joins by equality, with WHERE on single relations"
_CLAUSES = {
    "distinct": "DISTINCT", "group": "GROUP BY", "having": "HAVING", "limit": "LIMIT", "offset": "OFFSET",
    CLAUSE: "a window", "laterals": "LATERAL VIEW",
}  # fmt: skip
_NODES: tuple[tuple[type[exp.Expr], str], ...] = (
    (exp.Window, "a window function"), (exp.SetOperation, "a set operation"), (exp.Lateral, "LATERAL"),
    (exp.Subquery, "a subquery"), (exp.Exists, "EXISTS"), (exp.In, "IN with a query"),
)  # fmt: skip
_PLANS = {
    "Aggregate": "an aggregate", "GroupingSets": "GROUP BY", "LeftJoin": "an outer join",
    "SemiJoin": "EXISTS or IN", "AntiJoin": "NOT EXISTS, NOT IN or an outer join", "Union": "UNION or an outer join",
    "SetOperation": "a set operation", "TopN": "LIMIT", "Limit": "LIMIT", "WindowFunctions": "a window function",
    "Window": "a window", "Apply": "a subquery", "Domain": "a subquery", "Repeat": "EXPLODE",
    "Factorised": "a table function",
}  # fmt: skip


def refuse_clauses(ctx: Context, name: str, query: exp.Expr) -> None:
    """Raise SQ3001 for a clause that makes a query in TABLE(…) more than an inner join."""
    for node in query.walk():
        if what := _name_unsupported(node):
            raise ctx.error("SQ3001", f"{what} inside TABLE(…) of {name} is not supported", node, HINT)


def _name_unsupported(node: exp.Expr) -> str:
    """Name what a node asks for beyond an inner join; empty for nothing."""
    match node:
        case exp.Join() if node.side or node.kind in ("SEMI", "ANTI"):
            return " ".join(filter(None, (node.side, node.kind, "JOIN")))
        case exp.Select() if not node.args.get("from_"):
            return "a query without FROM"
        case exp.Select():
            return next((what for clause, what in _CLAUSES.items() if node.args.get(clause)), "")
        case exp.Subquery() if isinstance(node.parent, exp.From | exp.Join):
            return ""
        case exp.In() if not node.args.get("query"):
            return ""
        case exp.Table() if isinstance(node.this, exp.Anonymous):
            return "a table function"
    return next((what for kind, what in _NODES if isinstance(node, kind)), "")


def check_equi_join(
    ctx: Context, name: str, plan: Node, features: Sequence[Column], places: Mapping[Column, exp.Expr]
) -> None:
    """Raise SQ3001 for what is no inner equi-join, and SQ2005 for features that are the same column.

    Args:
        places: For each column of the plan where the query lists it.
    """
    query = places[features[0]]
    for node in nodes(plan):
        if not isinstance(node, Scan | Filter | Project | Join):
            is_distinct = isinstance(node, Aggregate) and not node.aggs
            what = "DISTINCT" if is_distinct else _PLANS.get(type(node).__name__, type(node).__name__)
            raise ctx.error("SQ3001", f"{what} inside TABLE(…) of {name} is not supported", query, HINT)
    scans, same = dict[Column, frozenset[int]](), dict[Column, Column]()
    for node in nodes(plan):  # NB: inputs first
        match node:
            case Scan():
                scans |= dict.fromkeys(node.columns, frozenset((id(node),)))
            case Project(items=items):
                scans |= {column: _scans_of(value, scans) for column, value in items}
                same |= {column: _first(value, same) for column, value in items if isinstance(value, Column)}
            case Join(on=predicate) | Filter(predicate=predicate) if predicate is not None:
                for part in conjuncts(predicate):
                    if len(_scans_of(part, scans)) > 1:
                        _check_equality(ctx, name, part, scans, plan, query)
                        match part:
                            case Call("=" | "<=>", (Column() as a, Column() as b)):
                                same[_first(a, same)] = _first(b, same)
    seen = dict[Column, Column]()
    for feature in features:
        if len(scans[feature]) > 1:
            told = f'"{feature.name}" inside TABLE(…) of {name} is computed from several relations'
            raise ctx.error("SQ3001", told, places[feature], HINT)
        if (other := seen.setdefault(_first(feature, same), feature)) is not feature:
            told = f'{name} lists the same column twice, as "{other.name}" and as "{feature.name}"'
            raise ctx.error("SQ2005", told, places[feature], "list it once")


def _check_equality(
    ctx: Context, name: str, part: Expr, scans: dict[Column, frozenset[int]], plan: Node, query: exp.Expr
) -> None:
    """Raise SQ3001 for a predicate of several relations that is no equality of one with another."""
    match part:
        case Call("=" | "<=>", (a, b)) if len(_scans_of(a, scans)) == len(_scans_of(b, scans)) == 1:
            return
    told = f"{_qualify(part, plan)} inside TABLE(…) of {name} reads several relations, which is not supported"
    raise ctx.error("SQ3001", told, query, HINT)


def _qualify(part: Expr, plan: Node) -> Expr:
    """Write the columns of relations with their relations, as messages tell them: k < k → r.k < s.k."""
    every = [(node, column) for node in nodes(plan) if isinstance(node, Scan) for column in node.columns]
    return substitute(part, {c.id: replace(c, name=f"{scan.alias}.{c.name}") for scan, c in every})


def _scans_of(expr: Expr, scans: dict[Column, frozenset[int]]) -> frozenset[int]:
    return frozenset[int]().union(*(scans[column] for column in columns(expr)))


def _first(column: Column, same: dict[Column, Column]) -> Column:
    """Return the column that stands for all that are the same as one."""
    while column in same and same[column] is not column:
        column = same[column]
    return column
