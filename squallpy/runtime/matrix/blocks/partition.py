"""A partition's blocks of the matrices of a query, from one exchange to the next.

    part.runs[0](store, [commands])        →  parcels for all, and for itself what it needs later
    part.runs[1](store, [theirs, …])       →  …
    part.runs[last](store, …)              →  the parcels of a reader: of its share of the other relations, and of the
                                              cells of its rows that have changed

All that outlives a batch is in the blocks of the store; all that outlives a superstep is in a message of a partition to
itself. So a superstep is a function of messages and state, like any other stage (DESIGN §7).
"""

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any

from squallpy.physical.matrix.block_supersteps import CyclicPartition, MatrixLayout, Phase
from squallpy.physical.plan import Plan
from squallpy.runtime.batch.micro_batch import Computed, Sender, pack_parcels
from squallpy.runtime.matrix.blocks.commands import Arrays, Commands, pack_arrays, unpack_arrays
from squallpy.runtime.matrix.blocks.superstep import BlockProgram, SuperstepExecutor
from squallpy.runtime.matrix.blocks.superstep_state import Parts, SuperstepState, array_key
from squallpy.runtime.sources.input import decode_slices
from squallpy.runtime.sources.protocol import Source
from squallpy.runtime.state.state_store import Store, StoreLayout

Parcel = tuple[int, bytes]


class BlockPartition:
    """The blocks of all programs that one partition has, and its reader."""

    def __init__(self, plan: Plan, sources: Mapping[str, Source], number: int) -> None:
        assert plan.matrices
        self._part, self._sender, self._sources = CyclicPartition(number, plan.matrices.parts), Sender(plan), sources
        self._programs = {kept.name: BlockProgram(kept, self._part) for kept in plan.matrices.programs}

    @property
    def layout(self) -> StoreLayout:
        return StoreLayout(blocks=tuple(block for program in self._programs.values() for block in program.layouts()))

    @property
    def runs(self) -> tuple[Callable[[Store, list[bytes]], bytes], ...]:
        """The supersteps that a batch may have, by number."""
        return tuple(partial(self._run, stage) for stage in range(most_supersteps(self._programs.values())))

    def _run(self, stage: int, store: Store, messages: list[bytes]) -> bytes:
        """Run a superstep of a batch; returns parcels."""
        received = [unpack_arrays(message) for message in messages]
        ((head, arrays),) = [(head, some) for head, some in received if "from" not in head]
        theirs = [(head["from"], some) for head, some in received if "from" in head]
        commands, states = Commands.of(head, arrays), dict[str, SuperstepState]()
        is_last = stage == supersteps(self._programs.values(), commands) - 1
        for name, program in self._programs.items():
            executor = SuperstepExecutor(program, store, commands.sizes[name])
            if stage:
                executor.state = SuperstepState.of(head["states"][name], arrays, name)
            else:
                executor.resize()
            executor.run(stage, commands.phases_of(name), _parts(name, theirs))
            states[name] = executor.state
            if is_last:
                executor.update_subscriptions()
        if is_last:
            part, computed = self._part, self._computed(commands, states)
            slices = decode_slices(commands.slices, self._sources)[part.number]
            return pack_parcels(self._sender.messages(part.number, slices, commands.directive, computed=computed))
        begun = {name: program.count_begun(stage, commands.phases[name]) for name, program in self._programs.items()}
        return pack_parcels(self._parcels_between(commands.without_begun(begun), states))

    def _parcels_between(self, commands: Commands, states: Mapping[str, SuperstepState]) -> list[Parcel]:
        own, facts = dict(commands.arrays), dict[str, Any]()
        sent: list[Arrays] = [{} for _ in range(self._part.count)]
        for name, state in states.items():
            facts[name], kept = state.packed(name)
            own |= kept
            for target, value, rows in state.sent:
                sent[target][array_key(name, value)] = rows
        parcels = [(target, pack_arrays({"from": self._part.number}, some)) for target, some in enumerate(sent) if some]
        return [*parcels, (self._part.number, pack_arrays(commands.head | {"states": facts}, own))]

    def _computed(self, commands: Commands, states: Mapping[str, SuperstepState]) -> Computed:
        """Collect the cells that have changed; the first partition reports what all of them know."""
        tables = {reading.relation.name: table for state in states.values() for reading, table in state.changed}
        figures: dict[str, Any] = {name: {"bytes": state.nbytes} for name, state in states.items()}
        if self._part.number:
            return Computed(tables, {"matrices": figures})
        known = commands.figures["matrices"]
        of_programs = {name: known[name] | state.figures() | figures[name] for name, state in states.items()}
        return Computed(tables, {**commands.figures, "matrices": of_programs})


def supersteps(programs: Iterable[BlockProgram], commands: Commands) -> int:
    """Count the supersteps of a batch, which are those of the program with most."""
    return max(len(program.blocks.timeline(commands.phases[program.plan.name])) for program in programs)


def most_supersteps(programs: Iterable[BlockProgram]) -> int:
    """Count the supersteps of the longest batch, in which all phases occur."""
    fired = ((program, [Phase("fire", name) for name in program.blocks.triggers]) for program in programs)
    return max(len(program.blocks.timeline([*phases, Phase("look"), Phase("evaluate")])) for program, phases in fired)


def _parts(name: str, theirs: Iterable[tuple[int, Arrays]]) -> Parts:
    found: Parts = {}
    for number, arrays in theirs:
        for label, rows in arrays.items():
            program, value, form = label.split("|")
            if program == name:
                found.setdefault((value, MatrixLayout(form)), {})[number] = rows
    return found
