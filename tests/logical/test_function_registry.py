"""The registry of functions: every entry is described, has one evaluator or expansion, and its example holds."""

from pathlib import Path

import pytest

from squallpy.base.types import NULL, VARCHAR
from squallpy.frontend import unsupported
from squallpy.functions.aggregate.entries import EXAMPLE_COLUMNS, EXAMPLE_ROWS, Derived, Direct, Maintenance, Paired
from squallpy.functions.entries import ARROW, Function, arity
from squallpy.functions.generators import SEQUENCE
from squallpy.functions.registry import (
    AGGREGATE_CATEGORIES,
    AGGREGATE_OPERATIONS,
    AGGREGATES,
    OPERATIONS,
    SCALAR_CATEGORIES,
    SCALARS,
    WINDOWS,
)
from squallpy.functions.window_functions import WINDOW_FUNCTIONS, WindowFunction
from squallpy.logical.bind import compile_script
from squallpy.logical.bind.aggregates.expansions import DERIVED, PAIRED
from squallpy.logical.bind.function_calls import EXPANDED
from squallpy.logical.bind.scalar.expansion import EXPANSIONS
from squallpy.logical.coercion import convert
from squallpy.logical.expressions import Expr
from squallpy.logical.nodes import Project
from squallpy.runtime.auxiliary.folds import FOLDS
from squallpy.runtime.evaluate.constant_evaluation import fold_constant
from squallpy.runtime.evaluate.evaluator_table import EVALUATORS
from squallpy.runtime.evaluate.expression_compiler import CATEGORIES
from squallpy.runtime.evaluate.scalar.json import spark_text
from squallpy.script_session import RunOptions, ScriptSession
from squallpy.testing.compare_rows import Row, rows_of
from squallpy.testing.example_runs import PrintedExample

FUNCTIONS = [function for functions in SCALAR_CATEGORIES.values() for function in functions]
STREAM = "CREATE STREAM t (a INT) USING csv OPTIONS (path 't.csv');"


def value_of(text: str) -> Expr:
    (query,) = compile_script(f"{STREAM} SELECT {text} AS v FROM t", "q.sql", lambda relation: ()).queries
    assert isinstance(query.plan, Project)
    ((_, value),) = query.plan.items
    return value


def result_of(text: str) -> str:
    """The value of a constant expression, as CAST writes it."""
    literal = fold_constant(value_of(text))
    assert literal is not None, text
    if literal.value is None or literal.type == NULL:
        return "NULL"
    if literal.type.nested:
        return spark_text(literal.value, literal.type.code)
    return str(convert(literal.value, literal.type, VARCHAR))


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda function: function.syntax)
def test_examples_of_functions(function: Function) -> None:
    example, result = function.example.split(ARROW)
    assert result_of(example) == result
    assert not function.names or any(f"{name}(" in example for name in function.names), "of the function"


def test_every_operation_has_one_evaluator() -> None:
    assert OPERATIONS.keys() - {SEQUENCE.name} == EVALUATORS.keys()  # a sequence makes rows
    modules = {module.__name__.rpartition(".")[2] for module in CATEGORIES}
    assert modules >= {make.__module__.rpartition(".")[2] for make in EVALUATORS.values()} - {"evaluator_table"}


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


AGGREGATED = [each for aggregates in AGGREGATE_CATEGORIES.values() for each in aggregates]


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The rows of the examples, as the file of a stream."""
    path: Path = tmp_path_factory.mktemp("examples") / "t.csv"
    path.write_text("".join(f"{x},{y},{s}\n" for x, y, s in EXAMPLE_ROWS))
    return path


def results_over(table: Path, select: str) -> list[Row]:
    """The rows of a query over the rows of the examples."""
    text = f"CREATE STREAM t ({EXAMPLE_COLUMNS}) USING csv OPTIONS (path '{table}'); SELECT {select} FROM t;"
    kept = PrintedExample()
    ScriptSession(Path("q.sql"), text=text).run(RunOptions(backend="local"), kept)
    return rows_of(kept.table)


@pytest.mark.parametrize("category", AGGREGATE_CATEGORIES)
def test_examples_of_aggregates(category: str, table: Path) -> None:
    examples = [each.example.split(ARROW) for each in AGGREGATE_CATEGORIES[category]]
    (row,) = results_over(table, ", ".join(f"CAST({call} AS VARCHAR) AS v{n}" for n, (call, _) in enumerate(examples)))
    assert list(row) == [result for _, result in examples]
    for each in AGGREGATE_CATEGORIES[category]:
        assert any(each.example.startswith(f"{name}(") for name in each.names), "of the aggregate"


@pytest.mark.parametrize("function", WINDOW_FUNCTIONS, ids=lambda function: function.name)
def test_examples_of_window_functions(function: WindowFunction, table: Path) -> None:
    call, result = function.example.split(ARROW)
    rows = results_over(table, f"x, s, CAST({call} AS VARCHAR) AS v")
    assert call.startswith(f"{function.name}(")
    assert [v or "NULL" for _, _, v in sorted(rows, key=lambda row: int(row[0]))] == result.split(", ")


def test_every_form_of_an_aggregate_is_built() -> None:
    derived = {each.name for each in AGGREGATED if isinstance(each.form, Derived)}
    paired = {each.name for each in AGGREGATED if isinstance(each.form, Paired)}
    assert (set(DERIVED), set(PAIRED)) == (derived, paired)
    direct = {each.form.operation for each in AGGREGATED if isinstance(each.form, Direct)}
    assert direct <= AGGREGATE_OPERATIONS.keys()
    assert {o.name for o in AGGREGATE_OPERATIONS.values() if o.maintenance is Maintenance.FOLD} == {*FOLDS, "listagg"}


def test_no_function_is_also_refused() -> None:
    assert not (SCALARS | AGGREGATES | WINDOWS).keys() & (unsupported.AGGREGATES | unsupported.FUNCTIONS).keys()


def test_every_name_of_an_aggregate_is_its_own() -> None:
    names = [name for each in AGGREGATED for name in each.names]
    assert len(names) == len(set(names)) and not set(names) & SCALARS.keys()
