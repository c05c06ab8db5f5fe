"""Well-formed statements, and what the rules make of them."""

import pytest

from squallpy.base.types import INT
from squallpy.logical.expressions import Column
from squallpy.physical.distribute.location_tags import (
    EVERYWHERE,
    LOCAL,
    RANDOM,
    SOURCE,
    Dist,
    Join,
    Mark,
    Move,
    Read,
    show_expression,
)
from squallpy.physical.distribute.simplify_transformers import simplify_moves
from squallpy.physical.distribute.well_formed import make_well_formed
from squallpy.program.views import Ref

A, B, C, D = (Column(i, name, INT) for i, name in enumerate("ABCD"))


def read(name: str, variables: tuple[Column, ...], at: Dist | Mark, delta: bool = False) -> Read:
    return Read(Ref(name, variables, (0,)), at, delta)


def golden_example_4_1() -> None:
    """The paper's: two rounds as it is first made, one after the rules."""
    reads = [read("M1", (A, B), Dist((A,))), read("M2", (A, B), Dist((B,)))]
    first = make_well_formed(reads, (A,), Dist((A,)))
    assert show_expression(first) == "Repart_[A](Sum_[A](Repart_[B](M1(A, B)) ⋈ M2(A, B)))"
    assert show_expression(simplify_moves(first)) == "Sum_[A](M1(A, B) ⋈ Repart_[A](M2(A, B)))"


CASES = [
    # the delta goes where the view is; what a batch brings moves, not the view
    ([read("ΔR", (A, B), SOURCE, True), read("M", (B,), Dist((B,)))], (A,), RANDOM,
     "Sum_[A](Repart_[B](ΔR(A, B)) ⋈ M(B))"),
    ([read("M", (B,), Dist((B,))), read("ΔR", (A, B), SOURCE, True)], (B,), Dist((B,)),
     "Sum_[B](M(B) ⋈ Repart_[B](ΔR(A, B)))"),
    # two views by two variables: it goes to one and then to the other
    ([read("ΔO", (A, B), SOURCE, True), read("C", (A,), Dist((A,))), read("L", (B,), Dist((B,)))], (B,), RANDOM,
     "Sum_[B](Repart_[B](Repart_[A](ΔO(A, B)) ⋈ C(A)) ⋈ L(B))"),
    # one of them everywhere
    ([read("ΔO", (A, B), SOURCE, True), read("C", (A,), EVERYWHERE), read("L", (B,), Dist((B,)))], (B,), RANDOM,
     "Sum_[B](Repart_[B](ΔO(A, B)) ⋈ L(B) ⋈ C(A))"),
    # nothing in common: what the batch brings goes to all
    ([read("ΔR", (A,), SOURCE, True), read("M", (B,), Dist((B,)))], (A, B), RANDOM,
     "Sum_[A, B](Repart_[everywhere](ΔR(A)) ⋈ M(B))"),
    # two deltas
    ([read("ΔR", (A, B), SOURCE, True), read("ΔS", (B, C), SOURCE, True)], (A,), RANDOM,
     "Sum_[A](Repart_[B](ΔR(A, B)) ⋈ Repart_[B](ΔS(B, C)))"),
    ([read("ΔR", (A,), SOURCE, True), read("ΔS", (B,), SOURCE, True)], (A,), None,
     "Sum_[A](Repart_[everywhere](ΔR(A)) ⋈ Repart_[B](ΔS(B)))"),
    # partial sums for the driver
    ([read("ΔR", (A,), SOURCE, True)], (), LOCAL, "Gather(Sum_[](ΔR(A)))"),
    ([read("ΔR", (A,), SOURCE, True)], (), None, "Sum_[](ΔR(A))"),
    # what is everywhere counts once
    ([read("ΔR", (A,), EVERYWHERE, True), read("M", (A,), EVERYWHERE)], (A,), RANDOM,
     "Keep_[A](Sum_[A](ΔR(A) ⋈ M(A)))"),
]  # fmt: skip


@pytest.mark.parametrize(("reads", "keys", "target", "expected"), CASES)
def golden_cheapest(reads: list[Read], keys: tuple[Column], target: Dist | Mark, expected: str) -> None:
    assert show_expression(simplify_moves(make_well_formed(reads, keys, target))) == expected


def oracle_what_does_not_meet_is_no_join() -> None:
    with pytest.raises(AssertionError, match="do not meet"):
        Join(read("M", (A,), Dist((A,))), read("N", (A,), RANDOM))
    with pytest.raises(AssertionError):
        Move(Dist((B,)), read("M", (A,), LOCAL))
