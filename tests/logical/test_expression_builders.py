"""The function table: what `call` accepts and derives."""

import pytest

from squallpy.base.errors import SquallError
from squallpy.base.types import BIGINT, BOOLEAN, DOUBLE, INT, NULL, VARCHAR, decimal
from squallpy.logical.coercion import convert, number_literal
from squallpy.logical.expression_builders import call
from squallpy.logical.expressions import Column, Literal

A, B, S = Column(1, "a", INT), Column(2, "b", decimal(12, 4)), Column(3, "s", VARCHAR)


def test_calls_are_stable_when_built_again() -> None:
    for name in ("+", "*", "/", "=", "%"):
        once = call(name, A, B)
        assert call(name, *once.args) == once


def test_decimals_beyond_38_decimals_are_refused() -> None:
    wide = Column(1, "w", decimal(38, 20))
    with pytest.raises(SquallError, match=r"SQ2005 .* has more than 38 decimals"):
        call("*", wide, wide)


def test_null_takes_the_other_type() -> None:
    assert call("+", A, Literal(None, NULL)).args[1] == Literal(None, INT)
    assert call("and", Literal(None, NULL), call("=", A, A)).type == BOOLEAN


def test_unknown_functions_name_the_nearest() -> None:
    with pytest.raises(SquallError, match='SQ2004 unknown function "lengt", did you mean "length"'):
        call("lengt", S)


@pytest.mark.parametrize(
    ("value", "source", "target", "result"),
    [
        (1, INT, decimal(5, 2), 100),
        (125, decimal(5, 2), decimal(5, 1), 13),
        (-125, decimal(5, 2), BIGINT, -1),
        ("1.5", VARCHAR, DOUBLE, 1.5),
        ("false", VARCHAR, BOOLEAN, False),
        (150, decimal(5, 2), VARCHAR, "1.50"),
    ],
)
def test_conversions(value: object, source: object, target: object, result: object) -> None:
    assert convert(value, source, target) == result  # type: ignore[arg-type]


def test_number_literals() -> None:
    assert number_literal("0.10") == Literal(10, decimal(2, 2))
    assert number_literal("2147483648") == Literal(2147483648, BIGINT)
