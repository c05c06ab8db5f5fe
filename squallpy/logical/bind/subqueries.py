"""Subqueries in expressions, unnested while they are bound: each becomes a join of the plan that reads it.

    … WHERE l_quantity < (SELECT 0.2 * AVG(l_quantity) FROM lineitem l WHERE l.l_partkey = p_partkey)
    →  LeftJoin(…, Aggregate by l_partkey, ON p_partkey = l_partkey), and the condition reads its column

What they read from around them is taken care of in `unnest`.
"""

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from sqlglot import exp

from squallpy.base.types import BIGINT, BOOLEAN, NULL, VARCHAR
from squallpy.logical.bind.context import Context
from squallpy.logical.bind.decorrelate import Domain, Inner, Outer, Rewrite
from squallpy.logical.calls import Agg
from squallpy.logical.coercion import coerce
from squallpy.logical.expressions import (
    FALSE,
    TRUE,
    Column,
    Expr,
    Literal,
    columns,
    conjunction,
    disjunction,
    not_null,
    substitute,
)
from squallpy.logical.functions import call, case
from squallpy.logical.nodes import Aggregate, Filter, Join, LeftJoin, Node, Project, TopN
from squallpy.logical.nulls import fold_nulls
from squallpy.logical.properties import at_nothing, has_one_row, has_row, is_bare_null, without_having

if TYPE_CHECKING:
    from squallpy.logical.bind.expressions import Scalars

Attach = Callable[[Node, Node, Rewrite], Node]  # plan so far, one that it reads, what they call things → plan
WORDS = 80  # characters of a query in a message
Pairs = Sequence[tuple[Expr, Column]]  # values and the columns of a query that they are compared with


@dataclass(frozen=True, slots=True)
class Waiting:
    """A subquery to be joined: the columns that it reads there, those that it adds, by id, and the join."""

    reads: frozenset[int]
    made: frozenset[int]
    attach: Attach


