"""A standalone cluster of two workers, shared by the tests that do not kill what others need."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from squallpy.runtime.spark.package_archive import package_archive
from squallpy.testing.standalone_cluster import Standalone


@pytest.fixture(autouse=True)
def archive() -> None:
    """The package as executors unpack it, made beforehand: who makes it says so on stderr.

    Before each test: of those that checkouts with one environment make, a few are kept that were used last.
    """
    package_archive()


@pytest.fixture(scope="session")
def standalone(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Standalone]:
    with Standalone(tmp_path_factory.mktemp("standalone")) as running:
        yield running


@pytest.fixture
def fresh_standalone(tmp_path: Path) -> Iterator[Standalone]:
    with Standalone(tmp_path / "standalone") as running:
        yield running
