"""Mistakes in calls of table functions over joins: each has a code, points at its place and says what to write."""

import pytest

from squallpy.base.errors import SquallError
from squallpy.compiler import to_program
from squallpy.functions.model_functions import LeastSquares
from squallpy.logical.bind import compile_script
from squallpy.logical.factorised import Factorised
from squallpy.logical.nodes import nodes

STREAMS = (
    "CREATE STREAM r (k INT, x DOUBLE, name VARCHAR, ok BOOLEAN, day DATE) USING csv OPTIONS (path 'r'); "
    "CREATE STREAM s (k INT, y DOUBLE, j INT) USING csv OPTIONS (path 's'); "
    "CREATE STREAM t (j INT, z DECIMAL(8, 2)) USING csv OPTIONS (path 't'); "
    "CREATE VIEW outers AS SELECT x, y FROM r LEFT JOIN s ON r.k = s.k; "
    "CREATE VIEW totals AS SELECT k, SUM(y) AS y FROM s GROUP BY k; "
    "CREATE VIEW twice AS SELECT k, y AS once, y AS again FROM s; "
    "CREATE VIEW distinct_keys AS SELECT DISTINCT k, j FROM s; "
    f"CREATE STREAM wide ({', '.join(f'x{i} INT' for i in range(17))}) USING csv OPTIONS (path 'w'); "
    "CREATE VIEW models AS SELECT value FROM cofactor(TABLE(SELECT y, j FROM s)) AS c;\n"
)
HINT = "it reads columns of inner joins by equality, with WHERE on single relations"

