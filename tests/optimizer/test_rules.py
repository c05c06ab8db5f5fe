"""Rules: SQL in, plan out."""

import pytest

from squallpy.base.settings import Settings
from squallpy.compiler import to_program
from squallpy.explain import Tracer
from squallpy.logical.bind import compile_script
from squallpy.logical.explain_text import show
from squallpy.optimizer.pipeline import ALL, PLAN_PASSES

RELATIONS = """
CREATE STREAM r (a INT NOT NULL, b INT NOT NULL) USING csv OPTIONS (path 'r');
CREATE STREAM s (b INT NOT NULL, c INT NOT NULL) USING csv OPTIONS (path 's');
"""


OTHERS = [each.name for each in PLAN_PASSES if not (each.rules or each.is_required)]
RULES_ONLY = Settings(passes=",".join(f"-{name}" for name in OTHERS))


def plan(sql: str) -> str:
    (query,) = compile_script(f"{RELATIONS} {sql};", "q.sql", lambda relation: ()).queries
    return show(to_program(query, settings=RULES_ONLY).optimised[0].plan)


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        ("NOT NOT r.a = 1", "Filter a = 1"),
        ("NOT r.a < 1", "Filter a >= 1"),
        ("r.a = 1 AND TRUE", "Filter a = 1"),
        ("ABS(r.a - r.b) <= 2", "Filter (a - b) <= 2 AND (a - b) >= -2"),
        ("3 > ABS(r.a)", "Filter a < 3 AND a > -3"),
        ("ABS(r.a) > 3", "Filter ABS(a) > 3"),
        ("r.a = 1 OR FALSE", "Filter a = 1"),
        ("r.a = 1 AND FALSE", "Filter FALSE"),
        ("(r.a = 1 AND r.b = 2) OR (r.a = 1 AND r.b = 3)", "Filter a = 1 AND ((b = 2) OR (b = 3))"),
    ],
)
def test_predicates(where: str, expected: str) -> None:
    lines = [line.strip() for line in plan(f"SELECT r.a FROM r WHERE {where}").splitlines()]
    assert expected.replace("((b = 2) OR (b = 3))", "(b = 2 OR b = 3)") in lines, lines


@pytest.mark.parametrize(
    ("constant", "expected"),
    [
        ("1 + 10", "11"),
        ("2.50 * 4 - 0.5", "9.50"),
        ("1 / 4", "0.25"),
        ("1 / 0", "NULL"),
        ("7 % 0", "NULL"),
        ("1 + NULL", "NULL"),
        ("4611686018427387904 * 2", "4611686018427387904 * 2"),
        ("9223372036854775807 + 1", "9223372036854775807 + 1"),
        ("CAST('20' || '24' AS INT)", "2024"),
        ("CAST('x' || 'y' AS INT)", "CAST('xy' AS INT)"),
        ("CAST(CAST(2 AS DOUBLE) / 3 AS DECIMAL(4,2))", "0.67"),
        ("DATE '1995-01-31' + INTERVAL '1' MONTH", "DATE '1995-02-28'"),
        ("DATE_ADD(DATE '9999-12-31', 1 + 1)", "ADD_DAYS(DATE '9999-12-31', 2)"),
        ("EXTRACT(YEAR FROM DATE '1995-03-15') + 1", "1996"),
        ("UPPER(SUBSTRING('stream', 1 + 1, 2))", "'TR'"),
        ("SUBSTRING('abc', 2, 9223372036854775807)", "'bc'"),
        ("ABS(-9223372036854775807)", "9223372036854775807"),
        ("ABS(-9223372036854775808 + 0)", "ABS(-9223372036854775808)"),
        ("ABS(CAST('-9223372036854775808' AS BIGINT))", "ABS(-9223372036854775808)"),
        ("CASE WHEN 1 > 2 THEN 'a' WHEN NULL THEN 'b' END", "NULL"),
        ("COALESCE(NULL, 2, 3)", "2"),
        (
            "CASE WHEN FALSE THEN 9223372036854775807 + 1 WHEN r.a > 0 THEN 2 ELSE 3 END",
            "CASE WHEN a > 0 THEN 2 ELSE 3 END",
        ),
        ("CASE WHEN r.a > 0 THEN 1 WHEN 1 = 1 THEN r.a ELSE 3 END", "CASE WHEN a > 0 THEN 1 ELSE a END"),
        ("CASE WHEN TRUE THEN r.a ELSE 9223372036854775807 + 1 END", "CAST(a AS BIGINT)"),
        ("NULL AND 1 = 2", "FALSE"),
        ("NULL OR 1 = 2", "NULL"),
        ("2 IN (1, NULL)", "NULL"),
        ("'abc' LIKE 'a%'", "TRUE"),
        # the examples of Spark's own manual
        ("MD5('Spark')", "'8cde774d6f7333752ed72cacddb05126'"),
        ("SHA('Spark')", "'85f5955f4b27a9a4c2aab6ffe5d7189fc298b92c'"),
        ("SHA2('Spark', 256)", "'529bc3b07127ecb7e53a4dcf1991d9152c24537d919178022b2c42657f79a26b'"),
        ("CRC32('Spark')", "1557323817"),
        ("BASE64('Spark SQL')", "'U3BhcmsgU1FM'"),
        ("HEX(17)", "'11'"),
        ("HEX('Spark SQL')", "'537061726B2053514C'"),
        ("SOUNDEX('Miller')", "'M460'"),
        ("SOUNDEX('Ashcraft')", "'A261'"),
        ("LEVENSHTEIN('kitten', 'sitting')", "3"),
        ("WIDTH_BUCKET(5.3, 0.2, 10.6, 5)", "3"),
        ("WIDTH_BUCKET(-2.1, 1.3, 3.4, 3)", "0"),
        ("WIDTH_BUCKET(8.1, 0.0, 5.7, 4)", "5"),
        ("WIDTH_BUCKET(-0.9, 5.2, 0.5, 2)", "3"),
        ("WIDTH_BUCKET(1, 2, 2, 2)", "NULL"),
        ("TRY_ADD(2147483647, 1)", "2147483648"),
    ],
)
def test_constants(constant: str, expected: str) -> None:
    assert plan(f"SELECT r.a, {constant} AS x FROM r").splitlines()[0] == f"Project a, x := {expected}"


