"""Schemas as Spark writes them, without a JVM: a DDL string, the declared columns → a StructType.

spark_schema("id INT NOT NULL, tags ARRAY<STRING>")   →   StructType of id and tags
"""

from collections.abc import Callable, Sequence

import sqlglot
from pyspark.sql import types as spark
from sqlglot import exp

from squallpy.base.types import Kind, Shape, Type
from squallpy.catalog.relation import Field

_ATOMS: dict[str, Callable[[], spark.DataType]] = {
    "BOOLEAN": spark.BooleanType, "TINYINT": spark.ByteType, "SMALLINT": spark.ShortType, "INT": spark.IntegerType,
    "BIGINT": spark.LongType, "FLOAT": spark.FloatType, "DOUBLE": spark.DoubleType, "TEXT": spark.StringType,
    "VARCHAR": spark.StringType, "CHAR": spark.StringType, "BINARY": spark.BinaryType, "VARBINARY": spark.BinaryType,
    "DATE": spark.DateType, "TIMESTAMP": spark.TimestampType, "TIMESTAMPTZ": spark.TimestampType,
    "TIMESTAMPLTZ": spark.TimestampType, "TIMESTAMPNTZ": spark.TimestampNTZType, "VARIANT": spark.VariantType,
}  # fmt: skip
_DECLARED: dict[Kind, Callable[[], spark.DataType]] = {
    Kind.BOOLEAN: spark.BooleanType, Kind.INT: spark.IntegerType, Kind.BIGINT: spark.LongType,
    Kind.DOUBLE: spark.DoubleType, Kind.VARCHAR: spark.StringType, Kind.DATE: spark.DateType,
    Kind.TIMESTAMP: spark.TimestampType, Kind.DAY_TO_SECOND: spark.DayTimeIntervalType,
}  # fmt: skip


def declared_schema(fields: Sequence[Field]) -> spark.StructType:
    """Return declared columns as Spark's."""
    return spark.StructType([spark.StructField(f.name, _declared(f.type), f.nullable) for f in fields])


def spark_schema(text: str) -> spark.StructType:
    """Parse a schema in DDL; ValueError if it is none, or has a type that Spark's Python does not know."""
    bare = text.strip()
    texts = (bare,) if bare.lower().startswith("struct<") else (f"STRUCT<{bare}>", f"CREATE TABLE t ({bare})")
    why = ""
    for each in texts:
        try:
            found = _schema(each)
            if found is not None:
                return found
        except sqlglot.errors.SqlglotError as error:
            why = str(error).splitlines()[0]
    raise ValueError(why or "a column has no type")


def _schema(text: str) -> spark.StructType | None:
    """Parse the type STRUCT<…> or a CREATE TABLE; None if it has no columns with types."""
    parsed = sqlglot.parse_one(text, dialect="spark", into=None if text.startswith("CREATE") else exp.DataType)
    columns = list((parsed.this if isinstance(parsed, exp.Create) else parsed).expressions)
    if not all(isinstance(column, exp.ColumnDef) and column.kind for column in columns):
        return None
    return spark.StructType([_field(column) for column in columns])


def _field(column: exp.ColumnDef) -> spark.StructField:
    is_required = any(isinstance(constraint.kind, exp.NotNullColumnConstraint) for constraint in column.constraints)
    assert column.kind
    return spark.StructField(column.name, _type(column.kind), not is_required)


def _type(type: exp.DataType) -> spark.DataType:
    name, inner = type.this.name, type.expressions
    match name:
        case "DECIMAL":
            precision, scale, *_ = *(int(each.name) for each in inner), *((10, 0)[len(inner) :])
            return spark.DecimalType(precision, scale)
        case "ARRAY":
            return spark.ArrayType(_type(inner[0]))
        case "MAP":
            return spark.MapType(_type(inner[0]), _type(inner[1]))
        case "STRUCT":
            return spark.StructType([_field(each) for each in inner])
    if name not in _ATOMS:
        raise ValueError(f"Spark's Python does not know the type {type.sql(dialect='spark')}")
    return _ATOMS[name]()


def _declared(type: Type) -> spark.DataType:
    if type.nested:
        parts = [_declared(part) for part in type.nested.types]
        match type.nested.shape:
            case Shape.ARRAY:
                return spark.ArrayType(parts[0])
            case Shape.MAP:
                return spark.MapType(parts[0], parts[1])
        return spark.StructType([spark.StructField(*part) for part in zip(type.nested.names, parts, strict=True)])
    return spark.DecimalType(type.precision, type.scale) if type.kind is Kind.DECIMAL else _DECLARED[type.kind]()
