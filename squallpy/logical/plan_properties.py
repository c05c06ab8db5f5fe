"""Cardinality and unique keys of a query, derived from its plan while it is bound."""

from collections.abc import Set
from dataclasses import replace

from squallpy.base.errors import Span, SquallError
from squallpy.base.types import BOOLEAN, VARCHAR
from squallpy.logical.apply import Apply, ApplyKind, Domain
from squallpy.logical.bind.context import Context
from squallpy.logical.expression_builders import case
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
    substitute,
    uncast,
)
from squallpy.logical.nodes import (
    Aggregate,
    AntiJoin,
    ConditionalJoin,
    Filter,
    Join,
    LeftJoin,
    Node,
    Project,
    Repeat,
    Scan,
    SemiJoin,
    SetOperation,
    Sort,
    TopN,
    Window,
    WindowFunctions,
    nodes,
)
from squallpy.logical.null_folding import fold_nulls

MOST_OPERATORS = 10_000
"""The largest plan that is compiled, not counting an operator again that is read twice."""


def has_row(node: Node) -> bool:
    """True if a query always has a row, as an aggregate without GROUP BY or HAVING."""
    match node:
        case Domain() | Aggregate(_, ()):
            return True
        case Project(child) | Sort(child) | LeftJoin(child) | WindowFunctions(child):
            return has_row(child)
        case Apply(left, kind=kind):
            return kind.keeps_rows and has_row(left)
        case Join(left, right, None):
            return has_row(left) and has_row(right)
    return False


def has_one_row(node: Node, fixed: frozenset[int], declared: bool = False) -> bool:
    """True if a query has at most one row for each value of some columns, by id: those of the outer query.

    SELECT SUM(x) FROM s WHERE s.k = r.k GROUP BY s.k   →   yes: r.k is of the outer query, hence s.k has one value

    `declared`: rely on PRIMARY KEYs.
    """
    match node:
        case Domain() | Aggregate(_, ()):
            return True
        case Scan() if declared:
            key = _primary_key(node)
            return bool(key) and {c.id for c in key} <= fixed
        case Filter(child, predicate):
            return has_one_row(child, add_equal_columns(fixed, conjuncts(predicate)), declared)
        case Project(child, items):
            return has_one_row(child, fixed | _inputs_of(items, fixed), declared)
        case Aggregate(child, keys, _):
            below = add_equal_columns(fixed | _inputs_of(keys, fixed), conditions_of(child))
            return all(_is_fixed(expr, below) for _, expr in keys) or has_one_row(child, below, declared)
        case TopN(child, partition=partition):
            is_first = node.is_first_row and all(_is_fixed(expr, fixed) for expr in partition)
            return is_first or has_one_row(child, fixed, declared)
        case SetOperation():
            return not node.all and node.ids <= fixed
        case LeftJoin(left, right, on) | Join(left, right, on):
            met = conjuncts(on) if on is not None else ()
            mine = fixed if isinstance(node, LeftJoin) else add_equal_columns(fixed, met)
            theirs = add_equal_columns(mine | {c.id for c in left.output}, met)
            return has_one_row(left, mine, declared) and has_one_row(right, theirs, declared)
        case Apply(left, right, kind, parameters, on) if kind.makes_pairs:
            given = {c.id for c in (*left.output, *(column for column, _ in parameters))}
            theirs = add_equal_columns(fixed | given, conjuncts(on))
            return has_one_row(left, fixed, declared) and has_one_row(right, theirs, declared)
        case Repeat(Aggregate(_, keys), _, number) if number is not None:
            return number.id in fixed and all(column.id in fixed for column, _ in keys)
        case ConditionalJoin(left) | Apply(left) | Sort(left) | Window(left) | WindowFunctions(left):
            return has_one_row(left, fixed, declared)
    return False


def _primary_key(scan: Scan) -> tuple[Column, ...]:
    """List the columns of a declared PRIMARY KEY."""
    names = {name.lower() for name in scan.relation.primary_key}
    return tuple(c for f, c in zip(scan.relation.fields, scan.columns, strict=True) if f.name.lower() in names)


