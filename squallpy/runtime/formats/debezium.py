"""Debezium's envelopes of changes as JSON → the rows that went and came.

{"before": {"id": 1, "v": 5}, "after": {"id": 1, "v": 7}, "op": "u"}   →   −(1, 5), +(1, 7)

An envelope may be in the `payload` of a message with its schema. Where rows replace each other by PRIMARY KEY, only the
key of `before` counts, which may be all there is of it: an update is a row, a delete a tombstone, a truncation deletes
all rows that are kept.

read(envelope_fields(…))   →   a table of envelopes   →   check(…) notes those at fault   →   rows_of(…)
"""

from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from squallpy.base.errors import shorten
from squallpy.base.records import dataclass
from squallpy.base.types import VARCHAR
from squallpy.catalog.relation import MULT, TRUNCATED, Field
from squallpy.runtime.evaluate.text_column_casts import column_type
from squallpy.runtime.formats.type_conversion import PROGRESS, Problem, note_nulls

Mask = npt.NDArray[np.bool_]
AROUND: tuple[tuple[str, ...], ...] = ((), ("payload",))  # paths at which an envelope may be
INSERTED, DELETED, UPDATED, MESSAGE, TRUNCATION = ("c", "r"), "d", "u", "m", "t"
IDENTITY = "declare a PRIMARY KEY, or let the table have REPLICA IDENTITY FULL"


@dataclass(frozen=True)
class Envelopes:
    """The reader of envelopes of some fields.

    Args:
        key: The fields by which rows replace each other; none if `before` is a whole row.
    """

    fields: tuple[Field, ...]
    key: tuple[str, ...] = ()

    @property
    def before(self) -> tuple[Field, ...]:
        """The fields that are read of the old row."""
        return tuple(f for f in self.fields if not self.key or f.name in self.key)

    @property
    def columns(self) -> tuple[Field, ...]:
        """Fields to read: at each path an operation, whether there are images, the old one and the new one."""
        found = list[Field]()
        for path in AROUND:
            told = [Field("op", VARCHAR, nested=(*path, "op"))]
            told += [Field(image, VARCHAR, nested=(*path, image, "")) for image in ("before", "after")]
            old = [replace(f, nullable=True, nested=(*path, "before", *f.path)) for f in self.before]
            found += [*told, *old, *(replace(f, nullable=True, nested=(*path, "after", *f.path)) for f in self.fields)]
        return tuple(found)

    def merge(self, read: pa.Table) -> pa.Table:
        """Merge what was read at the paths, where each envelope is at one of them."""
        half = read.num_columns // 2
        columns = [_either(read.column(i), read.column(half + i)) for i in range(half)]
        return pa.table(columns, [str(i) for i in range(half)])

    def check(self, table: pa.Table, wrong: dict[int, Problem], is_ordered: bool = True) -> None:
        """Note envelopes that have no images as their operation needs, or NULL where a column is NOT NULL.

        A truncation needs a key, and to be behind the rows that it deletes and before those that it does not.
        """
        ops, before, after = table.column(0), *(np.asarray(table.column(i).is_valid()) for i in (1, 2))
        old, new = self._wanted(ops)
        is_served = [TRUNCATION] if self.key and is_ordered else []
        known = np.asarray(pc.is_in(ops, pa.array([*INSERTED, DELETED, UPDATED, *is_served])))
        for row in np.flatnonzero(~known | (old & ~before) | (new & ~after)).tolist():
            op = ops[row].as_py()
            if op == MESSAGE:
                wrong[row] = PROGRESS
            else:
                wrong.setdefault(row, self._problem(op, not new[row] or bool(after[row]), is_ordered))
        images = zip((old, new), (self.before, self.fields), (3, 3 + len(self.before)), strict=True)
        for there, fields, first in images:
            for at, field in enumerate(fields, first):
                if not field.nullable and table.column(at).null_count:
                    note_nulls(pc.and_(table.column(at).is_null(), pa.array(there)), field, wrong)

    def rows(self, table: pa.Table) -> pa.Table:
        """Make the rows of envelopes, in their order, each old row before its new one."""
        ops, first = table.column(0), 3 + len(self.before)
        old, new = self._wanted(ops)
        if self.key:
            old |= np.asarray(pc.equal(ops, UPDATED)) & np.asarray(table.column(1).is_valid()) & self._is_moved(table)
        went, came, gone = np.flatnonzero(old), np.flatnonzero(new), np.flatnonzero(pc.equal(ops, TRUNCATION))
        names = [*(f.name for f in self.fields), MULT]
        if len(came) == len(table) and not len(went):  # NB: as of a snapshot, where nothing is to be put in order
            return pa.table([*table.columns[first:], pa.repeat(pa.scalar(1, pa.int64()), len(came))], names)
        kept, parts = {f.name: 3 + i for i, f in enumerate(self.before)}, list[pa.Table]()
        for at, mult in ((went, -1), (came, 1), (gone, TRUNCATED)):
            columns = list[pa.ChunkedArray | pa.Array]()
            for i, field in enumerate(self.fields, first):
                of = i if mult != -1 else kept.get(field.name, -1)
                taken = pa.nulls(len(at), column_type(field.type)) if of < 0 else table.column(of).take(pa.array(at))
                columns.append(taken)
            parts.append(pa.table([*columns, pa.array(np.full(len(at), mult))], names))
        order = np.argsort(np.concatenate([2 * went, 2 * came + 1, 2 * gone]), kind="stable")
        return pa.concat_tables(parts).take(pa.array(order))

    def _wanted(self, ops: pa.ChunkedArray) -> tuple[Mask, Mask]:
        """Mark the envelopes of which the old row counts, and those of which the new one does."""
        new = np.asarray(pc.is_in(ops, pa.array([*INSERTED, UPDATED])))
        return np.asarray(pc.is_in(ops, pa.array([DELETED, *([] if self.key else [UPDATED])]))).copy(), new

    def _is_moved(self, table: pa.Table) -> Mask:
        """Mark the envelopes whose old row has another key than the new one."""
        moved = np.zeros(len(table), np.bool_)
        first = 3 + len(self.before)
        for at, field in enumerate(self.before, 3):
            now = table.column(first + self.fields.index(field))
            moved |= np.asarray(pc.fill_null(pc.not_equal(table.column(at), now), False))
        return moved

    def _problem(self, op: str | None, has_new: bool, is_ordered: bool) -> Problem:
        if op == TRUNCATION:
            why = "its topic has several partitions: before and after are not told" if self.key else "no row is named"
            hint = "declare a PRIMARY KEY" if is_ordered else "let the topic have one partition"
            hint += ", or take a new snapshot of the table, in a topic or folder of its own"
            return Problem("SQ4005", f"the table was truncated (op 't'), and {why}", hint)
        if op not in (*INSERTED, DELETED, UPDATED):
            shown = "NULL" if op is None else shorten(repr(op))
            return Problem("SQ4005", f"op {shown} is none of c, r, u and d")
        image = "before" if has_new else "after"
        return Problem("SQ4005", f"op '{op}' needs {image}, which is null", IDENTITY if has_new else "")


def _either(one: pa.ChunkedArray, other: pa.ChunkedArray) -> pa.ChunkedArray:
    """Take values from two columns, of which one has them in each row."""
    if other.null_count == len(other):
        return one
    return other if one.null_count == len(one) else pc.coalesce(one, other)
