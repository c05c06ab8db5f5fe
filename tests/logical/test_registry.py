"""The registry of functions: every entry is described, has one evaluator or expansion, and its example holds."""

import pytest

from squallpy.base.types import NULL, VARCHAR
from squallpy.functions.function import ARROW, Function, arity
from squallpy.functions.registry import OPERATIONS, SCALAR_CATEGORIES, SCALARS
from squallpy.functions.table import SEQUENCE
from squallpy.logical.bind import compile_script
from squallpy.logical.bind.scalar.expansion import EXPANSIONS
from squallpy.logical.bind.scalar_functions import EXPANDED
from squallpy.logical.coercion import convert
from squallpy.logical.expressions import Expr
from squallpy.logical.nodes import Project
from squallpy.runtime.evaluate.constants import constant
from squallpy.runtime.evaluate.evaluators import EVALUATORS
from squallpy.runtime.evaluate.functions import CATEGORIES

FUNCTIONS = [function for functions in SCALAR_CATEGORIES.values() for function in functions]
STREAM = "CREATE STREAM t (a INT) USING csv OPTIONS (path 't.csv');"


def value_of(text: str) -> Expr:
    (query,) = compile_script(f"{STREAM} SELECT {text} AS v FROM t", "q.sql", lambda relation: ()).queries
    assert isinstance(query.plan, Project)
    ((_, value),) = query.plan.items
    return value


def result_of(text: str) -> str:
    """The value of a constant expression, as CAST writes it."""
    literal = constant(value_of(text))
    assert literal is not None, text
    if literal.value is None or literal.type == NULL:
        return "NULL"
    return str(convert(literal.value, literal.type, VARCHAR))


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda function: function.syntax)
def test_examples_of_functions(function: Function) -> None:
    example, result = function.example.split(ARROW)
    assert result_of(example) == result
    assert not function.names or any(f"{name}(" in example for name in function.names), "of the function"


def test_every_operation_has_one_evaluator() -> None:
    assert OPERATIONS.keys() - {SEQUENCE.name} == EVALUATORS.keys()  # a sequence makes rows
    modules = {module.__name__.rpartition(".")[2] for module in CATEGORIES}
    assert modules == {make.__module__.rpartition(".")[2] for make in EVALUATORS.values()} - {"evaluators"}


def test_every_function_is_an_operation_or_expanded() -> None:
    assert EXPANDED
    assert EXPANSIONS.keys() == {function.name for function in SCALARS.values() if function.call is None}
    assert {function.call for function in FUNCTIONS if function.call} <= OPERATIONS.keys()


def test_every_name_is_that_of_one_function() -> None:
    names = [name for function in FUNCTIONS for name in function.names]
    assert len(names) == len(set(names))
    operations = [function.operation.name for function in FUNCTIONS if function.operation]
    assert len(operations) == len(set(operations))


def test_arities_are_read_off_the_syntax() -> None:
    assert [arity(f"F({args})") for args in ("", "a", "a, b [, c]", "a [, b, …]", "a, b, …")] == [
        (0, 0), (1, 1), (2, 3), (1, None), (2, None),
    ]  # fmt: skip
    assert arity("F(a) or F(a, b, c)") == (1, 3)
