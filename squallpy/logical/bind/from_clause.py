"""Binding of FROM to a join tree over scans, views and subqueries, and to the scope that names its columns."""

from dataclasses import dataclass, field, replace

from sqlglot import exp

from squallpy.base.errors import Span, SquallError
from squallpy.base.types import BIGINT
from squallpy.catalog.catalog import View, qualified, schema_named
from squallpy.catalog.matrices import Matrix, MatrixProgram
from squallpy.catalog.relation import Relation
from squallpy.frontend.unsupported import CLAUSES, JOINS, NODES, QUERIES, Unsupported
from squallpy.logical.aggregate_calls import Agg
from squallpy.logical.apply import Apply, ApplyKind, Domain
from squallpy.logical.bind.context import Common, Context
from squallpy.logical.bind.explode import constant_table, exploded, is_constant_table, is_generator
from squallpy.logical.bind.expressions import Scalars
from squallpy.logical.bind.matrix_ddl import matrix_relation, output
from squallpy.logical.bind.pivot import turned
from squallpy.logical.bind.scope import Outer, Scope, Source, seen_from
from squallpy.logical.bind.stream_windows import windowed
from squallpy.logical.bind.subqueries import Inner, Subqueries, without_domain
from squallpy.logical.expression_builders import call, coalesce
from squallpy.logical.expressions import FALSE, TRUE, Column, Expr, Literal, columns, conjunction, conjuncts
from squallpy.logical.nodes import (
    Aggregate,
    AntiJoin,
    Filter,
    Join,
    LeftJoin,
    Node,
    Project,
    Scan,
    SemiJoin,
    Union,
    inner_join,
)
from squallpy.logical.plan_properties import is_bare_null


def bind_from(ctx: Context, select: exp.Select, outer: Outer | None = None) -> tuple[Node, Scope]:
    """Bind FROM to a join tree, left to right as written, and its scope; with `outer`, over its domain."""
    start, scope = select.args.get("from_"), Scope(outer=outer)
    if start is None:
        plan = one_row(ctx, select)
        return (Join(outer.domain, plan) if outer else plan), scope
    ctx.only(start, "this")
    first = bind_source(ctx, start.this, scope, Scope(outer=outer))
    joins = From(ctx, scope, first.plan, Subqueries(ctx))
    if outer and first.domain.columns:
        joins.plan = Apply(outer.domain, first.plan, ApplyKind.CROSS, first.parameters(), span=ctx.span(start.this))
    for join in select.args.get("joins") or []:
        joins.add(join)
    for view in select.args.get("laterals") or []:
        joins.plan = exploded(ctx, scope, joins.plan, view)
    joins.join_domain()
    joins.filter_late()
    return joins.plan, scope


def one_row(ctx: Context, node: exp.Expr) -> Node:
    """Make a plan of one row, whose columns do not matter: a count of no rows, of any relation."""
    relation = next(iter(ctx.catalog.relations.values()), None)
    if relation is None:
        raise ctx.refuse(node, QUERIES["no FROM"])
    nothing = Filter(scan(ctx, relation, relation.name), FALSE)
    return Aggregate(nothing, (), ((ctx.column("rows", BIGINT, False), Agg("count", None)),))


