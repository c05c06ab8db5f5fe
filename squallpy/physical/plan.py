"""The physical plan: feeds (source → pre-aggregated deltas), pools (views) and statements as lookup steps.

A plan is plain data: both executors run the same one, `local` in one partition, `spark` in several. There a batch
goes through stages, each on every partition, with an exchange of messages between two stages.
"""

from squallpy.base.index_order import Order
from squallpy.base.pinned_component import PinnedComponent
from squallpy.base.records import dataclass
from squallpy.base.rings import Payload
from squallpy.base.settings import JoinOperator
from squallpy.catalog.relation import Relation
from squallpy.catalog.window_spec import Clock, WindowSpec
from squallpy.logical.expressions import Column, Expr
from squallpy.physical.joins.grid import Grid
from squallpy.physical.joins.hypercube import Hypercube
from squallpy.physical.joins.mapping import Side
from squallpy.physical.joins.migration_controller import EPSILON
from squallpy.physical.matrix.matrix_plan import MatrixPlan
from squallpy.program.auxiliary.divided_rows import DividedRows
from squallpy.program.auxiliary.relation import AnyAuxiliaryKind
from squallpy.program.auxiliary.window_rows import WindowRows
from squallpy.program.calculus import Lane
from squallpy.program.output_spec import OutputSpec
from squallpy.program.trigger_program import TriggerProgram
from squallpy.program.views import RowFields, View

HYPERCUBE = "by cells of the hypercube"  # the placement of a pool
DIVIDED = "where the fixpoint needs its rows"  # likewise


@dataclass(frozen=True, slots=True)
class PoolPlan:
    """A view as a pool: its key variables, payload and indexes.

    Args:
        is_ordered: It is only its sorted indexes.
        group: Positions of the keys that its own index is by, if not all.
    """

    name: str
    keys: tuple[Column, ...]
    payload: Payload
    slices: tuple[tuple[int, ...], ...] = ()
    orders: tuple[Order, ...] = ()
    is_ordered: bool = False
    group: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Range:
    """The values of a variable for which `rising` (which stays TRUE as it grows) and `falling` are TRUE; None: all."""

    variable: Column
    rising: Expr | None
    falling: Expr | None


@dataclass(frozen=True, slots=True)
class Lookup:
    """A join step: find the records of `source` that agree with bound variables, and bind the others.

    Args:
        method: probe (all keys bound), slice (some, by slice `index`, −1: the group) or scan (none); over sorted index
            `index`, range (the records of a range), nearest (the one next to the bound), highest (the one with the
            greatest or least value) or sum (their sum, for none of their other variables is read).
        bound: Key positions with the variables that they equal.
        binds: Key positions with the variables that they bind.
        live: The variables that later steps read.
        row: Turns each record into the row that an auxiliary relation makes of it.
    """

    source: str
    method: str
    index: int
    bound_keys: tuple[tuple[int, Column], ...]
    binds: tuple[tuple[int, Column], ...]
    picks: tuple[int, ...]
    live: frozenset[int] = frozenset()
    range: Range | None = None
    row: RowFields | None = None


@dataclass(frozen=True, slots=True)
class FilterStep:
    """A step that filters rows by a predicate."""

    predicate: Expr


@dataclass(frozen=True, slots=True)
class Let:
    """A step that binds a computed variable."""

    variable: Column
    value: Expr


StatementStep = Lookup | FilterStep | Let


@dataclass(frozen=True, slots=True)
class Update:
    """A statement as steps: start from the rows of `delta`, take the steps, multiply payloads, add to `target`.

    `keep`: every partition computes the whole outcome and adds its own part, by the hash of these keys, over the first
    `partitions` or all.
    """

    target: str
    delta: str
    variables: tuple[Column, ...]
    picks: tuple[int, ...]
    steps: tuple[StatementStep, ...]
    keys: tuple[Column, ...]
    lanes: tuple[Lane | None, ...]
    keep: tuple[int, ...] | None = None
    partitions: int | None = None

    @property
    def is_copy(self) -> bool:
        """True if the rows of the delta, as they are, are added to a target of the same payload."""
        is_whole = self.picks == tuple(range(len(self.lanes))) and all(lane == () for lane in self.lanes)
        return is_whole and not self.steps and self.keep is None and self.keys == self.variables