def test_constants_are_folded_everywhere() -> None:
    keys = "a + (1 + 1)"
    text = plan(
        f"SELECT {keys} AS k, SUM(2 * 3) AS s FROM r GROUP BY {keys} HAVING COUNT(*) > 1 + 1 ORDER BY s + (1 + 1)"
    )
    assert "Sort s + 2" in text and "Filter COUNT(*) > 2" in text and "a + 2: SUM(6), COUNT(*)" in text, text


@pytest.mark.parametrize(
    "where", ["TRUE", "1 = 1", "1 + 10 > 2 AND NOT 1 > 2", "DATE '1995-01-31' < DATE '1995-02-01'"]
)
def test_what_is_always_true_is_dropped(where: str) -> None:
    assert "Filter" not in plan(f"SELECT r.a FROM r WHERE {where}")
    assert "Cross" in plan(f"SELECT r.a FROM r JOIN s ON {where}")


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("SELECT a FROM r WHERE {}", "Filter a = 1"),
        ("SELECT a FROM r WHERE b > 7 OR {} AND a > 2", "Filter b > 7 OR (a = 1 AND a > 2)"),
        ("SELECT a FROM r WHERE NOT {}", "Filter NOT CASE WHEN a = 1 THEN TRUE WHEN b = 1 THEN NULL ELSE FALSE END"),
        ("SELECT CASE WHEN {} THEN a ELSE b END AS c FROM r", "Project c := CASE WHEN a = 1 THEN a ELSE b END"),
    ],
)
def test_null_is_as_good_as_false_in_conditions(query: str, expected: str) -> None:
    three = "CASE WHEN a = 1 THEN TRUE WHEN b = 1 THEN NULL ELSE FALSE END"
    assert expected in plan(query.format(three))


@pytest.mark.parametrize("where", ["FALSE", "1 = 2", "r.a = 1 AND 1 + 1 = 3"])
def test_what_is_never_true_is_all_that_is_left(where: str) -> None:
    assert plan(f"SELECT r.a FROM r WHERE {where}").splitlines()[1].strip() == "Filter FALSE"


def test_filters_move_below_joins() -> None:
    lines = plan("SELECT r.a FROM r, s WHERE r.b = s.b AND r.a > 1 AND s.c < 2").splitlines()
    assert [line.strip() for line in lines] == [
        "Project a",
        "Join on r.b = s.b",
        "Filter a > 1",
        "Scan r",
        "Filter c < 2",
        "Scan s",
    ]


