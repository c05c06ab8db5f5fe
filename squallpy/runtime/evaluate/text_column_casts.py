"""Casts of text columns, by the rule of `base/text_casts.py`.

Arrow parses the texts whose form it certainly reads by the same rule; the others are parsed one by one, each distinct
text once. So only unusual texts are slower than Arrow.
"""

from collections.abc import Callable, Iterator
from decimal import Decimal
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from squallpy.base.text_casts import BLANKS, Value, parse
from squallpy.base.types import Kind, Type
from squallpy.logical.coercion import WIDE
from squallpy.runtime.evaluate.vectors import arrow_type

_DAY = "[12][0-9]{3}-(?:(?:0[1-9]|1[0-2])-(?:0[1-9]|1[0-9]|2[0-8])|(?:0[13-9]|1[0-2])-(?:29|30)|(?:0[13578]|1[02])-31)"
_TIME = "(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](?:[.][0-9]{1,6})?"
_ZONE = "(?:Z|[+-](?:0[0-9]|1[0-7]):[0-5][0-9])"

HELD = {Kind.DATE: pa.int32(), Kind.TIMESTAMP: pa.int64(), Kind.DAY_TO_SECOND: pa.int64()}
"""Arrow types of numbers that are cast to the column type of a kind."""
TextCast = Callable[[pa.Array], pa.Array]


class TextNotation(NamedTuple):
    """A notation of values: texts that match the pattern, once tidied, all parse."""

    tidied: TextCast
    pattern: str
    parsed: TextCast


def column_type(type: Type) -> pa.DataType:
    """Return the Arrow type of source columns of a SQL type: integers of either size in 64 bits."""
    return pa.int64() if type.is_integer else arrow_type(type)


def parse_texts(texts: pa.Array, type: Type) -> pa.Array:
    """Parse strings as values in their column type; NULL where a string is NULL or has no value of the type."""
    if type.kind is Kind.VARCHAR:
        return texts
    parsed, left, nothing = None, texts, pa.scalar(None, pa.string())
    for form in _forms(type):
        left = form.tidied(left)
        plain = pc.match_substring_regex(left, f"^(?:{form.pattern})$")
        every = pc.all(plain).as_py() is not False
        found = form.parsed(left if every else pc.if_else(plain, left, nothing))
        parsed = found if parsed is None else pc.coalesce(parsed, found)
        if every:
            return parsed
        left = pc.if_else(plain, nothing, left)
    odd = _parse_each(left, type)
    return odd if parsed is None else pc.coalesce(parsed, odd)


def _parse_each(texts: pa.Array, type: Type) -> pa.Array:
    """Parse each distinct text by the rule."""
    encoded = texts.dictionary_encode()
    values = [_value(text, type) for text in encoded.dictionary.to_pylist()]
    if type.kind is Kind.DECIMAL:
        scaled = (None if v is None else Decimal(v).scaleb(-type.scale, WIDE) for v in values)
        distinct = pa.array(scaled, column_type(type))
    else:
        distinct = pa.array(values, HELD.get(type.kind, column_type(type))).cast(column_type(type))
    return distinct.take(encoded.indices)


def _value(text: str, type: Type) -> Value | None:
    try:
        return parse(text, type)
    except ValueError:
        return None


