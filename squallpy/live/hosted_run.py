"""A run of a script as those see it who attach to its checkpoint: a session that only its script changes.

squall run q.sql --checkpoint state/         in one terminal
squall --checkpoint state/                   in another: SHOW VIEWS, SELECT … FROM rev, EXPLAIN rev
"""

import secrets
import threading
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import pyarrow as pa

from squallpy.base.errors import SquallError
from squallpy.base.settings import Settings
from squallpy.frontend.query import SelectText
from squallpy.frontend.script import parse_script
from squallpy.frontend.source_text import START
from squallpy.frontend.statement_texts import list_statements
from squallpy.frontend.statements import CreateView, Select, Statement
from squallpy.live.definitions import Definitions, unopened_definitions
from squallpy.live.outcome import Outcome
from squallpy.live.read_statements import read_statement
from squallpy.live.session_compiler import SessionCompiler
from squallpy.live.snapshot_query import answer
from squallpy.live.subscription import LIMIT, Subscription, ViewChange
from squallpy.logical.bind import Script
from squallpy.runtime.result.result_scan import CopiedRows, RowScan

if TYPE_CHECKING:
    from squallpy.live.run_reader import RunReader
    from squallpy.logical.nodes import Query
    from squallpy.runtime.observers.report import BatchReport
    from squallpy.runtime.result.result import Equal


class HostedRun:
    """The run of a script; its queries are materialized views under their names.

    Args:
        path: The script's file, and its `text`.
        script: What that declares.
        about: Facts that the page shows.

    Attributes:
        reader: Reads its rows between two batches.
    """

    failure: Exception | None = None
    is_writable = False

    def __init__(
        self,
        path: Path,
        text: str,
        script: Script,
        settings: Settings,
        reader: "RunReader",
        about: Mapping[str, object],
    ) -> None:
        self.path, self.script, self.settings, self.reader, self.about = path, script, settings, reader, about
        self.base, self._text = path.resolve().parent, text
        self.compiler = SessionCompiler(settings, self.base)
        self._identity, self._lock = secrets.token_hex(8), threading.Lock()

    @property
    def version(self) -> str:
        return self._identity

    @property
    def known(self) -> Definitions:
        """The definitions of its script."""
        with self._lock:
            return self._defined

    @cached_property
    def _defined(self) -> Definitions:
        names = iter(query.name for query in self.script.queries if not (query.view or query.sink))
        found = unopened_definitions(self.compiler)
        for given, begins in list_statements(self._text, START):
            for statement in parse_script(given, str(self.path), begins):
                if isinstance(statement, Select):
                    query, name = statement.query, next(names)
                    span = query.script.span(query.start, query.end)
                    found.create_view(CreateView(name, (), query, span, is_materialized=True))
                else:
                    found.execute(statement, given)
        return found

    def definitions(self) -> Mapping[str, Any]:
        return {"version": self.version, "statements": self.known.statements(), **self.compiler.facts}

    def execute_statement(self, statement: Statement, text: str = "") -> Outcome:
        return read_statement(statement, self) or self._refuse("a statement")

    def maintain(self, select: Select) -> Outcome:
        self._refuse("a SELECT that is kept fresh")

    def push_table(self, name: str, table: pa.Table) -> int:
        self._refuse("a push")

    def step(self) -> "BatchReport | None":
        self._refuse("a batch")

    def start(self) -> None:
        self._refuse("starting batches")

    def stop(self) -> None:
        self._refuse("stopping batches")

    def _refuse(self, what: str) -> NoReturn:
        message = f"{what} changes what this checkpoint keeps, and the run that has it takes that from {self.path.name}"
        raise SquallError("SQ7013", message, hint="end the run and change its script")

    def table(self, name: str) -> pa.Table:
        return self.numbered_table(name)[1]

    def numbered_table(self, name: str) -> tuple[int, pa.Table]:
        """Return the number of the last batch, and the rows of a query as of it."""
        return self.reader.rows(self.known.maintained(name).name)

    def select(self, query: SelectText) -> pa.Table:
        return answer(query, lambda: self.known, self.settings, self.base, self._scan, self.reader.hold)

    def _scan(self, query: "Query", equal: "Equal") -> RowScan:
        return CopiedRows(self.reader.result(self.reader.number(query.name)))

    def has_end(self, name: str) -> bool:
        """True if its run has ended: then its rows are the last."""
        return self.reader.is_over

    def stats(self, name: str) -> Mapping[str, Any]:
        last, rows = self.numbered_table(name)
        with self.reader.hold():
            return {"batches": last + 1, "rows": len(rows), "views": self.reader.usage()}

    def subscribe(
        self, name: str, with_snapshot: bool = False, limit: int | None = None, span: Any = None, newest: bool = False
    ) -> Subscription:
        named = self.known.maintained(name, span).name
        with self.reader.hold():
            reader = self.reader.changes(named, limit or LIMIT)
            if with_snapshot:
                rows = self.reader.result(self.reader.number(named))
                reader.put_first(ViewChange(self.reader.batch, rows.slice(0, 0), rows))
        return reader
