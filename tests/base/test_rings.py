"""Laws of the rings whose elements are Python objects."""

from collections.abc import Mapping
from functools import reduce
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from squallpy.testing.rings.abstract_ring import FormalSums
from squallpy.testing.rings.matrix_chain import MatrixChain
from squallpy.testing.rings.relational import Relational
from squallpy.testing.view_tree_oracle import PowerSums

Element = Mapping[Any, float]
MATRICES = st.lists(st.lists(st.integers(-2, 2), min_size=2, max_size=2), min_size=2, max_size=2)
RINGS: dict[str, tuple[FormalSums[Any], st.SearchStrategy[Any]]] = {
    "relational": (Relational(), st.integers(0, 2)),
    "matrix chain": (MatrixChain(), MATRICES),
    "power sums": (PowerSums(3), st.integers(-2, 2)),
}


@st.composite
def elements(draw: st.DrawFn, name: str) -> Element:
    """Draw a sum of multiples of products of lifted values."""
    ring, values = RINGS[name]
    found = ring.zero
    for _ in range(draw(st.integers(0, 3))):
        lifted = [ring.lift(v, draw(values)) for v in draw(st.lists(st.sampled_from("xyz"), max_size=2))]
        found = ring.add(found, ring.scale(reduce(ring.multiply, lifted, ring.one), draw(st.integers(-2, 2))))
    return found


@pytest.mark.parametrize("name", RINGS)
@given(data=st.data())
def property_laws(name: str, data: st.DataObject) -> None:
    ring = RINGS[name][0]
    a, b, c = (data.draw(elements(name)) for _ in range(3))
    add, multiply = ring.add, ring.multiply
    assert add(a, b) == add(b, a)
    assert add(add(a, b), c) == add(a, add(b, c))
    assert add(a, ring.zero) == a
    assert add(a, ring.scale(a, -1)) == ring.zero
    assert multiply(multiply(a, b), c) == multiply(a, multiply(b, c))
    assert multiply(ring.one, a) == a == multiply(a, ring.one)
    assert multiply(ring.zero, a) == ring.zero == multiply(a, ring.zero)
    assert multiply(a, add(b, c)) == add(multiply(a, b), multiply(a, c))
    assert multiply(add(a, b), c) == add(multiply(a, c), multiply(b, c))
    assert ring.scale(a, 3) == multiply(a, ring.scale(ring.one, 3)) == add(a, add(a, a))
    if name != "matrix chain":
        assert multiply(a, b) == multiply(b, a)


@given(MATRICES, MATRICES)
def oracle_matrix_chains_are_products_of_matrices(x: list[list[int]], y: list[list[int]]) -> None:
    ring = MatrixChain()
    product = ring.multiply(ring.lift("x", x), ring.lift("y", y))
    assert product == ring.lift("", (np.array(x) @ np.array(y)).tolist())
    assert ring.add(product, ring.one) == {(): 1, **product}


def test_matrices_of_shapes_that_follow_each_other() -> None:
    ring = MatrixChain()
    assert ring.multiply(ring.lift("x", [[1, 2]]), ring.lift("y", [[3], [4]])) == {(0, 0): 11}
