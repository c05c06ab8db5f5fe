"""Binding of FROM to a join tree over scans, views and subqueries, and to the scope that names its columns.

Here are its sources; `joins.py` has the joins between them.
"""

from dataclasses import replace
from functools import reduce

from sqlglot import exp

from squallpy.base.errors import SquallError, nearest
from squallpy.base.types import BIGINT
from squallpy.catalog.catalog import ViewDefinition, qualify_name, resolve_schema
from squallpy.catalog.functions import DefinedFunction
from squallpy.catalog.matrices import Matrix, MatrixProgramDefinition
from squallpy.catalog.relation import Relation
from squallpy.catalog.sink_spec import SinkSpec
from squallpy.catalog.variable_orders import OrderText
from squallpy.frontend.dialect import WINDOWING, is_call
from squallpy.frontend.unsupported import CLAUSES, NODES, QUERIES
from squallpy.functions.model_functions import FUNCTIONS
from squallpy.logical.aggregate_calls import Agg
from squallpy.logical.apply import Apply, ApplyKind, Domain
from squallpy.logical.bind import sequence_functions
from squallpy.logical.bind.context import CommonTable, Context
from squallpy.logical.bind.correlated_unnest import correlated_unnest
from squallpy.logical.bind.explode import TABLE_FUNCTIONS, bind_explode, constant_table, is_constant_table, is_generator
from squallpy.logical.bind.expressions import Scalars
from squallpy.logical.bind.joins import JoinTree
from squallpy.logical.bind.matrix_ddl import matrix_relation, output
from squallpy.logical.bind.model_functions import bind_factorised, is_factorised
from squallpy.logical.bind.ordinality import names_given
from squallpy.logical.bind.pivot import rewrite_pivots
from squallpy.logical.bind.scope import FromItem, Outer, Scope, seen_from
from squallpy.logical.bind.stream_windows import apply_window
from squallpy.logical.bind.subqueries import Inner, Subqueries, without_domain
from squallpy.logical.bind.windowing import add_windows, is_windowing, read_call
from squallpy.logical.expressions import FALSE, columns
from squallpy.logical.nodes import Aggregate, Filter, Join, Node, Project, Scan
from squallpy.logical.plan_properties import is_bare_null


def bind_from(ctx: Context, select: exp.Select, outer: Outer | None = None) -> tuple[Node, Scope]:
    """Bind FROM to a join tree, left to right as written, and its scope; with `outer`, over its domain."""
    start, scope = select.args.get("from_"), Scope(outer=outer)
    if hint := select.args.get("hint"):
        ctx.note("a query hint has no effect", hint, "squall explain why tells how joins are placed, and by which cost")
    views = select.args.get("laterals") or []
    if start is None and outer and views and is_generator(views[0]):
        start, views = exp.From(this=views[0]), views[1:]
    if start is None:
        plan = sequence_functions.one_row(ctx) if views else one_row(ctx)
        plan = Join(outer.domain, plan) if outer else plan
        for view in views:
            plan = bind_explode(ctx, scope, plan, view)
        return plan, scope
    ctx.refuse_other_args(start, "this")
    first = bind_source(ctx, start.this, scope, Scope(outer=outer))
    joins = JoinTree(ctx, scope, first.plan, Subqueries(ctx))
    if outer and first.domain.columns:
        joins.plan = Apply(outer.domain, first.plan, ApplyKind.CROSS, first.parameters(), span=ctx.span(start.this))
    for join in select.args.get("joins") or []:
        joins.add(join)
    for view in views:
        joins.plan = bind_explode(ctx, scope, joins.plan, view)
    joins.join_domain()
    joins.filter_late()
    return joins.plan, scope


def one_row(ctx: Context) -> Node:
    """Make a plan of one row, whose columns do not matter: a count of no rows, of any relation that there is."""
    relation = next((each for each in ctx.catalog.relations.values() if not each.is_implied), None)
    if relation is None:
        return sequence_functions.one_row(ctx)
    nothing = Filter(scan(ctx, relation, relation.name), FALSE)
    return Aggregate(nothing, (), ((ctx.column("rows", BIGINT, False), Agg("count", None)),))


