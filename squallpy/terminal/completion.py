"""Completions of what is typed at the prompt, by what stands before it.

SELECT us|  →  user        FROM cl|  →  clicks        SET ba|  →  batch_rows        .mo|  →  .mode
"""

import re
from collections.abc import Callable, Iterable, Sequence
from glob import glob
from pathlib import Path
from typing import TYPE_CHECKING

from squallpy.base.records import dataclass
from squallpy.terminal.sql_words import KEYWORDS

if TYPE_CHECKING:
    from squallpy.live.open_session import OpenSession

_WORD = re.compile(r"[\w.]*$")
_AFTER_NAME = {"from", "join", "describe", "desc", "subscribe", "to", "view", "table", "stream", "sink", ","}
_SHOWN = ("STREAMS", "TABLES", "VIEWS", "SINKS", "FUNCTIONS", "QUERIES", "SETTINGS")


@dataclass(frozen=True, slots=True)
class Candidate:
    """A completion, and what it is."""

    text: str
    meaning: str = ""


def complete(before: str, session: "OpenSession | None") -> tuple[str, list[Candidate]]:
    """Return the word before the cursor, and what it may become."""
    if before.lstrip().startswith((".", "\\")) and "\n" not in before.strip():
        return _complete_command(before.lstrip(), session)
    word = _WORD.search(before)[0]  # type: ignore[index]
    statement = before[: len(before) - len(word)].rpartition(";")[2]
    return word, _chosen(word, _candidates(word, statement, session))


def _complete_command(line: str, session: "OpenSession | None") -> tuple[str, list[Candidate]]:
    from squallpy.terminal.dot_commands import COMMANDS
    from squallpy.terminal.result_printer import MODES

    first, space, rest = line.partition(" ")
    if not space:
        return line, _chosen(line, [Candidate(name, c.meaning) for c in COMMANDS for name in c.names])
    word = rest.rpartition(" ")[2]
    by_command: dict[str, Callable[[], Iterable[Candidate]]] = {
        ".mode": lambda: [Candidate(mode, about) for mode, about in MODES.items()],
        ".timer": lambda: [Candidate("on"), Candidate("off")],
        ".help": lambda: [Candidate(c.names[0], c.meaning) for c in COMMANDS],
    }
    if first in (".read", "\\i", ".output", "\\o"):
        found = [f"{p}/" if Path(p).is_dir() else p for p in sorted(glob(f"{word}*"))]
        return word, [Candidate(path) for path in found]
    return word, _chosen(word, by_command.get(first, lambda: _names(session))())


def _candidates(word: str, statement: str, session: "OpenSession | None") -> list[Candidate]:
    """List what may follow in a statement."""
    tokens = re.findall(r"\w+|[^\w\s]", statement)
    last = tokens[-1].lower() if tokens else ""
    upper = [token.upper() for token in tokens]
    if last == "show":
        return [Candidate(each) for each in _SHOWN]
    if last == "set" and upper[0] == "SET":
        from squallpy.base.settings import list_settings

        return [Candidate(option.name, option.meaning) for option in list_settings()]
    if last == "using":
        from squallpy.catalog.format_options import ADAPTERS, FORMATS, SOCKET

        return [Candidate(each) for each in (*FORMATS, SOCKET, *ADAPTERS)]
    if "OPTIONS" in upper and last in ("(", ",") and upper[0] == "CREATE" and "AS" not in upper:
        from squallpy.catalog.format_options import OPTIONS

        return [Candidate(option, about) for option, about in OPTIONS.items()]
    if "." in word:
        return _columns_of(word.rpartition(".")[0], tokens, session)
    if last in _AFTER_NAME and (last != "," or _is_in_from(upper)):
        return [*_names(session), *_keywords(word)]
    return [*_columns(tokens, session), *_functions(session), *_keywords(word), *_names(session)]


def _is_in_from(upper: Sequence[str]) -> bool:
    clauses = [token for token in upper if token in ("SELECT", "FROM", "WHERE", "GROUP", "ORDER", "HAVING")]
    return bool(clauses) and clauses[-1] == "FROM"


def _names(session: "OpenSession | None") -> list[Candidate]:
    if session is None:
        return []
    from squallpy.catalog.functions import DefinedFunction
    from squallpy.live.definitions import kind_of

    entries = [each for each in list(session.catalog.entries.values()) if not isinstance(each, DefinedFunction)]
    return [Candidate(each.name, kind_of(each).lower()) for each in entries]


def _columns(tokens: Sequence[str], session: "OpenSession | None") -> list[Candidate]:
    """List the columns of all that a statement names, or of all there is where it names nothing yet."""
    if session is None:
        return []
    known = {each.name.lower(): each.name for each in list(session.catalog.entries.values())}
    named = [known[token.lower()] for token in tokens if token.lower() in known]
    return [column for name in dict.fromkeys(named or known.values()) for column in _fields(name, session)]


def _columns_of(name: str, tokens: Sequence[str], session: "OpenSession | None") -> list[Candidate]:
    """List the columns of a name or of an alias, behind it."""
    if session is None:
        return []
    lowered = [token.lower() for token in tokens]
    read = name.lower()
    if read not in session.catalog.entries and read in lowered:  # FROM orders o, FROM orders AS o
        place = len(lowered) - 1 - lowered[::-1].index(read)
        before = [token for token in lowered[max(0, place - 2) : place] if token != "as"]
        read = before[-1] if before else read
    return [Candidate(f"{name}.{column.text}", column.meaning) for column in _fields(read, session)]


def _fields(name: str, session: "OpenSession") -> list[Candidate]:
    from squallpy.base.errors import SquallError

    try:
        return [Candidate(field.name, f"{name}: {field.type}") for field in session.columns(name)]
    except SquallError:  # NB: matrices and sinks have none
        return []


def _functions(session: "OpenSession | None") -> list[Candidate]:
    """List the functions that are declared, and those of SQL."""
    from squallpy.functions.registry import AGGREGATES, SCALARS, WINDOWS

    declared = session.catalog.functions if session else []
    names = sorted({*AGGREGATES, *SCALARS, *WINDOWS})
    known = [Candidate(f"{name}(", "function") for name in names if name.isidentifier()]
    return [*(Candidate(f"{each.called}(", each.declaration) for each in declared), *known]


def _keywords(word: str) -> list[Candidate]:
    return [Candidate(each if not word.islower() else each.lower()) for each in KEYWORDS]


def _chosen(word: str, candidates: Iterable[Candidate]) -> list[Candidate]:
    """Choose those that begin with a word, each once."""
    found = {each.text: each for each in candidates if each.text.lower().startswith(word.lower())}
    return list(found.values())
