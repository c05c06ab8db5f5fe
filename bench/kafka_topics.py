"""TPC-H Q1 over a topic of Kafka, in one process: JSON, Avro and Debezium's envelopes, beside files of the same rows.

python -m bench.kafka_topics                     lineitem of 600,000 rows, batches of 50,000, 3 turns

A broker is started in a temporary folder, and a schema registry of the tests'. Rows are there before they are read; the
time of a run over one row is taken off. Of processor time only that of the reader counts, with its client's threads.
"""

import argparse
import io
import json
import os
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from time import perf_counter, process_time
from typing import Any

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
from confluent_kafka import Producer

from squallpy.base.batch_trigger import BatchTrigger
from squallpy.runtime.connectors.kafka.encoding import objects
from squallpy.script_session import RunOptions, ScriptSession
from squallpy.testing.ignoring_sink import IgnoringSink
from squallpy.testing.tpch import TPCH
from tests.connectors.registry import SchemaRegistry
from tests.connectors.servers import KafkaServer

Q1 = Path("examples/tpch/q1.sql")
FORMATS = ("json", "avro", "debezium-json", "debezium-avro")
MONEY = {"type": "bytes", "logicalType": "decimal", "precision": 15, "scale": 2}


def avro_type(type: pa.DataType) -> Any:
    if pa.types.is_decimal(type):
        return MONEY
    if pa.types.is_date(type):
        return {"type": "int", "logicalType": "date"}
    return ("int" if pa.types.is_int32(type) else "long") if pa.types.is_integer(type) else "string"


def schemas(rows: pa.Table) -> tuple[Any, Any]:
    """Make the schema of rows, and that of their envelopes."""
    row = {
        "type": "record",
        "name": "Row",
        "fields": [{"name": f.name, "type": avro_type(f.type)} for f in rows.schema],
    }
    fields = [{"name": "before", "type": ["null", row]}, {"name": "after", "type": ["null", "Row"]}]
    source = {"type": "record", "name": "Source", "fields": [{"name": "lsn", "type": "long"}]}
    fields += [{"name": "source", "type": source}, {"name": "op", "type": "string"}]
    return row, {"type": "record", "name": "Envelope", "fields": fields}


def records(schema: Any, rows: Iterable[Any], number: int) -> Iterator[bytes]:
    parsed = fastavro.parse_schema(schema)
    for row in rows:
        out = io.BytesIO()
        fastavro.schemaless_writer(out, parsed, row)
        yield b"\0" + number.to_bytes(4, "big") + out.getvalue()


def messages(format: str, rows: pa.Table, registry: SchemaRegistry) -> Iterator[bytes]:
    """Write rows as messages."""
    row, envelope = schemas(rows)
    if format == "json":
        yield from objects(rows).to_pylist()
    elif format == "avro":
        yield from records(row, rows.to_pylist(), registry.register("row", json.dumps(row)))
    elif format == "debezium-json":
        for each in objects(rows).to_pylist():
            yield b'{"before": null, "after": %s, "source": {"lsn": 1}, "op": "c"}' % each
    else:
        yield from records(envelope, enveloped(rows), registry.register("envelope", json.dumps(envelope)))


def enveloped(rows: pa.Table) -> Iterator[dict[str, Any]]:
    """Put rows into Debezium's envelopes."""
    return ({"before": None, "after": each, "source": {"lsn": 1}, "op": "c"} for each in rows.to_pylist())


def fill(server: KafkaServer, topic: str, some: Iterable[bytes]) -> None:
    server.create(topic, 2)
    producer = Producer(
        {"bootstrap.servers": server.address, "linger.ms": 50, "queue.buffering.max.messages": 1_000_000}
    )
    for value in some:
        producer.produce(topic, value)
        if len(producer) > 500_000:
            producer.poll(0.5)
    assert producer.flush(120) == 0


def seconds(text: str, folder: Path, batch_rows: int) -> tuple[float, float]:
    """Measure the time and the processor time of a run."""
    options = RunOptions(
        backend="local", trigger=BatchTrigger.parse("available-now"), changes=True, final=False, batch_rows=batch_rows
    )
    began, worked = perf_counter(), process_time()
    ScriptSession(folder / "q.sql", text=text).run(options, IgnoringSink())
    return perf_counter() - began, process_time() - worked


def using(of: str) -> str:
    """Write Q1 over another source, without the key, which nothing needs."""
    text = Q1.read_text().replace("USING parquet OPTIONS (path 'data/lineitem.parquet')", of)
    return text.replace(",\n    PRIMARY KEY (l_orderkey, l_linenumber)", "")


def arguments() -> argparse.Namespace:
    """Read the scale, the rows of a batch and the number of turns."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--scale", type=float, default=0.1)
    parser.add_argument("--batch-rows", type=int, default=50_000)
    parser.add_argument("--turns", type=int, default=3)
    return parser.parse_args()


def with_texts(rows: pa.Table) -> pa.Table:
    """Read texts that are numbered in a file as texts."""
    return rows.cast(pa.schema([f.with_type(pa.string()) if "string" in str(f.type) else f for f in rows.schema]))


def main() -> None:
    given = arguments()
    with TemporaryDirectory(ignore_cleanup_errors=True) as name:
        folder = Path(name)
        data = TPCH.generate(given.scale, folder / "data")
        rows = with_texts(pq.read_table(data / "lineitem.parquet"))
        (folder / "server").mkdir()
        server, registry = KafkaServer(folder / "server"), SchemaRegistry()
        for format in FORMATS:
            for topic, some in ((format, rows), (f"{format}-one", rows.slice(0, 1))):
                fill(server, topic, messages(format, some, registry))
        for number, some in (("", rows), ("-one", rows.slice(0, 1))):
            for format in ("json", "debezium-json"):
                lines = b"".join(each + b"\n" for each in messages(format, some, registry))
                (folder / f"{format}{number}.json").write_bytes(lines)
            with (folder / f"avro{number}.avro").open("wb") as out:
                fastavro.writer(out, schemas(rows)[0], some.to_pylist())

        def kafka(format: str) -> Callable[[str], str]:
            of = f"kafka.bootstrap.servers '{server.address}', format '{format}', schema.registry.url '{registry.url}'"
            return lambda suffix: using(f"USING kafka OPTIONS ({of}, subscribe '{format}{suffix}')")

        def files(format: str) -> Callable[[str], str]:
            changes, kind = ", changelog 'debezium'" if format.startswith("debezium") else "", format.rpartition("-")[2]
            return lambda suffix: using(f"USING {kind} OPTIONS (path '{folder}/{format}{suffix}.{kind}'{changes})")

        ways = {f"kafka {format}": kafka(format) for format in FORMATS}
        ways |= {f"files {format}": files(format) for format in FORMATS[:3]}
        found: dict[str, list[tuple[float, float]]] = {way: [] for way in ways}
        for text in ways.values():  # NB: the first run of a process loads kernels
            seconds(text("-one"), folder, given.batch_rows)
        for _ in range(given.turns):
            for way, text in ways.items():
                start = seconds(text("-one"), folder, given.batch_rows)
                took = seconds(text(""), folder, given.batch_rows)
                found[way].append((len(rows) / (took[0] - start[0]), len(rows) / (took[1] - start[1])))
        for way, rates in found.items():
            by_clock, by_work = (median(each) for each in zip(*rates, strict=True))
            print(f"{way:20} {by_clock:10,.0f} rows/s, {by_work:10,.0f} by processor time", flush=True)
        print(f"load {os.getloadavg()[0]:.0f}")
        server.kill()


if __name__ == "__main__":
    main()
