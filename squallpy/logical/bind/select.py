"""One query block → Limit(Sort(Project(Filter(Aggregate(Filter(joins))))))."""

from collections import Counter
from dataclasses import field, replace

from sqlglot import exp

from squallpy.base.errors import SquallError, nearest
from squallpy.base.records import dataclass
from squallpy.base.types import VARCHAR, Kind
from squallpy.frontend.window_clause import CLAUSE
from squallpy.logical.apply import Apply
from squallpy.logical.bind.aggregates.collector import Aggregation, is_aggregate
from squallpy.logical.bind.context import CommonTable, Context
from squallpy.logical.bind.explode import guard_series, in_from
from squallpy.logical.bind.expressions import Scalars
from squallpy.logical.bind.from_clause import bind_from, bind_nested, rehearsal
from squallpy.logical.bind.grouping_sets import grouping_sets
from squallpy.logical.bind.nested_limit import bind_inner_limit, bind_ties, without_parentheses
from squallpy.logical.bind.order_by import Ordering, bind_limit, bind_order, ordinal, place_sort, sort_keys
from squallpy.logical.bind.over.window_functions import WindowCalls
from squallpy.logical.bind.recursion import is_recursive, recursive_groups, with_recursive_group
from squallpy.logical.bind.scope import Outer, Scope
from squallpy.logical.bind.sessions import place_sessions
from squallpy.logical.bind.set_operations import SET_PARTS, bind_set
from squallpy.logical.bind.stream_windows import check_used, with_window
from squallpy.logical.bind.subqueries import Subqueries
from squallpy.logical.bind.temporal_filters import apply_temporal_filters, reads_now, refuse_now, split_negation
from squallpy.logical.bind.time_buckets import rewrite_window_function
from squallpy.logical.expression_builders import replace_known
from squallpy.logical.expressions import Column, Expr, Literal, columns, conjunction, conjuncts
from squallpy.logical.nodes import (
    Aggregate,
    AntiJoin,
    Filter,
    GroupingSets,
    Node,
    Project,
    Scan,
    SemiJoin,
    SetOperation,
    TopN,
    Union,
)
from squallpy.logical.plan_properties import check_size

SELECT_PARTS = (
    "with_", "expressions", "distinct", "from_", "joins", "laterals", "where", "group", "having", "order", "limit",
    "offset", "qualify", "windows", "hint", CLAUSE,
)  # fmt: skip
MOST_COPIES = 64  # of one relation in a join


def bind_query(ctx: Context, node: exp.Expr, *, nested: bool = False, outer: Outer | None = None) -> Node:
    """Bind a query.

    Args:
        nested: It is inside another, so that its order only matters to a LIMIT.
        outer: What is around it, columns of which it may name; its plan stands over the domain of these.
    """
    node = without_parentheses(ctx, node)
    if not isinstance(node, exp.Select | exp.SetOperation):
        raise ctx.refuse(node)
    ctx.refuse_other_args(node, *(SELECT_PARTS if isinstance(node, exp.Select) else SET_PARTS))
    ctx = with_queries(with_window(ctx, node), node, outer)
    inside = nested and bool(node.args.get("limit") or node.args.get("offset"))
    ordered = inside or not nested or node.args.get("limit") is not None
    if isinstance(node, exp.Select):
        plan = QueryBlock(ctx, in_from(ctx, rewrite_window_function(ctx, node)), outer, ordered, inside).bind()
        check_used(ctx, node)
    else:
        plan = bind_set(ctx, node, outer, ordered, inside)
    with ctx.at(node):
        check_size(plan)
    return plan


def check_copies(ctx: Context, node: exp.Expr, plan: Node) -> Node:
    """Refuse a join of so many copies of one relation that changes cannot be followed: SQ3001."""
    for name, copies in _most_copies(plan).items():
        if copies > MOST_COPIES:
            message = f'{copies:,} copies of "{name}" in a join are not supported, {MOST_COPIES} are the most'
            raise ctx.error("SQ3001", message, node, "aggregate between joins, or use window functions")
    return plan


