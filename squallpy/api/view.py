"""Views and answers in Python: their rows, and changes batch by batch."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from squallpy.api.html import PlanText, table_html
from squallpy.api.relation import Table
from squallpy.api.rows import Rows
from squallpy.base.errors import SquallError
from squallpy.frontend.declaration_text import qualified

if TYPE_CHECKING:
    import pyarrow as pa

    from squallpy.api.live_display import LiveDisplay
    from squallpy.live.subscription import ChangeReader, ViewChange


class Snapshot(Rows):
    """The answer of an ad hoc query."""

    def __init__(self, table: "pa.Table") -> None:
        self._table = table

    def to_arrow(self) -> "pa.Table":
        return self._table

    def __repr__(self) -> str:
        return repr(self._table)


class View(Table):
    """A view that is kept fresh; its rows are always those of the last batch."""

    def to_arrow(self) -> "pa.Table":
        return self._session.table(self.name)

    def changes(self, snapshot: bool = False, limit: int | None = None) -> "ChangeReader":
        """Return what batches change from now on; iterating waits while the session has started batches in a thread.

        Args:
            snapshot: Begin with the rows as they are now.
            limit: The batches that may wait for a slow reader, by default 1,000; one that is further behind gets
                SQ7010.
        """
        return self._session.subscribe(self.name, snapshot, limit)

    def on_change(self, callback: "Callable[[ViewChange], None]") -> None:
        """Call a function with each change, in the thread that applies the batch."""
        self._session.on_change(self.name, callback)

    def live(self) -> "LiveDisplay":
        """Return what a notebook shows and refreshes in place as batches change the view, until it ends or `stop`."""
        from squallpy.api.live_display import LiveDisplay

        return LiveDisplay(self)

    def explain(self, stage: str = "triggers") -> PlanText:
        """Show it at a stage of its compilation: logical, optimized, calculus, triggers, physical, stages."""
        (outcome,) = self._session.execute(f"EXPLAIN {stage} {qualified(self.name)}")
        return PlanText(outcome.text or "")

    def _repr_html_(self) -> str:
        try:
            return table_html(self.to_arrow(), self.name, types=self.columns)
        except SquallError as error:  # NB: it is gone, and the cell that shows it is not wrong
            return error._repr_html_()

    def stats(self) -> Mapping[str, Any]:
        """Return the number of batches, of its rows, and records and bytes by view of the session."""
        return self._session.stats(self.name)

    def drop(self) -> None:
        """Drop it; SQ2014 if other views read it."""
        [*self._session.execute(f"DROP MATERIALIZED VIEW {qualified(self.name)}")]
