"""Replacement of subqueries by joins.

A subquery is computed for all values of its outer columns at once: their distinct values, the *domain*, are joined to
its FROM and pushed through its GROUP BYs. Where the subquery equates each outer column with an expression of its own,
those expressions replace the domain.

    Apply SCALAR (SELECT AVG(q) FROM l WHERE l.k = p.k) to p
    →  p ⟕_{p.k = k} (Aggregate by k := l.k: AVG(q) of l)
    Apply SCALAR (SELECT AVG(q) FROM l WHERE l.k < p.k) to p
    →  p ⟕_{p.k <=> k} (Aggregate by k: AVG(q) of (DISTINCT p.k) ⋈_{l.k < k} l)

Source: Neumann, Kemper, "Unnesting Arbitrary Queries", BTW 2015.
"""

from collections.abc import Hashable, Iterator
from dataclasses import field, replace

from squallpy.base.errors import SquallError
from squallpy.base.records import dataclass
from squallpy.base.types import BIGINT, BOOLEAN, VARCHAR
from squallpy.logical.aggregate_calls import Agg
from squallpy.logical.apply import Apply, ApplyKind, Domain
from squallpy.logical.column_allocator import ColumnAllocator
from squallpy.logical.containment import narrow_plan
from squallpy.logical.expression_builders import call, case
from squallpy.logical.expressions import (
    TRUE,
    Call,
    Column,
    Expr,
    Literal,
    as_nullable,
    columns,
    conjunction,
    conjuncts,
    substitute,
    uncast,
)
from squallpy.logical.nodes import (
    Aggregate,
    AntiJoin,
    ConditionalJoin,
    Filter,
    GroupingSets,
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
    inner_join,
)
from squallpy.logical.plan_properties import check_size, has_row, value_of_nothing
from squallpy.logical.session_windows import SessionWindow
from squallpy.logical.shared_aggregates import Items
from squallpy.optimizer.pass_manager import bottom_up
from squallpy.optimizer.plan.expand_grouping_sets import expand_grouping_sets

Own = dict[Column, Expr]  # the subquery's own expressions that equal columns of the domain
Pushdowns = dict[Hashable, "_DomainPushdown"]  # by what they have in common


def decorrelate(plan: Node, context: ColumnAllocator) -> Node:
    """Replace each Apply of a plan by joins, those inside a subquery first."""
    pushdowns: Pushdowns = {}

    def change(node: Node, after: Node) -> Node:
        if not (isinstance(node, Apply) and isinstance(after, Apply)):
            return after
        try:
            joined = _unnest(after, rewritten(_values_input(node)), context, pushdowns)
            check_size(joined)
        except SquallError as error:
            raise error.at(node.span) from None
        return joined

    rewritten = bottom_up(change)
    return rewritten(plan)


def _values_input(apply: Apply) -> Node:
    """Find the least input, below other subqueries of the same clause, that has all values of the outer columns."""
    read = {c.id for _, expr in apply.parameters for c in columns(expr)}
    node = base = apply.left
    while True:
        match node:
            case Filter(child):
                node = child
            case Apply(left, kind=kind, outputs=outputs) if not kind.makes_pairs and not read & {c.id for c in outputs}:
                node = base = left
            case _:
                return base


def _unnest(apply: Apply, base: Node, context: ColumnAllocator, pushdowns: Pushdowns) -> Node:
    """Replace an Apply by a join; its inputs have none.

    Args:
        base: A part of its left input that has all values of the outer columns.
    """
    left, kind, outputs = apply.left, apply.kind, apply.outputs
    single = kind is ApplyKind.SINGLE
    right = _only_row(apply, context) if single else _first_row(apply, context)
    is_defaulted = kind is ApplyKind.SCALAR and _has_default(right, apply.parameters)
    lax = single or is_defaulted
    below, on = _without_domain(right, apply.parameters, base, context, pushdowns, lax, all_values=single)
    on = conjunction(c for c in (on, apply.on) if c != TRUE)
    match kind:
        case ApplyKind.CROSS:
            return inner_join(left, below, on)
        case ApplyKind.LEFT:
            return LeftJoin(left, below, on)
        case ApplyKind.ANTI:
            return AntiJoin(left, below, on)
        case ApplyKind.EXISTS | ApplyKind.SEMI:
            mine = {c.id: c for c in below.output}
            keys = [column for column, _ in apply.parameters]
            keys += [c for conjunct in conjuncts(apply.on) for c in columns(conjunct) if c.id in mine]
            kept = {c: context.like(c) for c in dict.fromkeys(mine[c.id] for c in keys)}
            one = (context.column("one", BOOLEAN, False), TRUE)
            grouped = Aggregate(below, tuple((copy, c) for c, copy in kept.items()) or (one,), ())
            on = substitute(on, {c.id: copy for c, copy in kept.items()})
            if not outputs:
                return inner_join(left, grouped, on)
            return LeftJoin(left, Project(grouped, (*((c, c) for c in grouped.output), (outputs[0], TRUE))), on)
    value = right.output[0]
    others = ((c, c) for c in below.output if c.id != value.id)
    found = Project(below, (*others, (outputs[0], value), (outputs[1], TRUE)))
    return Join(left, found) if not apply.parameters and has_row(right) else LeftJoin(left, found, on)


