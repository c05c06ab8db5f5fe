"""The driver's side of matrices that partitions keep in blocks: what is done in each batch, by cost.

spread = Spread(plan, input, parts=4)
spread.orders(7)            →  Orders(phases of every program, factors of their updates, …)
spread.after(figures)       what partitions have told of it; the next batch follows

The driver reads rows and weighs, and keeps no matrix. All that it has to know of the batches before is `known`, which
goes with the commit of a batch.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from squallpy.base.semirings import ARITHMETIC
from squallpy.maintain.matrix.dimensions import Sizes
from squallpy.maintain.matrix.materialise import Trigger
from squallpy.maintain.matrix.nodes import Inverse
from squallpy.physical.matrix.blocks import ALONE, Phase
from squallpy.physical.matrix.programs import KeptProgram, MatrixPlan
from squallpy.runtime.batch.node import Input, Made
from squallpy.runtime.matrix.algebra import appended, depends
from squallpy.runtime.matrix.cells import Cells
from squallpy.runtime.matrix.commands import Orders
from squallpy.runtime.matrix.decide import Prices, reason_to_evaluate
from squallpy.runtime.matrix.drift import CHECK, vectors
from squallpy.runtime.matrix.partition import supersteps
from squallpy.runtime.matrix.rows import Rows, added, check_known
from squallpy.runtime.matrix.source import Incoming, widened
from squallpy.runtime.matrix.superstep import ProgramPart
from squallpy.runtime.matrix.views import Array

Given = tuple[Phase, dict[str, Array]]  # what it is given


@dataclass(frozen=True, slots=True)
class Known:
    """What the driver knows when a batch begins: the dimensions so far, supersteps that there were, and of programs the
    changes of inputs since they were evaluated, and which have a matrix that is singular."""

    sizes: dict[str, int]
    steps: int = 0
    updates: dict[str, int] = field(default_factory=dict)
    singular: tuple[str, ...] = ()


@dataclass
class Spread:
    """The matrices of a query, in blocks on partitions."""

    plan: MatrixPlan
    input: Input

    def __post_init__(self) -> None:
        self._incoming = Incoming(self.plan, self.input)
        self.programs = [ProgramPart(kept, ALONE) for kept in self.plan.programs]
        self.known = Known(dict.fromkeys(self._incoming.symbols, 0))
        self._next = self.known

    def made(self, batch: int, split: int, splits: int) -> Made:
        raise AssertionError("what is spread is made where it is")

    def orders(self, batch: int, course: str = "") -> tuple[Orders, int]:
        """What is to be done in a batch, and in how many supersteps; the stages behind are told of their `course`."""
        rows, figures = self._incoming.read(batch)
        sizes = widened(self.known.sizes, rows)
        phases, arrays, told = dict[str, list[Phase]](), dict[str, Array](), dict[str, Any]()
        updates, mine = dict(self.known.updates), dict[str, dict[str, int]]()
        for share in self.programs:
            kept, name = share.kept, share.kept.name
            mine[name] = {symbol: sizes[symbol] for symbol in kept.program.symbols()}
            decision = self._decided(share, _cells(kept, rows, self.plan), mine[name])
            phases[name], told[name] = [phase for phase, _ in decision.phases], decision.figures
            for number, (_, given) in enumerate(decision.phases):
                arrays |= {f"{name}/{number}/{which}": array for which, array in given.items()}
            updates[name] = 0 if decision.why else updates[name] + sum(phase.do == "fire" for phase in phases[name])
        orders = Orders(batch, mine, phases, arrays, {**figures, "matrices": told}, course)
        count = supersteps(self.programs, orders)
        self._next = Known(sizes, self.known.steps + count, updates, self.known.singular)
        return orders, count

    def after(self, figures: Mapping[str, Mapping[str, Any]]) -> None:
        """A batch is done, and this is what was told of its programs."""
        evaluated = {name for name, told in figures.items() if told["how"] == "evaluated"}
        still = {name for name in self.known.singular if name not in evaluated}
        now = still | {name for name, told in figures.items() if "singular" in told}
        self.known = replace(self._next, singular=tuple(sorted(now)))

    def _decided(self, share: ProgramPart, cells: Mapping[str, Cells], sizes: Sizes) -> "_Decision":
        """By triggers, one after the other, or anew: what is cheaper, or all that can be."""
        kept, made, known = share.kept, share.made, self.known
        ranks = {name: some.rank for name, some in cells.items()}
        rank = max(ranks.values(), default=0)
        before = {symbol: known.sizes[symbol] for symbol in sizes}
        grown = {symbol for symbol in sizes if sizes[symbol] > before[symbol]}
        prices, is_first = Prices(made, sizes, kept.compiled.options.strategy), kept.name not in known.updates
        is_singular = kept.name in known.singular
        if why := reason_to_evaluate(prices, ranks, grown=grown, is_first=is_first, is_singular=is_singular):
            return _Decision([*_adding(cells), (Phase("evaluate"), {})], rank, why)
        fired = []
        for name, constant in made.anf.constants.items():
            if depends(constant, grown):
                fired.append((made.triggers[name], *appended(constant, before, sizes, kept.program.ring)))
        for name, some in cells.items():
            source = made.program.input(name)
            assert source
            shape = source.name.rows.at(sizes), source.name.cols.at(sizes)
            fired.append((made.triggers[name], *some.factors(shape, kept.program.ring)))
        return _Decision([*_firing(fired), *self._behind(share, [trigger for trigger, *_ in fired], sizes)], rank)

    def _behind(self, share: ProgramPart, fired: Sequence[Trigger], sizes: Sizes) -> Iterator[Given]:
        """What follows triggers: a look every CHECK updates, and an evaluation if that or an inverse asks for it."""
        before = self.known.updates[share.kept.name]
        look = share.ring is ARITHMETIC and before // CHECK < (before + len(fired)) // CHECK
        if look:
            yield Phase("look"), vectors(share.blocks.probe, sizes, before)
        if look or any(isinstance(step.value, Inverse) for trigger in fired for step in trigger.steps):
            yield Phase("evaluate", if_asked=True), {}


@dataclass(frozen=True, slots=True)
class _Decision:
    """The phases of a program in a batch, with what they are given."""

    phases: list[Given]
    rank: int
    why: str = ""

    @property
    def figures(self) -> dict[str, Any]:
        return {"rank": self.rank, "how": "evaluated" if self.why else "incremental", "why": self.why}


def _cells(kept: KeptProgram, rows: Mapping[str, Rows], plan: MatrixPlan) -> dict[str, Cells]:
    """What a batch adds to the inputs of a program."""
    found = {}
    for source in kept.program.inputs:
        name = source.name.name
        if len(rows.get(name, ())):
            found[name] = added(rows[name], kept.program.ring)
            check_known(plan.matrices[name], found[name])
    return found


def _adding(cells: Mapping[str, Cells]) -> Iterator[Given]:
    for name, some in cells.items():
        yield Phase("add", name), {"rows": some.rows, "cols": some.cols, "values": some.values}


def _firing(fired: Iterable[tuple[Trigger, Array, Array]]) -> Iterator[Given]:
    for trigger, u, v in fired:
        yield Phase("fire", trigger.input.name, u.shape[1]), {"u": u, "v": v}
