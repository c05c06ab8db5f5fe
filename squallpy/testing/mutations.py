"""Mutations for fuzzing: scripts and files with some of their pieces cut, doubled, swapped or replaced by odd ones.

SELECT k FROM t WHERE v > 1   →   SELECT k FROM t WHERE (SELECT NULL) > 1        b'1,2\n'   →   b'1,\x002\n'
"""

import re
from random import Random

from squallpy.testing.letter_case import LEXEMES, to_mixed_case

_TOKENS = re.compile(LEXEMES.pattern + r"|\s+|<=>|<=|>=|<>|!=|\|\||::|.", re.DOTALL)
_LITERALS = (
    "''", "'x'", "NULL", "0", "-1", "1.5", "1e400", "9223372036854775808", "99999999999999999999", "'٣'", "²", "'💥'",
    "'2020-01-01'", "DATE '9999-12-31'", "INTERVAL 9999999999999 YEAR", "TRUE", "``", "`a b`", "'\\\\'", "\x00",
)  # fmt: skip
_EXPRESSIONS = (
    "(SELECT 1)", "(SELECT NULL)", "EXISTS (SELECT 1)", "COUNT(*)", "SUM(NULL)", "AVG(1) OVER ()", "GROUPING(1)",
    "*", "LAG(1, 0 + 1) OVER (ORDER BY 2)", "CASE WHEN NULL THEN 1 END", "(1, 2)", "1 / 0", "-NULL", "t.*",
    "REPEAT('x', -1)", "NULL IN (NULL)", "1 IN (SELECT NULL)", "LISTAGG('')", "CAST(1e300 AS DECIMAL(38,0))",
    "EXPLODE(SPLIT('a', 'b'))", "MAX(1) OVER (ORDER BY 1 ROWS BETWEEN 1 PRECEDING AND CURRENT ROW)",
    "PERCENTILE(1, 0.5)", "DATE '9999-12-31' + 1",
)  # fmt: skip
_WORDS = (
    "AND", "OR", "NOT", "BETWEEN", "IN", "LIKE", "IS", "LEFT JOIN", "FULL JOIN", "ANTI JOIN", "NATURAL JOIN",
    "UNION ALL", "INTERSECT", "EXCEPT ALL", "WHERE", "HAVING", "QUALIFY", "GROUP BY", "ORDER BY", "LIMIT", "ROWS",
    "RANGE", "DISTINCT", "UNBOUNDED PRECEDING", "CURRENT ROW", "OVER ()", "TUMBLE '' SEC", "LANDMARK", "(", ")", ",",
    ";", ".", "::INT", "--", "/*", "$$", "EXCEPT (x)", "USING (k)", "ROLLUP (1)", "FETCH FIRST 1 ROW WITH TIES",
    "FILTER (WHERE TRUE)", "AS", "x",
)  # fmt: skip
_BYTES = (
    b"\x00", b'"', b"'", b"\\", b"\r", b"\n", b"\r\n", b",", b"|", b"\xff", b"\xef\xbb\xbf", b"\xfe\xff", b"\xc3",
)  # fmt: skip


def mutate_script(script: str, draw: Random) -> str:
    """Cut, double, swap or replace tokens of a script, mostly of its last statement, or write them in another case."""
    tokens = [match[0] for match in _TOKENS.finditer(script)]
    ends = [i for i, token in enumerate(tokens) if token == ";" and "".join(tokens[i + 1 :]).strip()]
    start = ends[-1] + 1 if ends and draw.random() < 0.9 else 0
    for _ in range(draw.choice((1, 1, 2, 3))):
        places = [i for i in range(start, len(tokens)) if tokens[i].strip()]
        if not places:
            break
        at, other = draw.choice(places), draw.choice(places)
        match draw.randrange(8):
            case 0:
                tokens[at] = ""
            case 1:
                tokens.insert(at, f"{tokens[at]} ")
            case 2:
                tokens[at], tokens[other] = tokens[other], tokens[at]
            case 3:
                tokens[at] = draw.choice((str.lower, to_mixed_case))(tokens[at])
            case 4:
                tokens[min(at, other) : max(at, other) + 1] = []
            case kind:
                pool = (_LITERALS, _EXPRESSIONS, _WORDS)[kind - 5]
                tokens[at] = f" {draw.choice(pool)} "
    return "".join(tokens)


def mutate_bytes(data: bytes, draw: Random) -> bytes:
    """Flip, cut, insert, double or clear bytes of a file."""
    mutant = bytearray(data)
    for _ in range(draw.choice((1, 1, 2, 4))):
        if not mutant:
            break
        at, size = draw.randrange(len(mutant)), draw.choice((1, 2, 10, 100))
        match draw.randrange(7):
            case 0:
                mutant[at] ^= 1 << draw.randrange(8)
            case 1:
                del mutant[at : at + size]
            case 2:
                mutant[at:at] = draw.randbytes(size)
            case 3:
                mutant[at:at] = draw.choice(_BYTES) * draw.choice((1, 2, 5))
            case 4:
                mutant[at:at] = mutant[at : at + size]
            case 5:
                mutant[at : at + size] = bytes(size)
            case 6:
                del mutant[at:]
    return bytes(mutant)
