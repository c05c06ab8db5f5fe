"""Queries that read columns from around them, made free of those.

Such a query is bound over the *domain* of what it takes: the distinct values that there are around it, joined to its
FROM and carried through its GROUP BYs. Where it equates each of them with something of its own, that takes the
domain's place.

    (SELECT AVG(q) FROM l WHERE l.k = p.k) around p   →   Aggregate by k := l.k: AVG(q) of l, to be joined ON p.k = k
    (SELECT AVG(q) FROM l WHERE l.k < p.k) around p   →   Aggregate by k: AVG(q) of DISTINCT p.k joined ON l.k < k

Source: Neumann, Kemper, "Unnesting Arbitrary Queries", BTW 2015.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from sqlglot import exp

from squallpy.base.errors import SquallError
from squallpy.base.types import BOOLEAN
from squallpy.logical.bind.context import Context
from squallpy.logical.bind.scope import Scope
from squallpy.logical.expressions import (
    TRUE,
    Call,
    Column,
    Expr,
    Literal,
    columns,
    conjunction,
    conjuncts,
    uncast,
)
from squallpy.logical.functions import call, case
from squallpy.logical.nodes import (
    Aggregate,
    ConditionalJoin,
    Filter,
    Join,
    LeftJoin,
    Node,
    Project,
    Repeat,
    SetOperation,
    Sort,
    TopN,
    Union,
    WindowFunctions,
    nodes,
)

if TYPE_CHECKING:
    from squallpy.logical.bind.expressions import Scalars

Rewrite = Callable[[Expr], Expr]
Own = dict[Column, Expr]  # a domain's columns by what a query has of its own that equals them


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
    """What stands around a query: a scope, and the domain of what is taken from it. `clause` binds what is around it,
    but for a query in FROM."""

    scope: Scope
    domain: Domain
    clause: "Scalars | None" = None

    def taken(self, ctx: Context, expr: Expr) -> Column:
        """What is around the query, under a name of ours."""
        if expr not in self.domain.columns:
            name = expr.name if isinstance(expr, Column) else str(expr)
            self.domain.columns[expr] = ctx.column(name, expr.type, expr.nullable)
        return self.domain.columns[expr]

    def resolve(self, ctx: Context, node: exp.Column) -> Expr:
        """A column there, under a name of ours; SQ2001, SQ2002 or SQ2003 if there is none."""
        found = self.scope.resolve(ctx, node)
        return self.taken(ctx, found) if isinstance(found, Column) else found


def seen_from(inside: Outer | None, outer: Outer | None) -> Outer | None:
    """`outer` from a query `inside` it, through the domains on the way: a WITH query names what is around the WITH."""
    if inside is None or outer is None or inside is outer:
        return outer if inside else None
    return Outer(Scope(outer=seen_from(inside.scope.outer, outer)), inside.domain)


@dataclass(frozen=True, slots=True)
class Inner:
    """A bound query, not yet joined to what is around it; one that is `counted` has rows for values that are there."""

    ctx: Context
    plan: Node
    domain: Domain
    counted: bool = False

    def joined(self, plan: Node, rewrite: Rewrite = lambda expr: expr, lax: bool = False) -> tuple[Node, Expr]:
        """The query free of outer columns, and the condition by which it is joined to `plan`.

        `rewrite` says what `plan` calls things. `lax`: an aggregate of the whole query, without GROUP BY, may lack
        the row that it has of nothing.
        """
        ours = self.domain.output
        if not ours:
            return _Carrier(self.ctx, self.plan, (), []).carry(self.plan), TRUE
        keys = tuple((c, rewrite(theirs)) for theirs, c in self.domain.columns.items())
        values = Aggregate(narrowed(plan, {c.id for _, expr in keys for c in columns(expr)}), keys, ())
        own = [] if self.counted else equated(self.plan, self.domain)
        carrier = _Carrier(self.ctx, values, ours, own)
        inner = carrier.carry(self.plan, lax=lax)
        strict = bool(own) and not carrier.completed
        return inner, conjunction(_equal(expr, c, strict) for c, expr in keys)


def _equal(a: Expr, b: Expr, strict: bool) -> Expr:
    return call("=", a, b) if strict else Call("<=>", (a, b), BOOLEAN, False)


@dataclass(slots=True)
class _Carrier:
    """Puts `values`, or what equals them, in the domain's place; `ours`, its columns, come out of the query."""

    ctx: Context
    values: Node
    ours: tuple[Column, ...]
    own: list[tuple[Node, Own]]
    completed: bool = False  # is there a row for a value that nothing of the query's own equals?

    def carry(self, node: Node, out: bool = True, lax: bool = False) -> Node:
        """The query without the domain; `out`: the domain's columns come out of it as well."""
        if not has_domain(node):
            return node
        more = tuple((c, c) for c in self.ours) if out else ()
        match node:
            case Domain():
                return self.values
            case Join(Domain(), right, on):
                return self.base(node, self.carry(right, out=False), on)
            case Filter(child) | Sort(child):
                return replace(node, child=self.carry(child, out, lax))
            case TopN(child):
                each = (*node.partition, *(c for c, _ in more))
                return replace(node, child=self.carry(child, out or self.is_read(node), lax), partition=each)
            case Project(child, items):
                return Project(self.carry(child, out or self.is_read(node), lax), (*items, *more))
            case Aggregate(child, (), aggs) if more and not lax:
                return self.complete(child, node)
            case Aggregate(child, keys, aggs):
                return Aggregate(self.carry(child, out or self.is_read(node)), (*keys, *more), aggs)
            case Repeat(child):
                grouped = self.carry(child, out)
                assert isinstance(grouped, Aggregate)
                return replace(node, child=grouped)
            case WindowFunctions(child, functions):
                own = tuple((c, f.partitioned(self.ours)) for c, f in functions)
                return WindowFunctions(self.carry(child, lax=lax), own)
            case Join(left, right) | ConditionalJoin(left, right) if has_domain(left):
                return replace(node, left=self.carry(left, out, lax), right=self.carry(right, out=False))
            case Union(children, output) | SetOperation(_, _, children, output):
                parts = tuple(
                    Project(self.carry(child, out), (*((c, c) for c in child.output), *more)) for child in children
                )
                return replace(node, children=parts, columns=(*output, *(c for c, _ in more)))
        raise SquallError("SQ3001", "a correlated subquery of this form is not supported yet")

    def is_read(self, node: Node) -> bool:
        """Does a node read the domain's columns, or a condition on the rows that it reads?"""
        match node:
            case Project(child, items):
                read = tuple(expr for _, expr in items)
            case Aggregate(child, keys, aggs):
                read = (*(expr for _, expr in keys), *(arg for _, agg in aggs for arg in agg.args))
            case TopN(child, keys):
                read = (*(expr for expr, _, _ in keys), *node.partition)
            case _:
                return False
        while True:
            if any(c in self.ours for expr in read for c in columns(expr)):
                return True
            match child:
                case Filter(below, predicate):
                    child, read = below, (predicate,)
                case Sort(below):
                    child, read = below, ()
                case TopN(below, keys, partition=each):
                    child, read = below, (*(expr for expr, _, _ in keys), *each)
                case Join(Domain()):
                    return False  # which has them
                case Join(left, _, on) | ConditionalJoin(left, _, on):
                    child, read = left, () if on is None else (on,)
                case _:
                    return False

    def base(self, leaf: Node, right: Node, on: Expr | None) -> Node:
        """FROM with the domain's columns."""
        if not self.ours:
            return right
        if not self.own:
            return Join(self.values, right, on)
        mine = next(mine for known, mine in self.own if known == leaf)
        plan = Project(right, (*((c, c) for c in right.output), *mine.items()))
        return Filter(plan, on) if on is not None else plan

    def complete(self, child: Node, whole: Aggregate) -> Node:
        """An Aggregate without keys, which has a row for each of the domain's values: a count of nothing is 0."""
        self.completed = True
        keys = {c: self.ctx.column(c.name, c.type, c.nullable) for c in self.ours}
        aggs = tuple((self.ctx.column(c.name, c.type, True), agg) for c, agg in whole.aggs)
        grouped = Aggregate(self.carry(child), tuple((key, c) for c, key in keys.items()), aggs)
        pairs = zip(self.values.output, keys.values(), strict=True)
        plan = LeftJoin(self.values, grouped, conjunction(_equal(a, b, False) for a, b in pairs))
        items: list[tuple[Column, Expr]] = []
        for (column, agg), (found, _) in zip(whole.aggs, aggs, strict=True):
            found = replace(found, nullable=True)
            zero = Literal(0, column.type)
            items.append((column, case([(call("is_null", found), zero)], found) if agg.function == "count" else found))
        items += zip(self.ours, self.values.output, strict=True)
        return Project(plan, tuple(items))


