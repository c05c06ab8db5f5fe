"""SQL in, plan out."""

from textwrap import dedent

import pytest

from squallpy.base.types import BIGINT, DOUBLE, INT, VARCHAR, decimal
from squallpy.catalog.relation import Field, Relation
from squallpy.logical.bind import Script, compile_script
from squallpy.logical.explain_text import show
from squallpy.logical.nodes import Node

DECLARATIONS = (
    "CREATE STREAM r (a INT NOT NULL, b DECIMAL(10,2), s VARCHAR, d DATE, t TIMESTAMP, x DOUBLE, k BIGINT, f BOOLEAN) "
    "USING csv OPTIONS (path 'r.csv'); CREATE STREAM u (a INT, k BIGINT, v VARCHAR) USING csv OPTIONS (path 'u.csv');\n"
)


def no_files(relation: Relation) -> tuple[Field, ...]:
    raise AssertionError(f"{relation.name} has columns")


def bind(sql: str) -> Script:
    return compile_script(DECLARATIONS + sql, "q.sql", no_files)


def plan(sql: str) -> str:
    return show(bind(sql).queries[-1].plan)


def expression(sql: str) -> str:
    """How an expression over r is bound."""
    item = bind(f"SELECT {sql} AS e FROM r").queries[0].plan.items[0]  # type: ignore[attr-defined]
    return f"{item[1]} : {item[0].type}{'' if item[0].nullable else ' NOT NULL'}"


