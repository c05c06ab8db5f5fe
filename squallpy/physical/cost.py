"""Cost of a statement for one tuple of its delta, whatever the size of the tables, as EXPLAIN shows it.

probe M_PART(p)                  O(1)
slice M_N1(p), an average by p   O(1)       of a group there is one row
sum M_BIDS(price > x)            O(log n)   of a sorted index; range finds its first record as fast
slice M_LINEITEM(p)              O(slice)   as many records as it finds; of a batch, as many as that has
scan M_CUSTOMER()                O(n)       all of a view
"""

from collections.abc import Mapping
from itertools import islice

from squallpy.physical.plan import Lookup, Nested, Plan, Update
from squallpy.physical.unique_keys import Keys, finds_one, known_keys, views_of_intervals
from squallpy.program.program import View

COSTS = ("O(1)", "O(log n)", "O(slice)", "O(n)")  # cheap to dear
ONE, LOG, SLICE, ALL = COSTS

Costs = tuple[tuple[str, ...], ...]


def costs(plan: Plan) -> Costs:
    """List the costs of a one-partition plan by trigger and statement; an auxiliary relation's trigger begins with
    its rows."""
    program = plan.program
    views = {view.name: view for view in (*program.views, *(d for t in program.triggers for d in t.deltas))}
    keys, few = known_keys(program), views_of_intervals(program)
    (stage,) = plan.stages
    steps = iter(stage.steps)
    found = []
    for feed, trigger in zip(plan.feeds, program.triggers, strict=True):
        mine = islice(steps, (feed.nested is not None) + len(trigger.statements))
        rows = [_rows(feed.nested)] if feed.nested else []
        found.append((*rows, *(_cost(step, views, keys, few) for step in mine if isinstance(step, Update))))
    return tuple(found)


def _rows(nested: Nested) -> str:
    """Find the cost of a group's rows: a deleted extreme is searched again, values too wide to be ordered are
    scanned."""
    if nested.running or nested.window or nested.neighbours or nested.skyline or nested.spans:
        return LOG
    if nested.finish.over is None:
        return ONE
    is_placed = any(measure.share is not None for measure in nested.finish.measures)  # NB: what is folded has no order
    if nested.order >= 0 and not (is_placed and nested.finish.over.type.is_wide):
        return LOG
    return SLICE if nested.group else ALL


def _cost(update: Update, views: Mapping[str, View], keys: Keys, few: frozenset[str]) -> str:
    """Find the cost of the most expensive step."""
    lookups = (step for step in update.steps if isinstance(step, Lookup))
    return max((_step(step, views[step.source], keys, few) for step in lookups), key=COSTS.index, default=ONE)


def _step(step: Lookup, view: View, keys: Keys, few: frozenset[str]) -> str:
    if step.how == "probe" or finds_one(view, [view.keys[position] for position, _ in step.bound], keys):
        return ONE
    if step.how in ("sum", "nearest", "highest"):
        return LOG
    short = view.name in few or any(atom.delta for atom in view.atoms)
    return ALL if step.how == "scan" and not short else SLICE
