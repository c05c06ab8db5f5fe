"""Access paths: the order of a statement's lookups, and the kind of each.

    ΔN1(t) ⋈ M_BIDS(volume) ⋈ M_ASKS(price) ⋈ (volume > 0.25 * t)
    →  sum M_BIDS(volume > 0.25 * t) → scan M_ASKS()

Bound variables make a probe or a slice. A predicate that compares one more variable with bound ones makes a range of a
sorted index; if nothing else reads the records in it, their sum is looked up. A foreign key selects few records: a
slice is then as good, and takes less memory.
"""

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field, replace
from functools import partial

from squallpy.base.index_order import Order
from squallpy.base.types import Kind
from squallpy.logical.expressions import Column, columns, conjunction
from squallpy.logical.monotonicity import FALLING, RISING, direction
from squallpy.physical.plan import FilterStep, Let, Lookup, Range, Step, Update
from squallpy.physical.unique_keys import (
    certain_keys,
    few_record_views,
    finds_one,
    foreign_keys,
    known_keys,
    narrow_views,
    row_searches,
)
from squallpy.program.auxiliary.kind import RowSearch
from squallpy.program.calculus import Assign, Cmp, Factor, variables
from squallpy.program.trigger_program import Program, Statement
from squallpy.program.views import Ref, View

# Lookups, the best first. "one" is a slice or scan of one record, "few" a scan of few, "apart" a view without keys: it
# selects no rows, so ranges that overlap are looked up before it multiplies them. For the row that an auxiliary
# relation makes of a record, "exists" tests that there is one, "row" computes it, and "later" waits until the record
# is known. Among lookups that find one record at most, a view that predicates have narrowed leaves fewer rows.
_ONE, _FOUND = ("probe", "exists", "one"), ("nearest", "highest")
_CHOICE = (*_ONE, "row", "few", *_FOUND, "sum", "slice", "range", "apart", "scan", "later")


@dataclass(slots=True)
class Indexes:
    """The secondary indexes of each view or delta that statements turned out to need, and the views read by record."""

    slices: dict[str, list[tuple[int, ...]]] = field(default_factory=dict)
    orders: dict[str, list[Order]] = field(default_factory=dict)
    records: set[str] = field(default_factory=set)

    def slice(self, view: str, positions: tuple[int, ...]) -> int:
        """Find or add the slice by those keys, and return its number."""
        self.records.add(view)
        known = self.slices.setdefault(view, [])
        if positions not in known:
            known.append(positions)
        return known.index(positions)

    def order(self, view: str, order: Order) -> int:
        """Find or add a sorted index that is at least in that order, and return its number; it can be read either
        way."""
        known = self.orders.setdefault(view, [])
        plain = replace(order, descending=False, extents=False)
        if order.extents or plain not in (replace(o, descending=False, extents=False) for o in known):
            known.append(order)
            return len(known) - 1
        return next(i for i, o in enumerate(known) if replace(o, descending=False, extents=False) == plain)

    def of(self, view: str) -> tuple[tuple[tuple[int, ...], ...], tuple[Order, ...], bool]:
        """List all slices and sorted indexes, and whether these are enough."""
        orders = tuple(self.orders.get(view, ()))
        return tuple(self.slices.get(view, ())), orders, bool(orders) and view not in self.records


class ViewFacts:
    """Facts about a program's views, found once for all of its statements."""

    def __init__(self, program: Program) -> None:
        self.views = {view.name: view for view in program.views}
        self.keys, self.foreign, self.few_record_views = (
            known_keys(program),
            foreign_keys(program),
            few_record_views(program),
        )
        self.narrow_views = narrow_views(program)
        self.searches = row_searches(program, certain_keys(program))


