"""Deltas of rows that consist of two parts, from how many rows came with each value of a part: eager aggregation.

    reach(x, y):  (7, 1), (7, 2) come, (8, 2) goes        ΔQ() := Sum_[](Δreach(x, y) ⋈ ⟨1, x, y⟩)
    of x:  7: 2, 8: −1   →   COUNT 1, SUM(x) 6            of y:  1: 1   →   SUM(y) 1

What reads columns of one part is summed up over its values, each times its number, and needs no rows. A delta whose
keys, conditions or any lane read columns of both parts needs them.

Source: Yan, Larson, *Eager aggregation and lazy aggregation*, VLDB 1995.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field, replace

import numpy as np

from squallpy.base.records import dataclass
from squallpy.base.rings import Payload, Ring
from squallpy.logical.expressions import columns
from squallpy.physical.plan import Feed
from squallpy.program.calculus import Assign, Cmp, Lane, Rel
from squallpy.program.views import Monomial, View
from squallpy.runtime.auxiliary.maintainer import RowDeltas, Titles
from squallpy.runtime.kernels.dictionary import Dictionary
from squallpy.runtime.kernels.memory_regions import Words
from squallpy.runtime.messages.deltas import Delta

Rows = tuple[Words, Words]  # keys, and how often each came


@dataclass(frozen=True, slots=True)
class PartialView:
    """A delta with some of its lanes, which with its keys and conditions read columns of one part.

    Args:
        part: The number of the part.
        lanes: Places of the lanes.
    """

    part: int
    lanes: tuple[int, ...]
    view: View
    payload: Payload = field(compare=False)


def split_lanes(delta: View, payload: Payload, parts: Mapping[str, int]) -> list[PartialView] | None:
    """Split the lanes of a delta by the part that each reads; None if one reads both.

    Args:
        parts: The part of each field.
    """
    (term,) = delta.terms
    (atom,) = term.atoms
    conditions = [factor for factor in term.body if isinstance(factor, Cmp)]
    assigned = [factor for factor in term.body if isinstance(factor, Assign)]
    is_exact = all(ring in (Ring.COUNT, Ring.EXACT) for ring in payload.rings)
    if not is_exact or 1 + len(conditions) + len(assigned) < len(term.body) or None in term.lanes:
        return None
    known = {v.id: frozenset({parts[name]}) for name, v in atom.fields}
    for _ in assigned:
        for each in assigned:
            if all(c.id in known for c in each.reads):
                known[each.variable.id] = frozenset[int]().union(*(known[c.id] for c in each.reads))
    shared = [key.id for key in delta.keys] + [c.id for each in conditions for c in each.reads]
    common = frozenset[int]().union(*(known[id] for id in shared))
    of_lanes = [common.union(*(known[c.id] for factor in lane or () for c in columns(factor))) for lane in term.lanes]
    if any(len(read) > 1 for read in of_lanes):
        return None
    default = next((read for read in of_lanes if read), common or frozenset({1}))
    found = list[PartialView]()
    for part in (0, 1):
        lanes = tuple(at for at, read in enumerate(of_lanes) if part in (read or default))
        if lanes:
            body = [f for f in term.body if isinstance(f, Rel | Cmp) or known[f.variable.id] <= {part}]
            some: tuple[Lane | None, ...] = tuple(term.lanes[at] for at in lanes)
            view = View(delta.name, delta.keys, (Monomial(tuple(body), some),))
            found.append(PartialView(part, lanes, view, Payload(tuple(payload.rings[at] for at in lanes))))
    return found


class EagerSums:
    """The deltas of a feed whose rows have two parts.

    Args:
        titles: Fields of each part, with the place in its key and what stands there; and those of whole rows.
    """

    def __init__(self, feed: Feed, titles: Sequence[Titles], of_rows: Titles) -> None:
        parts = {title: part for part, some in enumerate(titles) for title in some}
        self._titles, self._of_rows = titles, of_rows
        self._payloads = dict(zip((view.name for view in feed.deltas), feed.payloads, strict=True))
        whole, split = list[tuple[View, Payload]](), list[PartialView]()
        for delta, payload in zip(feed.deltas, feed.payloads, strict=True):
            found = split_lanes(delta, payload, parts)
            whole += [(delta, payload)] if found is None else []
            split += found or []
        self._lanes = {(each.part, each.view.name): each.lanes for each in split}
        self._rows = _deltas(feed, whole)
        self._sums = [_deltas(feed, [(e.view, e.payload) for e in split if e.part == part]) for part in (0, 1)]
        self.needs_rows, self.needs_numbers = bool(whole), bool(split)

    def __call__(self, rows: Rows | None, parts: Iterable[Rows | None], names: Dictionary) -> dict[str, Delta]:
        """Return the deltas of rows, and of how many came of each part; what is None is not needed."""
        found: dict[str, Delta] = {}
        if rows is not None and len(rows[1]):
            found = self._rows.of_keys(*rows, self._of_rows, names, is_distinct=True)
        for part, some in enumerate(parts):
            if some is None:
                continue
            for delta in self._sums[part].of_keys(*some, self._titles[part], names, is_distinct=True).values():
                payload, lanes = self._payloads[delta.name], self._lanes[part, delta.name]
                if len(lanes) == len(payload.rings):
                    found[delta.name] = delta
                    continue
                if delta.name not in found:  # NB: one without keys, as its lanes read different parts
                    found[delta.name] = Delta(delta.name, delta.keys, np.zeros((1, payload.width), np.int64))
                words = [payload.offsets[at] + i for at in lanes for i in range(_words(payload, at))]
                found[delta.name].words[:, words] = delta.words
        return found


def _deltas(feed: Feed, some: Iterable[tuple[View, Payload]]) -> RowDeltas:
    """Make the converter to some deltas."""
    views, payloads = zip(*some, strict=True) if (some := [*some]) else ((), ())
    return RowDeltas(replace(feed, deltas=tuple(views), payloads=tuple(payloads)))


def _words(payload: Payload, lane: int) -> int:
    return payload.rings[lane].words