def unique_columns(node: Node, declared: bool = False, held: tuple[Expr, ...] = ()) -> tuple[Column, ...] | None:
    """Find columns that identify a query's rows; None if its output lacks them.

    orders JOIN customers ON orders.customer = customers.id   →   orders.id: each order has at most one customer

    Args:
        declared: Rely on PRIMARY KEYs.
        held: Predicates that are TRUE of the rows.
    """
    found: tuple[Column, ...] | None = None
    match node:
        case Domain():
            return ()
        case Scan():
            found = (_primary_key(node) or None) if declared else None
        case Aggregate(_, keys):
            found = tuple(column for column, _ in keys)
        case SetOperation(_, False, _, columns):
            found = columns
        case TopN(child, partition=partition):
            each = tuple(expr for expr in partition if isinstance(expr, Column))
            is_key = node.is_first_row and len(each) == len(partition)
            found = each if is_key else unique_columns(child, declared, held)
        case Repeat(Aggregate(_, keys), _, number) if number is not None:
            found = (*(column for column, _ in keys), number)
        case Filter(child, predicate):
            found = unique_columns(child, declared, (*held, *conjuncts(predicate)))
        case Sort(child) | Window(child) | WindowFunctions(child) | SemiJoin(child) | AntiJoin(child):
            found = unique_columns(child, declared, held)
        case Apply(left, kind=kind) if not kind.makes_pairs:
            found = unique_columns(left, declared, held)
        case Join() | LeftJoin() | Apply():
            found = _unique_of_pairs(node, declared, held)
        case Project(child, items):
            names = {expr.id: column for column, expr in reversed(items) if isinstance(expr, Column)}
            inner = unique_columns(child, declared)
            known = [names.get(c.id) for c in inner] if inner is not None else [None]
            return tuple(c for c in known if c) if all(known) else None
    own = {c.id: c for c in node.output}
    return None if found is None or any(c.id not in own for c in found) else tuple(own[c.id] for c in found)


def _unique_of_pairs(
    node: Join | LeftJoin | Apply, declared: bool, held: tuple[Expr, ...]
) -> tuple[Column, ...] | None:
    """List the unique columns of a join: of one side where each of its rows has one match at most, else of both."""
    left, right, given = node.left, node.right, {c.id for c in node.left.output}
    is_outer = isinstance(node, LeftJoin) or (isinstance(node, Apply) and node.kind is ApplyKind.LEFT)
    conditions = (*held, *(conjuncts(node.on) if node.on is not None else ()))
    left_key, right_key = (
        unique_columns(left, declared, held if is_outer else conditions),
        unique_columns(right, declared, conditions),
    )
    if isinstance(node, Apply):
        given |= {column.id for column, _ in node.parameters}
    if left_key is not None and has_one_row(right, add_equal_columns(given, conditions), declared):
        return left_key
    one_sided = is_outer or isinstance(node, Apply)
    if (
        right_key is not None
        and not one_sided
        and has_one_row(left, add_equal_columns({c.id for c in right.output}, conditions), declared)
    ):
        return right_key
    return None if left_key is None or right_key is None else (*left_key, *right_key)


def _inputs_of(items: tuple[tuple[Column, Expr], ...], fixed: frozenset[int]) -> frozenset[int]:
    """Find the inputs of columns that have one value."""
    return frozenset(expr.id for column, expr in items if column.id in fixed and isinstance(expr, Column))


def conditions_of(node: Node) -> tuple[Expr, ...]:
    """List the predicates that are TRUE of every row of FROM and WHERE."""
    match node:
        case Filter(child, predicate):
            return (*conjuncts(predicate), *conditions_of(child))
        case Join(left, right, on):
            return (*(conjuncts(on) if on is not None else ()), *conditions_of(left), *conditions_of(right))
        case Apply(left, kind=ApplyKind.CROSS, on=on):
            return (*conjuncts(on), *conditions_of(left))
        case ConditionalJoin(left) | Apply(left) | WindowFunctions(left):
            return conditions_of(left)
    return ()


def add_equal_columns(fixed: Set[int], conditions: tuple[Expr, ...]) -> frozenset[int]:
    """Add the columns that equal an expression with one value."""
    fixed, before = frozenset(fixed), None
    while before != fixed:
        before = fixed
        for condition in conditions:
            match condition:
                case Call("=" | "<=>", (a, b)):
                    sides = ((uncast(a), b), (uncast(b), a))
                    fixed |= {c.id for c, other in sides if isinstance(c, Column) and _is_fixed(other, fixed)}
    return fixed


