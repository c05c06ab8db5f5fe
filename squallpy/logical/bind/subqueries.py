"""Subqueries in expressions, unnested while they are bound: each becomes a join of the plan that reads it.

    … WHERE l_quantity < (SELECT 0.2 * AVG(l_quantity) FROM lineitem l WHERE l.l_partkey = p_partkey)
    →  LeftJoin(…, Aggregate by l_partkey, ON p_partkey = l_partkey), and the condition reads its column

A query that names columns of the one around it stands over their *domain*: the distinct values that they have there,
joined to its FROM and carried through its GROUP BYs. Where it equates each of them with something of its own, that
takes the domain's place.

Source: Neumann, Kemper, "Unnesting Arbitrary Queries", BTW 2015.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace

from sqlglot import exp

from squallpy.base.errors import SquallError
from squallpy.base.types import BIGINT, BOOLEAN, INT
from squallpy.frontend.unsupported import Unsupported
from squallpy.logical.bind.context import Context
from squallpy.logical.bind.scope import Scope
from squallpy.logical.expressions import (
    FALSE,
    TRUE,
    Call,
    Column,
    Expr,
    Literal,
    columns,
    conjunction,
    conjuncts,
    not_null,
    substitute,
    uncast,
)
from squallpy.logical.functions import call, case
from squallpy.logical.nodes import (
    Agg,
    Aggregate,
    ConditionalJoin,
    Filter,
    Join,
    LeftJoin,
    Node,
    Project,
    Sort,
    Union,
)
from squallpy.logical.nulls import fold_nulls

Rewrite = Callable[[Expr], Expr]
Attach = Callable[[Node, Node, Rewrite], Node]  # plan so far, plan without any subquery, what it calls things → plan
SEVERAL = Unsupported("a subquery that may return several rows", "SELECT", "use MIN, MAX or another aggregate")


class Domain(Node):
    """What a query being bound takes from around it: our columns, by the expressions there. No plan keeps it."""

    lends = True

    def __init__(self) -> None:
        self.columns: dict[Expr, Column] = {}

    @property
    def output(self) -> tuple[Column, ...]:
        return tuple(self.columns.values())


@dataclass(frozen=True, slots=True)
class Outer:
    """What stands around a query: a scope, and the domain of what is taken from it."""

    scope: Scope
    domain: Domain

    def resolve(self, ctx: Context, node: exp.Column) -> Column:
        """A column there, under a name of ours; SQ2001, SQ2002 or SQ2003 if there is none."""
        column = self.scope.resolve(ctx, node)
        if column not in self.domain.columns:
            self.domain.columns[column] = ctx.column(column.name, column.type, column.nullable)
        return self.domain.columns[column]


@dataclass(frozen=True, slots=True)
class Inner:
    """A bound subquery, not yet joined."""

    plan: Node
    domain: Domain

    def joined(self, plan: Node, rewrite: Rewrite) -> tuple[Node, Expr]:
        """The subquery free of outer columns, and the condition by which it is joined to `plan`."""
        if not self.domain.columns:
            return carry(self.plan, {}, lambda below: below), TRUE
        own = equated(self.plan, self.domain)
        if len(own) == len(self.domain.columns):
            named = {
                ours: replace(ours, type=own[ours].type, nullable=own[ours].nullable)
                for ours in self.domain.columns.values()
            }
            inner = carry(
                self.plan,
                named,
                lambda below: Project(below, (*((c, c) for c in below.output), *((named[c], own[c]) for c in own))),
            )
            pairs = [call("=", rewrite(theirs), named[ours]) for theirs, ours in self.domain.columns.items()]
            return inner, conjunction(pairs)
        keys = tuple((ours, rewrite(theirs)) for theirs, ours in self.domain.columns.items())
        values = Aggregate(narrowed(plan, {c.id for _, expr in keys for c in columns(expr)}), keys, ())
        inner = carry(self.plan, {c: c for c in self.domain.columns.values()}, lambda below: Join(values, below))
        return inner, conjunction(Call("<=>", (theirs, ours), BOOLEAN, False) for ours, theirs in keys)


@dataclass(slots=True)
class Subqueries:
    """The subqueries of a clause: joins that wait for the plan that the clause reads."""

    ctx: Context
    waiting: list[Attach] = field(default_factory=list)
    made: set[int] = field(default_factory=set)  # the columns that they add

    def attach(self, plan: Node, rewrite: Rewrite = lambda expr: expr) -> Node:
        """The plan with all that is waiting joined to it; `rewrite` says what the plan calls the scope's columns."""
        base = plan
        for attach in self.waiting:
            plan = attach(plan, base, rewrite)
        self.waiting.clear()
        return plan

    def bind(self, scope: Scope, node: exp.Expr) -> Inner:
        from squallpy.logical.bind.block import bind_query

        domain = Domain()
        plan = bind_query(self.ctx, node, nested=True, outer=Outer(scope, domain))
        if not has_domain(plan):  # a set operation
            plan = Project(Join(domain, plan), tuple((c, c) for c in plan.output))
        return Inner(plan, domain)

    def column(self, name: str, expr: Expr) -> Column:
        """A column that a join will add."""
        column = self.ctx.column(name, expr.type, True)
        self.made.add(column.id)
        return column

    def scalar(self, scope: Scope, node: exp.Expr) -> Expr:
        """The one value of a query; NULL if it has no row."""
        inner = self.bind(scope, node)
        if len(inner.plan.output) != 1:
            raise self.ctx.error("SQ2005", f"a subquery of {len(inner.plan.output)} columns is no value", node)
        (value,) = inner.plan.output
        nothing = at_nothing(inner.plan)
        if nothing is None:
            raise self.ctx.refuse(node, SEVERAL)
        outside = {ours.id: theirs for theirs, ours in inner.domain.columns.items()}
        default = fold_nulls(substitute(nothing[value.id], outside))
        if columns(default) - {c for theirs in outside.values() for c in columns(theirs)}:
            raise self.ctx.refuse(node, Unsupported("a subquery in an aggregating one that is correlated", "SELECT"))
        always = not inner.domain.columns and not any(isinstance(n, Filter) for n in above(inner.plan))
        shown = self.column(value.name, value)
        marker = self.column("found", TRUE)

        def attach(plan: Node, base: Node, rewrite: Rewrite) -> Node:
            below, on = inner.joined(base, rewrite)
            items: tuple[tuple[Column, Expr], ...] = (
                *((c, c) for c in below.output if c.id != value.id),
                (shown, value),
                (marker, TRUE),
            )
            right = Project(below, items)
            return Join(plan, right) if always else LeftJoin(plan, right, on)

        self.waiting.append(attach)
        if always or default == Literal(None, default.type):
            return shown
        return case([(not_null(marker), shown)], default)

    def exists(self, scope: Scope, node: exp.Expr) -> Expr:
        """EXISTS (query), never NULL."""
        return self.found(self.bind(scope, node))

    def found(self, inner: Inner, within: Expr = TRUE, equal: tuple[Expr, Column] | None = None) -> Expr:
        """TRUE where the subquery has a row for which `within` is TRUE, and a value there equals a column of it."""
        marker = self.column("found", TRUE)

        def attach(plan: Node, base: Node, rewrite: Rewrite) -> Node:
            below, on = inner.joined(base, rewrite)
            if within != TRUE:
                below = Filter(below, within)
            mine = {c.id: c for c in below.output}
            kept = [mine[c.id] for c in inner.domain.columns.values()]
            if equal is not None:
                kept.append(mine[equal[1].id])
                on = conjunction(c for c in (on, call("=", rewrite(equal[0]), kept[-1])) if c != TRUE)
            grouped = Aggregate(below, tuple((c, c) for c in kept) or ((self.column("one", TRUE), TRUE),), ())
            return LeftJoin(plan, Project(grouped, (*((c, c) for c in grouped.output), (marker, TRUE))), on)

        self.waiting.append(attach)
        return not_null(marker)

    def member(self, scope: Scope, operator: str, value: Expr, node: exp.Expr) -> Expr:
        """value operator ANY (query): TRUE if it holds for a row; else NULL if it is NULL for one; else FALSE."""
        inner = self.bind(scope, node)
        if len(inner.plan.output) != 1:
            raise self.ctx.error("SQ2005", f"IN and ANY take a query of one column, not {len(inner.plan.output)}", node)
        (option,) = inner.plan.output
        if operator == "=":
            found = self.found(inner, equal=(value, option))
        else:  # the comparison goes inside, with the value as one more thing from around
            given = inner.domain.columns[value] = self.ctx.column("given", value.type, value.nullable)
            found = self.found(inner, within=call(operator, given, option))
        if not value.nullable and not option.nullable:
            return found
        again = self.bind(scope, node)
        (option,) = again.plan.output
        rows, nulls = self.column("rows", Literal(0, BIGINT)), self.column("values", Literal(0, BIGINT))

        def attach(plan: Node, base: Node, rewrite: Rewrite) -> Node:
            below, same = again.joined(base, rewrite)
            mine = {c.id: c for c in below.output}
            keys = tuple((mine[c.id], mine[c.id]) for c in again.domain.columns.values())
            counts = (rows, Agg("count", None)), (nulls, Agg("count", mine[option.id]))
            return LeftJoin(plan, Aggregate(below, keys, counts), same)

        self.waiting.append(attach)
        empty = call("or", call("is_null", rows), call("=", rows, Literal(0, INT)))
        unknown = call("or", call("is_null", value), call("<", nulls, rows))
        return case([(found, TRUE), (empty, FALSE), (unknown, Literal(None, BOOLEAN))], FALSE)