@dataclass(frozen=True, slots=True)
class Derive:
    """The deltas of an auxiliary relation, from the groups of its view that the batch touched.

    Args:
        is_alone: On one partition.
        divided: Every partition makes those rows whose hash is its own.
    """

    relation: str
    is_alone: bool = False
    divided: DividedRows | None = None


@dataclass(frozen=True, slots=True)
class Send:
    """An exchange: the rows of `source`, under a name, sent to partitions of the next stage.

    Args:
        by: Keys whose hash is the partition; none: all rows to one; None: to every partition.
        side: Send to all joiners of a row or a column of the grid.
        key: Join keys; a heavy one has a grid of its own.
        partitions: Number of partitions, counted from the first, over which keys are hashed; None: all.
        cells: Dimensions of the hypercube, each with the keys whose hash is the coordinate: send to all joiners there.
    """

    name: str
    source: str
    keys: tuple[int, ...] | None
    side: Side | None = None
    key: tuple[int, ...] = ()
    partitions: int | None = None
    cells: tuple[tuple[int, tuple[int, ...]], ...] = ()

    @property
    def dimensions(self) -> tuple[int, ...]:
        """The dimensions of the hypercube by which its rows are cut."""
        return tuple(dimension for dimension, _ in self.cells)


@dataclass(frozen=True, slots=True)
class CubePlan:
    """The hypercube of a join of many relations.

    Args:
        dimensions: For each, what it is called, and whether it is an equality.
        views: The views on it, each with its dimensions.
        relations: The relations of the join, each with its dimensions.
        tickets: For each delta that comes of one of them, that relation and the keys that tell its tuples apart.
        is_sized: The parts are those for known sizes of all relations.
    """

    cube: Hypercube
    dimensions: tuple[tuple[str, bool], ...]
    views: tuple[tuple[str, tuple[int, ...]], ...]
    relations: tuple[tuple[str, tuple[int, ...]], ...]
    tickets: tuple[tuple[str, str, tuple[int, ...]], ...] = ()
    is_sized: bool = False


Terms = tuple[tuple[int, Expr], ...]
"""A sum of constants, each with its sign."""


@dataclass(frozen=True, slots=True)
class BandKeys:
    """Keys of a view or delta: the position of the one that a band bounds, and of those that equalities compare."""

    banded: int
    equal: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class BandPlan:
    """The band of a join on a grid, whose tuples ranges may partition instead.

    Args:
        columns: The banded column of the rows of the grid, and that of its columns.
        low: The least that the one may be less the other.
        high: The most.
        is_real: The columns are doubles.
        forms_pairs: Some statement forms the pairs, instead of looking up sums.
        keys: The keys of each view on the grid, and of each delta that is sent there.
    """

    columns: tuple[str, str]
    low: Terms
    high: Terms
    is_real: bool
    forms_pairs: bool
    keys: tuple[tuple[str, BandKeys], ...]


@dataclass(frozen=True, slots=True)
class Stage:
    """Work of every partition on a batch between two exchanges, in order; later stages read the deltas in `keeps`."""

    steps: tuple[Update | Derive, ...] = ()
    sends: tuple[Send, ...] = ()
    keeps: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class AuxiliaryPlan:
    """The rows of an auxiliary relation in terms of pools.

    Args:
        source: The pool of the view that it is made of, under the output's variables.
        group: Positions of the grouping keys in its keys.
        index: The slice by the group, −1 for none.
        order: The sorted index that the kind needs, −1 for none.
        context: The other auxiliary relations that the kind reads.
    """

    source: PoolPlan
    output: OutputSpec
    kind: AnyAuxiliaryKind
    group: tuple[int, ...] = ()
    index: int = -1
    order: int = -1
    context: tuple["AuxiliaryPlan", ...] = ()

    @property
    def grouped(self) -> tuple[Column, ...]:
        """The keys at `group`."""
        return tuple(self.source.keys[position] for position in self.group)


