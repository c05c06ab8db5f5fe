"""The operation that is a function of Python: its first argument is the definition, the others are the function's.

python_function('def initials(name):\\nreturn …', x)   →   what the lines return for each x
"""

from squallpy.base.types import VARCHAR
from squallpy.functions.entries import Arguments, Operation, Typing

NAME = "python_function"


def _as_given(name: str, args: Arguments) -> Typing:
    """Accept values of any type; the type of the result is declared, and none of the arguments tells it."""
    return tuple(arg.type for arg in args), VARCHAR


INTERNAL = (Operation(NAME, 1, None, _as_given, "a function of Python", "own"),)
