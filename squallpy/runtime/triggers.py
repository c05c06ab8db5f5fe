"""Triggers at work: the statements of a plan over the pools of one partition.

ΔO(ck, ok) ⋈ M_C(ck) ⋈ M_L(ok)    →    rows of ΔO, probe M_C, probe M_L, multiply payloads, add to Q
"""

from typing import Any

import numpy as np

from squallpy.base.rings import Payload, Ring
from squallpy.base.types import Kind, Type
from squallpy.logical.expressions import Column
from squallpy.maintain.program import RESULT
from squallpy.physical.plan import Feed, Let, Lookup, Nested, Plan, Update, Where
from squallpy.runtime.deltas import Delta, decode, encode
from squallpy.runtime.evaluate.compiled import Function, compiled
from squallpy.runtime.evaluate.logic import is_true
from squallpy.runtime.evaluate.vector import Frame, Vec, full
from squallpy.runtime.extremes import Extremes, extremes_layouts
from squallpy.runtime.feed import number
from squallpy.runtime.intervals import Intervals, intervals_layouts
from squallpy.runtime.kernels.dictionary import Dictionary
from squallpy.runtime.kernels.lanes import fill_reals, load, multiply, pack
from squallpy.runtime.kernels.pool import Pool
from squallpy.runtime.kernels.sorted import Sorted
from squallpy.runtime.kernels.storage import Words
from squallpy.runtime.ledger import ledger_layouts, ledger_name, unmatched
from squallpy.runtime.nested import Aggregates, NestFeed, Touched, begin, begun_layouts
from squallpy.runtime.ranges import Bounds, Ranges, overlaid
from squallpy.runtime.state.store import PoolLayout, Store, StoreLayout

CHUNK = 1 << 17  # rows of a delta joined at a time: what a step makes of them has to fit in memory
PAIRS = 1 << 22  # pairs that a scan or a range makes at a time


def store_layout(plan: Plan) -> StoreLayout:
    """The pools that a partition of the plan keeps."""
    views = tuple(PoolLayout(p.name, len(p.keys), p.payload, p.slices, p.orders) for p in plan.pools)
    return StoreLayout(
        (*views, *ledger_layouts(plan), *begun_layouts(plan), *extremes_layouts(plan), *intervals_layouts(plan))
    )


