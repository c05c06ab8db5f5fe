"""Entries of the registry: scalar functions and operators, aggregates, and the operations that plans call.

A `Function` is written by a query, an `Operation` computed by a plan. Most functions are an operation of the same
name, whose evaluator `runtime/evaluate/scalar` registers; others are expanded into operations by `logical/bind/scalar`.

    native("SOUNDEX(s)", takes(VARCHAR, TEXT), "the four-character Soundex code of a text", "SOUNDEX('Robert') → R163")
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from squallpy.base.records import dataclass
from squallpy.base.types import Type

ARROW = " → "


class Argument(NamedTuple):
    """The argument of a call, as far as type rules look: its type and, of a literal, its value."""

    type: Type
    value: Any = None
    is_literal: bool = False


Arguments = Sequence[Argument]
Typing = tuple[tuple[Type, ...], Type]
"""The types to which arguments are coerced, and the type of the result."""
TypeRule = Callable[[str, Arguments], Typing]


@dataclass(frozen=True, slots=True)
class Operation:
    """A scalar computation that a plan names in a Call.

    Args:
        most: the most arguments; None for any number.
        nulls: the result is NULL where an argument is ("any"), where all are ("all"), also where the second is 0
            ("divisor"), possibly always ("always"), "never", or as the function says, which is given NULLs ("own").
        settings: arguments from this position on are parameters, such as the pattern of LIKE: the evaluator is made
            for their values, once for the rows that share them.
        is_exactly_typed: True if arguments get exactly the types of the rule, even if other types store values the same
        way.
    """

    name: str
    min_arguments: int
    max_arguments: int | None
    rule: TypeRule
    doc: str
    nulls: str = "any"
    settings: int | None = None
    is_exactly_typed: bool = False


Places = Callable[[int], list[list[int]]]
"""The positions of arguments that have one type, given how many there are."""


@dataclass(frozen=True, slots=True)
class Function:
    """A scalar function or operator that a query writes.

    Args:
        syntax: how it is written; a function's names its arguments: "LPAD(s, n [, fill])", "COALESCE(x, …)".
        example: a call of constants and its result as text: "LPAD('7', 3, '0') → 007".
        names: the name and its aliases in upper case; none of an operator.
        call: the Operation that it is; None if `logical/bind/scalar` expands it.
        operation: that Operation if it is declared with the function.
        constant: the position of an argument that must be constant.
        one_type: the arguments that are brought to a common type.
        has_unit: True if the first of three arguments names a unit of time.
    """

    syntax: str
    doc: str
    example: str
    names: tuple[str, ...]
    min_arguments: int
    max_arguments: int | None
    call: str | None = None
    operation: Operation | None = None
    constant: int | None = None
    one_type: Places | None = None
    has_unit: bool = False

    @property
    def name(self) -> str:
        return self.names[0]

    def argument_names(self, count: int) -> list[str]:
        """List what the syntax calls the arguments of a call that has so many; none if it does not say."""
        for way in self.syntax.split(" or "):
            named = [part.strip(" ]") for part in way[way.index("(") + 1 : way.rindex(")")].replace("[", "").split(",")]
            if "…" not in way and _arity(way)[0] <= count <= len(named):
                return named[:count]
        return []


def arity(syntax: str) -> tuple[int, int | None]:
    """Count the arguments that a syntax names, least and most.

    LPAD(s, n [, fill])  →  2, 3        COALESCE(x, …)  →  1, None        LOG(x) or LOG(base, x)  →  1, 2
    """
    counts = [_arity(way) for way in syntax.split(" or ")]
    highest = [most for _, most in counts]
    return min(least for least, _ in counts), None if None in highest else max(n for n in highest if n is not None)


def _arity(syntax: str) -> tuple[int, int | None]:
    required, _, optional = syntax[syntax.index("(") + 1 : syntax.rindex(")")].partition("[")
    least = _count(required)
    return least, None if "…" in syntax else least + _count(optional)


def _count(arguments: str) -> int:
    return sum(part.strip(" ]…") != "" for part in arguments.split(","))


def declare_derived(
    syntax: str,
    doc: str,
    example: str,
    aliases: str = "",
    *,
    call: str | None = None,
    constant: int | None = None,
    one_type: Places | None = None,
    has_unit: bool = False,
) -> Function:
    """Declare a function that is another operation's `call`, or that `logical/bind/scalar` expands."""
    names = (syntax[: syntax.index("(")], *aliases.split())
    return Function(syntax, doc, example, names, *arity(syntax), call, None, constant, one_type, has_unit)


def native(
    syntax: str,
    rule: TypeRule,
    doc: str,
    example: str,
    aliases: str = "",
    *,
    call: str = "",
    nulls: str = "any",
    settings: int | None = None,
    is_exactly_typed: bool = False,
    one_type: Places | None = None,
) -> Function:
    """Declare a function that is an operation, named `call` in plans, by default as the function in lower case."""
    names = (syntax[: syntax.index("(")], *aliases.split())
    least, most = arity(syntax)
    name = call or names[0].lower()
    operation = Operation(name, least, most, rule, doc, nulls, settings, is_exactly_typed)
    return Function(syntax, doc, example, names, least, most, name, operation, None, one_type)


def operator(syntax: str, operation: Operation, example: str) -> Function:
    """Declare an operation that a query writes with an operator or keywords."""
    return Function(
        syntax, operation.doc, example, (), operation.min_arguments, operation.max_arguments, operation.name, operation
    )
