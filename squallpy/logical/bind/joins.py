"""Joins in FROM: their kinds, conditions of ON, USING and NATURAL, and right sides that are LATERAL.

a LEFT JOIN b USING (k)          →   a ⟕_{a.k = b.k} b, where k is a.k
a FULL JOIN b ON p               →   (a ⟕_p b) ∪ (b ▷_p a, with NULLs for a)
a JOIN LATERAL (… a.x …) ON p    →   Apply CROSS p (a, …), with a.x as parameter
"""

from dataclasses import field, replace

from sqlglot import exp

from squallpy.base.errors import Span
from squallpy.base.records import dataclass
from squallpy.frontend.unsupported import JOINS, QUERIES, Unsupported
from squallpy.logical.apply import Apply, ApplyKind
from squallpy.logical.bind.asof_joins import rewrite_asof
from squallpy.logical.bind.context import Context
from squallpy.logical.bind.correlated_unnest import is_listed, lateral_unnest, reads_beside
from squallpy.logical.bind.explode import bind_explode, is_generator
from squallpy.logical.bind.expressions import Scalars
from squallpy.logical.bind.scope import Scope
from squallpy.logical.bind.subqueries import Subqueries
from squallpy.logical.coercion import coerce_exactly
from squallpy.logical.expression_builders import call, coalesce
from squallpy.logical.expressions import TRUE, Column, Expr, Literal, as_nullable, columns, conjunction, conjuncts
from squallpy.logical.nodes import AntiJoin, Filter, Join, LeftJoin, Node, Project, SemiJoin, Union, inner_join


@dataclass(slots=True)
class JoinTree:
    """The join tree of a FROM clause while it is being bound.

    `late_conditions` of inner joins wait, with their subqueries, until FROM is complete: as those of WHERE, they may
    read columns of the outer query.
    """

    ctx: Context
    scope: Scope
    plan: Node
    subqueries: Subqueries
    late_conditions: list[Expr] = field(default_factory=list)

    @property
    def outer_columns(self) -> frozenset[int]:
        """The columns of the outer query."""
        return frozenset(c.id for c in self.scope.outer.domain.output) if self.scope.outer else frozenset()

    def join_domain(self) -> None:
        """Join the domain of the outer columns to FROM so far, unless it is."""
        if self.scope.outer and not self.plan.borrows:
            self.plan = Join(self.scope.outer.domain, self.plan)

    def filter_late(self) -> None:
        """Filter by the late conditions."""
        if self.late_conditions:
            self.plan = Filter(self.subqueries.attach(self.plan), conjunction(self.late_conditions))
            self.late_conditions = []

    def add(self, join: exp.Join) -> None:
        """Join one more source."""
        from squallpy.logical.bind.from_clause import bind_beside, bind_source

        ctx, scope, given, is_asof = self.ctx, self.scope, join, join.method == "ASOF"
        ctx.refuse_other_args(join, "this", "method", "side", "kind", "on", "using")
        if is_asof:
            join = rewrite_asof(ctx, given, scope, lambda: bind_beside(ctx, given.this, scope))
        kind = join_kind(ctx, join)
        if is_generator(join.this):
            on = join.args.get("on")
            plain = kind in ("INNER", "LEFT") and not join.args.get("using") and (on is None or is_true(on))
            reads_around = not reads_beside(ctx, join.this, scope)
            if plain and (is_listed(ctx, join.this) or not reads_around):
                if reads_around:
                    self.join_domain()
                self.plan = bind_explode(ctx, scope, self.plan, join.this, lost=kind == "LEFT")
                return
            if is_listed(ctx, join.this):
                raise ctx.refuse(join, QUERIES["generator joined"])
            join = given.copy()
            join.parent = given.parent
            join.set("this", lateral_unnest(ctx, given.this, scope))
        if kind in ("RIGHT", "FULL") and self.late_conditions:
            self.join_domain()
            self.filter_late()
        beside = Scope()
        inner = bind_source(ctx, join.this, beside, scope)
        pairs = using_pairs(ctx, given, scope, beside)
        scope.take(ctx, beside, join.this)
        if kind in ("RIGHT", "FULL") and inner.domain.columns:
            raise ctx.refuse(join, replace(QUERIES["outer join lateral"], keyword=kind))
        if self.outer_columns & {c.id for theirs in inner.domain.columns for c in columns(theirs)}:
            self.join_domain()
        right = inner.plan
        conditions: list[Expr] = [] if is_asof else [call("=", ours, theirs) for ours, theirs in pairs.values()]
        on, queries = join.args.get("on"), Subqueries(ctx)
        if on is not None:
            conditions.append(Scalars(ctx, scope, "ON", subqueries=queries).condition(on))
            right = self.condition(kind, conditions, queries, right)
        if kind in ("RIGHT", "FULL") and self.plan.borrows:
            raise ctx.refuse(join, replace(QUERIES["outer join inside"], keyword=kind))
        condition = conjunction(c for c in conditions if c != TRUE)
        sides = Sides(self.plan, right, inner.parameters(), ctx.span(join.this) if inner.domain.columns else None)
        pairs_met = JoinPairs(ctx, sides, condition, queries) if queries.pending else None
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
        around = bool(self.outer_columns & {c.id for c in columns(on)}.union(*(w.reads for w in queries.pending)))
        if kind == "INNER":
            if around or queries.pending:
                plain, late = queries.split_conditions(conjuncts(conditions.pop()), self.outer_columns)
                conditions += plain
                self.late_conditions += late
                self.subqueries.pending += queries.pending
                queries.pending = []
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
        found: Node = LeftJoin(left, right, on)
        if isinstance(left, Apply) or isinstance(right, Apply):  # whose joins have more columns
            found = Project(found, tuple((c, c) for c in found.output))
        return Union((found, rest), tuple(map(as_nullable, (*left.output, *right.output))))


