"""Connectors to servers, and their options.

CONNECTORS["postgres"].source   →   the options of USING postgres for streams and tables, with what each says
"""

import re
from collections.abc import Mapping
from importlib import import_module
from typing import Any

from squallpy.base.batch_trigger import parse_interval
from squallpy.base.errors import SquallError, nearest
from squallpy.base.records import dataclass
from squallpy.base.secrets import resolve
from squallpy.catalog.topic_offsets import ALLOWED, parse_offsets


@dataclass(frozen=True, slots=True)
class Connector:
    """A connector that is a part of this package.

    Args:
        module: Where its functions are: `infer`, `open_source` and `open_sink`.
        needed: The option without which there is no place to read from or write to.
        source: Options of streams and tables; those of `tables` are for both.
        sink: Options of sinks.
        messages: Rows are messages: in each mode they may have a key, and dead letters are messages, too.
        follows: The option that with 'true' lets rows tell changes; none: they always do.
        tells: Rows tell changes by themselves; else options say how, as for files.
        reads, writes: The options that name what is read or written at the place; else it is called as the relation or
            the sink.
    """

    module: str
    needed: str
    source: Mapping[str, str]
    tables: tuple[str, ...]
    sink: Mapping[str, str]
    follows: str = ""
    tells: bool = True
    messages: bool = False
    reads: str = "table"
    writes: str = "table"