@dataclass(frozen=True, slots=True)
class Feed:
    """A source component: the fields it reads, and the deltas that a batch is pre-aggregated to (§3.3).

    The rows of an `auxiliary` relation come from a view of the same partition. `row_deltas` have a row for each tuple.
    """

    relation: Relation
    fields: tuple[str, ...]
    deltas: tuple[View, ...]
    payloads: tuple[Payload, ...]
    auxiliary: AuxiliaryPlan | None = None
    row_deltas: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class OnGrid:
    """A view whose joiners are the rows or the columns of a grid, with the deltas that are sent there and added to it.

    The location of a record follows from its keys, so it may migrate.

    Args:
        cells: Dimensions of a hypercube that it is on instead, each with the positions of the keys that are hashed.
    """

    view: str
    deltas: tuple[str, ...]
    side: Side
    key: tuple[int, ...] = ()
    cells: tuple[tuple[int, tuple[int, ...]], ...] = ()


@dataclass(frozen=True, slots=True)
class UniqueView:
    """A view in which a count above 1 shows that data break a PRIMARY KEY.

    Args:
        path: The source of the relation that declares it.
        key: The fields of the PRIMARY KEY, each with its position in the keys of the view.
        skips: Count such rows instead of ending the query.
    """

    view: str
    path: str
    key: tuple[tuple[str, int], ...]
    skips: bool


