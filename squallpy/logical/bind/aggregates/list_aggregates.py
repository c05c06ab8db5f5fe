"""Lists that are made only to be spelled, counted or sorted, as what says so at once; lists of aggregates.

CONCAT_WS(', ', COLLECT_SET(x)), ARRAY_JOIN(SORT_ARRAY(ARRAY_AGG(x)), ', ')   →   LISTAGG(DISTINCT x, ', '), …
SIZE(COLLECT_SET(x))                                                          →   COUNT(DISTINCT x)
PERCENTILE(x, ARRAY(0.5, 0.9))                                 →   ARRAY(PERCENTILE(x, 0.5), PERCENTILE(x, 0.9))
"""

from sqlglot import exp

from squallpy.base.types import NULL, VARCHAR
from squallpy.logical.bind.expressions import Scalars
from squallpy.logical.bind.nested_constructors import items_of
from squallpy.logical.bind.scalar.expansion import EXPANSIONS
from squallpy.logical.bind.split_function import SIZES
from squallpy.logical.expression_builders import case, coalesce
from squallpy.logical.expressions import Expr, Literal, not_null

LISTS = ("COLLECT_LIST", "ARRAY_AGG", "COLLECT_SET")  # the last of values that differ
SORTED = ("SORT_ARRAY", "ARRAY_SORT")  # LISTAGG is in order anyway
PERCENTILES = ("PERCENTILE", "APPROX_PERCENTILE", "PERCENTILE_APPROX", "QUANTILE_CONT", "QUANTILE_DISC", "QUANTILE")


def bind_list(s: Scalars, node: exp.Anonymous) -> Expr | None:
    """Bind a call that spells, counts or sorts a list, or makes one of aggregates; None for any other."""
    match node.name.upper(), node.expressions:
        case name, [lists] if name in SIZES and _list(lists):
            return s.bind(_instead(node, lists, "COUNT"))
        case name, [lists] if name in SORTED and _list(lists):
            found = s.bind(lists)
            return EXPANSIONS[name](found) if _has_parts(found) else found
        case ("CONCAT_WS", [separator, lists]) | ("ARRAY_JOIN", [lists, separator]) if _list(lists):
            return coalesce(s.bind(_instead(node, lists, "LISTAGG", separator)), Literal("", VARCHAR))
        case name, [value, shares, *more] if name in PERCENTILES and (items := items_of(shares)):
            calls = [exp.Anonymous(this=name, expressions=[value.copy(), each.copy(), *more]) for each in items]
            made = exp.Array(expressions=calls)
            made.parent = node.parent
            return case([(not_null(s.bind(calls[0])), s.bind(made))], Literal(None, NULL))
    return None


def _has_parts(values: Expr) -> bool:
    """True if elements are ARRAYs or STRUCTs, which a list holds in the order of their texts."""
    return values.type.nested is not None and values.type.nested.types[0].nested is not None


def _list(node: exp.Expr) -> exp.Anonymous | None:
    """Return the call that makes a list, of one that sorts it, or with FILTER."""
    if isinstance(node, exp.Filter):
        node = node.this
    if isinstance(node, exp.Anonymous) and node.name.upper() in SORTED and len(node.expressions) == 1:
        return _list(node.expressions[0])
    return node if isinstance(node, exp.Anonymous) and node.name.upper() in LISTS else None


def _instead(node: exp.Expr, lists: exp.Expr, name: str, *more: exp.Expr) -> exp.Expr:
    """Build another aggregate of the same values, where the node stands."""
    while isinstance(lists, exp.Anonymous) and lists.name.upper() in SORTED:
        lists = lists.expressions[0]
    out = lists.copy()
    out.parent = node.parent
    call = out.this if isinstance(out, exp.Filter) else out
    values = call.expressions
    if call.name.upper() == LISTS[-1] and not any(isinstance(value, exp.Distinct) for value in values):
        values = [exp.Distinct(expressions=values)]
    if more and isinstance(values[0], exp.Distinct):
        values[0].append("expressions", more[0].copy())
    elif more:
        values = [*values, more[0].copy()]
    call.set("this", name)
    call.set("expressions", values)
    return out
