"""UNION, INTERSECT and EXCEPT: their sides with columns of common types, paired by place or by name."""

from itertools import pairwise

from sqlglot import exp

from squallpy.base.errors import SquallError, nearest
from squallpy.base.records import dataclass
from squallpy.base.types import NULL, VARCHAR, unify
from squallpy.frontend.unsupported import QUERIES
from squallpy.logical.bind.context import Context
from squallpy.logical.bind.expressions import Scalars
from squallpy.logical.bind.from_clause import bind_nested
from squallpy.logical.bind.nested_limit import bind_inner_limit, bind_ties
from squallpy.logical.bind.order_by import bind_limit, bind_order, place_sort
from squallpy.logical.bind.scope import FromItem, Outer, Scope
from squallpy.logical.coercion import coerce_exactly
from squallpy.logical.expressions import Column, Expr, Literal
from squallpy.logical.nodes import Node, Project, SetOperation, Union
from squallpy.logical.plan_properties import is_bare_null

SET_PARTS = ("with_", "this", "expression", "distinct", "by_name", "kind", "on", "order", "limit", "offset")


@dataclass(frozen=True, slots=True)
class ResultColumn:
    """Column of the result, for ORDER BY."""

    expr: Expr


def bind_set(
    ctx: Context, node: exp.SetOperation, outer: Outer | None = None, ordered: bool = True, inside: bool = False
) -> Node:
    """Bind a set operation with its ORDER BY and LIMIT.

    Args:
        ordered: The order is of interest to whoever reads it.
        inside: It is inside a query that reads only the rows that LIMIT leaves.
    """
    plan = operation(ctx, node, outer)
    outputs = tuple((ctx.column(c.name, c.type, c.nullable), c) for c in plan.output)
    scalars = Scalars(ctx, Scope([FromItem("", plan.output)]), "ORDER BY")
    order = bind_order(node.args.get("order"), [ResultColumn(c) for c in plan.output], scalars)
    plan = bind_ties(ctx, node, plan, order)
    if inside:
        return bind_inner_limit(ctx, node, plan, outputs, order)
    return bind_limit(ctx, node, place_sort(plan, outputs, order if ordered else []))


def operation(ctx: Context, node: exp.SetOperation, outer: Outer | None) -> Node:
    """Bind the sides of a set operation, those of a chain of UNIONs at once."""
    distinct = bool(node.args["distinct"])
    sides: list[exp.Expr] = [node.this, node.expression]
    if isinstance(node, exp.Union):
        if not node.args.get("by_name"):
            sides = [query for side in sides for query in operands(ctx, side, distinct)]
    else:
        ctx.refuse_other_args(node, *(part for part in SET_PARTS if part != "by_name" or is_corresponding(node)))
    children, columns = align_queries(ctx, node, sides, outer)
    if isinstance(node, exp.Union) and not distinct:
        return Union(children, columns)
    return SetOperation(node.key.upper(), not distinct, children, columns)


def operands(ctx: Context, node: exp.Expr, distinct: bool) -> list[exp.Expr]:
    """List the operands of a chain of UNIONs; below a UNION DISTINCT it does not matter whether they are ALL."""
    whole = any(node.args.get(part) for part in ("with_", "by_name", "order", "limit", "offset"))
    if not isinstance(node, exp.Union) or whole or (node.args["distinct"] and not distinct):
        return [node]
    ctx.refuse_other_args(node, *SET_PARTS)
    return operands(ctx, node.this, distinct) + operands(ctx, node.expression, distinct)


def bind_values(ctx: Context, node: exp.Values) -> Node:
    """Bind VALUES as a UNION ALL of its rows."""
    plan = Union(*align_queries(ctx, node, queries_of_rows(node), None))
    return Project(plan, tuple((ctx.column(c.name, c.type, c.nullable), c) for c in plan.output))


def queries_of_rows(node: exp.Values) -> list[exp.Expr]:
    """Write each row of VALUES as a query.

    VALUES (1, 'a'), (2, 'b')   →   SELECT 1 AS col1, 'a' AS col2; SELECT 2 AS col1, 'b' AS col2
    """
    rows = list[exp.Expr]()
    for row in node.expressions:
        items = [exp.alias_(value.copy(), f"col{i}") for i, value in enumerate(row.expressions, 1)]
        query = exp.Select(expressions=items)
        query.parent = row
        rows.append(query)
    return rows


