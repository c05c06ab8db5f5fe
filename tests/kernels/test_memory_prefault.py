"""Memory got ready ahead: pages are there before they are touched, and what is in them stays."""

import resource
import sys
import threading

import numpy as np
import pytest

from squallpy.runtime.kernels import memory_prefault
from squallpy.runtime.kernels.memory_area import Area
from squallpy.runtime.kernels.memory_prefault import _populate, populate
from squallpy.runtime.kernels.memory_regions import HEAP

MEGA = 1 << 17  # words in a mebibyte


def faults() -> int:
    return resource.getrusage(resource.RUSAGE_THREAD).ru_minflt


@pytest.mark.skipif(sys.platform != "linux", reason="a hint that only Linux takes")
def oracle_populated_pages_do_not_fault() -> None:
    ready, left = (HEAP.region(name, 64 * MEGA) for name in ("ready", "left"))  # dozens of pages, if they are huge, too
    ready.array()[:100] = 5
    _populate([(ready, 50, 80 * MEGA)])  # its end is clipped
    touched = []
    for region in (ready, left):
        before = faults()
        region.array()[::512] += 1
        touched.append(faults() - before)
    assert touched[0] < touched[1]
    assert ready.array()[:101].tolist() == [6, *[5] * 99, 0]


def oracle_large_regions_are_whole_huge_pages_and_keep_what_they_have() -> None:
    region = HEAP.region("grows", MEGA)
    region.array()[:] = np.arange(MEGA)
    for words in (2 * MEGA + 1, 5 * MEGA):
        region.grow(words)
        assert region.words >= words and region.words % (2 * MEGA) == 0
        assert np.array_equal(region.array()[:MEGA], np.arange(MEGA)) and not region.array()[MEGA:].any()


def oracle_regions_grow_into_what_was_got_ready() -> None:
    area = Area(HEAP, "area", {"rows": 512, "index": 512}, scalars=1)
    area.array(0)[:512] = np.arange(512)
    area.get_ready([(0, 512, 2000), (1, 512, 700)])
    area.get_ready([(0, 600, 2000)])
    assert area.words(0) >= 2000 and area.array(0)[:512].tolist() == list(range(512))
    assert area.words(1) >= 700 and not area.array(1).any()


def oracle_a_helper_populates_what_there_is(monkeypatch: pytest.MonkeyPatch) -> None:
    asked, done = [], threading.Event()
    monkeypatch.setattr(memory_prefault, "_populate", lambda stretches: (asked.append(stretches), done.set()))
    populate([])
    stretches = [(HEAP.region("later", MEGA), 0, MEGA)]
    populate(stretches)
    assert done.wait(60) and asked == [stretches]
