"""Views on a grid: which mapping they begin with.

Views at the rows of the grid are joined with views at its columns (`adaptive-online-joins` §3.1). What is known of the
sizes of their relations chooses the mapping; of nothing, the one in the middle.
"""

from collections.abc import Mapping
from enum import Enum

from squallpy.maintain.program import Program, View
from squallpy.physical.distribute.locations import COLUMNS, ROWS, Mark
from squallpy.physical.distribute.program import Place, Places
from squallpy.physical.joins.grid import Grid
from squallpy.physical.joins.mapping import Side, optimal, square

SIDES = {ROWS: Side.R, COLUMNS: Side.S}


class Operator(Enum):
    """How what is joined is spread (`adaptive-online-joins` §5)."""

    AUTO = "auto"  # by cost
    SHJ = "SHJ"
    STATIC_MID = "StaticMid"
    STATIC_OPT = "StaticOpt"
    DYNAMIC = "Dynamic"

    @property
    def is_grid(self) -> bool:
        """Is everything on a grid?"""
        return self not in (Operator.AUTO, Operator.SHJ)

    @property
    def adapts(self) -> bool:
        return self in (Operator.AUTO, Operator.DYNAMIC)


def all_on_grid(program: Program) -> dict[str, Place]:
    """Each view but the result by rows of the grid if it is of the first relation, else by columns."""
    first = program.relations[0].name
    return {view.name: side_of(view, first) for view in program.views[1:]}


def side_of(view: View, first: str) -> Mark:
    return ROWS if any(atom.relation.name == first for atom in view.atoms) else COLUMNS


def grid_of(
    program: Program, places: Places, sizes: Mapping[str, int], partitions: int, operator: Operator = Operator.AUTO
) -> Grid | None:
    """The mapping with the least input-load factor, or that in the middle, over as many partitions as are a power of
    two; None without views on a grid."""
    if not any(place in SIDES for place in places.values()):
        return None
    if operator in (Operator.STATIC_MID, Operator.DYNAMIC):
        return Grid(square(1 << (partitions.bit_length() - 1)))
    held = {side: sum(records(v, sizes) for v in program.views if places.get(v.name) is side) for side in SIDES}
    return Grid(optimal(1 << (partitions.bit_length() - 1), held[ROWS] or 1, held[COLUMNS] or 1))


def records(view: View, sizes: Mapping[str, int]) -> int:
    """No more than its largest relation has rows, has a view records."""
    return max((sizes.get(atom.relation.name, 0) for atom in view.atoms), default=0)


def share(mark: Mark, grid: Grid | None) -> float:
    """How much of what is there each node has."""
    return 1 / grid.mapping.cuts(SIDES[mark]) if grid and mark in SIDES else 1.0
