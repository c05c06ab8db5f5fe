"""Trigger program → physical plan: pools with their indexes, and the feeds with their routes."""

from collections.abc import Mapping
from dataclasses import replace

from squallpy.base.order import Order
from squallpy.base.rings import Payload, Ring
from squallpy.base.types import Kind
from squallpy.maintain.program import Nest, Program, View
from squallpy.physical.access import Indexes, Known, access
from squallpy.physical.plan import Feed, Nested, Plan, PoolPlan, Route
from squallpy.physical.route import choose_routes


def place(program: Program, partitions: int, sizes: Mapping[str, int]) -> Plan:
    """The physical plan. `sizes` (rows by relation, 0 if unknown) decides what is partitioned."""
    routes = choose_routes(program, sizes)
    if partitions == 1 or not routes:
        routes, partitions = {}, 1
    real = _real(program)
    indexes, known = Indexes(), Known(program)
    nested: dict[str, Nested] = {}
    for nest in program.nests:
        nested[nest.relation.name] = _nested(nest, program, real, indexes, nested)
    feeds, updates, deltas = [], [], []
    for trigger in program.triggers:
        route = routes.get(trigger.relation.name, Route(None))
        own = [_pool(d, d.name, real) for d in trigger.deltas]
        payloads = tuple(d.payload for d in own)
        fields = _fields(trigger.deltas, route)
        feeds.append(Feed(trigger.relation, fields, trigger.deltas, payloads, route, nested.get(trigger.relation.name)))
        updates.append(tuple(access(s, known, indexes) for s in trigger.statements))
        deltas += own
    pools = tuple(_pool(v, v.name, real, *indexes.of(v.name)) for v in program.views[1:])
    deltas = [PoolPlan(d.name, d.keys, d.payload, *indexes.of(d.name)) for d in deltas]
    return Plan(
        program, tuple(feeds), tuple(updates), pools, tuple(deltas), _pool(program.result, "Q", real), partitions
    )


def _real(program: Program) -> Ring:
    """The ring of all sums of doubles: SIGNED, which is wider, only where some are multiplied with each other."""
    lanes = [lane or () for view in program.views for term in view.terms for lane in term.lanes]
    product = any(sum(f.type.kind is Kind.DOUBLE for f in lane) > 1 for lane in lanes)
    return Ring.SIGNED if product else Ring.REAL


def _pool(
    view: View, name: str, real: Ring, slices: tuple[tuple[int, ...], ...] = (), orders: tuple[Order, ...] = ()
) -> PoolPlan:
    rings = tuple(real if ring is Ring.REAL else ring for ring in view.rings)
    return PoolPlan(name, view.keys, Payload(rings), slices, orders)


def _nested(nest: Nest, program: Program, real: Ring, indexes: Indexes, known: Mapping[str, Nested]) -> Nested:
    assert nest.source is not None
    view = next(v for v in program.views if v.name == nest.source.name)
    source = replace(_pool(view, view.name, real), keys=nest.source.variables)
    finish = nest.finish.picked(nest.source.picks)
    if nest.running:
        down, doubles = nest.running.op in (">", ">="), nest.running.x.type.kind is Kind.DOUBLE
        along = indexes.order(view.name, Order((0,), 0, real=doubles, down=down, extents=True))
        context = tuple(known[name] for _, name, _ in nest.running.context)
        return Nested(source, finish, order=along, running=nest.running, context=context)
    if finish.over is None:
        return Nested(source, finish)
    printed = {expr for _, expr in finish.items}
    group = tuple(i for i, key in enumerate(source.keys) if key in printed)
    value = source.keys.index(finish.over)
    if value in group or not finish.over.type.is_ordered:
        return Nested(source, finish, group, index=indexes.slice(view.name, group))
    order = Order((*group, value), len(group), real=finish.over.type.kind is Kind.DOUBLE)
    return Nested(source, finish, group, order=indexes.order(view.name, order))


def _fields(deltas: tuple[View, ...], route: Route) -> tuple[str, ...]:
    """The fields of a relation that its deltas, or its routing, read."""
    names = {name for d in deltas for atom in d.atoms for name, _ in atom.fields}
    names |= set(route.fields or ())
    relation = deltas[0].atoms[0].relation
    return tuple(f.name for f in relation.fields if f.name in names)
