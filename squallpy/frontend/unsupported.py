"""Constructs that are refused by name: one list for the binder and the manual."""

from squallpy.base.records import dataclass


@dataclass(frozen=True, slots=True)
class Unsupported:
    """A construct of SQL that is refused: its name, the keyword to point at, and what to write instead."""

    name: str
    keyword: str = ""
    hint: str = ""


SCRIPT_HINT = "a script has CREATE STREAM, TABLE, VIEW, SINK or MATRIX, and SELECT"

STATEMENTS: dict[str, str] = dict.fromkeys(
    ("ALTER", "ANALYZE", "CACHE", "CALL", "COMMENT", "COPY", "DELETE", "DESC", "DESCRIBE", "DROP", "EXPLAIN",
     "GRANT", "INSERT", "LOAD", "MERGE", "REFRESH", "SET", "SHOW", "TRUNCATE", "UPDATE", "USE"),
    SCRIPT_HINT,
) | {"INSERT": "write CREATE SINK name USING format OPTIONS (…) AS SELECT …"}  # fmt: skip

# arguments of sqlglot's nodes that stand for unsupported constructs: (node, argument) or argument alone
CLAUSES: dict[str, Unsupported] = {
    "Select.into": Unsupported("SELECT INTO", "INTO"),
    "Select.kind": Unsupported("SELECT AS STRUCT or VALUE", "AS"),
    "Select.operation_modifiers": Unsupported("this modifier of SELECT", "SELECT"),
    "match": Unsupported("MATCH_RECOGNIZE", "MATCH_RECOGNIZE"),
    "connect": Unsupported("CONNECT BY", "CONNECT"),
    "prewhere": Unsupported("PREWHERE", "PREWHERE"),
    "distribute": Unsupported("DISTRIBUTE BY", "DISTRIBUTE"),
    "sort": Unsupported("SORT BY", "SORT", "use ORDER BY"),
    "cluster": Unsupported("CLUSTER BY", "CLUSTER"),
    "locks": Unsupported("FOR UPDATE", "FOR"),
    "sample": Unsupported("TABLESAMPLE", "TABLESAMPLE", "filter by a hash of the key: WHERE PMOD(HASH(id), 100) < 10"),
    "settings": Unsupported("SETTINGS", "SETTINGS"),
    "format": Unsupported("FORMAT", "FORMAT"),
    "options": Unsupported("query OPTIONS", "OPTION"),
    "for_": Unsupported("FOR", "FOR"),
    "by_name": Unsupported("INTERSECT or EXCEPT BY NAME", "BY", "write CORRESPONDING"),
    "Group.totals": Unsupported("WITH TOTALS", "TOTALS"),
    "Order.siblings": Unsupported("ORDER SIBLINGS BY", "SIBLINGS"),
    "Ordered.with_fill": Unsupported("WITH FILL", "FILL"),
    "Limit.expressions": Unsupported("LIMIT … BY", "BY"),
    "Limit.limit_options": Unsupported("this form of LIMIT", "LIMIT"),
    "Table.catalog": Unsupported("a catalog before a table's name", "", "write schema.table"),
    "Column.catalog": Unsupported("a catalog before a column's name", "", "write schema.table.column"),
    "Column.join_mark": Unsupported("(+) outer joins"),
    "Table.version": Unsupported("time travel", "", "ASOF JOIN finds the row as of a time: see docs/sql_semantics.md"),
    "ordinality": Unsupported("WITH ORDINALITY here", "WITH", "UNNEST(x) has it, and POSEXPLODE(x) counts from 0"),
    "stream_window": Unsupported("a window after parentheses", "", "write it inside the SELECT that it applies to"),
    "In.unnest": Unsupported("IN UNNEST", "IN", "put the values in IN (…)"),
    "Cast.format": Unsupported("CAST … FORMAT", "FORMAT"),
    "Cast.default": Unsupported("CAST … DEFAULT", "DEFAULT"),
    "In.field": Unsupported("IN without parentheses", "IN"),
    "Trim.collation": Unsupported("COLLATE", "COLLATE"),
}

JOINS: dict[str, Unsupported] = {
    "RIGHT": Unsupported("RIGHT SEMI or ANTI JOIN", "RIGHT", "use LEFT SEMI or LEFT ANTI with the sides swapped"),
    "OUTER": Unsupported("OUTER JOIN", "OUTER"),
}

