"""Tables from their generators, and their replay: the same micro-batches, row for row, for every system."""

import os
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from bench.data import nexmark, orderbook
from bench.data.queries import Query
from squallpy.catalog.relation import MULT
from squallpy.runtime.evaluate.vectors import arrow_type
from squallpy.runtime.sources.replay import Replay
from squallpy.testing.tpcds import TPCDS
from squallpy.testing.tpch import TPCH

CACHE = Path(__file__).parents[1] / ".data"
ORDERS = 1_000_000  # in the book at scale 1; then half as many events
EVENTS = 1_000_000  # of Nexmark at scale 1
_OLD = 1_000_000_000  # seconds since 1970: the time of change of the first replay file


def folder_of(benchmark: str, scale: float) -> Path:
    return CACHE / f"{benchmark}-{scale:g}"


def generate(benchmark: str, scale: float) -> Path:
    """The folder of the tables of a benchmark at a scale, made if it is not there yet."""
    folder = folder_of(benchmark, scale)
    if (folder / "done").exists():
        return folder
    try:
        if benchmark == "orderbook":
            orderbook.write(int(ORDERS * scale), folder, int(ORDERS * scale) // 2)
        elif benchmark == "nexmark":
            nexmark.write(int(EVENTS * scale), folder)
        else:
            {"tpch": TPCH, "tpcds": TPCDS}[benchmark].generate(scale, folder)
    except FileNotFoundError as error:
        raise SystemExit(f"bench: {error.filename} is not installed; `make setup` installs it") from None
    (folder / "done").touch()
    return folder


def read_plain(path: Path, columns: Sequence[str]) -> pa.Table:
    """Columns of a table, their texts as all of Arrow can work with."""
    read = pq.read_table(path, columns=list(columns))
    texts = [pa.field(f.name, pa.string() if pa.types.is_string_view(f.type) else f.type) for f in read.schema]
    return read.cast(pa.schema(texts))


@dataclass(frozen=True)
class Stream:
    """A query's tables cut into micro-batches; change streams have a column `__mult`, 1 or −1."""

    query: Query
    folder: Path
    batch_rows: int
    order: str = "proportional"  # one of `replay.ORDERS`

    @cached_property
    def replay(self) -> Replay:
        streams = [name for name, relation in self.query.relations.items() if relation.stream]
        return Replay({name: self.sizes[name] for name in streams}, self.batch_rows, self.order)

    @cached_property
    def sizes(self) -> dict[str, int]:
        """The rows of each table, static ones, too, of which none is decoded."""
        return {name: pq.read_metadata(self.folder / f"{name}.parquet").num_rows for name in self.query.tables}

    @property
    def batches(self) -> int:
        return self.replay.batches

    @property
    def alone(self) -> int:
        """The first batch that the largest stream has to itself where it comes last, else 0."""
        sizes = self.replay.sizes.values()
        return -(-(sum(sizes) - max(sizes)) // self.batch_rows) if self.order == "largest-last" else 0

    @cached_property
    def tables(self) -> dict[str, pa.RecordBatch]:
        """The columns that the query reads, decoded; static tables, too."""
        return {name: self._decode(name) for name in self.query.tables}

    @property
    def static(self) -> dict[str, pa.RecordBatch]:
        return {name: table for name, table in self.tables.items() if not self.query.relations[name].stream}

    def between(self, first: int, stop: int) -> dict[str, pa.RecordBatch]:
        """The rows of batches first … stop−1."""
        starts, ends = self.replay.ranges(first), self.replay.ranges(stop)
        return {
            name: self.tables[name].slice(starts[name][0], ends[name][0] - starts[name][0])
            for name in self.replay.sizes
        }

    def seen(self, batch: int) -> int:
        """Tuples up to and including a batch."""
        return min((batch + 1) * self.batch_rows, self.replay.total)

    def files(self, limit: int | None = None) -> Path:
        """A folder with a folder per table with a Parquet file per batch, in order of their times of change."""
        root = self.folder / f"{self.query.name}-{self.batch_rows}-{self.order}"
        if not (root / "done").exists():
            shutil.rmtree(root, ignore_errors=True)
            for name in self.query.tables:
                (root / name).mkdir(parents=True)
            for batch in range(min(self.batches, limit or self.batches)):
                for name, table in self.between(batch, batch + 1).items():
                    path = root / name / f"{batch:06}.parquet"
                    pq.write_table(pa.table(table), path)
                    os.utime(path, (_OLD + batch, _OLD + batch))
            (root / "done").touch()
        return root

    def nbytes(self, fields: dict[str, tuple[str, ...]]) -> int:
        """Bytes of columns of the rows that are there at the end: 8 a number or date, of strings what they hold."""
        total = 0
        for name, columns in fields.items():
            table = self.tables[name.partition("·")[0]]  # parts are read of its rows
            if name not in self.tables:
                columns = tuple(column for column in columns if column in table.schema.names)
            signs = np.asarray(table[MULT]) if MULT in table.schema.names else np.ones(len(table), np.int64)
            for column in columns:
                if pa.types.is_string(table[column].type):
                    sizes = np.asarray(pc.fill_null(pc.binary_length(table[column]), 0), np.int64)
                    total += int(np.dot(sizes, signs))
                else:
                    total += 8 * int(signs.sum())
        return total

    def _decode(self, name: str) -> pa.RecordBatch:
        relation, columns = self.query.relations[name], self.query.columns[name]
        op = [relation.op] if relation.op else []
        read = pq.read_table(self.folder / f"{name}.parquet", columns=[*columns, *op])
        schema = pa.schema([(f.name, arrow_type(f.type)) for f in relation.fields if f.name in columns])
        table = read.select(columns).cast(schema)
        if relation.op:
            signs = pc.if_else(pc.equal(read[relation.op], "+"), 1, -1)
            table = table.append_column(MULT, signs.cast(pa.int64()))
        return table.combine_chunks().to_batches()[0]
