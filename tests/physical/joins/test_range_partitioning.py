"""Ranges of a band join: each pair meets once, and loads are near the least possible under any skew."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from squallpy.base.keys import HOLE, NULL
from squallpy.physical.joins.band_histograms import Band, Histogram, Positions, count_pairs, histogram_of, summarise
from squallpy.physical.joins.cyclic_blocks import find_best_blocks
from squallpy.physical.joins.grid import Grid
from squallpy.physical.joins.mapping import Mapping, Numbers, Side
from squallpy.physical.joins.range_partitioning import RangePartitioning, find_best_ranges, find_steps, matrix_load

MOST = 1.7  # of a joiner's load by what any partitioning needs, at least
DOMAIN, TUPLES = 100_000, 40_000
REALS = [0.0, 0.1, 0.2, 0.30000000000000004, -0.1, 1e300, -1e300, 5e-324, float("inf"), float("-inf"), float("nan")]


def positions(ranks: object, hashes: object = None) -> Positions:
    found = np.array(ranks, np.int64)
    return Positions(np.zeros(len(found), np.uint64) if hashes is None else np.array(hashes, np.uint64), found)


def tickets(count: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 1 << 64, count, np.uint64)


def meetings(ranges: RangePartitioning, r: Positions, s: Positions) -> Numbers:
    """Count the joiners at which each pair meets, and check that one joiner owns each tuple."""
    there = []
    for side, some in ((Side.R, r), (Side.S, s)):
        rows, joiners, owned = ranges.route(side, some, tickets(len(some.ranks), side))
        at = np.zeros((len(some.ranks), 1 + ranges.numbers.max()), np.int64)
        np.add.at(at, (rows, joiners), 1)
        assert at.max(initial=0) <= 1 and (np.bincount(rows[owned], minlength=len(at)) == 1).all()
        there.append(at)
    return np.asarray(there[0] @ there[1].T)


@st.composite
def partitionings(
    draw: st.DrawFn, band: Band, values: st.SearchStrategy[int], is_cyclic: bool = True
) -> RangePartitioning:
    bounds = sorted(draw(st.lists(st.tuples(st.sampled_from([0, 7]), values), max_size=5)))
    shapes, first, grids = draw(st.lists(st.sampled_from([(1, 1), (2, 1), (1, 4)]), min_size=6, max_size=6)), 0, []
    for shape in shapes[: len(bounds) + 1]:
        grids.append(Grid(Mapping(*shape), first))
        first += shape[0] * shape[1]
    home, block = draw(st.integers(0, 1)), draw(st.sampled_from([0, 1, 3, 8])) if is_cyclic else 0
    return RangePartitioning(band, home, () if block else tuple(bounds), tuple(grids), block)


@given(data=st.data(), low=st.integers(-5, 5), width=st.integers(0, 6))
def property_pairs_of_a_band_meet_once(data: st.DataObject, low: int, width: int) -> None:
    band, values = Band(low, low + width), st.one_of(st.integers(-9, 9), st.integers(HOLE - 4, HOLE + 4), st.just(NULL))
    ranges = data.draw(partitionings(band, values))
    ranks, hashes = st.lists(values, min_size=8, max_size=8), st.lists(st.sampled_from([0, 7]), min_size=8, max_size=8)
    r, s = (positions(data.draw(ranks), data.draw(hashes)) for _ in Side)
    met = meetings(ranges, r, s)
    # NB: a key up to the hole stands for the value below it
    x, y = (each.ranks.astype(object) - (each.ranks <= HOLE) for each in (r, s))
    pairs = (x[:, None] - y[None, :] >= low) & (x[:, None] - y[None, :] <= low + width)
    pairs &= (r.hashes[:, None] == s.hashes) & (r.ranks[:, None] != NULL) & (s.ranks[None, :] != NULL)
    assert (met <= 1).all() and (met[pairs.astype(bool)] == 1).all()


@given(data=st.data(), low=st.integers(-3, 3), width=st.integers(0, 6))
def property_pairs_meet_once_while_regions_move(data: st.DataObject, low: int, width: int) -> None:
    """Up to a position by some regions, from there on by others, of the same joiners."""
    band, values = Band(low, low + width), st.integers(-9, 9)
    one, other = (data.draw(partitionings(band, values, is_cyclic=False)) for _ in range(2))
    start = data.draw(st.tuples(st.sampled_from([0, 7]), values))
    other = replace(other, home=one.home)
    assume(one.can_be_followed(other, start))
    ranges = one.followed_by(other, start)
    assert list(ranges.bounds) == sorted(ranges.bounds) and len(ranges.grids) == len(ranges.bounds) + 1
    ranks, hashes = st.lists(values, min_size=8, max_size=8), st.lists(st.sampled_from([0, 7]), min_size=8, max_size=8)
    r, s = (positions(data.draw(ranks), data.draw(hashes)) for _ in Side)
    pairs = (r.ranks[:, None] - s.ranks[None, :] >= low) & (r.ranks[:, None] - s.ranks[None, :] <= low + width)
    pairs &= r.hashes[:, None] == s.hashes
    assert (meetings(ranges, r, s)[pairs] == 1).all()


def test_steps_from_some_regions_to_others() -> None:
    """Each moves an even part; one alone where joiners of a grid are in others' regions, or positions have no order."""
    draw, band = np.random.default_rng(3), Band(-5, 5)
    old, new = (histogram(draw.integers(low, low + 50_000, 9_000)) for low in (0, 30_000))
    before, after = (find_best_ranges(7, band, each, each, home=Side.R)[0] for each in (old, new))
    steps = find_steps(before, after, old, 5)
    assert len(steps) == 5 and steps[-1] == after
    places = positions(draw.integers(0, 50_000, 20_000))
    at = [each.route(Side.R, places, tickets(20_000))[1] for each in (before, *steps)]
    moved = [int((one != two).sum()) for one, two in pairwise(at)]
    assert 0 < max(moved) < 6_000 < sum(moved)
    whole = RangePartitioning(band, 0, (), (Grid(Mapping(2, 2)),))
    assert len(find_steps(whole, after, old, 5)) == 1
    assert find_steps(before, replace(after, home=1), old, 5) == (replace(after, home=1),)
    assert len(find_steps(before, replace(after, bounds=(), block=9), old, 5)) == 1


