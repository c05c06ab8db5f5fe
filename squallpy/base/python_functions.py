"""Definitions of functions of Python as texts, which scripts, checkpoints and workers share.

A definition is the head of a function, and its lines behind it, not indented: "def initials(name):\\nreturn …"
"""

import ast
import builtins
import dis
from collections.abc import Callable, Iterator
from textwrap import dedent
from types import CodeType
from typing import Any

GLOBALS = ("LOAD_GLOBAL", "LOAD_NAME")


def unindented(text: str) -> str:
    """Remove the indentation that all lines share; the first one may begin behind what is before the text."""
    first, _, rest = text.partition("\n")
    return f"{first.strip()}\n{dedent(rest)}"


def compile_definition(definition: str) -> Callable[..., Any]:
    """Compile a definition to its function, whose lines are those of <name>; raises SyntaxError."""
    head, _, lines = definition.partition("\n")
    name = head.removeprefix("def ").partition("(")[0]
    module = ast.parse(f"{head} pass", f"<{name}>")
    (function,) = module.body
    assert isinstance(function, ast.FunctionDef)
    function.body = ast.parse(lines, f"<{name}>").body or function.body
    namespace = dict[str, Any]()
    exec(compile(module, f"<{name}>", "exec"), namespace)
    made: Callable[..., Any] = namespace[name]
    return made


def unknown_names(function: Callable[..., Any]) -> list[str]:
    """List the names that a function reads and nobody defines: neither itself nor Python."""
    own = function.__name__
    names = (name for code in _codes(function.__code__) for name in _globals_of(code))
    return [name for name in dict.fromkeys(names) if name != own and not hasattr(builtins, name)]


def _codes(code: CodeType) -> Iterator[CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _codes(constant)


def _globals_of(code: CodeType) -> Iterator[str]:
    return (each.argval for each in dis.get_instructions(code) if each.opname in GLOBALS)
