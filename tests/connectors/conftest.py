"""One server of each kind, and one Spark, for the tests of a process."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TypeVar

import pytest

from tests.connectors.servers import PASSWORD, KafkaServer, PostgresServer, S3Server

S = TypeVar("S", KafkaServer, S3Server)


@pytest.fixture(scope="session")
def running_postgres() -> Iterator[PostgresServer]:
    # NB: not where pytest has its folders, which it closes to others: the server has a user of its own
    place = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    with TemporaryDirectory(prefix="squallpy-postgres-", dir=place, ignore_cleanup_errors=True) as folder:
        server = PostgresServer(Path(folder))
        yield server
        server.stop()


@pytest.fixture(scope="session")
def kafka() -> Iterator[KafkaServer]:
    yield from running(KafkaServer)


@pytest.fixture(scope="session")
def running_s3() -> Iterator[S3Server]:
    yield from running(S3Server)


def running(kind: type[S]) -> Iterator[S]:
    """Start a server in a folder of its own, until its tests have ended."""
    with TemporaryDirectory(prefix=f"squallpy-{kind.__name__.lower()}-", ignore_cleanup_errors=True) as folder:
        server = kind(Path(folder))
        yield server
        server.kill()


@pytest.fixture
def s3(running_s3: S3Server, monkeypatch: pytest.MonkeyPatch) -> S3Server:
    """The server of the process, whose user the environment has; a test that has killed it may have failed."""
    if running_s3.process.poll() is not None:
        running_s3.start()
    for name, value in (("AWS_ACCESS_KEY_ID", running_s3.user), ("AWS_SECRET_ACCESS_KEY", PASSWORD)):
        monkeypatch.setenv(name, value)
    return running_s3


@pytest.fixture
def postgres(running_postgres: PostgresServer) -> Iterator[PostgresServer]:
    running_postgres.clear()
    yield running_postgres


@pytest.fixture(autouse=True)
def shared_spark(request: pytest.FixtureRequest) -> None:
    """Let runs on Spark have one JVM, except those that are killed, which have their own."""
    if request.node.get_closest_marker("spark") and "kills" not in request.node.name:
        request.getfixturevalue("cluster")


@pytest.fixture(autouse=True)
def compiled_kernels(request: pytest.FixtureRequest) -> None:
    """Compile kernels before runs are killed, none of which may live long enough to compile one."""
    if "kills" in request.node.name:
        subprocess.run([sys.executable, "-m", "squallpy.runtime.kernels"], check=True)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Those of a server share a process."""
    for item in items:
        if "tests/connectors" in str(item.path):
            item.add_marker(pytest.mark.xdist_group("spark" if item.get_closest_marker("spark") else "servers"))
