"""Stores in files that processes share, and snapshots."""

import errno
import io
import mmap
import os
import pickle
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from squallpy.base.index_order import Order
from squallpy.base.rings import Payload, Ring
from squallpy.runtime.kernels import dictionary
from squallpy.runtime.kernels.pool import Pool
from squallpy.runtime.state import pool_storage
from squallpy.runtime.state.matrix_blocks import BlockLayout
from squallpy.runtime.state.pool_names import PoolName, Role
from squallpy.runtime.state.pool_storage import MappedStorage
from squallpy.runtime.state.state_store import PoolLayout, Store, StoreLayout, StringCells

LAYOUT = StoreLayout(
    (
        PoolLayout("total", 0, Payload((Ring.EXACT, Ring.REAL))),
        PoolLayout("orders", 2, Payload((Ring.COUNT,)), slices=((0,), (1,))),
        PoolLayout("ranges", 2, Payload((Ring.COUNT,)), orders=(Order((1, 0), 0),), ordered=True),
        PoolLayout("changes", 2, Payload((Ring.COUNT,)), listed=True),
    )
)


def fill(store: Store, start: int, count: int) -> None:
    """Some thousand rows into every part of a store, and every third out again."""
    names = store.dictionary.intern(pa.array([f"name {n % 1000}" for n in range(start, start + count)]))
    keys = np.stack([names, np.arange(start, start + count)], axis=1)
    ones = np.ones((count, 1), np.int64)
    for pool in (store["orders"], store["ranges"], store["changes"]):
        pool.upsert(keys, ones)
        pool.upsert(np.ascontiguousarray(keys[::3]), -np.ascontiguousarray(ones[::3]))
    store["total"].upsert(np.empty((1, 0), np.int64), np.array([[start, count, 0, 0, 0]]))


def picture(store: Store) -> tuple[list[list[list[list[Any]]]], list[list[list[int]]], list[str]]:
    """All that can be seen of a store."""
    every = np.arange(1000).reshape(-1, 1)
    pools = [[part.tolist() for part in pool.rows()] for pool in store.values()]
    slices = [[part.tolist() for part in cast(Pool, store["orders"]).slice(index, every)] for index in (0, 1)]
    return pools, slices, store.dictionary.strings(np.arange(len(store.dictionary))).to_pylist()


def in_child(action: Callable[..., Any]) -> None:
    """Run an action in a forked process."""
    child = os.fork()
    if child == 0:
        status = 1
        try:
            action()
            status = 0
        finally:
            os._exit(status)
    assert os.waitpid(child, 0)[1] == 0


def differential_processes_take_turns(tmp_path: Path) -> None:
    """A process with old mappings sees what another did, growth included, and goes on."""
    ours, alone = Store(LAYOUT, MappedStorage(tmp_path)), Store(LAYOUT)
    for turn in range(6):
        start, count = turn * 10_000, 100 * 4**turn % 9_000
        fill(alone, start, count)
        if turn % 2:
            in_child(lambda start=start, count=count: fill(Store(LAYOUT, MappedStorage(tmp_path)), start, count))
        else:
            fill(ours, start, count)
        assert picture(ours) == picture(alone)
    assert picture(Store(LAYOUT, MappedStorage(tmp_path))) == picture(alone)


def oracle_old_views_of_mapped_pools_stay_readable(tmp_path: Path) -> None:
    pool = Store(LAYOUT, MappedStorage(tmp_path))["orders"]
    pool.upsert(np.array([[1, 2]]), np.array([[3]]))
    keys, words = pool.rows()
    pool.upsert(np.arange(200_000).reshape(-1, 2), np.ones((100_000, 1), np.int64))
    assert keys.tolist() == [[1, 2]] and words.tolist() == [[3]]


