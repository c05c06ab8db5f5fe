"""Views that are computed from the rows of views that are held, and those that cannot be."""

import pytest

from squallpy.compiler import to_program
from squallpy.logical.bind import compile_script
from squallpy.program.explain_text import program_text
from squallpy.program.restrict import restrict_above, restrict_to_rows
from squallpy.program.trigger_program import TriggerProgram
from squallpy.program.view_identity import ViewIdentities, held_views

STREAMS = """
CREATE STREAM a (k BIGINT, j BIGINT, x BIGINT, t VARCHAR) USING csv OPTIONS (path '-');
CREATE STREAM b (j BIGINT, y BIGINT) USING csv OPTIONS (path '-');
"""
ROWS = "SELECT k, j, x * 2 AS d FROM a WHERE x > 3"
OTHERS = "SELECT j, y FROM b"
JOINED = "SELECT a.k, a.x, b.y FROM a JOIN b ON a.j = b.j"
SUMS = "SELECT k, j, COUNT(*) AS n, SUM(x) AS s FROM a GROUP BY k, j"
COMPUTED = {
    "groups of rows": (ROWS, "SELECT k, COUNT(*) AS n, SUM(x * 2) AS s FROM a WHERE x > 3 AND k > 1 GROUP BY k"),
    "a computed key": (ROWS, "SELECT x * 2 AS e, COUNT(*) AS n FROM a WHERE x > 3 AND x * 2 < 90 GROUP BY x * 2"),
    "a part of groups": (SUMS, "SELECT j, AVG(x) AS m FROM a WHERE k <> 5 GROUP BY j"),
    "all groups": (SUMS, "SELECT COUNT(x) AS n FROM a"),
    "groups of joined rows": (JOINED, "SELECT y, SUM(x) AS s FROM a JOIN b ON a.j = b.j WHERE k IN (1, 2) GROUP BY y"),
    "two joined": (f"{ROWS}; {OTHERS}", "SELECT k, SUM(y) AS s FROM a JOIN b USING (j) WHERE x > 3 GROUP BY k"),
    "joined with itself": (ROWS, "SELECT COUNT(*) AS n FROM a p JOIN a q ON p.j < q.j WHERE p.x > 3 AND q.x > 3"),
    "extremes": (ROWS, "SELECT k, MAX(x * 2) AS m FROM a WHERE x > 3 GROUP BY k"),
    "nested": (SUMS, "SELECT k FROM a GROUP BY k HAVING SUM(x) > (SELECT COUNT(*) FROM a)"),
    "rows of both": (
        f"{ROWS}; {OTHERS}",
        "SELECT j, COUNT(*) AS n FROM (SELECT j FROM a WHERE x > 3 UNION ALL SELECT y FROM b) AS u GROUP BY j",
    ),
}
OUT_OF_REACH = {
    "fewer rows are held": (ROWS, "SELECT k, COUNT(*) AS n FROM a GROUP BY k"),
    "other rows are held": (ROWS, "SELECT k, COUNT(*) AS n FROM a WHERE x > 4 GROUP BY k"),
    "no such column": (ROWS, "SELECT t, COUNT(*) AS n FROM a WHERE x > 3 GROUP BY t"),
    "no such sum": (SUMS, "SELECT j, SUM(x * x) AS s FROM a GROUP BY j"),
    "rows that have a partner": (JOINED, "SELECT k, SUM(x) AS s FROM a GROUP BY k"),
    "joined otherwise": (JOINED, "SELECT x, SUM(y) AS s FROM a JOIN b ON a.k = b.j GROUP BY x"),
    "rows of equal columns": ("SELECT k, x FROM a WHERE k = j", "SELECT k, SUM(x) AS s FROM a GROUP BY k"),
    "one of two": (ROWS, "SELECT k, SUM(y) AS s FROM a JOIN b USING (j) WHERE x > 3 GROUP BY k"),
}


def program(*queries: str) -> TriggerProgram:
    return to_program(*compile_script(STREAMS + ";".join([*queries, ""]), "q.sql", lambda _: ()).queries).program


def above(before: str, query: str) -> TriggerProgram | None:
    """Return what computes a query beside others that are held, without the streams."""
    together = program(before, query)
    held = held_views(ViewIdentities(together), ViewIdentities(program(before)))
    given = together, {view.name for view in together.views} - held.keys(), held.keys()
    return restrict_above(*given) or restrict_to_rows(*given)


@pytest.mark.parametrize("case", COMPUTED)
def test_computed_from_rows(case: str) -> None:
    found = above(*COMPUTED[case])
    assert found and {trigger.relation.name for trigger in found.triggers} - {"a", "b"}
    assert found.relations[0].name == "rows of views" and len(found.relations) == 1


@pytest.mark.parametrize("case", OUT_OF_REACH)
def test_not_computed_from_rows(case: str) -> None:
    assert above(*OUT_OF_REACH[case]) is None


def test_rows_stand_for_those_of_a_stream() -> None:
    found = above(*COMPUTED["groups of rows"])
    assert found
    (line,) = [" ".join(line.split()) for line in program_text(found).splitlines() if "+=" in line]
    assert line == "Q2(k) += Sum_[k](Δheld Q1(k, j, d) ⋈ (k > 1) ⋈ ⟨1, [d IS NOT NULL], d⟩)"
