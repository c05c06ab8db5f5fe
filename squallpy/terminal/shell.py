"""A session at a shell: statements and dot commands one by one, where an error ends neither it nor what follows.

squall -c 'SQL'     squall < file     and, by its subclass in `interactive`, the prompt
"""

import threading
from collections.abc import Callable, Iterable
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, TypeVar

from squallpy.base.errors import SquallError, nearest
from squallpy.base.records import dataclass
from squallpy.base.settings import Settings
from squallpy.terminal.dot_commands import run_command
from squallpy.terminal.failures import OK, Quit, report
from squallpy.terminal.result_printer import ResultPrinter
from squallpy.terminal.statement_reader import Entry, read_entries
from squallpy.terminal.stderr_lines import say

if TYPE_CHECKING:  # NB: the prompt shows before the engine is imported
    from squallpy.base.errors import Notice
    from squallpy.frontend.statements import Statement
    from squallpy.live.open_session import OpenSession
    from squallpy.live.outcome import Outcome
    from squallpy.runtime.observers.protocol import Observer
    from squallpy.web.page_server import PageServer

T = TypeVar("T")


class Left(Exception):
    """The wish to wait no longer for what goes on in the background; it has been told."""


@dataclass(frozen=True, slots=True)
class Answer:
    """The outcome of a statement, and whether it is a live query that goes on."""

    outcome: "Outcome"
    is_live: bool = False


@dataclass(frozen=True, slots=True)
class SessionRequest:
    """The session of a shell.

    Args:
        checkpoint: The folder, or URI, where the session is kept; None: nowhere.
        writes: The session may be changed where another process has it.
        page: The server of the session's page.
    """

    settings: Settings
    checkpoint: str | None = None
    writes: bool = False
    page: "PageServer | None" = None


