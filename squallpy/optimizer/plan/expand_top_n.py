"""The first n rows in an order: the rows of a rank up to n, or the extreme values of the keys.

    Top 3 by k DESC of r   →   σ_{rank <= 3}(r with RANK() OVER (ORDER BY k DESC, key))

`key` is the list of GROUP BY. Without one, ties are broken by the PRIMARY KEYs of FROM, which data may violate, then
by the columns that are read; rows equal in all of these are repeated as often as the limit allows:

    →   Repeat least(rank - 1 + n, 3) - (rank - 1) times (Aggregate by x, rank: COUNT(*) n of σ_{rank <= 3}(…))
"""

from collections.abc import Sequence
from dataclasses import replace

from squallpy.base.errors import SquallError
from squallpy.base.types import BIGINT
from squallpy.frontend.unsupported import QUERIES
from squallpy.logical.aggregate_calls import Agg, OverClause, SortKey, SortKeys, WindowFunction
from squallpy.logical.column_allocator import ColumnAllocator
from squallpy.logical.expression_builders import call, case, not_distinct
from squallpy.logical.expressions import (
    FALSE,
    MIRRORED,
    Call,
    Column,
    Expr,
    Literal,
    as_nullable,
    columns,
    conjunction,
    conjuncts,
    disjunction,
    is_null,
)
from squallpy.logical.nodes import Aggregate, Filter, Join, LeftJoin, Node, Project, Repeat, TopN, WindowFunctions
from squallpy.logical.plan_properties import unique_columns
from squallpy.logical.shared_aggregates import Items
from squallpy.logical.total_order import MOST_KEYS, drop_redundant_keys, shorten, total_order

MOST_SHOWN = 6  # keys of an order without ties, each of which adds some products
MOST_EXTREMES = 4  # keys that are looked up one after the other


def expand_top_n(node: Node, new: ColumnAllocator) -> Node | None:
    """Replace first rows by those of a rank, or the value of one first row by aggregates of all rows."""
    match node:
        case Aggregate(Project(TopN() as top, items), keys, ((column, Agg("min", Column() as value)),)) if (
            top.is_first_row
        ):
            selected = dict(items)
            if {selected[key] for _, key in keys if isinstance(key, Column)} == {*top.partition}:
                by = tuple((c, selected[key]) for c, key in keys if isinstance(key, Column))
                return _first_value(top, selected[value], by, column, new)
        case Project(TopN() as top, items):
            return _first_rows(top, items, new)
        case TopN():
            return _first_rows(node, tuple((c, c) for c in node.output), new)
    return None


def _first_rows(top: TopN, items: Items, new: ColumnAllocator) -> Node:
    """Select `items` of the first rows."""
    if top.count == 0:
        return Project(Filter(top.child, FALSE), items)
    if (nearest := _nearest_row(top, items, new)) is not None:
        return nearest
    over = _write_over(top.partition, top.keys)
    last = None if top.count is None else Literal(top.offset + top.count, BIGINT)
    order = total_order(top.child, over.partition, over.order, is_extended=not top.with_ties)
    if top.with_ties or order is not None:
        over = over if order is None else replace(over, order=order)
        if len(over.order) > max(MOST_KEYS, len(top.keys)):
            raise _too_many_keys(top)
        rows, rank = _rank_rows(top.child, over, new)
        tests = [call("<=", rank, last)] if last else []
        tests += [call(">", rank, Literal(top.offset, BIGINT))] if top.offset else []
        return Project(Filter(rows, conjunction(tests)), items)
    over = _order_by_all(over, (*(unique_columns(top.child, declared=True) or ()), *(expr for _, expr in items)))
    if len(over.order) > MOST_SHOWN:
        raise _too_many_keys(top)
    rows, rank = _rank_rows(top.child, over, new)
    rows = Filter(rows, call("<=", rank, last)) if last else rows
    shown = {expr: new.column(c.name, c.type, c.nullable) for c, expr in items}
    hidden = [expr for expr in over.partition if expr not in shown]
    grouped = (*((c, e) for e, c in shown.items()), *new.copies(hidden))
    if top.count == 1 and not top.offset:
        return Project(Aggregate(rows, grouped, ()), tuple((c, shown[expr]) for c, expr in items))
    place, copies = new.column("rank", BIGINT, False), new.column("copies", BIGINT, False)
    before = call("-", place, Literal(1, BIGINT))
    end: Expr = call("+", before, copies)
    end = call("least", end, last) if last else end
    times = call("-", end, call("greatest", before, Literal(top.offset, BIGINT)))
    repeated = Repeat(Aggregate(rows, (*grouped, (place, rank)), ((copies, Agg("count", None)),)), times)
    return Project(repeated, tuple((c, shown[expr]) for c, expr in items))