def _forms(type: Type) -> Iterator[TextNotation]:
    """List the forms of a type, in the order in which they are tried."""
    target = column_type(type)
    match type.kind:
        case Kind.INT:
            plain = TextNotation(_same, "-?[0-9]{1,18}", _within_int)
        case Kind.BIGINT:
            plain = TextNotation(_same, "-?(?:[0-9]{1,18}|[1-8][0-9]{18})", lambda texts: texts.cast(target))
        case Kind.DOUBLE:
            pattern = "-?[0-9]{1,40}(?:[.][0-9]{1,40})?(?:[eE][+-]?[0-9]{1,2})?"
            plain = TextNotation(_same, pattern, lambda texts: texts.cast(target))
        case Kind.DECIMAL:
            most = type.precision - type.scale
            pattern = f"-?{f'[0-9]{{1,{most}}}' if most else '0'}(?:[.][0-9]+)?"
            plain = TextNotation(_same, pattern, lambda texts: _decimals(texts, type))
        case Kind.DATE:
            plain = TextNotation(_same, _DAY, lambda texts: texts.cast(target))
        case Kind.TIMESTAMP:
            plain = TextNotation(_same, f"{_DAY}(?:[ T]{_TIME})?", lambda texts: texts.cast(target))
        case _:
            return
    yield plain
    if type.kind is not Kind.TIMESTAMP:
        yield plain._replace(tidied=_unsigned if type.is_numeric else _trimmed)
        return
    utc = pa.timestamp("us", "UTC")
    zoned = TextNotation(_same, f"{_DAY}[ T]{_TIME}{_ZONE}", lambda texts: texts.cast(utc).cast(target))
    yield from (zoned, plain._replace(tidied=_cut_nanoseconds), zoned)


def _same(texts: pa.Array) -> pa.Array:
    return texts


def _trimmed(texts: pa.Array) -> pa.Array:
    return pc.ascii_trim(texts, BLANKS)


def _unsigned(texts: pa.Array) -> pa.Array:
    """Remove surrounding blanks and a plus sign from numbers."""
    return pc.replace_substring_regex(_trimmed(texts), r"^\+([0-9])", r"\1")


def _cut_nanoseconds(texts: pa.Array) -> pa.Array:
    """Remove surrounding blanks, and digits after the sixth of a second."""
    return pc.replace_substring_regex(_trimmed(texts), r"(:[0-9]{2}[.][0-9]{6})[0-9]+", r"\1")


def _within_int(texts: pa.Array) -> pa.Array:
    """Cast to 32-bit integers, held in 64 bits; NULL beyond their range."""
    values = texts.cast(pa.int64())
    least, most = pc.min_max(values).as_py().values()
    if least is None or (least >= -(2**31) and most < 2**31):
        return values
    fits = pc.and_(pc.greater_equal(values, -(2**31)), pc.less(values, 2**31))
    return pc.if_else(fits, values, pa.scalar(None, pa.int64()))


def is_read_exactly(type: Type) -> bool:
    """True if Arrow's readers of csv and JSON never take a number that does not fit into a type for another one.

    NB: they multiply by the power of ten that a scale lacks, modulo 2¹²⁸, and refuse what is then below it. What
    DECIMAL(p, s) holds is below 10ᵖ, so that there is nothing to misread where p + s ≤ 38. Durations are numbers there.
    """
    if type.kind is Kind.DAY_TO_SECOND:
        return False
    return type.kind is not Kind.DECIMAL or type.precision + type.scale <= 38


def _decimals(texts: pa.Array, type: Type) -> pa.Array:
    """Cast to decimals, rounding half away from zero; NULL for one that rounding gives a digit too many."""
    target, wide = column_type(type), pa.decimal256(type.precision + 1, type.scale)
    try:
        return texts.cast(target)  # NB: raises rather than round
    except pa.ArrowInvalid:
        pass
    # NB: not by pc.round, which is wrong from about 38 digits on
    cut = pc.replace_substring_regex(texts, rf"([.][0-9]{{{type.scale}}})[0-9]+$", r"\1").cast(target).cast(wide)
    up, negative = pc.match_substring_regex(texts, f"[.][0-9]{{{type.scale}}}[5-9]"), pc.starts_with(texts, "-")
    unit = Decimal(1).scaleb(-type.scale)
    steps = pc.if_else(negative, pa.scalar(-unit, wide), pa.scalar(unit, wide))
    rounded = pc.if_else(up, pc.add(cut, steps).cast(wide), cut)
    fits = pc.less(pc.abs(rounded), pa.scalar(Decimal(10 ** (type.precision - type.scale)), wide))
    return pc.if_else(fits, rounded, pa.scalar(None, wide)).cast(target)
