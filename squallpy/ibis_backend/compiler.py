"""Expressions of Ibis → our SQL: as for Spark, whose functions ours are, where SQL here says it in another way."""

import math
from typing import Any

import ibis.common.exceptions as com
import ibis.expr.datatypes as dt
import ibis.expr.operations as ops
import sqlglot as sg
from ibis.backends.sql.compilers.base import AggGen, SQLGlotCompiler
from ibis.backends.sql.compilers.pyspark import PySparkCompiler
from ibis.backends.sql.rewrites import p
from ibis.common.patterns import replace
from sqlglot import exp

from squallpy.frontend.dialect import Squall
from squallpy.ibis_backend.types import SquallType

WHITESPACE = " \t\n\r\v\f"
"""Characters that Python strips."""


@replace(p.Limit(p.Limit))  # type: ignore[untyped-decorator]
def merge_limits(_: Any) -> Any:
    """Merge a limit of a limit, both without offset: limit(10).limit(5)  →  limit(5)"""
    inner = _.parent
    if _.offset or inner.offset or not all(isinstance(each.n, int) for each in (_, inner)):
        return _
    return _.copy(parent=inner.parent, n=min(_.n, inner.n))


class SquallCompiler(PySparkCompiler):  # type: ignore[misc]
    """The compiler of the backend."""

    __slots__ = ()

    dialect = Squall
    type_mapper = SquallType
    agg = AggGen(supports_filter=True)
    rewrites = (merge_limits, *SQLGlotCompiler.rewrites)  # NB: those for Spark would replace OFFSET

    SIMPLE_OPS = {  # noqa: RUF012 - ibis' own way
        ops.ApproxCountDistinct: "approx_count_distinct",
        ops.BitAnd: "bit_and",
        ops.BitOr: "bit_or",
        ops.BitXor: "bit_xor",
        ops.Mode: "mode",
    }

    def visit_NonNullLiteral(self, op: Any, *, value: Any, dtype: Any) -> Any:
        if dtype.is_binary() or dtype.is_time():
            raise com.UnsupportedBackendType(f"the type {dtype} is not supported by squallpy")
        if dtype.is_timestamp() and getattr(value, "nanosecond", 0) % 1000:
            raise com.UnsupportedOperationError("nanoseconds are not supported by squallpy")
        if dtype.is_floating():
            return self.cast(exp.Literal.string(_float_text(value)), dt.float64)
        if dtype.is_decimal():
            return self.cast(exp.Literal.string(str(value)), dtype)
        if dtype.is_uuid():
            return exp.Literal.string(str(value))
        return None

    visit_Field = SQLGlotCompiler.visit_Field
    visit_IsNull = SQLGlotCompiler.visit_IsNull
    visit_NotNull = SQLGlotCompiler.visit_NotNull
    visit_CountStar = SQLGlotCompiler.visit_CountStar
    visit_CountDistinct = SQLGlotCompiler.visit_CountDistinct

    def visit_Cast(self, op: Any, *, arg: Any, to: Any) -> Any:
        if to.is_timestamp() and (to.scale or 0) > 6:
            raise com.UnsupportedOperationError("nanoseconds are not supported by squallpy")
        return super().visit_Cast(op, arg=arg, to=to)

    def visit_IsInf(self, op: Any, *, arg: Any) -> Any:
        return arg.isin(self.POS_INF, self.NEG_INF) if op.arg.dtype.is_floating() else exp.false()

    def visit_Strip(self, op: Any, *, arg: Any) -> Any:
        return exp.Trim(this=arg, expression=exp.Literal.string(WHITESPACE), position="BOTH")

    def visit_LStrip(self, op: Any, *, arg: Any) -> Any:
        return exp.Trim(this=arg, expression=exp.Literal.string(WHITESPACE), position="LEADING")

    def visit_RStrip(self, op: Any, *, arg: Any) -> Any:
        return exp.Trim(this=arg, expression=exp.Literal.string(WHITESPACE), position="TRAILING")

    def visit_TimestampDelta(self, op: Any, *, part: Any, left: Any, right: Any) -> Any:
        # NB: DATEDIFF counts whole units between two moments, Ibis the ends of units
        unit = op.part.value
        ends = (self.f.anon.date_trunc(unit, each) for each in (left, right))
        return exp.DateDiff(this=next(ends), expression=next(ends), unit=exp.var(unit.upper()))

    def visit_CountDistinctStar(self, op: Any, *, arg: Any, where: Any) -> Any:
        columns = [sg.column(name, table=arg.alias_or_name, quoted=self.quoted) for name in op.arg.schema]
        return self.agg.count(exp.Distinct(expressions=columns), where=where)

    def visit_GroupConcat(self, op: Any, *, arg: Any, sep: Any, where: Any, order_by: Any) -> Any:
        listed = self.f.anon.listagg(arg, sep)
        if order_by:
            listed = exp.WithinGroup(this=listed, expression=exp.Order(expressions=order_by))
        return listed if where is None else exp.Filter(this=listed, expression=exp.Where(this=where))


def _float_text(value: float) -> str:
    """Write a float as our casts read it: inf → Infinity."""
    return repr(value) if math.isfinite(value) else str(value).replace("inf", "Infinity").replace("nan", "NaN")


compiler = SquallCompiler()
