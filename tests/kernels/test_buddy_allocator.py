"""Blocks of an arena: no two overlap, and what is given back is whole again."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from squallpy.base.rings import Payload, Ring
from squallpy.runtime.kernels import pool_layout
from squallpy.runtime.kernels.buddy_allocator import allocate, release
from squallpy.runtime.kernels.kernel_compiler import VECTOR, address, kernel
from squallpy.runtime.kernels.pool import Pool


@kernel(f"int64({VECTOR}, {VECTOR}, int64)")
def take(state: NDArray[np.int64], arena: NDArray[np.int64], size_class: int) -> int:
    return allocate(address(state), address(arena), size_class)


@kernel(f"void({VECTOR}, {VECTOR}, int64, int64)")
def give(state: NDArray[np.int64], arena: NDArray[np.int64], block: int, size_class: int) -> None:
    release(address(state), address(arena), block, size_class)


@settings(max_examples=200, deadline=None)
@given(st.data())
def property_blocks_never_overlap(data: st.DataObject) -> None:
    state, arena = np.zeros(pool_layout.STATE, np.int64), np.zeros(1 << 13, np.int64)
    held: dict[int, int] = {}
    for _ in range(data.draw(st.integers(1, 60))):
        takes_out: bool = data.draw(st.booleans()) if held else False
        if takes_out:
            block = data.draw(st.sampled_from(sorted(held)))
            give(state, arena, block, held.pop(block))
        else:
            size_class = data.draw(st.integers(0, 4))
            block = take(state, arena, size_class)
            assert block % (1 << size_class) == 0
            held[block] = size_class
        pieces = [piece for block, size_class in held.items() for piece in range(block, block + (1 << size_class))]
        assert len(pieces) == len(set(pieces)) and all(piece < state[pool_layout.TOP] for piece in pieces)
    for block, size_class in held.items():
        give(state, arena, block, size_class)
    top, free = state[pool_layout.TOP], state[pool_layout.VACANT : pool_layout.VACANT + 32]
    assert [int(k) for k in np.flatnonzero(free)] == [k for k in range(32) if top & (1 << k)]
    assert state[pool_layout.CLASSES] == top


def oracle_postings_that_grow_together_leave_nothing_behind() -> None:
    """A thousand groups, each of one record more in every batch: the blocks that they left are used again."""
    pool, groups = Pool(2, Payload((Ring.COUNT,)), ((0,),)), np.arange(1000)
    for i in range(126):
        pool.upsert(np.stack([groups, np.full(1000, i)], axis=1), np.ones((1000, 1), np.int64))
    assert 0 <= top(pool) * pool_layout.PIECE - 1000 * 128 <= 128


def oracle_postings_shrink() -> None:
    """What a group gives back when most of its records go is there for others."""
    pool, ones = Pool(2, Payload((Ring.COUNT,)), ((0,),)), np.ones((1000, 1), np.int64)
    rows = np.stack([np.zeros(1000, np.int64), np.arange(1000)], axis=1)
    pool.upsert(rows, ones)
    before = top(pool)
    pool.upsert(rows[3:], -ones[3:])
    pool.upsert(rows[:500] + np.array([1, 0]), ones[:500])
    assert [len(pool.slice(0, np.array([[group]]))[1]) for group in (0, 1)] == [3, 500]
    assert top(pool) == before


def top(pool: Pool) -> int:
    return pool._area.head[pool_layout.SLICE_STATE + pool_layout.TOP]
