"""The planner: trigger program → physical plan, with the stages, their exchanges, and pools with their indexes."""

from collections.abc import Iterable, Iterator, Sequence
from collections.abc import Mapping as Map
from contextlib import suppress
from dataclasses import replace
from math import inf
from types import MappingProxyType

from squallpy.base.errors import SquallError
from squallpy.base.pinned_component import PinnedComponent
from squallpy.base.records import dataclass
from squallpy.base.rings import Cofactor, LaneRing, Payload, Ring
from squallpy.base.settings import JoinOperator
from squallpy.base.types import Kind
from squallpy.physical.access_paths import Indexes, ViewFacts, access
from squallpy.physical.band_joins import find_band
from squallpy.physical.distribute.component_placements import component_placements
from squallpy.physical.distribute.distributed_program import (
    ALL,
    CellPlacement,
    DistributionOptions,
    KeyHashing,
    Placement,
    Placements,
    Spread,
    distribute,
)
from squallpy.physical.distribute.driver_block import ends_on_driver
from squallpy.physical.distribute.heavy_key_placement import add_heavy_key_grids, why_light
from squallpy.physical.distribute.hypercube_placement import (
    HypercubeJoin,
    find_hypercube_join,
    hypercube_of,
    relation_sizes,
)
from squallpy.physical.distribute.initial_grids import SIDES, all_on_grid, grid_of
from squallpy.physical.distribute.location_tags import EVERYWHERE, RANDOM, Mark, PlacementError
from squallpy.physical.distribute.pinned_placements import pinned_placements
from squallpy.physical.distribute.placement_search import choose_placements
from squallpy.physical.distribute.result_placements import hashed_results
from squallpy.physical.distribute.row_deltas import row_deltas, with_row_deltas
from squallpy.physical.distribute.single_transformer import Compute, Derivation, DistributedStep, Transfer
from squallpy.physical.joins.grid import Grid
from squallpy.physical.joins.joiner_groups import powers_of_two
from squallpy.physical.joins.mapping import Mapping, Side
from squallpy.physical.plan import (
    DIVIDED,
    HYPERCUBE,
    AuxiliaryPlan,
    CubePlan,
    Derive,
    Feed,
    Lookup,
    OnGrid,
    Plan,
    PoolPlan,
    Send,
    Stage,
    UniqueView,
    Update,
)
from squallpy.physical.unique_views import unique_views
from squallpy.program.auxiliary.divided_rows import DividedRows
from squallpy.program.auxiliary.relation import AuxiliaryRelation
from squallpy.program.calculus import lifted
from squallpy.program.trigger_program import Statement, TriggerProgram
from squallpy.program.views import View

_CHOSEN = ("spreads", "pins", "components", "grid", "hypercube", "operator", "light")