_OUTSIDE = "do it where the table is read, outside of WITH RECURSIVE"

# what a query of WITH RECURSIVE may not do with its own rows
RECURSION: dict[str, Unsupported] = {
    "NOT": Unsupported("NOT EXISTS, NOT IN or ANTI JOIN with a recursive table inside it", "", _OUTSIDE),
    "EXCEPT": Unsupported("EXCEPT with a recursive table", "EXCEPT", _OUTSIDE),
    "INTERSECT": Unsupported("INTERSECT with a recursive table", "INTERSECT", "join on all columns"),
    "test": Unsupported("EXISTS or IN of a recursive table, other than as a condition of WHERE joined by AND", ""),
    "scalar": Unsupported("a recursive table in a subquery that is a value", "", "join the table"),
    "outer join": Unsupported("an outer join beside a recursive table", "", _OUTSIDE),
    "aggregate": Unsupported(
        "an aggregate or HAVING over a recursive table",
        "",
        "only MIN or MAX may stand over a whole query: SELECT k, MIN(v) FROM (… UNION ALL …) GROUP BY k",
    ),
    "OVER": Unsupported("a window function over a recursive table", "", _OUTSIDE),
    "LIMIT": Unsupported("LIMIT over a recursive table", "", _OUTSIDE),
    "DISTINCT ON": Unsupported("DISTINCT ON over a recursive table", "", _OUTSIDE),
    "table function": Unsupported("a table function over a recursive table", "", _OUTSIDE),
    "key": Unsupported("MIN or MAX of a recursive table without all columns of GROUP BY beside it", "", "select them"),
    "monotone": Unsupported(
        "MIN or MAX of a recursive table that is more than added to, multiplied and compared with a bound",
        "",
        "add to it, take LEAST of it if it is NOT NULL, or filter it outside of WITH RECURSIVE",
    ),
    "twice": Unsupported("a query with UNION ALL that reads recursive tables twice", "", "write UNION"),
    "operator": Unsupported("an operator over a recursive table, other than joins, filters and UNION", "", _OUTSIDE),
}

# names in SQL of unsupported nodes of sqlglot, by class
NODES: dict[str, Unsupported] = {
    "Select": Unsupported("a subquery in an expression", "SELECT"),
    "Subquery": Unsupported("a subquery in an expression", "SELECT"),
    "Any": Unsupported("ANY (…) here", "ANY", "write OR"),
    "All": Unsupported("ALL (…) here", "ALL", "write AND"),
    "IgnoreNulls": Unsupported("IGNORE NULLS here", "IGNORE"),
    "RespectNulls": Unsupported("RESPECT NULLS here", "RESPECT"),
    "Lateral": Unsupported("LATERAL here", "LATERAL"),
    "Unnest": Unsupported("UNNEST here", "UNNEST"),
    "Values": Unsupported("VALUES here", "VALUES", "it goes in FROM"),
    "Collate": Unsupported("COLLATE", "COLLATE"),
    "AtTimeZone": Unsupported("AT TIME ZONE", "AT", "write FROM_UTC_TIMESTAMP(t, 'Europe/Zurich')"),
    "CurrentUser": Unsupported("CURRENT_USER", "CURRENT_USER"),
    "Var": Unsupported("ALL here", "ALL"),
    "Alias": Unsupported("a name inside an expression", "AS"),
    "Star": Unsupported("* inside an expression"),
    "Lambda": Unsupported("a lambda here", "", "it is an argument of TRANSFORM, FILTER, EXISTS, FORALL, AGGREGATE"),
    "Bracket": Unsupported("x[i]", "", "write it of an ARRAY or a MAP"),
    "Dot": Unsupported(
        "a field of what is no STRUCT",
        "",
        "declare the column as STRUCT<field: type>, or take GET_JSON_OBJECT(x, '$.field') of a VARCHAR",
    ),
    "Struct": Unsupported("{…}", "", "write STRUCT(x AS a) or MAP('k', x)"),
    "Parameter": Unsupported("a parameter"),
    "Placeholder": Unsupported("a parameter"),
    "Distinct": Unsupported("DISTINCT here", "DISTINCT"),
}