PLANS = {
    "SELECT a, b FROM r WHERE a > 1 ORDER BY b DESC LIMIT 3 OFFSET 1": """\
        Limit 3 offset 1
          Sort b DESC
            Project a, b
              Filter a > 1
                Scan r""",
    "SELECT a FROM r ORDER BY s DESC NULLS FIRST": """\
        Project a
          Sort s DESC NULLS FIRST
            Scan r""",
    "SELECT r.*, v AS w FROM r JOIN u USING (k) WHERE r.a <> u.a": """\
        Project a := r.a, b, s, d, t, x, k := r.k, f, w := v
          Filter r.a <> u.a
            Join on r.k = u.k
              Scan r
              Scan u""",
    "SELECT * FROM u AS one JOIN u two USING (k)": """\
        Project a := one.a, k := one.k, v := one.v, a := two.a, v := two.v
          Join on one.k = two.k
            Scan u AS one
            Scan u AS two""",
    "SELECT * EXCEPT (r.k, two.v) REPLACE (two.a + 1 AS TWO.a) RENAME (R.a AS b2, `two`.k AS c) FROM r, u two": """\
        Project b2 := r.a, b, s, d, t, x, f, a := two.a + 1, c := two.k
          Cross
            Scan r
            Scan u AS two""",
    "SELECT a FROM r WHERE EXISTS (SELECT 1 FROM u WHERE u.k = r.k AND u.a > r.a)": """\
        Project a
          Filter NOT found IS NULL
            Apply EXISTS found
              Scan r
              Project 1
                Filter k = outer(k) AND a > outer(a)
                  Scan u""",
    "SELECT a FROM r WHERE NOT a IN (SELECT 1 FROM u WHERE v = s)": """\
        Project a
          Filter NOT mark
            Apply MARK mark on a = 1
              Scan r
              Project 1
                Filter v = outer(s)
                  Scan u""",
    "SELECT (a, k) IN (SELECT a, k FROM u) m FROM r WHERE k < ANY (SELECT a FROM u) OR s <> ALL (SELECT v FROM u)": """\
        Project m := mark_4
          Apply MARK mark_4 on r.a = a_3 AND r.k = k_2
            Filter mark_2 OR NOT mark_3
              Apply MARK mark_3 on s = v
                Apply MARK mark_2 on r.k < a_2
                  Scan r
                  Project a_2 := a
                    Scan u
                Project v
                  Scan u
            Project a_3 := a, k_2 := k
              Scan u""",
    "SELECT (SELECT MAX(v) FROM u WHERE u.k > (SELECT MAX(one.a) FROM u one WHERE one.v = r.s)) AS m FROM r": """\
        Project m := MAX(v)
          Apply SCALAR MAX(v), found
            Scan r
            Project MAX(v)
              Aggregate: MAX(v)
                Filter k > MAX(one.a)
                  Apply SCALAR MAX(one.a), found
                    Scan u
                    Project MAX(one.a) := MAX(a)
                      Aggregate: MAX(a)
                        Filter v = outer(outer(s))
                          Scan u AS one""",
    "SELECT r.a, m FROM r LEFT JOIN LATERAL (SELECT SUM(k) AS m FROM u WHERE u.a < r.a) q ON m > 0": """\
        Project a, m
          Apply LEFT on m > 0
            Scan r
            Project m := SUM(k)
              Aggregate: SUM(k)
                Filter a < outer(a)
                  Scan u""",
    "SELECT k, SUM(a), COUNT(DISTINCT v), COUNT(*) FROM u GROUP BY k": """\
        Project k, SUM(a), COUNT(DISTINCT v), COUNT(*)
          Aggregate by k: SUM(a), COUNT(DISTINCT v), COUNT(*)
            Scan u""",
    "SELECT k, SUM(DISTINCT a) FILTER (WHERE v > 'x') AS s FROM u GROUP BY k": """\
        Project k, s := SUM(DISTINCT CASE WHEN v > 'x' THEN a ELSE NULL END)
          Aggregate by k: SUM(DISTINCT CASE WHEN v > 'x' THEN a ELSE NULL END)
            Scan u""",
    "SELECT STDDEV(b) AS s FROM r": """\
        Project s := SQRT(VAR_SAMP(COUNT(b), SUM(b), SUM(b), SUM(b * b)))
          Aggregate: COUNT(b), SUM(b), SUM(b * b)
            Scan r""",
    "SELECT * FROM u one RIGHT JOIN u two USING (k)": """\
        Project a := one.a, k := two.k, v := one.v, a := two.a, v := two.v
          Left join on one.k = two.k
            Scan u AS two
            Scan u AS one""",
    "SELECT k, x FROM u FULL JOIN r USING (k)": """\
        Project k := k_5, x
          Union all u.a, u.k, u.v, r.a, b, s, d, t, x, r.k, f, k_5
            Project u.a, u.k, u.v, r.a, b, s, d, t, x, r.k, f, k_3 := u.k
              Left join on u.k = r.k
                Scan u
                Scan r
            Project a_2, k_2, v_2, r.a, b, s, d, t, x, r.k, f, k_4 := r.k
              Project a_2 := NULL, k_2 := NULL, v_2 := NULL, r.a, b, s, d, t, x, r.k, f
                Anti join on u.k = r.k
                  Scan r
                  Scan u""",
    "SELECT * FROM u NATURAL JOIN (SELECT k, b FROM r) q": """\
        Project a, k := u.k, v, b
          Join on u.k = k_2
            Scan u
            Project k_2 := k, b
              Scan r""",
    "SELECT * FROM u LEFT SEMI JOIN r ON u.k = r.k LEFT ANTI JOIN r USING (a)": """\
        Project a := u.a, k := u.k, v
          Anti join on u.a = a_2
            Semi join on u.k = r.k
              Scan u
              Scan r
            Scan r""",
    "SELECT one.v FROM u one, u two CROSS JOIN r INNER JOIN u three ON one.a = three.a": """\
        Project v := one.v
          Join on one.a = three.a
            Cross
              Cross
                Scan u AS one
                Scan u AS two
              Scan r
            Scan u AS three""",
    "SELECT YEAR(d) AS y, SUM(b) / COUNT(*) AS m FROM r GROUP BY y HAVING SUM(a) > 3 ORDER BY COUNT(*) DESC, y": """\
        Project y, m := CAST(SUM(b) AS DOUBLE) / CAST(COUNT(*) AS DOUBLE)
          Sort COUNT(*) DESC, y
            Filter SUM(a) > 3
              Aggregate by y := EXTRACT_YEAR(d): SUM(b), COUNT(*), SUM(a)
                Scan r""",
    "SELECT s, COUNT(*) n FROM r GROUP BY 1 ORDER BY 2 DESC, 1": """\
        Sort n DESC, s
          Project s, n := COUNT(*)
            Aggregate by s: COUNT(*)
              Scan r""",
    "SELECT SUM(a) AS a FROM r GROUP BY s HAVING a > 1": """\
        Project a := SUM(a)
          Filter SUM(a) > 1
            Aggregate by s: SUM(a)
              Scan r""",
    "SELECT DISTINCT a, s FROM r ORDER BY s": """\
        Sort s
          Project a, s
            Aggregate by a, s
              Scan r""",
    "SELECT DISTINCT s, COUNT(*) AS n FROM r GROUP BY s": """\
        Project s, n := COUNT(*)
          Aggregate by s: COUNT(*)
            Scan r""",
    "SELECT c FROM (SELECT a AS c, SUM(b) AS total FROM r GROUP BY a) q WHERE total > 3 ORDER BY c": """\
        Sort c
          Project c
            Filter total > 3.00
              Project c := a, total := SUM(b)
                Aggregate by a: SUM(b)
                  Scan r""",
    "WITH w AS (SELECT a, d + 3 AS e FROM r WHERE f), z (p) AS (SELECT e FROM w) SELECT w.a, p FROM w, z": """\
        Project a, p
          Cross
            Project a, e := ADD_DAYS(d, 3)
              Filter f
                Scan r
            Project p := e
              Project a, e := ADD_DAYS(d, 3)
                Filter f
                  Scan r""",
    "SELECT * EXCEPT (a) REPLACE (k + 1 AS k) RENAME (v AS w) FROM u": """\
        Project k := k + 1, w := v
          Scan u""",
    "SELECT * FROM u PIVOT (SUM(a) FOR v IN ('x' AS one))": """\
        Project k, one
          Project k, one := SUM(CASE WHEN v = 'x' THEN a ELSE NULL END)
            Aggregate by k: SUM(CASE WHEN v = 'x' THEN a ELSE NULL END)
              Scan u""",
    "SELECT * FROM u UNPIVOT (n FOR t IN (a, k AS b)) AS p": """\
        Project v, t, n
          Project v, t, n
            Union all v, t, n
              Project v_2 := v, t_2 := t, n_2 := CAST(n AS BIGINT)
                Project v, t := 'a', n := a
                  Filter NOT a IS NULL
                    Scan u
              Project v_3 := v, t_3 := t, n_3 := n
                Project v, t := 'b', n := k
                  Filter NOT k IS NULL
                    Scan u""",
    "CREATE VIEW w (p, q) AS SELECT a, SUM(b) FROM r GROUP BY a; SELECT q FROM w WHERE p = 3": """\
        Project q
          Filter p = 3
            Project p := a, q := SUM(b)
              Aggregate by a: SUM(b)
                Scan r""",
}


