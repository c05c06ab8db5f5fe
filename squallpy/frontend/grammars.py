"""Loading of the Lark grammars of `grammar/`."""

import os
import sys
from contextlib import suppress
from functools import cache
from importlib.util import cache_from_source
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lark import Lark

Parsed = Any  # a lark Tree: its children are trees or tokens, as its rule says

TERMINALS = {
    "NAME": "a name", "QUOTED": "", "STRING": "a string", "INTEGER": "a number", "SIGNED_NUMBER": "a number",
    "BOOLEAN": "true or false", "QUERY": "SELECT", "BODY": "a text between $$ and $$", "RETURNED": "RETURN",
    "$END": "the end of the script",
}  # fmt: skip

PACKAGE = Path(__file__).resolve().parent.parent


def grammar_path(name: str) -> Path:
    """Find `grammar/<name>.lark`: inside the package in a wheel, next to it in the repository."""
    places = (PACKAGE / "grammar", PACKAGE.parent / "grammar")
    found = next((place / f"{name}.lark" for place in places if (place / f"{name}.lark").is_file()), None)
    assert found, f"no {name}.lark in {places}"
    return found


@cache
def load_grammar(name: str) -> "Lark":
    """Load the LALR parser of a grammar, with positions in its trees.

    Its tables are kept beside Python's bytecode: to make them takes eight times as long as to read them.
    """
    from lark import Lark

    path = grammar_path(name)
    text, tables = path.read_text(encoding="utf-8"), _path_of_tables(path)
    return Lark(text, parser="lalr", propagate_positions=True, maybe_placeholders=True, cache=tables or False)


def _path_of_tables(grammar: Path) -> str | None:
    """Find the file for the tables of a grammar, which Lark writes if they are of another one; None if it may not."""
    tables = Path(cache_from_source(str(grammar))).with_suffix(".tables")
    if not sys.dont_write_bytecode:
        with suppress(OSError):
            tables.parent.mkdir(parents=True, exist_ok=True)
    can_write = os.access(tables.parent, os.W_OK) and not sys.dont_write_bytecode
    return str(tables) if tables.is_file() or can_write else None


def display_name(parser: "Lark", terminal: str) -> str:
    """Name a terminal of a grammar for a message."""
    if terminal in TERMINALS:
        return TERMINALS[terminal]
    known = {t.name: t.pattern for t in parser.terminals}
    return known[terminal].value.upper() if terminal in known and known[terminal].type == "str" else ""
