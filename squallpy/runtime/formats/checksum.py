"""Checksums of ranges of a file that add up to the checksum of the whole, whoever reads them, in whatever order.

checksum(b"id,v\\n1,10\\n", 0)   ==   checksum(b"id,v\\n", 0) + checksum(b"1,10\\n", 5)   modulo 2⁶⁴

A multilinear hash (Carter and Wegman 1979; Lemire and Kaser, "Strongly universal string hashing is fast", 2014): each
word of 32 bits, times a number of 64 random bits that belongs to its place in the file, all added up. Two contents of
one length are mistaken for each other with a probability of 2⁻³². (A CRC tells as much, but ranges that several tasks
read have to be put in order before theirs can be combined, and zlib's takes four times as long.)
"""

from typing import Any

import numpy as np

from squallpy.runtime.kernels.compiled import inlined, kernel

BYTES = "Array(uint8, 1, 'C', readonly=True)"
_WORDS = 1024  # of a block: a word's number is one by its place in the block, times one by the block
_PLACES = np.random.Generator(np.random.PCG64(20140514)).integers(1 << 64, size=_WORDS, dtype=np.uint64) | np.uint64(1)


@inlined
def _mixed(block: Any) -> Any:
    """The odd number of a block (splitmix64)."""
    z = np.uint64(block) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return (z ^ (z >> np.uint64(31))) | np.uint64(1)


@inlined
def _lone(byte: Any, at: Any) -> Any:
    """What one byte adds."""
    shifted = np.uint64(byte) << np.uint64(8 * (at % 4))
    return shifted * _PLACES[(at // 4) % _WORDS] * _mixed(at // (4 * _WORDS))


@kernel(f"uint64({BYTES}, int64)")
def _summed(data: Any, offset: int) -> Any:
    total, at, end = np.uint64(0), 0, len(data)
    while at < end and (offset + at) % 4:
        total += _lone(data[at], offset + at)
        at += 1
    words = data[at : at + (end - at) // 4 * 4].view(np.uint32)
    place, done = (offset + at) // 4, 0
    while done < len(words):
        first = place % _WORDS
        count = min(_WORDS - first, len(words) - done)
        some, places, sum = words[done : done + count], _PLACES[first : first + count], np.uint64(0)
        for i in range(count):
            sum += np.uint64(some[i]) * places[i]
        total += sum * _mixed(place // _WORDS)
        place += count
        done += count
    at += 4 * len(words)
    while at < end:
        total += _lone(data[at], offset + at)
        at += 1
    return total


def checksum(data: Any, offset: int) -> int:
    """The checksum of bytes that begin at an offset of a file."""
    return int(_summed(np.frombuffer(data, np.uint8), offset)) if len(data) else 0


def added(one: int, other: int) -> int:
    """The checksum of two ranges."""
    return (one + other) % (1 << 64)
