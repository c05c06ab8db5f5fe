"""The answer of a query while rows come, for those who cannot see a live table: python demo.py QUERY.sql

Also an example of a sink of one's own: a Session calls it with what every batch took away and added.
"""

import sys
from pathlib import Path
from typing import Any

import pyarrow as pa

from squallpy.logical.nodes import Query
from squallpy.session import RunOptions, Session
from squallpy.terminal.failures import guarded
from squallpy.terminal.live_table import Bag, order_of, ordered
from squallpy.terminal.text_table import table_text

EVERY = 7  # batches from one look at the answer to the next
ROWS = 3


class Watch:
    """Prints the top of the answer now and then, and all of it at the end."""

    def begin(self, query: Query, schema: pa.Schema, batches: int) -> None:
        print(f"{query.text}\n\nin {batches} micro-batches on Spark; the top {ROWS} rows of the answer as rows come:\n")
        self.bag, self.order, self.tuples = Bag(schema), order_of(query.plan, len(schema)), 0

    def batch(self, number: int, deletes: pa.Table | None, inserts: pa.Table | None, stats: dict[str, Any]) -> None:
        assert deletes is not None and inserts is not None
        self.bag.change(deletes, inserts)
        if number % EVERY == 0:
            print(
                f"after {stats['total_tuples']:,} tuples (in the last batch {len(deletes)} went, {len(inserts)} came)"
            )
            show(ordered(self.bag.rows(), self.order).slice(0, ROWS))

    def final(self, table: pa.Table) -> None:
        print("the final answer")
        show(table)

    def finish(self, summary: dict[str, Any]) -> None:
        tuples, seconds = summary["tuples"], summary["seconds"]
        print(f"{tuples:,} tuples in {seconds:.1f} s (with the start of Spark), {tuples / seconds:,.0f} tuples/s")


def show(table: pa.Table) -> None:
    print(b"".join(table_text(table)).decode(), flush=True)


if __name__ == "__main__":
    options = RunOptions(batch_rows=25_000, changes=True)
    sys.exit(guarded(lambda: Session(Path(sys.argv[1])).run(options, Watch())))
