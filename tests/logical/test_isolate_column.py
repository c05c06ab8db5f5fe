"""Comparisons solved for a column, against themselves with numbers put in."""

import operator
from collections.abc import Callable, Sequence
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from squallpy.base.types import BIGINT, BOOLEAN, DATE, DOUBLE, INT, TIMESTAMP, decimal
from squallpy.logical.expressions import Call, Cast, Column, Literal
from squallpy.logical.isolate_column import isolate

V, X, DAY, DAY2, D = (
    Column(i, n, t) for i, (n, t) in enumerate(zip("vxdey", (INT, INT, DATE, DATE, DOUBLE), strict=True))
)
NUMBERS: dict[str, Callable[..., Any]] = {"+": operator.add, "-": operator.sub, "negate": operator.neg}
COMPARISONS: dict[str, Callable[..., bool]] = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}

LEAVES = st.sampled_from([V, X]) | st.integers(-3, 3).map(lambda n: Literal(n, INT))
SUMS = st.recursive(
    LEAVES,
    lambda some: (
        st.builds(lambda name, a, b: Call(name, (a, b), INT, True), st.sampled_from("+-"), some, some)
        | st.builds(lambda a: Call("negate", (a,), INT, True), some)
        | st.builds(lambda a: Cast(a, BIGINT), some)
    ),
    max_leaves=6,
)


def value(expr: Any, known: Sequence[int | None]) -> Any:
    match expr:
        case Column(id):
            return known[id]
        case Literal(number):
            return number
        case Cast(arg):
            return value(arg, known)
        case Call(name, args):
            return NUMBERS[name](*(value(arg, known) for arg in args))
        case _:
            raise AssertionError(expr)


def occurrences(expr: Any) -> int:
    if expr == V:
        return 1
    return sum(map(occurrences, getattr(expr, "args", (expr.arg,) if isinstance(expr, Cast) else ())))


@given(st.sampled_from([*COMPARISONS]), SUMS, SUMS)
def property_a_solved_comparison_holds_for_the_same_numbers(
    name: str, a: Call | Cast | Column, b: Call | Column | Literal
) -> None:
    found = isolate(Call(name, (a, b), BOOLEAN, True), V)
    assert (found is not None) == (occurrences(a) + occurrences(b) == 1)
    if found is None:
        return
    assert found.strict == (name in "<>")
    for x in range(-2, 3):
        true = [v for v in range(-40, 41) if COMPARISONS[name](value(a, [v, x]), value(b, [v, x]))]
        bound = sum(sign * value(term, [None, x]) for sign, term in found.terms)
        from_below = [v for v in range(-40, 41) if (v > bound if found.strict else v >= bound)]
        from_above = [v for v in range(-40, 41) if (v < bound if found.strict else v <= bound)]
        assert true in (from_below, from_above)


def test_days_are_numbers_and_doubles_are_not() -> None:
    apart = Call("days_between", (DAY, DAY2), INT, True)
    assert isolate(Call("<=", (apart, Literal(1, INT)), BOOLEAN, True), DAY2).terms == ((1, DAY), (-1, Literal(1, INT)))
    assert isolate(Call("<=", (Call("-", (D, V), DOUBLE, True), D), BOOLEAN, True), V) is None


def test_units_differ() -> None:
    moment, cents = Column(7, "m", TIMESTAMP), Column(8, "c", decimal(5, 2))
    later = Call("add_micros", (moment, X), TIMESTAMP, True)
    assert isolate(Call(">", (later, Column(9, "n", TIMESTAMP)), BOOLEAN, True), moment) is not None
    assert isolate(Call(">", (Call("+", (cents, V), decimal(12, 2), True), cents), BOOLEAN, True), V) is None
