"""Names of SQL types as users write them, in declarations and in CAST."""

from collections.abc import Sequence

from squallpy.base.errors import SquallError, nearest
from squallpy.base.types import BIGINT, BOOLEAN, DATE, DAY_TO_SECOND, DOUBLE, INT, TIMESTAMP, VARCHAR, Type, decimal

TYPE_NAMES: dict[str, Type] = {
    "BOOLEAN": BOOLEAN, "BOOL": BOOLEAN,
    "TINYINT": INT, "BYTE": INT, "SMALLINT": INT, "SHORT": INT, "INT": INT, "INTEGER": INT,
    "BIGINT": BIGINT, "LONG": BIGINT,
    "FLOAT": DOUBLE, "REAL": DOUBLE, "DOUBLE": DOUBLE,
    "VARCHAR": VARCHAR, "STRING": VARCHAR, "TEXT": VARCHAR, "CHAR": VARCHAR,
    "DATE": DATE,
    "TIMESTAMP": TIMESTAMP, "TIMESTAMP_NTZ": TIMESTAMP, "TIMESTAMP_LTZ": TIMESTAMP, "TIMESTAMPTZ": TIMESTAMP,
}  # fmt: skip
DECLARED_NAMES = ("BINARY", "VARBINARY", "BYTEA", "BLOB", "UUID")
"""Types that only columns of sources have, whose values are text here."""
DECIMALS = ("DECIMAL", "NUMERIC", "DEC")
WITH_LENGTH = ("VARCHAR", "CHAR")
MOST_FRACTION = 9
"""Digits of seconds that TIMESTAMP(9) names, as Flink and PostgreSQL write it; values have six."""


def declared_type(name: str, parameters: Sequence[int] = ()) -> Type:
    """Find the type of a column that is declared so: UUID  →  VARCHAR        TIMESTAMP WITH TIME ZONE  →  TIMESTAMP"""
    if " ".join(name.upper().split()) == DAY_TO_SECOND.kind.value:
        return DAY_TO_SECOND
    first = name.split("(")[0].split()[0]
    if first.upper() == "INTERVAL":
        raise SquallError("SQ2008", f"{name} is no type of columns", hint="write INTERVAL DAY TO SECOND")
    return VARCHAR if first.upper() in DECLARED_NAMES and len(parameters) < 2 else named_type(first, parameters)


def named_type(name: str, parameters: Sequence[int] = ()) -> Type:
    """Find the type for a name and its parameters.

    NUMERIC  →  DECIMAL(10,0)        CHAR(3)  →  VARCHAR        REAL  →  DOUBLE        TIMESTAMP(3)  →  TIMESTAMP

    Raises SQ2008 for unknown names, SQ2005 for parameters that make no sense.
    """
    upper = name.upper()
    if upper in DECIMALS:
        precision, scale = (*parameters, 0)[:2] if parameters else (10, 0)
        if not (0 <= scale <= precision and 1 <= precision <= 38):
            limits = "needs 1 <= precision <= 38 and 0 <= scale <= precision"
            raise SquallError("SQ2005", f"DECIMAL({precision},{scale}) {limits}")
        return decimal(precision, scale)
    if upper not in TYPE_NAMES:
        raise SquallError("SQ2008", f'unknown type "{name}"', hint=nearest(name, (*TYPE_NAMES, *DECIMALS)))
    if TYPE_NAMES[upper] == TIMESTAMP and len(parameters) == 1 and parameters[0] <= MOST_FRACTION:
        return TIMESTAMP
    if parameters and (upper not in WITH_LENGTH or len(parameters) > 1):
        raise SquallError("SQ2005", f"{upper} takes {'one length' if upper in WITH_LENGTH else 'no parameters'}")
    return TYPE_NAMES[upper]
