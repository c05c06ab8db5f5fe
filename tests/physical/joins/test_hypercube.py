"""Hypercubes of joiners: the least load, and that each combination of tuples meets at one joiner."""

from collections import Counter
from collections.abc import Sequence
from itertools import product
from math import prod
from random import Random

import numpy as np
from hypothesis import assume, given
from hypothesis import strategies as st

from squallpy.physical.joins.heavy_cells import Counted, HeavyCell, find_heavy_cells, route_to_cells
from squallpy.physical.joins.hypercube import ROUNDING, Hypercube, arrange, find_best_hypercube, least_load
from squallpy.physical.joins.mapping import Tickets

SIZES = st.lists(st.integers(1, 10**7), min_size=1, max_size=4)
BITS = st.integers(0, 6)
SHARED = ((100.0, (0,)), (900.0, (0, 1)), (400.0, (1,)), (50.0, (2,)))  # two equalities and a relation without one


def golden_shares() -> None:
    """Three equal relations on 8 joiners: each cut in two, instead of two copied everywhere."""
    equal = [(1000.0, (i,)) for i in range(3)]
    assert find_best_hypercube(8, 3, equal).parts == (2, 2, 2)
    assert find_best_hypercube(8, 3, equal).load(equal) == round(least_load(8, [1000] * 3)) == 1500
    assert find_best_hypercube(64, 2, [(1.0, (0,)), (64.0, (1,))]).parts == (1, 64)  # the paper's Figure 2
    assert find_best_hypercube(16, 3, [(0.0, (i,)) for i in range(3)]).parts == (4, 2, 2)  # of unknown sizes


@given(SIZES, BITS)
def property_load_is_near_that_of_any_shares(sizes: list[int], bits: int) -> None:
    """Powers of two cost at most 2/(e ln 2) times the best numbers from 1 on, however many relations there are."""
    inputs = [(float(size), (i,)) for i, size in enumerate(sizes)]
    load, least = find_best_hypercube(1 << bits, len(sizes), inputs).load(inputs), least_load(1 << bits, sizes)
    assert least * (1 - 1e-9) <= load <= least * ROUNDING


@given(st.lists(st.integers(1, 10**6), min_size=4, max_size=4), BITS)
def oracle_best_parts(sizes: list[int], bits: int) -> None:
    """No other parts have less load, also where relations share dimensions."""
    inputs = [(float(size), on) for size, (_, on) in zip(sizes, SHARED, strict=True)]
    parts = [each for each in product([1 << bit for bit in range(bits + 1)], repeat=3) if prod(each) == 1 << bits]
    least = min(arrange(each).load(inputs) for each in parts)
    assert find_best_hypercube(1 << bits, 3, inputs).load(inputs) <= least * (1 + 1e-9)


@given(st.lists(st.integers(0, 2), min_size=3, max_size=3), st.integers(0, 2), st.integers(0, 2), st.randoms())
def property_each_combination_meets_once(bits: list[int], giver: int, taker: int, random: Random) -> None:
    """Before and after a bit has moved, which changes no other coordinate of a joiner."""
    cube = arrange([1 << bit for bit in bits])
    assume(giver != taker and bits[giver])
    moved = cube.move_bit(giver, taker)
    joiners = np.arange(cube.joiners)
    for other in {0, 1, 2} - {giver, taker}:
        assert (moved.coordinate_of(other, joiners) == cube.coordinate_of(other, joiners)).all()
    for each in (cube, moved):
        met = np.zeros(each.joiners, np.int64)
        tickets = np.array([random.getrandbits(64) for _ in range(6)], np.uint64)
        ends = [_joiners(each, (), "", {dimension: tickets}, tickets) for dimension in range(3)]
        for r, s, t in product(*ends):
            (at,) = {*r} & {*s} & {*t}
            met[at] += 1
        assert met.sum() == 6**3


def _joiners(
    cube: Hypercube, heavy: Sequence[HeavyCell], name: str, hashed: dict[int, Tickets], own: Tickets
) -> list[list[int]]:
    """List the joiners of each tuple."""
    found: list[list[int]] = [[] for _ in own]
    for positions, firsts, copies in route_to_cells(cube, heavy, name, hashed, own):
        for position, first in zip(positions.tolist(), firsts.tolist(), strict=True):
            assert not found[position]
            found[position] = (first + copies).tolist()
    return found


Rows = dict[str, list[tuple[int, list[int]]]]  # of relations, each with its ticket and keys
CHAIN = {"r": (0,), "s": (0, 1), "t": (1,), "u": (2,)}  # R(a) ⋈ S(a, b) ⋈ T(b), and U by a theta join


@given(st.lists(st.integers(0, 2), min_size=3, max_size=3), st.randoms(), st.sampled_from([0.0, 0.1, 0.5]))
def property_each_combination_of_heavy_keys_meets_once(bits: list[int], random: Random, limit: float) -> None:
    cube, keys = arrange([1 << bit for bit in bits]), [random.getrandbits(64) for _ in range(3)]
    rows = {
        name: [(random.getrandbits(64), [random.choice(keys) for _ in on]) for _ in range(6)]
        for name, on in CHAIN.items()
    }
    heavy = [cell for dimension in (0, 1) for cell in _heavy(cube, dimension, rows, limit)]
    assert not any(len({bit for _, of in cell.bits for bit in of}) < bits[cell.dimension] for cell in heavy)
    places = {name: _cells(cube, heavy, name, found) for name, found in rows.items()}
    for r, s, t, u in product(*(range(6) for _ in CHAIN)):
        if rows["r"][r][1][0] == rows["s"][s][1][0] and rows["s"][s][1][1] == rows["t"][t][1][0]:
            met = [{*places[name][at]} for name, at in zip("rstu", (r, s, t, u), strict=True)]
            assert len(set.intersection(*met)) == 1


def golden_heavy_cells() -> None:
    """A key of 10,000 and 10 tuples on 8 parts: cut in 8, and copied to all 8; both frequent: cut in 4 and 2."""
    cube, cuts = arrange([8, 1]), {"r": 1.0, "s": 1.0}
    for of_r, of_s, bits in ((10_000, 10, ((2, 1, 0), ())), (4_000, 2_000, ((2, 1), (0,)))):
        (found,) = find_heavy_cells(cube, 0, [Counted("r", {7: of_r, 8: 99}), Counted("s", {7: of_s})], cuts, 500.0)
        assert (found.key, tuple(of for _, of in found.bits)) == (7, bits)
    assert not find_heavy_cells(cube, 1, [Counted("r", {7: 10_000})], cuts, 500.0)  # all at one joiner


def _heavy(cube: Hypercube, dimension: int, rows: Rows, limit: float) -> list[HeavyCell]:
    counted = [
        Counted(name, Counter(keys[on.index(dimension)] for _, keys in rows[name]))
        for name, on in CHAIN.items()
        if dimension in on
    ]
    return [*find_heavy_cells(cube, dimension, counted, dict.fromkeys(CHAIN, 1.0), limit * 12)]


def _cells(cube: Hypercube, heavy: list[HeavyCell], name: str, rows: list[tuple[int, list[int]]]) -> list[list[int]]:
    """List the joiners of each tuple."""
    own = np.array([ticket for ticket, _ in rows], np.uint64)
    hashed = {dimension: np.array([keys[i] for _, keys in rows], np.uint64) for i, dimension in enumerate(CHAIN[name])}
    return _joiners(cube, heavy, name, hashed, own)
