"""Constant folding: expressions without columns are computed at compile time, as are conditions that they decide."""

from collections.abc import Callable

from squallpy.logical.expressions import Call, Case, Cast, Expr, Literal, children

Evaluate = Callable[[Expr], Literal | None]  # the value of an expression; None if the evaluation fails
LONGEST = 1_000_000  # characters of a text that is computed while compiling
GROWING = ("lpad", "rpad", "repeat", "replace", "regexp_replace")  # functions that may make a text many times as long


def only_literals(expr: Expr) -> Literal | None:
    """Evaluate nothing: literals alone are constants then."""
    return expr if isinstance(expr, Literal) else None


def length_of(name: str, args: tuple[Expr, ...]) -> int:
    """Bound the characters of the text that a function makes of arguments, as far as literals say; 0 if they do not.

    REPEAT('ab', 3)  →  6        LPAD(x, 5, ' ')  →  5
    """
    values = [arg.value if isinstance(arg, Literal) else None for arg in args]
    match name, values:
        case "lpad" | "rpad", [_, int(width), _]:
            return width
        case "repeat", [text, int(times)]:
            return times * (len(text) if isinstance(text, str) else 1)
        case "replace" | "regexp_replace", [str(text), str(old), str(new)]:
            places = len(text) // max(1, len(old)) if name == "replace" else len(text) + 1
            return len(text) + places * (len(new) if "$" not in new or name == "replace" else len(new) * len(text))
        case "||" | "concat_ws", _:
            return sum(len(value) for value in values if isinstance(value, str))
    return 0


def fold_constant(evaluate: Evaluate) -> Callable[[Expr], Expr | None]:
    """Fold constants: 1 + 10 → 11; a call that fails, or makes too long a text, is left to run time."""

    def fold_constant(expr: Expr) -> Expr | None:
        match expr:
            case Call(name, args) if length_of(name, args) > LONGEST:
                return None
            case Call() | Cast() | Case() if all(isinstance(child, Literal) for child in children(expr)):
                return evaluate(expr)
        return None

    return fold_constant
