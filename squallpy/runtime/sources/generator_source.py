"""Rows of a Python generator: USING python OPTIONS (generator 'package.module.function').

    def numbers(options):           def numbers(options, start):      `start` rows of earlier runs are safe
        yield 1, "one"                  …

A thread of the driver takes rows as they come. They cannot be read twice, so they are spooled.
"""

import inspect
import queue
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql.types import StructType

from squallpy.base.errors import SquallError
from squallpy.base.python_objects import search_path
from squallpy.catalog.format_options import passed_options
from squallpy.catalog.relation import Relation
from squallpy.runtime.sources.protocol import Limit, Offset, Source
from squallpy.runtime.sources.python_rows import TableSlice, arrow_schema, arrow_table
from squallpy.runtime.sources.python_source import find, schema_as_declared

WAITING = 100_000  # rows that are taken ahead
_LOOK = 0.1  # seconds between looks whether the run has ended


def open_generator(relation: Relation, base: Path) -> Source:
    """Open the generator of a relation; SQ7002 if there is no such function, SQ4002 without columns."""
    name = relation.options["generator"]
    function = find("generator", relation, search_path(base), callable)
    if not callable(function):
        raise SquallError("SQ7002", f"{name} is no function", relation.span, "name a function that yields rows")
    schema = schema_as_declared(relation, f"the generator {name} tells no columns")
    return GeneratorSource(name, function, passed_options(relation.format, relation.options), schema)


class GeneratorSource(Source):
    """The rows that a function yields; it ends when that returns."""

    is_replayable = False

    def __init__(self, name: str, function: Callable[..., Any], options: Mapping[str, str], schema: StructType) -> None:
        self._name, self._function, self._options, self._schema = name, function, options, schema
        self._waiting: queue.Queue[Any] = queue.Queue(WAITING)
        self._thread: threading.Thread | None = None
        self._closing, self._ended = threading.Event(), threading.Event()
        self._error: Exception | None = None
        self._taken = list[Any]()

    @property
    def schema(self) -> pa.Schema:
        return arrow_schema(self._schema)

    @property
    def is_bounded(self) -> bool:
        """True if nothing more will come."""
        return self._ended.is_set() and self._waiting.empty() and self._error is None

    def initial(self) -> Offset:
        return {"row": 0}

    def latest(self, start: Offset, limit: Limit) -> Offset:
        if self._thread is None:
            self._thread = threading.Thread(target=self._receive, args=(start["row"],), daemon=True)
            self._thread.start()
        has_ended = self._ended.is_set()  # NB: asked before rows are taken, which come before the error
        most = self._waiting.qsize() if limit.rows is None else min(limit.rows, self._waiting.qsize())
        self._taken = [self._waiting.get_nowait() for _ in range(most)]
        if has_ended and self._error and not self._taken:
            raise self._error
        return {"row": start["row"] + len(self._taken)}

    def split(self, start: Offset, end: Offset, tasks: int) -> Sequence[TableSlice]:
        return [TableSlice(arrow_table(self._name, self._taken, self._schema))]

    def close(self) -> None:
        self._closing.set()

    def _receive(self, start: int) -> None:
        """Take rows until the function returns or the run ends."""
        try:
            takes_start = len(inspect.signature(self._function).parameters) > 1
            for row in self._function(self._options, *([start] if takes_start else [])):
                while not self._closing.is_set() and not self._put(row):
                    pass
                if self._closing.is_set():
                    return
        except Exception as error:
            self._error = error
        self._ended.set()

    def _put(self, row: Any) -> bool:
        try:
            self._waiting.put(row, timeout=_LOOK)
        except queue.Full:
            return False
        return True
