"""Values at a share of all: their numbers, and how the sorted index finds them."""

from fractions import Fraction

import numpy as np

from squallpy.base.index_order import Order
from squallpy.base.rings import Payload, Ring
from squallpy.runtime.auxiliary.percentiles import number_of
from squallpy.runtime.kernels.sorted_index import SortedIndex


def test_numbers_of_values() -> None:
    counts = np.array([1, 2, 3, 4, 5, 10])
    half, third = Fraction(1, 2), Fraction(3, 10)
    assert number_of("below", half, counts).tolist() == [0, 0, 1, 1, 2, 4]
    assert number_of("above", half, counts).tolist() == [0, 1, 1, 2, 2, 5]
    assert number_of("reaches", third, counts).tolist() == [0, 0, 0, 1, 1, 2]
    assert number_of("left", third, counts).tolist() == [0, 1, 2, 2, 3, 7]
    for share, first, last in ((Fraction(0), 0, 9), (Fraction(1), 9, 0)):
        assert number_of("reaches", share, counts)[-1] == first
        assert number_of("left", share, counts)[-1] == last


def test_the_record_at_which_a_sum_passes() -> None:
    rng = np.random.default_rng(1)
    index = SortedIndex(Order((0, 1), 1), Payload((Ring.COUNT,)))
    assert index.find_by_sum(0, np.array([0, 5])).tolist() == [-1, -1]
    keys = np.unique(rng.integers(0, 60, (3000, 2)), axis=0)
    times = rng.integers(1, 4, (len(keys), 1))
    index.upsert(rng.permutation(keys), np.ones((len(keys), 1), np.int64))
    index.upsert(keys, times - 1)
    every = np.repeat(keys, times[:, 0], axis=0)
    places = index.find_by_sum(0, np.arange(len(every)))
    assert (index.entries[places, :2] == every).all()
    assert index.find_by_sum(0, np.array([len(every), 0, len(every) - 1]))[0] == -1
