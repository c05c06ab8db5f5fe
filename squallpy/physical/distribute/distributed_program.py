"""The blocks of statements and exchanges of a distributed trigger program, for all relations of a batch."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from functools import lru_cache
from math import inf
from types import MappingProxyType

from squallpy.base.records import dataclass
from squallpy.base.rings import Cofactor
from squallpy.logical.expressions import Column, Literal
from squallpy.physical.distribute.location_tags import (
    EVERYWHERE,
    LOCAL,
    RANDOM,
    SOURCE,
    Dist,
    HypercubeCells,
    Line,
    LocatedExpression,
    Location,
    Mark,
    PlacementError,
    Read,
)
from squallpy.physical.distribute.simplify_transformers import simplify_moves
from squallpy.physical.distribute.single_transformer import (
    Compute,
    Derivation,
    DistributedStep,
    RowDeltas,
    SingleTransformer,
    Transfer,
    Written,
    remove_dead_steps,
)
from squallpy.physical.distribute.statement_blocks import StatementBlock, fuse, one_block_each
from squallpy.physical.distribute.well_formed import evaluate_at_cells, make_well_formed
from squallpy.program.auxiliary.divided_rows import DividedRows
from squallpy.program.auxiliary.relation import AuxiliaryRelation
from squallpy.program.calculus import Assign
from squallpy.program.trigger_program import Statement, TriggerProgram


@dataclass(frozen=True, slots=True)
class KeyHashing:
    """Hashing by the view's join keys; the heavy ones by rows of their grids, or by columns."""

    side: Mark
    keys: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Spread:
    """Hashing by some of the view's keys over the first partitions only."""

    keys: tuple[int, ...]
    partitions: int


@dataclass(frozen=True, slots=True)
class CellPlacement:
    """Copies at all joiners of a hypercube with the same coordinates along some of its dimensions.

    Args:
        of: The number of the hypercube's dimensions.
        keys: For each dimension, the positions of the keys whose hash is the coordinate; () where that follows from
            fields that a view has summed away.
    """

    dimensions: tuple[int, ...]
    of: int
    keys: tuple[tuple[int, ...], ...] = ()


Placement = (
    tuple[int, ...] | Mark | KeyHashing | Spread | CellPlacement | DividedRows
)  # of a view: spread by those of its keys (by none: at one node), or a mark
Placements = Mapping[str, Placement]


@dataclass(frozen=True, slots=True)
class DistributionOptions:
    """Optimisations that can be switched off, to see what each is worth (Fig. 13)."""

    rules: bool = True
    shares_subexpressions: bool = True
    fuses_blocks: bool = True


ALL = DistributionOptions()


def distribute(
    program: TriggerProgram,
    places: Placements,
    switches: DistributionOptions = ALL,
    rows: RowDeltas = MappingProxyType({}),
    most_moves: float = inf,
) -> tuple[StatementBlock, ...]:
    """Distribute the program as blocks, first the statements computed where a batch is read, if there are any.

    The changes of a result without a placement stay where they arise: the driver adds them up. Raises PlacementError.

    Args:
        rows: The deltas that travel as rows.
        most_moves: PlacementError at the first statement with which more is moved than so many deltas.
    """
    return Distribution(program, switches, rows).blocks(places, most_moves=most_moves)


