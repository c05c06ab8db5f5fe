"""A batch of a plan that is compiled whole, in one process: from Arrow to the changes of results, by a few calls.

What a plan may have besides, ledgers, windows, upserts, matrices, auxiliary relations, is up to `Sender` and
`StageExecutor`, and so is a batch for which compiled code has no answer: nothing was changed then.
"""

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
from squallpy.runtime.state.state_store import Store
from squallpy.runtime.triggers.duplicate_keys import KeyCheck

Group = tuple[CompiledGroup, Pool]


class DirectBatch:
    """The compiled functions of a plan, with the pools that they add deltas up in."""

    def __init__(self, plan: Plan, compiled: CompiledPlan, store: Store) -> None:
        (self._run,) = compiled.runs().values()
        sums: dict[str, Pool] = {}
        self._feeds = list[tuple[str, tuple[str, ...], list[Group]]]()
        for feed in plan.sources:
            groups = list[Group]()
            for delta, payload in zip(feed.deltas, feed.payloads, strict=True):
                found, sums[delta.name] = compiled.group(delta.name), Pool(len(delta.keys), payload)
                assert found, f"{delta.name} is not compiled"
                groups.append((found, sums[delta.name]))
            self._feeds.append((feed.relation.name, feed.fields, groups))
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
        for name, columns, groups in self._feeds:
            if some := slices.get(name):
                tables = [each.read(columns) for each in some]
                batch = Batch(one_batch(concat_tables(tables)))
                for group, pool in groups:
                    if not group(batch, pool, self._store.dictionary):
                        return None
                part.count(name, some, tables)
                for table in tables:
                    sums.add(name, table)
        for pool in self._changes.values():
            pool.clear()
        stats: dict[str, Any] = add_stats(part.stats, sums.stats)
        stats |= {"unmatched": 0, "late": 0, "duplicates": self._apply(self._run)}
        return [Delta(name, *pool.rows()) for name, pool in self._changes.items()], stats

    def _apply(self, run: CompiledRun) -> int:
        """Run the statements; count the rows that break a PRIMARY KEY."""
        duplicates = 0
        for (view, delta), repeats in zip(run.code.unique, run.over(self._sums, self._pools), strict=True):
            if repeats and (check := self._unique.get(view)):
                check.suspect(*self._sums[run.code.deltas.index(delta)].rows())
                duplicates += check.duplicates(self._store.pool(view), self._store.dictionary)
        return duplicates
