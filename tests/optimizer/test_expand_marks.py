"""Plans of IN inside IN."""

from itertools import pairwise

import pytest

from squallpy.logical.bind import compile_script
from squallpy.logical.column_allocator import ColumnAllocator
from squallpy.logical.nodes import nodes
from squallpy.optimizer.pass_manager import fresh_ids
from squallpy.optimizer.plan.decorrelate import decorrelate
from squallpy.optimizer.plan.expand_marks import expand_marks

STREAM = "CREATE STREAM r (a INT, b INT) USING csv OPTIONS (path 'r.csv');\n"
LEVELS = {
    "uncorrelated": "SELECT a FROM r AS r{n} WHERE b NOT IN ({below})",
    "correlated by =": "SELECT a FROM r AS r{n} WHERE b NOT IN ({below}) AND r{n}.a = r{above}.b",
    "correlated by <": "SELECT a FROM r AS r{n} WHERE b NOT IN ({below}) AND r{n}.a < r{above}.b",
    "< ANY": "SELECT a FROM r AS r{n} WHERE NOT b < ANY ({below}) AND r{n}.a < r{above}.b",
    "rows": "SELECT a, b FROM r AS r{n} WHERE (b, a) NOT IN ({below})",
}


def count_operators(level: str, levels: int) -> int:
    """Count the operators of a plan of queries inside each other, once its subqueries are joins."""
    sql = LEVELS["rows" if level == "rows" else "uncorrelated"].split(" WHERE")[0].format(n=levels)
    for n in reversed(range(levels)):
        sql = (LEVELS[level] if n else LEVELS[level].split(" AND r{n}")[0]).format(n=n, above=n - 1, below=sql)
    (query,) = compile_script(STREAM + sql, "q.sql", lambda _: ()).queries
    context = ColumnAllocator(ids=fresh_ids(query.plan))
    return sum(1 for _ in nodes(decorrelate(expand_marks(query.plan, context), context)))


@pytest.mark.parametrize("level", LEVELS)
def test_each_level_adds_as_many_operators_as_the_one_around_it(level: str) -> None:
    counts = [count_operators(level, levels) for levels in range(3, 7)]
    assert len({after - before for before, after in pairwise(counts)}) == 1