def _most_copies(plan: Node) -> Counter[str]:
    """Count the most copies of each relation in a join. Groups, and rows that are only looked for, are no copies."""
    found, most = dict[int, Counter[str]](), Counter[str]()

    def joined(node: Node) -> Counter[str]:
        if id(node) not in found:
            each = Counter([node.relation.name]) if isinstance(node, Scan) else Counter[str]()
            below = [joined(child) for child in node.inputs]
            for copies in below[:1] if _only_looks(node) else below:
                each = each | copies if isinstance(node, Union | SetOperation) else each + copies
            most.update(each - most)
            found[id(node)] = Counter() if isinstance(node, Aggregate | GroupingSets | SetOperation) else each
        return found[id(node)]

    joined(plan)
    return most


def _only_looks(node: Node) -> bool:
    """True if rows of the second input are only looked for."""
    return isinstance(node, SemiJoin | AntiJoin) or (isinstance(node, Apply) and not node.kind.makes_pairs)


def with_queries(ctx: Context, node: exp.Query, outer: Outer | None) -> Context:
    """Extend the context by the queries of WITH; each is checked even where it is not used."""
    clause = node.args.get("with_")
    if clause is None:
        return ctx
    ctx.refuse_other_args(clause, "expressions", "recursive")
    ids: set[str] = set()
    for cte in clause.expressions:
        ctx.refuse_other_args(cte, "this", "alias", "materialized")  # which changes no row
        if cte.alias.lower() in ids:
            raise ctx.error("SQ2007", f'"{cte.alias}" is named twice in WITH', cte.args["alias"])
        ids.add(cte.alias.lower())
    groups = recursive_groups(clause) if clause.args.get("recursive") else ([cte] for cte in clause.expressions)
    for group in groups:
        if clause.args.get("recursive") and is_recursive(group):
            ctx = with_recursive_group(ctx, group)
            continue
        (cte,) = group
        name, names = cte.alias, tuple(c.name for c in cte.args["alias"].args.get("columns") or ())
        inside, around = rehearsal(ctx, outer)
        plan = bind_nested(inside, cte.this, around)
        common = CommonTable(cte.this, names, ctx, outer, plan if around is None else None)
        ctx = replace(ctx, ctes={**ctx.ctes, name.lower(): common})
    return ctx


@dataclass(frozen=True, slots=True)
class Item:
    """One column of the select list: its name, its expression, and where it was written."""

    name: str
    expr: Expr
    node: exp.Expr


