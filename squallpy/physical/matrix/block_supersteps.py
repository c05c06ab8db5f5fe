"""Supersteps of a matrix program whose views are in blocks on partitions (LINVIEW §6).

Each partition has some rows of a view, and as many of its columns if triggers read these.

    pass A: t0 := A * uA, t2 := A' * vA', A += …     of its rows of A each partition computes its rows of t0, of its
                                                     columns of A its rows of t2
    send t0, t2                                      each to all: n · k numbers, never a view
    UB := [uA, t0] …                                 values of few columns are computed by all alike
    pass B: …

A view with more rows than columns is kept by rows alone: A'·V is a sum of what each partition's rows make of it, so
is X'·X. Rows and columns go round: partition p of P has p, p + P, p + 2P, …, so that a matrix can grow and every share
stays as large as the others. What is between two exchanges is a superstep (Valiant's BSP), and a stage on Spark.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from enum import StrEnum

import numpy as np
import numpy.typing as npt

from squallpy.base.records import dataclass
from squallpy.base.semirings import ARITHMETIC
from squallpy.maintain.matrix.drift_probe import Look, Probe, write_probe
from squallpy.maintain.matrix.expression_cost import Guess
from squallpy.maintain.matrix.materialise import IncrementalProgram
from squallpy.maintain.matrix.matrix_expressions import (
    Diagonal,
    Entrywise,
    Fill,
    MainDiagonal,
    Matrix,
    Name,
    Product,
    RowDot,
    Scale,
    Stack,
    Sum,
    Transpose,
    children,
    names,
)
from squallpy.maintain.matrix.matrix_program import Statement
from squallpy.physical.matrix.view_passes import ViewPass, match_read, schedule_passes

Numbers = npt.NDArray[np.int64]


class MatrixLayout(StrEnum):
    """The layout of a matrix on partitions, by the part that each has."""

    WHOLE = "whole"
    ROWS = "rows"  # its own
    COLUMNS = "columns"  # its own
    SUMMAND = "share"  # of a sum of all partitions' shares


Value = tuple[str, MatrixLayout]


@dataclass(frozen=True, slots=True)
class CyclicPartition:
    """The share of partition `number` of `count`: every `count`th row, or column, from its number on."""

    number: int
    count: int

    @property
    def own(self) -> slice:
        return slice(self.number, None, self.count)

    def extent(self, size: int) -> int:
        """Count the rows that it has of so many."""
        return len(range(self.number, size, self.count))

    def owns(self, numbers: Numbers) -> npt.NDArray[np.bool_]:
        """Test which of these rows it has."""
        own: npt.NDArray[np.bool_] = numbers % self.count == self.number
        return own

    def select_own(self, numbers: Numbers) -> Numbers:
        """Select those of these rows that it has."""
        return numbers if self.count == 1 else numbers[self.owns(numbers)]

    def local(self, numbers: Numbers) -> Numbers:
        """Convert numbers of rows that it has to positions in its block."""
        return numbers // self.count


ALONE = CyclicPartition(0, 1)
OWN = (MatrixLayout.ROWS, MatrixLayout.SUMMAND)  # what is sent


@dataclass(frozen=True, slots=True)
class Define:
    """A definition evaluated anew, each partition its rows, or its share; `is_view`: it is that of a view."""

    statement: Statement
    is_view: bool
    form: MatrixLayout = MatrixLayout.ROWS

    def __str__(self) -> str:
        return f"{self.form} of {self.statement}"


@dataclass(frozen=True, slots=True)
class Fetch:
    """A view that was evaluated anew has arrived: its columns, or all of it."""

    view: str
    form: MatrixLayout

    def __str__(self) -> str:
        return f"keep {'columns of ' if self.form is MatrixLayout.COLUMNS else ''}{self.view}"


@dataclass(frozen=True, slots=True)
class CompareDrift:
    """The end of a probe: the drift of views is compared with the limit."""

    looks: tuple[Look, ...]

    def __str__(self) -> str:
        return f"see {', '.join(f'{look.off} / {look.right}' for look in self.looks)}"


Item = Statement | ViewPass | Define | Fetch | CompareDrift


@dataclass(frozen=True, slots=True)
class Superstep:
    """Work of every partition, then an exchange.

    Args:
        sends: Values of which each partition sends rows, or its summand, to all, or to each its columns of the rows.
        keeps: Values that are needed later.
        turned: Names of which the transpose is sent.
    """

    work: tuple[Item, ...]
    sends: tuple[Value, ...] = ()
    keeps: tuple[Value, ...] = ()
    transposed_views: frozenset[str] = frozenset()

    def __str__(self) -> str:
        return "\n".join([*map(str, self.work), *([f"send {sends_text(self.sends)}"] if self.sends else [])])


def sends_text(values: Iterable[Value]) -> str:
    """Show the values of an exchange."""
    return ", ".join(f"columns of {name}" if form is MatrixLayout.COLUMNS else name for name, form in values)


@dataclass(frozen=True, slots=True)
class Layouts:
    """The layouts of matrices.

    Args:
        symmetric: Those whose rows are their columns, too.
        tall: Those stored by rows alone.
        shares: Those evaluated as sums of all partitions' summands, which are whole then.
    """

    symmetric: frozenset[str]
    tall: frozenset[str]
    summed: frozenset[str] = frozenset()

    def find_summed_rows(self, value: Matrix) -> Name | None:
        """Return the tall matrix by whose rows a product is a sum; else None."""
        match value:
            case Product((Transpose(Name(name) as of), Name() | Fill() | Diagonal())) if name in self.tall:
                return of
        return None


@dataclass(frozen=True, slots=True)
class Phase:
    """A part of the work on a batch.

    Args:
        do: `add` cells to the input `name`, `fire` its trigger, `look` for drift of views, or `evaluate` all.
        if_asked: Evaluate only if an inverse is almost singular, or views have drifted.
    """

    do: str
    name: str = ""
    rank: int = 0  # of the update that fires
    is_optional: bool = False


_NOTHING = Superstep(())


@dataclass(frozen=True, slots=True)
class Blocks:
    """The layouts and supersteps of a program on partitions.

    Args:
        by_columns: The views that are stored by columns, too.
        triggers: The supersteps of the trigger of each input and constant.
        evaluation: The supersteps that evaluate the program.
        look: The supersteps of the probe.
    """

    layouts: Layouts
    by_columns: frozenset[str]
    triggers: Mapping[str, tuple[Superstep, ...]]
    evaluation: tuple[Superstep, ...]
    probe: Probe
    look: tuple[Superstep, ...]

    def supersteps(self, phase: Phase) -> tuple[Superstep, ...]:
        """Return the supersteps of a phase; nothing is sent after its last."""
        known = {"fire": self.triggers.get(phase.name, ()), "evaluate": self.evaluation, "look": self.look}
        return known.get(phase.do, (_NOTHING,))

    def timeline(self, phases: Sequence[Phase]) -> list[list[tuple[int, int]]]:
        """List the work between exchanges, as numbers of phases and of their supersteps.

        A phase begins where the one before ends.
        """
        line: list[list[tuple[int, int]]] = [[]]
        for number, phase in enumerate(phases):
            for at in range(len(self.supersteps(phase))):
                line += [[]] if at else []
                line[-1].append((number, at))
        return line


def plan_blocks(incremental: IncrementalProgram) -> Blocks:
    """Cut the triggers and the evaluation of a program into supersteps."""
    views = {name.name for name in incremental.stored}
    layouts, definitions, evaluated_columns = _choose_layouts(incremental)
    evaluated_columns &= views
    work = {name: schedule_passes(trigger, incremental.matrices) for name, trigger in incremental.triggers.items()}
    seen = write_probe(incremental)
    looked = [*_by_depth(seen.steps, views), CompareDrift(seen.looks)] if incremental.program.ring is ARITHMETIC else []
    visits = [item for items in (*work.values(), looked) for item in items if isinstance(item, ViewPass)]
    evaluated_columns |= {visit.view.name for visit in visits if _reads_columns(visit, layouts)}
    stored = {name: _forms(name, evaluated_columns) for name in views}
    lasting, triggers = set[Value]().union(*stored.values()), {}
    for name, items in work.items():
        halves = {
            (half.name, MatrixLayout.WHOLE) for half in (incremental.triggers[name].u, incremental.triggers[name].v)
        }
        triggers[name] = _supersteps(items, layouts, lasting | halves, lasting)
    fetched = [item for definition in definitions for item in _with_arrival(definition, evaluated_columns)]
    given = set[Value]().union(*(stored[i.name.name] for i in incremental.program.inputs))
    evaluation = _supersteps(fetched, layouts, given, lasting)
    vectors = {(vector.name, MatrixLayout.WHOLE) for vector in seen.vectors}
    look = _supersteps(looked, layouts, lasting | vectors, lasting)
    return Blocks(layouts, frozenset(evaluated_columns), triggers, evaluation, seen, look)


def _by_depth(steps: Sequence[Statement], views: set[str]) -> list[Item]:
    """Order steps, as visits to views and values, by the number of exchanges that they need before."""
    depth, items = dict[str, int](), list[tuple[int, bool, Item]]()
    for step in steps:
        before = max((depth[name] for name in names(step.value) if name in depth), default=0)
        found = match_read(step, views)
        depth[step.name.name] = before + (found is not None)
        items.append((before, found is not None, ViewPass(found[0], (found[1],), None) if found else step))
    return [item for _, _, item in sorted(items, key=lambda entry: entry[:2])]


def _choose_layouts(incremental: IncrementalProgram) -> tuple[Layouts, list[Define], set[str]]:
    """Choose layouts and definitions; returns also the names whose columns the evaluation needs, none of them tall."""
    symmetric = frozenset(name for name, known in incremental.anf.facts.items() if known.symmetric)
    guess = Guess({})
    tall = {n.name for n in incremental.stored if n.rows != n.cols and guess(n.rows) >= guess(n.cols)}
    tall -= symmetric
    while True:
        layouts = Layouts(symmetric, frozenset(tall))
        layouts = replace(
            layouts,
            summed=frozenset(d.name.name for d in incremental.anf.definitions if layouts.find_summed_rows(d.value)),
        )
        definitions = _definitions(incremental, layouts)
        evaluated_columns = {
            name for d in definitions for name, form in _values_needed(d, layouts) if form is MatrixLayout.COLUMNS
        }
        if not tall & evaluated_columns:
            return layouts, definitions, evaluated_columns
        tall -= evaluated_columns


def _definitions(incremental: IncrementalProgram, layouts: Layouts) -> list[Define]:
    kept = {name.name for name in incremental.kept}
    constants = [Statement(incremental.anf.source(name), value) for name, value in incremental.anf.constants.items()]
    return [
        Define(
            statement,
            statement.name.name in kept,
            MatrixLayout.SUMMAND if statement.name.name in layouts.summed else MatrixLayout.ROWS,
        )
        for statement in (*constants, *incremental.anf.definitions)
    ]


def _with_arrival(definition: Define, by_columns: set[str]) -> Iterator[Item]:
    """Yield a definition, and the arrival of its view where partitions need more than their rows."""
    yield definition
    name = definition.statement.name.name
    if definition.is_view and definition.form is MatrixLayout.SUMMAND:
        yield Fetch(name, MatrixLayout.WHOLE)
    elif definition.is_view and name in by_columns:
        yield Fetch(name, MatrixLayout.COLUMNS)


def _forms(name: str, by_columns: set[str]) -> set[Value]:
    return {(name, MatrixLayout.ROWS), *([(name, MatrixLayout.COLUMNS)] if name in by_columns else [])}


def _reads_columns(visit: ViewPass, layouts: Layouts) -> bool:
    """True if a pass reads a view by columns."""
    view = visit.view.name
    turned = view not in layouts.symmetric and any(read.transposed for read in visit.reads)
    return view not in layouts.tall and (turned or bool(visit.update and visit.update.left))


def _supersteps(
    items: Sequence[Item], layouts: Layouts, there: set[Value], lasting: set[Value]
) -> tuple[Superstep, ...]:
    """Work in its order, cut where it needs what the partitions have not sent yet. Some values are `there` from the
    start, some are `lasting`: views have them."""
    known, incremental = set(there), dict[Value, int]()
    work: list[list[Item]] = [[]]
    sends: list[list[Value]] = [[]]
    for item in items:
        missing = sorted(_values_needed(item, layouts) - known)
        if any(max(incremental.get((name, form), 0) for form in OWN) == len(work) - 1 for name, _ in missing):
            work.append([])
            sends.append([])
        if missing:
            sends[-2] += missing
            incremental |= dict.fromkeys(missing, len(work) - 1)
        work[-1].append(item)
        if isinstance(item, ViewPass) and item.update:
            known.discard((item.view.name, MatrixLayout.WHOLE))
            incremental[item.view.name, MatrixLayout.ROWS] = len(work) - 1
        incremental |= dict.fromkeys(_values_made(item, layouts), len(work) - 1)
        known |= {*missing, *_values_made(item, layouts)}
    turned = frozenset(name for item in items if isinstance(item, ViewPass) for name in _turned(item))
    return tuple(
        Superstep(
            tuple(some),
            tuple(message),
            _values_kept(at, work, sends, layouts, incremental | dict.fromkeys(there, 0), lasting),
            turned,
        )
        for at, (some, message) in enumerate(zip(work, sends, strict=True))
    )


def _turned(visit: ViewPass) -> Iterator[str]:
    yield from (read.name.name for read in visit.reads if read.turned)
    if visit.update and visit.update.left:
        yield visit.update.left[1].name


def _values_kept(
    at: int,
    work: list[list[Item]],
    sends: list[list[Value]],
    layouts: Layouts,
    incremental: Mapping[Value, int],
    lasting: set[Value],
) -> tuple[Value, ...]:
    """List the values that exist after a superstep, are needed in a later one, and are no view's."""
    needed = {value for some in work[at + 1 :] for item in some for value in _values_needed(item, layouts)}
    needed |= {(name, form) for some in sends[at + 1 :] for name, _ in some for form in OWN}
    return tuple(sorted(value for value in needed - lasting if incremental.get(value, at + 1) <= at))


