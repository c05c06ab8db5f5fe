"""FROM → a join tree over scans, views and subqueries, and the scope that names its columns."""

from dataclasses import replace

from sqlglot import exp

from squallpy.base.errors import SquallError
from squallpy.catalog.catalog import View
from squallpy.catalog.relation import Relation
from squallpy.frontend.unsupported import JOINS, NODES, Unsupported
from squallpy.logical.bind.context import Common, Context
from squallpy.logical.bind.scalar import Scalars
from squallpy.logical.bind.scope import Scope, Source
from squallpy.logical.expressions import TRUE, Expr, conjunction
from squallpy.logical.functions import call
from squallpy.logical.nodes import Join, Node, Project, Scan


def bind_from(ctx: Context, select: exp.Select) -> tuple[Node, Scope]:
    """The join tree of a query block, left to right as written, and its scope."""
    start = select.args.get("from_")
    if start is None:
        raise ctx.refuse(select, Unsupported("SELECT without FROM", "SELECT"))
    ctx.only(start, "this")
    scope = Scope()
    plan = bind_source(ctx, start.this, scope)
    for join in select.args.get("joins") or []:
        plan = bind_join(ctx, join, plan, scope)
    return plan, scope


def bind_join(ctx: Context, join: exp.Join, left: Node, scope: Scope) -> Node:
    """One more source joined to what is there: comma, CROSS, or INNER with ON or USING."""
    # NB: LEFT SEMI is called a SEMI join, LEFT OUTER a LEFT join
    by_kind = join.kind in ("SEMI", "ANTI")
    for word in (join.method, *((join.kind, join.side) if by_kind else (join.side, join.kind))):
        if word and word not in ("INNER", "CROSS"):
            raise ctx.refuse(join, JOINS.get(word) or Unsupported(f"{word} JOIN", word))
    ctx.only(join, "this", "kind", "on", "using")
    right_scope = Scope()
    right = bind_source(ctx, join.this, right_scope)
    conditions = using(ctx, join, scope, right_scope.sources[0])
    scope.add(ctx, right_scope.sources[0], join.this)
    on = join.args.get("on")
    if on is not None:
        condition = Scalars(ctx, scope, "ON").condition(on)
        if condition != TRUE:
            conditions.append(condition)
    return Join(left, right, conjunction(conditions) if conditions else None)


def using(ctx: Context, join: exp.Join, scope: Scope, right: Source) -> list[Expr]:
    """USING (k)  →  left.k = right.k, with k unqualified being the left one."""
    conditions: list[Expr] = []
    for name in join.args.get("using") or []:
        reference = exp.Column(this=name.copy())
        reference.parent = join
        ours = scope.resolve(ctx, reference)
        theirs = Scope([right]).resolve(ctx, reference)
        conditions.append(call("=", ours, theirs))
        scope.merged[name.name.lower()] = ours
        scope.hidden.add(theirs.id)
    return conditions


def bind_source(ctx: Context, node: exp.Expr, scope: Scope) -> Node:
    """A table, view, WITH query or subquery in FROM."""
    if isinstance(node, exp.Table):
        plan, alias = bind_table(ctx, node)
    elif isinstance(node, exp.Subquery):
        ctx.only(node, "this", "alias")
        plan, alias = bind_nested(ctx, node.this), ""
    else:
        raise ctx.refuse(node)
    given = node.args.get("alias")
    if given is not None:
        ctx.only(given, "this", "columns")
        alias = given.name or alias
        try:
            plan = rename(plan, tuple(c.name for c in given.args.get("columns") or ()))
        except SquallError as error:
            raise error.at(ctx.span(given)) from None
    scope.add(ctx, Source(alias, plan.output), node)
    return plan


def bind_table(ctx: Context, node: exp.Table) -> tuple[Node, str]:
    """The plan of a name and the alias it has by default."""
    if not isinstance(node.this, exp.Identifier):
        raise ctx.refuse(node, NODES.get(type(node.this).__name__) or Unsupported("a table function"))
    ctx.only(node, "this", "alias")
    name = node.name
    common = ctx.ctes.get(name.lower())
    if common is not None:
        return bind_common(common, ctx), name
    try:
        entry = ctx.catalog.find(name, ctx.ctes)
    except SquallError as error:
        raise error.at(ctx.span(node.this)) from None
    if isinstance(entry, View):
        return bind_view(ctx, entry), entry.name
    return scan(ctx, entry, node.alias or entry.name), entry.name


def scan(ctx: Context, relation: Relation, alias: str) -> Scan:
    """A scan with new columns."""
    return Scan(relation, alias, tuple(ctx.column(f.name, f.type, f.nullable) for f in relation.fields))


def bind_view(ctx: Context, view: View) -> Node:
    """A view's query, bound anew with new columns; wrong numbers of column names are reported at the view's name."""
    inside = ctx.inside(view.query)
    try:
        return rename(bind_nested(inside, view.query.ast), view.columns)
    except SquallError as error:
        raise error.at(view.span) from None


def bind_common(common: Common, ctx: Context) -> Node:
    """A WITH query, bound anew with new columns."""
    inside = replace(common.context, ids=ctx.ids)
    return rename(bind_nested(inside, common.query), common.columns)


def bind_nested(ctx: Context, node: exp.Expr) -> Node:
    """A query inside another."""
    from squallpy.logical.bind.block import bind_query

    return bind_query(ctx, node, nested=True)


def rename(plan: Node, names: tuple[str, ...]) -> Node:
    """The plan with other column names, as `AS t(a, b)` and `CREATE VIEW v(a, b)` give; SQ2005 if not as many."""
    if not names:
        return plan
    if len(names) != len(plan.output):
        raise SquallError("SQ2005", f"{len(names)} column names for {len(plan.output)} columns")
    match plan:
        case Scan(relation, alias, columns):
            return Scan(relation, alias, tuple(replace(c, name=n) for c, n in zip(columns, names, strict=True)))
        case Project(child, items):
            return Project(child, tuple((replace(c, name=n), e) for (c, e), n in zip(items, names, strict=True)))
    raise AssertionError(plan)
