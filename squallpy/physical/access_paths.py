"""Access paths: the order of a statement's lookups, and the kind of each.

    ΔN1(t) ⋈ M_BIDS(volume) ⋈ M_ASKS(price) ⋈ (volume > 0.25 * t)
    →  sum M_BIDS(volume > 0.25 * t) → scan M_ASKS()

Bound variables make a probe or a slice. A predicate that compares one more variable with bound ones makes a range of a
sorted index; if nothing else reads the records in it, their sum is looked up. A foreign key selects few records: a
slice is then as good, and takes less memory.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import field, replace
from heapq import heappop, heappush

from squallpy.base.index_order import Order
from squallpy.base.records import dataclass
from squallpy.base.types import Kind
from squallpy.logical.expressions import Column, columns, conjunction
from squallpy.logical.monotonicity import FALLING, RISING, direction
from squallpy.physical.plan import FilterStep, Let, Lookup, PoolPlan, Range, StatementStep, Update
from squallpy.program.auxiliary.kind import RowSearch
from squallpy.program.calculus import Assign, Cmp, Factor, solutions, variables
from squallpy.program.trigger_program import Statement, TriggerProgram
from squallpy.program.unique_keys import certain_keys, finds_one, known_keys
from squallpy.program.view_facts import few_record_views, foreign_keys, narrow_views, row_searches, stream_keys
from squallpy.program.views import Ref, View

_Cost = tuple[int, bool, int, bool, bool, int]

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
    groups: dict[str, tuple[int, ...]] = field(default_factory=dict)
    orders: dict[str, list[Order]] = field(default_factory=dict)
    records: set[str] = field(default_factory=set)

    def group(self, view: str, positions: tuple[int, ...]) -> int:
        """Let the view's own index be by those keys, which leave one record, and return −1; else the slice by them."""
        self.records.add(view)
        return -1 if self.groups.setdefault(view, positions) == positions else self.slice(view, positions)

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

    def add_to(self, pool: PoolPlan) -> PoolPlan:
        """Give a view its indexes."""
        view, orders = pool.name, tuple(self.orders.get(pool.name, ()))
        is_ordered, slices = bool(orders) and view not in self.records, tuple(self.slices.get(view, ()))
        return PoolPlan(view, pool.keys, pool.payload, slices, orders, is_ordered, self.groups.get(view, ()))


class ViewFacts:
    """Facts about a program's views, found once for all of its statements."""

    def __init__(self, program: TriggerProgram) -> None:
        self._views = {view.name: view for view in program.views}
        self._keys, self._foreign, self._few = known_keys(program), foreign_keys(program), few_record_views(program)
        self._of_streams = stream_keys(program)
        self._sizes = dict[tuple[str, tuple[int, ...]], str | None]()
        self.narrow_views = narrow_views(program)
        self.searches = row_searches(program, certain_keys(program))

    def size(self, name: str, bound: tuple[int, ...]) -> str | None:
        """Tell how a view is looked up by the keys at some positions, if that finds one record at most, or few."""
        if (name, bound) not in self._sizes:
            self._sizes[name, bound] = self._size(name, bound)
        return self._sizes[name, bound]

    def is_by_stream(self, name: str, bound: Iterable[int]) -> bool:
        """True if one of the keys at some positions of a view names a row of a stream: few records have the same."""
        view = self._views.get(name)
        return view is not None and _are_fields(view, [view.keys[i] for i in bound], self._of_streams)

    def _size(self, name: str, bound: tuple[int, ...]) -> str | None:
        view = self._views.get(name)
        if view is None:
            return None
        keys = [view.keys[i] for i in bound]
        if finds_one(view, keys, self._keys):
            return "one"
        return "few" if name in self._few else "slice" if _are_fields(view, keys, self._foreign) else None


def access(statement: Statement, facts: ViewFacts, indexes: Indexes) -> Update:
    """Compile a statement to steps, with filters as soon as they can be evaluated."""
    first = statement.refs[0]
    steps = _StatementSteps(statement, facts).order(indexes)
    return Update(
        statement.target, first.name, first.variables, first.picks, tuple(steps), statement.keys, statement.lanes
    )


