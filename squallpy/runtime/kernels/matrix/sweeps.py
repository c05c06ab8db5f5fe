"""One pass through the memory of a matrix, by blocks of rows that threads share: what `dense` and its like stand on.

    swept(semiring, M, U, V, X, Y)  →  M ⊗ X, Mᵀ ⊗ Y of the old M;  M ⊕= U ⊗ Vᵀ in place

A block's rows are taken ROWS at a time, strips of columns outermost, so that the strips of V, X and Mᵀ·Y stay in the
cache. Blocks do not depend on the number of threads, and their parts of Mᵀ·Y are added up in order: the same bits
whoever computes.
"""

from functools import cache
from types import FunctionType
from typing import Any

import numpy as np
import numpy.typing as npt

from squallpy.runtime.kernels.intrinsics import load
from squallpy.runtime.kernels.kernel_compiler import inlined, kernel
from squallpy.runtime.kernels.matrix import tiles
from squallpy.runtime.kernels.matrix.tiles import ROWS, SEMIRINGS, Semiring
from squallpy.runtime.kernels.threads import shared

Matrix = npt.NDArray[Any]

_LINE = 64  # bytes of the cache
_PAGE = 4096  # bytes; what lies a multiple of them apart shares few lines of the cache
_STRIP = 4096  # bytes of a row at a time
_BLOCKS = 8  # of rows
_DEPTH = 256  # terms of a product at a time
_SMALL = 1 << 17  # cells: to pass over them takes less than to start a thread


