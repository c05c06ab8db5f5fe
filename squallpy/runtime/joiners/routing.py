"""Routing of rows to partitions: by the hash of what their keys stand for, so alike on every node and each time.

spread(ΔORDERS, by o_custkey, over 2)   →   (0, rows of some customers), (1, those of the others)
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from squallpy.base.keys import NULL
from squallpy.base.types import Kind
from squallpy.logical.expressions import Column
from squallpy.physical.distribute.heavy_key_placement import HEAVY_FRACTION
from squallpy.physical.joins.band_histograms import Band, Positions
from squallpy.physical.joins.heavy_cells import MOST, route_to_cells
from squallpy.physical.joins.heavy_keys import route_by_key
from squallpy.physical.joins.mapping import Tickets
from squallpy.physical.plan import BandKeys, BandPlan, CubePlan, Plan, Send
from squallpy.runtime.joiners.batch_plan import BatchPlan, KeyMoves, OnHypercube, OnRanges
from squallpy.runtime.joiners.joiner_statistics import OTHER_KEYS, name_of_keys
from squallpy.runtime.kernels.content_hash import from_zero, hash_columns, hash_strings
from squallpy.runtime.kernels.dictionary import Dictionary
from squallpy.runtime.kernels.memory_regions import Words
from squallpy.runtime.messages.deltas import Delta, spelled


def partitions_of(
    keys: Words, columns: Sequence[Column], by: Sequence[int], partitions: int, names: Dictionary
) -> Words:
    """Compute the partition of each row from those of its key columns; without any: 0."""
    if not by or partitions == 1:
        return np.zeros(len(keys), np.int64)
    return from_zero(_hashes(keys, columns, by, names)) % partitions


def tickets_of(keys: Words, columns: Sequence[Column], by: Sequence[int], names: Dictionary) -> Tickets:
    """Compute the ticket of each row in the join-matrix from some of its key columns: a delete has its insert's."""
    if not by:
        return np.zeros(len(keys), np.uint64)
    return _hashes(keys, columns, by, names).view(np.uint64)


def spread(
    delta: Delta, columns: Sequence[Column], send: Send, plan: Plan, batch: BatchPlan | None, names: Dictionary
) -> Iterator[tuple[int, Delta]]:
    """Yield the rows for each partition, where there are any."""
    partitions, grids = plan.partitions, batch.grids if batch else (plan.grid,) if plan.grid else ()
    if not len(delta.keys):
        return
    if send.keys is None:
        yield from ((partition, delta) for partition in range(partitions))
        return
    if isinstance(batch, KeyMoves) and send.side is not None and send.key:
        yield from _by_key(delta, columns, send, partitions, batch, names)
        return
    if isinstance(batch, OnRanges) and send.side is not None and plan.band:
        yield from _by_ranges(delta, columns, send, plan.band, batch, names)
        return
    if send.cells and plan.hypercube:
        yield from _by_cells(delta, columns, send, plan.hypercube, batch, names)
        return
    if send.side is None or not grids:
        targets = partitions_of(delta.keys, columns, send.keys, send.partitions or partitions, names)
        for partition in range(partitions):
            yield from _part(partition, delta, targets == partition)
        return
    tickets = tickets_of(delta.keys, columns, send.keys, names)
    for grid in grids:
        parts, joiners = grid.coordinates(send.side, tickets), grid.numbers
        homes = grid.coordinates_of(send.side, joiners)
        for part in range(grid.mapping.cuts(send.side)):
            for _, rows in _part(part, delta, parts == part):
                yield from ((joiner, rows) for joiner in joiners[homes == part].tolist())


def _by_key(
    delta: Delta, columns: Sequence[Column], send: Send, partitions: int, batch: KeyMoves, names: Dictionary
) -> Iterator[tuple[int, Delta]]:
    """Yield rows by the hash of what a join compares, those of heavy keys to the joiners of their row or column."""
    assert send.side is not None and send.keys is not None
    keys, tickets = (tickets_of(delta.keys, columns, by, names) for by in (send.key, send.keys))
    heavy = np.array([key for key, _ in batch.heavy], np.uint64)
    positions, joiners = route_by_key(partitions, heavy, [grid for _, grid in batch.heavy], send.side, keys, tickets)
    for joiner in np.unique(joiners).tolist():
        rows = positions[joiners == joiner]
        yield joiner, delta.take(rows)


def _by_ranges(
    delta: Delta, columns: Sequence[Column], send: Send, plan: BandPlan, batch: OnRanges, names: Dictionary
) -> Iterator[tuple[int, Delta]]:
    """Yield rows for the joiners of each region that has something they may be joined with."""
    assert send.side is not None and send.keys is not None
    ranges, by = batch.ranges, dict(plan.keys)[send.source]
    tickets = tickets_of(delta.keys, columns, send.keys, names)
    positions, joiners, _ = ranges.route(send.side, positions_of(delta.keys, columns, by, ranges.band, names), tickets)
    for joiner in np.unique(joiners).tolist():
        yield joiner, delta.take(positions[joiners == joiner])


