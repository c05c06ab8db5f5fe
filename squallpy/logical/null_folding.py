"""Folding of NULLs at compile time."""

from squallpy.base.types import BOOLEAN
from squallpy.logical.coercion import coerce_exactly
from squallpy.logical.expression_builders import coalesce
from squallpy.logical.expressions import (
    FALSE,
    TRUE,
    Call,
    Case,
    Cast,
    Expr,
    Literal,
    children,
    conjunction,
    conjuncts,
    disjunction,
    disjuncts,
    is_strict,
    not_null,
    transform,
)


def fold_nulls(expr: Expr) -> Expr:
    """Fold NULLs in an expression.

    NULL + x → NULL;  NULL IS NULL → TRUE;  a NOT NULL column IS NULL → FALSE;  x AND FALSE → FALSE
    x = x → TRUE if x is NOT NULL
    CASE WHEN NULL IS NULL THEN x ELSE y END → x;  CASE WHEN p THEN 1 END IS NULL → NOT p
    """
    return transform(expr, fold_null)


def fold_case(expr: Expr) -> Expr | None:
    """Fold literal conditions: CASE WHEN FALSE THEN a WHEN p THEN b WHEN TRUE THEN c … END → CASE WHEN p THEN b ELSE
    c END."""
    match expr:
        case Case(whens, otherwise, type) if any(isinstance(condition, Literal) for condition, _ in whens):
            arms: list[tuple[Expr, Expr]] = []
            for condition, value in whens:
                if condition == TRUE:
                    otherwise = value
                    break
                if not isinstance(condition, Literal):
                    arms.append((condition, value))
            return Case(tuple(arms), otherwise, type) if arms else coerce_exactly(otherwise, type)
    return None


def fold_coalesce(expr: Expr) -> Expr | None:
    """Flatten COALESCE: COALESCE(COALESCE(a, b), NULL, a, c) → COALESCE(a, b, c); COALESCE(a, b) → a if a is NOT NULL

    Nested in each other, as the keys of FULL JOIN … USING are, they would double in size with each.
    """
    given = coalesce_arguments(expr)
    if given is None:
        return None
    flat = (part for arg in given for part in coalesce_arguments(arg) or (arg,))
    args = list[Expr]()
    for arg in dict.fromkeys(part for part in flat if not _is_null(part)):
        args.append(arg)
        if not arg.nullable:
            break
    if tuple(args) == given:
        return None
    return coalesce(*args) if args else Literal(None, expr.type)


def coalesce_arguments(expr: Expr) -> tuple[Expr, ...] | None:
    """Find the arguments of a COALESCE, all of its type; None for another expression."""
    match expr:
        case Case(whens, otherwise, type) if all(c == not_null(v) and v.type == type for c, v in whens):
            return (*(value for _, value in whens), otherwise)
    return None


def fold_condition(condition: Expr) -> Expr:
    """Simplify a condition where NULL acts as FALSE, as in WHERE.

    CASE WHEN p THEN TRUE WHEN q THEN NULL ELSE FALSE END → p

    NB: below a NOT that does not hold.
    """
    match condition:
        case Literal(None):
            return FALSE
        case Call("and"):
            return conjunction(map(fold_condition, conjuncts(condition)))
        case Call("or"):
            return disjunction(map(fold_condition, disjuncts(condition)))
        case Case(whens, otherwise, type):
            arms, last = [(fold_condition(c), fold_condition(value)) for c, value in whens], fold_condition(otherwise)
            while arms and arms[-1][1] == last:
                arms.pop()
            if len(arms) == 1 and (arms[0][1], last) == (TRUE, FALSE):
                return arms[0][0]
            changed = Case(tuple(arms), last, type) if arms else last
            return condition if changed == condition else changed
    return condition


def fold_null(expr: Expr) -> Expr | None:
    """Fold one expression whose parts are folded."""
    match expr:
        case Call("is_null", (Case(((condition, value),), otherwise),)) if _is_null(otherwise) and not (
            condition.nullable or value.nullable
        ):
            return Call("not", (condition,), BOOLEAN, False)
        case Call("is_null", (arg,)):
            return TRUE if _is_null(arg) else None if arg.nullable else FALSE
        case Call("=", (a, b)) if a == b:
            return None if a.nullable else TRUE
        case Call("not", (Call("not", (inner,)),)):
            return inner
        case Call("not", (Literal(bool(value)),)):
            return Literal(not value, BOOLEAN)
        case Case(((condition, Case(((same, value), *_), _, inner)), *more), otherwise, outer) if condition == same:
            return Case(((condition, value), *more), otherwise, outer) if inner == outer else None
        case Call("and", args) if FALSE in args:
            return FALSE
        case Call("or", args) if TRUE in args:
            return TRUE
        case Call("in", (arg, *_)) if _is_null(arg):
            return Literal(None, BOOLEAN)
        case Case():
            return fold_case(expr) or fold_coalesce(expr)
        case Call() | Cast() if any(map(_is_null, children(expr))) and is_strict(expr):
            return Literal(None, expr.type)
    return None


def _is_null(expr: Expr) -> bool:
    return isinstance(expr, Literal) and expr.value is None
