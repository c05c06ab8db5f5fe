"""Constants: what reads no column is computed once, and what they decide is decided."""

from collections.abc import Callable

from squallpy.logical.coerce import exactly
from squallpy.logical.expressions import TRUE, Call, Case, Cast, Expr, Literal, children

Evaluate = Callable[[Expr], Literal | None]  # the value of an expression; None where computing it fails


def fold_constant(evaluate: Evaluate) -> Callable[[Expr], Expr | None]:
    """1 + 10 → 11;  what fails is left to fail at run time, if any row gets there"""

    def fold_constant(expr: Expr) -> Expr | None:
        match expr:
            case Call() | Cast() | Case() if all(isinstance(child, Literal) for child in children(expr)):
                return evaluate(expr)
        return None

    return fold_constant


def fold_case(expr: Expr) -> Expr | None:
    """CASE WHEN FALSE THEN a WHEN p THEN b WHEN TRUE THEN c … END → CASE WHEN p THEN b ELSE c END"""
    match expr:
        case Case(whens, otherwise, type) if any(isinstance(condition, Literal) for condition, _ in whens):
            arms: list[tuple[Expr, Expr]] = []
            for condition, value in whens:
                if condition == TRUE:
                    otherwise = value
                    break
                if not isinstance(condition, Literal):
                    arms.append((condition, value))
            return Case(tuple(arms), otherwise, type) if arms else exactly(otherwise, type)
    return None
