"""The registry: every function and operation by its name, and the categories in which the manual lists them."""

from squallpy.functions.aggregate import extremes, lists, moments, percentiles, sums
from squallpy.functions.aggregate.entries import Aggregate, AggregateOperation
from squallpy.functions.entries import Function, Operation
from squallpy.functions.generators import SEQUENCE, SERIES_ARRAY
from squallpy.functions.scalar import conditional, datetime, formats, hash, json, math, nested, operators, python, text
from squallpy.functions.window_functions import WINDOW_FUNCTIONS, WindowFunction

SCALAR_CATEGORIES = {
    "Operators": operators.OPERATORS,
    "Conditions, NULL and casts": conditional.FUNCTIONS,
    "Numbers": math.FUNCTIONS,
    "Texts": text.FUNCTIONS,
    "Dates and times": datetime.FUNCTIONS,
    "JSON": json.FUNCTIONS,
    "ARRAYs and MAPs": nested.FUNCTIONS,
    "Hashes and encodings": hash.FUNCTIONS,
    "Formats and URLs": formats.FUNCTIONS,
}

_FUNCTIONS = tuple(function for functions in SCALAR_CATEGORIES.values() for function in functions)
_INTERNAL = (
    *operators.INTERNAL, *math.INTERNAL, *text.INTERNAL, *datetime.INTERNAL, *json.INTERNAL, *hash.INTERNAL,
    *nested.INTERNAL, *formats.INTERNAL, *python.INTERNAL,
    SEQUENCE, SERIES_ARRAY,
)  # fmt: skip

SCALARS: dict[str, Function] = {name: function for function in _FUNCTIONS for name in function.names}
"""Scalar functions by their names in queries and their aliases."""

OPERATIONS: dict[str, Operation] = {
    operation.name: operation for operation in (*(f.operation for f in _FUNCTIONS if f.operation), *_INTERNAL)
}
"""Scalar operations by their names in plans."""

AGGREGATE_CATEGORIES = {
    "Counts and sums": sums.AGGREGATES,
    "Extremes": extremes.AGGREGATES,
    "Percentiles": percentiles.AGGREGATES,
    "Lists, products and bits": lists.AGGREGATES,
    "Variances and regressions": moments.AGGREGATES,
}

AGGREGATES: dict[str, Aggregate] = {
    name: each for aggregates in AGGREGATE_CATEGORIES.values() for each in aggregates for name in each.names
}
"""Aggregates by their names in queries and their aliases."""

AGGREGATE_OPERATIONS: dict[str, AggregateOperation] = {
    operation.name: operation
    for operation in (*sums.OPERATIONS, *extremes.OPERATIONS, *percentiles.OPERATIONS, *lists.OPERATIONS)
}
"""Aggregates by their names in plans."""

WINDOWS: dict[str, WindowFunction] = {name: each for each in WINDOW_FUNCTIONS for name in each.names}
"""Functions that stand before OVER, by their names in queries and their aliases."""
