"""Topics of a real broker as streams: transactions, upserts, Debezium's envelopes, what is gone."""

import json
import random
import re
import threading
import time
from collections import Counter
from collections.abc import Iterable
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition
from confluent_kafka.admin import NewPartitions  # type: ignore[attr-defined]

import squallpy
from squallpy.base.errors import SquallError
from squallpy.live.live_session import LiveSession
from squallpy.runtime.connectors.kafka.brokers import Brokers
from squallpy.runtime.connectors.kafka.kafka_source import KafkaStream, PartitionReader
from squallpy.runtime.connectors.kafka.librdkafka import NativeConsumer
from squallpy.runtime.sources.foreign_source import ForeignSource
from tests.connectors.kafka_topics import messages
from tests.connectors.runs import Answers, Row, Running, run
from tests.connectors.servers import PASSWORD, KafkaServer

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
    """Messages come to several partitions; those of aborted transactions do not count. After each batch the answer is
    DuckDB's over what is committed up to the last messages that it has read."""
    topic, draw, sent = f"plain-{backend}", random.Random(1), list[tuple[int, int, int, int]]()
    kafka.create(topic, 3)
    producer = Producer({"bootstrap.servers": kafka.address, "transactional.id": topic})
    producer.init_transactions(30)
    columns = "(id INT, k INT, v INT, _partition INT, _offset BIGINT)"
    query = "SELECT _partition, k, COUNT(*) AS n, SUM(v) AS v, MAX(_offset) AS at FROM r GROUP BY _partition, k"

    def check(found: Counter[Row]) -> None:
        ends = {p: max(row[4] for row in found if row[0] == p) for p in {row[0] for row in found}}
        with duckdb.connect() as database:
            database.execute("CREATE TABLE r (_partition INT, _offset BIGINT, k INT, v INT)")
            database.executemany("INSERT INTO r VALUES (?, ?, ?, ?)", [m for m in sent if m[1] <= ends.get(m[0], -1)])
            assert found == Counter(database.execute(query).fetchall())

    answers = Answers(check)
    for turn in range(2 if backend == "spark" else 6):
        for commits in (True, False, True):
            places = list[tuple[int, int, int, int]]()
            producer.begin_transaction()
            for number in range(draw.randrange(1, 40)):
                k, v = draw.randrange(4), draw.randrange(100)

                def note(error: object, message: Message, k: int = k, v: int = v) -> None:
                    assert error is None
                    places.append((message.partition() or 0, message.offset() or 0, k, v))  # noqa: B023

                producer.produce(topic, json.dumps({"id": number, "k": k, "v": v}), str(number), on_delivery=note)
            producer.flush(30)
            producer.commit_transaction(30) if commits else producer.abort_transaction(30)
            sent += places if commits else []
        text = script(kafka, topic, "", columns).replace(QUERY, query)
        run(text, answers, tmp_path / "kept", rows=draw.choice([3, 50]), backend=backend)
        assert sum(row[2] for row in answers.rows) == len(sent), turn
    assert answers.batches > 2
    assert run(script(kafka, topic, ", startingOffsets 'latest'")).rows == Counter()
    every = run(script(kafka, topic, ", kafka.isolation.level 'read_uncommitted'")).rows
    assert sum(row[1] for row in every) > len(sent)