def bind_source(ctx: Context, node: exp.Expr, scope: Scope, before: Scope) -> Inner:
    """Bind a table, view, WITH query or subquery in FROM; LATERAL ones may read the sources before them."""
    if node.args.get("pivots"):
        node = rewrite_pivots(ctx, node, lambda bare: names_of(ctx, bare, before))
    alias = schema = ""
    if is_generator(node):
        if before.outer is None:
            raise ctx.refuse(node, QUERIES["generator first"])
        node = correlated_unnest(ctx, node, before.outer)
    if is_constant_table(node):
        inner = Inner(constant_table(ctx, node))
        alias = node.this.name if isinstance(node.this, exp.Anonymous) else ""
    elif is_windowing(node):
        inner, alias = bind_windowing(ctx, node), ""
    elif isinstance(node, exp.Table):
        inner, alias = bind_table(ctx, node, before.outer)
        schema = resolve_schema(node.db) if node.db else ""
    elif isinstance(node, exp.Subquery) and (tree := first_in_parentheses(ctx, node)) is not None:
        if node.args.get("alias") is None:
            return bind_parentheses(ctx, tree, scope, before)
        inner = bind_derived(ctx, everything_of(tree), Scope(outer=before.outer) if before.outer else None)
    elif isinstance(node, exp.Values):
        from squallpy.logical.bind.set_operations import bind_values, queries_of_rows

        ctx.refuse_other_args(node, "expressions", "alias")
        if before.outer and node.find(exp.Column):
            rows = reduce(lambda a, b: exp.Union(this=a, expression=b, distinct=False), queries_of_rows(node))
            inner = bind_derived(ctx, rows, Scope(outer=before.outer))
        else:
            inner = Inner(bind_values(ctx, node))
    elif isinstance(node, exp.Subquery):
        ctx.refuse_other_args(node, "this", "alias")
        inner = bind_derived(ctx, node.this, Scope(outer=before.outer) if before.outer else None)
    elif isinstance(node, exp.Lateral) and isinstance(node.this, exp.Subquery):
        ctx.refuse_other_args(node, "this", "alias")
        inner = bind_derived(ctx, node.this, before)
    else:
        raise ctx.refuse(node)
    given = node.args.get("alias")
    if given is not None:
        ctx.refuse_other_args(given, "this", "columns")
        alias, schema = (given.name, "") if given.name else (alias, schema)
        with ctx.at(given):
            inner = replace(inner, plan=rename(inner.plan, names_given(node)))
    written = None if inner.domain.columns else node
    scope.add(ctx, FromItem(alias, inner.plan.output, schema, written), node)
    scope.nulls |= {c.id for c in inner.plan.output if is_bare_null(inner.plan, c)}
    return inner


def bind_windowing(ctx: Context, node: exp.Table) -> Inner:
    """Bind a windowing table function and the table inside, which may be a query."""
    ctx.refuse_other_args(node, "this", "alias")
    scope, written = Scope(), read_call(ctx, node)
    read = bind_source(ctx, written.source, scope, Scope())
    return Inner(add_windows(Scalars(ctx, scope, "FROM"), read.plan, written))


def names_of(ctx: Context, node: exp.Expr, before: Scope) -> list[str]:
    """List the names of a source's columns."""
    return [c.name for source in bind_beside(ctx, node, before).sources for c in source.columns]


def bind_beside(ctx: Context, node: exp.Expr, before: Scope) -> Scope:
    """Bind a source for the names of its columns alone."""
    (ctx, outer), found = rehearsal(ctx, before.outer), Scope()
    bind_source(ctx, node, found, Scope(outer=outer))
    return found


def rehearsal(ctx: Context, outer: Outer | None) -> tuple[Context, Outer | None]:
    """Return both as for a query that is bound only for its mistakes or names.

    The outer columns that it reads are not kept."""
    if outer is None:
        return ctx.rehearsal(), None
    around = replace(outer, domain=Domain())
    ctes = {name: replace(each, outer=around) if each.outer is outer else each for name, each in ctx.ctes.items()}
    return replace(ctx, ctes=ctes), around


