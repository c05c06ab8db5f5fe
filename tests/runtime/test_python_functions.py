"""Functions of Python on columns: values of every type come and go as they are, and equal arguments are asked once."""

from datetime import date, datetime, timedelta
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from squallpy.base.errors import SquallError
from squallpy.base.types import (
    BIGINT,
    BOOLEAN,
    DATE,
    DAY_TO_SECOND,
    DOUBLE,
    INT,
    TIMESTAMP,
    VARCHAR,
    Kind,
    Shape,
    Type,
    decimal,
    nested_type,
)
from squallpy.functions.scalar.python import NAME
from squallpy.logical.expressions import Call, Column, Literal
from squallpy.runtime.evaluate.expression_compiler import compile_expression
from squallpy.runtime.evaluate.held_values import held_text
from squallpy.runtime.evaluate.vectors import VectorFrame, arrow_type, from_arrow, to_arrow

PLAIN: dict[Type, st.SearchStrategy[Any]] = {
    INT: st.integers(-(2**31), 2**31 - 1),
    BIGINT: st.integers(-(2**63), 2**63 - 1),
    DOUBLE: st.floats(allow_nan=False),
    BOOLEAN: st.booleans(),
    VARCHAR: st.text(st.characters(exclude_categories=["Cs"]), max_size=5),
    decimal(7, 2): st.decimals(-99999, 99999, places=2),
    decimal(38, 3): st.decimals(-(10**30), 10**30, places=3),
    DATE: st.dates(),
    TIMESTAMP: st.datetimes().map(lambda at: at.replace(fold=0)),
    DAY_TO_SECOND: st.timedeltas(timedelta(days=-(10**6)), timedelta(days=10**6)),
}
ARRAYS = {nested_type(Shape.ARRAY, [type]): st.lists(st.none() | values, max_size=3) for type, values in PLAIN.items()}
"""NB: without DOUBLEs that JSON has no number for."""
MAPS = {nested_type(Shape.MAP, [INT, DATE]): st.dictionaries(PLAIN[INT], PLAIN[DATE], max_size=3)}
FIELDS = {f"f{n}": values for n, values in enumerate((st.none() | PLAIN[decimal(7, 2)], *ARRAYS.values()))}
STRUCTS = {
    nested_type(Shape.STRUCT, [decimal(7, 2), *ARRAYS], FIELDS): st.tuples(*FIELDS.values()).map(
        lambda values: dict(zip(FIELDS, values, strict=True))
    )
}
VALUES = PLAIN | ARRAYS | MAPS | STRUCTS


def evaluated(lines: str, types: dict[str, Type], returns: Type, *columns: list[Any]) -> list[Any]:
    """Call a function of Python on columns of values, and return its results as Python has them."""
    names = {name: Column(n, name, type, True) for n, (name, type) in enumerate(types.items())}
    definition = Literal(f"def f({', '.join(names)}):\n{lines}", VARCHAR)
    run = compile_expression(Call(NAME, (definition, *names.values()), returns, True))
    rows = len(columns[0]) if columns else 1
    vecs = {
        n: from_arrow(held(values, type), type)
        for n, (values, type) in enumerate(zip(columns, types.values(), strict=True))
    }
    return to_arrow(run(VectorFrame(rows, vecs)), returns, rows).to_pylist()


def held(values: list[Any], type: Type) -> pa.Array:
    """Make values an array as a source gives it; a nested one is its JSON."""
    if type.nested:
        values = [None if value is None else held_text(value, type) for value in values]
    array = pa.array(values, arrow_type(type))
    return array.cast(pa.int64()) if type.kind is Kind.INT else array


@pytest.mark.parametrize("type", VALUES, ids=str)
def property_values_come_and_go_as_they_are(type: Type) -> None:
    @given(st.lists(st.none() | VALUES[type], max_size=6))
    @settings(max_examples=25, deadline=None)
    def check(values: list[Any]) -> None:
        assert evaluated("return x", {"x": type}, type, values) == held(values, type).to_pylist()

    check()


@pytest.mark.parametrize("type", VALUES, ids=str)
def property_a_function_sees_values_of_python(type: Type) -> None:
    @given(st.lists(st.none() | VALUES[type], min_size=1, max_size=6))
    @settings(max_examples=20, deadline=None)
    def check(values: list[Any]) -> None:
        assert evaluated("return repr(x)", {"x": type}, VARCHAR, values) == [repr(value) for value in values]

    check()


def test_equal_arguments_are_asked_once() -> None:
    lines = "f.calls = getattr(f, 'calls', 0) + 1\nreturn f.calls"
    found = evaluated(lines, {"x": INT, "y": VARCHAR}, INT, [1, 2, 1, None, 1, None], ["a", "a", "a", None, "b", None])
    assert found[0] == found[2] and found[3] == found[5]
    assert sorted({*found}) == [1, 2, 3, 4]


def test_numbers_of_another_type_that_lose_nothing() -> None:
    assert evaluated("return 2.0", {}, BIGINT) == [2]
    assert evaluated("return __import__('decimal').Decimal('2.5')", {}, DOUBLE) == [2.5]
    assert evaluated("return 10**20", {}, DOUBLE) == [1e20]
    assert evaluated("return 3", {}, decimal(5, 2)) == [3]
    assert evaluated("return d", {"d": DATE}, TIMESTAMP, [date(2026, 1, 1)]) == [datetime(2026, 1, 1)]


def test_without_parameters_and_without_rows() -> None:
    assert evaluated("return 'é'", {}, VARCHAR) == ["é"]
    assert evaluated("return 1 // 0", {"x": INT}, INT, []) == []


RESULTS: dict[str, tuple[Type, str, str]] = {
    "another type": (INT, "'a'", "f returned 'a', which is no INT"),
    "a number too large": (INT, "2**31", "f returned 2147483648, which is no INT"),
    "a fraction": (BIGINT, "1.5", "f returned 1.5, which is no BIGINT"),
    "a time for a day": (DATE, "__import__('datetime').datetime(2026, 1, 1, 10)", "which is no DATE"),
    "no number": (BIGINT, "float('nan')", "f returned nan, which is no BIGINT"),
    "a decimal with more digits": (decimal(5, 2), "__import__('decimal').Decimal('1.234')", "which is no DECIMAL(5,2)"),
    "half a character": (VARCHAR, "'\\ud800'", "which is no VARCHAR"),
    "a part of another type": (nested_type(Shape.ARRAY, [DATE]), "['x']", "f returned ['x'], which is no ARRAY<DATE>"),
    "a part that is no list": (nested_type(Shape.ARRAY, [DATE]), "{1}", "f returned {1}, which is no ARRAY<DATE>"),
    "an error": (INT, "1 // x", "f(0): ZeroDivisionError: integer division or modulo by zero, line 1 of f"),
    "an error without a text": (INT, "next(iter(()))", "f(0): StopIteration, line 1 of f"),
}


@pytest.mark.parametrize("case", RESULTS)
def fault_a_result_that_is_none(case: str) -> None:
    type, expression, message = RESULTS[case]
    with pytest.raises(SquallError) as raised:
        evaluated(f"return {expression}", {"x": INT}, type, [0])
    assert str(raised.value).startswith("SQ5005") and message in str(raised.value)


def test_a_run_of_a_function_ends_with_the_process_that_it_ends() -> None:
    """SystemExit and an interrupt are not taken for errors of rows."""
    with pytest.raises(SystemExit):
        evaluated("raise SystemExit", {"x": INT}, INT, [1])
