"""Solvers of models: from the records of a view, by groups, to rows of a model.

(3, [6], [14])   →   ('', '', 3), (x, '', 6), (x, x, 14)
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from squallpy.base.records import dataclass
from squallpy.base.rings import Cofactor
from squallpy.functions.model_functions import DESCENT, ChowLiu, LeastSquares, list_monomials
from squallpy.program.auxiliary.model_rows import ModelRows
from squallpy.runtime.kernels.cofactor_blocks import unpack_blocks
from squallpy.runtime.kernels.memory_regions import Words
from squallpy.runtime.kernels.monomial_sums import unpack_monomials
from squallpy.runtime.models.chow_liu import chow_liu
from squallpy.runtime.models.cofactor_matrix import CofactorMatrix
from squallpy.runtime.models.least_squares import LinearRegression, gradient_descent, least_squares
from squallpy.runtime.models.mutual_information import mutual_information
from squallpy.runtime.state.pool_names import PoolName
from squallpy.runtime.state.state_store import Store

Records = tuple[Words, Words]  # keys and payloads
Reals = npt.NDArray[np.float64]
ONE = -1
"""The name of the constant 1, or of the intercept."""


@dataclass(frozen=True, slots=True)
class ModelTable:
    """The rows of a model for some groups, (rows,) each: the group, names of columns as numbers, and the value.

    `singular` counts the groups that have none because features are constant or collinear.
    """

    groups: Words
    names: tuple[Words, ...]
    values: Reals
    singular: int = 0

    @staticmethod
    def joined(parts: Iterable["ModelTable"]) -> "ModelTable":
        """Concatenate rows; of nothing there have to be some."""
        every = list(parts)
        names = tuple(np.concatenate(each) for each in zip(*(rows.names for rows in every), strict=True))
        values = np.concatenate([rows.values for rows in every])
        return ModelTable(np.concatenate([rows.groups for rows in every]), names, values)


class Solver(ABC):
    """A way from the records of a view to the rows of a model."""

    def change(
        self, store: Store, groups: Words, old: Records, new: Records, is_single: bool, is_first: bool
    ) -> tuple[ModelTable, ModelTable]:
        """Compute the rows of groups, keys in order, (n, width), before a batch and after it.

        Args:
            old, new: The records then, which begin with their group.
            is_single: There is one group, whose rows are there without any record, too.
            is_first: No batch was before.
        """
        return self.rows(groups, *old, is_single and not is_first), self.rows(groups, *new, is_single)

    @abstractmethod
    def rows(self, groups: Words, keys: Words, words: Words, is_single: bool) -> ModelTable:
        """Compute the rows of groups from records."""


class _Cells(Solver):
    """Count, sums and sums of products."""

    def __init__(self, ring: Cofactor, kind: ModelRows) -> None:
        self._ring, self._kind = ring, kind
        self._monomials = list(list_monomials(len(kind.variables), ring.degree))
        m = len(self._monomials)
        self._a = np.concatenate([[ONE], np.arange(m), np.repeat(np.arange(m), np.arange(1, m + 1))])
        self._b = np.concatenate([np.full(1 + m, ONE), *(np.arange(i + 1) for i in range(m))])

    def rows(self, groups: Words, keys: Words, words: Words, is_single: bool) -> ModelTable:
        place, present = _places(groups, keys), np.flatnonzero(words[:, 0])
        values = self._values(words)
        if is_single and not len(present):
            return ModelTable(np.zeros(1, np.int64), (np.array([ONE]), np.array([ONE])), np.zeros(1))
        names = (self._a, self._b) if len(present) == 1 else tuple(np.tile(x, len(present)) for x in (self._a, self._b))
        return ModelTable(np.repeat(place[present], len(self._a)), names, values[present].ravel())

    def _values(self, words: Words) -> Reals:
        """Compute the cells of each record."""
        count, sums, products = unpack_blocks(words, self._ring, self._kind.variables)
        return np.concatenate([count.astype(np.float64)[:, None], sums.sum(axis=0), products.sum(axis=0)], axis=1)


class _Monomials(_Cells):
    """Count, sums and sums of products of features that are products of variables."""

    def __init__(self, ring: Cofactor, kind: ModelRows) -> None:
        super().__init__(ring, kind)
        given = (tuple(kind.variables[i] for i in chosen) for chosen in (*self._monomials, ()))
        variables = np.array([(*chosen, *(-1,) * (ring.degree - len(chosen))) for chosen in given])
        self._multiplied = np.concatenate([variables[self._a], variables[self._b]], axis=1)

    def _values(self, words: Words) -> Reals:
        values: Reals = unpack_monomials(words, self._ring, self._multiplied).sum(axis=0)
        return values


class _Coefficients(Solver):
    """The coefficients of a regression; none where features are constant or collinear."""

    def __init__(self, ring: Cofactor, kind: ModelRows, model: LeastSquares) -> None:
        self._ring, self._kind = ring, kind
        features = [i for i in range(len(kind.variables)) if i != model.label]
        self._model = LinearRegression(model.label, features, model.intercept, model.ridge or 0.0)
        self._features = np.array([*([ONE] if model.intercept else []), *features], np.int64)

    def rows(self, groups: Words, keys: Words, words: Words, is_single: bool) -> ModelTable:
        matrices = self._matrices(words)
        solved = [least_squares(matrix, self._model) for matrix in matrices]
        return self._listed(_places(groups, keys), solved, matrices)

    def _matrices(self, words: Words) -> list[CofactorMatrix]:
        count, sums, products = unpack_blocks(words, self._ring, self._kind.variables)
        given = zip(count, sums.swapaxes(0, 1), products.swapaxes(0, 1), strict=True)
        return [CofactorMatrix.from_triangle(int(n), *both) for n, *both in given]

    def _listed(
        self, place: Words, solved: Sequence[Reals | None], matrices: Sequence[CofactorMatrix] = ()
    ) -> ModelTable:
        """List coefficients as rows of the groups at `place`, and count those of `matrices` that have none."""
        there = [(at, w) for at, w in zip(place, solved, strict=True) if w is not None]
        found = (ModelTable(np.full(len(w), at), (self._features,), w) for at, w in there)
        singular = sum(w is None and matrix.count > 0 for w, matrix in zip(solved, matrices, strict=False))
        return replace(ModelTable.joined([_nothing(1), *found]), singular=singular)


class _Descent(_Coefficients):
    """The coefficients of a regression by gradient descent from those of before, which a pool keeps.

    The rows that go are those of the pool: they were printed, whatever descent finds from another start.
    """

    def __init__(self, ring: Cofactor, kind: ModelRows, model: LeastSquares, kept: PoolName) -> None:
        super().__init__(ring, kind, model)
        self._kept = kept

    def change(
        self, store: Store, groups: Words, old: Records, new: Records, is_single: bool, is_first: bool
    ) -> tuple[ModelTable, ModelTable]:
        (keys, words), kept = new, store.pool(self._kept)
        place, matrices, before = _places(groups, keys), self._matrices(words), kept.get(keys)
        starts = [row[1:].view(np.float64) if row[0] else None for row in before]
        solved = [gradient_descent(m, self._model, start) for m, start in zip(matrices, starts, strict=True)]
        after = np.zeros_like(before)
        for row, coefficients in zip(after, solved, strict=True):
            if coefficients is not None:
                row[0], row[1:] = 1, coefficients.view(np.int64)
        kept.upsert(np.ascontiguousarray(keys), after - before)
        return self._listed(place, starts), self._listed(place, solved, matrices)


class _Information(Solver):
    """The mutual information of pairs of columns, or of those in the Chow–Liu tree."""

    def __init__(self, kind: ModelRows) -> None:
        m = len(kind.features)
        self._columns, self._is_tree = m, isinstance(kind.model, ChowLiu)
        self._a, self._b = np.triu_indices(m, 1)

    def rows(self, groups: Words, keys: Words, words: Words, is_single: bool) -> ModelTable:
        width, pairs = groups.shape[1], len(self._a)
        place, counts = _places(groups, keys[:, :width]), words[:, 0]
        kept = (place >= 0) & (counts > 0)
        place, keys, counts = place[kept], keys[kept], counts[kept]
        pair, x, y = keys[:, width], keys[:, width + 1], keys[:, width + 2]
        values = mutual_information(place * pairs + pair, x, y, counts, len(groups) * pairs).reshape(-1, pairs)
        parts = [_nothing(2)]
        for group in np.unique(place):
            a, b, found = self._a, self._b, values[group]
            if self._is_tree:
                a, b, found = chow_liu(found, self._columns)
            parts.append(ModelTable(np.full(len(found), group), (a, b), found))
        return ModelTable.joined(parts)


def solver_of(kind: ModelRows, ring: Cofactor | None, kept: PoolName) -> Solver:
    """Make the solver of a model over a view of cofactor matrices, or of counts of pairs if there is no ring.

    Args:
        kept: The pool of coefficients that descent goes on from.
    """
    if ring is None:
        return _Information(kind)
    if isinstance(model := kind.model, LeastSquares):
        by_descent = model.solver == DESCENT
        return _Descent(ring, kind, model, kept) if by_descent else _Coefficients(ring, kind, model)
    return _Monomials(ring, kind) if ring.degree > 1 else _Cells(ring, kind)


def _places(groups: Words, keys: Words) -> Words:
    """Find the place of each key among groups, which are sorted; −1 where it is none."""
    if not groups.shape[1]:
        return np.zeros(len(keys), np.int64)
    every, inverse = np.unique(np.concatenate([groups, keys]), axis=0, return_inverse=True)
    inverse = inverse.reshape(-1)
    place = np.full(len(every), -1, np.int64)
    place[inverse[: len(groups)]] = np.arange(len(groups))
    return place[inverse[len(groups) :]]


def _nothing(names: int) -> ModelTable:
    empty = np.empty(0, np.int64)
    return ModelTable(empty, (empty,) * names, np.empty(0))
