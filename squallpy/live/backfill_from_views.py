"""Backfill of new views from the records of views that are held, while batches go on.

held, as of batch b      copied a piece at a time, put right under one hold, and applied as deltas without any
held, as of batch b + 9  what has changed since is applied: −old, +new
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import field, replace
from functools import partial

import numpy as np

from squallpy.base.errors import SquallError
from squallpy.base.records import dataclass
from squallpy.live.fair_lock import Hold
from squallpy.physical.plan import Plan
from squallpy.program.held_rows import HELD, held_delta
from squallpy.program.view_identity import Held
from squallpy.runtime.kernels.dictionary import Dictionary
from squallpy.runtime.kernels.memory_regions import Words
from squallpy.runtime.kernels.payload_products import negated
from squallpy.runtime.messages.deltas import Delta
from squallpy.runtime.replan import Filled, Replan, all_layouts, lanes_of
from squallpy.runtime.result.result import Results
from squallpy.runtime.state.mirrors import DictionaryMirror, Moved, PoolMirror, Records
from squallpy.runtime.state.state_store import PoolLayout, Store, StoreLayout
from squallpy.runtime.triggers.stage_executor import StageExecutor

ROUNDS = 5
"""Times that what batches have changed meanwhile is applied before the last one, between two batches."""
PIECE = 1 << 15
"""Records that are applied at once: few enough for the caches."""
_NONE = np.empty(0, np.int64)


@dataclass
class _Source:
    """A pool of the old plan whose records are read.

    Args:
        target: The delta, or the pool, that gets them, in a `layout`.
        old: The layout of the pool itself.
    """

    target: str
    held: Held
    old: PoolLayout
    layout: PoolLayout
    mirror: PoolMirror = field(default_factory=PoolMirror)

    def delta(self, records: Records, numbers: Words, is_gone: bool = False) -> Delta:
        """Make the delta that adds records, or that takes them back.

        Args:
            numbers: The new number of each string.
        """
        keys, words = np.array(records[0]), lanes_of(self.held, self.old.payload, records[1])
        for numbered in self.layout.numbered:
            column, cells = numbered(keys, words)
            column[cells] = numbers[column[cells] - numbered.first] + numbered.first
        return Delta(self.target, keys, negated(words, self.layout.payload) if is_gone else words)


class _Computation:
    """The state of a plan above held views, to which their records come as deltas."""

    def __init__(self, plan: Plan, names: Dictionary) -> None:
        self.store = Store(StoreLayout(all_layouts(plan)), dictionary=names)
        self._stage, self._results = StageExecutor(plan, plan.stages[0]), Results(plan, wanted=False)
        self._has_begun = False

    def apply(self, deltas: Sequence[Delta]) -> None:
        """Apply a batch of deltas."""
        changed, _ = self._stage.apply(self.store, deltas)
        self._results.apply(self.store, changed, not self._has_begun)
        self._has_begun = True


class ViewBackfill:
    """New views of a plan, computed from the records of an old plan's pools.

    Args:
        holder: Returns the store that has a pool of the old plan.
        hold: Keeps batches from being applied.
        copies: Pools that are held, but laid out in another way, are made, too.
    """

    def __init__(self, replan: Replan, holder: Callable[[str], Store], hold: Hold, copies: bool) -> None:
        self._replan, self._holder, self._hold = replan, holder, hold
        plan = replan.plan_above
        given = (feed for feed in plan.feeds if feed.relation is not HELD) if plan else ()
        self._plan = replace(plan, feeds=tuple(given)) if plan else None
        self._copied = replan.laid_out_anew if copies else {}
        self._begin()

    def _begin(self) -> None:
        """Begin anew, with nothing copied."""
        replan, plan = self._replan, self._plan
        old, new = ({layout.name: layout for layout in all_layouts(each)} for each in (replan.old, replan.new))
        self._copies = Store(StoreLayout(tuple(new[name] for name in self._copied)))
        self._dictionary, self._is_new = self._copies.dictionary, True
        self._computation = _Computation(plan, self._dictionary) if plan else None
        self._sources = [_Source(name, held, old[held.view], new[name]) for name, held in self._copied.items()]
        if plan and self._computation:
            held = (trigger for trigger in plan.program.triggers if trigger.relation is HELD)
            for delta in (delta for trigger in held for delta in trigger.deltas):
                name = delta.name.removeprefix(held_delta(""))
                layout, its = self._computation.store.layout_of(name), replan.held[name]
                self._sources.append(_Source(delta.name, its, old[its.view], layout))
        read = {id(names): names for each in self._sources if each.layout.numbered for names in [self._names_of(each)]}
        self._mirrors = {name: DictionaryMirror(names, self._dictionary) for name, names in read.items()}

    def run(self) -> None:
        """Apply what is there, and what batches change meanwhile, as long as that is much."""
        for _ in range(ROUNDS):
            copies: list[Callable[[], bool]] = [partial(self._copy, each) for each in self._sources]
            copies += [mirror.copy for mirror in self._mirrors.values()]
            for copy in copies:
                more = True
                while more:
                    with self._hold():
                        more = copy()
            with self._hold():
                changes = self._update()
            if not self._apply(changes):
                return

    def close(self) -> None:
        """Let pools note no more what is written."""
        for source in self._sources:
            source.mirror.close()

    def finish(self) -> Filled:
        """Apply what batches have changed since, and return the state; between two batches."""
        self._apply(self._update())
        same = min((mirror.same for mirror in self._mirrors.values()), default=0)
        return Filled(self._computation.store if self._computation else None, self._copies, same)

    def _copy(self, source: _Source) -> bool:
        return source.mirror.copy(self._holder(source.held.view)[source.held.view])

    def _names_of(self, source: _Source) -> Dictionary:
        return self._holder(source.held.view).dictionary

    def _update(self) -> Sequence[Moved]:
        """Bring all copies up to date, between two batches; return what has gone and what has come, by source."""
        named = [self._names_of(each) for each in self._sources if each.layout.numbered]
        if not all(id(names) in self._mirrors and self._mirrors[id(names)].is_of(names) for names in named):
            self.close()
            self._begin()  # NB: strings have other numbers than they had
        for mirror in self._mirrors.values():
            while mirror.copy():
                pass
        return [each.mirror.update(self._holder(each.held.view)[each.held.view]) for each in self._sources]

    def _apply(self, changes: Sequence[Moved]) -> bool:
        """Apply what has changed, which is at first all that is copied; true if there was anything."""
        found, is_new, self._is_new = False, self._is_new, False
        try:
            for source, (went, came) in zip(self._sources, changes, strict=True):
                for delta in self._changes_of(source, went, came):
                    found = True
                    if source.target in self._copied:
                        self._copies[source.target].upsert(delta.keys, delta.words)
                    elif self._computation:
                        self._computation.apply([delta])
            if self._computation and is_new and not found:
                self._computation.apply([])
        except SquallError:  # NB: a part of the records may say what all do not, such as that a sum is 0
            assert self._plan
            self._computation = _Computation(self._plan, self._dictionary)
            given = (each for each in self._sources if each.target not in self._copied)
            whole = (self._changes_of(each, [], each.mirror.pieces) for each in given)
            self._computation.apply([delta for each in whole for delta in each])
        return found

    def _changes_of(self, source: _Source, went: list[Records], came: list[Records]) -> Iterator[Delta]:
        numbers = self._numbers(source)
        for pieces, is_gone in ((went, True), (came, False)):
            yield from (source.delta(some, numbers, is_gone) for piece in pieces for some in _parts(piece))

    def _numbers(self, source: _Source) -> Words:
        return self._mirrors[id(self._names_of(source))].numbers() if source.layout.numbered else _NONE


def _parts(records: Records) -> Iterator[Records]:
    """Cut records into pieces that are applied at once."""
    keys, words = records
    for first in range(0, len(keys), PIECE):
        yield keys[first : first + PIECE], words[first : first + PIECE]
