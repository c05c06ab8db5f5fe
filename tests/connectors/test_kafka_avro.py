"""Avro in messages of a real broker: numbered schemas, envelopes, keys, what is no record; and programs of schemas."""

import io
import json
import random
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import fastavro
import numpy as np
import pytest
from confluent_kafka import Producer

from squallpy.base.errors import SquallError
from squallpy.runtime.formats.avro_program import program_of
from tests.connectors.kafka_topics import messages
from tests.connectors.registry import USER, SchemaRegistry
from tests.connectors.runs import Answers, run
from tests.connectors.servers import KafkaServer
from tests.connectors.test_kafka import COLUMNS, QUERY, answer

connectors = pytest.mark.connectors
ROW = {
    "type": "record", "name": "Row", "fields": [
        {"name": "ID", "type": "int"}, {"name": "k", "type": ["null", "long"]},
        {"name": "other", "type": {"type": "array", "items": "string"}}, {"name": "v", "type": ["int", "null"]},
    ],
}  # fmt: skip
FLAT = {**ROW, "name": "Flat", "fields": [ROW["fields"][0], *ROW["fields"][:1:-1][:1], ROW["fields"][1]]}
ENVELOPE = {
    "type": "record", "name": "Envelope", "namespace": "shop.orders", "fields": [
        {"name": "before", "type": ["null", {**FLAT, "name": "Value"}], "default": None},
        {"name": "after", "type": ["null", "Value"], "default": None},
        {"name": "op", "type": "string"}, {"name": "ts_ms", "type": ["null", "long"]},
    ],
}  # fmt: skip


@pytest.fixture
def registry() -> Iterator[SchemaRegistry]:
    made = SchemaRegistry()
    yield made
    made.stop()


def record(schema: Any, row: Any, number: int | None = None) -> bytes:
    out = io.BytesIO()
    fastavro.schemaless_writer(out, fastavro.parse_schema(schema), row)
    return (b"" if number is None else b"\0" + number.to_bytes(4, "big")) + out.getvalue()


def script(kafka: KafkaServer, topic: str, options: str, columns: str = COLUMNS, query: str = QUERY) -> str:
    of = f"(kafka.bootstrap.servers '{kafka.address}', subscribe '{topic}'{options})"
    return f"CREATE STREAM r {columns} USING kafka OPTIONS {of}; {query};"


def send(kafka: KafkaServer, topic: str, some: list[tuple[bytes | str | None, bytes | None]]) -> None:
    producer = Producer({"bootstrap.servers": kafka.address})
    for key, value in some:
        producer.produce(topic, value, key)
    assert producer.flush(30) == 0


SCHEMA = {
    "type": "record", "name": "L", "fields": [
        {"name": "big", "type": "long"}, {"name": "price", "type": "double"}, {"name": "f", "type": ["null", "float"]},
        {"name": "money", "type": {"type": "bytes", "logicalType": "decimal", "precision": 12, "scale": 2}},
        {"name": "flag", "type": ["null", "string"]}, {"name": "ship", "type": {"type": "int", "logicalType": "date"}},
        {"name": "at", "type": ["null", {"type": "long", "logicalType": "timestamp-micros"}]},
        {"name": "e", "type": {"type": "enum", "name": "E", "symbols": ["A", "B"]}},
        {"name": "in", "type": ["null", {"type": "record", "name": "R", "fields": [
            {"name": "x", "type": "int"}, {"name": "y", "type": ["null", "string"]}]}]},
        {"name": "arr", "type": {"type": "array", "items": ["null", {"type": "map", "values": "R"}]}},
        {"name": "b", "type": "boolean"}, {"name": "again", "type": ["null", "R"]},
    ],
}  # fmt: skip
PATHS = tuple((name,) for name in ("BIG", "price", "f", "money", "flag", "ship", "at", "e", "b", "nothing"))