_SERVER = {
    "url": "the server: postgresql://user@host:5432/database",
    "table": "the table, with its schema if that is not public",
    "user": "the user, if the url names none",
    "password": "the password: '${env:NAME}' or '${file:/run/secrets/name}'",
    "connect_timeout": "how long to wait for a server that is away when the run begins: '30 seconds'",
}
_EXISTING = {"existing": "what becomes of rows that are there when a run begins anew: keep or replace"}
_BROKERS = {
    "kafka.bootstrap.servers": "the brokers: 'host:9092,other:9092'",
    "connect_timeout": _SERVER["connect_timeout"],
    "schema.registry.url": "the schema registry of messages of Avro: 'http://host:8081'",
    "schema.registry.basic.auth.user.info": "the user and the password of the registry: 'ann:${env:NAME}'",
    "schema.registry.ssl.ca.location": "the file with the authority by which the registry is known",
    "avro.schema": "the schema of all values, without a registry: as JSON, or '${file:orders.avsc}'",
}
_LAKE = {
    "path": "the folder of the table, local or s3://, gs://, abfss://, …",
    "connect_timeout": "how long to wait for a storage that is away when the run begins: '30 seconds'",
}
_CATALOG = {
    "catalog.uri": "the catalog: https://…, thrift://…, sqlite:///file.db, postgresql+psycopg2://…",
    "table": "the table with its namespace: 'shop.orders'",
    "connect_timeout": _SERVER["connect_timeout"],
}
CATALOG = "catalog."
"""The beginning of options that are passed on to catalogs, such as catalog.warehouse."""
STORAGE = "storage."
"""The beginning of options that are passed on to the storage of tables, such as storage.aws_region."""
CONNECTORS: Mapping[str, Connector] = {
    "postgres": Connector(
        "squallpy.runtime.connectors.postgres.entry_points",
        "url",
        {
            **_SERVER,
            "slot.name": "the replication slot, one for all streams of a script that name it",
            "publication.name": "the publication that the table is in",
            "snapshot.mode": "initial: first the rows that are there; never: only changes from now on",
        },
        tuple(_SERVER),
        {**_SERVER, **_EXISTING},
    ),
    "delta": Connector(
        "squallpy.runtime.connectors.delta.entry_points",
        "path",
        {
            **_LAKE,
            "readchangefeed": "whether updates and deletes are followed, too (true or false)",
            "startingversion": "the first version whose changes are read; without it, all rows come first",
        },
        tuple(_LAKE),
        {**_LAKE, **_EXISTING},
        follows="readchangefeed",
        reads="path",
        writes="path",
    ),
    "iceberg": Connector(
        "squallpy.runtime.connectors.iceberg.entry_points",
        "catalog.uri",
        _CATALOG,
        tuple(_CATALOG),
        {**_CATALOG, **_EXISTING},
        tells=False,
    ),
    "kafka": Connector(
        "squallpy.runtime.connectors.kafka.entry_points",
        "kafka.bootstrap.servers",
        {
            **_BROKERS,
            "subscribe": "the topic",
            "startingoffsets": "where a run without a checkpoint begins: earliest, latest, or offsets as JSON",
            "endingoffsets": "the offsets that are not read any more: latest, or offsets as JSON",
            "format": "the format of messages: json or avro, debezium-json or debezium-avro for envelopes",
            "key": "the columns that are in keys of messages",
            "key.format": "the format of keys: text, of one column, json or avro",
        },
        (),
        {
            **_BROKERS,
            **_EXISTING,
            "topic": "the topic",
            "format": "the format of messages: json or avro",
            "key.format": "the format of keys: text, of one column, json or avro",
        },
        tells=False,
        messages=True,
        reads="subscribe",
        writes="topic",
    ),
    "webhook": Connector(
        "squallpy.runtime.connectors.webhook.entry_points",
        "url",
        {},
        (),
        {
            "url": "where rows are POSTed: https://example.org/hook",
            "request.rows": "the most rows of a request",
            "timeout": "how long to wait for an answer: '30 seconds'",
            "connect_timeout": _SERVER["connect_timeout"],
        },
        writes="url",
    ),
}
HEADER = "header."
"""The beginning of options that are headers of requests, such as header.authorization."""
BROKERS = "kafka."
"""The beginning of options that are passed on to the client of Kafka, such as kafka.security.protocol."""
_PASSED = {"path": STORAGE, "catalog.uri": CATALOG, "request.rows": HEADER}
JAVA = {
    "kafka.sasl.jaas.config": "write kafka.sasl.username and kafka.sasl.password",
    "kafka.ssl.truststore.location": "write kafka.ssl.ca.location, a file in PEM",
    "kafka.ssl.truststore.password": "write kafka.ssl.ca.location, a file in PEM",
    "kafka.ssl.truststore.type": "write kafka.ssl.ca.location, a file in PEM",
    "kafka.ssl.keystore.location": "write kafka.ssl.certificate.location and kafka.ssl.key.location, files in PEM",
    "kafka.ssl.keystore.type": "write kafka.ssl.certificate.location and kafka.ssl.key.location, files in PEM",
    "kafka.sasl.client.callback.handler.class": "write kafka.sasl.mechanism, and what it needs",
    "kafka.fetch.max.wait.ms": "write kafka.fetch.wait.max.ms",
    "kafka.key.deserializer": "write key.format",
    "kafka.value.deserializer": "write format",
    "kafka.key.serializer": "write key.format",
    "kafka.value.serializer": "write format",
}
"""Options of Java's client that have no counterpart, with what to write."""
ELSEWHERE: Mapping[str, tuple[str, str]] = {
    "assign": ("kafka", "write subscribe: all partitions are read"),
    "subscribepattern": ("kafka", "write subscribe: each topic is a stream of its own"),
    "failondataloss": ("kafka", "leave it out: offsets that are gone are an error"),
    "maxoffsetspertrigger": ("kafka", "write --batch-rows"),
    "includeheaders": ("kafka", "leave it out: headers are not read"),
    "maxfilespertrigger": ("delta", "write --batch-rows"),
    "ignoredeletes": ("delta", "write readChangeFeed 'true': deletes are followed"),
    "skipchangecommits": ("delta", "write readChangeFeed 'true': changes are followed"),
}
"""Options of Spark's own sources that are not served, with their format and what to write."""
OURS = {
    "kafka.auto.offset.reset": "write startingOffsets; offsets that are gone are an error",
    "kafka.enable.auto.commit": "write kafka.group.id: its offsets follow the run",
    "kafka.enable.partition.eof": "leave it out",
    "kafka.transactional.id": "it is squall-SINK-TOPIC: rename the sink",
}
"""Options of the client that are chosen here, with what to write."""
DEBEZIUM = {"debezium-json": "json", "debezium-avro": "avro"}
"""Formats of envelopes, with those in which they are written."""
CHOICES: Mapping[str, tuple[str, ...]] = {
    "snapshot.mode": ("initial", "never"),
    "existing": ("keep", "replace"),
    "readchangefeed": ("true", "false"),
    "format": ("json", "avro", *DEBEZIUM),
    "key.format": ("text", "json", "avro"),
}
SINK_FORMATS = ("json", "avro")
"""Formats of messages that are written."""
CHANGES = ("op", "changelog", "tombstone")
"""Options that say how rows tell changes, which servers tell by themselves."""