@settings(max_examples=20, deadline=None)
@given(st.lists(st.integers(0, 3000), max_size=4))
def property_snapshot_restores_what_can_be_seen(counts: list[int]) -> None:
    store = Store(LAYOUT)
    for turn, count in enumerate(counts):
        fill(store, 500 * turn, count)
    file = io.BytesIO()
    store.snapshot(file)
    again = Store(LAYOUT)
    again.restore(io.BytesIO(file.getvalue()))
    assert picture(again) == picture(store)
    fill(store, 7, 1000)
    fill(again, 7, 1000)
    assert picture(again) == picture(store)


NAMED = StoreLayout(
    (
        PoolLayout("texts", 2, Payload((Ring.COUNT,)), slices=((0,),), numbered=(StringCells(0, 0, 2**31),)),
        PoolLayout("digits", 1, Payload((Ring.COUNT,)), numbered=(StringCells(0, -(2**63) + 1, -(2**62)),)),
        PoolLayout("ends", 1, Payload((Ring.COUNT,) * 2), numbered=(StringCells(2, 0, 2**31),)),
    )
)


def spoken(store: Store) -> tuple[Counter, Counter, Counter]:
    """What a store of NAMED says, in any order."""
    low = -(2**63) + 1
    strings = store.dictionary.strings(np.arange(len(store.dictionary))).to_pylist()
    texts, digits, ends = (
        [(key, word) for key, word in zip(*(part.tolist() for part in store[name].rows()), strict=True)]
        for name in ("texts", "digits", "ends")
    )
    return (
        Counter((strings[a] if a >= 0 else None, b, n) for (a, b), (n,) in texts),
        Counter((strings[k - low] if low <= k < -(2**62) else k, n) for (k,), (n,) in digits),
        Counter((k, n, strings[end] if end >= 0 else None) for (k,), (n, end) in ends),
    )


