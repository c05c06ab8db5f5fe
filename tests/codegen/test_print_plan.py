"""What is printed of a plan, and what is refused with which reason."""

from dataclasses import replace
from pathlib import Path

import pytest

from squallpy.codegen import program
from squallpy.codegen.names import Names
from squallpy.codegen.program import PlanCode, print_plan
from squallpy.physical.plan import Update
from squallpy.script_session import ScriptSession

STREAMS = """
CREATE STREAM r (k INT NOT NULL, s VARCHAR, v DECIMAL(8,2), x DOUBLE) USING csv OPTIONS (path 'r');
CREATE STREAM t (k INT NOT NULL, w BIGINT) USING csv OPTIONS (path 't');
CREATE STREAM u (v DECIMAL(8,2), y INT) USING csv OPTIONS (path 'u');
"""
CHAIN = "SELECT y, SUM(w) AS w FROM t JOIN r ON r.k = t.k JOIN u ON r.v = u.v GROUP BY y"
BELOW_MEAN = """SELECT SUM(r.v) AS v FROM r JOIN t ON t.k = r.k
WHERE t.w < 3 AND r.v < (SELECT AVG(x.v) FROM r AS x WHERE x.k = t.k)"""


def printed(sql: str) -> PlanCode:
    session = ScriptSession(Path("q.sql"), text=f"{STREAMS}{sql};")
    return print_plan(session.compile(session.script.queries, 1, {}).plan)


def test_statements_that_stand_together_are_one_function() -> None:
    code = printed("SELECT s, SUM(v) AS v FROM r JOIN t ON r.k = t.k WHERE w > 3 GROUP BY s")
    assert not code.refused and [group.delta for group in code.groups] == ["ΔR", "ΔT"]
    (run,) = code.runs
    assert (run.first, run.stop, run.deltas) == (0, 4, ("ΔR", "ΔT")) and len(run.pools) == 3


def test_extremes_of_groups_are_compiled_with_their_sorted_indexes() -> None:
    code = printed("SELECT k, MAX(w) AS w, MIN(w) AS least FROM t GROUP BY k")
    assert not code.refused and [(each.delta, each.is_extreme) for each in code.derivations] == [("ΔN1", True)]
    (run, _) = code.runs
    assert run.orders == {"M_T sorted 0": ("M_T", 0)} and "M_T sorted 0" in run.targets


def test_groups_that_the_view_probed_first_lacks_are_not_derived() -> None:
    session = ScriptSession(Path("q.sql"), text=f"{STREAMS}{BELOW_MEAN};")
    plan = session.compile(session.script.queries, 1, {}).plan
    (code,) = print_plan(plan).derivations
    assert code.domain == "M_T" and "if found_at(domain, record) < 0:" in code.text
    (stage,) = plan.stages
    changed = next(step for step in stage.steps if isinstance(step, Update) and step.target == "M_T")
    later = replace(stage, steps=(*stage.steps[:-1], changed, stage.steps[-1]))  # behind Derive, before who reads it
    (code,) = print_plan(replace(plan, stages=(later,))).derivations
    assert code.domain is None


def test_a_batch_of_a_view_tree_is_compiled_whole() -> None:
    code = printed("SELECT * FROM cofactor(TABLE(SELECT k, v, w FROM r NATURAL JOIN t))")
    assert not code.refused and [each.delta for each in code.derivations] == ["ΔN1"]
    products = [product for run in code.runs for product in run.products]
    assert [len(product.factors) for product in products] == [3, 3]  # both relations' blocks, and k, which is lifted


