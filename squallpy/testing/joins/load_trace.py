"""The controller over a long stream, tuple by tuple, without the tuples: sizes, mappings, loads, costs.

Joiners work at one pace: each new tuple that one gets lets it send `rate` tuples of its migration (paper §4.3.2).
Decisions fall on the very tuple on which they are due; between them everything is known in advance, so that a million
tuples for a thousand joiners are a few hundred steps over arrays.
"""

import numpy as np
import numpy.typing as npt

from squallpy.base.records import dataclass
from squallpy.physical.joins.mapping import Mapping
from squallpy.physical.joins.migration_controller import DEFAULT, Controller, Policy, Sizes, initial_controller
from squallpy.physical.joins.migration_transfers import Migration
from squallpy.testing.joins.streams import Stream

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class MigrationRecord:
    """Record of a migration.

    `start` and `end` are the tuples that decided and ended it; `cost` is its cost to a joiner, `paid` the tuples that a
    joiner had received since the last decision, to pay for it.
    """

    start: int
    end: int
    migration: Migration
    cost: float
    paid: float


@dataclass(frozen=True, slots=True)
class Trace:
    """Sizes, mappings and loads after each tuple of a stream."""

    r: Floats  # |R| after each tuple
    s: Floats
    starts: tuple[int, ...]  # from which tuple on each mapping held
    mappings: tuple[Mapping, ...]
    moved: tuple[MigrationRecord, ...]
    routed: float  # what a joiner was sent by reshufflers
    late: float  # by how much decisions were overdue when a migration ended, as a share of what they wait for

    @property
    def load(self) -> Floats:
        """Input-load factor after each tuple."""
        out = np.empty(len(self.r))
        for start, stop, mapping in self._segments():
            out[start:stop] = self.r[start:stop] / mapping.rows + self.s[start:stop] / mapping.columns
        return out

    @property
    def least(self) -> Floats:
        """Input-load factor of the best mapping of as many joiners, after each tuple."""
        out = np.empty(len(self.r))
        for start, stop, mapping in self._segments():
            out[start:stop] = least_load(mapping.joiners, self.r[start:stop], self.s[start:stop])
        return out

    @property
    def ratio(self) -> Floats:
        """ILF / ILF*; 1 where there is nothing."""
        least = self.least
        return np.divide(self.load, least, out=np.ones_like(least), where=least > 0)

    def _segments(self) -> list[tuple[int, int, Mapping]]:
        return list(zip(self.starts, (*self.starts[1:], len(self.r)), self.mappings, strict=True))


def least_load(joiners: int, r: Floats, s: Floats) -> Floats:
    """Compute ILF*, the input-load factor of the best mapping, for each pair of sizes."""
    out = np.full(len(r), np.inf)
    for bits in range(joiners.bit_length()):
        out = np.minimum(out, r / (1 << bits) + s / (joiners >> bits))
    return out


def trace(
    stream: Stream,
    joiners: int,
    policy: Policy = DEFAULT,
    widths: tuple[int, int] = (1, 1),
    step: int = 1,
    sample: int = 1,
) -> Trace:
    """Simulate a controller that decides every `step` tuples of a stream; tuples of R and S have these `widths`, in
    units.

    The new mapping holds at once. With `sample`, the controller sees only one tuple in that many (Alg. 1).
    """
    sizes = _Sizes(stream, widths)
    seen = _Sizes(stream, widths, sample) if sample > 1 else sizes
    controller = initial_controller(joiners, policy)
    at, starts, mappings, moved, late = 0, [0], [controller.mapping], list[MigrationRecord](), 0.0
    while (due := seen.find_next_due(at, controller, step)) is not None:
        controller = controller.observe(*seen.between(at, due))
        at, before = due, controller
        controller, migration = controller.decide()
        if migration is None:
            continue
        end = sizes.find_end(at, migration, policy.rate(migration))
        change, size = before.changed, before.sizes
        paid = max(change.r / before.mapping.rows, change.s / before.mapping.columns)
        moved.append(MigrationRecord(at, end, migration, migration.cost(size.r, size.s), paid))
        starts.append(at - 1)  # a tuple is routed when it has been counted (Alg. 1)
        mappings.append(controller.mapping)
        if end >= len(stream):
            break
        controller = controller.observe(*seen.between(at, end)).finish()
        at, late = end, max(late, _overshoot(controller))
    ends = (*starts[1:], len(stream))
    routed = sum(sizes.routed(*run) for run in zip(starts, ends, mappings, strict=True))
    return Trace(sizes.r, sizes.s, tuple(starts), tuple(mappings), tuple(moved), routed, late)


