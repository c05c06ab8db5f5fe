"""Aggregates that are sums: inserted rows are added, deleted rows subtracted."""

from squallpy.base.errors import SquallError
from squallpy.base.types import BIGINT, DOUBLE, Kind, Type, decimal
from squallpy.functions.aggregate.entries import AggregateOperation, Derived, Direct, Maintenance, aggregate


def number(name: str, type: Type | None) -> Type:
    """Check that an argument is a number."""
    assert type is not None
    if not type.is_numeric:
        raise SquallError("SQ2005", f"{name.upper()} does not take {type}")
    return type


def total(name: str, type: Type | None) -> Type:
    """Type a sum: BIGINT for integers, the widest DECIMAL of their scale for DECIMALs, so that exact sums stay
    exact."""
    given = number(name, type)
    return decimal(38, given.scale) if given.kind is Kind.DECIMAL else given if given == DOUBLE else BIGINT


def average(name: str, type: Type | None) -> Type:
    number(name, type)
    return DOUBLE


def row_count(name: str, type: Type | None) -> Type:
    return BIGINT


AGGREGATES = (
    aggregate(
        "COUNT(*) or COUNT(x, …)", Direct("count"), "the rows, or those in which no argument is NULL", "COUNT(*) → 4"
    ),
    aggregate("COUNT_IF(p)", Derived(), "the rows for which p is TRUE", "COUNT_IF(x > 1) → 3"),
    aggregate(
        "APPROX_COUNT_DISTINCT(x [, accuracy])",
        Direct("count", is_distinct=True),
        "the values that differ, exactly",
        "APPROX_COUNT_DISTINCT(x) → 3",
        "APPROX_DISTINCT",
    ),
    aggregate("SUM(x)", Direct("sum"), "the sum, exact of integers and DECIMALs", "SUM(x) → 10"),
    aggregate("AVG(x)", Direct("avg"), "the mean, always DOUBLE", "AVG(x) → 2.5", "MEAN TRY_AVG"),
    aggregate("BOOL_AND(p)", Derived(), "TRUE if no row has FALSE", "BOOL_AND(x > 1) → false", "EVERY"),
    aggregate("BOOL_OR(p)", Derived(), "TRUE if a row has TRUE", "BOOL_OR(x > 1) → true", "ANY SOME"),
)

OPERATIONS = (
    AggregateOperation("count", Maintenance.SUM, row_count),
    AggregateOperation("sum", Maintenance.SUM, total),
    AggregateOperation("avg", Maintenance.SUM, average),
    AggregateOperation("sum_rest", Maintenance.SUM, total),  # what rounding took from a sum of DOUBLEs
)
