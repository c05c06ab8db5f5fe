"""What is refused by name: the one list that the binder asks and the manual prints."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Unsupported:
    """A construct of SQL that is refused: its name, the keyword to point at, and what to write instead."""

    name: str
    keyword: str = ""
    hint: str = ""


SCRIPT_HINT = "a script has CREATE STREAM, CREATE TABLE, CREATE VIEW and SELECT"

STATEMENTS: dict[str, str] = dict.fromkeys(
    ("ALTER", "ANALYZE", "CACHE", "CALL", "COMMENT", "COPY", "DELETE", "DESC", "DESCRIBE", "DROP", "EXPLAIN", "FROM",
     "GRANT", "INSERT", "LOAD", "MERGE", "REFRESH", "SET", "SHOW", "TRUNCATE", "UPDATE", "USE", "VALUES"),
    SCRIPT_HINT,
)  # fmt: skip

# arguments of sqlglot's nodes that mean something we do not do: (node, argument) or argument alone
CLAUSES: dict[str, Unsupported] = {
    "Select.hint": Unsupported("a query hint", "/*+"),
    "Select.into": Unsupported("SELECT INTO", "INTO"),
    "Select.kind": Unsupported("SELECT AS STRUCT or VALUE", "AS"),
    "Select.operation_modifiers": Unsupported("this modifier of SELECT", "SELECT"),
    "Select.exclude": Unsupported("SELECT * EXCLUDE", "EXCLUDE"),
    "match": Unsupported("MATCH_RECOGNIZE", "MATCH_RECOGNIZE"),
    "laterals": Unsupported("LATERAL VIEW", "LATERAL"),
    "connect": Unsupported("CONNECT BY", "CONNECT"),
    "pivots": Unsupported("PIVOT or UNPIVOT", "PIVOT"),
    "prewhere": Unsupported("PREWHERE", "PREWHERE"),
    "qualify": Unsupported("QUALIFY", "QUALIFY"),
    "windows": Unsupported("a WINDOW clause", "WINDOW"),
    "distribute": Unsupported("DISTRIBUTE BY", "DISTRIBUTE"),
    "sort": Unsupported("SORT BY", "SORT", "use ORDER BY"),
    "cluster": Unsupported("CLUSTER BY", "CLUSTER"),
    "locks": Unsupported("FOR UPDATE", "FOR"),
    "sample": Unsupported("TABLESAMPLE", "TABLESAMPLE"),
    "settings": Unsupported("SETTINGS", "SETTINGS"),
    "format": Unsupported("FORMAT", "FORMAT"),
    "options": Unsupported("query OPTIONS", "OPTION"),
    "for_": Unsupported("FOR", "FOR"),
    "by_name": Unsupported("INTERSECT or EXCEPT BY NAME", "BY"),
    "Group.totals": Unsupported("WITH TOTALS", "TOTALS"),
    "Group.all": Unsupported("GROUP BY ALL", "ALL", "list the columns"),
    "Order.siblings": Unsupported("ORDER SIBLINGS BY", "SIBLINGS"),
    "Ordered.with_fill": Unsupported("WITH FILL", "FILL"),
    "Limit.limit_options": Unsupported("this form of LIMIT", "LIMIT"),
    "Distinct.on": Unsupported("DISTINCT ON", "DISTINCT"),
    "Table.db": Unsupported("a schema before a table's name", "", "write the table's name alone"),
    "Table.catalog": Unsupported("a catalog before a table's name", "", "write the table's name alone"),
    "Column.db": Unsupported("a schema before a column's name", "", "write table.column"),
    "Column.catalog": Unsupported("a catalog before a column's name", "", "write table.column"),
    "Column.join_mark": Unsupported("(+) outer joins"),
    "Table.joins": Unsupported("a join in parentheses"),
    "Subquery.joins": Unsupported("a join in parentheses"),
    "Table.version": Unsupported("time travel"),
    "With.recursive": Unsupported("WITH RECURSIVE", "RECURSIVE"),
    "Star.except_": Unsupported("* EXCEPT", "EXCEPT"),
    "Star.replace": Unsupported("* REPLACE", "REPLACE"),
    "Star.rename": Unsupported("* RENAME", "RENAME"),
    "In.unnest": Unsupported("IN UNNEST", "IN"),
    "Between.symmetric": Unsupported("BETWEEN SYMMETRIC", "SYMMETRIC"),
    "Cast.format": Unsupported("CAST … FORMAT", "FORMAT"),
    "Cast.default": Unsupported("CAST … DEFAULT", "DEFAULT"),
    "In.field": Unsupported("IN without parentheses", "IN"),
    "Trim.collation": Unsupported("COLLATE", "COLLATE"),
}

JOINS: dict[str, Unsupported] = {
    "RIGHT": Unsupported("RIGHT SEMI or ANTI JOIN", "RIGHT", "use LEFT SEMI or LEFT ANTI with the sides swapped"),
    "OUTER": Unsupported("OUTER JOIN", "OUTER"),
    "ASOF": Unsupported("ASOF JOIN", "ASOF"),
}

# nodes of sqlglot, by class, that have a name in SQL worth saying
NODES: dict[str, Unsupported] = {
    "Select": Unsupported("a subquery in an expression", "SELECT"),
    "Subquery": Unsupported("a subquery in an expression", "SELECT"),
    "Any": Unsupported("ANY (…)", "ANY"),
    "All": Unsupported("ALL (…)", "ALL"),
    "Window": Unsupported("a window function (OVER)", "OVER"),
    "WithinGroup": Unsupported("WITHIN GROUP", "WITHIN"),
    "IgnoreNulls": Unsupported("IGNORE NULLS", "IGNORE"),
    "RespectNulls": Unsupported("RESPECT NULLS", "RESPECT"),
    "TryCast": Unsupported("TRY_CAST", "TRY_CAST", "use CAST"),
    "Lateral": Unsupported("LATERAL", "LATERAL"),
    "Unnest": Unsupported("UNNEST", "UNNEST"),
    "Values": Unsupported("VALUES", "VALUES"),
    "Tuple": Unsupported("a row value (a, b) here", "", "it goes with =, <> and IN"),
    "SimilarTo": Unsupported("SIMILAR TO", "SIMILAR"),
    "BitwiseAnd": Unsupported("&", "&"),
    "BitwiseOr": Unsupported("|", "|"),
    "BitwiseXor": Unsupported("^", "^"),
    "BitwiseNot": Unsupported("~", "~"),
    "Collate": Unsupported("COLLATE", "COLLATE"),
    "AtTimeZone": Unsupported("AT TIME ZONE", "AT"),
    "CurrentDate": Unsupported("CURRENT_DATE", "CURRENT_DATE", "write DATE '…'"),
    "CurrentTimestamp": Unsupported("CURRENT_TIMESTAMP", "CURRENT_TIMESTAMP", "write TIMESTAMP '…'"),
    "Table": Unsupported("a table in parentheses"),
    "Var": Unsupported("ALL here", "ALL"),
    "Alias": Unsupported("a name inside an expression", "AS"),
    "Star": Unsupported("* inside an expression"),
    "Concat": Unsupported("a string after a string", "", "use ||"),
    "Lambda": Unsupported("a lambda"),
    "Bracket": Unsupported("x[i]"),
    "Dot": Unsupported("a field of a struct"),
    "Struct": Unsupported("STRUCT"),
    "Array": Unsupported("ARRAY"),
    "Parameter": Unsupported("a parameter"),
    "Placeholder": Unsupported("a parameter"),
    "Distinct": Unsupported("DISTINCT here", "DISTINCT"),
}

# functions that are known but not maintained yet
AGGREGATES: tuple[str, ...] = (
    "ANY_VALUE", "APPROX_COUNT_DISTINCT", "APPROX_PERCENTILE", "ARRAY_AGG", "BIT_AND", "BIT_OR", "BIT_XOR",
    "COLLECT_LIST", "COLLECT_SET", "CORR", "COVAR_POP", "COVAR_SAMP", "FIRST", "FIRST_VALUE", "KURTOSIS", "LAST",
    "LAST_VALUE", "LISTAGG", "MAX_BY", "MEDIAN", "MIN_BY", "MODE", "PERCENTILE", "PERCENTILE_APPROX",
    "PERCENTILE_CONT", "PERCENTILE_DISC", "PRODUCT", "REGR_INTERCEPT", "REGR_R2", "REGR_SLOPE", "SKEWNESS",
    "STRING_AGG",
)  # fmt: skip
