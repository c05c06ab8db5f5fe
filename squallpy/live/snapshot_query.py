"""Ad hoc queries: any SELECT over views, as of one batch.

The views that it reads are tables of one batch to it. It is bound, compiled and run as any query is, so that its answer
is what a view of the same text would hold.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from squallpy.base.errors import SquallError
from squallpy.base.records import dataclass
from squallpy.base.settings import Settings
from squallpy.base.types import INT
from squallpy.catalog.catalog import Catalog, ViewDefinition
from squallpy.catalog.relation import CONSTANT, Field, Relation
from squallpy.catalog.sink_spec import SinkSpec
from squallpy.checkpoint_identity import columns_read
from squallpy.compiler import Compiler
from squallpy.frontend.query import SelectText, tables_read
from squallpy.live.read_rows import read_rows
from squallpy.logical.bind import Script, bind_top
from squallpy.logical.expressions import Call, Column, Literal, conjuncts
from squallpy.logical.nodes import Filter, Query, Scan, nodes
from squallpy.runtime.evaluate.constant_evaluation import fold_constant
from squallpy.runtime.evaluate.text_column_casts import column_type
from squallpy.runtime.local_executor import LocalExecutor
from squallpy.runtime.result.result import Equal
from squallpy.runtime.result.result_scan import RowScan
from squallpy.runtime.session_input import History
from squallpy.runtime.sources import open_source
from squallpy.runtime.sources.input import Input, whole
from squallpy.runtime.sources.protocol import Source
from squallpy.runtime.sources.table_source import TableSource

if TYPE_CHECKING:
    from squallpy.live.definitions import Definitions

SNAPSHOT = "snapshot"
"""The format of a relation whose rows are those of a view."""
_ONE_ROW = Relation("one row", (Field("zero", INT, False),), False, CONSTANT)  # NB: of a SELECT without FROM


class _Changed(Exception):
    """The definitions have changed since a query was bound."""


def answer(
    text: SelectText,
    known: "Callable[[], Definitions]",
    settings: Settings,
    base: Path,
    scan: Callable[[Query, Equal], RowScan],
    between: Callable[[], AbstractContextManager[Any]],
) -> pa.Table:
    """Answer a query by the definitions that are in force when its rows are read.

    Args:
        between: Keeps batches from being applied.
    """
    while True:
        definitions = known()

        @contextmanager
        def hold(bound_by: "Definitions" = definitions) -> Iterator[None]:
            with between():
                if known() is not bound_by:
                    raise _Changed
                yield

        with suppress(_Changed):
            catalog, views = definitions.catalog, definitions.entries.views
            return SnapshotQueries(catalog, settings, base, views, scan, hold).run(text)


@dataclass(frozen=True)
class SnapshotQueries:
    """Ad hoc queries over the entries of a catalogue.

    Args:
        base: The folder from which the paths of static tables start.
        views: The queries of materialized views, by lower name.
        scan: Begins to list the rows of one as of the last batch, perhaps only those with some values.
        hold: Keeps batches from being applied.
    """

    catalog: Catalog
    settings: Settings
    base: Path
    views: Mapping[str, Query]
    scan: Callable[[Query, Equal], RowScan]
    hold: Callable[[], AbstractContextManager[None]]

    def run(self, text: SelectText) -> pa.Table:
        """Answer a query; SQ3001 if it reads a stream."""
        self.check(text)
        query = self._bind(text)
        script = Script(self._relations, (query,))
        compiled = Compiler(script, self.settings, {}).compile([query], 1, {})
        sources = dict[str, Source]()
        read = [relation for relation in compiled.relations if relation.format == SNAPSHOT]
        asked = [(self.views[r.name.lower()], wanted_values(compiled.optimised[0], r)) for r in read]
        found = read_rows(self.hold, lambda: [self.scan(query, wanted) for query, wanted in asked])
        rows = {relation.name: table for relation, table in zip(read, found, strict=True)}
        for relation in compiled.relations:
            if relation.format == SNAPSHOT:
                sources[relation.name] = TableSource(_typed(rows[relation.name], relation))
            else:
                sources[relation.name] = open_source(relation, self.base)
                sources[relation.name].check(columns_read(compiled).get(relation.name, ()))
        spans = {name: whole(source) for name, source in sources.items()}
        executor = LocalExecutor(compiled.plan, Input(sources, History((spans,), {})), with_changes=False)
        executor.step()
        (table,) = executor.final()
        return table

    def check(self, text: SelectText) -> None:
        """Raise SQ3001 if a query reads a stream, by name or in a view that is not materialized."""
        for name in sorted(streams_read(self.catalog, self.views, text)):
            message = f"{name} is a stream, and an ad hoc query reads views and tables"
            hint = "CREATE MATERIALIZED VIEW of it keeps the answer fresh"
            raise SquallError("SQ3001", message, text.script.span(text.start, text.end), hint)

    def _bind(self, text: SelectText) -> Query:
        given = {relation.name.lower(): relation for relation in self._snapshots}
        entries = {_ONE_ROW.name: _ONE_ROW} | self.catalog.entries | given
        catalog = replace(self.catalog, entries=entries, notices={})
        return bind_top(catalog, text, 1, fold_constant)

    @property
    def _snapshots(self) -> Iterable[Relation]:
        for query in self.views.values():
            yield Relation(query.view, fields_of(query), False, SNAPSHOT)

    @property
    def _relations(self) -> dict[str, Relation]:
        return (
            {_ONE_ROW.name: _ONE_ROW}
            | self.catalog.relations
            | {relation.name: relation for relation in self._snapshots}
        )


def _typed(rows: pa.Table, relation: Relation) -> pa.Table:
    types = pa.schema([(field.name, column_type(field.type)) for field in relation.fields])
    return rows.rename_columns(types.names).cast(types)


def streams_read(catalog: Catalog, views: Collection[str], text: SelectText) -> set[str]:
    """Name the streams that a query reads without a materialized view between."""
    found, seen, left = set[str](), set[str](), tables_read(text)
    while left:
        name = left.pop()
        entry = catalog.entries.get(name)
        if name in seen or name in views or entry is None:
            continue
        seen.add(name)
        if isinstance(entry, Relation):
            found |= {entry.name} if entry.stream else set()
        elif isinstance(entry, ViewDefinition):
            left |= tables_read(entry.query)
        elif not isinstance(entry, SinkSpec):
            found.add(entry.name)
    return found


def wanted_values(query: Query, relation: Relation) -> Equal:
    """Find the values that columns of a relation have in all rows that a query reads, by position."""
    scans = [node for node in nodes(query.plan) if isinstance(node, Scan) and node.relation == relation]
    readers = [node for node in nodes(query.plan) if any(each is scan for scan in scans for each in node.inputs)]
    match scans, readers:
        case [scan], [Filter() as only]:  # NB: an outer join reads its side twice, once without the test
            places, found = {column.id: place for place, column in enumerate(scan.columns)}, dict[int, Literal]()
        case _:
            return {}
    for test in conjuncts(only.predicate):
        match test:
            case Call("=", (Column(id), Literal() as value)) | Call("=", (Literal() as value, Column(id))):
                found[places[id]] = value
    return found


def fields_of(query: Query) -> tuple[Field, ...]:
    """Return the printed columns of a query as fields."""
    columns = zip(query.names, query.plan.output, strict=True)
    return tuple(Field(name, column.type, column.nullable) for name, column in columns)
