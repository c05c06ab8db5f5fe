"""Copies of pools that are brought up to date between batches."""

from random import Random
from typing import Any

import numpy as np
import pytest

from squallpy.base.index_order import Order
from squallpy.base.rings import Payload, Ring
from squallpy.runtime.kernels.page_watch import PAGE
from squallpy.runtime.kernels.pool import Pool
from squallpy.runtime.kernels.sorted_pool import SortedPool
from squallpy.runtime.kernels.view_container import Container
from squallpy.runtime.state import mirrors
from squallpy.runtime.state.mirrors import Moved, PoolMirror, Records

COUNTS = Payload((Ring.COUNT, Ring.COUNT))


def changes(draw: Random, model: dict[int, tuple[int, int]], count: int) -> tuple[Any, Any]:
    """Change some groups of a model: new ones, sums that are others, groups that go."""
    keys, words = list[int](), list[tuple[int, int]]()
    for _ in range(count):
        key = draw.randrange(600)
        was = model.get(key, (0, 0))
        now = draw.choice(((0, 0), (was[0] + 1, was[1] - 7)))
        model[key] = now
        keys.append(key)
        words.append((now[0] - was[0], now[1] - was[1]))
    return np.array(keys, np.int64).reshape(-1, 1), np.array(words, np.int64).reshape(-1, 2)


def contents(pieces: list[Records]) -> dict[int, tuple[int, ...]]:
    return {int(k[0]): tuple(map(int, w)) for keys, words in pieces for k, w in zip(keys, words, strict=True)}


def take_in(mine: dict[int, tuple[int, ...]], moved: Moved) -> None:
    """Apply what a mirror says has gone and has come."""
    went, came = (contents(pieces) for pieces in moved)
    for key, words in went.items():
        assert mine.pop(key) == words, "what goes was there"
    assert not mine.keys() & came.keys(), "what comes was not there"
    mine |= came


@pytest.mark.parametrize("sorted", [False, True])
@pytest.mark.parametrize("seed", range(5))
def property_a_mirror_has_what_the_pool_has(seed: int, sorted: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mirrors, "PIECE", 3 * PAGE)
    draw, model = Random(seed), dict[int, tuple[int, int]]()
    pool: Container = SortedPool(1, COUNTS, (Order((0,), 0),)) if sorted else Pool(1, COUNTS)
    pool.upsert(*changes(draw, model, 500))
    one, more, seen = PoolMirror(), True, dict[int, tuple[int, ...]]()
    while more:
        more = one.copy(pool)
        pool.upsert(*changes(draw, model, 30))
    take_in(seen, one.update(pool))
    other = PoolMirror()
    for step in range(30):
        pool.upsert(*changes(draw, model, draw.choice((0, 1, 20, 200))))
        if step == 11:
            pool.clear()
            model.clear()
        if step == 21:
            copied, pool = pool.rows(), Pool(1, COUNTS)
            pool.upsert(*map(np.array, copied))
        if step % 4 == 0:
            one.copy(pool)
            pool.upsert(*changes(draw, model, 30))
        for mirror in (one, other) if step % 3 else (one,):
            moved = mirror.update(pool)
            assert contents(mirror.pieces) == {k: w for k, w in model.items() if w != (0, 0)}
            if mirror is one:
                take_in(seen, moved)
    one.close()
    other.close()
    assert seen == contents(one.pieces)


def test_only_pages_that_were_written_are_compared_again() -> None:
    pool = Pool(1, COUNTS)
    keys = np.arange(10 * PAGE).reshape(-1, 1)
    pool.upsert(keys, np.ones((len(keys), 2), np.int64))
    watch, other = pool.watch(), pool.watch()
    assert not len(watch.take(len(pool)))
    pool.upsert(keys[[5 * PAGE]], np.array([[1, 1]]))
    assert watch.take(len(pool)).tolist() == [5]
    pool.upsert(keys[[0]], np.array([[-1, -1]]))  # the last record takes its place
    assert watch.take(len(pool)).tolist() == [0]
    pool.upsert(keys[[0]] - 1, np.array([[1, 1]]))
    pool.upsert(keys[:PAGE] - 100, np.ones((PAGE, 2), np.int64))
    assert watch.take(len(pool)).tolist() == [9, 10], "those behind the watched ones count as written"
    assert other.take(len(pool)).tolist() == [0, 5, 9, 10]
    other.close()
    watch.close()
    pool.upsert(keys[[3]], np.array([[1, 1]]))