class JoinPairs:
    """The pairs of an outer, SEMI or ANTI join whose condition asks subqueries that read both sides.

    a ⟕ b ON EXISTS (… a.x … b.y …)  →  P := σ(a ⋈ b);  P ∪ (a ▷ P, with NULLs), ▷ by what ON reads of a
    """

    def __init__(self, ctx: Context, sides: Sides, condition: Expr, queries: Subqueries) -> None:
        self.ctx, self.left, self.right = ctx, sides.left, sides.right
        self.read_ids = {c.id for c in columns(condition)}.union(*(w.reads for w in queries.pending))
        plain, asked = queries.split_conditions(conjuncts(condition))
        met = Filter(queries.attach(sides.join(ctx, "INNER", conjunction(plain))), conjunction(asked))
        self.pairs = Project(met, tuple((c, c) for c in (*self.left.output, *self.right.output)))

    def keep_matched(self, join_of: type[SemiJoin] | type[AntiJoin], side: Node) -> Node:
        """Keep the rows of a side that are in a pair, or those in none."""
        keys = [c for c in side.output if c.id in self.read_ids]
        found = self.ctx.copies(keys)
        same = [call("<=>", key, copy) for key, (copy, _) in zip(keys, found, strict=True)]
        return join_of(side, Project(self.pairs, found) if found else self.pairs, conjunction(same))

    def preserve(self, kind: str) -> Node:
        """Unite the pairs with the rows of the preserved sides (LEFT, RIGHT or FULL) that are in none."""
        sides = {"LEFT": (self.left,), "RIGHT": (self.right,), "FULL": (self.left, self.right)}[kind]
        lost = {c.id for side in sides for c in (self.right if side is self.left else self.left).output}
        columns = tuple(replace(c, nullable=c.nullable or c.id in lost) for c in self.pairs.output)
        return Union((self.pairs, *map(self._pad_side, sides)), columns)

    def _pad_side(self, side: Node) -> Node:
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
    if names and right.merged_columns:
        raise ctx.refuse(join, QUERIES["USING twice"])
    pairs = {}
    for name in names:
        reference = exp.Column(this=name)
        reference.parent = join
        pairs[name.name.lower()] = scope.find_own_column(ctx, reference), right.find_own_column(ctx, reference)
    return pairs


def merge(ctx: Context, kind: str, plan: Node, pairs: dict[str, tuple[Column, Column]], scope: Scope) -> Node:
    """Merge columns of USING to the left one, the right one of a RIGHT join, or either of a FULL join.

    That is COALESCE of both: the left one in the rows of the left side, whose match is equal, else the right one.
    """
    for name, (ours, theirs) in pairs.items():
        scope.places.setdefault(ours.id, name)
        scope.hidden_ids.add(theirs.id)
        scope.merged_columns[name] = theirs if kind == "RIGHT" else ours
        if kind == "FULL":
            type = coalesce(as_nullable(ours), as_nullable(theirs)).type
            scope.merged_columns[name] = ctx.column(ours.name, type, True)
    if kind != "FULL" or not pairs:
        return plan
    assert isinstance(plan, Union)
    merged = tuple(scope.merged_columns[name] for name in pairs)
    places = {c.id: place for place, c in enumerate(plan.columns)}
    children = list[Node]()
    for child in plan.children:
        sides = (theirs if child is plan.children[-1] else ours for ours, theirs in pairs.values())
        keys = (coerce_exactly(child.output[places[c.id]], m.type) for c, m in zip(sides, merged, strict=True))
        children.append(Project(child, (*((c, c) for c in child.output), *ctx.copies(keys))))
    return Union(tuple(children), (*plan.columns, *merged))