class _StatementSteps:
    """The steps of a statement so far, with the lookups and filters that are left, by number."""

    def __init__(self, statement: Statement, facts: ViewFacts) -> None:
        first, *others = statement.refs
        self._statement, self._facts = statement, facts
        self._bound, self._steps = set(first.variables), list[StatementStep]()
        self._lookups, self._filters = dict(enumerate(others)), dict(enumerate(statement.filters))
        self._readers = _by_variable((i, ref.variables) for i, ref in self._lookups.items())
        self._filtered = _by_variable((i, variables(f)) for i, f in self._filters.items())
        self._outputs = {*statement.keys, *(v for lane in statement.lanes for f in lane or () for v in columns(f))}

    def order(self, indexes: Indexes) -> list[StatementStep]:
        """Do the cheapest lookup first, again and again, each followed by the filters that it makes possible."""
        self._evaluate_filters()
        paths, cheapest = dict[int, _AccessPath](), list[tuple[_Cost, int]]()
        costs, unranked = dict[int, _Cost](), frozenset(self._lookups)
        while self._lookups:
            for i in unranked:
                paths[i] = self._choose_path(i)
                costs[i] = _cost(paths[i], self._bound, self._facts)
                heappush(cheapest, (costs[i], i))
            while (found := heappop(cheapest))[1] not in self._lookups or found[0] != costs[found[1]]:
                pass  # NB: it is done, or has another cost by now
            unranked = self._look_up(found[1], paths[found[1]], indexes)
        assert not self._filters, f"{self._filters} cannot be evaluated"
        _note_live(self._steps, self._outputs)
        return self._steps

    def _look_up(self, number: int, path: "_AccessPath", indexes: Indexes) -> frozenset[int]:
        """Do a lookup, and return the numbers of those whose cost may change by that."""
        before = frozenset(self._bound)
        self._steps.append(_lookup(path, self._bound, indexes))
        del self._lookups[number]
        for i in path.used_filters:
            del self._filters[i]
        self._bound |= set(path.ref.bound_variables)
        self._evaluate_filters()
        new = self._bound - before
        filters = {i for v in new for i in self._filtered[v] if isinstance(self._statement.filters[i], Cmp)}
        unbound = (self._statement.filters[i].reads - self._bound for i in filters)
        ranged = (next(iter(left)) for left in unbound if len(left) == 1)
        return frozenset(i for v in new.union(ranged) for i in self._readers[v] if i in self._lookups)

    def _evaluate_filters(self) -> None:
        """Add the filters whose variables are bound, and compute keys of lookups that equal expressions of these."""
        for i, f in list(self._filters.items()):
            factors: tuple[Factor, ...] = (f,) if f.reads <= self._bound else ()
            if len(f.reads - self._bound) == 1:
                factors = next(((*tests, key) for tests, key in solutions(f) if self._is_key(key)), ())
            if factors:
                del self._filters[i]
            for factor in factors:
                match factor:
                    case Cmp(predicate):
                        self._steps.append(FilterStep(predicate))
                    case Assign(variable, value):
                        assert variable not in self._bound, f"{variable} is bound twice"
                        self._steps.append(Let(variable, value))
                        self._bound.add(variable)

    def _is_key(self, assign: Assign) -> bool:
        """True if an assignment computes a key of lookups, and no column of a row that is computed."""
        if not assign.reads <= self._bound or not any(i in self._lookups for i in self._readers[assign.variable]):
            return False
        rows = (ref.row for ref in self._lookups.values() if ref.row)
        return all(assign.variable != v for row in rows for _, v in row.fields)

    def _choose_path(self, number: int) -> "_AccessPath":
        """Choose the best way of a lookup with the variables that are bound."""
        ref = self._lookups[number]
        new = [v for v in ref.variables if v not in self._bound]
        if ref.row:
            return _AccessPath(ref, "later" if new else "row" if ref.row.fields else "exists")
        if not new:
            return _AccessPath(ref, "probe" if ref.variables else "apart")
        if size := self._facts.size(ref.name, tuple(i for i, v in enumerate(ref.variables) if v in self._bound)):
            return _AccessPath(ref, size)
        if ranges := [found for v in new if (found := self._range(v))]:
            range, used = max(ranges, key=lambda found: len(found[1]))
            ends, search = (range.rising is not None, range.falling is not None), self._facts.searches.get(ref.name)
            if search and search.finds(ref.variables, new, range.variable, ends):
                return _AccessPath(ref, search.method, range, used, search)
            summed = not range.variable.type.is_wide and not any(self._is_read(v, number, used) for v in new)
            return _AccessPath(ref, "sum" if summed else "range", range, used)
        return _AccessPath(ref, "scan" if len(new) == len(ref.variables) else "slice")

    def _range(self, variable: Column) -> tuple[Range, tuple[int, ...]] | None:
        """Find the range of a variable that filters imply, and the numbers of these."""
        if not variable.type.is_ordered:
            return None
        known = self._bound | {variable}
        near = ((i, self._filters.get(i)) for i in self._filtered[variable])
        found = [
            (i, f.predicate, path)
            for i, f in near
            if isinstance(f, Cmp) and f.reads <= known and (path := direction(f.predicate, variable))
        ]
        if not found:
            return None
        sides = {side: [predicate for _, predicate, path in found if path == side] for side in (RISING, FALLING)}
        rising, falling = (conjunction(sides[side]) if sides[side] else None for side in (RISING, FALLING))
        return Range(variable, rising, falling), tuple(i for i, _, _ in found)

    def _is_read(self, variable: Column, number: int, used: Collection[int]) -> bool:
        """True if keys, lanes, other lookups or filters that are not `used` read a variable of a lookup."""
        others = [i for i in self._readers[variable] if i != number and i in self._lookups]
        filters = [i for i in self._filtered[variable] if i not in used and i in self._filters]
        return bool(variable in self._outputs or others or filters)


