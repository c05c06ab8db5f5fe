"""Sinks of servers by one writer and by two: what parallel writing would bring to a batch on these cores.

python -m bench.sink_writers                  PostgreSQL and Kafka, 300,000 rows, seven turns
python -m bench.sink_writers --rows 100000 --turns 3 --servers kafka

PostgreSQL: a batch of upserts by way of a temporary table, as the sink has it, and of an unlogged one that two
connections fill. Kafka: a batch in one transaction, as the sink has it, and in two, each of a process of its own.
"""

import argparse
import multiprocessing
import os
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from time import monotonic
from typing import Any

import numpy as np
import psycopg
import pyarrow as pa

from squallpy.catalog.sink_spec import UPSERT, SinkSpec
from squallpy.runtime.connectors.kafka.brokers import Brokers
from squallpy.runtime.connectors.kafka.encoding import RowEncoding
from squallpy.runtime.formats.csv_writer import csv_rows
from tests.connectors.servers import KafkaServer, PostgresServer

COLUMNS = "k bigint, n bigint, s bigint"
STAGE = "AS SELECT NULL::text AS op, k, n, s FROM t WITH NO DATA"
MERGE = (
    "ANALYZE stage",
    "DELETE FROM t USING stage s WHERE s.op = '-' AND t.k = s.k",
    "INSERT INTO t SELECT k, n, s FROM stage WHERE op <> '-'"
    " ON CONFLICT (k) DO UPDATE SET n = excluded.n, s = excluded.s",
)
Connections = Sequence[psycopg.Connection[Any]]


def upserts(rows: int, seed: int) -> pa.Table:
    """Make rows by key of which a tenth are deletes."""
    draw = np.random.default_rng(seed)
    ops = np.where(draw.random(rows) < 0.1, "-", "+")
    numbers = {name: draw.integers(0, most, rows) for name, most in (("n", 1000), ("s", 10**9))}
    return pa.table({"batch": np.full(rows, seed), "op": ops, "k": draw.permutation(rows), **numbers})


def copy(connection: psycopg.Connection[Any], rows: pa.Table) -> None:
    with (
        connection.transaction(),
        connection.cursor() as cursor,
        cursor.copy("COPY stage FROM STDIN (FORMAT csv, NULL '')") as out,
    ):
        for data in csv_rows(rows, 3):
            out.write(data)


def write_postgres(connections: Connections, kind: str, rows: pa.Table) -> float:
    """Write a batch, and return the seconds that its copying took."""
    first, begin = connections[0], monotonic()
    with first.transaction():
        if kind == "TEMPORARY":
            first.execute(f"CREATE TEMPORARY TABLE stage ON COMMIT DROP {STAGE}")
            copy(first, rows)
        else:
            with connections[1].transaction():  # NB: others see it when it is committed
                connections[1].execute(f"CREATE UNLOGGED TABLE stage {STAGE}")
            half = len(rows) // 2
            with ThreadPoolExecutor() as pool:
                done = [pool.submit(copy, connections[n + 1], rows.slice(n * half, half)) for n in range(2)]
                for each in done:
                    each.result()
        copied = monotonic() - begin
        for statement in MERGE:
            first.execute(statement)
        first.execute("DROP TABLE stage")
    return copied


def postgres(folder: Path, rows: int, turns: int) -> None:
    server, found = PostgresServer(folder), dict[str, list[tuple[float, float]]]()
    try:
        server.execute(f"CREATE TABLE t ({COLUMNS}, PRIMARY KEY (k))")
        connections = [psycopg.connect(server.url, autocommit=True) for _ in range(3)]
        for turn in range(turns):
            table = upserts(rows, turn).drop_columns(["batch"])
            for kind in ("TEMPORARY", "UNLOGGED"):
                server.execute("TRUNCATE t", f"INSERT INTO t SELECT g, 1, 1 FROM generate_series(1, {rows // 2}) g")
                server.execute("VACUUM ANALYZE t", "CHECKPOINT")
                begin = monotonic()
                copied = write_postgres(connections, kind, table)
                found.setdefault(kind, []).append((monotonic() - begin, copied))
    finally:
        server.stop()
    for kind, times in found.items():
        whole, copied = (median(each[place] for each in times) for place in (0, 1))
        print(f"PostgreSQL {kind:9} {whole:6.2f} s a batch, of which copying {copied:.2f} s", flush=True)


def write_kafka(address: str, name: str, rows: int, seed: int, asked: Any, answers: Any) -> None:
    """Write a batch in a transaction each time that it is asked for."""
    spec = SinkSpec("s", "kafka", {"kafka.bootstrap.servers": address}, UPSERT, key=("k",))
    table = upserts(rows, seed)
    encoding, producer = RowEncoding.of(spec, "t", table.schema, 2), Brokers.of(spec.options).producer(name, "t")
    producer.init_transactions(30.0)
    answers.put(0)
    for batch in iter(asked.get, None):
        producer.begin_transaction()
        producer.produce(encoding.messages(table, batch))
        producer.send_offset(name, batch + 1, "{}", 10.0)
        producer.commit_transaction(60.0)
        answers.put(batch)


def kafka(folder: Path, rows: int, turns: int) -> None:
    server, context, times = KafkaServer(folder), multiprocessing.get_context("spawn"), dict[int, list[float]]()
    try:
        server.create("t", 4)
        answers, asked = context.Queue(), dict[int, list[Any]]()
        for count in (1, 2):
            asked[count] = [context.Queue() for _ in range(count)]
            for number, queue in enumerate(asked[count]):
                given = (server.address, f"w{count}{number}", rows // count, number, queue, answers)
                context.Process(target=write_kafka, args=given, daemon=True).start()
                answers.get(timeout=120)
        for turn in range(turns + 1):
            for count, queues in asked.items():
                begin = monotonic()
                for queue in queues:
                    queue.put(turn)
                for _ in queues:
                    answers.get(timeout=120)
                times.setdefault(count, []).append(monotonic() - begin)
    finally:
        server.kill()
    for count, each in times.items():
        print(f"Kafka      {count} transactions {rows / median(each[1:]):10,.0f} rows/s", flush=True)  # NB: warm


def main() -> None:
    benches: Mapping[str, Callable[[Path, int, int], None]] = {"postgres": postgres, "kafka": kafka}
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=300_000)
    parser.add_argument("--turns", type=int, default=7)
    parser.add_argument("--servers", nargs="*", default=[*benches], choices=[*benches])
    given = parser.parse_args()
    for name in given.servers:
        with TemporaryDirectory(ignore_cleanup_errors=True) as folder:
            Path(folder).chmod(0o711)  # NB: the server may have a user of its own
            (place := Path(folder) / "server").mkdir()
            benches[name](place, given.rows, given.turns)
    print(f"load {os.getloadavg()[0]:.0f}")


if __name__ == "__main__":
    main()