@pytest.mark.parametrize(
    ("sql", "reason"),
    [
        ("SELECT AVG(x) AS x FROM (SELECT SUM(x) AS x FROM r GROUP BY k) AS g", "a sum of doubles of a group"),
        ("SELECT SUM(LEVENSHTEIN(s, 'a')) AS n FROM r", "LEVENSHTEIN(s, 'a'), of texts"),
        ("SELECT COUNT(*) AS n FROM r WHERE REVERSE(s) = 'A'", "REVERSE(s), a text"),
        ("SELECT k, MEDIAN(w) AS w FROM t GROUP BY k", "BELOW of a group"),
        ("SELECT k, MAX(s) AS s FROM r GROUP BY k", "extremes of s, which are in no order"),
    ],
)
def test_what_is_refused_has_its_reason(sql: str, reason: str) -> None:
    code = printed(sql)
    assert any(reason in why for _, why in code.refused), code.refused
    assert f"# not compiled: {code.refused[0][0]}, for {code.refused[0][1]}" in code.explained


def test_a_predicate_that_may_fail_is_computed_wherever_another_is_false() -> None:
    """So that the generic evaluators find the error that they would have found."""
    (group,) = printed("SELECT COUNT(*) AS n FROM t WHERE k > 5 AND w * w > 3").groups
    body = group.text[group.text.index("for row") :]
    assert body.index("multiply_fits") < body.index("continue")


def test_predicates_of_dates_are_computed_together_for_a_block_of_rows() -> None:
    dates = "CREATE STREAM d (k INT NOT NULL, a DATE, b DATE, v INT) USING csv OPTIONS (path 'd');"
    where = "b > DATE '2020-01-01' AND a < b AND v > 3"
    session = ScriptSession(Path("q.sql"), text=f"{dates} SELECT COUNT(*) AS n FROM d WHERE {where};")
    (group,) = print_plan(session.compile(session.script.queries, 1, {}).plan).groups
    block, _, rows = group.text.partition("while chosen != 0:")
    assert block.count("# where a < b") == block.count("# where b > ") == 2  # of 64 rows, and of fewer
    assert "# where v > 3" in rows and "# where v > 3" not in block


def test_names_are_distinct() -> None:
    names = Names({"load"})
    assert [names(text) for text in ("M_R", "m_r", "load", "ΔR", "2", "class", "′")] == [
        "m_r", "m_r_2", "load_2", "r", "x2", "xclass", "x",
    ]  # fmt: skip


def test_code_that_is_too_long_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """What has room is compiled, and the rest told by name."""
    sql = "SELECT s, SUM(v) AS v FROM r JOIN t ON r.k = t.k WHERE w > 3 GROUP BY s"
    whole = printed(sql)
    monkeypatch.setattr(program, "MOST_LINES", sum(each.text.count("\n") for each in whole.groups) + 10)
    code = printed(sql)
    assert code.groups == whole.groups and not code.runs
    ((what, reason),) = code.refused
    assert what == "statements 1 to 4" and "lines of code" in reason


def test_a_statement_is_done_by_the_first_steps_of_another_one() -> None:
    """What both look up is looked up once, and what the first steps find is added before the others are taken."""
    (run,) = printed(CHAIN).runs
    (whole,) = (text for text in run.text.split("@called") if "# and ΔR → probe M_T(k) → add to M_TR(v)" in text)
    assert '"""ΔR → probe M_T(k) → slice M_U(v) → add to Q(y)"""' in whole and whole.count("find_rows(m_t,") == 1
    assert whole.index("added_2 += 1") < whole.index("slice_of(m_u,") < whole.index("added += 1")
    assert run.text.count("def add_to_m_tr(") == 1 and (run.first, run.stop) == (0, 10)


def test_groups_are_noted_also_where_another_statement_adds_to_them() -> None:
    """A view whose touched groups somebody has to know is added to in the loop of another one, notes first."""
    joined = "SELECT {} FROM t JOIN r ON r.k = t.k"
    groups = f"{joined.format('t.k, SUM(w) AS w')} GROUP BY t.k"
    (run, *_) = printed(f"{groups} HAVING SUM(w) > ({joined.format('SUM(w) * 0.01')})").runs
    (both,) = (text for text in run.text.split("@called") if "# and ΔT → probe M_R(k) → add to M_TR_2()" in text)
    for added in ("add_noted_rows(touched, target, ", "add_noted_rows(touched_2, target_2, "):
        assert both.count(added) == 2
    assert "add_rows(" not in both.replace("add_noted_rows(", "")
