"""Rows of models: the cells of cofactor matrices, and what is read off them or off counts of pairs of values.

V() changed:   (3, [6], [14])  →  (4, [10], [30])      N1(a, b, value): (x, '') goes from 6 to 10, (x, x) from 14 to 30
"""

import numpy as np
import pyarrow as pa

from squallpy.base.rings import Cofactor, Payload, Ring
from squallpy.base.types import DOUBLE
from squallpy.functions.model_functions import DESCENT, LeastSquares, Statistics, degree_of, name_monomials
from squallpy.logical.expressions import Column
from squallpy.physical.plan import AuxiliaryPlan, Feed
from squallpy.program.auxiliary.model_rows import ModelRows
from squallpy.runtime.auxiliary.maintainer import Maintainer, RowDeltas, TouchedGroups, has_begun
from squallpy.runtime.auxiliary.model_solvers import ModelTable, solver_of
from squallpy.runtime.evaluate.vectors import Vec
from squallpy.runtime.kernels.memory_regions import Words
from squallpy.runtime.kernels.pool import Pool
from squallpy.runtime.messages.deltas import Delta, decode, encode, numbered
from squallpy.runtime.state.pool_names import PoolName, Role
from squallpy.runtime.state.state_store import PoolLayout, Store

_VALUE = Column(0, "value", DOUBLE)


class ModelMaintainer(Maintainer):
    """A maintainer of the rows of a model: those of the groups that a batch touched go, and come anew.

    Of the last batch, `singular` counts the groups whose regression is not determined; `label` is what it explains.
    """

    def __init__(self, feed: Feed, aux: AuxiliaryPlan) -> None:
        assert isinstance(aux.kind, ModelRows)
        self._kind, self._source = aux.kind, aux.source
        self._keys = aux.source.keys[: len(aux.source.keys) - len(aux.kind.pair)]
        self._rows, self._titles = RowDeltas(feed), [title for title, _ in aux.output.items]
        one = "" if isinstance(aux.kind.model, Statistics) else "intercept"
        self._names = pa.array([*name_monomials(aux.kind.features, degree_of(aux.kind.model)), one], pa.string())
        (ring,) = aux.source.payload.rings
        model, kept = aux.kind.model, PoolName(feed.relation.name, Role.COEFFICIENTS)
        self._solver = solver_of(aux.kind, ring if isinstance(ring, Cofactor) else None, kept)
        self.label, self.singular = aux.kind.features[model.label] if isinstance(model, LeastSquares) else "", 0

    @staticmethod
    def layouts(feed: Feed, aux: AuxiliaryPlan) -> tuple[PoolLayout, ...]:
        """Return the pool of the coefficients that descent goes on from, if it is asked for."""
        assert isinstance(aux.kind, ModelRows)
        model, keys = aux.kind.model, aux.source.keys
        if not isinstance(model, LeastSquares) or model.solver != DESCENT:
            return ()
        name = PoolName(feed.relation.name, Role.COEFFICIENTS)
        words = Payload((Ring.COUNT,) * (len(aux.kind.features) + model.intercept))  # NB: the first is 1
        return (PoolLayout(name, len(keys), words, numbered=numbered(keys)),)

    def deltas(self, store: Store, touched: TouchedGroups | None) -> dict[str, Delta]:
        assert touched is not None
        (keys, before), self.singular = touched, 0
        is_first = not has_begun(store)
        if not self._keys and not self._kind.pair and not len(keys) and is_first:
            keys, before = np.empty((1, 0), np.int64), np.zeros((1, self._source.payload.width), np.int64)
        if not len(keys):
            return {}
        width = len(self._keys)
        groups = np.unique(keys[:, :width], axis=0) if width else np.empty((1, 0), np.int64)
        old, new = self._versions(store.pool(self._source.name), keys, before)
        olds, news = self._solver.change(store, groups, old, new, not width, is_first)
        rows, self.singular = ModelTable.joined([olds, news]), news.singular
        times = np.repeat([-1, 1], [len(olds.groups), len(news.groups)])

        def field(title: str) -> Vec:
            place = self._titles.index(title)
            if place < width:
                words = np.ascontiguousarray(groups[rows.groups, place])
                return decode(words, self._keys[place], store.dictionary)
            if place == len(self._titles) - 1:
                return Vec(rows.values)
            return Vec(self._names.take(pa.array(rows.names[place - width] % len(self._names))))

        numbers = store.dictionary.intern(self._names)

        def encoded(title: str) -> Words:
            place = self._titles.index(title)
            if place < width:
                return np.asarray(groups[rows.groups, place])
            if place == len(self._titles) - 1:
                return encode(Vec(rows.values), _VALUE, len(times), store.dictionary)
            return numbers[rows.names[place - width]]  # NB: ONE, which is −1, is the last name

        return self._rows(times, field, store.dictionary, encoded)

    def _versions(self, pool: Pool, keys: Words, before: Words) -> tuple[tuple[Words, Words], tuple[Words, Words]]:
        """List records before the batch, and now, as keys and payloads: those it touched, or all for counts of pairs.

        NB: those now are in the pool's own memory.
        """
        if not self._kind.pair:
            return (keys, before), (keys, pool.get(keys))
        now, slots = (pool.keys, pool.words), pool.probe(keys)
        untouched = np.ones(len(pool), np.bool_)
        untouched[slots[slots >= 0]] = False
        old = np.concatenate([now[0][untouched], keys]), np.concatenate([now[1][untouched], before])
        return old, now