def place(
    program: TriggerProgram,
    partitions: int,
    sizes: Map[str, int],
    switches: DistributionOptions = ALL,
    pinned: Sequence[tuple[str, str]] = (),
    operator: JoinOperator = JoinOperator.AUTO,
    compensated: bool = True,
    components: Sequence[PinnedComponent] = (),
    apart: Map[str, tuple[int, ...]] = MappingProxyType({}),
    moves: bool = False,
) -> Plan:
    """Place the views of a program and compile its statements to stages.

    Args:
        sizes: Rows by relation, 0 if unknown, from which placements follow.
        pinned: Placements that the user pinned; SQ7001 or SQ7003 for an impossible one.
        operator: The join operator for all views; SQ7003 if the query does not suit it.
        compensated: The sums in cofactor matrices are of double-doubles.
        components: Those of plans put together by hand; SQ7003 for choices that are impossible.
        apart: Results that partitions print if they are hashed by some of these keys.
        moves: State goes to other plans, which that of a hypercube cannot: there is none unless it is set.
    """
    by_hand = component_placements(program, components, partitions)
    fixed = pinned_placements(program, pinned)
    options = [f"partition.{name}={keys}" for name, keys in pinned]
    options += map(str, dict.fromkeys(by_hand.pinned.values()))
    if operator.is_grid and by_hand.operator not in (JoinOperator.AUTO, operator):
        message = f"join.operator={operator.value}: {', '.join(options)}: operators of components are set, too"
        raise SquallError("SQ7003", message, hint="leave it out")
    try:
        places = all_on_grid(program, operator) if operator.is_grid else {}
        places = {**places, **by_hand.placements, **fixed}
        grids, is_set = operator is by_hand.operator is JoinOperator.AUTO, operator is JoinOperator.HYPERCUBE
        join = find_hypercube_join(program) if ((grids and not moves) or is_set) and not places else None
        if is_set and not join:
            raise PlacementError("it has no join of three relations or more, each at one place in it")
        found = choose_placements(program, sizes, partitions, places, grids, join, is_set) if partitions > 1 else None
    except PlacementError as reason:
        if operator.is_grid or is_set:
            raise _unsuitable_operator(operator, options, str(reason)) from None
        message = f"{', '.join(options)}: no placement of the other views is possible with it: {reason}"
        raise SquallError("SQ7003", message) from None
    if found is None:
        return replace(_plan_on_one_partition(program, compensated), components=by_hand.views)
    used = operator if by_hand.operator is JoinOperator.AUTO else by_hand.operator
    plan = _plan_distributed(program, found, partitions, switches, compensated)
    grid = grid_of(program, found, sizes, by_hand.joiners or partitions, used)
    movable = _on_grid(plan, found)
    if used is JoinOperator.HYBRID and not movable:
        raise _unsuitable_operator(operator, options, "the records of a key are not all at the joiners of the key")
    pins = {name: f"set by {component}" for name, component in by_hand.pinned.items()}
    pins |= {name: f"partition.{name} is set" for name in fixed}
    plan = replace(
        plan,
        spreads=tuple((name, place.partitions) for name, place in found.items() if isinstance(place, Spread)),
        pins=tuple(pins.items()),
        components=by_hand.views,
        grid=grid,
        on_grid=_on_hypercube(program, found) or movable if used.adapts else (),
        hypercube=_plan_hypercube(program, found, join, sizes, partitions),
        operator=operator,
    )
    if plan.grid and plan.on_grid and used in (JoinOperator.AUTO, JoinOperator.RANGE):
        plan = replace(plan, band=find_band(plan))
    if used is JoinOperator.RANGE and plan.band is None:
        raise _unsuitable_operator(operator, options, "no band bounds the difference of two columns from both sides")
    if operator is JoinOperator.AUTO and plan.hypercube is None:
        plan = _with_heavy_key_grids(plan, found, switches, compensated)
    return _with_partitioned_results(plan, program, found, switches, compensated, apart) if apart else plan


def _plan_hypercube(
    program: TriggerProgram, places: Placements, join: HypercubeJoin | None, sizes: Map[str, int], partitions: int
) -> CubePlan | None:
    """Plan the hypercube that views are placed on, if there is one."""
    cube = hypercube_of(program, places, join, sizes, partitions)
    if cube is None or join is None:
        return None
    views = ((view.name, places.get(view.name)) for view in program.stored)
    on_it = tuple((name, place.dimensions) for name, place in views if isinstance(place, CellPlacement))
    relations = tuple((name, join.of(name)) for name in join.relations)
    known = relation_sizes(program, sizes)
    is_sized = all(known.get(name) for name in join.relations)
    dimensions, tickets = tuple((str(d), d.is_equality) for d in join.dimensions), tuple(join.tickets(program))
    return CubePlan(cube, dimensions, on_it, relations, tickets, is_sized)


def _on_hypercube(program: TriggerProgram, places: Placements) -> tuple[OnGrid, ...]:
    """List the views on a hypercube; none if a record's location does not follow from its keys in one of them."""
    placed = ((view.name, places.get(view.name)) for view in program.stored)
    found = [(name, place) for name, place in placed if isinstance(place, CellPlacement)]
    if not all(all(place.keys) for _, place in found):
        return ()
    return tuple(
        OnGrid(name, (), Side.R, cells=tuple(zip(place.dimensions, place.keys, strict=True))) for name, place in found
    )