def has_domain(plan: Node) -> bool:
    """True if a query stands over a domain."""
    return any(isinstance(node, Domain) for node in nodes(plan))


def narrowed(plan: Node, needed: set[int]) -> Node:
    """The least input of a plan that has some columns: its rows have all values that the plan's have, perhaps more."""
    sides: tuple[Node, ...]
    match plan:
        case Join(Domain()):
            return plan
        case Join(left, right):
            sides = (left, right)
        case ConditionalJoin(left) | WindowFunctions(left):
            sides = (left,)
        case Filter(child):
            found = narrowed(child, needed)
            return plan if found is child else found
        case _:
            return plan
    return next((narrowed(side, needed) for side in sides if needed <= {c.id for c in side.output}), plan)


def equated(plan: Node, domain: Domain) -> list[tuple[Node, Own]]:
    """For each place of the domain, its columns by what the query equates them with there; none if one lacks some."""
    found: list[tuple[Node, Own]] = []
    for leaf, conditions in places(plan):
        mine = _equated(leaf, conditions, domain)
        if any(known == leaf and len(own) == len(domain.columns) for known, own in found):
            continue  # the same rows again, to give a subquery of the query its values
        if len(mine) < len(domain.columns):
            return []
        found.append((leaf, mine))
    alike = all(mine[c].type == found[0][1][c].type for _, mine in found for c in domain.output)
    return found if alike else []


