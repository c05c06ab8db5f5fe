"""Joining while a migration runs, each pair once (paper Alg. 3; thesis Alg. 4, Theorem 4.4.6).

What a joiner has is in four parts: τ it had before the migration; Δ came since, by the old mapping; Δ′ by the new one;
μ was sent by other joiners, which had it by the old mapping. A table says what a tuple of each part meets when it
arrives:

             τ      Δ      Δ′     μ
    Δ        all    all    KEEP
    Δ′       KEEP   KEEP   all    all
    μ                      all

KEEP: where old and new meet, only if the migration keeps the old tuple here; if it sends it on, the two meet there. At
the end KEEP(τ ∪ Δ) ∪ μ ∪ Δ′ is τ.

The table is all there is. Until a migration is over, what a tuple of Δ′ makes with tuples that are still to be sent
comes out when these are: a runtime of batches, each of which has to be complete, copies state instead
(`runtime/joiners/batch_plan.py`).

A delete is a tuple of multiplicity −1, which meets what an insert would.
"""

from dataclasses import dataclass, replace
from enum import Enum
from typing import Generic, Protocol, Self, TypeVar

import numpy as np

from squallpy.physical.joins.mapping import Mask, Numbers, Side, Tickets
from squallpy.physical.joins.migration import Migration, Progress


class Part(Enum):
    """What a joiner has."""

    STATE = "τ"
    OLD = "Δ"
    NEW = "Δ′"
    MIGRATED = "μ"


@dataclass(frozen=True, slots=True)
class Meeting:
    """A tuple that arrives for one part is joined with another; `keep`: of the old ones, those kept here."""

    arriving: Part
    stored: Part
    keep: bool = False


@dataclass(frozen=True, slots=True)
class Stay:
    """A part that is state when the migration is over; `keep`: of it, what the migration keeps here."""

    part: Part
    keep: bool = False


@dataclass(frozen=True, slots=True)
class Rules:
    """The protocol as data."""

    meetings: tuple[Meeting, ...]
    sent: tuple[Part, ...]  # parts whose MIGRATED tuples go to other joiners
    stays: tuple[Stay, ...]


ALGORITHM_4 = Rules(
    meetings=(
        Meeting(Part.MIGRATED, Part.NEW),  # line 11
        Meeting(Part.NEW, Part.MIGRATED),  # 13
        Meeting(Part.NEW, Part.NEW),
        Meeting(Part.NEW, Part.STATE, keep=True),  # 14
        Meeting(Part.NEW, Part.OLD, keep=True),
        Meeting(Part.OLD, Part.STATE),  # 16
        Meeting(Part.OLD, Part.OLD),
        Meeting(Part.OLD, Part.NEW, keep=True),  # 18
    ),
    sent=(Part.STATE, Part.OLD),  # 3, 20
    stays=(Stay(Part.STATE, keep=True), Stay(Part.OLD, keep=True), Stay(Part.MIGRATED), Stay(Part.NEW)),  # 29
)


class Tuples(Protocol):
    """Tuples of one relation."""

    @property
    def tickets(self) -> Tickets: ...

    def take(self, which: Mask | Numbers) -> Self:
        """Those at some positions, or under a mask."""
        ...


T = TypeVar("T", bound=Tuples)


class Store(Protocol[T]):
    """Where a joiner has its parts."""

    def part(self, part: Part, side: Side) -> T:
        """All of a part, in the order in which they came."""
        ...

    def join(self, side: Side, arriving: T, stored: T) -> None:
        """Put out the pairs of tuples of a relation with some of the other."""
        ...

    def add(self, part: Part, side: Side, tuples: T) -> None: ...

    def settle(self, side: Side, state: list[T]) -> None:
        """These are τ now, and there is nothing else."""
        ...


@dataclass(frozen=True, slots=True)
class Parcel(Generic[T]):
    """Tuples that migrate to another joiner."""

    target: int
    side: Side
    tuples: T


@dataclass(frozen=True, slots=True)
class Phase:
    """Where a joiner is in its epochs."""

    epoch: int = 0
    migration: Migration | None = None
    signalled: tuple[int, ...] = ()  # reshufflers that have switched
    heard: tuple[int, ...] = ()  # joiners that have sent all
    progress: tuple[Progress, ...] = ()  # of τ, by side


START = Phase()


