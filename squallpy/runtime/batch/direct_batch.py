"""A batch of a plan that is compiled whole, in one process: from Arrow to the changes of results, by a few calls.

What a plan may have besides, ledgers, windows, upserts, matrices, auxiliary relations, is up to `Sender` and
`StageExecutor`, and so is a batch for which compiled code has no answer: nothing was changed then.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from squallpy.physical.plan import Plan
from squallpy.runtime.batch.micro_batch import AggregatedPart, Stats, add_stats
from squallpy.runtime.compiled.functions import CompiledGroup, CompiledPlan, CompiledRun
from squallpy.runtime.evaluate.kernel_runner import Batch
from squallpy.runtime.formats.counted_table import concat_tables, one_batch
from squallpy.runtime.formats.file_rows import ReadStats
from squallpy.runtime.kernels.pool import Pool
from squallpy.runtime.kernels.view_container import Container
from squallpy.runtime.messages.deltas import Delta
from squallpy.runtime.sources.input import Slices
from squallpy.runtime.sources.protocol import Slice
from squallpy.runtime.sources.source import RowRange
from squallpy.runtime.state.state_store import Store
from squallpy.runtime.triggers.duplicate_keys import KeyCheck


@dataclass(slots=True)
class _Feed:
    """A relation, the columns that are read, and its groups; rows that stay in memory are exported once."""

    name: str
    columns: tuple[str, ...]
    groups: list[tuple[CompiledGroup, Pool]]
    resident: Batch | None = None


class DirectBatch:
    """The compiled functions of a plan, with the pools that they add deltas up in."""

    def __init__(self, plan: Plan, compiled: CompiledPlan, store: Store) -> None:
        (self._run,) = compiled.runs().values()
        sums: dict[str, Pool] = {}
        self._feeds = list[_Feed]()
        for feed in plan.sources:
            groups = list[tuple[CompiledGroup, Pool]]()
            for delta, payload in zip(feed.deltas, feed.payloads, strict=True):
                found, sums[delta.name] = compiled.group(delta.name), Pool(len(delta.keys), payload)
                assert found, f"{delta.name} is not compiled"
                groups.append((found, sums[delta.name]))
            self._feeds.append(_Feed(feed.relation.name, feed.fields, groups))
        self._sums = [sums[name] for name in self._run.code.deltas]
        self._all_sums = list(sums.values())
        self._changes = {result.name: Pool(len(result.keys), result.payload) for result in plan.results}
        self._store, self._pools = store, dict[str, Container](store) | self._changes
        columns = {pool.name: pool.keys for pool in plan.pools}
        watched = {view for view, _ in self._run.code.unique} & columns.keys()
        self._unique = {u.view: KeyCheck(u, columns[u.view]) for u in plan.unique if u.view in watched}

    @staticmethod
    def of(plan: Plan, compiled: CompiledPlan | None, store: Store) -> "DirectBatch | None":
        """Make it if all that a batch of the plan needs is compiled."""
        if compiled is None or compiled.code.refused or len(compiled.code.runs) != 1 or plan.matrices or plan.clocks:
            return None
        (run,), relations = compiled.code.runs, [feed.relation for feed in plan.feeds]
        plain = all(r.parts is None and not r.is_computed and not r.source.is_keyed for r in relations)
        whole = (run.first, run.stop) == (0, len(plan.stages[0].steps)) and not plan.stages[0].keeps
        alone = len(plan.sources) == len(plan.feeds) == len({r.source.name for r in relations})
        return DirectBatch(plan, compiled, store) if plain and whole and alone and not plan.ledgers else None

    def __call__(self, slices: Slices) -> tuple[list[Delta], Stats] | None:
        """Apply a batch; returns the changes of results and statistics, or None if there is no answer."""
        part, sums = AggregatedPart([], [], {"tuples": 0, "skipped": 0, "read_rows": {}}), ReadStats()
        for pool in self._all_sums:
            pool.clear()
        for feed in self._feeds:
            if some := slices.get(feed.name):
                batch, span = self._find_resident(feed, some), None
                if batch is None:
                    tables = [each.read(feed.columns) for each in some]
                    batch = Batch(one_batch(concat_tables(tables)))
                    for table in tables:
                        sums.add(feed.name, table)
                    part.count(feed.name, some, tables)
                elif isinstance(rows := some[0], RowRange):
                    span = rows.start, rows.rows
                    part.stats["read_rows"][feed.name] = rows.rows
                    part.stats["tuples"] += rows.rows
                for group, pool in feed.groups:
                    if not group(batch, pool, self._store.dictionary, span):
                        return None
        for pool in self._changes.values():
            pool.clear()
        stats: dict[str, Any] = add_stats(part.stats, sums.stats)
        stats |= {"unmatched": 0, "late": 0, "duplicates": self._apply(self._run)}
        return [Delta(name, *pool.rows()) for name, pool in self._changes.items()], stats

    def _find_resident(self, feed: _Feed, slices: Sequence[Slice]) -> Batch | None:
        """Find the rows of a slice that are in memory, all in one piece."""
        if len(slices) > 1 or not isinstance(rows := slices[0], RowRange):
            return None
        found = rows.source.resident(feed.columns)
        if found is None:
            feed.resident = None
        elif feed.resident is None or feed.resident.table is not found:
            feed.resident = Batch(found)
        return feed.resident

    def _apply(self, run: CompiledRun) -> int:
        """Run the statements; count the rows that break a PRIMARY KEY."""
        duplicates = 0
        for (view, delta), repeats in zip(run.code.unique, run.over(self._sums, self._pools), strict=True):
            if repeats and (check := self._unique.get(view)):
                check.suspect(*self._sums[run.code.deltas.index(delta)].rows())
                duplicates += check.duplicates(self._store.pool(view), self._store.dictionary)
        return duplicates
