"""Folders that a process dies at, before or after one of the operations on their file system."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

from squallpy.runtime.sinks.output_folder import OutputFolder


class Killed(BaseException):
    """Simulated kill of the process."""


class Mortal:
    """A file system that a process dies at, before or after one of its operations; a dead one does no more."""

    def __init__(self, files: Any, life: "Life") -> None:
        self._files, self._life = files, life

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._files, name)
        if name in ("get_file_info", "open_input_stream"):
            return self._life.alive(method)
        return self._life.counted(method)


class Life:
    """So many operations, with a death before or after the last.

    Args:
        death: What is raised; on Spark an Exception, so that its session lives on.
    """

    def __init__(self, operations: int, after: bool, death: type[BaseException] = Killed) -> None:
        self.left, self.after, self.death = operations, after, death

    def alive(self, method: Any) -> Any:
        def call(*args: Any, **kwargs: Any) -> Any:
            if self.left < 0:
                raise self.death
            return method(*args, **kwargs)

        return call

    def counted(self, method: Any) -> Any:
        def call(*args: Any, **kwargs: Any) -> Any:
            self.left -= 1
            if self.left < -1 or (self.left < 0 and not self.after):
                raise self.death
            done = method(*args, **kwargs)
            if self.left < 0:
                raise self.death
            return done

        return call


@contextmanager
def living(life: Life | None) -> Iterator[None]:
    """Let folders of sinks be mortal, if there is a life."""
    made = OutputFolder.__init__

    def make(folder: OutputFolder, *args: Any) -> None:
        made(folder, *args)
        if life:
            folder._files = Mortal(folder._files, life)

    with patch.object(OutputFolder, "__init__", make):
        yield
