"""Settings of the whole process while a query is compiled."""

import gc
import sys
import threading
from collections.abc import Iterator

import pytest

from squallpy.base.errors import SquallError
from squallpy.base.recursion import MADE, MOST_CALLS, run_deep

Found = tuple[int, tuple[int, int, int]]


def settings() -> Found:
    return sys.getrecursionlimit(), gc.get_threshold()


@pytest.fixture
def before() -> Iterator[Found]:
    thresholds = gc.get_threshold()
    gc.set_threshold(700, 10, 10)
    yield settings()
    gc.set_threshold(*thresholds)


def test_settings_are_higher_while_somebody_compiles_and_then_as_before(before: Found) -> None:
    assert run_deep(lambda: run_deep(settings)) == (MOST_CALLS, (MADE, 10, 10)) and settings() == before
    begun, may_end, found = threading.Event(), threading.Event(), list[Found]()

    def first() -> None:
        begun.set()
        assert may_end.wait(60)

    other = threading.Thread(target=run_deep, args=(first,))
    other.start()
    assert begun.wait(60)
    found.append(run_deep(settings))
    found.append(settings())
    may_end.set()
    other.join()
    assert found == [(MOST_CALLS, (MADE, 10, 10))] * 2 and settings() == before


def test_a_collector_that_is_off_stays_off(before: Found) -> None:
    gc.set_threshold(0)
    assert run_deep(gc.get_threshold)[0] == 0 and gc.get_threshold()[0] == 0


def fault_what_fails_or_is_too_deep_leaves_settings_as_they_were(before: Found) -> None:
    def deep(n: int) -> int:
        return 1 + deep(n + 1)

    with pytest.raises(SquallError, match="SQ3001"):
        run_deep(lambda: deep(0))
    with pytest.raises(ZeroDivisionError):
        run_deep(lambda: 1 // 0)
    assert settings() == before
