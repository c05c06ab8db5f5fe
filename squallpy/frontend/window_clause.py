"""The window of a query block: found among the tokens of a query, read by `grammar/window.lark`.

    SELECT COUNT(*) FROM bids WHERE price > 3 RANGE 5 MIN SLIDE 1 MIN     →     WindowExtent(300_000_000, 60_000_000)

Its words are not reserved: a column or alias may have these names. They begin a window if they are after FROM, behind a
name or an expression, and before a number, which no other clause of SQL is; LANDMARK, which needs no number, if it ends
the block. The tokens of a window become one, which sqlglot parses as a clause like LIMIT.
"""

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from sqlglot.tokenizer_core import Token, TokenType

from squallpy.base.errors import Span, SquallError
from squallpy.base.records import dataclass
from squallpy.catalog.window_spec import SessionExtent, WindowExtent
from squallpy.frontend.ddl import micros, token_span, whole_amount
from squallpy.frontend.grammars import Parsed, display_name, load_grammar
from squallpy.frontend.source_text import ScriptText, word_at
from squallpy.frontend.string_literals import unquote

if TYPE_CHECKING:
    from lark import Lark, UnexpectedInput

WINDOW = TokenType.PREWHERE  # NB: a token that Spark's SQL does not use
CLAUSE = "stream_window"  # the argument of a SELECT
WORDS = ("RANGE", "TUMBLE", "SESSION", "LANDMARK", "ROWS")
_CALLED = {  # WINDOW(at, '10 minutes'), which sqlglot takes for the clause WINDOW w AS (…), and SESSION(TABLE r, …)
    TokenType.WINDOW: (TokenType.L_PAREN, TokenType.DOT),
    TokenType.SESSION: (TokenType.L_PAREN,),
}
_NUMBERS = (TokenType.NUMBER, TokenType.DASH, TokenType.PLUS)
_ENDS = (TokenType.IDENTIFIER, TokenType.NUMBER, TokenType.STRING, TokenType.R_PAREN)
_MOST = 2**62  # microseconds, 146,000 years, or rows
_OPEN = {  # words that cannot end an expression
    "AND", "ANTI", "AS", "BETWEEN", "BY", "CASE", "CROSS", "DISTINCT", "DIV", "ELSE", "EXCEPT", "FROM", "FULL",
    "HAVING", "ILIKE", "IN", "INNER", "INTERSECT", "INTERVAL", "IS", "JOIN", "LATERAL", "LEFT", "LIKE", "LIMIT",
    "MINUS", "NATURAL", "NOT", "OFFSET", "ON", "OR", "OUTER", "RIGHT", "RLIKE", "SELECT", "SEMI", "THEN", "UNION",
    "USING", "WHEN", "WHERE", "WITH",
}  # fmt: skip
_NEXT = (
    "ORDER", "LIMIT", "OFFSET", "UNION", "INTERSECT", "EXCEPT", "MINUS", "WHERE", "GROUP", "HAVING", "SORT", "CLUSTER",
    "DISTRIBUTE", "QUALIFY",
)  # fmt: skip
TERMINALS = {"SIGNED": "a number", "STRING": "a string", "NAME": "a unit like SEC, MIN or HOUR", "$END": "no more"}


def with_windows(tokens: Sequence[Token], text: str) -> list[Token]:
    """Join the tokens of each window of a query into one."""
    out: list[Token] = []
    opened = [False]  # for each open parenthesis: True after a FROM in it
    behind, at = False, 0  # directly after a query in parentheses
    while at < len(tokens):
        token = tokens[at]
        following = tokens[at + 1].token_type if at + 1 < len(tokens) else None
        if following in _CALLED.get(token.token_type, ()):
            token = Token(TokenType.VAR, token.text, token.line, token.col, token.start, token.end, token.comments)
        if (opened[-1] or behind) and _begins(tokens, at):
            end = _end(tokens, at)
            first, last = tokens[at].start, tokens[end - 1].end
            out.append(Token(WINDOW, text[first : last + 1], token.line, token.col, first, last, token.comments))
            at = end
            continue
        behind = False
        if token.token_type is TokenType.L_PAREN:
            opened.append(False)
        elif token.token_type is TokenType.R_PAREN and len(opened) > 1:
            behind = opened.pop()
        elif token.token_type in (TokenType.FROM, TokenType.SELECT):
            opened[-1] = token.token_type is TokenType.FROM
        out.append(token)
        at += 1
    return out


def _words(token: Token) -> list[str]:
    """Split a token into words in upper case (GROUP BY has two); none for a text or a quoted name."""
    return [] if token.token_type in (TokenType.IDENTIFIER, TokenType.STRING) else token.text.upper().split()


