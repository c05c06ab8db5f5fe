"""Casts of literals: exact at any width, and the same as the runtime's casts of columns."""

import pytest

from squallpy.base.errors import SquallError
from squallpy.base.types import BIGINT, BOOLEAN, DATE, DOUBLE, INT, TIMESTAMP, VARCHAR, Type, decimal
from squallpy.logical.coercion import cast, coerce
from squallpy.logical.expressions import Cast, Literal
from squallpy.runtime.evaluate.constant_evaluation import fold_constant

WIDE = 12345678901234567890123456789012345678
VALUES: list[tuple[object, Type]] = [
    *((text, VARCHAR) for text in (
        "1", " 2 ", "-0", "+3", "1.5", "-2.5", "1e3", "2147483648", "9223372036854775808", str(WIDE), f"0.{WIDE}",
        "1e400", "1e999999999", "nan", "inf", "", "x", "true", "T", "f", "0", "yes", "1995-03-15", " 1995-03-15 ",
        "1995-3-5", "19950315", "1995-02-30", "1995-03-15 10:00:00", "1995-03-15T10:00:00.25", "1995-03-15 10:00",
        "1995-03-15 10:00:00+01:00", "10000-01-01",
    )),
    *((n, INT) for n in (0, -7, 2**31 - 1)),
    *((n, BIGINT) for n in (2**31, -(2**63), 2**63 - 1)),
    *((n, decimal(3, 2)) for n in (0, 5, -5, 249, 250, -250)),
    (WIDE, decimal(38, 0)), (-WIDE, decimal(38, 10)), (WIDE, decimal(38, 38)),
    *((x, DOUBLE) for x in (0.0, 1.5, -2.5, 2.675, 1e16, 1e20, 1e300, 0.1, 1e-7, float("inf"), float("nan"))),
    (True, BOOLEAN), (False, BOOLEAN),
    (0, DATE), (-719162, DATE), (0, TIMESTAMP), (-1, TIMESTAMP), (1_500_000, TIMESTAMP),
]  # fmt: skip
TARGETS = (BOOLEAN, INT, BIGINT, decimal(3, 2), decimal(10, 0), decimal(38, 10), DOUBLE, VARCHAR, DATE, TIMESTAMP)


@pytest.mark.parametrize("target", TARGETS, ids=str)
@pytest.mark.parametrize(("value", "source"), VALUES, ids=lambda v: str(v)[:40])
def differential_literal_casts(value: object, source: Type, target: Type) -> None:
    literal = Literal(value, source)
    try:
        found = cast(literal, target)
    except SquallError as error:
        if error.message.startswith("cannot cast"):
            return
        found = None
    if source != target:
        assert repr(found) == repr(fold_constant(Cast(literal, target)))


def test_wide_literals_keep_every_digit() -> None:
    assert coerce(Literal(WIDE // 10, decimal(37, 0)), decimal(38, 1)) == Literal(WIDE // 10 * 10, decimal(38, 1))
    assert cast(Literal(str(WIDE), VARCHAR), decimal(38, 0)) == Literal(WIDE, decimal(38, 0))
    assert cast(Literal(f"0.4{'9' * 80}", VARCHAR), decimal(1, 0)) == Literal(0, decimal(1, 0))