def align_queries(
    ctx: Context, node: exp.SetOperation | exp.Values, queries: list[exp.Expr], outer: Outer | None
) -> tuple[tuple[Node, ...], tuple[Column, ...]]:
    """Bind queries with columns of common types; returned with the columns of all, named as those of the first."""
    plans = [bind_nested(ctx, query, outer) for query in queries]
    word = node.key.upper()
    if node.args.get("by_name") and is_strict(ctx):
        raise ctx.refuse(node, QUERIES["STRICT"])
    if is_corresponding(node):
        plans = narrow_to_common(ctx, node, queries, plans)
    elif node.args.get("by_name"):
        plans = by_name(ctx, queries, plans)
    for query, plan in zip(queries[1:], plans[1:], strict=True):
        if len(plan.output) != len(plans[0].output):
            message = f"{word} of {len(plans[0].output)} and {len(plan.output)} columns"
            raise SquallError("SQ2005", message, ctx.query.keyword(query, word))
    columns, parts = list[Column](), [list[tuple[Column, Expr]]() for _ in plans]
    scalars = Scalars(ctx, Scope(), word)
    for same in zip(*(plan.output for plan in plans), strict=True):
        exprs = [output_column(ctx, plan, c) for plan, c in zip(plans, same, strict=True)]
        exprs = scalars.as_one_type(exprs, queries)
        types = [expr.type for expr in exprs]
        type = unify(types)
        if type is None:
            odd = next(i for i in range(len(types)) if unify(types[: i + 1]) is None)
            message = f'{word} of {unify(types[:odd])} and {types[odd]} in column "{same[0].name}"'
            raise SquallError("SQ2005", message, ctx.query.keyword(queries[odd], word), "CAST one side")
        columns.append(ctx.column(same[0].name, VARCHAR if type == NULL else type, any(c.nullable for c in same)))
        for c, given, part in zip(same, exprs, parts, strict=True):
            expr = coerce_exactly(c if given.type == c.type else given, columns[-1].type)
            part.append((ctx.column(c.name, expr.type, c.nullable), expr))
    return tuple(Project(plan, tuple(p)) for plan, p in zip(plans, parts, strict=True)), tuple(columns)


def output_column(ctx: Context, plan: Node, column: Column) -> Expr:
    """Return a column of a query, or the bare NULL or text that the query selects for it."""
    if is_bare_null(plan, column):
        return Literal(None, NULL)
    expr = ctx.fold(dict(plan.items)[column]) if isinstance(plan, Project) else column
    return expr if isinstance(expr, Literal) and expr.type == VARCHAR else column


def by_name(ctx: Context, queries: list[exp.Expr], plans: list[Node]) -> list[Node]:
    """Extend plans to the columns of all, in the order in which they are first named, with NULL where one has none."""
    names = {c.name.lower(): c.name for plan in reversed(plans) for c in reversed(plan.output)}
    order = dict.fromkeys(c.name.lower() for plan in plans for c in plan.output)
    extended = list[Node]()
    for query, plan in zip(queries, plans, strict=True):
        mine = {c.name.lower(): c for c in plan.output}
        if len(mine) < len(plan.output):
            raise SquallError("SQ2002", "UNION BY NAME of columns of one name", ctx.query.keyword(query, "NAME"))
        nothing = Literal(None, VARCHAR)
        items = ((names[name], mine.get(name, nothing)) for name in order)
        extended.append(Project(plan, tuple((ctx.column(n, e.type, e.nullable), e) for n, e in items)))
    return extended


def is_corresponding(node: exp.Expr) -> bool:
    """True if a set operation is of the columns that both sides have, CORRESPONDING, or of some of those."""
    return node.args.get("kind") == "INNER" or bool(node.args.get("on"))


def is_strict(ctx: Context) -> bool:
    """True if the query says STRICT CORRESPONDING, which sqlglot takes for BY NAME."""
    return any(a.text.upper() == "STRICT" and b.text.upper() == "CORRESPONDING" for a, b in pairwise(ctx.query.tokens))


def narrow_to_common(ctx: Context, node: exp.Expr, queries: list[exp.Expr], plans: list[Node]) -> list[Node]:
    """Narrow plans to the columns that all have, in the order of the first, or to those of CORRESPONDING BY (…)."""
    every = [[c.name.lower() for c in plan.output] for plan in plans]
    given: list[exp.Expr] = node.args.get("on") or []
    names = [each.name.lower() for each in given] or [n for n in every[0] if all(n in names for names in every)]
    if not names:
        message = "CORRESPONDING of queries that have no column of the same name"
        raise SquallError("SQ2003", message, ctx.query.keyword(queries[-1], "CORRESPONDING"), "name columns with AS")
    for column, name in zip(given, names, strict=False):
        missing = next((plan for plan, own in zip(plans, every, strict=True) if name not in own), None)
        if missing is not None:
            hint = nearest(name, [c.name for c in missing.output])
            raise ctx.error("SQ2003", f'a side of {node.key.upper()} has no column "{column.name}"', column, hint)
        if names.count(name) > 1:
            raise ctx.error("SQ2007", f'"{column.name}" is named twice in CORRESPONDING BY', column)
    twice = next((name for name in names for own in every if own.count(name) > 1), None)
    if twice is not None:
        message = f'a side of {node.key.upper()} CORRESPONDING has two columns "{twice}"'
        raise SquallError("SQ2002", message, ctx.query.keyword(queries[-1], "CORRESPONDING"), "name one with AS")
    narrowed = list[Node]()
    for plan in plans:
        mine = {c.name.lower(): c for c in plan.output}
        items = tuple(
            (ctx.column(c.name, c.type, c.nullable), output_column(ctx, plan, c)) for c in map(mine.__getitem__, names)
        )
        narrowed.append(Project(plan, tuple((c, Literal(None, VARCHAR) if e.type == NULL else e) for c, e in items)))
    return narrowed