def _is_fixed(expr: Expr, fixed: frozenset[int]) -> bool:
    return all(c.id in fixed for c in columns(expr))


def values_of_empty(node: Node) -> dict[int, Expr] | None:
    """Compute the columns of an aggregate without GROUP BY over empty input.

    They are NULL where HAVING then removes the row; None for a query that need not have a row.
    """
    found = _row_of_empty(node)
    if found is None:
        return None
    values, having = found
    if having == TRUE:
        return values
    is_outer = having in (FALSE, Literal(None, BOOLEAN))
    nothing: dict[int, Expr] = {c: Literal(None, v.type) for c, v in values.items()}
    return nothing if is_outer else {c: case([(having, v)], nothing[c]) for c, v in values.items()}


def check_size(plan: Node, span: Span | None = None) -> None:
    """Raise SQ3001, at `span`, for a plan that is so large that it would be compiled for minutes."""
    if plan.size > MOST_OPERATORS and (operators := sum(1 for _ in nodes(plan))) > MOST_OPERATORS:
        message = f"a query of {operators:,} operators is not supported, {MOST_OPERATORS:,} are the most"
        hint = "a view counts wherever it is read, and a subquery repeats what it is correlated with"
        raise SquallError("SQ3001", message, span, hint)


def value_of_nothing(plan: Node, value: Column) -> Expr | None:
    """Tell the value of a scalar subquery that aggregates no row; None if it need not have a row then."""
    nothing = values_of_empty(plan)
    return None if nothing is None else fold_nulls(nothing[value.id])


def _row_of_empty(node: Node) -> tuple[dict[int, Expr], Expr] | None:
    """Compute the columns of the row, and the condition that it exists."""
    match node:
        case Project(child, items) if found := _row_of_empty(child):
            values, having = found
            return {c.id: substitute(expr, values) for c, expr in items}, having
        case Filter(child, predicate) if found := _row_of_empty(child):
            values, having = found
            return values, fold_nulls(conjunction([having, substitute(predicate, values)]))
        case Sort(child):
            return _row_of_empty(child)
        case Aggregate(_, (), aggs):
            return {c.id: Literal(0 if agg.function == "count" else None, c.type) for c, agg in aggs}, TRUE
        case Join(left, _, None) | LeftJoin(left) | Apply(left, outputs=(_, *_)):
            return _row_of_empty(left)
    return None


def without_having(ctx: Context, node: Node) -> Node:
    """Rewrite HAVING of an aggregate without GROUP BY: SELECT x … HAVING p → SELECT CASE WHEN p THEN x END …."""
    items = node.items if isinstance(node, Project) else tuple((c, c) for c in node.output)
    plan, having = _without_having(ctx, node.child if isinstance(node, Project) else node)
    if having == TRUE:
        return node
    shown = ((ctx.column(c.name, c.type, True), case([(having, expr)], Literal(None, c.type))) for c, expr in items)
    return Project(plan, tuple(shown))


def _without_having(ctx: Context, node: Node) -> tuple[Node, Expr]:
    """Split the plan from the condition of its HAVING."""
    match node:
        case Project(child, items):
            plan, kept = _without_having(ctx, child)
            if kept == TRUE:
                return node, TRUE
            having = ctx.column("having", BOOLEAN, True)
            return Project(plan, (*items, (having, kept))), having
        case Filter(child, predicate):
            plan, kept = _without_having(ctx, child)
            return plan, conjunction([kept, predicate])
        case Sort(child):
            return _without_having(ctx, child)
        case Join(left, _, None) | LeftJoin(left) | Apply(left, outputs=(_, *_)):
            plan, kept = _without_having(ctx, left)
            return replace(node, left=plan), kept
    return node, TRUE


def is_bare_null(plan: Node, column: Column) -> bool:
    """True if a query selects a bare NULL, which has any type."""
    return isinstance(plan, Project) and dict(plan.items)[column] == Literal(None, VARCHAR)
