"""A matrix program on several partitions: each has some rows of a view, and as many of its columns if these are asked
for (LINVIEW §6).

    pass A: t0 := A * uA, t2 := A' * vA', A += …     of its rows of A each partition computes its rows of t0, of its
                                                     columns of A its rows of t2
    send t0, t2                                      each to all: n · k numbers, never a view
    UB := [uA, t0] …                                 what has few columns is computed by all alike
    pass B: …

Rows and columns go round: partition p of P has p, p + P, p + 2P, …, so that a matrix can grow and every share stays as
large as the others. What is between two exchanges is a superstep (Valiant's BSP), and a stage on Spark.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import reduce

import numpy as np
import numpy.typing as npt

from squallpy.maintain.matrix.materialise import Maintained
from squallpy.maintain.matrix.nodes import (
    Diagonal,
    Fill,
    Matrix,
    Name,
    Product,
    Scale,
    Stack,
    Sum,
    Transpose,
    names,
)
from squallpy.maintain.matrix.program import Statement
from squallpy.physical.passes import Pass, passes

Numbers = npt.NDArray[np.int64]


class Form(StrEnum):
    """What a partition has of a matrix."""

    WHOLE = "whole"
    ROWS = "rows"  # its own
    COLUMNS = "columns"  # its own


Value = tuple[str, Form]


@dataclass(frozen=True, slots=True)
class Part:
    """The share of partition `number` of `count`: every `count`th row, or column, from its number on."""

    number: int
    count: int

    @property
    def own(self) -> slice:
        return slice(self.number, None, self.count)

    def extent(self, size: int) -> int:
        """How many it has of so many."""
        return len(range(self.number, size, self.count))

    def among(self, numbers: Numbers) -> Numbers:
        """Those that it has."""
        return numbers if self.count == 1 else numbers[numbers % self.count == self.number]

    def local(self, numbers: Numbers) -> Numbers:
        """Where those that it has are in its block."""
        return numbers // self.count


ALONE = Part(0, 1)


@dataclass(frozen=True, slots=True)
class Define:
    """A definition evaluated anew, each partition its rows; `kept`: they are those of a view."""

    statement: Statement
    kept: bool

    def __str__(self) -> str:
        return f"rows of {self.statement}"


@dataclass(frozen=True, slots=True)
class Fetch:
    """The columns of a view that was evaluated anew have arrived."""

    view: str

    def __str__(self) -> str:
        return f"columns of {self.view}"


Item = Statement | Pass | Define | Fetch


@dataclass(frozen=True, slots=True)
class Superstep:
    """Work, then what each partition sends to the others: of a value its rows to all, or to each its columns of them.
    `keeps`: the values that it needs later; `turned`: those of which rows of the transpose are sent."""

    work: tuple[Item, ...]
    sends: tuple[Value, ...] = ()
    keeps: tuple[Value, ...] = ()
    turned: frozenset[str] = frozenset()

    def __str__(self) -> str:
        return "\n".join([*map(str, self.work), *([f"send {sent(self.sends)}"] if self.sends else [])])


def sent(values: Iterable[Value]) -> str:
    """Values as people read them."""
    return ", ".join(f"columns of {name}" if form is Form.COLUMNS else name for name, form in values)


@dataclass(frozen=True, slots=True)
class Phase:
    """A part of what is done in a batch: `add` cells to the input `name`, `fire` the trigger of `name`, or `evaluate`
    anew, always or only `if_asked`: where an inverse could not be told."""

    do: str
    name: str = ""
    rank: int = 0  # of the update that fires
    if_asked: bool = False


_NOTHING = Superstep(())


@dataclass(frozen=True, slots=True)
class Blocks:
    """A program on partitions: the views that are kept by columns, too, and what is done when an input, or a constant,
    changes, or when all is evaluated anew."""

    by_columns: frozenset[str]
    triggers: Mapping[str, tuple[Superstep, ...]]
    evaluation: tuple[Superstep, ...]

    def supersteps(self, phase: Phase) -> tuple[Superstep, ...]:
        """Those of a phase; nothing is sent after its last."""
        return {"fire": self.triggers.get(phase.name, ()), "evaluate": self.evaluation}.get(phase.do, (_NOTHING,))

    def timeline(self, phases: Sequence[Phase]) -> list[list[tuple[int, int]]]:
        """What is done between two exchanges: the phases, and which superstep of each. A phase begins where the one
        before ends."""
        line: list[list[tuple[int, int]]] = [[]]
        for number, phase in enumerate(phases):
            for at in range(len(self.supersteps(phase))):
                line += [[]] if at else []
                line[-1].append((number, at))
        return line


def blocks(made: Maintained) -> Blocks:
    """A program's supersteps."""
    symmetric = {name for name, known in made.anf.facts.items() if known.symmetric}
    work = {name: passes(trigger, made.matrices) for name, trigger in made.triggers.items()}
    definitions = _definitions(made)
    inputs, kept = {i.name.name for i in made.program.inputs}, {name.name for name in made.kept}
    needed = reduce(set.__or__, (_needs(d, symmetric) for d in definitions), set[Value]())
    asked = {name for name, form in needed if form is Form.COLUMNS} & (inputs | kept)
    visits = [item for items in work.values() for item in items if isinstance(item, Pass)]
    asked |= {visit.view.name for visit in visits if _across(visit, symmetric)}
    stored = {name: _forms(name, asked) for name in inputs | kept}
    lasting = set[Value]().union(*stored.values())
    triggers = {}
    for name, items in work.items():
        given = {(half.name, Form.WHOLE) for half in (made.triggers[name].u, made.triggers[name].v)}
        triggers[name] = _supersteps(items, symmetric, lasting | given, lasting)
    fetched = [item for definition in definitions for item in _fetched(definition, asked)]
    evaluation = _supersteps(fetched, symmetric, set[Value]().union(*(stored[name] for name in inputs)), lasting)
    return Blocks(frozenset(asked), triggers, evaluation)


