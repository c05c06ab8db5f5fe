"""What one tuple of a delta costs a statement, whatever the tables hold, as EXPLAIN says.

probe M_PART(p)                  O(1)
slice M_N1(p), an average by p   O(1)       of a group there is one row
slice M_LINEITEM(p)              O(slice)   as many records as it finds; of a batch, as many as that has
scan M_CUSTOMER()                O(n)       all of a view
"""

from collections.abc import Iterable, Mapping

from squallpy.logical.expressions import Column, columns
from squallpy.maintain.program import Monomial, Nest, View
from squallpy.maintain.relational.calculus import Assign, Rel
from squallpy.physical.plan import Lookup, Nested, Plan, Update

COSTS = ("O(1)", "O(log n)", "O(slice)", "O(n)")  # cheap to dear
ONE, _, SLICE, ALL = COSTS

Costs = tuple[tuple[str, ...], ...]


def costs(plan: Plan) -> Costs:
    """By trigger, by statement; of the trigger of a nest, first what a group costs that its view's delta touched."""
    program = plan.program
    views = {view.name: view for view in (*program.views, *(d for t in program.triggers for d in t.deltas))}
    keys = _keys(plan)
    found = []
    for feed, updates in zip(plan.feeds, plan.updates, strict=True):
        rows = [_rows(feed.nested)] if feed.nested else []
        found.append((*rows, *(_cost(update, views, keys) for update in updates)))
    return tuple(found)


def _rows(nested: Nested) -> str:
    """The cost of a group's rows: an extreme that has gone is looked for in all the group."""
    if nested.finish.over is None:
        return ONE
    return SLICE if nested.group else ALL


def _cost(update: Update, views: Mapping[str, View], keys: Mapping[str, tuple[str, ...]]) -> str:
    """The cost of its dearest step."""
    lookups = (step for step in update.steps if isinstance(step, Lookup))
    return max((_step(step, views[step.source], keys) for step in lookups), key=COSTS.index, default=ONE)


def _step(step: Lookup, view: View, keys: Mapping[str, tuple[str, ...]]) -> str:
    if step.how == "probe" or _finds_one(view, [view.keys[position] for position, _ in step.bound], keys):
        return ONE
    batch = any(atom.delta for atom in view.atoms)
    return SLICE if step.how == "slice" or batch else ALL


def _keys(plan: Plan) -> dict[str, tuple[str, ...]]:
    """The fields that tell the rows of a relation apart, where they are known: of a nest, those of its groups."""
    declared = {r.name: r.primary_key for r in plan.program.relations if r.primary_key}
    return declared | {nest.relation.name: _group(nest) for nest in plan.program.nests}


def _group(nest: Nest) -> tuple[str, ...]:
    assert nest.source is not None
    group = {v for v in nest.source.variables if v != nest.finish.over}
    return tuple(title for title, expr in nest.finish.items if expr in group)


def _finds_one(view: View, bound: Iterable[Column], keys: Mapping[str, tuple[str, ...]]) -> bool:
    """Do the variables in `bound` leave one record of the view at most?"""
    if len(view.terms) > 1:
        return False
    return set(view.keys) <= _determined(view.terms[0], bound, keys)


def _determined(term: Monomial, bound: Iterable[Column], keys: Mapping[str, tuple[str, ...]]) -> set[Column]:
    """The variables that have one value each, given those in `bound`."""
    known = set(bound)
    while True:
        more: set[Column] = set()
        for factor in term.body:
            match factor:
                case Rel(relation, fields, delta=False) if (key := keys.get(relation.name)) is not None:
                    by_name = dict(fields)
                    if all(name in by_name and by_name[name] in known for name in key):
                        more |= {v for _, v in fields}
                case Assign(variable, value) if columns(value) <= known:
                    more.add(variable)
        if more <= known:
            return known
        known |= more
