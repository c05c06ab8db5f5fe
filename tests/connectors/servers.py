"""Servers that tests start: real ones, in temporary folders, on free ports of this host, stopped by their process."""

import glob
import os
import pwd
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, NoReturn

import psycopg
import pytest
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]

KAFKA, PASSWORD = "org.apache.kafka:kafka_2.13:4.1.0", "geheim"
S3 = ("org.gaul:s3proxy:4.1.0", "com.fasterxml.jackson.core:jackson-annotations:2.21")
PLACES = ("/usr/lib/postgresql/*/bin", "/usr/pgsql-*/bin", "/opt/homebrew/opt/postgresql*/bin", "/usr/local/bin")
SETTINGS = {
    "wal_level": "logical", "max_replication_slots": "32", "max_wal_senders": "32", "listen_addresses": "127.0.0.1",
    "fsync": "off", "max_connections": "60", "shared_buffers": "64MB", "wal_sender_timeout": "10s",
}  # fmt: skip


def missing(why: str) -> NoReturn:
    """Skip a test whose server is not there, or fail it in CI."""
    if os.environ.get("CI") or os.environ.get("SQUALLPY_SERVERS") == "required":
        pytest.fail(why)
    pytest.skip(why)


def find_kafka() -> Path:
    """Return the folder of the jars of a broker; skips the test without Java or Maven."""
    if not shutil.which("openssl"):
        missing("the certificate of Kafka's broker needs openssl (Debian: apt-get install openssl)")
    return find_jars([KAFKA])


def find_spark_connector() -> str:
    """Return the jars of Spark's own connector of Kafka, as spark.jars has them.

    NB: there is none of Spark 4.3's version; that of 4.2.0 reads and writes with it.
    """
    groups = "-DincludeGroupIds=org.apache.spark,org.apache.kafka,org.apache.commons"
    return ",".join(map(str, find_jars(["org.apache.spark:spark-sql-kafka-0-10_2.13:4.2.0"], groups).glob("*.jar")))


def find_jars(artifacts: Sequence[str], *options: str) -> Path:
    """Return the folder of the jars of artifacts and of what they need, which Maven brings once."""
    _, name, version = artifacts[0].split(":")
    place = Path.home() / ".cache" / "squallpy-tests" / f"{name.partition('_')[0]}-{version}"
    if not place.exists():
        if not shutil.which("mvn") or not shutil.which("java"):
            missing(f"{name} needs Java and Maven (Debian: apt-get install maven)")
        draft = place.with_name(f"{place.name}.{os.getpid()}")
        draft.mkdir(parents=True)
        needed = "".join(
            "<dependency><groupId>{}</groupId><artifactId>{}</artifactId><version>{}</version></dependency>".format(
                *artifact.split(":")
            )
            for artifact in artifacts
        )
        (draft / "pom.xml").write_text(
            '<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>'
            "<groupId>squallpy.tests</groupId><artifactId>jars</artifactId><version>1</version>"
            f"<packaging>pom</packaging><dependencies>{needed}</dependencies></project>"
        )
        command = ["mvn", "-q", "-B", "dependency:copy-dependencies", f"-DoutputDirectory={draft}", *options]
        made = subprocess.run(command, cwd=draft, capture_output=True, text=True)
        if made.returncode:
            missing(f"Maven does not bring {artifacts[0]}: {made.stdout[-500:]}")
        draft.rename(place)
    return place


def wait_for(
    answers: Callable[[], object],
    away: type[Exception],
    process: "subprocess.Popen[bytes]",
    log: Path,
    seconds: float = 180,
) -> None:
    """Wait until a server answers, and raises no such error; fails with its log if it ends or takes longer."""
    until = time.monotonic() + seconds
    while True:
        with suppress(away):
            answers()
            return
        assert process.poll() is None and time.monotonic() < until, log.read_text()
        time.sleep(0.05)


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as free:
        return int(free.getsockname()[1])