class Machine:
    """The trigger program of one partition. Deterministic: all its memory is in the store."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        payloads = {p.name: p.payload for p in (*plan.pools, *plan.deltas, plan.result)}
        self._triggers = [[_Statement(update, payloads) for update in updates] for updates in plan.updates]
        self.unmatched = 0
        self._result = Pool(len(plan.result.keys), plan.result.payload)
        indexed = {
            step.source for updates in plan.updates for u in updates for step in u.steps if isinstance(step, Lookup)
        }
        self._indexed = {
            d.name: Pool(len(d.keys), d.payload, d.slices, orders=d.orders) for d in plan.deltas if d.name in indexed
        }
        self._nested = {f.relation.name: _nest(f, f.nested) for f in plan.feeds if f.nested}
        self._touched = {n.source.name: Touched(n.source) for f in plan.feeds if (n := f.nested) and not n.running}

    def apply(self, store: Store, deltas: list[Delta]) -> Delta:
        """Apply one batch, relation by relation; returns the change of the result.

        `unmatched` is then the number of deletes in the batch that found nothing to delete.
        """
        self._result.clear()
        self.unmatched = 0
        given: dict[str, list[Delta]] = {}
        for delta in deltas:
            given.setdefault(delta.name, []).append(delta)
        for feed, statements in zip(self._plan.feeds, self._triggers, strict=True):
            if feed.nested:
                touched = self._touched.get(feed.nested.source.name)
                mine = self._nested[feed.relation.name].deltas(store, touched.groups() if touched else None)
            else:
                mine = {d.name: _merged(given[d.name]) for d in feed.deltas if d.name in given}
            pools: dict[str, Pool] = dict(store)
            for name, delta in mine.items():
                if name in self._indexed:
                    self._indexed[name].clear()
                    self._indexed[name].upsert(delta.keys, delta.words)
            pools |= self._indexed | {RESULT: self._result}
            if (ledger := ledger_name(feed.relation.name)) in given:
                changes = _merged(given[ledger])
                self.unmatched += unmatched(store[ledger], changes.keys, changes.words)
            for statement in statements:
                if statement.delta in mine:
                    noted = self._touched.get(statement.target)
                    statement.run(mine[statement.delta], pools, store.dictionary, noted)
            for name in mine:
                if name in self._indexed:
                    self._indexed[name].clear()
        for touched in self._touched.values():
            touched.clear()
        begin(store)
        keys, words = self._result.rows()
        return Delta(RESULT, keys, words)


_Factor = tuple[Words, Words | None, int, Ring]  # a lane: its matrix, which rows of it (None: each), where, its ring


def _nest(feed: Feed, nested: Nested) -> NestFeed:
    if nested.running:
        return Intervals(feed, nested)
    return Extremes(feed, nested) if nested.finish.over else Aggregates(feed, nested)


def _merged(parts: list[Delta]) -> Delta:
    if len(parts) == 1:
        return parts[0]
    return Delta(parts[0].name, np.concatenate([p.keys for p in parts]), np.concatenate([p.words for p in parts]))


class _Rows:
    """The rows of a statement under way: key columns by variable, and where the payload factors of each row are."""

    def __init__(self, rows: int, columns: dict[int, Words], sources: list[tuple[Words, Words | None]]) -> None:
        self.rows, self.columns, self.sources = rows, columns, sources

    def pick(self, chosen: Words, live: frozenset[int] | None = None) -> "_Rows":
        columns = {id: c[chosen] for id, c in self.columns.items() if live is None or id in live}
        sources: list[tuple[Words, Words | None]] = [
            (w, chosen if at is None else at[chosen]) for w, at in self.sources
        ]
        return _Rows(len(chosen), columns, sources)


class _Crowded(Exception):
    """A range makes more pairs of the rows than fit in memory at a time."""


class _Statement:
    """An update made runnable."""

    def __init__(self, update: Update, payloads: dict[str, Payload]) -> None:
        self.delta, self.target = update.delta, update.target
        self._update = update
        self._types = {v.id: v for v in _variables(update)}
        self._functions: list[Function | None] = [
            compiled(s.predicate) if isinstance(s, Where) else compiled(s.value) if isinstance(s, Let) else None
            for s in update.steps
        ]
        self._payload = payloads[update.target]
        self._counted = all(ring is Ring.COUNT for ring in payloads[update.delta].rings)
        lookups = [s for s in update.steps if isinstance(s, Lookup)]
        names = [update.delta, *(s.source for s in lookups)]
        self._scanned = [s.source for s in lookups if s.how == "scan"]
        picks = (update.picks, *(s.picks for s in lookups))
        shifts = (0, *(len(s.bound) + len(s.binds) if s.how == "range" else 0 for s in lookups))
        self._factors = [_places(payloads[n], p, shift) for n, p, shift in zip(names, picks, shifts, strict=True)]
        self._ranges = {step: Ranges(step) for step in lookups if step.range}
        self._lanes = [None if lane is None else [(compiled(f), f.type) for f in lane] for lane in update.lanes]
        self._key_ids = [k.id for k in update.keys]
        whole = payloads[update.delta] == self._payload and update.picks == tuple(range(len(self._payload.rings)))
        same = [v.id for v in update.variables] == self._key_ids and whole
        self._plain = same and not update.steps and all(lane == () for lane in update.lanes)

    def run(self, delta: Delta, pools: dict[str, Pool], dictionary: Dictionary, touched: Touched | None) -> None:
        """Evaluate the statement for a delta and add the outcome to its target, whose groups are noted in `touched`."""
        target = pools[self._update.target]
        if self._plain:
            _add(target, np.ascontiguousarray(delta.keys), np.ascontiguousarray(delta.words), touched)
            return
        chunk = CHUNK
        for source in self._scanned:  # every row of a chunk meets every record
            chunk = max(1, min(chunk, PAIRS // max(1, len(pools[source]))))
        start = 0
        while start < len(delta.keys):
            keys, words = delta.keys[start : start + chunk], np.ascontiguousarray(delta.words[start : start + chunk])
            columns = {v.id: np.ascontiguousarray(keys[:, i]) for i, v in enumerate(self._update.variables)}
            try:
                rows = self._join(_Rows(len(keys), columns, [(words, None)]), pools, dictionary)
            except _Crowded:
                chunk = len(keys) // 2
                continue
            if rows is not None:
                _add(target, self._keys(rows), self._words(rows, dictionary), touched)
            start += chunk

    def _join(self, rows: _Rows, pools: dict[str, Pool], dictionary: Dictionary) -> _Rows | None:
        """Take the steps; None when no row is left."""
        for step, function in zip(self._update.steps, self._functions, strict=True):
            match step:
                case Lookup(range=None):
                    rows = _look_up(step, rows, pools[step.source])
                case Lookup():
                    rows = self._look_up_range(step, rows, pools[step.source].sorted[step.index], dictionary)
                case Where():
                    assert function is not None
                    kept = np.flatnonzero(np.broadcast_to(is_true(function(self._frame(rows, dictionary))), rows.rows))
                    rows = rows if len(kept) == rows.rows else rows.pick(kept)
                case Let(variable):
                    assert function is not None
                    value = function(self._frame(rows, dictionary))
                    rows.columns[variable.id] = encode(value, variable.type, rows.rows, dictionary)
            if rows.rows == 0:
                return None
        return rows

    def _look_up_range(self, step: Lookup, rows: _Rows, index: Sorted, dictionary: Dictionary) -> _Rows:
        """The rows with the records of their ranges, or with the sum of those."""
        ranges, given = self._ranges[step], _given(step, rows)
        assert step.range is not None
        variable = step.range.variable.id

        def framed(words: Words | None, chosen: Words | None) -> Frame:
            some = rows if chosen is None else _Rows(rows.rows, rows.columns, []).pick(chosen)
            columns = some.columns if words is None else some.columns | {variable: words}
            return self._frame(_Rows(some.rows, columns, []), dictionary)

        bounds = ranges.find(index, given, framed, dictionary)
        if step.how == "sum":
            sums = index.sums(given, *bounds)
            found = np.flatnonzero(sums.any(axis=1))
            out = rows.pick(found, step.live)
            out.sources.append((sums, found))
            return out
        others = ranges.unordered(index, given)
        if rows.rows > 1 and not len(others[0]) and len(rows.sources) == 1 and self._counted:
            rows, given, bounds = _overlay(step, rows, given, bounds)
        if rows.rows > 1 and index.count(given, *bounds) > PAIRS:
            raise _Crowded
        found, places = index.between(given, *bounds)
        if len(others[0]):
            more = rows.pick(others[0])
            more.columns[variable] = index.column(index.ranged, others[1])
            true = ranges.test(self._frame(more, dictionary))
            found, places = np.append(found, others[0][true]), np.append(places, others[1][true])
        out = rows.pick(found, step.live)
        for position, v in step.binds:
            if v.id in step.live:
                out.columns[v.id] = index.column(position, places)
        out.sources.append((index.entries, places))
        return out

    def _frame(self, rows: _Rows, dictionary: Dictionary) -> Frame:
        return Frame(rows.rows, {}, lambda id: decode(rows.columns[id], self._types[id], dictionary))

    def _keys(self, rows: _Rows) -> Words:
        keys = np.empty((rows.rows, len(self._key_ids)), np.int64)
        for i, id in enumerate(self._key_ids):
            keys[:, i] = rows.columns[id]
        return keys

    def _words(self, rows: _Rows, dictionary: Dictionary) -> Words:
        """The payload of each row: the product of the picked lanes and of what only the statement could evaluate."""
        words = np.empty((rows.rows, self._payload.width), np.int64)
        frame = self._frame(rows, dictionary)
        for lane, (offset, ring) in enumerate(zip(self._payload.offsets, self._payload.rings, strict=True)):
            computed = self._lanes[lane]
            if computed is None:
                words[:, offset : offset + ring.words] = 0
                continue
            factors = [(*s, *place[lane]) for s, place in zip(rows.sources, self._factors, strict=True)]
            factors += [_scalar(function(frame), type, rows.rows, ring) for function, type in computed]
            factors.sort(key=_is_count)  # a sum times a count is cheap, or at all possible
            for n, factor in enumerate(factors):
                (load if n == 0 else multiply)(words, offset, ring, *factor)
        return words


def _add(target: Pool, keys: Words, words: Words, touched: Touched | None) -> None:
    if touched is not None:
        touched.note(target, keys)
    target.upsert(keys, words)


def _given(step: Lookup, rows: _Rows) -> Words:
    """The values by which a lookup looks, row by row."""
    given = np.empty((rows.rows, len(step.bound)), np.int64)
    for i, (_, v) in enumerate(step.bound):
        given[:, i] = rows.columns[v.id]
    return given


def _overlay(step: Lookup, rows: _Rows, given: Words, bounds: Bounds) -> tuple[_Rows, Words, Bounds]:
    """Rows that only differ in their ranges, as rows whose ranges do not overlap."""
    kept = [id for id in sorted(rows.columns) if id in step.live]
    groups = np.stack([*given.T, *(rows.columns[id] for id in kept)], axis=1) if given.shape[1] + len(kept) else given
    ((words, at),) = rows.sources
    chosen, bounds, counts = overlaid(groups, bounds, words if at is None else words[at])
    out = rows.pick(chosen)
    out.sources = [(counts, None)]
    return out, given[chosen], bounds


def _look_up(step: Lookup, rows: _Rows, pool: Pool) -> _Rows:
    given = _given(step, rows)
    match step.how:
        case "probe":
            slots = pool.probe(given)
            found: Any = np.flatnonzero(slots >= 0)
            if len(found) == rows.rows:
                return _Rows(rows.rows, rows.columns, [*rows.sources, (pool.words, slots)])
            slots = slots[found]
        case "slice":
            found, slots = pool.slice(step.index, given)
        case _:
            found = np.repeat(np.arange(rows.rows), len(pool))
            slots = np.tile(pool.scan(), rows.rows)
    out = rows.pick(found, step.live)
    keys = pool.keys
    for position, v in step.binds:
        if v.id in step.live:
            out.columns[v.id] = keys[slots, position]
    out.sources.append((pool.words, slots))
    return out


def _scalar(vec: Vec, type: Type, rows: int, target: Ring) -> _Factor:
    """A computed factor as a lane of the target's ring, or of the smallest that goes into it."""
    values, valid = full(vec, type, rows)
    if type.kind is Kind.DOUBLE:
        words = np.empty((rows, target.words), np.int64)
        fill_reals(words, 0, target, values, None if valid is None else valid.astype(np.int64))
        return words, None, 0, target
    ring = Ring.EXACT if type.is_exact and type.kind is not Kind.INT else Ring.COUNT  # one word: it goes into any ring
    return pack(number(Vec(values, valid), type, rows), ring), None, 0, ring


def _is_count(factor: _Factor) -> bool:
    return factor[-1] is Ring.COUNT


def _places(payload: Payload, picks: tuple[int, ...], shift: int) -> list[tuple[int, Ring]]:
    """Offset and ring of the lane of a source that goes into each lane of the target."""
    return [(payload.offsets[p] + shift, payload.rings[p]) for p in picks]


def _variables(update: Update) -> list[Column]:
    found = list(update.variables)
    for step in update.steps:
        match step:
            case Lookup(_, _, _, _, binds, range=ranged):
                found += [v for _, v in binds]
                found += [ranged.variable] if ranged else []
            case Let(variable):
                found.append(variable)
    return found
