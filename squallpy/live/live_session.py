"""Sessions: statements that declare streams and views, batches that keep the views fresh, and queries over them.

session = LiveSession()
session.execute("CREATE STREAM r (a INT) USING pushed; CREATE MATERIALIZED VIEW v AS SELECT a FROM r WHERE a > 1")
session.push("r", rows);  session.step();  session.table("v")
"""

import secrets
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from itertools import count
from pathlib import Path
from typing import Any

import pyarrow as pa

from squallpy.base.errors import Span, SquallError
from squallpy.base.local_paths import join_path, local_path
from squallpy.base.settings import Settings, parse_settings
from squallpy.catalog.catalog import Catalog
from squallpy.catalog.relation import Field
from squallpy.compiler import CompiledQuery
from squallpy.frontend.query import SelectText
from squallpy.frontend.script import parse_script
from squallpy.frontend.source_text import START, SourcePosition
from squallpy.frontend.statement_texts import list_statements
from squallpy.frontend.statements import CreateView, Pause, Select, Set, Statement
from squallpy.live.backend import Backend, LocalBackend, temporary_checkpoint
from squallpy.live.definitions import Definitions
from squallpy.live.entries import Entries, sinks_of
from squallpy.live.fair_lock import FairLock
from squallpy.live.host import Host, Services
from squallpy.live.live_program import LiveProgram
from squallpy.live.outcome import Outcome
from squallpy.live.plan_choice import PlanChoice
from squallpy.live.pushed_tables import pushed_table
from squallpy.live.read_rows import read_view
from squallpy.live.read_statements import read_statement
from squallpy.live.session_compiler import SessionCompiler
from squallpy.live.session_sink import SessionSink
from squallpy.live.snapshot_query import answer
from squallpy.live.subscription import LIMIT, NewestChange, Subscription, ViewChange, closed_by_errors
from squallpy.logical.nodes import Query
from squallpy.runtime.checkpoint.checkpoint import hold_lease
from squallpy.runtime.checkpoint.session_checkpoint import SessionCheckpoint, SessionRecord
from squallpy.runtime.observers.protocol import Observer, Observers
from squallpy.runtime.observers.report import BatchReport
from squallpy.runtime.session_input import SessionInput

POLL = 0.05
"""Seconds between two looks for something to read."""


