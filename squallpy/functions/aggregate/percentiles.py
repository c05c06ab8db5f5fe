"""Order statistics: the value at a fraction of all values in order, and the most frequent one."""

from squallpy.functions.aggregate.entries import AggregateOperation, ArgExtreme, Maintenance, Percentile, aggregate
from squallpy.functions.aggregate.extremes import same_type

AGGREGATES = (
    aggregate(
        "MEDIAN(x)",
        Percentile(True),
        "the value in the middle, or the mean of the two",
        "MEDIAN(x) → 2.0",
        "APPROX_MEDIAN",
    ),
    aggregate(
        "PERCENTILE_CONT(q) WITHIN GROUP (ORDER BY x)",
        Percentile(True),
        "the value at a constant share q of all, interpolated between two",
        "PERCENTILE_CONT(0.75) WITHIN GROUP (ORDER BY x) → 2.75",
    ),
    aggregate(
        "PERCENTILE_DISC(q) WITHIN GROUP (ORDER BY x)",
        Percentile(False),
        "the first value that is not below a constant share q of all",
        "PERCENTILE_DISC(0.75) WITHIN GROUP (ORDER BY x) → 2",
    ),
    aggregate(
        "PERCENTILE(x, q)", Percentile(True), "PERCENTILE_CONT as a call", "PERCENTILE(x, 0.75) → 2.75", "QUANTILE_CONT"
    ),
    aggregate(
        "QUANTILE(x, q)",
        Percentile(False),
        "PERCENTILE_DISC as a call",
        "QUANTILE(s, 0.75) → b",
        "QUANTILE_DISC APPROX_QUANTILE",
    ),
    aggregate(
        "APPROX_PERCENTILE(x, q [, accuracy])",
        Percentile(False),
        "PERCENTILE_DISC as a call, exactly",
        "APPROX_PERCENTILE(x, 0.5) → 2",
        "PERCENTILE_APPROX",
    ),
    aggregate(
        "MODE(x) or MODE() WITHIN GROUP (ORDER BY x)",
        ArgExtreme("mode"),
        "the most frequent value, of several the least",
        "MODE(x) → 2",
    ),
)

OPERATIONS = (
    *(
        AggregateOperation(name, Maintenance.ORDER_STATISTIC, same_type)
        for name in ("below", "above", "reaches", "left")
    ),
    AggregateOperation("mode", Maintenance.ARG_EXTREME, same_type),
)
"""Neighbours of a percentile q among n sorted values.

Below and above position q · (n − 1), counted from 0; or at position ⌈q · n⌉ from the start or from the end, counted
from 1.
"""
