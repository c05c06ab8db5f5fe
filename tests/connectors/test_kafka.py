"""Topics of a real broker as streams: transactions, upserts, Debezium's envelopes, what is gone."""

import json
import random
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import NewPartitions  # type: ignore[attr-defined]

from squallpy.base.errors import SquallError
from tests.connectors.runs import Answers, Row, Running, run
from tests.connectors.servers import KafkaServer

pytestmark = pytest.mark.connectors
COLUMNS = "(id INT PRIMARY KEY, k INT, v INT)"
QUERY = "SELECT k, COUNT(*) AS n, SUM(v) AS v FROM r GROUP BY k"


def script(kafka: KafkaServer, topic: str, options: str = "", columns: str = "(id INT, k INT, v INT)") -> str:
    of = f"(kafka.bootstrap.servers '{kafka.address}', subscribe '{topic}'{options})"
    return f"CREATE STREAM r {columns} USING kafka OPTIONS {of}; {QUERY};"


def send(kafka: KafkaServer, topic: str, rows: Iterable[dict[str, Any] | None], by: str = "id") -> None:
    producer = Producer({"bootstrap.servers": kafka.address})
    for row in rows:
        value = None if row is None else json.dumps(row, indent=1)  # NB: over several lines
        producer.produce(topic, value, key=None if row is None else str(row.get(by)))
    assert producer.flush(30) == 0


def answer(rows: Iterable[dict[str, Any]]) -> Counter[Row]:
    """Group rows as the query does."""
    groups: dict[int, tuple[int, int]] = {}
    for row in rows:
        n, v = groups.get(row["k"], (0, 0))
        groups[row["k"]] = (n + 1, v + row["v"])
    return Counter((k, *values) for k, values in groups.items())


@pytest.mark.parametrize("backend", ["local", pytest.param("spark", marks=pytest.mark.spark)])
def oracle_messages(kafka: KafkaServer, tmp_path: Path, backend: str) -> None:
    """Messages come to several partitions, resumed by a checkpoint; those of aborted transactions do not count."""
    topic, draw, answers, rows = f"plain-{backend}", random.Random(1), Answers(), list[dict[str, Any]]()
    kafka.create(topic, 3)
    producer = Producer({"bootstrap.servers": kafka.address, "transactional.id": topic})
    producer.init_transactions(30)
    for turn in range(2 if backend == "spark" else 6):
        for commits in (True, False, True):
            some = [{"id": n, "k": draw.randrange(4), "v": draw.randrange(100)} for n in range(draw.randrange(1, 40))]
            producer.begin_transaction()
            for row in some:
                producer.produce(topic, json.dumps(row), key=str(row["id"]))
            producer.flush(30)
            producer.commit_transaction(30) if commits else producer.abort_transaction(30)
            rows += some if commits else []
        run(script(kafka, topic), answers, tmp_path / "kept", rows=draw.choice([3, 50]), backend=backend)
        assert answers.rows == answer(rows), turn
    assert run(script(kafka, topic, ", startingOffsets 'latest'")).rows == Counter()
    every = run(script(kafka, topic, ", kafka.isolation.level 'read_uncommitted'")).rows
    assert sum(row[1] for row in every) > len(rows)


def test_upserts_and_envelopes(kafka: KafkaServer, tmp_path: Path) -> None:
    kafka.create("upserts", 2)
    send(kafka, "upserts", [{"id": n % 5, "k": n % 2, "v": n} for n in range(40)])
    last = [{"k": n % 2, "v": n} for n in range(35, 40)]
    assert run(script(kafka, "upserts", ", changelog 'upsert'", COLUMNS)).rows == answer(last)
    kafka.create("changes", 1)
    rows = [{"id": n, "k": n % 3, "v": n} for n in range(9)]
    envelopes = list[dict[str, Any] | None]()
    envelopes += [{"before": None, "after": row, "op": "c", "id": row["id"]} for row in rows]
    envelopes += [{"before": rows[0], "after": {"id": 0, "k": 7, "v": 1}, "op": "u", "id": 0}]
    envelopes += [{"before": rows[1], "after": None, "op": "d", "id": 1}, None]  # NB: Debezium's tombstone
    send(kafka, "changes", envelopes)
    found = run(script(kafka, "changes", ", format 'debezium-json'", COLUMNS)).rows
    assert found == answer([{"k": 7, "v": 1}, *rows[2:]])


def test_a_broker_that_dies_and_a_topic_that_grows(kafka: KafkaServer, tmp_path: Path) -> None:
    kafka.create("grows", 1)
    rows = [{"id": n, "k": n % 3, "v": n} for n in range(20)]
    send(kafka, "grows", rows[:10])
    with Running(script(kafka, "grows"), tmp_path / "kept") as running:
        running.wait_for(lambda: running.answers.rows == answer(rows[:10]))
        kafka.kill()
        kafka.start()
        for future in kafka.admin.create_partitions([NewPartitions("grows", 3)]).values():
            future.result(30)
        send(kafka, "grows", rows[10:])
        running.wait_for(lambda: running.answers.rows == answer(rows), 60)


def fault_what_is_gone_or_wrong(kafka: KafkaServer, tmp_path: Path) -> None:
    with pytest.raises(SquallError, match=r'SQ4001 script.sql:1:15: Kafka at 127.0.0.1:[0-9]+ has no topic "nothing"'):
        run(script(kafka, "nothing"))
    with pytest.raises(SquallError, match=r"SQ8010 .*Kafka at 127.0.0.1:9 cannot be reached"):
        run(script(kafka, "x", ", connect_timeout '300 ms'").replace(kafka.address, "127.0.0.1:9"))
    for option, says in (
        ("kafka.sasl.jaas.config 'x'", "is of Java's client, write kafka.sasl.username and kafka.sasl.password"),
        ("kafka.no.such.thing 'x'", "SQ7002 .*the client of Kafka refuses its settings: No such configuration"),
        ("startingOffsets 'middle'", 'option "startingOffsets" cannot be "middle"'),
    ):
        with pytest.raises(SquallError, match=says):
            run(script(kafka, "x", f", {option}"))
    with pytest.raises(SquallError, match=r'SQ7002 .*sink "s" has no kafka.bootstrap.servers'):
        run(f"{script(kafka, 'x')} CREATE SINK s USING kafka OPTIONS (topic 'y') AS {QUERY};")
    with pytest.raises(SquallError, match=r"SQ7002 .* is for a STREAM, and a TABLE is read once"):
        run(script(kafka, "x").replace("STREAM", "TABLE"))
    kafka.create("poison", 1)
    send(kafka, "poison", [{"id": 1, "k": 1, "v": 1}, {"id": 2, "k": 1, "v": "many"}])
    with pytest.raises(SquallError, match=r'SQ4004 .*column "v": .* is not a valid INT'):
        run(script(kafka, "poison"))
    assert run(script(kafka, "poison", ", on_error 'skip'")).rows == Counter([(1, 1, 1)])
    kafka.create("short", 1)
    send(kafka, "short", [{"id": n, "k": 1, "v": n} for n in range(10)])
    run(script(kafka, "short"), checkpoint=tmp_path / "kept")
    send(kafka, "short", [{"id": n, "k": 1, "v": n} for n in range(10)])
    for future in kafka.admin.delete_records([TopicPartition("short", 0, 15)]).values():
        future.result(30)
    with pytest.raises(SquallError, match=r"SQ4009 .*partition 0 of the topic short offsets 10 to 14 are gone"):
        run(script(kafka, "short"), checkpoint=tmp_path / "kept")
    for future in kafka.admin.delete_topics(["short"]).values():
        future.result(30)