@dataclass(slots=True)
class From:
    """A FROM clause while it is being bound.

    `late` are conditions of inner joins that wait, with their subqueries, until FROM is complete: as those of WHERE,
    they may read columns of the outer query.
    """

    ctx: Context
    scope: Scope
    plan: Node
    subqueries: Subqueries
    late: list[Expr] = field(default_factory=list)

    @property
    def around(self) -> frozenset[int]:
        """The columns from around the query."""
        return frozenset(c.id for c in self.scope.outer.domain.output) if self.scope.outer else frozenset()

    def join_domain(self) -> None:
        """Join the domain of the outer columns to FROM so far, unless it is."""
        if self.scope.outer and not self.plan.borrows:
            self.plan = Join(self.scope.outer.domain, self.plan)

    def filter_late(self) -> None:
        """Filter by the late conditions."""
        if self.late:
            self.plan = Filter(self.subqueries.attach(self.plan), conjunction(self.late))
            self.late = []

    def add(self, join: exp.Join) -> None:
        """Join one more source."""
        ctx, scope, kind = self.ctx, self.scope, join_kind(self.ctx, join)
        ctx.only(join, "this", "method", "side", "kind", "on", "using")
        if is_generator(join.this):
            on = join.args.get("on")
            if kind not in ("INNER", "LEFT") or join.args.get("using") or not (on is None or is_true(on)):
                raise ctx.refuse(join, QUERIES["generator joined"])
            self.plan = exploded(ctx, scope, self.plan, join.this, lost=kind == "LEFT")
            return
        if kind in ("RIGHT", "FULL") and self.late:
            self.join_domain()
            self.filter_late()
        beside = Scope()
        inner = bind_source(ctx, join.this, beside, scope)
        pairs = using_pairs(ctx, join, scope, beside)
        scope.take(ctx, beside, join.this)
        if kind in ("RIGHT", "FULL") and inner.domain.columns:
            raise ctx.refuse(join, replace(QUERIES["outer join lateral"], keyword=kind))
        if self.around & {c.id for theirs in inner.domain.columns for c in columns(theirs)}:
            self.join_domain()
        right = inner.plan
        conditions: list[Expr] = [call("=", ours, theirs) for ours, theirs in pairs.values()]
        on, queries = join.args.get("on"), Subqueries(ctx)
        if on is not None:
            conditions.append(Scalars(ctx, scope, "ON", subqueries=queries).condition(on))
            right = self.condition(kind, conditions, queries, right)
        if kind in ("RIGHT", "FULL") and self.plan.borrows:
            raise ctx.refuse(join, replace(QUERIES["outer join inside"], keyword=kind))
        condition = conjunction(c for c in conditions if c != TRUE)
        sides = Sides(self.plan, right, inner.parameters(), ctx.span(join.this) if inner.domain.columns else None)
        pairs_met = JoinPairs(ctx, sides, condition, queries) if queries.waiting else None
        if kind in ("SEMI", "ANTI"):
            del scope.sources[-len(beside.sources) :]
            join_of = SemiJoin if kind == "SEMI" else AntiJoin
            self.plan = pairs_met.keep_matched(join_of, self.plan) if pairs_met else sides.join(ctx, kind, condition)
            return
        plan = pairs_met.preserve(kind) if pairs_met else sides.join(ctx, kind, condition)
        self.plan = merge(ctx, kind, plan, pairs, scope)
        scope.update(self.plan.output)

    def condition(self, kind: str, conditions: list[Expr], queries: Subqueries, right: Node) -> Node:
        """Make the last condition, ON, one that can stand in the join: late, or with its subqueries on a side each.

        Those that read both sides of an outer, SEMI or ANTI join still wait then.
        """
        on = conditions[-1]
        around = bool(self.around & {c.id for c in columns(on)}.union(*(w.reads for w in queries.waiting)))
        if kind == "INNER":
            if around or queries.waiting:
                plain, late = queries.split_conditions(conjuncts(conditions.pop()), self.around)
                conditions += plain
                self.late += late
                self.subqueries.waiting += queries.waiting
                queries.waiting = []
            return right
        if around:
            self.join_domain()
        left, there = ({c.id for c in node.output} for node in (self.plan, right))
        self.plan = queries.take_reading(left).attach(self.plan)
        return queries.take_reading(there).attach(right)


@dataclass(frozen=True, slots=True)
class Sides:
    """The inputs of a join; a LATERAL one on the right reads `parameters` of the left."""

    left: Node
    right: Node
    parameters: tuple[tuple[Column, Expr], ...] = ()
    span: Span | None = None

    def join(self, ctx: Context, kind: str, on: Expr) -> Node:
        """Join them; FULL is a LEFT join and the rows of `right` that it has no match for."""
        left, right = self.left, self.right
        if self.parameters:
            applied = ApplyKind.CROSS if kind == "INNER" else ApplyKind(kind)
            return Apply(left, right, applied, self.parameters, on, span=self.span)
        match kind:
            case "INNER":
                return inner_join(left, right, on)
            case "LEFT":
                return LeftJoin(left, right, on)
            case "RIGHT":
                return LeftJoin(right, left, on)
            case "SEMI":
                return SemiJoin(left, right, on)
            case "ANTI":
                return AntiJoin(left, right, on)
        missing = tuple((ctx.column(c.name, c.type, True), Literal(None, c.type)) for c in left.output)
        rest = Project(AntiJoin(right, left, on), (*missing, *((c, c) for c in right.output)))
        output = (*left.output, *right.output)
        return Union((LeftJoin(left, right, on), rest), tuple(replace(c, nullable=True) for c in output))


