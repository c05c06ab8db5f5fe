"""Sessions in Python: `squallpy.connect()`.

s = squallpy.connect()
s.stream("items", schema={"oid": "BIGINT", "price": "DECIMAL(12,2)"})
s.sql("CREATE MATERIALIZED VIEW revenue AS SELECT oid, SUM(price) AS total FROM items GROUP BY oid")
s.push("items", [{"oid": 1, "price": "2.50"}])
s.step()
s.view("revenue").to_arrow()
"""

import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, TypeVar

from squallpy.api.functions import declaration
from squallpy.api.html import PlanText
from squallpy.api.model import Model
from squallpy.api.relation import Table
from squallpy.api.view import Snapshot, View
from squallpy.base.addresses import Address
from squallpy.base.errors import SquallError, nearest
from squallpy.base.settings import parse_settings
from squallpy.frontend.declaration_text import declaration_text, qualified
from squallpy.frontend.script import parse_script
from squallpy.frontend.statements import Describe, Select, Show
from squallpy.live.backend import LocalBackend, SparkBackend
from squallpy.live.definitions import kind_of
from squallpy.live.open_session import OpenSession, open_session

if TYPE_CHECKING:
    from squallpy.flight.server import FlightServer
    from squallpy.runtime.observers.report import BatchReport
    from squallpy.web.page_server import PageServer

BACKENDS = ("local", "spark")
F = TypeVar("F", bound=Callable[..., Any])


