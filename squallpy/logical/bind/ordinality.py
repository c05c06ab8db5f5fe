"""Numbers of elements from 1 on, behind them: UNNEST … WITH ORDINALITY.

UNNEST(tags) WITH ORDINALITY AS t(tag, n)
"""

from sqlglot import exp

from squallpy.base.types import INT
from squallpy.logical.expression_builders import call
from squallpy.logical.expressions import Expr, Literal

ORDINALITY = "ordinality"


def ordinality_of(node: exp.Expr) -> tuple[exp.Expr | None, str]:
    """Return the alias of a generator for its elements, and the name of their numbers; none without WITH ORDINALITY."""
    alias, number = node.args.get("alias"), node.args.get("offset") if isinstance(node, exp.Unnest) else None
    if not isinstance(number, exp.Identifier):
        return alias, ORDINALITY if number else ""
    if alias is None or alias.args.get("columns"):
        return alias, number.name
    named = alias.copy()  # AS t(tag), which sqlglot takes for the numbers
    named.set("columns", [number.copy()])
    return named, ORDINALITY


def names_given(node: exp.Expr) -> tuple[str, ...]:
    """Return the names that the alias of a source gives to its columns; none if it names none."""
    alias, ordinality = ordinality_of(node)
    names = [column.name for column in alias.args.get("columns") or ()] if alias else []
    return (*names, *([ordinality] if ordinality else [])) if names else ()


def ordinal(position: Expr) -> Expr:
    """Count from 1 what is counted from 0."""
    return call("+", position, Literal(1, INT))
