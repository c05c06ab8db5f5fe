"""Messages of PostgreSQL's plugin pgoutput → Arrow columns of text, all messages of a table at once.

I 16385 N 2 t 1 "7" t 2 "ab"                     →   +(7, ab)
U 16385 K 2 t 1 "7" n  N 2 t 1 "8" t 2 "ab"      →   −(7), +(8, ab)      a key has changed: all there is of the old row
D 16385 K 2 t 1 "8" n                            →   −(8)
T 16385                                          →   TRUNCATED, no value

Positions in all messages advance together, a column at a time. A value that was not changed, and lies out of line
(TOAST), is not sent: it is taken from the old row if that is there, else the row is marked, and the state kept by key
has the value (`runtime/ingest/upserts.py`).
"""

import struct
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from squallpy.base.records import dataclass
from squallpy.catalog.relation import OPERATION, TRUNCATED
from squallpy.runtime.connectors.postgres.tables import WITH_ZONE

BEGIN, COMMIT, RELATION, INSERT, UPDATE, DELETE, TRUNCATE = b"BCRIUDT"
_NEW, _OLD, _KEY = b"NOK"
_NULL, _UNCHANGED = b"nu"
MARKED = 60  # the number of the last column whose values can be marked as not told
Numbers = npt.NDArray[np.int64]
Bytes = npt.NDArray[np.uint8]


@dataclass(frozen=True, slots=True)
class Layout:
    """The columns of a table as a message of the log describes them: names, numbers of their types, and modifiers."""

    oid: int
    table: str
    names: tuple[str, ...]
    types: tuple[int, ...]
    modifiers: tuple[int, ...]

    @classmethod
    def read(cls, message: bytes) -> "Layout":
        """Read an R message."""
        (oid,) = struct.unpack_from(">I", message, 1)
        schema, name, rest = message[5:].split(b"\0", 2)
        (count,), at = struct.unpack_from(">H", rest, 1), 3
        names, types, modifiers = [], [], []
        for _ in range(count):
            end = rest.index(b"\0", at + 1)
            names.append(rest[at + 1 : end].decode())
            type, modifier = struct.unpack_from(">Ii", rest, end + 1)
            types.append(type)
            modifiers.append(modifier)
            at = end + 9
        return cls(oid, f"{schema.decode()}.{name.decode()}", tuple(names), tuple(types), tuple(modifiers))


@dataclass(frozen=True, slots=True)
class Changes:
    """I, U and D messages of one table with one layout, and truncations, in order; as one string of bytes for tasks."""

    layout: Layout
    messages: list[bytes]

    def __reduce__(self) -> tuple[Any, ...]:
        lengths = np.fromiter(map(len, self.messages), np.int32, len(self.messages))
        return _cut_messages, (self.layout, b"".join(self.messages), lengths)


def _cut_messages(layout: Layout, data: bytes, lengths: npt.NDArray[np.int32]) -> Changes:
    ends = [0, *np.cumsum(lengths).tolist()]
    return Changes(layout, [data[a:b] for a, b in pairwise(ends)])


@dataclass(frozen=True, slots=True)
class _Cells:
    """A column of some messages: what each value is, and where its text begins and how long it is."""

    kinds: Bytes
    starts: Numbers
    lengths: Numbers

    def take(self, rows: Numbers) -> "_Cells":
        return _Cells(self.kinds[rows], self.starts[rows], self.lengths[rows])


def truncation(oid: int) -> bytes:
    """Make a message of what a T message says of one of its tables."""
    return struct.pack(">BIB", TRUNCATE, oid, 0)


class LogFault(Exception):
    """A change that cannot be read: the reason."""