class Marks:
    """Marks of what an update changed, in bytes for rows and for the columns of tiles; unchanged ones may be marked,
    too."""

    def __init__(self, semiring: Semiring, n: int, m: int) -> None:
        self._tiled, self._m = semiring.tiled, m
        self._rows, self._columns = np.zeros(n, np.bool_), np.zeros(m // semiring.tiled + 1, np.bool_)

    @property
    def places(self) -> tuple[int, int]:
        return _address(self._rows), _address(self._columns)

    @property
    def rows(self) -> npt.NDArray[np.bool_]:
        """Rows, (n,): the first of a tile's is marked for all of them."""
        return self._rows | np.repeat(self._rows[::ROWS], ROWS)[: len(self._rows)]

    @property
    def columns(self) -> npt.NDArray[np.bool_]:
        """Columns, (m,)."""
        return np.repeat(self._columns, self._tiled)[: self._m]


def rows_of(n: int, m: int, dtype: npt.DTypeLike) -> Matrix:
    """Allocate an (n, m) matrix in C order, its rows aligned to cache lines; not initialised."""
    size = np.dtype(dtype).itemsize
    lines = -(-m * size // _LINE)
    if n > 1 and lines % (_PAGE // _LINE) == 0:
        lines += 1
    memory = np.empty((n * lines + 1) * _LINE, np.uint8)
    start = -_address(memory) % _LINE
    room: Matrix = memory[start : start + n * lines * _LINE].view(dtype)
    return room.reshape(n, lines * _LINE // size)[:, :m]


def columns_of(n: int, k: int, dtype: npt.DTypeLike) -> Matrix:
    """Allocate an (n, k) factor, its columns contiguous and aligned to cache lines; not initialised."""
    return rows_of(k, n, dtype).T


def by_columns(factor: Matrix, dtype: npt.DTypeLike) -> Matrix:
    """Return the factor itself if its columns are contiguous and lie well in the cache, else a copy."""
    (n, k), (down, apart), size = factor.shape, factor.strides, factor.itemsize
    usable = k < 2 or (apart >= n * size and apart % size == 0 and (k <= 8 or apart % _PAGE))
    if usable and factor.dtype == dtype and (n < 2 or down == size):
        return factor
    copy = columns_of(n, k, dtype)
    copy[:] = factor
    return copy


def apart(factor: Matrix, M: Matrix) -> Matrix:
    """Copy a factor that is a part of M, which is about to change."""
    return factor.copy(order="A") if np.may_share_memory(factor, M) else factor


def swept(
    semiring: Semiring, M: Matrix, U: Matrix, V: Matrix, X: Matrix, Y: Matrix, threads: int = 0, *, lower: bool = False,
    sparse: bool = False, marks: Marks | None = None,
) -> tuple[Matrix, Matrix]:  # fmt: skip
    """Compute M ⊗ X (n, p) and Mᵀ ⊗ Y (m, q) of the old M (n, m), which becomes M ⊕ U ⊗ Vᵀ in place.

    Args:
        lower: M is given by its lower triangle and square blocks on the diagonal; Mᵀ ⊗ Y leaves these out.
        sparse: Rows of U that are zero change nothing.
        marks: Set where an idempotent semiring's M changes.
        threads: 0 for as many as there are processors.
    """
    n, m = M.shape
    assert U.shape[0] == Y.shape[0] == n and V.shape[0] == X.shape[0] == m and U.shape[1] == V.shape[1]
    assert M.size == 0 or m == 1 or M.strides[1] == M.itemsize, "rows are not contiguous"
    U, V, X, Y = (by_columns(apart(factor, M), M.dtype) for factor in (U, V, X, Y))
    assert M.flags.writeable or not U.shape[1], "M is read-only"
    k, p, q = U.shape[1], X.shape[1], Y.shape[1]
    cuts = _cuts(n, m, lower)
    blocks = len(cuts) - 1
    MX, parts = columns_of(n, p, M.dtype), rows_of(blocks * q, m, M.dtype).reshape(blocks, q, m)
    MX[:] = semiring.zero
    if semiring.idempotent and marks is None:
        marks = Marks(semiring, n, m)
    frame = np.array((
        _address(M), M.strides[0] // M.itemsize, m, *_lying(U), *_lying(V), *_lying(X), *_lying(MX), *_lying(Y),
        parts.strides[1] // M.itemsize, *(marks.places if marks else (0, 0)), k, p, q, lower, sparse,
    ), np.int64)  # fmt: skip
    sweep, shared_by_all, start, step = sweep_of(semiring), _address(frame), _address(parts), parts.strides[0]

    def work(block: int) -> None:
        parts[block] = semiring.zero
        sweep(cuts[block], cuts[block + 1], start + block * step, shared_by_all)

    if k + p + q:
        shared(work, blocks, threads)
    for part in parts[1:] if q else ():
        semiring.ufunc(parts[0], part, out=parts[0])
    return MX, parts[0].T


def multiplied(semiring: Semiring, A: Matrix, B: Matrix, threads: int = 0) -> Matrix:
    """Compute A ⊗ B: (n, l) ⊗ (l, m) → (n, m), in C order.

    It takes some of l at a time, so that these rows of B stay in the cache.
    """
    C: Matrix = np.full((A.shape[0], B.shape[1]), semiring.zero, A.dtype)
    for first in range(0, A.shape[1], _DEPTH):
        some = slice(first, first + _DEPTH)
        swept(semiring, C, A[:, some], B[some].T, C[:0].T, C[:, :0], threads, sparse=semiring.idempotent)
    return C


def _address(array: Matrix) -> int:
    place: int = array.__array_interface__["data"][0]  # in half of the time of array.ctypes.data
    return place


def _lying(factor: Matrix) -> tuple[int, int]:
    """Return where a factor lies, and how many cells its columns are apart."""
    return _address(factor), factor.strides[1] // factor.itemsize


def _cuts(n: int, m: int, lower: bool) -> list[int]:
    """Cut rows into blocks; of a triangle, into blocks of about the same area."""
    blocks = max(1, min(_BLOCKS, n * m // _SMALL))
    shares = [(block / blocks) ** (0.5 if lower else 1.0) for block in range(1, blocks)]
    return [0, *(int(n * share) // _LINE * _LINE for share in shares), n]


@cache
def sweep_of(semiring: Semiring) -> Any:
    """Compile the sweep of a semiring at its first use, or take it from the disk cache."""
    name = next(name for name, some in SEMIRINGS.items() if some is semiring)
    tall, flat = (inlined(_copy(_strip, f"_strip_{name}", semiring, tiles.steps(semiring, rows))) for rows in (ROWS, 1))
    made = _copy(_sweep, f"_sweep_{name}", semiring, {"TALL": tall, "FLAT": flat})
    return kernel("void(int64, int64, int64, int64)")(made)


def _copy(template: Any, name: str, semiring: Semiring, parts: dict[str, Any]) -> Any:
    """Copy the template as a function for a semiring; no closure, which numba's cache would not know again."""
    constants = {
        "SIZE": semiring.size,
        "LANES": semiring.lanes,
        "TILED": semiring.tiled,
        "STRIP": _STRIP // semiring.size,
    }
    made: Any = FunctionType(template.__code__, {**globals(), **constants, **parts}, name)
    made.__qualname__ = name
    return made


# what the copies of the templates get for these names
SIZE = LANES = TILED = STRIP = 1
DOTS_1: Any = None
DOTS_2 = AHEAD_1 = AHEAD_2 = DOTS_END = TILE = TILE_END = USED = TALL = FLAT = DOTS_1


def _strip(
    M: int, stride: int, cells: int, U: int, us: int, V: int, vs: int, X: int, xs: int, out: int, os: int, Y: int,
    ys: int, W: int, ws: int, row: int, column: int, k: int, p: int, q: int, sparse: int,
) -> None:  # fmt: skip
    """Sweep so many cells of the rows that start at M, with what lies beside them from the addresses given."""
    whole, done = cells - cells % LANES, 0
    if sparse and not USED(U, us, k):
        k = 0
    while done + 2 <= p:
        if k + q > 0:
            DOTS_2(M, stride, X + done * xs * SIZE, xs, whole, out + done * os * SIZE, os)
        else:
            AHEAD_2(M, stride, X + done * xs * SIZE, xs, whole, out + done * os * SIZE, os)
        done += 2
    if done < p:
        if k + q > 0:
            DOTS_1(M, stride, X + done * xs * SIZE, xs, whole, out + done * os * SIZE, os)
        else:
            AHEAD_1(M, stride, X + done * xs * SIZE, xs, whole, out + done * os * SIZE, os)
    if whole < cells:
        for x in range(p):
            DOTS_END(M + whole * SIZE, stride, X + (x * xs + whole) * SIZE, xs, cells - whole, out + x * os * SIZE, os)
    if k + q > 0:
        j = 0
        while j + TILED <= cells:
            TILE(M + j * SIZE, stride, U, us, k, V + j * SIZE, vs, Y, ys, q, W + j * SIZE, ws, row, column + j // TILED)
            j += TILED
        while j < cells:
            TILE_END(
                M + j * SIZE, stride, U, us, k, V + j * SIZE, vs, Y, ys, q, W + j * SIZE, ws, row, column + j // TILED
            )
            j += 1


def _sweep(first: int, last: int, W: int, frame: int) -> None:
    """Sweep rows first … last - 1; Mᵀ·Y goes to W.

    `lower`: as far as the block on the diagonal, and that without W.

    All else is the same for all blocks and in the frame, which costs less than an argument each.
    """
    M, stride, m, U, us = load(frame, 0), load(frame, 1), load(frame, 2), load(frame, 3), load(frame, 4)
    V, vs, X, xs, out = load(frame, 5), load(frame, 6), load(frame, 7), load(frame, 8), load(frame, 9)
    os, Y, ys, ws, row = load(frame, 10), load(frame, 11), load(frame, 12), load(frame, 13), load(frame, 14)
    column, k, p, q = load(frame, 15), load(frame, 16), load(frame, 17), load(frame, 18)
    lower, sparse = load(frame, 19), load(frame, 20)
    for start in range(0, m, STRIP):
        i, end = first, min(start + STRIP, m)
        while i < last:
            block, tall, at = i - i % TILED, i + ROWS <= last, M + i * stride * SIZE
            for on_diagonal in range(2 if lower else 1):
                low, high, few = start, min(end, block) if lower else end, q
                if on_diagonal:
                    low, high, few = max(start, block), min(end, block + TILED), 0
                if low < high:
                    x, u, v = X + low * SIZE, U + i * SIZE, V + low * SIZE
                    o, y, w = out + i * SIZE, Y + i * SIZE, W + low * SIZE
                    a, r, c = at + low * SIZE, row + i, column + low // TILED
                    if tall:
                        TALL(a, stride, high - low, u, us, v, vs, x, xs, o, os, y, ys, w, ws, r, c, k, p, few, sparse)
                    else:
                        FLAT(a, stride, high - low, u, us, v, vs, x, xs, o, os, y, ys, w, ws, r, c, k, p, few, sparse)
            i += ROWS if tall else 1
