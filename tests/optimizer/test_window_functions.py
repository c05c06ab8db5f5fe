"""Window functions: in the plan as they are written; expanded by a pass."""

import pytest

from squallpy.logical.bind import compile_script
from squallpy.logical.explain_text import show
from squallpy.logical.nodes import Node, WindowFunctions, nodes
from squallpy.optimizer.pass_manager import columns_read

STREAM = "CREATE STREAM r (k INT PRIMARY KEY, a INT, b INT, t TIMESTAMP) USING csv OPTIONS (path 'r');"
WRITTEN = (
    "RANK() OVER (PARTITION BY b ORDER BY a DESC)",
    "COUNT(DISTINCT a) OVER (PARTITION BY b)",
    "SUM(a) OVER (ORDER BY k ROWS BETWEEN 2 PRECEDING AND CURRENT ROW)",
    "MAX(a) OVER (ORDER BY t RANGE BETWEEN INTERVAL 1 DAY PRECEDING AND UNBOUNDED FOLLOWING)",
    "LAG(a) OVER (ORDER BY k)",
    "LEAD(a, 2, 0) OVER (ORDER BY k)",
    "LAST_VALUE(a) IGNORE NULLS OVER (ORDER BY a NULLS LAST, k)",
    "NTILE(4) OVER (ORDER BY k)",
)


def plan_of(select: str) -> Node:
    (query,) = compile_script(f"{STREAM} SELECT {select} FROM r", "q.sql", lambda relation: ()).queries
    return query.plan


@pytest.mark.parametrize("function", WRITTEN)
def test_functions_are_shown_as_written(function: str) -> None:
    lines = show(plan_of(f"{function} AS v")).splitlines()
    assert lines[1].split(" := ")[1] == function and lines[2].strip() == "Scan r"


def test_equal_functions_are_one() -> None:
    (node,) = (
        n
        for n in nodes(plan_of("RANK() OVER (ORDER BY a) AS r, 1 + RANK() OVER (ORDER BY a) AS s"))
        if isinstance(n, WindowFunctions)
    )
    assert len(node.functions) == 1


def test_unread_columns_are_found() -> None:
    plan = plan_of("a, RANK() OVER (ORDER BY b) AS r")
    (node,) = (n for n in nodes(plan) if isinstance(n, WindowFunctions))
    names = {c.id: c.name for c in node.output}
    read = columns_read(plan)
    assert {names[id] for id in read[id(node)]} == {"a", "r"}
    assert {names[id] for id in read[id(node.child)]} == {"a", "b"}