class Distribution:
    """A program under varying placements; the evaluation of a statement is cached by the placements it depends on."""

    def __init__(
        self, program: TriggerProgram, switches: DistributionOptions = ALL, rows: RowDeltas = MappingProxyType({})
    ) -> None:
        self._program, self._switches, self._rows = program, switches, rows
        self._auxiliary = {aux.relation.name: aux for aux in program.auxiliary}
        self._views = [view.name for view in program.views]
        self._results = {view.name for view in program.results}
        deltas = (delta for trigger in program.triggers for delta in trigger.deltas)
        views = (*program.views, *deltas, *(of_rows for _, of_rows in rows.values()))
        self._rings = {view.name: view.rings for view in views}
        self._adds_cofactors = any(isinstance(ring, Cofactor) for rings in self._rings.values() for ring in rings)
        self._memo: dict[tuple[int, tuple[Placement | None, ...]], LocatedExpression] = {}
        self._interned: Written = {}

    def blocks(
        self, places: Placements, views_stay: bool = False, most_moves: float = inf, most_rounds: float = inf
    ) -> tuple[StatementBlock, ...]:
        """Distribute the program under these placements; PlacementError where a limit shows that they are useless.

        Args:
            views_stay: No statement may move a view with every batch.
            most_moves: So many deltas may be moved.
            most_rounds: So many times a statement may wait for what is moved.
        """
        form = SingleTransformer(self._switches.shares_subexpressions, self._interned, self._rows)
        for trigger in self._program.triggers:
            aux = self._auxiliary.get(trigger.relation.name)
            at: dict[str, Placement] = {d.name: SOURCE for d in trigger.deltas}
            if aux:
                form.append(_derivation(aux, self._auxiliary, tuple(at), places))
                at = {d.name: _placement_of_auxiliary(aux, d.atoms[0].fields, d.keys, places) for d in trigger.deltas}
            for statement in trigger.statements:
                expression = self._expression(statement, places, at)
                if views_stay and expression.cost[0]:
                    raise PlacementError("a view would be moved with every batch")
                if expression.cost[1] > most_rounds:
                    raise PlacementError("a statement would wait for more exchanges than elsewhere")
                form.add(statement, expression)
                if form.moves > most_moves:
                    raise PlacementError("more would be moved than elsewhere")
                if statement.partial:
                    at[statement.target] = _placement_of(statement, expression.at)
        steps: tuple[DistributedStep, ...] = tuple(form.steps)
        if self._switches.shares_subexpressions:
            steps = remove_dead_steps(steps, self._views)
        early, rest = list[DistributedStep](), list[DistributedStep]()
        for step in steps:
            (early if isinstance(step, Compute) and step.at is SOURCE else rest).append(step)
        blocks = fuse(rest)
        if not _are_whole(blocks):
            raise PlacementError("the groups of an auxiliary relation change in one stage and are read in another")
        if not self._switches.fuses_blocks and _are_whole(unfused := one_block_each(rest)):
            blocks = unfused
        if self._adds_cofactors and self._has_gap(steps):
            raise PlacementError("a partial sum would be of features with others between them")
        if not _cancel_in_place(steps, places):
            raise PlacementError("a tuple would be added at one node and deleted at another")
        return (StatementBlock(tuple(early)), *blocks) if early else blocks

    def _has_gap(self, steps: Iterable[DistributedStep]) -> bool:
        """True if no ring is over the variables of what a step adds up."""
        rings = dict(self._rings)
        for step in steps:
            match step:
                case Transfer(name, source):
                    rings[name] = rings[source]
                case Compute(statement):
                    if statement.has_gap(rings.__getitem__):
                        return True
                    if statement.target not in rings:
                        rings[statement.target] = statement.rings(rings.__getitem__)
        return False

    def _expression(self, statement: Statement, places: Placements, deltas: Placements) -> LocatedExpression:
        """Choose the evaluation of a statement; `deltas` are the placements of its trigger's deltas."""
        found = [deltas[ref.name] if ref.name in deltas else places[ref.name] for ref in statement.refs]
        stays = statement.partial or (statement.target in self._results and statement.target not in places)
        to = None if stays else places[statement.target]
        key = (id(statement), (*found, to))  # NB: comparison of deep expressions takes long
        if (known := self._memo.get(key)) is None:
            reads = tuple(
                Read(ref, _at(ref.variables, place), ref.name in deltas)
                for ref, place in zip(statement.refs, found, strict=True)
            )
            target = None if to is None else _target(statement, to)
            if any(isinstance(at, HypercubeCells) for at in (target, *(read.at for read in reads))):
                cells = {ref.name: _at(ref.variables, places[ref.name]) for ref in statement.refs if ref.name in places}
                known = evaluate_at_cells(reads, cells, statement.keys, target, statement.partial)
            else:
                known = _evaluate_rules(reads, statement.keys, target, self._switches.rules)
            self._memo[key] = known
        return known


def _derivation(
    aux: AuxiliaryRelation, auxiliary: Mapping[str, AuxiliaryRelation], deltas: tuple[str, ...], places: Placements
) -> Derivation:
    source = aux.materialised.name
    context = tuple(auxiliary[name].materialised.name for name in aux.kind.reads)
    place = places[source]
    if not all(places[name] in (place, EVERYWHERE) for name in context):
        raise PlacementError("the other views that an auxiliary relation reads are placed elsewhere")
    divided = place if isinstance(place, DividedRows) else None
    return Derivation(aux.relation.name, source, deltas, context, place == (), divided)


