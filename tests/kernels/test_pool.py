"""Pools against a dictionary of Python numbers."""

from collections.abc import Callable
from fractions import Fraction
from itertools import pairwise, product
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from squallpy.base.index_order import Order
from squallpy.base.keys import NULL
from squallpy.base.rings import Payload, Ring
from squallpy.runtime.kernels.payload_columns import fill_reals, integers, pack, unpack
from squallpy.runtime.kernels.pool import Pool
from squallpy.runtime.kernels.row_list import RowList
from squallpy.runtime.kernels.sorted_pool import SortedPool
from squallpy.runtime.kernels.view_container import HASHES
from squallpy.runtime.state.pool_storage import MappedStorage

DOMAIN = (-1, 0, 1, 2**40)
NARROW = (-1, 0, NULL, 2**31 - 1)  # which words of 32 bits hold
EDGES = (NULL, 1 - 2**31, 2**31 - 1, 7), (-(2**31), 2**31, 2**40 - 1, 1 - 2**40, NULL + 1, 2**63 - 1)
VALUES = {
    Ring.COUNT: st.integers(-3, 3) | st.sampled_from([2**63 - 1, -(2**63)]),
    Ring.EXACT: st.integers(-3, 3) | st.integers(-(2**127), 2**127 - 1),
    Ring.REAL: st.integers(-3, 3).map(lambda n: n / 4),
}
COUNTED = Payload((Ring.COUNT,))
Key = tuple[int, ...]
Batch = list[tuple[Key, tuple[Any, ...]]]
Model = dict[Key, tuple[Any, ...]]
History = tuple[int, tuple[Ring, ...], tuple[Key, ...], list[Batch | None]]
MODULUS = {Ring.COUNT: 2**64, Ring.EXACT: 2**128}


@st.composite
def histories(draw: st.DrawFn, domain: tuple[int, ...] = DOMAIN) -> History:
    """(key width, rings, slices, batches), a batch being a list of (key, payload) or None to clear."""
    width = draw(st.integers(0, 4))
    rings = tuple(draw(st.lists(st.sampled_from(list(VALUES)), min_size=1, max_size=3)))
    columns = st.lists(st.integers(0, width - 1), unique=True).map(tuple) if width else st.nothing()
    slices = tuple(draw(st.lists(columns, max_size=2))) if width else ()
    row = st.tuples(st.tuples(*[st.sampled_from(domain)] * width), st.tuples(*[VALUES[ring] for ring in rings]))
    batches = draw(st.lists(st.none() | st.lists(row, max_size=12), min_size=1, max_size=6))
    undo = [batch and [(key, tuple(-value for value in values)) for key, values in batch] for batch in batches]
    return width, rings, slices, batches + draw(st.sampled_from([[], undo]))


def matrix(rows: list[tuple[int, ...]], width: int) -> NDArray[np.int64]:
    return np.array(rows, np.int64).reshape(len(rows), width)


def payloads(rows: list[tuple[float, ...]], rings: tuple[Ring, ...]) -> NDArray[np.int64]:
    parts = [
        pack(np.array([row[lane] for row in rows], np.float64 if ring is Ring.REAL else object), ring)
        for lane, ring in enumerate(rings)
    ]
    return np.ascontiguousarray(np.concatenate(parts, axis=1))


def contents(pool: Any) -> Model:
    """What a pool holds, as a dictionary of exact numbers."""
    keys, words = pool.rows()
    columns = []
    for ring, offset in zip(pool.payload.rings, pool.payload.offsets, strict=True):
        lane = np.ascontiguousarray(words[:, offset : offset + ring.words])
        if ring is Ring.COUNT:
            columns.append([n % 2**64 for n in lane[:, 0].tolist()])
        elif ring is Ring.EXACT:
            columns.append([n % 2**128 for n in integers(lane)])
        else:
            columns.append([Fraction(hi) + Fraction(lo) for hi, lo in lane[:, :2].copy().view(np.float64).tolist()])
    return dict(zip(map(tuple, keys.tolist()), zip(*columns, strict=True), strict=True))


def add(model: Model, batch: Batch, rings: tuple[Ring, ...]) -> None:
    for key, values in batch:
        old = model.get(key, (0,) * len(rings))
        new = tuple(
            Fraction(a) + Fraction(b) if ring is Ring.REAL else (a + b) % MODULUS[ring]
            for a, b, ring in zip(old, values, rings, strict=True)
        )
        if any(new):
            model[key] = new
        else:
            model.pop(key, None)


def go_on(pool: Any, model: Model, batch: Batch | None) -> None:
    """A batch of a history, to a pool and to a dictionary."""
    if batch is None:
        pool.clear()
        model.clear()
    else:
        keys, values = ([row[part] for row in batch] for part in (0, 1))
        pool.upsert(matrix(keys, pool.key_width), payloads(values, pool.payload.rings))
        add(model, batch, pool.payload.rings)