def access(statement: Statement, facts: ViewFacts, indexes: Indexes) -> Update:
    """Compile a statement to steps, with filters as soon as they can be evaluated."""
    first, *others = statement.refs
    bound: set[Column] = set(first.variables)
    filters: list[Factor] = list(statement.filters)
    steps: list[Step] = []
    views, keys, foreign, few = facts.views, facts.keys, facts.foreign, facts.few_record_views
    outputs = {*statement.keys, *(v for lane in statement.lanes for f in lane or () for v in columns(f))}

    def ready() -> None:
        for f in list(filters):
            match f:
                case Cmp(predicate) if f.reads <= bound:
                    steps.append(FilterStep(predicate))
                    filters.remove(f)
                case Assign(variable, value) if f.reads <= bound:
                    again = variable in bound
                    steps.append(Let(variable, value))
                    bound.add(variable)
                    filters.remove(f)
                    assert not again, f"{variable} is bound twice"

    def size(ref: Ref) -> str | None:
        view = views.get(ref.name)
        if view is None or ref.row:
            return None
        bound_keys = _bound_keys(ref, view, bound)
        if finds_one(view, bound_keys, keys):
            return "one"
        return "few" if ref.name in few else "slice" if _are_fields(view, bound_keys, foreign) else None

    ready()
    ranked: dict[int, tuple[tuple[int, bool, bool, int], _AccessPath]] = {}
    while others:
        for ref in others:
            if id(ref) not in ranked:
                elsewhere = partial(_read_elsewhere, outputs, others, ref)
                path = _choose_path(ref, bound, filters, elsewhere, size, facts.searches.get(ref.name))
                ranked[id(ref)] = _cost(path, bound, facts.narrow_views), path
        _, best = min((ranked[id(ref)] for ref in others), key=lambda cost_and_path: cost_and_path[0])
        others.remove(best.ref)
        steps.append(_lookup(best, bound, indexes))
        filters = [f for f in filters if f not in best.used_factors]
        before = frozenset(bound)
        bound |= set(best.ref.bound_variables)
        ready()
        # NB: a lookup is ranked again when more of its variables are bound, or while filters on them remain
        changed = (bound - before).union(*(variables(f) for f in filters))
        ranked = {id(ref): ranked[id(ref)] for ref in others if changed.isdisjoint(ref.variables)}
    assert not filters, f"{filters} cannot be evaluated"
    _note_live(steps, outputs)
    return Update(
        statement.target, first.name, first.variables, first.picks, tuple(steps), statement.keys, statement.lanes
    )


def _read_elsewhere(outputs: set[Column], refs: Iterable[Ref], ref: Ref) -> set[Column]:
    """List the variables that keys, lanes and views other than `ref` read."""
    return outputs.union(*(r.variables for r in refs if r is not ref))


def _cost(path: "_AccessPath", bound: set[Column], narrow: Collection[str]) -> tuple[int, bool, bool, int]:
    """Rank a lookup by its cost and the records that it returns."""
    wide = path.method in _ONE and path.ref.name not in narrow
    return _CHOICE.index(path.method), wide, *_fan_out(path.ref, bound)


def _fan_out(ref: Ref, bound: set[Column]) -> tuple[bool, int]:
    """Estimate the records of a view from its variables: fewer if more of them are bound."""
    new = set(ref.variables) - bound
    return len(new) == len(ref.variables), len(new)


def _bound_keys(ref: Ref, view: View, bound: set[Column]) -> list[Column]:
    """List the keys of a view that are bound."""
    return [key for key, v in zip(view.keys, ref.variables, strict=True) if v in bound]


def _are_fields(view: View, bound_keys: Iterable[Column], fields: Collection[tuple[str, str]]) -> bool:
    """True if one of `fields` is bound."""
    wanted = set(bound_keys)
    return any(v in wanted and (a.relation.name, name) in fields for a in view.atoms for name, v in a.fields)


@dataclass(frozen=True, slots=True)
class _AccessPath:
    """One way to look a view up, and the filters that it takes care of."""

    ref: Ref
    method: str
    range: Range | None = None
    used_factors: tuple[Factor, ...] = ()
    search: RowSearch | None = None  # the variable of the range


