"""Functions of texts."""

import re
from functools import partial

from squallpy.base.errors import SquallError
from squallpy.base.types import INT, NULL, VARCHAR, Shape, Type, nested_type
from squallpy.logical.bind.datetime.intervals import negate
from squallpy.logical.bind.predicates import like
from squallpy.logical.bind.scalar.expansion import EMPTY, NOTHING, ONE, SPACE, ZERO, Builder, expands
from squallpy.logical.bind.scalar.nested import array_compact, array_join, concatenated, reversed_array, size
from squallpy.logical.bind.split_function import matches_empty
from squallpy.logical.expression_builders import call, case
from squallpy.logical.expressions import Cast, Expr, Literal, conjunction, not_null


@expands("CONCAT")
def concat(first: Expr, *rest: Expr) -> Expr:
    """Build CONCAT(a, b, c)  →  a || b || c"""
    if first.type.nested:
        return concatenated(first, *rest)
    return call("||", first, *rest) if rest else first


@expands("CONCAT_WS")
def bind_concat_ws(separator: Expr, *parts: Expr) -> Expr:
    """Build CONCAT_WS(',', a, b)."""
    if not isinstance(separator, Literal):
        raise SquallError("SQ3001", "CONCAT_WS with a computed separator is not supported yet")
    if separator.value is None:
        return Literal(None, VARCHAR)
    return call("concat_ws", separator, *(_joined(part, separator) for part in parts)) if parts else EMPTY


def _joined(part: Expr, separator: Expr) -> Expr:
    """Join the elements of an ARRAY that are not NULL; NULL if there is none."""
    if part.type.nested is None:
        return part
    known = array_compact(part)
    return case([(call(">", size(known), ZERO), array_join(known, separator))], Literal(None, VARCHAR))


@expands("REVERSE")
def reverse(value: Expr) -> Expr:
    return reversed_array(value) if value.type.nested else call("reverse", value)


@expands("SPLIT")
def bind_split(value: Expr, pattern: Expr, most: Expr = ZERO) -> Expr:
    if isinstance(pattern, Literal) and pattern.type == VARCHAR and matches_empty(str(pattern.value)):
        raise SquallError("SQ2004", f"SPLIT by '{pattern.value}', which also matches nothing")
    return Cast(call("split", value, pattern, most), nested_type(Shape.ARRAY, (VARCHAR,)))


@expands("STRING_SPLIT")
def bind_string_split(value: Expr, separator: Expr) -> Expr:
    if not isinstance(separator, Literal) or separator.type != VARCHAR or not separator.value:
        raise SquallError("SQ3001", "STRING_SPLIT by anything but a constant text is not supported yet")
    return bind_split(value, Literal(re.escape(str(separator.value)), VARCHAR))


@expands("LEFT")
def bind_left(text: Expr, length: Expr) -> Expr:
    return call("substring", text, ONE, length)


@expands("RIGHT")
def right(text: Expr, length: Expr) -> Expr:
    return call("substring", text, negate(length), length)


def pad_to(name: str) -> Builder:
    def build(text: Expr, length: Expr, fill: Expr = SPACE) -> Expr:
        return call(name, text, length, fill)

    return build


expands("LPAD")(pad_to("lpad"))
expands("RPAD")(pad_to("rpad"))


def of_spaces(name: str) -> Builder:
    """Return the builder of TRIM(x), which is TRIM(' ' FROM x)."""
    return lambda text: call(name, text, SPACE)


expands("LTRIM")(of_spaces("ltrim"))
expands("RTRIM")(of_spaces("rtrim"))


@expands("BTRIM")
def bind_trim(text: Expr, characters: Expr = SPACE) -> Expr:
    return call("trim", text, characters)


@expands("SPACE")
def spaces(count: Expr) -> Expr:
    return call("repeat", SPACE, count)


@expands("BIT_LENGTH")
def bit_length(text: Expr) -> Expr:
    return call("*", call("octets", text), Literal(8, INT))


@expands("REPLACE")
def bind_replace(text: Expr, old: Expr, new: Expr = EMPTY) -> Expr:
    return call("replace", text, old, new)


@expands("OVERLAY")
def overlaid(text: Expr, other: Expr, start: Expr, length: Expr | None = None) -> Expr:
    """Build OVERLAY('abcdef', 'XY', 2, 3)  →  'aXYef'"""
    rest = call("+", start, call("length", other) if length is None else length)
    return concat(bind_left(text, call("-", start, ONE)), other, call("substring", text, rest))


@expands("SPLIT_PART")
def part(text: Expr, separator: Expr, position: Expr) -> Expr:
    if isinstance(position, Literal) and position.value == 0:
        raise SquallError("SQ2005", "SPLIT_PART counts from 1, or from -1 at the end")
    return call("split_part", text, separator, position)


