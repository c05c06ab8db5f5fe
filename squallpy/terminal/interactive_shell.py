"""The shell at a prompt: batches run in the session's thread, statements in another, and Ctrl-C leaves what waits.

A SELECT over streams is a live query: a table that changes, which goes on when it is left.
"""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from time import strftime
from typing import TYPE_CHECKING, TypeVar

from squallpy.base.errors import SquallError
from squallpy.terminal.failures import Interrupted
from squallpy.terminal.progress import ERASE
from squallpy.terminal.result_printer import ResultPrinter
from squallpy.terminal.shell import Answer, Left, SessionRequest, Shell
from squallpy.terminal.statement_reader import Entry
from squallpy.terminal.worker import Worker

if TYPE_CHECKING:
    from squallpy.live.outcome import Outcome
    from squallpy.runtime.observers.protocol import Observer
    from squallpy.terminal.batch_relay import BatchRelay

T = TypeVar("T")
_PATIENCE = 0.3  # seconds before anything watches over the progress of a statement
_LOOK = 0.1  # seconds between two looks at what a live table shows


class InteractiveShell(Shell):
    """A shell at which somebody types, at a terminal whose cursor can be moved."""

    def __init__(self, request: SessionRequest, printer: ResultPrinter) -> None:
        super().__init__(request, printer)
        self._worker, self._untold = Worker(), list[str]()
        self._relay: BatchRelay | None = None

    def warm_up(self) -> None:
        """Begin the session in the background, which takes a moment: its imports."""
        if not self.is_open and not self._worker.is_busy:
            self._worker.submit(lambda: self.session)

    def observer(self) -> "Observer":
        from squallpy.terminal.batch_relay import BatchRelay

        self._relay = BatchRelay()
        return self._relay

    def run(self, entry: Entry, file: str) -> None:
        try:
            super().run(entry, file)
        except Interrupted:  # NB: while something was printed
            self.say("")

    def tell(self, line: str) -> None:
        self._untold.append(line)  # NB: it may be printed when no prompt is shown

    @property
    def has_news(self) -> bool:
        """True if there is something to tell, or something has failed that nobody waited for."""
        return bool(self._untold) or self._worker.has_errors or self._failed_batch is not None

    @property
    def _failed_batch(self) -> Exception | None:
        return self._opened.failure if self._opened and not self._worker.is_busy else None

    def tell_news(self) -> None:
        """Tell what there is to tell, and report what has failed while nobody waited for it."""
        while self._untold:
            self.say(self._untold.pop(0))
        for error in self._worker.errors():
            self.fail(error)
        if failure := self._failed_batch:
            self.fail(failure)

    def call(self, work: Callable[[], T]) -> T:
        """Do something in the other thread; Ctrl-C leaves it going on."""
        task = self._worker.submit(work)
        try:
            if not task.wait(_PATIENCE):
                with self._progress():
                    task.wait()
        except Interrupted:
            self._worker.abandon(task)
            self._say_over("it goes on in the background")
            raise Left from None
        return task.value

    def _say_over(self, line: str) -> None:
        """Print a line over the ^C that the terminal shows."""
        self.say(f"{ERASE}{line}")

    @contextmanager
    def _progress(self) -> Iterator[None]:
        """Show that it takes a while, and the batches, after a second."""
        from squallpy.terminal.progress import Progress

        progress = Progress("working")
        with progress.running():
            if self._relay:
                self._relay.to = progress
            try:
                yield
            finally:
                if self._relay:
                    self._relay.to = None

    def recover(self) -> None:
        self.call(super().recover)

    # statements

    def evaluate(self, entry: Entry, file: str) -> list[Answer]:
        try:
            return super().evaluate(entry, file)
        finally:
            if not self.session.is_attached and self.session.entries.maintained and not self.session.failure:
                self.session.start()

    def before_snapshot(self) -> None:
        """Do nothing: batches go on by themselves."""

    @property
    def is_left(self) -> bool:
        return self._worker.is_abandoned

    def answer_live(self, entry: Entry, file: str) -> Answer:
        """Keep a SELECT over streams fresh, and let it be shown."""
        outcome = self.maintain(entry, file)
        assert outcome.view
        self._tell_notices()
        self.live_queries[outcome.view] = entry.text
        return Answer(outcome, is_live=True)

    def show(self, answer: Answer) -> None:
        outcome = answer.outcome
        if answer.is_live and outcome.view:
            self._follow(outcome.view)
        elif outcome.table is None and outcome.text is None and not outcome.subscription:
            self.say(outcome.message)
        else:
            super().show(answer)

    def show_changes(self, outcome: "Outcome") -> None:
        """Print the changes of a view until Ctrl-C."""
        reader = outcome.subscription
        assert reader
        self.say(f"the changes of {reader.view}; Ctrl-C leaves")
        self.change_header(reader.view)
        try:
            while not reader.is_closed and self.session.is_running:
                if change := reader.next(timeout=_LOOK):
                    self.printer.change(change)
        except Interrupted:
            self.say("")
        finally:
            reader.close()

    # live queries

    def watch(self, name: str) -> None:
        with suppress(Interrupted):
            self._show_live(name, lambda: False)

    def _follow(self, name: str) -> None:
        """Show a live query until its input has ended, or Ctrl-C leaves it running."""
        ends = self.call(lambda: self.session.has_end(name))
        task = self._worker.submit(lambda: self.catch_up(name))
        try:
            self._show_live(name, lambda: bool(ends) and task.is_done)
        except Interrupted:
            self._worker.abandon(task)
            self._say_over(f"{name} goes on: .watch {name} shows it, .stop {name} ends it")
            return
        if task.error or self.session.failure:
            del self.live_queries[name]
            raise task.error or self.session.failure or AssertionError(name)
        self.printer.table(self.call(lambda: self.session.table(name)))
        self.stop_query(name)

    def _show_live(self, name: str, is_over: Callable[[], bool]) -> None:
        """Show a view as it changes until that is over; Ctrl-C leaves by its exception."""
        from squallpy.terminal.view_watch import watch

        assert self._relay
        watch(self.session, name, self._relay, lambda: is_over() or not self.session.is_running)

    def repeat(self, seconds: float) -> None:
        entry = self.last_select
        if entry is None:
            raise SquallError(
                "SQ7004", "there is no SELECT over views to repeat", hint=".watch VIEW shows it as it changes"
            )
        try:
            while True:
                self.say(strftime("%H:%M:%S"))
                self._run(entry, "command")
                threading.Event().wait(seconds)
        except (Interrupted, Left):
            self.say("")

    # the end

    def what_runs(self) -> str:
        """Tell what ends with the shell, and how it goes on; empty if nothing does."""
        if not self.is_open or self.session.is_attached:
            return ""
        names = [each.name for each in self.session.entries.maintained.values()]
        if not names:
            return ""
        from squallpy.live.definitions import listed

        is_one, checkpoint = len(names) == 1, self.request.checkpoint
        if checkpoint is not None:
            return f"{listed(names)} {'goes' if is_one else 'go'} on with squall --checkpoint {checkpoint}"
        return f"{listed(names)} {'ends' if is_one else 'end'} here"

    def close(self) -> None:
        if self._opened and not self._worker.is_busy:
            self._opened.close()
        self.printer.close()

    @property
    def is_busy(self) -> bool:
        """True if something goes on in the background."""
        return self._worker.is_busy