def _choose_path(
    ref: Ref,
    bound: set[Column],
    filters: list[Factor],
    elsewhere: Callable[[], set[Column]],
    size_of: Callable[[Ref], str | None],
    search: RowSearch | None,
) -> _AccessPath:
    """Choose the best lookup with those variables bound; `elsewhere` are those that keys, lanes and other views read.

    `size_of`: how it is looked up if there is one record at most, or there are few. `search`: how a range finds one
    record of the view, if it may.
    """
    new = [v for v in ref.variables if v not in bound]
    if ref.row:
        return _AccessPath(ref, "later" if new else "row" if ref.row.fields else "exists")
    if not new:
        return _AccessPath(ref, "probe" if ref.variables else "apart")
    if size := size_of(ref):
        return _AccessPath(ref, size)
    ranges = [found for v in new if (found := _range(v, bound, filters))]
    if ranges:
        range, used = max(ranges, key=lambda found: len(found[1]))
        read = elsewhere().union(*(variables(f) for f in filters if f not in used))
        ends = (range.rising is not None, range.falling is not None)
        if search and search.finds(ref.variables, new, range.variable, ends):
            return _AccessPath(ref, search.method, range, used, search)
        ordered = not range.variable.type.is_wide
        return _AccessPath(ref, "sum" if ordered and not read & set(new) else "range", range, used)
    return _AccessPath(ref, "scan" if len(new) == len(ref.variables) else "slice")


def _range(variable: Column, bound: set[Column], filters: Iterable[Factor]) -> tuple[Range, tuple[Factor, ...]] | None:
    """Find the range of a variable that filters imply, and which filters do."""
    if not variable.type.is_ordered:
        return None
    found = [
        (f, path)
        for f in filters
        if isinstance(f, Cmp)
        and variable in f.reads <= bound | {variable}
        and (path := direction(f.predicate, variable))
    ]
    if not found:
        return None
    sides = {side: [f.predicate for f, path in found if path == side] for side in (RISING, FALLING)}
    rising, falling = (conjunction(sides[side]) if sides[side] else None for side in (RISING, FALLING))
    return Range(variable, rising, falling), tuple(f for f, _ in found)


def _lookup(path: _AccessPath, bound: set[Column], indexes: Indexes) -> Lookup:
    """Make the step, with the index that it needs."""
    ref, method, range = path.ref, path.method, path.range
    bound_keys = tuple((i, v) for i, v in enumerate(ref.variables) if v in bound)
    new = tuple((i, v) for i, v in enumerate(ref.variables) if v not in bound)
    index, equal = -1, tuple(i for i, _ in bound_keys)
    if method in ("apart", "exists", "row"):
        method = "probe"
    if method in ("one", "few"):
        method = "slice" if bound_keys else "scan"
    if method == "slice":
        index = indexes.slice(ref.name, equal)
    elif range:
        ranged = ref.variables.index(range.variable)
        first = (ranged, *path.search.then) if path.search else (ranged,)
        order = Order((*equal, *first, *(i for i, _ in new if i not in first)), len(equal))
        order = replace(order, real=range.variable.type.kind is Kind.DOUBLE)
        index = indexes.order(ref.name, replace(order, heights=path.search.heights) if path.search else order)
    else:
        indexes.records.add(ref.name)
    return Lookup(
        ref.name, method, index, bound_keys, () if method == "sum" else new, ref.picks, range=range, row=ref.row
    )


def _note_live(steps: list[Step], outputs: set[Column]) -> None:
    """Note at each lookup which variables are read later."""
    live = set(outputs)
    for i in reversed(range(len(steps))):
        match steps[i]:
            case Lookup(range=ranged) as step:
                steps[i] = replace(step, live=frozenset(v.id for v in live))
                live |= {v for _, v in step.bound_keys}
                for predicate in (ranged.rising, ranged.falling) if ranged else ():
                    live |= columns(predicate) if predicate else set()
            case FilterStep(predicate):
                live |= columns(predicate)
            case Let(_, value):
                live |= columns(value)