class LiveSession:
    """Streams, and views that live together over them.

    Args:
        base: The folder from which relative paths start.
        observer: Told of each batch.
        checkpoint: The folder, or URI, where definitions and state are kept; what it has is restored.
        backend: Where batches are applied; None: in this process.
        services: More that those who are attached may ask.

    Attributes:
        program: What keeps the views fresh.
    """

    is_writable, is_attached, is_of_script = True, False, False  # NB: it is one of this process

    def __init__(
        self,
        settings: Settings | None = None,
        base: Path | None = None,
        observer: Observer | None = None,
        checkpoint: str | None = None,
        backend: Backend | None = None,
        services: Services | None = None,
    ) -> None:
        self.settings, self.base = settings or Settings(), base or Path.cwd()
        self._first_settings, self._given = self.settings, tuple[str, ...]()
        self.compiler = SessionCompiler(self.settings, self.base)
        self._names, self._opened, lease = count(1), ExitStack(), None
        self._identity, self._changes, self._host = secrets.token_hex(8), 0, None
        self._checkpoint: SessionCheckpoint | None = None
        backend = backend or LocalBackend()
        is_kept = checkpoint is not None
        if checkpoint is None and not backend.in_memory:
            checkpoint = temporary_checkpoint(self._opened)
        if checkpoint is not None:
            lease = self._opened.enter_context(hold_lease(checkpoint))
            snapshot = self.settings.snapshot_mb << 20
            self._checkpoint = SessionCheckpoint(checkpoint, self.settings.local_dir, snapshot)
            if is_kept and (path := local_path(checkpoint)):
                self._host = Host(path)
        binder = self.compiler.binder()
        columns = self.compiler.columns
        self._definitions = Definitions(binder, self._refresh, self._open_sink, self._drop_source, columns)
        self._visible = self._definitions.snapshot()  # those in force, which no statement changes
        spool = join_path(checkpoint, "spool") if checkpoint else None
        self._input = SessionInput(self.base, self.compiler.open_foreign, spool)
        self.observers = Observers(*([observer] if observer else []))
        self.program = LiveProgram(
            self.settings, self._input, self._compile, self.observers, backend, self._checkpoint, lease
        )
        self.lock, self._statements = FairLock(), threading.RLock()  # of batches, and of definitions
        self._thread: threading.Thread | None = None
        self._stopping, self._work = threading.Event(), threading.Event()
        self._error: Exception | None = None
        self._choice = PlanChoice(self.compiler, self._statements)
        self.is_paused = self._closed = self._restores = False
        if self._checkpoint:
            try:
                self._restore()
            except BaseException:
                self.close()
                raise
        if self._host:
            self._host.serve(lambda: (self, services or {}))

    # statements

    @property
    def statements(self) -> tuple[str, ...]:
        """The definitions of the session, each behind those of what it reads."""
        return self._visible.statements()

    @property
    def catalog(self) -> Catalog:
        return self._visible.catalog

    @property
    def entries(self) -> Entries:
        return self._visible.entries

    @property
    def version(self) -> str:
        """A name for the definitions as they are now."""
        return f"{self._identity} {self._changes}"

    def definitions(self) -> Mapping[str, Any]:
        """Describe the definitions to those who mirror them."""
        return {"version": self.version, "statements": self.statements, **self.compiler.facts}

    def execute(
        self, text: str, file: str = "session", maintains: bool = False, position: SourcePosition = START
    ) -> Iterator[Outcome]:
        """Execute the statements of a text one by one, as their outcomes are asked for.

        Args:
            maintains: A SELECT is kept fresh from now on, instead of answered once.
            position: Where the text begins in the file.
        """
        for given, begins in list_statements(text, position):
            for statement in parse_script(given, file, begins):
                if maintains and isinstance(statement, Select):
                    yield self.maintain(statement)
                else:
                    yield self.execute_statement(statement, given)

    def execute_statement(self, statement: Statement, text: str = "") -> Outcome:
        """Execute a parsed statement; batches go on while a view is filled."""
        self._check()
        if outcome := self._answer(statement):
            return outcome
        with self._statements:
            made = self._set(statement) if isinstance(statement, Set) else self._definitions.execute(statement, text)
            assert made
            return made

    def _answer(self, statement: Statement) -> Outcome | None:
        """Execute a statement that changes no definition, also while another is in work; None if it changes one."""
        if isinstance(statement, Pause):
            self.is_paused = not statement.resumes
            self._work.set()
            return Outcome("RESUME" if statement.resumes else "PAUSE")
        return read_statement(statement, self)

    def _open_sink(self, query: Query) -> SessionSink:
        from squallpy.runtime.sinks.outputs import Outputs

        outputs = Outputs([query], self.base)
        outputs.check(self._definitions.catalog.relations.values(), self.base)
        spec = outputs.sink(query)
        assert spec
        first = self.program.batches - 1
        if self._restores and self._checkpoint:
            first = self._checkpoint.record.sinks[spec.name.lower()]
        return SessionSink(outputs.open(spec, query.text, resumed=self._restores), first)

    def _drop_source(self, name: str) -> None:
        with self.lock:
            self._input.drop(name)
            self._choice.drop(name)

    def _refresh(self, has_changed: bool) -> None:
        """Note the definitions, and keep fresh what they say if that has changed."""
        if self._restores:
            return
        if has_changed:
            self._definitions.put_in_order(self.compiler.bind)
            self._choice.reconsider()
            self._change()
            return
        if self._checkpoint:
            record = self._checkpoint.record
            self._save(record.generation, self.program.batches, record.partitions)
        self._publish()

    def _publish(self) -> None:
        """Let others see the definitions as they are."""
        self._visible, self._changes = self._definitions.snapshot(), self._changes + 1

    def _change(self) -> None:
        """Keep the queries of the definitions fresh; what is new is filled while batches go on."""
        kept = [*self._definitions.entries.maintained.values()]
        queries, sinks = [each.query for each in kept], sinks_of(kept)
        pending = self.program.prepare(queries)
        try:
            if pending:
                with self.lock:
                    self.program.begin_backfill(pending, lambda: self.lock)
                pending.run()
                with self.lock:
                    self.program.begin_generation(pending)
                pending.move(lambda: self.lock)
            with self.lock:
                self._check()
                self.program.change(queries, pending, sinks, self._save)
                self._publish()
        finally:
            if pending:
                with self.lock:
                    self.program.end(pending)
        self._work.set()

    def _save(self, generation: int, batches: int, partitions: int) -> None:
        """Put a generation of the checkpoint in force, with the definitions."""
        if self._checkpoint:
            kept = self._definitions.entries.maintained.items()
            sinks = {name: each.sink.first for name, each in kept if isinstance(each.sink, SessionSink)}
            columns = dict(self.compiler.columns)
            record = SessionRecord(
                generation, self._definitions.statements(), columns, self._given, batches, sinks, partitions,
                dict(self.compiler.rows), self.compiler.present,
            )  # fmt: skip
            self._checkpoint.save(record)

    def _restore(self) -> None:
        """Define what the checkpoint has, and go on where its batches are."""
        assert self._checkpoint
        record = self._checkpoint.record
        self._use(record.settings)
        self.compiler.columns.update(record.columns)
        self._choice.restore(record.rows, record.present)
        self._restores = True
        for text in record.statements:
            for statement in parse_script(text, "session"):
                self.execute_statement(statement, text)
        self._restores = False
        self._definitions.put_in_order(self.compiler.bind)
        kept = [*self._definitions.entries.maintained.values()]
        self.program.resume([each.query for each in kept], sinks_of(kept), self._save)
        self._choice.know(self.program)
        self._publish()

    # rows

    def push(self, name: str, rows: Any, op: str = "+") -> int:
        """Push rows to a stream; returns how many. They are read by the batches that come (docs/python.md)."""
        with self.lock:
            return self.push_table(name, pushed_table(self.known.pushed(name), rows, op))

    def push_table(self, name: str, table: pa.Table) -> int:
        """Push rows that are a table as `pushed_table` makes it."""
        with self.lock:
            queue = self._input.pushed(self.known.pushed(name))
            assert queue
            queue.push(table)
        self._work.set()
        return len(table)

    def step(self) -> BatchReport | None:
        """Apply one batch of what has come; None if there is nothing new, or batches are paused."""
        with self.lock:
            self._check()
            if self.is_paused:
                return None
            with self._failing():
                report = self.program.step()
        if report and self._choice.note(report.read_rows):
            with self._failing():
                self._choice.choose(self.program, self._change)
        return report

    def run_until_caught_up(self) -> int:
        """Apply batches until there is nothing new; returns how many."""
        batches = 0
        while self.step() is not None:
            batches += 1
        return batches

    @contextmanager
    def _failing(self) -> Iterator[None]:
        """End the session by an error."""
        try:
            yield
        except Exception as error:
            self._error = error
            self.program.end_scans()
            for sink in self.entries.view_sinks:
                sink.fail(error)
            raise

    def _check(self) -> None:
        if self._closed:
            raise SquallError("SQ7012", "the session is closed", hint="connect anew")
        if self._error:
            raise self._error

    @property
    def failure(self) -> Exception | None:
        """The error of the batch that ended the session."""
        return self._error

    def start(self) -> None:
        """Apply batches in a thread as rows come."""
        with self.lock:
            self._check()
            if self._thread is None:
                self._stopping.clear()
                self._thread = threading.Thread(target=self._run, name="squallpy batches", daemon=True)
                self._thread.start()

    def stop(self) -> None:
        """Let the batch in work end, and apply no more in a thread."""
        thread, self._thread = self._thread, None
        if thread:
            self._stopping.set()
            self._work.set()
            if thread is not threading.current_thread():
                thread.join()
        self._wake()

    @property
    def is_running(self) -> bool:
        """True if batches are applied in a thread."""
        return self._thread is not None and self._error is None and not self._closed

    def _run(self) -> None:
        while not self._stopping.is_set():
            self._work.clear()
            try:
                report = self.step()
            except Exception:
                return
            if report is None:
                self._wake()
                self._work.wait(POLL)

    def _wake(self) -> None:
        for sink in self.entries.view_sinks:
            sink.wake()

    def close(self) -> None:
        """End all: those who are attached, subscriptions, sinks, sources."""
        if self._host:
            self._host.close()
        self.stop()
        with self.lock:
            if self._closed:
                return
            self._closed = True
            for each in self.entries.maintained.values():
                if self._error is None:
                    each.sink.finish(stopped=True)
                each.sink.close()
            self.program.close()
            self._input.close()
            if self._checkpoint and self._error is None:
                self._checkpoint.delete_local()
            self._opened.close()

    # reading

    def table(self, name: str, span: Span | None = None) -> pa.Table:
        """Return the rows of a materialized view as of the last batch."""
        return self.numbered_table(name, span)[1]

    def numbered_table(self, name: str, span: Span | None = None) -> tuple[int, pa.Table]:
        """Return the number of the last batch, and the rows of a materialized view as of it."""
        return read_view(self.program, self.lock, lambda: self.known.maintained(name, span))

    def select(self, query: SelectText) -> pa.Table:
        """Answer an ad hoc query over views, as of the last batch; batches wait only while their rows are read."""
        return answer(query, lambda: self.known, self.settings, self.base, self.program.scan, lambda: self.lock)

    @property
    def known(self) -> Definitions:
        """The definitions in force, of a session that goes on."""
        self._check()
        return self._visible

    def reads_streams(self, query: SelectText) -> bool:
        """True if a query reads streams themselves, so that it is no ad hoc query."""
        return self.known.reads_streams(query)

    def maintain(self, select: Select) -> Outcome:
        """Keep the answer of a SELECT fresh under a name that is made up."""
        with self._statements:
            query = select.query
            called = next(name for i in self._names if (name := f"query{i}") not in self._definitions.catalog.entries)
            span = query.script.span(query.start, query.end)
            self._definitions.create_view(CreateView(called, (), query, span, is_materialized=True))
            return Outcome("SELECT", view=called)

    def has_end(self, name: str) -> bool:
        """True if all streams end that a view reads, also those of other views that it reads."""
        with self.lock:
            read = self.known.relations_read(name)
            return all(self._input.open(relation).is_bounded for relation in read if relation.stream)

    def maintained_name(self, name: str) -> str:
        """Return the name of a materialized view as it was declared; SQ2001 if there is none."""
        return self.known.maintained(name).name

    def subscribe(
        self,
        name: str,
        with_snapshot: bool = False,
        limit: int | None = None,
        span: Span | None = None,
        newest: bool = False,
    ) -> Subscription:
        """Return the changes of a view from now on, behind its rows as they are now if these are asked for.

        Args:
            newest: Only the newest one waits, and its reader waits for it also while batches are applied by hand.
        """
        found = self.known.maintained(name, span)
        kind = NewestChange if newest else Subscription
        reader = kind(found.name, lambda: newest or self.is_running, limit or LIMIT)
        with closed_by_errors(reader):
            if with_snapshot:
                last, rows = read_view(
                    self.program, self.lock, lambda: self.known.maintained(name, span).read_by(reader)
                )
                reader.put_first(ViewChange(last, rows.slice(0, 0), rows))
            else:
                with self.lock:
                    self.known.maintained(name, span).read_by(reader)
        return reader

    def on_change(self, name: str, callback: Callable[[Any], None]) -> None:
        """Call a function with each change of a view, in the thread that applies the batch."""
        with self.lock:
            self.known.maintained(name).view_sink.call(callback)

    def columns(self, name: str, span: Span | None = None) -> tuple[Field, ...]:
        """Return the columns of a stream, table or view."""
        return self.known.columns(name, span)

    def schema(self, text: str, file: str = "session") -> tuple[Field, ...]:
        """Return the columns of a SELECT without running it."""
        return self.known.schema(text, file)

    def stats(self, name: str) -> Mapping[str, Any]:
        """Return figures of a view: its rows, and the records and bytes of the views that it is maintained from."""
        last, rows = self.numbered_table(name)
        with self.lock:
            return {"batches": last + 1, "rows": len(rows), "views": self.program.usage}

    def _set(self, statement: Set) -> Outcome:
        before = self._given
        try:
            self._use((*before, f"{statement.name}={statement.value}"))
        except SquallError as error:
            raise error.at(statement.span) from None
        try:
            self._refresh(bool(self._definitions.entries.maintained))
        except BaseException:
            self._use(before)
            raise
        return Outcome("SET")

    def _use(self, given: tuple[str, ...]) -> None:
        """Use the settings of the beginning with assignments given since."""
        latest = tuple({each.partition("=")[0].lower(): each for each in given}.values())
        settings = self.compiler.settings = self.program.settings = parse_settings(latest, self._first_settings)
        self._given, self.settings = latest, settings

    def _compile(self, queries: Sequence[Query], partitions: int) -> CompiledQuery:
        return self.compiler.compile(self._definitions.catalog, queries, partitions)
