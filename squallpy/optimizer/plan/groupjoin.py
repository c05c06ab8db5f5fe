"""Groupjoin: an outer join with an aggregate grouped by the join columns, as one product.

    L ⟕_{l = k} Aggregate by k of R   →   L ⋈_{l <=> k} Aggregate by k of (L's values of l ∪ R)

As a sum an outer join would be three products (the matches, plus all rows of L, minus those with a match), and k outer
joins 3^k. So the aggregate has a group for each value of l as well, with the values of an empty group if R has no rows
for it. The values of l come from the smallest input that has all of them, and perhaps more: such a group joins nothing.
"""

from collections.abc import Iterator
from dataclasses import replace

from squallpy.base.records import dataclass
from squallpy.base.types import BIGINT, BOOLEAN
from squallpy.logical.aggregate_calls import Agg
from squallpy.logical.containment import values_within
from squallpy.logical.expression_builders import call
from squallpy.logical.expressions import (
    FALSE,
    TRUE,
    Call,
    Case,
    Column,
    Expr,
    Literal,
    as_nullable,
    columns,
    conjunction,
    conjuncts,
    not_null,
    substitute,
    transform,
    uncast,
)
from squallpy.logical.nodes import Aggregate, ConditionalJoin, Filter, Join, LeftJoin, Node, Project, Scan, Union, nodes
from squallpy.logical.null_folding import fold_nulls

Rows = tuple[Node, tuple[Expr, ...]]  # an input, and expressions over its rows
EmptyGroups = dict[int, dict[int, Expr]]  # by the column that counts rows: the values of other columns where it is 0


@dataclass(frozen=True, slots=True)
class Pair:
    """A comparison of the left input's value `left` with a key: `right` over the grouped rows, `column` of both."""

    strict: bool  # a NULL equals nothing
    left: Expr
    right: Expr
    column: Column


def groupjoin(join: Node, ids: Iterator[int], empty_groups: EmptyGroups) -> Node | None:
    """Replace an outer join with an aggregate by the columns that it is joined on by an inner join.

    Args:
        empty_groups: Learns the values of groups that have no row, by the column that counts the rows of a group.
    """
    if not isinstance(join, LeftJoin):
        return None
    below = _find_aggregate(join.right)
    if below is None:
        return None
    aggregate, shown, predicates = below
    keys = {c.id: expr for c, expr in aggregate.keys if columns(expr)}
    pairs: dict[int, Pair] = {}
    rest = [c for c in conjuncts(predicates) if c != TRUE]
    for conjunct in conjuncts(substitute(join.on, shown)):
        id, pair = _match_pair(conjunct, join.left, keys, ids) or (-1, None)
        if pair is None or id in pairs:
            rest.append(conjunct)
        else:
            pairs[id] = pair
    if pairs.keys() != keys.keys():
        return None
    if not rest and _has_all_groups(join.left, aggregate, tuple(pairs.values())):
        return _inner_join(join, aggregate, pairs, shown)

    found = Column(next(ids), "found", BIGINT, False)
    aggs = {c.id: replace(c, id=next(ids), nullable=agg.function != "count") for c, agg in aggregate.aggs}
    new = {c.id: expr for c, expr in aggregate.keys} | {id: pair.column for id, pair in pairs.items()} | aggs
    measures = tuple((aggs[c.id], agg) for c, agg in aggregate.aggs)
    if aggregate.keys:  # without any there is a row always
        measures, rest = (*measures, (found, Agg("count", None))), [call(">", found, Literal(0, BIGINT)), *rest]
    there = conjunction(substitute(c, new) for c in rest if c != TRUE)
    plain = {c.id for c in aggs.values() if c.nullable} if len(rest) == 1 and aggregate.keys else set[int]()

    def value(column: Column) -> Expr:
        expr = substitute(shown.get(column.id, column), new)
        if there == TRUE or (isinstance(expr, Column) and expr.id in plain):
            return expr
        return Case(((there, expr),), Literal(None, column.type), column.type)

    grouped = replace(aggregate, aggs=measures)
    grouping = groups(join.left, grouped, tuple(pairs.values()), ids) if pairs else replace(grouped, keys=())
    on = conjunction(Call("<=>", (p.left, p.column), BOOLEAN, False) for p in pairs.values()) if pairs else None
    items = ((as_nullable(c), value(c)) for c in join.right.output)
    nothing: dict[int, Expr] = {c.id: Literal(None if c.nullable else 0, c.type) for c in aggs.values()}
    empty_groups[found.id] = nothing
    return Project(Join(join.left, grouping, on), (*((c, c) for c in join.left.output), *items))


