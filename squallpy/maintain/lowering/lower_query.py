"""Logical plans → ring calculus: each query as one view, and how its rows are printed.

    Project(Aggregate(Filter(Join(Scan, Scan))))   →   Q(keys) = Sum_[keys](R ⋈ S ⋈ predicates ⋈ ⟨1, …⟩)  +  OutputSpec

Equalities between two atoms become shared variables (computed ones where a side is an expression); lane 0 is the
count of rows, which is 0 if a group does not exist. An Aggregate below the top one becomes an *auxiliary relation* of
its rows, which the rest of the query joins like any other; queries share those that are equal.
"""

from collections.abc import Iterator, Sequence

from squallpy.logical.constant_folding import Evaluate
from squallpy.logical.expressions import Column, Expr, conjunction, substitute
from squallpy.logical.nodes import Aggregate, Filter, Limit, Node, Project, Query, Repeat, Sort
from squallpy.maintain.lowering.block import fold_with
from squallpy.maintain.lowering.sum_of_blocks import SumOfBlocks
from squallpy.maintain.lowering.views import group_view
from squallpy.optimizer.plan.groupjoin import EmptyGroups
from squallpy.program.output_spec import OutputSpec
from squallpy.program.trigger_program import Lowered, result_name
from squallpy.program.views import View

Order = tuple[tuple[Expr, bool, bool], ...]
Items = tuple[tuple[str, Expr], ...]
Finished = tuple[Expr | None, Items, Order]  # HAVING, SELECT list, ORDER BY


def lower(
    queries: Sequence[Query], ids: Iterator[int], evaluate: Evaluate | None, empty_groups: EmptyGroups, iterations: int
) -> Lowered:
    """Lower bound queries to views of the ring calculus, not yet materialised, and the `OutputSpec` that prints each.

    Args:
        ids: Ids for new columns.
        evaluate: Computes expressions that read no column once rows of constants are joined, if it is given.
        empty_groups: The values of groups that have no row, as passes have learned them.
        iterations: The most that a recursive query may take.
    """
    blocks = SumOfBlocks(ids, fold_with(evaluate, empty_groups), iterations)
    names = (result_name(number, len(queries)) for number in range(1, len(queries) + 1))
    lowered = [_lower(query, name, blocks) for query, name in zip(queries, names, strict=True)]
    views, outputs = zip(*lowered, strict=True)
    numbers = tuple(range(len(views)))
    return Lowered(views, outputs, numbers, tuple(blocks.relations.values()), tuple(blocks.auxiliary.relations))


def _lower(query: Query, name: str, blocks: SumOfBlocks) -> tuple[View, OutputSpec]:
    node = query.plan
    limit, offset = None, 0
    if isinstance(node, Limit):
        limit, offset, node = node.count, node.offset, node.child
    above = _chain(node)
    bottom = above[-1].inputs[0] if above else node
    grouped, times = bottom, None
    if isinstance(bottom, Repeat) and bottom.number is None:
        grouped, times = bottom.child, bottom.times
    if isinstance(grouped, Aggregate) and not any(agg.extreme for _, agg in grouped.aggs):
        view, printed, measures = group_view(name, grouped, blocks.of(grouped.child), blocks.ids)
        having, items, order = _finish(above, query.names, printed, node)
        single, times = not grouped.keys, times and substitute(times, printed)
        output = OutputSpec(measures, having, items, order, limit, offset, repeat=False, single=single, times=times)
    else:
        view, items, order = _bag(name, bottom, _finish(above, query.names, {}, node), blocks)
        output = OutputSpec((), None, items, order, limit, offset, repeat=True, single=False)
    return view, output


def _bag(title: str, child: Node, finished: Finished, blocks: SumOfBlocks) -> tuple[View, Items, Order]:
    """Lower a query without aggregates: every printed and every ordering expression is a key of a bag of rows."""
    having, items, order = finished
    keys: dict[Expr, Column] = {}
    for name, expr in (*items, *((str(expr), expr) for expr, _, _ in order)):
        keys.setdefault(expr, Column(next(blocks.ids), name, expr.type, expr.nullable))
    rows = child if having is None else Filter(child, having)
    every = Aggregate(rows, tuple((c, expr) for expr, c in keys.items()), ())
    view, printed, _ = group_view(title, every, blocks.of(rows), blocks.ids)
    found = {expr: printed[column.id] for expr, column in keys.items()}
    shown = tuple((name, found[expr]) for name, expr in items)
    return view, shown, tuple((found[expr], down, nulls) for expr, down, nulls in order)


def _chain(node: Node) -> list[Node]:
    """List the projections, filters and sorts on top of a plan, top first."""
    above: list[Node] = []
    while isinstance(node, Project | Filter | Sort):
        above.append(node)
        node = node.child
    return above


def _finish(post: list[Node], names: tuple[str, ...], printed: dict[int, Expr], node: Node) -> Finished:
    """Write HAVING, the SELECT list and ORDER BY in terms of the view's keys and measures."""
    mapping: dict[int, Expr] = dict(printed)
    having: list[Expr] = []
    order: Order = ()
    for operator in reversed(post):
        match operator:
            case Filter(_, predicate):
                having.append(substitute(predicate, mapping))
            case Project(_, items):
                mapping |= {column.id: substitute(expr, mapping) for column, expr in items}
            case Sort(_, keys):
                order = tuple((substitute(expr, mapping), down, nulls) for expr, down, nulls in keys)
    selected = tuple((name, mapping.get(c.id, c)) for name, c in zip(names, node.output, strict=True))
    return conjunction(having) if having else None, selected, order
