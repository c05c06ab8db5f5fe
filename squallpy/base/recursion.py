"""Deep recursion: a higher limit than Python's default, and a stack that holds it.

run_deep(lambda: compile_script(text))   →   its result; SQ3001 if the text is nested deeper still
"""

import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from typing import TypeVar

from squallpy.base.errors import SquallError

MOST_CALLS = 100_000  # on a stack; of Python's default, 1,000, a sum of 200 terms takes more
STACK_BYTES = 512 << 20  # for that many levels; unused stack takes no memory

T = TypeVar("T")


class _DeepThread(threading.Thread):
    """A thread with a stack for MOST_CALLS."""


def allow_depth() -> None:
    """Allow MOST_CALLS from here on, in a process that evaluates queries and does nothing else."""
    sys.setrecursionlimit(max(sys.getrecursionlimit(), MOST_CALLS))


class _Limit:
    """Python's recursion limit, which is the whole process's, as long as somebody needs a higher one."""

    def __init__(self) -> None:
        self._lock, self._users, self._saved_limit = threading.Lock(), 0, 0

    def raise_(self) -> None:
        with self._lock:
            if not self._users:
                self._saved_limit = sys.getrecursionlimit()
                sys.setrecursionlimit(max(self._saved_limit, MOST_CALLS))
            self._users += 1

    def restore(self) -> None:
        with self._lock:
            self._users -= 1
            if not self._users:
                sys.setrecursionlimit(self._saved_limit)


_LIMIT = _Limit()


@contextmanager
def guarded_depth() -> Iterator[None]:
    """Allow MOST_CALLS while the block runs; SQ3001 for what needs more."""
    _LIMIT.raise_()
    try:
        yield
    except RecursionError:
        message = "a query nested this deeply is not supported"
        raise SquallError("SQ3001", message, hint="nest fewer queries, views or parentheses") from None
    finally:
        _LIMIT.restore()


def run_deep(work: Callable[[], T]) -> T:
    """Run a function on a stack that has room for MOST_CALLS of any kind; SQ3001 where it needs more."""
    if isinstance(threading.current_thread(), _DeepThread):
        return work()
    done = Future[T]()

    def run() -> None:
        try:
            with guarded_depth():
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
