"""SPLIT(x, p), an ARRAY of texts. Of its parts alone (`explode.py`), their number, or one of them, none is made."""

import re

from sqlglot import exp

from squallpy.base.types import INT, VARCHAR
from squallpy.frontend.unsupported import QUERIES
from squallpy.functions.registry import SCALARS
from squallpy.logical.bind.context import Context
from squallpy.logical.bind.expressions import Scalars
from squallpy.logical.expression_builders import call, case
from squallpy.logical.expressions import Expr, Literal

FIRST = {"GET": 0, "ELEMENT_AT": 1, "TRY_ELEMENT_AT": 1}  # the position of the first part
SIZES = SCALARS["SIZE"].names


def is_split(node: exp.Expr) -> bool:
    """True if it is SPLIT(x, p), of all parts."""
    return isinstance(node, exp.Anonymous) and node.name.upper() == "SPLIT" and len(node.expressions) == 2


def split_of_call(ctx: Context, node: exp.Expr) -> tuple[exp.Expr, str]:
    """Return the text that a call of SPLIT cuts, and the regular expression by which it does."""
    if not is_split(node):
        raise ctx.refuse(node, QUERIES["EXPLODE"])
    text, separator = node.expressions
    if not isinstance(separator, exp.Literal) or not separator.is_string:
        raise ctx.refuse(separator, QUERIES["EXPLODE"])
    if matches_empty(separator.name):
        raise ctx.error("SQ2004", f"SPLIT by '{separator.name}', which also matches nothing", separator)
    return text, separator.name


def bind_part_count(s: Scalars, lists: exp.Expr) -> Expr:
    """Bind the number of parts: SIZE(SPLIT(x, p))   →   REGEXP_COUNT(x, p) + 1"""
    text, pattern = split_of_call(s.ctx, lists)
    return _count(s.bind(text), pattern)


def item(s: Scalars, lists: exp.Expr, position: exp.Expr, first: int) -> Expr | None:
    """Bind one part of a text; None if it takes all of them to find it, or the position is computed.

    SPLIT(x, ',')[1]   →   SPLIT_PART(x, ',', 2) if there are two, else NULL

    Args:
        first: The position of the first part; if that is 1, positions from −1 on count from the end.
    """
    written, pattern = split_of_call(s.ctx, lists)
    at = s.bind(position)
    if not at.type.is_integer:
        raise s.ctx.error("SQ2004", "the position of a part is a whole number", position)
    if not isinstance(at, Literal) or at.value is None or (separator := _literal_pattern(pattern)) is None:
        return None
    if at.value < 0 if first == 0 else at.value == 0:
        raise s.ctx.error("SQ2004", f"parts are counted from {first} on", position)
    text, number = s.bind(written), at.value + 1 - first if at.value >= 0 else at.value
    part = call("split_part", text, Literal(separator, VARCHAR), Literal(number, INT))
    there = call(">=", _count(text, pattern), Literal(abs(number), INT))
    return case([(there, part)], Literal(None, VARCHAR))


def _count(text: Expr, pattern: str) -> Expr:
    return call("+", call("regexp_count", text, Literal(pattern, VARCHAR)), Literal(1, INT))


def _literal_pattern(pattern: str) -> str | None:
    """Return the only text that a regular expression matches, None if there may be others."""
    bare = re.sub(r"\\([^A-Za-z0-9])", "", pattern)
    return None if re.search(r"[\\.\[\](){}*+?^$|]", bare) else re.sub(r"\\(.)", r"\1", pattern)


def matches_empty(pattern: str) -> bool:
    """True if a regular expression matches the empty text, and so between any two letters."""
    try:
        return re.match(pattern, "") is not None
    except re.error:  # then it is told where texts are cut
        return False
