"""Locations of tables of open formats (Delta, Iceberg): waiting for a storage that is away, errors in one line.

location.table(30.0)                 →   the table, after 30 seconds at most; SQ4001 if there is none
location.retry(ask)                  →   what `ask` returns, called again while the storage or the catalog is away
location.repeat_conflicts(commit)    →   what `commit` returns, called again if another writer was first
"""

import re
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from math import inf
from typing import ClassVar, Generic, TypeVar

from squallpy.base.errors import SquallError, shorten
from squallpy.runtime.connectors.backoff import COLOURS, ask_again, is_store_away, pause

T = TypeVar("T")
AnyTable = TypeVar("AnyTable")
NOT_FOLLOWED = "SQ4009"
ATTEMPTS = 5  # of a commit that others come before


class TableLocation(ABC, Generic[AnyTable]):
    """The location of a table, as options of a connector say it; it can be pickled, and has no secrets.

    Args:
        kind: The format of the table.
        missing: Errors of the library for a table that is not there.
        faults: Errors of the library, the storage and the catalog.
        service: What is asked for the table: a storage, or a catalog.
        expiry: What may have happened to a version that is gone.
        patience: Seconds for a storage that is away when a run begins.
    """

    kind: ClassVar[str]
    missing: ClassVar[tuple[type[Exception], ...]]
    faults: ClassVar[tuple[type[Exception], ...]]
    service: ClassVar[str]
    expiry: ClassVar[str]
    patience: float

    def __str__(self) -> str:
        return f"the {self.kind} table {self.name}"

    @property
    @abstractmethod
    def name(self) -> str:
        """The path of the table, or its name in a catalog."""

    @abstractmethod
    def open(self) -> AnyTable:
        """Open the table, as it is now; raises what the library does."""

    def is_passing(self, error: Exception) -> bool:
        """True if the same may succeed later: the storage or the catalog is away, or too busy."""
        return is_store_away(error)

    @abstractmethod
    def is_conflict(self, error: Exception) -> bool:
        """True if another writer was first: the same may succeed over what it has written."""

    def find(self) -> AnyTable | None:
        """Open the table; None if there is none."""
        try:
            return self.open()
        except self.missing:
            return None

    def table(self, seconds: float = inf) -> AnyTable:
        """Open the table; SQ4001 if there is none, SQ8010 if the storage is away for so many seconds."""
        found = self.retry(self.find, seconds)
        if found is None:
            message = f"there is no {self.kind} table {self.name}"
            raise SquallError("SQ4001", message, hint="make one, or mend the name")
        return found

    def retry(self, ask: Callable[[], T], seconds: float = inf) -> T:
        """Call a function, again while the storage is away; SQ8010 after some seconds, and at once if a retry cannot
        help."""
        try:
            return ask_again(ask, self.is_passing, self, seconds)
        except SquallError:
            raise
        except self.faults as error:
            raise self.fault(error) from None

    def repeat_conflicts(self, commit: Callable[[], T]) -> T:
        """Commit, again if another writer was first."""
        for conflicts in range(ATTEMPTS - 1):
            try:
                return commit()
            except self.faults as error:
                if not self.is_conflict(error):
                    raise
            time.sleep(pause(conflicts))
        return commit()

    def gone(self, what: str) -> SquallError:
        """Describe versions that are there no more."""
        message = f"{what} of {self.name} cannot be read any more: {self.expiry}"
        hint = "begin anew with another checkpoint: it reads the table as it is"
        return SquallError(NOT_FOLLOWED, message, hint=hint)

    def fault(self, error: Exception) -> SquallError:
        """Describe in one line what the storage or the catalog says."""
        passes = f"it may pass: run the same command again when the {self.service} is there"
        hint = passes if self.is_passing(error) else "a retry does not help before that is mended"
        return SquallError("SQ8010", f"{self} cannot be read: {one_line(error)}", hint=hint)


def one_line(error: Exception) -> str:
    """Return what an error says, in one line, without the colours of its library and the links of its driver."""
    said = re.sub(r"\(Background on this error.*", "", COLOURS.sub("", str(error)), flags=re.DOTALL)
    said = " ".join(said.split()) or type(error).__name__
    return shorten(said) if len(said) > 300 else said
