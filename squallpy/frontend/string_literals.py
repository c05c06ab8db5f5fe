"""String tokens of scripts, with Spark's escapes."""

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sqlglot.tokenizer_core import Token

ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "0": "\0", "b": "\b", "Z": "\x1a", "%": "\\%", "_": "\\_"}


def unquote(token: str) -> str:
    """Read the value of a quoted string.

    'it''s'  →  it's        'a\\tb'  →  a<tab>b        '\\|'  →  |
    """
    body = token[1:-1]
    return re.sub(r"''|\\(.)", lambda m: "'" if m[0] == "''" else ESCAPES.get(m[1], m[1]), body, flags=re.S)


def with_double_quotes(tokens: Sequence["Token"], text: str) -> list["Token"]:
    """Join the tokens of "a""b", one text with a quote in it, of which sqlglot makes two."""
    joined = list["Token"]()
    for token in tokens:
        before = joined[-1] if joined else None
        if before and before.end + 1 == token.start and text[before.end : token.start + 1] == '""':
            before.text += '"' + token.text
            before.end = token.end
        else:
            joined.append(token)
    return joined
