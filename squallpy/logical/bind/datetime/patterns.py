"""Spark's patterns of dates and times, and what a text that is in one says.

TO_DATE(s, 'dd/MM/yyyy')   →   CAST(year || '-' || month || '-' || day AS DATE), each REGEXP_EXTRACT(s, '…', n)
"""

import re

from squallpy.base.errors import SquallError
from squallpy.base.types import INT, VARCHAR, Kind, Type
from squallpy.logical.coercion import cast
from squallpy.logical.expression_builders import call, case
from squallpy.logical.expressions import Cast, Expr, Literal

PIECES = re.compile(r"'([^']*)'|([A-Za-z])\2*|[^A-Za-z']+")
WIDTHS = {"y": (1, 4), "M": (1, 2), "d": (1, 2), "H": (1, 2), "m": (1, 2), "s": (1, 2), "S": range(1, 7)}
DAY = (("", "y", "1970"), ("-", "M", "01"), ("-", "d", "01"))  # what is before a part, and the part if it is not there
TIME = ((" ", "H", "00"), (":", "m", "00"), (":", "s", "00"), (".", "S", "0"))


def pieces(pattern: Expr, name: str) -> list[tuple[str, bool]]:
    """Cut a pattern into pieces, each with whether it is of letters that stand for something."""
    if not isinstance(pattern, Literal) or not isinstance(pattern.value, str):
        raise SquallError("SQ3001", f"{name} with a computed pattern is not supported yet")
    found, at, text = list[tuple[str, bool]](), 0, pattern.value.replace("''", "'’'")
    while at < len(text):
        piece = PIECES.match(text, at)
        if piece is None:
            raise SquallError("SQ2005", f"'{pattern.value}' is no pattern of {name}: a quote does not end")
        at = piece.end()
        quoted = piece[1] if piece[1] is not None else None if piece[2] else piece[0]
        found.append((piece[0], True) if quoted is None else (quoted.replace("’", "'"), False))
    return found


def parse_moment(type: Type, name: str, tries: bool, text: Expr, pattern: Expr | None = None) -> Expr:
    """Build TO_DATE(s), TO_TIMESTAMP(s, 'dd.MM.yyyy HH:mm').

    Args:
        tries: A text that is not so is NULL, else an error.
    """
    if pattern is not None and text.type.kind is Kind.VARCHAR:
        text = rewrite_text(text, pattern, name)
    return call("tried", Cast(text, type)) if tries and text.type.kind is Kind.VARCHAR else cast(text, type)


def rewrite_text(text: Expr, pattern: Expr, name: str) -> Expr:
    """Rewrite a text in a pattern as CAST takes it; one that is not in it stays so that CAST fails."""
    written, order = "", list[str]()
    for piece, is_letters in pieces(pattern, name):
        letter = piece[0]
        if not is_letters:
            written += re.escape(piece)
            continue
        if len(piece) not in WIDTHS.get(letter, ()) or letter in order:
            raise SquallError("SQ3001", f"{name} with {piece} is not supported yet")
        digits = "4" if letter == "y" else "1,2" if piece in "MdHms" else str(len(piece))
        written += rf"(\d{{{digits}}})"
        order.append(letter)
    whole = Literal(f"^{written}$", VARCHAR)

    def part(letter: str, missing: str) -> Expr:
        if letter not in order:
            return Literal(missing, VARCHAR)
        found = call("regexp_extract", text, whole, Literal(order.index(letter) + 1, INT))
        return found if letter == "S" else call("lpad", found, Literal(len(missing), INT), Literal("0", VARCHAR))

    value: Expr = Literal("", VARCHAR)
    for before, letter, missing in (*DAY, *(TIME if any(letter in order for _, letter, _ in TIME) else ())):
        value = call("||", call("||", value, Literal(before, VARCHAR)), part(letter, missing))
    unlike = call("||", text, Literal(f" is not in the pattern {pattern}", VARCHAR))
    return case([(call("rlike", text, whole), value)], unlike)
