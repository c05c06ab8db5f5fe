"""Base of the sinks and observers of tests and benches, which override what they look at."""

from typing import Any

import pyarrow as pa

from squallpy.logical.nodes import Query
from squallpy.runtime.observers.protocol import Observer


class IgnoringSink(Observer):
    """A sink, and an observer, that ignores all that it is given."""

    def begin(self, query: Query, schema: pa.Schema, batches: int | None) -> None:
        return

    def batch(self, number: int, deletes: Any, inserts: Any) -> None:
        return

    def final(self, table: pa.Table) -> None:
        return

    def finish(self, stopped: bool) -> None:
        return
