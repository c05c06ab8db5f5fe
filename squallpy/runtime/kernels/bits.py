"""Boolean matrices, 64 cells to a word.

A matrix (n, m) is an array of its rows, (n, ⌈m/64⌉) uint64: cell j of a row is bit j mod 64 of word j // 64, and what
lies behind the last cell is 0. Factors are packed by columns: U (n, k) is `pack(U.T)`, (k, ⌈n/64⌉). The column layout
of a matrix is the row layout of its transpose; a symmetric one has both in one.

    pass_over(M, U, V, X, Y)  →  M·X, Mᵀ·Y of the old M;  M |= U·Vᵀ in place
    pruned(M, U, V, X, Y)     →  the same, and what of U, V made anything true
    update(M, U, V)           →  M |= U·Vᵀ in place, and which cells became true
    product(A, B)             →  A·B
    meeting(A, B)             →  A·Bᵀ

A row against a column stops at the first word in which both are true. A row against a matrix is the or of the rows
that it names, and stops when there is nothing left that any row has.
"""

import numpy as np
import numpy.typing as npt

from squallpy.runtime.kernels.compiled import GIVEN_MATRIX, MATRIX, VECTOR, Vector, inlined, kernel
from squallpy.runtime.kernels.machine import lowest, shift_right
from squallpy.runtime.kernels.sweeps import apart
from squallpy.runtime.kernels.threads import shared

Bits = npt.NDArray[np.uint64]
Cells = tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]

_PIECES = 8
_LITTLE = 1 << 22  # words that a product may visit before threads help
_SMALL = 1 << 17  # words of a matrix: to pass over them takes less than to start a thread


def words(cells: int) -> int:
    """How many words hold a row of so many cells."""
    return (cells + 63) // 64