class Joiner(Generic[T]):
    """One joiner. Its messages: `arrive`, `signal`, `migrated`, `ended`; it sends as its rate allows, and finishes."""

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
        """Has every reshuffler? Then nothing comes any more by the old mapping."""
        return self.is_migrating and len(self.phase.signalled) == self._reshufflers

    @property
    def has_sent_state(self) -> bool:
        """All of τ that is to be sent?"""
        return all(progress.is_done for progress in self.phase.progress)

    @property
    def has_sent(self) -> bool:
        """All that it is to send?"""
        return self.has_switched and self.has_sent_state

    @property
    def can_finish(self) -> bool:
        """Has it sent all, and received all?"""
        return self.has_sent and self.senders <= set(self.phase.heard)

    def signal(self, reshuffler: int, migration: Migration) -> None:
        """A reshuffler routes by the new mapping from here on."""
        phase = self.phase
        assert phase.migration in (None, migration), "a migration started before the last one was over"
        assert reshuffler not in phase.signalled, f"reshuffler {reshuffler} switched twice"
        if phase.migration is None:
            progress = tuple(Progress(self._to_send(migration, side)) for side in Side)
            phase = replace(phase, migration=migration, progress=progress)
        self.phase = replace(phase, signalled=(*phase.signalled, reshuffler))
        self._partners()

    def arrive(self, epoch: int, side: Side, tuples: T) -> list[Parcel[T]]:
        """Tuples from a reshuffler, by the mapping of some epoch: at most one ahead, and never one behind."""
        assert self.phase.epoch <= epoch <= self.phase.epoch + self.is_migrating, "more than two epochs are alive"
        if not self.is_migrating:
            self._meet(Part.OLD, side, tuples)
            self.store.add(Part.STATE, side, tuples)
            return []
        part = Part.NEW if epoch > self.phase.epoch else Part.OLD
        assert part is Part.NEW or not self.has_switched, "a tuple by the old mapping came after all signals"
        self._meet(part, side, tuples)
        self.store.add(part, side, tuples)
        return self._parcels(side, tuples) if part is Part.OLD and part in self._rules.sent else []

    def migrated(self, side: Side, tuples: T) -> None:
        """Tuples from another joiner, perhaps before the first signal."""
        self._meet(Part.MIGRATED, side, tuples)
        self.store.add(Part.MIGRATED, side, tuples)

    def ended(self, joiner: int) -> None:
        """Another joiner has sent all that it was to send here."""
        self.phase = replace(self.phase, heard=(*self.phase.heard, joiner))

    def send(self, received: int, rate: float, floor: int = 0) -> list[Parcel[T]]:
        """More of τ, as much as so many new tuples allow."""
        out, after = list[Parcel[T]](), list[Progress]()
        for side, before in zip(Side, self.phase.progress, strict=True):
            after.append(before.step(received, rate, floor))
            if after[-1].sent > before.sent:
                piece = np.arange(before.sent, after[-1].sent)
                out += self._parcels(side, self.store.part(Part.STATE, side).take(piece))
        self.phase = replace(self.phase, progress=tuple(after))
        return out

    def finish(self) -> None:
        """FINALIZEMIGRATION: the next epoch, with its state."""
        assert self.can_finish
        for side in Side:
            kept = [(stay, self.store.part(stay.part, side)) for stay in self._rules.stays]
            self.store.settle(side, [self._kept(side, tuples) if stay.keep else tuples for stay, tuples in kept])
        self.phase = Phase(self.phase.epoch + 1)
        self._partners()

    def _partners(self) -> None:
        """The joiners that send it tuples, and those to which it sends."""
        moving, number = self.phase.migration, self.number
        self.senders = {int(j) for side in Side if moving for j in moving.senders(number, side)}
        self.receivers = {int(j) for side in Side if moving for j in moving.receivers(number, side)}

    def _to_send(self, migration: Migration, side: Side) -> int:
        """How much of τ has to be gone through: all, if any of it may be another's."""
        if Part.STATE not in self._rules.sent or not len(migration.receivers(self.number, side)):
            return 0
        return len(self.store.part(Part.STATE, side).tickets)

    def _meet(self, arriving: Part, side: Side, tuples: T) -> None:
        for meeting in self._rules.meetings:
            if meeting.arriving is not arriving:
                continue
            mine, others = tuples, self.store.part(meeting.stored, side.other)
            if meeting.keep and self.phase.migration is not None:
                if arriving is Part.OLD:
                    mine = self._kept(side, mine)
                else:
                    others = self._kept(side.other, others)
            self.store.join(side, mine, others)

    def _kept(self, side: Side, tuples: T) -> T:
        assert self.phase.migration is not None
        return tuples.take(self.phase.migration.keeps(self.number, side, tuples.tickets))

    def _parcels(self, side: Side, tuples: T) -> list[Parcel[T]]:
        """Tuples as what is sent to each joiner."""
        assert self.phase.migration is not None
        parcels = self.phase.migration.parcels(self.number, side, tuples.tickets)
        return [Parcel(target, side, tuples.take(rows)) for target, rows in parcels]
