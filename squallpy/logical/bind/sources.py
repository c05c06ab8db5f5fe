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
from squallpy.logical.expressions import TRUE, Column, Expr, Literal, conjunction
from squallpy.logical.functions import call, coalesce
from squallpy.logical.nodes import AntiJoin, Join, LeftJoin, Node, Project, Scan, SemiJoin, Union


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
    """One more source joined to what is there."""
    kind = join_kind(ctx, join)
    ctx.only(join, "this", "method", "side", "kind", "on", "using")
    right_scope = Scope()
    right = bind_source(ctx, join.this, right_scope)
    (source,) = right_scope.sources
    pairs = merged_pairs(ctx, join, scope, source)
    scope.add(ctx, source, join.this)
    conditions: list[Expr] = [call("=", ours, theirs) for ours, theirs in pairs.values()]
    on = join.args.get("on")
    if on is not None:
        conditions.append(Scalars(ctx, scope, "ON").condition(on))
    condition = conjunction(c for c in conditions if c != TRUE)
    if kind in ("SEMI", "ANTI"):
        scope.sources.pop()
        return (SemiJoin if kind == "SEMI" else AntiJoin)(left, right, condition)
    plan = joined(ctx, kind, left, right, condition)
    plan = merge(ctx, kind, plan, pairs, scope)
    scope.update(plan.output)
    return plan


def join_kind(ctx: Context, join: exp.Join) -> str:
    """INNER, LEFT, RIGHT, FULL, SEMI or ANTI; anything else is refused."""
    # NB: LEFT SEMI is called a SEMI join, LEFT OUTER a LEFT join
    by_kind = join.kind in ("SEMI", "ANTI")
    taken = (("", "NATURAL"), ("", "LEFT") if by_kind else ("", "LEFT", "RIGHT", "FULL"))
    for word, known in zip((join.method, join.side), taken, strict=True):
        if word not in known:
            raise ctx.refuse(join, JOINS.get(word) or Unsupported(f"{word} JOIN", word))
    if join.kind not in ("", "INNER", "CROSS", "SEMI", "ANTI") and not (join.kind == "OUTER" and join.side):
        raise ctx.refuse(join, JOINS.get(join.kind) or Unsupported(f"{join.kind} JOIN", join.kind))
    if join.side in ("RIGHT", "FULL") and crossed(join):
        # NB: a, b RIGHT JOIN c is a × (b RIGHT JOIN c), a CROSS JOIN b RIGHT JOIN c is not; sqlglot reads both alike
        name = f"{join.side} JOIN after a comma or CROSS JOIN"
        raise ctx.refuse(join, Unsupported(name, join.side, "write a subquery"))
    return join.kind if by_kind else join.side or "INNER"


def crossed(join: exp.Join) -> bool:
    """Whether a comma or CROSS JOIN stands before it in FROM."""
    return join.parent is not None and any(j.kind == "CROSS" for j in join.parent.args["joins"][: join.index])


def joined(ctx: Context, kind: str, left: Node, right: Node, on: Expr) -> Node:
    """The join of two plans; FULL is a LEFT join and the rows of `right` that it has no match for."""
    match kind:
        case "INNER":
            return Join(left, right, on if on != TRUE else None)
        case "LEFT":
            return LeftJoin(left, right, on)
        case "RIGHT":
            return LeftJoin(right, left, on)
    missing = tuple((ctx.column(c.name, c.type, True), Literal(None, c.type)) for c in left.output)
    rest = Project(AntiJoin(right, left, on), (*missing, *((c, c) for c in right.output)))
    output = (*left.output, *right.output)
    return Union((LeftJoin(left, right, on), rest), tuple(replace(c, nullable=True) for c in output))


def merged_pairs(ctx: Context, join: exp.Join, scope: Scope, right: Source) -> dict[str, tuple[Column, Column]]:
    """The columns that USING or NATURAL equates, left and right, by name."""
    if join.method == "NATURAL":
        names = [exp.to_identifier(c.name) for c in right.columns if scope.find(c.name)]
    else:
        names = [name.copy() for name in join.args.get("using") or []]
    pairs = {}
    for name in names:
        reference = exp.Column(this=name)
        reference.parent = join
        pairs[name.name.lower()] = scope.resolve(ctx, reference), Scope([right]).resolve(ctx, reference)
    return pairs


def merge(ctx: Context, kind: str, plan: Node, pairs: dict[str, tuple[Column, Column]], scope: Scope) -> Node:
    """What USING (k) calls k: the left side, the right one of a RIGHT join, COALESCE(left, right) of a FULL join."""
    items: list[tuple[Column, Expr]] = []
    for name, (ours, theirs) in pairs.items():
        scope.places.setdefault(ours.id, name)
        scope.hidden.add(theirs.id)
        scope.merged[name] = theirs if kind == "RIGHT" else ours
        if kind == "FULL":
            either = coalesce(replace(ours, nullable=True), replace(theirs, nullable=True))
            scope.merged[name] = ctx.column(ours.name, either.type, True)
            items.append((scope.merged[name], either))
    return Project(plan, (*((c, c) for c in plan.output), *items)) if items else plan


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