@pytest.mark.parametrize("sql", PLANS)
def golden_plan(sql: str) -> None:
    assert plan(sql) == dedent(PLANS[sql])


EXPRESSIONS = {
    "a + 1": "a + 1 : BIGINT NOT NULL",
    "b + 1": "b + 1.00 : DECIMAL(11,2)",
    "a + b": "CAST(a AS DECIMAL(12,2)) + b : DECIMAL(13,2)",
    "b * 0.065": "b * 0.065 : DECIMAL(13,5)",
    "b * a": "b * CAST(a AS DECIMAL(10,0)) : DECIMAL(20,2)",
    "x + b": "x + CAST(b AS DOUBLE) : DOUBLE",
    "a / 2": "CAST(a AS DOUBLE) / 2.0 : DOUBLE NOT NULL",
    "2 / a": "2.0 / CAST(a AS DOUBLE) : DOUBLE",
    "a % 3": "a % 3 : BIGINT NOT NULL",
    "-1": "-1 : INT NOT NULL",
    "- b": "-b : DECIMAL(10,2)",
    "3000000000": "3000000000 : BIGINT NOT NULL",
    "9223372036854775808": "9223372036854775808 : DECIMAL(19,0) NOT NULL",
    ".06": "0.06 : DECIMAL(2,2) NOT NULL",
    "1e3": "1000.0 : DOUBLE NOT NULL",
    "NULL": "NULL : VARCHAR",
    "a = k": "a = k : BOOLEAN",
    "a < 2.5": "CAST(a AS DECIMAL(11,1)) < 2.5 : BOOLEAN NOT NULL",
    "b < 24": "b < 24.00 : BOOLEAN",
    "d >= '1994-01-01'": "d >= DATE '1994-01-01' : BOOLEAN",
    "d < TIMESTAMP '2020-01-01 12:00:00'": "CAST(d AS TIMESTAMP) < TIMESTAMP '2020-01-01 12:00:00' : BOOLEAN",
    "a BETWEEN 1 AND 2": "a >= 1 AND a <= 2 : BOOLEAN NOT NULL",
    "s NOT IN ('x', 'y')": "NOT s IN ('x', 'y') : BOOLEAN",
    "a IN (1, k)": "a = 1 OR a = k : BOOLEAN",
    "s LIKE 'a%'": "s LIKE 'a%' : BOOLEAN",
    "s LIKE 'a!_' ESCAPE '!'": "s LIKE 'a!_' ESCAPE '!' : BOOLEAN",
    "s ILIKE 'A%'": "LOWER(s) LIKE LOWER('A%') : BOOLEAN",
    "s IS NOT NULL": "NOT s IS NULL : BOOLEAN NOT NULL",
    "f IS TRUE": "f AND NOT f IS NULL : BOOLEAN",
    "CASE a WHEN 1 THEN 'x' END": "CASE WHEN a = 1 THEN 'x' ELSE NULL END : VARCHAR",
    "CASE WHEN f THEN 1 ELSE 2.5 END": "CASE WHEN f THEN 1.0 ELSE 2.5 END : DECIMAL(11,1) NOT NULL",
    "COALESCE(s, 'n')": "CASE WHEN NOT s IS NULL THEN s ELSE 'n' END : VARCHAR NOT NULL",
    "NULLIF(a, 0)": "CASE WHEN a = 0 THEN NULL ELSE a END : INT",
    "IF(f, a, 0)": "CASE WHEN f THEN a ELSE 0 END : INT NOT NULL",
    "CONCAT(s, 'x', s)": "s || 'x' || s : VARCHAR",
    "SUBSTRING(s FROM 2 FOR 3)": "SUBSTRING(s, 2, 3) : VARCHAR",
    "substr(s, 2)": "SUBSTRING(s, 2) : VARCHAR",
    "EXTRACT(MONTH FROM d)": "EXTRACT_MONTH(d) : INT",
    "CAST(b AS INT)": "CAST(b AS INT) : INT",
    "a::double": "CAST(a AS DOUBLE) : DOUBLE NOT NULL",
    "'3'::int": "3 : INT NOT NULL",
    "DATE '1994-01-01' + INTERVAL '1' YEAR": "DATE '1995-01-01' : DATE NOT NULL",
    "DATE '2024-01-31' + INTERVAL 1 MONTH": "DATE '2024-02-29' : DATE NOT NULL",
    "DATE '1998-12-01' - INTERVAL '90' DAY": "DATE '1998-09-02' : DATE NOT NULL",
    "d - INTERVAL '1 month 3 days'": "ADD_DAYS(ADD_MONTHS(d, -1), -3) : DATE",
    "t + INTERVAL 5 MINUTES": "ADD_MICROS(t, 300000000) : TIMESTAMP",
    "d + INTERVAL 1 HOUR": "ADD_MICROS(CAST(d AS TIMESTAMP), 3600000000) : TIMESTAMP",
    "d + a * INTERVAL '2' DAY": "ADD_DAYS(d, 2 * a) : DATE",
    "t - INTERVAL a HOUR": "ADD_MICROS(t, MICROS(DAY_TO_SECOND(-MICROS(DAY_TO_SECOND(3600000000 * a))))) : TIMESTAMP",
    "d + INTERVAL (a) MONTH": "ADD_MONTHS(d, a) : DATE",
    "t - t": "DAY_TO_SECOND(MICROS(t) - MICROS(t)) : INTERVAL DAY TO SECOND",
    "t - t < INTERVAL '1' DAY": "MICROS(DAY_TO_SECOND(MICROS(t) - MICROS(t))) < 86400000000 : BOOLEAN",
    "d - d > INTERVAL '5' DAY": "(DAYS_BETWEEN(d, d) * 86400000000) > 432000000000 : BOOLEAN",
    "EXTRACT(DAY FROM d - d)": "DAYS_BETWEEN(d, d) : INT",
    "INTERVAL '1' DAY > INTERVAL '23' HOUR": "86400000000 > 82800000000 : BOOLEAN NOT NULL",
    "d - 1": "ADD_DAYS(d, -1) : DATE",
    "d - d": "DAYS_BETWEEN(d, d) : INT",
    "ROUND(b, 1)": "CAST(b AS DECIMAL(10,1)) : DECIMAL(10,1)",
    "ROUND(a, 1)": "a : INT NOT NULL",
    "ROUND(x)": "ROUND(x, 0) : DOUBLE",
    "CEIL(b)": "CEIL(b) : DECIMAL(9,0)",
    "FLOOR(x)": "FLOOR(x) : BIGINT",
    "GREATEST(a, k)": "GREATEST(CAST(a AS BIGINT), k) : BIGINT NOT NULL",
    "RIGHT(s, 2)": "SUBSTRING(s, -2, 2) : VARCHAR",
    "DATE_TRUNC('MM', t)": "CAST(TRUNC(t, 'month') AS TIMESTAMP) : TIMESTAMP",
    "a IS DISTINCT FROM k": "NOT (a <=> k) : BOOLEAN NOT NULL",
}


