"""Trigger program → physical plan: what each stage does, with pools and their indexes, and what it sends."""

from collections.abc import Iterator, Sequence
from collections.abc import Mapping as Map
from contextlib import suppress
from dataclasses import replace

from squallpy.base.errors import SquallError
from squallpy.base.rings import Payload, Ring
from squallpy.base.settings import JoinOperator
from squallpy.base.types import Kind
from squallpy.physical.access_paths import Indexes, Known, access
from squallpy.physical.distribute.heavy_keys import why_light, with_heavy
from squallpy.physical.distribute.initial_grids import SIDES, all_on_grid, grid_of
from squallpy.physical.distribute.location_tags import EVERYWHERE, RANDOM, Mark, Misplaced
from squallpy.physical.distribute.pinned_placements import fixed_places
from squallpy.physical.distribute.placement_search import choose_places
from squallpy.physical.distribute.program import ALL, Keyed, Place, Places, Switches, distributed
from squallpy.physical.distribute.single_transformer import Compute, Derivation, Step, Transfer
from squallpy.physical.joins.grid import Grid
from squallpy.physical.joins.groups import powers
from squallpy.physical.joins.mapping import Mapping, Side
from squallpy.physical.plan import (
    AuxiliaryPlan,
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
from squallpy.physical.unique_keys import unique_views
from squallpy.program.auxiliary.relation import AuxiliaryRelation
from squallpy.program.program import Program, Statement
from squallpy.program.views import View


def place(
    program: Program,
    partitions: int,
    sizes: Map[str, int],
    switches: Switches = ALL,
    wanted: Sequence[tuple[str, str]] = (),
    operator: JoinOperator = JoinOperator.AUTO,
) -> Plan:
    """The physical plan. `sizes` (rows by relation, 0 if unknown) decides where views are, unless keys are `wanted` for
    one, or an operator for all; SQ7001 and SQ7003 for those that cannot be."""
    fixed = fixed_places(program, wanted)
    try:
        places = all_on_grid(program, operator) | fixed if operator.is_grid else fixed
        grids = operator is JoinOperator.AUTO
        found = choose_places(program, sizes, partitions, places, grids) if partitions > 1 else None
    except Misplaced as reason:
        if operator.is_grid:
            raise _not_so(operator, wanted, str(reason)) from None
        told = ", ".join(f"partition.{name}={keys}" for name, keys in wanted)
        raise SquallError("SQ7003", f"{told}: no places for the other views go with that, {reason}") from None
    if found is None:
        return _in_one(program)
    plan = _spread(program, found, partitions, switches)
    grid, movable = grid_of(program, found, sizes, partitions, operator), _on_grid(plan, found)
    if operator is JoinOperator.HYBRID and not movable:
        raise _not_so(operator, wanted, "what a view has of a key is not all at the joiners of the key")
    plan = replace(plan, fixed=tuple(fixed), grid=grid, on_grid=movable if operator.adapts else (), operator=operator)
    return _watched(plan, found, switches) if operator is JoinOperator.AUTO else plan


def tuned(plan: Plan, epsilon: float, capacity: int | None = None, groups: bool = False) -> Plan:
    """The plan with what its controllers are told; a grid that may grow begins on one partition, or on two if only so
    it comes to be on as many as another would. SQ7003 for groups that grow."""
    if groups and capacity is not None:
        raise SquallError("SQ7003", "join.groups=on: only grids grow, and no groups", hint="leave join.capacity_mb out")
    plan = replace(plan, epsilon=epsilon)
    if plan.grid is None or not plan.on_grid:
        return plan
    if capacity is not None:
        first = Grid(Mapping(1, 1 << (plan.grid.joiners.bit_length() - 1) % 2))
        return replace(plan, capacity=capacity, grid=first)
    return replace(plan, groups=groups and len(powers(plan.partitions)) > 1 and _can_be_apart(plan))


def _can_be_apart(plan: Plan) -> bool:
    """Does every statement that looks up a view on the grid join with it one thing that is sent there? What is stored
    is in one group and what is sent comes to all: two stored might never meet, and two sent would meet in each."""
    sent = {send.name for stage in (plan.reading, *plan.stages) for send in stage.sends if send.side is not None}
    stored = {view.view for view in plan.on_grid}
    for update in (step for stage in plan.stages for step in stage.steps if isinstance(step, Update)):
        found = [step.source for step in update.steps if isinstance(step, Lookup)]
        if sent & set(found) or sum(source in stored for source in found) > (update.delta in sent):
            return False
    return True


def _not_so(operator: JoinOperator, wanted: Sequence[tuple[str, str]], reason: str) -> SquallError:
    """A query that an operator cannot be taken for."""
    told = ", ".join([f"join.operator={operator.value}", *(f"partition.{name}={keys}" for name, keys in wanted)])
    hint = "auto takes an operator that suits it"
    return SquallError("SQ7003", f"{told}: the query cannot be spread so, for {reason}", hint=hint)


def _watched(plan: Plan, places: Places, switches: Switches) -> Plan:
    """The plan with grids for heavy keys, if there may be any, and nothing else is sent for them; else why not."""
    light, but = why_light(plan.program, places), "grids for its heavy keys would take more exchanges"
    if plan.grid or plan.fixed:
        but = "what it makes goes to the grid" if plan.grid else "places of other views are set"
    for chosen in () if plan.grid or plan.fixed else with_heavy(plan.program, places):
        with suppress(Misplaced):
            other = _spread(plan.program, chosen, plan.partitions, switches)
            movable = _on_grid(other, chosen)
            if movable and _exchanges(other) == _exchanges(plan):
                plan, but = replace(other, on_grid=movable), "keys of another join have grids"
                break
    return replace(plan, light=tuple((name, why or but) for name, why in light.items()))


def _exchanges(plan: Plan) -> list[int]:
    """How many deltas each stage sends."""
    return [len(stage.sends) for stage in (plan.reading, *plan.stages)]


def _in_one(program: Program) -> Plan:
    """All in one partition, so that nothing has to be sent."""
    making = _Making(program)
    steps: list[Update | Derive] = []
    for trigger in program.triggers:
        if trigger.relation.name in making.auxiliary:
            steps.append(Derive(trigger.relation.name))
        steps += [making.update(s) for s in trigger.statements]
    sends = [Send(d.name, d.name, ()) for feed in making.feeds if not feed.auxiliary for d in feed.deltas]
    return making.plan(Stage((), tuple(sends)), (Stage(tuple(steps)),), {}, 1)


def _spread(program: Program, places: Places, partitions: int, switches: Switches) -> Plan:
    """Views at their places, and a stage between two exchanges."""
    making = _Making(program)
    reading, others = Stage(), list[Stage]()
    read = {delta.name for feed in making.feeds if not feed.auxiliary for delta in feed.deltas}
    for block in distributed(program, places, switches):
        if not block.moves:
            stage = Stage(tuple(making.step(step) for step in block.steps))
            if block.is_early:
                reading, read = stage, read | block.writes
            else:
                others.append(stage)
            continue
        moves = [making.send(step) for step in block.steps if isinstance(step, Transfer)]
        reading = replace(reading, sends=(*reading.sends, *(send for send in moves if send.source in read)))
        if later := tuple(send for send in moves if send.source not in read):
            if not others or others[-1].sends:
                others.append(Stage())
            others[-1] = replace(others[-1], sends=later)
    if not others and any(relation.op for relation in program.relations):
        others.append(Stage())  # where ledgers are
    return making.plan(reading, _keeping(reading, others, making), places, partitions)


def _on_grid(plan: Plan, places: Places) -> tuple[OnGrid, ...]:
    """The views on the grid; none if of one of them it cannot be told by its keys where a record is."""
    updates = [step for stage in plan.stages for step in stage.steps if isinstance(step, Update)]
    sends, found = {send.name: send for stage in (plan.reading, *plan.stages) for send in stage.sends}, []
    for name, side, key in _sides(places):
        adding = [update for update in updates if update.target == name]
        if not adding or not all(_as_sent(update, sends.get(update.delta), side, key) for update in adding):
            return ()
        found.append(OnGrid(name, tuple(dict.fromkeys(update.delta for update in adding)), side, key))
    return tuple(found)


def _as_sent(update: Update, send: Send | None, side: Side, key: tuple[int, ...]) -> bool:
    """Is a delta sent to where the records are to be that are made of it?"""
    if send is None or send.side is not side or send.by is None or update.keep is not None:
        return False
    by, compared = (tuple(update.variables[i] for i in some) for some in (send.by, send.key))
    return by == update.keys and compared == tuple(update.keys[i] for i in key)


def _sides(places: Places) -> Iterator[tuple[str, Side, tuple[int, ...]]]:
    """The views on a grid, their sides, and the positions of the key by which they have one, if they do."""
    for name, place in places.items():
        match place:
            case Mark.ROWS | Mark.COLUMNS:
                yield name, SIDES[place], ()
            case Keyed(side, by):
                yield name, SIDES[side], by


def _shown(place: Place) -> tuple[int, ...] | str:
    match place:
        case Mark():
            return place.value
        case Keyed(_, by):
            return by
    return place


def _keeping(reading: Stage, stages: list[Stage], making: "_Making") -> tuple[Stage, ...]:
    """The stages, with what each keeps for later ones."""
    auxiliary = {feed.relation.name: [d.name for d in feed.deltas] for feed in making.feeds}
    asked: list[set[str]] = []
    for stage in stages:
        updates = [step for step in stage.steps if isinstance(step, Update)]
        read = {name for u in updates for name in (u.delta, *(s.source for s in u.steps if isinstance(s, Lookup)))}
        asked.append(read | {send.source for send in stage.sends})
    here = {send.name for send in reading.sends}
    out = []
    for i, stage in enumerate(stages):
        here |= {
            name
            for step in stage.steps
            for name in ([step.target] if isinstance(step, Update) else auxiliary[step.relation])
        }
        kept = here & set().union(*asked[i + 1 :]) & making.passing
        out.append(replace(stage, keeps=tuple(sorted(kept))))
        here = kept | {send.name for send in stage.sends}
    return tuple(out)


def _can_check(unique: UniqueView, places: Places) -> bool:
    """True if some partition knows how many rows a key of the view has, and if they are counted, just one says so."""
    place = places.get(unique.view, ())
    return place is not RANDOM and (isinstance(place, tuple) or place is EVERYWHERE or not unique.skips)


class _Making:
    """A plan under way: what its statements turn out to need."""

    def __init__(self, program: Program) -> None:
        self._program, self._real = program, _real(program)
        self.indexes, self.known = Indexes(), Known(program)
        self.auxiliary: dict[str, AuxiliaryPlan] = {}
        for aux in program.auxiliary:
            self.auxiliary[aux.relation.name] = _auxiliary_plan(aux, program, self._real, self.indexes, self.auxiliary)
        self.feeds: list[Feed] = []
        self._made = {view.name: _pool(view, self._real) for view in program.views}
        for trigger in program.triggers:
            own = [_pool(d, self._real) for d in trigger.deltas]
            self._made |= {pool.name: pool for pool in own}
            payloads, rows = tuple(pool.payload for pool in own), self.auxiliary.get(trigger.relation.name)
            self.feeds.append(Feed(trigger.relation, _fields(trigger.deltas), trigger.deltas, payloads, rows))

    @property
    def passing(self) -> set[str]:
        """The names of what lives no longer than a batch."""
        return set(self._made) - {view.name for view in self._program.views}

    def send(self, step: Transfer) -> Send:
        """A transfer, whose outcome is like its source."""
        self._made[step.name] = replace(self._made[step.source], name=step.name)
        assert step.by is EVERYWHERE or isinstance(step.by, tuple), f"{step.name} is sent to {step.by}"
        side = None if step.side is None else SIDES[step.side]
        return Send(step.name, step.source, step.by if isinstance(step.by, tuple) else None, side, step.key)

    def step(self, step: Step) -> Update | Derive:
        """A statement as steps, or the change of an auxiliary relation."""
        if isinstance(step, Derivation):
            return Derive(step.relation, step.alone)
        assert isinstance(step, Compute)
        return replace(self.update(step.statement), keep=step.keep)

    def update(self, statement: Statement) -> Update:
        """A statement as steps; a product that lives no longer than the batch has the rings of what it multiplies."""
        target = statement.target
        if target not in self._made:
            refs = [ref for ref in statement.refs if not ref.row]
            lanes = zip(*([self._made[r.name].payload.rings[p] for p in r.picks] for r in refs), strict=True)
            self._made[target] = PoolPlan(target, statement.keys, Payload(tuple(map(max, lanes))))
        return access(statement, self.known, self.indexes)

    def plan(self, reading: Stage, stages: tuple[Stage, ...], places: Places, partitions: int) -> Plan:
        """The plan of these stages."""
        views, passing = [view.name for view in self._program.views], self.passing
        made = {name: PoolPlan(name, p.keys, p.payload, *self.indexes.of(name)) for name, p in self._made.items()}
        deltas = tuple(pool for name, pool in made.items() if name in passing)
        where = tuple((name, _shown(place)) for name, place in places.items())
        result, *pools = (made[name] for name in views)
        unique = tuple(u for u in unique_views(self._program) if not made[u.view].ordered and _can_check(u, places))
        return Plan(
            self._program, tuple(self.feeds), reading, stages, tuple(pools), deltas, result, partitions, where, unique
        )


def _real(program: Program) -> Ring:
    """The ring of all sums of doubles: SIGNED, which is wider, only where some are multiplied with each other."""
    lanes = [lane or () for view in program.views for term in view.terms for lane in term.lanes]
    product = any(sum(f.type.kind is Kind.DOUBLE for f in lane) > 1 for lane in lanes)
    return Ring.SIGNED if product else Ring.REAL


def _pool(view: View, real: Ring) -> PoolPlan:
    rings = tuple(real if ring is Ring.REAL else ring for ring in view.rings)
    return PoolPlan(view.name, view.keys, Payload(rings))


def _auxiliary_plan(
    aux: AuxiliaryRelation, program: Program, real: Ring, indexes: Indexes, known: Map[str, AuxiliaryPlan]
) -> AuxiliaryPlan:
    ref = aux.materialised
    indexes.records.add(ref.name)
    view = next(v for v in program.views if v.name == ref.name)
    source, output = replace(_pool(view, real), keys=ref.variables), aux.output.picked(ref.picks)
    found = aux.kind.index(source.keys, output)
    slice = indexes.slice(view.name, found.group) if found.sliced else -1
    order = -1 if found.order is None else indexes.order(view.name, found.order)
    context = tuple(known[name] for name in aux.kind.reads)
    return AuxiliaryPlan(source, output, aux.kind, found.group, slice, order, context)


def _fields(deltas: tuple[View, ...]) -> tuple[str, ...]:
    """The fields of a relation that its deltas read."""
    names = {name for d in deltas for atom in d.atoms for name, _ in atom.fields}
    relation = deltas[0].atoms[0].relation
    return tuple(f.name for f in relation.fields if f.name in names)
