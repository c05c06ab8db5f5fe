"""The answer of a query while rows come, for those who cannot see a live table: python demo.py QUERY.sql

Also an example of a sink and an observer of one's own: a Session calls the one with what every batch took away and
added, the other with a report of it.
"""

import sys
from pathlib import Path

import pyarrow as pa

from squallpy.logical.nodes import Query
from squallpy.runtime.observers.protocol import Observer
from squallpy.runtime.observers.report import BatchReport, RunSummary
from squallpy.script_session import RunOptions, ScriptSession
from squallpy.terminal.failures import guarded
from squallpy.terminal.live_table import Bag, order_of, ordered
from squallpy.terminal.text_table import table_text

EVERY = 7  # batches from one look at the answer to the next
ROWS = 3


class Watch(Observer):
    """Prints the top of the answer now and then, and all of it at the end."""

    def begin(self, query: Query, schema: pa.Schema, batches: int | None) -> None:
        print(f"{query.text}\n\nin {batches} micro-batches on Spark; the top {ROWS} rows of the answer as rows come:\n")
        self.bag, self.order = Bag(schema), order_of(query.plan, len(schema))

    def batch(self, number: int, deletes: pa.Table | None, inserts: pa.Table | None) -> None:
        assert deletes is not None and inserts is not None
        self.bag.change(deletes, inserts)
        self.last = f"in the last batch {len(deletes)} went, {len(inserts)} came"

    def on_query_progress(self, report: BatchReport) -> None:
        if report.number % EVERY == 0:
            print(f"after {report.total_tuples:,} tuples ({self.last})")
            show(ordered(self.bag.rows(), self.order).slice(0, ROWS))

    def final(self, table: pa.Table) -> None:
        print("the final answer")
        show(table)

    def finish(self, stopped: bool) -> None: ...

    def on_query_terminated(self, summary: RunSummary) -> None:
        tuples, seconds = summary.tuples, summary.seconds
        print(f"{tuples:,} tuples in {seconds:.1f} s (with the start of Spark), {tuples / seconds:,.0f} tuples/s")


def show(table: pa.Table) -> None:
    print(b"".join(table_text(table)).decode(), flush=True)


if __name__ == "__main__":
    options, watch = RunOptions(batch_rows=25_000, changes=True), Watch()
    sys.exit(guarded(lambda: ScriptSession(Path(sys.argv[1])).run(options, watch, observer=watch)))
