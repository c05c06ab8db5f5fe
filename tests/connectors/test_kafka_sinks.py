"""Sinks of a real broker: what readers of committed messages find is the query, whatever is killed."""

import json
import random
import threading
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient

from squallpy.base.errors import SquallError
from squallpy.runtime.connectors.kafka import kafka_sink
from squallpy.runtime.connectors.kafka.brokers import is_passing, kafka_error
from tests.connectors.kafka_topics import messages
from tests.connectors.killed_runs import BACKENDS, kill_again_and_again
from tests.connectors.runs import Row, Running, run
from tests.connectors.servers import KafkaServer
from tests.connectors.test_kafka import COLUMNS, QUERY, answer, send

pytestmark = pytest.mark.connectors


def script(kafka: KafkaServer, topic: str, options: str = "mode 'upsert'", query: str = QUERY, to: str = "") -> str:
    source = f"(kafka.bootstrap.servers '{kafka.address}', subscribe '{topic}', changelog 'upsert')"
    sink = f"(kafka.bootstrap.servers '{kafka.address}', topic '{to or topic}-out', {options})"
    return (
        f"CREATE STREAM r {COLUMNS} USING kafka OPTIONS {source}; CREATE SINK s USING kafka OPTIONS {sink} AS {query};"
    )


def compacted(kafka: KafkaServer, topic: str) -> Counter[Row]:
    """Keep the last message of each key, as compaction does."""
    last = dict[Any, Any]()
    for message in messages(kafka, topic):
        last[message.partition(), message.key()] = message.value()
    assert len({key for _, key in last}) == len(last), "messages of a key are in one partition"
    return Counter(tuple(json.loads(value).values()) for value in last.values() if value is not None)


class World:
    """Rows by key in a topic, which come, change and go."""

    def __init__(self, kafka: KafkaServer, topic: str, seed: int) -> None:
        self.kafka, self.topic, self.draw, self.rows = kafka, topic, random.Random(seed), dict[int, dict[str, Any]]()
        kafka.create(topic, 2)

    def change(self) -> None:
        draw = self.draw.randrange
        some = [{"id": draw(30), "k": draw(8), "v": draw(9)} for _ in range(9)]
        self.rows |= {row["id"]: row for row in some}
        send(self.kafka, self.topic, some)

    @property
    def answer(self) -> Counter[Row]:
        return answer(self.rows.values())


@pytest.mark.parametrize("backend", ["local", pytest.param("spark", marks=pytest.mark.spark)])
def oracle_upserts(kafka: KafkaServer, tmp_path: Path, backend: str) -> None:
    """The last message of each key is the query's row; of a batch each key has one message."""
    world = World(kafka, f"sink-{backend}", 1)
    for turn in range(2 if backend == "spark" else 5):
        for _ in range(3):
            world.change()
        run(script(kafka, world.topic), checkpoint=tmp_path / "kept", rows=7, backend=backend)
        assert compacted(kafka, f"{world.topic}-out") == world.answer, turn
    keys = {message.key() for message in messages(kafka, f"{world.topic}-out")}
    assert keys <= {str(k).encode() for k in range(8)}
    if backend == "local":
        assert any(message.value() is None for message in messages(kafka, f"{world.topic}-out"))


def test_changes_appends_and_keys(kafka: KafkaServer, tmp_path: Path) -> None:
    world = World(kafka, "modes", 2)
    for _ in range(3):
        world.change()
        run(script(kafka, "modes", "mode 'changes', key 'k', key.format 'json'"), checkpoint=tmp_path / "1", rows=7)
    rows = Counter[Row]()
    for message in messages(kafka, "modes-out"):
        batch, op, *row = json.loads(message.value() or b"").values()
        assert json.loads(message.key() or b"") == {"k": row[0]} and batch >= 0
        rows[tuple(row)] += 1 if op == "+" else -1
    assert +rows == world.answer and not -rows
    with pytest.raises(SquallError, match=r"SQ3001 .*mode 'append' only adds rows, and r is a change stream"):
        run(script(kafka, "modes", "mode 'append'"))
    plain = script(kafka, "modes", "mode 'append', key 'id, k'", "SELECT * FROM r", "added")
    run(plain.replace(", changelog 'upsert'", "").replace(" PRIMARY KEY", ""))
    added = [(json.loads(m.key() or b""), json.loads(m.value() or b"")) for m in messages(kafka, "added-out")]
    assert len(added) == 27 and all(key == {"id": row["id"], "k": row["k"]} for key, row in added)


def test_what_is_there_when_a_run_begins_anew(kafka: KafkaServer, tmp_path: Path) -> None:
    world = World(kafka, "anew", 3)
    world.change()
    run(script(kafka, "anew"), checkpoint=tmp_path / "1")
    with pytest.raises(SquallError, match=r"SQ7005 script.sql:1:\d+: the topic anew-out of .* has 1 batch of this"):
        run(script(kafka, "anew"), checkpoint=tmp_path / "2")
    kafka.create("other-out", 1)
    send(kafka, "other-out", [{"id": 1}])
    with pytest.raises(SquallError, match=r"SQ7005 .*has records, and this run begins anew"):
        run(script(kafka, "anew", to="other"), checkpoint=tmp_path / "2")
    before = len([*messages(kafka, "anew-out")])
    run(script(kafka, "anew", "mode 'upsert', existing 'keep'"), checkpoint=tmp_path / "3")
    assert len([*messages(kafka, "anew-out")]) == 2 * before
    for turn in range(2):
        world.change()
        run(script(kafka, "anew", "mode 'upsert', existing 'replace'"), checkpoint=tmp_path / "4")
        assert compacted(kafka, "anew-out") == world.answer
        assert turn or len([*messages(kafka, "anew-out")]) == len(world.answer)
    other = script(kafka, "anew", "mode 'upsert', existing 'keep'", QUERY.replace("FROM r", "FROM r WHERE v > 2"))
    run(other, checkpoint=tmp_path / "5")
    with pytest.raises(SquallError, match=r"SQ7005 .*another query has written to the topic anew-out"):
        run(script(kafka, "anew"), checkpoint=tmp_path / "1")


