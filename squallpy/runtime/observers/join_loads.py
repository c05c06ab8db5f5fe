"""Loads of joiners: for each join of a plan its mapping, the tuples of each joiner, and the most loaded one's factor.

Under any operator: SHJ by hash is one row of joiners; StaticMid and StaticOpt have the grid that they began with;
Dynamic, Hybrid, Range and groups report theirs with each batch; HyperCube has the parts along each dimension.
"""

from collections import Counter
from collections.abc import Sequence
from typing import Any

from squallpy.base.records import dataclass
from squallpy.physical.joins.hypercube import arrange, find_best_hypercube
from squallpy.physical.joins.mapping import Side, find_best_mapping
from squallpy.physical.plan import CubePlan, Plan
from squallpy.runtime.observers.report import BatchReport, JoinReport

INSERTS_BOUND, DELETES_BOUND, GROUPS_BOUND = 1.25, 1.4, 3.75  # of an adaptive grid's load by the best (docs/joins.md)


@dataclass(frozen=True, slots=True)
class JoinLoad:
    """The load of a join's joiners so far.

    Args:
        stage: The stage in which it is evaluated.
        kind: hash; keys, some of which have grids; grid, which adapts; fixed, a grid that does not; ranges; hypercube.
        mapping: Rows and columns of joiners, of each group or range; of a hypercube its parts along each dimension.
        loads: Tuples that each joiner has, where they move to where they are needed; of others, that each was sent.
        ilf: Those of the most loaded joiner; on a grid or hypercube that adapts an even share, by its mapping.
        ratio: Its load by that of the best mapping with an equal share for each.
        bound: The most by which the operator lets its mapping's load exceed the best's; None if it promises nothing.
        axes: What the numbers of a mapping count.
    """

    stage: int
    kind: str
    mapping: tuple[tuple[int, ...], ...]
    loads: tuple[int, ...]
    ilf: float
    ratio: float
    bound: float | None = None
    axes: tuple[str, ...] = ("rows", "columns")


class JoinLoads:
    """The joins of a plan while batches are reported."""

    def __init__(self, plan: Plan | None) -> None:
        self._plan, self._joins = plan, plan.joins if plan else {}
        self._received = {stage: Counter[str]() for stage in self._joins}
        self._read = Counter[str]()

    @property
    def has_joins(self) -> bool:
        """True if the plan has joins with joiners of their own."""
        return bool(self._joins)

    def note(self, report: BatchReport) -> Sequence[JoinLoad]:
        """Take in a batch, and return the loads after it."""
        self._read.update(report.read_rows)
        for stage, rows in self._received.items():
            rows.update(report.received.get(str(stage), {}))
        return [self._load(stage, kind, report.join or JoinReport()) for stage, kind in self._joins.items()]

    def _load(self, stage: int, kind: str, join: JoinReport) -> JoinLoad:
        assert self._plan
        rows = self._received[stage]
        most, total = max(rows.values(), default=0), sum(rows.values())
        skew = most * len(rows) / total if total else 1.0
        loads = tuple(join.loads or (rows[str(joiner)] for joiner in range(self._plan.partitions)))
        if kind == "grid" and join.mapping and not isinstance(join.mapping[0], int) and self._plan.band:
            return JoinLoad(stage, "ranges", _pairs(join.mapping), loads, join.ilf or 0.0, join.ilf_ratio or 1.0)
        if kind == "grid" and join.mapping:
            ratio = (join.ilf_ratio or 1.0) * (join.busiest or 1.0)
            return JoinLoad(stage, kind, _pairs(join.mapping), loads, join.ilf or 0.0, ratio, self._bound)
        if kind == "hypercube" and self._plan.hypercube:
            return self._load_of_hypercube(stage, self._plan.hypercube, join, loads, skew)
        if kind == "fixed" and self._plan.grid:
            mapping = self._plan.grid.mapping
            r, s = (self._rows(side) for side in Side)
            best = find_best_mapping(mapping.joiners, r, s, mapping)
            load, least = (r / each.rows + s / each.columns for each in (mapping, best))
            ratio = skew * (load / least if least else 1.0)
            return JoinLoad(stage, kind, ((mapping.rows, mapping.columns),), loads, most, ratio)
        skew = join.busiest if kind == "keys" and join.busiest is not None else skew
        return JoinLoad(stage, kind, ((1, self._plan.partitions),), loads, most, skew)

    @property
    def _bound(self) -> float:
        """The bound of an adaptive grid, or of groups of them (docs/joins.md)."""
        assert self._plan
        if self._plan.groups:
            return GROUPS_BOUND
        goes = self._plan.windows or any(r.has_deletes for r in self._plan.program.relations)
        return DELETES_BOUND if goes else INSERTS_BOUND

    def _load_of_hypercube(
        self, stage: int, plan: CubePlan, join: JoinReport, loads: tuple[int, ...], skew: float
    ) -> JoinLoad:
        """Compare the load of a hypercube with the best parts', by the tuples that it has or the rows read so far."""
        axes = tuple(name for name, _ in plan.dimensions)
        parts = tuple(part for part in join.mapping or plan.cube.parts if isinstance(part, int))
        if join.ilf is not None:
            ratio = (join.ilf_ratio or 1.0) * (join.busiest or 1.0)
            # NB: only where each relation has a dimension, moves of one bit lead to the best parts
            is_bounded = all(len(on) == 1 for _, on in plan.relations) and not join.heavy_keys
            bound = INSERTS_BOUND if is_bounded else None
            return JoinLoad(stage, "hypercube", (parts,), loads, join.ilf, ratio, bound, axes)
        inputs = [(float(self._read[self._stream_of(name)]), on) for name, on in plan.relations]
        best = find_best_hypercube(plan.cube.joiners, len(parts), inputs)
        load, least = (cube.load(inputs) for cube in (arrange(parts), best))
        ratio = skew * (load / least if least else 1.0)
        return JoinLoad(stage, "hypercube", (parts,), loads, max(loads), ratio, axes=axes)

    def _stream_of(self, relation: str) -> str:
        """Name the stream of a relation, which may be the rows of its window."""
        assert self._plan
        window = self._plan.windows.get(relation)
        return window.stream if window else relation

    def _rows(self, side: Side) -> int:
        """Count the rows read of the largest relation that brings tuples to a side of a grid that is fixed."""
        assert self._plan
        views = {view.name: view for view in self._plan.program.views}
        brought = [views[name] for name, at in self._plan.fixed_sides.items() if at is side]
        names = [self._stream_of(atom.relation.name) for view in brought for atom in view.atoms]
        return max((self._read[name] for name in names), default=0)


def _pairs(mapping: Sequence[int] | Sequence[Sequence[int]]) -> tuple[tuple[int, int], ...]:
    """List the mapping of each group."""
    groups: list[Any] = [each for each in mapping if not isinstance(each, int)] or [mapping]
    return tuple((int(high), int(wide)) for high, wide in groups)