class Session:
    """Streams, and views of them that are kept fresh; several threads may use it.

    Args:
        session: What it is a face of.
    """

    def __init__(self, session: OpenSession) -> None:
        self._session = session
        self._page: PageServer | None = None
        self._servers: list[FlightServer] = []

    def sql(self, text: str) -> View | None:
        """Execute the statements of a script, as they stand; of the last one, a SELECT, return what keeps it fresh.

        Args:
            text: CREATE STREAM, TABLE, VIEW, MATERIALIZED VIEW, SINK, ALTER, DROP, SET, PAUSE, RESUME, or SELECT.

        Returns:
            The view that keeps the answer of a SELECT fresh, under a name that is made up; None after DDL.

        Raises:
            SquallError: With a code, the place in the text and a hint.
        """
        view: View | None = None
        for outcome in self._session.execute(text, maintains=True):
            view = View(self._session, outcome.view) if outcome.message == "SELECT" and outcome.view else None
        return view

    def stream(
        self,
        name: str,
        schema: Mapping[str, str] | None = None,
        *,
        using: str | None = None,
        path: str | Path | None = None,
        primary_key: str | Sequence[str] = (),
        timestamp_by: str | None = None,
        delay: str | None = None,
        stored: bool = False,
        options: Mapping[str, Any] | None = None,
        **more: Any,
    ) -> "Stream":
        """Declare a stream: of files at a path, of another source, or, with neither, of rows that are pushed.

        Args:
            schema: SQL types by column; None: as the files have them.
            using: The format or source, as after USING; by default by the suffix of the path.
            primary_key: Columns that tell rows apart.
            timestamp_by: The column with the time of a row, by which windows close.
            delay: How late rows may come: '5 seconds'.
            stored: Rows that were read are kept, so that views that come later have them, too.
            options: Options as in OPTIONS (…); others may be given as keywords.

        Returns:
            The stream.

        Raises:
            SquallError: SQ2007 if the name is taken, SQ7002 for an unknown option, SQ4001 without the files.
        """
        given = {**(options or {}), **more}
        lowered = {key.lower() for key in given}
        if path is not None:
            given["path"] = path
        if using is None:
            using = _format_of(str(path)) if path is not None else "pushed"
        keys = [primary_key] if isinstance(primary_key, str) else [*primary_key]
        if using == "pushed" and schema is None:
            raise SquallError("SQ4002", f"the stream {name} has no columns", hint="give a schema: {'id': 'BIGINT'}")
        if using == "pushed" and not lowered & {"op", "changelog"}:
            given["op"] = OPERATION
        if using == "pushed" and str(given.get("changelog", "")).lower() == "upsert" and "tombstone" not in lowered:
            given["tombstone"] = OPERATION
        written = {key: _word(value) for key, value in given.items()}
        columns = dict(schema or {})
        text = declaration_text(name, "STREAM", columns, using, written, keys, timestamp_by, delay, stored)
        [*self._session.execute(text)]
        return Stream(self._session, name)

    def function(self, returns: str, **parameters: str) -> Callable[[F], F]:
        """Declare a function of Python for SQL, or replace it: a decorator, which leaves the function as it is.

        @s.function("VARCHAR", name="VARCHAR")
        def initials(name):
            return "".join(word[0] for word in name.split()) if name else None

        Its lines become those of CREATE FUNCTION … LANGUAGE PYTHON: they import what they need, and give the same
        result for the same arguments.

        Args:
            returns: The SQL type of its results.
            parameters: The SQL types of its parameters, in their order.

        Raises:
            SquallError: SQ7011 if its lines are not to be had, SQ1001 for a name that it does not define, SQ2014 if a
                view reads the one that it would replace.
        """

        def declare(function: F) -> F:
            self.sql(declaration(function, returns, parameters))
            return function

        return declare

    def push(self, name: str, rows: Any, op: str = "+") -> int:
        """Push rows to a stream that is declared USING pushed; the next batches read them.

        Args:
            rows: An Arrow table or batch, a pandas or polars frame, a list of dicts, or lists by column.
            op: '+' inserts, '-' deletes; or the name of the column that says so of each row.

        Returns:
            The number of rows.

        Raises:
            SquallError: SQ2001 without such a stream, SQ4002 without a column, SQ4004 for a value of another type,
                SQ7011 for what is no table. Then no row was pushed.
        """
        return self._session.push(name, rows, op)

    def step(self) -> "BatchReport | None":
        """Apply one batch of what has come; returns its report, or None if there is nothing new."""
        return self._session.step()

    def run_until_caught_up(self) -> int:
        """Apply batches until all that has come is read; returns how many."""
        return self._session.run_until_caught_up()

    def start(self) -> None:
        """Apply batches in a thread of its own as rows come, until `stop`."""
        self._session.start()

    def stop(self) -> None:
        """Let the batch in work end, and apply no more by itself."""
        self._session.stop()

    def view(self, name: str) -> View:
        """Return a materialized view by its name; SQ2001 if there is none."""
        return View(self._session, self._session.maintained_name(name))

    def model(self, name: str) -> Model:
        """Return a view of `SELECT * FROM ols(…)` by its name, to predict with; SQ2001 if there is no such view."""
        return Model(self._session, self._session.maintained_name(name))

    def table(self, name: str) -> Table:
        """Return a stream, table or view by its name, to compute with; SQ2001 if there is none."""
        self._session.columns(name)
        entry = self._session.catalog.entries[name.lower()]
        classes: Mapping[str, type[Table]] = {"STREAM": Stream, "MATERIALIZED VIEW": View}
        return classes.get(kind_of(entry), Table)(self._session, entry.name)

    def query(self, text: str) -> Snapshot:
        """Answer a SELECT over views, as of the last batch.

        Raises:
            SquallError: SQ3001 if it reads a stream, of which only views have the rows.
        """
        statements = parse_script(text, "session")
        if len(statements) != 1 or not isinstance(statements[0], Select | Show | Describe):
            raise SquallError("SQ1001", "this is no SELECT", hint="use sql for other statements")
        (outcome,) = self._session.execute(text)
        assert outcome.table is not None
        return Snapshot(outcome.table)

    def explain(self, name: str, stage: str = "triggers") -> PlanText:
        """Show a materialized view at a stage of its compilation (`squall explain`)."""
        (outcome,) = self._session.execute(f"EXPLAIN {stage} {qualified(name)}")
        return PlanText(outcome.text or "")

    def on_change(self, name: str, callback: Callable[[Any], None]) -> None:
        """Call a function with each change of a view."""
        self._session.on_change(name, callback)

    def serve_page(self, address: str = "127.0.0.1:8090") -> str:
        """Serve the page of the session until it is closed, and return its URL.

        Args:
            address: HOST:PORT; port 0 is any that is free. Where others can reach it, the URL has a token.

        Raises:
            SquallError: SQ7005 if it cannot listen there, SQ8009 without the packages of squallpy[ui].
        """
        from squallpy.web.monitoring import monitored
        from squallpy.web.page_server import PageServer, read_address

        if self._page is None:
            page = PageServer(read_address(address))
            page.show(monitored(self._session))
            self._page = page
        return self._page.url

    def serve_flight(self, address: str = "127.0.0.1:31337") -> "FlightServer":
        """Serve the views by Arrow Flight SQL, to be read only, until the session or the server is closed.

        Args:
            address: HOST:PORT; port 0 is any that is free.

        Returns:
            The server, with its `url`, the `token` that clients need where others can reach it, and `close`.

        Raises:
            SquallError: SQ7003 for what is no address, SQ7005 if it cannot listen there.
        """
        from squallpy.flight import open_server

        place = Address.parse(address, "serve_flight")
        if place is None:
            raise SquallError("SQ7003", f'"{address}" is no address', hint="HOST:PORT, such as 127.0.0.1:31337")
        server = open_server(self._session, place)
        self._servers.append(server)
        return server

    def close(self) -> None:
        """End the session; its views can be read no more."""
        while self._servers:
            self._servers.pop().close()
        if self._page:
            self._page.close()
        if displays := sys.modules.get("squallpy.api.live_display"):
            displays.stop_displays(self._session)
        self._session.close()

    def __enter__(self) -> "Session":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def __repr__(self) -> str:
        names = ", ".join(each.name for each in self._session.entries.maintained.values())
        return f"<squallpy session: {names or 'no views'}>"


