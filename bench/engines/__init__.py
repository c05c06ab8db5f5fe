"""What is measured: one file per system, each a class with `run`.

squallpy-local           the local executor over rows decoded beforehand
squallpy-compiled        the same, its triggers compiled
squallpy-compiled-plain  the same, cofactor matrices of plain doubles
squallpy-compiled-plain-final  that, its answer printed only at the end, as C++ by hand does
squallpy-compiled-read   the second, the changes of each batch read in time, which otherwise are made when they are read
squallpy-local-final     the first, its answer printed only at the end: what printing after every batch costs
squallpy-local-files     the first, reading Parquet as `squall run` does
squallpy-spark           the Spark executor on local[2]
spark-sql[-rocksdb]      Spark's own streaming SQL, state in memory or in RocksDB
duckdb, polars           append the batch, run the query again
duckdb-by-hand           the same with the query written for it by hand, where it cannot see what to do
"""

from collections.abc import Mapping
from importlib import import_module
from typing import Any, Protocol

import pyarrow as pa

from bench.data.tables import Stream
from bench.measure.batches import Watch

# NB: names, so that a process loads only what it measures
_CLASSES = {
    "squallpy-local": "squall_local:Local",
    "squallpy-compiled": "squall_local:LocalCompiled",
    "squallpy-compiled-plain": "squall_local:LocalCompiledPlain",
    "squallpy-compiled-plain-final": "squall_local:LocalCompiledPlainFinal",
    "squallpy-compiled-read": "squall_local:LocalCompiledRead",
    "squallpy-local-final": "squall_local:LocalFinal",
    "squallpy-local-files": "squall_local:LocalFiles",
    "squallpy-spark": "squall_spark:Squall",
    "spark-sql": "spark_sql:Memory",
    "spark-sql-rocksdb": "spark_sql:RocksDB",
    "duckdb": "duckdb:Reevaluation",
    "duckdb-by-hand": "duckdb:ByHand",
    "polars": "polars:Reevaluation",
}
NAMES = tuple(_CLASSES)
REEVALUATING = ("duckdb", "duckdb-by-hand", "polars")  # can append batches without an answer
ON_SPARK = ("squallpy-spark", "spark-sql", "spark-sql-rocksdb")


class Engine(Protocol):
    """One system, open for as long as its process."""

    version: str
    facts: Mapping[str, Any]  # what else is known of the last run that came to its end

    def run(self, stream: Stream, watch: Watch) -> pa.Table | None:
        """Run the stream's query from batch 0 on, telling `watch` each batch; the answer, None if stopped early."""

    def close(self) -> None: ...


def open_engine(name: str) -> Engine:
    module, cls = _CLASSES[name].split(":")
    engine: Engine = getattr(import_module(f"bench.engines.{module}"), cls)()
    return engine
