"""Types of Ibis as ours: int8 → TINYINT, uint32 → BIGINT; what SQL here has no type for is refused by name."""

from typing import Any

import ibis.common.exceptions as com
import ibis.expr.datatypes as dt
from ibis.backends.sql.datatypes import SqlglotType
from sqlglot import exp

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

    @classmethod
    def _from_sqlglot_TIMESTAMP(cls, scale: Any = None, nullable: bool | None = None) -> dt.Timestamp:
        return dt.Timestamp(timezone=None, nullable=nullable)

    _from_sqlglot_TIMESTAMPTZ = _from_sqlglot_TIMESTAMP
    _from_sqlglot_TIMESTAMPLTZ = _from_sqlglot_TIMESTAMP
