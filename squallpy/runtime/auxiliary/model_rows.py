"""Rows of models: the cells of cofactor matrices, and what is solved for with them.

V() changed:   (3, [6], [14])  →  (4, [10], [30])      N1(a, b, value): (x, '') goes from 6 to 10, (x, x) from 14 to 30
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from squallpy.base.rings import Cofactor
from squallpy.functions.factorised import LeastSquares, Statistics
from squallpy.physical.plan import AuxiliaryPlan, Feed
from squallpy.program.auxiliary.model_rows import ModelRows
from squallpy.runtime.auxiliary.maintainer import Maintainer, RowDeltas, TouchedGroups, has_begun
from squallpy.runtime.evaluate.vectors import Vec
from squallpy.runtime.kernels.cofactor_blocks import unpack_blocks
from squallpy.runtime.kernels.memory_regions import Words
from squallpy.runtime.messages.deltas import Delta, decode
from squallpy.runtime.state.state_store import Store

Reals = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Rows:
    """The rows of a model for some groups: names of columns, as numbers, and values, each (rows,); `groups` is sorted.

    −1 is the name of the constant 1.
    """

    groups: Words
    names: tuple[Words, ...]
    values: Reals


class ModelMaintainer(Maintainer):
    """A maintainer of the rows of a model."""

    def __init__(self, feed: Feed, aux: AuxiliaryPlan) -> None:
        (ring,) = aux.source.payload.rings
        assert isinstance(aux.kind, ModelRows) and isinstance(ring, Cofactor)
        self._source, self._keys, self._output = aux.source.name, aux.source.keys, aux.output
        self._ring, self._kind = ring, aux.kind
        self._rows = RowDeltas(feed)
        self._titles = [title for title, _ in aux.output.items]
        one = "" if isinstance(aux.kind.model, Statistics) else "intercept"
        self._names = pa.array([*aux.kind.features, one], pa.string())
        self._solve: Callable[[Words], Rows] = {
            Statistics: self._cells,
            LeastSquares: self._coefficients,
        }[type(aux.kind.model)]

    def deltas(self, store: Store, touched: TouchedGroups | None) -> dict[str, Delta]:
        assert touched is not None
        keys, before = touched
        if not self._keys and not len(keys) and not has_begun(store):
            keys, before = np.empty((1, 0), np.int64), np.zeros((1, before.shape[1]), np.int64)
        if not len(keys):
            return {}
        first = not self._keys and not has_begun(store)  # NB: before the first batch there is no row, not even of 0
        old = self._solve(before[:0] if first else before)
        new = self._solve(store.pool(self._source).get(keys))
        rows = Rows(
            np.concatenate([old.groups, new.groups]),
            tuple(np.concatenate(pair) for pair in zip(old.names, new.names, strict=True)),
            np.concatenate([old.values, new.values]),
        )
        times = np.repeat([-1, 1], [len(old.groups), len(new.groups)])
        columns = dict(zip(self._titles[len(self._keys) :], (*rows.names, rows.values), strict=True))
        places = dict(zip(self._titles, range(len(self._keys)), strict=False))

        def field(title: str) -> Vec:
            if title in places:
                place = places[title]
                return decode(np.ascontiguousarray(keys[rows.groups, place]), self._keys[place], store.dictionary)
            values = columns[title]
            return Vec(values if values.dtype == np.float64 else self._names.take(pa.array(values % len(self._names))))

        return self._rows(times, field, store.dictionary)

    def _cells(self, words: Words) -> Rows:
        """List the cells of cofactor matrices; of an empty one without keys only the count."""
        count, sums, products = unpack_blocks(words, self._ring, self._kind.variables)
        m = len(self._kind.variables)
        a = np.concatenate([[-1], np.arange(m), np.repeat(np.arange(m), np.arange(1, m + 1))])
        b = np.concatenate([np.full(1 + m, -1), *(np.arange(i + 1) for i in range(m))]).astype(np.int64)
        values = np.concatenate([count.astype(np.float64)[:, None], sums, products], axis=1)
        present = np.flatnonzero(count)
        groups = np.repeat(present, values.shape[1])
        names = np.tile(a, len(present)), np.tile(b, len(present))
        found = values[present].ravel()
        if not self._keys and not len(present) and len(words):
            return Rows(np.zeros(1, np.int64), (np.array([-1]), np.array([-1])), np.zeros(1))
        return Rows(groups, names, found)

    def _coefficients(self, words: Words) -> Rows:
        raise NotImplementedError
