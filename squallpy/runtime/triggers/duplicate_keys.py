"""Rows that break a PRIMARY KEY: a count above 1 in a view that has one row for each key.

p (id PRIMARY KEY):  M_P(id) {1: 1}  + {1: +1}   →   SQ4007 p.csv: 2 rows have PRIMARY KEY id = 1
"""

import numpy as np

from squallpy.base.errors import SquallError
from squallpy.logical.expressions import Column
from squallpy.physical.plan import UniqueView
from squallpy.runtime.auxiliary.maintainer import TouchTracker
from squallpy.runtime.evaluate.vectors import to_arrow
from squallpy.runtime.formats.text_columns import cells
from squallpy.runtime.joiners.joiner import ChangeTracker
from squallpy.runtime.kernels.dictionary import Dictionary
from squallpy.runtime.kernels.memory_regions import Words
from squallpy.runtime.kernels.pool import Pool
from squallpy.runtime.kernels.view_container import Container
from squallpy.runtime.messages.deltas import decode
from squallpy.runtime.time.unmatched_deletes import sum_changes

_UNKNOWN = -(2**62)  # records before a batch


class KeyCheck:
    """The check of one unique view: told what a batch adds to its pool, it looks at the counts afterwards.

    Args:
        columns: The key columns of the view.
        noted: What else has to be told of changes of the pool.
    """

    def __init__(
        self, unique: UniqueView, columns: tuple[Column, ...], noted: TouchTracker | ChangeTracker | None = None
    ) -> None:
        self._unique, self._columns, self._noted = unique, columns, noted
        self._changes: list[tuple[Words, Words]] = []
        self._records = 0

    def note(self, pool: Container, keys: Words, words: Words) -> None:
        """Take note of an addition, before it is made."""
        if not self._changes:
            self._records = len(pool)
        self._changes.append((keys, words[:, :1]))
        if self._noted is not None:
            self._noted.note(pool, keys, words)

    def suspect(self, keys: Words, words: Words) -> None:
        """Take note of an addition after which a key's count is above 1."""
        self._records = _UNKNOWN
        self._changes.append((keys, words[:, :1]))

    @property
    def has_changes(self) -> bool:
        """True if this batch has additions to look at."""
        return bool(self._changes)

    def duplicates(self, pool: Pool, names: Dictionary) -> int:
        """Count the rows that this batch added to keys that have one; SQ4007 unless their source skips such rows."""
        changes, self._changes = self._changes, []
        if not changes:
            return 0
        added = sum(len(keys) for keys, _ in changes)
        if (
            self._records >= 0
            and len(pool) == self._records + added
            and all((counts <= 1).all() for _, counts in changes)
        ):
            return 0  # each of the keys is new
        keys, counts = sum_changes(changes)
        now = pool.get(keys)[:, 0]
        before = now - counts[:, 0]
        more = np.maximum(now - 1, 0) - np.maximum(before - 1, 0)
        found = np.flatnonzero(more > 0)
        if len(found) and not self._unique.skips:
            raise self._error(keys[found[:1]], int(now[found[0]]), names)
        return int(more[found].sum())

    def _error(self, key: Words, rows: int, names: Dictionary) -> SquallError:
        unique = self._unique
        shown = [f"{name} = {_text(key[:, at], self._columns[at], names)}" for name, at in unique.key]
        message = f"{unique.path}: {rows} rows have PRIMARY KEY {', '.join(shown)}"
        hint = "leave PRIMARY KEY out of the declaration, or count such rows with OPTIONS (on_error 'skip')"
        return SquallError("SQ4007", message, hint=hint)


def _text(key: Words, column: Column, names: Dictionary) -> str:
    return str(cells(to_arrow(decode(key, column, names), column.type, 1))[0].as_py())
