"""The undo log of a matrix program: a batch whose counts overflow leaves no trace."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from squallpy.runtime.matrix.errors import overflow


class UndoLog:
    """Steps that take back what was done in a transaction, the last one first."""

    def __init__(self) -> None:
        self._steps: list[Callable[[], object]] | None = None

    @property
    def is_open(self) -> bool:
        """True if a transaction is under way, so that changes have to be recorded."""
        return self._steps is not None

    def record(self, take_back: Callable[[], object]) -> None:
        """Add how a change that was just made is taken back."""
        assert self._steps is not None
        self._steps.append(take_back)

    @contextmanager
    def transaction(self, restore: Callable[[], object]) -> Iterator[None]:
        """Take back all changes made inside if a count overflows, then `restore`; SQ5001. An inner one is part of the
        outer."""
        if self._steps is not None:
            yield
            return
        self._steps = [restore]
        try:
            yield
        except OverflowError as error:
            for take_back in reversed(self._steps):
                take_back()
            raise overflow(error) from error
        finally:
            self._steps = None
