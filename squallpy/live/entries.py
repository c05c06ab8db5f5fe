"""Queries that a session keeps fresh, for materialized views and sinks, and who reads whom."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import field

from squallpy.base.records import dataclass
from squallpy.catalog.catalog import Catalog, ViewDefinition
from squallpy.catalog.sink_spec import SinkSpec
from squallpy.frontend.query import SelectText, tables_read
from squallpy.live.session_sink import SessionSink
from squallpy.live.subscription import Subscription, ViewSink
from squallpy.logical.nodes import Query
from squallpy.runtime.sinks.protocol import Sink


@dataclass(frozen=True, slots=True)
class Maintained:
    """A query that is kept fresh.

    Args:
        name: That of its view or sink; of a query without one, a name that the session gives.
        text: The query as written.
        reads: The names that it reads, in lower case.
        sink: The taker of its changes.
        spec: The declaration of a sink.
    """

    name: str
    query: Query
    text: SelectText
    reads: frozenset[str]
    sink: ViewSink | SessionSink
    spec: SinkSpec | None = None
    is_view: bool = True

    @property
    def view_sink(self) -> ViewSink:
        """The taker of its changes, of a view."""
        assert isinstance(self.sink, ViewSink)
        return self.sink

    def read_by(self, reader: Subscription) -> "Maintained":
        """Let a reader have the changes of the view from now on; it may have had others before."""
        self.view_sink.subscribe(reader)
        return self


@dataclass
class Entries:
    """The queries of a session, in the order in which they came."""

    maintained: dict[str, Maintained] = field(default_factory=dict)

    @property
    def views(self) -> dict[str, Query]:
        """The queries of materialized views, by lower name."""
        return {name: each.query for name, each in self.maintained.items() if each.is_view}

    @property
    def view_sinks(self) -> list[ViewSink]:
        """The takers of changes of materialized views."""
        return [each.sink for each in self.maintained.values() if isinstance(each.sink, ViewSink)]

    def readers(self, catalog: Catalog, name: str) -> list[str]:
        """Name the views, sinks and queries that read an entry themselves, in their order."""
        plain = {e.name: tables_read(e.query) for e in catalog.entries.values() if isinstance(e, ViewDefinition)}
        plain |= {function.name: {*function.reads} for function in catalog.functions}
        reads: dict[str, Collection[str]] = {**plain, **{each.name: each.reads for each in self.maintained.values()}}
        return [reader for reader, read in reads.items() if name.lower() in read]

    def all_readers(self, catalog: Catalog, name: str) -> list[str]:
        """Name all that depends on an entry, each before what depends on it."""
        found, left = dict[str, None](), self.readers(catalog, name)
        while left:
            reader = left.pop(0)
            found.pop(reader, None)
            found[reader] = None
            left += self.readers(catalog, reader)
        return [*found]


def sinks_of(maintained: Iterable[Maintained]) -> Mapping[int, Sink]:
    """Map the numbers of queries to their sinks."""
    return {each.query.number: each.sink for each in maintained}
