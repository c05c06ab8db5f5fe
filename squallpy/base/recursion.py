"""Deep recursion: a higher limit than Python's default, and a stack that holds it.

run_deep(lambda: compile_script(text))   →   its result; SQ3001 if the text is nested deeper still
"""

import gc
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from typing import Generic, TypeVar

from squallpy.base.errors import SquallError

MOST_CALLS = 100_000  # on a stack; of Python's default, 1,000, a sum of 200 terms takes more
STACK_BYTES = 512 << 20  # for that many levels; unused stack takes no memory
MADE = 1_000_000  # objects that are made before the next look for garbage

T = TypeVar("T")


class _DeepThread(threading.Thread):
    """A thread with a stack for MOST_CALLS."""


def allow_depth() -> None:
    """Allow MOST_CALLS from here on, in a process that evaluates queries and does nothing else."""
    sys.setrecursionlimit(max(sys.getrecursionlimit(), MOST_CALLS))


class _Raised(Generic[T]):
    """A setting of the whole process, which is higher as long as somebody needs it."""

    def __init__(self, read: Callable[[], T], write: Callable[[T], object], higher: Callable[[T], T]) -> None:
        self._read, self._write, self._higher = read, write, higher
        self._lock, self._users, self._before = threading.Lock(), 0, read()

    def __enter__(self) -> None:
        with self._lock:
            if not self._users:
                self._before = self._read()
                self._write(self._higher(self._before))
            self._users += 1

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._users -= 1
            if not self._users:
                self._write(self._before)


def _seldom(thresholds: tuple[int, int, int]) -> tuple[int, int, int]:
    """Return thresholds of collections by which these are seldom; 0 is never."""
    young, older, oldest = thresholds
    return max(young, MADE) if young else 0, older, oldest


_LIMIT = _Raised(sys.getrecursionlimit, sys.setrecursionlimit, lambda limit: max(limit, MOST_CALLS))
_COLLECTIONS = _Raised(gc.get_threshold, lambda thresholds: gc.set_threshold(*thresholds), _seldom)


@contextmanager
def guarded_depth() -> Iterator[None]:
    """Allow MOST_CALLS while the block runs; SQ3001 for what needs more."""
    try:
        with _LIMIT:
            yield
    except RecursionError:
        message = "a query nested this deeply is not supported"
        raise SquallError("SQ3001", message, hint="nest fewer queries, views or parentheses") from None


def run_deep(work: Callable[[], T]) -> T:
    """Run a function on a stack that has room for MOST_CALLS of any kind; SQ3001 where it needs more.

    It is one that compiles: what it makes stays, so that looking for garbage, again and again, took a third of its time
    and is seldom done meanwhile.
    """
    if isinstance(threading.current_thread(), _DeepThread):
        return work()
    done = Future[T]()

    def run() -> None:
        try:
            with guarded_depth(), _COLLECTIONS:
                result = work()
        except BaseException as error:
            done.set_exception(error)
        else:
            done.set_result(result)

    # NB: a daemon, as Ctrl-C interrupts only the waiting thread, and the process must not wait for this one
    thread, before = _DeepThread(target=run, name="squall-deep", daemon=True), threading.stack_size(STACK_BYTES)
    try:
        thread.start()
    finally:
        threading.stack_size(before)
    return done.result()