@expands("SPLIT_INDEX")
def part_from_zero(text: Expr, separator: Expr, position: Expr) -> Expr:
    """Build SPLIT_INDEX('a,b', ',', 1), which is NULL behind the last part."""
    if not isinstance(position, Literal) or not position.type.is_integer or position.value is None:
        raise SquallError("SQ2005", "SPLIT_INDEX takes a whole number, from 0 on")
    if position.value < 0:
        return Literal(None, VARCHAR)
    rest = call("-", call("length", text), call("length", call("replace", text, separator, EMPTY)))
    before = call("div", rest, call("greatest", call("length", separator), ONE))
    part = call("split_part", text, separator, Literal(position.value + 1, INT))
    return case([(call(">=", before, position), part)], Literal(None, VARCHAR))


@expands("LOCATE")
def bind_locate(sought: Expr, text: Expr, start: Expr | None = None) -> Expr:
    """Build LOCATE: the first place from a start on, 0 if there is none.

    LOCATE('b', 'abcb', 3)  →  4
    """
    if start is None:
        return call("instr", text, sought)
    before = call("-", start, ONE)
    found = call("instr", call("substring", text, start), sought)
    is_there = conjunction((call(">", start, ZERO), call(">", found, ZERO)))
    return case([(is_there, call("+", found, before)), (not_null(found), ZERO)], Literal(None, INT))


def with_flags(expression: Expr, flags: Expr | None, known: str) -> Expr:
    """Rewrite a regular expression as 'i' asks for it; the other known flags change nothing."""
    given = "" if flags is None else flags.value if isinstance(flags, Literal) else None
    if (
        not isinstance(given, str)
        or set(given) - set(known)
        or (flags is not None and "g" in known and "g" not in given)
    ):
        flags_given = str(flags) if isinstance(flags, Literal) else "of a computed value"
        message = f"a regular expression with the flags {flags_given} is not supported yet"
        raise SquallError("SQ3001", message, hint=f"there are {' and '.join(map(repr, known))}")
    if "i" not in given:
        return expression
    if not isinstance(expression, Literal):
        raise SquallError("SQ3001", "flags of a computed regular expression are not supported yet")
    return Literal(f"(?i){expression.value}", VARCHAR)


@expands("REGEXP_LIKE")
def bind_regexp_like(text: Expr, expression: Expr, flags: Expr | None = None) -> Expr:
    """Build REGEXP_LIKE(x, p, 'i')."""
    return call("rlike", text, with_flags(expression, flags, "ic"))


@expands("REGEXP_REPLACE")
def bind_regexp_replace(text: Expr, expression: Expr, new: Expr, flags: Expr | None = None) -> Expr:
    """Build REGEXP_REPLACE(x, p, y), of all matches, as 'g' says elsewhere."""
    return call("regexp_replace", text, with_flags(expression, flags, "gi"), new)


@expands("REGEXP_EXTRACT")
def bind_regexp_extract(text: Expr, expression: Expr, group: Expr | None = None) -> Expr:
    """Build REGEXP_EXTRACT(x, p): the first group, or the whole match if there is none."""
    return call("regexp_extract", text, expression, _group(expression) if group is None else group)


def _group(expression: Expr) -> Expr:
    has_group = isinstance(expression, Literal) and re.search(r"(?<!\\)\((?!\?)", str(expression.value))
    return Literal(int(bool(has_group)), INT)


@expands("REGEXP_EXTRACT_ALL")
def bind_regexp_extract_all(text: Expr, expression: Expr, group: Expr | None = None) -> Expr:
    found = call("regexp_extract_all", text, expression, _group(expression) if group is None else group)
    return Cast(found, nested_type(Shape.ARRAY, (VARCHAR,)))


@expands("LEVENSHTEIN")
def distance(a: Expr, b: Expr, most: Expr | None = None) -> Expr:
    made = call("levenshtein", a, b)
    return made if most is None else case([(call(">", made, most), Literal(-1, INT))], made)


@expands("MASK")
def mask(text: Expr, *characters: Expr) -> Expr:
    """Build MASK(x, 'X', 'x', 'n', NULL), with what Spark puts in the place of letters and digits by default."""
    given = [EMPTY if each == NOTHING else each for each in characters]
    return call("mask", text, *given, *(Literal(each, VARCHAR) for each in ("X", "x", "n", "")[len(given) :]))


@expands("TYPEOF")
def type_name(value: Expr) -> Expr:
    return Literal(_type_name(value.type), VARCHAR)


def _type_name(type: Type) -> str:
    """Name a type as Spark does: array<string>, struct<a:int,b:decimal(4,2)>"""
    if type.nested is None:
        return {VARCHAR: "string", NULL: "void"}.get(type) or str(type).lower()
    parts = [_type_name(each) for each in type.nested.types]
    if type.nested.shape is Shape.STRUCT:
        parts = [f"{name}:{part}" for name, part in zip(type.nested.names, parts, strict=True)]
    return f"{type.nested.shape.value.lower()}<{','.join(parts)}>"


@expands("REGEXP_SUBSTR")
def first_match(text: Expr, expression: Expr) -> Expr:
    return case([(call("rlike", text, expression), bind_regexp_extract(text, expression, ZERO))], NOTHING)


expands("LIKE")(like)
expands("ILIKE")(partial(like, in_any_case=True))