@pytest.mark.parametrize("sql", EXPRESSIONS)
def golden_expression(sql: str) -> None:
    assert expression(sql) == EXPRESSIONS[sql]


def test_types_of_aggregates() -> None:
    query = bind("SELECT COUNT(*), COUNT(s), SUM(a), SUM(b), SUM(x), AVG(b), s FROM r GROUP BY s").queries[0]
    types = [(column.type, column.nullable) for column in query.plan.output]
    assert types == [
        (BIGINT, False), (BIGINT, False), (BIGINT, True), (decimal(38, 2), True), (DOUBLE, True), (DOUBLE, True),
        (VARCHAR, True),
    ]  # fmt: skip


def test_ways_to_write_any_value() -> None:
    least = "Aggregate: MIN(a)\n"
    for call in ("ANY_VALUE(a, FALSE)", "FIRST(a, TRUE)", "FIRST_VALUE(a) IGNORE NULLS", "FIRST(a RESPECT NULLS)"):
        assert least in plan(f"SELECT {call} FROM r")
    assert "Aggregate: MAX(a)\n" in plan("SELECT LAST(a), LAST_VALUE(a IGNORE NULLS) FROM r")


def test_equal_aggregates_share_a_column() -> None:
    assert "Aggregate: COUNT(*)\n" in plan("SELECT COUNT(*), COUNT(a), COUNT(1) + COUNT(*) FROM r")


