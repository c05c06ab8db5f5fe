"""Feeds: a batch of a relation's tuples → filtered, projected, pre-aggregated deltas (`dbtoaster-batch-ivm` §3.3).

lineitem rows  →  ΔLINEITEM(l_orderkey)⟨n, revenue⟩   of those that were shipped after the date
"""

from collections.abc import Callable
from functools import reduce
from typing import Any

import numpy as np
import pyarrow as pa

from squallpy.base.rings import Payload, Ring
from squallpy.base.types import Kind, Type
from squallpy.logical.expressions import Column, columns
from squallpy.maintain.program import View
from squallpy.maintain.relational.calculus import Assign, Cmp, Lane, ring
from squallpy.physical.plan import Feed
from squallpy.runtime.deltas import NULL, Delta, encode
from squallpy.runtime.evaluate.compiled import Function, compiled
from squallpy.runtime.evaluate.logic import is_true
from squallpy.runtime.evaluate.numbers import LIMIT, largest
from squallpy.runtime.evaluate.vector import Frame, Vec, both, from_arrow, full, take
from squallpy.runtime.kernels.dictionary import Dictionary
from squallpy.runtime.kernels.lanes import fill_reals, pack, pack_decimal128
from squallpy.runtime.kernels.pool import Pool
from squallpy.runtime.kernels.routing import hash_columns
from squallpy.runtime.kernels.storage import Words
from squallpy.runtime.ledger import entries, ledger_name

MULT = "__mult"


class Feeder:
    """A feed made runnable. Not shared between threads: it reuses its scratch pools."""

    def __init__(self, feed: Feed, partitions: int) -> None:
        self.feed = feed
        self._partitions = partitions if feed.route.fields is not None else 1
        self._everywhere = partitions
        self._routing = feed.route.fields or feed.fields
        self._types = {f.name: f.type for f in feed.relation.fields}
        self._groups = [
            Grouping(delta, payload, self._partitions > 1)
            for delta, payload in zip(feed.deltas, feed.payloads, strict=True)
        ]

    def __call__(self, table: pa.RecordBatch, dictionary: Dictionary) -> list[tuple[int | None, Delta]]:
        """The deltas of a batch, each with its partition (None: every partition); strings numbered by `dictionary`."""
        mult = _multiplicities(table)
        target = self._hashes(table, self._routing) % self._partitions if self._partitions > 1 else None
        out: list[tuple[int | None, Delta]] = []

        def read(name: str) -> Vec:
            return from_arrow(table.column(table.schema.get_field_index(name)), self._types[name])

        for grouping in self._groups:
            keys, words = grouping(len(table), read, mult, target, dictionary)
            if target is None:
                out.append((0 if self.feed.route.fields is not None else None, Delta(grouping.name, keys, words)))
                continue
            for partition in range(self._partitions):
                mine = keys[:, 0] == partition
                if mine.any():
                    part = Delta(grouping.name, np.ascontiguousarray(keys[mine, 1:]), words[mine])
                    out.append((partition, part))
        if self.feed.relation.op and mult is not None:
            out += self._ledger(table, mult)
        return [(p, d) for p, d in out if len(d.keys)]

    def _ledger(self, table: pa.RecordBatch, mult: Words) -> list[tuple[int | None, Delta]]:
        """Which rows came and went. Kept by the hash of the row, so that each row has one place for good."""
        keys, words = entries(self._hashes(table, self.feed.fields), mult)
        name = ledger_name(self.feed.relation.name)
        place = keys[:, 0] % self._everywhere
        return [(p, Delta(name, keys[place == p], words[place == p])) for p in range(self._everywhere)]

    def _hashes(self, table: pa.RecordBatch, names: tuple[str, ...]) -> Words:
        """A hash of each tuple: a pure function of its contents, so that a retried batch routes alike."""
        hashed: list[Any] = []
        for name in names:
            column, type = table.column(name), self._types[name]
            if type.kind is Kind.VARCHAR:
                hashed.append(column)
            elif type.is_wide:  # as a narrow type does where there is room, for the two may be joined
                low, high = pack_decimal128(column).T
                word = low + _SPREAD * (high - (low >> 63))
                hashed.append(np.where(np.asarray(column.is_null()), NULL, word))
            else:
                hashed.append(encode(from_arrow(column, type), type, len(table), _NO_STRINGS))
        if not hashed:
            return np.zeros(len(table), np.int64)
        return (hash_columns(hashed).view(np.uint64) >> np.uint64(1)).astype(np.int64)  # not negative: % is to count up


_NO_STRINGS = Dictionary()
_SPREAD = 0x1D8E4E27C47D124F  # an odd constant: no two upper words of one lower word hash alike


def _multiplicities(table: pa.RecordBatch) -> Words | None:
    at = table.schema.get_field_index(MULT)
    return None if at < 0 else np.asarray(table.column(at), np.int64)


