"""Sorted indexes against a sorted list of Python numbers."""

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from squallpy.base.index_order import Heights, Order
from squallpy.base.rings import Payload, Ring
from squallpy.runtime.kernels.payload_columns import integers
from squallpy.runtime.kernels.sorted_index import GREATEST, LEAST, SortedIndex

RINGS = (Ring.EXACT, Ring.COUNT)
NULL = -(2**63)


class Naive:
    """The same, looked through from end to end."""

    def __init__(self, order: Order) -> None:
        self.order = order
        self.held: dict[tuple[int, ...], tuple[int, int]] = {}

    def upsert(self, keys: NDArray[np.int64], numbers: list[tuple[int, int]]) -> None:
        for key, (a, b) in zip(map(tuple, keys.tolist()), numbers, strict=True):
            x, y = self.held.get(key, (0, 0))
            self.held[key] = (x + a, y + b)
            if self.held[key] == (0, 0):
                del self.held[key]

    def value(self, key: tuple[int, ...]) -> float:
        word = key[self.order.columns[self.order.equal]]
        return float(np.int64(word).view(np.float64)) if self.order.real else word

    def between(self, equal: tuple[Any, ...], low: float, high: float) -> list[tuple[int, ...]]:
        """In the index's order."""
        ranged = self.order.columns[self.order.equal]
        mine = [
            key
            for key in self.held
            if tuple(key[c] for c in self.order.columns[: self.order.equal]) == equal
            and key[ranged] != NULL
            and low <= self.value(key) <= high
        ]
        rest = self.order.columns[self.order.equal + 1 :]
        mine.sort(key=lambda key: tuple(key[c] for c in rest))
        mine.sort(key=self.value, reverse=self.order.descending)
        return mine


def batch(
    rng: np.random.Generator, naive: Naive, order: Order, spread: int
) -> tuple[NDArray[np.int64], list[tuple[int, int]]]:
    """Rows of which about half delete what is held."""
    n = int(rng.integers(1, 400))
    keys = rng.integers(0, spread, (n, len(order.columns)))
    ranged = order.columns[order.equal]
    for column in order.columns[: order.equal]:
        keys[:, column] = rng.integers(0, 3, n)
    if order.real:
        keys[:, ranged] = (rng.integers(-spread, spread, n) / 8 + 0.0).view(np.int64)
    keys[rng.random(n) < 0.05, ranged] = NULL
    numbers = [(int(a) << int(rng.integers(0, 70)), int(b)) for a, b in rng.integers(-2, 5, (n, 2))]
    held = list(naive.held.items())
    for i in range(n):
        if held and rng.random() < 0.5:
            key, (a, b) = held[int(rng.integers(len(held)))]
            keys[i], numbers[i] = key, (-a, -b)
    return keys, numbers


def words(numbers: list[tuple[int, int]]) -> NDArray[np.int64]:
    out = np.empty((len(numbers), 3), np.int64)
    for i, (a, b) in enumerate(numbers):
        out[i] = np.frombuffer((a % (1 << 128)).to_bytes(16, "little") + (b % (1 << 64)).to_bytes(8, "little"), "<i8")
    return out


def number(word_row: NDArray[np.int64]) -> tuple[int, int]:
    exact = integers(np.ascontiguousarray(word_row[None, :2]))[0]
    return exact, int(word_row[2])


ORDERS = [
    Order((0,), 0),
    Order((0,), 0, descending=True, extents=True),
    Order((1, 0), 1, extents=True),
    Order((2, 0, 1), 1, descending=True),
    Order((1, 0), 0, real=True),
    Order((0, 2, 1), 1, real=True, descending=True, extents=True),
]


@pytest.mark.parametrize("order", ORDERS, ids=str)
@pytest.mark.parametrize("spread", [6, 60, 5000])
def test_differential_sorted_index_equals_the_naive_one(order: Order, spread: int) -> None:
    rng = np.random.default_rng(spread)
    index, naive = SortedIndex(order, Payload(RINGS)), Naive(order)
    for step in range(24):
        keys, numbers = batch(rng, naive, order, spread)
        if step % 8 == 7:  # all goes
            keys = np.array(list(naive.held), np.int64).reshape(-1, len(order.columns))
            numbers = [(-a, -b) for a, b in naive.held.values()]
        if step == 12:
            index.clear()
            naive.held.clear()
        index.upsert(keys, words(numbers))
        naive.upsert(keys, numbers)
        assert len(index) == len(naive.held)
        check_ranges(rng, index, naive, spread)
        if order.extents:
            check_pieces(index, naive)