class _Sizes:
    """Cumulative sizes; `at` counts tuples: the first `at` of the stream have come."""

    def __init__(self, stream: Stream, widths: tuple[int, int], sample: int = 1) -> None:
        of_s = stream.sides.astype(np.bool_)
        units = np.where(of_s, widths[1], widths[0])
        if sample > 1:
            units *= sample * (np.random.default_rng(sample).integers(sample, size=len(units)) == 0)
        came, gone = stream.counts > 0, stream.counts < 0
        self._came = [_sums(units * (came & part)) for part in (~of_s, of_s)]
        self._gone = [_sums(units * (gone & part)) for part in (~of_s, of_s)]
        self._changed = [self._came[i] + self._gone[i] for i in range(2)]
        self.r, self.s = ((self._came[i] - self._gone[i])[1:].astype(np.float64) for i in range(2))
        self._length = len(stream)
        deletes = np.flatnonzero(gone)
        self._first_delete = int(deletes[0]) + 1 if len(deletes) else self._length + 1

    def between(self, start: int, stop: int) -> tuple[Sizes, Sizes]:
        """Compute the sizes of the inserts and of the deletes between two points of the stream."""
        came, gone = ([int(sums[stop] - sums[start]) for sums in both] for both in (self._came, self._gone))
        return Sizes(*came), Sizes(*gone)

    def routed(self, start: int, stop: int, mapping: Mapping) -> float:
        """Compute the load that a joiner receives from reshufflers between two points, under a mapping."""
        of_r, of_s = (float(changed[stop] - changed[start]) for changed in self._changed)
        return mapping.load(of_r, of_s)

    def find_next_due(self, at: int, controller: Controller, step: int) -> int | None:
        """Find the number of tuples after which the controller has something to decide; None if the stream is
        shorter."""
        found = [self._first_delete] if self._first_delete > at else []
        for changed, slack in zip(self._changed, controller.slack, strict=True):
            found.append(int(np.searchsorted(changed, changed[at] + max(slack, 1))))
        if (capacity := controller.policy.capacity) is not None:
            mapping = controller.mapping
            full = self.r[at:] / mapping.rows + self.s[at:] / mapping.columns > capacity / 2
            found.append(at + int(np.argmax(full)) + 1 if full.any() else self._length + 1)
        due = max(min(found), at + 1, self._warm(controller.policy))
        due = -(-due // step) * step
        return due if due <= self._length else None

    def find_end(self, at: int, migration: Migration, rate: float) -> int:
        """Find the number of tuples after which a migration that was decided after `at` is over."""
        r, s = (int(self._came[i][at] - self._gone[i][at]) for i in range(2))
        mapping = migration.new.mapping
        received = self._changed[0] / mapping.rows + self._changed[1] / mapping.columns
        return int(np.searchsorted(received, received[at] + migration.send_cost(r, s) / rate))

    def _warm(self, policy: Policy) -> int:
        total = self.r + self.s >= policy.warm_up
        return int(np.argmax(total)) + 1 if total.any() else self._length + 1


def _sums(values: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    return np.concatenate([[0], np.cumsum(values)])


def _overshoot(controller: Controller) -> float:
    """Compute how far a relation has changed beyond its threshold, as a share of the threshold."""
    base = controller.decided.pad(controller.grid.joiners)
    limits = [controller.threshold * base.r, controller.threshold * base.s]
    return max(0.0, *(-slack / limit for slack, limit in zip(controller.slack, limits, strict=True) if limit > 0))