@dataclass(slots=True)
class QueryBlock:
    """A SELECT while it is bound."""

    ctx: Context
    select: exp.Select
    outer: Outer | None = None
    is_ordered: bool = True
    inside: bool = False  # a LIMIT inside a query
    source: tuple[Node, Scope] | None = None  # in place of FROM
    scope: Scope = field(default_factory=Scope)
    keys: dict[Expr, Column] = field(default_factory=dict)
    sets: list[tuple[Expr, ...]] = field(default_factory=list)  # of keys, which are all of them without ROLLUP
    is_grouping: bool = False
    subquery_ids: set[int] = field(default_factory=set)  # the columns of subqueries that GROUP BY and aggregates read
    subqueries: Subqueries = field(init=False)
    window_calls: WindowCalls = field(init=False)

    def __post_init__(self) -> None:
        self.subqueries = Subqueries(self.ctx)
        self.window_calls = WindowCalls(self.ctx, self.named_windows())

    def bind(self) -> Node:
        ctx, select = self.ctx, self.select
        plan, self.scope = self.source or bind_from(ctx, select, self.outer)
        plan = self.bind_where(plan)
        aggregation = Aggregation(ctx, Subqueries(ctx))
        items = self.items(
            Scalars(
                ctx, self.scope, "SELECT", aggregation, {}, subqueries=self.subqueries, window_calls=self.window_calls
            )
        )
        self.group(items, aggregation)
        having = self.bind_having(items, aggregation)
        qualify = self.qualify(items, aggregation)
        order_scalars = replace(
            self.binder_with_aliases(items, aggregation, "ORDER BY"), window_calls=self.window_calls
        )
        order = bind_order(select.args.get("order"), items, order_scalars)
        on = self.distinct_on(items, replace(order_scalars, clause="DISTINCT ON"))
        for expr, node in aggregation.asked:
            if expr not in self.keys:
                raise self.ctx.error("SQ2009", "GROUPING takes what GROUP BY names", node)
        self.window_calls.check(
            Scalars(ctx, self.scope, "WINDOW", Aggregation(ctx, Subqueries(ctx)), subqueries=Subqueries(ctx))
        )
        group = select.args.get("group")
        self.subquery_ids = {id for waiting in aggregation.subqueries.pending for id in waiting.output_ids}
        self.is_grouping = group is not None or having is not None or bool(aggregation.columns)
        if self.is_grouping:
            plan = self.aggregate(plan, aggregation)
            items = [replace(i, expr=self.rewrite_to_groups(i.expr, i.node)) for i in items]
            order = [replace(o, expr=self.rewrite_to_groups(o.expr, o.node)) for o in order]
            on = [(self.rewrite_to_groups(expr, node), node) for expr, node in on]
            if having is not None:
                having = self.rewrite_to_groups(having, select.args["having"].this)
            if qualify is not None:
                qualify = self.rewrite_to_groups(qualify, select.args["qualify"].this)
        if self.window_calls.functions:
            # with what they and HAVING read; the rest is joined to the rows that are left
            read = self.window_calls.reads | {c.id for c in (columns(having) if having is not None else ())}
            plan = self.subqueries.take_making(set(read)).attach(plan, self.rewrite_to_rows)
            if having is not None:
                plan, having = Filter(plan, having), None
            plan = self.window_calls.attach(plan, self.rewrite_to_groups if self.is_grouping else lambda expr, _: expr)
        plan = self.subqueries.attach(plan, self.rewrite_to_rows)
        for kept in (having, qualify):
            if kept is not None:
                plan = Filter(plan, kept)
        if on:
            given = tuple(expr for expr, _ in on)
            span = ctx.query.keyword(select.args["distinct"], "DISTINCT")
            plan = TopN(plan, sort_keys(order), 1, partition=given, clause="DISTINCT ON", span=span)
            keys, items, order = self.name_items(items, order)
            plan = Project(plan, keys)
        elif select.args.get("distinct") is not None:
            plan, items, order = self.distinct(plan, items, order)
        plan = bind_ties(ctx, select, plan, order)
        outputs = tuple(self.output(item) for item in items)
        if self.inside:
            return bind_inner_limit(ctx, select, plan, outputs, order)
        plan = place_sort(plan, outputs, order if self.is_ordered else [])
        return bind_limit(ctx, select, plan)

    def bind_where(self, plan: Node) -> Node:
        """Filter FROM by WHERE; its subqueries see the rows that conditions without any leave."""
        clause = self.select.args.get("where")
        if clause is None:
            return plan
        queries = Subqueries(self.ctx)
        condition = Scalars(self.ctx, self.scope, "WHERE", subqueries=queries, has_time=True).condition(clause.this)
        plain, others = queries.split_conditions(conjuncts(condition))
        if any(map(reads_now, others)):
            refuse_now(self.ctx, clause.this)
        parts = [part for c in plain for part in (split_negation(c) if reads_now(c) else [c])]
        timed, plain = ([c for c in parts if reads_now(c) is wanted] for wanted in (True, False))
        if plain:
            plan = Filter(guard_series(self.ctx, plan, plain), conjunction(plain))
        plan = apply_temporal_filters(self.ctx, plan, timed, clause.this)
        return Filter(queries.attach(plan), conjunction(others)) if others else queries.attach(plan)

    def items(self, scalars: Scalars) -> list[Item]:
        """Bind the select list, with * written out. An item sees the names of those before it, after columns."""
        found, named = list[Item](), dict[str, list[Expr]]()
        scalars = replace(scalars, aliases=named, columns_first=True)
        for node in self.select.expressions:
            star = node if isinstance(node, exp.Star) else node.this if isinstance(node, exp.Column) else None
            if isinstance(star, exp.Star):
                source = self.scope.source(self.ctx, node) if isinstance(node, exp.Column) else None
                shown = [(source.name, c) for c in source.columns] if source else self.scope.star_columns()
                found += self.expand_star(star, shown, node, scalars)
            else:
                found.append(self.item(node, scalars))
            if isinstance(node, exp.Alias):
                named.setdefault(node.alias.lower(), []).append(found[-1].expr)
        if not found:
            raise self.ctx.error("SQ1001", "SELECT selects nothing", self.select)
        return found

    def expand_star(
        self, star: exp.Star, shown: list[tuple[str, Column]], node: exp.Expr, scalars: Scalars
    ) -> list[Item]:
        """List the items of * EXCEPT (a) REPLACE (b + 1 AS r.b) RENAME (r.c AS d); `shown` are its columns."""
        self.ctx.refuse_other_args(star, "except_", "replace", "rename")
        changed: dict[int, Item | None] = {}
        for part in ("except_", "replace", "rename"):
            for each in star.args.get(part) or []:
                word, is_plain = part.strip("_").upper(), part == "except_"
                if not is_plain and not isinstance(each, exp.Alias):
                    raise self.ctx.error("SQ1001", f"{word} without AS", each, f"write {word} (a AS b)")
                name = each if is_plain else each.args["alias"] if part == "replace" else each.this
                column = self.find_star_column(name, shown, word, node)
                if column.id in changed:
                    raise self.ctx.error("SQ2007", f'"{name.name}" is named twice behind *', name)
                if part == "replace":
                    changed[column.id] = Item(name.name, scalars.bind(each.this), each.this)
                else:
                    changed[column.id] = None if is_plain else Item(each.alias, self.scope.value(column), node)
        items = (changed.get(c.id, Item(c.name, self.scope.value(c), node)) for _, c in shown)
        return [item for item in items if item is not None]

    def find_star_column(self, name: exp.Expr, shown: list[tuple[str, Column]], word: str, star: exp.Expr) -> Column:
        """Find the column of * that EXCEPT, REPLACE or RENAME names; SQ2001, SQ2002 or SQ2003 where that is not one."""
        if not isinstance(name, exp.Column) or isinstance(name.this, exp.Star):
            raise self.ctx.error("SQ1001", f"{word} takes the name of a column", name)
        self.ctx.refuse_other_args(name, "this", "table", "db")
        table, source = name.args.get("table"), self.scope.source(self.ctx, name)
        if source is not None:
            shown = [(owner, c) for owner, c in shown if owner == source.name]
        found = [(owner, c) for owner, c in shown if c.name.lower() == name.name.lower()]
        if len(found) == 1:
            return found[0][1]
        if found:
            owners = dict.fromkeys(owner for owner, _ in found)
            hint = f"write {' or '.join(f'{owner}.{name.name}' for owner in owners)}" if len(owners) > 1 else ""
            raise self.ctx.error("SQ2002", f'ambiguous column "{name.name}" in {word}', name, hint)
        whole = f"{star.args['table'].name}.*" if isinstance(star, exp.Column) else "*"
        written = f"{table.name}.{name.name}" if table is not None else name.name
        hint = nearest(name.name, [c.name for _, c in shown])
        if whole == "*" and name.name.lower() in self.scope.merged_columns:
            hint = f"USING makes one column of two, write {name.name}"
        raise self.ctx.error("SQ2003", f'{whole} has no column "{written}"', name, hint)

    def item(self, node: exp.Expr, scalars: Scalars) -> Item:
        if isinstance(node, exp.Alias):
            self.ctx.refuse_other_args(node, "this", "alias")
            if not isinstance(node.args["alias"], exp.Identifier):  # s:a, of JSON elsewhere
                raise self.ctx.refuse(node.args["alias"])
            return Item(node.alias, scalars.bind_value(node.this), node.this)
        expr = scalars.bind_value(node)
        return Item(node.name if isinstance(node, exp.Column) else self.ctx.query.words(node), expr, node)

    def output(self, item: Item) -> tuple[Column, Expr]:
        """Make the column of an item; a bare NULL is a VARCHAR."""
        expr = Literal(None, VARCHAR) if item.expr.type.kind is Kind.NULL else item.expr
        return self.ctx.column(item.name, expr.type, expr.nullable), expr

    def binder_with_aliases(self, items: list[Item], aggregation: Aggregation | None, clause: str) -> Scalars:
        """Make the binder of a clause that sees the names of the select list."""
        aliases: dict[str, list[Expr]] = {}
        for item in items:
            aliases.setdefault(item.name.lower(), []).append(item.expr)
        return Scalars(self.ctx, self.scope, clause, aggregation, aliases, subqueries=self.subqueries)

    def group(self, items: list[Item], aggregation: Aggregation) -> None:
        """Bind GROUP BY: expressions, positions, or names of the select list where no column is called so."""
        clause = self.select.args.get("group")
        if clause is None:
            return
        if clause.args.get("all"):
            self.group_all(clause, items, aggregation)
            self.read_before_grouping(aggregation, clause)
            return
        sets = grouping_sets(self.ctx, clause)
        nodes = dict.fromkeys(node for each in sets for node in each)
        scalars = replace(self.binder_with_aliases(items, None, "GROUP BY"), columns_first=True)
        bound = {node: self.key(node, scalars, items, aggregation) for node in nodes}
        self.sets = [tuple(dict.fromkeys(bound[node] for node in each)) for each in sets]
        for expr in bound.values():
            if expr not in self.keys:
                selected = next((i.name for i in items if i.expr == expr), str(expr))
                name = expr.name if isinstance(expr, Column) else selected
                missing = any(expr not in each for each in self.sets)
                self.keys[expr] = self.ctx.column(name, expr.type, expr.nullable or missing)
        self.read_before_grouping(aggregation, clause)

    def read_before_grouping(self, aggregation: Aggregation, clause: exp.Group) -> None:
        """Join the subqueries that keys read to the rows that are grouped."""
        read = {c.id for expr in self.keys for c in columns(expr)}
        mine = self.subqueries.take_making(read).pending
        if {c.id for c in aggregation.columns}.intersection(id for each in mine for id in each.reads):
            raise self.ctx.error("SQ2009", "GROUP BY cannot name an aggregate", clause)
        aggregation.subqueries.pending += mine

    def group_all(self, clause: exp.Group, items: list[Item], aggregation: Aggregation) -> None:
        """Bind GROUP BY ALL: all items that are no aggregates."""
        self.ctx.refuse_other_args(clause, "all")
        aggregates = {*aggregation.columns, *aggregation.groupings.values(), *self.window_calls.columns}
        for item in items:
            if not isinstance(item.expr, Literal) and not columns(item.expr) & aggregates:
                self.keys.setdefault(item.expr, self.ctx.column(item.name, item.expr.type, item.expr.nullable))
        self.sets = [tuple(self.keys)]

    def key(self, node: exp.Expr, scalars: Scalars, items: list[Item], aggregation: Aggregation) -> Expr:
        """Bind an expression of GROUP BY."""
        expr = ordinal(self.ctx, node, items, "GROUP BY")
        if expr is None:
            expr = scalars.bind_value(node)
        if columns(expr) & {*aggregation.columns, *aggregation.groupings.values()}:
            raise self.ctx.error("SQ2009", "GROUP BY cannot name an aggregate", node)
        self.refuse_window_functions(expr, "GROUP BY", node)
        return expr

    def bind_having(self, items: list[Item], aggregation: Aggregation) -> Expr | None:
        clause = self.select.args.get("having")
        if clause is None:
            return None
        scalars = replace(self.binder_with_aliases(items, aggregation, "HAVING"), keys=frozenset(self.keys))
        condition = scalars.condition(clause.this)
        self.refuse_window_functions(condition, "HAVING", clause.this)
        return condition

    def qualify(self, items: list[Item], aggregation: Aggregation) -> Expr | None:
        """Bind QUALIFY, which is to window functions what HAVING is to aggregates."""
        clause = self.select.args.get("qualify")
        if clause is None:
            return None
        scalars = replace(
            self.binder_with_aliases(items, aggregation, "QUALIFY"),
            keys=frozenset(self.keys),
            window_calls=self.window_calls,
        )
        return scalars.condition(clause.this)

    def named_windows(self) -> dict[str, exp.Window]:
        """Collect the windows of WINDOW w AS (…), by name."""
        found: dict[str, exp.Window] = {}
        for clause in self.select.args.get("windows") or []:
            if clause.name.lower() in found:
                raise self.ctx.error("SQ2007", f'"{clause.name}" is named twice in WINDOW', clause)
            found[clause.name.lower()] = clause
        return found

    def refuse_window_functions(self, expr: Expr, clause: str, node: exp.Expr) -> None:
        """Refuse a name of the select list that stands for a window function, as SQ2009."""
        if columns(expr) & self.window_calls.columns:
            message = f"a window function cannot stand in {clause}"
            hint = "use QUALIFY" if clause == "HAVING" else "take it from a subquery in FROM"
            raise self.ctx.error("SQ2009", message, node, hint)

    def rewrite_to_rows(self, expr: Expr) -> Expr:
        """Rewrite an expression over FROM to one over the block's rows, grouped or not."""
        return self.rewrite_to_groups(expr, self.select) if self.is_grouping else expr

    def aggregate(self, plan: Node, aggregation: Aggregation) -> Node:
        if len(self.sets) > 1:
            return aggregation.over_sets(plan, self.keys, self.sets)
        plan, keys = place_sessions(self.ctx, aggregation.subqueries.attach(plan), self.keys)
        plan = aggregation.build_aggregate(plan, tuple((column, expr) for expr, column in keys.items()))
        answers = tuple((column, Literal(0, column.type)) for column in aggregation.groupings.values())
        return Project(plan, (*((c, c) for c in plan.output), *answers)) if answers else plan

    def rewrite_to_groups(self, expr: Expr, node: exp.Expr) -> Expr:
        """Rewrite an expression in terms of the Aggregate's columns; SQ2006 if it reads one that is not grouped."""
        # NB: a constant is a key as a whole only, and NULL then for a set that lacks it
        result = self.keys[expr] if len(self.sets) > 1 and expr in self.keys else replace_known(expr, self.keys)
        inputs = {c.id for source in self.scope.sources for c in source.columns}
        inputs |= {c.id for c in self.scope.merged_columns.values()} | self.subquery_ids
        stray = {c.id: c for c in columns(result) if c.id in inputs}
        if stray:
            place = next((n for n in outside_aggregates(node) if self.stands_for(n, stray)), node)
            name = min(stray.values(), key=lambda c: c.id).name
            hint = "add it to GROUP BY or put it into an aggregate"
            raise self.ctx.error("SQ2006", f'"{name}" is not in GROUP BY', place, hint)
        return result

    def stands_for(self, node: exp.Expr, stray: dict[int, Column]) -> bool:
        if not isinstance(node, exp.Column) or isinstance(node.this, exp.Star):
            return False
        try:
            return bool({c.id for c in columns(self.scope.resolve(self.ctx, node))} & stray.keys())
        except SquallError:
            return False

    def distinct_on(self, items: list[Item], scalars: Scalars) -> list[tuple[Expr, exp.Expr]]:
        """Bind the expressions of DISTINCT ON (…), of each of whose values the first row is kept."""
        clause = self.select.args.get("distinct")
        given = clause.args.get("on") if clause is not None else None
        if clause is None or given is None:
            return []
        self.ctx.refuse_other_args(clause, "on")
        nodes = given.expressions if isinstance(given, exp.Tuple) else [given]
        found = ((ordinal(self.ctx, node, items, "DISTINCT ON"), node) for node in nodes)
        return [(scalars.bind(node) if expr is None else expr, node) for expr, node in found]

    def distinct(self, plan: Node, items: list[Item], order: list[Ordering]) -> tuple[Node, list[Item], list[Ordering]]:
        """Bind SELECT DISTINCT to an Aggregate without aggregates; nothing to do where every group differs anyway."""
        clause = self.select.args["distinct"]
        self.ctx.refuse_other_args(clause)
        grouped = plan.child if isinstance(plan, Filter) else plan
        if (
            self.is_grouping
            and isinstance(grouped, Aggregate)
            and {c for c, _ in grouped.keys} <= {i.expr for i in items}
        ):
            return plan, items, order
        known: dict[Expr, Column] = {i.expr: self.ctx.column(i.name, i.expr.type, i.expr.nullable) for i in items}
        for key in order:
            left = columns(replace_known(key.expr, known)) - set(known.values())
            if left:
                raise self.ctx.error("SQ2006", "ORDER BY of SELECT DISTINCT must be in the select list", key.node)
        keys, items, order = self.name_items(items, order, hidden=False)
        return Aggregate(plan, keys, ()), items, order

    def name_items(
        self, items: list[Item], order: list[Ordering], hidden: bool = True
    ) -> tuple[tuple[tuple[Column, Expr], ...], list[Item], list[Ordering]]:
        """Name the items, and the keys of the order if these may be `hidden`; returned with both in these terms."""
        keys: dict[Expr, Column] = {}
        named = [(item.name, item.expr) for item in items]
        for name, expr in (*named, *((str(key.expr), key.expr) for key in (order if hidden else ()))):
            if expr not in keys:
                keys[expr] = self.ctx.column(name, expr.type, expr.nullable)
        items = [replace(item, expr=keys[item.expr]) for item in items]
        order = [replace(key, expr=replace_known(key.expr, keys)) for key in order]
        return tuple((c, e) for e, c in keys.items()), items, order


def outside_aggregates(node: exp.Expr) -> list[exp.Expr]:
    return list(node.walk(prune=is_aggregate))