def _values_needed(item: Item, layouts: Layouts) -> set[Value]:
    """Collect the values that an item of work needs."""
    match item:
        case Statement(_, value):
            return _whole(value)
        case ViewPass(_, reads, update):
            halves = (update.u, update.v) if update else ()
            return set[Value]().union(*(_whole(matrix) for matrix in (*(read.factor for read in reads), *halves)))
        case Define(Statement(_, value), _, MatrixLayout.SUMMAND):
            (_, right), of = children(value), layouts.find_summed_rows(value)
            assert of
            return {(of.name, MatrixLayout.ROWS)} | values_needed_for_rows(right, layouts)
        case Define(Statement(_, value)):
            return values_needed_for_rows(value, layouts)
        case Fetch(view, form):
            return {(view, form)}
        case CompareDrift(looks):
            return {(name.name, MatrixLayout.WHOLE) for look in looks for name in (look.off, look.right)}
    raise AssertionError(item)


def _values_made(item: Item, layouts: Layouts) -> set[Value]:
    """Collect the values that an item of work produces."""
    match item:
        case Statement(name, _):
            return {(name.name, MatrixLayout.WHOLE)}
        case ViewPass(view, reads, update):
            by_shares = view.name in layouts.tall
            found = {
                (r.name.name, MatrixLayout.SUMMAND if by_shares and r.transposed else MatrixLayout.ROWS) for r in reads
            }
            left = update.left if update else None
            halves = (
                zip(left, (MatrixLayout.ROWS, MatrixLayout.SUMMAND if by_shares else MatrixLayout.ROWS), strict=True)
                if left
                else ()
            )
            return found | {(half.name, form) for half, form in halves}
        case Define(Statement(name, _), _, form):
            return {(name.name, form)}
    return set()


def values_needed_for_rows(value: Matrix, layouts: Layouts) -> set[Value]:
    """Collect the values that a partition needs for its rows of an expression."""
    match value:
        case Name(name) | Transpose(Name(name)) if name in layouts.summed:
            return {(name, MatrixLayout.WHOLE)}
        case Name(name):
            return {(name, MatrixLayout.ROWS)}
        case Transpose(Name(name)):
            return {(name, MatrixLayout.ROWS if name in layouts.symmetric else MatrixLayout.COLUMNS)}
        case Product((left, right)):
            return values_needed_for_rows(left, layouts) | _whole(right)
        case Sum(parts) | Stack(parts):
            return set[Value]().union(*(values_needed_for_rows(part, layouts) for part in parts))
        case Scale(_, of) | MainDiagonal(of):
            return values_needed_for_rows(of, layouts)
        case Entrywise() | RowDot():
            return set[Value]().union(*(values_needed_for_rows(part, layouts) for part in children(value)))
        case Fill() | Diagonal():
            return set()
    return _whole(value)


def _whole(value: Matrix) -> set[Value]:
    return {(name, MatrixLayout.WHOLE) for name in names(value)}