def check_ranges(rng: np.random.Generator, index: SortedIndex, naive: Naive, spread: int) -> None:
    order, m = index.order, 12
    low, high = np.sort(rng.integers(-spread, spread, (2, m)), axis=0)
    low[0], high[1] = np.iinfo(np.int64).min, np.iinfo(np.int64).max
    equal = rng.integers(0, 3, (m, order.equal))
    lows, highs = (low / 8 + 0.0, high / 8 + 0.0) if order.real else (low, high)
    if order.real:
        low, high = (index.rank(x.view(np.int64)) for x in (lows, highs))
    expected = [
        naive.between(tuple(e), a, b) for e, a, b in zip(equal.tolist(), lows.tolist(), highs.tolist(), strict=True)
    ]
    rows, places = index.find_entries(equal, low, high)
    found = [[] for _ in range(m)]
    columns = [index.column(c, places) for c in range(len(order.columns))]
    for row, key in zip(rows.tolist(), zip(*columns, strict=True), strict=True):
        found[row].append(tuple(int(word) for word in key))
    assert found == expected
    for place, row in zip(places.tolist(), range(len(places)), strict=True):
        key = tuple(int(column[row]) for column in columns)
        payload = index.entries[place, index.payload_at : index.payload_at + 3]
        assert number(payload) == naive.held[key]
    totals = [tuple(sum(naive.held[key][i] for key in keys) for i in range(2)) for keys in expected]
    assert [number(row) for row in index.sum_ranges(equal, low, high)] == totals
    fronts = [{key for key in naive.held if [key[c] for c in order.columns[: order.equal]] < e} for e in equal.tolist()]
    totals = [tuple(sum(naive.held[key][i] for key in keys) for i in range(2)) for keys in fronts]
    assert [number(row) for row in index.sum_before(equal)] == totals
    for greatest in (False, True):
        ends = index.find_ends(equal, low, high, greatest=greatest)
        ranged = order.columns[order.equal]
        values = [None if not keys else (max if greatest else min)(keys, key=naive.value)[ranged] for keys in expected]
        got = [None if place < 0 else int(index.column(ranged, np.array([place]))[0]) for place in ends.tolist()]
        assert got == values


def check_pieces(index: SortedIndex, naive: Naive) -> None:
    """Each piece's extents are those of the prefix sums of the records below it."""
    order = index.order
    everything = list(naive.held)
    ranged = order.columns[order.equal]

    def stored(key: tuple[int, ...]) -> tuple[int, ...]:
        value = int(index.rank(np.array([key[ranged]]))[0])
        equal = tuple(key[c] for c in order.columns[: order.equal])
        rest = tuple(key[c] for c in order.columns[order.equal + 1 :])
        return (*equal, ~value if order.descending else value, *rest)

    everything.sort(key=stored)
    prefix, total = {}, (0, 0)
    for key in everything:
        total = (total[0] + naive.held[key][0], total[1] + naive.held[key][1])
        prefix[key] = total
    pieces = index.list_children(None, np.zeros((1, index.payload.width), np.int64))
    while len(pieces.places) and not index.are_records(pieces.places):
        firsts = index.first_records(pieces.places)
        keys = list(zip(*(index.column(c, firsts).tolist() for c in range(len(order.columns))), strict=True))
        starts = [everything.index(key) for key in keys] + [len(everything)]
        for i, (a, b) in enumerate(pairwise(starts)):
            inside = [prefix[key] for key in everything[a:b]]
            low, high = number(pieces.least[i]), number(pieces.most[i])
            for lane in range(2):
                assert (low[lane], high[lane]) == (min(p[lane] for p in inside), max(p[lane] for p in inside))
        pieces = index.list_children(pieces.places, pieces.before)
    keys = list(zip(*(index.column(c, pieces.places).tolist() for c in range(len(order.columns))), strict=True))
    assert keys == everything
    assert [number(row) for row in pieces.least] == [prefix[key] for key in everything]


def test_differential_deep_trees_equal_sorted_arrays() -> None:
    rng = np.random.default_rng(7)
    index, held = SortedIndex(Order((0,), 0, extents=True), Payload((Ring.COUNT,))), np.zeros(60_000, np.int64)
    none = np.empty((50, 0), np.int64)
    for step in range(12):
        keys = rng.permutation(len(held))[: 20_000 if step < 6 else 40_000]
        change = rng.integers(-2, 3, len(keys)) if step < 6 else -held[keys]
        index.upsert(keys[:, None], change[:, None])
        held[keys] += change
        assert len(index) == np.count_nonzero(held)
        low, high = np.sort(rng.integers(0, len(held), (2, 50)), axis=0)
        ends = np.append(0, np.cumsum(held))
        assert index.sum_ranges(none, low, high)[:, 0].tolist() == (ends[high + 1] - ends[low]).tolist()
        _, places = index.find_entries(none[:1], np.array([LEAST]), np.array([GREATEST]))
        assert index.column(0, places).tolist() == np.flatnonzero(held).tolist()
        if len(index):
            assert (
                index.list_children(None, np.zeros((1, index.payload.width), np.int64)).least.min()
                == ends[1:][held != 0].min()
            )


