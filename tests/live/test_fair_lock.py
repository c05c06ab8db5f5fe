"""The lock of batches: taken in turn, again by who has it, and given up by who is interrupted."""

import threading

import pytest

from squallpy.live.fair_lock import FairLock


def test_one_that_waits_gets_in_between_two_that_follow_each_other() -> None:
    lock, seen, asks = FairLock(), list[str](), threading.Event()

    def other() -> None:
        asks.set()
        with lock:
            seen.append("other")

    with lock:
        thread = threading.Thread(target=other)
        thread.start()
        asks.wait()
        while not lock._waiting:
            pass
    with lock:
        seen.append("again")
    thread.join()
    assert seen == ["other", "again"]


def test_who_has_it_may_take_it_again() -> None:
    lock, found = FairLock(), list[bool]()

    def ask() -> None:
        found.append(lock.acquire(blocking=False))

    with lock, lock:
        assert lock.acquire(blocking=False)
        lock.release()
        thread = threading.Thread(target=ask)
        thread.start()
        thread.join()
    thread = threading.Thread(target=ask)
    thread.start()
    thread.join()
    assert found == [False, True]


def test_many_threads_count() -> None:
    lock, total = FairLock(), [0]

    def add() -> None:
        for _ in range(500):
            with lock:
                before = total[0]
                total[0] = before + 1

    threads = [threading.Thread(target=add) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert total == [4000] and not lock._waiting and not lock._owner


@pytest.mark.parametrize("is_given", [False, True])
def fault_interrupted_while_it_waits(is_given: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also when it has become ours just before: others get it."""
    lock, locks = FairLock(), threading.Lock

    class Interrupted:
        """A lock whose holder has to wait, and is interrupted."""

        def __init__(self) -> None:
            self._asked = False

        def acquire(self) -> None:
            if not self._asked:
                self._asked = True
                return
            if is_given:
                go.set()
                thread.join()
            raise KeyboardInterrupt

        def release(self) -> None: ...

    go, held = threading.Event(), threading.Event()

    def hold() -> None:
        with lock:
            held.set()
            go.wait()

    thread = threading.Thread(target=hold)
    thread.start()
    held.wait()
    monkeypatch.setattr(threading, "Lock", Interrupted)
    with pytest.raises(KeyboardInterrupt):
        lock.acquire()
    monkeypatch.setattr(threading, "Lock", locks)
    go.set()
    thread.join()
    with lock:
        assert not lock._waiting