def decode(changes: Changes, columns: Sequence[str], numbers: Mapping[str, int] | None) -> pa.Table:
    """Decode changes to some columns as text, and `__op`: −1 for a row that goes, TRUNCATED, else 1 and marks.

    Args:
        numbers: Where rows are told apart by key, so that an update needs no old row: the numbers of columns. A value
            that is not there is marked by the bit of its column, from the second one on.
    """
    is_keyed = numbers is not None
    data, messages = b"".join(changes.messages), changes.messages
    lengths = np.fromiter(map(len, messages), np.int64, len(messages))
    starts = np.cumsum(lengths) - lengths
    buffer = np.frombuffer(data, np.uint8)
    types, markers = buffer[starts], buffer[starts + 5]
    count = len(changes.layout.names)
    gone = np.flatnonzero(types == TRUNCATE)
    with_old = np.flatnonzero((markers != _NEW) & (types != TRUNCATE))
    with_new = np.flatnonzero((types != DELETE) & (types != TRUNCATE))
    old, ends = _cells(buffer, starts[with_old] + 6, count)
    if not is_keyed:
        _check_whole(changes, types, markers)
    began = starts.copy()
    began[with_old] = ends - 5  # NB: behind the old row there is the mark of the new one
    new, _ = _cells(buffer, began[with_new] + 6, count)
    # NB: rows of both kinds, in the order of their messages, old ones first
    order = np.argsort(np.concatenate([2 * with_old, 2 * with_new + 1, 2 * gone]), kind="stable")
    nothing = _Cells(np.full(len(gone), _NULL, np.uint8), np.zeros(len(gone), np.int64), np.zeros(len(gone), np.int64))
    names = [name.lower() for name in changes.layout.names]
    of_new = np.searchsorted(with_old, with_new)
    has_old = np.isin(with_new, with_old)
    old_of_new = np.where(has_old, of_new, 0)
    whole = np.zeros(len(messages), np.bool_)
    whole[with_old] = markers[with_old] == _OLD
    marks, arrays = np.ones(len(with_new), np.int64), []
    for name in columns:
        at = names.index(name.lower())
        cells = new[at]
        if (lacking := cells.kinds == _UNCHANGED).any():
            known = lacking & whole[with_new]
            cells = _filled(cells, old[at], known, old_of_new)
            if (lost := lacking & ~known).any():
                if numbers is None or (has_old & lost).any() or numbers[name] > MARKED:
                    raise LogFault(_lost(changes.layout.table, name))
                marks[lost] |= 1 << (1 + numbers[name])
        rows = old[at], cells, nothing
        joined = (np.concatenate([getattr(each, name) for each in rows])[order] for name in _Cells.__slots__)
        arrays.append(_texts(buffer, _Cells(*joined), changes.layout.types[at]))
    operations = np.concatenate([np.full(len(with_old), -1), marks, np.full(len(gone), TRUNCATED)])[order]
    return pa.table([*arrays, pa.array(operations)], [*columns, OPERATION])


def _cells(buffer: Bytes, at: Numbers, count: int) -> tuple[list[_Cells], Numbers]:
    """Find the values of rows that begin at some places, by column, and where the rows end."""
    found, at = [], at + 2
    for _ in range(count):
        kinds = buffer[at]
        is_there = kinds == ord("t")
        lengths = np.zeros(len(at), np.int64)
        four = at[is_there, None] + np.arange(1, 5)
        lengths[is_there] = buffer[four].astype(np.int64) @ np.array([1 << 24, 1 << 16, 1 << 8, 1])
        found.append(_Cells(kinds, at + 5, lengths))
        at = at + np.where(is_there, 5 + lengths, 1)
    return found, at


def _filled(cells: _Cells, old: _Cells, known: npt.NDArray[np.bool_], at: Numbers) -> _Cells:
    """Take values that are not sent from the old rows."""
    if not len(old.kinds):
        return cells
    before = old.take(at)
    return _Cells(
        np.where(known, before.kinds, cells.kinds),
        np.where(known, before.starts, cells.starts),
        np.where(known, before.lengths, cells.lengths),
    )


def _texts(buffer: Bytes, cells: _Cells, type: int) -> pa.Array:
    """Gather values as strings."""
    ends = np.cumsum(cells.lengths)
    total = int(ends[-1]) if len(ends) else 0
    firsts = ends - cells.lengths
    data = buffer[np.repeat(cells.starts - firsts, cells.lengths) + np.arange(total)]
    offsets = np.zeros(len(ends) + 1, np.int64)
    offsets[1:] = ends
    valid = cells.kinds == ord("t")
    bits = None if valid.all() else pa.py_buffer(np.packbits(valid, bitorder="little"))
    found: Any = pa.Array.from_buffers(pa.large_string(), len(valid), [bits, pa.py_buffer(offsets), pa.py_buffer(data)])
    return plain_texts(found.cast(pa.string()), type)


def plain_texts(texts: pa.Array, type: int) -> pa.Array:
    """Write times with a zone, which is UTC, without it: as Arrow reads them at once."""
    return pc.replace_substring_regex(texts, r"\+00$", "") if type == WITH_ZONE else texts


def _check_whole(changes: Changes, types: Bytes, markers: Bytes) -> None:
    """Raise LogFault if an old row is not whole."""
    if (((types == UPDATE) | (types == DELETE)) & (markers != _OLD)).any():
        table = changes.layout.table
        raise LogFault(
            f"the old row of a change of {table} is not whole: run ALTER TABLE {table} REPLICA IDENTITY FULL"
        )


def _lost(table: str, column: str) -> str:
    return (
        f'the key of a row of {table} has changed, and its "{column}", which is stored out of line, has not and is '
        f"not told: run ALTER TABLE {table} REPLICA IDENTITY FULL"
    )
