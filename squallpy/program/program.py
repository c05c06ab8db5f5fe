"""Trigger programs: what maintenance compiles a query to, before anything is placed or run.

A `View` is a materialised Sum_[keys](body ⋈ ⟨lanes⟩). A `Trigger` says what one batch of changes to one relation does:
its `deltas` pre-aggregate the batch, its `statements` then add to views, in an order in which each reads views as it
says: as they were before the batch, or, where a relation is joined with itself, as they are after it.

A `Nest` makes a relation of a view: what a nested aggregate says about each group, as rows that outer views join. Its
change is extracted from the groups that the batch touched (§3.2.2), and has a trigger like that of any relation.
"""

from collections.abc import Collection
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import count

from squallpy.base.rings import Ring
from squallpy.catalog.relation import Relation
from squallpy.catalog.stream_window import WindowSpec
from squallpy.functions.aggregate.aggregate import Maintenance
from squallpy.functions.registry import AGGREGATE_OPERATIONS
from squallpy.logical.expressions import Column, Expr
from squallpy.program.calculus import Factor, Lane, Rel, ring

RESULT = "Q"  # the name of the view that the query asks for


@dataclass(frozen=True, slots=True)
class Monomial:
    """body ⋈ ⟨lanes⟩; a lane that is None adds nothing."""

    body: tuple[Factor, ...]
    lanes: tuple[Lane | None, ...]

    @property
    def atoms(self) -> tuple[Rel, ...]:
        return tuple(f for f in self.body if isinstance(f, Rel))


@dataclass(frozen=True, slots=True)
class View:
    """Sum_[keys](monomial + …): a materialised view, or (over a delta atom) a pre-aggregated batch (§3.3)."""

    name: str
    keys: tuple[Column, ...]
    terms: tuple[Monomial, ...]

    @property
    def atoms(self) -> tuple[Rel, ...]:
        return tuple(atom for term in self.terms for atom in term.atoms)

    @property
    def degree(self) -> int:
        """How many relation atoms the view joins: its complexity."""
        return max(len(term.atoms) for term in self.terms)

    @property
    def rings(self) -> tuple[Ring, ...]:
        """For each lane the smallest ring that holds its sums."""
        columns = zip(*(term.lanes for term in self.terms), strict=True)
        return tuple(max(ring(lane) for lane in column if lane is not None) for column in columns)


@dataclass(frozen=True, slots=True)
class Row:
    """What is read of a nest's row: fields by the variables that they bind. It is the row as it was `before` the batch,
    or as it is."""

    nest: str
    fields: tuple[tuple[str, Column], ...]
    before: bool


@dataclass(frozen=True, slots=True)
class Ref:
    """A use of a view or delta: the variables in the place of its keys, and which lane goes into each lane.

    A view that the trigger changes is read as it is `after` that, or as it was before. With `row`, what is used is not
    the view's payload, but the row that a nest makes of it.
    """

    name: str
    variables: tuple[Column, ...]
    picks: tuple[int, ...]
    row: Row | None = None
    after: bool = False

    @property
    def bound(self) -> tuple[Column, ...]:
        """All variables that it binds."""
        return (*self.variables, *(v for _, v in self.row.fields)) if self.row else self.variables


@dataclass(frozen=True, slots=True)
class Statement:
    """target(keys) += Sum_[keys](refs ⋈ filters ⋈ ⟨lanes⟩); the first ref is a delta.

    The target of a `partial` one is no view: it lives no longer than the batch, for statements behind it.
    """

    target: str
    keys: tuple[Column, ...]
    refs: tuple[Ref, ...]
    filters: tuple[Factor, ...]
    lanes: tuple[Lane | None, ...]
    partial: bool = False


@dataclass(frozen=True, slots=True)
class Trigger:
    """ON UPDATE relation."""

    relation: Relation
    deltas: tuple[View, ...]
    statements: tuple[Statement, ...]


@dataclass(frozen=True, slots=True)
class Measure:
    """An aggregate of the query in terms of the lanes of its view.

    value = Σ coefficient · lane; NULL where `present` (a sum of the same form, the non-NULL inputs) is 0; `function`
    is sum, count or avg, the last dividing the two. For min, max, those at a `share` and those made of all values, with
    a `separator` and in an `order` of keys of the view (`logical.nodes.Agg`), all of a finish's `over`, both are empty.
    """

    function: str
    column: Column
    value: tuple[tuple[int, int], ...]
    present: tuple[tuple[int, int], ...]
    scale: int = 0
    share: Fraction | None = None
    separator: str | None = None
    order: tuple[tuple[Column, bool, bool], ...] = ()

    @property
    def is_folded(self) -> bool:
        """True if it is made of all values of a group."""
        return AGGREGATE_OPERATIONS[self.function].maintenance is Maintenance.FOLD


