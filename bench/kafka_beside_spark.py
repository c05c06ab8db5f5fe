"""TPC-H Q3 over three topics of Kafka: ours in one process and on Spark, beside Spark's own streaming SQL.

python -m bench.kafka_beside_spark               scale 0.1, batches of 50,000 messages, in turns

Messages are JSON, and are there before they are read. The time of a run over one message of each topic is taken off.
"""

import os
import shutil
import tempfile
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from pathlib import Path
from statistics import median
from time import perf_counter
from unittest.mock import patch

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession

from bench.data.queries import EXAMPLES, Query
from bench.engines.spark_sql import SETTINGS, latest_groups
from bench.kafka_topics import arguments, fill, with_texts
from squallpy.base.batch_trigger import BatchTrigger
from squallpy.runtime.connectors.kafka.encoding import objects
from squallpy.runtime.spark import executor
from squallpy.runtime.spark.spark_session import start
from squallpy.script_session import RunOptions, ScriptSession
from squallpy.testing.ignoring_sink import IgnoringSink
from squallpy.testing.tpch import TPCH
from tests.connectors.servers import KafkaServer, find_spark_connector

Rows = Mapping[str, int]
Q3 = Query("q3", EXAMPLES / "tpch" / "q3.sql")


class Answer(IgnoringSink):
    """A sink that keeps the final answer."""

    rows = pa.table({})

    def final(self, table: pa.Table) -> None:
        self.rows = table


def ours(server: KafkaServer, suffix: str, batch: int, backend: str) -> pa.Table:
    """Run Q3 over topics, and return its answer."""
    text = Q3.session.text
    for name in Q3.tables:
        of = f"kafka.bootstrap.servers '{server.address}', subscribe '{name}{suffix}'"
        text = text.replace(f"USING parquet OPTIONS (path 'data/{name}.parquet')", f"USING kafka OPTIONS ({of})")
    options = RunOptions(
        backend=backend, trigger=BatchTrigger.parse("available-now"), changes=True, final=True, batch_rows=batch
    )
    ScriptSession(Q3.path, text=text).run(options, sink := Answer())
    return sink.rows


def by_spark(session: SparkSession, server: KafkaServer, suffix: str, each: Rows) -> pa.Table:
    """Run Q3 by Spark's streaming SQL, with so many messages of each topic in a batch."""
    for name in Q3.tables:
        columns = ", ".join(f"{c} {type.replace('VARCHAR', 'STRING')}" for c, type in Q3.types(name).items())
        reader = session.readStream.format("kafka").option("kafka.bootstrap.servers", server.address)
        reader = reader.option("subscribe", f"{name}{suffix}").option("startingOffsets", "earliest")
        rows = reader.option("maxOffsetsPerTrigger", each[name]).load()
        rows.selectExpr(f"from_json(CAST(value AS STRING), '{columns}') AS r").select("r.*").createOrReplaceTempView(
            name
        )
    changed = list[pa.Table]()

    def on_batch(frame: DataFrame, batch: int) -> None:
        changed.append(frame.toArrow())

    kept = tempfile.mkdtemp(prefix="bench-")
    writer = session.sql(Q3.select).writeStream.outputMode("update").foreachBatch(on_batch)
    running = writer.option("checkpointLocation", kept).trigger(availableNow=True).start()
    try:
        running.awaitTermination()
    finally:
        running.stop()
        shutil.rmtree(kept, ignore_errors=True)
    return latest_groups(Q3, changed)


def main() -> None:
    given = arguments()
    with (
        tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as room,
        start("local[2]", {**SETTINGS, "spark.jars": find_spark_connector()}) as cluster,
        patch.object(executor, "start", lambda *_: nullcontext(cluster)),
    ):
        folder = Path(room)
        data = TPCH.generate(given.scale, folder / "data")
        (folder / "server").mkdir()
        server, counts = KafkaServer(folder / "server"), dict[str, int]()
        for name in Q3.tables:
            rows = with_texts(pq.read_table(data / f"{name}.parquet"))
            counts[name] = len(rows)
            for suffix, some in (("", rows), ("-one", rows.slice(0, 1))):
                fill(server, f"{name}{suffix}", objects(some).to_pylist())
        total = sum(counts.values())
        each = {name: -(-given.batch_rows * count // total) for name, count in counts.items()}
        ways: dict[str, Callable[[str], pa.Table]] = {
            "squallpy local": lambda suffix: ours(server, suffix, given.batch_rows, "local"),
            "squallpy on Spark": lambda suffix: ours(server, suffix, given.batch_rows, "spark"),
            "Spark's streaming SQL": lambda suffix: by_spark(cluster.session, server, suffix, each),
        }
        found: dict[str, list[float]] = {way: [] for way in ways}
        answers = dict[str, list[tuple[object, ...]]]()
        for run in ways.values():
            run("-one")
        for _ in range(given.turns):
            for way, run in ways.items():
                began = perf_counter()
                run("-one")
                between = perf_counter()
                answers[way] = [tuple(row.values())[:2] for row in run("").to_pylist()]
                found[way].append(total / (perf_counter() - 2 * between + began))
        assert len({str(sorted(map(str, each))) for each in answers.values()}) == 1, answers
        for way, rates in found.items():
            print(f"{way:22} {median(rates):10,.0f} rows/s, load {os.getloadavg()[0]:.0f}", flush=True)
        server.kill()


if __name__ == "__main__":
    main()
