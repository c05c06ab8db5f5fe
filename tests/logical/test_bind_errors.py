"""Every mistake has a code and points at its token."""

import pytest

from squallpy.base.errors import SquallError
from squallpy.compiler import to_program
from squallpy.logical.bind import compile_script

DECLARATIONS = (
    "CREATE STREAM r (a INT, b DECIMAL(10,2), s VARCHAR, d DATE, t TIMESTAMP, f BOOLEAN) USING csv OPTIONS (path 'r'); "
    "CREATE STREAM u (a INT, v VARCHAR) USING csv OPTIONS (path 'u');\n"
)

# sql → code, column, part of the message; the text of each query starts in line 2
ERRORS = {
    "SELECT a FROM rr": ("SQ2001", 15, 'unknown table "rr", did you mean "r"?'),
    "WITH p AS (SELECT a FROM r UNION SELECT a FROM p) SELECT a FROM p": (
        "SQ2001",
        48,
        'unknown table "p", write WITH RECURSIVE, for a query that reads itself or one that comes later',
    ),
    "WITH p AS (SELECT a FROM r JOIN P2 USING (a)), p2 AS (SELECT a FROM r) SELECT a FROM p": (
        "SQ2001",
        33,
        'unknown table "P2", write WITH RECURSIVE, for a query that reads itself or one that comes later',
    ),
    "SELECT x.a FROM r": ("SQ2001", 8, 'unknown table "x" in FROM'),
    "SELECT a FROM r, u": ("SQ2002", 8, 'ambiguous column "a", write r.a or u.a'),
    "SELECT price FROM (SELECT a AS prices FROM r)": ("SQ2003", 8, 'unknown column "price", did you mean "prices"?'),
    "SELECT lenght(s) FROM r": ("SQ2004", 8, 'unknown function "lenght", did you mean "LENGTH"?'),
    "SELECT pagerank(a) FROM r": ("SQ2004", 8, "pagerank is a table function, which stands in FROM, write SELECT"),
    "SELECT a + s FROM r": ("SQ2005", 8, "+ does not take (INT, VARCHAR)"),
    "SELECT a FROM r WHERE s = 3": ("SQ2005", 23, "cannot compare VARCHAR with INT"),
    "FROM r |> WHERE a > 1 |>": ("SQ1001", 23, "the query ends too early, expected SELECT, EXTEND"),
    "FROM r |> SELECT a FROM r": ("SQ1001", 25, "the query ends too early, expected no FROM"),
    "FROM r |> AGGREGATE |> SELECT a": ("SQ1001", 21, 'unexpected "|>", expected an aggregate, or GROUP BY'),
    "FROM r |> SET a |> SELECT a": ("SQ1001", 17, 'unexpected "|>", expected a column, = and its value'),
    "FROM r |> EXPLAIN a": ("SQ1001", 11, 'unexpected "EXPLAIN", expected SELECT, EXTEND'),
    "FROM r |> SELECT b |> WHERE r.a > 1": ("SQ2001", 29, 'unknown table "r" in FROM'),
    "SELECT a FROM r WHERE a = 'x'": ("SQ2005", 27, "'x' is not a valid INT"),
    "SELECT a + '' AS b FROM r": ("SQ2005", 12, "'' is not a valid INT"),
    "SELECT a FROM r WHERE f IN ('true', 'maybe')": ("SQ2005", 37, "'maybe' is not a valid BOOLEAN"),
    "SELECT ARRAY(INTERVAL '1' YEAR) AS x FROM r": ("SQ2005", 23, "an INTERVAL with months is no value of a column"),
    "SELECT CAST(NULL AS ARRAY<DECIMAL(50,2)>) AS x FROM r": ("SQ2008", 35, "ARRAY<DECIMAL(50, 2)> is not a type"),
    "SELECT a FROM r WHERE d >= '1994-13-01'": ("SQ2005", 28, "'1994-13-01' is not a valid DATE"),
    "SELECT a FROM r WHERE a": ("SQ2005", 23, "WHERE needs a condition, this is INT"),
    "SELECT SUM(s) FROM r": ("SQ2005", 8, "SUM does not take VARCHAR"),
    "SELECT UPPER(s, s) FROM r": ("SQ2005", 8, "UPPER takes 1 argument, not 2"),
    "SELECT CAST(d AS INT) FROM r": ("SQ2005", 13, "cannot cast DATE to INT"),
    "SELECT INTERVAL '1' MONTH FROM r": ("SQ2005", 17, "an INTERVAL with months is no value of a column"),
    "SELECT MAX(INTERVAL a MONTH) FROM r": ("SQ2005", 8, "an INTERVAL with months is no value of a column"),
    "SELECT a FROM r GROUP BY INTERVAL a YEAR": ("SQ2005", 35, "an INTERVAL with months is no value of a column"),
    "SELECT GROUPING_ID() FROM r": ("SQ2005", 8, "GROUPING_ID takes 1 or more arguments, not 0"),
    "SELECT VAR_POP(t - d) FROM r": ("SQ2005", 8, "VAR_POP does not take (INTERVAL DAY TO SECOND)"),
    "SELECT a FROM r WHERE t - d > 5": ("SQ2005", 23, "cannot compare INTERVAL DAY TO SECOND with INT"),
    "SELECT a FROM r WHERE t - d > 'soon'": ("SQ2005", 31, "'soon' is not a valid INTERVAL DAY TO SECOND"),
    "SELECT (t - d) % 2 FROM r": ("SQ2005", 9, "INTERVAL DAY TO SECOND % INT means nothing"),
    "SELECT CAST(a AS INTERVAL DAY TO SECOND) FROM r": ("SQ2005", 13, "cannot cast INT to INTERVAL DAY TO SECOND"),
    "SELECT CAST(t - d AS BIGINT) FROM r": ("SQ2005", 13, "cannot cast INTERVAL DAY TO SECOND to BIGINT"),
    "SELECT a FROM r WHERE t - d > INTERVAL '1' MONTH": ("SQ2005", 23, "months have no fixed length"),
    "SELECT t + INTERVAL ' ' FROM r": ("SQ2005", 21, "' ' is not a valid INTERVAL"),
    "SELECT a FROM r ORDER BY INTERVAL '1' MONTH": ("SQ2005", 35, "an INTERVAL with months is no value of a column"),
    "SELECT d + INTERVAL s DAY FROM r": ("SQ2005", 21, "INTERVAL takes a whole number, not VARCHAR"),
    "SELECT a FROM r WHERE RANK() OVER (ORDER BY a) < 3": (
        "SQ2009",
        30,
        "a window function cannot stand in WHERE, use QUALIFY",
    ),
    "SELECT a, RANK() OVER (ORDER BY a) AS n FROM r GROUP BY n": (
        "SQ2009",
        57,
        "a window function cannot stand in GROUP BY",
    ),
    "SELECT a, COUNT(*) OVER () AS n FROM r HAVING n < 3": (
        "SQ2009",
        47,
        "a window function cannot stand in HAVING, use QUALIFY",
    ),
    "SELECT SUM(COUNT(*) OVER ()) FROM r": ("SQ2009", 21, "a window function cannot stand in an aggregate"),
    "SELECT RANK() OVER () FROM r": ("SQ2009", 8, "RANK needs ORDER BY in its OVER"),
    "SELECT RANK() FROM r": ("SQ2009", 8, "RANK needs OVER, write OVER (… ORDER BY …)"),
    "SELECT LAG(a, a) OVER (ORDER BY a) FROM r": ("SQ2005", 15, "LAG needs a constant whole number of rows"),
    "SELECT LEAD(a, 1.5) OVER (ORDER BY a) FROM r": ("SQ2005", 16, "LEAD needs a constant whole number of rows"),
    "SELECT NTILE(1 - 1) OVER (ORDER BY a) FROM r": ("SQ2005", 14, "NTILE needs a constant whole number above 0"),
    "SELECT a AS z, b AS z, z FROM r": ("SQ2002", 24, '"z" names several items of SELECT'),
    "SELECT SUM(a) AS z, MAX(z) FROM r": ("SQ2003", 25, '"z" is not computed yet here'),
    "SELECT RANK() OVER (ORDER BY a) AS z, SUM(z) OVER () FROM r": ("SQ2003", 43, '"z" is not computed yet here'),
    "SELECT z AS y, a AS z FROM r": ("SQ2003", 8, 'unknown column "z"'),
    "SELECT STACK(1000000000000000, a) FROM r": ("SQ3001", 8, "a list of 1,000,000,000,000,000 rows is not supported"),
    "SELECT STACK(0, a) FROM r": ("SQ2005", 8, "STACK takes a positive number of rows"),
    "SELECT STACK(a, a) FROM r": ("SQ2005", 8, "STACK takes a positive number of rows"),
    "SELECT v FROM r, LATERAL (VALUES (a), (s)) z (v)": ("SQ2005", 40, 'INT and VARCHAR in column "v" of one list'),
    "SELECT v FROM r, LATERAL (VALUES (a), (a, b)) z (v)": ("SQ2005", 35, "rows of 1 and 2 columns in one list"),
    "SELECT v FROM r, LATERAL (VALUES (a), (b)) z (v, w)": ("SQ2005", 44, "2 column names for 1 column"),
    "SELECT ARRAY(a, s) FROM r": ("SQ2005", 14, "ARRAY of INT and VARCHAR, which have no common type"),
    "SELECT [] FROM r": ("SQ2005", 16, "an ARRAY of nothing has no type"),
    "SELECT STRUCT(a, b AS a) FROM r": ("SQ2005", 8, "a STRUCT has fields, of names that differ"),
    "SELECT STRUCT() FROM r": ("SQ2005", 8, "a STRUCT has fields, of names that differ"),
    "SELECT MAP('k', a, 'l', s) FROM r": ("SQ2005", 17, "MAP of INT and VARCHAR, which have no common type"),
    "SELECT ARRAY_AGG(a, b) FROM r": ("SQ2005", 8, "ARRAY_AGG takes one argument, not 2"),
    "SELECT ARRAY_AGG(DISTINCT a ORDER BY b) FROM r": ("SQ2005", 38, "ARRAY_AGG of DISTINCT values can be in"),
    "SELECT EXPLODE(MAP('k')) FROM r": ("SQ2005", 16, "MAP takes keys, and a value after each"),
    "SELECT INLINE(ARRAY(NAMED_STRUCT('k'))) FROM r": ("SQ2005", 21, "NAMED_STRUCT takes names, as texts"),
    "SELECT v FROM r, LATERAL (VALUES (SUM(a))) z (v)": ("SQ2009", 35, "SUM is an aggregate and cannot stand in"),
    "SELECT a FROM r LIMIT a": ("SQ2005", 17, "LIMIT needs a constant whole number"),
    "SELECT a FROM r LIMIT (SELECT 1)": ("SQ2005", 17, "LIMIT needs a constant whole number"),
    "SELECT a FROM r LIMIT -1": ("SQ2005", 17, "LIMIT needs a constant whole number"),
    "SELECT a FROM r LIMIT 3 OFFSET '1'": ("SQ2005", 25, "OFFSET needs a constant whole number"),
    "SELECT ROUND(b, a) FROM r": ("SQ3001", 8, "ROUND to anything but a constant number"),
    "SELECT LPAD(s, 2000000000) FROM r": ("SQ2005", 8, "LPAD to 2,000,000,000 characters is not supported, 1,000,000"),
    "SELECT SPACE(1000001) FROM r": ("SQ2005", 8, "SPACE to 1,000,001 characters is not supported"),
    "SELECT REPEAT('ab', 9223372036854775807) FROM r": ("SQ2005", 8, "REPEAT to 18,446,744,073,709,551,614 characters"),
    "SELECT REPLACE('aaa', 'a', 'b') || REPEAT(s, 1000001) FROM r": ("SQ2005", 36, "REPEAT to 1,000,001 characters"),
    "SELECT UPPER(s) OVER (ORDER BY a) FROM r": ("SQ2004", 8, "UPPER is no function that goes with OVER"),
    "SELECT SUM(a) OVER v FROM r WINDOW w AS (PARTITION BY s)": ("SQ2001", 20, 'unknown window "v", known: w'),
    "SELECT a FROM r WINDOW w AS (PARTITION BY x)": ("SQ2003", 43, 'unknown column "x"'),
    "SELECT SUM(a) OVER w FROM r WINDOW w AS (v), v AS (w)": ("SQ2007", 52, 'window "w" is made of itself'),
    "SELECT s, SUM(SUM(a)) OVER (ORDER BY b) FROM r GROUP BY s": ("SQ2006", 11, '"b" is not in GROUP BY'),
    "SELECT SUM(a) OVER (ORDER BY a ROWS a PRECEDING) FROM r": ("SQ2005", 37, "a frame reaches a whole number of rows"),
    "SELECT SUM(a) OVER (ORDER BY a ROWS BETWEEN 1 FOLLOWING AND 1 PRECEDING) FROM r": (
        "SQ2005",
        45,
        "a frame that ends before it begins",
    ),
    "SELECT SUM(a) OVER (ORDER BY a ROWS UNBOUNDED) FROM r": ("SQ1001", 46, 'unexpected ")", expected PRECEDING'),
    "SELECT SUM(a) OVER (ORDER BY a RANGE BETWEEN CURRENT ROW AND 1) FROM r": (
        "SQ1001",
        63,
        'unexpected ")", expected PRECEDING or FOLLOWING',
    ),
    "SELECT SUM(a) OVER (ORDER BY a ROWS) FROM r": ("SQ1001", 36, 'unexpected ")", expected UNBOUNDED, CURRENT ROW or'),
    "SELECT SUM(a) OVER (ORDER BY a ROWS BETWEEN 1 PRECEDING) FROM r": ("SQ1001", 56, 'unexpected ")", expected AND'),
    "SELECT SUM(a) OVER (ORDER BY a ROWS 1 PRECEDING AND CURRENT ROW) FROM r": (
        "SQ1001",
        49,
        'unexpected "AND", expected BETWEEN',
    ),
    "SELECT SUM(a) OVER (ORDER BY a ROWS BETWEEN -1 PRECEDING AND 1 FOLLOWING) FROM r": (
        "SQ2005",
        46,
        "a frame does not reach less than 0, write FOLLOWING",
    ),
    "SELECT SUM(a) OVER (ORDER BY a, b RANGE 1 PRECEDING) FROM r": ("SQ2009", 41, "a frame of RANGE needs one key"),
    "SELECT SUM(a) OVER (ORDER BY s RANGE 1 PRECEDING) FROM r": ("SQ2005", 8, "- does not take (VARCHAR, INT)"),
    "SELECT a FROM r QUALIFY a": ("SQ2005", 25, "QUALIFY needs a condition, this is INT"),
    "SELECT s, a + 1, COUNT(*) FROM r GROUP BY s": ("SQ2006", 11, '"a" is not in GROUP BY'),
    "SELECT s FROM r GROUP BY 3": ("SQ2006", 26, "GROUP BY 3: the select list has 1 columns"),
    "SELECT DISTINCT a FROM r ORDER BY s": ("SQ2006", 35, "ORDER BY of SELECT DISTINCT must be in the select list"),
    "SELECT r.a FROM r, r": ("SQ2007", 20, '"r" is named twice in FROM'),
    "SELECT k, COUNT(*) FROM (SELECT a AS k FROM r) q FULL JOIN (SELECT a AS k FROM u) p USING (k)": (
        "SQ2006",
        8,
        '"k" is not in GROUP BY',
    ),
    "SELECT u.v FROM r LEFT SEMI JOIN u ON r.a = u.a": ("SQ2001", 8, 'unknown table "u" in FROM'),
    "SELECT a FROM r UNION ALL SELECT a, v FROM u": ("SQ2005", 17, "UNION of 1 and 2 columns"),
    "SELECT a FROM r EXCEPT SELECT v FROM u": ("SQ2005", 17, 'EXCEPT of INT and VARCHAR in column "a", CAST one side'),
    "SELECT a FROM r UNION SELECT a FROM u ORDER BY b": ("SQ2003", 48, 'unknown column "b"'),
    "SELECT a FROM r WHERE (a, s) IN (SELECT a FROM u)": (
        "SQ2005",
        41,
        "IN and ANY take a query of 2 columns here, not 1",
    ),
    "SELECT a FROM r WHERE (a, s) IN ((1, 'x', 2))": ("SQ2005", 35, "a row of 2 values with one of 3"),
    "SELECT a FROM r WHERE (a, s) IN (SELECT v, a FROM u)": ("SQ2005", 24, "cannot compare INT with VARCHAR"),
    "SELECT a FROM r WHERE EXISTS (WITH q AS (SELECT w FROM u) SELECT 1 FROM q)": ("SQ2003", 49, 'unknown column "w"'),
    "SELECT (SELECT SUM(a) FROM u), (SELECT SUM(a) FROM u) + 1 FROM r GROUP BY 2": ("SQ2006", 16, '"SUM(a)" is not in'),
    "CREATE VIEW w AS SELECT a FROM r ORDER BY q": ("SQ2003", 43, 'unknown column "q"'),
    "SELECT a FROM r WHERE a IN (SELECT a FROM u, r)": ("SQ2002", 36, 'ambiguous column "a", write u.a or r.a'),
    "SELECT SPLIT_PART(s, ',', 0) FROM r": ("SQ2005", 8, "SPLIT_PART counts from 1, or from -1"),
    "SELECT b DIV f FROM r": ("SQ2005", 8, "DIV does not take (DECIMAL(10,2), BOOLEAN)"),
    "SELECT 1.5e0 DIV 2 FROM r": ("SQ2005", 8, "DIV does not take (DOUBLE, DOUBLE)"),
    "SELECT a, a FROM r UNION BY NAME SELECT a FROM u": ("SQ2002", 29, "UNION BY NAME of columns of one name"),
    "SELECT s, a FROM r UNION BY NAME SELECT a AS s FROM u": ("SQ2005", 20, 'UNION of VARCHAR and INT in column "s"'),
    "SELECT r.a FROM r, u GROUP BY a": ("SQ2002", 31, 'ambiguous column "a", write r.a or u.a'),
    "SELECT a AS x, s AS x FROM r ORDER BY x": ("SQ2002", 39, '"x" names several items of SELECT'),
    "SELECT q.a FROM (SELECT r.a, u.a FROM r, u) q": ("SQ2002", 10, 'ambiguous column "a"'),
    "SELECT a FROM r JOIN u USING (a) JOIN u w ON a = r.a": ("SQ2002", 46, 'ambiguous column "a", write'),
    "SELECT a FROM r GROUP BY a HAVING MAX(COUNT(*)) > 1": (
        "SQ2009",
        39,
        "COUNT is an aggregate and cannot stand in an",
    ),
    "SELECT MIN(a + COUNT(DISTINCT s)) FROM r": (
        "SQ2009",
        16,
        "COUNT is an aggregate and cannot stand in an aggregate",
    ),
    "SELECT * EXCEPT (a) FROM r, u": ("SQ2002", 18, 'ambiguous column "a" in EXCEPT, write r.a or u.a'),
    "SELECT * RENAME (a AS b) FROM r, u": ("SQ2002", 18, 'ambiguous column "a" in RENAME, write r.a or u.a'),
    "SELECT * EXCEPT (u.vv) FROM r, u": ("SQ2003", 18, '* has no column "u.vv", did you mean "v"?'),
    "SELECT * EXCEPT (w.v) FROM r, u": ("SQ2001", 18, 'unknown table "w" in FROM'),
    "SELECT u.* EXCEPT (r.s) FROM r, u": ("SQ2003", 20, 'u.* has no column "r.s"'),
    "SELECT * EXCEPT (u.a) FROM r JOIN u USING (a)": (
        "SQ2003",
        18,
        '* has no column "u.a", USING makes one column of two, write a',
    ),
    "SELECT * EXCEPT (s, S) FROM r": ("SQ2007", 21, '"S" is named twice behind *'),
    "SELECT * EXCEPT (s) RENAME (r.s AS x) FROM r": ("SQ2007", 29, '"s" is named twice behind *'),
    "SELECT * EXCEPT (a + 1) FROM r": ("SQ1001", 18, "EXCEPT takes the name of a column"),
    "SELECT * RENAME (a) FROM r": ("SQ1001", 18, "RENAME without AS, write RENAME (a AS b)"),
    "SELECT * REPLACE (a + 1) FROM r": ("SQ1001", 24, 'unexpected ")", expected AS and the name of a column'),
    "SELECT * FROM TABLE(TUMBLE(TABLE rr, DESCRIPTOR(t), '1 day'))": ("SQ2001", 34, 'unknown table "rr"'),
    "SELECT * FROM TABLE(TUMBLE(TABLE r, DESCRIPTOR(tt), '1 day'))": ("SQ2003", 48, 'unknown column "tt"'),
    "SELECT * FROM TABLE(TUMBLE(TABLE r, DESCRIPTOR(s), '1 day'))": (
        "SQ2005",
        48,
        "TUMBLE of a VARCHAR, which is no time",
    ),
    "SELECT * FROM TABLE(TUMBLE(TABLE r, DESCRIPTOR(t)))": ("SQ2005", 21, "TUMBLE lacks its size, write TABLE(TUMBLE("),
    "SELECT * FROM TUMBLE()": ("SQ2005", 15, "TUMBLE lacks its data"),
    "SELECT * FROM TUMBLE(TABLE r, DESCRIPTOR(t), '1 day', SIZE => '1 day')": (
        "SQ2005",
        55,
        "TUMBLE takes no such argument",
    ),
    "SELECT * FROM SESSION(TABLE r, DESCRIPTOR(t), '1 day', '1 day')": ("SQ2005", 56, "SESSION takes no such argument"),
    "SELECT * FROM TUMBLE(TABLE r, DESCRIPTOR(t, d), '1 day')": ("SQ2005", 31, "DESCRIPTOR names one column"),
    "SELECT * FROM TUMBLE(TABLE r, 't', '1 day')": ("SQ2005", 31, "TUMBLE is by a column"),
    "SELECT * FROM TUMBLE(TABLE r PARTITION BY a, t, '1 day')": (
        "SQ2005",
        43,
        "TUMBLE has the same windows for all rows: PARTITION BY is of",
    ),
    "SELECT * FROM TUMBLE(TABLE r, t, INTERVAL '0' DAY)": ("SQ2010", 43, "a size is longer than nothing"),
    "SELECT * FROM TUMBLE(TABLE r, t, INTERVAL '1' MONTH)": ("SQ2005", 43, "months are not all as long"),
    "SELECT * FROM HOP(TABLE r, t, '2 days', '1 day')": ("SQ2010", 31, "a window is no shorter than its slide"),
    "SELECT * FROM CUMULATE(TABLE r, t, '2 days', '3 days')": (
        "SQ2010",
        36,
        "the size of a window is a whole number of steps",
    ),
    "SELECT * FROM TABLE(r)": ("SQ2005", 15, "TABLE(…) in FROM is around a table function, write FROM r"),
    "SELECT * FROM TABLE(TUMBEL(TABLE(r), '1 day'))": ("SQ2004", 21, 'unknown table function "TUMBEL"'),
    "SELECT window_start FROM TUMBLE(TABLE(SELECT t, t AS window_start FROM r), t, '1 day')": (
        "SQ2002",
        8,
        "ambiguous",
    ),
    "SELECT a FROM r TUMBLE '' SEC": ("SQ1001", 24, "'' is not a whole number"),
    "SELECT a FROM r TUMBLE '²' SEC SLIDE 1 SEC": ("SQ1001", 32, 'unexpected "SLIDE" in a window'),
    "SELECT a FROM r TUMBLE '-' SEC": ("SQ1001", 24, "'-' is not a whole number"),
    "SELECT a FROM r RANGE 5 MIN SLIDE '٣' SEC": ("SQ1001", 35, "'٣' is not a whole number"),
    "SELECT a FROM r LANDMARK SINCE ''": ("SQ2010", 17, '"r" has no event time'),
    f"SELECT a FROM r ROWS {'9' * 5000}": ("SQ1001", 22, "9999"),
    f"SELECT CAST(a AS DECIMAL({'9' * 5000})) FROM r": ("SQ2008", 13, "DECIMAL(9999"),
    "SELECT a FROM r WHERE s LIKE ANY ()": ("SQ2005", 23, "LIKE ANY and ALL need a pattern"),
    "SELECT FIRST(a, s) FROM r": ("SQ2005", 17, "FIRST takes TRUE or FALSE: are NULLs ignored?"),
    "SELECT LAST_VALUE() FROM r": ("SQ2005", 8, "LAST_VALUE takes one argument, not 0"),
    "SELECT MEDIAN(s) FROM r": ("SQ2005", 8, "MEDIAN does not take VARCHAR"),
    "SELECT MAX_BY(a) FROM r": ("SQ2005", 8, "MAX_BY takes two arguments, not 1"),
    "SELECT BIT_AND(s) FROM r": ("SQ2005", 8, "BIT_AND does not take VARCHAR"),
    "SELECT PRODUCT(s) FROM r": ("SQ2005", 8, "PRODUCT does not take VARCHAR"),
    "SELECT LISTAGG() FROM r": ("SQ2005", 8, "LISTAGG takes a value and a separator, not 0 arguments"),
    "SELECT LISTAGG(s, ',', a) FROM r": ("SQ2005", 8, "LISTAGG takes a value and a separator, not 3 arguments"),
    "SELECT LISTAGG(s, s) FROM r": ("SQ2005", 19, "LISTAGG needs a constant text between values"),
    "SELECT LISTAGG(DISTINCT s, ',') WITHIN GROUP (ORDER BY a) FROM r": (
        "SQ2005",
        56,
        "LISTAGG of DISTINCT values can be in their own order only",
    ),
    "SELECT LISTAGG(s, ',' ORDER BY a) WITHIN GROUP (ORDER BY s) FROM r": ("SQ2005", 19, "LISTAGG has two orders"),
    "SELECT PERCENTILE_CONT(0.5) FROM r": ("SQ2009", 8, "PERCENTILE_CONT needs WITHIN GROUP"),
    "SELECT PERCENTILE_CONT(2) WITHIN GROUP (ORDER BY a) FROM r": (
        "SQ2005",
        24,
        "PERCENTILE_CONT needs a constant share",
    ),
    "SELECT SUM(a) WITHIN GROUP (ORDER BY a) FROM r": ("SQ2009", 15, "WITHIN GROUP goes with PERCENTILE_CONT"),
    "SELECT a FROM r WHERE EXISTS (SELECT 1 FROM u WHERE u.a > SUM(r.a))": ("SQ2009", 59, "SUM is an aggregate"),
    "SELECT SUM(a) FILTER (WHERE COUNT(*) > 1) FROM r": ("SQ2009", 29, "COUNT is an aggregate and cannot stand in"),
    "SELECT d FROM r INTERSECT SELECT a FROM u": ("SQ2005", 17, 'INTERSECT of DATE and INT in column "d", CAST'),
    "SELECT f FROM r UNION ALL SELECT a FROM u": ("SQ2005", 17, 'UNION of BOOLEAN and INT in column "f", CAST'),
    "SELECT a FROM r WHERE a IN (SELECT v FROM u)": ("SQ2005", 23, "cannot compare INT with VARCHAR, CAST one side"),
    "SELECT a FROM r WHERE (SELECT MAX(v) FROM u) > 1": (
        "SQ2005",
        31,
        "cannot compare VARCHAR with INT, CAST one side",
    ),
    "SELECT (SELECT a, v FROM u) FROM r": ("SQ2005", 16, "a subquery of 2 columns is no value"),
    "SELECT a FROM r JOIN (u JOIN u w ON w.a = u.a) ON TRUE": (
        "SQ2002",
        8,
        'ambiguous column "a", write r.a or u.a or w.a',
    ),
    "SELECT 1 FROM r JOIN (u JOIN r ON r.a = u.a) ON TRUE": ("SQ2007", 23, '"r" is named twice in FROM'),
    "SELECT 1 FROM r JOIN (u JOIN u w ON w.a = r.a) ON TRUE": ("SQ2001", 43, 'unknown table "r" in FROM'),
    "SELECT a, GROUPING(s) FROM r GROUP BY ROLLUP (a)": ("SQ2009", 20, "GROUPING takes what GROUP BY names"),
    "SELECT a, GROUPING(s) FROM r GROUP BY a": ("SQ2009", 20, "GROUPING takes what GROUP BY names"),
    "SELECT a FROM r ORDER BY a, GROUPING(s)": ("SQ2009", 38, "GROUPING takes what GROUP BY names"),
    "SELECT SUM(a), GROUPING(s) FROM r": ("SQ2009", 25, "GROUPING takes what GROUP BY names"),
    "SELECT a FROM r WHERE GROUPING(a) = 1": ("SQ2009", 23, "GROUPING cannot stand in WHERE"),
    "SELECT s FROM r GROUP BY ROLLUP (a)": ("SQ2006", 8, '"s" is not in GROUP BY'),
    "SELECT a FROM r WHERE COUNT(*) FILTER (WHERE f) > 1": ("SQ2009", 23, "COUNT is an aggregate and cannot stand in"),
    "SELECT ABS(a) FILTER (WHERE f) FROM r": ("SQ2009", 15, "FILTER goes with an aggregate"),
    "CREATE VIEW r AS SELECT a FROM u": ("SQ2007", 13, '"r" is already declared at q.sql:1:15'),
    "SELECT CAST(a AS UUID) FROM r": ("SQ2008", 13, 'unknown type "UUID"'),
    "SELECT DATE '1995-01-01' + INTERVAL '1.0000000000000000000000000000001' DAY FROM r": (
        "SQ2005",
        37,
        "'1.0000000000000000000000000000001 DAY' is not a whole number of DAY",
    ),
    "SELECT DATE '9999-12-31' + INTERVAL '1' DAY FROM r": ("SQ2005", 13, "a DATE outside the years 1 to 9999"),
    "SELECT TIMESTAMP '0001-01-01' - INTERVAL '1' HOUR FROM r": ("SQ2005", 18, "a TIMESTAMP outside the years"),
    "SELECT .5.5 FROM r": ("SQ1001", 18, "0.5.5 is not a number"),
    f"SELECT 1{'0' * 5000} FROM r": ("SQ2005", 8, f"1{'0' * 59} has more than 38 digits"),
    "SELECT CAST(s AS INTERVAL MONTH) FROM r": ("SQ2008", 13, "INTERVAL MONTH is no type of columns"),
    "SELECT a FROM r WHERE SUM(a) > 1": ("SQ2009", 23, "SUM is an aggregate and cannot stand in WHERE, use HAVING"),
    "SELECT SUM(1 + SUM(a)) FROM r": ("SQ2009", 16, "SUM is an aggregate and cannot stand in an aggregate"),
    "SELECT SUM(a) AS n FROM r GROUP BY n > 1": ("SQ2009", 36, "GROUP BY cannot name an aggregate"),
    "CREATE VIEW w AS SELECT q FROM r": ("SQ2003", 25, 'unknown column "q"'),
    "WITH w AS (SELECT q FROM r) SELECT a FROM r": ("SQ2003", 19, 'unknown column "q"'),
    "SELECT (WITH w AS (SELECT r.a + q FROM u) SELECT 1) FROM r": ("SQ2003", 33, 'unknown column "q"'),
    "SELECT * EXCEPT (a, q) FROM r": ("SQ2003", 21, '* has no column "q"'),
    "SELECT * REPLACE (1 AS q) FROM r": ("SQ2003", 24, '* has no column "q"'),
    "SELECT * RENAME (q AS a) FROM r": ("SQ2003", 18, '* has no column "q"'),
    "SELECT * FROM r PIVOT (ABS(a) FOR k IN (1))": ("SQ2009", 24, "PIVOT needs an aggregate for each value"),
    "SELECT * FROM r PIVOT (SUM(a) FOR (s, k) IN (('x', 1), 2))": ("SQ2005", 56, "a row of 2 values with one of 1"),
    "SELECT * FROM r UNPIVOT ((v, w) FOR n IN (a))": ("SQ2005", 43, "2 names for 1 column"),
    "SELECT * FROM r UNPIVOT (v FOR n IN (a, q))": ("SQ2003", 41, 'unknown column "q"'),
    "SELECT a FROM (VALUES (1), ('x')) v(a)": ("SQ2005", 16, 'VALUES of INT and VARCHAR in column "col1"'),
    "SELECT CORR(a, s) FROM r": ("SQ2005", 8, "CORR does not take (INT, VARCHAR)"),
    "SELECT CORR(a) FROM r": ("SQ2005", 8, "CORR takes two arguments, not 1"),
}