@pytest.mark.parametrize(
    "heights", [Heights(great=True), Heights(great=False), Heights(great=False, real=True)], ids=str
)
def test_differential_heights_equal_those_of_a_list(heights: Heights) -> None:
    rng = np.random.default_rng(3)
    index, held = SortedIndex(Order((0, 1, 2), 1, heights=heights), Payload((Ring.COUNT,))), {}
    for step in range(30):
        spread, n = (8, 60) if step < 12 else (3000, 1500)
        came: dict[tuple[int, int], float] = {
            (int(g), int(x)): int(v) for g, x, v in rng.integers(0, (3, spread, spread // 2), (n, 3))
        }
        ends = (NULL, 0.0, -2.5, np.inf, -np.inf, np.nan) if heights.real else (NULL, NULL + 1, GREATEST, 0, 7, 7)
        for at in list(came)[::5]:
            came[at] = ends[int(rng.integers(len(ends)))]
        gone = [at for at in held if at in came or rng.random() < (0.9 if step % 10 == 9 else 0.3)]
        rows = [(*at, held.pop(at), -1) for at in gone] + [(*at, v, 1) for at, v in came.items()]
        held |= came
        table = np.array([(g, x, coded(v, heights), c) for g, x, v, c in rows], np.int64)
        index.upsert(np.ascontiguousarray(table[:, :3]), np.ascontiguousarray(table[:, 3:]))
        points = sorted((g, x, int(index.height(np.array([coded(v, heights)]))[0])) for (g, x), v in held.items())
        equal, (low, high) = rng.integers(0, 4, (20, 1)), np.sort(rng.integers(-1, spread + 1, (2, 20)), axis=0)
        places = index.find_highest(equal, low, high)
        for (g,), a, b, place in zip(equal.tolist(), low.tolist(), high.tolist(), places.tolist(), strict=True):
            inside = [(h, -x) for k, x, h in points if k == g and a <= x <= b]
            found = [int(index.column(c, np.array([place]))[0]) for c in (1, 2)] if place >= 0 else None
            assert found == (None if not inside else [-max(inside)[1], coded(held[g, -max(inside)[1]], heights)])
        for back in (False, True):
            froms, tops = np.sort(rng.integers(-spread, spread, (2, 20)), axis=0)
            froms[0], tops[0], tops[1] = NULL, GREATEST, NULL
            for steps in (1, GREATEST):
                starts, places = index.find_ascent(equal, low, froms, tops, back=back, steps=steps)
                pairs = [(int(row), int(x)) for row, x in zip(starts, index.column(1, places), strict=True)]
                wanted = []
                for row, ((g,), a, start, top) in enumerate(
                    zip(equal.tolist(), low.tolist(), froms.tolist(), tops.tolist(), strict=True)
                ):
                    beside = [(x, h) for k, x, h in points if k == g and (x < a if back else x > a)]
                    mine, height = [], start
                    for x, h in reversed(beside) if back else beside:
                        if h >= height:
                            mine, height = [*mine, (row, x, h)], h if back else h + 1
                    wanted += [(row, x) for row, x, h in mine if h <= top][:steps]
                assert pairs == wanted


def coded(value: int, heights: Heights) -> int:
    """As a key has it."""
    return int(np.float64(value).view(np.int64)) if heights.real and value != NULL else value


def test_bounds_that_exclude_each_other_find_nothing() -> None:
    index = SortedIndex(Order((0,), 0), Payload((Ring.COUNT,)))
    index.upsert(np.array([[1], [2]]), np.ones((2, 1), np.int64))
    none, low, high = np.empty((1, 0), np.int64), np.array([2]), np.array([1])
    assert index.sum_ranges(none, low, high).tolist() == [[0]]
    assert [len(part) for part in index.find_entries(none, low, high)] == [0, 0]
    assert index.find_ends(none, low, high, greatest=True).tolist() == [-1]
    assert index.sum_ranges(none, np.array([LEAST]), np.array([GREATEST])).tolist() == [[2]]
