"""String tokens of scripts, with Spark's escapes."""

import re

ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "0": "\0", "b": "\b", "Z": "\x1a", "%": "\\%", "_": "\\_"}


def unquote(token: str) -> str:
    """Read the value of a quoted string.

    'it''s'  →  it's        'a\\tb'  →  a<tab>b        '\\|'  →  |
    """
    body = token[1:-1]
    return re.sub(r"''|\\(.)", lambda m: "'" if m[0] == "''" else ESCAPES.get(m[1], m[1]), body, flags=re.S)
