"""Rows of a Python generator: USING python OPTIONS (generator 'package.module.function').

def numbers(options):           def numbers(options, start):      `start` rows of earlier runs are safe
    yield 1, "one"                  …
"""

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql.types import StructType

from squallpy.base.errors import SquallError
from squallpy.base.python_objects import search_path
from squallpy.catalog.format_options import passed_options
from squallpy.catalog.relation import Relation
from squallpy.runtime.sources.protocol import Source
from squallpy.runtime.sources.python_rows import arrow_schema, arrow_table
from squallpy.runtime.sources.python_source import find, schema_as_declared
from squallpy.runtime.sources.received_source import ReceivedSource


def open_generator(relation: Relation, base: Path) -> Source:
    """Open the generator of a relation; SQ7002 if there is no such function, SQ4002 without columns."""
    name = relation.options["generator"]
    function = find("generator", relation, search_path(base), callable)
    if not callable(function):
        raise SquallError("SQ7002", f"{name} is no function", relation.span, "name a function that yields rows")
    schema = schema_as_declared(relation, f"the generator {name} tells no columns")
    return GeneratorSource(name, function, passed_options(relation.format, relation.options), schema)


class GeneratorSource(ReceivedSource):
    """The rows that a function yields; it ends when that returns."""

    def __init__(self, name: str, function: Callable[..., Any], options: Mapping[str, str], schema: StructType) -> None:
        super().__init__()
        self._name, self._function, self._options, self._schema = name, function, options, schema

    @property
    def schema(self) -> pa.Schema:
        return arrow_schema(self._schema)

    def receive(self, start: int) -> Iterable[Any]:
        takes_start = len(inspect.signature(self._function).parameters) > 1
        found: Iterable[Any] = self._function(self._options, *([start] if takes_start else []))
        return found

    def table(self, rows: Sequence[Any]) -> pa.Table:
        return arrow_table(self._name, rows, self._schema)
