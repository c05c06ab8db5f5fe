"""Functions of a row that are called by name: found in the registry, checked, and built."""

import re
from functools import partial

from sqlglot import exp

from squallpy.base.errors import SquallError, nearest
from squallpy.base.types import DATE, DAY_TO_SECOND, TIMESTAMP, VARCHAR, unify
from squallpy.frontend.unsupported import AGGREGATES as UNSUPPORTED_AGGREGATES
from squallpy.frontend.unsupported import FUNCTIONS
from squallpy.functions.entries import Function
from squallpy.functions.graph_functions import GRAPHS
from squallpy.functions.model_functions import FUNCTIONS as MODELS
from squallpy.functions.registry import AGGREGATES, SCALAR_CATEGORIES, SCALARS, WINDOWS
from squallpy.functions.type_rules import Mismatch
from squallpy.logical.bind.aggregates.calls import aggregate, bind_grouping, head
from squallpy.logical.bind.aggregates.list_aggregates import bind_list
from squallpy.logical.bind.casts import note_lost_fraction
from squallpy.logical.bind.datetime import intervals
from squallpy.logical.bind.defined_functions import call_defined
from squallpy.logical.bind.expressions import Scalars
from squallpy.logical.bind.higher_order_functions import HIGHER_ORDER, bind_higher_order, bind_sort
from squallpy.logical.bind.nested_constructors import bind_constructor
from squallpy.logical.bind.scalar import conditional, datetime, formats, hash, json, math, nested, text
from squallpy.logical.bind.scalar.expansion import EXPANSIONS, Builder
from squallpy.logical.bind.sequence_functions import is_series, series_array
from squallpy.logical.bind.sessions import bind_session_start
from squallpy.logical.bind.split_function import FIRST, SIZES, bind_part_count, is_split, item
from squallpy.logical.bind.temporal_filters import NAMES, bind_now
from squallpy.logical.bind.time_buckets import SESSION_START
from squallpy.logical.bind.zipped_arrays import NAMES as ZIPS
from squallpy.logical.bind.zipped_arrays import bind_zip
from squallpy.logical.expression_builders import call
from squallpy.logical.expressions import Expr, Literal

MOMENTS = ("d", "t", "start", "end", "origin")  # what syntaxes call moments
DATETIME = frozenset(SCALAR_CATEGORIES["Dates and times"])
TABLE_FUNCTIONS = frozenset({*MODELS, *GRAPHS, "estimate", "pagerank"})
EXPANDED = (conditional, math, text, datetime, json, nested, hash, formats)  # each registers its expansions


def builder(function: Function) -> Builder:
    """Find what builds a call of a function: its operation, or its expansion."""
    return EXPANSIONS[function.name] if function.call is None else partial(call, function.call)