@given(data=st.data(), low=st.sampled_from([-1.5, -0.1, 0.0]), high=st.sampled_from([0.0, 0.1, 0.3, 1e300]))
def property_pairs_of_doubles_meet_once(data: st.DataObject, low: float, high: float) -> None:
    """By the engine's arithmetic, in which NaN equals itself and is the greatest; written in any of three ways."""
    least, most = np.array([low, high]).view(np.int64).tolist()
    band = Band(least, most, is_real=True)
    some = np.array(REALS)
    words = np.array([each + 0.0 for each in REALS]).view(np.int64)
    ranks = band.rank(words)
    assert (np.argsort(ranks)[-1] == len(REALS) - 1) and (np.diff(some[np.argsort(ranks)][:-1]) > 0).all()
    ranges = data.draw(partitionings(band, st.sampled_from(ranks.tolist())))
    met = meetings(ranges, positions(ranks), positions(ranks))
    x, y = some[:, None], some[None, :]
    with np.errstate(all="ignore"):
        between = ((x >= y + low) & (x <= y + high)) | (np.isnan(x) & np.isnan(y))
        apart = (x - y >= low) & (x - y <= high)
        mirrored = (y <= x - low) & (y >= x - high)
    assert (met <= 1).all() and (met[between | apart | mirrored] == 1).all()


def values(kind: str, count: int, draw: np.random.Generator) -> Numbers:
    """Draw values of a band: evenly, by Zipf's law in their order or not, in clusters, or half of them one."""
    if kind == "clusters":
        return (draw.choice([5_000, 40_000, 41_000, 90_000], count) + draw.normal(0, 300, count)).astype(np.int64)
    if kind == "one":
        return np.where(draw.random(count) < 0.5, 7_777, draw.integers(0, DOMAIN, count))
    if kind.startswith("zipf"):
        z, *shuffled = kind[4:].split()
        weights = 1 / np.arange(1, 10_001) ** float(z)
        found = draw.choice(10_000, count, p=weights / weights.sum())
        return 10 * (np.random.default_rng(1).permutation(10_000)[found] if shuffled else found)
    return draw.integers(0, DOMAIN, count)


def histogram(ranks: Numbers, buckets: int = 1024) -> Histogram:
    return histogram_of(list(summarise(positions(ranks), buckets)))


def least_load(joiners: int, width: int, r: Numbers, s: Numbers) -> float:
    """Bound the load of a joiner from below: an even part of all tuples, and 2 √(its part of all pairs)."""
    ordered = np.sort(r)
    pairs = (np.searchsorted(ordered, s + width, "right") - np.searchsorted(ordered, s - width, "left")).sum()
    return float(max((len(r) + len(s)) / joiners, 2 * np.sqrt(pairs / joiners)))


