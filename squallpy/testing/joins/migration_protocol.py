"""The join protocol during a migration: each pair is joined once (paper Alg. 3; thesis Alg. 4, Theorem 4.4.6).

A joiner has four sets of tuples: τ from before the migration; Δ, arrived since, by the old mapping; Δ′, by the new one;
μ, sent by other joiners, which had it by the old mapping. A table says what an arriving tuple of each set is joined
with:

             τ      Δ      Δ′     μ
    Δ        all    all    KEEP
    Δ′       KEEP   KEEP   all    all
    μ                      all

KEEP: old and new tuples meet only if the migration keeps the old tuple here; if it is sent on, the two meet there. At
the end KEEP(τ ∪ Δ) ∪ μ ∪ Δ′ is τ.

Until a migration is over, pairs of a tuple of Δ′ and one still to be sent are delayed: a runtime of batches, each of
which has to be complete, copies state instead (`runtime/joiners/batch_plan.py`).

A delete is a tuple of multiplicity −1, which meets what an insert would.
"""

from dataclasses import replace
from enum import Enum
from typing import Generic, Protocol, Self, TypeVar

import numpy as np

from squallpy.base.records import dataclass
from squallpy.physical.joins.mapping import Mask, Numbers, Side, Tickets
from squallpy.physical.joins.migration_transfers import Migration, TransferProgress


class TupleSet(Enum):
    """The sets into which a joiner divides its tuples."""

    STATE = "τ"
    OLD = "Δ"
    NEW = "Δ′"
    MIGRATED = "μ"


@dataclass(frozen=True, slots=True)
class Meeting:
    """Arriving tuples of one set are joined with another; `keep`: only old tuples that the migration keeps here."""

    arriving: TupleSet
    stored: TupleSet
    keep: bool = False


@dataclass(frozen=True, slots=True)
class FinalSet:
    """A set that becomes state when the migration ends; `keep`: only the tuples that the migration keeps here."""

    part: TupleSet
    keep: bool = False


@dataclass(frozen=True, slots=True)
class Rules:
    """The protocol as data."""

    meetings: tuple[Meeting, ...]
    sent: tuple[TupleSet, ...]  # parts whose MIGRATED tuples go to other joiners
    stays: tuple[FinalSet, ...]


ALGORITHM_4 = Rules(
    meetings=(
        Meeting(TupleSet.MIGRATED, TupleSet.NEW),  # line 11
        Meeting(TupleSet.NEW, TupleSet.MIGRATED),  # 13
        Meeting(TupleSet.NEW, TupleSet.NEW),
        Meeting(TupleSet.NEW, TupleSet.STATE, keep=True),  # 14
        Meeting(TupleSet.NEW, TupleSet.OLD, keep=True),
        Meeting(TupleSet.OLD, TupleSet.STATE),  # 16
        Meeting(TupleSet.OLD, TupleSet.OLD),
        Meeting(TupleSet.OLD, TupleSet.NEW, keep=True),  # 18
    ),
    sent=(TupleSet.STATE, TupleSet.OLD),  # 3, 20
    stays=(
        FinalSet(TupleSet.STATE, keep=True),
        FinalSet(TupleSet.OLD, keep=True),
        FinalSet(TupleSet.MIGRATED),
        FinalSet(TupleSet.NEW),
    ),  # 29
)


class Tuples(Protocol):
    """Tuples of one relation."""

    @property
    def tickets(self) -> Tickets: ...

    def take(self, which: Mask | Numbers) -> Self:
        """Select tuples by position or mask."""
        ...


T = TypeVar("T", bound=Tuples)


class Store(Protocol[T]):
    """The tuple sets of a joiner."""

    def part(self, part: TupleSet, side: Side) -> T:
        """Return all tuples of a set in order of arrival."""
        ...

    def join(self, side: Side, arriving: T, stored: T) -> None:
        """Emit the pairs of arriving tuples of one relation with stored ones of the other."""
        ...

    def add(self, part: TupleSet, side: Side, tuples: T) -> None: ...

    def settle(self, side: Side, state: list[T]) -> None:
        """Replace all tuples of a relation by this state."""
        ...


@dataclass(frozen=True, slots=True)
class Parcel(Generic[T]):
    """Tuples that migrate to another joiner."""

    target: int
    side: Side
    tuples: T


@dataclass(frozen=True, slots=True)
class Phase:
    """State of a joiner within an epoch."""

    epoch: int = 0
    migration: Migration | None = None
    signalled: tuple[int, ...] = ()  # reshufflers that have switched
    heard: tuple[int, ...] = ()  # joiners that have sent all
    progress: tuple[TransferProgress, ...] = ()  # of τ, by side


START = Phase()