class KafkaServer:
    """A broker of Kafka, which is its own controller."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._java = folder, ["java", "-Xmx512m", "-cp", f"{find_kafka()}/*"]
        self.address, self.sasl, self.tls, controller = (f"127.0.0.1:{free_port()}" for _ in range(4))
        names = {"PLAINTEXT": self.address, "SASL": self.sasl, "TLS": self.tls}
        advertised = ",".join(f"{name}://{address}" for name, address in names.items())
        self.certificate = folder / "certificate.pem"
        key = f"{folder}/key.pem"
        words = ["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=squallpy", "-addext"]
        files = ["subjectAltName=IP:127.0.0.1", "-keyout", key, "-out", str(self.certificate)]
        subprocess.run(["openssl", *words, *files], check=True, stderr=subprocess.DEVNULL)
        (folder / "server.pem").write_text(Path(key).read_text() + self.certificate.read_text())
        login, scram = "org.apache.kafka.common.security", "listener.name.sasl.scram-sha-256.sasl.jaas.config"
        settings = {
            "process.roles": "broker,controller", "node.id": "1", "log.dirs": f"{folder}/logs",
            "controller.quorum.bootstrap.servers": controller, "controller.listener.names": "CONTROLLER",
            "listeners": f"{advertised},CONTROLLER://{controller}", "advertised.listeners": advertised,
            "inter.broker.listener.name": "PLAINTEXT",
            "listener.security.protocol.map":
                "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,SASL:SASL_PLAINTEXT,TLS:SSL",
            "listener.name.sasl.sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256",
            "listener.name.sasl.plain.sasl.jaas.config":
                f'{login}.plain.PlainLoginModule required user_ann="{PASSWORD}";',
            scram: f"{login}.scram.ScramLoginModule required;",
            "listener.name.tls.ssl.keystore.type": "PEM",
            "listener.name.tls.ssl.keystore.location": f"{folder}/server.pem",
            "offsets.topic.replication.factor": "1", "transaction.state.log.replication.factor": "1",
            "transaction.state.log.min.isr": "1", "group.initial.rebalance.delay.ms": "0",
            "auto.create.topics.enable": "false", "log.retention.check.interval.ms": "500",
        }  # fmt: skip
        (folder / "server.properties").write_text("".join(f"{name}={value}\n" for name, value in settings.items()))
        id = subprocess.check_output(
            [*self._java, "kafka.tools.StorageTool", "random-uuid"], text=True, stderr=subprocess.DEVNULL
        )
        words = ["kafka.tools.StorageTool", "format", "--standalone", "-t", id.split()[-1], "-c", "server.properties"]
        words += ["--add-scram", f"SCRAM-SHA-256=[name=ann,password={PASSWORD}]"]
        subprocess.run(
            [*self._java, *words], cwd=folder, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        self.process: subprocess.Popen[bytes] | None = None
        self.start()

    def start(self) -> None:
        """Start it and wait until it answers."""
        log = open(self._folder / "log", "ab")  # noqa: SIM115
        command = [*self._java, "kafka.Kafka", "server.properties"]
        self.process = subprocess.Popen(command, cwd=self._folder, stdout=log, stderr=log)
        self.admin = AdminClient({"bootstrap.servers": self.address, "log_level": 0})
        wait_for(lambda: self.admin.list_topics(timeout=2), KafkaException, self.process, self._folder / "log", 90)

    def kill(self) -> None:
        """Let it die as of a crash."""
        assert self.process
        self.process.kill()
        self.process.wait(60)

    def create(self, topic: str, partitions: int) -> None:
        """Create a topic."""
        for future in self.admin.create_topics([NewTopic(topic, partitions, 1)]).values():
            future.result(30)


class S3Server:
    """An object store that answers as Amazon's S3, over files in a folder, with one bucket."""

    user, bucket = "ann", "lake"

    def __init__(self, folder: Path) -> None:
        jars = find_jars(S3, "-DincludeScope=runtime")
        (folder / "objects" / self.bucket).mkdir(parents=True)
        self.address = f"127.0.0.1:{free_port()}"
        settings = {
            "s3proxy.endpoint": f"http://{self.address}", "s3proxy.authorization": "aws-v2-or-v4",
            "s3proxy.identity": self.user, "s3proxy.credential": PASSWORD,
            "jclouds.provider": "filesystem-nio2", "jclouds.filesystem.basedir": f"{folder}/objects",
            "jclouds.identity": self.user, "jclouds.credential": PASSWORD,
        }  # fmt: skip
        (folder / "server.properties").write_text("".join(f"{name}={value}\n" for name, value in settings.items()))
        self._folder, self._classes = folder, f"{jars}/*"
        self.start()

    def start(self) -> None:
        """Start it and wait until it answers."""
        log = open(self._folder / "log", "ab")  # noqa: SIM115
        command = ["java", "-Xmx256m", "-cp", self._classes, "org.gaul.s3proxy.Main", "--properties"]
        env = os.environ | {"LOG_LEVEL": "warn"}
        self.process = subprocess.Popen(
            [*command, "server.properties"], cwd=self._folder, stdout=log, stderr=log, env=env
        )
        host, port = self.address.split(":")
        asked = partial(socket.create_connection, (host, int(port)), timeout=2)
        wait_for(lambda: asked().close(), OSError, self.process, self._folder / "log")

    def uri(self, name: str) -> str:
        """Return the URI of a name in the bucket, as Arrow reads it; its user is in the environment."""
        return f"s3://{self.bucket}/{name}?endpoint_override={self.address}&scheme=http&region=eu-west-1"

    def kill(self) -> None:
        """Let it die as of a crash."""
        self.process.kill()
        self.process.wait(60)


