"""Blocks of an arena: the buddy system. A block of class k is 2ᵏ pieces of four 32-bit words; a piece's number is the
block's.

    allocate classes 1, 0, 0   →   0, 2, 3
    release 2, 3               →   2 of class 1 is free, for 2 and 3 are buddies: the halves of that block
    release 0                  →   0 of class 2 is free

A block of class k begins at a multiple of 2ᵏ. Of all below the top, each piece is in one block, whose second word tells
its class and whether it is free: what grows from block to block leaves nothing behind that its like cannot use.

Source: Knowlton, *A fast storage allocator* (1965); Knuth, *The Art of Computer Programming* 1, §2.5.
"""

from squallpy.runtime.kernels import pool_layout as at
from squallpy.runtime.kernels.intrinsics import load, load32, shift_right, store, store32
from squallpy.runtime.kernels.kernel_compiler import inlined


@inlined
def block_at(arena: int, block: int) -> int:
    """Return the address of a block."""
    return arena + 4 * at.PIECE * block


@inlined
def _chain(state: int, arena: int, block: int, size_class: int) -> None:
    """Enter a block among the free ones."""
    here, following = block_at(arena, block), load(state, at.VACANT + size_class)
    store32(here, at.SHAPE, at.FREE | size_class)
    store32(here, at.NEXT, following)
    store32(here, at.PREVIOUS, 0)
    if following != 0:
        store32(block_at(arena, following - 1), at.PREVIOUS, block + 1)
    store(state, at.VACANT + size_class, block + 1)
    store(state, at.CLASSES, load(state, at.CLASSES) | (1 << size_class))


@inlined
def _unchain(state: int, arena: int, block: int, size_class: int) -> None:
    here = block_at(arena, block)
    following, previous = load32(here, at.NEXT), load32(here, at.PREVIOUS)
    if following != 0:
        store32(block_at(arena, following - 1), at.PREVIOUS, previous)
    if previous != 0:
        store32(block_at(arena, previous - 1), at.NEXT, following)
        return
    store(state, at.VACANT + size_class, following)
    if following == 0:
        store(state, at.CLASSES, load(state, at.CLASSES) & ~(1 << size_class))


@inlined
def release(state: int, arena: int, block: int, size_class: int) -> None:
    """Give a block back, together with its buddy if that is free, and so on."""
    top = load(state, at.TOP)
    while True:
        buddy = block ^ (1 << size_class)
        if buddy >= top or load32(block_at(arena, buddy), at.SHAPE) != at.FREE | size_class:
            break
        _unchain(state, arena, buddy, size_class)
        block, size_class = block & buddy, size_class + 1
    _chain(state, arena, block, size_class)


@inlined
def _at_top(state: int, arena: int, size_class: int) -> int:
    """Take a block above all others; what lies between becomes free."""
    top, gap = load(state, at.TOP), 0
    while top & ((1 << size_class) - 1) != 0:
        if top & (1 << gap) != 0:
            store(state, at.TOP, top + (1 << gap))
            release(state, arena, top, gap)
            top += 1 << gap
        gap += 1
    store(state, at.TOP, top + (1 << size_class))
    return top


@inlined
def allocate(state: int, arena: int, size_class: int) -> int:
    """Take a block of a class from the smallest free one that has room, else from the top, where there is room."""
    there = shift_right(load(state, at.CLASSES), size_class)
    if there == 0:
        block = _at_top(state, arena, size_class)
    else:
        wider = size_class
        while there & 1 == 0:
            there, wider = there >> 1, wider + 1
        block = load(state, at.VACANT + wider) - 1
        _unchain(state, arena, block, wider)
        while wider > size_class:
            wider -= 1
            _chain(state, arena, block + (1 << wider), wider)
    store32(block_at(arena, block), at.SHAPE, size_class)
    return block


@inlined
def halve(state: int, arena: int, block: int, size_class: int) -> None:
    """Give back the upper half of a block."""
    store32(block_at(arena, block), at.SHAPE, load32(block_at(arena, block), at.SHAPE) - 1)
    release(state, arena, block + (1 << (size_class - 1)), size_class - 1)
