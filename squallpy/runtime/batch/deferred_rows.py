"""Changes of results that wait until somebody reads them: the cells of a query's one cofactor matrix.

    batch                 V() += …                          its payload before is noted
    its changes are read  derive ΔN1 of V | Q += ΔN1        two rows for each of hundreds of cells

Each batch changes nearly all cells, so that deriving them takes as long as a small batch does without. Changes that
nobody reads are not derived: those of a later batch are, from what V was before it, once Q has caught up.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from threading import Lock

import numpy as np

from squallpy.base.rings import Ring
from squallpy.functions.model_functions import Statistics
from squallpy.physical.plan import AuxiliaryPlan, Derive, Feed, Plan, Update
from squallpy.program.auxiliary.model_rows import ModelRows
from squallpy.runtime.auxiliary.maintainer import TouchedGroups, TouchTracker
from squallpy.runtime.batch.pieces import BatchCall
from squallpy.runtime.compiled.functions import CompiledDerivation, CompiledRun
from squallpy.runtime.kernels.batch_driver import ADDED, COMPARED, SKIPPED
from squallpy.runtime.kernels.memory_regions import Words
from squallpy.runtime.messages.deltas import Delta
from squallpy.runtime.state.state_store import Store

Note = Callable[[int, int, Words], None]
"""Notes the change of a result, by its number: how many groups, then keys, payloads before and after, as of
`NotedRows`."""


class DeferredRows:
    """Changes of results that wait, of which only those of the last batch can be read.

    Args:
        trackers: What was noted of views, by name.
        is_followed: Somebody may read the changes of any batch; else all that wait are one change of the results.
        derive: Derives what is noted, without adding it to the results.
        note: Called with what is derived and added.
        apply: Derives, adds and notes at once.
    """

    def __init__(
        self,
        store: Store,
        trackers: Mapping[str, TouchTracker],
        is_followed: bool,
        derive: Callable[[], Sequence[Delta]],
        note: Note,
        apply: Callable[[], None] | None = None,
    ) -> None:
        self._store, self._trackers, self._is_followed = store, trackers, is_followed
        self._derive, self._note, self._apply = derive, note, apply
        self._behind = dict[str, TouchedGroups]()  # as of when the results were up to date, if that is not noted
        self._lock = Lock()
        self.waits = False

    def begin_batch(self) -> bool:
        """Let changes that nobody has read be none of the next batch; True if what is noted has to stay.

        NB: it is called in each batch, of which a few microseconds may be a part.
        """
        if not self.waits:
            return False
        if not self._is_followed:
            return True
        for name, tracker in self._trackers.items():
            if name not in self._behind and len(tracker.pool):
                self._behind[name] = _copied(tracker)
        return False

    def settle(self) -> None:
        """Apply the changes that wait."""
        with self._lock:
            if not self.waits:
                return
            if self._behind:
                self._catch_up()
            elif self._apply:
                self._apply()
            else:
                for number, change in enumerate(self._derive()):
                    before = self._store.pool(change.name).get(change.keys) if self._is_followed else change.words
                    self._store.pool(change.name).upsert(change.keys, change.words)
                    self._note_changed(number, change, before)
            self.waits = False

    def _catch_up(self) -> None:
        """Apply all changes, and note those of the last batch alone, which are among them."""
        last = {name: _copied(self._trackers[name]) for name in self._behind}
        for name, groups in self._behind.items():
            self._trackers[name].put(*groups)
        for change in self._derive():
            self._store.pool(change.name).upsert(change.keys, change.words)
        for name, groups in last.items():
            self._trackers[name].put(*groups)
        for number, change in enumerate(self._derive()):
            self._note_changed(number, change, self._store.pool(change.name).get(change.keys) - change.words)
        self._behind.clear()

    def _note_changed(self, number: int, change: Delta, before: Words) -> None:
        if self._is_followed:
            after = self._store.pool(change.name).get(change.keys)
            self._note(
                number, len(change.keys), np.concatenate([each.ravel() for each in (change.keys, before, after)])
            )


def _copied(tracker: TouchTracker) -> TouchedGroups:
    keys, words = tracker.groups()
    return keys.copy(), words.copy()


def count_deferred_steps(plan: Plan, ways: Sequence[int]) -> int:
    """Count the last steps of an interpreted batch that may wait until results are read.

    None may if other steps change results, or derive rows of touched groups.

    Args:
        ways: How results take their changes (`batch_driver`).
    """
    feeds = {feed.relation.name: feed for feed in plan.feeds if feed.auxiliary}
    results, derived, changed, count = {result.name: result for result in plan.results}, set[str](), set[str](), 0
    steps, relations = plan.stages[0].steps, set[str]()
    for step in reversed(steps):
        match step:
            case Update(target=target, delta=delta) if target in results and step.is_copy:
                changed |= {target}
                derived |= {delta}
            case Derive(relation) if _is_one_matrix(feeds[relation].auxiliary):
                derived -= {delta.name for delta in feeds[relation].deltas}
                relations |= {relation}
            case _:
                break
        count += 1
    others = any(isinstance(step, Update) and step.target in results for step in steps[: len(steps) - count])
    counts = all(ring is Ring.COUNT for name in changed for ring in results[name].payload.rings)
    alone = changed == results.keys() and relations == feeds.keys()
    waits = alone and not (derived or others or plan.unique) and counts
    return count if waits and {*ways} <= {ADDED, COMPARED} else 0


def count_deferred(
    calls: Sequence[BatchCall],
    feeds: Mapping[str, Feed],
    copies: Mapping[str, str],
    results: Collection[str],
    ways: Collection[int],
) -> int:
    """Count the last calls of a batch that may wait until results are read; 0 if some results are of other calls.

    Args:
        feeds: Those of auxiliary relations, by their names.
        copies: The delta that a result's change is, by the names of results.
        ways: How results take their changes (`batch_driver`).
    """
    derived, count = set[str](), 0
    for call in reversed(calls):
        match call:
            case CompiledDerivation(code=code) if _is_one_matrix(feeds[code.relation].auxiliary):
                derived.add(code.delta)
            case Derive(relation) if _is_one_matrix(feeds[relation].auxiliary):
                derived |= {delta.name for delta in feeds[relation].deltas}
            case _:
                break
        count += 1
    waits = all(copies.get(name) in derived for name in results) and SKIPPED not in ways
    return count if waits and all(isinstance(call, CompiledRun) for call in calls[: len(calls) - count]) else 0


def _is_one_matrix(aux: AuxiliaryPlan | None) -> bool:
    """True if it has the cells of a single group's matrix."""
    return (
        aux is not None
        and isinstance(aux.kind, ModelRows)
        and isinstance(aux.kind.model, Statistics)
        and not aux.source.keys
    )
