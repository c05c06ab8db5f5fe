"""What all tests share: how many processes run them, and one Spark session, started by the first that asks for it."""

import gc
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from unittest.mock import patch

import pytest
from hypothesis import settings
from hypothesis.internal.conjecture import providers
from xdist import is_xdist_controller

from tests.alike import mark_alike

# the same examples every time, so that a run of the tests means the same everywhere; `make long` has
# more of them, `make fuzz` explores. NB: hypothesis also draws constants of the modules that are loaded by now, which
# depend on the tests before
patch.object(providers, "is_local_module_file", lambda path: False).start()
settings.register_profile("default", deadline=None, derandomize=True, max_examples=12)
settings.register_profile("fuzz", deadline=None, max_examples=int(os.environ.get("FUZZ", "1000")))
settings.load_profile("fuzz" if "FUZZ" in os.environ else "default")


def pytest_xdist_auto_num_workers(config: pytest.Config) -> int:
    """Three processes for the whole suite, none besides this one for tests that are named, or on a single core.

    One more than two cores have: that of Spark's tests waits for Spark half of the time.
    """
    return 3 if is_whole(config) and (os.cpu_count() or 1) > 1 else 0


def pytest_configure() -> None:
    """Put files of tests into memory where there is room: checkpoints are some 40,000 files, each synced to disk."""
    shared = "/dev/shm"
    if os.path.isdir(shared) and shutil.disk_usage(shared).free > 2 << 30:
        os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", shared)


def pytest_sessionstart(session: pytest.Session) -> None:
    """Kernels are compiled once, not by each process when it comes to need them."""
    if is_xdist_controller(session):
        subprocess.run([sys.executable, "-m", "squallpy.runtime.kernels"], check=True)


def pytest_collection_finish() -> None:
    """What is there by now stays: looking through it for garbage, again and again, took a quarter of compiling."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 10, 10)


def pytest_unconfigure() -> None:
    """DuckDB asks at the end what is left of it."""
    gc.unfreeze()


def pytest_itemcollected(item: pytest.Item) -> None:
    """Those on Spark share a session, hence a process."""
    if item.get_closest_marker("spark"):
        item.add_marker(pytest.mark.xdist_group("spark"))


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> Iterator[None]:
    """Tests of which many are alike are marked before marks choose; then groups get to where xdist looks for them."""
    unknown = mark_alike(items)
    assert not (unknown and is_whole(config)), f"tests/alike.py names what is no test: {', '.join(sorted(unknown))}"
    yield
    move_groups(items)


def is_whole(config: pytest.Config) -> bool:
    """True for a run of all tests."""
    return config.args_source is pytest.Config.ArgsSource.TESTPATHS


def move_groups(items: list[pytest.Item]) -> None:
    """xdist notes the group of a test behind its id, but where pytest before 9.2 had that: to where it is now."""
    for item in items:
        written = getattr(item, "_nodeid", item.nodeid)
        if written != item.nodeid:
            with suppress(AttributeError):  # where it is elsewhere again, tests only take longer
                item._id = type(item.id).parse(written)


@pytest.fixture(scope="session")
def cluster() -> Iterator[object]:
    """A running `squallpy.runtime.spark.spark_session.Cluster` on two cores."""
    from squallpy.runtime.spark.spark_session import start

    with start("local[2]") as running:
        yield running
