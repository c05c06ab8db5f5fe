"""Planning of matrices: the programs that are maintained for a query, and the cells that it reads of them.

SELECT j, value FROM p16.D WHERE i IN (3, 7)   →   p16 without what D does not need; D, rows 3 and 7
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from squallpy.base.errors import SquallError
from squallpy.catalog.matrices import Matrix
from squallpy.catalog.relation import Relation
from squallpy.logical.expressions import MIRRORED, Call, Column, Expr, Literal, conjuncts, disjuncts
from squallpy.maintain.matrix.compile_triggers import Options, compile_program
from squallpy.maintain.matrix.matrix_program import MatrixProgram
from squallpy.maintain.matrix.script_programs import program_of_matrix, prune_program
from squallpy.physical.matrix.matrix_plan import ALL, Interval, MatrixPlan, MatrixProgramPlan, OutputReader, Some
from squallpy.physical.plan import Feed
from squallpy.program.calculus import Cmp
from squallpy.program.views import Monomial

LARGE = 1 << 30  # bytes of views from which on they are in blocks


def plan_matrices(
    feeds: Iterable[Feed],
    matrices: Mapping[str, Matrix],
    programs: Mapping[str, MatrixProgram],
    options: Options | None = None,
    by_rows: bool = False,
    place: str = "auto",
    partitions: int = 1,
    relations: Iterable[Relation] = (),
) -> MatrixPlan | None:
    """Plan the programs under the feeds that read matrices; None if none do. SQ7003 if they cannot be in blocks."""
    by_program: dict[str, list[OutputReader]] = {}
    for feed in feeds:
        if feed.relation.is_computed:
            program, _, output = feed.relation.name.rpartition(".")
            by_program.setdefault(program or output, []).append(cells_read(feed, output))
    program_plan = tuple(
        _compile_kept(name, readings, matrices, programs, options or Options()) for name, readings in by_program.items()
    )
    symbols = {symbol for k in program_plan for symbol in k.program.symbols()}
    used = {i.name.name for k in program_plan for i in k.program.inputs}
    used |= {name for name, m in matrices.items() if symbols & {m.rows, m.cols}}  # these say how large they are
    if not program_plan:
        return None
    plan = MatrixPlan(program_plan, {name: m for name, m in matrices.items() if name in used}, by_rows)
    plan = replace(plan, keyed=tuple(r for r in relations if r.is_keyed and r.name in plan.relations))
    return replace(plan, parts=partitions) if partitions > 1 and _in_blocks(plan, place) else plan


def _in_blocks(plan: MatrixPlan, place: str) -> bool:
    """True if the matrices are on the partitions."""
    rows = next(
        (program_plan.name for program_plan in plan.programs if plan.by_rows and not program_plan.program.ring.negates),
        None,
    )
    shares = next((matrix.name for matrix in plan.matrices.values() if matrix.shares), None)
    upserts = next((m.name for m in plan.matrices.values() if m.relation in {r.name for r in plan.keyed}), None)
    kept = rows or shares or upserts
    if place == "blocks" and kept:
        why = "for matrix.deletes=reevaluate" if rows else "to know its shares" if shares else "the last of each key"
        message = f"{kept} cannot be in blocks: its rows are kept, {why}"
        raise SquallError("SQ7003", message, hint="--set matrix.place=driver")
    return place == "blocks" or (place == "auto" and not kept and any(map(_large, plan.programs)))


def _large(program_plan: MatrixProgramPlan) -> bool:
    """True if a program's views are known to be too large for one process."""
    incremental = program_plan.compiled.maintained
    if incremental.program.symbols():
        return False
    return sum(view.rows.at({}) * view.cols.at({}) for view in incremental.stored) * 8 > LARGE


def _compile_kept(
    name: str,
    readings: Sequence[OutputReader],
    matrices: Mapping[str, Matrix],
    programs: Mapping[str, MatrixProgram],
    options: Options,
) -> MatrixProgramPlan:
    if name in programs:
        program = prune_program(programs[name], (reading.output for reading in readings))
    else:
        program = program_of_matrix(matrices[name], readings[0].relation)
    changing = [i.name.name for i in program.inputs if matrices[i.name.name].stream]
    compiled = compile_program(program, changing, {}, options, sorted(program.symbols()))
    return MatrixProgramPlan(name, program, compiled, tuple(readings))


def cells_read(feed: Feed, output: str) -> OutputReader:
    """Collect the cells that pass any of a feed's filters."""
    some: dict[str, Some] = {}
    for place in ("i", "j"):
        terms = [_indices_passing(term, place) for view in feed.deltas for term in view.terms]
        some[place] = _unite(interval for term in terms for interval in term)
    return OutputReader(feed.relation, output, some["i"], some["j"])


def _indices_passing(term: Monomial, place: str) -> Some:
    variables = [v for atom in term.atoms for name, v in atom.fields if name == place]
    some = ALL
    for factor in term.body if variables else ():
        if isinstance(factor, Cmp):
            some = _intersect(some, intervals(factor.predicate, variables[0]))
    return some


def intervals(predicate: Expr, variable: Column) -> Some:
    """Find the values of a variable for which a predicate can be TRUE, as far as that is easy to see.

    i IN (3, 7) AND j < i   →   [3, 3], [7, 7]        i >= 3 OR j = 1   →   all
    """
    if len(parts := conjuncts(predicate)) > 1:
        some = ALL
        for part in parts:
            some = _intersect(some, intervals(part, variable))
        return some
    if len(parts := disjuncts(predicate)) > 1:
        return _unite(interval for part in parts for interval in intervals(part, variable))
    match predicate:
        case Call("in", (Column() as column, *values)) if column == variable:
            return _unite((v.value, v.value) for v in values) if all(map(_whole, values)) else ALL  # type: ignore[union-attr]
        case Call(op, (Column() as column, Literal() as bound)) if column == variable and _whole(bound):
            return _compared(op, bound.value)
        case Call(op, (Literal() as bound, Column() as column)) if column == variable and _whole(bound):
            return _compared(MIRRORED.get(op, op), bound.value)
    return ALL


def _whole(expr: Expr) -> bool:
    return isinstance(expr, Literal) and expr.type.is_integer and expr.value is not None


def _compared(op: str, bound: int) -> Some:
    known: dict[str, Some] = {
        "=": ((bound, bound),), "<": ((None, bound - 1),), "<=": ((None, bound),), ">": ((bound + 1, None),),
        ">=": ((bound, None),),
    }  # fmt: skip
    return known.get(op, ALL)


def _unite(some: Iterable[Interval]) -> Some:
    """Unite intervals, in order, those that touch as one."""
    found: list[Interval] = []
    for low, high in sorted(some, key=lambda i: (i[0] is not None, i[0] or 0)):
        if found and _reaches(found[-1][1], low):
            last = found[-1][1]
            found[-1] = found[-1][0], None if last is None or high is None else max(last, high)
        else:
            found.append((low, high))
    return tuple(found)


def _reaches(high: int | None, low: int | None) -> bool:
    return high is None or low is None or low <= high + 1


def _intersect(some: Some, others: Some) -> Some:
    """Intersect intervals."""
    found: list[Interval] = []
    for a, b in some:
        for c, d in others:
            lows, highs = [x for x in (a, c) if x is not None], [x for x in (b, d) if x is not None]
            low, high = max(lows, default=None), min(highs, default=None)
            if low is None or high is None or low <= high:
                found.append((low, high))
    return _unite(found)