class JoinPairs:
    """The pairs of an outer, SEMI or ANTI join whose condition asks subqueries that read both sides.

    a ⟕ b ON EXISTS (… a.x … b.y …)  →  P := σ(a ⋈ b);  P ∪ (a ▷ P, with NULLs), ▷ by what ON reads of a
    """

    def __init__(self, ctx: Context, sides: Sides, condition: Expr, queries: Subqueries) -> None:
        self.ctx, self.left, self.right = ctx, sides.left, sides.right
        self.read = {c.id for c in columns(condition)}.union(*(w.reads for w in queries.waiting))
        plain, asked = queries.split_conditions(conjuncts(condition))
        met = Filter(queries.attach(sides.join(ctx, "INNER", conjunction(plain))), conjunction(asked))
        self.pairs = Project(met, tuple((c, c) for c in (*self.left.output, *self.right.output)))

    def keep_matched(self, join_of: type[SemiJoin] | type[AntiJoin], side: Node) -> Node:
        """Keep the rows of a side that are in a pair, or those in none."""
        keys = [c for c in side.output if c.id in self.read]
        found = self.ctx.copies(keys)
        same = [call("<=>", key, copy) for key, (copy, _) in zip(keys, found, strict=True)]
        return join_of(side, Project(self.pairs, found) if found else self.pairs, conjunction(same))

    def preserve(self, kind: str) -> Node:
        """Unite the pairs with the rows of the preserved sides (LEFT, RIGHT or FULL) that are in none."""
        sides = {"LEFT": (self.left,), "RIGHT": (self.right,), "FULL": (self.left, self.right)}[kind]
        lost = {c.id for side in sides for c in (self.right if side is self.left else self.left).output}
        columns = tuple(replace(c, nullable=c.nullable or c.id in lost) for c in self.pairs.output)
        return Union((self.pairs, *map(self._alone, sides)), columns)

    def _alone(self, side: Node) -> Node:
        ours = {c.id for c in side.output}
        values = (c if c.id in ours else Literal(None, c.type) for c in self.pairs.output)
        return Project(self.keep_matched(AntiJoin, side), self.ctx.copies(values))


def is_true(node: exp.Expr) -> bool:
    return isinstance(node, exp.Boolean) and bool(node.this)


def join_kind(ctx: Context, join: exp.Join) -> str:
    """Name the kind of a join: INNER, LEFT, RIGHT, FULL, SEMI or ANTI; anything else is refused."""
    # NB: LEFT SEMI is called a SEMI join, LEFT OUTER a LEFT join
    by_kind = join.kind in ("SEMI", "ANTI")
    taken = (("", "NATURAL"), ("", "LEFT") if by_kind else ("", "LEFT", "RIGHT", "FULL"))
    for word, known in zip((join.method, join.side), taken, strict=True):
        if word not in known:
            raise ctx.refuse(join, JOINS.get(word) or Unsupported(f"{word} JOIN", word))
    if join.kind not in ("", "INNER", "CROSS", "SEMI", "ANTI") and not (join.kind == "OUTER" and join.side):
        raise ctx.refuse(join, JOINS.get(join.kind) or Unsupported(f"{join.kind} JOIN", join.kind))
    if join.side in ("RIGHT", "FULL") and after_comma(join):
        # NB: a, b RIGHT JOIN c is a × (b RIGHT JOIN c) as the standard says, and (a × b) RIGHT JOIN c in Spark
        raise ctx.refuse(join, replace(QUERIES["outer join after comma"], keyword=join.side))
    return join.kind if by_kind else join.side or "INNER"


def after_comma(join: exp.Join) -> bool:
    """True if a comma stands before a join in FROM."""
    before = join.parent.args["joins"][: join.index] if join.parent is not None else ()
    return any(not any(j.args.get(name) for name in ("kind", "method", "side", "on", "using")) for j in before)


def using_pairs(ctx: Context, join: exp.Join, scope: Scope, right: Scope) -> dict[str, tuple[Column, Column]]:
    """Find the columns that USING or NATURAL equates, left and right, by name."""
    if join.method == "NATURAL":
        names = [exp.to_identifier(c.name) for c in right.star() if scope.find(c.name)]
    else:
        names = [name.copy() for name in join.args.get("using") or []]
    if names and right.merged:
        raise ctx.refuse(join, QUERIES["USING twice"])
    pairs = {}
    for name in names:
        reference = exp.Column(this=name)
        reference.parent = join
        pairs[name.name.lower()] = scope.own(ctx, reference), right.own(ctx, reference)
    return pairs


def merge(ctx: Context, kind: str, plan: Node, pairs: dict[str, tuple[Column, Column]], scope: Scope) -> Node:
    """Merge columns of USING to the left one, the right one of a RIGHT join, or COALESCE of both of a FULL join."""
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