def narrowed(plan: Node, needed: set[int]) -> Node:
    """The least input of a plan that has some columns: its rows have all values that the plan's have, perhaps more."""
    sides: tuple[Node, ...]
    match plan:
        case Join(left, right):
            sides = (left, right)
        case ConditionalJoin(left):
            sides = (left,)
        case Filter(child):
            found = narrowed(child, needed)
            return plan if found is child else found
        case _:
            return plan
    return next((narrowed(side, needed) for side in sides if needed <= {c.id for c in side.output}), plan)


def has_domain(node: Node) -> bool:
    return isinstance(node, Domain) or any(has_domain(child) for child in node.inputs)


def above(node: Node) -> Iterator[Node]:
    """A plan's chain of operators of one input, top first."""
    while len(node.inputs) == 1:
        yield node
        (node,) = node.inputs


def equated(plan: Node, domain: Domain) -> dict[Column, Expr]:
    """The domain's columns that the query equates with expressions of its own FROM, before it groups."""
    path = list(walk_to_domain(plan))
    base = path[-1]
    assert isinstance(base, Join)
    own, ours = {c.id for c in base.right.output}, {c.id: c for c in domain.columns.values()}
    found: dict[Column, Expr] = {}
    for node in reversed(path):
        if isinstance(node, Aggregate | Project | Union):
            break
        for conjunct in conjuncts(node.predicate) if isinstance(node, Filter) else ():
            match conjunct:
                case Call("=", (a, b)):
                    for one, other in ((a, b), (b, a)):
                        column, read = uncast(one), {c.id for c in columns(other)}
                        if isinstance(column, Column) and column.id in ours and read and read <= own:
                            found.setdefault(ours[column.id], other)
    return found