# call → code, column, part of the message; each stands behind SELECT * FROM in line 2
ERRORS = {
    "cofacto(TABLE(SELECT x FROM r))": ("SQ2004", 15, 'unknown table function "cofacto", did you mean "cofactor"?'),
    "upper('x')": ("SQ3001", 15, "a table function is not supported yet"),
    "cofactor(TABLE(SELECT x, name FROM r NATURAL JOIN s))": (
        "SQ2002", 40, 'cofactor is of numbers, "name" is VARCHAR, leave it out of the SELECT list'),
    "cofactor(TABLE(SELECT ok, x FROM r NATURAL JOIN s))": ("SQ2002", 37, 'cofactor is of numbers, "ok" is BOOLEAN'),
    "cofactor(TABLE(SELECT x, day AS d FROM r))": ("SQ2002", 40, 'cofactor is of numbers, "d" is DATE'),
    "cofactor(TABLE(SELECT * FROM r NATURAL JOIN s))": ("SQ2002", 37, 'cofactor is of numbers, "name" is VARCHAR'),
    "cofactor(TABLE(r))": ("SQ2002", 30, 'cofactor is of numbers, "name" is VARCHAR'),
    "ols(TABLE(SELECT x, y, name FROM r NATURAL JOIN s), 'y')": ("SQ2002", 38, 'ols is of numbers, "name" is VARCHAR'),
    "mutual_information(TABLE(SELECT name, y FROM r NATURAL JOIN s))": (
        "SQ2002", 53, 'mutual_information is of categories, "y" is DOUBLE, round it to an integer, or leave it out'),
    "chow_liu(TABLE(SELECT name, z FROM r NATURAL JOIN s NATURAL JOIN t))": (
        "SQ2002", 43, 'chow_liu is of categories, "z" is DECIMAL(8,2)'),
    "mutual_information(TABLE(SELECT name FROM r NATURAL JOIN s))": (
        "SQ2005", 47, "mutual_information is of pairs of columns, it lists one, list two columns or more"),
    "cofactor(TABLE(SELECT x, y, X FROM r NATURAL JOIN s))": (
        "SQ2005", 43, 'cofactor lists the column "X" twice, list it once'),
    "cofactor(TABLE(SELECT x, y AS x FROM r NATURAL JOIN s))": ("SQ2005", 40, 'cofactor lists the column "x" twice'),
    "cofactor(TABLE(SELECT x, x AS x2 FROM r NATURAL JOIN s))": (
        "SQ2005", 40, 'cofactor lists the same column twice, as "x" and as "x2", list it once'),
    "cofactor(TABLE(SELECT r.k, x, s.k AS k2 FROM r JOIN s ON r.k = s.k))": (
        "SQ2005", 45, 'cofactor lists the same column twice, as "k" and as "k2"'),
    "cofactor(TABLE(SELECT x, once, again FROM r NATURAL JOIN twice))": (
        "SQ2005", 46, 'cofactor lists the same column twice, as "once" and as "again"'),
    "cofactor(TABLE(SELECT x, y FROM r LEFT JOIN s USING (k)))": (
        "SQ3001", 59, f"LEFT JOIN inside TABLE(…) of cofactor is not supported, {HINT}"),
    "ols(TABLE(SELECT x, y FROM r RIGHT JOIN s USING (k)), 'x')": ("SQ3001", 55, "RIGHT JOIN inside TABLE(…) of ols"),
    "cofactor(TABLE(SELECT x, y FROM r FULL OUTER JOIN s USING (k)))": ("SQ3001", 65, "FULL OUTER JOIN inside"),
    "cofactor(TABLE(SELECT x FROM r LEFT SEMI JOIN s USING (k)))": ("SQ3001", 61, "LEFT SEMI JOIN inside"),
    "cofactor(TABLE(SELECT x FROM r ANTI JOIN s USING (k)))": ("SQ3001", 56, "ANTI JOIN inside"),
    "cofactor(TABLE(outers))": ("SQ3001", 30, "an outer join inside TABLE(…) of cofactor is not supported"),
    "cofactor(TABLE(SELECT x, y FROM r JOIN s ON r.k < s.k))": (
        "SQ3001", 37, f"r.k < s.k inside TABLE(…) of cofactor reads several relations, which is not supported, {HINT}"),
    "cofactor(TABLE(SELECT x, y FROM r JOIN s ON r.k = s.k AND x <> y))": ("SQ3001", 37, "r.x <> s.y inside TABLE(…)"),
    "cofactor(TABLE(SELECT x, y FROM r, s WHERE r.k = s.k OR x = y))": (
        "SQ3001", 37, "r.k = s.k OR r.x = s.y inside TABLE(…)"),
    "cofactor(TABLE(SELECT x, y FROM r, s WHERE r.k + s.k = 3))": ("SQ3001", 37, "(r.k + s.k) = 3 inside TABLE(…)"),
    "cofactor(TABLE(SELECT x * y AS area FROM r NATURAL JOIN s))": (
        "SQ3001", 37, '"area" inside TABLE(…) of cofactor is computed from several relations'),
    "cofactor(TABLE(SELECT k, COUNT(*) AS n FROM r GROUP BY k))": ("SQ3001", 37, "GROUP BY inside TABLE(…)"),
    "cofactor(TABLE(SELECT SUM(x) AS n FROM r))": ("SQ3001", 37, "an aggregate inside TABLE(…)"),
    "cofactor(TABLE(SELECT x, totals.y FROM r NATURAL JOIN totals))": ("SQ3001", 37, "an aggregate inside TABLE(…)"),
    "cofactor(TABLE(distinct_keys))": ("SQ3001", 30, "DISTINCT inside TABLE(…)"),
    "cofactor(TABLE(SELECT DISTINCT x, y FROM r NATURAL JOIN s))": ("SQ3001", 46, "DISTINCT inside TABLE(…)"),
    "cofactor(TABLE(SELECT x, y FROM r NATURAL JOIN s LIMIT 5))": ("SQ3001", 37, "LIMIT inside TABLE(…)"),
    "cofactor(TABLE(SELECT x FROM (SELECT x FROM r LIMIT 5) AS q))": ("SQ3001", 52, "LIMIT inside TABLE(…)"),
    "cofactor(TABLE(SELECT x, RANK() OVER (ORDER BY x) AS n FROM r))": ("SQ3001", 40, "a window function inside TABLE"),
    "cofactor(TABLE(SELECT x, y FROM r NATURAL JOIN s ROWS 10))": ("SQ3001", 37, "a window inside TABLE(…)"),
    "cofactor(TABLE(SELECT x FROM r UNION ALL SELECT y FROM s))": (
        "SQ2005", 15, "cofactor reads columns of a join, write cofactor(TABLE(SELECT x, y FROM r JOIN s USING (k)))"),
    "cofactor(TABLE(SELECT x FROM (SELECT x FROM r UNION SELECT y FROM s) AS q))": (
        "SQ3001", 52, "a set operation inside TABLE(…)"),
    "cofactor(TABLE(SELECT x FROM r WHERE EXISTS (SELECT 1 FROM s WHERE s.k = r.k)))": (
        "SQ3001", 67, "EXISTS inside TABLE(…)"),
    "cofactor(TABLE(SELECT x FROM r WHERE k IN (SELECT k FROM s)))": ("SQ3001", 52, "IN with a query inside TABLE(…)"),
    "cofactor(TABLE(SELECT x FROM r WHERE x > (SELECT MAX(y) FROM s)))": ("SQ3001", 64, "a subquery inside TABLE(…)"),
    "cofactor(TABLE(SELECT x, y FROM r, LATERAL (SELECT y FROM s WHERE s.k = r.k) AS q))": (
        "SQ3001", 66, "LATERAL inside TABLE(…)"),
    "cofactor(TABLE(SELECT value FROM cofactor(TABLE(SELECT y, j FROM s))))": (
        "SQ3001", 48, "a table function inside TABLE(…)"),
    "cofactor(TABLE(models))": ("SQ3001", 30, "a table function inside TABLE(…)"),
    "cofactor(TABLE(SELECT u FROM r NATURAL JOIN s))": ("SQ2003", 37, 'unknown column "u"'),
    "cofactor(TABLE(q))": ("SQ2001", 30, 'unknown table "q"'),
    "cofactor(r)": ("SQ2005", 15, "cofactor reads columns of a join, write cofactor(TABLE(SELECT x, y FROM"),
    "cofactor()": ("SQ2005", 15, "cofactor reads columns of a join"),
    "cofactor(TABLE())": ("SQ2005", 15, "cofactor reads columns of a join"),
    "cofactor(TABLE(SELECT x FROM r), 5)": ("SQ2005", 48, "cofactor has too many arguments"),
    "cofactor(TABLE(SELECT x FROM r), ridge => 5)": ("SQ2005", 57, 'cofactor has no argument "ridge"'),
    "ols(TABLE(SELECT x, y FROM r NATURAL JOIN s), 'y', ridges => 5)": (
        "SQ2005", 76, 'ols has no argument "ridges", did you mean "ridge"?'),
    "cofactor(TABLE(SELECT x, k FROM r) PARTITION BY j)": (
        "SQ2003", 63, "TABLE(…) of cofactor does not select j, by which it is partitioned, known: k, x"),
    "cofactor(TABLE(SELECT x, k FROM r) PARTITION BY k + 1)": (
        "SQ2003", 63, "TABLE(…) of cofactor does not select k + 1"),
    "cofactor(TABLE(SELECT r.k, s.k, x FROM r JOIN s ON r.k = s.j) PARTITION BY k)": (
        "SQ2002", 90, 'ambiguous column "k" in PARTITION BY, rename one with AS'),
    "cofactor(TABLE(SELECT r.k, x FROM r JOIN s ON r.k = s.j) PARTITION BY s.k)": (
        "SQ2003", 85, "TABLE(…) of cofactor does not select s.k, by which it is partitioned"),
    "cofactor(TABLE(SELECT r.k, x, s.k AS k2 FROM r JOIN s ON r.k <=> s.k))": (
        "SQ2005", 45, 'cofactor lists the same column twice, as "k" and as "k2"'),
    "cofactor(TABLE(SELECT k, x FROM r) PARTITION BY q.k)": (
        "SQ2003", 63, "TABLE(…) of cofactor does not select q.k, by which it is partitioned"),
    "cofactor(TABLE(SELECT x, k FROM r) PARTITION BY x, k)": (
        "SQ2005", 66, "cofactor has too many arguments, for several columns write PARTITION BY (a, b)"),
    "cofactor(TABLE(SELECT x, k FROM r) PARTITION BY (x, k))": (
        "SQ2005", 37, "cofactor lists no column but those of PARTITION BY, list columns of numbers"),
    "cofactor(TABLE(SELECT x, k FROM r) PARTITION BY)": (
        "SQ1001", 62, "the query ends too early, expected an expression"),
    "ols(TABLE(SELECT x, y FROM r NATURAL JOIN s), 'z')": (
        "SQ2003", 61, 'TABLE(…) has no column "z" for ols, known: x, y'),
    "ols(TABLE(SELECT x, y FROM r NATURAL JOIN s))": ("SQ2003", 15, "ols has no label, write ols(TABLE(…), 'y')"),
    "ols(TABLE(SELECT x, y FROM r NATURAL JOIN s), y)": (
        "SQ2003", 61, "the label y is no name of a column, write ols(TABLE(…), 'y')"),
    "ols(TABLE(SELECT x, y, s.k FROM r JOIN s ON r.k = s.k) PARTITION BY k, 'k')": (
        "SQ2003", 86, 'TABLE(…) has no column "k" for ols'),
    "ols(TABLE(SELECT y FROM r NATURAL JOIN s), 'y')": (
        "SQ2005", 15, 'TABLE(…) has no column but "y" for ols, list what explains it'),
    "ols(TABLE(SELECT x, y FROM r NATURAL JOIN s), 'y', ridge => -0.5)": (
        "SQ2012", 76, "a ridge of -0.5, it is a number from 0 on"),
    "ols(TABLE(SELECT x, y FROM r NATURAL JOIN s), 'y', ridge => 'a')": ("SQ2012", 75, "a ridge of 'a'"),
    "ols(TABLE(SELECT x, y FROM r NATURAL JOIN s), 'y', ridge => 1e999)": ("SQ2012", 75, "a ridge of 1e999"),
    "ols(TABLE(SELECT x, y FROM r NATURAL JOIN s), 'y', ridge => CAST(0.9 AS INT))": (
        "SQ2012", 80, "a ridge of CAST(0.9 AS INT), it is a number from 0 on"),
    "ols(TABLE(SELECT x, y FROM r NATURAL JOIN s), 'y', intercept => 1)": (
        "SQ2012", 79, "the intercept is 1, write TRUE or FALSE"),
    "ols(TABLE(SELECT x, y FROM r NATURAL JOIN s), 'y', solver => 'BDG')": (
        "SQ2012", 76, "ols has no solver 'BDG', did you mean \"bgd\"?"),
    "ols(TABLE(SELECT x, y FROM r NATURAL JOIN s), 'y', solver => 7)": (
        "SQ2012", 76, "ols has no solver 7, known: bgd, cholesky"),
    "ols(TABLE(r), 'x', solver => 'lu')": ("SQ2012", 44, "ols has no solver 'lu', known: bgd, cholesky"),
    "ols(TABLE(SELECT x, y FROM r NATURAL JOIN s), 'y', label => 'y')": (
        "SQ2007", 75, 'ols has the argument "label" twice, give it once'),
    "cofactor(TABLE(SELECT 1 AS one))": ("SQ3001", 37, "a query without FROM inside TABLE(…)"),
    "ols(TABLE(r), 'x', ridge => 1, RIDGE => 2)": ("SQ2007", 55, 'ols has the argument "ridge" twice, give it once'),
    "ols(TABLE(SELECT k AS intercept, x, y FROM r NATURAL JOIN s), 'x', intercept => TRUE)": (
        "SQ2007", 32, 'ols would have two features "intercept", rename the column'),
    "cofactor(TABLE(SELECT x, y FROM r NATURAL JOIN s), degree => 5)": (
        "SQ2012", 76, "a degree of 5, it is a number from 1 to 4"),
    "cofactor(TABLE(SELECT x, y FROM r NATURAL JOIN s), degree => 1.5)": ("SQ2012", 76, "a degree of 1.5"),
    "cofactor(TABLE(SELECT x, y FROM r NATURAL JOIN s), degree => '2')": ("SQ2012", 76, "a degree of '2'"),
    "cofactor(TABLE(SELECT x, y FROM r NATURAL JOIN s), degrees => 2)": (
        "SQ2005", 77, 'cofactor has no argument "degrees", did you mean "degree"?'),
    "cofactor(TABLE(SELECT x, y, k AS `x*y` FROM r NATURAL JOIN s), degree => 2)": (
        "SQ2007", 43, 'cofactor would have two features "x*y", rename the column'),
    "cofactor(TABLE(wide), degree => 3)": (
        "SQ3001", 30, "cofactor of 17 columns to degree 3 would take 201,911 numbers for each key, list at most 16"),
    "mutual_information(TABLE(SELECT k, name FROM r), degree => 2)": (
        "SQ2005", 74, 'mutual_information has no argument "degree"'),
    "cofactor(TABLE(SELECT x, y FROM r NATURAL JOIN s), order => 'o')": ("SQ2001", 75, "unknown variable order 'o'"),
}  # fmt: skip

