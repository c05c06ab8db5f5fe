"""Schedule of the choice of plans by the rows that relations have had: anew whenever there are twice as many.

10,000 rows   the plan that nothing was known for, or another one, as estimates by these rows say
20,000 rows   …

Source: `fivm-on-flink` §4.6, whose costs are of the records of views.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import field

from squallpy.base.records import dataclass
from squallpy.catalog.relation import Relation
from squallpy.compiler import CompiledProgram
from squallpy.program.auxiliary.model_rows import ModelRows

FIRST_ROWS = 10_000
"""Rows of all relations, before which a plan is not chosen: with fewer, any is good."""
Usage = Mapping[str, Mapping[str, int]]
"""Records and bytes by pool."""


@dataclass
class ChoiceSchedule:
    """Rows that were read of each relation, and how many there have to be before a plan is chosen by them."""

    rows: Counter[str] = field(default_factory=Counter, init=False)
    _due: int = field(default=0, init=False)

    def restore(self, rows: Mapping[str, int]) -> None:
        """Begin with the rows by which the plan in force was chosen, if any."""
        self.rows.update(rows)
        self._due = 2 * self.rows.total()

    def know(self, rows: Mapping[str, int]) -> None:
        """Take note of rows that were read, as sources number them."""
        self.rows |= {name: count for name, count in rows.items() if count}

    def add(self, rows: Mapping[str, int]) -> None:
        """Take note of the rows of a batch."""
        self.rows.update(rows)

    def drop(self, name: str) -> None:
        """Forget the rows of a relation."""
        self.rows.pop(name, None)

    def reconsider(self) -> None:
        """Let a plan be chosen as soon as there are enough rows, as the queries are others."""
        self._due = 0

    @property
    def is_due(self) -> bool:
        """True if there are enough rows for a plan to be chosen."""
        return self.rows.total() >= max(self._due, FIRST_ROWS)

    def begin(self) -> None:
        """Let the next choice wait until there are twice as many rows."""
        self._due = 2 * self.rows.total()


def depends_on_rows(compiled: CompiledProgram) -> bool:
    """True if rows of relations may choose other views: those of view trees, and nothing else."""
    return any(isinstance(aux.kind, ModelRows) for aux in compiled.lowered.auxiliary)


def rows_present(relations: Iterable[Relation], usage: Usage) -> dict[str, int]:
    """Count the rows that there are of relations with deletes, where they are counted or kept by key in one place."""
    from squallpy.runtime.state.pool_names import PoolName, Role  # NB: EXPLAIN needs no runtime

    pools = {r.name: PoolName(r.name, Role.LEDGER if r.has_ledger else Role.LATEST) for r in relations}
    return {name: usage[pool]["records"] for name, pool in pools.items() if pool in usage}
