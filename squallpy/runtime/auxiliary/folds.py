"""Aggregates that are recomputed from all values of a group: LISTAGG, BIT_AND, BIT_OR, BIT_XOR and PRODUCT, exact under
deletes.

V(k, x): (7, 'b') twice (7, 'a')    N1 = (7, LISTAGG ', ': 'a, b, b')        − (7, 'b')  →  N1 = (7, 'a, b')

They have no inverse by which a value could be taken back, so the values of a group that a batch touched are read again.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from squallpy.base.keys import null_of
from squallpy.base.types import VARCHAR
from squallpy.logical.expressions import Column
from squallpy.physical.plan import AuxiliaryPlan
from squallpy.program.output_spec import Measure
from squallpy.runtime.evaluate.casts import cast
from squallpy.runtime.evaluate.sort_keys import ordinals
from squallpy.runtime.evaluate.vectors import Vec, full
from squallpy.runtime.kernels.dictionary import Dictionary
from squallpy.runtime.kernels.memory_regions import Words
from squallpy.runtime.messages.deltas import decode, encode
from squallpy.runtime.state.state_store import Store

# values, how often each is there, and where groups begin → one for each group
FOLDS: dict[str, Callable[[Any, Words, Words], Any]] = {
    "bit_and": lambda values, counts, starts: np.bitwise_and.reduceat(values, starts),
    "bit_or": lambda values, counts, starts: np.bitwise_or.reduceat(values, starts),
    "bit_xor": lambda values, counts, starts: np.bitwise_xor.reduceat(values * (counts & 1), starts),
    "product": lambda values, counts, starts: np.multiply.reduceat(values**counts, starts),
}


class Folds:
    """Makes one value of all that a group has; `null` is the code of none."""

    def __init__(self, aux: AuxiliaryPlan, null: int) -> None:
        source, output = aux.source, aux.output
        assert output.aggregated_key is not None
        self._name, self._index, self._null, self._over = source.name, aux.index, null, output.aggregated_key
        self._keys, self._count = source.keys, source.payload.offsets[output.count]

    def codes(self, store: Store, groups: Words, measure: Measure) -> Words:
        """Compute a measure of each group."""
        pool, found = store.pool(self._name), np.full(len(groups), null_of(measure.column.type))
        rows, slots = pool.slice(self._index, groups)
        keys, counts = pool.keys_of(slots), pool.words_of(slots)[:, self._count]
        there: Any = (counts > 0) & (keys[:, self._keys.index(self._over)] != self._null)
        rows, keys, counts = rows[there], keys[there], counts[there]
        if not len(rows):
            return found
        order = np.lexsort((*self._ranks(keys, measure.order, store.dictionary), rows))
        rows, keys, counts = rows[order], keys[order], counts[order]
        some, starts = np.unique(rows, return_index=True)
        values = self._column(keys, self._over, store.dictionary)
        if measure.separator is not None:
            texts = cast(values, self._over.type, VARCHAR, len(rows), self._over).values
            made = Vec(_join_texts(texts, counts, starts, measure.separator))
        else:
            with np.errstate(over="ignore", invalid="ignore"):
                made = Vec(FOLDS[measure.function](values.values, counts, starts))
        found[some] = encode(made, measure.column, len(some), store.dictionary)
        return found

    def _ranks(self, keys: Words, order: Sequence[tuple[Column, bool, bool]], names: Dictionary) -> list[Words]:
        """List the ranks by which values are ordered, the most significant last."""
        ranks = [ordinals(self._column(keys, self._over, names), self._over.type)]
        for key, down, nulls_first in reversed(order):
            vec = self._column(keys, key, names)
            ranks.append(~ordinals(vec, key.type) if down else ordinals(vec, key.type))
            if vec.valid is not None:
                ranks[-1] = np.where(vec.valid, ranks[-1], 0)
                ranks.append(vec.valid if nulls_first else ~vec.valid)
        return ranks

    def _column(self, keys: Words, column: Column, names: Dictionary) -> Vec:
        codes = np.ascontiguousarray(keys[:, self._keys.index(column)])
        return full(decode(codes, column, names), column.type, len(codes))


def _join_texts(texts: pa.Array, counts: Words, starts: Words, separator: str) -> pa.Array:
    """Join texts: ['a', 'b'], [1, 2], [0], ', ' → ['a, b, b']."""
    ends = np.append(np.append(0, np.cumsum(counts))[starts], counts.sum())
    lists = pa.LargeListArray.from_arrays(ends, texts.take(pa.array(np.repeat(np.arange(len(counts)), counts))))
    return pc.binary_join(lists, separator)
