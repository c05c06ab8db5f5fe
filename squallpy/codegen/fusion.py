"""Statements that are done in the loop of another one: those that are its first steps, and add what these find.

    ΔL → slice M_O(o) → probe M_C(c) → add to Q(n)          for row in range(rows):
    ΔL → slice M_O(o) → add to M_OL(c)                          for i in range(length_of(m_o, …)):
                                                      →             …  add to M_OL(c)
                                                                    record = find(m_c, …)
                                                                    …  add to Q(n)

Source: fused triggers, `dbtoaster-batch-ivm` §5.1: a batch is read once, and so is what several statements look up.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace

from squallpy.base.records import dataclass
from squallpy.codegen.names import Lines
from squallpy.codegen.statement_code import StatementCode
from squallpy.logical.expressions import Column, Expr, substitute
from squallpy.physical.plan import FilterStep, Lookup, StatementStep, Update


@dataclass(frozen=True, slots=True)
class Part:
    """A statement that is done by the first steps of another one; `names` are its variables there, by id."""

    update: Update
    names: Mapping[int, Column]

    @property
    def steps(self) -> int:
        """Number of the steps that it has."""
        return len(self.update.steps)

    @property
    def picks(self) -> tuple[tuple[int, ...], ...]:
        """The lanes that it multiplies, of the delta and of each lookup that has a payload."""
        lookups = (step for step in self.update.steps if isinstance(step, Lookup) and not step.row)
        return (self.update.picks, *(step.picks for step in lookups))


@dataclass(frozen=True, slots=True)
class AddedRows:
    """Rows that a statement adds together: the names of where they are put, and how many there are.

    Args:
        touched: The pool in which the groups of the target are noted, if somebody has to know them; and its number.
    """

    update: Update
    target: str = "target"
    pool: str = "pool"
    added: str = "added"
    keys: str = "out_keys"
    words: str = "out_words"
    touched: str = ""
    noting: str = ""

    def add(self, lines: Lines) -> None:
        """Print that they are added to a target that has no sorted index, its groups noted before."""
        rows = f"{self.target}, {self.keys}, {self.words}, {self.added}, steps"
        if self.touched:
            lines(f"if add_noted_rows({self.touched}, {rows}, {self.noting}, {self.pool}) < 0:")
        else:
            lines(f"if add_rows({rows}, {self.pool}) < 0:")
        lines("    return -2")


def find_parts(
    whole: int, run: Sequence[tuple[Update, StatementCode]], fixed: Collection[str]
) -> Iterator[tuple[int, Part]]:
    """Yield the statements of a run that can be done by another one before them, each with its number.

    Args:
        run: Statements that run one after the other.
        fixed: Views that only a statement of its own can add to.
    """
    used, changed = set[str](), set[str]()  # by the statements from the whole on
    for number, (update, code) in enumerate(run):
        if number > whole and update.target not in fixed and not code.is_checked:
            is_apart = used.isdisjoint(code.added) and changed.isdisjoint(code.pools)
            if is_apart and (part := match(update, run[whole][0])):
                yield number, part
                continue  # NB: it is done where the whole is
        if number >= whole:
            used |= {*code.pools}
            changed |= {*code.added}


def match(part: Update, whole: Update) -> Part | None:
    """Find the steps of a statement among the first of another one."""
    if part.delta != whole.delta or not 0 < len(part.steps) <= len(whole.steps) or part.keep or whole.keep:
        return None
    names = dict(zip((v.id for v in part.variables), whole.variables, strict=True))
    for mine, theirs in zip(part.steps, whole.steps, strict=False):
        if not _is_same(mine, theirs, names):
            return None
    return Part(part, names)


def _is_same(mine: StatementStep, theirs: StatementStep, names: dict[int, Column]) -> bool:
    """True if a step does what another one does, whose variables then have names."""
    match mine, theirs:
        case FilterStep(predicate), FilterStep(other):
            renamed: dict[int, Expr] = {**names}
            return substitute(predicate, renamed) == other
        case Lookup(range=None), Lookup(range=None):
            known = [(at, names[v.id].id) for at, v in mine.bound_keys if v.id in names]
            if _lookup(mine) != _lookup(theirs) or known != [(at, v.id) for at, v in theirs.bound_keys]:
                return False
            names |= zip((v.id for v in _bindings(mine)), _bindings(theirs), strict=True)
            return True
    return False


def _lookup(step: Lookup) -> tuple[object, ...]:
    """Describe a lookup without its variables."""
    row = step.row and (step.row.relation, step.row.is_before, tuple(title for title, _ in step.row.fields))
    return step.source, step.method, step.index, row, tuple(position for position, _ in step.binds)


def _bindings(step: Lookup) -> tuple[Column, ...]:
    """List the variables that a lookup binds."""
    return (*(v for _, v in step.binds), *(v for _, v in (step.row.fields if step.row else ())))


def with_parts(whole: Update, parts: Sequence[Part]) -> Update:
    """Let the lookups of a statement bind what its parts read, too."""
    steps = list(whole.steps)
    for part in parts:
        for n, own in enumerate(part.update.steps):
            if isinstance(own, Lookup) and isinstance(there := steps[n], Lookup):
                read = {part.names[id].id for id in own.live if id in part.names}
                steps[n] = replace(there, live=there.live | read)
    return replace(whole, steps=tuple(steps))
