"""The table of expansions: functions that a query calls by name, in terms of operations."""

from collections.abc import Callable

from squallpy.base.types import INT, NULL, VARCHAR
from squallpy.functions.registry import SCALARS
from squallpy.logical.expressions import Expr, Literal

Builder = Callable[..., Expr]
EXPANSIONS: dict[str, Builder] = {}
"""Builders of calls, by the name of the function."""
ZERO, ONE, SPACE, EMPTY = Literal(0, INT), Literal(1, INT), Literal(" ", VARCHAR), Literal("", VARCHAR)
NOTHING = Literal(None, NULL)


def expands(name: str) -> Callable[[Builder], Builder]:
    """Register the builder of a function of the registry; it takes the bound arguments."""
    assert SCALARS[name].call is None and name not in EXPANSIONS, name

    def register(build: Builder) -> Builder:
        EXPANSIONS[name] = build
        return build

    return register
