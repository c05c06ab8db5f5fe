"""The initial mapping of views on a grid.

Views at the rows of the grid are joined with views at its columns (`adaptive-online-joins` §3.1). Known sizes of their
relations determine the mapping; otherwise it is square.
"""

from collections.abc import Mapping

from squallpy.base.settings import JoinOperator
from squallpy.logical.expressions import Column
from squallpy.physical.distribute.distributed_program import KeyHashing, Placement, Placements
from squallpy.physical.distribute.location_tags import COLUMNS, EVERYWHERE, ROWS, Mark, PlacementError
from squallpy.physical.joins.grid import Grid
from squallpy.physical.joins.mapping import Side, find_best_mapping, find_square_mapping
from squallpy.program.trigger_program import TriggerProgram
from squallpy.program.views import Monomial, View

SIDES = {ROWS: Side.R, COLUMNS: Side.S}


def all_on_grid(program: TriggerProgram, operator: JoinOperator) -> dict[str, Placement]:
    """Place each view but the result by rows of a grid if it reads the first stream, else by columns.

    Views of tables alone are everywhere; views of auxiliary relations, whose groups have to stay whole, are left out.
    Raises PlacementError.
    """
    first, sources = row_stream(program), {aux.materialised.name for aux in program.auxiliary}
    views = [view for view in program.stored if view.name not in sources]
    found: dict[str, Placement] = {view.name: EVERYWHERE for view in views}
    for view in views:
        if any(atom.relation.stream for atom in view.atoms):
            side = side_of(view, first)
            found[view.name] = (
                KeyHashing(side, equated_keys(view, program)) if operator is JoinOperator.HYBRID else side
            )
    return found


def row_stream(program: TriggerProgram) -> str:
    """Name the stream, or the auxiliary relation, whose views are by rows of the grid."""
    names = [atom.relation.name for view in program.results for atom in view.atoms if atom.relation.stream]
    return names[0] if names else program.relations[0].name


def equated_keys(view: View, program: TriggerProgram) -> tuple[int, ...]:
    """List the positions of a view's keys that a join equates, in one order for all views. Raises PlacementError."""
    found: dict[Column, set[tuple[str, str]]] = {}
    for term in (term for result in program.results for term in result.terms):
        for v, fields in fields_of(term).items():
            found.setdefault(v, set()).update(fields)
    streams = {atom.relation.name for result in program.results for atom in result.atoms if atom.relation.stream}
    joined = sorted(sorted(fields) for fields in found.values() if len(streams & {name for name, _ in fields}) > 1)
    known = {(atom.relation.name, f): v for atom in view.atoms for f, v in atom.fields}
    keys = [next((known[field] for field in fields if field in known), None) for fields in joined]
    if not keys:
        raise PlacementError("no equality compares its streams")
    if not all(key in view.keys for key in keys):
        raise PlacementError(f"{view.name} has not all that is compared by equality")
    return tuple(view.keys.index(key) for key in keys if key)


def fields_of(term: Monomial) -> dict[Column, set[tuple[str, str]]]:
    """Map each variable to the fields equal to it."""
    found: dict[Column, set[tuple[str, str]]] = {}
    for atom in term.atoms:
        for f, v in atom.fields:
            found.setdefault(v, set()).add((atom.relation.name, f))
    return found


def side_of(view: View, first: str) -> Mark:
    return ROWS if any(atom.relation.name == first for atom in view.atoms) else COLUMNS


def grid_of(
    program: TriggerProgram,
    places: Placements,
    sizes: Mapping[str, int],
    partitions: int,
    operator: JoinOperator = JoinOperator.AUTO,
) -> Grid | None:
    """Choose the mapping with the least input-load factor, or the middle one; None without views on a grid.

    The grid spans the largest power of two of partitions.
    """
    if not any(place in SIDES for place in places.values()):
        return None
    if operator in (JoinOperator.STATIC_MID, JoinOperator.DYNAMIC):
        return Grid(find_square_mapping(1 << (partitions.bit_length() - 1)))
    held = {side: sum(max_records(v, sizes) for v in program.views if places.get(v.name) is side) for side in SIDES}
    return Grid(find_best_mapping(1 << (partitions.bit_length() - 1), held[ROWS] or 1, held[COLUMNS] or 1))


def max_records(view: View, sizes: Mapping[str, int]) -> int:
    """Bound a view's number of records by the rows of its largest relation; without keys it has one."""
    return max((sizes.get(atom.relation.name, 0) for atom in view.atoms), default=0) if view.keys else 1


def stored_fraction(mark: Mark, grid: Grid | None) -> float:
    """Compute the fraction of a view that each node stores."""
    return 1 / grid.mapping.cuts(SIDES[mark]) if grid and mark in SIDES else 1.0
