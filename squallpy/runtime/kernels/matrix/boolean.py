"""Boolean matrices, 64 cells to a word.

A matrix (n, m) is an array of its rows, (n, ⌈m/64⌉) uint64: cell j of a row is bit j mod 64 of word j // 64, and what
lies behind the last cell is 0. Factors are packed by columns: U (n, k) is `pack(U.T)`, (k, ⌈n/64⌉). The column layout
of a matrix is the row layout of its transpose; a symmetric one has both in one.

    pass_over(M, U, V, X, Y)  →  M·X, Mᵀ·Y of the old M;  M |= U·Vᵀ in place
    pruned(M, U, V, X, Y)     →  the same, and what of U, V made anything true
    visit(steps, Ms, lines)   →  such passes one after the other, their factors being rows of one array
    product(A, B)             →  A·B
    meeting(A, B)             →  A·Bᵀ

A row against a column stops at the first word in which both are true. A row against a matrix is the or of the rows
that it names, and stops when there is nothing left that any row has.
"""

from collections.abc import Iterable, Sequence
from itertools import accumulate, chain, pairwise
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from numba import carray  # type: ignore[attr-defined]

from squallpy.runtime.kernels.intrinsics import lowest, pointer, shift_right
from squallpy.runtime.kernels.kernel_compiler import (
    GIVEN_MATRIX,
    GIVEN_VECTOR,
    MATRIX,
    VECTOR,
    Vector,
    inlined,
    kernel,
    making,
)
from squallpy.runtime.kernels.threads import shared

Bits = npt.NDArray[np.uint64]
Numbers = npt.NDArray[np.int64]
Lines = Sequence[int]

_PIECES = 8
_LITTLE = 1 << 22  # words that a product may visit before threads help
_SMALL = 1 << 17  # words of a matrix: to pass over them takes less than to start a thread
_FEW = 16  # cells of each word of a column, up to which rows of a symmetric matrix are or-ed, not met
_THIN = 16  # rows up to which NumPy takes longer to pack them
_HEAD, _K, _LAST = 5, 1, 4  # words before the numbers of lines in the code of a step, and which of them is what


def words(cells: int) -> int:
    """Return how many words hold a row of so many cells."""
    return (cells + 63) // 64


