"""The local executor, each batch's printed changes made as `--mode changes` prints them."""

import tempfile
from collections.abc import Collection
from pathlib import Path
from time import perf_counter
from typing import Any

import pyarrow as pa

import squallpy
from bench.data import Stream
from bench.watch import Watch
from squallpy.physical.plan import Plan
from squallpy.runtime.local import LocalExecutor
from squallpy.runtime.pipeline import Input
from squallpy.session import Session


class Decoded:
    """A source whose rows are in memory, integers as the engine's sources hand them over: 64 bits wide."""

    def __init__(self, table: pa.RecordBatch) -> None:
        wide = [pa.field(f.name, pa.int64() if pa.types.is_integer(f.type) else f.type) for f in table.schema]
        self._table, self.rows = table.cast(pa.schema(wide)), len(table)

    def read(self, start: int, stop: int, columns: Collection[str]) -> pa.RecordBatch:
        names = [name for name in self._table.schema.names if name in columns]
        return self._table.slice(start, stop - start).select(names)


class Local:
    """Rows decoded beforehand: the engine alone."""

    version = f"squallpy {getattr(squallpy, '__version__', '')}".strip()

    changes = True

    def run(self, stream: Stream, watch: Watch) -> pa.Table | None:
        executor = LocalExecutor(plan_of(stream, 1), Input(self._sources(stream), stream.replay), wanted=self.changes)
        for batch in range(stream.batches):
            start = perf_counter()
            executor.step()
            if not watch.record(batch, perf_counter() - start):
                break
        return executor.final() if executor.next == stream.batches else None

    def close(self) -> None: ...

    def _sources(self, stream: Stream) -> dict[str, Any]:
        return {name: Decoded(table) for name, table in stream.tables.items()}


class LocalFinal(Local):
    """The views kept fresh as `--mode final` does; their rows are printed once, after the last batch."""

    changes = False


class LocalFiles(Local):
    """Parquet read as `squall run` reads it: the whole way of a tuple."""

    def _sources(self, stream: Stream) -> dict[str, Any]:
        return open_sources(stream)


def session_of(stream: Stream) -> Session:
    """The stream's query as a session of ours."""
    with tempfile.TemporaryDirectory() as room:
        script = Path(room) / f"{stream.query.name}.sql"
        script.write_text(stream.query.script(str(stream.folder.resolve())))
        return Session(script)


def plan_of(stream: Stream, partitions: int) -> Plan:
    session = session_of(stream)
    [query] = session.script.queries
    return session.compile(query, partitions, dict(stream.replay.sizes)).plan


def open_sources(stream: Stream) -> dict[str, Any]:
    from squallpy.runtime.sources import open_source

    return {
        name: open_source(relation, stream.folder) for name, relation in session_of(stream).script.relations.items()
    }