def _are_whole(blocks: tuple[StatementBlock, ...]) -> bool:
    """True if a source view is changed in the stage that looks which of its groups were, and read as it was before no
    later."""
    changing, last = defaultdict[str, set[int]](set), dict[str, int]()
    for number, block in enumerate(blocks):
        for step in block.steps:
            for name in step.writes:
                changing[name].add(number)
            if isinstance(step, Compute):
                last |= {ref.row.relation: number for ref in step.statement.refs if ref.row and ref.row.is_before}
    return all(
        changing.get(step.source, set()) <= {number} and last.get(step.relation, number) <= number
        for number, block in enumerate(blocks)
        for step in block.steps
        if isinstance(step, Derivation)
    )


def _cancel_in_place(steps: tuple[DistributedStep, ...], places: Placements) -> bool:
    """True if each tuple of a view at RANDOM is added and removed at one node; otherwise its parts would never
    cancel."""
    found: dict[str, set[tuple[Location, tuple[int, ...] | None, int | None]]] = {}
    for step in steps:
        if isinstance(step, Compute) and places.get(step.statement.target) is RANDOM:
            found.setdefault(step.statement.target, set()).add((step.at, step.keep, step.workers))
    return all(len(ways) == 1 and RANDOM not in {at for at, *_ in ways} for ways in found.values())


@lru_cache(maxsize=4096)  # equal statements recur in several triggers and searches
def _evaluate_rules(
    reads: tuple[Read, ...], keys: tuple[Column, ...], target: Location | None, rules: bool
) -> LocatedExpression:
    first = make_well_formed(reads, keys, target)
    return simplify_moves(first) if rules else first


def _at(variables: tuple[Column, ...], place: Placement) -> Location:
    match place:
        case Mark.ROWS | Mark.COLUMNS:
            return Line(place, variables)
        case Mark():
            return place
        case KeyHashing(side, by):
            return Line(side, variables, tuple(variables[i] for i in by))
        case Spread(by, partitions):
            return Dist(tuple(variables[i] for i in by), partitions)
        case DividedRows():
            return EVERYWHERE
        case CellPlacement(dimensions, of, hashed):
            return HypercubeCells(dimensions, of, tuple(tuple(variables[i] for i in by) for by in hashed))
    return Dist(tuple(variables[i] for i in place))


def _target(statement: Statement, place: Placement) -> Location:
    """Find where a statement adds to a view at a placement."""
    if not isinstance(place, DividedRows) or not place.hashed:
        return _at(statement.keys, place)
    number = statement.keys[place.number]
    values = (f.value for f in statement.filters if isinstance(f, Assign) and f.variable == number)
    leaf = next((value.value for value in values if isinstance(value, Literal)), None)
    if not isinstance(leaf, int):
        raise PlacementError("rows of several leaves would be sent at once")
    by = place.keys_of(leaf)
    return EVERYWHERE if by is None else Dist(tuple(statement.keys[position] for position in by))


def _placement_of(statement: Statement, at: Location) -> Placement:
    """Find the placement of a partial product: where it arises."""
    if isinstance(at, Dist):
        by = tuple(statement.keys.index(v) for v in at.keys)
        return by if at.workers is None else Spread(by, at.workers)
    if isinstance(at, HypercubeCells):
        return CellPlacement(at.dimensions, at.of)
    assert isinstance(at, Mark), "partial products are not stored at several nodes"
    return at


def _placement_of_auxiliary(
    aux: AuxiliaryRelation, fields: tuple[tuple[str, Column], ...], keys: tuple[Column, ...], places: Placements
) -> Placement:
    """Find where the delta of an auxiliary relation comes about: where its view is, as far as its fields tell."""
    source = aux.materialised
    place = places[source.name]
    assert place not in (RANDOM, LOCAL), "the groups of an auxiliary relation have to be whole"
    if isinstance(place, DividedRows):
        by_title = {title: keys.index(v) for title, v in fields if v in keys}
        is_known = place.fields and by_title.keys() >= {*place.fields}
        return tuple(by_title[title] for title in place.fields) if is_known else RANDOM
    if isinstance(place, Mark):
        return place
    if isinstance(place, KeyHashing | CellPlacement):
        raise PlacementError("the groups of an auxiliary relation would be split")
    by = []
    for position in place.keys if isinstance(place, Spread) else place:
        printed = {title for title, expr in aux.output.items if expr == source.variables[position]}
        found = [keys.index(v) for title, v in fields if title in printed and v in keys]
        if not found:
            return RANDOM
        by.append(found[0])
    return Spread(tuple(by), place.partitions) if isinstance(place, Spread) else tuple(by)
