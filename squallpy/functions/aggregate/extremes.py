"""Aggregates that select a value of the group, or the value in the same row."""

from squallpy.base.types import Type
from squallpy.functions.aggregate.entries import AggregateOperation, ArgExtreme, Direct, Maintenance, aggregate


def same_type(name: str, type: Type | None) -> Type:
    assert type is not None
    return type


AGGREGATES = (
    aggregate("MIN(x)", Direct("min"), "the least value", "MIN(x) → 1"),
    aggregate("MAX(x)", Direct("max"), "the greatest value", "MAX(s) → c"),
    aggregate(
        "ANY_VALUE(x)",
        Direct("min"),
        "some value, NULL only if there is no other: the least, as rows have no order",
        "ANY_VALUE(s) → a",
        "FIRST FIRST_VALUE",
        takes_null_mark=True,
    ),
    aggregate(
        "LAST(x)",
        Direct("max"),
        "some value, NULL only if there is no other: the greatest, as rows have no order",
        "LAST(s) → c",
        "LAST_VALUE",
        takes_null_mark=True,
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
)
