"""TPC-H tables from tpchgen-cli, and their replay: the same micro-batches, row for row, for every system."""

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from bench.queries import TYPES, Query
from squallpy.runtime.sources.replay import Replay

CACHE = Path(__file__).parent / ".data"
_ARROW = {
    "BIGINT": pa.int64(), "INT": pa.int32(), "DATE": pa.date32(), "VARCHAR": pa.string(),
    "DECIMAL(15,2)": pa.decimal128(15, 2),
}  # fmt: skip
_OLD = 1_000_000_000  # seconds since 1970: the time of change of the first replay file


def generate(scale: float) -> Path:
    """The folder of the tables at a scale, made if it is not there yet."""
    folder = CACHE / f"sf{scale:g}"
    if not (folder / "done").exists():
        beside = Path(sys.executable).parent / "tpchgen-cli"
        tool = str(beside) if beside.exists() else shutil.which("tpchgen-cli")
        if tool is None:
            raise SystemExit("bench: tpchgen-cli is not installed; `make setup` installs it")
        command = [
            tool,
            "parquet",
            "-s",
            f"{scale:g}",
            "-T",
            "customer,orders,lineitem",
            "-o",
            str(folder),
            "-q",
            "--overwrite",
        ]
        subprocess.run(command, check=True)
        (folder / "done").touch()
    return folder


@dataclass(frozen=True)
class Stream:
    """A query's tables cut into micro-batches."""

    query: Query
    folder: Path
    batch_rows: int

    @cached_property
    def replay(self) -> Replay:
        sizes = {t: pq.read_metadata(self.folder / f"{t}.parquet").num_rows for t in self.query.tables}
        return Replay(sizes, self.batch_rows)

    @property
    def batches(self) -> int:
        return self.replay.batches

    @cached_property
    def tables(self) -> dict[str, pa.RecordBatch]:
        """The columns that the query reads, decoded."""
        return {name: self._decode(name, columns) for name, columns in self.query.columns.items()}

    def between(self, first: int, stop: int) -> dict[str, pa.RecordBatch]:
        """The rows of batches first … stop−1."""
        ranges = self.replay.ranges(first), self.replay.ranges(stop)
        return {
            name: table.slice(ranges[0][name][0], ranges[1][name][0] - ranges[0][name][0])
            for name, table in self.tables.items()
        }

    def seen(self, batch: int) -> int:
        """Tuples up to and including a batch."""
        return min((batch + 1) * self.batch_rows, self.replay.total)

    def files(self, limit: int | None = None) -> Path:
        """A folder with a folder per table with a Parquet file per batch, in order of their times of change."""
        root = self.folder / f"{self.query.name}-{self.batch_rows}"
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

    def _decode(self, name: str, columns: list[str]) -> pa.RecordBatch:
        table = pq.read_table(self.folder / f"{name}.parquet", columns=columns)
        schema = pa.schema([(c, _ARROW[TYPES[c]]) for c in columns])
        return table.select(columns).cast(schema).combine_chunks().to_batches()[0]
