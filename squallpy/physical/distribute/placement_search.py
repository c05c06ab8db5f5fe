"""Placement of views by cost, starting from the rule of `dbtoaster-batch-ivm` §6.2.

The rule partitions a view on the primary key in its schema with most values, and keeps a view without one on one node.
From there, and from all views by one field, one view at a time is moved to the cheapest placement: an exchange costs a
round, then count the rows that the busiest node receives and processes; copies cost memory.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from math import inf

from squallpy.base.records import dataclass
from squallpy.base.rings import LaneRing, Payload
from squallpy.physical.distribute.distributed_program import CellPlacement, Distribution, Placement, distribute
from squallpy.physical.distribute.driver_block import ends_on_driver
from squallpy.physical.distribute.hypercube_placement import HypercubeJoin, find_hypercube_join, hypercube_of
from squallpy.physical.distribute.initial_grids import (
    fields_of,
    grid_of,
    max_records,
    row_stream,
    side_of,
    stored_fraction,
)
from squallpy.physical.distribute.location_tags import COLUMNS, EVERYWHERE, RANDOM, ROWS, Dist, Mark, PlacementError
from squallpy.physical.distribute.row_deltas import row_deltas
from squallpy.physical.distribute.single_transformer import Compute, Derivation, RowDeltas, Transfer
from squallpy.physical.distribute.statement_blocks import StatementBlock
from squallpy.physical.joins.grid import Grid
from squallpy.physical.joins.hypercube import Hypercube
from squallpy.program.auxiliary.divided_rows import DividedRows
from squallpy.program.auxiliary.relation import AuxiliaryRelation
from squallpy.program.trigger_program import Statement, TriggerProgram
from squallpy.program.views import View

BATCH = 100_000  # tuples of the batch whose cost is estimated
ROUND = 30_000.0  # fixed cost of an exchange, in rows sent
SEEDS = 4  # fields that the search starts from
IMPROVED = 3
TRIES = 1000  # statements placed again from each start
LONG = 8  # inputs of a statement from which on it counts as several
COPY = 0.02  # cost of a record that every node stores, in rows sent
WORK = 1.0  # cost of processing a row in a statement, in rows sent
SELECTIVITY = 1 / 3  # of an inequality
WORD = 0.03  # cost of a word of a row, besides that of the row, in rows sent


def choose_placements(
    program: TriggerProgram,
    sizes: Mapping[str, int],
    partitions: int,
    fixed: Mapping[str, Placement] | None = None,
    grids: bool = True,
    join: HypercubeJoin | None = None,
    is_set: bool = False,
) -> dict[str, Placement] | None:
    """Choose a placement for each view but the result; None if one partition alone is as good.

    `fixed` placements stay; `grids` allows views on a grid that are not fixed. PlacementError if nothing goes with
    the fixed ones.

    Args:
        join: The join that a hypercube suits, where it may have one.
        is_set: It has one, whatever the cost.
    """
    cost_of = _CostModel(program, sizes, partitions)
    equated, options = _list_choices(program, sizes, grids)
    options |= {name: (place,) for name, place in (fixed or {}).items()}
    if not options:  # NB: readers compute all of it
        return {}
    found = list(_starts(program, options, sizes, equated))
    if fixed:  # NB: the rule's placements may contradict them
        ends: tuple[Placement, ...] = (EVERYWHERE, ())
        found = [{**start, **fixed} for start in (*found, *(dict.fromkeys(options, end) for end in ends))]
    reads = [len(statement.refs) for trigger in program.triggers for statement in trigger.statements]
    tries = TRIES // max(1, len(reads), sum(reads) // LONG)
    one: dict[str, Placement] = dict.fromkeys(options, ())
    is_compared = fixed or (join and (is_set or join.has_theta))  # with others than with one partition
    count, most = (IMPROVED, inf) if tries else (1, inf if is_compared else cost_of(one))
    starts = _cheapest(found, cost_of, count, most)
    cost, best = min((_improve(*start, options, cost_of, tries) for start in starts), key=lambda found: found[0])
    if fixed:
        distribute(program, best)
        if cost == inf:
            raise PlacementError("a view would have to be sent with every batch")
        return best
    if join is not None:
        on_cube = {**best, **join.placements(program)}
        if is_set:
            distribute(program, on_cube)
            return on_cube
        if join.has_theta and _is_cheaper_on_cube(program, sizes, partitions, join, on_cube, best):
            return on_cube
    return best if cost < cost_of(one) else None


def compare_placements(
    program: TriggerProgram, sizes: Mapping[str, int], partitions: int, has_band: bool = False
) -> dict[str, float]:
    """Estimate what a batch costs, in rows sent, with the placements that the search begins with, and ends with.

    Infinity for those that are impossible.

    Args:
        has_band: The join on the grid may be by ranges of what a band compares, which copy little if values are even.
    """
    join = find_hypercube_join(program)
    if join is not None and not join.has_theta:
        join = None  # NB: a hypercube of equalities is only taken where it is set
    cost_of = _CostModel(program, sizes, partitions, join)
    equated, options = _list_choices(program, sizes)
    named = (f"all by {'.'.join(min(fields))}" for fields in equated)
    names = ("by the primary key with the most values", *named, "on a grid")
    starts = list(zip(names, _starts(program, options, sizes, equated), strict=True))
    one: dict[str, Placement] = dict.fromkeys(options, ())
    found = {name: cost_of(places) for name, places in starts} | {"in one partition": cost_of(one)}
    moved = choose_placements(program, sizes, partitions) or one
    found["from the best of these, one view at a time moved"] = cost_of(moved)
    if has_band:
        by_ranges = _CostModel(program, sizes, partitions, by_ranges=True)
        found["on ranges of what the band compares, if its values are even"] = by_ranges(dict(starts)["on a grid"])
    if join is not None:
        found["the same, on a hypercube"] = cost_of({**moved, **join.placements(program)})
    return found


def _is_cheaper_on_cube(
    program: TriggerProgram,
    sizes: Mapping[str, int],
    partitions: int,
    join: HypercubeJoin,
    on_cube: Mapping[str, Placement],
    best: Mapping[str, Placement],
) -> bool:
    """True if a hypercube costs less than other placements and than one partition.

    Placements differ in how many nodes process a copy, and in how many pairs are sent: both are estimated.
    """
    cost_of = _CostModel(program, sizes, partitions, join)
    return cost_of(on_cube) < min(cost_of(best), cost_of({**best, **dict.fromkeys(best, ())}))


def _cheapest(
    found: Sequence[dict[str, Placement]], cost_of: "_CostModel", count: int, most: float
) -> list[tuple[float, dict[str, Placement]]]:
    """Find the cheapest placements with their costs, the first ones of equal cost; infinity for some above `most`."""
    kept = list[tuple[float, int]]()
    for number in reversed(range(len(found))):  # NB: the rule's, which come first, may take longest to cost
        price = cost_of(found[number], min(most, kept[-1][0]) if len(kept) == count else most)
        kept = sorted([*kept, (price, number)])[:count]
    return [(price, found[number]) for price, number in kept]


def _improve(
    cost: float,
    places: dict[str, Placement],
    options: Mapping[str, tuple[Placement, ...]],
    cost_of: "_CostModel",
    left: int,
) -> tuple[float, dict[str, Placement]]:
    """Move one view at a time while that lowers the cost, within a bound on tries."""
    while True:
        before = cost
        for name, choices in options.items():
            for place in choices:
                tried = {**places, name: place}
                left -= place != places[name]
                if left >= 0 and place != places[name] and (found := cost_of(tried, cost)) < cost:
                    places, cost = tried, found
        if cost == before or left <= 0:
            return cost, places


def _list_choices(
    program: TriggerProgram, sizes: Mapping[str, int], grids: bool = True
) -> tuple[list[frozenset[tuple[str, str]]], dict[str, tuple[Placement, ...]]]:
    """List the classes of equated fields that the search starts from, and the placements of each view but results."""
    equated = _equated_fields(program, sizes)
    joined = {field for fields in equated if len(fields) > 1 for field in fields}
    derived = defaultdict[str, list[AuxiliaryRelation]](list)
    for aux in program.auxiliary:
        derived[aux.materialised.name].append(aux)
    return equated[:SEEDS], {v.name: tuple(_options(v, derived[v.name], joined, grids)) for v in program.stored}


def _options(
    view: View, auxiliary: Sequence[AuxiliaryRelation], joined: Collection[tuple[str, str]], grids: bool
) -> Iterator[Placement]:
    """List the placements of a view: by one of its join keys, or if there is none by all or any of its keys.

    The hash of all keys spreads the tuples of a frequent value. A view of `auxiliary` relations keeps its groups whole.
    """
    if not any(aux.is_indivisible for aux in auxiliary):
        whole = sorted({*range(len(view.keys))}.intersection(*(aux.keys_of_whole_groups for aux in auxiliary)))
        known = {v for atom in view.atoms for f, v in atom.fields if (atom.relation.name, f) in joined}
        equated = [i for i in whole if view.keys[i] in known]
        if not equated and len(whole) > 1:
            yield tuple(whole)
        yield from ((i,) for i in equated or whole)
        if grids and not equated and not auxiliary:
            yield from (ROWS, COLUMNS)
    divisions = [way for aux in auxiliary for way in aux.divisions]
    yield from divisions or (EVERYWHERE,)
    if auxiliary:
        yield ()
    elif len(view.terms) == 1:
        yield RANDOM


def _starts(
    program: TriggerProgram,
    options: Mapping[str, tuple[Placement, ...]],
    sizes: Mapping[str, int],
    equated: Iterable[frozenset[tuple[str, str]]],
) -> Iterator[dict[str, Placement]]:
    """Yield placements to start from: each view by its most distinct keys; then all by a field that many join."""
    keys = _key_values(program, sizes)
    views = {view.name: view for view in program.views}
    yield {
        name: max(choices, key=lambda place: _distinct_values(views[name], place, keys))
        for name, choices in options.items()
    }
    for fields in equated:
        yield {name: _by_field(views[name], fields, choices) for name, choices in options.items()}
    first = row_stream(program)
    yield {name: _on_grid(views[name], first, choices) for name, choices in options.items()}


def _on_grid(view: View, first: str, choices: tuple[Placement, ...]) -> Placement:
    """Place a view by rows of the grid if it reads the first relation, else by columns; everywhere if neither is
    allowed."""
    side = side_of(view, first)
    return side if side in choices else EVERYWHERE


def _key_values(program: TriggerProgram, sizes: Mapping[str, int]) -> dict[tuple[str, str], int]:
    """Bound the distinct values of key fields; a foreign key has no more than its relation has rows."""
    rows = {name.lower(): size for name, size in sizes.items()}
    values = {(r.name, key): sizes.get(r.name, 0) for r in program.relations for key in r.primary_key}
    for relation in program.relations:
        for reference in relation.references:
            for f in reference.fields:
                most = values.get((relation.name, f), sizes.get(relation.name, 0))
                values[relation.name, f] = min(most, rows.get(reference.relation.lower()) or most)
    return values


def _equated_fields(program: TriggerProgram, sizes: Mapping[str, int]) -> list[frozenset[tuple[str, str]]]:
    """List the classes of equated fields, those of most tuples first."""
    found: dict[tuple[str, str], set[tuple[str, str]]] = {}
    for term in (term for view in program.views for term in view.terms):
        for bound in fields_of(term).values():
            for one in bound:
                found.setdefault(one, set()).update(bound)
    classes = {frozenset(fields) for fields in found.values()}
    return sorted(classes, key=lambda c: (-sum(sizes.get(name, 0) for name, _ in c), sorted(c)))


def _by_field(view: View, fields: frozenset[tuple[str, str]], choices: tuple[Placement, ...]) -> Placement:
    """Place a view by one of the fields: everywhere if it has none, where its parts arise if it sums them away."""
    known = [v for atom in view.atoms for f, v in atom.fields if (atom.relation.name, f) in fields]
    for v in known:
        if v in view.keys and (place := (view.keys.index(v),)) in choices:
            return place
    return RANDOM if known and RANDOM in choices else EVERYWHERE


def _distinct_values(view: View, place: Placement, keys: Mapping[tuple[str, str], int]) -> float:
    """Count the distinct values of the key that a placement hashes by; negative for other placements."""
    if place is EVERYWHERE:
        return -1
    if not isinstance(place, tuple) or not place:
        return -2
    by = {view.keys[i] for i in place}
    return max((keys.get((a.relation.name, f), 0) for a in view.atoms for f, v in a.fields if v in by), default=0)


@dataclass(frozen=True)
class _CostModel:
    """The cost model of a batch, in rows sent.

    Args:
        join: The join that may be on a hypercube, whose pairs and copies are estimated; None: each row finds one
            partner, and nodes share the work.
        by_ranges: Rows and columns of the grid are ranges of even values, so that nothing is copied.
    """

    program: TriggerProgram
    sizes: Mapping[str, int]
    partitions: int
    join: HypercubeJoin | None = None
    by_ranges: bool = False
    row_deltas: RowDeltas = field(init=False)
    distribution: Distribution = field(init=False)
    views: Mapping[str, View] = field(init=False)
    fan_outs: Mapping[str, float] = field(init=False)
    memo: dict[tuple[Placement | None, ...], float] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "row_deltas", row_deltas(self.program))
        auxiliary = self.program.auxiliary
        object.__setattr__(self, "fan_outs", {aux.relation.name: aux.kind.fan_out for aux in auxiliary})
        object.__setattr__(self, "views", {view.name: view for view in self.program.views})
        object.__setattr__(self, "distribution", Distribution(self.program, rows=self.row_deltas))

    def __call__(self, places: Mapping[str, Placement], most: float = inf) -> float:
        """Compute the cost of placements once: several starts lead to the same ones.

        Args:
            most: Infinity may stand for a cost above it.
        """
        key = tuple(places.get(view.name) for view in self.program.views)
        if key not in self.memo:
            cost = self._compute_cost(places, most)
            if cost == inf > most:  # NB: it may have been left before its cost was known
                return inf
            self.memo[key] = cost
        return self.memo[key]

    def _compute_cost(self, places: Mapping[str, Placement], most: float) -> float:
        try:  # NB: the changes of a result go to the driver in a round that costs nothing
            blocks = self.distribution.blocks(places, views_stay=True, most_rounds=1 + most / ROUND)
        except PlacementError:
            return inf
        grid = grid_of(self.program, places, self.sizes, self.partitions)
        cube = hypercube_of(self.program, places, self.join, self.sizes, self.partitions)
        return self.of(blocks, grid, cube) + self._cost_of_copies(places, grid, cube)

    def _cost_of_copies(self, places: Mapping[str, Placement], grid: Grid | None, cube: Hypercube | None) -> float:
        """Compute the cost of copies of large views."""
        held = 0.0
        for view in self.program.views:
            place, fraction = places.get(view.name), 0.0
            if isinstance(place, CellPlacement):
                fraction = 1 / cube.cuts(place.dimensions) if cube else 1.0
            elif isinstance(place, DividedRows):
                terms = len(view.terms) or 1
                fraction = 1.0 - len(place.hashed) / terms * (1 - 1 / self.partitions)
            elif place in (EVERYWHERE, ROWS, COLUMNS):
                fraction = self._stored_fraction(place, grid)
            if fraction:
                row = _cost_of_row(len(view.keys), view.rings)
                held += row * max(1, max_records(view, self.sizes)) * fraction
        return COPY * held

    def of(self, blocks: tuple[StatementBlock, ...], grid: Grid | None = None, cube: Hypercube | None = None) -> float:
        rows, layouts, cost = dict(self._deltas()), dict(self._layouts()), 0.0
        touched: dict[str, float] = {}  # rows added to a view
        parts: dict[str, float] = {}  # of what is sent, at each node
        views = {view.name for view in self.program.views}
        exchanges = sum(block.moves for block in blocks) - ends_on_driver(blocks, self.program)
        cost += ROUND * exchanges
        for block in blocks:
            for step in block.steps:
                match step:
                    case Transfer(name, source):
                        rows[name] = rows.get(source, inf)  # a whole view
                        layouts[name] = layouts[source]
                        part = self._part_of(step, grid, cube)
                        cost += rows[name] * part * _cost_of_row(*layouts[name])
                        parts |= {name: part} if self.join else {}
                    case Compute(statement, at):
                        given = rows.get(statement.refs[0].name, inf)
                        made = given if statement.keys else min(given, self.partitions)
                        made *= self._pairs_of(statement) if self.join else 1.0
                        if statement.target in views:
                            touched[statement.target] = max(made, touched.get(statement.target, 0.0))
                        else:
                            rows[statement.target] = made
                            rings = statement.rings(lambda name: layouts[name][1])
                            layouts[statement.target] = len(statement.keys), rings
                        alone = at is EVERYWHERE or at == Dist(())
                        part = parts.get(statement.refs[0].name, 1.0 if alone else 1 / self.partitions)
                        cost += WORK * given * part
                    case Derivation(relation, source, deltas):
                        made = touched.get(source, 0.0) * self.fan_outs[relation]
                        rows |= dict.fromkeys(deltas, made)
                        if self.fan_outs[relation] > 1:
                            cost += WORK * made * (1 / self.partitions if step.divided else 1.0)
        return cost

    def _pairs_of(self, statement: Statement) -> float:
        """Estimate the rows that a statement makes of one: a third of a view for each inequality, one by an equality.

        Rows of a view that are summed away make no more of them.
        """
        first, *others = statement.refs
        known, pairs = {*first.variables}, 1.0
        for ref in others:
            new = {*ref.variables} - known
            if new == {*ref.variables} and new & {*statement.keys} and ref.name in self.views:
                compared = sum(bool(f.reads & new) for f in statement.filters)
                pairs *= max(1.0, max_records(self.views[ref.name], self.sizes) * SELECTIVITY**compared)
            known |= new
        return pairs

    def _part_of(self, transfer: Transfer, grid: Grid | None, cube: Hypercube | None) -> float:
        """Compute the part of the rows that a node receives."""
        if transfer.cells and cube:
            return 1 / cube.cuts(dimension for dimension, _ in transfer.cells)
        if transfer.side:
            return self._stored_fraction(transfer.side, grid)
        return 1.0 if transfer.keys in (EVERYWHERE, ()) else 1 / self.partitions

    def _stored_fraction(self, mark: Mark, grid: Grid | None) -> float:
        """Compute the part of a view that each node has."""
        return 1 / self.partitions if self.by_ranges and mark is not EVERYWHERE else stored_fraction(mark, grid)

    def _layouts(self) -> Iterator[tuple[str, tuple[int, tuple[LaneRing, ...]]]]:
        """List the number of keys and the rings of each view and delta."""
        deltas = (delta for trigger in self.program.triggers for delta in trigger.deltas)
        for view in (*self.program.views, *deltas, *(rows for _, rows in self.row_deltas.values())):
            yield view.name, (len(view.keys), view.rings)

    def _deltas(self) -> Iterator[tuple[str, float]]:
        total = sum(max(1, self.sizes.get(r.name, 0)) for r in self.program.relations)
        for trigger in self.program.triggers:
            fraction = max(1, self.sizes.get(trigger.relation.name, 0)) / total
            for delta in trigger.deltas:
                yield from ((d.name, BATCH * fraction) for d in self.row_deltas.get(delta.name, (delta,)))


def _cost_of_row(keys: int, rings: tuple[LaneRing, ...]) -> float:
    """Compute the cost of sending a row."""
    return 1 + WORD * (keys + Payload(rings).width)
