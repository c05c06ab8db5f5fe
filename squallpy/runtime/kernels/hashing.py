"""Hashes: of key rows (for the indexes here) and of contents (for routing tuples to partitions).

A key of one word that has room in 32 bits is told by the upper 32 bits of its hash, which no other such key has: who
finds these in an index need not look at the key. All else is mixed by the folded 64×64→128-bit product, as wyhash does.
Keys and contents differ in their constants on purpose: the keys that reach one partition agree in some bits of their
routing hash and must still spread over that partition's index.

Source: Wang Yi, *wyhash* (public domain), for the mixing and the reading of short strings; Appleby, *MurmurHash3*
(public domain), for a permutation of the words of 32 bits.
"""

from squallpy.runtime.kernels.intrinsics import load, load8, load32, multiply_high
from squallpy.runtime.kernels.kernel_compiler import inlined
from squallpy.runtime.kernels.narrow_words import narrowed, needs_more

_A, _B, _C, _D = 0x2D358DCCAA6C78A5, 0x0BB67AE8584CAA73, 0x4B33A62ED433D4A3, 0x4D5A2DA51DE1AA47
_E, _F, _LOW = 0x85EBCA6B, 0xC2B2AE35, 0xFFFFFFFF


@inlined
def mix(a: int, b: int) -> int:
    """Multiply two unsigned words and fold the halves of the product."""
    return multiply_high(a, b) ^ (a * b)


@inlined
def hash_word(word: int) -> int:
    """Hash of a word, told by the upper 32 bits if the word has room in 32 (`narrow_words.py`)."""
    x = narrowed(word) & _LOW
    x = ((x ^ (x >> 16)) * _E) & _LOW
    x = ((x ^ (x >> 15)) * _F) & _LOW
    return (x << 32) | x if needs_more(word) == 0 else mix(_A ^ word, _C) * _D


@inlined
def hash_row(row: int, width: int) -> int:
    """Hash of `width` words at address `row`."""
    if width == 1:
        return hash_word(load(row, 0))
    h = _A
    for i in range(width):
        h = mix(h ^ load(row, i), _C ^ i)
    return h * _D


@inlined
def hash_picked(row: int, picks: int, width: int) -> int:
    """Hash of `width` words of the row at address `row`: those whose positions stand at address `picks`."""
    if width == 1:
        return hash_word(load(row, load(picks, 0)))
    h = _A
    for i in range(width):
        h = mix(h ^ load(row, load(picks, i)), _C ^ i)
    return h * _D


@inlined
def hash_bytes(start: int, length: int) -> int:
    """Hash of `length` bytes at address `start`, a function of nothing else."""
    h = mix(length ^ _B, _A)
    at, left = start, length
    while left > 16:
        h = mix(load(at, 0) ^ _C, load(at, 1) ^ h)
        at += 16
        left -= 16
    if left >= 8:
        a, b = load(at, 0), load(at + left - 8, 0)
    elif left >= 4:
        a, b = load32(at, 0), load32(at + left - 4, 0)
    elif left > 0:
        a, b = (load8(at, 0) << 16) | (load8(at, left >> 1) << 8) | load8(at, left - 1), 0
    else:
        a, b = 0, 0
    return mix(mix(a ^ _D, b ^ h), _B)
