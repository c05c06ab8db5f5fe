"""Choice of a session's plan by the rows that its relations have had: anew whenever there are twice as many.

10,000 rows   the plan that nothing was known for, or another one, as estimates by these rows say
20,000 rows   …

Source: `fivm-on-flink` §4.6, whose costs are of the records of views.
"""

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import field
from threading import RLock

from squallpy.base.errors import SquallError
from squallpy.base.events import INFO, QUERY, first_line, log_event
from squallpy.base.records import dataclass
from squallpy.live.live_program import LiveProgram
from squallpy.live.session_compiler import SessionCompiler

FIRST_ROWS = 10_000
"""Rows of all relations, before which a plan is not chosen: with fewer, any is good."""


@dataclass
class PlanChoice:
    """Rows that were read of each relation, by which the compiler of a session chooses a plan.

    Args:
        compiler: That has the rows by which the plan in force was chosen.
        statements: The lock of those who change definitions.
    """

    compiler: SessionCompiler
    statements: RLock
    _read: Counter[str] = field(default_factory=Counter, init=False)
    _due: int = field(default=0, init=False)

    def restore(self, rows: Mapping[str, int], present: tuple[str, ...]) -> None:
        """Begin with the rows by which the plan in force was chosen (`SessionRecord`)."""
        self._use(dict(rows), present)
        self._read.update(rows)
        self._due = 2 * self._read.total()

    def know(self, program: LiveProgram) -> None:
        """Take note of rows that were read before, of static tables and before a restart, as sources number them."""
        self._read |= {name: count for name, count in program.rows_read.items() if count}

    def drop(self, name: str) -> None:
        """Forget the rows of a relation."""
        self._read.pop(name, None)
        self.compiler.rows = {other: rows for other, rows in self.compiler.rows.items() if other != name}

    def reconsider(self) -> None:
        """Choose a plan after the next batch, if there are enough rows, as the queries are others."""
        self._due = 0

    def note(self, read: Mapping[str, int]) -> bool:
        """Take note of the rows of a batch; true if there are enough for a plan to be chosen."""
        self._read.update(read)
        return self._read.total() >= max(self._due, FIRST_ROWS)

    def choose(self, program: LiveProgram, change: Callable[[], None]) -> None:
        """Compile by the rows so far, and change to that plan if it is another; else all stays as it was.

        So it does if rows of which the views of the other plan would be filled are gone, and while a statement is in
        work.
        """
        if not self.statements.acquire(blocking=False):
            return
        self.know(program)
        self._due, present = 2 * self._read.total(), program.rows_present
        before = self.compiler.rows, self.compiler.present
        self._use({**self._read, **present}, tuple(sorted(present)))
        try:
            if program.is_outdated:
                change()
                before = self.compiler.rows, self.compiler.present
                log_event(QUERY, INFO, "plan changes", rows=self._read.total())
        except SquallError as error:
            log_event(QUERY, INFO, "plan stays", reason=first_line(error))
        finally:
            self._use(*before)
            self.statements.release()

    def _use(self, rows: dict[str, int], present: tuple[str, ...]) -> None:
        self.compiler.rows, self.compiler.present = rows, present  # NB: others may compile by those of before