def test_a_condition_that_moves_leaves_nothing() -> None:
    lines = plan("SELECT r.a FROM r JOIN (SELECT b FROM s WHERE s.b > 1) q ON r.a = 1 WHERE r.b < q.b").splitlines()
    assert [line.strip() for line in lines[1:4]] == ["Join on r.b < b_2", "Filter a = 1", "Scan r"]


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        (
            "SELECT a FROM r LEFT JOIN s ON r.b = s.b AND c > 1 AND a < 5 WHERE a > 2 AND c IS NULL",
            ["Project a", "Filter c IS NULL", "Left join on r.b = s.b AND a < 5", "Filter a > 2", "Scan r",
             "Filter c > 1", "Scan s"],
        ),
        (
            "SELECT a FROM r LEFT JOIN s ON r.b = s.b WHERE c > 1",
            ["Project a", "Project a, r.b, s.b, c", "Join on r.b = s.b", "Scan r", "Filter c > 1", "Scan s"],
        ),
        (
            "SELECT r.b, c FROM r FULL JOIN s ON r.b = s.b WHERE r.a > 1",
            ["Project b := r.b, c", "Project a, r.b, s.b, c", "Left join on r.b = s.b", "Filter a > 1",
             "Scan r", "Scan s"],
        ),
        (
            "SELECT a FROM r LEFT SEMI JOIN s ON r.b = s.b AND c > 1 WHERE a > 2",
            ["Project a", "Semi join on r.b = s.b", "Filter a > 2", "Scan r", "Filter c > 1", "Scan s"],
        ),
        (
            "SELECT x FROM (SELECT a AS x FROM r UNION SELECT c FROM s) q WHERE x > 1",
            ["Project x", "Project x", "Aggregate by x", "Union all x", "Project x", "Project x := a",
             "Filter a > 1", "Scan r", "Project c", "Project c", "Filter c > 1", "Scan s"],
        ),
        (
            "SELECT a + 1 AS k, SUM(b) FROM r GROUP BY a + 1 HAVING k > 1 AND SUM(b) < 3",
            ["Project k, SUM(b)", "Filter SUM(b) < 3", "Aggregate by k := a + 1: SUM(b)", "Filter (a + 1) > 1",
             "Scan r"],
        ),
    ],
)  # fmt: skip
def test_filters_move_past(sql: str, expected: list[str]) -> None:
    assert [line.strip() for line in plan(sql).splitlines()] == expected


def test_join_predicate_is_found_in_every_arm() -> None:
    """TPC-H Q19: the join hides in the disjunction, and each input can be restricted on its own."""
    text = plan("SELECT r.a FROM r, s WHERE (r.b = s.b AND r.a = 1 AND s.c = 2) OR (r.b = s.b AND r.a = 3 AND s.c = 4)")
    assert "Join on r.b = s.b AND" in text
    assert "Filter a = 1 OR a = 3" in text and "Filter c = 2 OR c = 4" in text


def test_filter_moves_below_a_view() -> None:
    lines = plan("SELECT x FROM (SELECT a + 1 AS x FROM r) v WHERE x > 3").splitlines()
    assert [line.strip() for line in lines][-2:] == ["Filter a + 1 > 3", "Scan r"] or "Filter (a + 1) > 3" in lines[-2]


def test_a_filter_moves_below_a_chain_of_views_in_one_pass() -> None:
    chain = "SELECT a, b FROM r"
    for i in range(50):
        chain = f"SELECT a + 1 AS a, b FROM ({chain}) AS v{i}"
    text = f"{RELATIONS} SELECT a FROM ({chain}) AS v WHERE a > 3;"
    (query,) = compile_script(text, "q.sql", lambda relation: ()).queries
    tracer = Tracer()
    to_program(query, observer=tracer)
    assert tracer.names.count("push_filter_below_project") == 1


def test_an_unchanged_plan_is_the_same_object() -> None:
    (query,) = compile_script(f"{RELATIONS} SELECT a FROM r;", "q.sql", lambda relation: ()).queries
    compiled = to_program(query)
    assert compiled.optimised[0] is compiled.queries[0] is query


def test_passes_say_why() -> None:
    assert all(each.reason for _, passes in ALL for each in passes)


def test_constants_of_a_union_leave_one_input() -> None:
    """TPC-DS Q4's shape: k is a constant in each input, so that WHERE asks for one of them."""
    lines = plan("SELECT v FROM (SELECT 'r' AS k, a AS v FROM r UNION ALL SELECT 's', c FROM s) u WHERE k = 's'")
    assert "Scan s" in lines
    assert "Scan r" not in lines
    assert "Filter" not in lines