def oracle_programs() -> None:
    """Programs decode what fastavro has written, and refuse what it cannot read."""
    draw = random.Random(1)

    def inner() -> Any:
        return draw.choice([None, {"x": draw.randrange(9), "y": draw.choice([None, "q"])}])

    rows = [
        {
            "big": draw.randrange(-(2**63), 2**63), "price": draw.random(), "f": draw.choice([None, 1.5]),
            "money": Decimal(draw.randrange(-(10**11), 10**11)).scaleb(-2), "flag": draw.choice([None, "ä", "x" * 200]),
            "ship": date(1992, 1, 1) + timedelta(days=draw.randrange(-9000, 5000)),
            "at": draw.choice([None, datetime(2020, 1, 1, 1, 2, 3, draw.randrange(10**6), UTC)]),
            "e": draw.choice("AB"), "in": inner(), "b": draw.random() < 0.5, "again": inner(),
            "arr": [draw.choice([None, {}, {"k": {"x": 1, "y": "é"}}]) for _ in range(draw.randrange(4))],
        }
        for _ in range(300)
    ]  # fmt: skip
    written = [record(SCHEMA, row) for row in rows]
    program = program_of(json.dumps(SCHEMA), (*PATHS, ("in", ""), ("in", "x"), ("again", "y")))
    assert program

    def decode(some: list[bytes]) -> tuple[list[list[Any]], list[int]]:
        ends = np.cumsum([0, *map(len, some)])
        columns, wrong = program.run(np.frombuffer(b"".join(some) or b"\0", np.uint8), ends[:-1], ends[1:])
        return [column.to_pylist() for column in columns], wrong.tolist()

    columns, wrong = decode(written)
    assert not any(wrong)
    for path, column in zip(PATHS, columns, strict=False):
        assert column == [row.get(path[0].lower()) for row in rows], path
    assert columns[-3:] == [
        [row["in"] and "true" for row in rows], [row["in"] and row["in"]["x"] for row in rows],
        [row["again"] and row["again"]["y"] for row in rows],
    ]  # fmt: skip
    for data in written:
        cut = data[: draw.randrange(len(data))]
        assert decode([cut])[1] == decode([data + b"\0"])[1] == [1]
    for _ in range(300):
        decode([bytes(draw.randrange(256) for _ in range(draw.randrange(80)))])  # NB: nothing is read behind the end
    assert program_of(json.dumps(ROW), (("id",),)) and program_of(json.dumps(ROW), (("other",),)) is None


@connectors
@pytest.mark.parametrize("backend", ["local", pytest.param("spark", marks=pytest.mark.spark)])
def oracle_numbered_schemas(kafka: KafkaServer, registry: SchemaRegistry, tmp_path: Path, backend: str) -> None:
    """Messages of several schemas, those with arrays, too, are told apart by their numbers; tombstones have keys."""
    topic, draw, rows = f"avro-{backend}", random.Random(3), dict[int, dict[str, Any]]()
    kafka.create(topic, 2)
    key_schema = {"type": "record", "name": "Key", "fields": [{"name": "id", "type": "int"}]}
    key_number, answers = registry.register("key", json.dumps(key_schema)), Answers()
    numbers = [registry.register("value", json.dumps(each)) for each in (ROW, FLAT)]
    options = f", format 'avro', key.format 'avro', changelog 'upsert', schema.registry.url '{registry.url}'"
    for turn in range(2):
        some = list[tuple[bytes | str | None, bytes | None]]()
        for id in (draw.randrange(20) for _ in range(60)):
            row, which = {"k": draw.randrange(3), "v": draw.randrange(9)}, draw.randrange(2)
            key = record(key_schema, {"id": id}, key_number)
            if draw.random() < 0.2:
                rows.pop(id, None)
                some.append((key, None))
            else:
                rows[id] = row
                some.append((key, record((ROW, FLAT)[which], {"ID": id, "other": ["x"], **row}, numbers[which])))
        send(kafka, topic, some)
        run(
            script(kafka, topic, options),
            answers,
            tmp_path / "kept",
            rows=25 if backend == "local" else None,
            backend=backend,
        )
        assert answers.rows == answer(rows.values()), turn


