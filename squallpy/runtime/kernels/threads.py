"""Work on pieces, shared by threads that live only as long as it: a process that forks must not have any.

shared(work, 8)     work(0), …, work(7), each once, by as many threads as there are processors
"""

from _thread import allocate_lock, start_new_thread
from collections.abc import Callable
from itertools import count
from os import sched_getaffinity
from typing import Any


def shared(work: Callable[[int], None], pieces: int, threads: int = 0) -> None:
    """Run all pieces of work, in any order; this thread is one of `threads` (0: one for each processor).

    Only kernels, which run without the GIL, are faster for it. Work must not raise.
    """
    if pieces == 1:
        work(0)
        return
    taken, ended = count(), [allocate_lock() for _ in range(min(threads or len(sched_getaffinity(0)), pieces) - 1)]

    def take() -> None:
        while (piece := next(taken)) < pieces:
            work(piece)

    def help_out(lock: Any) -> None:
        try:
            take()
        finally:
            lock.release()

    for lock in ended:
        lock.acquire()
        start_new_thread(help_out, (lock,))
    take()
    for lock in ended:
        lock.acquire()