def _only_row(apply: Apply, context: ColumnAllocator) -> Node:
    """Make SELECT x … fail where it has several rows: SELECT ONLY(MIN(x), COUNT(*)) …"""
    (value,) = apply.right.output
    least, shown = (context.column(value.name, value.type, True) for _ in range(2))
    rows = context.column("rows", BIGINT, False)
    counted = Aggregate(apply.right, (), ((least, Agg("min", value)), (rows, Agg("count", None))))
    return Project(counted, ((shown, call("only", least, rows, Literal(apply.text, VARCHAR))),))


def _first_row(apply: Apply, context: ColumnAllocator) -> Node:
    """Make the value of a first row an aggregate, which need not know the row: SELECT MIN(x) of SELECT x … LIMIT 1"""
    match apply.right:
        case Project(TopN(partition=()) as top, ((value, _),)) if apply.kind is ApplyKind.SCALAR and top.is_first_row:
            first = context.column(value.name, value.type, True)
            return Aggregate(apply.right, (), ((first, Agg("min", value)),))
    return apply.right


def _has_default(right: Node, parameters: Items) -> bool:
    """True if the value of a subquery without rows can be computed from its outer columns."""
    default = value_of_nothing(right, right.output[0])
    return default is not None and columns(default) <= {column for column, _ in parameters}


def _without_domain(
    right: Node,
    parameters: Items,
    base: Node,
    context: ColumnAllocator,
    pushdowns: Pushdowns,
    lax: bool,
    all_values: bool,
) -> tuple[Node, Expr]:
    """Free a subquery of its outer columns; returned with the condition by which it is joined to the left input.

    Args:
        pushdowns: Those so far; all tests that a mark is made of need the same one.
        lax: An aggregate of the whole subquery, without GROUP BY, may lack the row that it has of nothing.
        all_values: It must have no rows for values that are not in the left input.
    """
    if not parameters:
        return right, TRUE
    read = {c.id for _, expr in parameters for c in columns(expr)}
    values = Aggregate(narrow_plan(base, read), parameters, ())
    ours = tuple(column for column, _ in parameters)
    own = [] if all_values else _find_equal_exprs(right, ours)
    known = (id(base), parameters, tuple((id(leaf), *mine.items()) for leaf, mine in own))
    pushdown = pushdowns.setdefault(known, _DomainPushdown(context, values, ours, own))
    inner = pushdown.push(right, lax=lax)
    strict = bool(pushdown.own) and not pushdown.is_complete
    return inner, conjunction(_equal(expr, c, strict) for c, expr in parameters)


def _equal(a: Expr, b: Expr, strict: bool) -> Expr:
    return call("=", a, b) if strict else Call("<=>", (a, b), BOOLEAN, False)


