"""Network cost of a batch, in bytes per tuple of each stream: an estimate from the plan alone.

It is assumed that a tuple passes every filter, is one row in each delta, and has one match in each join; a group of an
auxiliary relation that it changes has an old row and a new one. Pre-aggregation, filters and joins without a match send
less, joins with many matches send more. A sum without keys is one row a batch: no tuple pays for it.
"""

from dataclasses import field

from squallpy.base.records import dataclass
from squallpy.base.rings import LaneRing, Ring
from squallpy.base.types import Kind
from squallpy.physical.plan import Derive, Plan, PoolPlan, Send, Stage, Update

TEXT = 20  # bytes of a text: 16 letters, and where it starts
NUMBER = 4  # of a number that is a key, or an exact sum: columns travel in as many bytes as their ranges take
COUNT = 1
WORD = 8

RowCounts = dict[str, float]  # for each tuple, by relation


def row_bytes(pool: PoolPlan) -> int:
    """Estimate the bytes of a row in transit: key columns and payload, texts spelled out."""
    keys = {Kind.VARCHAR: TEXT, Kind.DOUBLE: WORD}
    of_keys = sum(keys.get(column.type.kind, NUMBER) for column in pool.keys)
    return of_keys + sum(map(_lane_bytes, pool.payload.rings))


def _lane_bytes(ring: LaneRing) -> int:
    if isinstance(ring, Ring):
        return {Ring.COUNT: COUNT, Ring.EXACT: NUMBER, Ring.REAL: 2 * WORD, Ring.SIGNED: 2 * WORD + COUNT}[ring]
    return WORD * ring.words


def traffic(plan: Plan) -> RowCounts:
    """Estimate the bytes exchanged between stages for each tuple of a relation."""
    return _Estimate(plan).total


@dataclass
class _Estimate:
    plan: Plan
    rows: dict[str, RowCounts] = field(default_factory=dict)  # of each delta; of each view, those added to it
    total: RowCounts = field(default_factory=dict)

    def __post_init__(self) -> None:
        for feed in self.plan.sources:
            self.total[feed.relation.name] = 0.0
            self.rows |= {delta.name: {feed.relation.name: float(bool(delta.keys))} for delta in feed.deltas}
        for stage in (self.plan.reading, *self.plan.stages):
            self._stage(stage)

    def _stage(self, stage: Stage) -> None:
        auxiliary = {feed.relation.name: feed for feed in self.plan.feeds if feed.auxiliary}
        for step in stage.steps:
            match step:
                case Update(target, delta, keys=keys):
                    given = self.rows.get(delta, {})
                    made = given if keys else dict.fromkeys(given, 0.0)
                    self.rows[target] = _most(self.rows.get(target, {}), made)
                case Derive(relation):
                    feed = auxiliary[relation]
                    assert feed.auxiliary is not None
                    touched = self.rows.get(feed.auxiliary.source.name, {})
                    rows = {name: 2 * count for name, count in touched.items()}
                    self.rows |= {delta.name: rows for delta in feed.deltas}
        for send in stage.sends:
            self.rows[send.name] = rows = self.rows.get(send.source, {})
            for name, count in rows.items():
                self.total[name] += count * _bytes(self.plan, send)


def _bytes(plan: Plan, send: Send) -> int:
    """Estimate the bytes of one row, at every partition to which it is sent."""
    copies = plan.partitions if send.keys is None else 1
    if send.side is not None and plan.grid is not None:
        copies = plan.grid.mapping.copies(send.side)
    if send.cells and plan.hypercube is not None:
        copies = plan.hypercube.cube.copies(send.dimensions)
    return row_bytes(plan.delta(send.source)) * copies


def _most(a: RowCounts, b: RowCounts) -> RowCounts:
    return {name: max(a.get(name, 0.0), b.get(name, 0.0)) for name in {**a, **b}}
