"""What NULL does to expressions, as far as it can be told without rows."""

from squallpy.base.types import BOOLEAN
from squallpy.logical.expressions import FALSE, TRUE, Call, Cast, Expr, Literal, not_null, transform
from squallpy.logical.functions import FUNCTIONS


def fold_nulls(expr: Expr) -> Expr:
    """NULL + x → NULL;  NULL IS NULL → TRUE;  a NOT NULL column IS NULL → FALSE;  x AND FALSE → FALSE

    x = x → NOT x IS NULL
    """
    return transform(expr, _fold)


def _fold(expr: Expr) -> Expr | None:
    match expr:
        case Call("is_null", (arg,)):
            return TRUE if _is_null(arg) else None if arg.nullable else FALSE
        case Call("=", (a, b)) if a == b:
            return not_null(a) if a.nullable else TRUE
        case Call("not", (Literal(bool(value)),)):
            return Literal(not value, BOOLEAN)
        case Call("and", args) if FALSE in args:
            return FALSE
        case Call("or", args) if TRUE in args:
            return TRUE
        case Call("in", (arg, *_)) if _is_null(arg):
            return Literal(None, BOOLEAN)
        case Call("and" | "or" | "in"):
            return None
        case Call(name, args, type) if FUNCTIONS[name].nulls not in ("never", "all") and any(map(_is_null, args)):
            return Literal(None, type)
        case Cast(arg, type) if _is_null(arg):
            return Literal(None, type)
    return None


def _is_null(expr: Expr) -> bool:
    return isinstance(expr, Literal) and expr.value is None