def walk_to_domain(node: Node) -> Iterator[Node]:
    """The operators from the top of a query to the join with its domain."""
    while True:
        yield node
        if isinstance(node, Join) and isinstance(node.left, Domain):
            return
        node = next(child for child in node.inputs if has_domain(child))


def carry(node: Node, named: dict[Column, Column], base: Callable[[Node], Node]) -> Node:
    """The query with `base` in the place of its join with the domain, whose columns come out at the top."""
    if not has_domain(node):
        return node
    more = tuple((c, c) for c in named.values())

    def below(child: Node) -> Node:
        return carry(child, named, base)

    match node:
        case Join(Domain(), right):
            return base(right)
        case Filter(child, predicate):
            return Filter(below(child), predicate)
        case Sort(child, keys):
            return Sort(below(child), keys)
        case Project(child, items):
            return Project(below(child), (*items, *more))
        case Aggregate(child, keys, aggs):
            return Aggregate(below(child), (*keys, *more), aggs)
        case Join() | ConditionalJoin() if has_domain(node.left):
            return replace(node, left=below(node.left), right=carry(node.right, {}, base))
        case Union(children, columns):
            return Union(tuple(map(below, children)), (*columns, *named.values()))
    raise SquallError("SQ3001", "a correlated subquery of this form is not supported yet")


def at_nothing(node: Node) -> dict[int, Expr] | None:
    """What a query's columns are if its FROM has no row; None if it need not have one row then."""
    match node:
        case Project(child, items):
            found = at_nothing(child)
            return None if found is None else {c.id: substitute(expr, found) for c, expr in items}
        case Filter(child, predicate):
            found = at_nothing(child)
            if found is None:
                return None
            kept = fold_nulls(substitute(predicate, found))
            return {id: case([(kept, value)], Literal(None, value.type)) for id, value in found.items()}
        case Aggregate(_, (), aggs):
            return {c.id: Literal(0 if agg.function == "count" else None, c.type) for c, agg in aggs}
        case Join(left, _, None) | LeftJoin(left):
            return at_nothing(left)
    return None
