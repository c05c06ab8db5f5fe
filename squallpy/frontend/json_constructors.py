"""JSON_OBJECT, JSON_ARRAY and their aggregates, standard SQL's, as texts put together.

JSON_OBJECT('a': x, KEY 'b' VALUE y)   →   '{' || TO_JSON('a') || ':' || TO_JSON(x) || ',' || … || '}'
JSON_ARRAYAGG(x ORDER BY y)            →   '[' || LISTAGG(TO_JSON(x), ',') WITHIN GROUP (ORDER BY y) || ']'

A value that another of them makes, or that is followed by FORMAT JSON, is JSON already. Objects have null for NULL and
arrays leave NULL out, unless NULL ON NULL or ABSENT ON NULL says otherwise.
"""

from collections.abc import Callable, Iterable
from typing import Any

from sqlglot import exp
from sqlglot.tokenizer_core import TokenType

SEPARATORS = (TokenType.COLON, TokenType.COMMA)
MADE = "json"
"""The mark, in `meta`, of an expression that is JSON."""


def read_object(parser: Any) -> exp.Expr:
    """Parse the entries of JSON_OBJECT."""
    entries = [] if _ends(parser) else parser._parse_csv(lambda: _entry(parser))
    absent = _absent(parser, False)
    members = [_member(key, value, absent) for key, value in entries]
    return _made("{", _joined(members, absent), "}")


def read_array(parser: Any) -> exp.Expr:
    """Parse the values of JSON_ARRAY."""
    values = [] if _ends(parser) else parser._parse_csv(lambda: _value(parser))
    absent = _absent(parser, True)
    return _made("[", _joined([_or_null(value, absent) for value in values], absent), "]")


def read_object_aggregate(parser: Any) -> exp.Expr:
    """Parse the entry of JSON_OBJECTAGG, whose members are in the order of their keys and values."""
    key, value = _entry(parser)
    member = _member(key, value, _absent(parser, False))
    return _made("{", [_listed(member, [exp.Ordered(this=each.copy()) for each in (key, value)])], "}")


def read_array_aggregate(parser: Any) -> exp.Expr:
    """Parse the value of JSON_ARRAYAGG, and its order, by default that of the values."""
    value = _value(parser)
    order = parser._parse_order()
    keys = order.expressions if order else [exp.Ordered(this=_inside(value).copy())]
    return _made("[", [_listed(_or_null(value, _absent(parser, True)), keys)], "]")


PARSERS: dict[str, Callable[[Any], exp.Expr]] = {
    "JSON_OBJECT": read_object,
    "JSON_ARRAY": read_array,
    "JSON_OBJECTAGG": read_object_aggregate,
    "JSON_ARRAYAGG": read_array_aggregate,
}


def _ends(parser: Any) -> bool:
    return parser._curr is None or parser._curr.token_type is TokenType.R_PAREN


def _entry(parser: Any) -> tuple[exp.Expr, exp.Expr]:
    """Parse 'a': x, KEY 'a' VALUE x, 'a' VALUE x, or 'a', x."""
    parser._match_text_seq("KEY")
    key = parser._parse_column()
    if key is None or not (parser._match_set(SEPARATORS) or parser._match_text_seq("VALUE")):
        parser.raise_error("Expected a key, and its value behind VALUE, a colon or a comma")
    return key, _value(parser)


def _value(parser: Any) -> exp.Expr:
    value: exp.Expr | None = parser._parse_bitwise()
    if value is None:
        parser.raise_error("Expected a value")
    assert value is not None
    if parser._match_text_seq("FORMAT", "JSON"):
        value.meta[MADE] = True
    if value.meta.get(MADE):
        return value
    return _call("TO_JSON", value)


def _inside(value: exp.Expr) -> exp.Expr:
    return value if value.meta.get(MADE) else value.expressions[0]


def _absent(parser: Any, default: bool) -> bool:
    """Parse NULL ON NULL or ABSENT ON NULL: True if a value that is NULL is left out."""
    handling = parser._parse_on_handling("NULL", "NULL", "ABSENT")
    return default if handling is None else bool(handling.startswith("ABSENT"))


def _or_null(value: exp.Expr, absent: bool) -> exp.Expr:
    return value if absent else _call("COALESCE", value, _text("null"))


def _member(key: exp.Expr, value: exp.Expr, absent: bool) -> exp.Expr:
    """Write a member of an object; NULL if its value is, and is left out."""
    name = _call("TO_JSON", exp.cast(key.copy(), "text"))
    return exp.DPipe(this=exp.DPipe(this=name, expression=_text(":")), expression=_or_null(value.copy(), absent))


def _joined(parts: list[exp.Expr], absent: bool) -> list[exp.Expr]:
    """Put commas between parts; those that are NULL and left out have none."""
    if absent and parts:
        return [_call("CONCAT_WS", _text(","), *parts)]
    commas = [[_text(","), part] for part in parts]
    return [each for pair in commas for each in pair][1:]


def _listed(part: exp.Expr, order: Iterable[exp.Expr]) -> exp.Expr:
    """Write the parts of all rows with commas between them; nothing of none."""
    listed = exp.WithinGroup(
        this=_call("LISTAGG", part, _text(",")), expression=exp.Order(expressions=[each.copy() for each in order])
    )
    return _call("COALESCE", listed, _text(""))


def _made(start: str, parts: Iterable[exp.Expr], end: str) -> exp.Expr:
    made: exp.Expr = _text(start)
    for part in (*parts, _text(end)):
        made = exp.DPipe(this=made, expression=part)
    whole = exp.Paren(this=made)
    whole.meta[MADE] = True
    return whole


def _call(name: str, *arguments: exp.Expr) -> exp.Anonymous:
    return exp.Anonymous(this=name, expressions=list(arguments))


def _text(text: str) -> exp.Literal:
    return exp.Literal.string(text)
