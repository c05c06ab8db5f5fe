"""The domain of an auxiliary relation's delta: groups without which no statement finds anything are not derived.

Q += ΔN1(partkey, avg) ⋈ M_PART(partkey) ⋈ …      →   of the touched groups, ΔN1 has those that M_PART has
"""

from collections.abc import Iterable, Mapping, Sequence

from squallpy.base.records import dataclass
from squallpy.base.types import Kind
from squallpy.logical.expressions import Column
from squallpy.physical.plan import Derive, Feed, Lookup, Plan, PoolPlan, Update
from squallpy.program.auxiliary.groups import Groups
from squallpy.program.views import View

MOST_KEYS = 15  # positions of four bits that a word has room for


@dataclass(frozen=True, slots=True)
class Domain:
    """A view that has a record for each group whose rows any statement reads.

    Args:
        positions: For each key of the view, the position in the group of the key that it equals.
    """

    view: str
    positions: tuple[int, ...]

    @property
    def columns(self) -> int:
        """Four bits for each key of the view, from the lowest."""
        return columns_word(self.positions)


def columns_word(positions: Iterable[int]) -> int:
    """Encode positions, of which there are at most `MOST_KEYS`, as four bits each, from the lowest."""
    return sum(position << (4 * i) for i, position in enumerate(positions))


def find_domain(plan: Plan, feed: Feed, delta: View) -> Domain | None:
    """Find the view that all statements of a delta probe first, unless the batch changes it in between."""
    assert feed.auxiliary
    if len(plan.stages) != 1 or plan.driver or not isinstance(feed.auxiliary.kind, Groups):
        return None
    steps, pools = plan.stages[0].steps, {pool.name: pool for pool in plan.pools}
    derived = next(
        i for i, step in enumerate(steps) if isinstance(step, Derive) and step.relation == feed.relation.name
    )
    reading = [i for i, step in enumerate(steps) if isinstance(step, Update) and step.delta == delta.name]
    domains = {_probed(step, delta, feed, pools) for i in reading if isinstance(step := steps[i], Update)}
    domain = domains.pop() if len(domains) == 1 else None
    if domain is None or _is_looked_up(steps, delta.name):
        return None
    between = [step for step in steps[derived : reading[-1]] if isinstance(step, Update)]
    return None if any(step.target == domain.view for step in between) else domain


def _is_looked_up(steps: Sequence[Update | Derive], delta: str) -> bool:
    """True if a statement looks the delta up."""
    updates = [step for step in steps if isinstance(step, Update)]
    return any(isinstance(step, Lookup) and step.source == delta for update in updates for step in update.steps)


def _probed(update: Update, delta: View, feed: Feed, pools: Mapping[str, PoolPlan]) -> Domain | None:
    """Return the view that a statement probes first, if by keys of the group."""
    match update.steps[:1]:
        case (Lookup(source=source, method="probe", range=None, row=None) as step,) if source in pools:
            keys = [delta.keys[update.variables.index(v)] for _, v in sorted(step.bound_keys, key=lambda key: key[0])]
            positions = [_position(column, delta, feed) for column in keys]
            same = all(key.type == column.type for key, column in zip(pools[source].keys, keys, strict=True))
            if same and 0 < len(positions) <= MOST_KEYS and None not in positions:
                return Domain(source, tuple(p for p in positions if p is not None))
    return None


def _position(column: Column, delta: View, feed: Feed) -> int | None:
    """Return the position of the group's key that a column of the delta is; None if it is another value, or a text."""
    assert feed.auxiliary
    (term,) = delta.terms
    (atom,) = term.atoms
    name = next((name for name, field in atom.fields if field.id == column.id), None)
    item = next((expr for title, expr in feed.auxiliary.output.items if title == name), None)
    if not isinstance(item, Column) or item.type != column.type or column.type.kind is Kind.VARCHAR:
        return None
    keys = feed.auxiliary.source.keys
    return keys.index(item) if item in keys else None
