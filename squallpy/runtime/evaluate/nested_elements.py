"""Elements of ARRAYs and entries of MAPs, those of all rows one after the other: for EXPLODE and for lambdas.

'[1,2]', '[3]'   →   rows 0, 0, 1, counts 2, 1, values '1', '2', '3'
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from squallpy.base.types import Kind, Type
from squallpy.runtime.evaluate.held_values import TEXTS
from squallpy.runtime.evaluate.scalar.json import READER, held_element, write_json
from squallpy.runtime.evaluate.series import positions_within
from squallpy.runtime.kernels.memory_regions import Words


class FlatElements(NamedTuple):
    """The elements of all rows.

    Args:
        rows: the row of each element.
        counts: how many each row has.
        keys: of MAPs, as texts; of ARRAYs None.
        values: as texts.
        parts: each as it stands in the text that is held, with its key in a MAP; None unless asked for.
    """

    rows: Words
    counts: Words
    keys: pa.Array | None
    values: pa.Array
    parts: pa.Array | None

    @property
    def positions(self) -> Words:
        """The number of each element in its row, from 0 on."""
        return positions_within(self.counts)


def take_apart(texts: pa.Array, there: Any, element: Type | None, with_parts: bool = False) -> FlatElements:
    """Take apart the texts of nested values.

    Args:
        there: The rows that are not NULL, as a mask; None if all are.
        element: The type of the elements of ARRAYs; None for MAPs.
    """
    rows = np.arange(len(texts)) if there is None else np.flatnonzero(there)
    known = texts if there is None else texts.take(pa.array(rows))
    known = known.combine_chunks() if isinstance(known, pa.ChunkedArray) else known
    split = _split(known, element, with_parts) if element is not None and not element.nested else None
    counts, keys, values, parts = split or _decoded(known, element is None, with_parts)
    of_rows = np.zeros(len(texts), np.int64)
    of_rows[rows] = counts
    return FlatElements(np.repeat(rows, counts), of_rows, keys, values, parts)


_Apart = tuple[Words, pa.Array | None, pa.Array, pa.Array | None]  # counts, keys, values and parts


def _split(texts: pa.Array, element: Type, with_parts: bool) -> _Apart | None:
    """Split ARRAYs between their elements, where commas are nowhere else; None if they may be."""
    is_quoted = element.kind in TEXTS
    if element.kind is Kind.DOUBLE or is_quoted:  # NaN has quotes, too
        odd = ("\\", "null") if is_quoted else ('"',)
        if any(pc.any(pc.match_substring(texts, mark)).as_py() for mark in odd):
            return None
    margin = 1 + is_quoted
    inner = pc.utf8_slice_codeunits(texts, margin, -margin)
    lists = pc.split_pattern(inner, '","' if is_quoted else ",")
    is_empty = np.asarray(pc.equal(pc.binary_length(texts), 2))
    counts = np.where(is_empty, 0, np.asarray(pc.list_value_length(lists), np.int64))
    values = pc.list_flatten(lists.filter(pa.array(~is_empty)))
    if is_quoted:
        return counts, None, values, pc.binary_join_element_wise('"', values, '"', "") if with_parts else None
    return counts, None, pc.if_else(pc.equal(values, "null"), pa.scalar(None, values.type), values), values


def _decoded(texts: pa.Array, of_map: bool, with_parts: bool) -> _Apart:
    """Decode JSON, each text that differs once."""
    known = pc.dictionary_encode(texts)
    found = [READER.decode(text) for text in known.dictionary.to_pylist()]

    def flat(lists: Sequence[Sequence[str | None]]) -> pa.Array:
        return pc.list_flatten(pa.array(lists, pa.list_(pa.string())).take(known.indices))

    lengths = np.array([len(each) for each in found], np.int64)
    counts = lengths[np.asarray(known.indices)]
    if not of_map:
        parts = flat([[write_json(v) for v in each] for each in found]) if with_parts else None
        return counts, None, flat([[held_element(v) for v in each] for each in found]), parts
    entries = [[f"{write_json(k)}:{write_json(v)}" for k, v in each.items()] for each in found] if with_parts else []
    keys, values = [list(each) for each in found], [[held_element(v) for v in each.values()] for each in found]
    return counts, flat(keys), flat(values), flat(entries) if with_parts else None
