"""Subqueries in expressions: each becomes an Apply under the clause, whose expressions read the columns that it adds.

… WHERE l_quantity < (SELECT 0.2 * AVG(l_quantity) FROM lineitem l WHERE l.l_partkey = p_partkey)
→  Filter l_quantity < value (Apply SCALAR value, found (…, the subquery))
"""

from collections.abc import Callable, Hashable, Iterable
from dataclasses import field, replace
from typing import TYPE_CHECKING

from sqlglot import exp

from squallpy.base.errors import Span
from squallpy.base.records import dataclass
from squallpy.base.types import NULL
from squallpy.logical.apply import Apply, ApplyKind, Domain
from squallpy.logical.bind.context import Context
from squallpy.logical.bind.scope import Outer
from squallpy.logical.coercion import coerce
from squallpy.logical.expression_builders import call, case
from squallpy.logical.expressions import FALSE, TRUE, Column, Expr, Literal, columns, conjunction, not_null, substitute
from squallpy.logical.nested_order import compare
from squallpy.logical.nodes import Join, Node, Project, TopN, with_inputs
from squallpy.logical.plan_properties import has_one_row, has_row, is_bare_null, value_of_nothing, without_having

if TYPE_CHECKING:
    from squallpy.logical.bind.expressions import Scalars

Rewrite = Callable[[Expr], Expr]
WORDS = 80  # characters of a query in a message
Comparisons = tuple[tuple[str, Expr, Column], ...]  # of values with columns of a query, by an operator


@dataclass(frozen=True, slots=True)
class Inner:
    """A bound query, and the domain of the columns that it reads from around it."""

    plan: Node
    domain: Domain = field(default_factory=Domain)

    def parameters(self, rewrite: Rewrite = lambda expr: expr) -> tuple[tuple[Column, Expr], ...]:
        """Pair the domain's columns with the expressions around; `rewrite` brings these in terms of the plan there."""
        return tuple((column, rewrite(theirs)) for theirs, column in self.domain.columns.items())


def without_domain(plan: Node) -> Node:
    """Remove the domain of a query that reads nothing from around it."""
    match plan:
        case Join(Domain(), right):
            return without_domain(right)
        case Apply(left):
            return replace(plan, left=without_domain(left))
    return with_inputs(plan, tuple(map(without_domain, plan.inputs))) if plan.borrows else plan


@dataclass(frozen=True, slots=True)
class PendingApply:
    """A subquery that is applied later: the columns that it reads there, those that it adds, by id, and its Apply."""

    reads: frozenset[int]
    output_ids: frozenset[int]
    inner: Inner
    kind: ApplyKind
    columns: tuple[Column, ...]
    compared: Comparisons
    span: Span
    text: str

    def apply(self, plan: Node, rewrite: Rewrite) -> Node:
        """Apply the subquery to a plan."""
        parameters = self.inner.parameters(rewrite)
        right = self.inner.plan if parameters else without_domain(self.inner.plan)
        on = conjunction(compare(operator, rewrite(value), option) for operator, value, option in self.compared)
        return Apply(plan, right, self.kind, parameters, on, self.columns, self.span, self.text)


