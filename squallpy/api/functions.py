"""Functions of Python as statements that declare them.

declaration(initials, "VARCHAR", {"name": "VARCHAR"})
  →   CREATE OR REPLACE FUNCTION initials(`name` VARCHAR) RETURNS VARCHAR LANGUAGE PYTHON AS $$ … $$
"""

import ast
import inspect
from collections.abc import Callable, Mapping
from textwrap import dedent
from typing import Any

from squallpy.base.errors import SquallError
from squallpy.frontend.declaration_text import quote_name

HINT = "define it by def, in a file or a cell"


def declaration(function: Callable[..., Any], returns: str, parameters: Mapping[str, str]) -> str:
    """Write CREATE FUNCTION of a function of Python, with its lines; SQ7011 for one that has none, or others.

    Args:
        returns: The SQL type of its results.
        parameters: The SQL types of its parameters, by name and in order.
    """
    name = getattr(function, "__name__", repr(function))
    if [*inspect.signature(function).parameters] != [*parameters]:
        message = f"{name} has other parameters than {', '.join(parameters) or 'none'}"
        raise SquallError("SQ7011", message, hint="name each with its type, in their order")
    lines = _lines(function, name)
    if "$$" in lines:
        raise SquallError("SQ7011", f"the lines of {name} have a $$", hint="write '$' '$'")
    typed = ", ".join(f"{quote_name(each)} {type}" for each, type in parameters.items())
    return f"CREATE OR REPLACE FUNCTION {name}({typed}) RETURNS {returns} LANGUAGE PYTHON AS $${lines}$$"


def _lines(function: Callable[..., Any], name: str) -> str:
    """Take the lines of a function from its source."""
    try:
        source = dedent(inspect.getsource(function))
        (defined,) = ast.parse(source).body
    except (OSError, TypeError, SyntaxError, ValueError):
        raise SquallError("SQ7011", f"the lines of {name} are not to be had", hint=HINT) from None
    if not isinstance(defined, ast.FunctionDef):
        raise SquallError("SQ7011", f"{name} is not written as a function", hint=HINT)
    first, last = defined.body[0], defined.body[-1]
    lines = source.split("\n")[first.lineno - 1 : last.end_lineno]
    lines[0] = lines[0].encode()[first.col_offset :].decode()
    return "\n".join(lines)
