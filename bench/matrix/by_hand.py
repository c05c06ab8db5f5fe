"""Triggers as an expert would write them on the kernels: what compiled ones are measured against.

Each keeps its program's result as one input changes by U·Vᵀ, or gets an edge.
"""

from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from squallpy.runtime.kernels.matrix import boolean, dense, symmetric, tropical
from squallpy.runtime.kernels.matrix.boolean import Bits
from squallpy.runtime.kernels.matrix.sweeps import columns_of, rows_of

Reals = npt.NDArray[np.float64]


def aligned(values: npt.NDArray[np.floating[Any]]) -> Reals:
    n, m = values.shape
    room: Reals = rows_of(n, m, values.dtype)
    room[:] = values
    return room


def beside(*parts: Reals) -> Reals:
    out: Reals = columns_of(len(parts[0]), sum(part.shape[1] for part in parts), parts[0].dtype)
    return np.concatenate(parts, axis=1, out=out)


class Powers:
    """A, A², A⁴ … Aᵏ: each view is visited once."""

    def __init__(self, A: Reals, k: int) -> None:
        self.views = [aligned(A)]
        while len(self.views) < k.bit_length():
            self.views.append(aligned(self.views[-1] @ self.views[-1]))

    def update(self, U: Reals, V: Reals) -> None:
        for M in self.views[:-1]:
            MU, MtV = dense.pass_over(M, U, V, U, V)
            U, V = beside(U, MU + U @ (V.T @ U)), beside(MtV, V)
        dense.pass_over(self.views[-1], U, V, U[:, :0], V[:, :0])

    @property
    def result(self) -> Reals:
        return self.views[-1]


class Ols:
    """W = (X'X)⁻¹, X'Y and θ; a row of X changes. Only the lower triangle of W is read and written."""

    def __init__(self, X: Reals, Y: Reals) -> None:
        self.X, self.Y, self.W, self.XtY = X, Y, aligned(np.linalg.inv(X.T @ X)), X.T @ Y
        self.result = self.W @ self.XtY

    def update(self, U: Reals, V: Reals) -> None:
        """U has one row that is not zero, a 1."""
        (i,) = np.nonzero(U[:, 0])[0]
        old = self.X[i].copy()
        self.X[i] += V[:, 0]
        F = beside(self.X[i, :, None], old[:, None])  # X'X gains the first column's square and loses the other's
        WF = symmetric.pass_over(self.W, F[:, :0], F[:, :0], F)
        step = WF @ -np.linalg.inv(np.diag([1.0, -1.0]) + F.T @ WF)
        symmetric.pass_over(self.W, step, WF, F[:, :0])
        self.XtY += V @ self.Y[i, None]
        self.result = self.result + (WF[:, :1] - WF[:, 1:]) @ self.Y[i, None] + step @ (WF.T @ self.XtY)


class Reachability:
    """I + G·(I + G·…) for undirected graphs, so that rows are columns; an edge is added."""

    def __init__(self, G: Bits, hops: int) -> None:
        self.G, one = G.copy(), boolean.pack(np.eye(len(G), dtype=bool))
        self.views = [self.G | one]
        while len(self.views) < hops:
            self.views.append(boolean.product(self.G, self.views[-1]) | one)

    def update(self, a: int, b: int) -> None:
        ends = np.zeros((2, self.G.shape[1]), np.uint64)
        ends[0, a // 64], ends[1, b // 64] = np.uint64(1) << np.uint64(a % 64), np.uint64(1) << np.uint64(b % 64)
        none = ends[:0]
        boolean.pass_over(self.G, ends, ends[::-1], none, none)
        *_, U, V = boolean.pruned(self.views[0], ends, ends[::-1], none, none)
        for before, view in pairwise(self.views):
            _, GU = boolean.pass_over(self.G, none, none, none, U)
            U, V = np.concatenate([ends, GU]), np.concatenate([before[[b, a]], V])
            *_, U, V = boolean.pruned(view, U, V, none, none)

    @property
    def result(self) -> Bits:
        return self.views[-1]


class ShortestPaths:
    """The same over (min, +); an edge becomes shorter."""

    def __init__(self, G: Reals, hops: int) -> None:
        self.G, one = aligned(G), np.full_like(G, np.inf)
        np.fill_diagonal(one, 0)
        self.views = [aligned(np.minimum(G, one))]
        while len(self.views) < hops:
            self.views.append(aligned(np.minimum(tropical.product(self.G, self.views[-1]), one)))

    def update(self, a: int, b: int, length: float) -> None:
        n = len(self.G)
        ends, swapped = (np.full((n, 2), np.inf, self.G.dtype, order="F") for _ in range(2))
        ends[[a, b], [0, 1]] = 0
        swapped[[b, a], [0, 1]] = length
        none = ends[:, :0]
        self.G[a, b], self.G[b, a] = min(self.G[a, b], length), min(self.G[b, a], length)
        *_, U, V = tropical.pruned(self.views[0], ends, swapped, none, none)
        for before, view in pairwise(self.views):
            GU, _ = tropical.pass_over(self.G, none, none, U, none)
            U, V = beside(ends, GU), beside(before[[b, a]].T + length, V)
            *_, U, V = tropical.pruned(view, U, V, none, none)

    @property
    def result(self) -> Reals:
        return self.views[-1]
