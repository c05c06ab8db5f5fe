"""Tables that move to blocks of other classes keep their words, also those for which their own bucket had no room."""

import numpy as np
import pytest

from squallpy.runtime.kernels.arena_tables import STATE, WORDS, block_of, enter, find, places_of, resize
from squallpy.runtime.kernels.intrinsics import store
from squallpy.runtime.kernels.kernel_compiler import VECTOR, Vector, address, kernel
from squallpy.runtime.kernels.line_addresses import GOLDEN, HALF, KEY


@kernel(f"void({VECTOR}, {VECTOR}, {VECTOR}, {VECTOR}, int64)")
def _move(head_of: Vector, state_of: Vector, arena_of: Vector, words: Vector, size_class: int) -> None:
    head, state, arena = address(head_of), address(state_of), address(arena_of)
    for i in range(len(words)):
        at = enter(head, state, arena, words[i] & KEY, WORDS)
        store(block_of(head, arena), at, words[i])
    resize(head, state, arena, size_class, WORDS)


@kernel(f"void({VECTOR}, {VECTOR}, {VECTOR}, {VECTOR})")
def _find(head_of: Vector, arena_of: Vector, words: Vector, places: Vector) -> None:
    head, arena = address(head_of), address(arena_of)
    for i in range(len(words)):
        places[i] = find(block_of(head, arena), places_of(head, WORDS), words[i] & KEY, WORDS)


@pytest.mark.parametrize("size_class", range(7, 12))  # 256 places to 4,096, where 512 are full after 256 words
@pytest.mark.parametrize("crowded", [0, 40])
def test_words_of_a_table_that_moves(size_class: int, crowded: int) -> None:
    draw = np.random.default_rng(size_class)
    keys = draw.permutation(np.arange(1, 200_000))
    hashes = keys * GOLDEN & HALF
    first = keys[hashes < 1 << 23][:crowded]  # of one bucket, however many there are
    last = keys[hashes >> 25 == 127][:crowded]  # whose words go on at the beginning
    words = np.unique(np.concatenate([keys[:200], first, last])) | draw.integers(1, 1 << 20, 1) << 32
    words = draw.permutation(words)[:250]
    head, state, arena = np.zeros(2, np.int64), np.zeros(STATE, np.int64), np.full(1 << 16, -1)
    state[0] = 4
    _move(head, state, arena, words, size_class)
    places = np.empty(len(words), np.int64)
    _find(head, arena, words, places)
    size = 2 << size_class
    table = arena[2 * (head[0] >> 1) :][:size]
    assert (table[places] == words).all() and np.count_nonzero(table) == len(words) == head[1] & HALF
