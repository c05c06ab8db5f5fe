"""SQL in the cells of a notebook: `%load_ext squallpy`.

    %%squall                  statements of a session that begins with the first; the cell shows the last one's outcome
    %%squall s                those of the session `s`, a variable of the notebook
    n = %squall SELECT COUNT(*) AS n FROM rev
    s = %squall               the session

A cell runs as statements at the prompt do: a view that it creates, and a SELECT over streams, which is kept fresh, are
shown when they hold what their inputs have.
"""

import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

from squallpy.api.html import PlanText
from squallpy.api.session import Session, connect
from squallpy.api.view import Snapshot, View
from squallpy.base.errors import Notice, SquallError, nearest
from squallpy.frontend.script import parse_script
from squallpy.frontend.source_text import START, SourcePosition
from squallpy.frontend.statement_texts import list_statements
from squallpy.frontend.statements import CreateView, Select, Statement
from squallpy.live.catch_up import catch_up
from squallpy.live.open_session import OpenSession
from squallpy.live.outcome import Outcome

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell

MAGIC = "squall"


class CellError(SquallError):
    """A mistake in a cell, which notebooks show with a caret and without the calls that led to it."""

    def _render_traceback_(self) -> list[str]:
        return [str(self), *filter(None, [self.caret()])]


class Notebook:
    """The sessions of a notebook, and what its cells ask of them.

    Args:
        variables: Those of the notebook, by name.
        show: Shows the outcome of a statement that is not the last of its cell.
    """

    def __init__(self, variables: dict[str, Any], show: Callable[[Any], object]) -> None:
        self._variables, self._show = variables, show
        self._own: Session | None = None
        self._session: Session | None = None
        self._queries = dict[tuple[OpenSession, str], str]()
        self._told = set[Notice]()

    def run(self, line: str, cell: str | None = None) -> Any:
        """Run the statements of a line or cell, and return what the last one has to show.

        Raises:
            CellError: The first mistake; what stands before it has been done.
        """
        try:
            text = self._choose(line, cell)
            if not text.strip():
                return self.session
            return self._execute(text, "cell")
        except SquallError as error:
            raise CellError(error.code, error.message, error.span, error.hint) from None
        finally:
            if self._own and self._own._session.failure:
                self.close()
                sys.stderr.write("the batch failed, and its session has ended; the next cell begins another\n")

    @property
    def session(self) -> Session:
        """The session that statements are for: the last one named, else one of the notebook's own."""
        if self._session is None:
            self._session = self._own = connect()
        return self._session

    def close(self) -> None:
        """End the notebook's own session."""
        if self._own:
            self._own.close()
        self._own = self._session = None

    def _choose(self, line: str, cell: str | None) -> str:
        """Take the session that a line names; returns the text of the statements."""
        name, _, rest = line.strip().partition(" ")
        named = self._variables.get(name)
        if isinstance(named, Session):
            self._session, line = named, rest
        elif cell is not None and name:
            known = [each for each, value in self._variables.items() if isinstance(value, Session)]
            hint = nearest(name, known) or "statements begin in the next line"
            raise SquallError("SQ2001", f'unknown session "{name}"', hint=hint)
        return line if cell is None else f"\n{cell}"  # NB: lines count as in the cell

    def _execute(self, text: str, file: str) -> Any:
        """Execute statements one by one; an interrupt of the kernel lets the batch in work end."""
        found: Any = None
        for given, position in list_statements(text, START):
            for statement in parse_script(given, file, position):
                if isinstance(found, Snapshot | PlanText):
                    self._show(found)
                left = threading.Event()
                with ThreadPoolExecutor(1) as pool:
                    task = pool.submit(self._run, statement, given, file, position, left)
                    try:
                        found = task.result()
                    except KeyboardInterrupt:
                        left.set()
                        raise
                self._tell_notices()
        return found

    def _run(self, statement: Statement, text: str, file: str, position: SourcePosition, left: threading.Event) -> Any:
        """Execute a statement; returns what there is to show of it."""
        session = self.session._session
        if isinstance(statement, Select) and session.reads_streams(statement.query):
            name: str | None = self._live_query(text, file, position)
            outcome = Outcome("SELECT")
        else:
            if isinstance(statement, Select):
                for each in session.entries.views:
                    catch_up(session, each, left.is_set)
            (outcome,) = session.execute(text, file, position=position)
            name = statement.name if isinstance(statement, CreateView) else None
        if self._session is self._own and not session.is_attached and session.entries.maintained:
            session.start()
        if name and name.lower() in session.entries.views:
            catch_up(session, name, left.is_set)
            return View(session, session.maintained_name(name))
        if outcome.table is not None:
            return Snapshot(outcome.table)
        return outcome.subscription if outcome.text is None else PlanText(outcome.text)

    def _live_query(self, text: str, file: str, position: SourcePosition) -> str:
        """Keep a SELECT over streams fresh; the view is that of the same text before, if it is there."""
        session = self.session._session
        before = self._queries.get((session, text))
        if before is None or before.lower() not in session.entries.views:
            (outcome,) = session.execute(text, file, True, position)
            assert outcome.view
            before = self._queries[session, text] = outcome.view
        return before

    def _tell_notices(self) -> None:
        """Tell each note on a statement once, beside what is shown."""
        for notice in self.session._session.catalog.notices:
            if notice not in self._told:
                self._told.add(notice)
                sys.stderr.write(f"{notice}\n")


def load_ipython_extension(ipython: "InteractiveShell") -> None:
    """Add the magics `%squall` and `%%squall` to IPython: `%load_ext squallpy`."""
    from IPython.display import display

    run: Any = Notebook(ipython.user_ns, display).run
    ipython.register_magic_function(run, "line_cell", MAGIC)


def unload_ipython_extension(ipython: "InteractiveShell") -> None:
    """Take the magics away, and end the session that they began."""
    magics = ipython.magics_manager.magics
    for kind in ("line", "cell"):
        magics[kind].pop(MAGIC).__self__.close()