@dataclass(frozen=True, slots=True)
class Finish:
    """From a view to rows: measures, HAVING, the SELECT list, ORDER BY and LIMIT.

    `repeat`: rows are printed as often as their multiplicity says (a query without aggregates).
    `single`: exactly one row, also over nothing (aggregates without GROUP BY).
    """

    measures: tuple[Measure, ...]
    having: Expr | None
    items: tuple[tuple[str, Expr], ...]
    order: tuple[tuple[Expr, bool, bool], ...]
    limit: int | None
    offset: int
    repeat: bool
    single: bool
    count: int = 0  # the lane that counts rows
    times: Expr | None = None  # how often a group is printed, if not once
    number: Column | None = None  # what tells those rows of a group apart, from 0
    over: Column | None = None  # the key whose values, not NULL, the measures are least, greatest, … or made of

    @property
    def beside(self) -> frozenset[Column]:
        """The keys of the view that are none of the group's: what the measures are of, and what orders it."""
        keys = {self.over, *(key for m in self.measures for key, _, _ in m.order)} - {expr for _, expr in self.items}
        return frozenset(key for key in keys if key)

    @property
    def is_bag(self) -> bool:
        """Does it print each group as often as its rows are counted, and nothing else of it than keys?"""
        counts = [m.column for m in self.measures if m.value == ((1, self.count),)]
        others = {m.column for m in self.measures} - {self.times}
        printed = {expr for _, expr in self.items}
        return self.times in counts and self.number is None and self.having is None and not others & printed

    def picked(self, lanes: tuple[int, ...]) -> "Finish":
        """The same over a view whose lanes are those, in our order."""

        def moved(terms: tuple[tuple[int, int], ...]) -> tuple[tuple[int, int], ...]:
            return tuple((coefficient, lanes[lane]) for coefficient, lane in terms)

        measures = tuple(replace(m, value=moved(m.value), present=moved(m.present)) for m in self.measures)
        return replace(self, measures=measures, count=lanes[self.count])


@dataclass(frozen=True, slots=True)
class Running:
    """What the rows of a nest of intervals are: the intervals of p in which Sum(view(x) ⋈ (x op p)) satisfies `where`,
    for each `group` of the view's rows.

    A row has the ends of an interval, NULL for none. `where` reads the finish's measures and variables of the
    `context`: each with the nest, of one row, and the field that it stands for. `total`: a sum of nothing counts too.
    """

    x: Column
    op: str
    where: tuple[Expr, ...]
    context: tuple[tuple[Column, str, str], ...]
    total: bool
    group: tuple[Column, ...] = ()


@dataclass(frozen=True, slots=True)
class Neighbours:
    """What the rows of a nest of neighbours are: the values of a group, each with the next one `above` it, or below.

    `value` is a key of the nest's view, `other` stands for the neighbour, NULL for none, among the finish's items.
    """

    value: Column
    other: Column
    above: bool


@dataclass(frozen=True, slots=True)
class Skyline:
    """What the rows of a skyline are: of each group (x, value) such that no other x up to it has a value as `great`, or
    as small. Both are keys of the nest's view; `rising`: the least x comes first.

    Source: Börzsönyi, Kossmann and Stocker, *The Skyline Operator*, ICDE 2001.
    """

    x: Column
    value: Column
    rising: bool
    great: bool


@dataclass(frozen=True, slots=True)
class Spans:
    """What the rows of a nest of spans are: of each group and x the highest value, the greatest if they are to be
    `great`, else the least, and the nearest x `before` and `behind` whose value is higher, NULL for none.

    x and value are keys of the nest's view; the ends stand for themselves among the finish's items. Of equal values the
    first one is the highest; NULL is the lowest.

    Source: the Cartesian tree of Vuillemin, *A Unifying Look at Data Structures*, CACM 1980: a subtree is a span.
    """

    x: Column
    value: Column
    before: Column
    behind: Column
    great: bool


def nest_name(taken: Collection[str]) -> str:
    """n1, n2, …: the first name that no relation or nest has"""
    return next(name for name in (f"n{i}" for i in count(1)) if name not in taken)


@dataclass(frozen=True, slots=True)
class Nest:
    """A relation of the rows that `finish` makes of a view's groups.

    That of a `window` has the rows that it shows, of a view that nobody else reads: it is rid of what the window has
    passed. Before it is materialised, `view` is its definition; then `source` is the use of a view that holds it, with
    the finish's variables in the place of its keys and its lanes picked.
    """

    relation: Relation
    view: View
    finish: Finish
    source: "Ref | None" = None
    running: Running | None = None
    window: WindowSpec | None = None
    neighbours: Neighbours | None = None
    skyline: Skyline | None = None
    spans: Spans | None = None

    @property
    def by_group(self) -> bool:
        """Is each of its rows made of one group, whatever the others are?"""
        return not (self.running or self.window or self.neighbours or self.skyline or self.spans)

    @property
    def reads(self) -> set[str]:
        """The relations that it is made of."""
        context = {name for _, name, _ in self.running.context} if self.running else set()
        return {atom.relation.name for atom in self.view.atoms} | context


@dataclass(frozen=True, slots=True)
class Program:
    """A compiled query: its views (the first is the result), its nests, innermost first, its triggers, and how rows are
    printed."""

    views: tuple[View, ...]
    triggers: tuple[Trigger, ...]
    finish: Finish
    nests: tuple[Nest, ...] = ()

    @property
    def result(self) -> View:
        return self.views[0]

    @property
    def relations(self) -> tuple[Relation, ...]:
        """The streams and tables that are read."""
        nested = {nest.relation.name for nest in self.nests}
        return tuple(trigger.relation for trigger in self.triggers if trigger.relation.name not in nested)


@dataclass(frozen=True, slots=True)
class Lowered:
    """A query in the ring calculus: its view and its auxiliary relations, innermost first, nothing materialised yet."""

    view: View
    finish: Finish
    relations: tuple[Relation, ...]
    nests: tuple[Nest, ...] = ()