def _nearest_row(top: TopN, items: Items, new: ColumnAllocator) -> Node | None:
    """Select `items` of a first row by the value that finds it; None unless the order is by what is compared.

    Top 1 by s.t DESC for each k, t of σ_{s.k = k ∧ s.t <= t}(d × s)
    →   d ⋈ (Aggregate by k, t: MAX(s.t) best of σ(d × s)) ⋈_{s.k = k ∧ s.t = best} (Top 1 for each k, t of s)

    So rows of s are ranked among those with one k and t, not among all that a row of d is compared with. d has each k
    and t once.
    """
    match top:
        case TopN(Filter(Join(Aggregate() as asking, rows, None), predicate), keys, 1, 0, False, partition) if (
            keys and frozenset(partition) == (known := frozenset(asking.output))
        ):
            found = frozenset(rows.output)
        case _:
            return None
    equal, own, compared = list[tuple[Expr, Expr]](), list[Expr](), list[Expr]()
    for test in conjuncts(predicate):
        if columns(test) <= found:
            own.append(test)
        elif not columns(test) <= known:
            sides = test.args if isinstance(test, Call) and test.name in MIRRORED else ()
            theirs = next((each for each in sides if columns(each) and columns(each) <= found), None)
            ours = next((each for each in sides if columns(each) <= known), None)
            if not isinstance(test, Call) or theirs is None or ours is None or test.name == "<>":
                return None
            if test.name == "=":
                equal.append((ours, theirs))
            else:
                compared.append(theirs)
    value, *_ = first = keys[0]
    read = [*(expr for expr, _, _ in keys), *(expr for _, expr in items)]
    if compared != [value] or any(not columns(each) <= found and not columns(each) <= known for each in read):
        return None
    held = {expr: new.column(c.name, c.type, c.nullable) for c, expr in items if columns(expr) <= found}
    held |= {expr: new.column("key", expr.type, True) for expr in (*(t for _, t in equal), value) if expr not in held}
    chosen = TopN(
        Filter(rows, conjunction(own)) if own else rows,
        tuple(key for key in keys[1:] if columns(key[0]) <= found),
        1,
        partition=(*(theirs for _, theirs in equal), value),
        clause=top.clause,
        span=top.span,
    )
    mine, best = new.copies(partition), new.column("best", value.type, True)
    extreme = _extreme(top.child, mine, first, best, new)
    nearest = Join(asking, extreme, conjunction(not_distinct(expr, c) for c, expr in mine))
    on = [call("=", ours, held[theirs]) for ours, theirs in equal]
    joined = Join(
        nearest,
        _first_rows(chosen, tuple((c, expr) for expr, c in held.items()), new),
        conjunction((*on, call("=", best, held[value]))),
    )
    return Project(joined, tuple((c, held.get(expr, expr)) for c, expr in items))


def _write_over(partition: tuple[Expr, ...], order: SortKeys) -> OverClause:
    """Write OVER without keys that decide nothing."""
    partition = tuple(dict.fromkeys(expr for expr in partition if columns(expr)))
    return OverClause(partition, drop_redundant_keys(partition, order))


def _order_by_all(over: OverClause, shown: Sequence[Expr]) -> OverClause:
    """Extend the order by all output columns, so that rows which still tie are equal."""
    longer = _write_over(over.partition, (*over.order, *((expr, False, True) for expr in shown)))
    return replace(longer, order=shorten(longer.order, len(over.order), MOST_SHOWN))


def _rank_rows(rows: Node, over: OverClause, new: ColumnAllocator) -> tuple[Node, Column]:
    """Rank rows; returned with the column of the rank."""
    rank = new.column("rank", BIGINT, True)
    return WindowFunctions(rows, ((rank, WindowFunction("RANK", over)),)), rank


def _too_many_keys(top: TopN) -> SquallError:
    construct = QUERIES[top.clause]
    return SquallError("SQ3001", f"{construct.name} is not supported yet", top.span, construct.hint)


