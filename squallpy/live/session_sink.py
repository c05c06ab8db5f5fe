"""The sink of a session: it counts batches from that on which it was created with."""

import pyarrow as pa

from squallpy.logical.nodes import Query
from squallpy.runtime.sinks.query_output import QueryOutput


class SessionSink:
    """A sink whose batch 0 has all rows of its query, and whose next ones have the changes of batches.

    Args:
        first: The number of the session's last batch before it was created.
    """

    def __init__(self, output: QueryOutput, first: int) -> None:
        self._output, self.first = output, first

    def begin(self, query: Query, schema: pa.Schema, batches: int | None) -> None:
        self._output.begin(query, schema, batches)

    def batch(self, number: int, deletes: pa.Table | None, inserts: pa.Table | None) -> None:
        self._output.batch(number - self.first, deletes, inserts)

    def final(self, table: pa.Table) -> None: ...

    def finish(self, stopped: bool) -> None:
        self._output.finish(stopped)

    def close(self) -> None:
        """Let others write to the destination."""
        self._output.close()
