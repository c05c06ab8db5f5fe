"""The definitions of a session: statements that create, alter and drop streams, views and sinks, and who reads what.

A statement either takes effect whole or leaves everything as it was.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import copy
from dataclasses import replace
from itertools import count

from squallpy.base.errors import Span, SquallError, nearest
from squallpy.catalog.catalog import Catalog, Entry, ViewDefinition
from squallpy.catalog.format_options import PUSHED
from squallpy.catalog.functions import DefinedFunction, signature
from squallpy.catalog.relation import Field, Relation
from squallpy.catalog.sink_spec import CHANGES, FINAL, SinkSpec
from squallpy.frontend.declaration_text import qualified, quote_name
from squallpy.frontend.query import SelectText, tables_read
from squallpy.frontend.script import parse_script
from squallpy.frontend.statements import (
    CreateFunction,
    CreateMatrix,
    CreateOrder,
    CreateProgram,
    CreateRelation,
    CreateSink,
    CreateView,
    Drop,
    Existing,
    Explain,
    Select,
    Statement,
)
from squallpy.live.entries import Entries, Maintained
from squallpy.live.outcome import Outcome
from squallpy.live.session_compiler import SessionCompiler
from squallpy.live.session_sink import SessionSink
from squallpy.live.snapshot_query import fields_of, streams_read
from squallpy.live.subscription import ViewSink
from squallpy.logical.bind import ScriptBinder
from squallpy.logical.bind.sinks import bind_sink
from squallpy.logical.nodes import Query

_CLASSES: Mapping[str, tuple[type, ...]] = {
    "STREAM": (Relation,), "TABLE": (Relation,), "SINK": (SinkSpec,), "VIEW": (ViewDefinition,),
    "FUNCTION": (DefinedFunction,),
}  # fmt: skip


class Definitions:
    """The streams, tables, views, sinks and functions of a session.

    Args:
        refresh: Notes the definitions and, told that queries have changed, keeps fresh what they say; or raises.
        open_sink: Takes the target of a sink's query.
        drop_source: Forgets a stream or table.
        columns: Columns that were found in files, by relation (`SessionCompiler`).
    """

    def __init__(
        self,
        binder: ScriptBinder,
        refresh: Callable[[bool], None],
        open_sink: Callable[[Query], SessionSink | ViewSink],
        drop_source: Callable[[str], None],
        columns: dict[str, str],
    ) -> None:
        self.binder, self.entries, self._columns = binder, Entries(), columns
        self._refresh, self._open_sink, self._drop_source = refresh, open_sink, drop_source
        self._numbers, self._texts = count(1), dict[str, str]()

    @property
    def catalog(self) -> Catalog:
        return self.binder.catalog

    def snapshot(self) -> "Definitions":
        """Copy them as they are, for those who read them while a statement changes them."""
        copied = copy(self)
        copied.binder = copy(self.binder)
        copied.binder.catalog = replace(self.catalog, entries=dict(self.catalog.entries))
        copied.entries, copied._texts = Entries(dict(self.entries.maintained)), dict(self._texts)
        return copied

    def execute(self, statement: Statement, text: str) -> Outcome | None:
        """Execute a statement that creates, alters or drops something; None if it is another."""
        match statement:
            case CreateRelation():
                return self.create_relation(statement, text)
            case CreateView():
                return self.create_view(statement)
            case CreateSink():
                return self.create_sink(statement, text)
            case CreateFunction():
                return self.create_function(statement, text)
            case CreateMatrix() | CreateProgram() | CreateOrder():
                return self.create_matrix_entry(statement, text)
            case Drop():
                return self.drop(statement)
        return None

    def create_relation(self, created: CreateRelation, text: str) -> Outcome:
        kind, name = "STREAM" if created.relation.stream else "TABLE", created.relation.name
        if self._keeps(name, created.existing):
            return Outcome(f"CREATE {kind}")
        replaces = created.existing is Existing.REPLACE and name.lower() in self.catalog.entries
        if replaces:
            self._refuse_readers(name, created.span, "replaced")
        sources = list[str]()
        with self._undoing():
            if replaces:
                self.catalog.entries.pop(name.lower())
                sources = [name, *self._pop_implied(name)]
                self._columns.pop(name, None)
            self.declare(replace(created, existing=Existing.REFUSE), name, text)
        for source in sources:
            self._drop_source(source)
        return Outcome(f"CREATE {kind}")

    def _pop_implied(self, name: str) -> list[str]:
        """Remove from the catalogue what queries of before have implied by a stream; returned are the names."""
        counts = {each.name: each.counts for each in self.catalog.relations.values() if each.counts}
        found = [each for each, counted in counts.items() if counted.name.lower() == name.lower()]
        for each in found:
            self.catalog.entries.pop(each.lower())
        return found

    def declare(self, statement: Statement, name: str, text: str) -> None:
        """Declare what has no query."""
        self.binder.bind(statement)
        self._texts[name.lower()] = text
        self._refresh(False)

    def create_function(self, created: CreateFunction, text: str) -> Outcome:
        name = signature(created.name)
        if self._keeps(name, created.existing):
            return Outcome("CREATE FUNCTION")
        with self._undoing():
            if created.existing is Existing.REPLACE and name in self.catalog.entries:
                self._refuse_readers(name, created.span, "replaced")
                self.catalog.entries.pop(name)
            self.declare(replace(created, existing=Existing.REFUSE), name, text)
        return Outcome("CREATE FUNCTION")

    def create_matrix_entry(self, created: CreateMatrix | CreateProgram | CreateOrder, text: str) -> Outcome:
        """Declare a matrix, a program over matrices, or a variable order."""
        match created:
            case CreateMatrix(matrix):
                kind, name = "MATRIX", matrix.name
            case CreateProgram(program):
                kind, name = "MATRIX PROGRAM", program.name
            case CreateOrder(order):
                kind, name = "VARIABLE ORDER", order.name
        self.declare(created, name, text)
        return Outcome(f"CREATE {kind}")

    def create_view(self, created: CreateView) -> Outcome:
        kind = "MATERIALIZED VIEW" if created.is_materialized else "VIEW"
        if created.alters:
            return self._alter(created)
        if self._keeps(created.name, created.existing):
            return Outcome(f"CREATE {kind}", view=created.name)
        if created.existing is Existing.REPLACE and created.name.lower() in self.catalog.entries:
            return self._alter(created)
        with self._undoing():
            reads = frozenset(tables_read(created.query))
            view = self.binder.view(created)
            self.catalog.add(view)
            if created.is_materialized:
                query = self.query(created.query, view)
                _check_names(query, created.span)
                self.entries.maintained[view.name.lower()] = Maintained(
                    view.name, query, created.query, reads, ViewSink(view.name)
                )
            self._refresh(created.is_materialized)
        return Outcome(f"CREATE {kind}", view=view.name)

    def _alter(self, created: CreateView) -> Outcome:
        """Replace a view, and bind anew what reads it."""
        entry = self.entry(created.name, created.span, ViewDefinition)
        assert isinstance(entry, ViewDefinition)
        if created.alters:
            created = replace(created, is_materialized=entry.is_materialized, name=entry.name)
        readers = self.entries.all_readers(self.catalog, entry.name)
        circle = {reader.lower() for reader in (*readers, entry.name)} & tables_read(created.query)
        if circle:
            message = f"{entry.name} would read itself, by {', '.join(sorted(circle))}"
            raise SquallError("SQ2014", message, created.span, "a view reads what is there without it")
        if sinks := [each for name in readers if (each := self.entries.maintained.get(name.lower())) and each.spec]:
            message = f"{entry.name} cannot be altered: the sink {sinks[0].name} has the rows of {entry.name} as it is"
            raise SquallError("SQ2014", message, created.span, "drop the sink first")
        with self._undoing():
            reads = frozenset(tables_read(created.query))
            view = self.binder.view(created)
            self.catalog.entries[entry.name.lower()] = view
            old = self.entries.maintained.pop(entry.name.lower(), None)
            if view.is_materialized:
                query = self.query(created.query, view)
                _check_names(query, created.span)
                sink = old.sink if old else ViewSink(view.name)
                self.entries.maintained[view.name.lower()] = Maintained(view.name, query, created.query, reads, sink)
            for reader in readers:
                self._bind_anew(reader, created.span)
            self._refresh(True)
        for name in (entry.name, *readers):
            if (each := self.entries.maintained.get(name.lower())) and isinstance(each.sink, ViewSink):
                each.sink.fail(SquallError("SQ2014", f"{each.name} has become another view", hint="subscribe anew"))
        return Outcome(
            f"{'ALTER' if created.alters else 'CREATE'} {'MATERIALIZED VIEW' if view.is_materialized else 'VIEW'}"
        )

    def _bind_anew(self, name: str, span: Span) -> None:
        """Bind a view again, after one that it reads has become another."""
        known = self.entries.maintained.get(name.lower())
        entry = self.catalog.entries.get(name.lower())
        try:
            if isinstance(entry, ViewDefinition):
                created = CreateView(entry.name, entry.columns, entry.query, entry.span or span, entry.is_materialized)
                entry = self.catalog.entries[name.lower()] = self.binder.view(created)
            if known:
                query = self.query(known.text, entry if isinstance(entry, ViewDefinition) else None)
                self.entries.maintained[name.lower()] = replace(known, query=query)
        except SquallError as error:
            raise SquallError(
                "SQ2014", f"{name} reads it: {error.message}", span, "drop it first, or CASCADE"
            ) from None

    def create_sink(self, created: CreateSink, text: str) -> Outcome:
        name = created.sink.name
        if self._keeps(name, created.existing):
            return Outcome("CREATE SINK")
        if created.existing is Existing.REPLACE and name.lower() in self.catalog.entries:
            self.drop(Drop("SINK", name, created.sink.span or Span("", 1, 1)))
        with self._undoing():
            reads = frozenset(tables_read(created.query))
            self.catalog.add(created.sink)
            query = self.query(created.query)
            mode = created.sink.mode or CHANGES
            if mode == FINAL:
                message = "mode 'final' writes the answer at the end, and a session has none"
                raise SquallError("SQ7003", message, created.sink.place("mode"), "write mode 'changes'")
            query = replace(query, sink=replace(bind_sink(created.sink, query), mode=mode))
            sink = self._open_sink(query)
            self._texts[name.lower()] = text
            self.entries.maintained[name.lower()] = Maintained(
                name, query, created.query, reads, sink, query.sink, is_view=False
            )
            try:
                self._refresh(True)
            except BaseException:
                sink.close()
                raise
        return Outcome("CREATE SINK")

    def drop(self, drop: Drop) -> Outcome:
        if drop.kind == "FUNCTION":
            drop = replace(drop, name=signature(drop.name))
        entry = self.catalog.entries.get(drop.name.lower())
        if entry is None and drop.if_exists:
            return Outcome(f"DROP {drop.kind}")
        entry = self.entry(drop.name, drop.span, *_CLASSES[drop.kind.split()[-1]])
        is_kind = kind_of(entry) == drop.kind or (drop.kind == "VIEW" and isinstance(entry, ViewDefinition))
        if not is_kind:
            message = f"{entry.name} is a {kind_of(entry)}"
            raise SquallError("SQ2001", message, drop.span, f"write DROP {kind_of(entry)} {entry.name}")
        readers = self.entries.all_readers(self.catalog, entry.name)
        if readers and not drop.cascades:
            self._refuse_readers(entry.name, drop.span, "dropped")
        dropped, sources = list[Maintained](), list[str]()
        with self._undoing():
            for name in (*reversed(readers), entry.name):
                dropped += [each for each in [self.entries.maintained.pop(name.lower(), None)] if each]
                self.catalog.entries.pop(name.lower(), None)
                self._texts.pop(name.lower(), None)
            if isinstance(entry, Relation):
                sources = [entry.name, *self._pop_implied(entry.name)]
            self._columns.pop(entry.name, None)
            self._refresh(bool(dropped))
        for each in dropped:
            each.sink.finish(stopped=True)
            each.sink.close()
        for source in sources:
            self._drop_source(source)
        return Outcome(f"DROP {drop.kind}")

    def _refuse_readers(self, name: str, span: Span, what: str) -> None:
        readers = self.entries.readers(self.catalog, name)
        if readers:
            message = f"{name} cannot be {what}: {listed(readers)} {'reads' if len(readers) == 1 else 'read'} it"
            raise SquallError("SQ2014", message, span, "drop what reads it first, or DROP … CASCADE")

    def _keeps(self, name: str, existing: Existing) -> bool:
        return existing is Existing.KEEP and name.lower() in self.catalog.entries

    def entry(self, name: str, span: Span | None, *kinds: type) -> Entry:
        """Look up an entry of one of some kinds; SQ2001 with the nearest name of those."""
        entry = self.catalog.entries.get(name.lower())
        if entry is None or not isinstance(entry, kinds):
            known = [e.name for e in self.catalog.entries.values() if isinstance(e, kinds)]
            raise SquallError("SQ2001", f'unknown {_words(kinds)} "{name}"', span, nearest(name, known))
        return entry

    def pushed(self, name: str) -> Relation:
        """Look up a stream to which rows are pushed; SQ7011 for one that reads something else."""
        relation = self.entry(name, None, Relation)
        assert isinstance(relation, Relation)
        if relation.format != PUSHED:
            message = f"{relation.name} reads {relation.format}, and no rows are pushed to it"
            raise SquallError("SQ7011", message, hint="declare it USING pushed, or by session.stream(…, schema=…)")
        return relation

    def query(self, text: SelectText, view: ViewDefinition | None = None) -> Query:
        bound = self.binder.query(text, view)
        return replace(bound, number=next(self._numbers))

    @contextmanager
    def _undoing(self) -> Iterator[None]:
        """Leave the definitions as they were if a statement fails."""
        entries, maintained, texts = dict(self.catalog.entries), dict(self.entries.maintained), dict(self._texts)
        columns = dict(self._columns)
        try:
            yield
        except BaseException:
            self.catalog.entries, self.entries.maintained, self._texts = entries, maintained, texts
            self._columns.clear()
            self._columns.update(columns)
            raise

    def columns(self, name: str, span: Span | None = None) -> tuple[Field, ...]:
        """Return the columns of a stream, table or view."""
        entry = self.entry(name, span, Relation, ViewDefinition)
        if isinstance(entry, Relation):
            return entry.fields
        if known := self.entries.maintained.get(name.lower()):
            return fields_of(known.query)
        assert isinstance(entry, ViewDefinition)
        return fields_of(Query(entry.checked, tuple(c.name for c in entry.checked.output), ""))

    def schema(self, text: str, file: str) -> tuple[Field, ...]:
        """Return the columns of a SELECT."""
        (statement,) = parse_script(text, file)
        assert isinstance(statement, Select)
        return fields_of(self.query(statement.query))

    def explained(self, explain: Explain) -> tuple[Query, list[Query]]:
        """Return the query that EXPLAIN shows, as written or of a materialized view, and those it is compiled with."""
        if explain.query:
            return (query := self.query(explain.query)), [query]
        queries = [each.query for each in self.entries.maintained.values()]
        return self.maintained(explain.name, explain.span).query, queries

    def reads_streams(self, query: SelectText) -> bool:
        """True if a query reads streams themselves, not by a materialized view."""
        return bool(streams_read(self.catalog, self.entries.views, query))

    def relations_read(self, name: str) -> Sequence[Relation]:
        """List the streams and tables that a view reads, also by other views."""
        seen, left = set[str](), {name.lower()}
        while new := left - seen:
            seen |= new
            views = [entry for each in new if isinstance(entry := self.catalog.entries.get(each), ViewDefinition)]
            left |= {each for view in views for each in tables_read(view.query)}
        return [entry for each in seen if isinstance(entry := self.catalog.entries.get(each), Relation)]

    def statements(self) -> tuple[str, ...]:
        """Write the definitions as statements, each behind those of what it reads."""
        return tuple(self._by_name().values())

    def put_in_order(self, bind: Callable[[Sequence[str]], Sequence[Query]]) -> None:
        """Put queries in the order of these statements, so that their program is that of a session that is restored.

        Where names are made by counting, as those of parts of relations, all are bound anew, as such a session does.

        Args:
            bind: Binds the queries of statements by themselves.
        """
        catalog, kept = self.catalog, self.entries.maintained
        if not (catalog.parts or catalog.matrices or catalog.programs):
            self.entries.maintained = {name: kept[name] for name in self._by_name() if name in kept}
            return
        bound = dict[str, Maintained]()
        for query in bind(self.statements()):
            known = kept[query.name.lower()]
            number, sink = known.query.number, known.query.sink
            bound[query.name.lower()] = replace(known, query=replace(query, number=number, sink=sink))
        self.entries.maintained = bound

    def _by_name(self) -> dict[str, str]:
        found = dict[str, str]()
        for name in self.catalog.entries:
            self._write(name, found)
        return found

    def _write(self, name: str, found: dict[str, str]) -> None:
        entry = self.catalog.entries[name]
        known = self.entries.maintained.get(name)
        reads = known.reads if known else tables_read(entry.query) if isinstance(entry, ViewDefinition) else ()
        for each in sorted(reads):
            if each in self.catalog.entries and each not in found:
                self._write(each, found)
        if isinstance(entry, ViewDefinition):
            columns = f" ({', '.join(map(quote_name, entry.columns))})" if entry.columns else ""
            found[name] = f"CREATE {kind_of(entry)} {qualified(entry.name)}{columns} AS {entry.query.text}"
        elif name in self._texts:  # NB: what table functions declare is declared again by their queries
            found[name] = self._texts[name]

    def maintained(self, name: str, span: Span | None = None) -> Maintained:
        """Look up a materialized view; SQ2001 with the nearest name."""
        found = self.entries.maintained.get(name.lower())
        if found is None or not found.is_view:
            known = [each.name for each in self.entries.maintained.values() if each.is_view]
            raise SquallError("SQ2001", f'unknown materialized view "{name}"', span, nearest(name, known))
        return found


def unopened_definitions(compiler: SessionCompiler) -> Definitions:
    """Make definitions that only bind: no source is opened by them, and no sink."""
    return Definitions(
        compiler.binder(),
        refresh=lambda _: None,
        open_sink=lambda query: ViewSink(query.name),
        drop_source=lambda _: None,
        columns=compiler.columns,
    )


def kind_of(entry: Entry) -> str:
    """Name the kind of an entry as DROP does."""
    match entry:
        case Relation():
            return "STREAM" if entry.stream else "TABLE"
        case ViewDefinition():
            return "MATERIALIZED VIEW" if entry.is_materialized else "VIEW"
        case SinkSpec():
            return "SINK"
        case DefinedFunction():
            return "FUNCTION"
    return "MATRIX"


def _words(kinds: tuple[type, ...]) -> str:
    names = {Relation: "stream or table", ViewDefinition: "view", SinkSpec: "sink", DefinedFunction: "function"}
    return " or ".join(names[kind] for kind in kinds)


def listed(names: Sequence[str]) -> str:
    """Write names as a sentence has them: a, b and c."""
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def _check_names(query: Query, span: Span) -> None:
    """Raise SQ2007 for a view with two columns of one name."""
    seen = set[str]()
    for name in query.names:
        if name.lower() in seen:
            raise SquallError("SQ2007", f'the view has two columns "{name}"', span, "name one with AS")
        seen.add(name.lower())