def _equated(leaf: Node, conditions: tuple[Expr, ...], domain: Domain) -> Own:
    if not isinstance(leaf, Join):
        return {}
    own, ours = {c.id for c in leaf.right.output}, {c.id: c for c in domain.output}
    found: Own = {}
    for condition in conditions:
        match condition:
            case Call("=", (a, b)):
                for one, other in ((a, b), (b, a)):
                    column, read = uncast(one), {c.id for c in columns(other)}
                    if isinstance(column, Column) and column.id in ours and read and read <= own:
                        found.setdefault(ours[column.id], other)
    return found


def places(node: Node, above: tuple[Expr, ...] = ()) -> Iterator[tuple[Node, tuple[Expr, ...]]]:
    """Where a query stands over its domain, with the conditions there, from before it groups."""
    if not node.borrows:
        return
    match node:
        case Domain():
            yield node, ()
        case Join(Domain(), right, on):
            yield node, (*(conjuncts(on) if on is not None else ()), *above)
            yield from places(right)
        case Filter(child, predicate):
            yield from places(child, (*conjuncts(predicate), *above))
        case Sort(child):
            yield from places(child, above)
        case Join(left, right) | ConditionalJoin(left, right):
            yield from places(left, above)
            yield from places(right)
        case _:
            for child in node.inputs:
                yield from places(child)