def test_offsets_that_options_name(kafka: KafkaServer, tmp_path: Path) -> None:
    """As Spark's source takes them: an offset of each partition, -1 the latest, -2 the earliest."""
    kafka.create("named", 2)
    producer = Producer({"bootstrap.servers": kafka.address})
    for n in range(20):
        producer.produce("named", json.dumps({"id": n, "k": n, "v": n}), partition=n % 2)
    producer.flush(30)

    def found(*options: str, checkpoint: Path | None = None, answers: Answers | None = None) -> set[int]:
        text = script(kafka, "named", "".join(f", {each}" for each in options))
        return {row[0] for row in run(text, answers, checkpoint).rows}

    starts, stops = (
        'startingOffsets \'{"named": {"0": 7, "1": %d}}\'',
        'endingOffsets \'{"named": {"0": %d, "1": -1}}\'',
    )
    assert found(starts % -2) == {14, 16, 18, *range(1, 20, 2)}
    assert found(starts % -1) == {14, 16, 18}
    assert found(starts % 9, stops % 8) == {14, 19}
    assert found("STARTINGOFFSETS 'Latest'", "endingOffsets 'LATEST'") == set()
    kept, answers = tmp_path / "kept", Answers()
    assert found(starts % 8, stops % 8, checkpoint=kept, answers=answers) == {14, 17, 19}
    assert found(starts % 0, stops % 8, checkpoint=kept, answers=answers) == {14, 17, 19}
    assert found(starts % 0, stops % 30, checkpoint=kept, answers=answers) == {14, 16, 17, 18, 19}
    for options, says in (
        (starts % 11, "SQ4009 .*partition 1 has no offset 11, .*: it has 0 to 10"),
        (
            'startingOffsets \'{"named": {"0": 1}}\'',
            "SQ7002 .*has offsets of the partitions 0, and named has 0, 1, write an offset of each, -1 or -2 where",
        ),
        ('startingOffsets \'{"other": {"0": 1}}\'', 'SQ7002 .*of the topic "other", and the stream reads "named"'),
        ('endingOffsets \'{"named": {"0": -2, "1": 0}}\'', 'SQ7002 .*"endingOffsets" cannot be .*, write latest, or'),
        ("endingOffsets 'earliest'", 'SQ7002 .*"endingOffsets" cannot be "earliest", write latest, or'),
        ('startingOffsets \'{"named": {"x": 1}}\'', "SQ7002 .*cannot be .*: -1 is the latest offset, -2 the earliest"),
        ('startingOffsets \'{"named": {"0": 1.5}}\'', "SQ7002 .*cannot be"),
        ("startingOffsets '{\"named\": []}'", "SQ7002 .*cannot be"),
    ):
        with pytest.raises(SquallError, match=says):
            found(options)


def test_messages_of_any_shape(kafka: KafkaServer) -> None:
    """Line ends, empty messages, long ones and what is no text: each row is read from its own message, or named."""
    kafka.create("shapes", 1)
    producer, draw = Producer({"bootstrap.servers": kafka.address}), random.Random(5)
    rows = list[dict[str, Any]]()
    for n in range(3000):
        row = {"id": n, "k": n % 3, "v": n}
        texts = [json.dumps(row), json.dumps(row, indent=draw.choice([None, 1])) + draw.choice(["", "\r\n", " \n "])]
        texts.append(json.dumps(row | {"s": "x\\" * draw.randrange(3000)}))
        value = draw.choice(texts).encode()
        if n % 7 == 0:
            value = draw.choice([b"", b" ", b"\n\n", b"\xff", b'{"id": 1, "k"', b"null"])
        else:
            rows.append(row)
        producer.produce("shapes", value)
        producer.poll(0)
    assert producer.flush(30) == 0
    answers = run(script(kafka, "shapes", ", on_error 'skip'"), rows=700)
    assert answers.rows == answer(rows)
    with pytest.raises(SquallError, match=r"partition 0, offset [0-9]+: .* is not") as found:
        run(script(kafka, "shapes"))
    (offset,) = re.findall(r"offset ([0-9]+)", str(found.value))
    message = next(m for m in messages(kafka, "shapes") if m.offset() == int(offset))
    assert (message.value() or b"").strip() in (b"\xff", b'{"id": 1, "k"', b"null")


