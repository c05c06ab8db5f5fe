"""Scripts in another spelling: their keywords, or all their words, in lower, upper or mixed case.

SELECT Sum(x) FROM r   →   select sum(x) from r (keywords, lower);   sElEcT sUm(X) fRoM R (all words, mixed)

Texts, quoted names, comments and the bodies of matrix programs stay as they are, and every word stays at its place.
"""

import re
from collections.abc import Callable, Iterator

from squallpy.frontend.query import SelectText
from squallpy.frontend.script import parse_script
from squallpy.frontend.source_text import with_backslashes
from squallpy.frontend.statements import (
    CreateFunction,
    CreateMatrix,
    CreateProgram,
    CreateRelation,
    CreateSink,
    CreateView,
    Select,
    Statement,
)

Recase = Callable[[str], str]
LEXEMES = re.compile(
    r"""(?<=\W[rR])(?:'[^']*'|"[^"]*")|'(?:[^'\\]|\\.|'')*'|"(?:[^"\\]|\\.|"")*"|`(?:[^`]|``)*`|--[^\n]*|/\*.*?\*/"""
    r"""|\$\$.*?\$\$|\w+""",
    re.DOTALL,
)


def to_mixed_case(word: str) -> str:
    """Write a word in mixed case: SELECT   →   sElEcT."""
    return "".join(letter.upper() if place % 2 else letter.lower() for place, letter in enumerate(word))


CASES: dict[str, Recase] = {"lower": str.lower, "upper": str.upper, "mixed": to_mixed_case}


def recase(script: str, case: Recase, spared: frozenset[str] = frozenset()) -> str:
    """Write the words of a script in another case, but for those `spared`, which are in lower case."""

    def changed(match: re.Match[str]) -> str:
        word = match[0]
        return case(word) if re.fullmatch(r"\w+", word, re.ASCII) and word.lower() not in spared else word

    return LEXEMES.sub(changed, with_backslashes(script))


def names(script: str) -> frozenset[str]:
    """List the names that a script declares or reads, in lower case; raises SquallError where it cannot be parsed."""
    return frozenset(name.lower() for statement in parse_script(script, "") for name in _names(statement))


def _names(statement: Statement) -> Iterator[str]:
    from sqlglot import exp

    match statement:
        case CreateRelation(relation):
            yield from (relation.name, *(field.name for field in relation.fields), *relation.primary_key)
            yield from (name for each in relation.references for name in (*each.fields, each.relation, *each.keys))
            yield relation.timestamp or ""
        case CreateMatrix(matrix):
            yield from (matrix.name, matrix.relation, str(matrix.rows), str(matrix.cols), *matrix.columns)
        case CreateFunction(name, parameters, _, returned):
            yield from (name, *(parameter for parameter, _ in parameters))
            if isinstance(returned, SelectText):
                yield from (each.name for each in returned.ast.find_all(exp.Identifier))
        case CreateProgram(program):
            yield program.name
        case CreateSink(sink, query):
            yield from (sink.name, *(each.name for each in query.ast.find_all(exp.Identifier)))
        case CreateView(name, columns, query):
            yield from (name, *columns, *(each.name for each in query.ast.find_all(exp.Identifier)))
        case Select(query):
            yield from (each.name for each in query.ast.find_all(exp.Identifier))