def bind_source(ctx: Context, node: exp.Expr, scope: Scope, before: Scope) -> Inner:
    """Bind a table, view, WITH query or subquery in FROM; LATERAL ones may read the sources before them."""
    if node.args.get("pivots"):
        node = turned(ctx, node, lambda bare: names_of(ctx, bare, before))
    alias = schema = ""
    if is_generator(node):
        raise ctx.refuse(node, QUERIES["generator first"])
    if is_constant_table(node):
        inner = Inner(constant_table(ctx, node))
        alias = node.this.name if isinstance(node.this, exp.Anonymous) else ""
    elif isinstance(node, exp.Table):
        inner, alias = bind_table(ctx, node, before.outer)
        schema = schema_named(node.db) if node.db else ""
    elif isinstance(node, exp.Subquery) and (tree := first_in_parentheses(ctx, node)) is not None:
        return bind_parentheses(ctx, tree, scope, before)
    elif isinstance(node, exp.Values):
        from squallpy.logical.bind.set_operations import bind_values

        ctx.only(node, "expressions", "alias")
        inner = Inner(bind_values(ctx, node))
    elif isinstance(node, exp.Subquery):
        ctx.only(node, "this", "alias")
        inner = bind_derived(ctx, node.this, Scope(outer=before.outer) if before.outer else None)
    elif isinstance(node, exp.Lateral) and isinstance(node.this, exp.Subquery):
        ctx.only(node, "this", "alias")
        inner = bind_derived(ctx, node.this, before)
    else:
        raise ctx.refuse(node)
    given = node.args.get("alias")
    if given is not None:
        ctx.only(given, "this", "columns")
        alias, schema = (given.name, "") if given.name else (alias, schema)
        with ctx.at(given):
            inner = replace(inner, plan=rename(inner.plan, tuple(c.name for c in given.args.get("columns") or ())))
    scope.add(ctx, Source(alias, inner.plan.output, schema), node)
    scope.nulls |= {c.id for c in inner.plan.output if is_bare_null(inner.plan, c)}
    return inner


def names_of(ctx: Context, node: exp.Expr, before: Scope) -> list[str]:
    """List the names of a source's columns."""
    ctx, outer = rehearsal(ctx, before.outer)
    return [c.name for c in bind_source(ctx, node, Scope(), Scope(outer=outer)).plan.output]


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
    ctx.only(node, "this")
    return inside


def bind_parentheses(ctx: Context, first: exp.Expr, scope: Scope, before: Scope) -> Inner:
    """Bind (a JOIN b …) in FROM, whose sources are also those of the whole FROM."""
    around = Scope(outer=before.outer)
    source = first.copy()
    source.parent = first.parent
    source.set("joins", None)
    inner = bind_source(ctx, source, around, Scope(outer=before.outer))
    joins = From(ctx, around, inner.plan, Subqueries(ctx))
    for join in first.args.get("joins") or []:
        joins.add(join)
    reads = {c.id for expr in joins.late for c in columns(expr)}.union(*(w.reads for w in joins.subqueries.waiting))
    if inner.domain.columns or reads & joins.around or joins.plan.borrows:
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
    if not isinstance(node.this, exp.Identifier):
        raise ctx.refuse(node, NODES.get(type(node.this).__name__) or QUERIES["table function"])
    ctx.only(node, "this", "alias", "db")
    schema, name = node.args.get("db"), qualified(node.db, node.name)
    common = None if schema else ctx.ctes.get(name.lower())
    if common is not None:
        return bind_common(common, ctx, outer), name
    of_program = bool(ctx.catalog.programs) and name.lower() not in ctx.catalog.entries
    with ctx.at(node.this):
        entry = output(ctx, schema, node.this) if schema and of_program else relation_or_view(ctx, name)
    alias = node.name if schema else entry.name
    if isinstance(entry, View):
        return Inner(bind_view(ctx, entry)), alias
    return Inner(windowed(ctx, scan(ctx, entry, node.alias or alias))), alias


def relation_or_view(ctx: Context, name: str) -> Relation | View:
    """Look up a name in FROM; SQ2001 if there is none."""
    entry = ctx.catalog.find(name, ctx.ctes)
    if isinstance(entry, Matrix):
        return matrix_relation(ctx.catalog, entry)
    if isinstance(entry, MatrixProgram):
        hint = f"read {' or '.join(f'{entry.name}.{output}' for output in entry.outputs)}"
        raise SquallError("SQ2001", f'"{name}" is a matrix program', hint=hint)
    return entry


def scan(ctx: Context, relation: Relation, alias: str) -> Scan:
    """Make a scan with new columns."""
    return Scan(relation, alias, tuple(ctx.column(f.name, f.type, f.nullable) for f in relation.fields))


def bind_view(ctx: Context, view: View) -> Node:
    """Bind a view's query to new columns; a wrong number of column names is reported at the view's name."""
    if ctx.rehearses and view.checked and ctx.window is None:
        return with_new_columns(ctx, view.checked)
    inside = ctx.inside(view.query)
    try:
        return rename(bind_nested(inside, view.query.ast), view.columns)
    except SquallError as error:
        raise error.at(view.span) from None


def bind_common(common: Common, ctx: Context, outer: Outer | None) -> Inner:
    """Bind a WITH query to new columns; `outer` surrounds the query that names it."""
    if ctx.rehearses and common.checked and ctx.window is None:
        return Inner(rename(with_new_columns(ctx, common.checked), common.columns))
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
