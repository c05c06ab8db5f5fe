"""Cost of a statement for one tuple of its delta, whatever the size of the tables, as EXPLAIN shows it.

probe M_PART(p)                  O(1)
slice M_N1(p), an average by p   O(1)       a group has one row
sum M_BIDS(price > x)            O(log n)   of a sorted index; range finds its first record as fast
slice M_LINEITEM(p)              O(slice)   the number of records that it finds, or of a batch
scan M_CUSTOMER()                O(n)       all of a view
"""

from collections.abc import Mapping
from itertools import islice

from squallpy.physical.plan import Lookup, Plan, Update
from squallpy.program.complexity import ALL, COST_MARKS, LOG, ONE, SLICE
from squallpy.program.unique_keys import Keys, finds_one, known_keys
from squallpy.program.view_facts import few_record_views
from squallpy.program.views import View

Costs = tuple[tuple[str, ...], ...]


def costs(plan: Plan) -> Costs:
    """Find the cost marks of a one-partition plan's statements, by trigger.

    The trigger of an auxiliary relation begins with the cost of a group that its view's delta touched.
    """
    program = plan.program
    views = {view.name: view for view in (*program.views, *(d for t in program.triggers for d in t.deltas))}
    keys, few = known_keys(program), few_record_views(program)
    (stage,) = plan.stages
    steps = iter(stage.steps)
    found = []
    for feed, trigger in zip(plan.feeds, program.triggers, strict=True):
        own_steps = islice(steps, (feed.auxiliary is not None) + len(trigger.statements))
        rows = [a.kind.cost(a.source.keys, a.output)] if (a := feed.auxiliary) else []
        found.append((*rows, *(_cost(step, views, keys, few) for step in own_steps if isinstance(step, Update))))
    return tuple(found)


def _cost(update: Update, views: Mapping[str, View], keys: Keys, few: frozenset[str]) -> str:
    """Find the cost of the most expensive step."""
    lookups = (step for step in update.steps if isinstance(step, Lookup))
    return max((_step(step, views[step.source], keys, few) for step in lookups), key=COST_MARKS.index, default=ONE)


def _step(step: Lookup, view: View, keys: Keys, few: frozenset[str]) -> str:
    """Find the cost of one lookup."""
    if step.method == "probe" or finds_one(view, [view.keys[position] for position, _ in step.bound_keys], keys):
        return ONE
    if step.method in ("sum", "nearest", "highest"):
        return LOG
    short = view.name in few or any(atom.delta for atom in view.atoms)
    return ALL if step.method == "scan" and not short else SLICE
