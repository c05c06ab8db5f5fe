"""The result as a table that changes while the run goes on.

The rows are a bag of the changes, (row, count), which is added up only when the table is drawn; a large result is
drawn less often, so that the display costs little.
"""

from collections.abc import Callable
from time import perf_counter
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from squallpy.logical.expressions import Column
from squallpy.logical.nodes import Limit, Node, Query, Sort
from squallpy.runtime.observers.protocol import Observer, QueryStart
from squallpy.runtime.observers.report import BatchReport
from squallpy.terminal.fit_columns import fit, rank_columns
from squallpy.terminal.text_table import table_text

_REFRESH, _MAX_DRAWING = 0.1, 5  # seconds between two drawings, and the least multiple of a drawing's own time


class Bag:
    """The current rows of a result, from changes."""

    def __init__(self, schema: pa.Schema) -> None:
        self._schema = schema
        self._names = [f"c{i}" for i in range(len(schema))]  # NB: output names may repeat
        self._counts = pa.Table.from_arrays([pa.array([], t) for t in [*schema.types, pa.int64()]], [*self._names, "n"])
        self._pending: list[pa.Table] = []

    def change(self, deletes: pa.Table, inserts: pa.Table) -> None:
        """Note what went and came."""
        self._pending += [self._counted(deletes, -1), self._counted(inserts, 1)]

    def rows(self) -> pa.Table:
        """List the current rows."""
        if self._pending:
            # NB: combined, as a group-by needs buffers that are aligned, unlike those of messages
            both = pa.concat_tables([self._counts, *self._pending]).combine_chunks()
            sums = both.group_by(self._names, use_threads=False).aggregate([("n", "sum")])
            sums = sums.select([*self._names, "n_sum"]).rename_columns([*self._names, "n"])
            self._counts, self._pending = sums.filter(pc.not_equal(sums["n"], 0)), []
        times = np.asarray(self._counts["n"])
        rows = self._counts.select(self._names).take(pa.array(np.repeat(np.arange(len(times)), times)))
        return pa.Table.from_arrays(rows.columns, schema=self._schema)

    def _counted(self, table: pa.Table, sign: int) -> pa.Table:
        n = pa.repeat(pa.scalar(sign, pa.int64()), len(table))
        return pa.Table.from_arrays([*table.columns, n], [*self._names, "n"])


def order_of(plan: Node, columns: int) -> list[tuple[int, str, str]]:
    """List (column, direction, place of NULLs) to sort by: ORDER BY as far as it is printed, then left to right."""
    order = order_by(plan)
    return order + [(i, "ascending", "at_end") for i in range(columns) if i not in {place for place, _, _ in order}]


def order_by(plan: Node) -> list[tuple[int, str, str]]:
    """List (column, direction, place of NULLs) of ORDER BY, as far as it is printed."""
    node = plan.child if isinstance(plan, Limit) else plan
    places = {column.id: i for i, column in reversed(list(enumerate(plan.output)))}
    order = []
    while not isinstance(node, Sort) and len(node.inputs) == 1:
        (node,) = node.inputs
    if isinstance(node, Sort):
        for key, down, nulls_first in node.keys:
            if not isinstance(key, Column) or key.id not in places:
                break
            order.append(
                (places[key.id], "descending" if down else "ascending", "at_start" if nulls_first else "at_end")
            )
    return order


def ordered(table: pa.Table, order: list[tuple[int, str, str]]) -> pa.Table:
    """Sort rows that have the columns of an order."""
    keys, columns = [], {}
    for place, direction, nulls in order:
        columns[f"n{place}"] = pc.is_null(table.column(place)).cast(pa.int8())
        columns[f"c{place}"] = table.column(place)
        keys += [(f"n{place}", "descending" if nulls == "at_start" else "ascending"), (f"c{place}", direction)]
    return table.take(pc.sort_indices(pa.table(columns), sort_keys=keys)) if columns and len(table) else table


class Live(Observer):
    """A sink that shows the current result, as it observes that batches are done.

    It erases itself before the final result is printed.
    """

    def __init__(self, shown: Callable[[], None], console: Any = None) -> None:
        from rich.console import Console

        self._console, self._on_shown = console or Console(), shown
        self._live: Any = None
        self._due = 0.0

    def begin(self, query: Query, schema: pa.Schema, batches: int | None) -> None:
        self._bag, self._batches, self._is_first = Bag(schema), batches, True
        self._order = order_of(query.plan, len(schema))
        self._ranked = rank_columns(query.plan, schema, [place for place, _, _ in order_by(query.plan)])
        self._due = 0.0

    def on_query_started(self, start: QueryStart) -> None:
        self._results, self._number = start.results, [query.is_printed for query in start.queries].index(True)

    def on_plan_changed(self, start: QueryStart) -> None:
        self._results = start.results

    def batch(self, number: int, deletes: pa.Table | None, inserts: pa.Table | None) -> None:
        assert deletes is not None and inserts is not None
        if self._is_first and number:  # the run goes on from a checkpoint: earlier batches are in the result alone
            self._bag.change(deletes.slice(0, 0), self._results()[self._number])
        else:
            self._bag.change(deletes, inserts)
        self._is_first = False

    def on_query_progress(self, report: BatchReport) -> None:
        start = perf_counter()
        if start >= self._due:
            self._draw(report.number, report.total_tuples)
            end = perf_counter()
            self._due = end + max(_REFRESH, _MAX_DRAWING * (end - start))

    def final(self, table: pa.Table) -> None:
        self.close()

    def finish(self, stopped: bool) -> None: ...

    def close(self) -> None:
        """Take the table away."""
        if self._live:
            self._live.stop()
            self._live = None

    def _draw(self, number: int, tuples: int) -> None:
        from rich.live import Live as Screen

        if self._live is None:
            self._on_shown()
            self._live = Screen(console=self._console, auto_refresh=False, transient=True)
            self._live.start()
        self._live.update(self._table(number, tuples), refresh=True)

    def _table(self, number: int, tuples: int) -> Any:
        from rich.console import Group
        from rich.text import Text

        rows = ordered(self._bag.rows(), self._order)
        part = rows.slice(0, max(1, self._console.height - 5))
        drawn = fit(part, self._console.width - 1, self._ranked)
        place = f"batch {number + 1:,}" + ("" if self._batches is None else f" of {self._batches:,}")
        caption = f"{place}  {tuples:,} tuples  {len(rows):,} rows"
        left_out = rows.num_columns - drawn.num_columns
        if left_out:
            caption += f"\n{left_out} of {rows.num_columns} columns not shown: the terminal is too narrow"
        head, *lines = b"".join(table_text(drawn)).decode().splitlines()
        return Group(
            Text(head, style="bold", no_wrap=True),
            Text("\n".join(lines), no_wrap=True),
            Text(caption, style="dim", no_wrap=True),
        )
