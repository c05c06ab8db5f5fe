"""Base of the sinks of tests and benches, which override what they look at."""

from typing import Any

import pyarrow as pa

from squallpy.logical.nodes import Query


class IgnoringSink:
    """A sink that ignores all that it is given."""

    def begin(self, query: Query, schema: pa.Schema, batches: int | None) -> None:
        return

    def batch(self, number: int, deletes: Any, inserts: Any, stats: dict[str, Any]) -> None:
        return

    def final(self, table: pa.Table) -> None:
        return

    def finish(self, summary: dict[str, Any]) -> None:
        return