# sql → column of the construct and its name
UNSUPPORTED = {
    "SELECT a FROM r WHERE EXISTS (SELECT 1 FROM u RIGHT JOIN u w ON w.a = r.a)": (
        47,
        "a RIGHT or FULL JOIN in a correlated subquery",
    ),
    "SELECT a FROM r WHERE (a, s) < (SELECT 1, 'x')": (40, "a row compared with a query"),
    "SELECT a FROM r WHERE (a, s) = (SELECT a, v FROM u)": (40, "a row compared with a query"),
    "SELECT a FROM r WHERE (a, a) < ANY (SELECT a, v FROM u)": (44, "a row compared with a query"),
    "SELECT (a, s) FROM r": (9, "a row value (a, b) here"),
    "SELECT NTH_VALUE(a, 2) OVER (ORDER BY a ROWS 3 PRECEDING) FROM r": (46, "NTH_VALUE in a frame with an offset"),
    "SELECT SUM(a) OVER (ORDER BY a RANGE UNBOUNDED PRECEDING EXCLUDE TIES) FROM r": (8, "a frame with EXCLUDE"),
    "SELECT ROW_NUMBER() OVER (ORDER BY x.a, x.b, x.s, x.d, x.t, y.a, y.b, y.s), x.*, y.* FROM r x, r y": (
        8,
        "ROW_NUMBER by so many keys, none of which",
    ),
    "SELECT TRY_SUM(a) OVER (ORDER BY a) FROM r": (8, "TRY_SUM"),
    "SELECT LAG(a, 2) IGNORE NULLS OVER (ORDER BY a) FROM r": (18, "IGNORE NULLS for NTH_VALUE, or for LAG"),
    "SELECT SUM(a) IGNORE NULLS OVER (ORDER BY a) FROM r": (15, "IGNORE NULLS here"),
    "SELECT REGEXP_LIKE(s, 'a', 'x') FROM r": (8, "a regular expression with the flags"),
    "SELECT REGEXP_REPLACE(s, 'a', 'b', 'i') FROM r": (8, "a regular expression with the flags"),
    "SELECT a FROM r TABLESAMPLE (10 PERCENT)": (17, "TABLESAMPLE"),
    "SELECT 1 FROM r GROUP BY CUBE(a, b, s, d, t, f, a + 1)": (17, "GROUP BY of more than 64 sets"),
    "SELECT INLINE(ARRAY_REPEAT(s, 2)) AS (x, y) FROM r": (8, "INLINE of anything but an ARRAY of STRUCTs"),
    "SELECT EXPLODE(MAP(s, a)) FROM r": (16, "a MAP whose keys are not constants that differ"),
    "SELECT EXPLODE(MAP('k', a, 'k', b)) FROM r": (16, "a MAP whose keys are not constants that differ"),
    "SELECT MAP(1, a, 1.0, b) FROM r": (8, "a MAP whose keys are not constants that differ"),
    "SELECT STACK(1, a) + 1 FROM r": (8, "STACK"),
    "SELECT s FROM r LATERAL VIEW EXPLODE(s) t AS y": (38, "EXPLODE of anything but an ARRAY, a MAP"),
    "SELECT 1 FROM r FULL JOIN LATERAL (SELECT v FROM u WHERE u.a = r.a) x ON a = v": (17, "a RIGHT or FULL JOIN with"),
    "SELECT r.a FROM r RIGHT ANTI JOIN u ON r.a = u.a": (19, "RIGHT SEMI or ANTI JOIN"),
    "SELECT ROUND(a, a) FROM r": (8, "ROUND to anything but a constant number of digits"),
    "SELECT a FROM r EXCEPT BY NAME SELECT a FROM u": (24, "INTERSECT or EXCEPT BY NAME"),
    "SELECT x.a FROM (r JOIN u USING (a)) x": (38, "a name for a join in parentheses"),
    "SELECT a FROM r WHERE EXISTS (SELECT 1 FROM (u JOIN u w ON w.a = r.a))": (
        46,
        "a parenthesised join in a correlated",
    ),
    "SELECT 1 FROM r JOIN (u JOIN u w USING (a)) USING (a)": (23, "USING next to a parenthesised join with USING"),
    "SELECT NOW() FROM r": (8, "NOW"),
    "SELECT TRANSFORM(SPLIT(s, ','), x -> (SELECT 1)) FROM r": (39, "a subquery in a lambda"),
    "SELECT a FROM r WHERE EXISTS (SELECT 1 FROM EXPLODE_OUTER(SPLIT(r.s, ',')) t)": (
        45,
        "an OUTER generator of columns",
    ),
    "SELECT u.a FROM u JOIN UNNEST([u.a]) t(x) ON x > 1": (19, "a join by a condition with rows that are written"),
    "SELECT a, x -> x + 1 FROM r": (11, "JSONEXTRACT here"),
    "SELECT UPPER((x, y) -> x) FROM r": (15, "a lambda here"),
    "SELECT DATE_FORMAT(d, 'yw') FROM r": (8, "DATE_FORMAT with w"),
    "SELECT DATE_FORMAT(d, s) FROM r": (8, "DATE_FORMAT with a computed pattern"),
    "SELECT TO_NUMBER(s) FROM r": (8, "TO_NUMBER"),
    "SELECT a FROM r LIMIT 1 BY a": (25, "LIMIT … BY"),
    "SELECT a FROM r WHERE s LIKE ANY (SELECT s FROM r)": (30, "ANY (…) here"),
    "SELECT a FROM r UNION SELECT a FROM u ORDER BY (SELECT MAX(a) FROM u)": (
        49,
        "a subquery in ORDER BY of a set operation",
    ),
    "SELECT HISTOGRAM_NUMERIC(a, 5) FROM r": (8, "HISTOGRAM_NUMERIC"),
    "SELECT INLINE(s) FROM r": (15, "INLINE of anything but an ARRAY of STRUCTs"),
    "SELECT approx_top_k(a, 5) FROM r": (8, "APPROX_TOP_K"),
    "SELECT CONCAT_WS(s, s, s) FROM r": (8, "CONCAT_WS with a computed separator"),
    "SELECT r.a FROM r, u RIGHT JOIN u w ON u.a = w.a": (22, "a RIGHT or FULL JOIN after a comma is"),
    "SELECT a FROM r, LATERAL EXPLODE(s) x": (34, "EXPLODE of anything but an ARRAY, a MAP"),
    "SELECT a FROM r PIVOT (SUM(a) FOR s IN (SELECT s FROM r))": (48, "PIVOT of the values of a query"),
    "SELECT a FROM r FOR UPDATE": (17, "FOR UPDATE"),
    "SELECT a FROM r SORT BY a": (17, "SORT BY"),
    "SELECT a FROM c.db.r": (15, "a catalog before a table's name"),
    "SELECT a FROM read_csv('r')": (15, "a table function"),
    "SELECT CURRENT_DATE FROM r": (8, "CURRENT_DATE"),
    "SELECT 1 FROM (SELECT a + 1 FROM r ORDER BY a, b, s, d, t, f LIMIT 3) t": (
        62,
        "LIMIT in a subquery with more than",
    ),
    "WITH RECURSIVE w AS (SELECT a FROM r UNION SELECT COUNT(*) FROM w) SELECT a FROM w": (
        51,
        "an aggregate or HAVING over a recursive table",
    ),
}