@pytest.mark.parametrize("mapped", [False, True])
def differential_renewed_stores_say_the_same(mapped: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With rows that come and go, and strings that nobody else has."""
    monkeypatch.setattr(dictionary, "_FEW", 1000)
    ours, plain = Store(NAMED, *([MappedStorage(tmp_path)] if mapped else [])), Store(NAMED)
    random, taken = np.random.default_rng(0), list[int]()
    for turn in range(60):
        names = pa.array([None, *(f"{turn} {n} {'long' * (n % 9)}" for n in range(100))])
        numbers = random.integers(0, 4, (101, 2))
        for store in (ours, plain):
            ids = store.dictionary.intern(names)
            store["texts"].upsert(np.column_stack([ids, numbers[:, 0]]), np.ones((101, 1), np.int64))
            spelled = np.where(ids < 0, 7, ids + -(2**63) + 1)
            store["digits"].upsert(spelled.reshape(-1, 1), np.ones((101, 1), np.int64))
            store["ends"].upsert(np.array([[turn]]), np.array([[1, ids[turn]]]))
            for name in ("texts", "digits"):
                keys, words = (part[: len(store[name]) - 150].copy() for part in store[name].rows())
                store[name].upsert(keys, -words)
        ours.renew()
        assert spoken(ours) == spoken(plain)
        taken.append(len(ours.dictionary))
    assert max(taken) < 700 and len(plain.dictionary) == 6000 and ours.dictionary.edition > 3
    kept = ours["texts"].rows()[0][:, 0]
    _, slots = cast(Pool, ours["texts"]).slice(0, np.unique(kept).reshape(-1, 1))
    assert sorted(slots.tolist()) == list(range(len(kept)))
    sink = io.BytesIO()
    ours.snapshot(sink)
    again = Store(NAMED)
    again.restore(io.BytesIO(sink.getvalue()))
    assert spoken(again) == spoken(ours) and again.dictionary.kept == ours.dictionary.kept


def oracle_layouts_can_be_pickled() -> None:
    assert pickle.loads(pickle.dumps(LAYOUT)) == LAYOUT


BLOCKS = StoreLayout(
    blocks=(BlockLayout("a / b", "float64"), BlockLayout("bits", "uint64", dense=True), BlockLayout("truth", "bool"))
)


def differential_blocks_grow_in_files(tmp_path: Path) -> None:
    """Blocks that are made larger, in files under two stores, and snapshots of them: what plain arrays are."""
    random, plain = np.random.default_rng(4), {layout.name: np.zeros((0, 0), layout.dtype) for layout in BLOCKS.blocks}
    stores = [Store(BLOCKS, MappedStorage(tmp_path)) for _ in range(2)]
    for turn in range(8):
        store, other = stores[turn % 2], stores[1 - turn % 2]
        for name, old in plain.items():
            rows, columns = (int(n) + turn * 70 for n in random.integers(0, 5, 2))
            shape = max(rows, len(old)), max(columns, old.shape[1])
            block, plain[name] = store.blocks[name], np.full(shape, 1, old.dtype)
            plain[name][: len(old), : old.shape[1]] = old
            block.resize(shape, 1)
            block.values[1:2] = plain[name][1:2] = turn % 2
            np.testing.assert_array_equal(other.blocks[name].values, plain[name])
        file = io.BytesIO()
        other.snapshot(file)
        file.seek(0)
        again = Store(BLOCKS)
        again.restore(file)
        for name, values in plain.items():
            np.testing.assert_array_equal(again.blocks[name].values, values)
    stores[0].blocks["bits"].assign(np.ones((2, 3), np.uint64))
    assert stores[1].blocks["bits"].values.tolist() == [[1] * 3] * 2
    assert stores[1].blocks["bits"].values.flags.c_contiguous


def test_room_for_a_region_is_there_before_it_is_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file without its blocks would be a SIGBUS where the disk is full: what cannot have them stays as it is."""
    region = MappedStorage(tmp_path).region("words", 10)
    region.grow(pool_storage._PIECE // 4)
    file = tmp_path / "words"
    size = file.stat().st_size
    assert size >= 2 * pool_storage._PIECE and file.stat().st_blocks * 512 >= size

    def refuse(*_: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "posix_fallocate", refuse)
    with pytest.raises(OSError, match="no room to grow state by"):
        region.grow(pool_storage._PIECE)
    assert file.stat().st_size == size and len(region.array()) == size // 8


def test_the_system_knows_how_files_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Records on a disk are looked up, so that pages beside theirs are of no use; a snapshot reads all, in order."""
    told = dict[int, list[int]]()
    advise = pool_storage._Mapping.advise

    def heard(mapping: pool_storage._Mapping, how: int) -> None:
        told.setdefault(mapping.address, []).append(how)
        advise(mapping, how)

    monkeypatch.setattr(pool_storage._Mapping, "advise", heard)
    storage = MappedStorage(tmp_path)
    store = Store(StoreLayout(LAYOUT.pools, BLOCKS.blocks), storage)
    fill(store, 0, 3000)
    names = {region.address: region._path.name for region in storage._regions}
    for snapshot in (False, True):
        if snapshot:
            store.snapshot(io.BytesIO())
        for address, name in names.items():
            usual = mmap.MADV_NORMAL if name.startswith("block.") else mmap.MADV_RANDOM
            expected = [mmap.MADV_SEQUENTIAL, usual] if snapshot else [usual]
            assert told.pop(address)[-len(expected) :] == expected, name


def test_only_pools_are_looked_up_by_key() -> None:
    """Lists of rows have no order to be copied in either."""
    store = Store(LAYOUT)
    assert store.pool("orders") is store["orders"] and store.ordered("ranges") is store["ranges"]
    for find, name in ((store.pool, "ranges"), (store.pool, "changes"), (store.ordered, "changes")):
        with pytest.raises(AssertionError):
            find(name)


def golden_names_of_pools() -> None:
    assert [PoolName("M_R"), PoolName("M_R", Role.CHANGES)] == ["M_R", "changes M_R"]
    assert PoolName(role=Role.FIRST_BATCH) == "first batch"