def _has_all_groups(left: Node, aggregate: Aggregate, pairs: tuple[Pair, ...]) -> bool:
    """True if each value of `left` has a group, as in l ⟕ Aggregate of l, or of more than l."""
    here, there = tuple(pair.left for pair in pairs), tuple(pair.right for pair in pairs)
    if not pairs or any(pair.strict and pair.left.nullable for pair in pairs):
        return False
    return all(values_within(node, exprs, aggregate.child, there) for node, exprs in values(left, here))


def _inner_join(join: LeftJoin, aggregate: Aggregate, pairs: dict[int, Pair], shown: dict[int, Expr]) -> Node:
    """Make the inner join that an outer join is if no group is missing."""
    groups = replace(aggregate, keys=tuple((pair.column, pair.right) for pair in pairs.values()))
    same = conjunction(Call("<=>", (pair.left, pair.column), BOOLEAN, False) for pair in pairs.values())
    names: dict[int, Expr] = {id: pair.column for id, pair in pairs.items()}
    items = ((as_nullable(c), substitute(shown.get(c.id, c), names)) for c in join.right.output)
    return Project(Join(join.left, groups, same), (*((c, c) for c in join.left.output), *items))


def without_case(expr: Expr, nothing: EmptyGroups) -> Expr:
    """Drop a redundant CASE: CASE WHEN found > 0 THEN COALESCE(sum, 0) ELSE 0 END → COALESCE(sum, 0)"""

    def rule(expr: Expr) -> Expr | None:
        match expr:
            case Case(((Call(">", (Column(found), Literal(0))), value),), otherwise) if found in nothing:
                return value if fold_nulls(substitute(value, nothing[found])) == otherwise else None
        return None

    return transform(expr, rule) if nothing else expr


def _find_aggregate(node: Node) -> tuple[Aggregate, dict[int, Expr], Expr] | None:
    """Find the Aggregate below projections and filters, with the columns above it in its terms and the filters'
    conjunction."""
    match node:
        case Aggregate():
            return node, {}, TRUE
        case Project(child, items) if below := _find_aggregate(child):
            aggregate, shown, predicates = below
            return aggregate, shown | {c.id: substitute(expr, shown) for c, expr in items}, predicates
        case Filter(child, predicate) if below := _find_aggregate(child):
            aggregate, shown, predicates = below
            return aggregate, shown, conjunction((predicates, substitute(predicate, shown)))
    return None


def _match_pair(conjunct: Expr, left: Node, keys: dict[int, Expr], ids: Iterator[int]) -> tuple[int, Pair] | None:
    """Find the key that a conjunct equates with an expression over `left`."""
    match conjunct:
        case Call("=" | "<=>" as name, (a, b)) if a.type == b.type:
            ours = {c.id for c in left.output}
            for here, there in ((a, b), (b, a)):
                key = uncast(there)
                if isinstance(key, Column) and key.id in keys and {c.id for c in columns(here)} <= ours:
                    column = Column(next(ids), key.name, here.type, here.nullable or there.nullable)
                    return key.id, Pair(name == "=", here, substitute(there, keys), column)
    return None