@dataclass(slots=True)
class _DomainPushdown:
    """Replacement of the domain by `values`, or what equals them, where `domain_columns` come out of the subquery."""

    context: ColumnAllocator
    values: Node
    domain_columns: tuple[Column, ...]
    own: list[tuple[Node, Own]]
    is_complete: bool = False  # True if each value of the domain has a row, NULL too
    known: dict[tuple[int, bool, bool], tuple[Node, Node]] = field(default_factory=dict)

    def push(self, node: Node, out: bool = True, lax: bool = False) -> Node:
        """Push the domain down to its leaves, and replace it there; `out`: its columns come out of the plan as well."""
        key = id(node), out, lax
        if key not in self.known:
            self.known[key] = node, self._push(node, out, lax) if node.borrows else node
        return self.known[key][1]

    def _push(self, node: Node, out: bool, lax: bool) -> Node:
        more = tuple((c, c) for c in self.domain_columns) if out else ()
        match node:
            case Domain():
                return self.values
            case Join(Domain(), right, on):
                return self.join_leaf(node, self.push(right, out=False), on)
            case Filter(child) | Sort(child):
                return replace(node, child=self.push(child, out, lax))
            case TopN(child):
                each = (*node.partition, *(c for c, _ in more))
                return replace(node, child=self.push(child, out or self.reads_domain(node), lax), partition=each)
            case GroupingSets() if expanded := expand_grouping_sets(node, self.context):
                return self.push(expanded, out, lax)
            case Project(child, items):
                return Project(self.push(child, out or self.reads_domain(node), lax), (*items, *more))
            case Aggregate(child, (), aggs) if more and not lax:
                return self.complete_groups(child, node)
            case Aggregate(child, keys, aggs):
                return Aggregate(self.push(child, out or self.reads_domain(node)), (*keys, *more), aggs)
            case Repeat(child):
                grouped = self.push(child, out)
                assert isinstance(grouped, Aggregate)
                return replace(node, child=grouped)
            case WindowFunctions(child, functions):
                own = tuple((column, function.partition_by(self.domain_columns)) for column, function in functions)
                return WindowFunctions(self.push(child, lax=lax), own)
            case SessionWindow(child, partition):
                return replace(node, child=self.push(child, lax=lax), partition=(*partition, *self.domain_columns))
            case Join(left, right) | ConditionalJoin(left, right) if left.borrows:
                return replace(node, left=self.push(left, out, lax), right=self.push(right, out=False))
            case Union(children, output) | SetOperation(_, _, children, output):
                parts = tuple(
                    Project(self.push(child, out), (*((c, c) for c in child.output), *more)) for child in children
                )
                return replace(node, children=parts, columns=(*output, *(c for c, _ in more)))
        raise SquallError("SQ3001", "a correlated subquery of this form is not supported yet")

    def reads_domain(self, node: Node) -> bool:
        """True if a node reads the domain's columns, or a condition on the rows that it reads does."""
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
            if any(c in self.domain_columns for expr in read for c in columns(expr)):
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

    def join_leaf(self, leaf: Node, right: Node, on: Expr | None) -> Node:
        """Give FROM the domain's columns."""
        if not self.own:
            return Join(self.values, right, on)
        mine = next(mine for known, mine in self.own if known == leaf)
        plan = Project(right, (*((c, c) for c in right.output), *mine.items()))
        return Filter(plan, on) if on is not None else plan

    def complete_groups(self, child: Node, whole: Aggregate) -> Node:
        """Give an Aggregate without keys a row for each of the domain's values: a count of nothing is 0."""
        self.is_complete = True
        keys = {c: self.context.like(c) for c in self.domain_columns}
        aggs = tuple((as_nullable(self.context.like(c)), agg) for c, agg in whole.aggs)
        grouped = Aggregate(self.push(child), tuple((key, c) for c, key in keys.items()), aggs)
        pairs = zip(self.values.output, keys.values(), strict=True)
        plan = LeftJoin(self.values, grouped, conjunction(_equal(a, b, False) for a, b in pairs))
        items: list[tuple[Column, Expr]] = []
        for (column, agg), (found, _) in zip(whole.aggs, aggs, strict=True):
            found = as_nullable(found)
            zero = Literal(0, column.type)
            items.append((column, case([(call("is_null", found), zero)], found) if agg.function == "count" else found))
        items += zip(self.domain_columns, self.values.output, strict=True)
        return Project(plan, tuple(items))


def _find_equal_exprs(plan: Node, ours: tuple[Column, ...]) -> list[tuple[Node, Own]]:
    """Find, for each leaf of the domain, the expressions that its columns equal; empty if a leaf lacks some."""
    found: list[tuple[Node, Own]] = []
    for leaf, conditions in _leaves(plan):
        mine = _own_columns(leaf, conditions, ours)
        if any(known == leaf and len(own) == len(ours) for known, own in found):
            continue  # the same rows again, as the domain of a subquery of the query
        if len(mine) < len(ours):
            return []
        found.append((leaf, mine))
    alike = all(mine[c].type == found[0][1][c].type for _, mine in found for c in ours)
    return found if alike else []


def _own_columns(leaf: Node, conditions: tuple[Expr, ...], ours: tuple[Column, ...]) -> Own:
    if not isinstance(leaf, Join):
        return {}
    own, known = {c.id for c in leaf.right.output}, {c.id: c for c in ours}
    found: Own = {}
    for condition in conditions:
        match condition:
            case Call("=", (a, b)):
                for one, other in ((a, b), (b, a)):
                    column, read = uncast(one), {c.id for c in columns(other)}
                    if isinstance(column, Column) and column.id in known and read and read <= own:
                        found.setdefault(known[column.id], other)
    return found


def _leaves(node: Node, above: tuple[Expr, ...] = ()) -> Iterator[tuple[Node, tuple[Expr, ...]]]:
    """Yield the leaves of the domain, each joined to FROM, with the conditions there, from before it is grouped."""
    if not node.borrows:
        return
    match node:
        case Domain():
            yield node, ()
        case Join(Domain(), right, on):
            yield node, (*(conjuncts(on) if on is not None else ()), *above)
            yield from _leaves(right)
        case Filter(child, predicate):
            yield from _leaves(child, (*conjuncts(predicate), *above))
        case Sort(child):
            yield from _leaves(child, above)
        case Join(left, right) | ConditionalJoin(left, right):
            yield from _leaves(left, above)
            yield from _leaves(right)
        case _:
            for child in node.inputs:
                yield from _leaves(child)
