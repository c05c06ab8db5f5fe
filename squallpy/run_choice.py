"""Choice of the plan of a run over streams without end, by the rows that it has read (`choice_schedule`).

batch 40    10,000 rows: the plan by these rows is another one, which repeats what was read in large batches
batch 41    …

A run with a checkpoint ends behind the batch and goes on there as if it was started again: the plan before is in force
until the other has come as far. Rows that cannot be read again leave the plan as it is.
"""

from collections.abc import Callable
from dataclasses import replace

from squallpy.base.errors import SquallError
from squallpy.base.events import INFO, QUERY, first_line, log_event
from squallpy.checkpoint_identity import Setup, plan_identity
from squallpy.choice_schedule import ChoiceSchedule, Usage, depends_on_rows, rows_present
from squallpy.run_plans import PlannedRun, RunPlanner


class RunChoice:
    """The choice of a run's plan, and the setup of the next one once it is made.

    Args:
        setup: That of the first plan.
    """

    def __init__(self, planner: RunPlanner, setup: Setup) -> None:
        self._planner, self._schedule = planner, ChoiceSchedule()
        self._schedule.restore(setup.rows)
        self.chosen: Setup | None = None

    def begin(self, run: PlannedRun) -> None:
        """Let a plan run until another one is chosen."""
        self.chosen = None
        if self._is_open(run):
            run.reading.keep_read()

    def choose(self, run: PlannedRun, batch: int, usage: Callable[[], Usage]) -> bool:
        """Choose a plan behind a batch, if there are enough rows; true if it is another one than that of a run."""
        if not self._is_open(run) or run.reading.number(batch) is None:
            return False
        self._schedule.know(run.reading.rows_read)
        if not self._schedule.is_due:
            return False
        self._schedule.begin()
        present = rows_present(run.compiled.relations, usage())
        rows = {**self._schedule.rows, **present}
        setup = replace(run.setup, rows=rows, present=tuple(sorted(present)))
        try:
            other = self._planner.compile(run.compiled.queries, setup, run.reading.sizes)
        except SquallError as error:
            log_event(QUERY, INFO, "plan stays", reason=first_line(error))
            return False
        if plan_identity(other) == plan_identity(run.compiled):
            return False
        if reason := run.reading.find_lost():
            log_event(QUERY, INFO, "plan stays", reason=reason)
            return False
        log_event(QUERY, INFO, "plan changes", batch=batch, rows=self._schedule.rows.total())
        self.chosen = setup
        return True

    def _is_open(self, run: PlannedRun) -> bool:
        """True if rows that come may choose another plan."""
        return not (run.reading.has_end or run.compiled.plan.matrices) and depends_on_rows(run.compiled)