def _by_variable(items: Iterable[tuple[int, Iterable[Column]]]) -> Mapping[Column, list[int]]:
    """List the numbers of the items that have a variable."""
    found = defaultdict[Column, list[int]](list)
    for number, names in items:
        for v in names:
            found[v].append(number)
    return found


def _cost(path: "_AccessPath", bound: set[Column], facts: ViewFacts) -> _Cost:
    """Rank a lookup by its cost and the records that it returns."""
    choice, is_one = _CHOICE.index(path.method), path.method in _ONE
    return (
        0 if is_one else choice,
        is_one and path.ref.name not in facts.narrow_views,
        choice,
        *_fan_out(path, bound, facts),
    )


def _fan_out(path: "_AccessPath", bound: set[Column], facts: ViewFacts) -> tuple[bool, bool, int]:
    """Estimate the records of a view that a lookup finds: fewer by a key of a stream, and if more variables are bound.

    TPC-H Q5: a supplier has fewer lineitems than its nation, a row of a table, has customers.
    """
    ref = path.ref
    new = set(ref.variables) - bound
    is_keyed = path.method not in ("slice", "range") or facts.is_by_stream(
        ref.name, [i for i, v in enumerate(ref.variables) if v in bound]
    )
    return len(new) == len(ref.variables), not is_keyed, len(new)


def _are_fields(view: View, bound_keys: Iterable[Column], fields: Collection[tuple[str, str]]) -> bool:
    """True if one of `fields` is bound."""
    wanted = set(bound_keys)
    return any(v in wanted and (a.relation.name, name) in fields for a in view.atoms for name, v in a.fields)


@dataclass(frozen=True, slots=True)
class _AccessPath:
    """One way to look a view up, and the numbers of the filters that it takes care of."""

    ref: Ref
    method: str
    range: Range | None = None
    used_filters: tuple[int, ...] = ()
    search: RowSearch | None = None  # the variable of the range


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
        index = (indexes.group if path.method == "one" else indexes.slice)(ref.name, equal)
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


def _note_live(steps: list[StatementStep], outputs: set[Column]) -> None:
    """Note at each lookup which variables are read later."""
    live = {v.id for v in outputs}
    for i in reversed(range(len(steps))):
        match steps[i]:
            case Lookup(range=ranged) as step:
                steps[i] = replace(step, live=frozenset(live))
                live |= {v.id for _, v in step.bound_keys}
                for predicate in (ranged.rising, ranged.falling) if ranged else ():
                    live |= {v.id for v in columns(predicate)} if predicate else set()
            case FilterStep(expr) | Let(_, expr):
                live |= {v.id for v in columns(expr)}