@pytest.mark.parametrize("kind", ["even", "zipf0.5", "zipf1", "zipf1 shuffled", "zipf1.5 shuffled", "clusters", "one"])
@pytest.mark.parametrize("joiners", [7, 16, 64])
def test_the_load_of_the_best_ranges(kind: str, joiners: int) -> None:
    draw = np.random.default_rng(3)
    for width in (1, 100, 5_000, 30_000):
        for sizes in ((TUPLES, TUPLES), (TUPLES // 10, TUPLES)):
            r, s = (values(kind, size, draw) for size in sizes)
            band, counted = Band(-width, width), (histogram(r), histogram(s))
            ranges, load = find_best_ranges(joiners, band, *counted)
            there = np.zeros(joiners)
            for side, ranks in ((Side.R, r), (Side.S, s)):
                _, at, _ = ranges.route(side, positions(ranks), tickets(len(ranks)))
                there += np.bincount(at, minlength=joiners)
            least, matrix = least_load(joiners, width, r, s), matrix_load(joiners, band, *counted)
            assert load.tuples <= matrix.tuples * 1.001 and there.max() <= 1.05 * load.tuples + 50
            assert there.max() <= MOST * least, (width, sizes, there.max() / least, load)


@pytest.mark.parametrize(("joiners", "width", "rate"), [(7, 1, 400), (16, 50, 10_000), (64, 20, 20_000)])
def test_blocks_spread_all_that_comes(joiners: int, width: int, rate: int) -> None:
    """Values grow by a rate with each batch: in none has a joiner many more tuples than of an even part, nor of all."""
    draw, batches = np.random.default_rng(3), list[tuple[Numbers, Numbers]]()
    for batch in range(12):
        batches.append((batch * rate + draw.integers(0, rate, TUPLES), batch * rate + draw.integers(0, rate, TUPLES)))
    band = Band(-width, width, pair_work=0.1)
    so_far = [histogram(np.concatenate(some)) for some in zip(*batches[:4], strict=True)]
    blocks = find_best_blocks(joiners, band, so_far, [histogram(some) for some in batches[3]])
    assert blocks
    held, even = np.zeros(joiners), 2 * TUPLES / joiners
    for number, (r, s) in enumerate(batches):
        came = np.zeros(joiners)
        for side, ranks in ((Side.R, r), (Side.S, s)):
            _, at, _ = blocks.route(side, positions(ranks), tickets(len(ranks)))
            came += np.bincount(at, minlength=joiners)
        held += came
        assert came.max() <= 1.7 * even
        if number == 3:
            assert 0.9 < blocks.load(*so_far).tuples / held.max() < 1.1
    assert held.max() <= 1.5 * len(batches) * even


def test_no_blocks_of_doubles_and_of_one_value() -> None:
    some, alike = [histogram(np.arange(9))] * 2, [histogram(np.full(9, 7))] * 2
    assert find_best_blocks(4, Band(0, 1, is_real=True), some, some) is None
    assert find_best_blocks(4, Band(-1, 1), alike, alike) is None


@pytest.mark.parametrize("kind", ["even", "zipf1", "clusters", "one"])
def test_the_work_of_the_best_ranges(kind: str) -> None:
    """Where pairs are most of the work, no joiner has more than 1.25 times the least, nor more tuples than a grid's."""
    draw = np.random.default_rng(3)
    for width in (1, 100, 5_000):
        r, s = values(kind, TUPLES, draw), values(kind, TUPLES // 2, draw)
        band, counted = Band(-width, width, pair_work=0.1), (histogram(r), histogram(s))
        ordered = np.sort(r)
        pairs = (np.searchsorted(ordered, s + width, "right") - np.searchsorted(ordered, s - width, "left")).sum()
        for side in Side:
            assert 0.95 < count_pairs(band, side, counted[side], counted[side.other]).sum() / pairs < 1.05
        _, load = find_best_ranges(16, band, *counted)
        even = (len(r) + len(s) + 0.1 * pairs) / 16
        matrix = matrix_load(16, band, *counted)
        assert load.tuples <= matrix.tuples * 1.001 and load.work <= 1.26 * matrix.work and even <= load.work * 1.05


def test_a_summary_keeps_what_is_heavy() -> None:
    ranks = np.concatenate([np.arange(10_000), np.full(3_000, 77)])
    found = dict(summarise(positions(ranks), 100))
    assert found[0, 77, 77] == 3_001 and sum(found.values()) == len(ranks) and len(found) <= 103