def set_join_parameters(plan: Plan, epsilon: float, capacity: int | None = None, groups: bool = False) -> Plan:
    """Set the parameters of a plan's join controllers; SQ7003 for groups that grow.

    A grid that may grow begins on one partition, or on two if only so it can reach the number of partitions.
    """
    if groups and capacity is not None:
        message = "join.groups=on: groups of joiners cannot grow, only a single grid can"
        raise SquallError("SQ7003", message, hint="leave join.capacity_mb out")
    plan = replace(plan, epsilon=epsilon)
    if plan.grid is None or not plan.on_grid:
        return plan
    if (groups or capacity is not None) and plan.grid.joiners < powers_of_two(plan.partitions)[0]:
        option = "join.groups=on" if groups else "join.capacity_mb"
        message = f"{option}: a grid with a parallelism of its own neither grows nor has groups"
        raise SquallError("SQ7003", message, hint="leave one of them out")
    if (groups or capacity is not None) and plan.band is not None:
        if plan.operator is JoinOperator.RANGE:
            option = "join.groups=on" if groups else "join.capacity_mb"
            raise SquallError("SQ7003", f"{option}: ranges neither grow nor have groups", hint="leave it out")
        plan = replace(plan, band=None)
    if capacity is not None and plan.grid is not None:
        first = Grid(Mapping(1, 1 << (plan.grid.joiners.bit_length() - 1) % 2))
        return replace(plan, capacity=capacity, grid=first)
    return replace(plan, groups=groups and len(powers_of_two(plan.partitions)) > 1 and _can_use_groups(plan))


def _can_use_groups(plan: Plan) -> bool:
    """True if every statement joins at most one view on the grid with one delta that is sent there.

    A tuple is stored in one group and sent to all: two stored ones might never meet, two sent ones would meet in each.
    """
    sent = {send.name for stage in (plan.reading, *plan.stages) for send in stage.sends if send.side is not None}
    stored = {view.view for view in plan.on_grid}
    for update in (step for stage in plan.stages for step in stage.steps if isinstance(step, Update)):
        found = [step.source for step in update.steps if isinstance(step, Lookup)]
        if sent & set(found) or sum(source in stored for source in found) > (update.delta in sent):
            return False
    return True


def _unsuitable_operator(operator: JoinOperator, options: Sequence[str], reason: str) -> SquallError:
    """Make the error for a query that does not suit the operator."""
    set_ = ", ".join([*([] if operator is JoinOperator.AUTO else [f"join.operator={operator.value}"]), *options])
    hint = "auto chooses an operator that suits it"
    return SquallError("SQ7003", f"{set_}: it does not suit this query: {reason}", hint=hint)


def _with_heavy_key_grids(plan: Plan, places: Placements, switches: DistributionOptions, compensated: bool) -> Plan:
    """Add grids for heavy keys if there may be any and they cost no exchange; otherwise note why not."""
    light, default_reason = why_light(plan.program, places), "grids for its heavy keys would take more exchanges"
    if plan.grid or plan.pinned_pools:
        default_reason = "its output goes to the grid" if plan.grid else "placements of other views are set"
    most = sum(_exchanges(plan))
    for chosen in () if plan.grid or plan.pinned_pools else add_heavy_key_grids(plan.program, places):
        with suppress(PlacementError):
            other = _plan_distributed(plan.program, chosen, plan.partitions, switches, compensated, most)
            movable = _on_grid(other, chosen)
            if movable and _exchanges(other) == _exchanges(plan):
                plan, default_reason = replace(other, on_grid=movable), "keys of another join have grids"
                break
    return replace(plan, light=tuple((name, why or default_reason) for name, why in light.items()))


