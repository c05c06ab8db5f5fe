"""Spark's own streaming SQL: the same micro-batches as files, update mode, changed groups brought to the driver.

Its settings are the best we know for it: two shuffle partitions on two cores, no planning again at run time, checkpoint
files written through java.io on a local disk (as ours), triggers back to back.
"""

import shutil
import tempfile
from collections.abc import Mapping
from time import perf_counter
from typing import Any

import duckdb
import pyarrow as pa
import pyspark
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession

from bench.data.queries import Query
from bench.data.tables import Stream
from bench.measure.batches import Watch

_CHECKPOINTS = "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
_STATE = "org.apache.spark.sql.execution.streaming.state"
_KEYS = {  # of the groups, among the output columns
    "q1": ("l_returnflag", "l_linestatus"), "q3": ("l_orderkey", "o_orderdate", "o_shippriority"), "q6": (),
    "q12": ("l_shipmode",),
}  # fmt: skip
SETTINGS: Mapping[str, str] = {
    "spark.driver.memory": "2g",  # as ours
    "spark.driver.host": "127.0.0.1",
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.adaptive.enabled": "false",
    "spark.hadoop.fs.file.impl": "org.apache.hadoop.fs.RawLocalFileSystem",
    "spark.sql.streaming.checkpointFileManagerClass": _CHECKPOINTS,
    "spark.sql.streaming.noDataMicroBatches.enabled": "false",
    "spark.sql.streaming.minBatchesToRetain": "8",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
}


class Memory:
    """State in the JVM's memory, which is Spark's default."""

    version = f"Spark {pyspark.__version__}, state in memory"
    settings: Mapping[str, str] = {}
    facts: dict[str, Any] = {}  # noqa: RUF012

    def __init__(self) -> None:
        builder = SparkSession.builder.master("local[2]").appName("bench")
        self._session = builder.config(map={**SETTINGS, **self.settings}).getOrCreate()
        self._session.sparkContext.setLogLevel("ERROR")

    def run(self, stream: Stream, watch: Watch) -> pa.Table | None:
        folder, query = stream.files(), stream.query
        for name in query.tables:
            types = query.types(name).items()
            schema = ", ".join(f"{column} {type.replace('VARCHAR', 'STRING')}" for column, type in types)
            reader = self._session.readStream.schema(schema).option("maxFilesPerTrigger", 1)
            reader.parquet(str(folder / name)).createOrReplaceTempView(name)
        changed: list[pa.Table] = []
        until, stopped = perf_counter(), False

        def on_batch(frame: DataFrame, batch: int) -> None:
            nonlocal until, stopped
            if batch >= stream.batches:  # nothing new: Spark ends the stream
                return
            changed.append(frame.toArrow())
            before, until = until, perf_counter()
            if not watch.record(batch, until - before):
                stopped = True
                raise _Enough

        checkpoint = tempfile.mkdtemp(prefix="bench-")
        writer = self._session.sql(query.select).writeStream.outputMode("update").foreachBatch(on_batch)
        running = writer.option("checkpointLocation", checkpoint).trigger(availableNow=True).start()
        try:
            running.awaitTermination()
        except StreamingQueryException:
            if not stopped:
                raise
        finally:
            running.stop()
            shutil.rmtree(checkpoint, ignore_errors=True)
        return latest_groups(query, changed) if len(changed) == stream.batches else None

    def close(self) -> None:
        self._session.stop()


class RocksDB(Memory):
    """State in RocksDB with a changelog, the single-store layout for joins."""

    version = f"Spark {pyspark.__version__}, state in RocksDB"
    settings: Mapping[str, str] = {
        "spark.hadoop.fs.file.impl": "org.apache.hadoop.fs.LocalFileSystem",  # its snapshots take no other
        "spark.sql.streaming.stateStore.providerClass": f"{_STATE}.RocksDBStateStoreProvider",
        "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
    }


class _Enough(Exception):
    """Ends Spark's loop."""


def latest_groups(query: Query, changed: list[pa.Table]) -> pa.Table:
    """Return the answer of a stream of changed groups: the last row of each, in the query's order."""
    numbered = [table.append_column("batch", pa.array([i] * len(table), pa.int32())) for i, table in enumerate(changed)]
    connection = duckdb.connect()
    connection.register("changed", pa.concat_tables(numbered))
    keys = f"PARTITION BY {', '.join(_KEYS[query.name])}" if _KEYS[query.name] else ""
    last = f"SELECT * FROM changed QUALIFY row_number() OVER ({keys} ORDER BY batch DESC) = 1"
    return connection.sql(f"SELECT * EXCLUDE batch FROM ({last}) {query.order}").to_arrow_table()
