"""Trigger program → physical plan: access paths, pools with their slices, and the routing of deltas."""

from collections.abc import Mapping
from dataclasses import replace

from squallpy.base.rings import Payload, Ring
from squallpy.base.types import Kind
from squallpy.logical.expressions import Column, columns
from squallpy.maintain.program import Nest, Program, Ref, Statement, View
from squallpy.maintain.relational.calculus import Assign, Cmp, Factor
from squallpy.physical.plan import Feed, Let, Lookup, Nested, Plan, PoolPlan, Route, Step, Update, Where
from squallpy.physical.route import choose_routes


def place(program: Program, partitions: int, sizes: Mapping[str, int]) -> Plan:
    """The physical plan. `sizes` (rows by relation, 0 if unknown) decides what is partitioned."""
    routes = choose_routes(program, sizes)
    if partitions == 1 or not routes:
        routes, partitions = {}, 1
    real = _real(program)
    slices: dict[str, list[tuple[int, ...]]] = {}
    nested = {nest.relation.name: _nested(nest, program, real, slices) for nest in program.nests}
    feeds, updates, deltas = [], [], []
    for trigger in program.triggers:
        route = routes.get(trigger.relation.name, Route(None))
        own = [_pool(d, d.name, real) for d in trigger.deltas]
        payloads = tuple(d.payload for d in own)
        fields = _fields(trigger.deltas, route)
        feeds.append(Feed(trigger.relation, fields, trigger.deltas, payloads, route, nested.get(trigger.relation.name)))
        updates.append(tuple(_access(s, program, slices) for s in trigger.statements))
        deltas += own
    pools = tuple(_pool(v, v.name, real, tuple(slices.get(v.name, ()))) for v in program.views[1:])
    deltas = [replace(d, slices=tuple(slices.get(d.name, ()))) for d in deltas]
    return Plan(
        program, tuple(feeds), tuple(updates), pools, tuple(deltas), _pool(program.result, "Q", real), partitions
    )


def _real(program: Program) -> Ring:
    """The ring of all sums of doubles: SIGNED, which is wider, only where some are multiplied with each other."""
    lanes = [lane or () for view in program.views for term in view.terms for lane in term.lanes]
    product = any(sum(f.type.kind is Kind.DOUBLE for f in lane) > 1 for lane in lanes)
    return Ring.SIGNED if product else Ring.REAL


def _pool(view: View, name: str, real: Ring, slices: tuple[tuple[int, ...], ...] = ()) -> PoolPlan:
    rings = tuple(real if ring is Ring.REAL else ring for ring in view.rings)
    return PoolPlan(name, view.keys, Payload(rings), slices)


def _nested(nest: Nest, program: Program, real: Ring, slices: dict[str, list[tuple[int, ...]]]) -> Nested:
    assert nest.source is not None
    view = next(v for v in program.views if v.name == nest.source.name)
    source = replace(_pool(view, view.name, real), keys=nest.source.variables)
    finish = nest.finish.picked(nest.source.picks)
    if finish.over is None:
        return Nested(source, finish)
    printed = {expr for _, expr in finish.items}
    group = tuple(i for i, key in enumerate(source.keys) if key in printed)
    return Nested(source, finish, group, _slice(view.name, group, slices))


def _slice(view: str, positions: tuple[int, ...], slices: dict[str, list[tuple[int, ...]]]) -> int:
    """The number of the slice by those keys, which the pool then has."""
    known = slices.setdefault(view, [])
    if positions not in known:
        known.append(positions)
    return known.index(positions)


def _fields(deltas: tuple[View, ...], route: Route) -> tuple[str, ...]:
    """The fields of a relation that its deltas, or its routing, read."""
    names = {name for d in deltas for atom in d.atoms for name, _ in atom.fields}
    names |= set(route.fields or ())
    relation = deltas[0].atoms[0].relation
    return tuple(f.name for f in relation.fields if f.name in names)


def _access(statement: Statement, program: Program, slices: dict[str, list[tuple[int, ...]]]) -> Update:
    """Order the lookups of a statement: probes before slices before scans, filters as soon as they can be evaluated."""
    first, *others = statement.refs
    bound: set[Column] = set(first.variables)
    filters: list[Factor] = list(statement.filters)
    steps: list[Step] = []

    def ready() -> None:
        for f in list(filters):
            match f:
                case Cmp(predicate) if columns(predicate) <= bound:
                    steps.append(Where(predicate))
                    filters.remove(f)
                case Assign(variable, value) if columns(value) <= bound:
                    known = variable in bound
                    steps.append(Let(variable, value))
                    bound.add(variable)
                    filters.remove(f)
                    assert not known, f"{variable} is bound twice"

    ready()
    while others:
        ref = min(
            others, key=lambda r: (len([v for v in r.variables if v not in bound]) > 0, not (bound & set(r.variables)))
        )
        others.remove(ref)
        steps.append(_lookup(ref, bound, slices))
        bound |= set(ref.variables)
        ready()
    assert not filters, f"{filters} cannot be evaluated"
    keys, lanes = statement.keys, statement.lanes
    live = set(keys) | {v for lane in lanes for factor in lane or () for v in columns(factor)}
    for i in reversed(range(len(steps))):
        step = steps[i]
        match step:
            case Lookup():
                steps[i] = replace(step, live=frozenset(v.id for v in live))
                live |= {v for _, v in step.bound}
            case Where(predicate):
                live |= columns(predicate)
            case Let(_, value):
                live |= columns(value)
    return Update(statement.target, first.name, first.variables, first.picks, tuple(steps), keys, lanes)


def _lookup(ref: Ref, bound: set[Column], slices: dict[str, list[tuple[int, ...]]]) -> Lookup:
    given = tuple((i, v) for i, v in enumerate(ref.variables) if v in bound)
    new = tuple((i, v) for i, v in enumerate(ref.variables) if v not in bound)
    if not new:
        return Lookup(ref.name, "probe", -1, given, (), ref.picks, frozenset())
    if not given:
        return Lookup(ref.name, "scan", -1, (), new, ref.picks, frozenset())
    index = _slice(ref.name, tuple(i for i, _ in given), slices)
    return Lookup(ref.name, "slice", index, given, new, ref.picks, frozenset())