def find_postgres() -> Path:
    """Return the folder of PostgreSQL's programs; skips the test without one, or fails it in CI."""
    folders = [Path(found) for place in PLACES for found in sorted(glob.glob(place), reverse=True)]
    folders += [Path(found).parent for found in [shutil.which("initdb")] if found]
    for folder in folders:
        if (folder / "initdb").exists() and (folder / "postgres").exists():
            return folder
    missing("PostgreSQL is not installed (Debian: apt-get install postgresql)")


class PostgresServer:
    """A server of PostgreSQL in a folder of its own."""

    def __init__(self, folder: Path) -> None:
        self._programs, self._data = find_postgres(), folder / "data"
        self._user = "postgres" if os.getuid() == 0 else None  # NB: it refuses to run as root
        self.port = free_port()
        if self._user:
            about = pwd.getpwnam(self._user)
            os.chown(folder, about.pw_uid, about.pw_gid)
        self._call("initdb", "-D", str(self._data), "-A", "trust", "-U", "postgres", "-N", "--locale=C", "-E", "UTF8")
        self.process: subprocess.Popen[bytes] | None = None
        self.start()

    @property
    def url(self) -> str:
        return f"postgresql://postgres@127.0.0.1:{self.port}/postgres"

    def start(self, **settings: str) -> None:
        """Start it and wait until it answers."""
        told = [f"-c{name}={value}" for name, value in (SETTINGS | settings).items()]
        command = [
            str(self._programs / "postgres"),
            "-D",
            str(self._data),
            "-k",
            str(self._data),
            f"-p{self.port}",
            *told,
        ]
        log = open(self._data.parent / "log", "ab")  # noqa: SIM115
        self.process = subprocess.Popen(command, user=self._user, stdout=log, stderr=log, cwd="/")
        asked = partial(psycopg.connect, self.url, connect_timeout=2)
        wait_for(lambda: asked().close(), psycopg.OperationalError, self.process, self._data.parent / "log")

    def stop(self) -> None:
        """Stop it, without waiting for those who are connected."""
        assert self.process
        self.process.send_signal(signal.SIGINT)
        self.process.wait(60)

    def kill(self) -> None:
        """Let it die as of a crash, with all its processes."""
        assert self.process
        self.process.send_signal(signal.SIGQUIT)
        self.process.wait(60)

    def execute(self, *statements: str) -> list[tuple[Any, ...]]:
        """Execute statements, each by itself, and return the rows of the last."""
        with psycopg.connect(self.url, autocommit=True) as connection:
            for statement in statements:
                cursor = connection.execute(statement)
            return cursor.fetchall() if cursor.description else []

    def commit(self, statements: Sequence[str], rolls_back: bool = False) -> None:
        """Execute statements in one transaction."""
        with psycopg.connect(self.url) as connection:
            for statement in statements:
                connection.execute(statement)
            if rolls_back:
                connection.rollback()

    def drop_slot(self, name: str = "squall") -> None:
        """Drop a replication slot, which the server may still have in use for a moment after its client has left."""
        until = time.monotonic() + 20
        while True:
            try:
                self.execute(f"SELECT pg_drop_replication_slot('{name}')")
                return
            except psycopg.errors.ObjectInUse:
                assert time.monotonic() < until
                time.sleep(0.05)

    def clear(self) -> None:
        """Drop everything that tests have made."""
        with psycopg.connect(self.url, autocommit=True) as connection:
            connection.execute("SELECT pg_terminate_backend(active_pid) FROM pg_replication_slots WHERE active")
            until = time.monotonic() + 10
            while connection.execute("SELECT 1 FROM pg_replication_slots WHERE active").fetchone():
                assert time.monotonic() < until
                time.sleep(0.02)
            connection.execute("SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots")
            for (name,) in connection.execute("SELECT pubname FROM pg_publication").fetchall():
                connection.execute(f'DROP PUBLICATION "{name}"')
            connection.execute("DROP SCHEMA public CASCADE")
            connection.execute("CREATE SCHEMA public")

    def _call(self, program: str, *words: str) -> None:
        command = [str(self._programs / program), *words]
        subprocess.run(command, user=self._user, check=True, stdout=subprocess.DEVNULL, cwd="/")
