"""A thread for what statements ask for, one after the other: Ctrl-C interrupts only the waiting for it."""

import queue
import threading
from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class Task(Generic[T]):
    """A piece of work, and what came of it."""

    def __init__(self, work: Callable[[], T]) -> None:
        self._work, self._done = work, threading.Event()
        self._value: T | None = None
        self.error: Exception | None = None
        self.is_abandoned = False
        """True if nobody waits for it any longer: it comes to an end as soon as it can."""

    def run(self) -> None:
        try:
            self._value = self._work()
        except Exception as error:
            self.error = error
        finally:
            self._done.set()

    @property
    def is_done(self) -> bool:
        return self._done.is_set()

    def wait(self, seconds: float | None = None) -> bool:
        """Wait until it is done; false if that is not yet."""
        return self._done.wait(seconds)

    @property
    def value(self) -> T:
        """Its result, or its error is raised."""
        self._done.wait()
        if self.error:
            raise self.error
        return self._value  # type: ignore[return-value]


class Worker:
    """A thread that runs tasks in their order."""

    def __init__(self) -> None:
        self._tasks: queue.SimpleQueue[Task[object]] = queue.SimpleQueue()
        self._unfinished = 0
        self._abandoned = list[Task[object]]()
        self.current: Task[object] | None = None
        threading.Thread(target=self._run, name="squallpy statements", daemon=True).start()

    @property
    def is_busy(self) -> bool:
        """True if tasks run or wait."""
        return self._unfinished > 0

    def submit(self, work: Callable[[], T]) -> Task[T]:
        """Let work be done behind what was submitted before."""
        task = Task(work)
        self._unfinished += 1
        self._tasks.put(task)  # type: ignore[arg-type]
        return task

    def abandon(self, task: Task[T]) -> None:
        """Wait no longer for a task; its error is told later."""
        task.is_abandoned = True
        self._abandoned.append(task)  # type: ignore[arg-type]

    def errors(self) -> list[Exception]:
        """Return the errors of abandoned tasks that have ended, each once."""
        ended = [task for task in self._abandoned if task.is_done]
        self._abandoned = [task for task in self._abandoned if task not in ended]
        return [task.error for task in ended if task.error]

    def _run(self) -> None:
        while True:
            self.current = self._tasks.get()
            self.current.run()
            self._unfinished -= 1
