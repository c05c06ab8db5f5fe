"""What all tests share: one Spark session, started by the first test that asks for it."""

import os
from collections.abc import Iterator

import pytest
from hypothesis import settings

# the same examples every time, so that a run of the tests means the same everywhere; `make fuzz` explores
settings.register_profile("default", deadline=None, derandomize=True)
settings.register_profile("fuzz", deadline=None, max_examples=int(os.environ.get("FUZZ", "1000")))
settings.load_profile("fuzz" if "FUZZ" in os.environ else "default")


@pytest.fixture(scope="session")
def cluster() -> Iterator[object]:
    """A running `squallpy.runtime.spark.cluster.Cluster` on two cores."""
    from squallpy.runtime.spark.cluster import start

    with start("local[2]") as running:
        yield running
