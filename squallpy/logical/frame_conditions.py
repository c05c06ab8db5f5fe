"""Conditions under which a row is in the frame of another, by the keys of both; at most one of them is TRUE.

A NULL is before or after all values, and infinitely far from them.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from squallpy.logical.aggregate_calls import SortKey
from squallpy.logical.bind.datetime.intervals import arithmetic, convert_to_number, involves_time
from squallpy.logical.expression_builders import call, not_distinct
from squallpy.logical.expressions import Expr, conjunction, not_null
from squallpy.logical.window_frame import Bound


def list_before_conditions(
    theirs: Sequence[Expr], mine: Sequence[Expr], order: Sequence[SortKey], or_equal: bool
) -> Iterator[Expr]:
    """Yield when a row with the keys `theirs` comes before one with `mine`, or ties with it if `or_equal`.

    a, b   →   a' < a;   a' <=> a AND b' < b
    """
    same: list[Expr] = []
    for number, (a, b, (_, down, nulls_first)) in enumerate(zip(theirs, mine, order, strict=True), 1):
        last = or_equal and number == len(order)
        yield conjunction((*same, call((">" if down else "<") + ("=" if last else ""), a, b)))
        if a.nullable or b.nullable:
            first, then = (a, b) if nulls_first else (b, a)
            yield conjunction((*same, call("is_null", first), *(() if last else (not_null(then),))))
        same.append(not_distinct(a, b))


def conditions_in_range(a: Expr, b: Expr, key: SortKey, start: Bound | None, end: Bound | None) -> Iterator[Expr]:
    """Yield when a row with the key `a` is in the RANGE of one with `b`, in the order of `key`."""
    _, down, nulls_first = key
    near = []
    for bound, op in ((start, "<=" if down else ">="), (end, ">=" if down else "<=")):
        if bound is not None:
            way, moved = "+" if (bound[0] > 0) != down else "-", arithmetic if involves_time(b, bound[1]) else call
            test = call(op, a, moved(way, b, bound[1]) if bound[0] else b)
            near.append(replace(test, args=(test.args[0], convert_to_number(test.args[1]))) if bound[0] else test)
    yield conjunction(near)
    if a.nullable or b.nullable:
        yield conjunction((call("is_null", a), call("is_null", b)))
        if start is None:
            first, then = (a, b) if nulls_first else (b, a)
            yield conjunction((call("is_null", first), not_null(then)))
        if end is None:
            first, then = (b, a) if nulls_first else (a, b)
            yield conjunction((call("is_null", first), not_null(then)))