def pack(cells: npt.NDArray[np.bool_]) -> Bits:
    """(n, m) truth values as bits (n, ⌈m/64⌉)."""
    n, m = cells.shape
    out = np.zeros((n, 8 * words(m)), np.uint8)
    lines = np.ascontiguousarray(cells)  # NB: of others numpy packs bit by bit, in seven times as long
    out[:, : (m + 7) // 8] = np.packbits(lines, axis=1, bitorder="little")
    return out.view(np.uint64)


def unpack(bits: Bits, cells: int) -> npt.NDArray[np.bool_]:
    """Bits (n, ⌈m/64⌉) as truth values (n, m)."""
    return np.unpackbits(bits.view(np.uint8), axis=1, count=cells, bitorder="little").view(np.bool_)


def count(bits: Bits) -> int:
    """How many cells are true."""
    return int(np.bitwise_count(bits).sum(dtype=np.int64))


def density(bits: Bits, cells: int) -> float:
    """The share of cells that are true, of rows of so many."""
    return count(bits) / max(1, len(bits) * cells)


def transposed(bits: Bits, cells: int) -> Bits:
    """The column layout of a matrix with so many columns: (n, ⌈m/64⌉) → (m, ⌈n/64⌉)."""
    out = np.zeros((cells, words(len(bits))), np.uint64)
    _transpose(_whole(bits), _whole(out), np.empty(64, np.int64))
    return out


def product(A: Bits, B: Bits, threads: int = 0) -> Bits:
    """A·B of A (n, ⌈l/64⌉) and B (l, ⌈m/64⌉): each row is the or of B's rows where A's row is true."""
    out = np.zeros((len(A), B.shape[1]), np.uint64)
    a, b, c = _whole(A), _whole(B), _whole(out)
    every = _whole(np.bitwise_or.reduce(B, axis=0, keepdims=True))
    pieces = max(1, min(_PIECES, len(A), len(A) * B.size // _LITTLE))
    cuts = [len(A) * piece // pieces for piece in range(pieces + 1)]
    shared(lambda piece: _multiply(a, b, every, c, cuts[piece], cuts[piece + 1]), pieces, threads)
    return out


def meeting(A: Bits, B: Bits) -> Bits:
    """A·Bᵀ of A (n, ⌈l/64⌉) and B (m, ⌈l/64⌉): which rows have a cell in common, (n, ⌈m/64⌉)."""
    out = np.zeros((len(A), words(len(B))), np.uint64)
    b = _whole(B)
    _met(_whole(A), b, _ends(b), _whole(out))
    return out


def pass_over(M: Bits, U: Bits, V: Bits, X: Bits, Y: Bits, threads: int = 0) -> tuple[Bits, Bits]:
    """M·X and Mᵀ·Y of the old M (n, ⌈m/64⌉), which becomes M | U·Vᵀ in place; only rows that U names are written.

    U (k, ⌈n/64⌉), V (k, ⌈m/64⌉), X (p, ⌈m/64⌉), Y (q, ⌈n/64⌉), results (p, ⌈n/64⌉), (q, ⌈m/64⌉): factors by columns.
    """
    return pruned(M, U, V, X, Y, threads)[:2]


def pruned(M: Bits, U: Bits, V: Bits, X: Bits, Y: Bits, threads: int = 0) -> tuple[Bits, Bits, Bits, Bits]:
    """`pass_over`, and an update U', V' of the same shape that would have changed M as much.

    What follows from a change follows from U', V', too: each column has but the rows and columns of M in which it made
    a cell true that those before it had not. So an update ends where it no longer makes a difference.
    """
    return _passed(M, U, V, X, Y, M[:0], threads)


def update(M: Bits, U: Bits, V: Bits, threads: int = 0) -> Cells:
    """M |= U·Vᵀ in place, telling the rows and columns of the cells that became true, in row-major order."""
    new = np.zeros_like(M)
    _passed(M, U, V, V[:0], U[:0], new, threads)
    rows = np.nonzero(new.any(axis=1))[0]
    at, columns = np.nonzero(unpack(new[rows], 64 * M.shape[1]))
    return rows[at], columns


def _passed(M: Bits, U: Bits, V: Bits, X: Bits, Y: Bits, new: Bits, threads: int) -> tuple[Bits, Bits, Bits, Bits]:
    """The products, and where each column of U, V made cells true; all of these are put into `new` if it has rows."""
    high, wide = words(len(M)), M.shape[1]
    assert U.shape[1] == Y.shape[1] == high and V.shape[1] == X.shape[1] == wide and len(U) == len(V)
    assert M.flags.c_contiguous, "a copy would be changed"
    U, V, X, Y = (apart(factor, M) if len(factor) else factor for factor in (U, V, X, Y))
    pieces = max(1, min(_PIECES, high, M.size // _SMALL))
    MX, changed = np.zeros((len(X), high), np.uint64), np.zeros_like(U)
    parts, gained = (np.zeros((pieces, len(of), wide), np.uint64) for of in (Y, V))
    m, u, v, x, y, mx, made, fresh = (_whole(bits) for bits in (M, U, V, X, Y, MX, changed, new))
    of_v, of_x = _ends(v), _ends(x)
    cuts = [high * piece // pieces for piece in range(pieces + 1)]

    def work(piece: int) -> None:
        mine = _whole(parts[piece]), _whole(gained[piece])
        _pass(m, u, v, x, y, mx, made, fresh, *mine, of_v, of_x, cuts[piece], cuts[piece + 1])

    shared(work, pieces, threads)
    return MX, _together(parts), changed, _together(gained)


def _together(parts: Bits) -> Bits:
    out: Bits = parts[0] if len(parts) == 1 else np.bitwise_or.reduce(parts, axis=0)
    return out


def _whole(bits: Bits) -> npt.NDArray[np.int64]:
    """The same words, signed, as kernels take them."""
    return np.ascontiguousarray(bits).view(np.int64)


@kernel(f"{MATRIX}({GIVEN_MATRIX})")
def _ends(rows: Vector) -> npt.NDArray[np.int64]:
    """The first word of each row that is not 0, and the word behind the last."""
    out = np.zeros((rows.shape[0], 2), np.int64)
    for i in range(rows.shape[0]):
        for w in range(rows.shape[1]):
            if rows[i, w] != 0:
                out[i, 0] = w if out[i, 1] == 0 else out[i, 0]
                out[i, 1] = w + 1
    return out


@inlined
def _meet(a: Vector, i: int, b: Vector, j: int, first: int, last: int) -> bool:
    """Whether two rows have a cell in common, in some words."""
    w = first
    while w + 8 <= last:
        both = 0
        for x in range(8):
            both |= a[i, w + x] & b[j, w + x]
        if both != 0:
            return True
        w += 8
    while w < last:
        if a[i, w] & b[j, w] != 0:
            return True
        w += 1
    return False


@inlined
def _lacks(a: Vector, i: int, b: Vector, j: int, first: int, last: int) -> bool:
    """Whether row i of a lacks a cell that row j of b has, in some words."""
    w = first
    while w + 8 <= last:
        more = 0
        for x in range(8):
            more |= b[j, w + x] & ~a[i, w + x]
        if more != 0:
            return True
        w += 8
    while w < last:
        if b[j, w] & ~a[i, w] != 0:
            return True
        w += 1
    return False


@kernel(
    f"void({MATRIX}, {', '.join([GIVEN_MATRIX] * 4)}, {', '.join([MATRIX] * 5)}, {GIVEN_MATRIX}, {GIVEN_MATRIX}, "
    "int64, int64)"
)
def _pass(
    M: Vector, U: Vector, V: Vector, X: Vector, Y: Vector, MX: Vector, changed: Vector, new: Vector, MtY: Vector,
    gained: Vector, of_V: Vector, of_X: Vector, first: int, last: int,
) -> None:  # fmt: skip
    """Words first … last - 1 of a column, which are 64 rows each."""
    for word in range(first, last):
        top = 64 * word
        for x in range(X.shape[0]):
            found = 0
            for i in range(top, min(top + 64, M.shape[0])):
                if _meet(M, i, X, x, of_X[x, 0], of_X[x, 1]):
                    found |= 1 << (i - top)
            MX[x, word] = found
        for y in range(Y.shape[0]):
            rows = Y[y, word]
            while rows != 0:
                i = top + lowest(rows)
                for w in range(M.shape[1]):
                    MtY[y, w] |= M[i, w]
                rows &= rows - 1
        for u in range(U.shape[0]):
            rows = U[u, word]
            while rows != 0:
                i = top + lowest(rows)
                if _lacks(M, i, V, u, of_V[u, 0], of_V[u, 1]):
                    changed[u, word] |= 1 << (i - top)
                    for w in range(of_V[u, 0], of_V[u, 1]):
                        more = V[u, w] & ~M[i, w]
                        M[i, w] |= more
                        gained[u, w] |= more
                        if new.shape[0] > 0:
                            new[i, w] |= more
                rows &= rows - 1


@kernel(f"void({GIVEN_MATRIX}, {GIVEN_MATRIX}, {GIVEN_MATRIX}, {MATRIX}, int64, int64)")
def _multiply(A: Vector, B: Vector, every: Vector, C: Vector, first: int, last: int) -> None:
    for i in range(first, last):
        for word in range(A.shape[1]):
            rows = A[i, word]
            if rows == 0:
                continue
            while rows != 0:
                at = 64 * word + lowest(rows)
                for w in range(C.shape[1]):
                    C[i, w] |= B[at, w]
                rows &= rows - 1
            if not _lacks(C, i, every, 0, 0, C.shape[1]):
                break


@kernel(f"void({GIVEN_MATRIX}, {GIVEN_MATRIX}, {GIVEN_MATRIX}, {MATRIX})")
def _met(A: Vector, B: Vector, of_B: Vector, out: Vector) -> None:
    for i in range(A.shape[0]):
        for j in range(B.shape[0]):
            if _meet(A, i, B, j, of_B[j, 0], of_B[j, 1]):
                out[i, j >> 6] |= 1 << (j & 63)


@kernel(f"void({GIVEN_MATRIX}, {MATRIX}, {VECTOR})")
def _transpose(A: Vector, out: Vector, square: Vector) -> None:
    """64 × 64 cells at a time: halves of these change places, then their halves …  (Warren, Hacker's Delight, 7-3)."""
    for word in range(A.shape[1]):
        for top in range(0, A.shape[0], 64):
            for x in range(64):
                square[x] = A[top + x, word] if top + x < A.shape[0] else 0
            width, mask = 32, 0xFFFFFFFF
            while width > 0:
                x = 0
                while x < 64:
                    moved = (shift_right(square[x], width) ^ square[x + width]) & mask
                    square[x + width] ^= moved
                    square[x] ^= moved << width
                    x = (x + width + 1) & ~width
                width >>= 1
                mask ^= mask << width
            for x in range(min(64, out.shape[0] - 64 * word)):
                out[64 * word + x, top // 64] = square[x]
