"""CASE and AND evaluate for no row what it does not get to, where that would fail."""

import numpy as np
import pyarrow as pa
import pytest

from squallpy.base.errors import SquallError
from squallpy.base.types import INT, VARCHAR
from squallpy.logical.coercion import cast
from squallpy.logical.expression_builders import call, case
from squallpy.logical.expressions import Column, Expr, Literal
from squallpy.runtime.evaluate.expression_compiler import compile_expression
from squallpy.runtime.evaluate.vectors import Vec, VectorFrame, to_arrow

TEXT = Column(1, "s", VARCHAR, True)
NUMBER, IS_NUMBER = cast(TEXT, INT), call("rlike", TEXT, Literal("^[0-9]+$", VARCHAR))


def evaluated(expr: Expr, *texts: str | None) -> list[object]:
    valid = np.array([text is not None for text in texts], bool)
    frame = VectorFrame(len(texts), {1: Vec(pa.array([text or "" for text in texts], pa.string()), valid)})
    return to_arrow(compile_expression(expr)(frame), expr.type, len(texts)).to_pylist()


def test_an_arm_is_of_the_rows_that_get_there() -> None:
    expr = case([(IS_NUMBER, NUMBER)], Literal(-1, INT))
    assert evaluated(expr, "7", "x", None, "12") == [7, -1, -1, 12]
    first = (call("is_null", TEXT), Literal(0, INT))
    assert evaluated(case([first, (IS_NUMBER, NUMBER)], Literal(-1, INT)), "", None, "3") == [-1, 0, 3]


def test_a_condition_is_of_the_rows_that_are_not_decided() -> None:
    large = call(">", NUMBER, Literal(9, INT))
    assert evaluated(call("and", IS_NUMBER, large), "7", "x", None, "12") == [False, False, None, True]
    assert evaluated(call("or", call("not", IS_NUMBER), large), "7", "x", None, "12") == [False, True, None, True]


def test_what_fails_for_a_row_that_gets_there_fails() -> None:
    with pytest.raises(SquallError):
        evaluated(case([(call("not", IS_NUMBER), NUMBER)], Literal(0, INT)), "x")
    with pytest.raises(SquallError):
        evaluated(call("and", call("not", IS_NUMBER), call(">", NUMBER, Literal(9, INT))), "x")