@connectors
def test_envelopes_and_a_given_schema(kafka: KafkaServer, registry: SchemaRegistry, tmp_path: Path) -> None:
    number = registry.register("envelope", json.dumps(ENVELOPE))
    rows = [{"ID": n, "k": n % 3, "v": n} for n in range(9)]
    envelopes = [{"before": None, "after": row, "op": "c", "ts_ms": 1} for row in rows]
    envelopes += [{"before": rows[0], "after": {"ID": 0, "k": 7, "v": 1}, "op": "u", "ts_ms": None}]
    envelopes += [{"before": rows[1], "after": None, "op": "d", "ts_ms": 2}]
    kafka.create("avro-envelopes", 1)
    send(kafka, "avro-envelopes", [(None, record(ENVELOPE, each, number)) for each in envelopes])
    options = f", format 'debezium-avro', schema.registry.url '{registry.url}'"
    wanted = answer([{"k": 7, "v": 1}, *rows[2:]])
    assert run(script(kafka, "avro-envelopes", options)).rows == wanted
    truncated = [{"before": None, "after": None, "op": "t", "ts_ms": 3}, envelopes[4]]
    kafka.create("avro-truncated", 1)
    send(kafka, "avro-truncated", [(None, record(ENVELOPE, each, number)) for each in [*envelopes, *truncated]])
    assert run(script(kafka, "avro-truncated", options, COLUMNS)).rows == answer(rows[4:5])
    assert run(script(kafka, "avro-envelopes", options, COLUMNS.replace(" PRIMARY KEY", ""))).rows == wanted
    kafka.create("avro-plain", 1)
    send(kafka, "avro-plain", [(None, record(FLAT, row)) for row in rows])
    (tmp_path / "row.avsc").write_text(json.dumps(FLAT))
    plain = f", format 'avro', avro.schema '${{file:{tmp_path}/row.avsc}}'"
    assert run(script(kafka, "avro-plain", plain)).rows == answer(rows)


@connectors
def test_columns_that_are_not_listed(kafka: KafkaServer, registry: SchemaRegistry) -> None:
    """They are those of the latest schema of the topic, of envelopes those of their rows with the key of messages."""
    at = {"type": "long", "logicalType": "timestamp-micros"}
    day = {"type": "int", "connect.name": "io.debezium.time.Date"}
    money = {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}
    types = {"id": "long", "Who": ["null", "string"], "at": at, "day": ["null", day], "paid": ["null", money]}
    row = {"type": "record", "name": "Value", "fields": [{"name": n, "type": type} for n, type in types.items()]}
    images = [{"name": "before", "type": ["null", row]}, {"name": "after", "type": ["null", "Value"]}]
    envelope = {"type": "record", "name": "Envelope", "fields": [*images, {"name": "op", "type": "string"}]}
    key = {"type": "record", "name": "Key", "fields": [{"name": "ID", "type": "long"}]}
    kafka.create("inferred", 1)
    kafka.create("inferred-cdc", 1)
    registry.register("inferred-value", json.dumps(FLAT))
    number, of_key = registry.register("inferred-value", json.dumps(row)), registry.register("k", json.dumps(key))
    registry.register("inferred-cdc-key", json.dumps(key))
    of_envelopes = registry.register("inferred-cdc-value", json.dumps(envelope))
    noon = datetime(2026, 1, 1, 12, tzinfo=UTC)
    rows = [{"id": n, "Who": "ann", "at": noon, "day": 1, "paid": Decimal("2.50")} for n in range(2)]
    send(kafka, "inferred", [(None, record(row, each, number)) for each in rows])
    changes = [*((each, "c") for each in rows), ({**rows[1], "Who": None}, "u")]  # NB: its key tells the old row
    for after, op in changes:
        value = record(envelope, {"before": None, "after": after, "op": op}, of_envelopes)
        send(kafka, "inferred-cdc", [(record(key, {"ID": after["id"]}, of_key), value)])
    query, options = "SELECT id, who, at, day, paid FROM r", f", schema.registry.url '{registry.url}'"
    rest = (noon.replace(tzinfo=None), date(1970, 1, 2), Decimal("2.50"))
    found = run(script(kafka, "inferred", f"{options}, format 'avro'", "", query))
    assert found.rows == Counter({(n, "ann", *rest): 1 for n in range(2)})
    found = run(script(kafka, "inferred-cdc", f"{options}, format 'debezium-avro'", "", query))
    assert found.rows == Counter({(0, "ann", *rest): 1, (1, None, *rest): 1})
    for topic, more, says in (
        ("inferred", "", "SQ4002 .*messages of JSON tell no columns, list the columns"),
        ("strange", ", format 'avro'", "SQ4002 .*has no schema of Avro for strange-value"),
        ("inferred", ", format 'debezium-avro'", "SQ4002 .*the schema of values of the topic inferred is no envelope"),
        ("inferred", ", format 'avro', key 'a'", 'SQ4002 .*columns in keys alone are told by no schema of values: "a"'),
    ):
        with pytest.raises(SquallError, match=says):
            run(script(kafka, topic, f"{options}{more}", "", query))


