"""Operators remember what is derived from their inputs, unless columns are still being lent below them."""

from squallpy.base.types import BOOLEAN, INT
from squallpy.catalog.relation import Relation
from squallpy.logical.apply import Domain
from squallpy.logical.expressions import Call, Column, Expr, Literal, Rewriter, columns
from squallpy.logical.nodes import Filter, Join, Scan

A, B = Column(1, "a", INT), Column(2, "b", INT)
POSITIVE = Call(">", (A, Literal(0, INT)), BOOLEAN, True)


def scan(*fields: Column) -> Scan:
    return Scan(Relation("r", (), stream=True, format="csv", options={}), "r", fields)


def test_columns_are_found_once() -> None:
    join = Join(scan(A), scan(B))
    assert join.output == (A, B) and join.output is join.output
    assert join.ids == {1, 2} and join.size == 3


def test_columns_that_are_lent_later_are_seen() -> None:
    domain = Domain()
    above = Filter(Join(domain, scan(A)), POSITIVE)
    assert above.output == (A,) and above.ids == {1}
    domain.columns[B] = B
    assert above.output == (B, A) and above.ids == {1, 2}


def test_columns_of_an_expression_are_found_once() -> None:
    assert columns(POSITIVE) == {A} and columns(POSITIVE) is columns(POSITIVE)


def test_a_rewriter_sees_each_part_once() -> None:
    seen = []

    def rule(expr: Expr) -> Expr | None:
        seen.append(expr)
        return B if expr == A else None

    rewrite = Rewriter(rule)
    again = rewrite(POSITIVE)
    assert columns(again) == {B} and rewrite(POSITIVE) is again and len(seen) == 3
    assert rewrite(again) is again and rewrite(again) is again and len(seen) == 5, "a rule may change its own outcome"