@dataclass(slots=True)
class Subqueries:
    """The subqueries of a clause: joins that wait for the plan that the clause reads."""

    ctx: Context
    waiting: list[Waiting] = field(default_factory=list)
    known: dict[Hashable, Expr] = field(default_factory=dict)

    def attach(self, plan: Node, rewrite: Rewrite = lambda expr: expr) -> Node:
        """The plan with all that is waiting joined to it; `rewrite` says what the plan calls the scope's columns."""
        base, made = plan, set[int]()
        for waiting in self.waiting:
            plan = waiting.attach(plan, plan if waiting.reads & made else base, rewrite)
            made |= waiting.made
        self.waiting.clear()
        return plan

    def making(self, wanted: set[int]) -> "Subqueries":
        """Those that add these columns or what others of them read; they wait here no longer."""
        mine, wanted = list[Waiting](), {*wanted}
        for waiting in reversed(self.waiting):
            if waiting.made & wanted:
                mine.insert(0, waiting)
                wanted |= waiting.reads
        return self._without(mine)

    def reading(self, known: set[int]) -> "Subqueries":
        """Those that read only these columns and what others of them add; they wait here no longer."""
        mine, known = list[Waiting](), {*known}
        for waiting in self.waiting:
            if waiting.reads <= known:
                mine.append(waiting)
                known |= waiting.made
        return self._without(mine)

    def _without(self, mine: list[Waiting]) -> "Subqueries":
        self.waiting = [waiting for waiting in self.waiting if waiting not in mine]
        return Subqueries(self.ctx, mine)

    def apart(self, conditions: Iterable[Expr], around: frozenset[int] = frozenset()) -> tuple[list[Expr], list[Expr]]:
        """Conditions that read neither what subqueries add nor columns from `around`, and the others."""
        late = around.union(*(waiting.made for waiting in self.waiting))
        plain, others = list[Expr](), list[Expr]()
        for condition in conditions:
            (others if late & {c.id for c in columns(condition)} else plain).append(condition)
        return plain, others

    def wait(self, inner: Inner, made: Iterable[Column], attach: Attach, values: Iterable[Expr] = ()) -> None:
        """Join a subquery later, which reads `values` besides what it takes from around it."""
        reads = frozenset(c.id for expr in (*inner.domain.columns, *values) for c in columns(expr))
        self.waiting.append(Waiting(reads, frozenset(c.id for c in made), attach))

    def bind(self, s: "Scalars", node: exp.Expr) -> Inner:
        """Bind a subquery."""
        from squallpy.logical.bind.select import bind_query

        domain = Domain()
        plan = bind_query(self.ctx, node, nested=True, outer=Outer(s.scope, domain, s))
        return Inner(self.ctx, plan, domain)

    def column(self, name: str, expr: Expr) -> Column:
        """A column that a join will add."""
        return self.ctx.column(name, expr.type, True)

    def once(self, key: Hashable, bind: Callable[[], Expr]) -> Expr:
        """What is written twice is one subquery."""
        if key not in self.known:
            self.known[key] = bind()
        return self.known[key]

    def scalar(self, s: "Scalars", node: exp.Expr) -> Expr:
        """The one value of a query; NULL if it has no row."""
        return self.once(("value", node), lambda: self._scalar(s, node))

    def _scalar(self, s: "Scalars", node: exp.Expr) -> Expr:
        inner = self.bind(s, node)
        if len(inner.plan.output) != 1:
            raise self.ctx.error("SQ2005", f"a subquery of {len(inner.plan.output)} columns is no value", node)
        inner = self.single(inner, node)
        (value,) = inner.plan.output
        default = self.default(inner, value)
        if default is not None and default != Literal(None, default.type):  # of nothing; not of what HAVING leaves out
            inner = replace(inner, plan=without_having(self.ctx, inner.plan))
            (value,) = inner.plan.output
            default = self.default(inner, value)
        always = not inner.domain.columns and has_row(inner.plan)
        shown, marker = self.column(value.name, value), self.column("found", TRUE)

        def attach(plan: Node, base: Node, rewrite: Rewrite) -> Node:
            below, on = inner.joined(base, rewrite, lax=default is not None)
            items: tuple[tuple[Column, Expr], ...] = (
                *((c, c) for c in below.output if c.id != value.id),
                (shown, value),
                (marker, TRUE),
            )
            right = Project(below, items)
            return Join(plan, right) if always else LeftJoin(plan, right, on)

        self.wait(inner, (shown, marker), attach)
        if always or default is None or default == Literal(None, default.type):
            return shown
        return case([(not_null(marker), shown)], default)

    def single(self, inner: Inner, node: exp.Expr) -> Inner:
        """Limit a query to one row by aggregates, if it may have more, which fail where it has several.

        SELECT x … ORDER BY k LIMIT 1   →   SELECT MIN(x) of that, for aggregates need not know which row it is
        """
        plan, fixed = inner.plan, frozenset(c.id for c in inner.domain.output)
        match plan:
            case Project(TopN(child, _, count, 0) as top, items) if count != 0 and has_one_row(child, fixed):
                return replace(inner, plan=Project(child, items))
            case Project(TopN(partition=()) as top, ((value, _),)) if top.is_first_row:
                first = self.ctx.column(value.name, value.type, True)
                return replace(inner, plan=Aggregate(plan, (), ((first, Agg("min", value)),)))
        if has_one_row(plan, fixed):
            return inner
        return replace(inner, plan=self.only(plan, node), counted=True)

    def only(self, values: Node, node: exp.Expr) -> Node:
        """SELECT x …   →   SELECT ONLY(MIN(x), COUNT(*)) …, which fails where there are several rows"""
        (value,) = values.output
        least, rows = self.ctx.column(value.name, value.type, True), self.ctx.column("rows", BIGINT, False)
        counted = Aggregate(values, (), ((least, Agg("min", value)), (rows, Agg("count", None))))
        words = Literal(" ".join(self.ctx.query.words(node).split())[:WORDS], VARCHAR)
        return Project(counted, ((self.ctx.column(value.name, value.type, True), call("only", least, rows, words)),))

    def default(self, inner: Inner, value: Column) -> Expr | None:
        """What an aggregating query is where its FROM has no row, if that is known without another subquery."""
        nothing = at_nothing(inner.plan)
        if nothing is None:
            return None
        outside = {ours.id: theirs for theirs, ours in inner.domain.columns.items()}
        default = fold_nulls(substitute(nothing[value.id], outside))
        known = {c for theirs in outside.values() for c in columns(theirs)}
        return default if columns(default) <= known else None

    def exists(self, s: "Scalars", node: exp.Expr) -> Expr:
        """EXISTS (query), never NULL."""
        return self.once(("exists", node), lambda: self._exists(s, node))

    def _exists(self, s: "Scalars", node: exp.Expr) -> Expr:
        inner = self.bind(s, node)
        match inner.plan:
            case Project(TopN(_, _, 0)):
                return FALSE
            case Project(TopN(child, _, _, 0), items):
                inner = replace(inner, plan=Project(child, items))
        return TRUE if has_row(inner.plan) else self.found(inner)

    def found(self, inner: Inner, within: Expr = TRUE, equal: Pairs = ()) -> Expr:
        """TRUE where the subquery has a row for which `within` is TRUE, and values there equal columns of it."""
        marker = self.column("found", TRUE)

        def attach(plan: Node, base: Node, rewrite: Rewrite) -> Node:
            below, on = inner.joined(base, rewrite)
            if within != TRUE:
                below = Filter(below, within)
            mine = {c.id: c for c in below.output}
            kept = [mine[c.id] for c in (*inner.domain.output, *(option for _, option in equal))]
            pairs = [call("=", rewrite(value), mine[option.id]) for value, option in equal]
            on = conjunction(c for c in (on, *pairs) if c != TRUE)
            kept = list(dict.fromkeys(kept))
            grouped = Aggregate(below, tuple((c, c) for c in kept) or ((self.column("one", TRUE), TRUE),), ())
            return LeftJoin(plan, Project(grouped, (*((c, c) for c in grouped.output), (marker, TRUE))), on)

        self.wait(inner, [marker], attach, [value for value, _ in equal])
        return not_null(marker)

    def member(self, s: "Scalars", operator: str, values: list[Expr], node: exp.Expr) -> Expr:
        """values operator ANY (query): TRUE if it holds for a row; else NULL if it is NULL for one; else FALSE."""
        return self.once((operator, *values, node), lambda: self._member(s, operator, values, node))

    def _member(self, s: "Scalars", operator: str, values: list[Expr], node: exp.Expr) -> Expr:
        inner = self.options(s, values, node)
        options = inner.plan.output
        if len(options) != len(values):
            columns = f"{len(values)} column{'s' * (len(values) > 1)}"
            raise self.ctx.error("SQ2005", f"IN and ANY take a query of {columns} here, not {len(options)}", node)
        values = [
            s.as_moment(v, c.type, node) if c.type.is_temporal else v for v, c in zip(values, options, strict=True)
        ]
        given = frozenset(c.id for c in inner.domain.output)
        if len(values) == 1 and has_row(inner.plan) and has_one_row(inner.plan, given):  # a comparison with its value
            return call(operator, *values, self.scalar(s, node))
        pairs = self.pairs(values, options)
        if operator == "=":
            for value, option in pairs:
                call("=", value, option)  # NB: are they of types that can be compared?
            found = self.found(inner, equal=pairs)
        else:  # the comparison goes inside, with the value as one more thing from around
            found = self.found(inner, within=conjunction(call(operator, a, b) for a, b in self.given(inner, pairs)))
        if not any(e.nullable for pair in pairs for e in pair):
            return found
        if len(values) > 1:
            again = self.options(s, values, node)
            unknown = self.unknown(again, self.pairs(values, again.plan.output))
        else:
            unknown = disjunction(self.nulls(s, *pairs[0], node))
        return case([(found, TRUE), (unknown, Literal(None, BOOLEAN))], FALSE)

    def nulls(self, s: "Scalars", value: Expr, option: Column, node: exp.Expr) -> Iterator[Expr]:
        """Is the value NULL, and is there one to compare it with? Is one of those NULL?"""
        if value.nullable:
            yield conjunction((call("is_null", value), self.found(self.bind(s, node))))
        if option.nullable:
            again = self.bind(s, node)
            yield self.found(again, within=call("is_null", again.plan.output[0]))

    def options(self, s: "Scalars", values: list[Expr], node: exp.Expr) -> Inner:
        """The query that values are compared with; a bare NULL that it selects is of the type of the value, and so is a
        text constant beside a DATE or TIMESTAMP."""
        inner = self.bind(s, node)
        plan = inner.plan
        if not isinstance(plan, Project) or any(v.type == NULL for v in values):
            return inner
        typed = dict[Column, tuple[Column, Expr]]()
        for (column, expr), value in zip(plan.items, values, strict=False):
            given = Literal(None, value.type) if is_bare_null(plan, column) else expr
            if value.type.is_temporal:
                given = s.as_moment(given, value.type, node)
            if given is not expr:
                typed[column] = self.ctx.column(column.name, given.type, given.nullable), given
        if not typed:
            return inner
        return replace(inner, plan=Project(plan.child, tuple(typed.get(c, (c, e)) for c, e in plan.items)))

    def pairs(self, values: list[Expr], options: tuple[Column, ...]) -> Pairs:
        """Values beside the columns that they are compared with; a bare NULL is of the type of its column."""
        pairs = zip(values, options, strict=True)
        return [(coerce(value, option.type) if value.type == NULL else value, option) for value, option in pairs]

    def unknown(self, inner: Inner, pairs: Pairs) -> Expr:
        """Is there a row that equals the values, but for NULLs here or there?"""
        tests = []
        for given, option in self.given(inner, pairs):
            nulls = [call("is_null", side) for side in (given, option) if side.nullable]
            tests.append(disjunction((*nulls, call("=", given, option))))
        return self.found(inner, within=conjunction(tests))

    def given(self, inner: Inner, pairs: Pairs) -> Pairs:
        """The values as columns that the subquery takes from around it, but for constants."""
        found = list[tuple[Expr, Column]]()
        for value, option in pairs:
            if columns(value) and value not in inner.domain.columns:
                inner.domain.columns[value] = self.ctx.column("given", value.type, value.nullable)
            found.append((inner.domain.columns.get(value, value), option))
        return found
