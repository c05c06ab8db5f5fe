"""Constants: what reads no column is computed once, and what they decide is decided."""

from collections.abc import Callable

from squallpy.logical.expressions import Call, Case, Cast, Expr, Literal, children

Evaluate = Callable[[Expr], Literal | None]  # the value of an expression; None where computing it fails


def fold_constant(evaluate: Evaluate) -> Callable[[Expr], Expr | None]:
    """1 + 10 → 11;  what fails is left to fail at run time, if any row gets there"""

    def fold_constant(expr: Expr) -> Expr | None:
        match expr:
            case Call() | Cast() | Case() if all(isinstance(child, Literal) for child in children(expr)):
                return evaluate(expr)
        return None

    return fold_constant
