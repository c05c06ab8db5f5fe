"""Checksums of file ranges that add up to the checksum of the whole, in whatever order tasks read them.

checksum(b"id,v\\n1,10\\n", 0)   ==   checksum(b"id,v\\n", 0) + checksum(b"1,10\\n", 5)   modulo 2⁶⁴

A multilinear hash (Carter and Wegman 1979; Lemire and Kaser, "Strongly universal string hashing is fast", 2014): the
sum of all 32-bit words, each times a random 64-bit number that depends on its position in the file. Two contents of
equal length collide with a probability of 2⁻³². (A CRC is as good, but the CRCs of ranges read by several tasks can
only be combined in order, and zlib's takes four times as long.)
"""

from typing import Any

import numpy as np

from squallpy.runtime.kernels.kernel_compiler import inlined, kernel

BYTES = "Array(uint8, 1, 'C', readonly=True)"
_WORDS = 1024  # of a block: a word's factor is one by its position in the block, times one by the block
_FACTORS = np.random.Generator(np.random.PCG64(20140514)).integers(1 << 64, size=_WORDS, dtype=np.uint64) | np.uint64(1)


@inlined
def _block_factor(block: Any) -> Any:
    """Hash a block's number to an odd one (splitmix64)."""
    z = np.uint64(block) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return (z ^ (z >> np.uint64(31))) | np.uint64(1)


@inlined
def _byte_term(byte: Any, at: Any) -> Any:
    """Compute the term of one byte."""
    shifted = np.uint64(byte) << np.uint64(8 * (at % 4))
    return shifted * _FACTORS[(at // 4) % _WORDS] * _block_factor(at // (4 * _WORDS))


@kernel(f"uint64({BYTES}, int64)")
def _checksum(data: Any, offset: int) -> Any:
    total, at, end = np.uint64(0), 0, len(data)
    while at < end and (offset + at) % 4:
        total += _byte_term(data[at], offset + at)
        at += 1
    words = data[at : at + (end - at) // 4 * 4].view(np.uint32)
    place, done = (offset + at) // 4, 0
    while done < len(words):
        first = place % _WORDS
        count = min(_WORDS - first, len(words) - done)
        some, factors, sum = words[done : done + count], _FACTORS[first : first + count], np.uint64(0)
        for i in range(count):
            sum += np.uint64(some[i]) * factors[i]
        total += sum * _block_factor(place // _WORDS)
        place += count
        done += count
    at += 4 * len(words)
    while at < end:
        total += _byte_term(data[at], offset + at)
        at += 1
    return total


def checksum(data: Any, offset: int) -> int:
    """Compute the checksum of bytes that begin at an offset of a file."""
    return int(_checksum(np.frombuffer(data, np.uint8), offset)) if len(data) else 0


def add_checksums(one: int, other: int) -> int:
    """Add the checksums of two ranges."""
    return (one + other) % (1 << 64)