def made_pool(
    width: int, rings: tuple[Ring, ...], slices: tuple[Key, ...], index: str, narrow: bool, small: bool = False
) -> Pool:
    by, sliced = (slices[:1], slices[1:]) if index == "group" else ((), slices)
    adaptive = index == "adaptive"
    return Pool(width, Payload(rings), sliced, group=(*by, ())[0], adaptive=adaptive, narrow=narrow, small=small)


@settings(max_examples=200, deadline=None)
@given(histories(), st.sampled_from(["records", "group", "adaptive"]), st.booleans(), st.booleans())
def property_pool_equals_dictionary(history: History, index: str, narrow: bool, small: bool) -> None:
    width, rings, slices, batches = history
    pool, model = made_pool(width, rings, slices, index, narrow, small), {}
    for batch in batches:
        go_on(pool, model, batch)
        assert len(pool) == len(model)
        assert contents(pool) == model
        check_lookups(pool)


@settings(max_examples=200, deadline=None)
@given(histories(), st.sampled_from(["records", "group", "adaptive"]), st.booleans(), st.booleans())
def property_groups_are_noted_once_with_what_they_had(history: History, index: str, narrow: bool, small: bool) -> None:
    """Batch after batch in one pool of groups, which is cleared in between."""
    width, rings, slices, batches = history
    pool, touched, model = made_pool(width, rings, slices, index, narrow, small), Pool(width, Payload(rings)), Model()
    for batch in batches:
        keys, done = matrix([key for key, _ in batch or ()], width), 0
        while (done := touched.note_groups(pool, keys, done)) < len(keys):
            touched.make_room()
        touched.tend()
        nothing = (0,) * len(rings)
        assert contents(touched) == {key: model.get(key, nothing) for key, _ in batch or ()}
        assert np.array_equal(np.sort(touched.probe(touched.keys.copy())), np.arange(len(touched)))
        touched.clear()
        go_on(pool, model, batch)


@settings(max_examples=100, deadline=None)
@given(histories(NARROW), histories(DOMAIN), st.sampled_from(["records", "group", "adaptive"]))
def property_keys_are_widened_once(history: History, later: History, index: str) -> None:
    """Keys that words of 32 bits hold, with NULL among them, then others."""
    width, rings, slices, batches = history
    pool, model = made_pool(width, rings, slices, index, narrow=True), {}
    for batch in batches:
        go_on(pool, model, batch)
        assert contents(pool) == model
        check_lookups(pool, NARROW)
        check_lookups(pool, (NULL, -(2**31), 2**32 - 1, 2**31))  # those that have the same 32 bits
        assert pool.usage["keys"] == 4 * len(pool) * width
    for batch in later[3] if later[:2] == history[:2] else [[((2**40,) * width, (1,) * len(rings))]]:
        go_on(pool, model, batch)
        assert contents(pool) == model
        check_lookups(pool)


