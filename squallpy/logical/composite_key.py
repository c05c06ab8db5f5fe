"""Several values as one unique text, so that one key identifies rows instead of many.

(7, 'a;b', NULL)    →    '7;3:a;b-'
"""

from collections.abc import Sequence

from squallpy.base.types import VARCHAR, Kind
from squallpy.logical.coercion import ALWAYS
from squallpy.logical.expression_builders import call, case
from squallpy.logical.expressions import Call, Cast, Expr, Literal, is_null

SPELLED = ALWAYS | {Kind.VARCHAR}


def pack(values: Sequence[Expr]) -> Expr | None:
    """Write one or more values as one text; None if any has no text of its own."""
    if not all(value.type.kind in SPELLED for value in values):
        return None
    texts = [_key_text(value) for value in values]
    return call("||", *texts) if len(texts) > 1 else texts[0]


def _key_text(value: Expr) -> Expr:
    if value.type.kind is Kind.VARCHAR:  # NB: may contain any separator, so its length comes first
        text = call("||", _append_mark(call("length", value), ":"), value)
    else:
        text = _append_mark(value, ";")
    return case([(is_null(value), Literal("-", VARCHAR))], text) if value.nullable else text


def _append_mark(value: Expr, end: str) -> Call:
    return call("||", Cast(value, VARCHAR), Literal(end, VARCHAR))
