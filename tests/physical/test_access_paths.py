"""In which order a statement looks views up."""

import pytest

from squallpy.compiler import to_program
from squallpy.logical.bind import compile_script
from squallpy.physical.plan import Lookup, Update
from squallpy.physical.planner import place

STREAMS = """
CREATE STREAM l (ok INT NOT NULL, sk INT NOT NULL, v INT) USING csv OPTIONS (path '-');
CREATE STREAM o (ok INT NOT NULL, d INT, PRIMARY KEY (ok)) USING csv OPTIONS (path '-');
CREATE STREAM s (sk INT NOT NULL, n INT, PRIMARY KEY (sk)) USING csv OPTIONS (path '-');
"""


@pytest.mark.parametrize(
    ("where", "order"),
    [
        ("s.n = 7", ["M_S", "M_O"]),
        ("o.d < 7", ["M_O", "M_S"]),
        ("o.d IS NOT NULL", ["M_O", "M_S"]),  # says nothing: as they are joined
        ("o.d IS NOT NULL AND s.n > 7", ["M_S", "M_O"]),
    ],
)
def test_of_lookups_of_one_record_the_narrowed_view_is_first(where: str, order: list[str]) -> None:
    select = f"SELECT d, n, SUM(v) FROM l JOIN o ON l.ok = o.ok JOIN s ON l.sk = s.sk WHERE {where} GROUP BY d, n;"
    (query,) = compile_script(STREAMS + select, "q.sql", lambda relation: ()).queries
    plan = place(to_program(query).program, 1, {})
    updates = [step for stage in plan.stages for step in stage.steps if isinstance(step, Update)]
    found = [[s.source for s in u.steps if isinstance(s, Lookup)] for u in updates if u.delta == "ΔL"]
    assert order in found and order[::-1] not in found


@pytest.mark.parametrize(
    ("select", "ordered"),
    [
        ("SELECT l.ok, s.sk FROM l JOIN s ON l.v < s.n", {"M_L", "M_S"}),
        ("SELECT l.ok, s.sk FROM l JOIN s ON l.ok = s.n AND l.v < s.sk", {"M_L", "M_S"}),
        ("SELECT COUNT(*) FROM l JOIN s ON l.v BETWEEN s.n - 1 AND s.n + 1", {"M_L", "M_S"}),
        ("SELECT l.ok, s.n, o.d FROM l JOIN s ON l.v < s.n JOIN o ON o.ok = l.ok", {"M_LO", "M_S"}),
        ("SELECT l.ok, s.sk FROM l JOIN s ON l.v <> s.n", set()),
        ("SELECT l.ok, o.d FROM l JOIN o ON l.ok = o.ok", set()),
        ("SELECT COUNT(*) FROM l WHERE v > (SELECT MAX(n) FROM s)", {"M_L"}),
    ],
)
def test_what_only_ranges_look_up_is_its_sorted_index(select: str, ordered: set[str]) -> None:
    (query,) = compile_script(STREAMS + select + ";", "q.sql", lambda relation: ()).queries
    plan = place(to_program(query).program, 1, {})
    assert {pool.name for pool in plan.pools if pool.is_ordered} == ordered