class Joiner(Generic[T]):
    """A joiner, which handles the messages `arrive`, `signal`, `migrated` and `ended`, sends at its rate, and
    finishes."""

    def __init__(
        self, number: int, reshufflers: int, store: Store[T], phase: Phase = START, rules: Rules = ALGORITHM_4
    ) -> None:
        self.number, self.store, self.phase = number, store, phase
        self._reshufflers, self._rules = reshufflers, rules
        self._partners()

    @property
    def is_migrating(self) -> bool:
        return self.phase.migration is not None

    @property
    def has_switched(self) -> bool:
        """True if every reshuffler routes by the new mapping."""
        return self.is_migrating and len(self.phase.signalled) == self._reshufflers

    @property
    def has_sent_state(self) -> bool:
        """True if all of τ that has to be sent has been."""
        return all(progress.is_done for progress in self.phase.progress)

    @property
    def has_sent(self) -> bool:
        """True if all tuples that have to be sent have been."""
        return self.has_switched and self.has_sent_state

    @property
    def can_finish(self) -> bool:
        """True if all tuples have been sent and received."""
        return self.has_sent and self.senders <= set(self.phase.heard)

    def signal(self, reshuffler: int, migration: Migration) -> None:
        """Note that a reshuffler routes by the new mapping from here on."""
        phase = self.phase
        assert phase.migration in (None, migration), "a migration started before the last one was over"
        assert reshuffler not in phase.signalled, f"reshuffler {reshuffler} switched twice"
        if phase.migration is None:
            progress = tuple(TransferProgress(self._to_send(migration, side)) for side in Side)
            phase = replace(phase, migration=migration, progress=progress)
        self.phase = replace(phase, signalled=(*phase.signalled, reshuffler))
        self._partners()

    def arrive(self, epoch: int, side: Side, tuples: T) -> list[Parcel[T]]:
        """Join and store tuples from a reshuffler, routed by the mapping of this epoch or the next."""
        assert self.phase.epoch <= epoch <= self.phase.epoch + self.is_migrating, "more than two epochs are alive"
        if not self.is_migrating:
            self._meet(TupleSet.OLD, side, tuples)
            self.store.add(TupleSet.STATE, side, tuples)
            return []
        part = TupleSet.NEW if epoch > self.phase.epoch else TupleSet.OLD
        assert part is TupleSet.NEW or not self.has_switched, "a tuple by the old mapping came after all signals"
        self._meet(part, side, tuples)
        self.store.add(part, side, tuples)
        return self._parcels(side, tuples) if part is TupleSet.OLD and part in self._rules.sent else []

    def receive_migrated(self, side: Side, tuples: T) -> None:
        """Join and store tuples from another joiner, perhaps before the first signal."""
        self._meet(TupleSet.MIGRATED, side, tuples)
        self.store.add(TupleSet.MIGRATED, side, tuples)

    def receive_end(self, joiner: int) -> None:
        """Note that another joiner has sent all its tuples."""
        self.phase = replace(self.phase, heard=(*self.phase.heard, joiner))

    def send(self, received: int, rate: float, floor: int = 0) -> list[Parcel[T]]:
        """Send more of τ, as much as this many new tuples allow."""
        out, after = list[Parcel[T]](), list[TransferProgress]()
        for side, before in zip(Side, self.phase.progress, strict=True):
            after.append(before.step(received, rate, floor))
            if after[-1].sent > before.sent:
                piece = np.arange(before.sent, after[-1].sent)
                out += self._parcels(side, self.store.part(TupleSet.STATE, side).take(piece))
        self.phase = replace(self.phase, progress=tuple(after))
        return out

    def finish(self) -> None:
        """Begin the next epoch with the merged state (FINALIZEMIGRATION)."""
        assert self.can_finish
        for side in Side:
            kept = [(stay, self.store.part(stay.part, side)) for stay in self._rules.stays]
            self.store.settle(side, [self._keep_tuples(side, tuples) if stay.keep else tuples for stay, tuples in kept])
        self.phase = Phase(self.phase.epoch + 1)
        self._partners()

    def _partners(self) -> None:
        """Find the joiners that send tuples here, and those to which this one sends."""
        moving, number = self.phase.migration, self.number
        self.senders = {int(j) for side in Side if moving for j in moving.senders(number, side)}
        self.receivers = {int(j) for side in Side if moving for j in moving.receivers(number, side)}

    def _to_send(self, migration: Migration, side: Side) -> int:
        """Count the tuples of τ to go through: all, if another joiner may need any."""
        if TupleSet.STATE not in self._rules.sent or not len(migration.receivers(self.number, side)):
            return 0
        return len(self.store.part(TupleSet.STATE, side).tickets)

    def _meet(self, arriving: TupleSet, side: Side, tuples: T) -> None:
        for meeting in self._rules.meetings:
            if meeting.arriving is not arriving:
                continue
            arriving_tuples, others = tuples, self.store.part(meeting.stored, side.other)
            if meeting.keep and self.phase.migration is not None:
                if arriving is TupleSet.OLD:
                    arriving_tuples = self._keep_tuples(side, arriving_tuples)
                else:
                    others = self._keep_tuples(side.other, others)
            self.store.join(side, arriving_tuples, others)

    def _keep_tuples(self, side: Side, tuples: T) -> T:
        assert self.phase.migration is not None
        return tuples.take(self.phase.migration.keeps(self.number, side, tuples.tickets))

    def _parcels(self, side: Side, tuples: T) -> list[Parcel[T]]:
        """Split tuples by the joiner that receives them."""
        assert self.phase.migration is not None
        parcels = self.phase.migration.parcels(self.number, side, tuples.tickets)
        return [Parcel(target, side, tuples.take(rows)) for target, rows in parcels]
