"""Views on a grid: which mapping they begin with.

Views at the rows of the grid are joined with views at its columns (`adaptive-online-joins` §3.1). What is known of the
sizes of their relations chooses the mapping; of nothing, the one in the middle.
"""

from collections.abc import Mapping

from squallpy.maintain.program import Program, View
from squallpy.physical.distribute.locations import COLUMNS, ROWS, Mark
from squallpy.physical.distribute.program import Places
from squallpy.physical.joins.grid import Grid
from squallpy.physical.joins.mapping import Side, optimal

SIDES = {ROWS: Side.R, COLUMNS: Side.S}


def grid_of(program: Program, places: Places, sizes: Mapping[str, int], partitions: int) -> Grid | None:
    """The mapping with the least input-load factor, over as many partitions as are a power of two; None without views
    on a grid."""
    if not any(place in SIDES for place in places.values()):
        return None
    held = {side: sum(records(v, sizes) for v in program.views if places.get(v.name) is side) for side in SIDES}
    return Grid(optimal(1 << (partitions.bit_length() - 1), held[ROWS] or 1, held[COLUMNS] or 1))


def records(view: View, sizes: Mapping[str, int]) -> int:
    """No more than its largest relation has rows, has a view records."""
    return max((sizes.get(atom.relation.name, 0) for atom in view.atoms), default=0)


def share(mark: Mark, grid: Grid | None) -> float:
    """How much of what is there each node has."""
    return 1 / grid.mapping.cuts(SIDES[mark]) if grid and mark in SIDES else 1.0
