"""What is in topics, as readers of committed messages see it."""

from collections.abc import Iterator

from confluent_kafka import Consumer, KafkaError, Message, TopicPartition

from tests.connectors.servers import KafkaServer


def messages(kafka: KafkaServer, topic: str) -> Iterator[Message]:
    """Read the committed messages of a topic, from each partition in order."""
    reader = Consumer({
        "bootstrap.servers": kafka.address, "group.id": "tests", "isolation.level": "read_committed",
        "auto.offset.reset": "earliest", "enable.partition.eof": True, "log_level": 0,
    })  # fmt: skip
    partitions = sorted(reader.list_topics(topic, timeout=30).topics[topic].partitions)
    reader.assign([TopicPartition(topic, p, 0) for p in partitions])
    while partitions:
        message = reader.poll(60)
        assert message is not None, "the broker says nothing"  # NB: a tombstone is as long as nothing
        if message.error():
            assert message.error().code() == KafkaError._PARTITION_EOF, message.error()
            partitions.remove(message.partition())
        else:
            yield message
    reader.close()
