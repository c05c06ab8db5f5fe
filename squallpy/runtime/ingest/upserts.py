"""Upserts: rows that replace each other by PRIMARY KEY → the changes of a relation (`changelog 'upsert'`).

p (id PRIMARY KEY, v):  latest p {1: 5}   + row (1, 7)   →   −(1, 5), +(1, 7)      + a tombstone of 1   →   −(1, 5)
                        latest p {1: 5, 2: 6}   + a truncation, row (2, 6)   →   −(1, 5)

The last row of each key is kept at the partition of the key, as a record of a pool, with only the columns that the
query reads. Its payload holds the values as bits, not as sums: adding new − old in every word, mod 2⁶⁴, replaces them.
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from squallpy.base.records import dataclass
from squallpy.base.rings import Payload, Ring
from squallpy.base.types import Kind
from squallpy.catalog.relation import MULT, TRUNCATED, Field, Relation
from squallpy.logical.expressions import Column
from squallpy.physical.plan import Plan
from squallpy.runtime.evaluate.text_column_casts import column_type
from squallpy.runtime.evaluate.vectors import Vec, from_arrow, to_arrow
from squallpy.runtime.ingest.explode import columns_of, in_parts
from squallpy.runtime.ingest.feed import Feeder
from squallpy.runtime.joiners.routing import partitions_of
from squallpy.runtime.kernels.dictionary import Dictionary
from squallpy.runtime.kernels.memory_regions import Words
from squallpy.runtime.kernels.payload_columns import pack_decimal128, to_decimal128
from squallpy.runtime.kernels.pool import Pool
from squallpy.runtime.messages.deltas import Delta, decode, encode, numbered
from squallpy.runtime.state.pool_names import PoolName, Role
from squallpy.runtime.state.state_store import PoolLayout, Store, StringCells

Mask = npt.NDArray[np.bool_]
_BITS = {Kind.BOOLEAN: 1, Kind.INT: 32, Kind.DATE: 32}  # of a value that shares its word with others


@dataclass(frozen=True, slots=True)
class Bits:
    """A place for a value in a record: bits of a word, from the `shift`-th on."""

    word: int
    shift: int
    width: int

    def put(self, words: Words, values: Words) -> None:
        words[:, self.word] |= (values & self._mask) << self.shift

    def get(self, words: Words) -> Words:
        """Read the values, the highest bit as their sign."""
        rest = 64 - self.width
        return np.asarray(words[:, self.word] << (rest - self.shift) >> rest)

    def is_set(self, words: Words) -> Mask:
        return np.asarray(words[:, self.word] >> self.shift & 1, np.bool_)

    @property
    def _mask(self) -> int:
        return -1 if self.width == 64 else (1 << self.width) - 1


@dataclass(frozen=True)
class RecordLayout:
    """The layout of the values of some fields in a record: a bit that it is there, a bit for each NULL, values.

    id BIGINT PRIMARY KEY, v INT, s VARCHAR   →   a word of 1 + 1 + 32 bits, and a word for the number of the text
    """

    fields: tuple[Field, ...]

    @cached_property
    def _shared(self) -> Mapping[str, Bits]:
        """Places in words that several values share, by the name of the field; '' if the record is there, +: NULLs."""
        wanted = {"": 1} | {f"+{f.name}": 1 for f in self.fields if f.nullable and f.type.kind is not Kind.VARCHAR}
        wanted |= {f.name: _BITS[f.type.kind] for f in self.fields if f.type.kind in _BITS}
        found, used = dict[str, Bits](), list[int]()
        for name, width in wanted.items():
            word = next((w for w, bits in enumerate(used) if bits + width <= 64), len(used))
            used += [0] * (word == len(used))
            found[name], used[word] = Bits(word, used[word], width), used[word] + width
        return found

    @cached_property
    def _whole(self) -> Mapping[str, int]:
        """First words of the values that have words of their own."""
        found, at = dict[str, int](), 1 + max(bits.word for bits in self._shared.values())
        for field in (f for f in self.fields if f.type.kind not in _BITS):
            found[field.name], at = at, at + 1 + field.type.is_wide
        return found

    @cached_property
    def width(self) -> int:
        """Words of a record."""
        shared = 1 + max(bits.word for bits in self._shared.values())
        return shared + sum(1 + f.type.is_wide for f in self.fields if f.name in self._whole)

    def texts(self, key_width: int) -> tuple[StringCells, ...]:
        """List the words that hold numbers of texts."""
        named = (f.name for f in self.fields if f.type.kind is Kind.VARCHAR)
        return tuple(StringCells(key_width + self._whole[name], 0, 2**31) for name in named)

    def pack(self, rows: pa.RecordBatch, names: Dictionary) -> Words:
        """Pack rows into records."""
        words = np.zeros((len(rows), self.width), np.int64)
        self._shared[""].put(words, np.ones(len(rows), np.int64))
        for field in self.fields:
            column = rows.column(field.name)
            if field.type.kind is Kind.VARCHAR:
                texts = from_arrow(column, field.type)
                words[:, self._whole[field.name]] = encode(texts, _named(field), len(rows), names)
                continue
            valid = np.asarray(column.is_valid())
            if field.nullable:
                self._shared[f"+{field.name}"].put(words, (~valid).astype(np.int64))
            if field.type.is_wide:
                at = self._whole[field.name]
                words[:, at : at + 2] = np.where(valid[:, None], pack_decimal128(column), 0)
                continue
            values = np.where(valid, from_arrow(column, field.type).values, 0)
            held = values.view(np.int64) if field.type.kind is Kind.DOUBLE else values.astype(np.int64, copy=False)
            if field.name in self._whole:
                words[:, self._whole[field.name]] = held
            else:
                self._shared[field.name].put(words, held)
        return words

    def unpack(self, field: Field, words: Words, names: Dictionary) -> pa.Array:
        """Unpack the values of a field."""
        type = field.type
        if type.kind is Kind.VARCHAR:
            return names.strings(np.ascontiguousarray(words[:, self._whole[field.name]])).cast(column_type(type))
        valid = ~self._shared[f"+{field.name}"].is_set(words) if field.nullable else None
        if type.is_wide:
            at = self._whole[field.name]
            return to_decimal128(words[:, at : at + 2], type.precision, type.scale, None if valid is None else ~valid)
        if field.name in self._whole:
            held = np.ascontiguousarray(words[:, self._whole[field.name]])
            values: Any = held.view(np.float64) if type.kind is Kind.DOUBLE else held
        else:
            place = self._shared[field.name]
            values = place.is_set(words) if type.kind is Kind.BOOLEAN else place.get(words)
        return to_arrow(Vec(values, valid), type, len(words)).cast(column_type(type))

    def is_there(self, words: Words) -> Mask:
        """Mark the records that are there."""
        return self._shared[""].is_set(words)


class LatestRows:
    """The last row of each key of a relation, of which some columns are kept.

    Args:
        passed_on: Columns that are read and not kept: a row that goes has those of the one that replaces it.
    """

    def __init__(self, relation: Relation, columns: Sequence[str], passed_on: tuple[str, ...] = ()) -> None:
        fields = {field.name: field for field in relation.fields}
        self.relation, self.keys = relation, tuple(_named(fields[name]) for name in relation.primary_key)
        kept = tuple(f for f in relation.fields if f.name in columns and f.name not in relation.primary_key)
        self._passed_on, self._record = passed_on, RecordLayout(kept)
        self.columns = (*relation.primary_key, *(f.name for f in kept), *passed_on)
        """The columns that are read."""

    @property
    def name(self) -> PoolName:
        return PoolName(self.relation.name, Role.LATEST)

    @property
    def layout(self) -> PoolLayout:
        texts = (*numbered(self.keys), *self._record.texts(len(self.keys)))
        return PoolLayout(self.name, len(self.keys), Payload((Ring.COUNT,) * self._record.width), numbered=texts)

    def parts(self, rows: pa.RecordBatch, partitions: int) -> Iterator[tuple[int, pa.RecordBatch]]:
        """Split rows by the partitions of their keys; a truncation goes to all."""
        names = Dictionary()
        targets = partitions_of(self._keys(rows, names), self.keys, range(len(self.keys)), partitions, names)
        truncated = _truncations(rows)
        wanted = {*targets.tolist()} if not len(truncated) else range(partitions)
        for partition in sorted(wanted):
            is_there = targets == partition
            is_there[truncated] = True
            yield partition, rows.take(pa.array(np.flatnonzero(is_there)))

    def changes(self, pool: Pool, rows: pa.RecordBatch, names: Dictionary) -> pa.RecordBatch:
        """Replace rows by those of a batch, in their order, and return what went and came, with `__mult`."""
        changes, delta = self.difference(pool, rows, names)
        pool.upsert(delta.keys, delta.words)
        return changes

    def difference(self, pool: Pool, rows: pa.RecordBatch, names: Dictionary) -> tuple[pa.RecordBatch, Delta]:
        """Return what goes and comes by the rows of a batch, and the delta of the pool that replaces them."""
        rows = self._without_truncations(rows, pool, names)
        keys = self._keys(rows, names)
        rows, keys = self._last(self._completed(rows, keys, pool, names), keys)
        there = np.asarray(rows[MULT], np.int64) > 0 if MULT in rows.schema.names else np.ones(len(rows), np.bool_)
        new = np.where(there[:, None], self._record.pack(rows, names), 0)
        old = pool.get(keys)
        changed = np.flatnonzero((old != new).any(axis=1))
        keys, old, new, rows = keys[changed], old[changed], new[changed], rows.take(pa.array(changed))
        went, came = np.flatnonzero(self._record.is_there(old)), np.flatnonzero(there[changed])
        tables = [self._signed(self._old(rows.take(pa.array(went)), old[went], names), -1)]
        tables.append(self._signed(rows.take(pa.array(came)).select(self.columns), 1))
        return pa.concat_batches(tables), Delta(self.name, keys, new - old)

    def _keys(self, rows: pa.RecordBatch, names: Dictionary) -> Words:
        columns = (encode(from_arrow(rows.column(c.name), c.type), c, len(rows), names) for c in self.keys)
        return np.column_stack([*columns]) if len(rows) else np.empty((0, len(self.keys)), np.int64)

    def _without_truncations(self, rows: pa.RecordBatch, pool: Pool, names: Dictionary) -> pa.RecordBatch:
        """Replace the last truncation, with all before it, by tombstones of the rows that are kept."""
        truncated = _truncations(rows)
        if not len(truncated):
            return rows
        last, kept = int(truncated[-1]), pool.keys
        known = {MULT: pa.array(np.full(len(kept), -1))}
        for number, column in enumerate(self.keys):
            values = decode(np.ascontiguousarray(kept[:, number]), column, names)
            known[column.name] = to_arrow(values, column.type, len(kept))
        known |= {name: pa.repeat(rows.column(name)[last], len(kept)) for name in self._passed_on}
        columns = [
            known[field.name].cast(field.type) if field.name in known else pa.nulls(len(kept), field.type)
            for field in rows.schema
        ]
        gone = pa.record_batch(columns, rows.schema.names)
        return pa.concat_batches([gone, pa.record_batch(rows.slice(last + 1).columns, rows.schema.names)])

    def _completed(self, rows: pa.RecordBatch, keys: Words, pool: Pool, names: Dictionary) -> pa.RecordBatch:
        """Take values that are not told from the row before of the same key, in the batch or as it is kept.

        The bits of `__mult` from the second on mark them by the numbers of their fields.
        """
        marks = np.asarray(rows[MULT], np.int64) if MULT in rows.schema.names else np.ones(len(rows), np.int64)
        if not (marks > 1).any():
            return rows
        order = np.lexsort(keys.T)
        begins = np.append(True, (keys[order[1:]] != keys[order[:-1]]).any(axis=1))
        firsts = np.maximum.accumulate(np.where(begins, np.arange(len(rows)), 0))
        for field in self._record.fields:
            lacks = (marks > 1) & (marks >> (1 + self.relation.fields.index(field)) & 1 != 0)
            if not lacks.any():
                continue
            known = np.maximum.accumulate(np.where(lacks[order], -1, np.arange(len(rows))))
            before = np.empty(len(rows), np.int64)
            before[order] = np.where(known >= firsts, order[known], -1)
            kept = np.flatnonzero(before < 0)
            before[kept] = len(rows) + np.arange(len(kept))
            at, column = rows.schema.get_field_index(field.name), rows.column(field.name)
            values = self._record.unpack(field, pool.get(np.ascontiguousarray(keys[kept])), names)
            filled = pa.concat_arrays([column, values.cast(column.type)]).take(pa.array(before))
            rows = rows.set_column(at, rows.schema.field(at), filled)
        return rows

    def _last(self, rows: pa.RecordBatch, keys: Words) -> tuple[pa.RecordBatch, Words]:
        """Select the last row of each key, and return them with their keys."""
        order = np.lexsort(keys.T)  # NB: stable, so that the last of equal keys came last
        is_last = np.append((keys[order[1:]] != keys[order[:-1]]).any(axis=1), np.ones(min(1, len(rows)), np.bool_))
        last = np.sort(order[is_last])
        return rows.take(pa.array(last)), np.ascontiguousarray(keys[last])

    def _old(self, rows: pa.RecordBatch, words: Words, names: Dictionary) -> pa.RecordBatch:
        """Return the rows of records whose keys are those of other rows."""
        keys = [rows.column(column.name) for column in self.keys]
        values = [self._record.unpack(field, words, names) for field in self._record.fields]
        return pa.record_batch([*keys, *values, *map(rows.column, self._passed_on)], list(self.columns))

    def _signed(self, rows: pa.RecordBatch, mult: int) -> pa.RecordBatch:
        fields = {field.name: field.type for field in self.relation.fields}
        of_rows = self.columns[: len(self.columns) - len(self._passed_on)]
        columns = [rows.column(name).cast(column_type(fields[name])) for name in of_rows]
        columns += map(rows.column, self._passed_on)
        return pa.record_batch([*columns, pa.array(np.full(len(rows), mult))], [*self.columns, MULT])


def latest_rows(plan: Plan) -> dict[str, LatestRows]:
    """Make the keeper of the last rows of each relation that has upserts, by name."""
    read: dict[str, list[str]] = {}
    for feed in plan.sources:
        if feed.relation.source.is_keyed:
            read.setdefault(feed.relation.source.name, []).extend(columns_of(feed.relation, feed.fields))
    sources = {feed.relation.source.name: feed.relation.source for feed in plan.sources}
    return {name: LatestRows(sources[name], columns) for name, columns in read.items()}


class UpsertFeeds:
    """The feeds of the relations that have upserts."""

    def __init__(self, plan: Plan) -> None:
        self.latest = latest_rows(plan)
        self._feeders = [Feeder(feed, plan.partitions) for feed in plan.sources if feed.relation.source.is_keyed]

    def deltas(self, store: Store, rows: Mapping[str, pa.RecordBatch]) -> list[Delta]:
        """Apply the rows of a batch, by relation and in order of arrival, to a store; return the deltas of changes."""
        changes = {
            name: self.latest[name].changes(store.pool(self.latest[name].name), some, store.dictionary)
            for name, some in rows.items()
        }
        deltas = list[Delta]()
        for feeder in self._feeders:
            if (changed := changes.get(feeder.feed.relation.source.name)) is not None:
                deltas += feeder(in_parts(changed, feeder.feed.relation), store.dictionary)
        return deltas


def _truncations(rows: pa.RecordBatch) -> Words:
    """Find the truncations among rows."""
    return np.flatnonzero(np.asarray(rows[MULT]) == TRUNCATED if MULT in rows.schema.names else ())


def _named(field: Field) -> Column:
    return Column(0, field.name, field.type, field.nullable)