def _begins(tokens: Sequence[Token], at: int) -> bool:
    """True if a window begins with this token."""
    (word, *_), before = _words(tokens[at]) or [""], tokens[at - 1]
    if word not in WORDS:
        return False
    named = before.text[-1:].isidentifier() and not _OPEN.issuperset(_words(before)[-1:])
    if before.token_type not in _ENDS and not named:
        return False
    following = tokens[at + 1] if at + 1 < len(tokens) else None
    if word == "LANDMARK":
        return _is_last(following) or (following is not None and _words(following) == ["SINCE"])
    unit = word != "ROWS" and following is not None and following.token_type is TokenType.STRING
    return unit or (following is not None and following.token_type in _NUMBERS)


def _is_last(following: Token | None) -> bool:
    if following is None or following.token_type is TokenType.R_PAREN:
        return True
    return any(word in _NEXT for word in _words(following)[:1])


def _end(tokens: Sequence[Token], at: int) -> int:
    """Find the end of the clause: the next clause, or the closing parenthesis."""
    at += 1
    while at < len(tokens) and not _is_last(tokens[at]):
        at += 1
    return at


@dataclass(frozen=True, slots=True)
class Clause:
    """A window as written. Without a frame it is a LANDMARK: all rows, or those `since` a moment."""

    frame: WindowExtent | SessionExtent | None
    since: str | None
    span: Span


def read_window(script: ScriptText, start: int, end: int) -> Clause:
    """Read the window written in script.text[start:end]; SQ1001 or SQ2010 if it is invalid."""
    from lark import UnexpectedInput

    parser = load_grammar("window")
    try:
        tree: Parsed = parser.parse(" " * start + script.text[start:end])  # so that positions are those of the script
    except UnexpectedInput as error:
        raise _mistake(script, parser, error, end) from None
    (clause,) = tree.children
    span = script.span(start, end)
    match clause.data:
        case "range":
            size, slide = clause.children
            length = _duration(script, size)
            return Clause(WindowExtent(length, _slide(script, slide, length)), None, span)
        case "tumble":
            (size,) = clause.children
            length = _duration(script, size)
            return Clause(WindowExtent(length, length, tumbling=True), None, span)
        case "session":
            (size,) = clause.children
            return Clause(SessionExtent(_duration(script, size)), None, span)
        case "rows":
            size, *moved = clause.children
            length = _count(script, size)
            if moved and moved[0] is not None and moved[0].type == "TUMBLE":
                return Clause(WindowExtent(length, length, tumbling=True, rows=True), None, span)
            slide = next((m for m in moved[1:] if m is not None), None)
            return Clause(WindowExtent(length, _slide(script, slide, length), rows=True), None, span)
    (since,) = clause.children
    return Clause(None, None if since is None else unquote(since), span)


def _slide(script: ScriptText, tree: Parsed | None, size: int) -> int:
    if tree is None:
        return 1
    slide = _count(script, tree) if tree.data == "count" else _duration(script, tree)
    if slide > size:
        span = token_span(script, tree.children[0])
        raise SquallError("SQ2010", "SLIDE is longer than the window", span, "rows would be in none: write TUMBLE")
    return slide


def _duration(script: ScriptText, tree: Parsed) -> int:
    amount, unit = tree.children
    _check_positive(script, amount)
    return _check_size(script, micros(script, amount, unit), amount)


def _count(script: ScriptText, tree: Parsed) -> int:
    (amount,) = tree.children
    _check_positive(script, amount)
    return _check_size(script, whole_amount(script, amount), amount)


def _check_size(script: ScriptText, size: int, amount: Parsed) -> int:
    if size > _MOST:
        raise SquallError(
            "SQ2010", "a window longer than the supported time", token_span(script, amount), "write LANDMARK"
        )
    return size


def _check_positive(script: ScriptText, amount: Parsed) -> None:
    text = "".join((unquote(amount) if amount.type == "STRING" else str(amount)).split())
    if re.fullmatch(r"-[0-9]+|\+?0+", text):
        raise SquallError("SQ2010", f"a window of {text} is empty", token_span(script, amount), "write more than 0")


def _mistake(script: ScriptText, parser: "Lark", error: "UnexpectedInput", end: int) -> SquallError:
    from lark import UnexpectedToken

    at = error.pos_in_stream if error.pos_in_stream is not None else end
    expected: set[str] = set(getattr(error, "allowed", None) or ())
    if isinstance(error, UnexpectedToken):
        expected = set(error.accepts or error.expected)
        at = end if error.token.type == "$END" else at
    word = word_at(script.text[:end], at)
    wanted = sorted({TERMINALS.get(name) or display_name(parser, name) for name in expected} - {""})
    found = f'unexpected "{word}" in a window' if word else "the window ends too early"
    span = script.span(at, at + len(word)) if word else script.span(end - 1, end)
    return SquallError("SQ1001", found, span, f"expected {' or '.join(wanted)}" if wanted else "")