# aggregates that are known but not maintained yet, with an alternative
AGGREGATES: dict[str, str] = {
    "HISTOGRAM_NUMERIC": "count the rows by WIDTH_BUCKET(x, low, high, n)",
    **dict.fromkeys(
        ("APPROX_TOP_K", "TOP_K", "APPROX_MOST_FREQUENT"),
        "write GROUP BY x ORDER BY COUNT(*) DESC LIMIT k, which is exact",
    ),
    **dict.fromkeys(("HLL_SKETCH_AGG", "THETA_SKETCH_AGG"), "write COUNT(DISTINCT x), which is exact"),
    "TRY_SUM": "CAST to DECIMAL(38,0) or DOUBLE first",
}  # fmt: skip

# functions of the current time, some of them without parentheses
NOW = (
    "CURDATE", "CURRENT_DATE", "CURRENT_TIME", "CURRENT_TIMESTAMP", "CURRENT_TIMEZONE", "GETDATE", "LOCALTIME",
    "LOCALTIMESTAMP", "NOW", "SYSDATE",
)  # fmt: skip

# scalar functions of Spark that are known but not supported, with an alternative
FUNCTIONS: dict[str, str] = {
    **dict.fromkeys(
        (name for name in NOW if name not in ("NOW", "CURRENT_TIMESTAMP", "CURRENT_DATE", "CURDATE")),
        "write DATE '…' or TIMESTAMP '…', or in WHERE compare a time with NOW() ± an INTERVAL",
    ),
    **dict.fromkeys(
        ("MONOTONICALLY_INCREASING_ID", "RAND", "RANDN", "RANDOM", "SHUFFLE", "UUID"),
        "an answer does not depend on when it is computed",
    ),
    **dict.fromkeys(
        (
            "EXPLODE", "EXPLODE_OUTER", "INLINE", "INLINE_OUTER", "JSON_TUPLE", "POSEXPLODE", "POSEXPLODE_OUTER",
            "STACK", "UNNEST",
        ),
        "it makes rows: as an item of SELECT, behind LATERAL VIEW, or in FROM",
    ),
    "TO_NUMBER": "CAST it to a DECIMAL",
}  # fmt: skip

