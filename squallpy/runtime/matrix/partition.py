"""The matrices of a query on several partitions: what one of them does between two exchanges.

part.runs[0](store, [orders])        →  parcels for all, and for itself what it needs later
part.runs[1](store, [theirs, …])     →  …
part.runs[last](store, …)            →  what `then` makes of the cells of its rows that have changed

All that outlives a batch is in the blocks of the store; all that outlives a superstep is in a message of a partition to
itself. So a superstep is a function of messages and state, like any other stage (DESIGN §7).
"""

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any

from squallpy.physical.matrix.blocks import Form, Part, Phase
from squallpy.physical.matrix.programs import MatrixPlan
from squallpy.runtime.batch.node import Made, pack_parcels
from squallpy.runtime.matrix.commands import Arrays, Orders, packed, unpacked
from squallpy.runtime.matrix.superstep import ProgramPart, Work
from squallpy.runtime.matrix.superstep_state import Now, Parts, key
from squallpy.runtime.state.store import Store, StoreLayout

Parcel = tuple[int, bytes]


class MatrixPart:
    """A partition's share of all programs of a query; `then` makes of what has changed what goes to whom."""

    def __init__(self, plan: MatrixPlan, part: Part, then: Callable[[Orders, Made], list[Parcel]]) -> None:
        self._part, self._then = part, then
        self._programs = {kept.name: ProgramPart(kept, part) for kept in plan.programs}

    @property
    def layout(self) -> StoreLayout:
        return StoreLayout(blocks=tuple(block for share in self._programs.values() for block in share.layouts()))

    @property
    def runs(self) -> tuple[Callable[[Store, list[bytes]], bytes], ...]:
        """By number, all supersteps that a batch may have."""
        return tuple(partial(self._run, stage) for stage in range(most_supersteps(self._programs.values())))

    def _run(self, stage: int, store: Store, messages: list[bytes]) -> bytes:
        """A superstep of a batch: what goes to whom."""
        told = [unpacked(message) for message in messages]
        ((head, arrays),) = [(head, some) for head, some in told if "from" not in head]
        theirs = [(head["from"], some) for head, some in told if "from" in head]
        orders, nows = Orders.of(head, arrays), dict[str, Now]()
        is_last = stage == supersteps(self._programs.values(), orders) - 1
        for name, share in self._programs.items():
            work = Work(share, store, orders.sizes[name])
            if stage:
                work.now = Now.of(head["now"][name], arrays, name)
            else:
                work.resize()
            work.go(stage, orders.of_program(name), _parts(name, theirs))
            nows[name] = work.now
            if is_last:
                work.show()
        if is_last:
            return pack_parcels(self._then(orders, self._changed(orders, nows)))
        begun = {name: share.begun(stage, orders.phases[name]) for name, share in self._programs.items()}
        return pack_parcels(self._sent(orders.but(begun), nows))

    def _sent(self, orders: Orders, nows: Mapping[str, Now]) -> list[Parcel]:
        own, facts = dict(orders.arrays), dict[str, Any]()
        sent: list[Arrays] = [{} for _ in range(self._part.count)]
        for name, now in nows.items():
            facts[name], kept = now.packed(name)
            own |= kept
            for target, value, rows in now.sent:
                sent[target][key(name, value)] = rows
        parcels = [(target, packed({"from": self._part.number}, some)) for target, some in enumerate(sent) if some]
        return [*parcels, (self._part.number, packed(orders.head | {"now": facts}, own))]

    def _changed(self, orders: Orders, nows: Mapping[str, Now]) -> Made:
        """The cells that have changed; of what all partitions know the first one tells."""
        tables = {reading.relation.name: table for now in nows.values() for reading, table in now.shown}
        figures: dict[str, Any] = {name: {"bytes": now.nbytes} for name, now in nows.items()}
        if self._part.number:
            return Made(tables, {"matrices": figures})
        known = orders.figures["matrices"]
        told = {name: known[name] | now.told() | figures[name] for name, now in nows.items()}
        return Made(tables, {**orders.figures, "matrices": told})


def supersteps(programs: Iterable[ProgramPart], orders: Orders) -> int:
    """How many a batch has: as many as the program with most."""
    return max(len(share.blocks.timeline(orders.phases[share.kept.name])) for share in programs)


def most_supersteps(programs: Iterable[ProgramPart]) -> int:
    """How many a batch may have: all constants grow, all inputs change, views are looked at, and all is evaluated."""
    fired = ((share, [Phase("fire", name) for name in share.blocks.triggers]) for share in programs)
    return max(len(share.blocks.timeline([*phases, Phase("look"), Phase("evaluate")])) for share, phases in fired)


def _parts(name: str, theirs: Iterable[tuple[int, Arrays]]) -> Parts:
    found: Parts = {}
    for number, arrays in theirs:
        for label, rows in arrays.items():
            program, value, form = label.split("|")
            if program == name:
                found.setdefault((value, Form(form)), {})[number] = rows
    return found
