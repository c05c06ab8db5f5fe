"""Simplification of predicates: constants in AND and OR, common conjuncts factored out of OR."""

from squallpy.base.types import Kind
from squallpy.logical.expressions import (
    FALSE,
    MIRRORED,
    OPPOSITE,
    TRUE,
    Call,
    Case,
    Expr,
    Literal,
    conjunction,
    conjuncts,
    disjunction,
    disjuncts,
)
from squallpy.logical.null_folding import fold_condition


def fold_constant_in_and(expr: Expr) -> Expr | None:
    """Fold a constant operand of AND: x AND TRUE → x; x AND FALSE → FALSE"""
    match expr:
        case Call("and", args) if FALSE in args:
            return FALSE
        case Call("and", args) if TRUE in args:
            return conjunction(a for a in args if a != TRUE)
    return None


def fold_constant_in_or(expr: Expr) -> Expr | None:
    """Fold a constant operand of OR: x OR FALSE → x; x OR TRUE → TRUE"""
    match expr:
        case Call("or", args) if TRUE in args:
            return TRUE
        case Call("or", args) if FALSE in args:
            return disjunction(a for a in args if a != FALSE)
    return None


def fold_not(expr: Expr) -> Expr | None:
    """Fold NOT into its operand: NOT NOT x → x; NOT TRUE → FALSE; NOT (a < b) → a >= b"""
    match expr:
        case Call("not", (Call("not", (inner,)),)):
            return inner
        case Call("not", (Literal(bool(value)),)):
            return FALSE if value else TRUE
        case Call("not", (Call(name, args, type, nullable),)) if name in OPPOSITE:
            return Call(OPPOSITE[name], args, type, nullable)
    return None


def decide_arms(expr: Expr) -> Expr | None:
    """Decide the conditions of a CASE as predicates: WHEN p AND NULL → WHEN p AND FALSE"""
    match expr:
        case Case(whens, otherwise, type):
            arms = tuple((fold_condition(condition), value) for condition, value in whens)
            return Case(arms, otherwise, type) if arms != whens else None
    return None


def open_abs(expr: Expr) -> Expr | None:
    """Write a band as a range of a sorted index: ABS(x) <= c → x <= c AND x >= -c"""
    match expr:
        case Call("<" | "<=" as name, (Call("abs", (x,)), c), type, nullable) if x.type.kind is not Kind.DOUBLE:
            least = Call("negate", (c,), c.type, c.nullable)  # NB: of doubles NaN <= NaN would be lost
            return conjunction((Call(name, (x, c), type, nullable), Call(MIRRORED[name], (x, least), type, nullable)))
        case Call(">" | ">=" as name, (c, Call("abs", (x,)) as band), type, nullable) if x.type.kind is not Kind.DOUBLE:
            return open_abs(Call(MIRRORED[name], (band, c), type, nullable))
    return None


def factor_conjunct_out_of_or(expr: Expr) -> Expr | None:
    """Factor a common conjunct out of an OR, as in TPC-H Q19: (a AND b) OR (a AND c) → a AND (b OR c)"""
    match expr:
        case Call("or", _):
            arms = [conjuncts(arm) for arm in disjuncts(expr)]
            shared = tuple(c for c in arms[0] if all(c in arm for arm in arms))
            if not shared:
                return None
            rest = [tuple(c for c in arm if c not in shared) for arm in arms]
            if not all(rest):
                return conjunction(shared)
            return conjunction((*shared, disjunction(map(conjunction, rest))))
    return None