class Grouping:
    """One delta: evaluates its predicates, keys and lanes, and adds up equal keys in a scratch pool."""

    def __init__(self, delta: View, payload: Payload, routed: bool = False) -> None:
        (term,) = delta.terms
        (atom,) = term.atoms
        self.name, self._keys = delta.name, delta.keys
        self._fields = {v.id: name for name, v in atom.fields}
        steps = [f for f in term.body if isinstance(f, Assign | Cmp)]
        assigned = {f.variable.id for f in steps if isinstance(f, Assign)}
        early = [f for f in steps if isinstance(f, Cmp) and not any(c.id in assigned for c in columns(f.predicate))]
        self._steps: list[tuple[Column | None, Function]] = [
            (f.variable, compiled(f.value)) if isinstance(f, Assign) else (None, compiled(f.predicate))
            for f in (*early, *_ordered([f for f in steps if f not in early]))
        ]
        self._payload = payload
        self._factors = [_factors(lane) for lane in term.lanes if lane is not None]
        self._routed = routed
        self._scratch = Pool(len(delta.keys) + routed, self._payload)

    def __call__(
        self, rows: int, read: Callable[[str], Vec], mult: Words | None, target: Words | None, names: Dictionary
    ) -> tuple[Words, Words]:
        """Keys (behind the `target` of each, if there is one) and payloads of `rows` tuples; `read` gives fields."""
        chosen: Any = None

        def load(id: int) -> Vec:
            vec = read(self._fields[id])
            return vec if chosen is None else take(vec, chosen)

        frame = Frame(rows, {}, load)
        mask: Any = None
        at = 0
        while at < len(self._steps) and self._steps[at][0] is None:  # predicates over fields, before anything is copied
            test = is_true(self._steps[at][1](frame))
            mask = test if mask is None else np.logical_and(mask, test)
            at += 1
        if mask is not None and not np.all(mask):
            chosen = np.flatnonzero(np.broadcast_to(mask, rows))
            rows = len(chosen)
            frame = Frame(rows, {}, load)
            mult = None if mult is None else mult[chosen]
            target = None if target is None else target[chosen]
        for variable, function in self._steps[at:]:
            if variable is not None:
                frame._columns[variable.id] = function(frame)
                continue
            kept = np.flatnonzero(np.broadcast_to(is_true(function(frame)), rows))
            if len(kept) < rows:
                chosen = kept if chosen is None else chosen[kept]
                rows = len(kept)
                frame = Frame(rows, {id: take(vec, kept) for id, vec in frame._columns.items()}, load)
                mult = None if mult is None else mult[kept]
                target = None if target is None else target[kept]
        keys = np.empty((rows, len(self._keys) + self._routed), np.int64)
        if target is not None:
            keys[:, 0] = target
        for i, key in enumerate(self._keys, self._routed):
            keys[:, i] = encode(frame[key.id], key.type, rows, names)
        words = np.empty((rows, self._payload.width), np.int64)
        for product, at, kind in zip(self._factors, self._payload.offsets, self._payload.rings, strict=True):
            if kind >= Ring.REAL:
                values, times = product(frame)
                fill_reals(words, at, kind, values, mult if times is None else times if mult is None else times * mult)
            else:
                _fill(words, at, kind, product(frame), mult)
        self._scratch.clear()
        self._scratch.upsert(keys, words)
        grouped, sums = self._scratch.rows()
        return grouped.copy(), sums.copy()


def _ordered(steps: list[Assign | Cmp]) -> list[Assign | Cmp]:
    """Assignments before what reads them."""
    done: list[Assign | Cmp] = []
    left = list(steps)
    names = {f.variable.id for f in steps if isinstance(f, Assign)}
    while left:
        known = {f.variable.id for f in done if isinstance(f, Assign)}
        waiting = names - known
        free = [
            f
            for f in left
            if not any(c.id in waiting for c in columns(f.value if isinstance(f, Assign) else f.predicate))
        ]
        assert free, "assignments in a circle"
        done += free
        left = [f for f in left if f not in free]
    return done


def _factors(lane: Lane) -> Callable[[Frame], Any]:
    return _real_product(lane) if ring(lane) is Ring.REAL else _product(lane)


def _product(lane: Lane) -> Callable[[Frame], Any]:
    """The product of a lane's factors, NULL counting as 0; None stands for 1."""
    functions = [(compiled(f), f.type) for f in lane]

    def run(frame: Frame) -> Any:
        values = [number(f(frame), type, frame.rows) for f, type in functions]
        return reduce(multiply, values) if values else None

    return run


def _real_product(lane: Lane) -> Callable[[Frame], tuple[Any, Words | None]]:
    """The product of a lane's factors as doubles, with how often it counts (None: once): 0 times where a factor is NULL
    or FALSE, which is not the same as a product with 0, for that may be NaN."""
    functions = [(compiled(f), f.type) for f in lane]

    def run(frame: Frame) -> tuple[Any, Words | None]:
        product, counts = np.float64(1.0), None
        for function, type in functions:
            vec = full(function(frame), type, frame.rows)
            counts = both(counts, vec.valid, vec.values if type.kind is Kind.BOOLEAN else None)
            if type.kind is not Kind.BOOLEAN:
                with np.errstate(all="ignore"):  # what stands at a NULL is arbitrary
                    product = product * vec.values
        return product, None if counts is None else counts.astype(np.int64)

    return run


def number(vec: Vec, type: Type, rows: int) -> Any:
    """A factor as plain numbers: NULL is 0, TRUE is 1."""
    values, valid = full(vec, type, rows)
    if values.dtype == bool:
        return (values if valid is None else values & valid).astype(np.int64)
    return values if valid is None else np.where(valid, values, 0)


def multiply(a: Any, b: Any) -> Any:
    if a.dtype.kind == b.dtype.kind == "i" and largest(a) * largest(b) >= LIMIT:
        return a.astype(object) * b
    return a * b


def _fill(words: Words, at: int, ring: Ring, values: Any, mult: Words | None) -> None:
    """Write a COUNT or EXACT lane: values (None: 1) times multiplicities (None: 1)."""
    if values is None:
        values = 1 if mult is None else mult
    elif mult is not None:
        values = multiply(values, mult)
    if np.asarray(values).dtype.kind == "O":
        words[:, at : at + ring.words] = pack(values, ring)
    else:
        words[:, at] = values
        if ring is Ring.EXACT:
            words[:, at + 1] = np.right_shift(values, 63)
