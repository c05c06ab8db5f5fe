"""Identities of views: what a program holds of another one, whatever else reads or shares it."""

from squallpy.compiler import to_program
from squallpy.logical.bind import compile_script
from squallpy.program.trigger_program import TriggerProgram
from squallpy.program.view_identity import Held, ViewIdentities, held_views

STREAMS = """
CREATE STREAM a (k BIGINT, j BIGINT, x BIGINT) USING csv OPTIONS (path '-');
CREATE STREAM b (j BIGINT, y BIGINT) USING csv OPTIONS (path '-');
"""
SUMS = "SELECT k, SUM(x * y) AS s FROM a JOIN b USING (j) WHERE x > 1 GROUP BY k"
TURNED = "SELECT k, SUM(y * x) AS t FROM b, a WHERE b.j = a.j AND x > 1 GROUP BY k"
OVER = (f"SELECT COUNT(*) AS n FROM ({TURNED}) q WHERE t > 2", f"SELECT k FROM ({TURNED}) q WHERE t > 3")


def program(*queries: str) -> TriggerProgram:
    return to_program(*compile_script(STREAMS + ";".join([*queries, ""]), "q.sql", lambda _: ()).queries).program


def held(program: TriggerProgram, before: TriggerProgram) -> dict[str, Held]:
    return held_views(ViewIdentities(program), ViewIdentities(before))


def test_a_view_is_held_when_queries_over_it_come_and_go() -> None:
    """Also though these share its joins: then statements add a product that is computed once."""
    alone, together = program(SUMS), program(*OVER, SUMS)
    assert any(s.partial for trigger in together.triggers for s in trigger.statements)
    assert held(alone, together).keys() == {view.name for view in alone.views}
    missing = {view.name for view in together.views} - held(together, alone).keys()
    assert missing == {"Q1"}  # the count: its groups are the result that was there
    assert together.result_of == (0, 1, 1)


def test_another_sum_is_not_held() -> None:
    assert not held(program(SUMS.replace("x > 1", "x > 2")), program(SUMS)).keys() - {"M_B"}