# forms of queries, by the binder's names
QUERIES: dict[str, Unsupported] = {
    "outer join inside": Unsupported("a RIGHT or FULL JOIN in a correlated subquery", "JOIN", "write a LEFT JOIN"),
    "outer join lateral": Unsupported("a RIGHT or FULL JOIN with a correlated LATERAL", "JOIN", "write a LEFT JOIN"),
    "outer join after comma": Unsupported(
        "a RIGHT or FULL JOIN after a comma", "JOIN", "write CROSS JOIN, or parentheses: a, (b RIGHT JOIN c ON …)"
    ),
    "EXPLODE": Unsupported(
        "EXPLODE of anything but an ARRAY, a MAP or SEQUENCE(a, b)", "", "SPLIT(x, 'p') makes an ARRAY of a text"
    ),
    "INLINE": Unsupported("INLINE of anything but an ARRAY of STRUCTs", "", "EXPLODE makes rows of other ARRAYs"),
    "MAP keys": Unsupported(
        "a MAP whose keys are not constants that differ", "", "list its entries by STACK(n, k, v, …)"
    ),
    "generator joined": Unsupported(
        "a join by a condition with rows that are written out",
        "JOIN",
        "write LEFT JOIN … ON TRUE, or a comma and WHERE",
    ),
    "generator first": Unsupported(
        "an OUTER generator of columns of the outer query", "", "write it in the FROM that has the columns"
    ),
    "lambda": Unsupported("a subquery in a lambda", "SELECT", "compute its value in a query in FROM"),
    "function": Unsupported("a subquery in a function", "SELECT", "write a view, or give its value as an argument"),
    "two windows": Unsupported("a second time window in a query", "WINDOW", "nest the queries"),
    "window as a value": Unsupported("WINDOW as a value", "WINDOW", "take its start and end"),
    "NOW": Unsupported(
        "NOW() outside WHERE", "", "compare the time of a stream with it: WHERE at > NOW() - INTERVAL '1' HOUR"
    ),
    "NOW in a condition": Unsupported(
        "NOW() in another condition than a comparison by =, <, <=, >, >= or BETWEEN with NOW() or CURRENT_DATE, "
        "± an INTERVAL or cut by DATE_TRUNC",
        "",
        "write WHERE at > NOW() - INTERVAL '1' HOUR AND …",
    ),
    "NOW of tables": Unsupported("NOW() compared with columns of static tables", "", "declare one as STREAM"),
    "NOW around": Unsupported("NOW() compared with columns of the outer query", "", "compare it in the outer query"),
    "session of streams": Unsupported(
        "SESSION over more than one stream", "", "write it in subqueries in FROM, one for each stream"
    ),
    "session not grouped": Unsupported(
        "SESSION_WINDOW that is no key of GROUP BY", "", "write it in GROUP BY, beside the keys that have sessions each"
    ),
    "session as a value": Unsupported(
        "SESSION_WINDOW before rows are grouped", "", "take its start and end from a subquery in FROM"
    ),
    "session of sets": Unsupported(
        "SESSION_WINDOW in ROLLUP, CUBE or GROUPING SETS", "", "write the sets as SELECTs with UNION ALL"
    ),
    "EXPLODE of what is not read": Unsupported(
        "EXPLODE of columns not of one stream or table",
        "",
        "explode in a subquery in FROM, before rows are joined or aggregated",
    ),
    "parentheses inside": Unsupported("a parenthesised join in a correlated subquery"),
    "rows of a query": Unsupported(
        "a row compared with a query", "", "write IN, = ANY, or EXISTS with the comparison in its WHERE"
    ),
    "row beside a value": Unsupported("a row (a, b) compared with what is none", "", "write both as rows"),
    "outer ASOF join": Unsupported("ASOF RIGHT, FULL, SEMI or ANTI JOIN", "ASOF", "write ASOF JOIN or ASOF LEFT JOIN"),
    "right side of ASOF join": Unsupported(
        "ASOF JOIN with a join in parentheses, LATERAL or a query without a name", "", "give a subquery in FROM a name"
    ),
    "subquery of ASOF join": Unsupported(
        "a subquery in the condition of ASOF JOIN", "", "join or filter in FROM before"
    ),
    "USING of ASOF join": Unsupported("USING of ASOF JOIN with a column of several sources", "", "write ON"),
    "USING twice": Unsupported("USING next to a parenthesised join with USING", "", "write ON"),
    "second generator": Unsupported(
        "a second generator in a select list",
        "",
        "EXPLODE(ARRAYS_ZIP(a, b)) makes a row of each pair, LATERAL VIEW of each one of all combinations",
    ),
    "STRICT": Unsupported("STRICT CORRESPONDING", "STRICT", "write CORRESPONDING BY (…)"),
    "window after set": Unsupported(
        "a window at the end of UNION, INTERSECT or EXCEPT", "", "put the SELECT that it applies to in parentheses"
    ),
    "rows of changes": Unsupported(
        "ROWS over a change stream, whose deletes have no row number", "", "use RANGE, with TIMESTAMP BY"
    ),
    "LIMIT": Unsupported(
        "LIMIT in a subquery with more than five ORDER BY keys and no known unique key",
        "LIMIT",
        "declare the PRIMARY KEY of a relation in FROM",
    ),
    "DISTINCT ON": Unsupported(
        "DISTINCT ON with more than five ORDER BY keys and no known unique key",
        "DISTINCT",
        "declare the PRIMARY KEY of a relation in FROM",
    ),
    "FETCH": Unsupported(
        "FETCH … PERCENT", "PERCENT", "write QUALIFY PERCENT_RANK() OVER (ORDER BY …) < 0.1 for ten percent"
    ),
    "frame": Unsupported("a frame with EXCLUDE"),
    "frame of ends": Unsupported("NTH_VALUE in a frame with an offset", "", "use LAG and LEAD"),
    "ignored": Unsupported(
        "IGNORE NULLS for NTH_VALUE, or for LAG and LEAD beyond 1 row", "IGNORE", "use MAX_BY with FILTER"
    ),
    "table function": Unsupported("a table function", "", "there are those of docs/matrix.md and docs/fivm.md"),
    "values of a query": Unsupported("PIVOT of the values of a query", "", "write the values"),
    "many sets": Unsupported("GROUP BY of more than 64 sets", "GROUP"),
    "subquery here": Unsupported(
        "a subquery in ORDER BY of a set operation", "SELECT", "write the set operation in FROM"
    ),
}
