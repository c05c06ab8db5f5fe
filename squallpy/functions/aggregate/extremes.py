"""Aggregates that select a value of the group, or the value in the same row."""

from squallpy.base.types import Type
from squallpy.functions.aggregate.entries import (
    AggregateOperation,
    ArgExtreme,
    Direct,
    Maintenance,
    Positional,
    aggregate,
)


def same_type(name: str, type: Type | None) -> Type:
    assert type is not None
    return type


AGGREGATES = (
    aggregate("MIN(x)", Direct("min"), "the least value", "MIN(x) → 1"),
    aggregate("MAX(x)", Direct("max"), "the greatest value", "MAX(s) → c"),
    aggregate(
        "ANY_VALUE(x)",
        Positional("min", skips_nulls=True),
        "some value, NULL only if there is no other: the least, or the first in an order: `ANY_VALUE(x ORDER BY y)`",
        "ANY_VALUE(s) → a",
    ),
    aggregate(
        "FIRST(x)",
        Positional("min"),
        "the x of the first row in an order: `FIRST(x ORDER BY y DESC)`; without one, the least x",
        "FIRST(s ORDER BY y DESC) → c",
        "FIRST_VALUE",
    ),
    aggregate(
        "LAST(x)",
        Positional("max", is_last=True),
        "the x of the last row in an order: `LAST(x ORDER BY y, s)`; without one, the greatest x",
        "LAST(s ORDER BY y) → c",
        "LAST_VALUE",
    ),
    aggregate(
        "MAX_BY(x, y)", ArgExtreme("max_by"), "the x of the row with the greatest y", "MAX_BY(s, y) → c", "ARG_MAX_NULL"
    ),
    aggregate(
        "ARG_MAX(x, y)",
        ArgExtreme("max_by", skips_nulls=True),
        "the x of the row with the greatest y, of the rows in which x is not NULL",
        "ARG_MAX(s, y) → c",
    ),
    aggregate(
        "MIN_BY(x, y)", ArgExtreme("min_by"), "the x of the row with the least y", "MIN_BY(s, y) → b", "ARG_MIN_NULL"
    ),
    aggregate(
        "ARG_MIN(x, y)",
        ArgExtreme("min_by", skips_nulls=True),
        "the x of the row with the least y, of the rows in which x is not NULL",
        "ARG_MIN(s, y) → b",
    ),
)

OPERATIONS = (
    AggregateOperation("min", Maintenance.EXTREME, same_type),
    AggregateOperation("max", Maintenance.EXTREME, same_type),
    AggregateOperation("min_by", Maintenance.ARG_EXTREME, same_type),
    AggregateOperation("max_by", Maintenance.ARG_EXTREME, same_type),
    AggregateOperation("first_by", Maintenance.FIRST_ROW, same_type),
)