def _with_partitioned_results(
    plan: Plan,
    program: TriggerProgram,
    places: Placements,
    switches: DistributionOptions,
    compensated: bool,
    apart: Map[str, tuple[int, ...]],
) -> Plan:
    """Let partitions keep and print results that can be hashed by their keys, but none beside grids of joiners."""
    hashed = hashed_results(distribute(program, places, switches, row_deltas(program)), apart)
    if plan.on_grid or plan.driver or not hashed:
        return plan
    other = _plan_distributed(program, {**places, **hashed}, plan.partitions, switches, compensated)
    found = {name: getattr(plan, name) for name in _CHOSEN}
    return replace(other, partitioned=tuple(hashed), **found)


def _exchanges(plan: Plan) -> list[int]:
    """Count the deltas that each stage sends."""
    return [len(stage.sends) for stage in (plan.reading, *plan.stages)]


def _plan_on_one_partition(program: TriggerProgram, compensated: bool) -> Plan:
    """Plan all in one partition, without exchanges."""
    builder = _PlanBuilder(program, compensated)
    steps: list[Update | Derive] = []
    for trigger in program.triggers:
        if trigger.relation.name in builder.auxiliary:
            steps.append(Derive(trigger.relation.name))
        steps += [builder.update(s) for s in trigger.statements]
    sends = [Send(d.name, d.name, ()) for feed in builder.feeds if not feed.auxiliary for d in feed.deltas]
    return builder.plan(Stage((), tuple(sends)), (Stage(tuple(steps)),), {}, 1)


def _plan_distributed(
    program: TriggerProgram,
    places: Placements,
    partitions: int,
    switches: DistributionOptions,
    compensated: bool,
    most_moves: float = inf,
) -> Plan:
    """Plan views at their placements, with a stage between two exchanges."""
    rows = row_deltas(program)
    blocks = distribute(program, places, switches, rows, most_moves)
    builder = _PlanBuilder(with_row_deltas(program, rows, blocks), compensated)
    reading, others = Stage(), list[Stage]()
    read = {delta.name for feed in builder.feeds if not feed.auxiliary for delta in feed.deltas}
    for block in blocks:
        if not block.moves:
            stage = Stage(tuple(builder.step(step) for step in block.steps))
            if block.is_early:
                reading, read = stage, read | block.writes
            else:
                others.append(stage)
            continue
        moves = [builder.send(step) for step in block.steps if isinstance(step, Transfer)]
        reading = replace(reading, sends=(*reading.sends, *(send for send in moves if send.source in read)))
        if later := tuple(send for send in moves if send.source not in read):
            if not others or others[-1].sends:
                others.append(Stage())
            others[-1] = replace(others[-1], sends=later)
    if not others and any(relation.has_deletes for relation in program.relations):
        others.append(Stage())  # where ledgers are
    driver = others.pop() if ends_on_driver(blocks, program) else None
    plan = builder.plan(reading, _with_kept_deltas(reading, others, builder), places, partitions)
    travelling = frozenset(delta.name for _, delta in rows.values())
    feeds = tuple(replace(feed, row_deltas=travelling & {d.name for d in feed.deltas}) for feed in plan.feeds)
    return replace(plan, program=program, feeds=feeds, driver=driver)


def _on_grid(plan: Plan, places: Placements) -> tuple[OnGrid, ...]:
    """List the views on the grid; none if a record's location does not follow from its keys in one of them."""
    updates = [step for stage in plan.stages for step in stage.steps if isinstance(step, Update)]
    sends, found = {send.name: send for stage in (plan.reading, *plan.stages) for send in stage.sends}, []
    for name, side, key in _views_on_grid(places):
        adding = [update for update in updates if update.target == name]
        if not adding or not all(_follows_keys(update, sends.get(update.delta), side, key) for update in adding):
            return ()
        found.append(OnGrid(name, tuple(dict.fromkeys(update.delta for update in adding)), side, key))
    return tuple(found)


