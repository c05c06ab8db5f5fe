"""Aggregates that are recomputed from all values of a group when it changes."""

from squallpy.base.errors import SquallError
from squallpy.base.types import DOUBLE, VARCHAR, Type
from squallpy.functions.aggregate.entries import AggregateOperation, Direct, Listing, Maintenance, aggregate
from squallpy.functions.aggregate.sums import average


def text(name: str, type: Type | None) -> Type:
    return VARCHAR


def integer(name: str, type: Type | None) -> Type:
    assert type is not None
    if not type.is_integer:
        raise SquallError("SQ2005", f"{name.upper()} does not take {type}")
    return type


AGGREGATES = (
    aggregate(
        "LISTAGG(x [, separator]) or LISTAGG(x [, separator]) WITHIN GROUP (ORDER BY key, …)",
        Listing(""),
        "the texts of all values in an order, with a constant separator between them",
        "LISTAGG(DISTINCT s, ', ') → a, b, c",
        "STRING_AGG",
    ),
    aggregate(
        "GROUP_CONCAT(x [, separator])",
        Listing(","),
        "the texts of all values, by default with commas between them",
        "GROUP_CONCAT(s) → a,a,b,c",
    ),
    aggregate(
        "ARRAY_AGG(x)",
        Listing(",", is_array=True),
        "an ARRAY of all values that are not NULL, in their order, or another: `ARRAY_AGG(x ORDER BY y DESC)`",
        "ARRAY_AGG(x) → [1, 2, 2, 5]",
        "COLLECT_LIST LIST",
    ),
    aggregate(
        "COLLECT_SET(x)",
        Listing(",", is_array=True, is_distinct=True),
        "an ARRAY of the values that differ, in their order",
        "COLLECT_SET(s) → [a, b, c]",
    ),
    aggregate("BIT_AND(x)", Direct("bit_and"), "the bits that all integers have", "BIT_AND(x) → 0"),
    aggregate("BIT_OR(x)", Direct("bit_or"), "the bits that an integer has", "BIT_OR(x) → 7"),
    aggregate("BIT_XOR(x)", Direct("bit_xor"), "the bits that an odd number of integers has", "BIT_XOR(x) → 4"),
    aggregate("PRODUCT(x)", Direct("product"), "the product, a DOUBLE", "PRODUCT(x) → 20.0"),
)

OPERATIONS = (
    AggregateOperation("listagg", Maintenance.FOLD, text),
    *(AggregateOperation(name, Maintenance.FOLD, integer) for name in ("bit_and", "bit_or", "bit_xor")),
    AggregateOperation("product", Maintenance.FOLD, average, argument=DOUBLE),
)
