"""Predicates: constants folded away, common conjuncts factored out of OR."""

from squallpy.base.types import BOOLEAN
from squallpy.logical.expressions import Call, Expr, Literal

TRUE, FALSE = Literal(True, BOOLEAN), Literal(False, BOOLEAN)


def parts(expr: Expr, name: str) -> tuple[Expr, ...]:
    """The operands of nested ANDs (or ORs)."""
    match expr:
        case Call(called, args) if called == name:
            return tuple(p for a in args for p in parts(a, name))
    return (expr,)


def combine(operands: tuple[Expr, ...], name: str) -> Expr:
    """AND or OR of any number of operands."""
    unique = tuple(dict.fromkeys(operands))
    if not unique:
        return TRUE if name == "and" else FALSE
    return unique[0] if len(unique) == 1 else Call(name, unique, BOOLEAN, any(o.nullable for o in unique))


def fold_constant_in_and(expr: Expr) -> Expr | None:
    """x AND TRUE → x;  x AND FALSE → FALSE"""
    return _fold(expr, "and", TRUE, FALSE)


def fold_constant_in_or(expr: Expr) -> Expr | None:
    """x OR FALSE → x;  x OR TRUE → TRUE"""
    return _fold(expr, "or", FALSE, TRUE)


def _fold(expr: Expr, name: str, neutral: Literal, absorbing: Literal) -> Expr | None:
    match expr:
        case Call(called, args) if called == name and (neutral in args or absorbing in args):
            if absorbing in args:
                return absorbing
            return combine(tuple(a for a in args if a != neutral), name)
    return None


def fold_not(expr: Expr) -> Expr | None:
    """NOT NOT x → x;  NOT TRUE → FALSE;  NOT (a < b) → a >= b"""
    opposite = {"=": "<>", "<>": "=", "<": ">=", ">=": "<", ">": "<=", "<=": ">"}
    match expr:
        case Call("not", (Call("not", (inner,)),)):
            return inner
        case Call("not", (Literal(bool(value)),)):
            return FALSE if value else TRUE
        case Call("not", (Call(name, args, type, nullable),)) if name in opposite:
            return Call(opposite[name], args, type, nullable)
    return None


def factor_conjunct_out_of_or(expr: Expr) -> Expr | None:
    """(a AND b) OR (a AND c) → a AND (b OR c): finds the join predicate of TPC-H Q19."""
    match expr:
        case Call("or", _):
            arms = [parts(arm, "and") for arm in parts(expr, "or")]
            shared = tuple(c for c in arms[0] if all(c in arm for arm in arms))
            if not shared:
                return None
            rest = [tuple(c for c in arm if c not in shared) for arm in arms]
            if not all(rest):
                return combine(shared, "and")
            return combine((*shared, combine(tuple(combine(r, "and") for r in rest), "or")), "and")
    return None
