"""SQL types and how their values are held in columns.

| type            | held as                                             |
|-----------------|-----------------------------------------------------|
| BOOLEAN         | bool                                                |
| INT, BIGINT     | int64                                               |
| DECIMAL(p, s)   | int64 scaled by 10^s (Python ints where that is too small) |
| DOUBLE          | float64                                             |
| VARCHAR         | Arrow string                                        |
| DATE            | int64 days since 1970-01-01                         |
| TIMESTAMP       | int64 microseconds since 1970-01-01, no time zone   |
| INTERVAL DAY TO SECOND | int64 microseconds                            |
| ARRAY, MAP, STRUCT | a VARCHAR, their JSON without spaces; MAP and STRUCT as objects |
| INTERVAL        | only in the binder: (months, days, microseconds)     |
"""

from collections.abc import Iterable
from enum import Enum

from squallpy.base.records import dataclass


class Kind(Enum):
    BOOLEAN = "BOOLEAN"
    INT = "INT"
    BIGINT = "BIGINT"
    DECIMAL = "DECIMAL"
    DOUBLE = "DOUBLE"
    VARCHAR = "VARCHAR"
    DATE = "DATE"
    TIMESTAMP = "TIMESTAMP"
    DAY_TO_SECOND = "INTERVAL DAY TO SECOND"
    INTERVAL = "INTERVAL"
    NULL = "NULL"  # the type of a bare NULL; coerces to any other


class Shape(Enum):
    ARRAY = "ARRAY"
    MAP = "MAP"
    STRUCT = "STRUCT"


@dataclass(frozen=True, slots=True)
class Nested:
    """The parts of a type: the element of an ARRAY, the key and value of a MAP, or the named fields of a STRUCT."""

    shape: Shape
    types: tuple["Type", ...]
    names: tuple[str, ...] = ()

    def __str__(self) -> str:
        parts = (
            [f"{name}: {type}" for name, type in zip(self.names, self.types, strict=True)] if self.names else self.types
        )
        return f"{self.shape.value}<{', '.join(map(str, parts))}>"

    def field(self, name: str) -> tuple[str, "Type"] | None:
        """Find a field of a STRUCT by its name, in any case."""
        fields = zip(self.names, self.types, strict=False)
        return next((field for field in fields if field[0].lower() == name.lower()), None)


@dataclass(frozen=True, slots=True)
class Type:
    """A SQL type; precision and scale only for DECIMAL. One that is `nested` is held, and of the kind, of a VARCHAR."""

    kind: Kind
    precision: int = 0
    scale: int = 0
    nested: Nested | None = None

    def __post_init__(self) -> None:
        if self.kind is Kind.DECIMAL:
            assert 0 <= self.scale <= self.precision <= 38, (self.precision, self.scale)
        assert self.nested is None or self.kind is Kind.VARCHAR

    def __str__(self) -> str:
        if self.nested:
            return str(self.nested)
        return f"DECIMAL({self.precision},{self.scale})" if self.kind is Kind.DECIMAL else self.kind.value

    @property
    def code(self) -> str:
        """Its shape in brackets, as in ARRAY<MAP<K, STRUCT<a INT, b INT>>>  →  [{(..)"""
        if self.nested is None:
            return "."
        inner = "".join(type.code for type in self.nested.types[self.nested.shape is Shape.MAP :])
        return {Shape.ARRAY: f"[{inner}", Shape.MAP: f"{{{inner}", Shape.STRUCT: f"({inner})"}[self.nested.shape]

    @property
    def is_integer(self) -> bool:
        return self.kind in (Kind.INT, Kind.BIGINT)

    @property
    def is_exact(self) -> bool:
        """Integers and decimals: their sums are exact."""
        return self.is_integer or self.kind is Kind.DECIMAL

    @property
    def is_numeric(self) -> bool:
        return self.is_exact or self.kind is Kind.DOUBLE

    @property
    def is_temporal(self) -> bool:
        return self.kind in (Kind.DATE, Kind.TIMESTAMP)

    @property
    def is_interval(self) -> bool:
        return self.kind in (Kind.INTERVAL, Kind.DAY_TO_SECOND)

    @property
    def is_wide(self) -> bool:
        """True if a value may not fit in 64 bits."""
        return self.kind is Kind.DECIMAL and self.precision > 18

    @property
    def is_held_in_order(self) -> bool:
        """True if the stored integers, or floats, are ordered as the values are."""
        return self.is_ordered and not self.is_wide

    @property
    def is_ordered(self) -> bool:
        """True if keys of the type are ordered as the values are (of wide decimals, those that fit in 64 bits)."""
        return self.is_numeric or self.is_temporal or self.kind is Kind.DAY_TO_SECOND


BOOLEAN, INT, BIGINT = Type(Kind.BOOLEAN), Type(Kind.INT), Type(Kind.BIGINT)
DOUBLE, VARCHAR, DATE, TIMESTAMP = Type(Kind.DOUBLE), Type(Kind.VARCHAR), Type(Kind.DATE), Type(Kind.TIMESTAMP)
DAY_TO_SECOND, INTERVAL, NULL = Type(Kind.DAY_TO_SECOND), Type(Kind.INTERVAL), Type(Kind.NULL)
MOST_DIGITS = 38
"""The digits of the longest DECIMAL."""

RANGES = {
    Kind.DATE: (-719_162, 2_932_896), Kind.TIMESTAMP: (-62_135_596_800_000_000, 253_402_300_799_999_999),
    Kind.DAY_TO_SECOND: (2 - 2**63, 2**63 - 1),
}  # fmt: skip
"""First and last values of DATEs and TIMESTAMPs, those of the years 1 to 9999, and the longest INTERVALs."""


def nested_type(shape: Shape, types: Iterable[Type], names: Iterable[str] = ()) -> Type:
    """Make an ARRAY of a type, a MAP of two, or a STRUCT of named ones."""
    return Type(Kind.VARCHAR, nested=Nested(shape, tuple(types), tuple(names)))


def decimal(precision: int, scale: int) -> Type:
    """Make a DECIMAL, the precision capped at 38 digits."""
    return Type(Kind.DECIMAL, min(MOST_DIGITS, max(precision, scale, 1)), scale)


def as_decimal(type: Type) -> Type:
    """Find the smallest DECIMAL that holds every value of an exact type."""
    return {Kind.INT: decimal(10, 0), Kind.BIGINT: decimal(19, 0)}.get(type.kind, type)


def common(left: Type, right: Type) -> Type | None:
    """Find the type to which both sides are cast before they are compared or unioned; None if there is none.

    INT, DECIMAL(4,2)  →  DECIMAL(12,2)        DATE, TIMESTAMP  →  TIMESTAMP        BIGINT, DOUBLE  →  DOUBLE
    """
    if left == right or right.kind is Kind.NULL:
        return left
    if left.kind is Kind.NULL:
        return right
    if left.is_integer and right.is_integer:
        return BIGINT
    if left.is_exact and right.is_exact:
        a, b = as_decimal(left), as_decimal(right)
        scale = max(a.scale, b.scale)
        return decimal(max(a.precision - a.scale, b.precision - b.scale) + scale, scale)
    if left.is_numeric and right.is_numeric:
        return DOUBLE
    if left.is_temporal and right.is_temporal:
        return TIMESTAMP
    return DAY_TO_SECOND if left.is_interval and right.is_interval else None


def unify(types: list[Type]) -> Type | None:
    """Find the common type of several; None if there is none."""
    result = types[0]
    for type in types[1:]:
        merged = common(result, type)
        if merged is None:
            return None
        result = merged
    return result
