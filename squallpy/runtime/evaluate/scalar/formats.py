"""Numbers as texts in formats of Java and in other bases, and URLs."""

import re
from decimal import ROUND_HALF_EVEN, ROUND_HALF_UP, Context, Decimal
from urllib.parse import quote_plus, unquote_plus, urlsplit

from squallpy.runtime.evaluate.evaluator_table import of_each_text, text_evaluator, value_evaluator
from squallpy.runtime.evaluate.scalar.text import check_room

EXACT = Context(prec=400)
DIGITS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"
SPECIFICATION = re.compile(r"%([-+ 0,(#]*)(\d*)(?:\.(\d+))?([a-zA-Z])")


@value_evaluator("format_number")
def format_number(text: str, digits: int) -> str | None:
    if digits < 0:
        return None
    check_room("format_number", digits)
    number = Decimal(text)
    return f"{_rounded(number, digits, ROUND_HALF_EVEN):,}" if number.is_finite() else _odd(number)


def _odd(number: Decimal) -> str:
    return "NaN" if number.is_nan() else "-∞" if number < 0 else "∞"


def _rounded(number: Decimal, digits: int, way: str) -> Decimal:
    return number.quantize(Decimal((0, (1,), -digits)), way, Context(prec=400 + digits))


@text_evaluator("format_value")
@of_each_text
def format_value(text: str, specification: str) -> str:
    """Write a value, given as CAST writes it, as java.util.Formatter does."""
    found = SPECIFICATION.fullmatch(specification)
    assert found
    flags, width, precision, conversion = found.groups()
    if conversion in "sSb" or text == "null":
        shown = text if precision is None else text[: int(precision)]
        return _padded(shown.upper() if conversion.isupper() else shown, width, "-" in flags)
    if conversion in "xXo":
        number = int(text) % 2**64
        digits = f"{number:o}" if conversion == "o" else f"{number:x}"
        prefix = {"o": "0", "x": "0x", "X": "0x"}[conversion] if "#" in flags else ""
        filled = digits.rjust(int(width or 0) - len(prefix), "0") if "0" in flags else digits
        shown = _padded(prefix + filled, width, "-" in flags)
        return shown.upper() if conversion == "X" else shown
    value = Decimal(text)
    if not value.is_finite():
        return _padded(("-" if value < 0 else "+" * ("+" in flags)) + str(abs(value)), width, "-" in flags)
    digits = _digits(abs(value), conversion, 6 if precision is None else int(precision), "," in flags)
    before, behind = _signs(text.startswith("-"), flags)
    if "0" in flags:
        digits = digits.rjust(int(width or 0) - len(before) - len(behind), "0")
    return _padded(before + digits + behind, width, "-" in flags)


def _signs(negative: bool, flags: str) -> tuple[str, str]:
    if negative:
        return ("(", ")") if "(" in flags else ("-", "")
    return ("+" if "+" in flags else " " if " " in flags else ""), ""


def _digits(value: Decimal, conversion: str, precision: int, grouped: bool) -> str:
    check_room("format_string", precision)
    comma = "," if grouped else ""
    match conversion:
        case "d":
            return f"{int(value):{comma}}"
        case "f":
            return f"{_rounded(value, precision, ROUND_HALF_UP):{comma}f}"
        case "g":
            precision = max(precision, 1)
            rounded = EXACT.create_decimal(value).normalize(Context(prec=precision, rounding=ROUND_HALF_UP))
            if value == 0 or Decimal("1e-4") <= rounded < Decimal(10) ** precision:
                places = precision - 1 - (rounded.adjusted() if value else 0)
                return f"{_rounded(value, places, ROUND_HALF_UP):{comma}f}"
            return _exponent(value, precision - 1, "e")
    return _exponent(value, precision, conversion)


def _exponent(value: Decimal, precision: int, letter: str) -> str:
    power = value.adjusted() if value else 0
    mantissa = _rounded(value.scaleb(-power, EXACT), precision, ROUND_HALF_UP)
    if mantissa >= 10:
        power, mantissa = power + 1, _rounded(mantissa / 10, precision, ROUND_HALF_UP)
    return f"{mantissa:f}{letter}{'-' if power < 0 else '+'}{abs(power):02}"


def _padded(text: str, width: str, left: bool) -> str:
    wanted = int(width or 0)
    check_room("format_string", wanted)
    return text.ljust(wanted) if left else text.rjust(wanted)


@value_evaluator("bin")
def bits(number: int) -> str:
    return f"{number % 2**64:b}"


@value_evaluator("conv")
def conv(text: str, source: int, target: int) -> str | None:
    """Convert an integer of 64 bits between bases, as MySQL and Spark do."""
    base, text = abs(target), text.strip(" ")
    if not (2 <= source <= 36 and 2 <= base <= 36 and text):
        return None
    negative, number = text.startswith("-"), 0
    for letter in text[negative:].upper():
        if (digit := DIGITS.find(letter)) < 0 or digit >= source:
            break
        number = min(number * source + digit, 2**64 - 1)
    if negative and target > 0:
        number = 2**64 - 1 if number >= 2**63 else -number % 2**64
    if target < 0 and number >= 2**63:
        number, negative = 2**64 - number, True
    digits = ""
    while number:
        number, digit = divmod(number, base)
        digits = DIGITS[digit] + digits
    return "-" * (negative and target < 0) + (digits or "0")


@text_evaluator("url_encode")
@of_each_text
def url_encode(text: str) -> str:
    return quote_plus(text, safe="*").replace("~", "%7E")


@text_evaluator("url_decode")
@of_each_text
def url_decode(text: str) -> str:
    return unquote_plus(text)


@value_evaluator("parse_url")
def parse_url(text: str, part: str, key: str | None = None) -> str | None:
    """Find a part of a URL; None if it has none, or the text is no URL."""
    try:
        url = urlsplit(text)
        if any(letter.isspace() for letter in text):
            return None
        query = url.query if "?" in text else None
        found = {
            "HOST": url.netloc.rpartition("@")[2].partition(":")[0] or None,
            "PATH": url.path,
            "QUERY": query,
            "REF": url.fragment if "#" in text else None,
            "PROTOCOL": url.scheme or None,
            "FILE": url.path + (f"?{query}" if query is not None else ""),
            "AUTHORITY": url.netloc or None,
            "USERINFO": url.netloc.rpartition("@")[0] or None,
        }.get(part)
    except ValueError:
        return None
    if key is None:
        return found
    value = re.search(f"(?:&|^){re.escape(key)}=([^&]*)", query or "") if part == "QUERY" else None
    return value[1] if value else None
