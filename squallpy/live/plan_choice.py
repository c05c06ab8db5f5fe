"""Choice of a session's plan by the rows that its relations have had (`choice_schedule`)."""

from collections.abc import Callable, Mapping
from dataclasses import field
from threading import RLock

from squallpy.base.errors import SquallError
from squallpy.base.events import INFO, QUERY, first_line, log_event
from squallpy.base.records import dataclass
from squallpy.choice_schedule import ChoiceSchedule
from squallpy.live.live_program import LiveProgram
from squallpy.live.session_compiler import SessionCompiler


@dataclass
class PlanChoice:
    """Rows that were read of each relation, by which the compiler of a session chooses a plan.

    Args:
        compiler: That has the rows by which the plan in force was chosen.
        statements: The lock of those who change definitions.
    """

    compiler: SessionCompiler
    statements: RLock
    _schedule: ChoiceSchedule = field(default_factory=ChoiceSchedule, init=False)

    def restore(self, rows: Mapping[str, int], present: tuple[str, ...]) -> None:
        """Begin with the rows by which the plan in force was chosen (`SessionRecord`)."""
        self._use(dict(rows), present)
        self._schedule.restore(rows)

    def know(self, program: LiveProgram) -> None:
        """Take note of rows that were read before, of static tables and before a restart, as sources number them."""
        self._schedule.know(program.rows_read)

    def drop(self, name: str) -> None:
        """Forget the rows of a relation."""
        self._schedule.drop(name)
        self.compiler.rows = {other: rows for other, rows in self.compiler.rows.items() if other != name}

    def reconsider(self) -> None:
        """Choose a plan after the next batch, if there are enough rows, as the queries are others."""
        self._schedule.reconsider()

    def note(self, read: Mapping[str, int]) -> bool:
        """Take note of the rows of a batch; true if there are enough for a plan to be chosen."""
        self._schedule.add(read)
        return self._schedule.is_due

    def choose(self, program: LiveProgram, change: Callable[[], None]) -> None:
        """Compile by the rows so far, and change to that plan if it is another; else all stays as it was.

        So it does if rows of which the views of the other plan would be filled are gone, and while a statement is in
        work.
        """
        if not self.statements.acquire(blocking=False):
            return
        self.know(program)
        self._schedule.begin()
        rows, present = self._schedule.rows, program.rows_present
        before = self.compiler.rows, self.compiler.present
        self._use({**rows, **present}, tuple(sorted(present)))
        try:
            if program.is_outdated:
                change()
                before = self.compiler.rows, self.compiler.present
                log_event(QUERY, INFO, "plan changes", rows=rows.total())
        except SquallError as error:
            log_event(QUERY, INFO, "plan stays", reason=first_line(error))
        finally:
            self._use(*before)
            self.statements.release()

    def _use(self, rows: dict[str, int], present: tuple[str, ...]) -> None:
        self.compiler.rows, self.compiler.present = rows, present  # NB: others may compile by those of before