@dataclass(slots=True)
class Subqueries:
    """The subqueries of a clause, which wait for the plan that the clause reads."""

    ctx: Context
    pending: list[PendingApply] = field(default_factory=list)
    memo: dict[Hashable, Expr] = field(default_factory=dict)

    def attach(self, plan: Node, rewrite: Rewrite = lambda expr: expr) -> Node:
        """Apply all that is waiting to a plan; `rewrite` brings expressions over the scope in its terms."""
        for waiting in self.pending:
            plan = waiting.apply(plan, rewrite)
        self.pending.clear()
        return plan

    def take_making(self, output_ids: set[int]) -> "Subqueries":
        """Take out the subqueries that add these columns, or columns that others of them read."""
        mine, output_ids = list[PendingApply](), {*output_ids}
        for waiting in reversed(self.pending):
            if waiting.output_ids & output_ids:
                mine.insert(0, waiting)
                output_ids |= waiting.reads
        return self._split_off(mine)

    def take_reading(self, known: set[int]) -> "Subqueries":
        """Take out the subqueries that read only these columns, and columns that others of them add."""
        mine, known = list[PendingApply](), {*known}
        for waiting in self.pending:
            if waiting.reads <= known:
                mine.append(waiting)
                known |= waiting.output_ids
        return self._split_off(mine)

    def _split_off(self, mine: list[PendingApply]) -> "Subqueries":
        self.pending = [waiting for waiting in self.pending if waiting not in mine]
        return Subqueries(self.ctx, mine)

    def split_conditions(
        self, conditions: Iterable[Expr], around: frozenset[int] = frozenset()
    ) -> tuple[list[Expr], list[Expr]]:
        """Split conditions into those that read neither subqueries nor columns of `around`, and the others."""
        late = around.union(*(waiting.output_ids for waiting in self.pending))
        plain, others = list[Expr](), list[Expr]()
        for condition in conditions:
            (others if late & {c.id for c in columns(condition)} else plain).append(condition)
        return plain, others

    def wait(
        self, inner: Inner, kind: ApplyKind, outputs: tuple[Column, ...], node: exp.Expr, compared: Comparisons = ()
    ) -> None:
        """Apply a subquery later, whose columns are `compared` with values around it."""
        read = (*inner.domain.columns, *(value for _, value, _ in compared))
        reads, adds = frozenset(c.id for expr in read for c in columns(expr)), frozenset(c.id for c in outputs)
        text = " ".join(self.ctx.query.words(node).split())[:WORDS] if kind is ApplyKind.SINGLE else ""
        self.pending.append(PendingApply(reads, adds, inner, kind, outputs, compared, self.ctx.span(node), text))

    def bind(self, s: "Scalars", node: exp.Expr) -> Inner:
        """Bind a subquery."""
        from squallpy.logical.bind.select import bind_query

        domain = Domain()
        plan = bind_query(self.ctx, node, nested=True, outer=Outer(s.scope, domain, s))
        return Inner(plan, domain)

    def column(self, name: str, expr: Expr) -> Column:
        """Make a column that an Apply adds."""
        return self.ctx.column(name, expr.type, True)

    def bind_once(self, key: Hashable, bind: Callable[[], Expr]) -> Expr:
        """Bind a subquery that is written twice only once."""
        if key not in self.memo:
            self.memo[key] = bind()
        return self.memo[key]

    def bind_scalar(self, s: "Scalars", node: exp.Expr) -> Expr:
        """Bind a scalar subquery; its value is NULL if it has no row."""
        return self.bind_once(("value", node), lambda: self._bind_scalar(s, node))

    def _bind_scalar(self, s: "Scalars", node: exp.Expr) -> Expr:
        inner = self.bind(s, node)
        if len(inner.plan.output) != 1:
            raise self.ctx.error("SQ2005", f"a subquery of {len(inner.plan.output)} columns is no value", node)
        inner, kind = self.single(inner)
        (value,) = inner.plan.output
        default = self.value_of_nothing(inner, value) if kind is ApplyKind.SCALAR else None
        if default is not None and default != Literal(None, default.type):  # of nothing; not of what HAVING leaves out
            inner = replace(inner, plan=without_having(self.ctx, inner.plan))
            (value,) = inner.plan.output
            default = self.value_of_nothing(inner, value)
        shown, marker = self.column(value.name, value), self.column("found", TRUE)
        self.wait(inner, kind, (shown, marker), node)
        always = not inner.domain.columns and has_row(inner.plan)
        if always or default is None or default == Literal(None, default.type):
            return shown
        return case([(not_null(marker), shown)], default)

    def single(self, inner: Inner) -> tuple[Inner, ApplyKind]:
        """Tell a query of at most one row from one that fails if it has several; a LIMIT of one row is dropped."""
        fixed = frozenset(c.id for c in inner.domain.output)
        match inner.plan:
            case Project(TopN(child, _, count, 0), items) if count != 0 and has_one_row(child, fixed):
                return replace(inner, plan=Project(child, items)), ApplyKind.SCALAR
        return inner, ApplyKind.SCALAR if has_one_row(inner.plan, fixed) else ApplyKind.SINGLE

    def value_of_nothing(self, inner: Inner, value: Column) -> Expr | None:
        """Tell the value of an aggregating query over no rows, if it is known without another subquery."""
        nothing = value_of_nothing(inner.plan, value)
        if nothing is None:
            return None
        outside = {ours.id: theirs for theirs, ours in inner.domain.columns.items()}
        default = substitute(nothing, outside)
        known = {c for theirs in outside.values() for c in columns(theirs)}
        return default if columns(default) <= known else None

    def bind_exists(self, s: "Scalars", node: exp.Expr) -> Expr:
        """Bind EXISTS (query), which is never NULL."""
        return self.bind_once(("exists", node), lambda: self._bind_exists(s, node))

    def _bind_exists(self, s: "Scalars", node: exp.Expr) -> Expr:
        inner = self.bind(s, node)
        match inner.plan:
            case Project(TopN(_, _, 0)):
                return FALSE
            case Project(TopN(child, _, _, 0), items):
                inner = replace(inner, plan=Project(child, items))
        if has_row(inner.plan):
            return TRUE
        marker = self.column("found", TRUE)
        self.wait(inner, ApplyKind.EXISTS, (marker,), node)
        return not_null(marker)

    def bind_quantified(self, s: "Scalars", operator: str, values: list[Expr], node: exp.Expr) -> Expr:
        """Bind `values operator ANY (query)`: TRUE if TRUE for a row, else NULL if NULL for one, else FALSE."""
        return self.bind_once((operator, *values, node), lambda: self._bind_quantified(s, operator, values, node))

    def _bind_quantified(self, s: "Scalars", operator: str, values: list[Expr], node: exp.Expr) -> Expr:
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
            return compare(operator, values[0], self.bind_scalar(s, node))
        pairs = zip(values, options, strict=True)  # a bare NULL is of the type of its column
        typed = ((coerce(value, option.type) if value.type == NULL else value, option) for value, option in pairs)
        compared = tuple((operator, value, option) for value, option in typed)
        for each in compared:
            call(*each)  # NB: are they of types that can be compared?
        mark = self.column("mark", TRUE)
        self.wait(inner, ApplyKind.MARK, (mark,), node, compared)
        return mark

    def options(self, s: "Scalars", values: list[Expr], node: exp.Expr) -> Inner:
        """Bind the query that values are compared with.

        A bare NULL that it selects is of the type of the value, as is a text constant beside a DATE or TIMESTAMP.
        """
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