def groups(left: Node, aggregate: Aggregate, pairs: tuple[Pair, ...], ids: Iterator[int]) -> Aggregate:
    """Extend an aggregate by a group for each value of `left`, whose added rows count for nothing."""
    there = tuple(pair.right for pair in pairs)
    args = (*dict.fromkeys(arg for _, agg in aggregate.aggs for arg in agg.args), TRUE)
    not_null_test = conjunction(not_null(pair.right) for pair in pairs if pair.strict and pair.right.nullable)
    rows = aggregate.child if not_null_test == TRUE else Filter(aggregate.child, not_null_test)
    nothing = tuple(Literal(None, arg.type) for arg in args)
    parts: list[Rows] = [(rows, (*there, *args))]
    parts += [(node, (*here, *nothing)) for node, here in values(left, tuple(pair.left for pair in pairs))]

    def column(like: Expr) -> Column:
        return Column(next(ids), "x", like.type, True)

    # NB: the equated column may have another type with the same values, BIGINT for INT
    inputs = (
        Project(node, tuple((column(like), expr) for like, expr in zip(parts[0][1], exprs, strict=True)))
        for node, exprs in parts
    )
    every = Union(tuple(inputs), tuple(column(expr) for expr in (*there, *args)))
    given = dict(zip(args, every.columns[len(there) :], strict=True))
    keys = ((pair.column, column) for pair, column in zip(pairs, every.columns, strict=False))
    aggs = ((c, agg if agg.arg else replace(agg, arg=TRUE)) for c, agg in aggregate.aggs)
    aggs = ((c, agg.with_args(given[arg] for arg in agg.args)) for c, agg in aggs)
    return Aggregate(every, tuple(keys), tuple(aggs))


def values(plan: Node, exprs: tuple[Expr, ...]) -> Iterator[Rows]:
    """Yield the least inputs of a plan that have all values that some expressions have in it, perhaps more.

    Constants that several inputs have, as outer joins have NULLs, are those of a single row that is always there.
    """
    constants = list[Rows]()
    for node, over in _values(plan, exprs):
        if any(map(columns, over)):
            yield node, over
        else:
            constants.append((node, over))
    for over in dict.fromkeys(over for _, over in constants):
        alike = [node for node, of in constants if of == over]
        yield alike[0] if len(alike) == 1 else _row(alike[0]), over


def _row(plan: Node) -> Node:
    """Make a plan of one row without columns: an aggregate over none of the rows of a scan."""
    scan = next(node for node in nodes(plan) if isinstance(node, Scan))
    return Aggregate(Filter(scan, FALSE), (), ())


def _values(node: Node, exprs: tuple[Expr, ...]) -> Iterator[Rows]:
    read = {c.id for expr in exprs for c in columns(expr)}

    def over(mapping: dict[int, Expr]) -> tuple[Expr, ...]:
        return tuple(substitute(expr, mapping) for expr in exprs)

    match node:
        case Project(child, items):
            yield from _values(child, over({c.id: expr for c, expr in items if c.id in read}))
        case Aggregate(child, keys, aggs) if keys and read <= {c.id for c, _ in keys}:
            found = list(_values(child, over({c.id: expr for c, expr in keys})))
            yield from found if aggs or len(found) == 1 else [(node, exprs)]
        case Filter(child) if (found := list(_values(child, exprs))) != [(child, exprs)]:
            yield from found
        case Join(left) | ConditionalJoin(left) if read <= left.ids:
            yield from _values(left, exprs)
        case Join(_, right) if read <= right.ids:
            yield from _values(right, exprs)
        case LeftJoin(left, right) if read <= right.ids:
            yield from _values(right, over({c.id: c for c in right.output}))  # some may be NOT NULL now
            yield from _values(left, over({c.id: Literal(None, c.type) for c in right.output}))
        case Union(children, own):
            places = [(place, c.id) for place, c in enumerate(own) if c.id in read]
            for child in children:
                yield from _values(child, over({id: child.output[place] for place, id in places}))
        case _:
            yield node, exprs
