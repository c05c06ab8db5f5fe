"""What EXPLAIN says a tuple costs."""

import pytest

from squallpy.physical.planner import place
from squallpy.physical.statement_cost import costs
from tests.maintain.test_trigger_program import RST, program

KEYED = RST.replace("a INT NOT NULL,", "a INT PRIMARY KEY,")
RS = "FROM r, s WHERE"
QUERIES = {
    f"SELECT COUNT(*) {RS} r.b = s.b": {"r": ["O(1)", "O(1)"], "s": ["O(1)", "O(1)"]},
    # the sum of a range, its records, and what is no range
    f"SELECT COUNT(*) {RS} r.b < s.b": {"r": ["O(log n)", "O(1)"], "s": ["O(log n)", "O(1)"]},
    f"SELECT s.b, COUNT(*) {RS} r.b < s.b GROUP BY s.b": {"r": ["O(slice)", "O(1)"], "s": ["O(log n)", "O(1)"]},
    f"SELECT COUNT(*) {RS} r.b <> s.b": {"r": ["O(n)", "O(1)"], "s": ["O(n)", "O(1)"]},
    f"SELECT r.a, COUNT(*) {RS} r.b = s.b GROUP BY r.a": {"r": ["O(1)", "O(1)"], "s": ["O(slice)", "O(1)"]},
    # a record of R for each a, which is its key: a slice by it finds one
    f"SELECT r.b, COUNT(*) {RS} r.a = s.b GROUP BY r.b": {"r": ["O(1)", "O(1)"], "s": ["O(1)", "O(1)"]},
    # few records of S have an a of R, its key; but many may have a b, which is none
    f"SELECT COUNT(*) {RS} r.a = s.b AND s.c < r.b": {"r": ["O(slice)", "O(1)"], "s": ["O(1)", "O(1)"]},
    f"SELECT COUNT(*) {RS} r.b = s.b AND s.c < r.a": {"r": ["O(log n)", "O(1)"], "s": ["O(log n)", "O(1)"]},
    # an expression over two relations that equals a column of a third: a record is looked up by it, in either direction
    "SELECT COUNT(*) FROM r, s, t WHERE r.b = s.b AND r.a + s.c = t.d": {
        "r": ["O(slice)", "O(slice)", "O(1)"], "s": ["O(slice)", "O(slice)", "O(1)"], "t": ["O(1)", "O(1)"],
    },
    # what a batch is joined with before the view is changed, and after it
    "SELECT COUNT(*) FROM s x, s y WHERE x.b <> y.b": {"s": ["O(n)", "O(1)", "O(n)"]},
    # an average for each b; one count of all; the greatest of each group and of all
    "SELECT COUNT(*) FROM s, (SELECT b, AVG(a) AS m FROM r GROUP BY b) q WHERE s.b = q.b AND s.c < q.m": {
        "r": ["O(1)"], "s": ["O(1)", "O(1)"], "n1": ["O(1)", "O(log n)"],
    },
    "SELECT COUNT(*) FROM r WHERE r.a < (SELECT COUNT(*) FROM s)": {
        "r": ["O(1)", "O(1)"], "s": ["O(1)"], "n1": ["O(1)", "O(log n)", "O(1)"],
    },
    # a running sum against a bound
    "SELECT COUNT(*) FROM s WHERE 10 > (SELECT SUM(x.c) FROM s x WHERE x.b > s.b)": {
        "s": ["O(slice)", "O(1)"], "n3": ["O(log n)", "O(log n)", "O(1)"],
    },
    "SELECT b, MAX(a) FROM r GROUP BY b": {"r": ["O(1)"], "n1": ["O(log n)", "O(1)"]},
    "SELECT MAX(a) FROM r": {"r": ["O(1)"], "n1": ["O(log n)", "O(1)"]},
}  # fmt: skip


@pytest.mark.parametrize("joins", ["FULL", "FULL FULL", "FULL FULL FULL", "FULL LEFT", "FULL INNER", "LEFT FULL RIGHT"])
def test_a_merged_key_is_looked_up(joins: str) -> None:
    names = "rstuv"
    streams = "".join(f"CREATE STREAM {n} (k INT, {n}x INT) USING csv OPTIONS (path '{n}');" for n in names)
    sides = " ".join(f"{kind} JOIN {name} USING (k)" for kind, name in zip(joins.split(), names[1:], strict=False))
    plan = place(program(f"SELECT COUNT(*), SUM(rx), SUM(sx) FROM r {sides}", streams), 1, {})
    assert {cost for each in costs(plan) for cost in each} == {"O(1)"}


@pytest.mark.parametrize("sql", QUERIES)
def test_costs(sql: str) -> None:
    plan = place(program(sql, KEYED), 1, {})
    found = zip((trigger.relation.name for trigger in plan.program.triggers), map(list, costs(plan)), strict=True)
    assert dict(found) == QUERIES[sql]
