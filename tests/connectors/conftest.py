"""One PostgreSQL for the tests of a process."""

from collections.abc import Iterator

import pytest

from tests.connectors.servers import PostgresServer


@pytest.fixture(scope="session")
def running_postgres(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PostgresServer]:
    server = PostgresServer(tmp_path_factory.mktemp("postgres"))
    yield server
    server.stop()


@pytest.fixture
def postgres(running_postgres: PostgresServer) -> Iterator[PostgresServer]:
    running_postgres.clear()
    yield running_postgres


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Those of a server share a process."""
    for item in items:
        if "tests/connectors" in str(item.path):
            item.add_marker(pytest.mark.xdist_group("spark" if item.get_closest_marker("spark") else "servers"))