def mistake(sql: str) -> SquallError:
    with pytest.raises(SquallError) as caught:
        for query in compile_script(DECLARATIONS + sql, "q.sql", lambda _: ()).queries:
            to_program(query)
    return caught.value


@pytest.mark.parametrize("sql", ERRORS)
def test_mistakes(sql: str) -> None:
    code, column, message = ERRORS[sql]
    assert str(mistake(sql)).startswith(f"{code} q.sql:2:{column}: {message}")


@pytest.mark.parametrize("sql", UNSUPPORTED)
def test_refused_by_name(sql: str) -> None:
    column, name = UNSUPPORTED[sql]
    error = mistake(sql)
    assert str(error).startswith(f"SQ3001 q.sql:2:{column}: {name}")
    assert error.message.endswith("is not supported yet")


def test_the_caret_stands_under_the_token() -> None:
    assert mistake("SELECT a,\n\tpric FROM r").caret() == "    \tpric FROM r\n    \t^^^^"


def test_errors_of_inference_point_at_the_relation() -> None:
    def missing(relation: object) -> tuple[()]:
        raise SquallError("SQ4001", "no such file")

    with pytest.raises(SquallError, match=r"SQ4001 q\.sql:1:15: no such file"):
        compile_script("CREATE STREAM w USING csv OPTIONS (path 'w')", "q.sql", missing)


def test_what_would_be_compiled_for_minutes_is_refused() -> None:
    """Each view reads the one before it twice."""
    views = (f"CREATE VIEW v{n} AS SELECT a FROM v{n - 1} UNION ALL SELECT a FROM v{n - 1}; " for n in range(1, 12))
    told = str(mistake(f"CREATE VIEW v0 AS SELECT a FROM u; {''.join(views)} SELECT a FROM v11"))
    assert told.startswith("SQ3001") and "operators is not supported, 10,000 are the most" in told
