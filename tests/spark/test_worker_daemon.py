"""What workers do between tasks."""

import ctypes
import gc
import subprocess
import sys
import weakref
from collections.abc import Iterator

import pytest

from squallpy.runtime.spark.worker_daemon import Collector


class Ring:
    """Garbage that only a collection finds."""

    def __init__(self) -> None:
        self.me = self


@pytest.fixture(autouse=True)
def thawed() -> Iterator[None]:
    yield
    gc.unfreeze()


def test_what_stays_is_frozen_after_each_task_and_garbage_never_is() -> None:
    collector, kept = Collector(), list[Ring]()
    for _ in range(3):
        kept.append(Ring())
        garbage = weakref.ref(Ring())
        collector.collect()
        assert garbage() is None
        assert not any(ring in gc.get_objects() for ring in kept)  # NB: which does not show frozen ones


def test_now_and_then_all_is_looked_at_if_what_is_frozen_has_grown_by_half(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("squallpy.runtime.spark.worker_daemon._WHOLE", 4)
    collector, ring = Collector(), Ring()
    seen = weakref.ref(ring)
    for _ in range(4):
        collector.collect()
    del ring
    for _ in range(4):
        collector.collect()
    assert seen() is not None  # frozen when the first task was done, and little came since
    rings = [Ring() for _ in range(gc.get_freeze_count())]
    for _ in range(4):
        collector.collect()
    assert seen() is None
    del rings


FAULTS = """
import resource
import numpy
from squallpy.runtime.spark.worker_daemon import keep_freed_memory

def batch():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    columns = [numpy.ones(1 << 20) for _ in range(8)]
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

keep_freed_memory()
print(*[batch() for _ in range(3)])
"""


@pytest.mark.skipif(not hasattr(ctypes.CDLL(None), "mallopt"), reason="an allocator that takes no such wishes")
def test_memory_that_a_batch_freed_is_not_cleared_for_the_next() -> None:
    first, *others = map(int, subprocess.check_output([sys.executable, "-c", FAULTS]).split())
    assert max(others) < first / 4