def _definitions(made: Maintained) -> list[Define]:
    kept = {name.name for name in made.kept}
    constants = [Statement(made.anf.source(name), value) for name, value in made.anf.constants.items()]
    return [Define(statement, statement.name.name in kept) for statement in (*constants, *made.anf.definitions)]


def _fetched(definition: Define, by_columns: set[str]) -> Iterator[Item]:
    """A definition, and behind it the columns of its view, if that has them."""
    yield definition
    if definition.kept and definition.statement.name.name in by_columns:
        yield Fetch(definition.statement.name.name)


def _forms(name: str, by_columns: set[str]) -> set[Value]:
    return {(name, Form.ROWS), *([(name, Form.COLUMNS)] if name in by_columns else [])}


def _across(visit: Pass, symmetric: set[str]) -> bool:
    """Does a pass look at a view by columns?"""
    turned = visit.view.name not in symmetric and any(read.transposed for read in visit.reads)
    return turned or bool(visit.update and visit.update.left)


def _supersteps(
    items: Sequence[Item], symmetric: set[str], there: set[Value], lasting: set[Value]
) -> tuple[Superstep, ...]:
    """Work in its order, cut where it needs what the partitions have not sent yet. Some values are `there` from the
    start, some are `lasting`: views have them."""
    known, made = set(there), dict[Value, int]()
    work: list[list[Item]] = [[]]
    sends: list[list[Value]] = [[]]
    for item in items:
        missing = sorted(_needs(item, symmetric) - known)
        if any(made.get((name, Form.ROWS), 0) == len(work) - 1 for name, _ in missing):
            work.append([])
            sends.append([])
        if missing:
            sends[-2] += missing
        work[-1].append(item)
        if isinstance(item, Pass) and item.update:
            known.discard((item.view.name, Form.WHOLE))
            made[item.view.name, Form.ROWS] = len(work) - 1
        for value in _makes(item):
            made[value] = len(work) - 1
        known |= {*missing, *_makes(item)}
    turned = frozenset(name for item in items if isinstance(item, Pass) for name in _turned(item))
    return tuple(
        Superstep(tuple(some), tuple(told), _kept(at, work, sends, symmetric, lasting), turned)
        for at, (some, told) in enumerate(zip(work, sends, strict=True))
    )


def _turned(visit: Pass) -> Iterator[str]:
    yield from (read.name.name for read in visit.reads if read.turned)
    if visit.update and visit.update.left:
        yield visit.update.left[1].name


def _kept(
    at: int, work: list[list[Item]], sends: list[list[Value]], symmetric: set[str], lasting: set[Value]
) -> tuple[Value, ...]:
    """What is there after a superstep, is needed in a later one, and is not a view's."""
    needed = {value for some in work[at + 1 :] for item in some for value in _needs(item, symmetric)}
    needed |= {(name, Form.ROWS) for some in sends[at + 1 :] for name, _ in some}
    to_come = {value for some in work[at + 1 :] for item in some for value in _makes(item)}
    to_come |= {value for some in sends[at:] for value in some}
    return tuple(sorted(needed - to_come - lasting))


def _needs(item: Item, symmetric: set[str]) -> set[Value]:
    """What has to be there for some work."""
    match item:
        case Statement(_, value):
            return _whole(value)
        case Pass(_, reads, update):
            halves = (update.u, update.v) if update else ()
            return set[Value]().union(*(_whole(matrix) for matrix in (*(read.by for read in reads), *halves)))
        case Define(Statement(_, value)):
            return rows_need(value, symmetric)
        case Fetch(view):
            return {(view, Form.COLUMNS)}
    raise AssertionError(item)


def _makes(item: Item) -> set[Value]:
    """What is there after some work."""
    match item:
        case Statement(name, _):
            return {(name.name, Form.WHOLE)}
        case Pass(_, reads, update):
            left = update.left or () if update else ()
            return {(name.name, Form.ROWS) for name in (*(read.name for read in reads), *left)}
        case Define(Statement(name, _)):
            return {(name.name, Form.ROWS)}
    return set()


def rows_need(value: Matrix, symmetric: set[str] | frozenset[str]) -> set[Value]:
    """What a partition needs for its rows of a value."""
    match value:
        case Name(name):
            return {(name, Form.ROWS)}
        case Transpose(Name(name)):
            return {(name, Form.ROWS if name in symmetric else Form.COLUMNS)}
        case Product((left, right)):
            return rows_need(left, symmetric) | _whole(right)
        case Sum(parts) | Stack(parts):
            return set[Value]().union(*(rows_need(part, symmetric) for part in parts))
        case Scale(_, of):
            return rows_need(of, symmetric)
        case Fill() | Diagonal():
            return set()
    return _whole(value)


def _whole(value: Matrix) -> set[Value]:
    return {(name, Form.WHOLE) for name in names(value)}