@pytest.mark.parametrize("backend", ["local", pytest.param("spark", marks=[pytest.mark.spark, pytest.mark.long])])
def test_columns_that_tell_where_a_message_is_from(kafka: KafkaServer, tmp_path: Path, backend: str) -> None:
    topic = f"located-{backend}"
    kafka.create(topic, 2)
    producer, sent = Producer({"bootstrap.servers": kafka.address}), Counter[Row]()
    now = int(time.time()) * 1000  # NB: what is old is deleted
    for n, value in enumerate([7, 8, "many", 9]):
        producer.produce(topic, json.dumps({"v": value}), partition=n % 2, timestamp=now + n)
        assert producer.flush(30) == 0
        if value != "many":
            at = datetime.fromtimestamp(now // 1000, UTC).replace(tzinfo=None, microsecond=1000 * n)
            sent[(topic, n % 2, n // 2, at, value)] += 1
    columns = "(f VARCHAR FROM '_file', _partition INT, _offset BIGINT, at TIMESTAMP FROM '_timestamp', v INT)"
    options = f", on_error 'dead-letter', dead_letter '{topic}-dlq'"
    text = script(kafka, topic, options, columns).removesuffix(f"{QUERY};")
    assert run(f"{text} SELECT f, _partition, _offset, at, v FROM r;", backend=backend).rows == sent
    (letter,) = messages(kafka, f"{topic}-dlq")
    assert dict(letter.headers() or [])["squall.offset"] == b"1"


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
    text = script(kafka, "changes", ", format 'debezium-json'", COLUMNS)
    answers = run(text, checkpoint=tmp_path / "kept")
    assert answers.rows == answer([{"k": 7, "v": 1}, *rows[2:]])
    truncation = {"before": None, "after": None, "op": "t"}
    send(kafka, "changes", [*envelopes[:3], truncation, {"before": None, "after": rows[5], "op": "c", "id": 5}])
    assert run(text, answers, tmp_path / "kept").rows == answer([rows[5]])
    kafka.create("truncated", 2)
    send(kafka, "truncated", [truncation])
    says = r"SQ4005 .*truncated, partition \d, offset 0: the table was truncated .*let the topic have one partition"
    with pytest.raises(SquallError, match=says):
        run(script(kafka, "truncated", ", format 'debezium-json'", COLUMNS))


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
        running.wait_for(lambda: running.answers.rows == answer(rows))


UNSURE = (KafkaError._ALL_BROKERS_DOWN, KafkaError._UNKNOWN_PARTITION)  # what a broker says that has just started, too


@pytest.mark.parametrize("code", UNSURE)
def fault_brokers_that_go_away_as_a_run_begins(kafka: KafkaServer, monkeypatch: pytest.MonkeyPatch, code: int) -> None:
    """A run that has found its topic waits for the offsets to begin at; a broker that starts may not know them yet."""
    topic = f"begins{code}"
    kafka.create(topic, 1)
    send(kafka, topic, [{"id": 1, "k": 1, "v": 1}])
    marks, away = Brokers.marks, list[int]()

    def fails(brokers: Brokers, *words: Any) -> tuple[int, int]:
        if len(away) < 3:
            away.append(1)
            raise KafkaException(KafkaError(code))
        return marks(brokers, *words)

    monkeypatch.setattr(Brokers, "marks", fails)
    assert run(script(kafka, topic)).rows == Counter([(1, 1, 1)])

    def stays_away(*_: Any) -> tuple[int, int]:
        raise KafkaException(KafkaError(code))

    monkeypatch.setattr(Brokers, "marks", stays_away)
    with pytest.raises(SquallError, match=r"SQ8010 .*Kafka at 127.0.0.1:[0-9]+ cannot be reached.*it may pass"):
        run(script(kafka, topic, ", connect_timeout '300 ms'"))


def fault_topics_that_a_broker_does_not_know_yet(
    kafka: KafkaServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run waits a moment for one that it has not seen, and longer for one that it has read, before it is gone."""
    rows, miss, missed = [{"id": n, "k": n % 3, "v": n} for n in range(10)], KafkaStream._miss, list[KafkaStream]()

    def make(stream: KafkaStream) -> None:
        miss(stream)
        missed.append(stream)
        if len(missed) == 1:
            kafka.create("later", 1)
            send(kafka, "later", rows)
            stream._missing = 0.0  # NB: as if that had taken no time

    monkeypatch.setattr(KafkaStream, "_miss", make)
    with Running(script(kafka, "later", ", connect_timeout '5 s'"), tmp_path / "kept") as running:
        running.wait_for(lambda: running.answers.rows == answer(rows))
        assert missed
        for future in kafka.admin.delete_topics(["later"]).values():
            future.result(30)
        assert "SQ4001" in str(ended := running.ended()) and 'has no topic "later"' in str(ended)


def fault_what_is_gone_or_wrong(kafka: KafkaServer, tmp_path: Path) -> None:
    with pytest.raises(SquallError, match=r'SQ4001 script.sql:1:15: Kafka at 127.0.0.1:[0-9]+ has no topic "nothing"'):
        run(script(kafka, "nothing"))
    with pytest.raises(SquallError, match=r"SQ8010 .*Kafka at 127.0.0.1:9 cannot be reached"):
        run(script(kafka, "x", ", connect_timeout '300 ms'").replace(kafka.address, "127.0.0.1:9"))
    for option, says in (
        ("kafka.sasl.jaas.config 'x'", "is of Java's client, write kafka.sasl.username and kafka.sasl.password"),
        ("kafka.no.such.thing 'x'", "SQ7002 .*the client of Kafka refuses its settings: No such configuration"),
        ("kafka.enable.auto.commit 'true'", 'option "kafka.enable.auto.commit" cannot be chosen, write kafka.group.id'),
        ("startingOffsets 'middle'", 'option "startingOffsets" cannot be "middle"'),
        ("KAFKA.Value.Deserializer 'x'", 'option "KAFKA.Value.Deserializer" is of Java\'s client, write format'),
        ("kafka.security.protocol 'SASL_PLAINTEXT'", "refuses its settings: .*, write kafka.sasl.mechanism 'PLAIN' or"),
        ("subscribePattern 'a.*'", "is of Spark's kafka and not served, write subscribe: each topic is a stream"),
        ("key 'id, nothing'", 'SQ2003 .*option "key" names no column: "nothing"'),
        ("topic 'x'", 'unknown option "topic" of kafka'),
    ):
        with pytest.raises(SquallError, match=says):
            run(script(kafka, "x", f", {option}"))
    for topic, says in (("a,b", "a stream for each, and UNION ALL"), ("ünï", "write A-Z, a-z, 0-9, ., _ and -")):
        with pytest.raises(SquallError, match=f'SQ7002 .*"{topic}" is no name of a topic, {says}'):
            run(script(kafka, topic))
    to = f"CREATE SINK s USING kafka OPTIONS (kafka.bootstrap.servers '{kafka.address}', topic 'x', mode 'upsert')"
    with pytest.raises(SquallError, match=r'SQ7005 .*x is read by "r" of the same script, name another'):
        run(f"{script(kafka, 'x', f', changelog {chr(39)}upsert{chr(39)}', COLUMNS)} {to} AS {QUERY};")
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
    with pytest.raises(SquallError, match=r"SQ4009 .*the topic short, partition 0: offsets 10 to 14 are gone"):
        run(script(kafka, "short"), checkpoint=tmp_path / "kept")
    for future in kafka.admin.delete_topics(["short"]).values():
        future.result(30)
    kafka.create("short", 1)
    send(kafka, "short", [{"id": n, "k": 1, "v": n} for n in range(30)])
    with pytest.raises(SquallError, match=r"SQ4009 .*the topic short, another topic of this name was made since"):
        run(script(kafka, "short"), checkpoint=tmp_path / "kept")


def test_keys_and_tombstones(kafka: KafkaServer, tmp_path: Path) -> None:
    """A message without a value deletes its key, which is text, or an object; columns may be in keys alone."""
    for topic, format, key in (
        ("text", "", str),
        ("object", ", key.format 'json'", lambda id: json.dumps({"id": id})),
        ("debezium-key", ", key.format 'json'", lambda id: json.dumps({"schema": {}, "payload": {"id": id}})),
    ):
        kafka.create(topic, 2)
        producer = Producer({"bootstrap.servers": kafka.address})
        for in_value in (True, False):
            rows = {n: {"k": n % 2, "v": n} for n in range(12)}
            for id, row in rows.items():
                producer.produce(topic, json.dumps({"id": id, **row} if in_value else row), key(id))
            for id in (3, 4, 99):
                producer.produce(topic, None, key(id))
                rows.pop(id, None)
            assert producer.flush(30) == 0
            options = f", changelog 'upsert'{format}" + ("" if in_value else ", key 'id'")
            name = tmp_path / f"{topic}-{in_value}"
            answers = run(script(kafka, topic, options, COLUMNS), checkpoint=name, rows=5)
            assert answers.rows == answer(rows.values()), (topic, in_value)
    kafka.create("no-key", 1)
    producer.produce("no-key", None, "none")
    assert producer.flush(30) == 0
    place = "kafka topic no-key, partition 0, offset 0: "
    for format, says in (("", f"SQ4004 .*{place}.*'none' is not"), (", key.format 'json'", f"SQ4003 .*{place}the key")):
        with pytest.raises(SquallError, match=says):
            run(script(kafka, "no-key", f", changelog 'upsert'{format}", COLUMNS))
    texts = "CREATE STREAM r (name VARCHAR PRIMARY KEY, v INT) USING kafka OPTIONS (kafka.bootstrap.servers "
    texts += f"'{kafka.address}', subscribe 'names', changelog 'upsert', key 'name'); SELECT name, v FROM r;"
    kafka.create("names", 1)
    for text, some in (("ann", '{"v": 1}'), ('"b"\n', '{"v": 2}'), ("7", "{}"), ("ann", None)):
        producer.produce("names", some, text)
    assert producer.flush(30) == 0
    assert run(texts).rows == Counter([('"b"\n', 2), ("7", None)])


def test_dead_letters_are_messages(kafka: KafkaServer, tmp_path: Path) -> None:
    kafka.create("letters", 1)
    options = ", on_error 'dead-letter', dead_letter 'letters-dlq'"
    answers = Answers()
    for _ in range(2):
        send(kafka, "letters", [{"id": n, "k": 1, "v": value} for n, value in enumerate((5, "many", 6))])
        run(script(kafka, "letters", options), answers, tmp_path / "kept")
    assert answers.rows == Counter([(1, 4, 22)])
    found = [*messages(kafka, "letters-dlq")]
    assert [message.key() for message in found] == [b"1", b"1"]
    assert [json.loads(message.value() or b"")["v"] for message in found] == ["many", "many"]
    about = dict(found[0].headers() or [])
    assert (about["squall.partition"], about["squall.offset"], about["squall.code"]) == (b"0", b"1", b"SQ4004")
    assert about["squall.reason"] == b"column \"v\": 'many' is not a valid INT"


def test_offsets_of_a_group(kafka: KafkaServer, tmp_path: Path) -> None:
    kafka.create("grouped", 1)
    send(kafka, "grouped", [{"id": n, "k": 1, "v": n} for n in range(10)])
    run(script(kafka, "grouped", ", kafka.group.id 'shop'"), checkpoint=tmp_path / "kept")
    reader = Consumer({"bootstrap.servers": kafka.address, "group.id": "shop"})
    (place,) = reader.committed([TopicPartition("grouped", 0)], timeout=30)
    reader.close()
    assert place.offset == 10


def test_threads_read_beside_each_other(kafka: KafkaServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """A view is filled in a thread of its own while batches go on: neither takes the messages of the other."""
    kafka.create("watched", 1)
    send(kafka, "watched", [{"id": n, "k": 0, "v": 1} for n in range(60)])
    found, both, receive = dict[int, list[int]](), threading.Barrier(2), PartitionReader._receive

    def together(reader: PartitionReader, most: int) -> pa.Table:
        with suppress(threading.BrokenBarrierError):
            both.wait(5)
        return receive(reader, most)

    with squallpy.connect() as s:
        s.sql(script(kafka, "watched"))
        assert isinstance(s._session, LiveSession)
        source = s._session._input.sources["r"]
        assert isinstance(source, ForeignSource)

        def read(start: int) -> None:
            (part,) = source.split({"offsets": {"0": start}}, {"offsets": {"0": start + 30}}, 1)
            found[start] = part.read(("id",))["id"].to_pylist()

        monkeypatch.setattr(PartitionReader, "_receive", together)
        threads = [threading.Thread(target=read, args=(start,)) for start in (0, 30)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert found == {0: [*range(30)], 30: [*range(30, 60)]}


def test_a_batch_waits_for_no_more_messages_than_it_has(kafka: KafkaServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the client is asked for it waits for, a fifth of a second: at the end of a partition there is no more."""
    kafka.create("few", 2)
    send(kafka, "few", rows := [{"id": n, "k": 0, "v": 1} for n in range(60)])
    asked, receive = list[int](), NativeConsumer.receive

    def counted(consumer: NativeConsumer, most: int, timeout: float) -> tuple[pa.Table, list[tuple[KafkaError, int]]]:
        came = receive(consumer, most, timeout)
        asked.append(most - len(came[0]))
        return came

    monkeypatch.setattr(NativeConsumer, "receive", counted)
    assert run(script(kafka, "few")).rows == answer(rows)
    assert len(asked) >= 2 and not asked[-1]


def test_tls_and_sasl(kafka: KafkaServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kafka.create("secured", 1)
    send(kafka, "secured", [{"id": n, "k": 1, "v": n} for n in range(3)])
    monkeypatch.setenv("KAFKA_PASSWORD", PASSWORD)
    login = ", kafka.sasl.username 'ann', kafka.sasl.password '${env:KAFKA_PASSWORD}', connect_timeout '1 minute'"
    tls = f", kafka.security.protocol 'SSL', kafka.ssl.ca.location '{kafka.certificate}'"
    plain = f", kafka.security.protocol 'SASL_PLAINTEXT', kafka.sasl.mechanism 'PLAIN'{login}"
    for name, options, address in (
        ("plain", plain, kafka.sasl),
        ("scram", plain.replace("'PLAIN'", "'SCRAM-SHA-256'"), kafka.sasl),
        ("tls", tls, kafka.tls),
    ):
        text = script(kafka, "secured", options).removesuffix(f"{QUERY};").replace(kafka.address, address)
        sink = f"kafka.bootstrap.servers '{address}', topic 'secured-{name}', mode 'upsert'{options}"
        run(f"{text} CREATE SINK s USING kafka OPTIONS ({sink}) AS {QUERY};", checkpoint=tmp_path / name)
        assert [json.loads(m.value() or b"") for m in messages(kafka, f"secured-{name}")] == [{"k": 1, "n": 3, "v": 3}]
    kept = [path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()]
    assert kept and not any(PASSWORD.encode() in data for data in kept)
    monkeypatch.setenv("KAFKA_PASSWORD", "wrong")
    with pytest.raises(SquallError, match=r"SQ8010 .*Authentication failed.*a retry does not help"):
        run(script(kafka, "secured", plain.replace("1 minute", "10 s")).replace(kafka.address, kafka.sasl))
    with pytest.raises(SquallError, match=r"SQ8010 .*certificate verify failed.*a retry does not help"):
        strange = tls.replace(f", kafka.ssl.ca.location '{kafka.certificate}'", ", connect_timeout '10 s'")
        run(script(kafka, "secured", strange).replace(kafka.address, kafka.tls))