def _follows_keys(update: Update, send: Send | None, side: Side, key: tuple[int, ...]) -> bool:
    """True if the delta is sent to where the records made of it are stored."""
    if send is None or send.side is not side or send.keys is None or update.keep is not None:
        return False
    by, compared = (tuple(update.variables[i] for i in some) for some in (send.keys, send.key))
    return by == update.keys and compared == tuple(update.keys[i] for i in key)


def _views_on_grid(places: Placements) -> Iterator[tuple[str, Side, tuple[int, ...]]]:
    """List the views on a grid with their sides and the positions of their join keys, if those have grids."""
    for name, place in places.items():
        match place:
            case Mark.ROWS | Mark.COLUMNS:
                yield name, SIDES[place], ()
            case KeyHashing(side, by):
                yield name, SIDES[side], by


def _placement_value(place: Placement) -> tuple[int, ...] | str:
    match place:
        case Mark():
            return place.value
        case KeyHashing(_, by) | Spread(by):
            return by
        case CellPlacement():
            return HYPERCUBE
        case DividedRows():
            return DIVIDED if place.hashed else EVERYWHERE.value
    return place


def _with_kept_deltas(reading: Stage, stages: list[Stage], builder: "_PlanBuilder") -> tuple[Stage, ...]:
    """Add to each stage the deltas that it keeps for later ones."""
    auxiliary = {feed.relation.name: [d.name for d in feed.deltas] for feed in builder.feeds}
    read_by_stage: list[set[str]] = []
    for stage in stages:
        updates = [step for step in stage.steps if isinstance(step, Update)]
        read = {name for u in updates for name in (u.delta, *(s.source for s in u.steps if isinstance(s, Lookup)))}
        read_by_stage.append(read | {send.source for send in stage.sends})
    available = {send.name for send in reading.sends}
    out = []
    for i, stage in enumerate(stages):
        available |= {
            name
            for step in stage.steps
            for name in ([step.target] if isinstance(step, Update) else auxiliary[step.relation])
        }
        needed = available & set().union(*read_by_stage[i + 1 :]) & builder.passing
        out.append(replace(stage, keeps=tuple(sorted(needed))))
        available = needed | {send.name for send in stage.sends}
    return tuple(out)


def _can_check(unique: UniqueView, places: Placements) -> bool:
    """True if some partition knows how many rows a key of the view has, and if they are counted, just one says so."""
    place = places.get(unique.view, ())
    return place is not RANDOM and (isinstance(place, tuple | Spread) or place is EVERYWHERE or not unique.skips)


