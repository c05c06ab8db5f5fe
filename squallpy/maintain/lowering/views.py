"""Aggregates over sums of blocks → views: keys, lanes, and one term for each block."""

from collections.abc import Iterator
from dataclasses import replace

from squallpy.functions.model_functions import degree_of
from squallpy.logical.expressions import Column, Expr
from squallpy.logical.factorised import Factorised
from squallpy.logical.nodes import Aggregate
from squallpy.maintain.lowering.aggregate_lanes import Lanes
from squallpy.maintain.lowering.block import SpjBlock
from squallpy.maintain.lowering.variables import Variables
from squallpy.program.calculus import lift
from squallpy.program.output_spec import Measure
from squallpy.program.views import View


def group_view(
    name: str, node: Aggregate, blocks: list[SpjBlock], ids: Iterator[int]
) -> tuple[View, dict[int, Expr], tuple[Measure, ...]]:
    """Lower an Aggregate over a sum of blocks to a view.

    Returns the view, its key variable for each key column by id, and the aggregates in terms of the view's lanes.
    """
    key_exprs = [[block.inline(expr) for _, expr in node.keys] for block in blocks]
    given = [[agg.arg and block.inline(agg.arg) for _, agg in node.aggs] for block in blocks]
    atoms = [
        Variables(block, (*exprs, *(arg for arg in args if arg is not None)), ids)
        for block, exprs, args in zip(blocks, key_exprs, given, strict=True)
    ]
    lanes = Lanes(atoms)
    keys = [
        [a.variable(column, expr) for (column, _), expr in zip(node.keys, exprs, strict=True)]
        for a, exprs in zip(atoms, key_exprs, strict=True)
    ]
    measures = [
        lanes.measure(column, agg, [args[number] for args in given]) for number, (column, agg) in enumerate(node.aggs)
    ]
    shared = _key_variables(keys, ids)
    printed: dict[int, Expr] = {column.id: v for (column, _), v in zip(node.keys, shared, strict=True)}
    return _view(name, shared, keys, atoms, lanes), printed, tuple(measures)


def factorised_view(
    name: str, node: Factorised, block: SpjBlock, ids: Iterator[int]
) -> tuple[View, dict[int, Expr], tuple[Column, ...]]:
    """Lower a Factorised over a block to a view of one lane, which lifts the features.

    Returns the view, its key variable for each key column by id, and the variables of the features. Features, and keys,
    that are equal in all rows have variables of their own.
    """
    given = [block.inline(c) for c in (*node.features, *node.keys)]
    variables = Variables(block, given, ids)
    mine = [variables.variable(c, expr) for c, expr in zip((*node.features, *node.keys), given, strict=True)]
    features, keys = (_distinct(some, ids) for some in (mine[: len(node.features)], mine[len(node.features) :]))
    lane = tuple(lift(v, number, degree_of(node.model)) for number, v in enumerate(features))
    term = variables.term(mine, [*features, *keys], (lane,))
    printed: dict[int, Expr] = {c.id: v for c, v in zip(node.keys, keys, strict=True)}
    return View(name, tuple(keys), (term,)), printed, tuple(features)


def _distinct(variables: list[Column], ids: Iterator[int]) -> list[Column]:
    """Replace variables that come again by new ones: [v, w, v] → [v, w, v′]"""
    repeats = [v in variables[:place] for place, v in enumerate(variables)]
    return [replace(v, id=next(ids)) if again else v for v, again in zip(variables, repeats, strict=True)]


def _view(name: str, shared: list[Column], keys: list[list[Column]], atoms: list[Variables], lanes: Lanes) -> View:
    """Sum up the contributions of the blocks."""
    terms = tuple(
        block.term(mine, shared, tuple(lane[number] for lane in lanes.all))
        for number, (mine, block) in enumerate(zip(keys, atoms, strict=True))
    )
    return View(name, tuple(dict.fromkeys(shared)), terms)


def _key_variables(keys: list[list[Column]], ids: Iterator[int]) -> list[Column]:
    """Choose the key variables of a view: those of its block, or new ones if several blocks have to agree."""
    if len(keys) == 1:
        return keys[0]
    return [Column(next(ids), k[0].name, k[0].type, any(v.nullable for v in k)) for k in zip(*keys, strict=True)]