def positions_of(keys: Words, columns: Sequence[Column], by: BandKeys, band: Band, names: Dictionary) -> Positions:
    """Compute the positions of records in a band join from their keys."""
    ranks = band.rank(np.ascontiguousarray(keys[:, by.banded]))
    return Positions(tickets_of(keys, columns, by.equal, names), ranks)


def _by_cells(
    delta: Delta, columns: Sequence[Column], send: Send, plan: CubePlan, batch: BatchPlan | None, names: Dictionary
) -> Iterator[tuple[int, Delta]]:
    """Yield rows for all joiners of a hypercube with their coordinates, those of heavy keys for their cells."""
    cube, heavy = (batch.cube, batch.heavy) if isinstance(batch, OnHypercube) else (plan.cube, ())
    hashed = {dimension: tickets_of(delta.keys, columns, by, names) for dimension, by in send.cells}
    relation, by = next(((of, by) for name, of, by in plan.tickets if name == send.source), ("", ()))
    own = tickets_of(delta.keys, columns, by if heavy else (), names)
    for positions, firsts, copies in route_to_cells(cube, heavy, relation, hashed, own):
        for first in np.unique(firsts).tolist():
            rows = delta.take(positions[firsts == first])
            yield from ((first + copy, rows) for copy in copies.tolist())


def cell_keys_of(
    plan: CubePlan, deltas: Mapping[str, Sequence[Column]], sends: Iterable[Send], sent: Mapping[str, Delta],
    names: Dictionary,
) -> dict[str, dict[str, int]]:  # fmt: skip
    """Count the tuples of each relation of a hypercube, and its most frequent keys on each equality."""
    found, relations = dict[str, dict[str, int]](), {name: of for name, of, _ in plan.tickets}
    for send in sends:
        relation = relations.get(send.source)
        if relation is None or relation in found or send.name not in sent:
            continue
        delta = sent[send.name]
        found[relation] = {OTHER_KEYS: len(delta.keys)}
        for dimension, by in send.cells:
            if plan.dimensions[dimension][1]:
                keys, counts = np.unique(tickets_of(delta.keys, deltas[send.name], by, names), return_counts=True)
                often = np.argsort(-counts, kind="stable")[:MOST]
                found[relation] |= {
                    f"{dimension} {key}": count
                    for key, count in zip(keys[often].tolist(), counts[often].tolist(), strict=True)
                }
    return found


def keys_of(plan: Plan, sends: Iterable[Send], sent: Mapping[str, Delta], names: Dictionary) -> dict[str, Any]:
    """Count how often the most frequent keys of a join come and go, by side; nothing if no key may be heavy.

    A key is named that has as large a share of the tuples as a counter of the driver's sketch; with keys that are all
    as frequent none is.
    """
    columns, found = {d.name: d.keys for d in plan.deltas}, defaultdict[str, Counter[str]](Counter)
    for send in sends:
        if send.key and send.side is not None and send.name in sent:
            delta = sent[send.name]
            hashes = tickets_of(delta.keys, columns[send.name], send.key, names)
            for sign in (1, -1):
                keys, counts = np.unique(hashes[delta.words[:, 0] * sign > 0], return_counts=True)
                many = counts > counts.sum() * HEAVY_FRACTION / (2 * plan.partitions)
                often = dict(zip(map(str, keys[many].tolist()), counts[many].tolist(), strict=True))
                found[name_of_keys(send.side, sign)].update(often | {OTHER_KEYS: int(counts[~many].sum())})
    return {"keys": dict(found)} if found else {}


def _part(partition: int, delta: Delta, chosen: Any) -> Iterator[tuple[int, Delta]]:
    rows = np.flatnonzero(chosen)
    if len(rows):
        yield partition, delta.take(rows)


def _hashes(keys: Words, columns: Sequence[Column], by: Sequence[int], names: Dictionary) -> Words:
    return hash_columns([_contents(np.ascontiguousarray(keys[:, i]), columns[i], names) for i in by])


def _contents(keys: Words, column: Column, names: Dictionary) -> Any:
    """Convert a key column to values that hash alike anywhere: texts and long digits by their bytes."""
    if column.type.kind is Kind.VARCHAR:
        return names.strings(keys)
    if column.type.is_wide and (some := spelled(keys)).any():
        digits = hash_strings(names.strings(np.where(some, keys - NULL - 1, -1)))
        return np.where(some, digits, keys)
    return keys