@dataclass(frozen=True, slots=True)
class Plan:
    """The physical plan that an executor runs.

    `matrices` are its first stage, if it reads any. `reading` runs where the batch is read, without any pool, then
    `stages` on every partition, and `driver` where the last of them sends to. `deltas` live no longer than a batch: as
    feeds make them, as they are sent, and sums that are only there to be sent.
    """

    program: TriggerProgram
    feeds: tuple[Feed, ...]
    reading: Stage
    stages: tuple[Stage, ...]
    pools: tuple[PoolPlan, ...]
    deltas: tuple[PoolPlan, ...]
    results: tuple[PoolPlan, ...]
    partitions: int
    places: tuple[tuple[str, tuple[int, ...] | str], ...] = ()  # placements of pools: key positions, or a mark's name
    unique: tuple[UniqueView, ...] = ()  # checked after each batch
    spreads: tuple[tuple[str, int], ...] = ()  # pools that are hashed over the first so many partitions only
    pins: tuple[tuple[str, str], ...] = ()  # pools whose placements were pinned, and by what
    components: tuple[tuple[PinnedComponent, tuple[str, ...]], ...] = ()  # of a plan put together by hand: their pools
    grid: Grid | None = None  # the initial grid of joiners, if there is one
    on_grid: tuple[OnGrid, ...] = ()  # the views there, or on grids of their keys, if these adapt
    hypercube: CubePlan | None = None  # of a join of many relations, if that is on one
    band: BandPlan | None = None  # of a join on a grid, if ranges may partition it
    operator: JoinOperator = JoinOperator.AUTO  # set by the user
    epsilon: float = EPSILON  # fraction of a relation that has to change before its grid may
    groups: bool = False  # all partitions are joiners, though not a power of two
    capacity: int | None = None  # bytes that a joiner may store: the grid grows at half of it
    light: tuple[tuple[str, str], ...] = ()  # reasons why no key of a hashed pool has a grid
    matrices: MatrixPlan | None = None  # the first stage of a query that reads matrices
    keeps_results: bool = True  # otherwise their rows are printed and dropped
    driver: Stage | None = None  # the last stage, where it only has sums without keys
    keeps_ledgers: bool = True  # otherwise deletes of what was never there are not counted
    printed: tuple[tuple[int, tuple[str, ...]], ...] = ()  # by query: its result, its columns; none: all
    partitioned: tuple[str, ...] = ()  # results that partitions keep and print; others are the driver's

    @property
    def pinned_pools(self) -> tuple[str, ...]:
        """The pools whose placements were pinned."""
        return tuple(name for name, _ in self.pins)

    @property
    def only_grows(self) -> bool:
        """True if the results only ever grow, so that their present rows need not be stored."""
        program = self.program
        plain = all(
            f.repeat and f.having is None and f.times is None and f.limit is None and not f.offset
            for f in program.outputs
        )
        return plain and not program.auxiliary and not any(r.has_deletes for r in program.relations)

    @property
    def upserts(self) -> tuple[Relation, ...]:
        """The relations whose rows replace each other by PRIMARY KEY, in a stage before all others."""
        return tuple(dict.fromkeys(f.relation.source for f in self.sources if f.relation.source.is_keyed))

    @property
    def stages_of_partitions(self) -> int:
        """The number of stages that a batch has on partitions."""
        return len(self.stages) + bool(self.upserts)

    @property
    def sources(self) -> tuple[Feed, ...]:
        """The feeds that read streams and tables."""
        return tuple(feed for feed in self.feeds if feed.auxiliary is None)

    @property
    def driver_pools(self) -> frozenset[str]:
        """The pools of the driver's stage."""
        steps = self.driver.steps if self.driver else ()
        return frozenset(s.target for s in steps if isinstance(s, Update)) & {pool.name for pool in self.pools}

    @property
    def divisions(self) -> dict[str, DividedRows]:
        """The divisions of auxiliary relations whose rows partitions make each a part of, by name."""
        steps = (step for stage in self.stages for step in stage.steps)
        return {step.relation: step.divided for step in steps if isinstance(step, Derive) and step.divided}

    @property
    def joins(self) -> dict[int, str]:
        """Distribution of the joins of each stage that has any, by its number.

        It is hash, keys with grids, grid (with a band also ranges), fixed, a grid that does not adapt, or hypercube.
        """
        cube = {name for name, _ in self.hypercube.views} if self.hypercube else set()
        adaptive, found, fixed = {view.view for view in self.on_grid}, dict[int, str](), self.fixed_sides.keys()
        for number, stage in enumerate(self.stages):
            updates = [step for step in stage.steps if isinstance(step, Update)]
            read = {step.source for update in updates for step in update.steps if isinstance(step, Lookup)}
            if read:
                found[number] = "fixed" if read & fixed else "hash"
                if read & adaptive:
                    found[number] = "grid" if self.grid else "keys"
                if read & cube:
                    found[number] = "hypercube"
        return found

    @property
    def fixed_sides(self) -> dict[str, Side]:
        """The views on a grid that does not adapt, with their sides."""
        sides = {"by rows of the grid": Side.R, "by columns of the grid": Side.S}  # NB: marks of placements
        on_grid = {view.view for view in self.on_grid}
        found = {name: sides[place] for name, place in self.places if isinstance(place, str) and place in sides}
        return {name: side for name, side in found.items() if name not in on_grid}

    @property
    def windows(self) -> dict[str, WindowSpec]:
        """The windows over streams, by the names of the auxiliary relations of their rows."""
        kinds = ((feed.relation.name, feed.auxiliary.kind) for feed in self.feeds if feed.auxiliary)
        return {name: kind.window for name, kind in kinds if isinstance(kind, WindowRows)}

    @property
    def clocks(self) -> dict[str, Clock]:
        """Clocks of windows, by name."""
        return {clock.name: clock for window in self.windows.values() for clock in window.clocks}

    @property
    def ledgers(self) -> frozenset[str]:
        """Change streams whose rows are counted in a ledger: not those read only through windows."""
        if not self.keeps_ledgers:
            return frozenset()
        windows = self.windows
        passing = {f.auxiliary.source.name for f in self.feeds if f.auxiliary and f.relation.name in windows}
        kept = {t.relation.name for t in self.program.triggers if any(s.target not in passing for s in t.statements)}
        counted = (r for r in (feed.relation for feed in self.sources) if r.has_ledger and not r.is_computed)
        return frozenset(relation.name for relation in counted) & kept

    def delta(self, name: str) -> PoolPlan:
        return next(d for d in self.deltas if d.name == name)