def function(s: Scalars, node: exp.Anonymous) -> Expr:
    """Bind a call by name: an aggregate or a function of the registry; others are refused."""
    name = node.name.upper()
    if (listed := bind_list(s, node)) is not None:
        return listed
    if name in AGGREGATES:
        return aggregate(s, name, node)
    if (defined := s.ctx.catalog.function(node.name)) is not None:
        return call_defined(s, defined, node)
    if name in NAMES and not node.expressions:
        return bind_now(s, node)
    if name in HIGHER_ORDER:
        return bind_higher_order(s, node)
    if name == "ARRAY_SORT" and len(node.expressions) > 1:
        return bind_sort(s, node)
    if name in ZIPS:
        return bind_zip(s, node)
    if name == SESSION_START:
        return bind_session_start(s, node)
    if name in ("GROUPING", "GROUPING_ID"):
        return bind_grouping(s, node)
    if name in WINDOWS:
        raise SquallError("SQ2009", f"{name} needs OVER", head(s, node), "write OVER (… ORDER BY …)")
    if node.expressions and is_split(node.expressions[0]):
        if name in SIZES and len(node.expressions) == 1:
            return bind_part_count(s, node.expressions[0])
        if name in FIRST and len(node.expressions) == 2:
            part = item(s, node.expressions[0], node.expressions[1], FIRST[name])
            if part is not None:
                return part
    if (made := bind_constructor(s, node)) is not None:
        return made
    if is_series(node):
        return series_array(s, node)
    if name in UNSUPPORTED_AGGREGATES:
        raise SquallError("SQ3001", f"{name} is not supported yet", head(s, node), UNSUPPORTED_AGGREGATES[name])
    if name in FUNCTIONS:
        raise SquallError("SQ3001", f"{name} is not supported yet", head(s, node), FUNCTIONS[name])
    if (called := SCALARS.get(name)) is None:
        if name.lower() in TABLE_FUNCTIONS:
            told, hint = f"{node.name} is a table function, which stands in FROM", f"write SELECT * FROM {node.name}(…)"
            raise SquallError("SQ2004", told, head(s, node), hint)
        declared = (each.called for each in s.ctx.catalog.functions)
        known = (*SCALARS, *AGGREGATES, "CAST", "EXTRACT", "TRIM", *declared)
        raise SquallError("SQ2004", f'unknown function "{node.name}"', head(s, node), nearest(name, known))
    least, most, build = called.min_arguments, called.max_arguments, builder(called)
    count = len(node.expressions)
    if count < least or (most is not None and count > most):
        expected = f"{least} or more" if most is None else " to ".join(map(str, sorted({least, most})))
        raise SquallError(
            "SQ2005", f"{name} takes {expected} argument{'s' * (expected != '1')}, not {count}", head(s, node)
        )
    if called.has_unit and count == 3 and isinstance(unit := node.expressions[0], exp.Column | exp.Var):
        return build(Literal(datetime.UNIT + unit.name, VARCHAR), *(s.bind(arg) for arg in node.expressions[1:]))
    args = intervals.function_arguments(called.name, [s.bind(arg) for arg in node.expressions])
    if (position := called.constant) is not None and position < count:
        args[position] = s.ctx.fold(args[position])
    if name == "DECIMAL":
        note_lost_fraction(s, node, args[0], conditional.TYPES[name])
    if called in DATETIME:
        args = read_moments(s, called, node, args)
    args = unify_arguments(s, called, node, args)
    if called.name in intervals.OF_MICROS and args[0].type == DAY_TO_SECOND:
        return intervals.OF_MICROS[called.name](build(intervals.micros_of(args[0])))
    try:
        return build(*args)
    except Mismatch as error:
        raise Mismatch(name, (arg.type for arg in args), error.hint) from None


def read_moments(s: Scalars, function: Function, node: exp.Anonymous, args: list[Expr]) -> list[Expr]:
    """Read text constants in the places of moments and widths: YEAR('2026-03-01'), TIME_BUCKET('15 minutes', t)"""
    names = function.argument_names(len(args)) or [""] * len(args)
    read = list(args)
    for place, (name, arg, written) in enumerate(zip(names, args, node.expressions, strict=True)):
        if name in MOMENTS:
            is_day = isinstance(arg, Literal) and re.fullmatch(r"\s*\d{4}-\d\d?-\d\d?\s*", str(arg.value), re.ASCII)
            read[place] = s.as_moment(arg, DATE if is_day and name not in ("t", "origin") else TIMESTAMP, written)
        elif name == "width" and written.is_string:
            length = exp.Interval(this=written.copy())
            length.parent = written.parent
            read[place] = s.bind(length)
    return read


def unify_arguments(s: Scalars, function: Function, node: exp.Anonymous, args: list[Expr]) -> list[Expr]:
    """Read text constants where arguments have one type with a moment, a number or a BOOLEAN; SQ2005 for arguments that
    have no common type."""
    fitted = list(args)
    for places in function.one_type(len(args)) if function.one_type else ():
        some = s.as_one_type([args[i] for i in places], [node.expressions[i] for i in places])
        if unify([value.type for value in some]) is None:
            types = " and ".join(dict.fromkeys(str(value.type) for value in some))
            raise SquallError(
                "SQ2005", f"{node.name.upper()} of {types}, which have no common type", head(s, node), "CAST one side"
            )
        for i, value in zip(places, some, strict=True):
            fitted[i] = value
    return fitted