class Stream(Table):
    """A stream of a session."""

    def push(self, rows: Any, op: str = "+") -> int:
        """Push rows (`Session.push`)."""
        return self._session.push(self.name, rows, op)


OPERATION = "_op"
"""The column that tells inserts from deletes of a stream of rows that are pushed, unless it names another."""


def connect(
    backend: str = "local",
    checkpoint: str | Path | None = None,
    settings: Mapping[str, Any] | None = None,
    *,
    spark: Any = None,
    master: str = "local[2]",
    write: bool = False,
) -> Session:
    """Begin a session, or attach to the one that another process has at the checkpoint.

    An attached session reads what the other has, and with `write` also changes it: statements, pushes and batches of
    both take turns. Paths in its statements are by the folder of the other process, which has the settings and the
    backend; when that ends, all that is asked is SQ7014.

    Args:
        backend: local, in this process, or spark.
        checkpoint: A folder, or URI that Arrow knows, where definitions and state are kept. A session goes on there
            with the streams and views of the one before, as of its last batch, and exactly once; on either backend.
        settings: Settings of the engine, by name (`squall options`).
        spark: A running `SparkSession`, which is left as it is; None: one that the session starts and ends.
        master: Spark's master, of a session that is started.
        write: An attached session may change what the other has; SQ7013 otherwise.

    Raises:
        SquallError: SQ7001 for an unknown setting, SQ7003 for a value that does not fit, SQ6002 and SQ6003 for a folder
            that cannot be used, SQ6007 if another run has it that is no session, SQ8001 and SQ8002 if Spark does not
            start.
    """
    if backend not in BACKENDS:
        raise SquallError("SQ7003", f'unknown backend "{backend}"', hint=nearest(backend, BACKENDS))
    if backend == "local" and spark is not None:
        raise SquallError("SQ7003", "a session of Spark's is given, and the backend is local", hint='backend="spark"')
    chosen = parse_settings(f"{name}={_word(value)}" for name, value in (settings or {}).items())
    place = SparkBackend(master, spark) if backend == "spark" else LocalBackend()
    from squallpy.web.monitoring import SERVICES

    folder = None if checkpoint is None else str(checkpoint)
    return Session(open_session(chosen, Path.cwd(), checkpoint=folder, backend=place, writes=write, services=SERVICES))


def _format_of(path: str) -> str:
    """Choose the format of files by their suffix: 'a.csv.gz' → csv; parquet if there is none."""
    suffixes = [suffix.lower() for suffix in Path(path).suffixes]
    known = {".csv": "csv", ".tsv": "csv", ".json": "json", ".jsonl": "json", ".ndjson": "json", ".avro": "avro"}
    return next((known[suffix] for suffix in suffixes if suffix in known), "parquet")


def _word(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
