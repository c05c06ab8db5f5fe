"""Types of Ibis as ours: int8 → TINYINT, uint32 → BIGINT; what SQL here has no type for is refused by name."""

from functools import partial

import ibis.common.exceptions as com
import ibis.expr.datatypes as dt
from ibis.backends.sql.datatypes import SqlglotType
from sqlglot import exp

from squallpy.base.types import Kind, Shape, Type

_SCALARS = {
    Kind.BOOLEAN: dt.boolean, Kind.INT: dt.int32, Kind.BIGINT: dt.int64, Kind.DOUBLE: dt.float64,
    Kind.VARCHAR: dt.string, Kind.DATE: dt.date, Kind.TIMESTAMP: dt.timestamp, Kind.NULL: dt.null,
    Kind.DAY_TO_SECOND: partial(dt.Interval, "us"),
}  # fmt: skip
_UNSIGNED = {dt.UInt8: "SMALLINT", dt.UInt16: "INT", dt.UInt32: "BIGINT"}
_REFUSED = (dt.Binary, dt.Time, dt.Interval, dt.MACADDR, dt.INET, dt.GeoSpatial, dt.UInt64, dt.Null)


class SquallType(SqlglotType):  # type: ignore[misc]
    """The types of Ibis in our dialect."""

    dialect = "squall"
    default_decimal_precision = 38
    default_decimal_scale = 18

    @classmethod
    def from_ibis(cls, dtype: dt.DataType) -> exp.DataType:
        """Write a type; UnsupportedBackendType if there is none."""
        if isinstance(dtype, _REFUSED):
            raise com.UnsupportedBackendType(f"the type {dtype} is not supported by squallpy")
        if isinstance(dtype, dt.JSON | dt.UUID):
            return exp.DataType.build("VARCHAR", dialect=cls.dialect)
        if type(dtype) in _UNSIGNED:
            return exp.DataType.build(_UNSIGNED[type(dtype)], dialect=cls.dialect)
        found: exp.DataType = super().from_ibis(dtype)
        return found

    @classmethod
    def _from_ibis_Timestamp(cls, dtype: dt.Timestamp) -> exp.DataType:
        return exp.DataType.build("TIMESTAMP", dialect=cls.dialect)

    @classmethod
    def _from_ibis_String(cls, dtype: dt.String) -> exp.DataType:
        return exp.DataType.build("VARCHAR", dialect=cls.dialect)


def ibis_type(type: Type, nullable: bool = True) -> dt.DataType:
    """Return the type of Ibis for one of ours."""
    if type.kind is Kind.DECIMAL:
        return dt.Decimal(type.precision, type.scale, nullable=nullable)
    if type.nested is None:
        return _SCALARS[type.kind](nullable=nullable)
    parts = [ibis_type(part) for part in type.nested.types]
    match type.nested.shape:
        case Shape.ARRAY:
            return dt.Array(parts[0], nullable=nullable)
        case Shape.MAP:
            return dt.Map(*parts, nullable=nullable)
    return dt.Struct(dict(zip(type.nested.names, parts, strict=True)), nullable=nullable)