def fault_two_runs(kafka: KafkaServer, tmp_path: Path) -> None:
    """The run that began later fences the one before, which ends; what both have written is one query."""
    world = World(kafka, "fenced", 4)
    world.change()
    keep = "mode 'upsert', existing 'keep'"
    with Running(script(kafka, "fenced", keep), tmp_path / "1") as first:
        first.wait_for(lambda: (tmp_path / "1").exists() and compacted(kafka, "fenced-out") == world.answer)
        with Running(script(kafka, "fenced", keep), tmp_path / "2") as second:
            second.wait_for(
                lambda: (tmp_path / "2").exists() and len([*messages(kafka, "fenced-out")]) > len(world.answer)
            )
            world.change()
            assert "SQ7005" in str(ended := first.ended()) and "another run has taken over the topic" in str(ended)
            second.wait_for(lambda: compacted(kafka, "fenced-out") == world.answer)


def fault_what_cannot_be_written(kafka: KafkaServer, tmp_path: Path) -> None:
    world = World(kafka, "faults", 5)
    world.change()
    with pytest.raises(SquallError, match=r"SQ8010 .*Kafka at 127.0.0.1:9 cannot be reached"):
        text, away = script(kafka, "faults"), "'127.0.0.1:9', connect_timeout '300 ms', topic"
        run(text.replace(f"'{kafka.address}', topic", away))
    nullable = "SELECT CASE WHEN k > 100 THEN k END AS k, COUNT(*) AS n FROM r GROUP BY 1"
    with pytest.raises(SquallError, match=r'SQ7006 .*batch 0 has NULL as the key "k", .*, write key.format \'json\''):
        run(script(kafka, "faults", query=nullable))
    run(script(kafka, "faults", "mode 'upsert', key.format 'json'", nullable))
    assert [m.key() for m in messages(kafka, "faults-out")] == [b'{"k": null}']
    large = "mode 'append', kafka.message.max.bytes '1200'"
    long = script(kafka, "faults", large, f"SELECT id, '{'x' * 1300}' AS t FROM r", "large")
    with pytest.raises(SquallError, match=r"SQ7006 .*batch 0 cannot be written to the topic large-out .*too large"):
        run(long.replace(", changelog 'upsert'", "").replace(" PRIMARY KEY", ""))
    for options, says in (
        ("mode 'upsert', kafka.group.id 'x'", 'option "kafka.group.id" cannot be chosen, it is squall-SINK'),
        ("mode 'upsert', kafka.transactional.id 'x'", 'option "kafka.transactional.id" cannot be chosen'),
        ("mode 'upsert', format 'xml'", 'option "format" cannot be "xml"'),
        ("mode 'upsert', key.format 'xml'", 'option "key.format" cannot be "xml"'),
        ("mode 'changes', key 'nothing'", 'SQ2003 .*the query has no column "nothing"'),
    ):
        with pytest.raises(SquallError, match=says):
            run(script(kafka, "faults", options))


@pytest.mark.parametrize("backend", BACKENDS)
def fault_kills(kafka: KafkaServer, tmp_path: Path, backend: str) -> None:
    """The run, a process of its Spark, or the broker, is killed at any time."""
    world, address = World(kafka, f"killed-{backend}", 6), f"'{kafka.address}', "
    patient = script(kafka, world.topic).replace(address, f"{address}connect_timeout '3 minutes', ")
    (tmp_path / "q.sql").write_text(patient)  # NB: on a machine with much to do a broker takes more than 30 s to begin

    def hit() -> None:
        kafka.kill()
        kafka.start()

    def is_done() -> bool:
        return compacted(kafka, f"{world.topic}-out") == world.answer

    rows = 20 if backend == "local" else 1000  # NB: Spark, which is killed most of the time, has to keep up
    kill_again_and_again(tmp_path, backend, world.draw, world.change, is_done, hit, rows)


def fault_topics_that_a_broker_does_not_know_yet(kafka: KafkaServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """A sink looks again at a topic that it could not make, for it is there: what it has counts."""
    world = World(kafka, "unsure", 4)
    world.change()
    run(script(kafka, "unsure"))
    asked, listed = list[int](), AdminClient.list_topics

    def knows_nothing(client: AdminClient, topic: str, timeout: float) -> Any:
        asked.append(1)
        found = listed(client, topic, timeout=timeout)
        if len(asked) < 3:
            found.topics[topic].error = KafkaError(KafkaError.UNKNOWN_TOPIC_OR_PART)
        return found

    monkeypatch.setattr(AdminClient, "list_topics", knows_nothing)
    with pytest.raises(SquallError, match=r"SQ7005 .*the topic unsure-out of Kafka at .* has"):
        run(script(kafka, "unsure"))
    assert len(asked) == 3


def test_a_call_that_waits_for_ever_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its error may pass, so that the next producer goes on."""
    monkeypatch.setattr(kafka_sink, "_GRACE", 0.0)
    goes_on = threading.Event()
    with pytest.raises(KafkaException) as raised:
        kafka_sink._within(0.01, lambda _: goes_on.wait())
    goes_on.set()
    assert is_passing(kafka_error(raised.value))
    with pytest.raises(ZeroDivisionError):
        kafka_sink._within(9.0, lambda seconds: 1 / (seconds - 9))
