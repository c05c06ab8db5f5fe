"""Frequencies in bounded memory are off by what is said at most."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from squallpy.physical.joins.key_frequencies import Frequencies, Sketch, frequencies

BATCHES = st.lists(st.lists(st.tuples(st.integers(0, 15), st.integers(0, 20)), max_size=12), max_size=6)


def sketch(size: int, batches: list[list[tuple[int, int]]]) -> tuple[Sketch, Counter[int]]:
    out, truth = Sketch(size), Counter[int]()
    for batch in batches:
        out = out.add(np.array([k for k, _ in batch], np.uint64), np.array([n for _, n in batch], np.int64))
        for key, count in batch:
            truth[key] += count
    return out, truth


def check(found: Sketch, truth: Counter[int]) -> None:
    keys = np.arange(16, dtype=np.uint64)
    estimates, real = found.of(keys), np.array([truth[int(key)] for key in keys])
    assert found.total == real.sum() and len(found.keys) <= found.size
    assert (estimates <= real).all() and (real - estimates <= found.lost).all()
    assert found.lost <= found.total / (found.size + 1)


@given(st.integers(1, 16), BATCHES)
def property_estimates_are_within_the_error(size: int, batches: list[list[tuple[int, int]]]) -> None:
    check(*sketch(size, batches))


@given(st.integers(1, 16), BATCHES, BATCHES)
def property_merged_estimates_are_as_good(
    size: int, one: list[list[tuple[int, int]]], other: list[list[tuple[int, int]]]
) -> None:
    (a, some), (b, others) = sketch(size, one), sketch(size, other)
    check(a.merge(b), some + others)


@given(st.integers(1, 8), st.lists(st.tuples(st.integers(0, 15), st.sampled_from([1, 1, -1])), max_size=80))
def property_deletes(size: int, changes: list[tuple[int, int]]) -> None:
    found, truth = frequencies(size), Counter[int]()
    for start in range(0, len(changes), 7):
        batch = changes[start : start + 7]
        found = found.add(np.array([k for k, _ in batch], np.uint64), np.array([n for _, n in batch], np.int64))
    for key, sign in changes:
        truth[key] += sign
    assert found.size == sum(truth.values())
    estimates = found.of(np.arange(16, dtype=np.uint64))
    for key in range(16):
        assert truth[key] - found.came.lost <= estimates[key] <= max(0, truth[key] + found.gone.lost)


@given(
    st.lists(st.tuples(st.integers(0, 5), st.integers(-4, 4)), max_size=20),
    st.tuples(st.integers(0, 9), st.integers(0, 9)),
)
def property_others_only_count(changes: list[tuple[int, int]], others: tuple[int, int]) -> None:
    """Keys that are not named belong to the relation, and have no counters."""
    keys, counts = np.array([k for k, _ in changes], np.uint64), np.array([n for _, n in changes], np.int64)
    named, all_ = frequencies(8).add(keys, counts), frequencies(8).add(keys, counts, others)
    assert all_.size == named.size + others[0] - others[1]
    assert np.array_equal(all_.of(keys), named.of(keys))


def test_a_frequent_key_is_found() -> None:
    """Whatever comes with it: what is more than a share of all has a counter."""
    rng = np.random.default_rng(0)
    found = Sketch(9)
    for _ in range(50):
        noise = rng.integers(1, 2**63, 90, np.uint64)
        found = found.add(np.append(noise, np.zeros(11, np.uint64)), np.ones(101, np.int64))
    assert found.of(np.zeros(1, np.uint64))[0] >= 50 * 11 - 50 * 101 / 10 > 0


def test_nothing_is_known_of_nothing() -> None:
    assert Sketch(3).of(np.array([1, 2], np.uint64)).tolist() == [0, 0]
    assert Frequencies(Sketch(1), Sketch(1)).size == 0
    with pytest.raises(ValueError, match="a counter or more"):
        Sketch(0)
