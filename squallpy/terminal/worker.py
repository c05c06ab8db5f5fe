"""Threads for what statements ask for, so that Ctrl-C interrupts only the waiting for it.

Work is done in its order; what nobody waits for any longer goes on beside what comes after it.
"""

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
    """A thread that runs tasks in their order, and others that end what was abandoned."""

    def __init__(self) -> None:
        self._given, self._own = list[Task[object]](), threading.local()
        self._start()

    def _start(self) -> None:
        self._tasks: queue.SimpleQueue[Task[object]] = queue.SimpleQueue()
        threading.Thread(target=self._run, args=(self._tasks,), name="squallpy statements", daemon=True).start()

    @property
    def is_busy(self) -> bool:
        """True if tasks run or wait."""
        return any(not task.is_done for task in self._given)

    @property
    def is_abandoned(self) -> bool:
        """True in a thread whose task nobody waits for any longer."""
        task: Task[object] | None = getattr(self._own, "task", None)
        return task is not None and task.is_abandoned

    def submit(self, work: Callable[[], T]) -> Task[T]:
        """Let work be done behind what was submitted before and is waited for."""
        task = Task(work)
        self._given = [each for each in self._given if not each.is_done or each.is_abandoned]
        self._given.append(task)  # type: ignore[arg-type]
        self._tasks.put(task)  # type: ignore[arg-type]
        return task

    def abandon(self, task: Task[T]) -> None:
        """Wait no longer for a task; its error is told later, and what comes next does not wait for it."""
        task.is_abandoned = True
        self._start()

    @property
    def has_errors(self) -> bool:
        """True if an abandoned task has ended with an error."""
        return any(task.is_abandoned and task.is_done and task.error for task in self._given)

    def errors(self) -> list[Exception]:
        """Return the errors of abandoned tasks that have ended, each once."""
        ended = [task for task in self._given if task.is_abandoned and task.is_done]
        self._given = [task for task in self._given if task not in ended]
        return [task.error for task in ended if task.error]

    def _run(self, tasks: "queue.SimpleQueue[Task[object]]") -> None:
        while not (self.is_abandoned and tasks.empty()):
            self._own.task = tasks.get()
            self._own.task.run()
