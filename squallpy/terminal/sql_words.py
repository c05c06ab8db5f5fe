"""Words of a text that is typed: for colours, and for what completes the last one.

list(words("SELECT 'a'"))   →   ("keyword", "SELECT"), ("", " "), ("string", "'a'")
"""

import re
from collections.abc import Iterator

_LISTED = """
ALTER AND AS ASC BETWEEN BY CASCADE CASE CAST CREATE CROSS DELAY DESC DESCRIBE DISTINCT DROP ELSE END EXCEPT EXISTS
EXPLAIN FILTER FROM FULL FUNCTION GROUP HAVING IF IN INNER INTERSECT INTERVAL IS JOIN KEY LANGUAGE LATERAL LEFT LIKE
LIMIT MATERIALIZED MATRIX NATURAL NOT NULL NULLS OFFSET ON OPTIONS OR ORDER OUTER OVER PARTITION PAUSE PRIMARY PROGRAM
QUALIFY REPLACE RESUME RETURN RETURNS RIGHT SELECT SEMI SET SHOW SINK SNAPSHOT STORED STREAM SUBSCRIBE TABLE THEN
TIMESTAMP UNION USING VIEW WHEN WHERE WINDOW WITH
"""
KEYWORDS = tuple(_LISTED.split())
_KEYWORDS = frozenset(KEYWORDS)
_WORDS = re.compile(
    r"""
    (?P<comment>--[^\n]*|/\*.*?(?:\*/|\Z))
  | (?P<string>(?<=\W[rR])'[^']*'?|'(?:[^'\\]|\\.|'')*'?)
  | (?P<quoted>"[^"]*"?|`[^`]*`?)
  | (?P<number>\b\d+(?:\.\d*)?\b)
  | (?P<name>[^\W\d]\w*)
  | (?P<other>[^\w'"`/-]+|.)
    """,
    re.VERBOSE | re.DOTALL,
)


def words(text: str) -> Iterator[tuple[str, str]]:
    """Yield the parts of a text, each with its class: keyword, string, number, comment, command, or none."""
    if text.lstrip().startswith((".", "\\")):
        lead, command, rest = re.fullmatch(r"(\s*)(\S+)(.*)", text, re.DOTALL).groups()  # type: ignore[union-attr]
        yield from (("", lead), ("command", command), ("", rest))
        return
    for found in _WORDS.finditer(text):
        kind = found.lastgroup or ""
        if kind == "name":
            kind = "keyword" if found[0].upper() in _KEYWORDS else ""
        yield kind if kind in ("comment", "string", "number", "keyword") else "", found[0]