class _PlanBuilder:
    """A plan under construction, with the indexes that its statements turn out to need."""

    def __init__(self, program: TriggerProgram, compensated: bool) -> None:
        self._program, self._rings = program, _Rings.of(program, compensated)
        self.indexes, self.known = Indexes(), ViewFacts(program)
        self.auxiliary: dict[str, AuxiliaryPlan] = {}
        for aux in program.auxiliary:
            plan = _auxiliary_plan(aux, program, self._rings, self.indexes, self.auxiliary)
            self.auxiliary[aux.relation.name] = plan
        self.feeds: list[Feed] = []
        self._pools = {view.name: self._rings.pool(view) for view in program.views}
        for trigger in program.triggers:
            own = [self._rings.pool(d) for d in trigger.deltas]
            self._pools |= {pool.name: pool for pool in own}
            payloads, rows = tuple(pool.payload for pool in own), self.auxiliary.get(trigger.relation.name)
            self.feeds.append(Feed(trigger.relation, _fields(trigger.deltas), trigger.deltas, payloads, rows))

    @property
    def passing(self) -> set[str]:
        """Names of deltas and products, which live no longer than a batch."""
        return set(self._pools) - {view.name for view in self._program.views}

    def send(self, step: Transfer) -> Send:
        """Plan a transfer, whose outcome has the layout of its source."""
        self._pools[step.name] = replace(self._pools[step.source], name=step.name)
        assert step.keys is EVERYWHERE or isinstance(step.keys, tuple), f"{step.name} is sent to {step.keys}"
        side = None if step.side is None else SIDES[step.side]
        keys = step.keys if isinstance(step.keys, tuple) else None
        return Send(step.name, step.source, keys, side, step.key, step.workers, step.cells)

    def step(self, step: DistributedStep) -> Update | Derive:
        """Compile a statement, or the derivation of an auxiliary relation."""
        if isinstance(step, Derivation):
            return Derive(step.relation, step.is_alone, step.divided)
        assert isinstance(step, Compute)
        return replace(self.update(step.statement), keep=step.keep, partitions=step.workers)

    def update(self, statement: Statement) -> Update:
        """Compile a statement; the rings of a product that lives no longer than the batch are those of its factors."""
        target = statement.target
        if target not in self._pools:
            rings = statement.rings(lambda name: self._pools[name].payload.rings)
            self._pools[target] = PoolPlan(target, statement.keys, self._rings.payload(rings))
        return access(statement, self.known, self.indexes)

    def plan(self, reading: Stage, stages: tuple[Stage, ...], places: Placements, partitions: int) -> Plan:
        """Assemble the plan of these stages."""
        passing = self.passing
        planned = {name: self.indexes.add_to(pool) for name, pool in self._pools.items()}
        deltas = tuple(pool for name, pool in planned.items() if name in passing)
        where = tuple((name, _placement_value(place)) for name, place in places.items() if name not in passing)
        results = tuple(planned[view.name] for view in self._program.results)
        pools = tuple(planned[view.name] for view in self._program.stored)
        unique = tuple(
            u for u in unique_views(self._program) if not planned[u.view].is_ordered and _can_check(u, places)
        )
        return Plan(
            self._program, tuple(self.feeds), reading, stages, pools, deltas, results, partitions, where, unique
        )


@dataclass(frozen=True, slots=True)
class _Rings:
    """The rings for the sums of doubles of a program.

    Args:
        real: SIGNED, which is wider than REAL, only where some are multiplied with each other.
        compensated: Cofactor matrices are of double-doubles.
    """

    real: Ring
    compensated: bool

    @staticmethod
    def of(program: TriggerProgram, compensated: bool) -> "_Rings":
        lanes = [lane or () for view in program.views for term in view.terms for lane in term.lanes]
        product = any(sum(f.type.kind is Kind.DOUBLE and not lifted(f) for f in lane) > 1 for lane in lanes)
        return _Rings(Ring.SIGNED if product else Ring.REAL, compensated)

    def pool(self, view: View) -> PoolPlan:
        return PoolPlan(view.name, view.keys, self.payload(view.rings))

    def payload(self, rings: Iterable[LaneRing]) -> Payload:
        return Payload(tuple(map(self._choose, rings)))

    def _choose(self, ring: LaneRing) -> LaneRing:
        if isinstance(ring, Cofactor):
            return replace(ring, compensated=self.compensated)
        return self.real if ring is Ring.REAL else ring


def _auxiliary_plan(
    aux: AuxiliaryRelation, program: TriggerProgram, rings: _Rings, indexes: Indexes, known: Map[str, AuxiliaryPlan]
) -> AuxiliaryPlan:
    ref = aux.materialised
    indexes.records.add(ref.name)
    view = next(v for v in program.views if v.name == ref.name)
    source, output = replace(rings.pool(view), keys=ref.variables), aux.output.with_lanes(ref.picks)
    found = aux.kind.index(source.keys, output)
    slice = indexes.slice(view.name, found.group) if found.is_sliced else -1
    order = -1 if found.order is None else indexes.order(view.name, found.order)
    context = tuple(known[name] for name in aux.kind.reads)
    return AuxiliaryPlan(source, output, aux.kind, found.group, slice, order, context)


def _fields(deltas: tuple[View, ...]) -> tuple[str, ...]:
    """List the fields of a relation that its deltas read."""
    names = {name for d in deltas for atom in d.atoms for name, _ in atom.fields}
    relation = deltas[0].atoms[0].relation
    return tuple(f.name for f in relation.fields if f.name in names)