class Shell:
    """A session, and the state of a shell around it.

    Args:
        request: The session that is opened when it is first asked for.
    """

    def __init__(self, request: SessionRequest, printer: ResultPrinter) -> None:
        self.request, self.printer = request, printer
        self.status = OK
        """The exit status: that of the first error."""
        self.has_timer = False
        self.depth = 0
        """The number of files that read each other now."""
        self.last_select: Entry | None = None
        """The last SELECT, if it was one over views and tables."""
        self.live_queries = dict[str, str]()
        """The texts of live queries that go on, by the names of their views."""
        self._opened: OpenSession | None = None
        self._opening = threading.Lock()  # NB: two threads may ask for the session
        self._told: set[Notice] = set()

    # the session

    @property
    def session(self) -> "OpenSession":
        """The session, which begins when it is first asked for."""
        with self._opening:
            if self._opened is None:
                self._opened = self.open_session(self.request.settings)
            return self._opened

    @property
    def is_open(self) -> bool:
        """True if the session has begun."""
        return self._opened is not None

    def open_session(self, settings: Settings) -> "OpenSession":
        """Begin a session, go on with that of the checkpoint, or attach to the process that has it."""
        from squallpy.base.hidden_imports import hide_module

        with hide_module("pandas"):  # NB: Arrow looks for it (0.3 s)
            import pyarrow

            pyarrow.array([])
        from squallpy.live.open_session import open_session
        from squallpy.web.monitoring import SERVICES, monitored

        session = open_session(
            settings,
            Path.cwd(),
            self.observer(),
            self.request.checkpoint,
            writes=self.request.writes,
            services=SERVICES,
        )
        if session.is_attached:
            how = "" if session.is_writable else " to read"
            how += "" if session.is_writable or session.is_of_script else "; --write also changes it"
            what = "run" if session.is_of_script else "session"
            self.tell(f"attached to the {what} at {self.request.checkpoint}{how}")
        if page := self.request.page:
            page.show(monitored(session))
        return session

    def say(self, line: str) -> None:
        """Print a line that is no data."""
        say(line)

    def tell(self, line: str) -> None:
        """Print a line, perhaps from another thread than that of the prompt."""
        self.say(line)

    def observer(self) -> "Observer | None":
        """Return what is told of batches."""
        return None

    def close(self) -> None:
        """Read what is left, for sinks, and end the session."""
        if self._opened:
            self.attempt(self.catch_up)
            self._opened.close()
        self.printer.close()

    # entries

    def run_lines(self, lines: Iterable[str], file: str) -> None:
        """Run all statements and commands of lines as they are complete."""
        for entry in read_entries(lines):
            self.run(entry, file)

    def run(self, entry: Entry, file: str) -> None:
        """Run a statement or a command, report its error, if any, and tell the time that it took."""
        started = perf_counter()
        self.attempt(lambda: self._run(entry, file))
        if self.has_timer and not entry.is_command:
            self.say(f"{perf_counter() - started:.3f} s")

    def _run(self, entry: Entry, file: str) -> None:
        if entry.is_command:
            run_command(self, entry, file)
            return
        for answer in self.call(lambda: self.evaluate(entry, file)):
            self.show(answer)

    def attempt(self, work: Callable[[], object]) -> None:
        """Do something whose error is reported, and does not end the shell."""
        try:
            work()
        except (Quit, BrokenPipeError):
            raise
        except Left:
            pass
        except Exception as error:
            self.fail(error)

    def fail(self, error: Exception) -> None:
        """Report an error; after a failed batch the session is made anew without what failed."""
        status = report(error)
        self.status = self.status or status
        if self._opened and self._opened.failure:
            if self._opened.is_attached:
                raise Quit
            self.recover()

    def recover(self) -> None:
        """Make the session anew after a batch has failed: all that it had but what fails again.

        One with a checkpoint ends, for that has the batches before.
        """
        if self.request.checkpoint is not None:
            self.say(f"the batch failed; {self.request.checkpoint} has all before it")
            raise Quit
        old, failing = self.session, set[str]()
        old.close()
        while not self._define_anew(old, failing):
            self.session.close()
        if gone := [
            entry.name for name, entry in old.catalog.entries.items() if name not in self.session.catalog.entries
        ]:
            self.say(f"the batch failed, and {', '.join(gone)} went with it")

    def _define_anew(self, old: "OpenSession", failing: set[str]) -> bool:
        """Define in a new session what another had, but what is known to fail; false if a batch fails again."""
        self._opened = self.open_session(old.settings)
        for text in old.statements:
            if text not in failing:
                try:
                    [*self.session.execute(text)]
                    self.catch_up()
                except Exception:
                    failing.add(text)
                    if self.session.failure:
                        return False
        return True

    def call(self, work: Callable[[], T]) -> T:
        """Do something with the session; raises Left if it is not waited for any longer."""
        return work()

    # statements

    def execute(self, text: str) -> None:
        """Run a statement that a command stands for, and that has no place of its own."""
        try:
            self._run(Entry(text), "command")
        except SquallError as error:
            raise SquallError(error.code, error.message, hint=error.hint) from None

    def evaluate(self, entry: Entry, file: str) -> list[Answer]:
        """Execute a statement."""
        from squallpy.frontend.script import parse_script

        return [self._evaluate(statement, entry, file) for statement in parse_script(entry.text, file, entry.position)]

    def _evaluate(self, statement: "Statement", entry: Entry, file: str) -> Answer:
        from squallpy.frontend.statements import CreateView, Select

        if isinstance(statement, Select):
            is_live = self.session.reads_streams(statement.query)
            self.last_select = None if is_live else entry
            if is_live:
                return self.answer_live(entry, file)
            self.before_snapshot()
        (outcome,) = self.session.execute(entry.text, file, position=entry.position)
        if isinstance(statement, CreateView) and statement.is_materialized:
            self.catch_up(statement.name)
        self._tell_notices()
        return Answer(outcome)

    def before_snapshot(self) -> None:
        """Let views take in what has come, before they are read."""
        self.catch_up()

    def maintain(self, entry: Entry, file: str) -> "Outcome":
        """Keep a SELECT over streams fresh."""
        (outcome,) = self.session.execute(entry.text, file, True, entry.position)
        return outcome

    def answer_live(self, entry: Entry, file: str) -> Answer:
        """Answer a SELECT over streams: maintain it until they have ended, or all is read that was there."""
        from squallpy.live.outcome import Outcome

        name = self.maintain(entry, file).view
        assert name
        self._tell_notices()
        try:
            self.catch_up(name)
            return Answer(Outcome("SELECT", self.session.table(name)))
        finally:
            if not self.session.failure:
                self.drop(name)

    def watch(self, name: str) -> None:
        """Show a view as it changes."""
        raise SquallError("SQ7003", ".watch needs a terminal", hint=f"SUBSCRIBE {name} prints its changes")

    def repeat(self, seconds: float) -> None:
        """Run the last SELECT again and again."""
        raise SquallError("SQ7003", ".watch needs a terminal", hint="SUBSCRIBE prints the changes of a view")

    def stop_query(self, name: str) -> None:
        """End a live query; SQ2001 if none of that name runs."""
        known = next((each for each in self.live_queries if each.lower() == name.lower()), None)
        if known is None:
            hint = nearest(name, self.live_queries) or "DROP MATERIALIZED VIEW drops a view"
            raise SquallError("SQ2001", f'unknown live query "{name}"', hint=hint)
        self.call(lambda: self.drop(known))
        del self.live_queries[known]

    def drop(self, name: str) -> None:
        """Drop a live query."""
        from squallpy.frontend.declaration_text import qualified

        [*self.session.execute(f"DROP MATERIALIZED VIEW {qualified(name)}")]

    @property
    def is_left(self) -> bool:
        """True if nobody waits any longer for what is done."""
        return False

    def catch_up(self, name: str = "") -> None:
        """Apply batches until all is read that was there, or a view holds it (`live/catch_up.py`)."""
        from squallpy.live.catch_up import catch_up

        catch_up(self.session, name, lambda: self.is_left)

    def show(self, answer: Answer) -> None:
        """Print what a statement has to show."""
        outcome = answer.outcome
        if outcome.table is not None:
            self.printer.table(outcome.table)
        elif outcome.text is not None:
            self.printer.text(outcome.text)
        elif outcome.subscription:
            self.show_changes(outcome)

    def show_changes(self, outcome: "Outcome") -> None:
        """Print the changes of a view until all is read."""
        reader = outcome.subscription
        assert reader
        self.change_header(reader.view)
        is_over = False
        while not is_over:
            is_over = not self.session.is_writable or self.session.step() is None
            while change := reader.next(timeout=0):
                self.printer.change(change)
        reader.close()

    def change_header(self, view: str) -> None:
        import pyarrow as pa

        names = [field.name for field in self.session.columns(view)]
        self.printer.change_header(pa.schema([(name, pa.string()) for name in names]))

    def _tell_notices(self) -> None:
        """Tell each note on a statement once."""
        for notice in self.session.catalog.notices:
            if notice not in self._told:
                self._told.add(notice)
                self.say(str(notice))
