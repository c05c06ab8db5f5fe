"""Placements of the views that hold the state of components, as a plan put together by hand pins them.

EquiJoin c_o of customer, orders: hash(o_custkey) on 2 partitions  →  M_CUSTOMER, M_ORDERS by o_custkey on 2 partitions

The state of a join is in the views of either input that no join below holds: views that read relations of one input
only. A view of relations of the other joins, too, which a join above makes for changes of an input, is spread alike.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise

from squallpy.base import pinned_component
from squallpy.base.errors import SquallError
from squallpy.base.pinned_component import PinnedComponent
from squallpy.base.records import dataclass
from squallpy.base.settings import JoinOperator
from squallpy.catalog.relation import Relation
from squallpy.logical.expressions import Column
from squallpy.physical.distribute.distributed_program import KeyHashing, Placement, Spread
from squallpy.physical.distribute.location_tags import COLUMNS, EVERYWHERE, ROWS, Mark
from squallpy.physical.distribute.pinned_placements import split_groups
from squallpy.program.trigger_program import TriggerProgram
from squallpy.program.views import View

RelationField = tuple[str, str]  # a relation's
EITHER = -1  # the side of a view that both inputs read


@dataclass(frozen=True, slots=True)
class ComponentPlacements:
    """The components of a plan with the views of their state, and the placements that follow from what is pinned.

    Args:
        views: The views of each component.
        pinned: The component that has pinned a view.
        operator: The operator of joins on grids, or with grids of heavy keys; AUTO if none is pinned.
        joiners: The partitions of the grid; 0: all.
    """

    views: tuple[tuple[PinnedComponent, tuple[str, ...]], ...]
    placements: Mapping[str, Placement]
    pinned: Mapping[str, PinnedComponent]
    operator: JoinOperator = JoinOperator.AUTO
    joiners: int = 0


def component_placements(
    program: TriggerProgram, components: Sequence[PinnedComponent], partitions: int
) -> ComponentPlacements:
    """Place the views of components as they are pinned; SQ7003 for what is impossible, or contradictory."""
    origins, views = _Origins(program), list[tuple[PinnedComponent, tuple[str, ...]]]()
    placements, pinned = dict[str, Placement](), dict[str, PinnedComponent]()
    for component in components:
        sides = ((view, _side_of(view, component, components, origins)) for view in program.stored)
        held = [(view, side) for view, side in sides if side is not None]
        views.append((component, tuple(view.name for view, _ in held)))
        if not component.partitioning:
            continue
        over = component.parallelism if component.parallelism < partitions else 0
        chosen = ((view.name, _place(view, side, component, program, origins, over)) for view, side in held)
        found = {name: place for name, place in chosen if place is not None}
        if not found:
            raise _nothing_to_place(component, [view for view, _ in held])
        for name, place in found.items():
            if placements.setdefault(name, place) != place:
                message = f"{pinned[name]} and {component} would partition {name} in two ways"
                raise SquallError("SQ7003", message, hint="pin one of them, or declare the stream twice")
            pinned.setdefault(name, component)
    operator, joiners = _choose_operator(components)
    joiners = min(joiners, partitions)
    return ComponentPlacements(tuple(views), placements, pinned, operator, joiners)


def _choose_operator(components: Iterable[PinnedComponent]) -> tuple[JoinOperator, int]:
    """Find the operator of all joins on grids, and their parallelism; SQ7003 if they differ."""
    moving = [c for c in components if c.operator and c.operator != JoinOperator.SHJ.value]
    for first, other in pairwise(moving):
        if (first.operator, first.parallelism) != (other.operator, other.parallelism):
            message = f"{first}: {first.choices}; {other}: {other.choices}: a plan has one grid"
            raise SquallError("SQ7003", message, hint="give them one operator and parallelism, or hash one of them")
    return (JoinOperator(moving[0].operator), moving[0].parallelism) if moving else (JoinOperator.AUTO, 0)


def _nothing_to_place(component: PinnedComponent, held: Sequence[View]) -> SquallError:
    """Make the error for choices that say nothing of any view."""
    views = ", ".join(f"{view.name}({', '.join(key.name for key in view.keys)})" for view in held)
    what = "it has no state of its own"
    if held and component.partitioning == pinned_component.HASH:
        what = f"its state, {views}, has not these keys"
    elif held:
        what = f"its state is {views} alone"
    return SquallError("SQ7003", f"{component}: {component.choices}: {what}", hint="leave its partitioning out")


def _side_of(
    view: View, component: PinnedComponent, components: Iterable[PinnedComponent], origins: "_Origins"
) -> int | None:
    """Find the input of a component that a view is state of; None if it is not its state."""
    read, alike = origins.relations(view), [c for c in components if c.is_join == component.is_join]
    for find in (_whole_input, _input_of):
        holders = [c for c in alike if find(read, c) is not None]
        if holders:
            is_lowest = not any(_is_below(each, component) for each in holders)
            return find(read, component) if component in holders and is_lowest else None
    return None


def _whole_input(read: frozenset[str], component: PinnedComponent) -> int | None:
    """Find the input of which a view reads all relations, EITHER if both have the same."""
    found = [side for side, names in enumerate(component.relations) if component.inputs and read == {*names}]
    return (EITHER if len(found) == 2 else found[0]) if found else None


def _input_of(read: frozenset[str], component: PinnedComponent) -> int | None:
    """Find the only input of which a view reads relations, beside those of other joins, EITHER if that is both."""
    if not component.is_join:
        return 0 if component.inputs and read <= {*component.relations[0]} else None
    left, right = (frozenset(names) for names in component.relations)
    if read <= left & right:
        return EITHER
    own = read - (left & right)
    return None if own & left and own & right else 0 if own & left else 1 if own & right else None


def _is_below(one: PinnedComponent, other: PinnedComponent) -> bool:
    """True if all that a component reads is under one input of another."""
    names = {name for names in one.relations for name in names}
    return one is not other and any(names <= {*each} for each in other.relations)


def _place(
    view: View, side: int, component: PinnedComponent, program: TriggerProgram, origins: "_Origins", over: int
) -> Placement | None:
    """Place a view as its component is pinned; None if that says nothing of it.

    Args:
        over: The partitions that it is hashed over, if they are not all; else 0.
    """
    auxiliary = [aux for aux in program.auxiliary if aux.materialised.name == view.name]
    if not component.is_join and not auxiliary:
        return None
    match component.partitioning:
        case pinned_component.HASH:
            by = _positions(view, component, origins)
            if by is None:
                return None
            if reason := split_groups(program, view, by):
                raise SquallError("SQ7003", f"{component}: {component.choices}: {reason[0]}", hint=reason[1])
            if component.operator == JoinOperator.HYBRID.value:
                own = origins.relations(view) <= {name for names in component.relations for name in names}
                return KeyHashing(_line(side, component), by) if own else None
            return Spread(by, over) if over else by
        case pinned_component.GRID:
            return None if auxiliary else _line(side, component)  # NB: groups have to stay whole
        case pinned_component.BROADCAST:
            read = origins.relations(view)
            return EVERYWHERE if read <= {*component.relations[component.broadcast]} else None
    return ()


def _line(side: int, component: PinnedComponent) -> Mark:
    """Place a view of an input at rows or columns of the grid."""
    if side == EITHER:
        message = f"{component}: {component.choices}: both of its inputs are {component.relations[0][0]}"
        raise SquallError("SQ7003", message, hint="declare it twice, as two streams")
    return (ROWS, COLUMNS)[side]


def _positions(view: View, component: PinnedComponent, origins: "_Origins") -> tuple[int, ...] | None:
    """Find the keys of a view that are hashed; None if it has not all of them."""
    fields = origins.fields(view)
    found = []
    for equal in component.fields:
        position = next((i for i, key in enumerate(view.keys) if fields.get(key, frozenset()) & {*equal}), None)
        if position is None:
            return None
        found.append(position)
    return tuple(dict.fromkeys(found))


class _Origins:
    """The streams and fields that views of a program are made of, through auxiliary relations."""

    def __init__(self, program: TriggerProgram) -> None:
        self._auxiliary = {aux.relation.name: aux for aux in program.auxiliary}
        self._views = {view.name: view for view in program.views}

    def relations(self, view: View) -> frozenset[str]:
        """List the streams and tables that a view reads."""
        return frozenset(name for atom in view.atoms for name in self._relations_of(atom.relation))

    def _relations_of(self, relation: Relation) -> Iterator[str]:
        aux = self._auxiliary.get(relation.name)
        yield from self.relations(self._views[aux.materialised.name]) if aux else (relation.source.name,)

    def fields(self, view: View) -> dict[Column, frozenset[RelationField]]:
        """Map the variables of a view to the fields that they are equal to."""
        found: dict[Column, frozenset[RelationField]] = {}
        for atom in view.atoms:
            below = self._fields_of_auxiliary(atom.relation.name)
            for field, variable in atom.fields:
                own = {(atom.relation.source.name, field)} if below is None else below.get(field, frozenset())
                found[variable] = found.get(variable, frozenset()) | own
        return found

    def _fields_of_auxiliary(self, name: str) -> dict[str, frozenset[RelationField]] | None:
        """Map the columns of an auxiliary relation to fields; None for a stream or table."""
        aux = self._auxiliary.get(name)
        if aux is None:
            return None
        source = self._views[aux.materialised.name]
        fields = self.fields(source)
        keys = dict(zip(aux.materialised.variables, source.keys, strict=True))
        return {
            title: fields.get(keys[expr], frozenset())
            for title, expr in aux.output.items
            if isinstance(expr, Column) and expr in keys
        }
