"""Boolean matrices, 64 cells to a word.

A matrix (n, m) is an array of its rows (n, ⌈m/64⌉) uint64; cell j of a row is bit j mod 64 of word j // 64, and what
lies behind the last cell is 0. Factors are packed by columns: U (n, k) is `pack(U.T)`, (k, ⌈n/64⌉). The column layout
of a matrix is the row layout of its transpose; a symmetric one is both.

    pass_over(M, U, V, X, Y)  →  M·X, Mᵀ·Y of the old M;  M |= U·Vᵀ in place
    product(A, B)             →  A·B, rows or-ed
"""

import numpy as np
import numpy.typing as npt

Bits = npt.NDArray[np.uint64]


def words(cells: int) -> int:
    """How many words hold a row of so many cells."""
    return (cells + 63) // 64


def pack(cells: npt.NDArray[np.bool_]) -> Bits:
    """(n, m) truth values as bits (n, ⌈m/64⌉)."""
    n, m = cells.shape
    out = np.zeros((n, 8 * words(m)), np.uint8)
    out[:, : (m + 7) // 8] = np.packbits(cells, axis=1, bitorder="little")
    return out.view(np.uint64)


def unpack(bits: Bits, cells: int) -> npt.NDArray[np.bool_]:
    """Bits (n, ⌈m/64⌉) as truth values (n, m)."""
    return np.unpackbits(bits.view(np.uint8), axis=1, count=cells, bitorder="little").view(np.bool_)


def count(bits: Bits) -> int:
    """How many cells are true."""
    return int(np.bitwise_count(bits).sum())


def transposed(bits: Bits, cells: int) -> Bits:
    """The column layout of a matrix with so many columns: (n, ⌈m/64⌉) → (m, ⌈n/64⌉)."""
    return pack(unpack(bits, cells).T)


def product(A: Bits, B: Bits) -> Bits:
    """A·B of A (n, ⌈l/64⌉) and B (l, ⌈m/64⌉): row i is the or of B's rows where A's row i is true."""
    picked = unpack(A, len(B))
    out = np.zeros((len(A), B.shape[1]), np.uint64)
    for i in range(len(A)):
        out[i] = np.bitwise_or.reduce(B[picked[i]], axis=0)
    return out


def pass_over(M: Bits, U: Bits, V: Bits, X: Bits, Y: Bits) -> tuple[Bits, Bits]:
    """M·X and Mᵀ·Y of the old M (n, ⌈m/64⌉), which becomes M | U·Vᵀ in place.

    U (k, ⌈n/64⌉), V (k, ⌈m/64⌉), X (p, ⌈m/64⌉), Y (q, ⌈n/64⌉), results (p, ⌈n/64⌉), (q, ⌈m/64⌉): factors by columns.
    """
    n = len(M)
    met = np.stack([(M & x).any(axis=1) for x in X]) if len(X) else np.empty((0, n), bool)
    MX, MtY = pack(met), product(Y, M)
    M |= product(transposed(U, n), V)
    return MX, MtY