def pack(cells: npt.NDArray[np.bool_]) -> Bits:
    """Pack truth values (n, m) into bits (n, ⌈m/64⌉)."""
    n, m = cells.shape
    if n <= _THIN:
        return _pack(cells)
    out = np.zeros((n, 8 * words(m)), np.uint8)
    lines = np.ascontiguousarray(cells)  # NB: of others numpy packs bit by bit, in seven times as long
    out[:, : (m + 7) // 8] = np.packbits(lines, axis=1, bitorder="little")
    return out.view(np.uint64)


def unpack(bits: Bits, cells: int) -> npt.NDArray[np.bool_]:
    """Unpack bits (n, ⌈m/64⌉) into truth values (n, m)."""
    return np.unpackbits(bits.view(np.uint8), axis=1, count=cells, bitorder="little").view(np.bool_)


def count(bits: Bits) -> int:
    """Count the cells that are true."""
    return int(np.bitwise_count(bits).sum(dtype=np.int64))


def density(bits: Bits, cells: int) -> float:
    """Return the fraction of cells that are true, in rows of so many `cells`."""
    return count(bits) / max(1, len(bits) * cells)


def transposed(bits: Bits, cells: int) -> Bits:
    """Transpose a matrix with so many columns: (n, ⌈m/64⌉) → (m, ⌈n/64⌉)."""
    out = np.zeros((cells, words(len(bits))), np.uint64)
    _transpose(_whole(bits), _whole(out), np.empty(64, np.int64))
    return out


def product(A: Bits, B: Bits, threads: int = 0) -> Bits:
    """Compute A·B of A (n, ⌈l/64⌉) and B (l, ⌈m/64⌉): each row is the OR of B's rows where A's row is true."""
    out = np.zeros((len(A), B.shape[1]), np.uint64)
    a, b, c = _whole(A), _whole(B), _whole(out)
    every = _whole(np.bitwise_or.reduce(B, axis=0, keepdims=True))
    pieces = max(1, min(_PIECES, len(A), len(A) * B.size // _LITTLE))
    cuts = [len(A) * piece // pieces for piece in range(pieces + 1)]
    shared(lambda piece: _multiply(a, b, every, c, cuts[piece], cuts[piece + 1]), pieces, threads)
    return out


def meeting(A: Bits, B: Bits) -> Bits:
    """Compute A·Bᵀ of A (n, ⌈l/64⌉) and B (m, ⌈l/64⌉): true where two rows have a cell in common, (n, ⌈m/64⌉)."""
    out = np.zeros((len(A), words(len(B))), np.uint64)
    _met(_whole(A), _whole(B), _whole(out))
    return out


def pass_over(M: Bits, U: Bits, V: Bits, X: Bits, Y: Bits, threads: int = 0) -> tuple[Bits, Bits]:
    """Compute M·X and Mᵀ·Y of the old M (n, ⌈m/64⌉), which becomes M | U·Vᵀ in place; only rows that U names are
    written.

    U (k, ⌈n/64⌉), V (k, ⌈m/64⌉), X (p, ⌈m/64⌉), Y (q, ⌈n/64⌉), results (p, ⌈n/64⌉), (q, ⌈m/64⌉): factors by columns.
    """
    return pruned(M, U, V, X, Y, threads)[:2]


def pruned(
    M: Bits, U: Bits, V: Bits, X: Bits, Y: Bits, threads: int = 0, symmetric: bool = False
) -> tuple[Bits, Bits, Bits, Bits]:
    """Do `pass_over`, and return an update U', V' of the same shape that would have changed M as much.

    U', V' have the same consequences: each column has only the rows and columns of M in which it made a cell true that
    the columns before it had not. So a series of updates ends where it no longer makes a difference. Of a symmetric M
    the rows that a column of X names are or-ed where these are few.
    """
    high, wide, (k, p, q) = words(len(M)), M.shape[1], map(len, (U, X, Y))
    assert U.shape[1] == Y.shape[1] == high and V.shape[1] == X.shape[1] == wide and k == len(V)
    ends = [0, *accumulate((k, k, p, q, p, q, k, k))]
    u, v, x, y, mx, mty, left, right = (slice(*of) for of in pairwise(ends))
    lines = np.zeros((ends[-1], max(high, wide)), np.uint64)
    lines[u, :high], lines[v, :wide], lines[x, :wide], lines[y, :high] = U, V, X, Y
    visit([_code(0, k, p, q, False, range(ends[-1]))], [(M, symmetric)], lines, threads)
    found = ((mx, high), (mty, wide), (left, high), (right, wide))
    MX, MtY, U, V = (np.ascontiguousarray(lines[of, :size]) for of, size in found)
    return MX, MtY, U, V


IDENTITY = -1


class MatrixPass(NamedTuple):
    """Pass over matrix number `matrix`, or IDENTITY, as numbers of lines: factors, and zero lines that take their
    results.

    `last`: nothing follows where the pass changes nothing.
    """

    matrix: int
    x: Lines
    mx: Lines
    y: Lines = ()
    mty: Lines = ()
    u: Lines = ()
    v: Lines = ()
    left: Lines = ()
    right: Lines = ()
    last: bool = False

    @property
    def code(self) -> Numbers:
        """Words that encode the step for the kernel."""
        numbers = chain(self.u, self.v, self.x, self.y, self.mx, self.mty, self.left, self.right)
        return _code(self.matrix, len(self.u), len(self.x), len(self.y), self.last, numbers)


def _code(matrix: int, k: int, p: int, q: int, last: bool, numbers: Iterable[int]) -> Numbers:
    return np.array([matrix, k, p, q, last, *numbers], np.int64)


def visit(steps: Sequence[Numbers], matrices: Sequence[tuple[Bits, bool]], lines: Bits, threads: int = 0) -> None:
    """Run passes, one after the other, over matrices, each given with whether it is symmetric.

    Lines (l, w) are columns of factors, of as many words as the longest of them has.
    """
    assert all(matrix.flags.c_contiguous for matrix, _ in matrices), "a copy would be changed"
    known = [(matrix.ctypes.data, *matrix.shape, symmetric) for matrix, symmetric in matrices]
    frame, of_lines = np.array(known, np.int64), lines.view(np.int64)
    pieces = min(_PIECES, max(matrix.size for matrix, _ in matrices) // _SMALL)
    if pieces < 2:
        _visit(np.concatenate(steps) if len(steps) > 1 else steps[0], frame, of_lines, 0, 1)
        return
    for step in steps:
        parts = [of_lines.copy() for _ in range(pieces)]
        shared(lambda piece, s=step, p=parts: _visit(s, frame, p[piece], piece, pieces), pieces, threads)  # type: ignore[misc]
        np.bitwise_or.reduce(parts, axis=0, out=of_lines)
        if step[_LAST] and not of_lines[step[len(step) - 2 * step[_K] :]].any():
            return


def _whole(bits: Bits) -> npt.NDArray[np.int64]:
    """View the words as signed, as kernels take them."""
    return np.ascontiguousarray(bits).view(np.int64)


@kernel("uint64[:, ::1](Array(boolean, 2, 'A', readonly=True))")
def _pack(cells: npt.NDArray[np.bool_]) -> Bits:
    out = np.zeros((cells.shape[0], (cells.shape[1] + 63) >> 6), np.uint64)
    words = out.view(np.int64)
    for i in range(cells.shape[0]):
        for j in range(cells.shape[1]):
            words[i, j >> 6] |= cells[i, j] << (j & 63)
    return out


@inlined
def _ends(rows: Vector, i: int, words: int) -> tuple[int, int]:
    """Find the first word of a row that is not 0, and the end of the last one."""
    first, last = 0, words
    while first < last and rows[i, first] == 0:
        first += 1
    while first < last and rows[i, last - 1] == 0:
        last -= 1
    return first, last


@inlined
def _are_few(rows: Vector, i: int, words: int, most: int) -> bool:
    """True if the first words of a row have no more than `most` cells."""
    found = 0
    for w in range(words):
        cells = rows[i, w]
        while cells != 0:
            found += 1
            if found > most:
                return False
            cells &= cells - 1
    return True


@inlined
def _meet(a: Vector, i: int, b: Vector, j: int, first: int, last: int) -> bool:
    """True if two rows have a cell in common, in some words."""
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
    """True if row i of a lacks a cell that row j of b has, in some words."""
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


@making
def _matrix_at(where: int, n: int, m: int) -> Vector:
    """Return the matrix at an address."""
    there: Any = pointer(where)
    return carray(there, (n, m))


@inlined
def _met_by(M: Vector, top: int, X: Vector, x: int, first: int, last: int) -> int:
    """Select, of 64 rows from row `top` on, those that have a cell in common with a row of X, as a word."""
    found = 0
    for i in range(top, min(top + 64, M.shape[0])):
        if _meet(M, i, X, x, first, last):
            found |= 1 << (i - top)
    return found


@inlined
def _or_rows(M: Vector, names: int, top: int, out: Vector, at: int) -> None:
    """Add the rows that a word names, from row `top` on, to a row of `out`."""
    while names != 0:
        i = top + lowest(names)
        for w in range(M.shape[1]):
            out[at, w] |= M[i, w]
        names &= names - 1


@inlined
def _changed(M: Vector, top: int, lines: Vector, u: int, v: int, first: int, last: int, left: int, right: int) -> bool:
    """Add line v to those of 64 rows, from row `top` on, that line u names.

    The lines `left` and `right` take what has changed.
    """
    word, any_changed = top >> 6, False
    rows = lines[u, word]
    while rows != 0:
        i = top + lowest(rows)
        if _lacks(M, i, lines, v, first, last):
            any_changed = True
            lines[left, word] |= 1 << (i - top)
            for w in range(first, last):
                true = lines[v, w] & ~M[i, w]
                M[i, w] |= true
                lines[right, w] |= true
        rows &= rows - 1
    return any_changed


@kernel(f"void({GIVEN_VECTOR}, {GIVEN_MATRIX}, {MATRIX}, int64, int64)")
def _visit(steps: Vector, matrices: Vector, lines: Vector, piece: int, pieces: int) -> None:
    """Run steps, given as codes, over one piece of each matrix, given by address."""
    at = 0
    while at < len(steps):
        of, k, p, q, last = steps[at], steps[at + _K], steps[at + 2], steps[at + 3], steps[at + _LAST]
        if of == IDENTITY:
            for i in range(p):
                for w in range(lines.shape[1]):
                    lines[steps[at + _HEAD + p + i], w] |= lines[steps[at + _HEAD + i], w]
            at += _HEAD + 2 * p
            continue
        M = _matrix_at(matrices[of, 0], matrices[of, 1], matrices[of, 2])
        symmetric, high, wide = matrices[of, 3] != 0, (M.shape[0] + 63) >> 6, M.shape[1]
        u = at + _HEAD
        v, x = u + k, u + 2 * k
        y, mx, mty = x + p, x + p + q, x + 2 * p + q
        left = mty + q
        right, at = left + k, left + 2 * k
        ends = np.empty((k + p, 2), np.int64)
        for i in range(k + p):  # of all V, then of all X
            ends[i] = _ends(lines, steps[v + i], wide)
        for i in range(p):
            if symmetric and _are_few(lines, steps[x + i], wide, _FEW * wide):
                ends[k + i, 1] = 0
        changed = False
        for word in range(high * piece // pieces, high * (piece + 1) // pieces):
            top = 64 * word
            for i in range(p):
                if ends[k + i, 1] > 0:
                    first, behind = ends[k + i, 0], ends[k + i, 1]
                    lines[steps[mx + i], word] = _met_by(M, top, lines, steps[x + i], first, behind)
                elif symmetric:
                    _or_rows(M, lines[steps[x + i], word], top, lines, steps[mx + i])
            for i in range(q):
                _or_rows(M, lines[steps[y + i], word], top, lines, steps[mty + i])
            for i in range(k):
                first, behind = ends[i, 0], ends[i, 1]
                changed |= _changed(
                    M, top, lines, steps[u + i], steps[v + i], first, behind, steps[left + i], steps[right + i]
                )
        if last and pieces == 1 and not changed:
            return


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


@kernel(f"void({GIVEN_MATRIX}, {GIVEN_MATRIX}, {MATRIX})")
def _met(A: Vector, B: Vector, out: Vector) -> None:
    for j in range(B.shape[0]):
        first, last = _ends(B, j, B.shape[1])
        for i in range(A.shape[0]):
            if _meet(A, i, B, j, first, last):
                out[i, j >> 6] |= 1 << (j & 63)


@kernel(f"void({GIVEN_MATRIX}, {MATRIX}, {VECTOR})")
def _transpose(A: Vector, out: Vector, square: Vector) -> None:
    """Transpose 64 × 64 cells at a time: exchange their halves, then the halves of these … (Warren, Hacker's Delight,
    7-3)."""
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
