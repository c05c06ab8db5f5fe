"""Numbers as texts, in formats of Java.

FORMAT_STRING('%s: %05.1f', s, x)   →   s || ': ' || format_value(CAST(x AS VARCHAR), '%05.1f')
"""

import re

from squallpy.base.errors import SquallError
from squallpy.base.types import BIGINT, BOOLEAN, INT, VARCHAR, Kind
from squallpy.logical.bind.scalar.expansion import expands
from squallpy.logical.coercion import cast
from squallpy.logical.expression_builders import call, coalesce
from squallpy.logical.expressions import Expr, Literal

PLACE = re.compile(r"%(?:(\d+)\$)?([-+ 0,(#]*)(\d*)(?:\.(\d+))?([a-zA-Z%])")
NOTHING = Literal("null", VARCHAR)


@expands("FORMAT_NUMBER")
def format_number(value: Expr, digits: Expr) -> Expr:
    if not value.type.is_numeric or not digits.type.is_integer:
        raise SquallError("SQ2005", f"FORMAT_NUMBER does not take ({value.type}, {digits.type})")
    return call("format_number", cast(value, VARCHAR), digits)


@expands("FORMAT_STRING")
def format_string(format: Expr, *values: Expr) -> Expr:
    """Build FORMAT_STRING(format, x, …) from its pieces; SQ2004 for a format that is none."""
    if not isinstance(format, Literal) or format.type != VARCHAR:
        raise SquallError("SQ3001", "FORMAT_STRING with a computed format is not supported yet")
    pieces, at, number, text = list[Expr](), 0, 0, str(format.value)
    while (place := text.find("%", at)) >= 0:
        found = PLACE.match(text, place)
        if found is None:
            raise SquallError("SQ2004", f"'{text[place : place + 8]}' is no place of a format", hint="write %% for a %")
        index, *_, conversion = found.groups()
        pieces.append(Literal(text[at:place], VARCHAR))
        at = found.end()
        if conversion in "%n":
            pieces.append(Literal("%" if conversion == "%" else "\n", VARCHAR))
            continue
        number += not index
        chosen = int(index or number)
        if not 1 <= chosen <= len(values):
            raise SquallError("SQ2005", f"FORMAT_STRING has no value for {found[0]}")
        pieces.append(_formatted(found[0], conversion, values[chosen - 1]))
    pieces = [piece for piece in (*pieces, Literal(text[at:], VARCHAR)) if piece != Literal("", VARCHAR)]
    return call("||", *pieces) if len(pieces) > 1 else pieces[0] if pieces else Literal("", VARCHAR)


def _formatted(written: str, conversion: str, value: Expr) -> Expr:
    """Build what stands in one place, null for NULL."""
    fits = {
        **dict.fromkeys("sS", True),
        **dict.fromkeys("dxXo", value.type.is_integer),
        **dict.fromkeys("feEg", value.type.kind in (Kind.DOUBLE, Kind.DECIMAL)),
        "b": value.type == BOOLEAN,
    }
    if conversion not in fits:
        raise SquallError("SQ3001", f"FORMAT_STRING with %{conversion} is not supported yet")
    if not fits[conversion] and value.type.kind is not Kind.NULL:
        hint = "CAST it to DOUBLE" if conversion in "feEg" else ""
        raise SquallError("SQ2005", f"{written} does not take {value.type}", hint=hint)
    if conversion in "xXo" and value.type == INT:  # its 32 bits
        value = call("bit_and", value, Literal(2**32 - 1, BIGINT))
    held = cast(value, BIGINT) if value.type.is_integer else value
    text = coalesce(cast(held, VARCHAR), NOTHING)
    plain = re.sub(r"^%\d+\$", "%", written)
    return text if plain in ("%s", "%d", "%b") else call("format_value", text, Literal(plain, VARCHAR))