def load_connector(format: str) -> Any:
    """Import the functions of a connector; SQ8009 without the package that it needs."""
    try:
        return import_module(CONNECTORS[format].module)  # NB: a room above those that ask for it
    except ModuleNotFoundError as error:
        message = f"USING {format} needs the package {str(error.name).partition('.')[0]}"
        raise SquallError("SQ8009", message, hint=f"install it: pip install 'squallpy[{format}]'") from None


def check_connector_option(format: str, key: str, value: str, known: Mapping[str, str]) -> tuple[str, str]:
    """Check an option of a connector, of those that are known, and return its name and value; SQ7002."""
    name = key.lower()
    if any(place in known and name.startswith(passed) for place, passed in _PASSED.items()):
        resolve(value)
        return name, value
    if "kafka.bootstrap.servers" in known and name.startswith(BROKERS):
        if name in JAVA:
            raise SquallError("SQ7002", f'option "{key}" is of Java\'s client', hint=JAVA[name])
        if name in OURS or (name == "kafka.group.id" and "topic" in known):
            hint = OURS.get(name, "it is squall-SINK: rename the sink")
            raise SquallError("SQ7002", f'option "{key}" cannot be chosen', hint=hint)
        resolve(value)
        return name, value
    if name in ELSEWHERE and ELSEWHERE[name][0] == format:
        raise SquallError("SQ7002", f'option "{key}" is of Spark\'s {format} and not served', hint=ELSEWHERE[name][1])
    if name not in known:
        raise SquallError("SQ7002", f'unknown option "{key}" of {format}', hint=nearest(key, known))
    if not value.strip():
        raise SquallError("SQ7002", f'option "{key}" is empty', hint=known[name])
    choices = SINK_FORMATS if name == "format" and "topic" in known else CHOICES.get(name)
    if choices and value.lower() not in choices:
        raise SquallError("SQ7002", f'option "{key}" cannot be "{value}"', hint=nearest(value, choices))
    if name in ("connect_timeout", "timeout") and parse_interval(value) is None:
        raise SquallError(
            "SQ7002", f'option "{key}" cannot be "{value}"', hint="an interval above 0, such as '30 seconds'"
        )
    if name == "request.rows" and not (value.isdecimal() and int(value) > 0):
        raise SquallError("SQ7002", f'option "{key}" cannot be "{value}"', hint="a number of at least 1")
    if name == "startingversion" and not value.isdecimal():
        raise SquallError("SQ7002", f'option "{key}" cannot be "{value}"', hint="the number of a version")
    if name == "slot.name" and not re.fullmatch(r"[a-z0-9_]{1,54}", value):
        raise SquallError("SQ7002", f'"{value}" is no name of a slot', hint="write a-z, 0-9 and _, 54 at most")
    for option in ALLOWED:
        if name == option.lower():
            parse_offsets(option, value)
    place = resolve(value)
    if name in ("subscribe", "topic") and (not re.fullmatch(r"[A-Za-z0-9._-]{1,249}", place) or place in (".", "..")):
        hint = "a stream for each, and UNION ALL" if "," in place else "write A-Z, a-z, 0-9, ., _ and -, 249 at most"
        raise SquallError("SQ7002", f'"{place}" is no name of a topic', hint=hint)
    return name, value.lower() if choices else value


def place_of(format: str, name: str, options: Mapping[str, str], option: str) -> tuple[str, ...]:
    """Return what tells a table or topic apart: its format, its server, and its name by an option."""
    return format, options.get(CONNECTORS[format].needed, ""), options.get(option, name)