@pytest.mark.parametrize("word", [*EDGES[0], *EDGES[1]])
@pytest.mark.parametrize("way", ["upsert", "exchange"])
def oracle_the_words_that_32_bits_hold(word: int, way: str) -> None:
    """In the middle of rows, of which those before are there, and none is there twice."""
    pool, words = Pool(2, COUNTED, ((0,), (1,)), narrow=True, adaptive=True), np.ones((300, 1), np.int64)
    keys = np.column_stack([np.arange(300) // 3, np.arange(300)])
    keys[150, 1] = word
    if way == "upsert":
        pool.upsert(keys, words)
    else:
        pool.exchange(np.empty(0, np.int64), keys, words)
    assert np.array_equal(pool.keys, keys) and np.array_equal(pool.keys_of(np.array([150, 3])), keys[[150, 3]])
    assert pool.usage["keys"] == (4 if word in EDGES[0] else 8) * keys.size
    assert np.array_equal(pool.probe(keys), np.arange(300))
    assert pool.slice(1, keys[150:151, 1:])[1].tolist() == [*([7] if word == 7 else []), 150]
    assert np.array_equal(np.concatenate(list(pool.pieces(70))[:5]), keys)


def oracle_others_see_that_keys_are_widened(tmp_path: Path) -> None:
    """Two processes that map a pool, one after the other; then it is opened again."""
    storage = MappedStorage(tmp_path)
    one, other = (Pool(2, COUNTED, ((0,),), storage, "p", narrow=True, adaptive=True) for _ in range(2))
    keys = np.array([[7, 1], [7, NULL], [8, 2]])
    one.upsert(keys, np.ones((3, 1), np.int64))
    assert np.array_equal(other.keys, keys) and other.probe(keys).tolist() == [0, 1, 2]
    more = np.concatenate([keys, [[2**40, 3]]])
    one.upsert(more[3:], np.ones((1, 1), np.int64))
    assert other.probe(more).tolist() == [0, 1, 2, 3] and other.usage["keys"] == 64
    more = np.concatenate([more, [[9, -(2**31)]]])
    other.upsert(more[4:], np.ones((1, 1), np.int64))
    again = Pool(2, COUNTED, ((0,),), storage, "p", narrow=True, adaptive=True)
    for pool in (one, again):
        assert np.array_equal(pool.keys, more) and pool.probe(more).tolist() == [0, 1, 2, 3, 4]


SMALL = {Ring.COUNT: [2**31 - 1, -(2**31), 5], Ring.EXACT: [2**63 - 1, -(2**63), -5]}
LARGE = {Ring.COUNT: [2**31, -(2**31) - 1, 2**62], Ring.EXACT: [2**63, -(2**63) - 1, 2**126]}
LAYOUTS = [(Ring.COUNT,), (Ring.COUNT, Ring.EXACT), (Ring.COUNT,) * 3, (Ring.EXACT, Ring.COUNT, Ring.EXACT)]


@pytest.mark.parametrize("rings", LAYOUTS)
@pytest.mark.parametrize("index", ["records", "adaptive"])
@pytest.mark.parametrize("lane", range(3))
@pytest.mark.parametrize("way", ["new", "added", "exchanged"])
def oracle_payloads_are_widened_once(rings: tuple[Ring, ...], index: str, lane: int, way: str) -> None:
    """At each word that narrow ones do not hold, in the middle of rows: as it comes, or as it is added up."""
    if lane >= len(rings):
        return
    for large in LARGE[rings[lane]]:
        pool, model = made_pool(2, rings, ((0,),), index, narrow=True, small=True), Model()
        rows: Batch = [((i // 3, i), tuple(SMALL[ring][i % 3] for ring in rings)) for i in range(300)]
        go_on(pool, model, rows)
        assert contents(pool) == model and pool.usage["payloads"] == 4 * 300 * pool.payload.width
        check_lookups(pool)
        assert np.array_equal(pool.words_of(np.array([7, 2])), pool.get(matrix([(2, 7), (0, 2)], 2)))
        assert np.array_equal(np.concatenate(list(pool.pieces(70))[5:]), pool.words)
        key, old = ((50, 150), rows[150][1][lane]) if way == "added" else ((50, 999), 0)
        change = tuple(large - old if i == lane else 1 for i in range(len(rings)))
        given: Batch = [((9, 1), (1,) * len(rings)), (key, change), ((9, 2), (2,) * len(rings))]
        if way == "exchanged":
            keys, words = matrix([each for each, _ in given], 2), payloads([values for _, values in given], rings)
            pool.exchange(np.empty(0, np.int64), keys, words)
            add(model, given, rings)
        else:
            go_on(pool, model, given)
        assert contents(pool) == model and pool.usage["payloads"] == 8 * len(pool) * pool.payload.width
        go_on(pool, model, [(each, tuple(-value for value in values)) for each, values in rows[::2]])
        assert contents(pool) == model
        check_lookups(pool)


@pytest.mark.parametrize("index", ["records", "adaptive"])
def property_narrow_payloads_go_and_move(index: str) -> None:
    """Records go, and the last ones move into their places."""
    random, model = np.random.default_rng(6), Model()
    pool = made_pool(2, (Ring.COUNT, Ring.EXACT), ((0,),), index, narrow=True, small=True)
    for _ in range(30):
        keys = random.integers(0, 12, (50, 2)).tolist()
        counts = random.integers(-1, 2, 50).tolist()
        go_on(pool, model, [(tuple(key), (n, 10 * n)) for key, n in zip(keys, counts, strict=True)])
        assert contents(pool) == model and pool.usage["payloads"] == 12 * len(pool)
    check_lookups(pool)


def oracle_others_see_that_payloads_are_widened(tmp_path: Path) -> None:
    """Two processes that map a pool, one after the other; then it is opened again."""
    storage, kind = MappedStorage(tmp_path), Payload((Ring.COUNT, Ring.EXACT))
    one, other = (Pool(1, kind, (), storage, "p", narrow=True, small=True) for _ in range(2))
    keys, words = np.array([[7], [8]]), np.array([[1, -5, -1], [-2, 2**62, 0]])
    one.upsert(keys, words)
    assert np.array_equal(other.words, words) and other.usage["payloads"] == 24
    one.upsert(keys[1:], np.array([[0, 2**62, 0]]))
    words[1] = -2, -(2**63), 0
    again = Pool(1, kind, (), storage, "p", narrow=True, small=True)
    for pool in (one, other, again):
        assert np.array_equal(pool.get(keys), words) and pool.usage["payloads"] == 48


@pytest.mark.parametrize("adaptive", [False, True])
@pytest.mark.parametrize("narrow", [False, True])
def property_exchanged_records_equal_a_dictionary(adaptive: bool, narrow: bool) -> None:
    """Records that come into the places of others, fewer, as many and more, with slices and while tables grow."""
    random, model = np.random.default_rng(5), dict[tuple[int, int], int]()
    pool = Pool(2, Payload((Ring.COUNT,)), ((0,), (1,)), adaptive=adaptive, narrow=narrow)
    sizes = (0, 0), (0, 1), (1, 0), (0, 700), (300, 300), (350, 9), (0, 9000), (8000, 90)
    for step, (goes, comes) in enumerate(sizes):
        gone = random.permutation(len(pool))[:goes]
        for key in pool.keys[gone].tolist():
            del model[tuple(key)]
        drawn = np.unique(random.integers(0, [9, 90_000], (comes, 2)), axis=0)
        new = np.array([key for key in drawn.tolist() if tuple(key) not in model], np.int64).reshape(-1, 2)
        pool.exchange(gone, new, np.full((len(new), 1), step + 1))
        for a, b in new.tolist():
            model[a, b] = step + 1
        assert contents(pool) == {key: (value,) for key, value in model.items()}
        assert np.array_equal(pool.probe(pool.keys.copy()), pool.scan())
        for index in (0, 1):
            rows, slots = pool.slice(index, bound := np.unique(pool.keys[:, index]).reshape(-1, 1))
            assert np.array_equal(pool.keys[slots, index], bound[rows, 0])
            assert np.array_equal(np.sort(slots), pool.scan()) and np.array_equal(
                np.lexsort((slots, rows)), np.arange(len(rows))
            )


@settings(max_examples=100, deadline=None)
@given(histories(), st.randoms(use_true_random=False))
def property_ordered_pool_equals_dictionary(history: History, random: Random) -> None:
    """In one sorted index or in two, of any columns."""
    width, rings, _, batches = history
    if not width:
        return
    orders = tuple(Order(tuple(random.sample(range(width), width)), random.randrange(width)) for _ in range(2))
    pool, model = SortedPool(width, Payload(rings), orders[: random.randint(1, 2)]), {}
    for batch in batches:
        go_on(pool, model, batch)
        assert len(pool) == len(model) == pool.usage["records"]
        assert contents(pool) == model
        arranged = pool.keys[:, pool.sorted[0].order.columns].tolist()
        assert arranged == sorted(arranged) and np.array_equal(pool.words, pool.rows()[1])
        assert all(len(index) == len(model) for index in pool.sorted)


@settings(max_examples=100, deadline=None)
@given(histories())
def property_listed_pool_has_what_came(history: History) -> None:
    """Row by row; added up it is what another has."""
    width, rings, _, batches = history
    pool, model, came = RowList(width, Payload(rings)), {}, []
    for batch in batches:
        go_on(pool, model, batch)
        came = [] if batch is None else came + batch
        assert np.array_equal(pool.keys, matrix([key for key, _ in came], width))
        assert np.array_equal(pool.words, payloads([values for _, values in came], rings))
        added = Pool(width, Payload(rings))
        added.upsert(*pool.rows())
        assert contents(added) == model and len(pool) == len(came) == pool.usage["records"]


def check_lookups(pool: Pool, domain: tuple[int, ...] = DOMAIN) -> None:
    """Probes and slices agree with the pool's own rows."""
    keys = [tuple(key) for key in pool.keys.tolist()]
    assert pool.scan().tolist() == list(range(len(keys)))
    wanted = list(product(domain, repeat=pool.key_width))[:64]
    slots = pool.probe(matrix(wanted, pool.key_width)).tolist()
    assert slots == [keys.index(key) if key in keys else -1 for key in wanted]
    words = [pool.words[slot].tolist() if slot >= 0 else [0] * pool.payload.width for slot in slots]
    assert pool.get(matrix(wanted, pool.key_width)).tolist() == words
    for index, columns in ((-1, pool.group), *enumerate(pool.slices)):
        bound = list(product(domain, repeat=len(columns)))[:64]
        rows, slots = pool.slice(index, matrix(bound, len(columns)))
        assert list(zip(rows.tolist(), slots.tolist(), strict=True)) == [
            (row, slot)
            for row, values in enumerate(bound)
            for slot, key in enumerate(keys)
            if tuple(key[column] for column in columns) == values
        ]


@pytest.mark.parametrize("adaptive", [False, True])
@pytest.mark.parametrize("together", [False, True])
def property_growth_keeps_everything(adaptive: bool, together: bool) -> None:
    """Hundreds of thousands of keys in and out, against numpy, with a slice of few large and many small groups.

    Records of a small group stand together or not.
    """
    random = np.random.default_rng(1)
    pool = Pool(2, Payload((Ring.COUNT,)), ((1,), (0,)), adaptive=adaptive, narrow=together)
    small = random.integers(0, 50_000, 200_000)
    keys = np.stack([random.integers(0, 7, 200_000), np.sort(small) if together else small], axis=1)
    for start in range(0, len(keys), 9_999):
        part = keys[start : start + 9_999]
        pool.upsert(part, np.ones((len(part), 1), np.int64))
    distinct, counts = np.unique(keys, axis=0, return_counts=True)
    assert len(pool) == len(distinct)
    slots = pool.probe(distinct)
    assert np.array_equal(pool.keys[slots], distinct) and np.array_equal(pool.words[slots, 0], counts)

    gone = random.permutation(len(distinct))[: len(distinct) * 9 // 10]
    pool.upsert(distinct[gone], -counts[gone].reshape(-1, 1))
    left = np.delete(distinct, gone, axis=0)
    assert len(pool) == len(left) and (pool.probe(distinct[gone]) == -1).all() and (pool.probe(left) >= 0).all()
    for index, column in ((0, 1), (1, 0)):
        bound = np.unique(left[:, column]).reshape(-1, 1)
        rows, slots = pool.slice(index, bound)
        assert len(slots) == len(left) == len(np.unique(slots))
        assert np.array_equal(pool.keys[slots, column], bound[rows, 0])
        assert np.array_equal(np.lexsort((slots, rows)), np.arange(len(rows)))

    pool.clear()
    assert len(pool) == 0 and (pool.probe(left) == -1).all() and len(pool.slice(1, bound)[0]) == 0
    pool.upsert(left, np.ones((len(left), 1), np.int64))
    assert np.array_equal(pool.keys, left)


@pytest.mark.parametrize(("group", "adaptive"), [((), False), ((1,), False), ((), True)])
def property_crowded_tables_take_turns(group: tuple[int, ...], adaptive: bool) -> None:
    """Keys that come and go within a chunk, in tables as full as they get, against numpy."""
    random = np.random.default_rng(3)
    pool = Pool(2, Payload((Ring.COUNT,)), ((1,), (0, 1)), group=group, adaptive=adaptive, narrow=True)
    totals = np.zeros(2400, np.int64)
    for _ in range(60):
        picked, signs = random.integers(0, 2400, 3000), random.integers(-1, 2, (3000, 1))
        pool.upsert(np.stack([picked, picked % 600], axis=1), signs)
        np.add.at(totals, picked, signs[:, 0])
        there = np.flatnonzero(totals)
        assert np.array_equal(np.sort(pool.keys[:, 0]), there)
        assert np.array_equal(pool.words[:, 0], totals[pool.keys[:, 0]])
        groups = np.arange(600).reshape(-1, 1)
        for index, bound in enumerate((groups, np.stack([there, there % 600], axis=1))):
            rows, slots = pool.slice(index, np.ascontiguousarray(bound))
            assert np.array_equal(np.sort(pool.keys[slots, 0]), there)
            assert np.array_equal(pool.keys[slots][:, list(pool.slices[index])], bound[rows])


def property_runs_are_split_and_joined() -> None:
    """Small groups whose records come together, of which parts go and come again, against numpy; one entry a run."""
    random, held = np.random.default_rng(7), np.empty((0, 2), np.int64)
    pool, group = Pool(2, COUNTED, ((0,), (1,)), adaptive=True, narrow=True), 0
    for step in range(60):
        new = np.repeat(np.arange(group, group + 100), random.integers(1, 8, 100))
        new = np.stack([new, np.arange(len(new)) % 8 + 8 * (step % 3)], axis=1)
        gone = random.permutation(len(held))[: random.integers(0, len(held) // 3 + 1)]
        back = held[gone[: len(gone) // 4]]
        signs = np.repeat([1, -1, 1], [len(new), len(gone), len(back)])
        pool.upsert(np.concatenate([new, held[gone], back]), signs.reshape(-1, 1))
        held, group = np.concatenate([np.delete(held, gone, axis=0), back, new]), group + 100
        keys = pool.keys.copy()
        assert np.array_equal(keys[np.lexsort(keys.T)], held[np.lexsort(held.T)])
        assert np.array_equal(pool.probe(keys), pool.scan()) and (pool.probe(keys + np.array([0, 100])) == -1).all()
        for index in (0, 1):
            bound = np.unique(held[:, index]).reshape(-1, 1)
            rows, slots = pool.slice(index, bound)
            assert np.array_equal(pool.keys[slots, index], bound[rows, 0]) and len(slots) == len(held)
            assert np.array_equal(np.lexsort((slots, rows)), np.arange(len(rows)))
        assert pool.entries == 1 + np.count_nonzero(keys[1:, 0] != keys[:-1, 0]) < len(held)


def property_records_go_from_large_groups() -> None:
    """Back references are there once records go that are looked for in long postings, and what is found is the same."""
    random = np.random.default_rng(9)
    keys = np.stack([np.arange(30_000), np.arange(30_000) % 3, random.permutation(30_000) % 5_000], axis=1)
    slices = ((1,), (2,))
    pools = {adaptive: Pool(3, COUNTED, slices, adaptive=adaptive, narrow=adaptive) for adaptive in (True, False)}
    sizes = dict.fromkeys(pools, 0)
    sizes_gone = 0, 0, 1, 0, 2, 900, 2_000, 3_000, 10, 5
    for step, (start, gone) in enumerate(zip(range(0, 30_000, 3_000), sizes_gone, strict=True)):
        here = np.arange(start + 3_000)
        for adaptive, pool in pools.items():
            pool.upsert(keys[start : start + 3_000], np.ones((3_000, 1), np.int64))
            leaving = np.random.default_rng(step).permutation(here)[:gone]
            leaving = leaving[pool.probe(keys[leaving]) >= 0]
            pool.upsert(keys[leaving], -np.ones((len(leaving), 1), np.int64))
            sizes[adaptive] = pool.usage["slices"]
        assert np.array_equal(pools[True].keys, pools[False].keys)
        if step in (0, 9):  # two slices without back references, then with them
            assert sizes[False] - sizes[True] == (16 * (len(pools[True]) // 2) if step == 0 else 0)
        for s, columns in enumerate(slices):
            bound = np.unique(keys[:, columns[0]]).reshape(-1, 1)
            for found, expected in zip(pools[True].slice(s, bound), pools[False].slice(s, bound), strict=True):
                assert np.array_equal(found, expected)


@pytest.mark.parametrize("together", [False, True])
def test_large_groups_are_indexed_by_record(together: bool) -> None:
    """A pass over all records of a group would take longer with each that comes."""
    keys = np.stack([np.arange(20_000) // 10_000 if together else np.arange(20_000) % 2, np.arange(20_000)], axis=1)
    pool, plain = Pool(2, COUNTED, ((0,),), adaptive=True, narrow=True), Pool(2, COUNTED, ((0,),))
    for start in range(0, 20_000, 500):
        for each in (pool, plain):
            each.upsert(keys[start : start + 500], np.ones((500, 1), np.int64))
    assert pool.entries == 20_000 and pool.usage["slices"] > 4 * 20_000
    assert np.array_equal(pool.keys, plain.keys)
    bound = np.array([[0], [1], [2]])
    for found, expected in zip(pool.slice(0, bound), plain.slice(0, bound), strict=True):
        assert np.array_equal(found, expected)


INDEXED_BY_ONE: dict[str, Callable[[], Pool]] = {
    "all columns": lambda: Pool(1, COUNTED, narrow=True, small=True),
    "a group": lambda: Pool(2, COUNTED, ((1,),), group=(0,), narrow=True),
    "runs": lambda: Pool(2, Payload((Ring.COUNT, Ring.EXACT)), ((0,), (1,)), adaptive=True, narrow=True, small=True),
    "runs of sums of doubles": lambda: Pool(2, Payload((Ring.COUNT, Ring.REAL)), ((0,),), adaptive=True, narrow=True),
    "a group of sums of doubles": lambda: Pool(2, Payload((Ring.REAL,)), group=(0,), narrow=True),
}


def ascending_keys(random: np.random.Generator, start: int, rows: int, width: int) -> NDArray[np.int64]:
    """Keys whose first column ascends by 1 to 7, some of them a little late."""
    keys = start + np.cumsum(random.integers(1, 8, rows))
    late = np.arange(0, rows - 31, 61)
    keys[late], keys[late + 30] = keys[late + 30], keys[late].copy()
    return with_group(keys, width)


def with_group(keys: NDArray[np.int64], width: int) -> NDArray[np.int64]:
    """Rows of a key and, in a second column, a group, as far as there are columns."""
    return np.ascontiguousarray(np.stack([keys, keys % 90], axis=1)[:, :width])


def unit_payloads(pool: Pool, keys: NDArray[np.int64], sign: int = 1) -> NDArray[np.int64]:
    """A count or a sum of 1 in each lane, for each key."""
    rings = [ring for ring in pool.payload.rings if isinstance(ring, Ring)]
    lanes = [pack(np.full(len(keys), sign, np.float64 if ring is Ring.REAL else np.int64), ring) for ring in rings]
    return np.concatenate([lane.reshape(len(keys), -1) for lane in lanes], axis=1)


def check_contents(pool: Pool, held: NDArray[np.int64]) -> None:
    """A pool has these keys, finds each, and no others beside them."""
    keys = pool.keys.copy()
    assert np.array_equal(keys[np.lexsort(keys.T[::-1])], held[np.lexsort(held.T[::-1])])
    assert np.array_equal(pool.probe(keys), pool.scan())
    for other in (keys[:, 0] + 1, keys[:, 0] + 2**40, -keys[:, 0] - 5):
        others = with_group(other, pool.key_width)
        assert np.array_equal(pool.probe(others) >= 0, np.isin(other, held[:, 0]))
    for index, columns in enumerate(pool.slices):
        bound = np.unique(held[:, columns[0]]).reshape(-1, 1)
        rows, slots = pool.slice(index, bound)
        assert np.array_equal(pool.keys[slots, columns[0]], bound[rows, 0]) and len(slots) == len(held)


def filled_in_order(layout: str, random: np.random.Generator) -> tuple[Pool, NDArray[np.int64]]:
    """A pool with an index in the order of keys, and its keys: added in batches, of which a tenth goes again."""
    pool, held = INDEXED_BY_ONE[layout](), np.empty((0, 0), np.int64)
    for step in range(20):
        keys = ascending_keys(random, int(held[:, 0].max()) if step else 5_000, 1_000, pool.key_width)
        held = np.concatenate([held, keys]) if step else keys
        pool.upsert(keys, unit_payloads(pool, keys))
        gone = random.permutation(len(held))[:100]
        pool.upsert(held[gone], unit_payloads(pool, held[gone], -1))
        held = np.delete(held, gone, axis=0)
        if step % 5 == 0:
            check_contents(pool, held)
    assert pool.keeps_order
    return pool, held


OTHER_KEYS: dict[str, Callable[[int], NDArray[np.int64]]] = {
    "denser": lambda last: np.arange(last // 2, last // 2 + 9_000),
    "before all": lambda last: 4_000 - np.arange(9_000),
    "far behind": lambda last: np.arange(9_000) + 2**30,
    "NULL, then behind": lambda last: np.concatenate([[NULL], last + 5 * np.arange(1, 9_000)]),
    "too large": lambda last: last + 2**33 + np.arange(9_000),
}


@pytest.mark.parametrize("layout", INDEXED_BY_ONE)
@pytest.mark.parametrize("then", OTHER_KEYS)
def property_records_in_the_order_of_keys(layout: str, then: str) -> None:
    """Found as long as keys ascend, and when others come, after which hashes are mixed, unless few do."""
    pool, held = filled_in_order(layout, np.random.default_rng(5))
    new = OTHER_KEYS[then](int(held[:, 0].max()))
    new = new[~np.isin(new, held[:, 0])]
    new = with_group(new, pool.key_width)
    for start in range(0, len(new), 700):
        pool.upsert(new[start : start + 700], unit_payloads(pool, new[start : start + 700]))
    held = np.concatenate([held, new])
    assert pool.keeps_order == (then == "NULL, then behind")
    check_contents(pool, held)
    gone = held[::2].copy()
    pool.upsert(gone, unit_payloads(pool, gone, -1))
    check_contents(pool, held[1::2])


@pytest.mark.parametrize("layout", INDEXED_BY_ONE)
def test_keys_in_order_that_become_sparser(layout: str) -> None:
    """The index gets more positions, long before it is full."""
    pool, held = filled_in_order(layout, np.random.default_rng(6))
    before, last = pool.usage["index"], int(held[:, 0].max())
    new = last + 11 * np.arange(1, 4_000)
    new = with_group(new, pool.key_width)
    for start in range(0, len(new), 500):
        pool.upsert(new[start : start + 500], unit_payloads(pool, new[start : start + 500]))
    assert pool.keeps_order and pool.usage["index"] > before
    check_contents(pool, np.concatenate([held, new]))


@pytest.mark.parametrize("layout", INDEXED_BY_ONE)
def test_null_before_keys_in_order(layout: str) -> None:
    pool = INDEXED_BY_ONE[layout]()
    keys = with_group(np.concatenate([[NULL, -3], 7 * np.arange(20_000)]), pool.key_width)
    for start in range(0, len(keys), 900):
        pool.upsert(keys[start : start + 900], unit_payloads(pool, keys[start : start + 900]))
    check_contents(pool, keys)


def test_keys_with_the_same_lower_half() -> None:
    """A key of more than 32 bits is not found by a hash that tells one of 32, nor is it taken for that."""
    pool, few = Pool(1, COUNTED, narrow=True), np.array([0, 1, -1, 7, 2**31 - 1, 1 - 2**31, NULL]).reshape(-1, 1)
    others = np.array([key + (high << 32) for key in few[:-1, 0].tolist() for high in (-9, -1, 1, 2, 2**20)])
    others = np.union1d(others, [2**31, -(2**31), -1 - 2**31, NULL + 1, 2**63 - 1]).reshape(-1, 1)
    pool.upsert(few, unit_payloads(pool, few))
    assert np.all(pool.probe(few) >= 0) and np.all(pool.probe(others) == -1)
    pool.upsert(others, unit_payloads(pool, others))
    assert len(pool) == len(few) + len(others) == len(np.unique(pool.probe(np.concatenate([few, others]))))


@pytest.mark.parametrize("keys", ["at random", "descend", "twice as dense at last", "wide"])
def test_keys_whose_order_is_not_kept(keys: str) -> None:
    """They do not ascend, crowd at one place, or words of 32 bits do not hold them."""
    pool, all_keys = INDEXED_BY_ONE["a group"](), 7 * np.arange(20_000)
    if keys == "at random":
        all_keys = np.random.default_rng(3).permutation(all_keys)
    elif keys == "descend":
        all_keys = all_keys[::-1]
    elif keys == "wide":
        all_keys = all_keys + 2**40
    else:
        all_keys = np.concatenate([7 * np.arange(2_500), 17_500 + np.arange(17_500)])
    rows = with_group(all_keys, 2)
    pool.upsert(rows, unit_payloads(pool, rows))
    assert not pool.keeps_order
    check_contents(pool, rows)


def property_same_calls_same_slots() -> None:
    random = np.random.default_rng(2)
    batches = [random.integers(0, 500, (300, 1)) for _ in range(20)]
    signs = [random.integers(-1, 2, (300, 1)) for _ in batches]
    pools = [Pool(1, Payload((Ring.COUNT,)), ((0,),)) for _ in range(2)]
    for pool in pools:
        for keys, words in zip(batches, signs, strict=True):
            pool.upsert(keys, words)
    assert np.array_equal(pools[0].keys, pools[1].keys) and np.array_equal(pools[0].words, pools[1].words)


@settings(max_examples=100, deadline=None)
@given(st.lists(st.floats(-1e12, 1e12).map(lambda x: round(x, 2)), max_size=60), st.randoms(use_true_random=False))
def property_real_leaves_no_residue(values: list[float], random: Random) -> None:
    pool = Pool(0, Payload((Ring.REAL,)))
    words = pack(np.array(values, np.float64), Ring.REAL)
    pool.upsert(np.empty((len(values), 0), np.int64), words)
    order = list(range(len(values)))
    random.shuffle(order)
    pool.upsert(np.empty((len(values), 0), np.int64), pack(-np.array(values, np.float64)[order], Ring.REAL))
    assert len(pool) == 0


def oracle_infinity_goes_again() -> None:
    pool, none = Pool(0, Payload((Ring.REAL,))), np.empty((1, 0), np.int64)
    for value, times, printed in ((1.5, 1, 1.5), (np.inf, 1, np.inf), (1.5, -1, np.inf), (-np.inf, 1, np.nan)):
        words = np.empty((1, 3), np.int64)
        fill_reals(words, 0, Ring.REAL, np.array([value]), np.array([times]))
        pool.upsert(none, words)
        np.testing.assert_equal(unpack(pool.words, Ring.REAL), [printed])
    fill_reals(words, 0, Ring.REAL, np.array([-np.inf]), np.array([-1]))
    pool.upsert(none, words)
    assert unpack(pool.words, Ring.REAL).tolist() == [np.inf]
    fill_reals(words, 0, Ring.REAL, np.array([np.inf]), np.array([-1]))
    pool.upsert(none, words)
    assert len(pool) == 0


def oracle_views_survive_growth() -> None:
    """Contents handed out before the pool grew stay readable."""
    pool = Pool(1, Payload((Ring.COUNT,)))
    pool.upsert(np.array([[5]]), np.array([[1]]))
    keys, words = pool.rows()
    pool.upsert(np.arange(100_000).reshape(-1, 1), np.ones((100_000, 1), np.int64))
    assert keys.tolist() == [[5]] and words.tolist() in ([[1]], [[2]])
    assert pool.words[0, 0] == 2


ORDER = Order((1, 0), 1)


KINDS: dict[str, Callable[[], Any]] = {
    "hashes": lambda: Pool(2, COUNTED),
    "hashes of a group": lambda: Pool(2, COUNTED, group=(0,)),
    "hashes of runs": lambda: Pool(2, COUNTED, ((1,),), adaptive=True),
    "hashes of narrow keys": lambda: Pool(2, COUNTED, ((1,),), adaptive=True, narrow=True),
    "order": lambda: Pool(2, COUNTED, orders=(ORDER,)),
    "order alone": lambda: SortedPool(2, COUNTED, (ORDER,)),
}


@pytest.mark.parametrize("kind", KINDS)
@given(st.lists(st.integers(0, 2**32), max_size=20), st.integers(0, 3000), st.randoms())
def property_all_is_gone_through_share_by_share(kind: str, cuts: list[int], rows: int, random: Random) -> None:
    """A copy of each share, and of what changes where it has passed, is a copy of all, whatever comes and goes."""
    pool, copy = KINDS[kind](), KINDS[kind]()
    keys = np.array([[random.getrandbits(30), i % 7] for i in range(rows)], np.int64).reshape(rows, 2)
    pool.upsert(keys, np.ones((rows, 1), np.int64))
    reached = np.empty((0, 2), np.int64)
    for low, high in pairwise(sorted({0, *cuts, HASHES})):
        changed = np.array([[random.getrandbits(30), random.randrange(7)] for _ in range(9)] + keys[:9].tolist())
        changes = np.array([[1]] * 9 + [[random.choice((-1, 1))] for _ in keys[:9]])
        pool.upsert(changed, changes)
        again = pool.select_copied(changed, reached, low)
        share, words = pool.copy_fraction(reached, low, high)
        if not pool.sorted:
            assert not len(pool.select_copied(share, reached, low))
            assert high == HASHES or len(pool.select_copied(share, reached, high)) == len(share)
        copy.fill(share, words, high)
        copy.fill(changed[again], changes[again], high)
        reached = share[-1:] if len(share) else reached
        keys = keys[len(keys) // 2 :]
    assert contents(copy) == contents(pool)
    last = np.array([[2**40, 6], [0, 0]])  # behind all, and perhaps before
    assert pool.select_copied(last, reached, HASHES).tolist() == [0, 1]
    assert len(pool.copy_fraction(reached, HASHES, HASHES)[0]) == 0


def test_a_pool_that_is_filled_in_the_order_of_hashes() -> None:
    """Its index has its size from the start; the contents are the same."""
    pool, filled, rows = Pool(1, Payload((Ring.COUNT,))), Pool(1, Payload((Ring.COUNT,))), 40_000
    keys, words = np.arange(rows).reshape(-1, 1), np.ones((rows, 1), np.int64)
    pool.upsert(keys, words)
    half = 2**31
    filled.fill(*pool.copy_fraction(keys[:0], 0, half), half)
    size = filled.usage["index"]
    filled.fill(*pool.copy_fraction(keys[:0], half, 2 * half), 2 * half)
    assert filled.usage["index"] == size
    assert len(filled) == rows and (filled.get(keys) == 1).all()