@connectors
def test_sinks_of_avro(kafka: KafkaServer, registry: SchemaRegistry, tmp_path: Path) -> None:
    """What a sink writes is read again, and by fastavro with the schemas of the registry."""
    registry.user = USER
    source = "CREATE STREAM f (id INT, k INT, v DECIMAL(12,2), at TIMESTAMP, day DATE) USING csv OPTIONS (path"
    (tmp_path / "f.csv").write_text(
        "".join(f"{n},{n % 3},{n}.25,2020-01-01 00:00:{n:02},2020-01-{n + 1:02}\n" for n in range(9))
    )
    login = f"schema.registry.url '{registry.url}', schema.registry.basic.auth.user.info 'ann:${{file:{tmp_path}/pw}}'"
    (tmp_path / "pw").write_text("geheim\n")
    to = f"kafka.bootstrap.servers '{kafka.address}', topic 'avro-out', format 'avro', key.format 'avro', {login}"
    query = "SELECT k, COUNT(*) AS n, SUM(v) AS v, MAX(at) AS at, MIN(day) AS day, 'ä' AS t FROM f GROUP BY k"
    text = f"{source} '{tmp_path}/f.csv'); CREATE SINK s USING kafka OPTIONS ({to}, mode 'upsert') AS {query};"
    run(text, rows=4)
    found = dict[Any, Any]()
    for message in messages(kafka, "avro-out"):
        both = [io.BytesIO((part() or b"")[5:]) for part in (message.key, message.value)]
        numbers = [int.from_bytes((part() or b"")[1:5], "big") for part in (message.key, message.value)]
        schemas = [fastavro.parse_schema(json.loads(registry.schemas[n - 1]["schema"])) for n in numbers]
        key, value = (fastavro.schemaless_reader(*each, None) for each in zip(both, schemas, strict=True))
        assert isinstance(key, dict)
        found[key["k"]] = value
    assert found[2] == {
        "k": 2, "n": 3, "v": Decimal("15.75"), "at": datetime(2020, 1, 1, 0, 0, 8, tzinfo=UTC), "day": date(2020, 1, 3),
        "t": "ä",
    }  # fmt: skip
    assert sorted(registry.subjects) == ["avro-out-key", "avro-out-value"]
    columns = "(k INT PRIMARY KEY, n BIGINT, v DECIMAL(38,2), at TIMESTAMP, day DATE)"
    options = f", format 'avro', key.format 'avro', changelog 'upsert', {login}"
    again = run(script(kafka, "avro-out", options, columns, "SELECT * FROM r"))
    assert again.rows == Counter(
        (row["k"], row["n"], row["v"], row["at"].replace(tzinfo=None), row["day"]) for row in found.values()
    )


@connectors
def fault_what_is_no_record(kafka: KafkaServer, registry: SchemaRegistry) -> None:
    number = registry.register("value", json.dumps(FLAT))
    good = record(FLAT, {"ID": 1, "k": 1, "v": 1}, number)
    kafka.create("avro-poison", 1)
    send(kafka, "avro-poison", [(None, good), (None, b"\0\0\0\0\x63" + good[5:]), (None, b"{}"), (None, good[:-1])])
    options = f", format 'avro', schema.registry.url '{registry.url}'"
    place = "kafka topic avro-poison, partition 0, offset 1: "
    with pytest.raises(SquallError, match=rf"SQ4003 .*{place}.*the schema registry at {registry.url} has no schema 99"):
        run(script(kafka, "avro-poison", options))
    registry.fails = 2
    assert run(script(kafka, "avro-poison", f"{options}, on_error 'skip'")).rows == Counter([(1, 1, 1)])
    with pytest.raises(SquallError, match=r"SQ7002 .*messages of Avro need a schema registry, or a schema"):
        run(script(kafka, "avro-poison", ", format 'avro'"))
    with pytest.raises(SquallError, match=r"SQ7002 .*avro.schema is no schema of Avro"):
        run(script(kafka, "avro-poison", ", format 'avro', avro.schema '{}'"))
    with pytest.raises(SquallError, match=r"SQ8010 .*the schema registry at http://127.0.0.1:9 cannot be reached"):
        away = f"{options}, connect_timeout '1 second'".replace(registry.url, "http://127.0.0.1:9")
        run(script(kafka, "avro-poison", away))
    registry.user = USER
    with pytest.raises(SquallError, match=r"SQ8010 .*the schema registry at .* says: Unauthorized"):
        run(script(kafka, "avro-poison", options.replace("127.0.0.1", "localhost")))
