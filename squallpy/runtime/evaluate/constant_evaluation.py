"""Constant folding: expressions without columns are computed at compile time, by the evaluators of rows."""

from squallpy.base.errors import SquallError
from squallpy.logical.expressions import Expr, Literal


def fold_constant(expr: Expr) -> Literal | None:
    """Compute a constant expression; None where it fails, which is an error only if the value is needed.

    1 + 10  →  11        1 / 0  →  NULL        9223372036854775807 + 1  →  None
    """
    # NB: imported at the first constant, so that EXPLAIN may not load numpy and Arrow
    from squallpy.runtime.evaluate.expression_compiler import compile_expression
    from squallpy.runtime.evaluate.vectors import VectorFrame, full

    try:
        values, valid = full(compile_expression(expr)(VectorFrame(1, {})), expr.type, 1)
        value = values[0].as_py() if hasattr(values[0], "as_py") else values.tolist()[0]
        literal = Literal(value if valid is None or valid[0] else None, expr.type)
        str(literal)  # NB: raises for a date outside the years 1 to 9999, which cannot be a literal
    except (SquallError, ArithmeticError, ValueError):
        return None
    return literal
