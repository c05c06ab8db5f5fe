"""Views on a grid: which mapping they begin with.

Views at the rows of the grid are joined with views at its columns (`adaptive-online-joins` §3.1). What is known of the
sizes of their relations chooses the mapping; of nothing, the one in the middle.
"""

from collections.abc import Mapping

from squallpy.base.settings import JoinOperator
from squallpy.logical.expressions import Column
from squallpy.physical.distribute.location_tags import COLUMNS, EVERYWHERE, ROWS, Mark, Misplaced
from squallpy.physical.distribute.program import Keyed, Place, Places
from squallpy.physical.joins.grid import Grid
from squallpy.physical.joins.mapping import Side, optimal, square
from squallpy.program.program import Program
from squallpy.program.views import Monomial, View

SIDES = {ROWS: Side.R, COLUMNS: Side.S}


def all_on_grid(program: Program, operator: JoinOperator) -> dict[str, Place]:
    """Each view but the result by rows of a grid if it is of the first stream, else by columns, one of tables alone
    everywhere; not those that auxiliary relations are made of, whose groups have to be whole. Raises Misplaced."""
    first, sources = first_of(program), {aux.materialised.name for aux in program.auxiliary}
    views = [view for view in program.views[1:] if view.name not in sources]
    found: dict[str, Place] = {view.name: EVERYWHERE for view in views}
    for view in views:
        if any(atom.relation.stream for atom in view.atoms):
            side = side_of(view, first)
            found[view.name] = Keyed(side, compared(view, program)) if operator is JoinOperator.HYBRID else side
    return found


def first_of(program: Program) -> str:
    """The stream, or the auxiliary relation, whose views are at the rows of a grid."""
    names = [atom.relation.name for atom in program.result.atoms if atom.relation.stream]
    return names[0] if names else program.relations[0].name


def compared(view: View, program: Program) -> tuple[int, ...]:
    """The positions of a view's keys that a join compares, in an order that all views have. Raises Misplaced."""
    found: dict[Column, set[tuple[str, str]]] = {}
    for term in program.result.terms:
        for v, fields in fields_of(term).items():
            found.setdefault(v, set()).update(fields)
    streams = {atom.relation.name for atom in program.result.atoms if atom.relation.stream}
    joined = sorted(sorted(fields) for fields in found.values() if len(streams & {name for name, _ in fields}) > 1)
    known = {(atom.relation.name, f): v for atom in view.atoms for f, v in atom.fields}
    keys = [next((known[field] for field in fields if field in known), None) for fields in joined]
    if not keys:
        raise Misplaced("no equality compares its streams")
    if not all(key in view.keys for key in keys):
        raise Misplaced(f"{view.name} has not all that is compared by equality")
    return tuple(view.keys.index(key) for key in keys if key)


def fields_of(term: Monomial) -> dict[Column, set[tuple[str, str]]]:
    """By variable: the fields that are equal to it."""
    found: dict[Column, set[tuple[str, str]]] = {}
    for atom in term.atoms:
        for f, v in atom.fields:
            found.setdefault(v, set()).add((atom.relation.name, f))
    return found


def side_of(view: View, first: str) -> Mark:
    return ROWS if any(atom.relation.name == first for atom in view.atoms) else COLUMNS


def grid_of(
    program: Program,
    places: Places,
    sizes: Mapping[str, int],
    partitions: int,
    operator: JoinOperator = JoinOperator.AUTO,
) -> Grid | None:
    """The mapping with the least input-load factor, or that in the middle, over as many partitions as are a power of
    two; None without views on a grid."""
    if not any(place in SIDES for place in places.values()):
        return None
    if operator in (JoinOperator.STATIC_MID, JoinOperator.DYNAMIC):
        return Grid(square(1 << (partitions.bit_length() - 1)))
    held = {side: sum(records(v, sizes) for v in program.views if places.get(v.name) is side) for side in SIDES}
    return Grid(optimal(1 << (partitions.bit_length() - 1), held[ROWS] or 1, held[COLUMNS] or 1))


def records(view: View, sizes: Mapping[str, int]) -> int:
    """No more than its largest relation has rows, has a view records."""
    return max((sizes.get(atom.relation.name, 0) for atom in view.atoms), default=0)


def share(mark: Mark, grid: Grid | None) -> float:
    """How much of what is there each node has."""
    return 1 / grid.mapping.cuts(SIDES[mark]) if grid and mark in SIDES else 1.0
