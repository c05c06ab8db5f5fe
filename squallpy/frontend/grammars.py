"""Loading of the Lark grammars of `grammar/`."""

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lark import Lark

Parsed = Any  # a lark Tree: its children are trees or tokens, as its rule says

PACKAGE = Path(__file__).resolve().parent.parent


def grammar_path(name: str) -> Path:
    """Find `grammar/<name>.lark`: inside the package in a wheel, next to it in the repository."""
    places = (PACKAGE / "grammar", PACKAGE.parent / "grammar")
    found = next((place / f"{name}.lark" for place in places if (place / f"{name}.lark").is_file()), None)
    assert found, f"no {name}.lark in {places}"
    return found


@cache
def load_grammar(name: str) -> "Lark":
    """Load the LALR parser of a grammar, with positions in its trees."""
    from lark import Lark

    text = grammar_path(name).read_text(encoding="utf-8")
    return Lark(text, parser="lalr", propagate_positions=True, maybe_placeholders=True)