def first_in_parentheses(ctx: Context, node: exp.Subquery) -> exp.Expr | None:
    """Find the first source of FROM (a JOIN b …); None if a query stands in the parentheses."""
    inside = node.this
    while isinstance(inside, exp.Subquery) and not inside.args.get("joins") and not inside.args.get("alias"):
        inside = inside.this
    if not isinstance(inside, exp.Table | exp.Subquery):
        return None
    ctx.refuse_other_args(node, "this", "alias")
    return inside


def everything_of(first: exp.Expr) -> exp.Select:
    """Write what a name for joins in parentheses is of: (a JOIN b …) AS f  →  (SELECT * FROM a JOIN b …) AS f"""
    source = first.copy()
    joins = source.args.get("joins")
    source.set("joins", None)
    query = exp.Select(expressions=[exp.Star()], from_=exp.From(this=source), joins=joins)
    query.parent = first.parent
    return query


def bind_parentheses(ctx: Context, first: exp.Expr, scope: Scope, before: Scope) -> Inner:
    """Bind (a JOIN b …) in FROM, whose sources are also those of the whole FROM."""
    around = Scope(outer=before.outer)
    source = first.copy()
    source.parent = first.parent
    source.set("joins", None)
    inner = bind_source(ctx, source, around, Scope(outer=before.outer))
    joins = JoinTree(ctx, around, inner.plan, Subqueries(ctx))
    for join in first.args.get("joins") or []:
        joins.add(join)
    reads = {c.id for expr in joins.late_conditions for c in columns(expr)}.union(
        *(w.reads for w in joins.subqueries.pending)
    )
    if inner.domain.columns or reads & joins.outer_columns or joins.plan.borrows:
        raise ctx.refuse(first, QUERIES["parentheses inside"])
    joins.filter_late()
    scope.take(ctx, around, first)
    return Inner(joins.plan)


def bind_derived(ctx: Context, node: exp.Expr, around: Scope | None) -> Inner:
    """Bind a query in FROM; one that reads columns of `around` stands over their domain."""
    if around is None:
        return Inner(bind_nested(ctx, node))
    domain = Domain()
    plan = bind_nested(ctx, node, Outer(around, domain))
    return Inner(plan if domain.columns else without_domain(plan), domain)


def bind_table(ctx: Context, node: exp.Table, outer: Outer | None) -> tuple[Inner, str]:
    """Bind a name in FROM; returned with the alias that it has by default."""
    if isinstance(node.this, exp.Dot):
        raise ctx.refuse(node, CLAUSES["Table.catalog"])
    if is_factorised(node):
        ctx.refuse_other_args(node, "this", "alias")
        model, alias = bind_factorised(ctx, node), node.args.get("alias")
        return Inner(with_new_columns(ctx, model) if alias and alias.columns else model), node.this.name
    if is_call(node.this, "TABLE"):
        hint = "write FROM r, FROM (SELECT …) or FROM TABLE(f(…))"
        raise ctx.error("SQ2005", "TABLE(…) in FROM is around a table function", node, hint)
    if isinstance(node.this, exp.Anonymous):
        hint = nearest(node.this.name, (*map(str.lower, (*TABLE_FUNCTIONS, *WINDOWING)), *FUNCTIONS))
        if hint.startswith("did you mean") and node.this.name.upper() not in TABLE_FUNCTIONS:
            raise ctx.error("SQ2004", f'unknown table function "{node.this.name}"', node, hint)
    if not isinstance(node.this, exp.Identifier):
        raise ctx.refuse(node, NODES.get(type(node.this).__name__) or QUERIES["table function"])
    ctx.refuse_other_args(node, "this", "alias", "db")
    schema, name = node.args.get("db"), qualify_name(node.db, node.name)
    common = None if schema else ctx.ctes.get(name.lower())
    if common is not None:
        return bind_common(common, ctx, outer), name
    is_unknown = name.lower() not in ctx.catalog.entries
    if is_unknown and not schema and _is_defined_around(node):
        hint = "write WITH RECURSIVE, for a query that reads itself or one that comes later"
        raise ctx.error("SQ2001", f'unknown table "{name}"', node.this, hint)
    of_program = bool(ctx.catalog.programs) and is_unknown
    with ctx.at(node.this):
        entry = output(ctx, schema, node.this) if schema and of_program else relation_or_view(ctx, name)
    alias = node.name if schema else entry.name
    if isinstance(entry, ViewDefinition):
        return Inner(bind_view(ctx, entry)), alias
    return Inner(apply_window(ctx, scan(ctx, entry, node.alias or alias))), alias