# the lines of an order for x and y in r(k, x) ⋈ s(k, y), the first of which is line 3   →   the message
ORDERS = {
    "3 2; 0 k int -1 {} 0; 1 x double 0 {0} 0; 2 y double 0 {0} 0; r 1 k,x": (
        "SQ1001 q.sql:3:3: 1 relations are listed, not 2, write 1, or list all relations"),
    "2 2; 0 k int -1 {} 0; 1 x double 0 {0} 0; r 1 k,x; s 0 k,y": 'SQ2003 q.sql:7:7: unknown variable "y", known: k, x',
    "3 2; 0 k int -1 {} 0; 1 x double 0 {0} 0; 2 z double 0 {0} 0; r 1 k,x; s 2 k,z": (
        'SQ2003 q.sql:6:1: unknown variable "z", known: k, x, y'),
    "3 2; 0 x double -1 {} 0; 1 k int 0 {0} 0; 2 y double 0 {0} 0; r 1 k,x; s 2 k,y": (
        'SQ2013 q.sql:8:1: "k" and "y" of "s" are not on one path from the root'),
    "3 2; 0 k int 1 {} 0; 1 x double 0 {0} 0; 2 y double 0 {0} 0; r 1 k,x; s 2 k,y": (
        "SQ2013 q.sql:4:1: parents make a cycle: k → x → k, a root has the parent -1"),
    "3 2; 0 k int -1 {} 0; 1 x double -1 {} 0; 2 y double 0 {0} 0; r 1 k,x; s 2 k,y": (
        'SQ2013 q.sql:7:1: "k" and "x" of "r" are not on one path from the root: there are two roots, "k" and "x"'),
    "3 2; 0 k int -1 {} 0; 1 x double 0 {0} 0; 2 y double 0 {0} 0; r 1 k,x; q 2 k,y": (
        'SQ2001 q.sql:8:1: the query does not join "q", known: r, s'),
    "3 1; 0 k int -1 {} 0; 1 x double 0 {0} 0; 2 y double 0 {0} 0; r 1 k,x": (
        'SQ2013 q.sql:2:23: the variable order has no relation "s", list every relation that the query joins'),
    "2 2; 0 k int -1 {} 0; 1 x double 0 {0} 0; r 1 k,x; s 0 k": (
        'SQ2013 q.sql:2:23: the variable order has no variable "y", list every column that it reads'),
    "3 2; 0 k int -1 {} 0; 1 x double 0 {0} 0; 2 y double 0 {0} 0; r 1 k,x; s 2 y": (
        'SQ2013 q.sql:8:1: "k" is missing in the columns of "s"'),
    "3 2; 0 k int -1 {} 0; 1 x text 0 {0} 0; 2 y double 0 {0} 0; r 1 k,x; s 2 k,y": (
        'SQ2005 q.sql:5:5: unknown type "text", did you mean "date"?'),
    "": "SQ1001 q.sql:2:30: a variable order begins with the numbers of its variables and relations, write 4 2",
}  # fmt: skip


