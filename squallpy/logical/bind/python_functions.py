"""Functions of Python that a script declares: their lines are checked, and called by the operation `python_function`.

CREATE FUNCTION initials(name VARCHAR) RETURNS VARCHAR LANGUAGE PYTHON AS $$
  return "".join(word[0] for word in name.split()) if name else None
$$
"""

import ast
from keyword import iskeyword

from squallpy.base.errors import SquallError
from squallpy.base.python_functions import compile_definition, unindented, unknown_names
from squallpy.base.types import VARCHAR
from squallpy.frontend.statements import Body, CreateFunction
from squallpy.functions.scalar.python import NAME
from squallpy.logical.expressions import Call, Column, Literal


def bind_python(created: CreateFunction, body: Body, parameters: tuple[Column, ...]) -> Call:
    """Build the call of a function of Python; SQ1001 at the line that is none of Python, or of a function."""
    names = [each.name for each in parameters]
    for name, span in zip((created.name, *names), (created.span, *created.spans), strict=True):
        if not name.isidentifier() or iskeyword(name):
            raise SquallError("SQ2007", f'"{name}" is no name in Python', span, "take another name")
    lines = unindented(body.text)
    definition = f"def {created.name}({', '.join(names)}):\n{lines}"
    try:
        tree = ast.parse(lines)
        function = compile_definition(definition)
    except SyntaxError as error:
        raise _error(body, error.lineno or 1, f"this is not Python: {error.msg}") from None
    if wrong := next((n for n in ast.walk(tree) if isinstance(n, ast.Yield | ast.YieldFrom | ast.Await)), None):
        raise _error(body, wrong.lineno, "a function returns one value, and does not yield or await")
    if not any(isinstance(node, ast.Return) and node.value for node in ast.walk(tree)):
        raise _error(body, 1, "the lines of a function return a value", "write return and an expression")
    if unknown := unknown_names(function):
        line = next((n.lineno for n in ast.walk(tree) if isinstance(n, ast.Name) and n.id == unknown[0]), 1)
        hint = "import or define it in the function"
        raise _error(body, line, f"{unknown[0]} is no parameter of {created.name}", hint)
    return Call(NAME, (Literal(definition, VARCHAR), *parameters), created.returns, True)


def _error(body: Body, line: int, message: str, hint: str = "") -> SquallError:
    """Point at a line of the body, at what stands in it first."""
    lines = body.text.split("\n")
    place = min(line, len(lines)) - 1
    start = body.start + sum(len(each) + 1 for each in lines[:place])
    start += len(lines[place]) - len(lines[place].lstrip())
    return SquallError("SQ1001", message, body.script.span(start, start + max(1, len(lines[place].strip()))), hint)