def _is_defined_around(table: exp.Table) -> bool:
    """True if a WITH defines the name, that of the query which the table is in or of one that comes later."""
    clause = table.find_ancestor(exp.With)
    while clause is not None:
        if any(cte.alias.lower() == table.name.lower() for cte in clause.expressions):
            return True
        clause = clause.find_ancestor(exp.With)
    return False


def relation_or_view(ctx: Context, name: str) -> Relation | ViewDefinition:
    """Look up a name in FROM; SQ2001 if there is none."""
    entry = ctx.catalog.find(name, ctx.ctes)
    if isinstance(entry, Matrix):
        return matrix_relation(ctx.catalog, entry)
    if isinstance(entry, OrderText):
        raise SquallError("SQ2001", f'"{name}" is a variable order', hint="name it as order => in a table function")
    if isinstance(entry, DefinedFunction):
        raise SquallError("SQ2001", f'"{name}" is a function', hint="call it in an expression")
    if isinstance(entry, SinkSpec):
        raise SquallError("SQ2001", f'"{name}" is a sink', hint="a stream of its own can read what it writes")
    if isinstance(entry, MatrixProgramDefinition):
        hint = f"read {' or '.join(f'{entry.name}.{output}' for output in entry.outputs)}"
        raise SquallError("SQ2001", f'"{name}" is a matrix program', hint=hint)
    return entry


def scan(ctx: Context, relation: Relation, alias: str) -> Scan:
    """Make a scan with new columns."""
    return Scan(relation, alias, tuple(ctx.column(f.name, f.type, f.nullable) for f in relation.fields))


def bind_view(ctx: Context, view: ViewDefinition) -> Node:
    """Bind a view's query to new columns; a wrong number of column names is reported at the view's name."""
    if ctx.rehearses and view.checked and ctx.window is None:
        return with_new_columns(ctx, view.checked)
    inside = ctx.inside(view.query)
    try:
        return rename(bind_nested(inside, view.query.ast), view.columns)
    except SquallError as error:
        raise error.at(view.span) from None


def bind_common(common: CommonTable, ctx: Context, outer: Outer | None) -> Inner:
    """Bind a WITH query to new columns; `outer` surrounds the query that names it."""
    if common.working is not None:
        return Inner(scan(ctx, common.working, common.working.name))
    if ctx.rehearses and common.plan and ctx.window is None:
        return Inner(rename(with_new_columns(ctx, common.plan), common.columns))
    if common.make is not None:
        return Inner(common.make(ctx))
    around = seen_from(outer, common.outer)
    context = replace(common.context, ids=ctx.ids, rehearses=ctx.rehearses)
    inner = bind_derived(context, common.query, Scope(outer=around) if around else None)
    return replace(inner, plan=rename(inner.plan, common.columns))


def with_new_columns(ctx: Context, plan: Node) -> Node:
    """Give a plan new columns."""
    return Project(plan, tuple((ctx.column(c.name, c.type, c.nullable), c) for c in plan.output))


def bind_nested(ctx: Context, node: exp.Expr, outer: Outer | None = None) -> Node:
    """Bind a query inside another."""
    from squallpy.logical.bind.select import bind_query

    return bind_query(ctx, node, nested=True, outer=outer)


def rename(plan: Node, names: tuple[str, ...]) -> Node:
    """Rename the columns of a plan, as `AS t(a, b)` and `CREATE VIEW v(a, b)` do; SQ2005 if not as many."""
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
