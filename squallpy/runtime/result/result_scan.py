"""Scans of results: all records as of one batch, copied in pieces between which other batches go on.

records at b:       1 2 3 4 5 6
copied:             . . . 4 5 6     a batch deletes 2: 6 takes its place; it was 2 before
copied:             1 6 3 4 5 6     2 is added as it was, the second 6 is left out
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Protocol

import numpy as np
import pyarrow as pa

from squallpy.base.records import dataclass
from squallpy.base.rings import Payload, Ring
from squallpy.base.types import Kind
from squallpy.logical.expressions import Column
from squallpy.runtime.evaluate.vectors import Vec, take
from squallpy.runtime.kernels.dictionary import Dictionary
from squallpy.runtime.kernels.memory_regions import Words
from squallpy.runtime.kernels.pool import Pool
from squallpy.runtime.messages.deltas import decode

PIECE = 1 << 14
"""Records that are copied at once: some 2 ms with a text each."""


class RowScan(Protocol):
    """The rows of a query as of one batch."""

    is_valid: bool
    """False if they cannot be had any more."""

    def copy(self) -> bool:
        """Copy a piece of them, between two batches; True if there are more."""
        ...

    def end(self) -> None:
        """Give up copying: batches need not note any more what they change."""
        ...

    def table(self) -> pa.Table:
        """Print them, while batches go on; they have to be copied, and the scan has to be valid."""
        ...


@dataclass
class CopiedRows:
    """Rows that are printed already."""

    rows: pa.Table
    is_valid: bool = True

    def copy(self) -> bool:
        """Do nothing: there are no more."""
        return False

    def end(self) -> None:
        """Do nothing: no batch has to know."""

    def table(self) -> pa.Table:
        """Return them."""
        return self.rows


Texts = Mapping[int, Vec]
"""Decoded columns of keys, by place, whose words are numbers of texts."""
Piece = tuple[Words, Words, Texts]
Print = Callable[[Words, Words, Texts], pa.Table]


class ResultScan:
    """The records of a result as of one batch.

    A piece is of the last records that are not copied yet: one that is deleted is replaced by the last one, so that
    records move only to where they are still to be copied. Groups that batches change meanwhile are noted as they were.

    Args:
        columns: The keys of the result.
        print: Prints keys and payloads.
        is_ordered: All are printed in one order.
        ended: Called with the scan when it ends.
    """

    def __init__(
        self,
        columns: Sequence[Column],
        pool: Pool,
        dictionary: Dictionary,
        print: Print,
        is_ordered: bool,
        ended: "Callable[[ResultScan], None]",
    ) -> None:
        self._pool, self._dictionary, self._print, self._ended = pool, dictionary, print, ended
        self._is_ordered = is_ordered
        self._texts = {n: c for n, c in enumerate(columns) if c.type.kind is Kind.VARCHAR or c.type.is_wide}
        self._columns, self._edition, self._left = columns, dictionary.edition, len(pool)
        self._pieces = list[Piece]()
        self._changed = Pool(len(columns), Payload((Ring.COUNT,)))
        self._before, self._has_moved = list[Piece](), False
        self.is_valid = True

    def copy(self) -> bool:
        """Copy a piece of them, between two batches; True if there are more."""
        if self._left:
            self._check()
            stop = min(self._left, len(self._pool)) if self.is_valid else 0
            self._left = max(0, stop - PIECE)
            keys, words = self._pool.rows()
            self._pieces.append(self._copied(keys[self._left : stop], words[self._left : stop]))
        if not self._left:
            self.end()  # NB: its rows are printed without a hold, so that no batch may note any more
        return self._left > 0

    def note(self, pool: Pool, keys: Words, before: Words, after: Words) -> None:
        """Note groups that a batch has changed, each once, with their payloads before and after."""
        self.is_valid &= pool is self._pool
        self._check()
        if self.is_valid and len(keys):
            new = np.flatnonzero(self._changed.probe(keys) < 0)
            self._changed.upsert(np.ascontiguousarray(keys[new]), np.ones((len(new), 1), np.int64))
            self._before.append(self._copied(keys[new], before[new]))
            self._has_moved |= bool((before.any(axis=1) & ~after.any(axis=1)).any())

    def _check(self) -> None:
        self.is_valid &= self._dictionary.edition == self._edition

    def _copied(self, keys: Words, words: Words) -> Piece:
        keys, words = np.array(keys), np.array(words)
        texts = {n: decode(np.ascontiguousarray(keys[:, n]), c, self._dictionary) for n, c in self._texts.items()}
        return keys, words, texts

    def end(self) -> None:
        """Give up copying: batches need not note any more what they change."""
        self._ended(self)

    def table(self) -> pa.Table:
        """Print them, while batches go on."""
        assert self.is_valid, "the scan is not valid"
        pieces = list(self._as_it_was())
        if not self._is_ordered:  # NB: many short calls, between which batches have the interpreter
            return pa.concat_tables([self._print(*piece) for piece in pieces])
        keys, words = (np.concatenate([piece[part] for piece in pieces]) for part in (0, 1))
        texts = {n: _joined([piece[2][n] for piece in pieces]) for n in self._texts}
        return self._print(keys, words, texts)

    def _as_it_was(self) -> Iterator[Piece]:
        """Yield the records as they were when the scan began."""
        seen = Pool(len(self._columns), Payload((Ring.COUNT,)))
        for piece in self._pieces:
            keep = self._changed.probe(piece[0]) < 0 if len(self._changed) else np.ones(len(piece[0]), bool)
            if self._has_moved:
                keep &= seen.probe(piece[0]) < 0
                seen.upsert(piece[0], np.ones((len(piece[0]), 1), np.int64))
            yield _picked(piece, keep)
        for piece in self._before:
            yield _picked(piece, piece[1].any(axis=1))


def _picked(piece: Piece, keep: Any) -> Piece:
    if keep.all():
        return piece
    keys, words, texts = piece
    return keys[keep], words[keep], {n: take(vec, keep) for n, vec in texts.items()}


def _joined(vecs: Sequence[Vec]) -> Vec:
    """Concatenate columns."""
    valid = None
    if any(vec.valid is not None for vec in vecs):
        valid = np.concatenate([np.ones(len(v.values), bool) if v.valid is None else v.valid for v in vecs])
    values = [vec.values for vec in vecs]
    if not isinstance(values[0], pa.Array):
        return Vec(np.concatenate(values), valid)
    wide = sum(each.nbytes for each in values) >= 2**31
    return Vec(pa.concat_arrays([each.cast(pa.large_string()) for each in values] if wide else values), valid)
