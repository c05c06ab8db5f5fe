"""x -> 'a' and x ->> 'a', as PostgreSQL, DuckDB and MySQL read JSON, as calls.

    x -> 'a'   →  JSON_EXTRACT(x, '$.a')        x ->> 'a'    →  GET_JSON_OBJECT(x, '$.a')
    x -> 0     →  JSON_EXTRACT(x, '$[0]')       x #>> '{a,0}'  →  GET_JSON_OBJECT(x, '$.a[0]')

A path that begins with $ is one. Among the arguments of a function sqlglot takes x -> 'a' for a lambda.
"""

import re
from collections.abc import Callable
from typing import Any

from sqlglot import exp
from sqlglot.tokenizer_core import TokenType

EXTRACT, EXTRACT_TEXT = "JSON_EXTRACT", "GET_JSON_OBJECT"
NAME = re.compile(r"[A-Za-z_]\w*")


def path_of(step: exp.Expr | None, *, is_list: bool = False) -> exp.Expr | None:
    """Write the path that a constant names: a key, a position, a path, or a list of steps '{a,0}'; None for others."""
    if not isinstance(step, exp.Literal) or (step.is_string and step.name.startswith("$")):
        return step if isinstance(step, exp.Literal) else None
    steps = [step.name]
    if is_list:
        steps = step.name.removeprefix("{").removesuffix("}").split(",") if step.name != "{}" else []
    is_number = [each.isdecimal() and (is_list or not step.is_string) for each in steps]
    if any("'" in each for each in steps) or not (step.is_string or all(is_number)):
        return None
    return exp.Literal.string("$" + "".join(map(_step, steps, is_number)))


def _step(name: str, is_number: bool) -> str:
    return f"[{name}]" if is_number else f".{name}" if NAME.fullmatch(name) else f"['{name}']"


def _arrow(function: str, *, is_list: bool = False) -> Callable[[Any, exp.Expr, exp.Expr], exp.Expr]:
    """Return the parser of an operator between a text and a constant."""

    def parse(parser: Any, this: exp.Expr, step: exp.Expr) -> exp.Expr:
        path = path_of(step, is_list=is_list)
        if path is None:
            parser.raise_error("Expected a constant key or position", parser._prev)
        made: exp.Expr = parser.expression(exp.Anonymous(this=function, expressions=[this, path]))
        return made

    return parse


COLUMN_OPERATORS = {
    TokenType.ARROW: _arrow(EXTRACT),
    TokenType.DARROW: _arrow(EXTRACT_TEXT),
    TokenType.HASH_ARROW: _arrow(EXTRACT, is_list=True),
    TokenType.DHASH_ARROW: _arrow(EXTRACT_TEXT, is_list=True),
}


def in_lambda(node: exp.Lambda) -> exp.Expr | None:
    """Write f(x -> 'a' ->> 'b'), which was taken for a lambda, as what it is; None for a lambda.

    Its body begins with a constant, which is the step into x.
    """
    parameters, body = node.expressions, node.copy().this
    first: exp.Expr | None = body
    while first is not None and not isinstance(first, exp.Literal):
        is_arrow = isinstance(first, exp.Anonymous) and first.name in (EXTRACT, EXTRACT_TEXT)
        first = first.expressions[0] if is_arrow else first.this if isinstance(first, exp.Binary | exp.Cast) else None
    path = path_of(first)
    if first is None or path is None or len(parameters) != 1:
        return None
    text = exp.Column(this=parameters[0].copy())
    call = exp.Anonymous(this=EXTRACT, expressions=[text, path])
    text.meta.update(parameters[0].meta)
    if first is body:
        body = call
    else:
        first.replace(call)
    body.parent = node.parent
    assert isinstance(body, exp.Expr)
    return body
