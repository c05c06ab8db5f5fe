"""Aggregate calls of a query block: collected once each, and replaced by the columns of the Aggregate."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from sqlglot import exp

from squallpy.base.errors import SquallError
from squallpy.base.types import BIGINT, DOUBLE, Kind, Type, decimal
from squallpy.logical.bind.context import Context
from squallpy.logical.coerce import coerce
from squallpy.logical.expressions import Column, Expr, Literal, children, rebuild
from squallpy.logical.nodes import Agg

NAMES = ("SUM", "COUNT", "AVG", "MIN", "MAX")


@dataclass(slots=True)
class Aggregation:
    """The aggregates met so far, each with its column."""

    ctx: Context
    aggs: dict[Agg, Column] = field(default_factory=dict)

    def column(self, function: str, arg: Expr | None) -> Column:
        """The column of an aggregate; equal aggregates share one.

        COUNT(x) of an x that is never NULL is COUNT(*).
        """
        if arg is not None and arg.type.kind is Kind.NULL:
            arg = coerce(arg, BIGINT)
        if function == "count" and arg is not None and not arg.nullable:
            arg = None
        agg = Agg(function, arg)
        if agg not in self.aggs:
            type = result_type(function, arg)
            self.aggs[agg] = self.ctx.column(str(agg), type, nullable=function != "count")
        return self.aggs[agg]


def result_type(function: str, arg: Expr | None) -> Type:
    """SUM keeps exact types exact; AVG is always DOUBLE; COUNT is BIGINT; MIN and MAX are of the argument's type."""
    if function == "count":
        return BIGINT
    assert arg is not None
    if function in ("min", "max"):
        return arg.type
    if not arg.type.is_numeric:
        raise SquallError("SQ2005", f"{function.upper()} does not take {arg.type}")
    if function == "avg" or arg.type == DOUBLE:
        return DOUBLE
    return decimal(38, arg.type.scale) if arg.type.kind is Kind.DECIMAL else BIGINT


def replace_known(expr: Expr, known: Mapping[Expr, Column]) -> Expr:
    """The largest parts of `expr` that are known, replaced by the columns that hold them.

    year(d) + 1 with {year(d): y}  →  y + 1
    """
    if not isinstance(expr, Literal) and expr in known:
        return known[expr]
    return rebuild(expr, tuple(replace_known(child, known) for child in children(expr)))


def is_aggregate(node: exp.Expr) -> bool:
    return isinstance(node, exp.Anonymous) and str(node.name).upper() in NAMES