def test_ways_to_write_a_rollup() -> None:
    rollup = plan("SELECT a, s, COUNT(*) FROM r GROUP BY ROLLUP (a, s)")
    assert plan("SELECT a, s, COUNT(*) FROM r GROUP BY a, s WITH ROLLUP") == rollup
    assert plan("SELECT a, s, COUNT(*) FROM r GROUP BY GROUPING SETS ((a, s), a, ())") == rollup
    assert plan("SELECT a, s, COUNT(*) FROM r GROUP BY a, s GROUPING SETS ((a, s), (a), ())") == rollup
    assert plan("SELECT a, s, COUNT(*) FROM r GROUP BY ROLLUP ((a, s))") != rollup


def test_names_are_aliases_columns_or_text() -> None:
    assert bind("SELECT a AS one, S, sum(b) + 1 FROM r GROUP BY a, s").queries[0].names == ("one", "S", "SUM(b) + 1")


def test_ids_are_unique_in_a_plan() -> None:
    query = bind("CREATE VIEW w AS SELECT a, k FROM u; SELECT * FROM w x JOIN w y ON x.a = y.k").queries[0]

    def ids(node: Node) -> list[int]:
        own = [c.id for c in node.output if all(c not in child.output for child in node.inputs)]
        return own + [i for child in node.inputs for i in ids(child)]

    found = ids(query.plan)
    assert len(found) == len(set(found))


def test_several_queries_are_numbered_and_keep_their_text() -> None:
    queries = bind("SELECT a FROM r -- one;\n; SELECT v FROM u").queries
    assert [(q.number, q.text) for q in queries] == [(1, "SELECT a FROM r -- one;"), (2, "SELECT v FROM u")]


def test_fields_are_inferred_where_none_are_declared() -> None:
    script = compile_script(
        "CREATE TABLE n USING parquet OPTIONS (path 'n'); SELECT key FROM n", "q.sql", lambda _: (Field("key", INT),)
    )
    assert script.relations["n"].fields == (Field("key", INT),)
    assert script.queries[0].plan.output[0].type == INT


def test_long_conditions_are_flat() -> None:
    assert plan("SELECT a FROM r WHERE " + " AND ".join(f"a <> {i}" for i in range(3000))).count("AND") == 2999
