"""Solvers of models: from the records of a view, by groups, to rows of a model.

(3, [6], [14])   →   ('', '', 3), (x, '', 6), (x, x, 14)
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from squallpy.base.rings import Cofactor
from squallpy.functions.factorised import ChowLiu, LeastSquares
from squallpy.program.auxiliary.model_rows import ModelRows
from squallpy.runtime.kernels.cofactor_blocks import unpack_blocks
from squallpy.runtime.kernels.memory_regions import Words
from squallpy.runtime.models.chow_liu import chow_liu
from squallpy.runtime.models.cofactor_matrix import CofactorMatrix
from squallpy.runtime.models.least_squares import LinearRegression, least_squares
from squallpy.runtime.models.mutual_information import mutual_information

Reals = npt.NDArray[np.float64]
ONE = -1
"""The name of the constant 1, or of the intercept."""


@dataclass(frozen=True, slots=True)
class Rows:
    """The rows of a model for some groups, (rows,) each: the group, names of columns as numbers, and the value.

    `singular` counts the groups that have none because features are constant or collinear.
    """

    groups: Words
    names: tuple[Words, ...]
    values: Reals
    singular: int = 0

    @staticmethod
    def joined(parts: Iterable["Rows"]) -> "Rows":
        """Concatenate rows; of nothing there have to be some."""
        every = list(parts)
        names = tuple(np.concatenate(each) for each in zip(*(rows.names for rows in every), strict=True))
        values = np.concatenate([rows.values for rows in every])
        return Rows(np.concatenate([rows.groups for rows in every]), names, values)


class Solver(ABC):
    """A way from the records of a view to the rows of a model."""

    @abstractmethod
    def rows(self, groups: Words, keys: Words, words: Words, is_single: bool) -> Rows:
        """Compute the rows of groups, keys in order, (n, width).

        Args:
            keys: Those of the records, which begin with their group.
            is_single: There is one group, whose rows are there without any record, too.
        """


class _Cells(Solver):
    """Count, sums and sums of products."""

    def __init__(self, ring: Cofactor, kind: ModelRows) -> None:
        self._ring, self._kind, m = ring, kind, len(kind.variables)
        self._a = np.concatenate([[ONE], np.arange(m), np.repeat(np.arange(m), np.arange(1, m + 1))])
        self._b = np.concatenate([np.full(1 + m, ONE), *(np.arange(i + 1) for i in range(m))])

    def rows(self, groups: Words, keys: Words, words: Words, is_single: bool) -> Rows:
        count, sums, products = unpack_blocks(words, self._ring, self._kind.variables)
        place = _places(groups, keys)
        values = np.concatenate([count.astype(np.float64)[:, None], sums.sum(axis=0), products.sum(axis=0)], axis=1)
        present = np.flatnonzero(count)
        if is_single and not len(present):
            return Rows(np.zeros(1, np.int64), (np.array([ONE]), np.array([ONE])), np.zeros(1))
        names = np.tile(self._a, len(present)), np.tile(self._b, len(present))
        return Rows(np.repeat(place[present], len(self._a)), names, values[present].ravel())


class _Coefficients(Solver):
    """The coefficients of a regression; none where features are constant or collinear."""

    def __init__(self, ring: Cofactor, kind: ModelRows, model: LeastSquares) -> None:
        self._ring, self._kind = ring, kind
        features = [i for i in range(len(kind.variables)) if i != model.label]
        self._model = LinearRegression(model.label, features, model.intercept, model.ridge or 0.0)
        self._features = np.array([*([ONE] if model.intercept else []), *features], np.int64)

    def rows(self, groups: Words, keys: Words, words: Words, is_single: bool) -> Rows:
        count, sums, products = unpack_blocks(words, self._ring, self._kind.variables)
        place, parts, singular = _places(groups, keys), [_nothing(1)], 0
        for row in range(len(keys)):
            matrix = CofactorMatrix.from_triangle(int(count[row]), sums[:, row], products[:, row])
            if (found := least_squares(matrix, self._model)) is not None:
                parts.append(Rows(np.full(len(found), place[row]), (self._features,), found))
            else:
                singular += matrix.count > 0
        return replace(Rows.joined(parts), singular=singular)


class _Information(Solver):
    """The mutual information of pairs of columns, or of those in the Chow–Liu tree."""

    def __init__(self, kind: ModelRows) -> None:
        m = len(kind.features)
        self._columns, self._is_tree = m, isinstance(kind.model, ChowLiu)
        self._a, self._b = np.triu_indices(m, 1)

    def rows(self, groups: Words, keys: Words, words: Words, is_single: bool) -> Rows:
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
            parts.append(Rows(np.full(len(found), group), (a, b), found))
        return Rows.joined(parts)


def solver_of(kind: ModelRows, ring: Cofactor | None) -> Solver:
    """Make the solver of a model over a view of cofactor matrices, or of counts of pairs if there is no ring."""
    if ring is None:
        return _Information(kind)
    return _Coefficients(ring, kind, kind.model) if isinstance(kind.model, LeastSquares) else _Cells(ring, kind)


def _places(groups: Words, keys: Words) -> Words:
    """Find the place of each key among groups, which are sorted; −1 where it is none."""
    every, inverse = np.unique(np.concatenate([groups, keys]), axis=0, return_inverse=True)
    inverse = inverse.reshape(-1)
    place = np.full(len(every), -1, np.int64)
    place[inverse[: len(groups)]] = np.arange(len(groups))
    return place[inverse[len(groups) :]]


def _nothing(names: int) -> Rows:
    empty = np.empty(0, np.int64)
    return Rows(empty, (empty,) * names, np.empty(0))