def _first_value(top: TopN, value: Expr, by: Items, column: Column, new: ColumnAllocator) -> Node | None:
    """Aggregate all rows to the value of a first one, None if ranks are better.

    MIN(x) of Top 1 by k DESC of r   →   MIN(x) of (r ⋈_{k <=> m} (Aggregate: MAX(k) m of r))

    Of several keys each is the extreme among the rows with the extremes of the keys before it; keys after the value
    itself have no effect. Ties: the smallest value that is not NULL is returned.

    Args:
        by: Columns for the expressions of the partition.
        column: The column of the value.
    """
    exprs = [expr for expr, _, _ in top.keys]
    place = exprs.index(value) if value in exprs else len(exprs)
    rows, deciding = top.child, top.keys[:place]
    if top.offset:
        return None if deciding or not exprs else _later_value(top, by, column, new)
    if len(deciding) > MOST_EXTREMES:
        ranked, rank = _rank_rows(rows, _write_over(top.partition, deciding), new)
        rows = Filter(ranked, call("=", rank, Literal(1, BIGINT)))
    else:
        for key in deciding:
            mine, best = new.copies(top.partition), new.column("best", key[0].type, True)
            on = [not_distinct(expr, c) for c, expr in ((*mine, (best, key[0])))]
            rows = Join(rows, _extreme(rows, mine, key, best, new), conjunction(on))
    if place < len(exprs):
        return _extreme(rows, by, top.keys[place], column, new)
    return Aggregate(rows, by, ((column, Agg("min", value)),))


def _extreme(rows: Node, by: Items, key: SortKey, column: Column, new: ColumnAllocator) -> Node:
    """Aggregate the first value of a key: NULL, where NULLs come first and there is one."""
    value, descending, nulls_first = key
    function = "max" if descending else "min"
    if not (nulls_first and value.nullable):
        return Aggregate(rows, by, ((column, Agg(function, value)),))
    best = new.column(column.name, value.type, True)
    every, present = (new.column(name, BIGINT, False) for name in ("rows", "values"))
    aggs = (best, Agg(function, value)), (every, Agg("count", None)), (present, Agg("count", value))
    shown = case([(call("=", every, present), best)], Literal(None, value.type))
    return Project(Aggregate(rows, by, aggs), (*((c, c) for c, _ in by), (column, shown)))


def _later_value(top: TopN, by: Items, column: Column, new: ColumnAllocator) -> Node:
    """Aggregate the best value that more than `offset` rows are no worse than.

    MIN(x) of Top 1 offset 2 by x DESC of r
    →   MAX(x) of (r ⋈_{x = y ∧ n > 2} (Aggregate by y: COUNT(*) n of (Aggregate by y := x of r) ⋈_{x >= y} r))
    """
    (value, descending, nulls_first), *_ = top.keys
    rows, offset = top.child, Literal(top.offset, BIGINT)
    mine, count = new.copies((*top.partition, value)), new.column("n", BIGINT, False)
    (other, _), nulls_count = mine[-1], new.column("nulls", BIGINT, False)
    is_before: Expr = call(">=" if descending else "<=", value, other)
    if nulls_first and value.nullable:
        is_before = disjunction((is_before, is_null(value)))
    same = [not_distinct(expr, c) for c, expr in mine[:-1]]
    pairs = Join(Aggregate(rows, mine, ()), rows, conjunction((*same, is_before)))
    found = new.copies(c for c, _ in mine)
    counts = Aggregate(pairs, found, ((count, Agg("count", None)),))
    on = [not_distinct(expr, c) for (c, _), (_, expr) in zip(found, mine, strict=True)]
    rows = Join(rows, counts, conjunction((*on, call(">", count, offset))))
    if nulls_first and value.nullable:
        keys = new.copies(top.partition)
        nulls = Aggregate(Filter(top.child, is_null(value)), keys, ((nulls_count, Agg("count", None)),))
        on = [not_distinct(expr, c) for c, expr in keys]
        shown = as_nullable(nulls_count)
        rows = Filter(LeftJoin(rows, nulls, conjunction(on)), disjunction((is_null(shown), call("<=", shown, offset))))
    return Aggregate(rows, by, ((column, Agg("max" if descending else "min", value)),))
