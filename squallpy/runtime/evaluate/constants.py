"""Expressions that read no column, computed once, by what would compute them for every row."""

from squallpy.base.errors import SquallError
from squallpy.logical.expressions import Expr, Literal


def constant(expr: Expr) -> Literal | None:
    """The value of an expression; None where it has none, which is an error only if it is ever needed.

    1 + 10  →  11        1 / 0  →  NULL        9223372036854775807 + 1  →  None
    """
    # NB: not before there is a constant; EXPLAIN does without numpy and Arrow as long as it can
    from squallpy.runtime.evaluate.functions import compiled
    from squallpy.runtime.evaluate.vectors import Frame, full

    try:
        values, valid = full(compiled(expr)(Frame(1, {})), expr.type, 1)
        value = values[0].as_py() if hasattr(values[0], "as_py") else values.tolist()[0]
        literal = Literal(value if valid is None or valid[0] else None, expr.type)
        str(literal)  # NB: raises for a date outside the years 1 to 9999, which no literal can hold
    except (SquallError, ArithmeticError, ValueError):
        return None
    return literal
