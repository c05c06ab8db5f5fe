"""Fixpoints: the rows of WITH RECURSIVE, from the changes of what its rules read besides.

Two maintainers follow the rules: `fixpoint_iterations.py` any rules, `fixpoint_groups.py` those that copy some columns.
"""

from abc import abstractmethod

from squallpy.base.errors import SquallError
from squallpy.base.types import INT
from squallpy.logical.expressions import Column
from squallpy.physical.plan import AuxiliaryPlan, Feed
from squallpy.program.auxiliary.fixpoint import Fixpoint
from squallpy.runtime.auxiliary.fixpoint_leaves import Own
from squallpy.runtime.auxiliary.maintainer import Maintainer, RowDeltas, TouchedGroups
from squallpy.runtime.messages.deltas import Delta
from squallpy.runtime.state.state_store import Store


def endless(kind: Fixpoint) -> SquallError:
    """Make SQ5015 for a recursion that has new rows in every iteration."""
    names = " and ".join(f'"{table.relation.name}"' for table in kind.tables)
    message = f"{names} still changes after {kind.most:,} iterations"
    hint = "bound it by a condition such as depth < 100, write UNION for UNION ALL, or --set iterations=N"
    return SquallError("SQ5015", message, kind.span, hint)


class FixpointMaintainer(Maintainer):
    """A maintainer of the rows of recursive tables; where there are several, a row begins with the table's number."""

    def __init__(self, feed: Feed, aux: AuxiliaryPlan, own: Own | None = None) -> None:
        """Open the maintainer of all rows, or of those that are a partition's `own`."""
        assert isinstance(aux.kind, Fixpoint)
        self._kind, self._own, self._rows = aux.kind, own, RowDeltas(feed)
        tables = range(len(aux.kind.tables))
        self._is_tagged = len(tables) > 1
        self._columns = [Column(-1, "", INT, False)] if self._is_tagged else []
        self._columns += [c for at in tables for c in aux.kind.columns_of(at)]
        self._titles = {
            title: (at, c) for at, ((title, _), c) in enumerate(zip(aux.output.items, self._columns, strict=True))
        }

    def deltas(self, store: Store, touched: TouchedGroups | None) -> dict[str, Delta]:
        assert touched is not None
        return self._maintain(store, touched) if len(touched[0]) else {}

    @abstractmethod
    def _maintain(self, store: Store, touched: TouchedGroups) -> dict[str, Delta]:
        """Follow the rules from the leaves that changed; returned is the change of the tables' rows."""
