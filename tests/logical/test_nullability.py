"""Which expressions may be NULL: what a CASE has proved by its conditions is not."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from squallpy.base.types import BOOLEAN, INT
from squallpy.catalog.relation import Field, Relation
from squallpy.logical.bind import compile_script
from squallpy.logical.expression_builders import call, case
from squallpy.logical.expressions import Column, Expr, Literal, columns, substitute
from squallpy.logical.null_folding import fold_nulls
from squallpy.runtime.evaluate.expression_compiler import compile_expression
from squallpy.runtime.evaluate.vectors import Vec, VectorFrame, to_arrow

DECLARATION = (
    "CREATE STREAM r (x INT, y INT, k INT NOT NULL, s VARCHAR, p BOOLEAN, a ARRAY<INT>) USING json OPTIONS (path 'r');"
)


def bind(expression: str) -> Expr:
    def no_files(relation: Relation) -> tuple[Field, ...]:
        raise AssertionError(f"{relation.name} has columns")

    script = compile_script(f"{DECLARATION} SELECT {expression} AS e FROM r", "q.sql", no_files)
    ((_, found),) = script.queries[0].plan.items  # type: ignore[attr-defined]
    return found


def is_nullable(expression: str) -> bool:
    return bind(expression).nullable


@pytest.mark.parametrize(
    "expression",
    [
        "COALESCE(x, 0)",
        "COALESCE(x, y, k)",
        "COALESCE(x + y, 0) + k",
        "IF(x IS NULL, 0, x)",
        "NVL2(x, x, k)",
        "CASE WHEN x > 1 THEN x ELSE 0 END",
        "CASE WHEN x > y THEN x - y WHEN y > x THEN y - x ELSE k END",
        "CASE WHEN x BETWEEN 1 AND y THEN x * y ELSE 0 END",
        "CASE WHEN x = 1 OR x > 7 THEN x ELSE 0 END",
        "CASE WHEN x IN (1, 2) THEN x WHEN y NOT IN (1, 2) THEN y ELSE 0 END",
        "CASE WHEN x IS NULL OR y IS NULL THEN 0 ELSE x * y END",
        "CASE WHEN x IS NULL THEN 0 WHEN y IS NULL THEN x ELSE x % 7 + y END",
        "CASE WHEN NOT (x IS NULL OR y < 1) THEN x + y ELSE 0 END",
        "CASE WHEN x + y IS NOT NULL THEN CAST(x AS BIGINT) ELSE 0 END",
        "CASE WHEN s LIKE 'a%' THEN UPPER(s) ELSE 'b' END",
        "CASE WHEN LENGTH(s) > 3 THEN s ELSE '' END",
        "CASE WHEN p THEN p ELSE k > 1 END",
        "CASE WHEN x > 1 THEN CASE WHEN y > 1 THEN x + y ELSE x END ELSE 0 END",
        "CASE WHEN x > 1 THEN LEAST(x, y) ELSE GREATEST(x, k) END",
    ],
)
def test_values_that_a_condition_proves_are_not_null(expression: str) -> None:
    assert not is_nullable(expression)


@pytest.mark.parametrize(
    "expression",
    [
        "COALESCE(x, y)",
        "CASE WHEN x > 1 THEN y ELSE 0 END",
        "CASE WHEN x > 1 THEN x END",
        "CASE WHEN x > 1 THEN 0 ELSE x END",
        "CASE WHEN x > 1 OR y > 1 THEN x ELSE 0 END",
        "CASE WHEN x IS NULL AND y IS NULL THEN 0 ELSE x END",
        "CASE WHEN NOT (x IS NULL AND y IS NULL) THEN x ELSE 0 END",
        "CASE WHEN x <=> y THEN x ELSE 0 END",
        "CASE WHEN COALESCE(x, y) > 1 THEN x ELSE 0 END",
        "CASE WHEN LEAST(x, y) > 1 THEN x ELSE 0 END",
        "CASE WHEN x IN (1, y) THEN y ELSE 0 END",
        "CASE WHEN x > 1 THEN x / y ELSE 0 END",
        "CASE WHEN x > 1 THEN LN(x) ELSE 0.0 END",
        "CASE WHEN EXISTS(a, e -> e = x OR e = 1) THEN x ELSE 0 END",
    ],
)
def test_other_values_may_be_null(expression: str) -> None:
    assert is_nullable(expression)


@pytest.mark.parametrize(
    "expression",
    ["TRANSFORM(a, e -> COALESCE(e, x))", "EXISTS(a, e -> e = x OR e = 1)", "FILTER(a, e -> e = x OR e > 1)"],
)
def test_a_lambda_decides_what_a_null_besides_its_elements_makes(expression: str) -> None:
    bound = bind(expression)
    (x,) = (column for column in columns(bound) if column.name == "x")
    known = substitute(bound, {x.id: Literal(None, INT)})
    assert fold_nulls(known) == known


ZERO, ONE, NOTHING = Literal(0, INT), Literal(1, INT), Literal(None, INT)
X, Y, P = Column(1, "x", INT), Column(2, "y", INT), Column(3, "p", BOOLEAN)
CONDITIONS: st.SearchStrategy[Expr] = st.recursive(
    st.one_of(
        st.just(P),
        st.builds(call, st.sampled_from(["=", "<", "<=>"]), st.sampled_from([X, Y]), st.sampled_from([Y, ONE])),
        st.builds(call, st.just("in"), st.sampled_from([X, Y]), st.just(ONE), st.sampled_from([ZERO, NOTHING])),
        st.builds(call, st.just("is_null"), st.sampled_from([X, Y, call("+", X, Y), call("least", X, Y)])),
    ),
    lambda inner: st.one_of(
        st.builds(call, st.just("not"), inner), st.builds(call, st.sampled_from(["and", "or"]), inner, inner)
    ),
    max_leaves=4,
)
VALUES = st.recursive(
    st.sampled_from([X, Y, ONE]),
    lambda inner: st.one_of(
        st.builds(call, st.sampled_from(["+", "-", "least", "greatest"]), inner, inner),
        st.builds(lambda c, a, b: case([(c, a)], b), CONDITIONS, inner, inner),
        st.builds(lambda c, d, a, b, e: case([(c, a), (d, b)], e), CONDITIONS, CONDITIONS, inner, inner, inner),
    ),
    max_leaves=6,
)
ROWS = list(product([None, 0, 1], [None, 0, 1], [None, False, True]))


@given(st.builds(lambda c, d, a, b, e: case([(c, a), (d, b)], e), CONDITIONS, CONDITIONS, VALUES, VALUES, VALUES))
def property_what_is_said_not_to_be_null_never_is(expr: Expr) -> None:
    held = {
        column.id: Vec(
            np.array([value or 0 for value in values], bool if column is P else np.int64),
            np.array([value is not None for value in values]),
        )
        for column, values in zip((X, Y, P), zip(*ROWS, strict=True), strict=True)
    }
    made = compile_expression(expr)(VectorFrame(len(ROWS), held))
    assert expr.nullable or None not in to_arrow(made, expr.type, len(ROWS)).to_pylist()
