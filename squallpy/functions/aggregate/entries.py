"""Entries of aggregates.

An `Aggregate` is written by a query, an `AggregateOperation` maintained by a plan; `form` expresses the first in terms
of the second. Examples are over the rows EXAMPLE_ROWS.

    aggregate("SUM(x)", Direct("sum"), "the sum; NULL over no value", "SUM(x) → 10")
"""

from collections.abc import Callable
from enum import Enum

from squallpy.base.records import dataclass
from squallpy.base.types import Type
from squallpy.functions.entries import arity

WITHIN_GROUP = "WITHIN GROUP"
EXAMPLE_COLUMNS = "x INT, y DOUBLE, s VARCHAR"
EXAMPLE_ROWS = ((1, 3.0, "b"), (2, 5.0, "a"), (2, 5.0, "a"), (5, 11.0, "c"))
"""Values of x, y and s."""


class Maintenance(Enum):
    """The maintenance of an aggregate's groups."""

    SUM = "sums of a ring, to which changes are added"
    EXTREME = "the first or last value of a sorted group"
    ORDER_STATISTIC = "the value at a share of a sorted group"
    FOLD = "recomputed from all values of a changed group"
    ARG_EXTREME = "by other aggregates, as which the pass expand_arg_extremes writes it"
    FIRST_ROW = "by the first row of each group, as which the pass expand_first_values writes it"


@dataclass(frozen=True, slots=True)
class AggregateOperation:
    """An aggregate that plans maintain.

    Args:
        rule: the type of the result, given the operation's name and the argument's type (None: COUNT(*)).
        argument: the type that numeric arguments are cast to.
    """

    name: str
    maintenance: Maintenance
    rule: Callable[[str, Type | None], Type]
    argument: Type | None = None


@dataclass(frozen=True, slots=True)
class Direct:
    """The operation itself, over the distinct values of the argument if `is_distinct`."""

    operation: str
    is_distinct: bool = False


@dataclass(frozen=True, slots=True)
class Derived:
    """An expression over other aggregates of the argument, built in `logical/bind/aggregates/expansions.py`."""


@dataclass(frozen=True, slots=True)
class Paired:
    """An expression over aggregates of two numbers, of the rows that have both; built in the same place."""


@dataclass(frozen=True, slots=True)
class ArgExtreme:
    """The value in the row that has the greatest ("max_by") or least of another, or the most frequent ("mode")."""

    operation: str
    skips_nulls: bool = False


@dataclass(frozen=True, slots=True)
class Positional:
    """The value of the first row, or the last, in the order that the call names; without one, an operation of all.

    Args:
        skips_nulls: Of rows in which the value is not NULL, as if the call said IGNORE NULLS.
    """

    operation: str
    is_last: bool = False
    skips_nulls: bool = False


@dataclass(frozen=True, slots=True)
class Percentile:
    """The value at a share of all in order, between two of them if it is interpolated."""

    is_interpolated: bool


@dataclass(frozen=True, slots=True)
class Listing:
    """The texts of all values, with the separator between them unless the call names another.

    Args:
        is_array: They are the elements of an ARRAY, each as JSON, in their own order where the call has none.
        is_distinct: Of values that are alike there is one.
    """

    separator: str
    is_array: bool = False
    is_distinct: bool = False


Form = Direct | Derived | Paired | ArgExtreme | Positional | Percentile | Listing


@dataclass(frozen=True, slots=True)
class Aggregate:
    """An aggregate that a query writes.

    Args:
        least: the arguments that it needs, the key of WITHIN GROUP (ORDER BY key) among them.
    """

    syntax: str
    form: Form
    doc: str
    example: str
    names: tuple[str, ...]
    min_arguments: int
    max_arguments: int | None

    @property
    def name(self) -> str:
        return self.names[0]

    @property
    def may_be_within_group(self) -> bool:
        return WITHIN_GROUP in self.syntax

    @property
    def must_be_within_group(self) -> bool:
        return all(WITHIN_GROUP in way for way in self.syntax.split(" or "))

    @property
    def takes_null_mark(self) -> bool:
        """True if IGNORE NULLS and RESPECT NULLS may follow the argument."""
        return isinstance(self.form, Positional | Listing)

    @property
    def has_accuracy(self) -> bool:
        """True if a call can end with a constant accuracy of an approximation."""
        return "accuracy" in self.syntax


def aggregate(syntax: str, form: Form, doc: str, example: str, aliases: str = "") -> Aggregate:
    """Declare an aggregate."""
    calls = [(way.partition(f" {WITHIN_GROUP}")[0], WITHIN_GROUP in way) for way in syntax.split(" or ")]
    counts = [(arity(call), is_within) for call, is_within in calls]
    least = min(n + is_within for (n, _), is_within in counts)
    most = [None if n is None else n + is_within for (_, n), is_within in counts]
    names = (syntax[: syntax.index("(")], *aliases.split())
    highest = None if None in most else max(n for n in most if n is not None)
    return Aggregate(syntax, form, doc, example, names, least, highest)
