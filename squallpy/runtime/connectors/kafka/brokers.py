"""Brokers of Kafka: settings of clients with secrets, errors in one line.

brokers = Brokers.of({"kafka.bootstrap.servers": "h:9092", "kafka.sasl.password": "${env:PW}"})
consumer = brokers.consumer()      one that reads committed messages only, and no offsets of groups
"""

from collections.abc import Mapping
from dataclasses import dataclass

from confluent_kafka import Consumer, KafkaError, KafkaException

from squallpy.base.batch_trigger import parse_interval
from squallpy.base.errors import SquallError
from squallpy.base.secrets import resolve
from squallpy.catalog.connectors import BROKERS

PATIENCE = 30.0  # seconds for brokers that are away when a run begins
_OURS = {
    "group.id": "squallpy",  # NB: the client asks for one; no offset is committed to it
    "enable.auto.commit": "false",
    "enable.partition.eof": "true",
    "auto.offset.reset": "error",
    "log_level": "0",
    "queued.max.messages.kbytes": "16384",
}


@dataclass(frozen=True)
class Brokers:
    """Brokers as options name them. Secrets are looked up where a client is made."""

    settings: tuple[tuple[str, str], ...]
    patience: float = PATIENCE

    @classmethod
    def of(cls, options: Mapping[str, str]) -> "Brokers":
        """Read the options of a connector."""
        settings = ((name.removeprefix(BROKERS), each) for name, each in options.items() if name.startswith(BROKERS))
        return cls(tuple(sorted(settings)), parse_interval(options.get("connect_timeout", "")) or PATIENCE)

    def __str__(self) -> str:
        return dict(self.settings)["bootstrap.servers"]

    def consumer(self) -> Consumer:
        """Make a consumer; SQ7002 for a setting that the client does not know."""
        settings = {"isolation.level": "read_committed"} | {n: resolve(v) for n, v in self.settings} | _OURS
        try:
            return Consumer(settings)
        except KafkaException as error:
            raise SquallError("SQ7002", f"the client of Kafka refuses its settings: {said(error)}") from None

    def fault(self, error: KafkaException) -> SquallError:
        """Describe in one line what the brokers say, or that they say nothing."""
        hint = "it may pass: run the same command again when they are there"
        return SquallError("SQ8010", f"Kafka at {self} cannot be reached: {said(error)}", hint=hint)


def said(error: KafkaException) -> str:
    """Return what an error says, in one line."""
    inner = error.args[0] if error.args else error
    return " ".join(str(inner.str() if isinstance(inner, KafkaError) else inner).split())