def refuse(sql: str) -> SquallError:
    """Return the error that refuses a script, one of its queries compiled."""
    with pytest.raises(SquallError) as refused:
        for query in compile_script(sql, "q.sql", lambda relation: ()).queries:
            to_program(query)
    return refused.value


@pytest.mark.parametrize("call", ERRORS)
def test_errors(call: str) -> None:
    code, column, message = ERRORS[call]
    error = refuse(f"{STREAMS}SELECT * FROM {call};")
    assert (error.code, error.span and (error.span.line, error.span.column)) == (code, (2, column)), error
    assert str(error).startswith(f"{code} q.sql:2:{column}: {message}"), error


@pytest.mark.parametrize("order", ORDERS)
def test_orders(order: str) -> None:
    body = "".join(f"{line.strip()}\n" for line in order.split(";") if line)
    query = "SELECT * FROM cofactor(TABLE(SELECT x, y FROM r NATURAL JOIN s), order => 'o')"
    error = refuse(f"{STREAMS}CREATE VARIABLE ORDER o AS $$\n{body}$$;\n{query};")
    assert str(error).startswith(ORDERS[order]), error


def test_too_many_features() -> None:
    columns = ", ".join(f"x{i} DOUBLE" for i in range(1001))
    script = f"CREATE STREAM r ({columns}) USING csv OPTIONS (path 'r');\nSELECT * FROM cofactor(TABLE(r));"
    told = "cofactor of 1,001 columns would take 1,006,007 numbers for each key, list at most 1,000 columns"
    assert str(refuse(script)) == f"SQ3001 q.sql:2:30: {told}"


@pytest.mark.parametrize(("written", "ridge"), [("2", 2.0), ("0.9", 0.9), ("0.9D", 0.9), (".5F", 0.5), ("3L", 3.0)])
def test_ridges(written: str, ridge: float) -> None:
    query = f"SELECT * FROM ols(TABLE(SELECT x, y FROM r NATURAL JOIN s), 'y', ridge => {written})"
    (compiled,) = compile_script(f"{STREAMS}{query};", "q.sql", lambda relation: ()).queries
    (bound,) = (node for node in nodes(compiled.plan) if isinstance(node, Factorised))
    assert bound.model == LeastSquares(1, ridge=ridge)
